"""`partition`: the program that every device executes on its shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hlo.arguments import checked
from hlo.modules.calls import callees_of
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaves
from hlo.shardings.mesh import Axis as Axis
from hlo.shardings.mesh import Mesh as Mesh
from hlo.shardings.printing import hlo_text
from hlo.shardings.sharding import Sharding
from indexing.maps.arrays import Path, array_leaves
from indexing.ops.control import BRANCHES
from indexing.ops.element import declarations_of
from indexing.ops.structure import ForwardingOp, GetTupleElement
from indexing.sharding.partition.assignment import Assignment, InstructionAssignment
from indexing.sharding.partition.executed_computations import computations_of, require_local_form
from indexing.sharding.partition.local_ops import local_results
from indexing.sharding.partition.moves import Axes, cheapest_moves, same_axes
from indexing.sharding.partition.reshard import reshard
from indexing.sharding.partition.split_instruction import (
    SplitInstruction,
    array_shapes,
    local_shape,
    sharding_of,
)
from indexing.sharding.partition.usable_splits import usable_axes
from indexing.sharding.partition.writer import (
    LocalBody,
    LocalProgram,
    LocalValue,
    ShardCollective,
)
from indexing.sharding.rules.sharding_rules import ShardingRule


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A program on shards.

    Attributes:
        module: the program that each device executes; partition p is device p of the mesh.
        collectives: its collectives, in the order of their channels.
        parameters: the sharding of each array of the parameters.
        results: the sharding of each array of the result.
    """

    module: Module
    collectives: tuple[ShardCollective, ...]
    parameters: tuple[Sharding, ...]
    results: tuple[Sharding, ...]


@dataclass(frozen=True, slots=True)
class ShardedArray:
    """An array of the global program on one device.

    Attributes:
        value: the shard.
        shape: the global shape.
        sharding: the sharding.
    """

    value: LocalValue
    shape: Shape
    sharding: Sharding


@checked
def partition(assignment: Assignment, module: Module) -> Partitioned:
    """Return the program that each device executes on its shards.

    An operand is resharded from the sharding it has to the one that the factors' axes need; partial
    results are combined, and results resharded to what users find. Where an op cannot work on
    shards of a dimension, it works on the whole dimension, and the result is sliced.

    Args:
        assignment: the shardings of all instructions that the program executes.
        module: a flat program (`indexing.sharding.partition.flatten`).
    Raises:
        HloError: an instruction has no local form: it exchanges values with other devices or the
            host, has a dynamic shape, or calls a computation that is not flattened.
        ValueError: the assignment misses an instruction, or contradicts itself.

    >>> import hlo, indexing
    >>> module = hlo.parse('''ENTRY e {
    ...   p = f32[8,16] parameter(0)  q = f32[16,4] parameter(1)
    ...   ROOT d = f32[8,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }''')
    >>> mesh, x = Mesh.of({"x": 2}), Axis("x")
    >>> p, q, d = module.entry.instructions
    >>> columns, rows, whole = (Sharding(mesh, dims) for dims in (((), (x,)), ((x,), ()), ((), ())))
    >>> rule = indexing.sharding_rule
    >>> assigned = {p: InstructionAssignment(rule(p), (), (columns,)),
    ...   q: InstructionAssignment(rule(q), (), (rows,)),
    ...   d: InstructionAssignment(rule(d), ((), (), (x,)), (whole,))}
    >>> local = partition(Assignment(mesh, assigned), module)
    >>> [i.opcode for i in local.module.entry]
    ['parameter', 'parameter', 'dot', 'all-reduce']
    >>> [(c.kind, c.bytes_sent) for c in local.collectives]
    [('all-reduce', 128)]
    """
    program = LocalProgram(module.name, assignment.mesh)
    executed, applied = computations_of(module.entry)
    for computation in applied:
        program.texts[computation.name] = str(computation)
    for computation in executed:
        _ComputationPartitioner(program, assignment, computation).partition()
    entry = module.entry
    assigned = assignment.instructions
    parameters = [s for parameter in entry.parameters for s in assigned[parameter].results]
    results = assigned[entry.root].results
    local = program.module(entry.name)
    return Partitioned(local, tuple(program.collectives), tuple(parameters), results)


class _ComputationPartitioner:
    """Makes the local form of one computation."""

    def __init__(
        self, program: LocalProgram, assignment: Assignment, computation: Computation
    ) -> None:
        self.body = LocalBody(program, computation.name)
        self.assignment = assignment
        self.mesh = assignment.mesh
        self.computation = computation
        self.arrays: dict[Instruction, list[ShardedArray]] = {}
        self.copies: dict[tuple[str, Shape, Sharding], list[ShardedArray]] = {}

    def partition(self) -> None:
        """Add the local computation to the program."""
        for instruction in self.computation.instructions:
            self.body.instruction = instruction
            require_local_form(instruction)
            arrays = self._arrays(instruction)
            wanted = self._assignment_of(instruction).results
            if len(wanted) != len(arrays):
                counts = f"{len(wanted)} shardings for {len(arrays)} arrays"
                raise ValueError(f"the assignment of `{instruction.name}` has {counts}")
            self.arrays[instruction] = []
            for array, sharding in zip(arrays, wanted, strict=True):
                self.body.reason = _reason(instruction, array.sharding, sharding)
                self.arrays[instruction].append(self._reshard_array(array, sharding))
        root = self.computation.root
        packed = self._pack_arrays(root.shape, [a.value for a in self.arrays[root]])
        self.body.finish(packed, self._stated_shardings(root))

    def _assignment_of(self, instruction: Instruction) -> InstructionAssignment:
        try:
            return self.assignment.instructions[instruction]
        except KeyError:
            raise ValueError(f"the assignment misses `{instruction.name}`") from None

    def _stated_shardings(self, instruction: Instruction) -> str:
        """Return the attribute with the shardings of a parameter or result of the program."""
        shardings = self._assignment_of(instruction).results
        is_stated = self.computation.is_entry and not any(each.partial for each in shardings)
        if not shardings or not is_stated:
            return ""
        stated = shardings if isinstance(instruction.shape, TupleShape) else shardings[0]
        try:
            return f"sharding={hlo_text(stated)}"
        except ValueError:  # the tiles are no permuted iota
            return f"sharding={hlo_text(stated, 1)}"

    # ------------------------------------------------------------ instructions

    def _arrays(self, instruction: Instruction) -> list[ShardedArray]:
        """Add the local instructions and return the arrays of the result."""
        match instruction.opcode:
            case "parameter":
                return self._parameter(instruction)
            case "tuple":
                return [array for op in instruction.operands for array in self.arrays[op]]
            case "get-tuple-element":
                return self._element(instruction)
            case "constant":
                return [self._constant(instruction)]
        declared = declarations_of(instruction)
        if declared.is_control_flow:
            return self._branching(instruction)
        if issubclass(declared, ForwardingOp):
            return self._forward_arrays(instruction)
        return self._compute_instruction(instruction)

    def _parameter(self, instruction: Instruction) -> list[ShardedArray]:
        assigned = self._assignment_of(instruction).results
        assert instruction.literal is not None
        shape = _local(instruction.shape, assigned)
        value = self.body.add(
            "parameter",
            shape,
            attributes=self._stated_shardings(instruction),
            name=instruction.name,
            literal=instruction.literal.normal,
        )
        return self._unpack_value(instruction.shape, value, assigned)

    def _element(self, instruction: Instruction) -> list[ShardedArray]:
        op, (operand,) = instruction.op, instruction.operands
        assert isinstance(op, GetTupleElement)
        paths = [path for _, path, _ in array_leaves(operand.shape)]
        arrays = zip(paths, self.arrays[operand], strict=True)
        return [array for path, array in arrays if path[0] == op.index]

    def _constant(self, instruction: Instruction) -> ShardedArray:
        shape = instruction.shape
        assert isinstance(shape, Shape)
        assert instruction.literal is not None
        plain, literal = shape.with_layout(None), instruction.literal.line
        if shape.rank:
            value = self.body.add("constant", plain, literal=literal, name=instruction.name)
        else:
            value = self.body.scalar(plain, literal)
        return ShardedArray(value, plain, self._whole(plain))

    def _forward_arrays(self, instruction: Instruction) -> list[ShardedArray]:
        (operand,) = instruction.operands
        if not instruction.opcode.endswith("barrier"):
            return self.arrays[operand]
        held = self.arrays[operand]
        packed = self._pack_arrays(operand.shape, [array.value for array in held])
        value = self.body.add(instruction.opcode, packed.shape, (packed,), name=instruction.name)
        return self._unpack_value(operand.shape, value, [array.sharding for array in held])

    def _branching(self, instruction: Instruction) -> list[ShardedArray]:
        """Add a loop or a conditional: operands as the called computations need them."""
        self.body.reason = f"{instruction.opcode} `{instruction.name}` carries it so"
        assigned = self._assignment_of(instruction).results
        called = callees_of(instruction)
        returning = [c for name, those in called.items() for c in those if name != "condition"]
        for computation in returning:
            self._require(instruction, computation.root, assigned)
        operands = []
        for operand, parameter in _arguments(instruction):
            if parameter is None:
                needed = tuple(self._whole(shape) for shape in array_shapes(operand))
            else:
                needed = self._assignment_of(parameter).results
            pairs = zip(self.arrays[operand], needed, strict=True)
            arrays = [self._reshard_array(array, sharding) for array, sharding in pairs]
            operands.append(self._pack_arrays(operand.shape, [array.value for array in arrays]))
        if instruction.opcode == "while":
            for computation in called["condition"]:
                self._require(instruction, computation.parameters[0], assigned)
            self._require(instruction, called["body"][0].parameters[0], assigned)
        split = SplitInstruction(instruction, self._assignment_of(instruction).rule, (), [], [], [])
        shape = _local(instruction.shape, assigned)
        value = self.body.add(instruction.opcode, shape, operands, split.attributes(),
                              name=instruction.name)  # fmt: skip
        return self._unpack_value(instruction.shape, value, assigned)

    def _require(
        self, caller: Instruction, value: Instruction, shardings: Sequence[Sharding]
    ) -> None:
        """Check that a parameter or a root has the shardings of its caller's arrays."""
        given = self._assignment_of(value).results
        if not all(map(same_axes, given, shardings)):
            listed = [", ".join(map(str, each)) for each in (given, shardings)]
            message = f"`{value.name}` has the shardings {listed[0]}"
            raise ValueError(f"{message}, but `{caller.name}` has {listed[1]}")

    def _compute_instruction(self, instruction: Instruction) -> list[ShardedArray]:
        """Add an instruction that computes on shards, or on whole arrays."""
        assigned = self._assignment_of(instruction)
        rule, shapes = assigned.rule, array_shapes(instruction)
        axes = usable_axes(instruction, rule, assigned.factor_axes, self.mesh)
        held = [array for operand in instruction.operands for array in self.arrays[operand]]
        needed = [sharding_of(dims, axes, self.mesh) for dims in rule.operands]
        partial = dict(_partial(rule, axes))
        for number, kept in enumerate(assigned.partial):
            if kept:
                needed[number] = replace(needed[number], partial=tuple(kept))
                partial |= dict(kept)
        results = [sharding_of(dims, axes, self.mesh) for dims in rule.results]
        if partial:
            results = [replace(each, partial=tuple(partial.items())) for each in results]
        operands = []
        for number, (array, sharding) in enumerate(zip(held, needed, strict=True)):
            self.body.reason = f"operand {number} of `{instruction.name}` is needed as {sharding}"
            operands.append(self._reshard_array(array, sharding).value)
        split = SplitInstruction(instruction, rule, axes, operands, needed, results)
        if any(isinstance(operand.shape, TupleShape) for operand in instruction.operands):
            split.operands = list(self._repack_operands(instruction, operands))
        values = local_results(self.body, split)
        return [
            ShardedArray(value, shape.with_layout(None), sharding)
            for value, shape, sharding in zip(values, shapes, split.results, strict=True)
        ]

    # ------------------------------------------------------------ arrays and tuples

    def _whole(self, shape: Shape) -> Sharding:
        return Sharding(self.mesh, ((),) * shape.rank)

    def _reshard_array(self, array: ShardedArray, sharding: Sharding) -> ShardedArray:
        """Return an array in a sharding, made of the copy from which it sends the fewest bytes."""
        key = array.value.name, array.shape, array.sharding
        copies = self.copies.setdefault(key, [array])
        for copy in copies:
            if same_axes(copy.sharding, sharding):
                return ShardedArray(copy.value, array.shape, sharding)
        best = min(copies, key=lambda copy: _bytes_between(copy, sharding))
        value = reshard(self.body, best.value, array.shape, best.sharding, sharding)
        copies.append(ShardedArray(value, array.shape, sharding))
        return copies[-1]

    def _repack_operands(
        self, instruction: Instruction, values: Sequence[LocalValue]
    ) -> Iterator[LocalValue]:
        """Yield the operands of an instruction of which some are tuples."""
        start = 0
        for operand in instruction.operands:
            end = start + len(array_shapes(operand))
            yield self._pack_arrays(operand.shape, values[start:end])
            start = end

    def _pack_arrays(self, shape: AnyShape, values: Sequence[LocalValue]) -> LocalValue:
        """Return arrays as a value of the structure of `shape`."""
        if not isinstance(shape, TupleShape):
            return values[0]
        elements, start = [], 0
        for element in shape.elements:
            end = start + len(leaves(element))
            elements.append(self._pack_arrays(element, values[start:end]))
            start = end
        return self.body.tuple_of(elements)

    def _unpack_value(
        self, shape: AnyShape, value: LocalValue, shardings: Sequence[Sharding]
    ) -> list[ShardedArray]:
        """Return the arrays of a value."""
        parts: dict[Path, LocalValue] = {(): value}
        arrays = []
        for (_, path, leaf), sharding in zip(array_leaves(shape), shardings, strict=True):
            for end in range(1, len(path) + 1):
                if path[:end] not in parts:
                    outer, number = parts[path[: end - 1]], path[end - 1]
                    assert isinstance(outer.shape, TupleShape)
                    part = outer.shape.elements[number]
                    element = self.body.add("get-tuple-element", part, (outer,), f"index={number}")
                    parts[path[:end]] = element
            arrays.append(ShardedArray(parts[path], leaf.with_layout(None), sharding))
        return arrays


def _partial(rule: ShardingRule, axes: Sequence[Axes]) -> Iterator[tuple[Axis, str]]:
    """Yield the axes along which a local instruction makes partial results."""
    for factor, split in zip(rule.factors, axes, strict=True):
        if factor.kind == "reduction":
            yield from ((axis, factor.reduction) for axis in split)


def _reason(instruction: Instruction, made: Sharding, used: Sharding) -> str:
    """Return the reason why a result is resharded."""
    name, kinds = instruction.name, dict.fromkeys(kind for _, kind in made.partial)
    if kinds:
        return f"the partial results of `{name}` are combined ({', '.join(kinds)})"
    return f"`{name}` is made as {made} and used as {used}"


def _bytes_between(array: ShardedArray, sharding: Sharding) -> float:
    """Return the bytes that a device sends to make an array of another sharding."""
    if not set(sharding.partial) <= set(array.sharding.partial):
        return float("inf")
    if not array.shape.size:
        return 0
    moves = cheapest_moves(array.shape.with_layout(None), array.sharding, sharding)
    return sum(move.bytes_sent for move in moves)


def _arguments(instruction: Instruction) -> Iterator[tuple[Instruction, Instruction | None]]:
    """Yield operands, each with the parameter that receives it; None for a branch index."""
    called = callees_of(instruction)
    if instruction.opcode == "while":
        yield instruction.operands[0], called["body"][0].parameters[0]
        return
    index, *operands = instruction.operands
    branches = [branch for name in BRANCHES for branch in called.get(name, ())]
    yield index, None
    for operand, branch in zip(operands, branches, strict=True):
        yield operand, branch.parameters[0]


def _local(shape: AnyShape, shardings: Sequence[Sharding]) -> AnyShape:
    """Return the shape of a value on one device."""
    remaining = iter(shardings)

    def part(shape: AnyShape) -> AnyShape:
        if isinstance(shape, TupleShape):
            return TupleShape(tuple([part(element) for element in shape.elements]))
        assert isinstance(shape, Shape)
        return local_shape(shape, next(remaining))

    return part(shape)
