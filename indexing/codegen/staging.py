"""Staging: the pass that decides which arrays get a buffer, and inlines all others.

An array gets a stage with a buffer if it is

* a reduction (also of products or windows, or a scatter);
* read at more than `MAX_COPIES` different indices;
* arithmetic that several stages need, or that a reduction reads repeatedly (an operand of a
  product or of a window);
* read below so many nested choices, such as those of a chain of pads, or at such a long index,
  that its text would exceed the limits of `indexing.codegen.choices`.

All other arrays are inlined into their readers: data movement, and arithmetic that is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hlo.modules.module import Computation
from hlo.shapes.shape import Shape, dtype, leaves
from indexing.codegen.choices import EnclosingChoices
from indexing.codegen.graph import (
    Apply,
    Buffer,
    BufferRead,
    BufferRole,
    Case,
    Choose,
    Index,
    IndexValue,
    Node,
    Reduction,
    Runtime,
    ScatterReduction,
    roots_of,
    topological_order,
    with_cases,
)
from indexing.codegen.induction import integer_value
from indexing.codegen.loop_arrays import needed_leaves, updated_in_place
from indexing.codegen.lowering import KnownRule, Lowering, Rule, literal, rule_of
from indexing.codegen.program_arrays import CarriedLeaf, LoopArrays, ProgramArray
from indexing.codegen.reads import PendingReads, Scope
from indexing.codegen.stages import Carried, Repeat, Stage
from indexing.codegen.text import Names
from indexing.maps.indexing_map import dims
from indexing.ops.element import ConstantRule, CopyRule, IotaRule, ReductionRule
from indexing.ops.functions import ScalarFunction
from simplifier.atoms import Variable
from simplifier.linear import Expr
from simplifier.substitute import Substitution

MAX_COPIES: Final = 4
"""Limit on the indices at which an array is recomputed; beyond it, the array gets a buffer."""


class Staging:
    """Stages, lowers and inlines the arrays of a program, in reverse order.

    Args:
        inputs: the arrays that the nest takes.
        function: converts a computation of scalars to a function.
        around: the staging around a loop, whose body this one stages.
        loop: the arrays of this loop.

    Attributes:
        inputs, constants: the buffers of arrays that no stage fills.
        bodies: for each stage, its element as a node over reads of arrays, or a reduction.
        loops: the loops, each with its topological number.
    """

    def __init__(
        self,
        inputs: Sequence[ProgramArray],
        function: Callable[[Computation], ScalarFunction],
        around: Staging | None = None,
        loop: LoopArrays | None = None,
    ) -> None:
        self.function = function
        self._around, self._outside = around, loop.outside if loop else frozenset()
        self.names: Names = around.names if around else Names(["out"])
        self.inputs = {array: self._buffer(array) for array in inputs}
        self.constants: dict[ProgramArray, Buffer] = around.constants if around else {}
        self.bodies: dict[Scope, Node | Reduction] = {}
        self.loops: list[tuple[int, Repeat]] = []
        self._results: dict[object, dict[int, Buffer]] = {}  # of each loop, by leaf
        self._required: dict[ProgramArray, Buffer] = {}
        self._updates: dict[Scope, Index] = {}  # in place
        self._pending = PendingReads()
        self._buffers: dict[Scope, dict[int, Buffer]] = {}  # by the leaf of the result
        self._staged: dict[object, Scope] = {}  # by the group of the arrays
        self._definitions: dict[Node, Node] = {}  # of reads
        self._choices = EnclosingChoices()
        self._final: dict[Node, Node] = {}

    def stages(self, result: ProgramArray, output: Buffer) -> tuple[Stage | Repeat, ...]:
        """Return the stages that compute an array; the last one fills `output`."""
        is_kept = result in self.inputs or _is_loop_result(result)
        rule = None if is_kept else rule_of(result)
        if isinstance(rule, ReductionRule):
            self._stage(result, rule, output)
        else:
            scope = Scope(self._pending, result)
            self._buffers[scope] = {result.leaf: output}
            self.bodies[scope] = scope.read(result, _index(scope))
        self._decide_all()
        return self._ordered_stages()

    def _ordered_stages(self) -> tuple[Stage | Repeat, ...]:
        """Return all stages and loops in execution order."""
        numbered: list[tuple[int, Stage | Repeat]] = [
            (scope.array.number, self._finish_stage(scope)) for scope in self.bodies
        ]
        for number, loop in self.loops:
            (count,) = self._resolve_reads([loop.count])
            assert isinstance(count, IndexValue)
            numbered.append((number, replace(loop, count=count)))
        return tuple([stage for _, stage in sorted(numbered, key=lambda pair: pair[0])])

    def scalars(self, results: Sequence[ProgramArray]) -> tuple[Node, ...]:
        """Return scalar results as nodes; `bodies` stays empty if no stage is needed."""
        scope = Scope(self._pending, results[0])
        roots = [scope.read(array, ()) for array in results]
        self._decide_all()
        return self._resolve_reads(roots)

    # ------------------------------------------------------------ decisions

    def _decide_all(self) -> None:
        for array in self._pending:
            reads = self._pending.reads[array]
            buffer = self._existing(array)
            if buffer is None and _is_loop_result(array):
                buffer = self._loop(array)
            elif buffer is None:
                rule = rule_of(array)
                buffer = self._new(array, rule, reads)
            for read, scope in reads.items():
                if buffer is not None:
                    self._definitions[read] = BufferRead(buffer, read.index, read.runtime)
                else:
                    definition = Lowering(scope, self.function, array, read.index).node(rule)
                    self._definitions[read] = definition
                    self._choices.add(read, definition)

    def _existing(self, array: ProgramArray) -> Buffer | None:
        """Return the buffer of an input, or of another leaf of a staged result, if any."""
        if _is_loop_result(array) and array.group in self._results:
            return self._results[array.group][array.leaf]
        if array in self._outside and not _is_inlined(array):
            assert self._around is not None
            return self._around.require_buffer(array)
        if array.group not in self._staged:
            return self.inputs.get(array) or self.constants.get(array)
        buffers = self._buffers[self._staged[array.group]]
        if array.leaf not in buffers:
            buffers[array.leaf] = self._required.get(array) or self._buffer(array, "stage")
        return buffers[array.leaf]

    def require_buffer(self, array: ProgramArray, stem: str | None = None) -> Buffer:
        """Return the buffer of an array that a loop needs as a whole.

        Args:
            stem: the name of a new buffer; the default is that of the array.
        """
        buffer = self._existing(array) or self._required.get(array)
        if buffer is None:
            is_constant = not _is_loop_result(array) and isinstance(rule_of(array), ConstantRule)
            if is_constant and array.dims:
                return self._constant(array)
            name = self.names.new(stem or array.name)
            buffer = self._required[array] = Buffer(name, array.dims, array.dtype, "stage")
            scope = Scope(self._pending, array)
            scope.read(array, _index(scope))
        return buffer

    def _new(
        self, array: ProgramArray, rule: Rule, reads: Mapping[BufferRead, Scope]
    ) -> Buffer | None:
        """Return a new buffer for an array, or None if the array is inlined."""
        if isinstance(rule, ConstantRule) and array.dims:
            return self._constant(array)
        buffer = self._required.get(array)
        if buffer is None:
            is_long = any(map(self._choices.exceed_limits, reads))
            if not _needs_stage(rule, reads, is_long):
                return None
            buffer = self._buffer(array, "stage")
        self._stage(array, rule, buffer)
        return buffer

    def _constant(self, array: ProgramArray) -> Buffer:
        value = literal(array)
        buffer = Buffer(self.names.new(array.name), array.dims, value.dtype, "constant", value)
        self.constants[array] = buffer
        return buffer

    def _stage(self, array: ProgramArray, rule: Rule, buffer: Buffer) -> None:
        """Add a stage that fills a buffer."""
        scope = Scope(self._pending, array)
        self._staged[array.group] = scope
        self._buffers[scope] = {array.leaf: buffer}
        if isinstance(rule, ReductionRule):
            scope.is_windowed = rule.is_windowed or rule.is_product
        lowering = Lowering(scope, self.function, array, _index(scope))
        self.bodies[scope] = lowering.body(rule)

    def _buffer(self, array: ProgramArray, role: BufferRole = "input") -> Buffer:
        return Buffer(self.names.new(array.name), array.dims, array.dtype, role)

    # ------------------------------------------------------------ loops

    def _loop(self, result: ProgramArray) -> Buffer:
        """Stage a counted loop; return the buffer of one of its results."""
        loop = result.group
        assert isinstance(loop, LoopArrays)
        read = {a.leaf: a for a in self._pending.reads if a.group is loop and a.known is None}
        leaves = needed_leaves(loop, read)
        buffers = self._results[loop] = {}
        for leaf, each in leaves.items():
            array = read.get(leaf, each.carried)
            buffers[leaf] = self._required.get(array) or self._buffer(each.following, "stage")
            scope = Scope(self._pending, each.carried)
            self._buffers[scope] = {leaf: buffers[leaf]}
            self.bodies[scope] = scope.read(each.first, _index(scope))
        body = Staging((), self.function, self, loop)
        carried = body._body(loop, leaves, buffers)
        count, stages = self._count(result), body._ordered_stages()
        repeat = Repeat(loop.instruction, loop.iteration, count, carried, stages)
        self.loops.append((loop.number, repeat))
        return buffers[result.leaf]

    def _count(self, result: ProgramArray) -> IndexValue:
        """Return the number of iterations of a loop, over expressions of outer iterations."""
        loop, scope = result.group, Scope(self._pending, result)
        assert isinstance(loop, LoopArrays)
        values: dict[Variable, Expr] = {}
        for variable, array, index in loop.runtime:
            value = integer_value(array, index)
            if value is None:
                value = scope.variable(array, index, variable.bounds).as_expr()
            values[variable] = value
        count = Substitution(values)(loop.count)
        return IndexValue(count, np.dtype(np.int64), scope.runtime_variables_in([count]))

    def _body(
        self,
        loop: LoopArrays,
        leaves: Mapping[int, CarriedLeaf],
        buffers: Mapping[int, Buffer],
    ) -> tuple[Carried, ...]:
        """Stage the body of a loop; return the arrays that it carries."""
        self.inputs = {
            each.carried: buffers[leaf]
            for leaf, each in leaves.items()
            if each.carried.known is None
        }
        in_place = updated_in_place(loop, leaves)
        carried = []
        for leaf, each in leaves.items():
            buffer = buffers[leaf]
            if leaf in in_place:
                self._update(each.following, buffer)
                carried.append(Carried(buffer, buffer))
            else:
                following = self.require_buffer(each.following, f"{buffer.name}_next")
                carried.append(Carried(buffer, following))
        self._decide_all()
        return tuple(carried)

    def _update(self, array: ProgramArray, buffer: Buffer) -> None:
        """Add a stage that stores the update of a dynamic-update-slice in a buffer."""
        scope, update = Scope(self._pending, array), array.operand(1)
        scope.dims = dims(update.shape)
        index = _index(scope)
        self._buffers[scope] = {array.leaf: buffer}
        self._updates[scope] = Lowering(scope, self.function, array, index).place_of_update()
        self.bodies[scope] = scope.read(update, index)

    # ------------------------------------------------------------ inlining

    def _finish_stage(self, scope: Scope) -> Stage:
        """Return a stage with all reads resolved."""
        body, buffers = self.bodies[scope], self._buffers[scope]
        self._resolve_reads(roots_of(body))
        if not isinstance(body, Reduction):
            at = self._updates.get(scope)
            return Stage(tuple(buffers.values()), scope.dims, self._final[body], at)
        body = map_children(body, self._final.__getitem__)
        totals = [buffers.get(k) or self._unread(scope.array, k) for k in range(len(body.inits))]
        return Stage(tuple(totals), scope.dims, body)

    def _resolve_reads(self, roots: Iterable[Node]) -> tuple[Node, ...]:
        """Replace each read of an array by a read of its buffer, or by its inlined definition."""
        roots = tuple(roots)

        def below(node: Node) -> tuple[Node, ...]:
            definition = self._definitions.get(node)
            return (definition,) if definition else with_cases(node)

        final = self._final.__getitem__
        for node in topological_order(roots, below):
            if node not in self._final:
                definition = self._definitions.get(node)
                self._final[node] = final(definition) if definition else map_children(node, final)
        return tuple([self._final[root] for root in roots])

    def _unread(self, array: ProgramArray, leaf: int) -> Buffer:
        """Return a buffer for a total that no stage reads."""
        _, shape = leaves(array.instruction.shape)[leaf]
        assert isinstance(shape, Shape)
        return Buffer(self.names.new(array.name), array.dims, dtype(shape.element_type), "stage")


def _index(scope: Scope) -> Index:
    return tuple([d.as_expr() for d in scope.dims])


def _is_loop_result(array: ProgramArray) -> bool:
    return isinstance(array.group, LoopArrays) and array.known is None


def _is_inlined(array: ProgramArray) -> bool:
    """Return True for scalars that the program knows: loops need no buffer for them."""
    if _is_loop_result(array) or array.role == "input":
        return False
    rule = rule_of(array)
    return isinstance(rule, KnownRule) or (isinstance(rule, ConstantRule) and not array.dims)


def _needs_stage(rule: Rule, reads: Mapping[BufferRead, Scope], is_long: bool) -> bool:
    if isinstance(rule, ReductionRule):
        return True
    if isinstance(rule, ConstantRule | IotaRule | KnownRule):
        return False
    if len(reads) > MAX_COPIES or is_long:
        return True
    scopes = set(reads.values())
    is_cheap = isinstance(rule, CopyRule) and len(rule.operands) == 1
    return not is_cheap and (len(scopes) > 1 or any(scope.is_windowed for scope in scopes))


def map_children(node: Any, replacement: Callable[[Any], Any]) -> Any:
    """Return a node, case, reduction or scatter with ``replacement(n)`` for each child `n`."""
    match node:
        case BufferRead() | IndexValue():
            return replace(node, runtime=_each(node.runtime, replacement)) if node.runtime else node
        case Apply():
            return Apply(node.function, _each(node.arguments, replacement), node.name, node.dtype)
        case Case():
            return replace(
                node, value=replacement(node.value), runtime=_each(node.runtime, replacement)
            )
        case Choose():
            cases = tuple([map_children(case, replacement) for case in node.cases])
            return replace(node, cases=cases, otherwise=replacement(node.otherwise))
        case Runtime():
            return replace(node, value=replacement(node.value))
        case ScatterReduction():
            runtime = _each(node.runtime, replacement)
            return replace(node, values=_each(node.values, replacement), runtime=runtime)
        case Reduction():
            inits, values = _each(node.inits, replacement), _each(node.values, replacement)
            node = replace(
                node, inits=inits, values=values, runtime=_each(node.runtime, replacement)
            )
            return replace(node, scatter=map_children(node.scatter, replacement))
        case _:
            return node


def _each(nodes: tuple[Node, ...], replacement: Callable[[Any], Any]) -> tuple[Any, ...]:
    return tuple([replacement(node) for node in nodes])
