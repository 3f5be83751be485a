"""Maps of one form joined: the same results, and domains that one interval tells apart.

A mask divides what an instruction reads into parts, which are often complementary: joined, they
are the map without the mask.  A part is redundant beside the whole map.  XLA lists such maps once,
because its maps have no masks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from indexing.maps.compose import innermost_first
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.runtime_values import value_key
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval, contains, intersect
from simplifier.linear import Expr
from simplifier.substitute import Substitution

MAX_JOINED: Final = 64
"""Limit on the maps that are compared with each other; more are not joined."""
_FAR: Final = 1 << 62


def join_maps(maps: Iterable[IndexingMap], only_masks: bool = False) -> list[IndexingMap]:
    """Return fewer maps with the same union, not simplified where they are joined.

    Args:
        only_masks: join maps only along runtime values, and leave out redundant maps only if they
            have constraints or runtime values.

    >>> from indexing.maps.text import parse_map
    >>> whole, *parts = map(parse_map, [
    ...     "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 3]",
    ...     "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 3], d0 - s0 in [0, 3]",
    ...     "(d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 3], s0 - d0 in [1, 3]",
    ... ])
    >>> for some in ([parts[0], whole], parts):
    ...     print(*[m.simplify() for m in join_maps(some)])
    (d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 3]
    (d0)[s0] -> (d0, s0), domain: d0 in [0, 3], s0 in [0, 3]
    """
    maps = list(maps)
    if not 1 < len(maps) <= MAX_JOINED:
        return maps
    if only_masks and not any(m.runtime or m.constraints for m in maps):
        return maps
    names: dict[Hashable, str] = {}
    placed: dict[int, IndexingMap] = {}
    kept: dict[int, _Form] = {}
    for place, (m, is_alone) in enumerate(zip(maps, _are_alone(maps, only_masks), strict=True)):
        if is_alone:
            placed[place] = m
            continue
        form: _Form | None = _form_of(m, names)
        while form is not None:
            last, form = form, None
            for earlier, other in kept.items():
                form = _join(last, other, only_masks)
                if form is not None:
                    del kept[earlier]
                    place = min(place, earlier)
                    break
        kept[place] = last
    placed.update((place, form.map) for place, form in kept.items())
    return [placed[place] for place in sorted(placed)]


def _are_alone(maps: Sequence[IndexingMap], only_masks: bool) -> list[bool]:
    """Return for each map True if no other one can be joined with it, by the outlines of all."""
    outlines = list(map(_outline, maps))
    alike = Counter(outlines)
    masked = {
        outline
        for outline, m in zip(outlines, maps, strict=True)
        if not only_masks or m.runtime or m.constraints
    }
    return [alike[outline] == 1 or outline not in masked for outline in outlines]


def _outline(m: IndexingMap) -> Hashable:
    """Return what maps with equal results have in common, which is quickly computed."""
    return tuple([(len(result.terms), result.constant) for result in m.results])


@dataclass(frozen=True, slots=True)
class _Form:
    """A map over variables that have no bounds of their own, and one name for each runtime value.

    Attributes:
        source: a map of this form.
        names: the expressions of its variables here.
        results: the results.
        bounds: the bounds of variables and of expressions; of an expression and its negation, one.
        values: the runtime values.
        bounded: the keys of `bounds`; equal ones are one object.
        intervals: the values of `bounds`.
        is_changed: `bounds` are not those of `source`.
    """

    source: IndexingMap
    names: dict[Variable, Expr]
    results: tuple[Expr, ...]
    bounds: dict[Expr, Interval]
    values: dict[Hashable, RuntimeVariable]
    bounded: tuple[Expr, ...]
    intervals: tuple[Interval, ...]
    is_changed: bool = False

    @property
    def map(self) -> IndexingMap:
        """The map of this form."""
        m = self.source
        if not self.is_changed:
            return m
        own = {v: Variable(v.name, *self.bounds[self.names[v]]) for v in m.variables}
        back = Substitution(
            {expr.variables()[0]: own[v].as_expr() for v, expr in self.names.items()}
        )
        swap = Substitution(self.names)
        variables = set(self.names.values())
        constraints = [
            Constraint(back(expr), *bounds)
            for expr, bounds in self.bounds.items()
            if expr not in variables
        ]
        return IndexingMap.of(
            [own[v] for v in m.dims],
            [back(result) for result in self.results],
            ranges=[own[v] for v in m.ranges],
            runtime=[rt.substituted(lambda e: back(swap(e)), own[rt.variable]) for rt in m.runtime],
            constraints=[c for c in constraints if not c.is_true],
            grade=m.grade,
        )


def _form_of(m: IndexingMap, names: dict[Hashable, str]) -> _Form:
    """Return the form of a map; `names` has a name for each runtime value of all maps."""
    return _named_form(m, names) if m.runtime else _plain_form(m)


@lru_cache(maxsize=1 << 10)
def _plain_form(m: IndexingMap) -> _Form:
    """`_named_form` of a map without runtime values, which a set has each time that it grows."""
    return _named_form(m, {})


def _named_form(m: IndexingMap, names: dict[Hashable, str]) -> _Form:
    own = {v: _unbounded_variable(v.name) for v in (*m.dims, *m.ranges)}
    values: dict[Hashable, RuntimeVariable] = {}
    for rt in innermost_first(m.runtime):
        value = value_key(rt.substituted(Substitution(own)))
        values[value] = rt
        own[rt.variable] = _unbounded_variable(names.setdefault(value, f"value{len(names)}"))
    swap = Substitution(own)
    bounds: dict[Expr, Interval] = {}
    for v in m.variables:  # two may be the same value
        bounds[own[v]] = intersect(bounds.get(own[v], v.bounds), v.bounds)
    for c in m.constraints:
        expr, low, high = swap(c.expr), c.lower, c.upper
        if expr.terms and expr.terms[0][1] < 0:
            expr, low, high = -expr, -high, -low
        expr, within = expr - expr.constant, (low - expr.constant, high - expr.constant)
        bounds[expr] = intersect(bounds.get(expr, within), within)
    results, bounded = tuple(map(swap, m.results)), tuple(map(_one_object, bounds))
    return _Form(m, own, results, bounds, values, bounded, tuple(bounds.values()))


@lru_cache(maxsize=1 << 10)
def _one_object(expr: Expr) -> Expr:
    """Return the first expression that is equal: tuples of the same objects compare quickly."""
    return expr


def _unbounded_variable(name: str) -> Expr:
    return Variable(name, -_FAR, _FAR).as_expr()


def _join(one: _Form, other: _Form, only_masks: bool) -> _Form | None:
    """Return the union of two forms if one form describes it, else None."""
    if one.results != other.results:
        return None
    if one.bounded == other.bounded and _are_apart(one.intervals, other.intervals):
        return None
    for small, large in ((one, other), (other, one)):
        if _is_redundant(small, large, only_masks):
            return large
    if one.source.grade != other.source.grade or one.values.keys() != other.values.keys():
        return None
    if one.bounds.keys() != other.bounds.keys():
        return None
    different = [expr for expr in one.bounds if one.bounds[expr] != other.bounds[expr]]
    if len(different) != 1 or (only_masks and not _is_mask(one, different[0])):
        return None
    first, second = sorted([one.bounds[different[0]], other.bounds[different[0]]])
    if second[0] > first[1] + 1:
        return None
    whole = {**one.bounds, different[0]: (first[0], max(first[1], second[1]))}
    return replace(one, bounds=whole, intervals=tuple(whole.values()), is_changed=True)


def _are_apart(ours: Sequence[Interval], theirs: Sequence[Interval]) -> bool:
    """Return True if several intervals differ, and neither sequence is within the other."""
    different, is_inside, is_outside = 0, True, True
    for (low, high), (other_low, other_high) in zip(ours, theirs, strict=True):
        if low == other_low and high == other_high:
            continue
        different += 1
        is_inside = is_inside and other_low <= low and high <= other_high
        is_outside = is_outside and low <= other_low and other_high <= high
        if different > 1 and not is_inside and not is_outside:
            return True
    return False


def _is_redundant(small: _Form, large: _Form, only_masks: bool) -> bool:
    """Return True if a form reads nothing that another does not read, with the same results."""
    if only_masks and not (small.source.constraints or small.source.runtime):
        return False
    return (
        (large.source.grade == "exact" or small.source.grade == "may")
        and large.values.keys() <= small.values.keys()
        and all(
            expr in small.bounds and contains(within, small.bounds[expr])
            for expr, within in large.bounds.items()
        )
    )


def _is_mask(form: _Form, expr: Expr) -> bool:
    """Return True if a bound of an expression restricts runtime values."""
    runtime = {form.names[rt.variable] for rt in form.values.values() if rt.array is not None}
    return not runtime.isdisjoint([v.as_expr() for v in expr.variables()])
