"""XLA's choice of tiles: reading it, its shared memory against XLA's launches, and its rank."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from hlo.text.source import HloError
from indexing.kernels.dumps import thunk_launches
from indexing.tiling.loops.loop_search import BestLoopTilings
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.loops.warps import warps_of_dots, warps_of_rows
from simplifier.unknown import Unknown

DUMPS = Path(__file__).parents[2] / "kernels" / "data"


def fusion_of(left: str, right: str, result: str, tile: str, step: int, launch: str) -> Instruction:
    """Return a fusion of one dot with the tile, step, warps and stages of XLA."""
    warps, stages = launch.split()
    batched = "[4," in result
    numbers = "lhs_contracting_dims={2}, rhs_contracting_dims={1}"
    if batched:
        numbers = "lhs_batch_dims={0}, rhs_batch_dims={0}, " + numbers
    else:
        numbers = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = f"""
    f {{
      p = {left} parameter(0)
      q = {right} parameter(1)
      ROOT d = {result} dot(p, q), {numbers}, backend_config={{"sizes":["{step}"]}}
    }}
    ENTRY e {{
      p = {left} parameter(0)
      q = {right} parameter(1)
      ROOT r = {result} fusion(p, q), kind=kCustom, calls=f,
        backend_config={{"fusion_backend_config":{{"kind":"__triton_nested_gemm_fusion",
          "block_level_fusion_config":{{"num_warps":"{warps}","output_tiles":[{{"sizes":[{tile}]}}],
          "num_ctas":1,"num_stages":{stages},"is_tma_allowed":false}}}}}}
    }}"""
    return hlo.parse(text).entry.root


# Dynamic shared memory of launches on H100, from thunk sequences of jaxlib 0.10.2: dots that were
# compiled with --xla_gpu_override_gemm_autotuner.
LARGE = ("bf16[1024,512]", "bf16[512,1024]", "bf16[1024,1024]")
HALF = ("f16[4,304,40]", "f16[4,40,208]", "f32[4,304,208]")
FLOAT = ("f32[4,256,48]", "f32[4,48,384]", "f32[4,256,384]")
SMALL = ("bf16[4,128,64]", "bf16[4,64,96]", "bf16[4,128,96]")
# fmt: off
LAUNCHES = [
    # operands  tile                 step  warps, stages  bytes
    (LARGE,     '"128","256"',       64,   "8 3",         147_456),  # stages of a warp group
    (LARGE,     '"64","64"',         32,   "4 2",          16_384),
    (LARGE,     '"64","64"',         64,   "4 1",          16_384),  # no pipeline
    (LARGE,     '"128","32"',        64,   "4 5",         102_400),
    (LARGE,     '"32","64"',         64,   "4 3",          24_576),  # 32 rows: a buffer less
    (LARGE,     '"16","64"',         64,   "2 3",          20_480),
    (LARGE,     '"16","32"',        128,   "2 2",          12_288),
    (LARGE,     '"32","32"',         32,   "4 2",           4_096),
    (HALF,      '"1","32","32"',     32,   "4 2",           8_192),  # a mask: 40 = 32 + 8
    (HALF,      '"1","128","64"',    32,   "4 3",          36_864),
    (HALF,      '"1","64","128"',    64,   "4 3",          32_768),  # one step: accumulators
    (HALF,      '"1","128","256"',   64,   "8 3",         131_072),
    (HALF,      '"1","128","128"',   32,   "4 3",          49_152),  # half of them at once
    (HALF,      '"1","32","32"',    128,   "4 1",          16_384),  # the step exceeds the loop
    (FLOAT,     '"1","128","128"',   32,   "4 3",          98_304),
    (FLOAT,     '"1","64","16"',    128,   "4 4",          40_960),
    (FLOAT,     '"1","16","8"',      16,   "2 1",           1_024),  # one operand after the other
    (SMALL,     '"1","128","256"',   64,   "8 3",          49_152),  # the tile exceeds 96 columns
    (SMALL,     '"1","256","64"',    32,   "8 3",          61_440),
    (SMALL,     '"1","64","256"',    32,   "4 4",          81_920),
    (SMALL,     '"1","16","8"',      16,   "2 1",             768),
]
# fmt: on


@pytest.mark.parametrize("shapes, tile, step, launch, shared", LAUNCHES)
def test_shared_memory_is_that_of_the_launch(
    shapes: tuple[str, str, str], tile: str, step: int, launch: str, shared: int
) -> None:
    compiled = indexing.compiled_tiling(fusion_of(*shapes, tile, step, launch))
    assert not isinstance(compiled, Unknown)
    assert indexing.triton_shared_bytes(compiled, "H100") == shared


def test_results_larger_than_their_operands_have_buffers_that_are_unknown() -> None:
    """A tile of 64 x 32 of bf16 in steps of 16 has 2,048 bytes: those of the result."""
    compiled = indexing.compiled_tiling(fusion_of(*LARGE, '"256","256"', 16, "4 1"))
    assert not isinstance(compiled, Unknown)
    shared = indexing.triton_shared_bytes(compiled, "A100")
    assert isinstance(shared, Unknown)
    assert "a buffer of its own" in shared.reason


# fmt: off
LAUNCHES_ON_A100 = [
    (LARGE,     '"128","64"',        32,   "4 3",          24_576),  # no warp groups
    (LARGE,     '"64","64"',         64,   "4 4",          49_152),
    (SMALL,     '"1","64","64"',     64,   "4 4",          16_384),  # one step
]
# fmt: on


@pytest.mark.parametrize("shapes, tile, step, launch, shared", LAUNCHES_ON_A100)
def test_without_warp_groups_a_buffer_less_is_staged(
    shapes: tuple[str, str, str], tile: str, step: int, launch: str, shared: int
) -> None:
    compiled = indexing.compiled_tiling(fusion_of(*shapes, tile, step, launch))
    assert not isinstance(compiled, Unknown)
    assert indexing.triton_shared_bytes(compiled, "A100") == shared
    with pytest.raises(ValueError, match="unknown GPU 'v5e'"):
        indexing.triton_shared_bytes(compiled, "v5e")


@pytest.mark.parametrize("name", ["h100_mlp_gemm", "h100_softmax", "h100_layernorm"])
def test_the_grid_of_a_choice_is_that_of_the_launch(name: str) -> None:
    (module,) = (DUMPS / name).glob("*after_optimizations.txt")
    (thunks,) = (DUMPS / name).glob("*thunk_sequence.txt")
    launches = thunk_launches(thunks.read_text())
    compared = 0
    for instruction in hlo.load(module).entry.instructions:
        compiled = indexing.compiled_tiling(instruction)
        if isinstance(compiled, Unknown):
            continue
        launch = launches[instruction.name.replace(".", "_")]
        tiling = compiled.tiling()
        assert isinstance(tiling, LoopTiling)
        assert launch.grid == (tiling.blocks, 1, 1)
        assert launch.threads == (32 * compiled.warps, 1, 1)
        assert tiling.violations("H100", compiled.stages, compiled.warps) == ()
        shared = indexing.triton_shared_bytes(compiled)
        assert isinstance(shared, Unknown) or shared == launch.shared_bytes
        if not compiled.steps:  # XLA chooses warps by a formula
            assert tiling.warps("H100") == compiled.warps
        compared += 1
    assert compared


def test_a_choice_is_read_with_its_defaults() -> None:
    fusion = fusion_of(*LARGE, '"64","128"', 32, "4 2")
    compiled = indexing.compiled_tiling(fusion)
    assert not isinstance(compiled, Unknown)
    assert (compiled.warps, compiled.stages, compiled.ctas) == (4, 2, 1)
    assert compiled.output_tiles == ((64, 128),)
    assert compiled.steps == (("d", (32,)),)
    assert str(compiled) == "[64, 128], d=32, 4 warps, 2 stages"
    plain = indexing.compiled_tiling(fusion.operands[0])
    assert isinstance(plain, Unknown)
    assert plain.reason == "the module states no tiling of `p`"
    with pytest.raises(ValueError, match=r"output_id=1: XLA chose tiles of 1 outputs of `r`"):
        compiled.sizes_of(1, 2)
    with pytest.raises(ValueError, match=r"tile sizes \[64, 128\], but its output has 3 dimens"):
        compiled.sizes_of(0, 3)


def test_a_choice_that_is_none_is_an_error() -> None:
    text = """ENTRY e { p = f32[4] parameter(0)
      ROOT n = f32[4] negate(p), backend_config={"fusion_backend_config":{
        "block_level_fusion_config":{"num_warps":"many"}}} }"""
    with pytest.raises(HloError, match=r"block_level_fusion_config.*must be an integer"):
        indexing.compiled_tiling(hlo.parse(text).entry.root)


# ---------------------------------------------------------------- rules


# fmt: off
VIOLATIONS = [
    # operands  tile                step  warps, stages  violated
    (LARGE,     '"128","256"',      64,   "8 3",         ""),
    (LARGE,     '"16","8"',         16,   "2 1",         ""),  # few adjacent bytes: XLA compiles it
    (LARGE,     '"4","8"',          64,   "2 1",         "a tile of 4 rows: at least 16 required"),
    (LARGE,     '"16","16"',        8,    "2 1",         "a tile of 8 contracted: at least 16"),
    (LARGE,     '"512","16"',       16,   "8 1",         "512 indices along a dimension"),
    (LARGE,     '"256","256"',      16,   "8 1",         "65,536 accumulator registers"),
    (LARGE,     '"256","192"',      32,   "8 3",         ""),  # 192 of 256 registers of a thread
    (LARGE,     '"256","192"',      32,   "16 3",        ""),
    (LARGE,     '"256","208"',      32,   "32 3",        "at most 49,152 allowed beside 16"),
    (LARGE,     '"128","256"',      128,  "8 4",         "393,216 bytes of shared memory"),
    (LARGE,     '"128","256"',      64,   "2 3",         "512 accumulator registers of each of 64"),
    (LARGE,     '"64","64"',        64,   "64 3",        "2,048 threads: at most 1,024 allowed"),
]
# fmt: on


@pytest.mark.parametrize("shapes, tile, step, launch, violated", VIOLATIONS)
def test_rules_that_a_choice_violates(
    shapes: tuple[str, str, str], tile: str, step: int, launch: str, violated: str
) -> None:
    compiled = indexing.compiled_tiling(fusion_of(*shapes, tile, step, launch))
    assert not isinstance(compiled, Unknown)
    tiling = compiled.tiling()
    assert isinstance(tiling, LoopTiling)
    reasons = tiling.violations("H100", compiled.stages, compiled.warps)
    assert not isinstance(reasons, Unknown)
    if violated:
        assert any(violated in reason for reason in reasons), reasons
    else:
        assert reasons == ()


def test_warps_hold_the_accumulators() -> None:
    """Half of 256 registers of each thread, and whole groups of warps from 64 rows on."""
    assert [warps_of_dots(64, 64 * n, "H100") for n in (16, 128, 256)] == [4, 4, 4]
    assert [warps_of_dots(64, 64 * n, "A100") for n in (16, 128, 256)] == [1, 2, 4]
    assert warps_of_dots(256, 256 * 256, "H100") == 16
    assert [warps_of_rows(n) for n in (1, 257, 1025, 4097, 1 << 20)] == [1, 2, 4, 8, 8]
    root = hlo.parse(
        "ENTRY e { p = f32[8,8] parameter(0)  ROOT n = f32[8,8] negate(p) }"
    ).entry.root
    tiling = indexing.tile(root, (8, 8), loop_sizes={})
    assert isinstance(tiling, LoopTiling)
    assert (tiling.warps("H100"), tiling.warps("v5e")) == (1, None)


# ---------------------------------------------------------------- rank


@pytest.mark.parametrize("tile, step", [('"128","256"', 64), ('"64","64"', 32), ('"16","8"', 16)])
def test_a_choice_ranks_by_the_objective(tile: str, step: int) -> None:
    """The key of a dot by its formulas; the better ones are those of the list."""
    fusion = fusion_of(*LARGE, tile, step, "4 3")
    best = indexing.best_tilings(fusion, device="H100", loops=True, top=20)
    assert isinstance(best, BestLoopTilings)
    assert best.compiled is not None
    rows, columns = [int(size.strip('"')) for size in tile.split(",")]
    blocks = 1024 // rows * (1024 // columns)
    moved = 2 * 1024 * 1024 * 512 // rows + 2 * 1024 * 1024 * 512 // columns + 2 * 1024 * 1024
    key = (-(-moved // min(132, blocks)), moved, 512 // step, -(-blocks // 132))
    assert best.compiled.key == key
    assert best.compiled.better == sum(other < key for other in best.keys)
    assert f"XLA's choice: {best.compiled.compiled}: {moved:,} bytes" in str(best)


def test_modules_without_a_choice_have_none() -> None:
    root = hlo.parse("ENTRY e { p = f32[64] parameter(0)  ROOT n = f32[64] negate(p) }").entry.root
    best = indexing.best_tilings(root, device="H100", loops=True)
    assert isinstance(best, BestLoopTilings)
    assert best.compiled is None
    fusion = fusion_of(*LARGE, '"64","128"', 32, "4 2")
    best = indexing.best_tilings(fusion, device="v5e", loops=True)
    assert isinstance(best, BestLoopTilings)
    assert best.compiled is None
