"""Closures of loop-carried arrays that depend on each other: which earlier values a value needs.

A step is a set of maps ``(d, t) -> (e, t - 1)`` from each element of a carried array at time t to
the elements at the time before.  Its closure is the union of its powers.  In this order:

* the step is the same in all iterations: finitely many powers (`indexing.dataflow.loops.powers`);
* a rotation ``(d + c) mod n``: ``(d + c · (t - k)) mod n``;
* isl: elements that stay until they are overwritten in closed form, the rest by isl's transitive
  closure, under a budget;
* otherwise, dimensions that every path keeps stay, all others may have any index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from indexing.dataflow.loops.powers import Pair, Product, powers
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import Grade, IndexingMap
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.exact.closures import Slots, closures_back_in_time
from simplifier.exact.encode import Relation
from simplifier.linear import Expr, constant
from simplifier.unknown import Unknown

StepMaps: TypeAlias = Mapping[Pair, Sequence[IndexingMap]]
"""The maps ``(d, t) -> (e, t - 1)`` from each leaf to each leaf of a step."""
Kept: TypeAlias = tuple[int | None, ...]
"""For each result, the number of the dimension that it is equal to, or None."""


@dataclass(frozen=True, slots=True)
class Closure:
    """The maps ``(d, t) -> (e, k)`` with ``k <= t`` from one leaf to each leaf.

    Attributes:
        is_closed: False if the maps are a superset.
    """

    maps: Mapping[Path, Sequence[IndexingMap]]
    is_closed: bool = True


@dataclass(frozen=True, slots=True)
class Component:
    """Leaves that depend on each other from one iteration to the next.

    Attributes:
        sizes: the sizes of each leaf.
        steps: the maps among them.
        last: the largest time, the maximum number of iterations.
    """

    sizes: Mapping[Path, tuple[int, ...]]
    steps: StepMaps
    last: int

    def closure_from(self, leaf: Path) -> Closure:
        """Return the maps ``(d, t) -> (e, k)`` with ``k <= t`` from a leaf to each leaf."""
        for attempt in (self._powers, self._rotations):
            maps = attempt(leaf)
            if maps is not None:
                return Closure(maps)
        return self._isl(leaf) or Closure(self._kept_dimensions(leaf), is_closed=False)

    # ------------------------------------------------------------ closed forms

    def _powers(self, leaf: Path) -> dict[Path, list[IndexingMap]] | None:
        products: dict[Pair, list[Product]] = {}
        for pair, maps in self.steps.items():
            for m in maps:
                each = Product.of_step(m)
                if each is None or m.dims[-1].bounds != (1, self.last):
                    return None
                products.setdefault(pair, []).append(each)
        return powers(leaf, self.sizes[leaf], products, self.last)

    def _rotations(self, leaf: Path) -> dict[Path, list[IndexingMap]] | None:
        if len(self.sizes) != 1:
            return None
        sizes, maps = self.sizes[leaf], self.steps[leaf, leaf]
        shifts = _rotation(maps, sizes)
        if shifts is None:
            return None
        dims = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(sizes)]
        time = Variable(f"d{len(sizes)}", 0, self.last)
        earlier = Variable("s0", 0, self.last)
        step_time = Variable(time.name, 1, self.last)
        results = [
            d.as_expr() if not shift else (d + shift) % size
            for d, shift, size in zip(dims, shifts, sizes, strict=True)
        ]
        whole = IndexingMap.of([*dims, step_time], [*results, step_time - 1])
        if not _is_union(maps, whole):
            return None
        powers = [
            d.as_expr() if not shift else (d + (time - earlier) * shift) % size
            for d, shift, size in zip(dims, shifts, sizes, strict=True)
        ]
        steps = Constraint(time - earlier, 0, self.last)
        return {
            leaf: [
                IndexingMap.of(
                    [*dims, time],
                    [*powers, earlier],
                    ranges=[earlier],
                    constraints=[steps],
                    grade=_grade(maps),
                )
            ]
        }

    # ------------------------------------------------------------ isl

    def _isl(self, leaf: Path) -> Closure | None:
        if any(m.runtime for maps in self.steps.values() for m in maps):
            return None
        leaves = list(self.sizes)
        rank = max(map(len, self.sizes.values()))
        stays, moves = self._relations(leaves, rank)
        slots = [
            Slots(leaves.index(leaf), number, len(self.sizes[leaf]), len(self.sizes[y]))
            for number, y in enumerate(leaves)
        ]
        box = [self._box(leaf, leaves.index(leaf), rank) for leaf in leaves]
        closures = closures_back_in_time(box, stays, moves, slots)
        if isinstance(closures, Unknown):
            return None
        grade = _grade([m for maps in self.steps.values() for m in maps])
        pieces = {
            y: [_from_piece(piece, grade if each.is_exact else "may") for piece in each.pieces]
            for y, each in zip(leaves, closures, strict=True)
        }
        return Closure(pieces, all(each.is_exact for each in closures))

    def _relations(
        self, leaves: Sequence[Path], rank: int
    ) -> tuple[list[Relation], list[Relation]]:
        """Return the maps that change only the time, and the others, as relations."""
        stays: list[Relation] = []
        moves: list[Relation] = []
        for (x, y), maps in self.steps.items():
            for m in maps:
                relation = self._embedded(m, leaves.index(x), leaves.index(y), rank)
                (stays if x == y and _is_stay(m) else moves).append(relation)
        return stays, moves

    def _box(self, leaf: Path, number: int, rank: int) -> Relation:
        sizes = self.sizes[leaf]
        index = [Variable(f"e{k}", 0, size - 1) for k, size in enumerate(sizes)]
        time = Variable("t", 0, self.last)
        zeros = [constant(0)] * (rank - len(sizes))
        results = [constant(number), *[v.as_expr() for v in index], *zeros, time.as_expr()]
        return Relation((), (*index, time), tuple(results), ())

    def _embedded(self, m: IndexingMap, source: int, target: int, rank: int) -> Relation:
        """Return a map as a relation in a space for all leaves: number, index, zeros, time."""
        zeros = [Variable(f"z{k}", 0, 0) for k in range(rank - len(m.dims) + 1)]
        inputs = (Variable("leaf", source, source), *m.dims[:-1], *zeros, m.dims[-1])
        padding = [constant(0)] * (rank - len(m.results) + 1)
        results = (constant(target), *m.results[:-1], *padding, m.results[-1])
        return Relation(inputs, m.ranges, results, m.constraints)

    # ------------------------------------------------------------ over-approximation

    def _kept_dimensions(self, leaf: Path) -> dict[Path, list[IndexingMap]]:
        """Return `may` maps that keep the dimensions that every path keeps."""
        step = {pair: _kept(maps) for pair, maps in self.steps.items()}
        identity: Kept = tuple(range(len(self.sizes[leaf])))
        kept: dict[Path, Kept] = {}
        pending = [(leaf, identity)]
        while pending:
            x, first = pending.pop()
            for (before, y), second in step.items():
                if before == x:
                    new = tuple([None if k is None else first[k] for k in second])
                    joined = _joined(kept[y], new) if y in kept else new
                    if joined != kept.get(y):
                        kept[y] = joined
                        pending.append((y, joined))
        maps = {leaf: [self._unchanged(leaf)]}
        for y, values in kept.items():
            maps.setdefault(y, []).append(self._free(leaf, y, values))
        return maps

    def _unchanged(self, leaf: Path) -> IndexingMap:
        sizes = (*self.sizes[leaf], self.last + 1)
        return IndexingMap.over(sizes, lambda d: d)

    def _free(self, leaf: Path, other: Path, values: Kept) -> IndexingMap:
        source, target = self.sizes[leaf], self.sizes[other]
        dims = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(source)]
        time, earlier = Variable(f"d{len(source)}", 1, self.last), Variable("s0", 0, self.last - 1)
        ranges, results = [earlier], list[Expr]()
        for value, size in zip(values, target, strict=True):
            if value is None:
                ranges.append(Variable(f"s{len(ranges)}", 0, size - 1))
                results.append(ranges[-1].as_expr())
            else:
                results.append(dims[value].as_expr())
        steps = Constraint(time - earlier, 1, self.last)
        results.append(earlier.as_expr())
        return IndexingMap.of(
            [*dims, time], results, ranges=ranges, constraints=[steps], grade="may"
        ).simplify()


def _is_stay(m: IndexingMap) -> bool:
    """Return True if the map of a step changes only the time."""
    return list(m.results[:-1]) == [d.as_expr() for d in m.dims[:-1]] and not m.ranges


def _rotation(maps: Iterable[IndexingMap], sizes: Sequence[int]) -> list[int] | None:
    """Return the shift of each dimension if all maps shift by it modulo the sizes, else None."""
    shifts: list[int] | None = None
    for m in maps:
        offsets = [r - d for r, d in zip(m.results[:-1], m.dims[:-1], strict=True)]
        if m.ranges or m.runtime or not all(offset.is_constant for offset in offsets):
            return None
        own = [offset.constant % size for offset, size in zip(offsets, sizes, strict=True)]
        if shifts is not None and own != shifts:
            return None
        shifts = own
    if shifts is None:
        return None
    return [c - n if 2 * c > n else c for c, n in zip(shifts, sizes, strict=True)]


def _is_union(maps: Sequence[IndexingMap], whole: IndexingMap) -> bool:
    """Return True if the union of maps is proved to contain a function; they are parts of it."""
    relations = [Relation(m.dims, m.ranges, m.results, m.constraints) for m in maps]
    one = Relation(whole.dims, (), whole.results, ())
    return unions.only_first([one], relations) is None


def _grade(maps: Iterable[IndexingMap]) -> Grade:
    return "may" if any(m.grade == "may" for m in maps) else "exact"


def _from_piece(piece: Relation, grade: Grade) -> IndexingMap:
    return IndexingMap.of(
        piece.inputs,
        piece.results,
        ranges=piece.hidden,
        constraints=piece.constraints,
        grade=grade,
    ).simplify()


def _kept(maps: Iterable[IndexingMap]) -> Kept:
    """Return, for each result, the dimension that every map forwards to it, or None."""
    values: Kept | None = None
    for m in maps:
        dims = list(m.dims[:-1])
        own = tuple(
            [dims.index(r.as_variable) if r.as_variable in dims else None for r in m.results[:-1]]
        )
        values = own if values is None else _joined(values, own)
    assert values is not None
    return values


def _joined(a: Kept, b: Kept) -> Kept:
    return tuple([x if x == y else None for x, y in zip(a, b, strict=True)])
