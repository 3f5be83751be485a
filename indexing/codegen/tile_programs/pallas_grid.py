"""The grid of a Pallas kernel, and its operands: block specifications with index maps.

The tiles of the result are dimensions of the grid, and so are the loops if one phase has any.
Several phases share one dimension, ``step``, in which they follow each other; an array stays at
its first or last block in the steps of other phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from indexing.codegen.text import index_text, tuple_text
from indexing.codegen.tile_programs.block_layouts import ArrayBlock, array_block
from indexing.codegen.tile_programs.program import StepPhase, TileProgram
from indexing.codegen.tile_programs.tile_values import TileLoad
from indexing.maps.arrays import ArrayRef
from simplifier.atoms import Variable
from simplifier.linear import Expr
from simplifier.substitute import Substitution


@dataclass(frozen=True, slots=True, eq=False)
class BlockOperand:
    """An operand of the kernel.

    Attributes:
        array: the array.
        block: its blocks.
        index: the index of the block in each dimension, as text.
        loads: the loads that read it.
    """

    array: ArrayRef
    block: ArrayBlock
    index: tuple[str, ...]
    loads: tuple[TileLoad, ...]


class PallasGrid:
    """The grid of a program.

    Args:
        program: the program.
    """

    def __init__(self, program: TileProgram) -> None:
        self.program = program
        self.looped = [phase for phase in program.phases if phase.loops]
        counts = [program.steps(phase) for phase in self.looped]
        self.starts = [sum(counts[:k]) for k in range(len(counts) + 1)]

    @property
    def is_merged(self) -> bool:
        """True if several phases have loops: they share the dimension ``step``."""
        return len(self.looped) > 1

    @property
    def steps(self) -> int:
        """The number of steps of a block."""
        return max(1, self.starts[-1])

    @cached_property
    def dims(self) -> list[tuple[str, int, str]]:
        """The name, the size and the semantics of each dimension of the grid."""
        program = self.program
        rows = [(f"tid_{k}", program.axis(k).count, "parallel") for k in program.block_axes]
        if self.is_merged:
            return [*rows, ("step", self.steps, "arbitrary")]
        loops = self.looped[0].loops if self.looped else ()
        return [*rows, *[(f"tid_{k}", program.axis(k).count, "arbitrary") for k in loops]]

    def tid(self, axis: int, phases: Sequence[StepPhase]) -> str:
        """Return the index of the step along a loop of phases, by ``step``.

        Args:
            axis: a loop of the first one.
            phases: phases that follow each other and have as many steps.
        """
        phase, program = phases[0], self.program
        low, steps = self.starts[self.looped.index(phase)], program.steps(phase)
        inner = 1
        for other in phase.loops[phase.loops.index(axis) + 1 :]:
            inner *= program.axis(other).count
        text, last = f"step - {low}" if low else "step", steps * len(phases) - 1
        if low:
            text = f"jnp.maximum({text}, 0)"
        if low + last + 1 < self.steps:
            text = f"jnp.minimum({text}, {last})"
        if len(phases) > 1:
            text = (
                f"{text} % {steps}"
                if text.isidentifier() or text[0] == "j"
                else f"({text}) % {steps}"
            )
        text = f"{text} // {inner}" if inner > 1 else text
        is_outer = axis == phase.loops[0]
        return text if is_outer else f"{text} % {program.axis(axis).count}"

    def operands(self) -> list[BlockOperand]:
        """Return the operands, in the order of the loads.

        Raises:
            NotEmitted: the elements of a step are no block of an array.
        """
        groups: dict[object, list[tuple[int, TileLoad]]] = {}
        blocks: dict[TileLoad, ArrayBlock] = {}
        for number, load in self.program.loads():
            block = blocks[load] = array_block(self.program, load)
            phase = self.program.phases[number]
            index = tuple([str(self._by_place(expr, phase)) for expr in block.indices])
            parts = tuple([(part.digit, part.size) for part in block.parts])
            groups.setdefault((load.array, block.sizes, index, parts), []).append((number, load))
        made: list[BlockOperand] = []
        for members in groups.values():
            for run in self._runs(members, blocks):
                load = run[0][1]
                phases = dict.fromkeys([self.program.phases[number] for number, _ in run])
                index = self._index(blocks[load].indices, list(phases))
                loads = tuple([each for _, each in run])
                made.append(BlockOperand(load.array, blocks[load], index, loads))
        return made

    def block_of(self, load: TileLoad) -> ArrayBlock:
        """Return the block of a load, with the axes of its phase."""
        return array_block(self.program, load)

    def _by_place(self, expr: Expr, phase: StepPhase) -> Expr:
        """Return an index with loops named by their place in the phase."""
        swap: dict[Variable, Expr] = {}
        for v in expr.variables():
            axis = int(v.name.removeprefix("tid_"))
            if axis in phase.loops:
                swap[v] = v.renamed(f"loop_{phase.loops.index(axis)}").as_expr()
        return Substitution(swap)(expr) if swap else expr

    def _runs(
        self, members: list[tuple[int, TileLoad]], blocks: dict[TileLoad, ArrayBlock]
    ) -> list[list[tuple[int, TileLoad]]]:
        """Return loads in runs of phases that follow each other with as many steps."""
        runs: list[list[tuple[int, TileLoad]]] = []
        for number, load in members:
            if runs and self._joins(runs[-1][-1], (number, load), blocks):
                runs[-1].append((number, load))
            else:
                runs.append([(number, load)])
        return runs

    def _joins(
        self,
        last: tuple[int, TileLoad],
        new: tuple[int, TileLoad],
        blocks: dict[TileLoad, ArrayBlock],
    ) -> bool:
        before, after = self.program.phases[last[0]], self.program.phases[new[0]]
        if before is after or not self._loops_in(blocks[new[1]], after):
            return True
        counts = [[self.program.axis(a).count for a in phase.loops] for phase in (before, after)]
        return new[0] == last[0] + 1 and counts[0] == counts[1]

    @staticmethod
    def _loops_in(block: ArrayBlock, phase: StepPhase) -> bool:
        names = {v.name for expr in block.indices for v in expr.variables()}
        return any(f"tid_{axis}" in names for axis in phase.loops)

    def _index(self, exprs: Sequence[Expr], phases: Sequence[StepPhase]) -> tuple[str, ...]:
        """Return the text of the index of a block."""
        texts: list[str] = []
        looped = [phase for phase in phases if phase.loops]
        for expr in exprs:
            text = index_text(expr)
            for axis in looped[0].loops if looped and self.is_merged else ():
                if f"tid_{axis}" in {v.name for v in expr.variables()}:
                    own = self.tid(axis, looped)
                    text = own if text == f"tid_{axis}" else text.replace(f"tid_{axis}", f"({own})")
            texts.append(text)
        return tuple(texts)

    def out_spec(self) -> str:
        """Return the block specification of the result."""
        program, last = self.program, self.program.phases[-1]
        places: list[str] = []
        sizes: list[int | None] = []
        for axis in range(program.rank):
            extent = program.extent(axis)
            sizes.append(extent if extent > 1 else None)
            name = f"tid_{axis}"
            if axis in program.serial and self.is_merged:
                name = self.tid(axis, [last])
            places.append(name if program.axis(axis).count > 1 else "0")
        return self.spec(sizes, places)

    def spec(self, sizes: Sequence[int | None], index: Sequence[str]) -> str:
        """Return a block specification."""
        names = ", ".join([row[0] for row in self.dims])
        head = f"lambda {names}" if names else "lambda"
        return f"pl.BlockSpec({tuple_text(sizes)}, {head}: {tuple_text(index)})"
