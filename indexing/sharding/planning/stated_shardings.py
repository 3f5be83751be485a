"""The mesh and the shardings that a module states: those of JAX's arguments and constraints.

GSPMD writes them as ``sharding={...}`` and as calls of ``Sharding``, Shardy as frontend attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hlo.modules.module import Instruction, Module
from hlo.modules.shardings import shardy_sharding, stated_sharding
from hlo.shapes.shape import leaves
from hlo.shardings.mesh import Mesh
from hlo.shardings.sharding import Sharding
from indexing.ops.targets.annotations import Annotation
from indexing.sharding.planning.given_specs import ShardingSpec


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
            specs: the given ones, by the name of an instruction or by ``p0``, ``p1``, …
            parameters: the parameters of the program.
        """
        stated: dict[str, ShardingSpec] = {**self.parameters, **self.inner}
        numbered = {f"p{number}": each.name for number, each in enumerate(parameters)}
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
            if not isinstance(call.op, Annotation):
                continue
            shardings = [sharding for _, sharding in _by_leaf(call, mesh)]
            if len(shardings) != 1 or _is_result(call):
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
    meshes = {s.mesh for s in given if len(s.mesh.devices) > 1}
    return meshes.pop() if len(meshes) == 1 else None


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
    sizes = [size for _, size in sharding.mesh.axes]
    if sizes != [size for _, size in mesh.axes] or sharding.mesh.devices != mesh.devices:
        return None
    names = dict(zip([n for n, _ in sharding.mesh.axes], [n for n, _ in mesh.axes], strict=True))
    dims = [tuple([replace(a, name=names[a.name]) for a in axes]) for axes in sharding.dims]
    return Sharding(mesh, tuple(dims))


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
