"""``tile --loops`` and ``tile --search --device``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from indexing.cli import main
from tests.tiling.loops import hand_problems as hand


@pytest.fixture
def matmul(tmp_path: Path) -> str:
    path = tmp_path / "m.hlo"
    path.write_text(hand.dot(512, 384, 256).text)
    return str(path)


def ran(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["tile", *words])
    return result.exit_code, result.output


def test_loops_print_phases_and_figures(matmul: str) -> None:
    code, output = ran(matmul, "--sizes", "128,64", "--loops", "k=32")
    assert code == 0
    moved = 2 * 512 * 384 * 256 // 128 + 2 * 512 * 384 * 256 // 64 + 2 * 512 * 384
    assert f"{moved:,} bytes loaded and stored" in output
    assert "phase 0: 8 steps, 12,288 bytes resident" in output


def test_loops_are_records(matmul: str) -> None:
    code, output = ran(matmul, "--sizes", "128,64", "--loops", "k=32", "--format", "json")
    (record,) = map(json.loads, output.splitlines())
    assert code == 0
    assert record["result"] == "loops"
    assert record["loops"] == [{"name": "k", "size": 256, "step": 32, "steps": 8}]
    assert record["resident_bytes"] == 12_288


def test_a_search_for_a_device_chooses_steps(matmul: str) -> None:
    code, output = ran(matmul, "--search", "--device", "H100", "--top", "1", "--format", "json")
    best, effort = map(json.loads, output.splitlines())
    assert code == 0
    assert (best["result"], best["rank"], effort["result"]) == ("loops", 1, "search")
    assert best["loops"][0]["step"] >= 32


# fmt: off
REFUSED = [
    (["--loops", "k=32"],                                    2, "--loops needs --sizes"),
    (["--sizes", "8,8", "--split-k", "2"],                   2, "--split-k needs --loops"),
    (["--device", "H100"],                                   2, "--device needs --search"),
    (["--sizes", "8,8", "--loops", "k=0"],                   2, "is not a list of positive steps"),
    (["--sizes", "8,8", "--loops", "k=8", "--at", "0,0"],    2, "--loops cannot be used with --at"),
    (["--sizes", "8,8", "--loops", "j=8"],                   1, "no loop 'j'"),
    (["--search", "--device", "H10"],                        1, "did you mean `H100`?"),
]
# fmt: on


@pytest.mark.parametrize("words, status, message", REFUSED)
def test_wrong_options_are_refused(
    matmul: str, words: list[str], status: int, message: str
) -> None:
    code, output = ran(matmul, *words)
    assert (code, message in output) == (status, True), output
