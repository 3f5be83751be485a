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
from indexing.codegen.lowering import Lowering, literal, rule_of
from indexing.codegen.program_arrays import ProgramArray
from indexing.codegen.reads import PendingReads, Scope
from indexing.codegen.stages import Stage
from indexing.codegen.text import Names
from indexing.ops.element import ConstantRule, CopyRule, ElementRule, IotaRule, ReductionRule
from indexing.ops.functions import ScalarFunction

MAX_COPIES: Final = 4
"""Limit on the indices at which an array is recomputed; beyond it, the array gets a buffer."""


class Staging:
    """Stages, lowers and inlines the arrays of a program, in reverse order.

    Args:
        inputs: the arrays that the nest takes.
        function: converts a computation of scalars to a function.

    Attributes:
        inputs, constants: the buffers of arrays that no stage fills.
        bodies: for each stage, its element as a node over reads of arrays, or a reduction.
    """

    def __init__(
        self,
        inputs: Sequence[ProgramArray],
        function: Callable[[Computation], ScalarFunction],
    ) -> None:
        self.function = function
        self.names = Names(["out"])
        self.inputs = {array: self._buffer(array) for array in inputs}
        self.constants: dict[ProgramArray, Buffer] = {}
        self.bodies: dict[Scope, Node | Reduction] = {}
        self._pending = PendingReads()
        self._buffers: dict[Scope, dict[int, Buffer]] = {}  # by the leaf of the result
        self._staged: dict[object, Scope] = {}  # by the group of the arrays
        self._definitions: dict[Node, Node] = {}  # of reads
        self._choices = EnclosingChoices()
        self._final: dict[Node, Node] = {}

    def stages(self, result: ProgramArray, output: Buffer) -> tuple[Stage, ...]:
        """Return the stages that compute an array; the last one fills `output`."""
        rule = None if result in self.inputs else rule_of(result)
        if isinstance(rule, ReductionRule):
            self._stage(result, rule, output)
        else:
            scope = Scope(self._pending, result)
            self._buffers[scope] = {result.leaf: output}
            self.bodies[scope] = scope.read(result, _index(scope))
        self._decide_all()
        order = sorted(self.bodies, key=lambda scope: scope.array.number)
        return tuple([self._finished(scope) for scope in order])

    def scalars(self, results: Sequence[ProgramArray]) -> tuple[Node, ...]:
        """Return scalar results as nodes; `bodies` stays empty if no stage is needed."""
        scope = Scope(self._pending, results[0])
        roots = [scope.read(array, ()) for array in results]
        self._decide_all()
        return self._resolved(roots)

    # ------------------------------------------------------------ decisions

    def _decide_all(self) -> None:
        for array in self._pending:
            reads = self._pending.reads[array]
            buffer = self._existing(array)
            if buffer is None:
                rule = rule_of(array)
                buffer = self._new(array, rule, reads)
            for read, scope in reads.items():
                if buffer is not None:
                    self._definitions[read] = BufferRead(buffer, read.index, read.runtime)
                else:
                    definition = Lowering(scope, self.function).element(array, rule, read.index)
                    self._definitions[read] = definition
                    self._choices.add(read, definition)

    def _existing(self, array: ProgramArray) -> Buffer | None:
        """Return the buffer of an input, or of another leaf of a staged result, if any."""
        if array.group not in self._staged:
            return self.inputs.get(array)
        buffers = self._buffers[self._staged[array.group]]
        if array.leaf not in buffers:
            buffers[array.leaf] = self._buffer(array, "stage")
        return buffers[array.leaf]

    def _new(
        self, array: ProgramArray, rule: ElementRule, reads: Mapping[BufferRead, Scope]
    ) -> Buffer | None:
        """Return a new buffer for an array, or None if the array is inlined."""
        if isinstance(rule, ConstantRule) and array.dims:
            value = literal(array)
            name = self.names.new(array.name)
            buffer = Buffer(name, array.dims, value.dtype, "constant", value)
            self.constants[array] = buffer
            return buffer
        is_long = any(map(self._choices.exceed_limits, reads))
        if not _needs_stage(rule, reads, is_long):
            return None
        buffer = self._buffer(array, "stage")
        self._stage(array, rule, buffer)
        return buffer

    def _stage(self, array: ProgramArray, rule: ElementRule, buffer: Buffer) -> None:
        """Add a stage that fills a buffer."""
        scope = Scope(self._pending, array)
        self._staged[array.group] = scope
        self._buffers[scope] = {array.leaf: buffer}
        lowering = Lowering(scope, self.function)
        if isinstance(rule, ReductionRule):
            scope.is_windowed = rule.is_windowed or rule.is_product
            self.bodies[scope] = lowering.reduction(array, rule, _index(scope))
        else:
            self.bodies[scope] = lowering.element(array, rule, _index(scope))

    def _buffer(self, array: ProgramArray, role: BufferRole = "input") -> Buffer:
        return Buffer(self.names.new(array.name), array.dims, array.dtype, role)

    # ------------------------------------------------------------ inlining

    def _finished(self, scope: Scope) -> Stage:
        """Return a stage with all reads resolved."""
        body, buffers = self.bodies[scope], self._buffers[scope]
        self._resolved(roots_of(body))
        if not isinstance(body, Reduction):
            return Stage(tuple(buffers.values()), scope.dims, self._final[body])
        body = map_children(body, self._final.__getitem__)
        totals = [buffers.get(k) or self._unread(scope.array, k) for k in range(len(body.inits))]
        return Stage(tuple(totals), scope.dims, body)

    def _resolved(self, roots: Iterable[Node]) -> tuple[Node, ...]:
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


def _needs_stage(rule: ElementRule, reads: Mapping[BufferRead, Scope], is_long: bool) -> bool:
    if isinstance(rule, ReductionRule):
        return True
    if isinstance(rule, ConstantRule | IotaRule):
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
