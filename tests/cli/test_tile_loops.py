"""``tile --loops`` and ``tile --search --device``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import Run, runner, valid_records, validator
from tests.tiling.loops import hand_problems as hand


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    path = tmp_path / "m.hlo"
    path.write_text(hand.dot(512, 384, 256).text)
    return runner(capsys, "tile", str(path))


def test_loops_print_phases_and_figures(run: Run) -> None:
    status, out, _ = run("--sizes 128,64 --loops k=32")
    assert status == 0
    moved = 2 * 512 * 384 * 256 // 128 + 2 * 512 * 384 * 256 // 64 + 2 * 512 * 384
    assert f"{moved:,} bytes loaded and stored" in out
    assert "phase 0: 8 steps, 12,288 bytes resident" in out


def test_loops_are_records(run: Run) -> None:
    (record,) = valid_records(run, "tile", "--sizes 128,64 --loops k=32")
    assert record["result"] == "loops"
    assert record["loops"] == [{"name": "k", "size": 256, "step": 32, "steps": 8}]
    assert record["resident_bytes"] == 12_288


def test_loops_over_arrays_in_tiles_have_the_padded_bytes_in_vmem(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = Path(__file__).parents[2] / "examples" / "targets" / "attention.tpu_v5e.hlo"
    tiled = runner(capsys, "tile", str(file), "-i", "fusion")
    status, out, _ = tiled("--sizes 8,256 --loops d1=128")
    assert status == 0
    (record,) = valid_records(tiled, "tile", "--sizes 8,256 --loops d1=128")
    assert f"{record['vmem_bytes']:,} bytes of VMEM: two buffers of each block, padded" in out
    assert "steps of loops may begin inside of layout tiles" in out


def test_loops_over_dense_arrays_have_no_line_about_vmem(run: Run) -> None:
    assert "VMEM" not in run("--sizes 128,64 --loops k=32")[1]


GEMM = (
    Path(__file__).parents[1]
    / "kernels/data/h100_mlp_gemm/module_17913.jit_mlp_gemm.sm_9.0a_gpu_after_optimizations.txt"
)


def test_a_fusion_is_tiled_as_it_was_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    tiled = runner(capsys, "tile", str(GEMM), "-i", "gemm_fusion_dot")
    status, out, _ = tiled("--as-compiled")
    assert status == 0
    assert "tiles [1, 16, 8], grid [8, 8, 32], 2,048 blocks, steps k=16 (2 of 32)" in out
    assert "XLA's choice: [1, 16, 8], dot.1=16, 2 warps, 1 stage" in out
    assert "768 bytes of shared memory, by the model of Triton on H100" in out
    assert "violates" not in out
    (record,) = valid_records(tiled, "tile", "--as-compiled --device A100")
    chosen = record["compiled"]
    assert (chosen["device"], chosen["warps"], chosen["shared_bytes"]) == ("A100", 2, 768)
    *_, effort = valid_records(tiled, "tile", "--search --device H100 --limit 3")
    assert (effort["compiled"]["tile_sizes"], effort["compiled"]["better"]) == ([1, 16, 8], 3)
    status, out, _ = tiled("--search --device H100 --limit 3")
    assert "bytes worse than the best; better: 3 of 3" in out


def test_an_instruction_without_a_choice_says_so(run: Run) -> None:
    status, out, _ = run("--as-compiled")
    assert status == 0
    assert "unknown: the module states no tiling of `" in out


def test_a_search_for_a_device_chooses_steps(run: Run) -> None:
    best, effort = valid_records(run, "tile", "--search --device H100 --limit 1")
    assert (best["result"], best["rank"], effort["result"]) == ("loops", 1, "search")
    assert best["loops"][0]["step"] >= 32


@pytest.mark.parametrize(
    ("language", "line"), [("pallas", "grid=(4, 6, 8),"), ("triton", "@triton.jit")]
)
def test_kernels_are_printed_as_files(run: Run, language: str, line: str) -> None:
    status, out, errors = run(f"--sizes 128,64 --loops k=32 --emit {language}")
    assert (status, errors) == (0, "")
    compile(out, "printed", "exec")
    assert line in [each.strip() for each in out.splitlines()]


def test_the_reason_for_no_kernel_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(hand.stencil(9, 7).text)
    tiled = runner(capsys, "tile", str(path), "--sizes", "4,3", "--emit", "pallas")
    status, out, errors = tiled("")
    assert (status, out) == (1, "")
    assert "the index map is not a block index" in errors


def test_boxes_of_steps_are_records(run: Run) -> None:
    (record,) = valid_records(run, "tile", "--sizes 128,64 --loops k=32")
    status, out, _ = run("--sizes 128,64 --loops k=32 --emit json")
    assert (status, json.loads(out)) == (0, record)
    phase = record["phases"][0]
    reads = [(each["array"], each["offsets"], each["sizes"]) for each in phase["reads"]]
    assert reads == [
        ("a", ["tid_0 * 128", "tid_2 * 32"], ["128", "32"]),
        ("b", ["tid_2 * 32", "tid_1 * 64"], ["32", "64"]),
    ]


def test_the_schema_rejects_a_box_without_an_array(run: Run) -> None:
    (record,) = valid_records(run, "tile", "--sizes 128,64 --loops k=32")
    valid = validator("tile")
    del record["phases"][0]["reads"][0]["array"]
    assert not valid.is_valid(record)


def row_figures(out: str) -> list[str]:
    """Return the lines about the ways to read rows."""
    ways = ("row resident:", "recompute:", "online:", "not online:")
    return [line.strip() for line in out.splitlines() if line.strip().startswith(ways)]


def test_rows_are_read_online_unless_that_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The figures are those of a softmax by hand: x is loaded once, twice or three times."""
    path = tmp_path / "m.hlo"
    path.write_text(hand.softmax(24, 1000).text)
    tiled = runner(capsys, "tile", str(path))
    steps = "--sizes 4,1000 --loops k=250,d1=250"
    resident, recompute = "192,000 bytes, 16,000 resident", "384,000 bytes, 4,000 resident"
    online = "288,000 bytes, 4,000 resident"
    for option in ("", " --online"):
        status, out, _ = tiled(steps + option)
        assert (status, "2 passes, online" in out) == (0, True)
        assert row_figures(out) == [
            f"row resident: {resident}",
            f"recompute: {recompute}",
            f"online: {online} (this tiling)",
        ]
    status, out, _ = tiled(f"{steps} --no-online")
    assert (status, "384,000 bytes loaded and stored" in out) == (0, True)
    assert "3 passes\n" in out
    assert f"recompute: {recompute} (this tiling)" in row_figures(out)
    (record,) = valid_records(tiled, "tile", f"{steps} --no-online")
    ways = [(each["name"], each["bytes"], each["chosen"]) for each in record["row_methods"]]
    assert ways == [
        ("row resident", 192_000, False),
        ("recompute", 384_000, True),
        ("online", 288_000, False),
    ]
    _, out, _ = tiled("--sizes 4,1000 --loops k=1000")
    assert row_figures(out) == [f"row resident: {resident} (this tiling)"]


def test_a_statistic_that_is_no_factor_has_a_reason(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "m.hlo"
    text = hand.softmax(24, 1000).text
    path.write_text(text.replace("exponential(", "tanh("))
    tiled = runner(capsys, "tile", str(path))
    _, out, _ = tiled("--sizes 4,1000 --loops k=250,d1=250")
    assert row_figures(out) == [
        "row resident: 192,000 bytes, 16,000 resident",
        "recompute: 384,000 bytes, 4,000 resident (this tiling)",
        "not online: `total` waits for `top`, which is not a factor of its terms",
    ]


def test_an_attention_states_the_bytes_of_each_way(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(hand.attention(2, 96, 160, 16, True).text)
    _, out, _ = runner(capsys, "tile", str(path))("--sizes 1,32,16 --loops k=32")
    assert row_figures(out) == [
        "row resident: 73,728 bytes, 11,264 resident",
        "recompute: 135,168 bytes, 3,072 resident",
        "online: 73,728 bytes, 3,072 resident (this tiling)",
    ]


def test_a_dot_has_no_rows_to_read_again(run: Run) -> None:
    assert row_figures(run("--sizes 128,64 --loops k=32")[1]) == []


# fmt: off
REFUSED = [
    ("--loops k=32",                       2, "--loops needs --sizes"),
    ("--sizes 8,8 --split-k 2",            2, "--split-k needs --loops"),
    ("--sizes 8,8 --no-online",            2, "--online and --no-online need --loops"),
    ("--device H100",                      2, "--device needs --search"),
    ("--as-compiled --sizes 8,8",          2, "--as-compiled cannot be used with --sizes"),
    ("--as-compiled --search",             2, "--as-compiled cannot be used with --search"),
    ("--as-compiled --explain",            2, "--as-compiled cannot be used with --explain"),
    ("--sizes 8,8 --loops k=0",            2, "is not a list of positive steps"),
    ("--sizes 8,8 --loops k=8 --at 0,0",   2, "--loops cannot be used with --at"),
    ("--sizes 8,8 --loops k=8 --split-k 2 --cache 1MiB", 2, "--split-k cannot be used with"),
    ("--sizes 8,8 --loops j=8",            1, "no loop 'j'"),
    ("--emit json",                        2, "--emit needs --sizes"),
    ("--sizes 8,8 --emit json --at 0,0",   2, "--emit cannot be used with --at"),
    ("--search --device H10",              1, "did you mean `H100`?"),
]
# fmt: on


@pytest.mark.parametrize("line, status, message", REFUSED)
def test_wrong_options_are_refused(run: Run, line: str, status: int, message: str) -> None:
    actual, _, errors = run(line)
    assert (actual, message in errors) == (status, True), errors
