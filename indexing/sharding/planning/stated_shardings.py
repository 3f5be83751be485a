"""The mesh and the shardings that a module states: those of JAX's arguments and constraints.

GSPMD writes them as ``sharding={...}`` and as calls of ``Sharding``, Shardy as frontend attributes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul

from hlo.modules.module import Instruction, Module
from hlo.modules.shardings import shardy_sharding, stated_sharding
from hlo.shapes.shape import leaves
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.sharding import Sharding
from indexing.ops.targets.annotations import Annotation
from indexing.sharding.planning.given_specs import ShardingSpec, argument_numbers


@dataclass(frozen=True)
class StatedShardings:
    """Mesh and shardings in the attributes of a module.

    Attributes:
        mesh: the mesh.
        parameters: the shardings of parameters, by the keys of the specs of `indexing.shard`.
        inner: those of other instructions of ENTRY, which constraints of the program fix.
        results: the sharding of each array of the result; None for one that is not stated.
        left_out: constraints that no plan can take, with the reasons.
    """

    mesh: Mesh
    parameters: Mapping[str, Sharding]
    inner: Mapping[str, Sharding]
    results: tuple[Sharding | None, ...]
    left_out: tuple[str, ...] = ()

    def with_specs(
        self, specs: Mapping[str, ShardingSpec], parameters: Sequence[Instruction]
    ) -> dict[str, ShardingSpec]:
        """Return the stated shardings, replaced by given ones.

        Args:
            specs: the given ones, by the keys of `indexing.shard`.
            parameters: the parameters of the program.
        """
        stated: dict[str, ShardingSpec] = {**self.parameters, **self.inner}
        arguments = argument_numbers(parameters)
        numbered = {
            **{name: parameters[number].name for name, number in arguments.items()},
            **{f"p{number}": each.name for number, each in enumerate(parameters)},
        }
        given = {
            name if name in stated else numbered.get(name, name): spec
            for name, spec in specs.items()
        }
        return stated | given


def stated_shardings(module: Module) -> StatedShardings | None:
    """Return the mesh and the shardings that the attributes of a module state.

    Returns:
        None if no mesh is declared, and the parameters have no shardings over one mesh.
    Raises:
        HloError: an attribute is not a sharding.

    >>> import hlo
    >>> stated = stated_shardings(hlo.parse('''
    ... HloModule m, num_partitions=4
    ... ENTRY e {
    ...   p = f32[8,3] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
    ...   ROOT n = f32[8,3] negate(p) }'''))
    >>> print(stated.mesh, stated.parameters["p"], stated.results)
    axis_0=2,axis_1=2 [axis_0, _] (None,)
    """
    entry = module.entry
    mesh = _mesh_of(module)
    if mesh is None:
        return None
    parameters = {
        key: sharding
        for parameter in entry.parameters
        for key, sharding in _by_leaf(parameter, mesh)
    }
    inner: dict[str, Sharding] = {}
    left_out = []
    results = _results(module, mesh)
    for computation in module.computations.values():
        for call in computation.instructions:
            if not isinstance(call.op, Annotation) or _is_result(call):
                continue
            shardings = [sharding for _, sharding in _by_leaf(call, mesh)]
            if len(shardings) != 1:
                if any(any(s.dims) for s in _shardings(call)):
                    left_out.append(f"the mesh of `{call.name}` is not a part of {mesh}")
                continue
            sharding = shardings[0]
            source = call.operands[0].name
            if computation is not entry:
                left_out.append(f"`{call.name}` is in `{computation.name}`")
            elif inner.get(source, parameters.get(source, sharding)) != sharding:
                left_out.append(f"`{source}` has another sharding than `{call.name}` gives it")
            elif source not in parameters:
                inner[source] = sharding
    return StatedShardings(mesh, parameters, inner, results, tuple(left_out))


def _mesh_of(module: Module) -> Mesh | None:
    """Return the only mesh that is declared, or that all shardings of parameters have."""
    declared = [mesh for mesh in module.meshes.values() if len(mesh.devices) > 1]
    if declared:
        return declared[0] if len(declared) == 1 else None
    given = [s for p in module.entry.parameters for s in _shardings(p)]
    return _common_mesh({s.mesh: None for s in given if len(s.mesh.devices) > 1})


def _common_mesh(meshes: Collection[Mesh]) -> Mesh | None:
    """Return a mesh whose axes, or products of neighbouring axes, are those of each given mesh.

    >>> str(_common_mesh([Mesh.of({"x": 8}), Mesh.of({"y": 2, "z": 4})]))
    'y=2,z=4'
    """
    if len({mesh.devices for mesh in meshes}) != 1:
        return None
    places = sorted({place for mesh in meshes for place in _places(mesh)})
    if any(large % small for small, large in pairwise(places)):
        return None
    for mesh in meshes:
        if _places(mesh) == places:
            return mesh
    sizes = [large // small for small, large in pairwise(places)]
    devices = next(iter(meshes)).devices
    return Mesh.of({f"axis_{k}": size for k, size in enumerate(sizes)}, devices)


def _places(mesh: Mesh) -> list[int]:
    """Return 1, and the product of the sizes of the axes up to each one."""
    return list(accumulate([size for _, size in mesh.axes], mul, initial=1))


def _shardings(instruction: Instruction) -> tuple[Sharding, ...]:
    """Return the stated shardings of the arrays of an instruction, those of Shardy first."""
    stated = shardy_sharding(instruction) or stated_sharding(instruction)
    if stated is None:
        return ()
    return (stated,) if isinstance(stated, Sharding) else tuple(stated)


def _by_leaf(instruction: Instruction, mesh: Mesh) -> Iterator[tuple[str, Sharding]]:
    """Yield the key of each array of an instruction, and its sharding over the mesh."""
    paths = [path for path, _ in leaves(instruction.shape)]
    for path, sharding in zip(paths, _shardings(instruction), strict=False):
        leaf = f"{{{','.join(map(str, path))}}}" if len(paths) > 1 else ""
        if (own := _over(mesh, sharding)) is not None:
            yield instruction.name + leaf, own


def _over(mesh: Mesh, sharding: Sharding) -> Sharding | None:
    """Return a sharding over a mesh, whose axes may have other names; None over another mesh."""
    if sharding.manual or sharding.partial:
        return None
    if not any(sharding.dims):
        return Sharding(mesh, sharding.dims)
    if sharding.mesh.devices != mesh.devices:
        return None
    dims = []
    for axes in sharding.dims:
        own = [_axes_over(mesh, sharding.mesh, axis) for axis in axes]
        if None in own:
            return None
        dims.append(tuple([part for parts in own if parts is not None for part in parts]))
    return Sharding(mesh, tuple(dims))


def _axes_over(mesh: Mesh, other: Mesh, axis: Axis) -> tuple[Axis, ...] | None:
    """Return an axis of another mesh of the same devices as axes of a mesh, or parts of them.

    None if no axes are this axis.
    """
    names = [name for name, _ in other.axes]
    start = _places(other)[names.index(axis.name)] * axis.pre_size
    stop = start * other.size_of(axis)
    parts = []
    for (name, size), first in zip(mesh.axes, _places(mesh), strict=False):
        low, high = max(start, first), min(stop, first * size)
        if low >= high:
            continue
        if low % first or high % low or (first * size) % high:
            return None
        is_whole = high == low * size
        parts.append(Axis(name) if is_whole else Axis(name, low // first, high // low))
    return tuple(parts)


def _is_result(call: Instruction) -> bool:
    """Return True if a call only annotates a result of ENTRY."""
    return call.is_root or all(user.opcode == "tuple" for user in call.users)


def _results(module: Module, mesh: Mesh) -> tuple[Sharding | None, ...]:
    """Return the stated sharding of each array of the result."""
    root = module.entry.root
    own = _shardings(root)
    if not own and root.opcode == "tuple":
        own_by_operand = [_shardings(operand) for operand in root.operands]
        count = len(leaves(root.shape))
        if count != len(root.operands):
            return (None,) * count
        return tuple([_over(mesh, s[0]) if s else None for s in own_by_operand])
    if not own and root.opcode == "get-tuple-element":
        return (None,)
    return tuple([_over(mesh, s) for s in own]) or (None,) * len(leaves(root.shape))
