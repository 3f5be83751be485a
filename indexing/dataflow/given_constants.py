"""Answers about a program in which given values of parameters are constants.

Maps state only those masks that have a formula.  In a loop, all iterations between a read and a
result decide whether the result needs it, which no runtime variable states.  If the parameter on
which masks depend is a constant, the maps are those with the values of the masks.  The elements
that an update replaces are left out of the maps if its window is constant, also where its
complement has many pieces.  A loop whose number of iterations is no formula has one if its bound
and start are constants.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from hlo.formats.builder import literal_text
from hlo.formats.parser import parse
from hlo.memo import Memo
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.recursion import bottom_up
from hlo.shapes.shape import Shape
from indexing.dataflow.answering import to_operands, to_parameters
from indexing.dataflow.constants import is_integral
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.masks import can_be_decided
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.refinement import has_exact_pieces, reads_by_values
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap, has_device
from indexing.maps.reasons import Reason
from indexing.ops.control import Conditional, While
from indexing.ops.scatter import Scatter
from simplifier.unknown import Unknown

Values: TypeAlias = Mapping[str, "np.ndarray[Any, Any]"]
"""Values of integer parameters of a computation, by name."""
MAX_INSTRUCTIONS: Final = 10_000
"""Limit on a program that is read again with constants; beyond it, the answer stays."""
MAX_COPIES: Final = 8
"""Limit on the modules with constants that a computation keeps, for the last values."""


def with_constants(answer: Answer, values: Values) -> Answer:
    """Return the answer for given values of parameters that decide masks, loops or updates.

    The answer for the program with constants replaces one that depends on a mask, a loop, a
    conditional, a `dynamic-update-slice` or a scatter.  Other answers, and those about several
    devices, are returned as they are.  The maps to the given parameters stay.

    >>> import hlo, indexing
    >>> root = hlo.parse('''
    ... body {
    ...   s = (s32[], f32[4], f32[], pred[4]) parameter(0)
    ...   k = s32[] get-tuple-element(s), index=0  x = f32[4] get-tuple-element(s), index=1
    ...   t = f32[] get-tuple-element(s), index=2  p = pred[4] get-tuple-element(s), index=3
    ...   c = pred[1] dynamic-slice(p, k), dynamic_slice_sizes={1}  q = pred[] reshape(c)
    ...   d = f32[1] dynamic-slice(x, k), dynamic_slice_sizes={1}  y = f32[] reshape(d)
    ...   z = f32[] select(q, y, t)  one = s32[] constant(1)  n = s32[] add(k, one)
    ...   ROOT r = (s32[], f32[4], f32[], pred[4]) tuple(n, x, z, p)
    ... }
    ... more {
    ...   s = (s32[], f32[4], f32[], pred[4]) parameter(0)
    ...   k = s32[] get-tuple-element(s), index=0  n = s32[] constant(4)
    ...   ROOT r = pred[] compare(k, n), direction=LT
    ... }
    ... ENTRY e {
    ...   z = s32[] constant(0)  t = f32[] constant(0)
    ...   x = f32[4] parameter(0)  p = pred[4] parameter(1)
    ...   s = (s32[], f32[4], f32[], pred[4]) tuple(z, x, t, p)
    ...   w = (s32[], f32[4], f32[], pred[4]) while(s), condition=more, body=body
    ...   ROOT r = f32[] get-tuple-element(w), index=2
    ... }''').entry.root
    >>> region, _ = indexing.to_parameters(root).at(p=[True, False, True, False])
    >>> print(region)
    [2]
    """
    if not (values and _is_on_one_device(answer) and _may_be_decided(answer)):
        return answer
    copy = _kept_copy(answer.instruction.computation, values)
    if copy is None:
        return answer
    key = with_constants, answer.instruction, answer.operands, answer.domain_id, answer.options
    known = copy.memoised(key, lambda: _known_columns(answer, copy))
    return _join_answers(answer, known, values)


def _known_columns(answer: Answer, copy: Module) -> list[_Column]:
    """Return the parts of the answer in another module, for each operand of the answer."""
    instruction, walk = answer.instruction, Walk(LocalEdges(answer.options))
    inside = copy.computations[instruction.computation.name][instruction.name]
    if _is_to_operands(answer):
        return _columns(to_operands(walk, inside, answer.domain_id, fold=True))
    known = to_parameters(walk, inside, answer.domain_id)
    of = dict(zip([p.name for p in known.operands], _columns(known), strict=True))
    return [of.get(p.name, _NOTHING) for p in answer.operands]


def _is_on_one_device(answer: Answer) -> bool:
    """Return True for maps on one device, to operands or to parameters."""
    first = next(chain(*answer.maps), None)  # all maps have devices, or none
    if answer.direction != "output-to-input" or first is None or has_device(first):
        return False
    return _is_to_operands(answer) or all(e.opcode == "parameter" for e in answer.operands)


def _is_to_operands(answer: Answer) -> bool:
    return answer.operands == answer.instruction.operands


def _may_be_decided(answer: Answer) -> bool:
    """Return True if values may decide masks, branches, loops, or which elements are replaced."""
    instructions = [answer.instruction]
    needed = instructions if _is_to_operands(answer) else dependencies_of(instructions)
    return any(map(_may_decide, needed))


def _may_decide(instruction: Instruction) -> bool:
    """Return True if values may decide which elements an instruction, or one that it calls, needs.

    Not every mask has a formula that maps state.  The choice of one integer does not count: it is
    that of an index, such as one from the end of an array.
    """
    if isinstance(instruction.op, Conditional | While | Scatter):
        return True
    if has_exact_pieces(instruction) or reads_by_values(instruction):
        return True
    is_mask = can_be_decided(instruction) and not _is_one_integer(instruction)
    return is_mask or any(map(_calls_decision, instruction.called_computations))


def _calls_decision(computation: Computation) -> bool:
    return bottom_up(
        computation, _calls_decision, lambda c: any(map(_may_decide, dependencies_of([c.root])))
    )


def _is_one_integer(instruction: Instruction) -> bool:
    shape = instruction.shape
    return isinstance(shape, Shape) and shape.size == 1 and is_integral(ArrayRef(instruction))


def _kept_copy(computation: Computation, values: Values) -> Module | None:
    """Return the module of `_copy`, which the computation keeps."""
    key = tuple([(name, value.tobytes()) for name, value in sorted(values.items())])
    copies: Memo[Hashable, Module | None]
    copies = computation.memoised((with_constants,), lambda: Memo(MAX_COPIES))
    return copies[key] if key in copies else copies.keep(key, _copy(computation, values))


def _copy(computation: Computation, values: Values) -> Module | None:
    """Return a module with constants instead of parameters; None if it is too large.

    The parameters have other names there, so that their numbers stay.
    """
    module = computation.module
    if sum(len(c.instructions) for c in module.computations.values()) > MAX_INSTRUCTIONS:
        return None
    own = str(computation)
    lines = own.splitlines()
    for k, line in enumerate(lines):
        name = line.strip().removeprefix("ROOT ").removeprefix("%").partition(" = ")[0]
        if name in values:
            shape = computation[name].shape
            constant = (
                line.partition(" = ")[0] + f" = {shape} constant({literal_text(values[name])})"
            )
            lines[k] = f"  %{name}.given = {line.partition(' = ')[2]}\n{constant}"
    return parse(str(module).replace(own, "\n".join(lines)), module.filename)


def _join_answers(answer: Answer, known: Sequence[_Column], values: Values) -> Answer:
    """Return an answer with maps of another module, but for those to given parameters."""
    back = _Original(answer.instruction.computation.module)
    columns = [
        own if operand.name in values else back.column(other)
        for operand, own, other in zip(answer.operands, _columns(answer), known, strict=True)
    ]
    return replace(
        answer,
        maps=tuple([c.maps for c in columns]),
        paths=tuple([c.paths for c in columns]),
        unknown=tuple([c.unknown for c in columns]),
        reasons=tuple([c.reasons for c in columns]),
        control=tuple([c.control for c in columns]),
    )


class _Column(NamedTuple):
    """The part of an answer about one parameter."""

    maps: tuple[IndexingMap, ...] = ()
    paths: tuple[Path, ...] = ()
    unknown: Unknown | None = None
    reasons: tuple[tuple[Reason, ...], ...] = ()
    control: tuple[bool, ...] = ()


_NOTHING: Final = _Column()


def _columns(a: Answer) -> list[_Column]:
    rows = zip(a.maps, a.paths, a.unknown, a.reasons, a.control, strict=True)
    return [_Column(*row) for row in rows]


class _Original:
    """The instructions of a module that has the names of another."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def column(self, other: _Column) -> _Column:
        """Return what the answer about another module says of a parameter."""
        return other._replace(
            maps=tuple(map(self._map, other.maps)),
            unknown=self._unknown(other.unknown),
            reasons=tuple([tuple(map(self._reason, each)) for each in other.reasons]),
        )

    def _instruction(self, other: Instruction) -> Instruction:
        """Return the instruction with the names of another one and its computation."""
        return self._module.computations[other.computation.name][other.name]

    def _map(self, m: IndexingMap) -> IndexingMap:
        """Return a map whose runtime values are those of this module."""
        runtime = [
            replace(rt, array=self._array(rt.array)) if isinstance(rt.array, ArrayRef) else rt
            for rt in m.runtime
        ]
        return replace(m, runtime=tuple(runtime)) if runtime else m

    def _array(self, array: ArrayRef) -> ArrayRef:
        calls = tuple(map(self._instruction, array.calls))
        return ArrayRef(self._instruction(array.instruction), array.path, calls)

    def _reason(self, reason: Reason) -> Reason:
        """Return a reason that names an instruction of this module."""
        if reason.instruction is None:
            return reason
        return replace(reason, instruction=self._instruction(reason.instruction))

    def _unknown(self, unknown: Unknown | None) -> Unknown | None:
        """Return a reason that names an instruction of this module."""
        if unknown is None or not isinstance(unknown.instruction, Instruction):
            return unknown
        return replace(unknown, instruction=self._instruction(unknown.instruction))
