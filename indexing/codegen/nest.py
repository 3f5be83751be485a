"""A loop nest as data: arrays, stages that fill them, and what one element of a stage is.

A nest is a row of *stages*.  Each loops over the dimensions of the array (or arrays) that it fills,
and says what one element is: an expression of elements that it reads, or a fold of such expressions
over range variables.  The last stage fills the result; earlier ones fill buffers that later ones
read.  Expressions are graphs: a part that is needed twice is the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval
from simplifier.linear import Expr

if TYPE_CHECKING:
    from indexing.codegen.numpy.program import Vectorized

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """An array that a nest reads or fills.

    Attributes:
        name: what it is called in sources.
        dims: its sizes.
        dtype: the type of its elements.
        origin: an "input", a "constant" (with its `value`), or filled by a "stage".
    """

    name: str
    dims: tuple[int, ...]
    dtype: np.dtype[Any]
    origin: Literal["input", "constant", "stage"]
    value: Array | None = None


# ---------------------------------------------------------------- functions of scalars


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """What is done with scalars, or with arrays of them element by element.

    Attributes:
        name: as it stands in sources: ``+``, ``np.exp``, ``numerics.divide``, ``to_f32``, …
        style: how it is written: between its arguments, before its one argument, or as a call.
        call: the same on arrays.
        body: what a computation of the module computes; else None.
    """

    name: str
    style: Literal["infix", "prefix", "call"]
    call: Callable[..., Any]
    body: Body | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A computation of scalars: its parameters, and its results (several for a tuple)."""

    parameters: tuple[Buffer, ...]
    results: tuple[Element, ...]


# ---------------------------------------------------------------- elements


@dataclass(frozen=True, slots=True, eq=False)
class Runtime:
    """A variable whose value is an element of an array: ``rt0 = clamp(indices[d0])``."""

    variable: Variable
    value: Element
    clamp: Interval


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """``buffer[index]``."""

    buffer: Buffer
    index: tuple[Expr, ...]
    runtime: tuple[Runtime, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A number that the program says."""

    value: Array


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """An index as a value: what iota gives."""

    expr: Expr
    dtype: np.dtype[Any]
    runtime: tuple[Runtime, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """``function(arguments)``, of type `dtype`; `name` is that of the instruction."""

    function: Function
    arguments: tuple[Element, ...]
    name: str
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """What an element is where the guards hold."""

    guards: tuple[Constraint, ...]
    value: Element
    runtime: tuple[Runtime, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Choose:
    """The value of the first case whose guards hold, or `otherwise`.

    Attributes:
        name: that of the instruction.
        rest: guards that say where no case holds, if that can be said.
    """

    cases: tuple[Case, ...]
    otherwise: Element
    name: str
    rest: tuple[Constraint, ...] = ()


Element: TypeAlias = Read | Scalar | Place | Apply | Choose


@dataclass(frozen=True, slots=True, eq=False)
class Placing:
    """The same fold from the other side: each value says into which element it goes.

    Attributes:
        dims: loops over all values, those that decide about places first.
        values: what is folded into the elements.
        index: which element of the result it goes to.
        guards: when it goes anywhere.
    """

    dims: tuple[Variable, ...]
    values: tuple[Element, ...]
    index: tuple[Expr, ...]
    guards: tuple[Constraint, ...]
    runtime: tuple[Runtime, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """``total = function(total, values)`` over the range variables, where the guards hold.

    Attributes:
        function: takes the totals, then the values; gives the totals.
        inits: what the totals are at first.
        ranges: outermost first.
        finish: what is done with each total in the end (rounding to the type of the result).
        placing: the same from the other side, for a scatter: most elements get no value.
    """

    function: Function
    inits: tuple[Element, ...]
    values: tuple[Element, ...]
    ranges: tuple[Variable, ...]
    guards: tuple[Constraint, ...] = ()
    runtime: tuple[Runtime, ...] = ()
    finish: Function | None = None
    placing: Placing | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Fills `buffers`, all of the same sizes: each element is `body`.

    Attributes:
        dims: the loop over each dimension, outermost first.
        body: an element, or a fold with a total for each buffer.
    """

    buffers: tuple[Buffer, ...]
    dims: tuple[Variable, ...]
    body: Element | Fold

    @property
    def name(self) -> str:
        """The name of the (first) buffer."""
        return self.buffers[0].name


def children(node: Element | Runtime) -> tuple[Element | Runtime, ...]:
    """What a node needs wherever it is needed itself: not the values of cases."""
    match node:
        case Read() | Place():
            return node.runtime
        case Apply():
            return node.arguments
        case Choose():
            return tuple([rt for case in node.cases for rt in case.runtime])
        case Runtime():
            return (node.value,)
        case Scalar():
            return ()


def everything(stage: Stage) -> Iterator[Element | Runtime]:
    """Every node of a stage, each once, after those that it needs."""
    roots: list[Element | Runtime] = []
    if isinstance(stage.body, Fold):
        fold, placing = stage.body, stage.body.placing
        roots += [*fold.inits, *fold.runtime, *fold.values]
        if placing is not None:
            roots += [*placing.runtime, *placing.values]
    else:
        roots.append(stage.body)
    yield from in_order(roots, with_cases)


def with_cases(node: Element | Runtime) -> tuple[Element | Runtime, ...]:
    """`children`, and the values of cases."""
    if isinstance(node, Choose):
        return (*children(node), *[case.value for case in node.cases], node.otherwise)
    return children(node)


def in_order(
    roots: list[Element | Runtime],
    below: Callable[[Element | Runtime], tuple[Element | Runtime, ...]] = children,
) -> Iterator[Element | Runtime]:
    """`roots` and what they need, each once, after what it needs itself."""
    seen: set[int] = set()
    for root in roots:
        waiting: list[tuple[Element | Runtime, bool]] = [(root, False)]
        while waiting:
            node, is_ready = waiting.pop()
            if is_ready:
                yield node
            elif id(node) not in seen:
                seen.add(id(node))
                waiting.append((node, True))
                waiting.extend((child, False) for child in reversed(below(node)))


# ---------------------------------------------------------------- the nest


@dataclass(frozen=True, slots=True, eq=False)
class LoopNest:
    """Loops that compute an array, made from indexing maps.

    Attributes:
        name: of the instruction or computation.
        inputs: the arrays that `run` is given: the leaves of the operands, in order.
        constants: arrays that the program says.
        stages: in the order in which they run; the last one fills the result.
        output: the buffer that is the result.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... ENTRY e {
    ...   p = f32[2,3] parameter(0)
    ...   ROOT t = f32[3,2] transpose(p), dimensions={1,0}
    ... }''')
    >>> nest = indexing.loop_nest(module.entry.root)
    >>> print(nest.source)
    def t(p):
        out = np.empty((3, 2), np.float32)
        for d0 in range(3):
            for d1 in range(2):
                out[d0, d1] = p[d1, d0]
        return out
    >>> nest.run(np.array([[1, 2, 3], [4, 5, 6]], np.float32)).tolist()
    [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    """

    name: str
    inputs: tuple[Buffer, ...]
    constants: tuple[Buffer, ...]
    stages: tuple[Stage, ...]
    output: Buffer

    @property
    def source(self) -> str:
        """The loops as Python that a person can read; `run` executes just this."""
        from indexing.codegen.loops import loop_program

        return loop_program(self).source

    def run(self, *arrays: Array, tile: tuple[int, ...] | None = None) -> Array:
        """The result for these inputs, by the loops of `source`; meant for small arrays.

        Args:
            arrays: one for each of `inputs`.
            tile: sizes of a box; the vectorised form is run for each such box of the result.
        Raises:
            ValueError: `arrays` are not as many as `inputs`, or differ in shape or type.
        """
        if tile is not None:
            return self.vectorized().run(*arrays, tile=tile)
        from indexing.codegen.loops import loop_program

        return loop_program(self)(*self.checked(arrays))

    def vectorized(self) -> Vectorized:
        """The same computation as a NumPy program; what to run on larger arrays."""
        from indexing.codegen.numpy.program import program_of

        return program_of(self)

    def checked(self, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """`arrays`, which must be those that the nest takes."""
        if len(arrays) != len(self.inputs):
            names = ", ".join(buffer.name for buffer in self.inputs)
            raise ValueError(
                f"`{self.name}` takes {len(self.inputs)} arrays ({names}); {len(arrays)} are given"
            )
        given = tuple([np.asarray(array) for array in arrays])
        for buffer, array in zip(self.inputs, given, strict=True):
            if array.shape != buffer.dims or array.dtype != buffer.dtype:
                wanted, found = (
                    f"{dtype.name}[{','.join(map(str, dims))}]"
                    for dtype, dims in (
                        (buffer.dtype, buffer.dims),
                        (array.dtype, array.shape),
                    )
                )
                raise ValueError(f"input `{buffer.name}` of `{self.name}` is {wanted}, not {found}")
        return given
