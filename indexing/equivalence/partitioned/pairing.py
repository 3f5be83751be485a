"""`PartitionedPair`: a global program and the program of one device, with their shardings.

The shardings of parameters and results are those that the instructions state in ``sharding={...}``,
of the global program or, where it states none, of the device's program.  An array of a result tuple
may state its own, by the annotation that computes it or by the border of a manual region that it
leaves.  An array of equal shape in both programs,
without a sharding, is replicated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hlo.modules.calls import callees_of
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.shardings import stated_sharding
from hlo.shapes.shape import Shape
from hlo.shardings.mesh import Mesh
from hlo.shardings.sharding import Sharding
from indexing.dataflow.needed import dependencies_of
from indexing.devices.devices import Devices
from indexing.equivalence.pairing import Leaf, Pair, Program, Side
from indexing.equivalence.partitioned.distribution import Distribution
from indexing.execution.mesh import has_regions
from indexing.maps.answers import Unknown
from indexing.maps.arrays import Path, array_leaves
from indexing.ops.collective_bases import Collective
from indexing.ops.custom_call import FULL_TO_SHARD, SHARD_TO_FULL, TO_GLOBAL, TO_LOCAL, target_of
from indexing.ops.devices import DeviceId
from indexing.ops.structure import GetTupleElement, Tuple
from indexing.ops.targets.annotations import FuncResultSharding, ShardingCall
from indexing.ops.targets.regions import border_sharding


@dataclass(frozen=True, slots=True)
class PartitionedPair:
    """A global program and the program that each device executes.

    Attributes:
        before: the global program.
        after: the program of one device.
        inputs: the distribution of each parameter leaf, in the order of ``before.inputs``.
        outputs: the distribution of each output leaf.
        devices: the devices.
        assumed: the arrays that are taken as replicated because no sharding is stated.
    """

    before: Side
    after: Side
    inputs: tuple[Distribution, ...]
    outputs: tuple[Distribution, ...]
    devices: Devices
    assumed: tuple[str, ...]

    @property
    def sides(self) -> Pair:
        """Both programs, whose shapes differ."""
        return Pair(self.before, self.after)

    @property
    def note(self) -> str:
        """The way of the comparison, in words."""
        text = f"compared by global index: {self.devices.count} devices execute the program after"
        if self.assumed:
            text += f"; {', '.join(self.assumed)} without a sharding: taken as replicated"
        return text


def partitioned_pair(
    before: Program, after: Program, parameters: Mapping[int, int] | None = None
) -> PartitionedPair | Unknown | None:
    """Return the correspondence of a global program and its partition among devices.

    Returns:
        None if `after` is not the program of one device while `before` is a global program; or the
        reason if a sharding is not known.

    >>> import hlo, indexing.ops
    >>> text = '''HloModule m, num_partitions=2
    ... ENTRY e { ROOT p = f32[%s] parameter(0), sharding={devices=[2]<=[2]} }'''
    >>> pair = partitioned_pair(hlo.parse(text % 6), hlo.parse(text % 3))
    >>> pair.inputs[0].offsets(0), pair.note
    ((0, 3), 'compared by global index: 2 devices execute the program after')
    """
    if not isinstance(before, Module) or not isinstance(after, Module):
        return None
    if not is_partitioning(before, after):
        return None
    devices = Devices.of(after)
    if devices.num_replicas > 1:
        return Unknown("the program after runs on several replicas, which have no global arrays")
    pairing = _corresponding(before, after, parameters or {})
    if isinstance(pairing, Unknown):
        return pairing
    inputs, outputs = pairing
    assumed: list[str] = []
    known: list[list[Distribution]] = []
    for word, arrays in (("parameter", inputs), ("output", outputs)):
        known.append([])
        for number, (ours, theirs) in enumerate(arrays):
            label = f"{word} {number}"
            given = _distribution(ours, theirs, devices.count, label, assumed)
            if isinstance(given, Unknown):
                return given
            known[-1].append(given)
    sides = [
        Side(
            module.entry.root,
            tuple([n for n, *_ in array_leaves(module.entry.root.shape)]),
            tuple([pair[k].leaf for pair in inputs]),
        )
        for k, module in enumerate((before, after))
    ]
    return PartitionedPair(
        sides[0], sides[1], tuple(known[0]), tuple(known[1]), devices, tuple(assumed)
    )


def is_partitioning(before: Module, after: Module) -> bool:
    """Return True if `after` is a program of one of several devices, and `before` a global one."""
    if Devices.of(after).count < 2 or runs_on_devices(before):
        return False
    return runs_on_devices(after) or _shapes(before) != _shapes(after)


def runs_on_devices(module: Module) -> bool:
    """Return True if a module depends on the device outside of manual regions."""
    return any(
        isinstance(instruction.op, Collective | DeviceId)
        for instruction in _outside_regions(module.entry.root)
    )


def _outside_regions(root: Instruction) -> Iterator[Instruction]:
    """Yield the instructions that a root needs, without those of manual regions."""
    bordered = has_regions(root.module)  # a partition keeps the mark of manual instructions
    seen: set[Computation] = set()
    waiting = [root]
    while waiting:
        local: set[Instruction] = set()
        for instruction in dependencies_of([waiting.pop()]):
            name = target_of(instruction)
            reads_local = any(each in local for each in instruction.operands)
            enters, leaves = name in (FULL_TO_SHARD, TO_LOCAL), name in (SHARD_TO_FULL, TO_GLOBAL)
            if enters or (reads_local and not leaves):
                local.add(instruction)
            elif not (bordered and _is_manual(instruction)):
                yield instruction
                for computations in callees_of(instruction).values():
                    for computation in computations:
                        if computation not in seen:
                            seen.add(computation)
                            waiting.append(computation.root)


def _is_manual(instruction: Instruction) -> bool:
    text = instruction.attributes.get("sharding")
    return text is not None and "manual" in text.printed


def _shapes(module: Module) -> list[object]:
    roots = [*module.entry.parameters, module.entry.root]
    return [
        [(leaf.element_type, leaf.dims) for *_, leaf in array_leaves(root.shape)] for root in roots
    ]


# ---------------------------------------------------------------- shardings


@dataclass(frozen=True, slots=True)
class StatedArray:
    """A leaf of a parameter or of the result, with the sharding that its instruction states."""

    leaf: Leaf
    shape: Shape
    sharding: Sharding | None


def stated_arrays(instruction: Instruction) -> list[StatedArray]:
    """Return the arrays of an instruction's value with their shardings."""
    stated = stated_sharding(instruction)
    arrays = []
    for number, path, shape in array_leaves(instruction.shape):
        sharding = stated[number] if isinstance(stated, tuple) else stated
        if sharding is None:
            sharding = _annotation_of(instruction, path)
        if sharding is not None and sharding.hints.is_unknown:
            sharding = None
        arrays.append(StatedArray((instruction, path), shape, sharding))
    return arrays


def _annotation_of(instruction: Instruction, path: Path) -> Sharding | None:
    """Return the sharding of a leaf of a tuple that the annotation of its value states."""
    while isinstance(instruction.op, Tuple) and path:
        instruction, path = instruction.operands[path[0]], path[1:]
    if isinstance(instruction.op, GetTupleElement):
        path, instruction = (instruction.op.index, *path), instruction.operands[0]
    if target_of(instruction) == TO_GLOBAL and len(path) <= 1:
        return border_sharding(instruction, path[0] if path else 0)
    if path or not isinstance(instruction.op, ShardingCall | FuncResultSharding):
        return None
    stated = stated_sharding(instruction)
    return stated if isinstance(stated, Sharding) else None


Arrays: TypeAlias = list[tuple[StatedArray, StatedArray]]


def _corresponding(
    before: Module, after: Module, parameters: Mapping[int, int]
) -> tuple[Arrays, Arrays] | Unknown:
    """Return the corresponding arrays of the parameters and of the results."""
    own, other = before.entry.parameters, after.entry.parameters
    numbers = [parameters.get(k, k) for k in range(len(own))]
    if sorted(numbers) != list(range(len(other))):
        counts = f"{len(own)} before, {len(other)} after"
        return Unknown(f"the parameters do not correspond one to one: {counts}")
    inputs: Arrays = []
    for parameter, number in zip(own, numbers, strict=True):
        pair = _pair_arrays(stated_arrays(parameter), stated_arrays(other[number]), "parameter")
        if isinstance(pair, Unknown):
            return pair
        inputs += pair
    outputs = _pair_arrays(
        stated_arrays(before.entry.root), stated_arrays(after.entry.root), "output"
    )
    return outputs if isinstance(outputs, Unknown) else (inputs, outputs)


def _pair_arrays(
    ours: Sequence[StatedArray], theirs: Sequence[StatedArray], word: str
) -> Arrays | Unknown:
    if len(ours) != len(theirs):
        return Unknown(f"the programs have {len(ours)} and {len(theirs)} {word} arrays")
    return list(zip(ours, theirs, strict=True))


def _distribution(
    before: StatedArray, after: StatedArray, count: int, label: str, assumed: list[str]
) -> Distribution | Unknown:
    """Return the distribution of an array over `count` devices, or the reason why it is unknown."""
    shapes = [str(each.shape.with_layout(None)) for each in (before, after)]
    where = f"{label} is {shapes[0]} before and {shapes[1]} on each device after"
    if before.shape.element_type != after.shape.element_type or before.shape.is_dynamic:
        return Unknown(where)
    dims = before.shape.dims
    whole = Sharding(Mesh((), ()), ((),) * len(dims))
    stated = [
        whole if _is_whole(each.sharding) else each.sharding
        for each in (before, after)
        if each.sharding is not None
    ]
    if not stated:
        if dims != after.shape.dims:
            return Unknown(f"{where}, and neither program states its sharding")
        assumed.append(label)
        return Distribution(whole, dims, count)
    if len(stated) == 2 and not stated[0].same_distribution(stated[1]):
        return Unknown(f"{label} is distributed as {stated[0]} before and {stated[1]} after")
    fault = _fault(stated[0], dims, after.shape.dims, count)
    if fault:
        return Unknown(f"{where}, and its sharding {stated[0].to_hlo()} {fault}")
    return Distribution(stated[0], dims, count)


def _is_whole(sharding: Sharding) -> bool:
    """Return True if each device holds the whole array, however many devices the program names."""
    is_divided = any(sharding.dims) or sharding.partial or sharding.manual
    return not is_divided and not sharding.mesh.is_maximal


def _fault(sharding: Sharding, dims: Sequence[int], local: tuple[int, ...], count: int) -> str:
    """Return why a sharding does not give each device a shard of these sizes; empty if it does."""
    if sharding.partial:
        return "leaves partial values"
    if sharding.manual:
        return "is manual"
    if any(sharding.dims) and sorted(sharding.mesh.devices) != list(range(count)):
        return f"does not distribute over devices 0 to {count - 1}"
    if sharding.mesh.is_maximal:
        return "holds the array on one device only"
    if sharding.local_dims(dims) != local:
        return f"gives each device {list(sharding.local_dims(dims))}"
    return ""
