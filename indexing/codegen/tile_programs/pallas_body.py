"""Values of a step in the words of JAX, for the body of a Pallas kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from indexing.codegen.text import Lines, Names, tuple_text
from indexing.codegen.tile_programs.block_layouts import ArrayBlock
from indexing.codegen.tile_programs.body_text import (
    BodyWriter,
    first_index,
    map_places,
    number_text,
)
from indexing.codegen.tile_programs.pallas_functions import FOLDS, jax_call, jax_type
from indexing.codegen.tile_programs.program import NotEmitted, TileProgram
from indexing.codegen.tile_programs.tile_values import TileApply, TileFold, TileLoad
from indexing.ops.functions import ScalarFunction


class PallasBody(BodyWriter):
    """Writes the values of one phase.

    Args:
        program: the program.
        lines: the lines.
        names: the names.
        order: the order of the dimensions of values.
        refs: the name of the reference and the block of each load.
        totals: the text of the total of each nest, by number and state.
    """

    infinity, nan = "jnp.inf", "jnp.nan"

    def __init__(
        self,
        program: TileProgram,
        lines: Lines,
        names: Names,
        order: Sequence[int],
        refs: Mapping[TileLoad, tuple[str, ArrayBlock]],
        totals: Mapping[tuple[int, str], str],
    ) -> None:
        super().__init__(program, lines, names, order, totals)
        self._refs = refs

    def call(self, function: ScalarFunction, arguments: Sequence[str], value: TileApply) -> str:
        return jax_call(function, arguments, value.kind)

    def cast(self, text: str, kind: str) -> str:
        if text.endswith(f".astype({jax_type(kind)})"):
            return text
        return f"{text}.astype({jax_type(kind)})"

    def full(self, number: Any, kind: str) -> str:
        return f"jnp.full((), {number_text(number, self.infinity, self.nan)}, {jax_type(kind)})"

    def load(self, load: TileLoad) -> str:
        name, block = self._refs[load]
        return block.rearranged(f"{name}[...]", self.order)

    def where(self, mask: str, value: str, otherwise: str) -> str:
        return f"jnp.where({mask}, {value}, {otherwise})"

    def index_vector(self, axis: int, joint: tuple[int, ...]) -> str:
        own = self.program.axis(axis)
        start = first_index(axis, own)
        if axis not in joint:
            return start or "0"
        shape = tuple_text([self.extent(each) for each in joint])
        count = f"jax.lax.broadcasted_iota(jnp.int32, {shape}, {joint.index(axis)})"
        return f"{start} + {count}" if start else count

    def contraction(self, fold: TileFold, left: str, right: str) -> str | None:
        axes = self.contracted_axes(fold)
        if axes is None:
            return None
        numbers = ", ".join(
            [
                f"({', '.join([tuple_text(map_places(own, each)) for own in axes.terms])})"
                for each in (axes.over, axes.batch)
            ]
        )
        text = (
            f"jax.lax.dot_general({left}, {right}, ({numbers}), "
            f"preferred_element_type={jax_type(fold.total_kind)})"
        )
        wanted = self.active(axes.result)
        if wanted != axes.result:
            text += f".transpose({tuple_text(map_places(axes.result, wanted))})"
        return text

    def folded(self, fold: TileFold, text: str, joint: tuple[int, ...]) -> str:
        active = self.active(joint)
        places = tuple([active.index(axis) for axis in self.active(fold.over)])
        if not places:
            return text
        if fold.combine not in FOLDS:
            raise NotEmitted(f"`{fold.name}` combines elements by {fold.combine.__name__}")
        typed = ", dtype=" + jax_type(fold.total_kind) if fold.combine in _TYPED else ""
        return f"{FOLDS[fold.combine]}({text}, axis={tuple_text(places)}{typed})"

    def extent(self, axis: int) -> int:
        return self.program.extent(axis)

    def combined(self, ufunc: np.ufunc, left: str, right: str) -> str:
        return jax_call(ScalarFunction.of(ufunc), [left, right], "f32")


_TYPED = (np.add, np.multiply)
