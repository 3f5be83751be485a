"""Writer of NumPy lines that compute nodes over one space, each node once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress
from math import prod
from typing import Final, TypeAlias

from indexing.codegen.graph import (
    Apply,
    Body,
    Buffer,
    BufferRead,
    Choose,
    ComputationFunction,
    IndexValue,
    Node,
    Reduction,
    Runtime,
    Scalar,
    topological_order,
    with_cases,
)
from indexing.codegen.numpy.access import (
    Access,
    Text,
    as_operand,
    expand_axes,
    read_text,
    vector_text,
)
from indexing.codegen.numpy.spaces import Space
from indexing.codegen.sources import SourceBuilder
from indexing.codegen.stages import Stage
from indexing.codegen.text import dtype_text, index_text, scalar_text
from indexing.ops.functions import ScalarFunction
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

LARGE: Final = 1 << 14
"""Arrays of at least this many elements are deleted after their last use."""

Offsets: TypeAlias = dict[Buffer, tuple[Expr, ...]]
"""The first index of the computed box of an array, in each dimension."""


@dataclass(slots=True)
class WriterState:
    """State shared by all writers of a program.

    Attributes:
        source: the lines and their names.
        unread: buffers that no stage reads: unused totals of a reduction.
        offsets: the offsets of arrays of which only a box is computed.
        uses: the number of uses of each node.
        padded: for each read of a padded copy, its name, its sizes, and the low padding.
        large: names of arrays to delete after their last use.
        deletes: arrays may be deleted.
    """

    source: SourceBuilder
    unread: frozenset[Buffer] = frozenset()
    offsets: Offsets = field(default_factory=dict)
    uses: Counter[Node] = field(default_factory=Counter)
    padded: dict[Node, tuple[str, tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    deletes: bool = True

    def track(self, name: str, size: int) -> None:
        """Delete an array of `size` elements after its last use, if it is large."""
        if size >= LARGE and self.deletes:
            self.large.add(name)

    @contextmanager
    def keep_arrays(self) -> Iterator[None]:
        """Delete no arrays of the lines in the context: a loop may have no iteration."""
        before, self.deletes = self.deletes, False
        yield
        self.deletes = before

    def count(self, stage: Stage) -> None:
        """Count the uses of each node of a stage."""
        for node in stage.nodes():
            self.uses.update(with_cases(node))
        if isinstance(stage.body, Reduction):
            self.uses.update((*stage.body.inits, *stage.body.values))


class BlockWriter:
    """Writes lines that compute nodes over one space, each node once.

    Args:
        state: the state of the program.
        space: the axes of the arrays.
        enclosing: the block around this one, whose nodes are already computed.
    """

    def __init__(
        self, state: WriterState, space: Space, enclosing: BlockWriter | None = None
    ) -> None:
        self.state, self.source, self.space = state, state.source, space
        self.scope: dict[Node, Text] = dict(enclosing.scope) if enclosing else {}
        self.runtime: dict[str, Text] = dict(enclosing.runtime) if enclosing else {}
        self.vectors: dict[str, Text] = {}

    def is_array(self, name: str) -> bool:
        """See `indexing.codegen.numpy.access.Vectors`."""
        return name in self.runtime and bool(self.runtime[name].axes)

    def get(self, name: str) -> Text | None:
        """See `indexing.codegen.numpy.access.Vectors`."""
        if name in self.runtime:
            return self.runtime[name]
        if name in self.vectors:
            return self.vectors[name]
        for axis in self.space.axes:
            if axis.variable.name == name:
                code = self.source.names.new(f"i_{name}")
                ends = index_text(axis.end)
                if axis.begin != as_expr(0):
                    ends = f"{index_text(axis.begin)}, {ends}"
                self.source.text.add(f"{code} = np.arange({ends})")
                self.vectors[name] = Text(code, (axis.variable,))
                return self.vectors[name]
        return None

    def text_of(self, root: Node) -> Text:
        """Write the lines that compute a node; return its code."""

        def missing(node: Node) -> tuple[Node, ...]:
            return () if node in self.scope else with_cases(node)

        for node in topological_order([root], missing):
            if node not in self.scope:
                self.scope[node] = self._code_of(node, node is root)
        return self.scope[root]

    def _code_of(self, node: Node, is_root: bool) -> Text:
        match node:
            case Runtime():
                return self._runtime(node)
            case Scalar():
                return Text(scalar_text(node.value))
            case BufferRead():
                text, name = self._write_read(node), node.buffer.name
                is_shared = self.state.uses[node] > 1 and text.code != name
                return self._assign_name(f"{name}_here", text) if is_shared else text
            case IndexValue():
                return self._index_value(node)
            case Apply():
                text = self._write_apply(node)
                return text if is_root else self._assign_name(node.name, text)
            case Choose():
                return self._write_choose(node)

    def _runtime(self, node: Runtime) -> Text:
        value, name = self.scope[node.value], node.variable.name
        code = f"clamp({value.code}, {node.clamp[0]}, {node.clamp[1]})"
        self.source.text.add(f"{name} = {code}")
        self.runtime[name] = Text(name, value.axes)
        return self.runtime[name]

    def _write_apply(self, node: Apply) -> Text:
        arguments = [self.scope[argument] for argument in node.arguments]
        is_read = [reads_parameter(node.function, k) for k in range(len(arguments))]
        read = compress(arguments, is_read)
        axes = self.space.order_axes([v for a in read for v in a.axes])
        texts = zip(arguments, is_read, strict=True)
        codes = [expand_axes(a, axes) if reads else a.code for a, reads in texts]
        return Text(self.source.call(node.function, *codes), axes)

    def _write_choose(self, node: Choose) -> Text:
        text = self.scope[node.otherwise]
        for case in reversed(node.cases):
            mask, value = self.mask(case.guards), self.scope[case.value]
            axes = self.space.order_axes([*mask.axes, *value.axes, *text.axes])
            parts = [expand_axes(part, axes) for part in (mask, value, text)]
            text = self._assign_name(node.name, Text(f"np.where({', '.join(parts)})", axes))
        return text

    def track(self, name: str, axes: tuple[Variable, ...]) -> None:
        """Delete an array with these axes after its last use, if it is known to be large."""
        sizes = [self.space.axis(v).size for v in axes]
        if all(size.is_constant for size in sizes):
            self.state.track(name, prod(size.constant for size in sizes))

    def _assign_name(self, stem: str, text: Text) -> Text:
        name = self.source.names.new(stem)
        self.source.text.add(f"{name} = {text.code}")
        self.track(name, text.axes)
        return Text(name, text.axes)

    def _write_read(self, node: BufferRead) -> Text:
        index = tuple(map(self.space.swap, node.index))
        if node in self.state.padded:
            name, sizes, low = self.state.padded[node]
            moved = tuple([e + k for e, k in zip(index, low, strict=True)])
            return read_text(self.space, Access(name, sizes, moved), self)
        offset = self.state.offsets.get(node.buffer)
        access = Access(node.buffer.name, node.buffer.dims, index, offset)
        if not node.buffer.dims:
            return Text(f"{node.buffer.name}[()]")
        return read_text(self.space, access, self)

    def _index_value(self, node: IndexValue) -> Text:
        expr = self.space.swap(node.expr)
        axes = self._axes(expr)
        kind = dtype_text(node.dtype)
        if not axes:
            return Text(f"np.int64({index_text(expr)}).astype({kind})")
        variable = expr.as_variable
        if variable is not None and variable in self.space.variables:
            axis = self.space.axis(variable)
            if axis.begin == as_expr(0) and node.dtype.kind in "iuf" and node.dtype.itemsize > 1:
                return Text(f"np.arange({index_text(axis.end)}, dtype={kind})", axes)
        code = as_operand(vector_text(self.space, expr, axes, self))
        return Text(f"{code}.astype({kind})", axes)

    def _axes(self, expr: Expr) -> tuple[Variable, ...]:
        axes: list[Variable] = []
        for v in expr.variables():
            if v in self.space.variables:
                axes.append(v)
            elif self.is_array(v.name):
                axes += self.runtime[v.name].axes
        return self.space.order_axes(axes)

    def mask(self, guards: Iterable[Constraint]) -> Text:
        """Return the conjunction of guards as a Boolean array."""
        parts: list[Text] = []
        for guard in guards:
            expr = self.space.swap(guard.expr)
            if Constraint(expr, guard.lower, guard.upper).is_true:
                continue
            axes = self._axes(expr)
            code = vector_text(self.space, expr, axes, self)
            low, high = expr.bounds
            if guard.lower == guard.upper:
                parts.append(Text(f"({code} == {guard.lower})", axes))
                continue
            if guard.lower > low:
                parts.append(Text(f"({code} >= {guard.lower})", axes))
            if guard.upper < high:
                parts.append(Text(f"({code} <= {guard.upper})", axes))
        axes = self.space.order_axes([v for part in parts for v in part.axes])
        return Text(" & ".join([expand_axes(part, axes) for part in parts]) or "True", axes)


def define(source: SourceBuilder, name: str, body: Body) -> None:
    """Write a computation of scalars as a function of arrays."""
    parameters = ", ".join([parameter.name for parameter in body.parameters])
    with source.text.indent_below(f"def {name}({parameters}):"):
        block = BlockWriter(WriterState(source), Space(()))
        for node in topological_order(body.results, with_cases):
            if isinstance(node, BufferRead):
                block.scope[node] = Text(node.buffer.name)
        codes = [block.text_of(result).code for result in body.results]
        source.text.add(f"return {', '.join(codes)}")


def reads_parameter(function: ScalarFunction, parameter: int, result: int = 0) -> bool:
    """Return True if a result of a function depends on a parameter.

    A computation of the module may ignore parameters.  The result then lacks their axes.
    """
    if not isinstance(function, ComputationFunction):
        return True
    return function.body.parameters[parameter] in function.body.read_by(result)
