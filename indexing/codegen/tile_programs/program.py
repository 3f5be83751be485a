"""Programs of tilings with loops: the phases of a block, with what each step computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from indexing.codegen.text import Names, identifier
from indexing.codegen.tile_programs.tile_values import TileFold, TileLoad, TileValue, in_order
from indexing.maps.arrays import ArrayRef
from indexing.tiling.loops.axes import Axes, StepAxis
from indexing.tiling.loops.loop_tiling import LoopTiling


class NotEmitted(Exception):
    """The tiling has no program; the message is the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class StepTotal:
    """A result that grows step by step.

    Attributes:
        number: the number of the nest.
        fold: what a step adds.
        rescale: the factor of the total before a step whose statistics have changed; None for 1.
        factors: values by which the total is multiplied after the loops, or divided if True.
    """

    number: int
    fold: TileFold
    rescale: TileValue | None = None
    factors: tuple[tuple[TileValue, bool], ...] = ()

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the total."""
        return self.fold.axes


@dataclass(frozen=True, slots=True, eq=False)
class StepPhase:
    """A loop nest of a block.

    Attributes:
        loops: its loops, the outermost first.
        totals: what its steps accumulate, each after the statistics that it follows.
        result: the tile of the result, in the last phase.
    """

    loops: tuple[int, ...]
    totals: tuple[StepTotal, ...]
    result: TileValue | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TileProgram:
    """The computation of a block of a tiling.

    Attributes:
        tiling: the tiling.
        axes: the axes, tiled dimensions first.
        rank: the number of tiled dimensions.
        serial: tiled dimensions through which a block walks.
        phases: the phases in order.
        name: the name of the instruction.
    """

    tiling: LoopTiling
    axes: Axes
    rank: int
    serial: frozenset[int]
    phases: tuple[StepPhase, ...]
    name: str

    @property
    def block_axes(self) -> tuple[int, ...]:
        """The tiled dimensions of the grid."""
        return tuple([axis for axis in range(self.rank) if axis not in self.serial])

    @property
    def title(self) -> str:
        """The instruction with the sizes of tiles and steps, for the head of a file."""
        tiling = self.tiling
        steps = ", ".join([f"{loop.name}={loop.step}" for loop in tiling.loops]) or "none"
        return f"{self.name} {tiling.shape}: tiles {list(tiling.sizes)}, steps {steps}"

    def axis(self, number: int) -> StepAxis:
        """Return an axis."""
        return self.axes[number]

    def extent(self, number: int) -> int:
        """Return the number of elements of a tile or step along an axis."""
        return min(self.axes[number].step, self.axes[number].size)

    def is_ragged(self, number: int) -> bool:
        """Return True if the last tile or step of an axis is smaller than the others."""
        return self.axes[number].size % self.extent(number) != 0

    def total(self, number: int) -> StepTotal:
        """Return the total of a nest."""
        return next(t for phase in self.phases for t in phase.totals if t.number == number)

    def check_total(self, total: StepTotal) -> None:
        """Raise `NotEmitted` if a block has several results of a nest, one after the other."""
        if not self.serial.isdisjoint(total.axes):
            raise NotEmitted(
                f"`{total.fold.name}` has a result for each step of a dimension that blocks walk "
                "serially"
            )

    def steps(self, phase: StepPhase) -> int:
        """Return the number of steps of a phase."""
        count = 1
        for axis in phase.loops:
            count *= self.axes[axis].count
        return count

    def loads(self) -> Iterator[tuple[int, TileLoad]]:
        """Yield each load with the number of its phase."""
        for number, phase in enumerate(self.phases):
            for value in in_order(roots_of(phase)):
                if isinstance(value, TileLoad):
                    yield number, value

    @property
    def arrays(self) -> tuple[ArrayRef, ...]:
        """The arrays that are loaded, in the order of their instructions."""
        arrays = {load.array for _, load in self.loads()}
        return tuple(sorted(arrays, key=lambda array: (array.instruction.index, array.path)))


def argument_names(program: TileProgram, taken: Iterable[str]) -> dict[ArrayRef, str]:
    """Return a name for each array, as an argument of a function."""
    names = Names(taken)
    return {each: names.new(identifier(each.instruction.name)) for each in program.arrays}


def roots_of(phase: StepPhase) -> list[TileValue]:
    """Return the values that the steps of a phase compute."""
    roots: list[TileValue] = []
    for total in phase.totals:
        roots.append(total.fold)
        roots += [] if total.rescale is None else [total.rescale]
        roots += [factor for factor, _ in total.factors]
    return roots if phase.result is None else [*roots, phase.result]
