"""Splits: the shards of an operand that contain what a shard of the result needs.

Dimension j of the result has shards of m elements, dimension i of the operand shards of k elements.
With ``d_j = shard·m + own``, a map leads to index ``e_i``, and ``e_i - shard·k`` is the *offset* in
the operand's shard.  The operand's shard contains what the result's shard needs if the offset is
always in ``[0, k - 1]``.  Shards of a divisor of n are unions of shards of n, so a proof for n
shards holds for each divisor of n.

Interval bounds decide first, then some corners of the domain, then isl.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, NamedTuple, TypeAlias

from hlo.shapes.element_type import range_of
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.sharding.splits.states import shard_size
from indexing.sharding.splits.subjects import Subject
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown, first_unknown

NO_HALO: Final = (0, 0)


class SplitDimension(NamedTuple):
    """A dimension that is split: its number, its size and the number of elements of a shard."""

    number: int
    size: int
    shard: int

    @classmethod
    def of(cls, sizes: Sequence[int], number: int, shards: int) -> SplitDimension:
        """Return the split of one dimension of an array of these sizes."""
        return cls(number, sizes[number], shard_size(sizes[number], shards))

    @property
    def used(self) -> int:
        """The number of shards that have elements."""
        return -(-self.size // self.shard) if self.size else 0


@dataclass(frozen=True, slots=True)
class Contained:
    """The operand's shards, with their halos, contain what the result's shards need.

    Attributes:
        halo: elements that are needed below and above the own shard.
        maps: the maps that were compared.
    """

    halo: tuple[int, int] = NO_HALO
    maps: tuple[IndexingMap, ...] = ()


@dataclass(frozen=True, slots=True)
class Breach:
    """An element that a shard needs and does not have.

    Attributes:
        result: the element of the result.
        operand: the element of the operand that it needs.
        result_shard, operand_shard: the shards with these elements.
        map: the map that relates both.
        runtime: values of the runtime variables, by source element.
    """

    result: tuple[int, ...]
    operand: tuple[int, ...]
    result_shard: int
    operand_shard: int
    map: IndexingMap
    runtime: tuple[tuple[str, int], ...] = ()


Containment: TypeAlias = Contained | Breach | Unknown


@dataclass(frozen=True, slots=True)
class LocalMap:
    """A map in the coordinates of one shard of the result.

    Attributes:
        map: the map.
        split: the dimension of the result that is split; None if every device has the result.
        shard: the number of the shard.
        own: the index along the split dimension in the shard.
    """

    map: IndexingMap
    split: SplitDimension | None
    shard: Variable
    own: Variable
    swap: Substitution = field(repr=False)

    @classmethod
    def of(cls, m: IndexingMap, split: SplitDimension | None, shards: int) -> LocalMap:
        """Return `m` with the split dimension divided into the shard and the index in it."""
        if split is None:
            shard = Variable("shard", 0, shards - 1)
            return cls(m, None, shard, shard, Substitution({}))
        shard = Variable("shard", 0, max(0, split.used - 1))
        own = Variable("own", 0, split.shard - 1)
        index = shard * split.shard + own
        return cls(m, split, shard, own, Substitution({m.dims[split.number]: index}))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the map, with the shard and the index in it."""
        replaced = None if self.split is None else self.map.dims[self.split.number]
        new = (self.shard,) if self.split is None else (self.shard, self.own)
        return (*new, *[v for v in self.map.variables if v is not replaced])

    @property
    def constraints(self) -> list[Constraint]:
        """The constraints of the map, and the bounds of the dimension that is split."""
        changed = [c.with_expr(self.swap(c.expr)) for c in self.map.constraints]
        if self.split is not None:
            index = self.shard * self.split.shard + self.own
            changed.append(Constraint(index, *self.map.dims[self.split.number].bounds))
        return [c for c in changed if not c.is_true]

    @property
    def is_local(self) -> bool:
        """True if the constraints are proved to be the same in each shard."""
        exprs = [self.swap(c.expr) for c in self.map.constraints]
        if any(self.shard in expr.variables() for expr in exprs):
            return False
        split = self.split
        return split is None or self.map.dims[split.number].bounds == (0, split.size - 1)

    def offset(self, operand: SplitDimension) -> Expr:
        """Return the index along a split dimension of the operand, from the start of the shard."""
        return self.swap(self.map.results[operand.number]) - self.shard * operand.shard


def containment(
    subject: Subject,
    m: IndexingMap,
    result: SplitDimension | None,
    operand: SplitDimension,
    shards: int,
) -> Containment:
    """Decide whether one map leads from each shard of the result to the same shard of the operand.

    Args:
        result: the split of the result; None if every device has all of it.
    """
    local = LocalMap.of(m, result, shards)
    offset = local.offset(operand)
    lower, upper = offset.bounds
    if lower >= 0 and upper < operand.shard:
        return Contained(maps=(m,))
    constraints = local.constraints
    if any(c.is_false for c in constraints) or any(v.is_empty for v in local.variables):
        return Contained(maps=(m,))
    point = _point_outside(local, constraints, operand, offset)
    if point is None:
        return Contained(maps=(m,))
    if isinstance(point, Unknown):
        return point
    if halo := _halo(local, constraints, operand, offset):
        return halo
    if m.grade == "may":
        return Unknown(f"the map over-approximates the access: {m}")
    return _breach(subject, local, operand, point)


def _point_outside(
    local: LocalMap, constraints: list[Constraint], operand: SplitDimension, offset: Expr
) -> dict[Variable, int] | Unknown | None:
    """Return a point at which an index is outside of the operand's shard; None without one."""
    for point in _corners(local, constraints):
        if not 0 <= offset.value(point) < operand.shard:
            return point
    lower, upper = offset.bounds
    above = (Constraint(offset, operand.shard, max(upper, operand.shard)),)
    below = (Constraint(offset, min(lower, -1), -1),)
    at = unions.point(local.variables, constraints, [[below, above]])
    if at is None or isinstance(at, Unknown):
        return at
    return dict(zip(local.variables, at, strict=True))


def _halo(
    local: LocalMap, constraints: list[Constraint], operand: SplitDimension, offset: Expr
) -> Contained | None:
    """Return the halo if the same elements around each shard are needed."""
    mentioned = set(offset.variables())
    runtime = {rt.variable for rt in local.map.runtime}
    if local.split is None or local.split.used < 2:
        return None
    if local.shard in mentioned or mentioned & runtime:
        return None
    ends = exact.bounds(local.variables, constraints, offset)
    if ends is None or isinstance(ends, Unknown):
        return None
    halo = max(0, -ends[0]), max(0, ends[1] - operand.shard + 1)
    return Contained(halo, (local.map,))


def _corners(local: LocalMap, constraints: list[Constraint]) -> Iterator[dict[Variable, int]]:
    """Yield some points of the domain: first and last shard, other variables at an end."""
    for shard, end in product((1, 0), (0, 1)):
        point = {v: v.bounds[end] for v in local.variables}
        point[local.shard] = local.shard.bounds[shard]
        try:
            if all(c.lower <= c.expr.value(point) <= c.upper for c in constraints):
                yield point
        except ZeroDivisionError:
            continue


def _breach(
    subject: Subject, local: LocalMap, operand: SplitDimension, point: dict[Variable, int]
) -> Breach | Unknown:
    """Return the elements at a point where an exact map leads out of the operand's shard."""
    m, index = local.map, 0
    if local.split is not None:
        index = point[local.shard] * local.split.shard + point[local.own]
    whole = {v: point.get(v, index) for v in m.dims} | point
    values = _runtime_values(subject, m, whole)
    if isinstance(values, Unknown):
        return values
    element = tuple([int(expr.value(whole)) for expr in m.results])
    owner = element[operand.number] // operand.shard
    result = tuple([whole[v] for v in m.dims])
    return Breach(result, element, point[local.shard], owner, m, values)


def _runtime_values(
    subject: Subject, m: IndexingMap, point: dict[Variable, int]
) -> tuple[tuple[str, int], ...] | Unknown:
    """Return the values of runtime variables at a point, if the inputs can have these values."""
    values: dict[tuple[ArrayRef, tuple[int, ...]], int] = {}
    for rt in m.runtime:
        unknown = Unknown(f"the elements read depend on values of `{rt.source_name}`")
        if not isinstance(rt.array, ArrayRef) or not subject.is_free(rt.array):
            return unknown
        at, value = tuple([expr.value(point) for expr in rt.index]), point[rt.variable]
        shape = rt.array.array_shape
        limits = range_of(shape.element_type) if shape is not None else None
        is_value = limits is not None and limits[0] <= value <= limits[1]
        if not is_value or values.setdefault((rt.array, at), value) != value:
            return unknown
    return tuple([(_element_name(array, at), value) for (array, at), value in values.items()])


def _element_name(array: ArrayRef, at: tuple[int, ...]) -> str:
    name = array.instruction.name
    return f"{name}[{', '.join(map(str, at))}]" if at else name


# ---------------------------------------------------------------- several maps


def containment_of_all(
    subject: Subject,
    result: int,
    source: int,
    of_result: SplitDimension | None,
    of_source: SplitDimension,
    shards: int,
) -> Containment:
    """Decide `containment` for all maps from a result to an input of a subject, by number."""
    verdict = _of_maps(subject, result, source, of_result, of_source, shards, is_exact=False)
    if isinstance(verdict, Unknown):
        refined = _of_maps(subject, result, source, of_result, of_source, shards, is_exact=True)
        return verdict if isinstance(refined, Unknown) else refined
    return verdict


def _of_maps(
    subject: Subject,
    result: int,
    source: int,
    of_result: SplitDimension | None,
    of_source: SplitDimension,
    shards: int,
    *,
    is_exact: bool,
) -> Containment:
    accesses = subject.accesses(result, source, exact=is_exact)
    below = above = 0
    undecided = accesses.unknown
    for m in accesses.maps:
        match containment(subject, m, of_result, of_source, shards):
            case Breach() as breach:
                return breach
            case Unknown() as unknown:
                undecided = first_unknown(undecided, unknown)
            case Contained(halo):
                below, above = max(below, halo[0]), max(above, halo[1])
    return undecided if undecided is not None else Contained((below, above), accesses.maps)


def differs_between_shards(
    m: IndexingMap,
    result: SplitDimension | None,
    shards: int,
    operand: SplitDimension | None,
    sources: dict[ArrayRef, SplitDimension],
) -> bool:
    """Return False if a map is proved to be the same in each shard, from the shard's start.

    Args:
        operand: the split of the operand that the map leads to.
        sources: the splits of the arrays of runtime variables.
    """
    local = LocalMap.of(m, result, shards)
    exprs = [local.swap(expr) for expr in m.results]
    if operand is not None:
        exprs[operand.number] = local.offset(operand)
    for rt in m.runtime:
        index = [local.swap(expr) for expr in rt.index]
        split = sources.get(rt.array) if isinstance(rt.array, ArrayRef) else None
        if split is not None:
            number = split.number + len(rt.iterations)
            index[number] = index[number] - local.shard * split.shard
        exprs += index
    return not local.is_local or any(local.shard in expr.variables() for expr in exprs)
