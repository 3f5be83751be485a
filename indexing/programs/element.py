"""The reader of element rules: the value of an element of an array, in an algebra of values.

Indices and guards come from the op's maps, the scalar part from its rule (`indexing.ops.element`).
An algebra makes the values: nodes of loop nests, or formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from hlo.modules.module import Instruction
from hlo.shapes.literal import read_literal
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.dataflow.queries import element_reads
from indexing.maps.answers import Answer, Unknown
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.element import (
    ConstantRule,
    CopyRule,
    ElementRule,
    ElementwiseRule,
    IotaRule,
    OpaqueRule,
    ReductionRule,
)
from indexing.programs.partition import partition_fault
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval, contains
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import first_unknown

Index: TypeAlias = tuple[Expr, ...]
Guards: TypeAlias = tuple[Constraint, ...]
ValueT = TypeVar("ValueT")
FoldT = TypeVar("FoldT", covariant=True)


class ComputedArray(Protocol):
    """An array that an instruction computes: leaf number `leaf` of its result."""

    @property
    def instruction(self) -> Instruction:
        """The instruction."""

    @property
    def leaf(self) -> int:
        """The number of the leaf."""

    @property
    def shape(self) -> Shape:
        """The shape of the array."""


class ElementAlgebra(Protocol[ValueT, FoldT]):
    """How values of elements of one array are made; an `Unknown` is a value that is not known."""

    @property
    def keeps_unit_ranges(self) -> bool:
        """True if range variables with one value stay variables."""

    def constant(self) -> ValueT | Unknown:
        """Return the element of a constant."""

    def iota(self, value: Expr) -> ValueT | Unknown:
        """Return the value of an index."""

    def zero(self) -> ValueT:
        """Return 0, of the type of the array."""

    def padding(self, operand: int) -> ValueT | Unknown:
        """Return the value of padding, which is read as an element of an operand."""

    def read(self, operand: int, index: Index) -> ValueT:
        """Return an element of an operand."""

    def runtime(self, operand: int, index: Index, clamp: Interval) -> Expr:
        """Return an integer element of an operand as an index, clamped."""

    def apply(self, rule: ElementwiseRule, arguments: Sequence[ValueT]) -> ValueT | Unknown:
        """Return the function of an elementwise op, or its computation, of these arguments."""

    def choose(
        self, rule: CopyRule, cases: Sequence[tuple[Guards, ValueT]], otherwise: ValueT,
        rest: Guards,
    ) -> ValueT | Unknown:  # fmt: skip
        """Return the value of the first case whose guards hold, or `otherwise`, under `rest`."""

    def join(self, rule: CopyRule, parts: Sequence[ValueT]) -> ValueT | Unknown:
        """Return the value that has the bits of all parts."""

    def reduce(
        self, rule: ReductionRule, inits: tuple[ValueT, ...], values: tuple[ValueT, ...],
        ranges: tuple[Variable, ...], guards: Guards,
    ) -> FoldT | Unknown:  # fmt: skip
        """Return the reduction of values over range variables; there may be no values."""


def element(
    array: ComputedArray, rule: ElementRule, index: Index, algebra: ElementAlgebra[ValueT, FoldT]
) -> ValueT | FoldT | Unknown:
    """Return the element of an array at an index.

    Args:
        rule: the element rule of the array.
    """
    match rule:
        case OpaqueRule(reason):
            return Unknown(reason, array.instruction)
        case ConstantRule():
            return algebra.constant()
        case IotaRule(dimension):
            return algebra.iota(index[dimension])
        case ElementwiseRule(reads_nothing=True):
            return algebra.zero()
    is_reduction = isinstance(rule, ReductionRule)
    # Unsimplified: range variables are matched by name.
    answer = element_reads(array.instruction, array.leaf, exact=is_reduction)
    unknown = first_unknown(*answer.unknown)
    if unknown is not None:
        return unknown
    reader = _RuleReader(array, index, algebra, answer)
    match rule:
        case ElementwiseRule():
            return reader.computed_element(rule)
        case CopyRule():
            return reader.copied_element(rule)
    return reader.reduced_element(rule)


def access(
    instruction: Instruction, indexing_map: IndexingMap, index: Index, sizes: tuple[int, ...],
    algebra: ElementAlgebra[ValueT, FoldT],
) -> tuple[Index, Guards]:  # fmt: skip
    """Return the index to which a map leads, and the guards under which the map applies.

    Args:
        instruction: the instruction whose operands give the runtime variables of the map.
        index: an index of an array of these sizes.
    """
    bounds = [(0, size - 1) for size in sizes]
    if indexing_map.is_identity and [v.bounds for v in indexing_map.dims] == bounds:
        return index, ()
    values = dict(zip(indexing_map.dims, index, strict=True))
    if not algebra.keeps_unit_ranges:
        values |= {v: as_expr(v.lower) for v in indexing_map.ranges if v.lower == v.upper}
    conditions = _bind_runtime(instruction, indexing_map, values, algebra)
    swap = Substitution(values)
    for v, at, full in zip(indexing_map.dims, index, bounds, strict=True):
        if v.bounds != full:
            conditions.append(Constraint(at, *v.bounds))
    conditions += [c.with_expr(swap(c.expr)) for c in indexing_map.constraints if not c.is_true]
    guards = tuple([c for c in conditions if not c.is_true])
    return tuple(map(swap, indexing_map.results)), guards


def _bind_runtime(
    instruction: Instruction, indexing_map: IndexingMap, values: dict[Variable, Expr],
    algebra: ElementAlgebra[ValueT, FoldT],
) -> list[Constraint]:  # fmt: skip
    """Add the runtime variables of a map to `values`; return constraints on their bounds."""
    conditions: list[Constraint] = []
    for rt in indexing_map.runtime:
        if rt.is_fixed:
            continue
        assert rt.clamp is not None
        assert isinstance(rt.source, Instruction)
        number = instruction.operands.index(rt.source)
        value = algebra.runtime(number, tuple(map(Substitution(values), rt.index)), rt.clamp)
        values[rt.variable] = value
        if not contains(rt.variable.bounds, value.bounds):
            conditions.append(Constraint(value, *rt.variable.bounds))
    return conditions


def literal_of(instruction: Instruction, path: Path) -> np.ndarray[Any, np.dtype[Any]] | Unknown:
    """Return an array of the value of a constant; unknown if it is elided (``{...}``)."""
    assert instruction.literal is not None
    try:
        value: Any = read_literal(instruction.literal.span, instruction.shape)
    except HloError as error:
        if error.code != "elided":
            raise
        return Unknown(f"the values of constant `{instruction.name}` are elided", instruction)
    for step in path:
        value = value[step]
    return np.asarray(value)


class _RuleReader(Generic[ValueT, FoldT]):
    """The element of an array at an index, by the maps of its instruction."""

    def __init__(
        self,
        array: ComputedArray,
        index: Index,
        algebra: ElementAlgebra[ValueT, FoldT],
        answer: Answer,
    ) -> None:
        self.array, self.index, self.algebra, self.answer = array, index, algebra, answer

    def computed_element(self, rule: ElementwiseRule) -> ValueT | Unknown:
        arguments = []
        for number in range(len(self.answer.maps)):
            maps = self.answer.maps[number]
            if len(maps) != 1 or maps[0].ranges:
                return self._unknown("reads several elements of an operand")
            arguments.append(self._single(number))
        return self.algebra.apply(rule, arguments)

    def _unknown(self, reason: str) -> Unknown:
        instruction = self.array.instruction
        return Unknown(f"an element of `{instruction.name}` {reason}", instruction)

    def _access(self, indexing_map: IndexingMap) -> tuple[Index, Guards]:
        array = self.array
        return access(array.instruction, indexing_map, self.index, array.shape.dims, self.algebra)

    def _single(self, number: int) -> ValueT:
        """Return the only element of an operand that the element reads."""
        at, _ = self._access(self.answer.maps[number][0])
        return self.algebra.read(number, at)

    def copied_element(self, rule: CopyRule) -> ValueT | Unknown:
        maps = [(number, m) for number in rule.operands for m in self.answer.maps[number]]
        if rule.joins_parts:
            return self._joined_element(rule, *maps[0])
        if any(indexing_map.ranges for _, indexing_map in maps):
            return self._unknown("copies several elements")
        cases, otherwise = self._cases(maps)
        rest: Guards = ()
        if otherwise is None and rule.has_padding:
            padding = self.algebra.padding(rule.operands[0])
            if isinstance(padding, Unknown):
                return padding
            otherwise = padding
        elif otherwise is None:
            array = self.array
            fault = partition_fault(array.instruction, array.shape.size, [m for _, m in maps])
            if fault is not None:
                return fault
            rest, otherwise = cases.pop()
        return self.algebra.choose(rule, cases, otherwise, rest)

    def _cases(
        self, maps: Sequence[tuple[int, IndexingMap]]
    ) -> tuple[list[tuple[Guards, ValueT]], ValueT | None]:
        """Return the element for each map with its guards, and the element if none applies."""
        cases: list[tuple[Guards, ValueT]] = []
        otherwise: ValueT | None = None
        for number, indexing_map in maps:
            at, guards = self._access(indexing_map)
            if any(guard.is_false for guard in guards):
                continue
            value = self.algebra.read(number, at)
            if indexing_map.grade == "may":
                otherwise = value
            else:
                cases.append((guards, value))
        certain = next((k for k, (guards, _) in enumerate(cases) if not guards), None)
        return (cases, otherwise) if certain is None else (cases[:certain], cases[certain][1])

    def _joined_element(
        self, rule: CopyRule, number: int, indexing_map: IndexingMap
    ) -> ValueT | Unknown:
        """Return an element that joins the bits of all elements along the range variable."""
        (s,) = indexing_map.ranges
        at, guards = self._access(indexing_map)
        assert not guards
        swaps = [Substitution({s: as_expr(k)}) for k in range(s.upper + 1)]
        parts = [self.algebra.read(number, tuple(map(swap, at))) for swap in swaps]
        return self.algebra.join(rule, parts)

    def reduced_element(self, rule: ReductionRule) -> FoldT | Unknown:
        inits = tuple([self._single(number) for number in rule.inits])
        values: list[ValueT] = []
        ranges: tuple[Variable, ...] = ()
        guards: dict[Constraint, None] = {}
        for number in rule.values:
            maps = self.answer.maps[number]
            if not maps:  # no element is reduced
                return self.algebra.reduce(rule, inits, (), (), ())
            if len(maps) > 1 or (ranges and ranges != maps[0].ranges) or maps[0].grade == "may":
                return self._unknown("reduces elements that no single map gives")
            ranges = maps[0].ranges
            at, conditions = self._access(maps[0])
            values.append(self.algebra.read(number, at))
            guards.update(dict.fromkeys(conditions))
        return self.algebra.reduce(rule, inits, tuple(values), ranges, tuple(guards))
