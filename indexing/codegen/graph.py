"""The element graph: the computation of one element of an array.

A nest is a sequence of *stages* (`indexing.codegen.stages`).  A stage loops over the dimensions of
the buffers that it fills.  Its body is the element at an index: a node over reads of other buffers,
or a reduction over range variables.  Nodes form a DAG: equal elements are one object.  Lowering
builds the graph, staging decides which arrays are buffers, and two printers write it: `loops` as
Python loops, `numpy.program` as a NumPy program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexing.ops.functions import ScalarFunction
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval
from simplifier.linear import Expr

Array: TypeAlias = NDArray[Any]
Index: TypeAlias = tuple[Expr, ...]
Guards: TypeAlias = tuple[Constraint, ...]
BufferRole: TypeAlias = Literal["input", "constant", "stage"]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """An array that a nest reads or fills.

    Attributes:
        name: its name in generated code.
        dims: its sizes.
        dtype: the type of its elements.
        role: an "input", a "constant" (with its `value`), or filled by a "stage".
    """

    name: str
    dims: tuple[int, ...]
    dtype: np.dtype[Any]
    role: BufferRole
    value: Array | None = None


# ---------------------------------------------------------------- nodes


@dataclass(frozen=True, slots=True, eq=False)
class Runtime:
    """A variable whose value is an element of an array: ``rt0 = clamp(indices[d0])``."""

    variable: Variable
    value: Node
    clamp: Interval


@dataclass(frozen=True, slots=True, eq=False)
class BufferRead:
    """``buffer[index]``; `runtime` is the runtime variables of the index."""

    buffer: Buffer
    index: Index
    runtime: tuple[Runtime, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A scalar constant."""

    value: Array


@dataclass(frozen=True, slots=True, eq=False)
class IndexValue:
    """An index converted to a value of type `dtype`: the element of an iota."""

    expr: Expr
    dtype: np.dtype[Any]
    runtime: tuple[Runtime, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """``function(arguments)``, of type `dtype`; `name` is the name of the instruction."""

    function: ScalarFunction
    arguments: tuple[Node, ...]
    name: str
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The value of an element where the guards hold."""

    guards: Guards
    value: Node
    runtime: tuple[Runtime, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """The value of the first case whose guards hold, or `otherwise`.

    Attributes:
        name: the name of the instruction.
        rest: guards that hold exactly if no case applies; () if guards cannot express this.
    """

    cases: tuple[Case, ...]
    otherwise: Node
    name: str
    rest: Guards = ()


Node: TypeAlias = BufferRead | Scalar | IndexValue | Apply | Choose | Runtime


@dataclass(frozen=True, slots=True, eq=False)
class ScatterReduction:
    """A reduction in scatter form: a loop over the values, each of which updates one element.

    Attributes:
        dims: loops over all values; those that the runtime variables depend on are outermost.
        values: values to reduce, one for each total.
        index: the index of the element that a value updates.
        guards: conditions under which a value is reduced.
    """

    dims: tuple[Variable, ...]
    values: tuple[Node, ...]
    index: Index
    guards: Guards
    runtime: tuple[Runtime, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """``totals = function(totals, values)`` over the range variables, where the guards hold.

    Attributes:
        function: maps the totals followed by the values to the new totals.
        inits: initial values of the totals.
        ranges: range variables, outermost first.
        finish: applied to each final total: rounds to the type of the result.
        scatter: the reduction in scatter form, for results of which few elements are updated.
        is_product: the value is a product of two factors, so that the reduction is a contraction.
    """

    function: ScalarFunction
    inits: tuple[Node, ...]
    values: tuple[Node, ...]
    ranges: tuple[Variable, ...] = ()
    guards: Guards = ()
    runtime: tuple[Runtime, ...] = ()
    finish: ScalarFunction | None = None
    scatter: ScatterReduction | None = None
    is_product: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A computation of scalars: its parameters and results (several for a tuple)."""

    parameters: tuple[Buffer, ...]
    results: tuple[Node, ...]
    _read_by: dict[int, frozenset[Buffer]] = field(default_factory=dict, init=False, repr=False)

    def read_by(self, result: int) -> frozenset[Buffer]:
        """Return the parameters that a result depends on."""
        if result not in self._read_by:
            nodes = topological_order([self.results[result]], with_cases)
            reads = [node.buffer for node in nodes if isinstance(node, BufferRead)]
            self._read_by[result] = frozenset(reads)
        return self._read_by[result]


@dataclass(frozen=True, slots=True, eq=False)
class ComputationFunction(ScalarFunction):
    """A computation of the module as a function of scalars.

    Attributes:
        work: the number of functions that one application executes.
    """

    body: Body = field(kw_only=True)
    work: int = field(kw_only=True)


# ---------------------------------------------------------------- traversal


def dtype_of(node: Node) -> np.dtype[Any]:
    """Return the type of a node's value."""
    match node:
        case BufferRead():
            return node.buffer.dtype
        case Scalar():
            return node.value.dtype
        case Choose():
            return dtype_of(node.otherwise)
        case Runtime():
            return np.dtype(np.int64)
        case IndexValue() | Apply():
            return node.dtype


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node evaluates unconditionally: all but the values of cases."""
    match node:
        case BufferRead() | IndexValue():
            return node.runtime
        case Apply():
            return node.arguments
        case Choose():
            return tuple([rt for case in node.cases for rt in case.runtime])
        case Runtime():
            return (node.value,)
        case Scalar():
            return ()


def with_cases(node: Node) -> tuple[Node, ...]:
    """Return all children of a node, including the values of cases."""
    if isinstance(node, Choose):
        return (*children(node), *[case.value for case in node.cases], node.otherwise)
    return children(node)


def topological_order(
    roots: Iterable[Node], children: Callable[[Node], tuple[Node, ...]] = children
) -> Iterator[Node]:
    """Yield `roots` and the nodes that they depend on in topological order, each once."""
    seen: set[Node] = set()
    for root in roots:
        waiting: list[tuple[Node, bool]] = [(root, False)]
        while waiting:
            node, is_ready = waiting.pop()
            if is_ready:
                yield node
            elif node not in seen:
                seen.add(node)
                waiting.append((node, True))
                waiting.extend((child, False) for child in reversed(children(node)))


def roots_of(body: Node | Reduction) -> tuple[Node, ...]:
    """Return the nodes of a stage from which all its other nodes are reachable."""
    if not isinstance(body, Reduction):
        return (body,)
    roots = (*body.inits, *body.runtime, *body.values)
    scatter = body.scatter
    return roots if scatter is None else (*roots, *scatter.runtime, *scatter.values)


def exprs_of(nodes: Iterable[Node]) -> Iterator[Expr]:
    """Yield the index expressions of reads and index values."""
    for node in nodes:
        if isinstance(node, BufferRead):
            yield from node.index
        elif isinstance(node, IndexValue):
            yield node.expr
