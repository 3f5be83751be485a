"""The modules of XLA's tests of coalescing, and the table of their verdicts and exact counts.

    python -m tests.memory.coalescing_cases

prints the table of docs/memory.md.  Source of the modules and verdicts: XLA
``xla/service/gpu/model/coalescing_analysis_test.cc``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import hlo
import indexing
from indexing.memory.warps.access import MemoryAccess

TRANSPOSE_OF_BROADCAST = """
fusion {
  input = f32[1,32,6400] parameter(0)
  ROOT slice = f32[1,32,100] slice(input), slice={[0:1:1], [0:32:1], [0:6400:64]}
}
ENTRY entry {
  p0 = f32[32] parameter(0)
  broadcast = f32[1,6400,32] broadcast(p0), dimensions={2}
  transpose = f32[1,32,6400] transpose(broadcast), dimensions={0,2,1}
  ROOT fusion = f32[1,32,100] fusion(transpose), kind=kLoop, calls=fusion
}"""
TRANSPOSE_OF_ADD = """
fusion {
  p0 = f32[32,100,64] parameter(0)
  ROOT slice = f32[32,100,1] slice(p0), slice={[0:32:1], [0:100:1], [0:1:1]}
}
ENTRY entry {
  input = f32[100,64,32] parameter(0)
  add = f32[100,64,32] add(input, input)
  transpose = f32[32,100,64] transpose(add), dimensions={2,0,1}
  ROOT fusion = f32[32,100,1] fusion(transpose), kind=kLoop, calls=fusion
}"""
OUTER_DIMS = """
fusion {
  input = f32[100,32,64] parameter(0)
  ROOT transpose = f32[32,100,64] transpose(input), dimensions={1,0,2}
}
ENTRY entry {
  input = f32[100,32,64] parameter(0)
  ROOT fusion = f32[32,100,64] fusion(input), kind=kLoop, calls=fusion
}"""
DYNAMIC_SLICE = """
fusion {
  src = s32[2,2,258] parameter(0)
  of1 = s32[] parameter(1)
  of2 = s32[] parameter(2)
  of3 = s32[] parameter(3)
  ROOT ds = s32[1,2,32] dynamic-slice(src, of1, of2, of3), dynamic_slice_sizes={1,2,32}
}
ENTRY entry {
  p0 = s32[2,2,258] parameter(0)
  p1 = s32[] parameter(1)
  p2 = s32[] parameter(2)
  p3 = s32[] parameter(3)
  ROOT fusion = s32[1,2,32] fusion(p0, p1, p2, p3), kind=kLoop, calls=fusion
}"""


class Case(NamedTuple):
    """One verdict of XLA, and the exact counts of the same reads."""

    test: str
    reads: str
    coalesced: bool
    access: MemoryAccess


def cases() -> Iterator[Case]:
    """Yield the tests with the counts of operand 0, which all of their verdicts are about."""
    outer, window, taken, added = (
        _load(hlo.parse(text).entry.root, unroll)
        for text, unroll in (
            (OUTER_DIMS, 4),
            (DYNAMIC_SLICE, 1),
            (TRANSPOSE_OF_BROADCAST, 1),
            (TRANSPOSE_OF_ADD, 1),
        )
    )
    yield Case("TransposeOfBroadcastHeuristic", "every 64th element of a row", True, taken)
    yield Case("TransposeOfAddHeuristic", "every 64th element of an array", False, added)
    yield Case("TransposeOnlyOuterDims", "rows of 64 floats", True, outer)
    for test, text, threads, rows in (
        ("RowReduction", "f32[100,64,512]", 32, 8),
        ("MultiRowReduction", "f32[100,64,4]", 4, 64),
        ("VariadicReduceViaReductionEmitter", "s32[32,40]", 32, 8),
    ):
        shape = hlo.parse_shape(text)
        assert isinstance(shape, hlo.Shape)
        reads = indexing.row_map(shape, threads=threads, rows=rows)
        yield Case(test, f"rows of {shape.dims[-1]}", True, _require_access(_array(reads, shape)))
    yield Case("DynamicSlice", "rows of 32 integers from an unknown start", True, window)
    shape = hlo.parse_shape("s8[256,512]")
    assert isinstance(shape, hlo.Shape)
    for columns in (16, 32, 64, 128):
        tiles = indexing.tile_map(shape, (16, columns), threads=128)
        own = _require_access(_array(tiles, shape))
        yield Case("SmallDataTypes", f"tiles of 16 x {columns} bytes", columns >= 64, own)


def _array(reads: indexing.IndexingMap, shape: hlo.Shape) -> object:
    return indexing.array_access(reads, shape, "A6000")


def _require_access(answer: object) -> MemoryAccess:
    assert isinstance(answer, MemoryAccess)
    return answer


def _load(root: hlo.Instruction, unroll: int) -> MemoryAccess:
    return _require_access(indexing.access(root, unroll=unroll, device="A6000")[0])


def table() -> Iterator[str]:
    """Yield the lines of a table: verdict, exact ratio, and addresses where they differ."""
    yield "| test of XLA | reads | XLA | bytes moved / used | addresses, where they differ |"
    yield "|---|---|---|---|---|"
    for case in cases():
        verdict = "coalesced" if case.coalesced else "not coalesced"
        differs = case.coalesced != (case.access.ratio <= 1)
        addresses = ""
        if differs and case.access.worst is not None:
            first = [str(byte) for byte in case.access.worst.addresses[:4]]
            addresses = f"{', '.join(first)}, …: {case.access.worst.sectors} sectors"
            addresses = addresses.replace("1 sectors", "1 sector")
        ratio = f"{case.access.ratio:.2f}"
        yield f"| `{case.test}` | {case.reads} | {verdict} | {ratio} | {addresses} |"


if __name__ == "__main__":
    print(*table(), sep="\n")
