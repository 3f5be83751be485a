"""Text of the values of a step: what the printers of Pallas and of Triton have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.codegen.text import Lines, Names, identifier, index_text
from indexing.codegen.tile_programs.program import NotEmitted, StepTotal, TileProgram
from indexing.codegen.tile_programs.tile_values import (
    Guards,
    TileApply,
    TileChoice,
    TileFold,
    TileIndex,
    TileLoad,
    TileScalar,
    TileTotal,
    TileValue,
    guard_axes,
)
from indexing.ops.functions import ScalarFunction, neutral
from indexing.tiling.loops.axes import StepAxis, joint_axes
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution


class ContractedAxes(NamedTuple):
    """The axes of a sum of products.

    Attributes:
        over: the axes of the sum.
        batch: further axes of both factors.
        terms: the axes of each factor, in its order.
        result: the axes of the product: of the batch, of the first factor, of the second one.
    """

    over: tuple[int, ...]
    batch: tuple[int, ...]
    terms: tuple[tuple[int, ...], tuple[int, ...]]
    result: tuple[int, ...]


def map_places(own: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Return the places of axes among others.

    >>> map_places([4, 2, 0], [0, 4])
    [2, 0]
    """
    return [own.index(axis) for axis in axes]


class BodyWriter(ABC):
    """Writes lines that compute values, each once.

    Args:
        program: the program.
        lines: the lines.
        names: the names.
        order: the order of the dimensions of values.
        totals: the text of the total of each nest, by number and state.
    """

    infinity: str
    nan: str

    def __init__(
        self,
        program: TileProgram,
        lines: Lines,
        names: Names,
        order: Sequence[int],
        totals: Mapping[tuple[int, str], str],
    ) -> None:
        self.program, self.lines, self.names, self.order = program, lines, names, order
        self.totals = dict(totals)
        self._known: dict[TileValue, str] = {}
        self._indices: dict[str, str] = {}

    # ------------------------------------------------------------ what a language defines

    @abstractmethod
    def call(self, function: ScalarFunction, arguments: Sequence[str], value: TileApply) -> str:
        """Return the application of a function."""

    @abstractmethod
    def cast(self, text: str, kind: str) -> str:
        """Return a value converted to an element type."""

    @abstractmethod
    def full(self, number: Any, kind: str) -> str:
        """Return a number of an element type as a value."""

    @abstractmethod
    def load(self, load: TileLoad) -> str:
        """Return the elements of an array."""

    @abstractmethod
    def where(self, mask: str, value: str, otherwise: str) -> str:
        """Return a selection."""

    @abstractmethod
    def index_vector(self, axis: int, joint: tuple[int, ...]) -> str:
        """Return the indices along an axis, with the dimensions of `joint`."""

    @abstractmethod
    def contraction(self, fold: TileFold, left: str, right: str) -> str | None:
        """Return a product of matrices, or None if the terms are multiplied and summed."""

    @abstractmethod
    def folded(self, fold: TileFold, text: str, joint: tuple[int, ...]) -> str:
        """Return the combination of elements along the axes of a fold."""

    @abstractmethod
    def extent(self, axis: int) -> int:
        """Return the number of elements along an axis, padding included."""

    @abstractmethod
    def combined(self, ufunc: np.ufunc, left: str, right: str) -> str:
        """Return the combination of two values."""

    # ------------------------------------------------------------ values

    def active(self, axes: Sequence[int]) -> tuple[int, ...]:
        """Return the axes of which a tile or step has several elements, in order."""
        several = [axis for axis in axes if self.extent(axis) > 1]
        return tuple(sorted(several, key=self.order.index))

    def value(self, value: TileValue) -> str:
        """Write the lines that compute a value; return its text."""
        if value not in self._known:
            text = self._new(value)
            if not isinstance(value, TileScalar) and not text.isidentifier():
                text = self.assign(_name_of(value), text)
            self._known[value] = text
        return self._known[value]

    def assign(self, stem: str, text: str) -> str:
        """Write an assignment; return the name."""
        name = self.names.new(identifier(stem))
        self.lines.add(f"{name} = {text}")
        return name

    def along(self, value: TileValue, joint: Sequence[int]) -> str:
        """Return a value that broadcasts against values with the axes `joint`."""
        return expand_text(self.value(value), self.active(value.axes), self.active(joint))

    def _new(self, value: TileValue) -> str:
        match value:
            case TileLoad():
                return self.load(value)
            case TileScalar():
                return self.full(value.value.item(), value.kind)
            case TileIndex():
                return self.cast(self.number(value.expr, value.axes), value.kind)
            case TileApply():
                return self._apply_text(value)
            case TileChoice():
                return self._choice_text(value)
            case TileFold():
                total = self.fold(value)
                if value.init is not None:
                    init = self.cast(self.along(value.init, value.axes), value.total_kind)
                    total = self.combined(value.combine, total, init)
                if value.kind != value.total_kind:
                    total = self.cast(f"({total})", value.kind)
                return total
            case TileTotal():
                return self.totals[value.number, value.state]

    def _apply_text(self, value: TileApply) -> str:
        known = {a.kind for a in value.arguments if not isinstance(a, TileScalar)}
        texts = []
        for argument in value.arguments:
            if isinstance(argument, TileScalar) and argument.kind in known and _is_short(argument):
                texts.append(number_text(argument.value.item(), self.infinity, self.nan))
            else:
                texts.append(self.along(argument, value.axes))
        return self.call(value.function, texts, value)

    def _choice_text(self, value: TileChoice) -> str:
        text = self.along(value.otherwise, value.axes)
        for guards, case in reversed(value.cases):
            mask = self.mask(guards, value.axes)
            assert mask is not None
            text = self.where(mask, self.along(case, value.axes), text)
        return text

    # ------------------------------------------------------------ indices

    def number(self, expr: Expr, axes: Sequence[int]) -> str:
        joint = self.active(axes)
        swap: dict[Variable, Expr] = {}
        for v in expr.variables():
            name = self.index_name(dimension_of(v), joint)
            swap[v] = Variable(name, v.lower, v.upper).as_expr()
        text = index_text(Substitution(swap)(expr))
        return text if text.isidentifier() else f"({text})"

    def index_name(self, axis: int, joint: tuple[int, ...]) -> str:
        """Return the name of the indices along an axis, with the dimensions of `joint`."""
        text = self.index_vector(axis, joint)
        if text.isalnum() or text.isidentifier():
            return text
        if text not in self._indices:
            self._indices[text] = self.assign(f"index_{axis}", text)
        return self._indices[text]

    def mask(self, guards: Guards, axes: Sequence[int]) -> str | None:
        """Return the text of conditions; None without any."""
        parts = [self.condition(guard, axes) for guard in guards]
        return None if not parts else " & ".join(parts)

    def condition(self, guard: Constraint, axes: Sequence[int]) -> str:
        """Return the text of a condition."""
        text, (low, high) = self.number(guard.expr, axes), guard.expr.bounds
        if guard.lower <= low:
            return f"({text} < {guard.upper + 1})"
        if guard.upper >= high:
            return f"({text} >= {guard.lower})"
        return f"({text} >= {guard.lower}) & ({text} < {guard.upper + 1})"

    # ------------------------------------------------------------ folds

    def is_padded(self, axis: int) -> bool:
        """Return True if a step may have indices beyond the end of an axis."""
        own = self.program.axis(axis)
        return own.size % own.step != 0 or self.extent(axis) != self.program.extent(axis)

    def guards_of(self, fold: TileFold) -> list[Constraint]:
        """Return the conditions under which terms count: also that they are within the loops."""
        return [*fold.guards, *self.axis_guards(fold.over)]

    def axis_guards(self, axes: Sequence[int]) -> list[Constraint]:
        """Return the conditions under which the indices along axes are within them."""
        guards = []
        for axis in axes:
            if self.is_padded(axis):
                size = self.program.axis(axis).size
                index = Variable(f"d{axis}", 0, size + self.extent(axis)).as_expr()
                guards.append(Constraint(index, 0, size - 1))
        return guards

    def fold(self, fold: TileFold) -> str:
        """Return the combination of the terms of one step, in the type of totals."""
        guards = self.guards_of(fold)
        zero = neutral(fold.combine, dtype(fold.total_kind))
        if len(fold.terms) == 2:
            zero = 0
        terms = [self._guard_term(term, guards, zero) for term in fold.terms]
        if len({term.kind for term in fold.terms}) > 1:
            terms = [self.cast(text, fold.total_kind) for text in terms]
        if len(fold.terms) == 2:
            text = self.contraction(fold, *terms)
            if text is not None:
                return text
        joint = joint_axes([fold.axes, fold.over])
        wide = []
        for text, term in zip(terms, fold.terms, strict=True):
            own = self.active(self.term_axes(term, guards))
            text = expand_text(text, own, self.active(joint))
            wide.append(text if term.kind == fold.total_kind else self.cast(text, fold.total_kind))
        return self.folded(fold, " * ".join(wide), joint)

    def finished(self, total: StepTotal) -> str:
        """Return the result of a nest from its total after the loops, in the type of totals."""
        text, fold = self.totals[total.number, "final"], total.fold
        for factor, is_divisor in total.factors:
            sign = "/" if is_divisor else "*"
            text = f"{text} {sign} {self.along(factor, total.axes)}"
        if fold.init is not None:
            init = self.cast(self.along(fold.init, total.axes), fold.total_kind)
            text = self.combined(fold.combine, f"({text})", init)
        return text

    def contracted_axes(self, fold: TileFold) -> ContractedAxes | None:
        """Return the axes of a sum of products; None if a factor lacks an axis of the sum."""
        guards = self.guards_of(fold)
        first, second = [self.active(self.term_axes(term, guards)) for term in fold.terms]
        over = self.active(fold.over)
        if not over or not {*over} <= {*first} & {*second}:
            return None
        batch = tuple([axis for axis in first if axis in second and axis not in over])
        free = [axis for axis in (*first, *second) if axis not in (*over, *batch)]
        return ContractedAxes(over, batch, (first, second), (*batch, *free))

    def term_axes(self, term: TileValue, guards: Sequence[Constraint]) -> tuple[int, ...]:
        """Return the axes of a term and of its guards."""
        return joint_axes([term.axes, guard_axes(guards)])

    def _guard_term(self, term: TileValue, guards: Sequence[Constraint], zero: Any) -> str:
        if not guards:
            return self.value(term)
        axes = self.term_axes(term, guards)
        mask = self.mask(tuple(guards), axes)
        assert mask is not None
        text = number_text(np.asarray(zero).item(), self.infinity, self.nan)
        return self.assign(_name_of(term), self.where(mask, self.along(term, axes), text))


def _is_short(number: TileScalar) -> bool:
    """Return False for an integer that Python's numbers in kernels do not have: beyond 32 bits."""
    value = number.value.item()
    return not isinstance(value, int) or abs(value) < 1 << 31


def operator_text(function: ScalarFunction, arguments: Sequence[str]) -> str | None:
    """Return the application of an operator of Python; None for a function with a name."""
    match function.style:
        case "infix":
            return f" {function.name} ".join(arguments)
        case "prefix":
            return f"{function.name}{arguments[0]}"
    return None


def type_text(kind: str, module: str, predicate: str) -> str:
    """Return the name of an element type in a module of JAX or Triton.

    Args:
        predicate: the module's name of ``pred``.

    >>> type_text("bf16", "jnp", "bool_"), type_text("u8", "tl", "int1")
    ('jnp.bfloat16', 'tl.uint8')
    """
    element = ELEMENT_TYPES[kind]
    if element.kind == "pred":
        return f"{module}.{predicate}"
    if kind in ("bf16", "f16", "f32", "f64"):
        return f"{module}.bfloat16" if kind == "bf16" else f"{module}.float{kind[1:]}"
    if element.kind in ("integral", "unsigned") and element.bits >= 8:
        return f"{module}.{'u' if element.kind == 'unsigned' else ''}int{element.bits}"
    raise NotEmitted(f"the element type {kind} has no text in kernels")


def first_index(axis: int, own: StepAxis) -> str:
    """Return the first index of a tile or step as text; empty for 0."""
    if own.count == 1:
        return ""
    return f"tid_{axis} * {own.step}" if own.step > 1 else f"tid_{axis}"


def expand_text(text: str, own: Sequence[int], joint: Sequence[int]) -> str:
    """Return a value with dimensions of size 1 for the axes that it does not have."""
    if not own or tuple(own) == tuple(joint):
        return text
    inside = ", ".join([":" if axis in own else "None" for axis in joint])
    return f"{text}[{inside}]"


def number_text(number: Any, infinity: str, nan: str) -> str:
    """Return a number as Python text.

    >>> number_text(-np.inf, "jnp.inf", "jnp.nan"), number_text(True, "jnp.inf", "jnp.nan")
    ('-jnp.inf', 'True')
    """
    if isinstance(number, complex):
        raise NotEmitted("complex numbers have no type in kernels")
    if isinstance(number, bool | int):
        return str(number)
    number = float(number)
    if number != number:
        return nan
    if np.isinf(number):
        return infinity if number > 0 else f"-{infinity}"
    return repr(number)


def _name_of(value: TileValue) -> str:
    match value:
        case TileLoad():
            return value.array.instruction.name
        case TileIndex():
            return "index"
        case TileScalar():
            return "number"
        case _:
            return value.name
