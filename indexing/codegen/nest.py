"""`LoopNest`: a nest and its two printed forms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hlo.modules.module import Instruction
from indexing.codegen.graph import Array
from indexing.codegen.loops import LoopProgram
from indexing.codegen.numpy.program import Vectorized
from indexing.codegen.stages import Nest
from indexing.tiling.sets.tiling import Tiling, tile
from simplifier.unknown import Unknown


class LoopNest(Nest):
    """Loops that compute an array, generated from indexing maps; see `Nest` for the attributes.

    >>> import hlo, indexing, numpy as np
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

    @property
    def source(self) -> str:
        """The nest as Python loops: the text that `run` executes."""
        return self._loops.source

    def run(self, *arrays: Array, tile: tuple[int, ...] | None = None) -> Array:
        """Execute the Python loops of `source` on these inputs; suits small arrays.

        Args:
            arrays: one for each of `inputs`.
            tile: tile sizes, one for each dimension of the result; executes the vectorised form
                tile by tile instead.
        Returns:
            The result, with the sizes and type of `output`.
        Raises:
            ValueError: the number of arrays, a shape or a type differs from `inputs`, or the tile
                does not match the result.
        """
        if tile is not None:
            return self.vectorized().run(*arrays, tile=tile)
        return self._loops.run(*arrays)

    def vectorized(self) -> Vectorized:
        """Return the nest as a NumPy program, for larger arrays."""
        return self._vectorized_program

    def tiling(self, sizes: Sequence[int]) -> Tiling | Unknown:
        """Return the tiles of the result, and the elements of the inputs that each tile needs.

        The tiles are those that ``run(tile=sizes)`` and `Vectorized.tiles` execute.

        Raises:
            ValueError: `sizes` has not one positive size for each dimension.

        >>> import hlo, indexing
        >>> module = hlo.parse("ENTRY e { p = s32[3] parameter(0)  ROOT n = s32[3] negate(p) }")
        >>> tiling = indexing.loop_nest(module.entry).tiling((2,))
        >>> [(tiling.slices(*index), str(tiling.at(*index)[0])) for index in tiling.tiles()]
        [((slice(0, 2, None),), '[0:2]'), ((slice(2, 3, None),), '[2]')]
        """
        if isinstance(self.target, Instruction):
            return tile(self.target, sizes, output_id=self.output_id)
        return tile(self.target.root, sizes, to="parameters", output_id=self.output_id)

    @cached_property
    def _loops(self) -> LoopProgram:
        return LoopProgram(self)

    @cached_property
    def _vectorized_program(self) -> Vectorized:
        return Vectorized(self)
