"""XLA's verdicts on coalescing, compared with its own tests, and with the exact counts."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from indexing import IndexingMap
from indexing.devices.gpus import gpu
from indexing.memory.warps.access import MemoryAccess
from indexing.memory.warps.coalescing import is_coalesced
from simplifier.atoms import Variable
from tests.memory.coalescing_cases import (
    DYNAMIC_SLICE,
    OUTER_DIMS,
    TRANSPOSE_OF_BROADCAST,
    table,
)

A6000 = gpu("A6000")
ROOT = Path(__file__).parents[2]


def entry(text: str) -> hlo.Instruction:
    return hlo.parse(text).entry.root


def require_access(answer: object) -> MemoryAccess:
    assert isinstance(answer, MemoryAccess)
    return answer


def test_a_transpose_of_outer_dimensions_is_coalesced() -> None:
    """``TransposeOnlyOuterDims``: rows of 64 elements, one for each 16 threads."""
    (load,) = indexing.access(entry(OUTER_DIMS), threads=128, unroll=4, device="A6000")
    assert require_access(load).coalesced
    assert require_access(load).ratio == 1


def test_a_dynamic_slice_is_coalesced_by_the_rule_but_not_at_its_worst_start() -> None:
    """``DynamicSlice``: all operands are coalesced.  A row of 32 starts anywhere: 5 sectors."""
    accesses = indexing.access(entry(DYNAMIC_SLICE), threads=64, device="A6000")
    assert [require_access(load).coalesced for load in accesses] == [True] * 4
    window = require_access(accesses[0])
    assert (window.best.sectors, window.sectors) == (9, 10)
    assert window.worst is not None
    assert window.worst.addresses[0] is not None
    assert window.worst.addresses[0] % 32 != 0


@pytest.mark.parametrize(
    ("shape", "threads", "rows"),
    [("f32[100,64,512]", 32, 8), ("f32[100,64,4]", 4, 64), ("s32[32,40]", 32, 8)],
)
def test_row_reductions_are_coalesced(shape: str, threads: int, rows: int) -> None:
    """``RowReduction``, ``MultiRowReduction``, ``VariadicReduceViaReductionEmitter``."""
    operand = hlo.parse_shape(shape)
    assert isinstance(operand, hlo.Shape)
    reads = indexing.row_map(operand, threads=threads, rows=rows)
    assert indexing.coverage(reads, operand) is True
    load = require_access(indexing.array_access(reads, operand, "A6000"))
    assert load.coalesced
    assert load.ratio == 1


def test_each_lane_of_a_strided_slice_reads_a_sector_of_its_own() -> None:
    """``TransposeOfBroadcastHeuristic``, whose rule by opcodes exempts broadcasts."""
    load = require_access(indexing.access(entry(TRANSPOSE_OF_BROADCAST))[0])
    assert (load.coalesced, load.ratio) == (False, 8)
    assert load.worst is not None
    assert load.worst.addresses[:3] == (0, 256, 512)


# fmt: off
RULES = [
    # reads of 128 threads                                      shape            verdict
    (lambda d: [d[0]],                                          "f32[4096]",     True),
    (lambda d: [4095 - d[0]],                                   "f32[4096]",     True),
    (lambda d: [d[0] * 2],                                      "f32[8192]",     False),
    (lambda d: [d[0] // 2],                                     "f32[4096]",     True),
    (lambda d: [d[0] * 0],                                      "f32[4096]",     True),
    (lambda d: [d[0] % 8 * 512 + d[0] // 8],                    "f32[4096]",     False),
    (lambda d: [d[0] % 2 * 2048 + d[0] // 2],                   "f64[4096]",     True),
]
# fmt: on


@pytest.mark.parametrize(("reads", "shape", "verdict"), RULES)
def test_rows_of_the_rule(reads: object, shape: str, verdict: bool) -> None:
    array = hlo.parse_shape(shape)
    assert isinstance(array, hlo.Shape)
    assert callable(reads)
    m = IndexingMap.over((4096,), reads)
    assert is_coalesced(indexing.thread_map((4096,), threads=128), m, array) is verdict


def test_the_documentation_lists_where_counts_and_rules_differ() -> None:
    """`python -m tests.memory.coalescing_cases` prints the table."""
    page = (ROOT / "docs" / "memory.md").read_text()
    for line in table():
        assert line in page.splitlines()


def test_a_block_of_few_threads_reads_few_intervals() -> None:
    """Runs of 112 bytes: two, of four threads, need 2 transactions; 16 would need 16, not 14."""
    array = hlo.parse_shape("f32[1024]")
    assert isinstance(array, hlo.Shape)
    column = Variable("s0", 0, 27)
    verdicts = []
    for threads in (4, 32):
        thread = Variable("th_x", 0, threads - 1)
        runs = IndexingMap.of([thread], [thread // 2 * 40 + column], ranges=[column])
        verdicts.append(is_coalesced(runs, IndexingMap.identity((1024,)), array))
    assert verdicts == [True, False]
