"""`shard`: the plan of a program for given shardings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.mesh import Axis
from hlo.text.source import HloError
from indexing.maps.arrays import leaf_name
from indexing.ops.collective_bases import Collective
from indexing.ops.custom_call import target_of
from indexing.ops.devices import DeviceId
from indexing.ops.element import declarations_of
from indexing.sharding.partition.assignment import Assignment
from indexing.sharding.partition.collective_costs import collective_costs
from indexing.sharding.partition.flatten import flatten_with_names
from indexing.sharding.partition.program import Partitioned, partition
from indexing.sharding.planning.exchanges import whole_gathers
from indexing.sharding.planning.given_specs import (
    GivenSpecs,
    MeshSpec,
    ShardingSpec,
    given_specs,
    mesh_of_spec,
)
from indexing.sharding.planning.liveness import peak_bytes
from indexing.sharding.planning.plan import (
    LeafSharding,
    PaddedDimension,
    Plan,
    PlannedCollective,
    PlanReason,
)
from indexing.sharding.planning.propagation import GivenSplits, Propagated, propagate
from indexing.sharding.planning.refined_meshes import RefinedMesh
from indexing.sharding.planning.stated_shardings import StatedShardings, stated_shardings
from simplifier.unknown import Unknown

_MANUAL = "xla.sdy.GlobalToLocalShape"


@checked
def shard(
    program: Module | Computation,
    mesh: MeshSpec | None = None,
    specs: Mapping[str, ShardingSpec] | None = None,
    *,
    out_specs: Sequence[ShardingSpec | None] | None = None,
    replicated: Mapping[str, Sequence[str]] | None = None,
    manual_axes: Sequence[str] = (),
) -> Plan:
    """Divide a program over the devices of a mesh, from the shardings of its parameters.

    Shardings propagate forward and backward along the factors of each instruction
    (`sharding_rule`).  Where they conflict, the choice with the least cost over the whole program
    is taken: bytes that devices send, and work that is not divided.  Partial sums stay partial as
    long as that costs less.  Arrays that loops carry have one sharding in all iterations.

    Args:
        program: a module, whose entry is divided, or one computation.
        mesh: the sizes of the axes by name, such as ``{"x": 4, "y": 2}`` or ``"x=4,y=2"``.  Without
            one, the mesh and the shardings that the attributes of the module state are taken.
        specs: the axes that split each dimension of a parameter, by its name, by that of its
            argument in JAX, such as ``p['q']``, or by ``p0``, ``p1``, …: axes such as
            ``("x", None)``, ``(("x", "y"), None)`` or ``"x,_"``.  The leaf of a tuple is
            named ``p0{1}``.  Other parameters are replicated.  The name of another instruction of
            the entry fixes its sharding.
        out_specs: one spec for each array of the result; None for a free one, which is the default.
        replicated: axes that must not split an array, by its name.
        manual_axes: axes that the planner must not use.
    Returns:
        The plan.  Sizes that the shards do not divide are padded (`Plan.reasons`).
    Raises:
        HloError: a spec does not fit its array, or the program already exchanges values between
            devices, or an instruction has no local form.
        UnknownName: no parameter has such a name.
        ValueError: an axis does not exist or is used twice, or a size is not a positive integer.
    Source: Y. Xu et al., "GSPMD: general and scalable parallelization for ML computation graphs",
        2021; Shardy ``docs/propagation.md``.

    >>> import hlo, indexing
    >>> module = hlo.parse('''ENTRY mlp {
    ...   x = f32[8,16] parameter(0)  a = f32[16,32] parameter(1)  b = f32[32,16] parameter(2)
    ...   h = f32[8,32] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ...   t = f32[8,32] tanh(h)
    ...   ROOT y = f32[8,16] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }''')
    >>> plan = indexing.shard(module, {"x": 4}, {"a": (None, "x"), "b": ("x", None)})
    >>> [(c.kind, c.instruction, c.bytes_sent) for c in plan.collectives]
    [('all-reduce', 'y', 768)]
    >>> print(plan.specs["t"], plan.bytes_sent, plan.peak_bytes)
    [_, x] 768 2560
    """
    computation = program.entry if isinstance(program, Module) else program
    if mesh is None:
        stated = _stated_shardings(computation)
        mesh, specs = stated.mesh, stated.with_specs(specs or {}, computation.parameters)
        out_specs = stated.results if out_specs is None else out_specs
    original = mesh_of_spec(mesh)
    _check_program(computation)
    flat, names = flatten_with_names(computation)
    given = given_specs(
        flat, computation, names, original, specs or {}, out_specs, replicated or {}, manual_axes
    )
    refined, result = _propagate_refined(flat, given)
    return _plan(flat, refined, result, partition(result.assignment, flat))


def _stated_shardings(computation: Computation) -> StatedShardings:
    """Return the shardings that the attributes of an entry state."""
    stated = stated_shardings(computation.module) if computation.is_entry else None
    if stated is None:
        raise ValueError("shard: pass `mesh`: the module states no shardings over one mesh")
    return stated


def _check_program(computation: Computation) -> None:
    """Check that the program does not distribute its arrays itself."""
    waiting, seen = [computation], {computation}
    while waiting:
        for instruction in waiting.pop().instructions:
            if target_of(instruction) == _MANUAL:
                raise HloError(
                    f"`{instruction.name}` begins a manual region, in which the program itself "
                    "distributes arrays",
                    instruction.span,
                    "sharding",
                    help="shard the program without shard_map",
                )
            if isinstance(instruction.op, (Collective, DeviceId)):
                raise HloError(
                    f"{instruction.opcode} `{instruction.name}`: the program is already divided "
                    "over devices",
                    instruction.span,
                    "sharding",
                    help="shard the program before it is partitioned",
                )
            for called in instruction.called_computations:
                if called not in seen:
                    seen.add(called)
                    waiting.append(called)


def _propagate_refined(flat: Module, given: GivenSpecs) -> tuple[RefinedMesh, Propagated]:
    """Propagate on a mesh that is refined until no factor needs a part of an axis."""
    used = list(given.axes)
    while True:
        refined = RefinedMesh.of(given.mesh, used)
        leaves_of = {leaf: refined.split(sharding) for leaf, sharding in given.leaves.items()}
        results = tuple([None if s is None else refined.split(s) for s in given.results])
        banned = {
            leaf: frozenset(name for axis in axes for name in refined.names(axis))
            for leaf, axes in given.replicated.items()
        }
        result = propagate(flat, refined.mesh, GivenSplits(leaves_of, results, banned))
        if not result.cuts:
            return refined, result
        by_name = {str(part): part for part in refined.parts}
        used += [
            Axis(by_name[name].name, by_name[name].pre_size, size)
            for name, size in result.cuts.items()
        ]


def _plan(flat: Module, refined: RefinedMesh, result: Propagated, local: Partitioned) -> Plan:
    assignment = result.assignment
    collectives = tuple(_collectives(refined, local))
    gathers = [
        replace(each, source=refined.sharding(each.source)) for each in whole_gathers(assignment)
    ]
    reasons: tuple[PlanReason, ...] = (*gathers, *_padded_dimensions(assignment))
    return Plan(
        program=flat,
        module=local.module,
        mesh=refined.original,
        assignment=assignment,
        specs=_specs(flat, refined, assignment),
        collectives=collectives,
        halos=tuple([each for each in collectives if "halo" in each.reason]),
        peak_bytes=peak_bytes(local.module),
        reasons=reasons,
        is_cheapest=result.is_cheapest,
    )


def _collectives(refined: RefinedMesh, local: Partitioned) -> Iterator[PlannedCollective]:
    planned = {each.name: each for each in local.collectives}
    for cost in collective_costs(local.module, refined.mesh):
        assert not isinstance(cost.bytes_sent, Unknown)  # the partitioner writes none of these
        instruction = cost.instruction
        source = planned[instruction.name]
        axes = [axis.name for axis in source.axes or cost.axes]
        needed_by = source.instruction
        computation = instruction.computation
        yield PlannedCollective(
            kind=cost.kind,
            axes=refined.merge_parts(axes),
            bytes_sent=cost.bytes_sent,
            executions=cost.executions,
            instruction=needed_by.name if needed_by else "",
            loop="" if computation.is_entry else computation.name,
            name=instruction.name,
            reason=source.reason,
        )


def _specs(
    flat: Module, refined: RefinedMesh, assignment: Assignment
) -> Mapping[str, LeafSharding]:
    specs: dict[str, LeafSharding] = {}
    for instruction, own in assignment.instructions.items():
        shardings = tuple([refined.sharding(each) for each in own.results])
        is_array = isinstance(instruction.shape, Shape)
        specs[_qualified_name(instruction)] = shardings[0] if is_array else shardings
    return specs


def _qualified_name(instruction: Instruction) -> str:
    computation = instruction.computation
    return instruction.name if computation.is_entry else f"{computation.name}/{instruction.name}"


def _padded_dimensions(assignment: Assignment) -> Iterator[PaddedDimension]:
    for instruction, own in assignment.instructions.items():
        declared = declarations_of(instruction)
        if declared.is_view and declared.passes_leaves:
            continue  # its arrays are those of other instructions
        for (path, shape), sharding in zip(leaves(instruction.shape), own.results, strict=True):
            name = leaf_name(_qualified_name(instruction), path)
            for dim, size in enumerate(shape.dims if isinstance(shape, Shape) else ()):
                if size % sharding.shards(dim):
                    yield PaddedDimension(name, dim, size, sharding.shards(dim))
