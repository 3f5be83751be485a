"""`KnownReads`: custom calls whose reads are known, and whose values are not computed here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from hlo.modules.module import Instruction
from indexing.maps.answers import Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge
from indexing.ops.custom_call import CustomCall
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
        self, instruction: Instruction, output: Path, operand: int, backward: bool
    ) -> tuple[IndexingMap, ...] | None:
        """Return the maps between a leaf of the result and an operand; None if they are unknown.

        Args:
            backward: from the result to the operand, instead of from the operand to the result.
        """

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        for edge in CustomCall.edges(self, instruction, output, summaries):
            maps = None
            if not edge.operand_path and edge.unknown is None:
                maps = self.maps(instruction, output, edge.operand, summaries.backward)
            if maps is not None:
                is_exact = all(m.grade == "exact" for m in maps)
                reasons = () if is_exact else (Reason(self.obstacle, instruction),)
                edge = AccessEdge(edge.operand, (), output, maps, None, reasons)
            yield edge
