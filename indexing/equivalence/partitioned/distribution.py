"""`Distribution`: the global index of each element that a device holds.

    global index = offset of the device's shard + local index

>>> from hlo.shardings.hlo_notation import parse_sharding
>>> columns = parse_sharding("{devices=[1,4,2]<=[8] last_tile_dim_replicate}")
>>> given = Distribution(columns, (3, 10), 8)
>>> given.local_dims, given.offsets(1), given.holds(6, (2, 1)), given.is_padded
((3, 3), (0, 0, 3, 3, 6, 6, 9, 9), False, True)
>>> given.place(7, (2, 0))
(2, 9)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from hlo.shardings.sharding import Sharding
from indexing.devices.strided_groups import strided_columns, strided_group
from indexing.equivalence.verdicts import ElementIndex
from indexing.maps.indexing_map import IndexingMap, dims
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the elements of a global array are distributed over devices.

    Attributes:
        sharding: the sharding.
        dims: the sizes of the global array.
        devices: the number of devices.
    """

    sharding: Sharding
    dims: tuple[int, ...]
    devices: int

    @property
    def local_dims(self) -> tuple[int, ...]:
        """The sizes of a shard, padding included."""
        return self.sharding.local_dims(self.dims)

    @property
    def is_padded(self) -> bool:
        """True if shards have elements beyond the end of the global array."""
        shards = [self.sharding.shards(k) for k in range(len(self.dims))]
        local = zip(shards, self.local_dims, self.dims, strict=True)
        return any(count * part != size for count, part, size in local)

    def offsets(self, dimension: int) -> tuple[int, ...]:
        """Return the first global index of each device's shard along a dimension."""
        mesh, axes = self.sharding.mesh, self.sharding.dims[dimension]
        size = self.local_dims[dimension]
        numbers = map(int, mesh.numbers(axes)) if axes else iter([0] * self.devices)
        devices = mesh.devices if axes else range(self.devices)
        by_device = dict(zip(devices, numbers, strict=True))
        return tuple([by_device[device] * size for device in range(self.devices)])

    def place(self, device: int, local: ElementIndex) -> ElementIndex:
        """Return the global index of an element on a device."""
        return tuple([self.offsets(k)[device] + i for k, i in enumerate(local)])

    def holds(self, device: int, local: ElementIndex) -> bool:
        """Return True if an element on a device is no padding."""
        place = self.place(device, local)
        return all(i < size for i, size in zip(place, self.dims, strict=True))

    def holder(self, place: ElementIndex) -> tuple[int, ElementIndex]:
        """Return the first device that holds a global element, and the local index there."""
        local = self.local_dims
        for device in range(self.devices):
            starts = [self.offsets(k)[device] for k in range(len(place))]
            index = tuple([i - start for i, start in zip(place, starts, strict=True)])
            if all(0 <= i < size for i, size in zip(index, local, strict=True)):
                return device, index
        raise IndexError(f"{list(place)} is out of range of {self.dims}")


def pieces_by_device(values: tuple[int, ...], device: Variable) -> list[tuple[Expr, Constraint]]:
    """Return a value for each device as formulas of the device, for intervals of devices.

    >>> device = Variable("device", 0, 3)
    >>> for value, devices in pieces_by_device((0, 0, 5, 5), device):
    ...     print(value, "|", devices)
    (device floordiv 2) * 5 | device in [0, 3]
    """
    groups = strided_columns([values])
    if not groups:
        each = enumerate(values)
        return [(as_expr(value), Constraint(device.as_expr(), k, k)) for k, value in each]
    return [
        (
            group.device(0, device.as_expr()),
            Constraint(device.as_expr(), group.first, group.first + group.width - 1),
        )
        for group in groups
    ]


def _offsets(
    given: Distribution, device: Variable
) -> Iterator[tuple[list[Expr], list[Constraint]]]:
    """Yield the offsets of shards as formulas of the device, for intervals of devices."""
    along = [pieces_by_device(given.offsets(k), device) for k in range(len(given.dims))]
    for pieces in product(*along):
        bounds = [c for _, c in pieces if not c.is_true]
        yield [expr for expr, _ in pieces], bounds


def global_maps(given: Distribution, device: Variable) -> list[IndexingMap]:
    """Return the maps from (device, local index) to the global index, without padding."""
    local = dims(given.local_dims)
    maps = []
    for offsets, bounds in _offsets(given, device):
        index = [as_expr(i) + offset for i, offset in zip(local, offsets, strict=True)]
        bounds += [Constraint(i, 0, n - 1) for i, n in zip(index, given.dims, strict=True)]
        m = IndexingMap.of(
            (device, *local), index, constraints=[c for c in bounds if not c.is_true]
        )
        maps.append(m)
    return [m for m in maps if not m.is_known_empty]


def formula_of(values: Sequence[int], number: Expr) -> Expr | None:
    """Return ``values[number]`` as an expression of the number, if it has a simple form.

    >>> print(formula_of([0, 0, 3, 3, 6, 6], Variable("device", 0, 5).as_expr()))
    (device floordiv 2) * 3
    >>> formula_of([1, 5, 3, 8], Variable("device", 0, 3).as_expr()) is None
    True
    """
    if len(set(values)) == 1:
        return as_expr(values[0])
    group = strided_group([tuple(values)])
    return None if group is None else group.device(0, number)
