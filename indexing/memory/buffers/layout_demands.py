"""The operation that wants the layout of an array, behind copies, views and elementwise operations.

An elementwise operation computes in the layout of its operands, and passes it on to its result; so
does one that only moves the elements of its one operand, such as a reshape.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.maps.arrays import ArrayRef
from indexing.memory.buffers.moved_elements import changes_layout, copied_path, source_of_move
from indexing.memory.movement.writes import is_view, reads_of, viewed_array
from indexing.ops.element import CopyRule, ElementwiseRule, element_of
from indexing.ops.structured_ops import InlineOp


class LayoutDemand(NamedTuple):
    """The operation that wants the layout of an array, or the result that has it.

    Attributes:
        instruction: an operation that is not elementwise, or the root of a computation that
            returns the array.
        fusion: the fusion that contains it; None outside of fusions.
        is_result: the computation returns the array in this layout.
    """

    instruction: Instruction
    fusion: Instruction | None
    is_result: bool

    def __str__(self) -> str:
        name = f"{self.instruction.opcode} `{self.instruction.name}`"
        if self.fusion is not None:
            return f"{name} in {self.fusion.opcode} `{self.fusion.name}`"
        return name


class _Place(NamedTuple):
    """An array, and the fusions in whose computations it is, the outermost first."""

    array: ArrayRef
    fusions: tuple[Instruction, ...] = ()


def layout_demand(array: ArrayRef) -> LayoutDemand | None:
    """Return the nearest operation that wants the layout of an array; None if nothing reads it.

    >>> import hlo
    >>> module = hlo.parse('''
    ... f { p = f32[64,32]{0,1} parameter(0)  n = f32[64,32]{0,1} negate(p)
    ...   t = f32[32,64]{1,0} transpose(n), dimensions={1,0}
    ...   ROOT k = f32[64,64]{1,0} concatenate(t, t), dimensions={0} }
    ... ENTRY e { x = f32[64,32]{1,0} parameter(0)  c = f32[64,32]{0,1} copy(x)
    ...   d = f32[64,32]{0,1} copy(c)  s = f32[64,32]{0,1} add(d, c)
    ...   ROOT r = f32[64,64]{1,0} fusion(s), kind=kLoop, calls=f }''')
    >>> print(layout_demand(ArrayRef(module.entry["c"])))
    concatenate `k` in fusion `r`
    """
    start = _Place(viewed_array(array))
    queue, seen = deque([start]), {start}
    while queue:
        place = queue.popleft()
        for step in _continue_from(place):
            if isinstance(step, LayoutDemand):
                return step
            if step not in seen:
                seen.add(step)
                queue.append(step)
    return None


def _continue_from(place: _Place) -> Iterator[_Place | LayoutDemand]:
    """Yield what wants the layout of an array, or the arrays that have it from there."""
    array, fusions = place
    for reader, number in reads_of(array):
        is_result = reader.is_root and is_view(reader)
        if is_result or changes_layout(reader):
            continue  # a copy reads any layout
        if source_of_move(reader) is not None:
            yield _Place(ArrayRef(reader, copied_path(reader)), fusions)
        elif isinstance(reader.op, InlineOp):
            parameter = reader.called_computations[0].parameters[number]
            inner = ArrayRef(parameter, _path_of(reader, number, array))
            yield _Place(inner, (*fusions, reader))
        elif _passes_on(reader):
            yield _Place(ArrayRef(reader), fusions)
        else:
            yield LayoutDemand(reader, fusions[0] if fusions else None, False)
    root = array.instruction.computation.root
    for path, _ in leaves(root.shape):
        if viewed_array(ArrayRef(root, path)) == array:
            if fusions:
                yield _Place(ArrayRef(fusions[-1], path), fusions[:-1])
            else:
                yield LayoutDemand(root, None, True)


def _passes_on(reader: Instruction) -> bool:
    """Return True for an elementwise operation, and for one that only views its one operand."""
    match element_of(reader):
        case ElementwiseRule():
            return True
        case CopyRule(function=None):
            return len(reader.operands) == 1
        case _:
            return False


def _path_of(reader: Instruction, number: int, array: ArrayRef) -> tuple[int, ...]:
    """Return the leaf of an operand that is an array."""
    operand = reader.operands[number]
    paths = [path for path, _ in leaves(operand.shape)]
    return next((p for p in paths if viewed_array(ArrayRef(operand, p)) == array), ())
