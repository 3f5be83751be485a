"""Tilings of instructions: brute force enumerates the elements that each tile needs."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest

import hlo
import indexing
from hlo.ops.op import OPS
from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing import Tiling, Unknown
from indexing.ops.samples import instruction_of
from indexing.tiling.sets import tile_sets
from indexing.tiling.sets.operand_sets import OperandSets
from tests.ops.samples import ALL
from tests.oracles import scale
from tests.tiling.sets.tiling_oracle import check_finished, check_tiling


def tiling_of(text: str, sizes: tuple[int, ...], **options: Any) -> Tiling:
    """The tiling of the root of a module with these instructions."""
    tiling = indexing.tile(hlo.parse(f"ENTRY e {{\n{text}\n}}").entry.root, sizes, **options)
    assert isinstance(tiling, Tiling), tiling
    return tiling


# fmt: off
CASES = [
    # instructions                                                             sizes     kinds
    ("p = f32[9] parameter(0)  q = f32[7] parameter(1)\n"
     "ROOT c = f32[16] concatenate(p, q), dimensions={0}",                     (4,),     "box box"),
    ("p = f32[9] parameter(0)\n"
     "ROOT c = f32[18] concatenate(p, p), dimensions={0}",                     (4,), "box box"),
    ("p = f32[12] parameter(0)  ROOT r = f32[3,4] reshape(p)",                 (2, 2),   "boxes"),
    ("p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p)",                 (5,),     "boxes"),
    ("p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p)",                 (4,),     "box"),
    ("p = f32[7,5] parameter(0)  ROOT r = f32[5,7] transpose(p), dimensions={1,0}", (2, 3), "box"),
    ("p = f32[7,5] parameter(0)  ROOT r = f32[7,5] reverse(p), dimensions={1}", (2, 3),  "box"),
    ("p = f32[7,5] parameter(0)  ROOT r = f32[3,2] slice(p), slice={[1:7:2],[0:5:3]}", (2, 1),
     "box"),
    ("p = f32[7] parameter(0)  v = f32[] parameter(1)\n"
     "ROOT r = f32[14] pad(p, v), padding=-1_2_1",   (4,), "box box"),
    ("p = f32[7,5] parameter(0)  q = f32[5,4] parameter(1)\n"
     "ROOT r = f32[7,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", (3, 2),
     "box box"),
    ("p = f64[1,8,1] parameter(0)  k = f64[3,1,1] parameter(1)\n"
     "ROOT r = f64[1,8,1] convolution(p, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
     (1, 3, 1), "box bounding"),
    ("p = f32[1,8,1] parameter(0)  k = f32[3,1,1] parameter(1)\n"
     "ROOT r = f32[1,8,1] convolution(p, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f",
     (1, 3, 1), "box box"),
    ("p = f32[1,9,1] parameter(0)  k = f32[3,1,1] parameter(1)\n"
     "ROOT r = f32[1,4,1] convolution(p, k), window={size=3 stride=2}, dim_labels=b0f_0io->b0f",
     (1, 3, 1), "box box"),
]
# fmt: on


@pytest.mark.parametrize(("text", "sizes", "kinds"), CASES)
def test_a_tiling_agrees_with_brute_force(text: str, sizes: tuple[int, ...], kinds: str) -> None:
    tiling = tiling_of(text, sizes)
    assert [operand.kind for operand in tiling.operands] == kinds.split(), tiling
    check_tiling(tiling, seed=1)


def test_tiles_of_an_operand_finish_outputs_that_read_nothing_else() -> None:
    text = (
        "p = f32[1,9,1] parameter(0)  k = f32[3,1,1] parameter(1)\n"
        "ROOT r = f32[1,4,1] convolution(p, k), window={size=3 stride=2}, dim_labels=b0f_0io->b0f"
    )
    tiling = tiling_of(text, (1, 4, 1), direction="input-to-output")
    check_tiling(tiling, seed=1)
    check_finished(tiling, seed=1)


@pytest.mark.parametrize("opcode", ALL)
def test_tilings_of_all_ops_agree_with_brute_force(opcode: str) -> None:
    samples = OPS[opcode].samples
    for seed, text in enumerate(samples[: scale(len(samples))]):
        random = Random(f"{opcode} {seed}")
        instruction = instruction_of(text)
        arrays = list(enumerate(leaves(instruction.shape)))
        jobs: list[tuple[dict[str, Any], AnyShape]] = [
            ({"output_id": k}, shape) for k, (_, shape) in arrays
        ]
        for k, operand in enumerate(instruction.operands):
            jobs.append(({"direction": "input-to-output", "operand_id": k}, operand.shape))
        for options, shape in jobs:
            if not isinstance(shape, Shape) or -1 in shape.dims:
                continue
            sizes = [random.randint(1, n + 1) for n in shape.dims]
            exact = random.random() < 0.3
            tiling = indexing.tile(instruction, sizes, exact=exact, **options)
            if isinstance(tiling, Tiling):
                check_tiling(tiling, seed)
                if "direction" in options:
                    check_finished(tiling, seed)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((2,), "one size for each of the 2 dimensions"),
        ((2, 0), "at least 1, got 0 for dimension 1"),
        ((-3, 1), "at least 1, got -3 for dimension 0"),
    ],
)
def test_wrong_sizes_are_refused(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiling_of("p = f32[7,5] parameter(0)  ROOT r = f32[7,5] negate(p)", sizes)


def test_sizes_beyond_the_dimension_mean_the_whole_dimension() -> None:
    tiling = tiling_of("p = f32[7,5] parameter(0)  ROOT r = f32[7,5] negate(p)", (100, 5))
    assert (tiling.grid, tiling.divides, tiling.edge_tiles) == ((1, 1), (False, True), 1)
    check_tiling(tiling, seed=1)


def test_an_instruction_without_maps_is_unknown() -> None:
    text = "p = f32[7] parameter(0)  ROOT r = f32[7] no-such-op(p)"
    answer = indexing.tile(hlo.parse(f"ENTRY e {{\n{text}\n}}").entry.root, (2,))
    assert isinstance(answer, Unknown)
    assert "no-such-op" in answer.reason


def test_unaligned_concatenations_and_reshapes_have_pieces() -> None:
    tiling = tiling_of("p = f32[3,4] parameter(0)  ROOT r = f32[12] reshape(p)", (5,))
    (operand,) = tiling.operands
    assert (operand.kind, operand.overfetch) == ("boxes", Fraction(3, 2))
    assert operand.pieces is not None
    assert len(operand.pieces) == 2
    check_tiling(tiling, seed=1)
    text = "p = f32[9] parameter(0)  ROOT c = f32[18] concatenate(p, p), dimensions={0}"
    tiling = tiling_of(text, (4,), to="parameters")
    assert [operand.kind for operand in tiling.operands] == ["boxes"]
    check_tiling(tiling, seed=1)


WINDOW = """
  p = f32[40,6] parameter(0)  u = f32[4,6] parameter(1)  i = s32[] parameter(2)
  z = s32[] constant(0)
  ROOT r = f32[40,6] dynamic-update-slice(p, u, i, z)"""


@pytest.mark.parametrize("seed", range(5))
def test_a_tile_needs_a_part_of_a_window_that_starts_at_a_runtime_value(seed: int) -> None:
    tiling = tiling_of(WINDOW, (3, 4))
    base, update = tiling.operands[:2]
    assert (base.kind, base.grade) == ("box", "exact")  # a tile is smaller than the window
    assert (update.kind, update.grade) == ("box", "exact")
    assert update.offsets is not None
    assert str(update.offsets[0]) == "max(-rt0 + tid_0 * 3, 0)"
    check_tiling(tiling, seed)
    larger = tiling_of(WINDOW, (8, 4))
    assert (larger.operands[0].kind, larger.operands[0].grade) == ("boxes", "exact")
    assert larger.operands[0].bytes == (40 - 4) * 6 * 4
    check_tiling(larger, seed)


GATHER = """
  p = f32[9,5] parameter(0)  i = s32[7,1] parameter(1)
  ROOT g = f32[7,5] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,5}"""


@pytest.mark.parametrize("seed", range(5))
def test_each_row_of_a_gather_is_a_box_of_its_own(seed: int) -> None:
    tiling = tiling_of(GATHER, (1, 2))
    row = tiling.operands[0]
    assert (row.kind, row.grade, row.touched_grade) == ("box", "exact", "may")
    assert row.runtime[0].index[0].variables() == [tiling.operands[0].grid.tile_index[0]]
    check_tiling(tiling, seed)
    rows = tiling_of(GATHER, (3, 2))
    assert (rows.operands[0].kind, rows.operands[0].grade) == ("boxes", "may")
    assert "3 runtime values in one tile" in rows.operands[0].reason
    check_tiling(rows, seed)


def test_large_arrays_are_analysed_in_few_classes() -> None:
    text = """p = f32[4096,4096] parameter(0)  q = f32[4096,4096] parameter(1)
      ROOT r = f32[4096,4096] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    tiling = tiling_of(text, (32, 100))
    assert tiling.bytes == 4 * 4096**2 * (41 + 128)
    for operand in tiling.operands:
        assert isinstance(operand.sets, OperandSets)
        (product,) = operand.sets.products
        assert sum([len(own.classes) for own in product]) <= 4


def test_tiles_beyond_the_budget_have_a_bounding_box() -> None:
    text = "p = f32[8192,1024] parameter(0)  ROOT r = f32[8388608] reshape(p)"
    (operand,) = tiling_of(text, (1,)).operands
    assert operand.kind == "bounding"
    assert operand.reason == "budget: 8388608 tiles, more than 4194304"
    assert isinstance(operand.bytes, Unknown)
    assert operand.offsets is not None
    assert operand.sizes is not None
    tid = operand.grid.tile_index[0]
    assert [offset.value({tid: 5000}) for offset in operand.offsets] == [4, 904]
    assert [size.value({tid: 5000}) for size in operand.sizes] == [1, 1]


def test_a_tiling_is_a_line_for_each_operand_and_a_table() -> None:
    text = "p = f32[9] parameter(0)  q = f32[7] parameter(1)\n"
    tiling = tiling_of(text + "ROOT c = f32[16] concatenate(p, q), dimensions={0}", (4,))
    head, p, q = str(tiling).splitlines()
    assert head == "c = f32[16] concatenate: tiles [4], grid [4]"
    assert p.startswith(
        "  p f32[9]: box, offsets [tid_0 * 4], sizes [max(min(tid_0 * -4 + 9, 4), 0)], strides [1]"
    )
    assert q.startswith("  q f32[7]: box, offsets [max(tid_0 * 4 - 9, 0)]")
    assert "28 bytes read, 28 distinct, reuse 1" in q
    assert tiling._repr_html_().count("<tr>") == 3


def test_sets_of_many_boxes_stay_within_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "p = f32[37,41] parameter(0)  ROOT r = f32[41,37] reshape(p)"
    assert "boxes by" in tiling_of(text, (41, 2)).operands[0].reason
    monkeypatch.setattr("indexing.tiling.sets.tile_sets.MAX_BOXES_TOGETHER", 100)
    tile_sets._memoised_sets.cache_clear()
    (operand,) = tiling_of(text, (41, 2)).operands
    tile_sets._memoised_sets.cache_clear()
    assert operand.kind == "bounding"
    assert "budget" in operand.reason
    assert isinstance(operand.bytes, Unknown)
