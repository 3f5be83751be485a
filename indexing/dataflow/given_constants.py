"""Answers about a program in which given values of parameters are constants.

In a loop whose masks depend on a parameter, all iterations between a read and a result decide
whether the result needs it, which no runtime variable states.  If the parameter is a constant, the
maps are those of the loop with the masks of each iteration.  The elements that an update replaces
are left out of the maps if its window is constant, also where its complement has many pieces.  A
loop whose number of iterations is no formula has one if its bound and start are constants.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from hlo.formats.builder import literal_text
from hlo.formats.parser import parse
from hlo.memo import Memo
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.recursion import bottom_up
from indexing.dataflow.answering import to_parameters
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.masks import decides_reads
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.refinement import has_exact_pieces
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.maps.reasons import Reason
from indexing.ops.control import While
from simplifier.unknown import Unknown

Values: TypeAlias = Mapping[str, "np.ndarray[Any, Any]"]
"""Values of integer parameters of a computation, by name."""
MAX_INSTRUCTIONS: Final = 10_000
"""Limit on a program that is read again with constants; beyond it, the answer stays."""
MAX_COPIES: Final = 8
"""Limit on the modules with constants that a computation keeps, for the last values."""


def with_constants(answer: Answer, values: Values, options: Options) -> Answer:
    """Return the answer for given values of parameters that decide loops or updates.

    A loop is decided if its masks or its number of iterations are, and an update if the maps
    include elements that a `dynamic-update-slice` replaces.  Other answers, and those to operands,
    are returned as they are.  The maps to the given parameters stay.

    Args:
        options: the options of the answer.

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
    instruction = answer.instruction
    if not values or not _is_to_parameters(answer):
        return answer
    if not (_may_be_decided(answer) or _has_masked_loop(instruction)):
        return answer
    computation = instruction.computation
    key = tuple([(name, value.tobytes()) for name, value in sorted(values.items())])
    copies: Memo[Hashable, Module | None]
    copies = computation.memoised((with_constants,), lambda: Memo(MAX_COPIES))
    copy = copies[key] if key in copies else copies.keep(key, _copy(computation, values))
    if copy is None:
        return answer
    inside = copy.computations[computation.name][instruction.name]
    known = to_parameters(Walk(LocalEdges(options)), inside, answer.domain_id)
    return _join_answers(answer, known, values)


def _is_to_parameters(answer: Answer) -> bool:
    """Return True for maps to different parameters; an operand that occurs twice has two parts."""
    operands = answer.operands
    is_backward = answer.direction == "output-to-input"
    is_to_each_once = len(set(operands)) == len(operands)
    return is_backward and is_to_each_once and all(e.opcode == "parameter" for e in operands)


def _may_be_decided(answer: Answer) -> bool:
    """Return True if a map is `may` because of an update or a loop that runtime values decide."""
    reasons = [reason for column in answer.reasons for each in column for reason in each]
    sources = {reason.instruction for reason in reasons if reason.instruction is not None}
    return any(isinstance(each.op, While) or has_exact_pieces(each) for each in sources)


def _has_masked_loop(instruction: Instruction) -> bool:
    """Return True if masks may decide what an iteration of a loop reads."""
    return any(map(_is_or_calls_masked_loop, dependencies_of([instruction])))


def _is_or_calls_masked_loop(instruction: Instruction) -> bool:
    called = instruction.called_computations
    own = decides_reads if isinstance(instruction.op, While) else _calls_masked_loop
    return any(map(own, called))


def _calls_masked_loop(computation: Computation) -> bool:
    return bottom_up(
        computation,
        _calls_masked_loop,
        lambda c: any(map(_is_or_calls_masked_loop, dependencies_of([c.root]))),
    )


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


def _join_answers(answer: Answer, known: Answer, values: Values) -> Answer:
    """Return an answer with the maps of another module, but for those of given parameters."""
    back = _Original(answer.instruction.computation.module)
    places = {parameter.name: k for k, parameter in enumerate(known.operands)}
    columns: list[_Column] = []
    for parameter, own in zip(answer.operands, _columns(answer), strict=True):
        if parameter.name not in values:
            at = places.get(parameter.name)
            own = _NOTHING if at is None else back.column(_columns(known)[at])
        columns.append(own)
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
