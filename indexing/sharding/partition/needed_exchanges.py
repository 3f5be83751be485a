"""The fewest bytes that the maps of a program need each collective to send.

The elements of a collective's result that an output needs, on whatever device, are those that its
maps reach.  Let an element be needed on *m* devices of its group.

* If it is moved, each of these devices receives it, unless it has sent it to itself.
* If it is reduced from *c* devices, all of these are connected to a device that combines, and that
  device to the others that need the result: ``c + m - 2`` messages, or one more if no device both
  contributes and needs.  A device whose operand there is a constant contributes nothing.

Devices send at least the mean; the program may send as little by another collective, such as a
reduce-scatter in place of an all-reduce of which each device reads its part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hlo.arguments import checked
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.device_edges import DeviceEdges
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.walk import Walk
from indexing.devices.devices import Devices, GroupsError
from indexing.devices.strided_groups import strided_group
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.memory.movement.point_counts import Counter, Maps
from indexing.ops.collective_bases import Collective, GroupedCollective, ReducingCollective
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown


@checked
def needed_exchanges(module: Module) -> dict[Instruction, int | Unknown]:
    """Return the fewest bytes that each collective of ENTRY needs to send, on the busiest device.

    Args:
        module: a program for the devices of its header.
    Returns:
        A lower bound for each collective, by its instruction; `Unknown` where maps are
        over-approximations.  Collectives in loops and branches are left out.
    Raises:
        HloError: an instruction is invalid.

    >>> import hlo
    >>> module = hlo.parse('''HloModule m, num_partitions=4
    ... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ... ENTRY e { p = f32[8,6] parameter(0)  s = f32[8,6] all-reduce(p), channel_id=1,
    ...     replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
    ...   i = u32[] partition-id()  two = u32[] constant(2)  o = u32[] multiply(i, two)
    ...   z = u32[] constant(0)
    ...   ROOT r = f32[2,6] dynamic-slice(s, o, z), dynamic_slice_sizes={2,6} }''')
    >>> needed_exchanges(module)[module.entry["s"]]     # an all-reduce sends 288
    144
    """
    collectives = [i for i in module.entry if isinstance(i.op, Collective)]
    if not collectives:
        return {}
    needs = Needs.of(module)
    return {each: needs.bytes_sent(each, each.op) for each in collectives}  # type: ignore[arg-type]


@dataclass(slots=True)
class Needs:
    """The elements of all arrays of ENTRY that its outputs need.

    Attributes:
        devices: the devices of the program.
        walk: the walk between elements on devices.
        reached: the maps from elements of outputs to each array, whatever the output.
        counter: counts of maps.
    """

    devices: Devices
    walk: Walk
    reached: dict[ArrayRef, tuple[IndexingMap, ...]]
    counter: Counter

    @classmethod
    def of(cls, module: Module) -> Needs:
        """Return the needs of the outputs of a program."""
        devices = Devices.of(module)
        walk, root = Walk(DeviceEdges(devices, Options(exact=True))), module.entry.root
        walk.prepare(dependencies_of([root]), backward=True)
        reached: dict[ArrayRef, dict[IndexingMap, None]] = {}
        for path, _ in leaves(root.shape):
            for array, maps in walk.backward(ArrayRef(root, path)).items():
                reached.setdefault(array, {}).update(dict.fromkeys(maps.maps))
        return cls(devices, walk, {a: tuple(maps) for a, maps in reached.items()}, Counter())

    def bytes_sent(self, instruction: Instruction, op: Collective) -> int | Unknown:
        """Return the fewest bytes that a collective sends, on the device that sends most."""
        total = 0
        for path, leaf in leaves(instruction.shape):
            if not isinstance(leaf, Shape) or op.exchange(instruction, path, 0) is None:
                continue
            sent = self._elements_sent(ArrayRef(instruction, path), op)
            if isinstance(sent, Unknown):
                return sent
            total += sent * leaf.bytes // max(leaf.size, 1)
        return -(-total // self.devices.count)

    def _elements_sent(self, array: ArrayRef, op: Collective) -> int | Unknown:
        needed = self.reached.get(array, ())
        count = self._count(needed, array)
        if isinstance(count, Unknown) or not count:
            return count
        edges = [
            (edge.operand, m.simplify())
            for edge in self.walk.backward_edges(array)
            for m in edge.maps
        ]
        if isinstance(op, ReducingCollective):
            return self._elements_reduced(array, op, needed, count, edges)
        if any(m.ranges or m.grade != "exact" for _, m in edges):
            return Unknown(f"`{array.instruction.name}`: the sender depends on runtime values")
        moved, own = (
            self._count([m for _, edge in edges for m in _compose_maps(needed, way(edge))], array)
            for way in (_received_elements, _kept_elements)
        )
        if isinstance(moved, Unknown):
            return moved
        return own if isinstance(own, Unknown) else moved - own

    def _elements_reduced(
        self,
        array: ArrayRef,
        op: ReducingCollective,
        needed: Maps,
        count: int,
        edges: Sequence[tuple[int, IndexingMap]],
    ) -> int | Unknown:
        """Return the messages with which the needed elements of a reduction are computed.

        Args:
            needed, count: the maps to elements of the result that outputs need, and their number.
            edges: the maps to elements of operands on the devices of a group.
        """
        instruction = array.instruction
        operand = ArrayRef(instruction.operands[edges[0][0]], _operand_path(array, edges[0][0]))
        group = self._group_number(op)
        if group is None or not isinstance(operand.shape, Shape):
            return Unknown(f"`{instruction.name}`: the groups have no formula", instruction)
        number, size = group
        by_group = _with_group(number, self.devices, operand.shape)
        reduced = [m for _, edge in edges for n in _compose_maps(needed, edge)
                   for m in _compose_maps([n], by_group)]  # fmt: skip
        given = self._contributions(operand)
        shared = [m for n in given for m in _compose_maps([n], by_group)]
        numbers: list[int] = []
        for maps in (reduced, given, shared):
            total = self._count(maps, operand)
            if isinstance(total, Unknown):
                return total
            numbers.append(total)
        results, contributed, both = numbers
        everything = self.devices.count * operand.shape.size
        if contributed == everything:
            return size * results + count - 2 * results
        if results * size != everything or count != self.devices.count * _size(array):
            return Unknown(f"`{instruction.name}`: parts of its operand are constant", instruction)
        return contributed + count - results - both

    def _contributions(self, operand: ArrayRef) -> tuple[IndexingMap, ...]:
        """Return maps to the elements of an operand that depend on a parameter."""
        own: dict[IndexingMap, None] = {}
        for array, maps in self.walk.backward(operand).items():
            if not array.instruction.operands and array.instruction.opcode == "parameter":
                for m in maps.maps:
                    identity = replace(m, results=tuple([v.as_expr() for v in m.dims]))
                    own[identity.simplify()] = None
        return tuple(own)

    def _group_number(self, op: Collective) -> tuple[Expr, int] | None:
        """Return the number of a device's group as a formula of the device, and the sizes."""
        if not isinstance(op, GroupedCollective):
            return None
        try:
            groups = self.devices.groups(op.replica_groups, op.group_mode())
        except GroupsError:
            return None
        numbers = {device: k for k, group in enumerate(groups) for device in group}
        if len(numbers) != self.devices.count or len(set(map(len, groups))) != 1:
            return None
        values = tuple([numbers[k] for k in range(self.devices.count)])
        if len(groups) == 1:
            return as_expr(0), len(groups[0])
        strided = strided_group([values])
        device = self.devices.variable.as_expr()
        return None if strided is None else (strided.device(0, device), len(groups[0]))

    def _count(self, maps: Sequence[IndexingMap], array: ArrayRef) -> int | Unknown:
        """Return the number of distinct elements, on all devices, that maps reach."""
        assert isinstance(array.shape, Shape)
        space = array.shape.with_dims((self.devices.count, *array.shape.dims))
        for m in maps:  # one that reaches everything makes the others needless
            if self.counter.results((m,), space) == (space.size, "exact"):
                return space.size
        amount = self.counter.results(tuple(dict.fromkeys(maps)), space)
        if amount.grade == "exact":
            return amount.number
        name = array.instruction.name
        return Unknown(f"`{name}`: its reads are over-approximated", array.instruction)


def _size(array: ArrayRef) -> int:
    return array.shape.size if isinstance(array.shape, Shape) else 0


def _operand_path(array: ArrayRef, number: int) -> Path:
    shape = array.instruction.operands[number].shape
    return () if isinstance(shape, Shape) else array.path


def _compose_maps(maps: Sequence[IndexingMap], then: IndexingMap) -> Iterator[IndexingMap]:
    for m in maps:
        composed = m.then(then).simplify()
        if not composed.is_known_empty:
            yield composed


def _received_elements(edge: IndexingMap, *more: Constraint) -> IndexingMap:
    """Return the identity of the elements that devices receive."""
    own = tuple([v.as_expr() for v in edge.dims])
    constraints = [*edge.constraints, *[c for c in more if not c.is_true]]
    return IndexingMap.of(edge.dims, own, constraints=constraints)


def _kept_elements(edge: IndexingMap) -> IndexingMap:
    """Return the identity of the elements that devices receive from themselves."""
    sender, device = as_expr(edge.results[0]), edge.dims[0].as_expr()
    return _received_elements(edge, Constraint(sender - device, 0, 0))


def _with_group(number: Expr, devices: Devices, shape: Shape) -> IndexingMap:
    """Return the map from an element on a device to its group and index."""
    own = devices.dims(shape)
    return IndexingMap.of(own, (number, *own[1:]))
