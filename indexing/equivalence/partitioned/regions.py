"""Manual regions of a global program (JAX's ``shard_map``): how arrays enter and leave them.

An array outside of the regions is the same on every device.  An argument of a region is read at the
global index of the device's shard, and a result on the first device that holds the element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.shapes.mixed_radix import number_of
from hlo.shapes.shape import Shape, leaf_shape
from hlo.shardings.sharding import Sharding
from indexing.dataflow import answering
from indexing.dataflow.device_edges import DeviceEdges
from indexing.dataflow.summaries import Summarising
from indexing.dataflow.walk import Walk
from indexing.devices.devices import Devices
from indexing.equivalence.partitioned.distribution import Distribution, formula_of, global_maps
from indexing.execution.mesh import has_regions
from indexing.maps.answers import Answer, Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.options import Options
from indexing.ops.access_edge import AccessEdge
from indexing.ops.custom_call import BORDERS, FULL_TO_SHARD, TO_LOCAL, target_of
from indexing.ops.targets.regions import border_sharding
from simplifier.linear import Affine, Expr, as_expr


def crosses_border(instruction: Instruction) -> bool:
    """Return True for the calls through which arrays enter or leave manual regions."""
    return target_of(instruction) in BORDERS


def contains_border(computation: Computation) -> bool:
    """Return True if the computation, or one that it calls, has a border of a region."""

    def has_border(computation: Computation) -> bool:
        own = computation.instructions
        return any(
            crosses_border(each) or any(map(contains_border, each.called_computations))
            for each in own
        )

    return bottom_up(computation, contains_border, has_border)


def enters_region(call: Instruction) -> bool:
    """Return True if arrays enter a manual region by a call at its border."""
    return target_of(call) in (FULL_TO_SHARD, TO_LOCAL)


def border_of(call: Instruction, path: Path, devices: Devices) -> Distribution | Unknown:
    """Return the distribution with which an array enters or leaves a region.

    Args:
        path: the leaf of the call's result.
    """
    number = path[0] if path else 0
    outer, inner = call.operands[number].shape, leaf_shape(call.shape, path)
    if not enters_region(call):
        outer, inner = inner, outer
    where = f"`{call.name}`: the border of a manual region"
    if not isinstance(outer, Shape) or not isinstance(inner, Shape):
        return Unknown(f"{where} with tuples", call)
    sharding = border_sharding(call, number)
    if not isinstance(sharding, Sharding):
        return Unknown(f"{where} without a sharding", call)
    if any(sharding.dims) and sorted(sharding.mesh.devices) != list(range(devices.count)):
        return Unknown(f"{where} with {len(sharding.mesh.devices)} devices", call)
    given = Distribution(sharding, outer.dims, devices.count)
    is_partly = bool(sharding.manual or sharding.partial or given.is_padded)
    if is_partly or given.local_dims != inner.dims:
        return Unknown(f"{where} with {sharding.to_hlo()}", call)
    return given


def holder_of(given: Distribution, index: tuple[Affine, ...]) -> tuple[Expr, list[int], list[Expr]]:
    """Return the number of a shard over all dimensions, its first holders, and the local index.

    Args:
        index: the index of a global element.
    """
    parts = [size // part for size, part in zip(given.dims, given.local_dims, strict=True)]
    pairs = [(as_expr(i), part) for i, part in zip(index, given.local_dims, strict=True)]
    number = as_expr(number_of([i // part for i, part in pairs], parts))
    local = [i % part for i, part in pairs]
    holders: dict[tuple[int, ...], int] = {}
    for device in reversed(range(given.devices)):
        holders[given.place(device, (0,) * len(given.dims))] = device
    return number, [device for _, device in sorted(holders.items())], local


def global_reads(root: Instruction, output: int, devices: Devices, walk: Walk) -> Answer:
    """Return the maps of an output of a global program to its parameters.

    Args:
        walk: the walk of a program without manual regions.
    """
    if not has_regions(root.module):
        return answering.to_parameters(walk, root, output)
    regions = Walk(RegionEdges(devices, Options(exact=True)))
    answer = answering.to_parameters(regions, root, output)
    maps = [tuple([replace(m, results=m.results[1:]) for m in each]) for each in answer.maps]
    return replace(answer, maps=tuple(maps))


@dataclass(frozen=True, slots=True)
class RegionEdges(DeviceEdges):
    """Edges between elements on devices, in which regions have borders."""

    def crosses(self, computation: Computation) -> bool:
        return DeviceEdges.crosses(self, computation) or contains_border(computation)

    def backward_edges(
        self, array: ArrayRef, walk: Summarising, *, fold: bool
    ) -> Iterator[AccessEdge]:
        if crosses_border(array.instruction):
            yield self._border(array)
        else:
            yield from DeviceEdges.backward_edges(self, array, walk, fold=fold)

    def _border(self, array: ArrayRef) -> AccessEdge:
        """Return the edge of an array at the border of a region."""
        call, path = array.instruction, array.path
        number = path[0] if path else 0
        given = border_of(call, path, self.devices)
        device = self.devices.variable
        if isinstance(given, Unknown):
            return AccessEdge(number, (), path, (), given)
        maps: list[IndexingMap] = []
        if enters_region(call):
            for m in global_maps(given, device):
                maps.append(replace(m, results=(device.as_expr(), *m.results)))
        else:
            out = leaf_shape(call.shape, path)
            assert isinstance(out, Shape)
            own = dims(out)
            shard, holders, local = holder_of(given, own)
            holder = formula_of(holders, shard)
            if holder is None:
                unknown = Unknown(f"`{call.name}`: the devices of shards have no formula", call)
                return AccessEdge(number, (), path, (), unknown)
            maps.append(IndexingMap.of((device, *own), (holder, *local)))
        return AccessEdge(number, (), path, tuple(maps))
