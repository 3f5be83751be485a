"""Closures of loop-carried arrays that depend on each other: which earlier values a value needs.

A step is a set of maps ``(d, t) -> (e, t - 1)`` from each element of a carried array at time t to
the elements at the time before.  Its closure is the union of its powers.  In this order:

* the step is the same in all iterations: finitely many powers (`indexing.dataflow.loops.powers`);
* a rotation ``(d + c) mod n``: ``(d + c · (t - k)) mod n``;
* isl: elements that stay until they are overwritten in closed form, the rest by isl's transitive
  closure, under a budget;
* few powers, one by one: steps of a loop with few iterations that have no closed form;
* otherwise, dimensions that every path keeps stay, indices that move by bounded distances move that
  far in each iteration at most, and all others may have any index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

from indexing.dataflow.loops.components import Component
from indexing.dataflow.loops.isl_closures import IslClosures
from indexing.dataflow.loops.powers import Pair, Product, powers
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.joining import join_maps
from indexing.maps.relation import as_relation
from simplifier.atoms import Variable
from simplifier.bounds import KnownBounds
from simplifier.constraints import Constraint, sum_bounds
from simplifier.exact import unions
from simplifier.interval import Interval, join
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

MAX_COMPOSED: Final = 64
"""Limit on the maps of all powers that are composed one by one."""
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

    def without_exactness(self) -> Closure:
        """Return the maps as a superset."""
        maps = {leaf: [m.with_grade("may") for m in each] for leaf, each in self.maps.items()}
        return Closure(maps, is_closed=False)


def closure_from(component: Component, leaf: Path) -> Closure:
    """Return the maps ``(d, t) -> (e, k)`` with ``k <= t`` from a leaf to each leaf."""
    for attempt in (_powers, _rotations):
        maps = attempt(component, leaf)
        if maps is not None:
            return Closure(maps)
    by_isl = IslClosures(component).closure_from(leaf)
    if by_isl is not None and by_isl[1]:
        return Closure(by_isl[0])
    composed = _compositions(component, leaf)
    if composed is not None:
        return Closure(composed)
    maps, is_bounded = _kept_dimensions(component, leaf)
    return Closure(by_isl[0] if by_isl and not is_bounded else maps, is_closed=False)


# ------------------------------------------------------------ closed forms


def _powers(component: Component, leaf: Path) -> dict[Path, list[IndexingMap]] | None:
    products: dict[Pair, list[Product]] = {}
    for pair, maps in component.steps.items():
        for m in maps:
            each = Product.of_step(m)
            if each is None or m.dims[-1].bounds != (1, component.last):
                return None
            products.setdefault(pair, []).append(each)
    return powers(leaf, component.sizes[leaf], products, component.last)


def _rotations(component: Component, leaf: Path) -> dict[Path, list[IndexingMap]] | None:
    if len(component.sizes) != 1:
        return None
    sizes, maps = component.sizes[leaf], component.steps[leaf, leaf]
    shifts = _rotation(maps, sizes)
    if shifts is None:
        return None
    dims = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(sizes)]
    time = Variable(f"d{len(sizes)}", 0, component.last)
    earlier = Variable("s0", 0, component.last)
    step_time = Variable(time.name, 1, component.last)
    one_step = _shift_dims(dims, shifts, sizes, as_expr(1))
    whole = IndexingMap.of([*dims, step_time], [*one_step, step_time - 1])
    if not _is_union(maps, whole):
        return None
    steps = time - earlier
    return {
        leaf: [
            IndexingMap.of(
                [*dims, time],
                [*_shift_dims(dims, shifts, sizes, steps), earlier],
                ranges=[earlier],
                constraints=[Constraint(steps, 0, component.last)],
                grade=_grade(maps),
            )
        ]
    }


def _compositions(component: Component, leaf: Path) -> dict[Path, list[IndexingMap]] | None:
    """Return the union of the powers of a step that differs between iterations, one by one.

    None if there are more than `MAX_COMPOSED` maps, or if a step reads a value or is no exact map.
    """
    every = [m for maps in component.steps.values() for m in maps]
    if component.last > MAX_COMPOSED or any(m.runtime or m.grade != "exact" for m in every):
        return None
    identity = IndexingMap.over((*component.sizes[leaf], component.last + 1), lambda d: d)
    union: dict[Path, list[IndexingMap]] = {leaf: [identity]}
    last, count = {leaf: [identity]}, 1
    while last:
        last = _earlier(component, last)
        count += sum(map(len, last.values()))
        if count > MAX_COMPOSED:
            return None
        for y, maps in last.items():
            union.setdefault(y, []).extend(maps)
    return union


def _earlier(
    component: Component, maps: Mapping[Path, Sequence[IndexingMap]]
) -> dict[Path, list[IndexingMap]]:
    """Return maps, composed with one step."""
    reached: dict[Path, list[IndexingMap]] = {}
    for (x, y), steps in component.steps.items():
        pairs = product(maps.get(x, ()), steps)
        reached.setdefault(y, []).extend([m.then(step).simplify() for m, step in pairs])
    for y, each in reached.items():
        joined = [m.simplify() for m in join_maps([m for m in each if not m.is_known_empty])]
        reached[y] = [m for m in joined if not m.is_known_empty]
    return {y: each for y, each in reached.items() if each}


# ------------------------------------------------------------ over-approximation


def _kept_dimensions(
    component: Component, leaf: Path
) -> tuple[dict[Path, list[IndexingMap]], bool]:
    """Return `may` maps that keep the dimensions that every path keeps.

    Indices that move by bounded distances move at most that far in each iteration.

    Returns:
        The maps, and True if any dimension is kept or bounded.
    """
    step = {pair: _kept_dims(maps) for pair, maps in component.steps.items()}
    identity: Kept = tuple(range(len(component.sizes[leaf])))
    kept: dict[Path, Kept] = {}
    pending = [(leaf, identity)]
    while pending:
        x, first = pending.pop()
        for (before, y), second in step.items():
            if before == x:
                new = tuple([None if k is None else first[k] for k in second])
                joined = _join_kept(kept[y], new) if y in kept else new
                if joined != kept.get(y):
                    kept[y] = joined
                    pending.append((y, joined))
    maps = {leaf: [IndexingMap.over((*component.sizes[leaf], component.last + 1), lambda d: d)]}
    distances = _distances(component)
    for y, values in kept.items():
        maps.setdefault(y, []).append(_free(component, leaf, y, values, distances))
    every = [value for values in kept.values() for value in values]
    return maps, any(v is not None for v in (*every, *distances))


def _distances(component: Component) -> list[Interval | None]:
    """Return how far each index may move in one iteration; None if not less than its size."""
    ranks = set(map(len, component.sizes.values()))
    if len(ranks) > 1:
        return [None] * max(ranks)
    distances: list[Interval | None] = []
    maps = [m for maps in component.steps.values() for m in maps]
    for k in range(ranks.pop()):
        moved = [
            KnownBounds(sum_bounds(m.constraints)).bounds(m.results[k] - m.dims[k]) for m in maps
        ]
        span = join(moved)
        size = max(sizes[k] for sizes in component.sizes.values())
        distances.append(span if -size < span[0] and span[1] < size else None)
    return distances


def _free(
    component: Component,
    leaf: Path,
    other: Path,
    values: Kept,
    distances: Sequence[Interval | None],
) -> IndexingMap:
    source, target = component.sizes[leaf], component.sizes[other]
    dims = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(source)]
    time = Variable(f"d{len(source)}", 1, component.last)
    earlier = Variable("s0", 0, component.last - 1)
    ranges, results = [earlier], list[Expr]()
    steps = time - earlier
    constraints = [Constraint(steps, 1, component.last)]
    for k, (value, size) in enumerate(zip(values, target, strict=True)):
        if value is not None:
            results.append(dims[value].as_expr())
            continue
        ranges.append(Variable(f"s{len(ranges)}", 0, size - 1))
        results.append(ranges[-1].as_expr())
        distance = distances[k]
        if distance is not None:
            above = results[-1] - dims[k] - steps * distance[0]
            below = steps * distance[1] - results[-1] + dims[k]
            constraints += [Constraint(e, 0, max(e.bounds[1], 0)) for e in (above, below)]
    return IndexingMap.of(
        [*dims, time],
        [*results, earlier],
        ranges=ranges,
        constraints=constraints,
        grade="may",
    ).simplify()


def _rotation(maps: Iterable[IndexingMap], sizes: Sequence[int]) -> list[int] | None:
    """Return the shift of each dimension if all maps shift by it modulo the sizes, else None."""
    shifts: list[int] | None = None
    for m in maps:
        triples = zip(m.results[:-1], m.dims[:-1], sizes, strict=True)
        own = [_shift(result, d, size) for result, d, size in triples]
        if m.ranges or m.runtime or (shifts is not None and own != shifts):
            return None
        shifts = [shift for shift in own if shift is not None]
        if len(shifts) < len(own):
            return None
    if shifts is None:
        return None
    return [c - n if 2 * c > n else c for c, n in zip(shifts, sizes, strict=True)]


def _shift(result: Expr, d: Variable, size: int) -> int | None:
    """Return c if a result is ``d + c`` or ``(d + c) mod size``, modulo the size, else None."""
    offset = result - d
    if offset.is_constant:
        return offset.constant % size
    first = Substitution({d: as_expr(0)})(result)
    is_shift = first.is_constant and (d + first.constant) % size == result
    return first.constant % size if is_shift else None


def _shift_dims(
    dims: Sequence[Variable], shifts: Sequence[int], sizes: Sequence[int], steps: Expr
) -> list[Expr]:
    """Return the dimensions after a number of steps, each of which shifts them modulo the sizes."""
    return [
        d.as_expr() if not shift else (d + steps * shift) % size
        for d, shift, size in zip(dims, shifts, sizes, strict=True)
    ]


def _is_union(maps: Sequence[IndexingMap], whole: IndexingMap) -> bool:
    """Return True if the union of maps is proved to contain a function; they are parts of it."""
    return unions.only_first([as_relation(whole)], list(map(as_relation, maps))) is None


def _grade(maps: Iterable[IndexingMap]) -> Grade:
    return "may" if any(m.grade == "may" for m in maps) else "exact"


def _kept_dims(maps: Iterable[IndexingMap]) -> Kept:
    """Return, for each result, the dimension that every map forwards to it, or None."""
    values: Kept | None = None
    for m in maps:
        dims = list(m.dims[:-1])
        own = tuple(
            [dims.index(r.as_variable) if r.as_variable in dims else None for r in m.results[:-1]]
        )
        values = own if values is None else _join_kept(values, own)
    assert values is not None
    return values


def _join_kept(a: Kept, b: Kept) -> Kept:
    return tuple([x if x == y else None for x, y in zip(a, b, strict=True)])
