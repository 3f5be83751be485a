"""Layouts without which a copy is superfluous: of arguments, of results, and inside the program.

A copy of an argument gives the elements another order in memory.  If the argument has this order
from the start, the copy can go; so it is for a result that has the order of what is copied into it.
The way between the copy and the argument may lead through bitcasts, transposes, slices, other
memories and loops; the maps along this way transfer the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.layout import Layout
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.copies import source_of
from indexing.dataflow.loops.scalars import is_invariant
from indexing.dataflow.soundness import fault_of
from indexing.maps.arrays import ArrayRef, Path, array_name
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.over_approximation import every_element, is_within_limits
from indexing.memory.buffers.layout_orders import order_of, order_of_source
from indexing.memory.buffers.moved_elements import (
    changes_layout,
    copied_operand,
    copied_path,
    kind_of_copy,
    source_of_move,
    stays_in_memory,
)
from indexing.memory.movement.writes import is_view, reads_of, viewed_array
from indexing.ops.control import While, callees
from indexing.ops.element import OpaqueRule, declarations_of, element_of
from indexing.ops.structure import Copy
from indexing.ops.structured_ops import InlineOp
from indexing.ops.transfers import CopyStart
from simplifier.unknown import Unknown

Place: TypeAlias = Literal["argument", "result", "read", "write"]


End: TypeAlias = "tuple[Place, int | None, Path]"
"""An argument or a result: the kind, its number, and the leaf."""


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """An order of dimensions in memory that makes a copy superfluous.

    Attributes:
        place: an argument or a result of ENTRY, or the array that an instruction reads or writes.
        number: of the parameter, or of the result in the tuple of results; None inside the program.
        array: the parameter, the leaf of the root, or the array that is read or written.
        layout: the order of dimensions; the compiler chooses the tiles.
        by: the instruction that reads or writes the array; None for arguments and results.

    >>> import hlo, indexing
    >>> module = hlo.parse('''ENTRY e {
    ...   p = f32[64,32]{1,0} parameter(0)
    ...   c = f32[64,32]{0,1} copy(p)
    ...   ROOT n = f32[64,32]{0,1} negate(c)
    ... }''')
    >>> (copy,) = indexing.copies(module)
    >>> print(copy.proposal)
    argument 0, `p`: {0,1} in place of {1,0}
    >>> change = copy.proposal.changes[0]
    >>> change.place, change.number, change.before.minor_to_major, change.layout.minor_to_major
    ('argument', 0, (1, 0), (0, 1))
    >>> change.end, change.major_to_minor, copy.proposal.is_inside
    (('argument', 0, ()), (1, 0), False)
    """

    place: Place
    number: int | None
    array: ArrayRef
    layout: Layout
    by: Instruction | None = None

    @property
    def end(self) -> End:
        """The argument or the result."""
        return self.place, self.number, self.array.path

    @property
    def before(self) -> Layout:
        """The order of dimensions in the module."""
        shape = self.array.array_shape
        assert shape is not None
        return Layout(shape.layout_or_default.minor_to_major)

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """The order of dimensions as ``jax.experimental.layout.Layout`` has it."""
        return self.layout.major_to_minor

    def __str__(self) -> str:
        orders = f"{self.layout} in place of {self.before}"
        if self.by is not None:
            verb = "reads" if self.place == "read" else "writes"
            return f"{self.by.opcode} `{self.by.name}` {verb} {orders}"
        if self.place == "argument":
            return f"argument {self.number}, `{array_name(self.array)}`: {orders}"
        return f"result {self.number}: {orders}"


@dataclass(frozen=True, slots=True)
class LayoutProposal:
    """Layouts that together make a copy superfluous.

    Attributes:
        changes: the layouts; two for an argument whose memory a result takes.

    >>> import hlo, indexing
    >>> module = hlo.parse('''HloModule m, is_scheduled=true
    ... ENTRY e { x = f32[64,32]{1,0} parameter(0)  c = f32[64,32]{0,1} copy(x)
    ...   ROOT r = f32[32] custom-call(c), custom_call_target="sums" }''')
    >>> (copy,) = indexing.copies(module)
    >>> print(copy.proposal, copy.proposal.changes[0].major_to_minor)
    argument 0, `x`: {0,1} in place of {1,0} (1, 0)
    """

    changes: tuple[LayoutChange, ...]

    @property
    def is_inside(self) -> bool:
        """True if the layouts are inside the program, where only the compiler chooses them."""
        return any(change.by is not None for change in self.changes)

    def __str__(self) -> str:
        return "; ".join(map(str, self.changes))


class EntryCopies:
    """The arguments and results of a module, as its copies see them."""

    def __init__(self, module: Module) -> None:
        entry = module.entry
        self.parameters = entry.parameters
        self.loops = _loops_by_body(module)
        self.results: dict[Instruction, list[tuple[ArrayRef, IndexingMap]]] = {}
        self.aliases = {
            (alias.parameter, alias.index): alias.output
            for alias in module.header("input_output_alias", ())
        }
        for path, shape in leaves(entry.root.shape):
            if isinstance(shape, Shape):
                result = ArrayRef(entry.root, path)
                for array, read in self.way(result):
                    if changes_layout(array.instruction):
                        self.results.setdefault(array.instruction, []).append((result, read))
                        break

    def way(self, array: ArrayRef) -> Iterator[tuple[ArrayRef, IndexingMap]]:
        """Yield an array and those whose elements it copies, with maps from its index to theirs.

        From a map with too many parts to be an order of dimensions on, each may be any element.
        """
        shape = array.array_shape
        assert shape is not None
        read = IndexingMap.identity(shape)
        while True:
            yield array, read
            step = self._step(array)
            if step is None:
                return
            array, inner = step
            if inner is not None and read.grade == "exact":
                read = read.then(inner)
            copied = array.array_shape
            if copied is not None and not (read.grade == "exact" and is_within_limits(read)):
                read = every_element(shape, copied).with_grade("may")

    def _step(self, array: ArrayRef) -> tuple[ArrayRef, IndexingMap | None] | None:
        """Return the array whose elements an array copies, with the map of the reads."""
        each, path = array.instruction, array.path
        loop = each if isinstance(each.op, While) else self.loops.get(each.computation)
        if loop is not None and (each is loop or each in loop_parameters(loop)):
            is_given = not fault_of(loop) and is_invariant(loop, path)
            return (ArrayRef(loop.operands[0], path), None) if is_given else None
        if isinstance(each.op, CopyStart):
            return (ArrayRef(each.operands[0]), None) if path in ((0,), (1,)) else None
        copied = copied_operand(each)
        if copied is not None:
            return ArrayRef(copied[0]), copied[1]
        forwarded = source_of(array) if is_view(each) or isinstance(each.op, Copy) else None
        return None if forwarded is None else (forwarded, None)

    def proposal(self, copy: Instruction) -> LayoutProposal | Unknown:
        """Return layouts of arguments or results that make a copy superfluous, or why none does."""
        movement = source_of_move(copy)
        assert movement is not None
        _, shape, result = movement
        if kind_of_copy(copy, shape, result) not in ("layout", "movement"):
            return Unknown("the copy does not change the layout", copy)
        if copy in self.results:
            return self._of_results(copy)
        return self._of_argument(copy, result)

    def reads(self, copy: Instruction, readers: Sequence[Instruction]) -> LayoutProposal | Unknown:
        """Return the layout in which the readers of a copy can read its source."""
        viewed = self._viewed_array(copy)
        if isinstance(viewed, Unknown):
            return viewed
        array, read = viewed
        order = order_of(read, array)
        if isinstance(order, Unknown):
            return order
        copied = ArrayRef(copy, copied_path(copy))
        return _propose_changes(
            [LayoutChange("read", None, copied, order, by) for by in readers], copy
        )

    def writes(self, copy: Instruction) -> LayoutProposal | Unknown:
        """Return the layout in which the instruction before a copy can write what it copies."""
        viewed = self._viewed_array(copy)
        if isinstance(viewed, Unknown):
            return viewed
        array, read = viewed
        movement = source_of_move(copy)
        assert movement is not None
        order = order_of_source(read, movement[2], array)
        if isinstance(order, Unknown):
            return order
        return _propose_changes(
            [LayoutChange("write", None, array, order, array.instruction)], copy
        )

    def _of_results(self, copy: Instruction) -> LayoutProposal | Unknown:
        for array, _ in self.way(ArrayRef(copy, copied_path(copy))):
            if array.instruction in self.parameters:
                name = array_name(array)
                reason = f"the result is argument `{name}`, which is copied in any layout"
                return Unknown(reason, copy)
        viewed = self._viewed_array(copy)
        if isinstance(viewed, Unknown):
            return viewed
        array, inner = viewed
        changes: list[LayoutChange] = []
        for result, read in self.results[copy]:
            order = order_of(read.then(inner), array)
            place = f"result {_number(result)}"
            if isinstance(order, Unknown):
                return Unknown(f"{place}: {order.reason}", copy)
            changes.append(LayoutChange("result", _number(result), result, order))
            for (number, index), output in self.aliases.items():
                if output == result.path:
                    given = ArrayRef(self.parameters[number], index)
                    changes.append(LayoutChange("argument", number, given, order))
        return _propose_changes(changes, copy)

    def _viewed_array(self, copy: Instruction) -> tuple[ArrayRef, IndexingMap] | Unknown:
        """Return the array whose memory a copy reads, with the map of its reads."""
        movement = source_of_move(copy)
        assert movement is not None
        target = viewed_array(movement[0])
        way = self.way(ArrayRef(copy, copied_path(copy)))
        for array, read in way:
            if array == target:
                return array, read
        return _by_several_maps(copy)

    def _of_argument(self, copy: Instruction, result: Shape) -> LayoutProposal | Unknown:
        way = self.way(ArrayRef(copy, copied_path(copy)))
        next(way)
        each = None
        for array, read in way:
            each = array.instruction
            if changes_layout(each):
                return Unknown(f"{each.opcode} `{each.name}` changes the layout before it", copy)
            if each in self.parameters:
                return self._of_parameter(copy, array, read, result)
        if each is None:
            return _by_several_maps(copy)
        return Unknown(f"{each.opcode} `{array_name(array)}` chooses the layout", copy)

    def _of_parameter(
        self, copy: Instruction, array: ArrayRef, read: IndexingMap, result: Shape
    ) -> LayoutProposal | Unknown:
        number = self.parameters.index(array.instruction)
        for reader in _readers(array):
            if not is_computed_by_elements(reader):
                given = f"argument {number}, `{array_name(array)}`"
                reason = f"{reader.opcode} `{reader.name}` reads {given} in the present layout"
                return Unknown(reason, copy)
        order = order_of_source(read, result, array)
        if isinstance(order, Unknown):
            return Unknown(f"argument {number}, `{array_name(array)}`: {order.reason}", copy)
        changes = [LayoutChange("argument", number, array, order)]
        output = self.aliases.get((number, array.path))
        if output is not None:
            root = ArrayRef(copy.computation.module.entry.root, output)
            changes.append(LayoutChange("result", _number(root), root, order))
        return _propose_changes(changes, copy)


def copies_by_end(module: Module) -> Mapping[End, frozenset[Instruction]]:
    """Return the copies between the program and each argument or result, but to other memories."""
    entry = EntryCopies(module)
    ends: dict[End, set[Instruction]] = {}
    for path, shape in leaves(module.entry.root.shape):
        if isinstance(shape, Shape):
            result = ArrayRef(module.entry.root, path)
            way = [array.instruction for array, _ in entry.way(result)]
            ends["result", _number(result), path] = set(filter(stays_in_memory, way))
    for each in filter(stays_in_memory, module.instructions):
        for array, _ in entry.way(ArrayRef(each, copied_path(each))):
            if array.instruction in entry.parameters:
                number = entry.parameters.index(array.instruction)
                ends.setdefault(("argument", number, array.path), set()).add(each)
    return {end: frozenset(copies) for end, copies in ends.items()}


def _readers(array: ArrayRef) -> Iterator[Instruction]:
    """Yield the instructions that read an array in its layout, also from other memories."""
    for reader, _ in reads_of(array):
        movement = source_of_move(reader)
        if movement is not None and not changes_layout(reader):
            yield from _readers(ArrayRef(reader, copied_path(reader)))
        elif movement is None and not is_view(reader) and not isinstance(reader.op, While):
            yield reader


def is_computed_by_elements(reader: Instruction) -> bool:
    """Return True if each element of the result is computed from indices: no sort, no library."""
    if not isinstance(reader.op, InlineOp):
        return not isinstance(element_of(reader), OpaqueRule)
    inner = reader.called_computations[0].instructions
    computed = [i for i in inner if not is_view(i) and not declarations_of(i).is_given]
    return all(map(is_computed_by_elements, computed))


def _by_several_maps(copy: Instruction) -> Unknown:
    """Return why the places of the elements that a copy moves have no one order."""
    name = copy.operands[0].name
    return Unknown(f"{copy.opcode} `{copy.name}` reads `{name}` by several maps", copy)


def _propose_changes(changes: list[LayoutChange], copy: Instruction) -> LayoutProposal | Unknown:
    if all(change.layout == change.before for change in changes):
        return Unknown("the order of dimensions stays, only the tiles differ", copy)
    return LayoutProposal(tuple(changes))


def _number(result: ArrayRef) -> int:
    return result.path[0] if result.path else 0


def loop_parameters(loop: Instruction) -> tuple[Instruction, ...]:
    """Return the parameters of the condition and the body of a loop."""
    return tuple(called.parameters[0] for called in loop.called_computations)


def _loops_by_body(module: Module) -> dict[Computation, Instruction]:
    """Return the loop of each computation that is the body of one loop only."""
    loops: dict[Computation, list[Instruction]] = {}
    for each in module.instructions:
        for called in each.called_computations:
            loops.setdefault(called, []).append(each)
    return {
        called: callers[0]
        for called, callers in loops.items()
        if len(callers) == 1
        and isinstance(callers[0].op, While)
        and not fault_of(callers[0])
        and callees(callers[0], "body") == [called]
    }
