"""`ShapedOp`: an op with its shapes, from which the maps of most instructions follow.

Programs repeat few shaped ops: the layers of a network are equal.  Edges and answers that follow
from a shaped op are computed once for it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from hlo.memo import Memo
from hlo.modules.module import Instruction
from hlo.ops.op import Op
from hlo.shapes.shape import AnyShape
from indexing.dataflow.refinement import can_refine
from indexing.maps.answers import Direction
from indexing.maps.arrays import Path
from indexing.maps.options import Options
from indexing.ops.base import MappedOp


@dataclass(frozen=True, slots=True, eq=False)
class ShapedOp:
    """An op with the shapes of its result and of its operands; a key of memoised results."""

    op: MappedOp
    result: AnyShape
    operands: tuple[AnyShape, ...]
    depends_on_values: bool


_KNOWN: Final = Memo[tuple[int, ...], ShapedOp](1 << 12)
"""Shaped ops by the identities of their parts, which they keep alive.

Hashes of ops and shapes take longer than all else.  The parser makes equal parts one object; where
it does not, a shaped op is made twice.
"""


def shaped_op(instruction: Instruction) -> ShapedOp | None:
    """Return the op of an instruction with its shapes; None if its maps follow from more than that.

    >>> import hlo, indexing
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[2] parameter(0)
    ...   a = f32[2] negate(p)
    ...   ROOT b = f32[2] negate(a)
    ... }''').entry
    >>> shaped_op(entry["a"]) is shaped_op(entry["b"])
    True
    """
    if instruction.called_computations:
        return None
    form, op = instruction.form, instruction.op
    if form is None:
        return _by_identity(instruction, op)
    shaped: ShapedOp | None = form.derived
    if shaped is None or shaped.op is not op:
        form.derived = shaped = _by_identity(instruction, op)
    return shaped


def sharing_key(
    instruction: Instruction, direction: Direction, output: int | Path, options: Options
) -> Hashable | None:
    """Return a key that is equal for equal maps; None if they follow from more than shapes."""
    shaped, key = shaped_op(instruction), options.sharing_key
    return None if shaped is None or key is None else (shaped, direction, output, key)


def depends_on_values(instruction: Instruction) -> bool:
    """Return True if values of operands may decide which elements of operands are needed."""
    shaped = shaped_op(instruction)
    return shaped is None or shaped.depends_on_values


def _by_identity(instruction: Instruction, op: Op | None) -> ShapedOp | None:
    """Return the shaped op of an instruction from the identities of its op and shapes."""
    if not isinstance(op, MappedOp):  # such as a tuple, of which each operand is one question
        return None
    result, operands = instruction.shape, [operand.shape for operand in instruction.operands]
    key = (id(op), id(result), *map(id, operands))
    if (known := _KNOWN.get(key)) is not None:
        return known
    depends = can_refine(instruction, op)
    return _KNOWN.keep(key, ShapedOp(op, result, tuple(operands), depends))
