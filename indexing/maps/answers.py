"""`Answer`: the maps between an instruction and its operands, parameters or outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import indexing.methods as methods
from hlo.arguments import checked
from indexing.maps.arrays import Path as Path
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.maps.reasons import Reason as Reason
from simplifier.unknown import UndecidedError as UndecidedError
from simplifier.unknown import Unknown as Unknown

if TYPE_CHECKING:
    from types import EllipsisType

    from numpy.typing import ArrayLike

    from hlo.modules.module import Instruction

Direction: TypeAlias = Literal["output-to-input", "input-to-output", "output-to-root"]


@dataclass(frozen=True, slots=True, repr=False)
class Answer(Displayed):
    """The maps from one output to each operand, or from one operand to each output.

    Attributes:
        instruction: the instruction whose accesses the maps describe.
        direction: "output-to-input": maps from elements of the output to elements of
            ``operands[i]``; "input-to-output": from elements of the operand to elements of output
            i; "output-to-root", of epilogues: from elements of the output to those of output i of
            the root that depend on them.
        domain_id: index of the array that the maps start from: one of the operands of `instruction`
            ("input-to-output"), or a leaf of its result.
        operands: the targets of the maps: operands or parameters, or the instruction itself or the
            root, once for each of its outputs.
        maps: for each of `operands`, its maps; ``()`` if nothing is read.
        paths: for each map, the leaf of the tuple that it reads ("output-to-input"), starts from
            ("input-to-output") or leads to ("output-to-root").
        unknown: for each of `operands`, `None`, or an `Unknown` with the reason why its maps are
            incomplete.
        reasons: for each map, why its grade is "may"; ``()`` for an exact map.
        control: for each map, True if its elements decide only control: how many iterations of a
            loop, or which branch, are executed.  The values that are then computed do not depend
            on them, unless another map of the operand has the same elements.
        options: the options of the query.

    Source: XLA ``docs/indexing.md``, "Indexing Maps for Unfused Ops", for the directions.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] reverse(p), dimensions={0} }"
    >>> answer = indexing.output_to_input(hlo.parse(text).entry.root)
    >>> print(answer.operands[0].name, answer.maps[0][0], answer.unknown[0])
    p (d0) -> (-d0 + 3), domain: d0 in [0, 3] None
    """

    instruction: Instruction
    direction: Direction
    domain_id: int
    operands: tuple[Instruction, ...]
    maps: tuple[tuple[IndexingMap, ...], ...]
    paths: tuple[tuple[Path, ...], ...]
    unknown: tuple[Unknown | None, ...]
    reasons: tuple[tuple[tuple[Reason, ...], ...], ...]
    control: tuple[tuple[bool, ...], ...]
    options: Options = field(default=Options(), compare=False)

    def at(
        self, *point: int | slice | EllipsisType, **values: ArrayLike
    ) -> tuple[methods.OperandRegion, ...]:
        """Return the elements of each operand that one point, or a tile of points, needs.

        Args:
            point: an integer, a slice or ``...`` (all indices) for each dimension of the array that
                the maps start from; see `IndexingMap.at`.
            values: values of range and runtime variables, by name, or by the name of the source;
                values of integer or boolean parameters, from which those of runtime variables
                follow.
        Returns:
            For each of `operands`: a `Region`; a tuple of them for a tuple-shaped operand, one for
            each leaf; or `Unknown`.
        Raises:
            IndexError, TypeError, ValueError: as `IndexingMap.at`; or the maps start from several
                arrays, the leaves of a tuple-shaped operand.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[8,4] parameter(0)  ROOT t = f32[4,8] transpose(p), "
        >>> module = hlo.parse(text + "dimensions={1,0} }")
        >>> (region,) = indexing.output_to_input(module.entry.root).at(3, slice(0, 5))
        >>> print(region)
        [0:5, 3]
        """
        return methods.regions_at(self, point, values)

    @checked
    def plot(
        self,
        *point: int | slice | EllipsisType,
        operand: int | None = None,
        plane: tuple[int, int] | None = None,
        backend: methods.Backend = "svg",
        theme: methods.Theme = "auto",
        **values: ArrayLike,
    ) -> Any:
        """Return a picture of the elements that a point or a tile needs, and how often it reads.

        Args:
            point, values: as in `at`; without a point, the whole array that the maps start from.
            operand: number of the only operand to draw; by default, the first ones.
            plane: the dimensions of rows and columns, of arrays that have them; by default the last
                two larger than 1.  There is a panel for each of the first slices of the others.
            backend: "svg", or "matplotlib" for a figure of matplotlib (extra ``[plot]``).
            theme: "light", "dark", or "auto": as the reader prefers.
        Returns:
            A `Drawing`.  Cells show the reads of each element, added over the maps; or 1 if reads
            cannot be counted, which a note explains.  Unknown accesses are listed below.
        Raises:
            ImportError: matplotlib is not installed.
            IndexError, TypeError, ValueError: as `at`; or an option has no such value.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[8,4] parameter(0)  ROOT t = f32[4,8] transpose(p), "
        >>> module = hlo.parse(text + "dimensions={1,0} }")
        >>> indexing.output_to_input(module.entry.root).plot(3, slice(0, 5))
        <drawing of 'what t[3, 0:5] needs'>
        """
        return methods.plot_answer(self, point, values, operand, plane, backend, theme)

    def to_dataframe(self) -> Any:
        """Return a data frame of pandas with a row for each map.

        The columns are ``output``, ``operand``, ``name``, ``shape``, ``path``, ``map``, ``grade``,
        ``unknown``, ``reasons`` and ``control``.  Without a map, nothing is read, or ``unknown`` is
        the reason.  ``reasons`` is the reason of the grade "may".

        Raises:
            ImportError: pandas is not installed.

        >>> import hlo, indexing
        >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] reverse(p), dimensions={0} }"
        >>> frame = indexing.output_to_input(hlo.parse(text).entry.root).to_dataframe()
        >>> frame[["name", "shape", "map", "grade"]].values.tolist()
        [['p', 'f32[4]', '(d0) -> (-d0 + 3), domain: d0 in [0, 3]', 'exact']]
        """
        return methods.data_frame(self)

    def __str__(self) -> str:
        return methods.answer_text(self)

    def __repr__(self) -> str:
        maps, reasons = sum(map(len, self.maps)), sum(reason is not None for reason in self.unknown)
        start = "output" if self.direction == "output-to-input" else "operand"
        parts = [f"{maps} map{'s' * (maps != 1)}", *([f"{reasons} unknown"] if reasons else [])]
        name = f"{self.instruction.name!r}, {start} {self.domain_id}"
        return f"<{self.direction} of {name}: {', '.join(parts)}>"
