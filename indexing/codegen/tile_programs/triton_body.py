"""Values of a step in the words of Triton: pointers, offsets and masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from hlo.shapes.shape import ELEMENT_TYPES, Shape
from indexing.codegen.text import Lines, Names
from indexing.codegen.tile_programs.body_text import (
    BodyWriter,
    ContractedAxes,
    first_index,
    number_text,
)
from indexing.codegen.tile_programs.program import NotEmitted, TileProgram
from indexing.codegen.tile_programs.tile_values import (
    TileApply,
    TileFold,
    TileLoad,
    TileValue,
)
from indexing.codegen.tile_programs.triton_functions import COMBINERS, triton_call, triton_type
from indexing.maps.arrays import ArrayRef
from indexing.ops.functions import ScalarFunction
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

MAX_NUMEL: Final = 1 << 20
"""Triton's limit on the elements of a tensor."""
MIN_DOT: Final = 16
"""The smallest size of a product of matrices that every GPU has."""


class TritonBody(BodyWriter):
    """Writes the values of one phase.

    Args:
        program: the program.
        lines: the lines.
        names: the names.
        order: the order of the dimensions of values.
        pointers: the name of the pointer to each array.
        combiners: collects the functions that combine elements.
        totals: the text of the total of each nest, by number and state.
    """

    infinity, nan = 'float("inf")', 'float("nan")'

    def __init__(
        self,
        program: TileProgram,
        lines: Lines,
        names: Names,
        order: Sequence[int],
        pointers: Mapping[ArrayRef, str],
        combiners: dict[str, str],
        totals: Mapping[tuple[int, str], str],
    ) -> None:
        super().__init__(program, lines, names, order, totals)
        self._pointers, self._combiners = pointers, combiners

    def call(self, function: ScalarFunction, arguments: Sequence[str], value: TileApply) -> str:
        if function.name == "numerics.divide" and ELEMENT_TYPES[value.kind].kind != "floating":
            raise NotEmitted(f"`{value.name}` divides integers")
        if function.name == "np.where" or function.name.startswith("to_"):
            return triton_call(function, arguments, value.kind)
        # arithmetic of narrow floats is that of f32, rounded
        pairs = zip(arguments, value.arguments, strict=True)
        wide = [self.cast(t, "f32") if _is_narrow(a) and _is_tensor(t) else t for t, a in pairs]
        if not _is_narrow(value):
            return triton_call(function, wide, value.kind)
        text = triton_call(function, wide, "f32")
        return self.cast(f"({text})", value.kind)

    def cast(self, text: str, kind: str) -> str:
        return f"{text}.to({triton_type(kind)})"

    def full(self, number: Any, kind: str) -> str:
        text = number_text(number, self.infinity, self.nan)
        return f"tl.full((), {text}, {triton_type(kind)})"

    def extent(self, axis: int) -> int:
        return 1 << (self.program.extent(axis) - 1).bit_length()

    def sizes(self, axes: Sequence[int]) -> list[int]:
        """Return the sizes of the dimensions of a value with these axes.

        Raises:
            NotEmitted: there are more elements than a tensor of Triton may have.
        """
        sizes = [self.extent(axis) for axis in self.active(axes)]
        if prod(sizes) > MAX_NUMEL:
            raise NotEmitted(
                f"a tile of {' x '.join(map(str, sizes))} elements exceeds Triton's limit of "
                f"{MAX_NUMEL:,}"
            )
        return sizes

    def load(self, load: TileLoad) -> str:
        shape = load.array.array_shape
        assert shape is not None
        self.sizes(load.axes)
        offset = offset_of(load.index, shape, load.array.instruction.name)
        pointer = f"{self._pointers[load.array]} + {self.number(offset, load.axes)}"
        mask = self.mask(tuple(self.bounds_of(load, shape)), load.axes)
        return (
            f"tl.load({pointer})" if mask is None else f"tl.load({pointer}, mask={mask}, other=0)"
        )

    def bounds_of(self, load: TileLoad, shape: Shape) -> list[Constraint]:
        """Return the conditions under which a load is within its array."""
        guards = self.axis_guards(load.axes)
        for expr, size in zip(load.index, shape.dims, strict=True):
            low, high = expr.bounds
            if low < 0 or high >= size:
                guards.append(Constraint(expr, 0, size - 1))
        return guards

    def is_padded(self, axis: int) -> bool:
        own, extent = self.program.axis(axis), self.extent(axis)
        return (own.count - 1) * own.step + extent > own.size or extent > own.step < own.size

    def condition(self, guard: Constraint, axes: Sequence[int]) -> str:
        """Return the text of a condition; tiles of three rows have no fourth one."""
        text = super().condition(guard, axes)
        variable = guard.expr.as_variable
        if variable is None:
            return text
        axis = dimension_of(variable)
        own, extent = self.program.axis(axis), self.extent(axis)
        if extent > own.step < own.size and guard.upper == own.size - 1:
            index = self.number(guard.expr, axes)
            inside = f"({index} < tid_{axis} * {own.step} + {own.step})"
            return f"{inside} & {text}" if own.size % own.step else inside
        return text

    def where(self, mask: str, value: str, otherwise: str) -> str:
        return f"tl.where({mask}, {value}, {otherwise})"

    def index_vector(self, axis: int, joint: tuple[int, ...]) -> str:
        own = self.program.axis(axis)
        start = first_index(axis, own)
        if axis not in joint:
            return start or "0"
        inside = ", ".join([":" if each == axis else "None" for each in joint])
        text = f"tl.arange(0, {self.extent(axis)})"
        text = f"{start} + {text}" if start else text
        if len(joint) == 1:
            return text
        return f"({text})[{inside}]" if start else f"{text}[{inside}]"

    # ------------------------------------------------------------ folds

    def contraction(self, fold: TileFold, left: str, right: str) -> str | None:
        axes = self.contracted_axes(fold)
        if axes is None or not self._is_product_of_matrices(fold, axes):
            return None
        (over,) = axes.over
        first, second = axes.terms
        left = left if first[1] == over else f"tl.trans({left})"
        right = right if second[0] == over else f"tl.trans({right})"
        text = f'tl.dot({left}, {right}, input_precision="ieee")'
        return text if self.active(axes.result) == axes.result else f"tl.trans({text})"

    def _is_product_of_matrices(self, fold: TileFold, axes: ContractedAxes) -> bool:
        """Return True for two matrices of one type whose sizes a product may have."""
        ranks = (len(axes.over), len(axes.batch), *[len(own) for own in axes.terms])
        kinds = {term.kind for term in fold.terms}
        if ranks != (1, 0, 2, 2) or len(kinds) > 1 or fold.total_kind != "f32":
            return False
        return min([self.extent(axis) for axis in (*axes.over, *axes.result)]) >= MIN_DOT

    def folded(self, fold: TileFold, text: str, joint: tuple[int, ...]) -> str:
        active = list(self.active(joint))
        self.sizes(active)
        over = self.active(fold.over)
        if not over:
            return text
        name = f"combine_{fold.combine.__name__}"
        self._combiners[name] = COMBINERS[fold.combine]
        for axis in over:
            place = active.index(axis)
            active.remove(axis)
            text = f"tl.reduce({text}, {place}, {name})"
        return text

    def combined(self, ufunc: np.ufunc, left: str, right: str) -> str:
        return triton_call(ScalarFunction.of(ufunc), [left, right], "f32")


def _is_narrow(value: TileValue) -> bool:
    element = ELEMENT_TYPES[value.kind]
    return element.kind == "floating" and element.bits < 32


def _is_tensor(text: str) -> bool:
    """Return False for a number of Python."""
    return (text[0].isalpha() and not text.startswith("float(")) or text[0] == "_"


def offset_of(index: Sequence[Expr], shape: Shape, name: str) -> Expr:
    """Return the position of an element in memory, in elements.

    Raises:
        NotEmitted: the layout has tiles, or positions exceed 32 bits.
    """
    layout = shape.layout_or_default
    if layout.tiles:
        raise NotEmitted(f"the layout of `{name}` has tiles: it is none of a GPU")
    if shape.size >= 1 << 31:
        raise NotEmitted(f"`{name}` has {shape.size:,} elements: offsets exceed 32 bits")
    offset, stride = as_expr(0), 1
    for dimension in layout.minor_to_major:
        offset = offset + index[dimension] * stride
        stride *= shape.dims[dimension]
    return offset
