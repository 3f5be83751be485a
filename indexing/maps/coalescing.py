"""Coalescing: fewer maps with the same union, where isl proves it.

Neighbouring offsets become a range variable, complementary pieces and classes of residues one
domain.  No element is added or lost, and runtime variables keep their source.

Source: isl manual, "Simplification" (``isl_map_coalesce``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.maps.relation import as_relation
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier import exact
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.exact.joining import join_relations
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

FEW: Final = 4
"""The fewest maps that are coalesced for a reader: fewer are listed as XLA lists them."""


def coalesce_maps(
    maps: Sequence[IndexingMap], options: Options, is_readable: bool = True
) -> list[IndexingMap]:
    """Return maps with the same union as `maps`, fewer if isl joins them.

    Maps are joined if they have the same grade and the same runtime variables.

    Args:
        is_readable: join only `FEW` maps or more to one, whose constraints bound one range variable
            each.

    >>> from indexing.maps.text import parse_map
    >>> taps = [parse_map(f"(d0) -> (d0 - {k}), domain: d0 in [{k}, 7]") for k in range(4)]
    >>> print(*coalesce_maps(taps, Options()))
    (d0)[s0] -> (d0 - s0), domain: d0 in [0, 7], s0 in [0, 3], d0 - s0 in [0, 7]
    """
    groups: dict[Hashable, list[IndexingMap]] = {}
    for number, m in enumerate(maps):
        kind = _kind(m)
        groups.setdefault(number if kind is None else kind, []).append(m)
    least = FEW if is_readable else 2
    fewer: list[IndexingMap] = []
    for group in groups.values():
        most = len(group) // FEW if is_readable else len(group) - 1
        one_kind = _coalesce_group(group, most, options) if len(group) >= least else group
        if is_readable and not _gains(group, one_kind):
            one_kind = group
        fewer += one_kind
    return fewer if len(fewer) < len(maps) else list(maps)


def _kind(m: IndexingMap) -> Hashable | None:
    """Return what maps that may be joined have in common; None if a map is joined with none."""
    values = []
    for rt in m.runtime:
        if not set(variables_in(rt.index)).isdisjoint(m.ranges):
            return None  # each value of the range variable has a value of its own
        name = rt.name if rt.array is None else ""
        values.append((name, rt.array, rt.clamp, tuple(map(str, rt.index))))
    if m.is_known_empty or not as_relation(m).is_affine:
        return None
    return tuple([d.name for d in m.dims]), m.grade, tuple(values)


def _coalesce_group(group: Sequence[IndexingMap], most: int, options: Options) -> list[IndexingMap]:
    """Return the maps of one kind as at most `most` maps, or as they are."""
    first, count = group[0], len(group[0].dims)
    relations = [
        exact.Relation(
            (*m.dims, *[rt.variable for rt in m.runtime]), m.ranges, m.results, m.constraints
        )
        for m in group
    ]
    parts = join_relations(tuple(relations), most)
    if isinstance(parts, Unknown) or len(parts) > most:
        return list(group)
    names = [v.name for v in relations[0].inputs]
    fewer = []
    for part in parts:
        inputs = [v.renamed(name) for v, name in zip(part.inputs, names, strict=True)]
        swap = Substitution(
            {old: new.as_expr() for old, new in zip(part.inputs, inputs, strict=True)}
        )
        m = IndexingMap.of(
            inputs[:count],
            map(swap, part.results),
            ranges=part.hidden,
            runtime=_runtime(first, inputs),
            constraints=[c.with_expr(swap(c.expr)) for c in part.constraints],
            grade=first.grade,
        )
        m = options.simplify_map(m)
        as_offsets = _with_offsets(m)
        fewer.append(m if as_offsets is m else options.simplify_map(as_offsets))
    return fewer


def _runtime(m: IndexingMap, inputs: Sequence[Variable]) -> list[RuntimeVariable]:
    """Return the runtime variables of a map for other variables, in order, of the same names."""
    old = (*m.dims, *[rt.variable for rt in m.runtime])
    swap = Substitution({v: new.as_expr() for v, new in zip(old, inputs, strict=True)})
    pairs = zip(m.runtime, inputs[len(m.dims) :], strict=True)
    return [rt.substituted(swap, variable) for rt, variable in pairs]


def _gains(many: Sequence[IndexingMap], few: Sequence[IndexingMap]) -> bool:
    """True for one map of `FEW`, whose constraints relate range variables only as before."""
    return FEW * len(few) <= len(many) and (_relates_ranges(many) or not _relates_ranges(few))


def _relates_ranges(maps: Sequence[IndexingMap]) -> bool:
    """True if a constraint of a map relates range variables to each other."""
    related = [set(m.ranges).intersection(c.expr.variables()) for m in maps for c in m.constraints]
    return any(len(ranges) > 1 for ranges in related)


# ---------------------------------------------------------------- offsets


def _with_offsets(m: IndexingMap) -> IndexingMap:
    """Return the map with offsets as range variables, where they have fewer values.

    ``(s0)`` with d0 - s0 in [0, 3] becomes ``(d0 - s0)`` with s0 in [0, 3].
    """
    used = [v for result in m.results for v in result.variables()]
    for s in m.ranges:
        if used.count(s) == 1 and s.as_expr() in m.results:
            bands = [band for c in m.constraints if (band := _band(c, s, m)) is not None]
            narrow = min(bands, key=_width, default=None)
            if narrow is not None and _width(narrow) < s.upper - s.lower:
                m = _with_offset(m, s, narrow)
    return m


def _band(constraint: Constraint, s: Variable, m: IndexingMap) -> tuple[Expr, int, int] | None:
    """Return ``(e, l, u)`` if a constraint states that ``s - e`` is in [l, u], or None.

    The expression e has no range variables.
    """
    factor = dict(constraint.expr.terms).get(s, 0)
    if abs(factor) != 1:
        return None
    rest = s.as_expr() - constraint.expr * factor
    if not set(rest.variables()).isdisjoint(m.ranges):
        return None
    bounds = sorted([constraint.lower * factor, constraint.upper * factor])
    return rest, bounds[0], bounds[1]


def _width(band: tuple[Expr, int, int]) -> int:
    _, lower, upper = band
    return upper - lower


def _with_offset(m: IndexingMap, s: Variable, band: tuple[Expr, int, int]) -> IndexingMap:
    """Return the map with the offset of `s` from an expression as the range variable."""
    start, lower, upper = band
    offset = Variable(s.name, 0, upper - lower)
    value = start - offset + upper if upper <= 0 else start + offset + lower
    swap = Substitution({s: value})
    constraints = [c.with_expr(swap(c.expr)) for c in m.constraints]
    return replace(
        m,
        ranges=tuple([offset if v is s else v for v in m.ranges]),
        results=tuple(map(swap, m.results)),
        constraints=(*constraints, Constraint(value, s.lower, s.upper)),
    )
