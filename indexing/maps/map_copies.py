"""Copies of maps with fresh variables, for queries about several points at once.

A query about two points of a map takes two copies.  Runtime variables of both that read one element
of a source have one value: `consistent_values`.

>>> half = IndexingMap.over((4,), lambda d: [d[0] // 2])
>>> a, b = MapCopy.of(half, "a."), MapCopy.of(half, "b.")
>>> [v.name for v in (*a.variables, *b.variables)]
['a.d0', 'b.d0']
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable, source_text
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.unions import Clause
from simplifier.interval import Interval
from simplifier.linear import Affine, Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class SourceRead:
    """A runtime variable at one point: the index of its source element, and its value."""

    of: RuntimeVariable
    index: tuple[Expr, ...]
    variable: Variable

    @property
    def value(self) -> Expr:
        """The value of the runtime variable."""
        return self.variable.as_expr()

    @property
    def array(self) -> object:
        """The source array, or the name of a runtime variable without a source."""
        if self.of.array is None:
            return self.of.name, len(self.index)
        return self.of.array, len(self.index)


def consistent_values(reads: Sequence[SourceRead]) -> Iterator[Clause]:
    """Clauses: reads of the same element with the same clamp have the same value."""
    for a, b in combinations(reads, 2):
        if a.array == b.array and a.of.clamp == b.of.clamp:
            same = [Constraint(a.value - b.value, 0, 0)]
            yield [same, *unequal(a.index, b.index)]


def unequal(a: Sequence[Expr], b: Sequence[Expr]) -> Clause:
    """The condition that two tuples differ."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
    return [way for x, y in pairs for way in (less_than(x, y), less_than(y, x))]


def less_than(a: Affine, b: Affine) -> list[Constraint]:
    """The constraint ``a < b``."""
    gap = as_expr(b) - as_expr(a)
    return [Constraint(gap, 1, max(1, gap.bounds[1]))]


def read_values(
    reads: Sequence[SourceRead], at: dict[Variable, int]
) -> tuple[tuple[str, int], ...] | Unknown:
    """The values at a point, by element.

    Unknown if two variables read one element with different clamps, and no value of the element
    clamps to both of theirs.
    """
    unclamped: dict[tuple[object, tuple[int, ...]], tuple[float, float]] = {}
    named: dict[str, int] = {}
    for read in reads:
        index = tuple([i.value(at) for i in read.index])
        value = read.value.value(at)
        low, high = _unclamped_bounds(value, read.of.clamp)
        before = unclamped.get((read.array, index), (-inf, inf))
        unclamped[read.array, index] = low, high = max(low, before[0]), min(high, before[1])
        if low > high:
            return Unknown(
                f"element {list(index)} of `{read.of.source_name}` is clamped to different bounds"
            )
        named[source_text(read.of, index)] = value
    return tuple(named.items())


def _unclamped_bounds(value: int, clamp: Interval | None) -> tuple[float, float]:
    """Bounds of the values that clamp to `value`."""
    if clamp is None:
        return value, value
    return (-inf if value == clamp[0] else value), (inf if value == clamp[1] else value)


@dataclass(frozen=True, slots=True)
class MapCopy:
    """A copy of a map with fresh variables and one runtime variable for each source element."""

    variables: tuple[Variable, ...]
    dims: tuple[Variable, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Constraint, ...]
    reads: tuple[SourceRead, ...]

    @classmethod
    def of(cls, m: IndexingMap, prefix: str, shared: Collection[Variable] = ()) -> MapCopy:
        """Return a copy whose names start with `prefix`; `shared` variables keep theirs."""
        new = {v: v if v in shared else v.renamed(prefix + v.name) for v in m.variables}
        constraints = list(m.constraints)
        reads: list[SourceRead] = []
        for rt in m.runtime:
            read = SourceRead(rt, rt.index, rt.variable)
            twin = next((other for other in reads if same_element(read, other)), None)
            if twin is None:
                reads.append(read)
            else:
                new[rt.variable] = new[twin.variable]
                constraints.append(Constraint(twin.value, *rt.variable.bounds))
        swap = Substitution({v: n.as_expr() for v, n in new.items()})
        return cls(
            tuple(dict.fromkeys(new.values())),
            tuple([new[v] for v in m.dims]),
            tuple(map(swap, m.results)),
            tuple([c.with_expr(swap(c.expr)) for c in constraints]),
            tuple([SourceRead(r.of, tuple(map(swap, r.index)), new[r.variable]) for r in reads]),
        )


def same_element(a: SourceRead, b: SourceRead) -> bool:
    """True if both always read the same element; across copies only constant indices are equal."""
    return (a.array, a.index, a.of.clamp) == (b.array, b.index, b.of.clamp)
