"""`KnownReads`: custom calls whose reads are known, and whose values are not computed here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from hlo.modules.module import Instruction
from indexing.maps.answers import Path, Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge
from indexing.ops.custom_call import CustomCall
from indexing.ops.inverse import inverses
from indexing.ops.structured_ops import Summaries


class KnownReads(CustomCall):
    """A call whose reads are known: other operands and results are those of any custom call.

    Class attributes:
        obstacle: why maps of the call have the grade "may"; empty if none has it.
    """

    __slots__ = ()
    obstacle: ClassVar[str] = ""

    @abstractmethod
    def maps(
        self, instruction: Instruction, output: Path, operand: int
    ) -> tuple[IndexingMap, ...] | Unknown | None:
        """Return the maps from a leaf of the result to an operand.

        If they are not known, `Unknown` with the reason, or `None`: any element may be read.
        """

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        for edge in CustomCall.edges(self, instruction, output, summaries):
            maps: tuple[IndexingMap, ...] | Unknown | None = None
            if not edge.operand_path and edge.unknown is None:
                maps = self.maps(instruction, output, edge.operand)
            text = f"which elements a call of {self.target} reads here is not known"
            if isinstance(maps, Unknown):
                text = maps.reason
            elif maps is not None and not summaries.backward:
                maps = inverses(maps, instruction.operands[edge.operand].shape)
            if maps is not None and not isinstance(maps, Unknown):
                is_exact = all(m.grade == "exact" for m in maps)
                reasons = () if is_exact else (Reason(self.obstacle, instruction),)
                edge = AccessEdge(edge.operand, (), output, maps, None, reasons)
            elif edge.maps:
                edge = replace(edge, reasons=(Reason(text, instruction),))
            yield edge
