"""Traffic of the pipeline: blocks that are copied in and written back, and their bytes.

A block is copied in at a step whose block differs from that of the step before, and written back
at a step whose block differs from that of the step after.  Bytes are those within the array.

Source: JAX ``docs/pallas/pipelining.md`` and ``docs/pallas/tpu/details.rst``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indexing.pallas.block_maps import PlacedOperand
from indexing.pallas.block_tables import BlockTable
from indexing.pallas.calls import PIPELINED
from indexing.pallas.traffic_formulas import TransferFormulas, transfer_formulas
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class BlockTransfers:
    """The transfers of the blocks of one operand.

    Attributes:
        count: the number of copies in, or of writes back.
        bytes: their bytes.
    """

    count: int
    bytes: int


def transfers(
    operand: PlacedOperand, table: BlockTable | Unknown
) -> BlockTransfers | TransferFormulas | Unknown:
    """Return the transfers of an operand in the order of the grid; formulas without its table."""
    if operand.call.target == "gpu":
        return Unknown("blocks on a GPU are pointers, which no pipeline copies")
    if operand.spec.space not in PIPELINED:
        return BlockTransfers(0, 0)
    if not isinstance(table, Unknown):
        moves = table_transfers(table, range(len(table.grid)))
        if isinstance(moves, BlockTransfers):
            return moves
    formulas = transfer_formulas(operand)
    if isinstance(formulas, Unknown) or isinstance(formulas.bytes, Unknown):
        return formulas
    if formulas.count.is_constant and formulas.bytes.is_constant:
        return BlockTransfers(formulas.count.constant, formulas.bytes.constant)
    return formulas


def table_transfers(table: BlockTable, order: Sequence[int]) -> BlockTransfers | Unknown:
    """Return the transfers if the dimensions of the grid are in this order, outermost first."""
    if table.operand.spec.space not in PIPELINED:
        return BlockTransfers(0, 0)
    moves = table.moves(order)
    if isinstance(moves, Unknown):
        return moves
    count, elements = moves
    return BlockTransfers(count, elements * table.operand.spec.bits // 8)
