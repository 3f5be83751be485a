"""``hlo-indexing tile --cache``: the misses of `indexing.best_block_orders`, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

import hlo
import indexing
from indexing import cli
from tests.cli.running import validator

Run: TypeAlias = Callable[..., tuple[int, str, str]]
PROGRAM = """\
ENTRY e {
  p = f32[64,32] parameter(0)
  q = f32[32,96] parameter(1)
  dot = f32[64,96] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = s32[] parameter(2)
  slice = f32[8,32] dynamic-slice(p, i, i), dynamic_slice_sizes={8,32}
  ROOT t = (f32[64,96], f32[8,32]) tuple(dot, slice)
}
"""
DOT = ("-i", "dot", "--sizes", "16,16")
CACHE = ("--cache", "8KiB")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``tile`` on the program; return the exit status, the output and the errors."""
    file = tmp_path / "program.hlo"
    file.write_text(PROGRAM)

    def ran(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(["tile", str(file), *arguments])
        captured = capsys.readouterr()
        assert "error[internal]" not in captured.err
        return status, captured.out, captured.err

    return ran


def best(*orders: str, line: int = 128) -> indexing.BestBlockOrders:
    tiling = indexing.tile(hlo.parse(PROGRAM).entry["dot"], (16, 16))
    assert isinstance(tiling, indexing.Tiling)
    answer = indexing.best_block_orders(tiling, 8192, orders or None, line)
    assert isinstance(answer, indexing.BestBlockOrders)
    return answer


@pytest.mark.parametrize("orders, line", [((), 128), (("column", "grouped:3"), 64)])
def test_misses_are_those_of_python(run: Run, orders: tuple[str, ...], line: int) -> None:
    flags = ["--order", ", ".join(orders)] * bool(orders) + ["--line", str(line)] * (line != 128)
    status, out, err = run(*DOT, *CACHE, *flags)
    expected = best(*orders, line=line)
    head, *lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines == [f"  {row}" for row in str(expected).splitlines()]
    assert head.endswith(f"tiles [16, 16], LRU cache of 8,192 bytes, lines of {line} bytes")
    records = [
        json.loads(row) for row in run(*DOT, *CACHE, *flags, "--format", "json")[1].splitlines()
    ]
    for record in records:
        validator("tile").validate(record)
    assert [(r["order"], r["misses"], r["bytes"]) for r in records] == [
        (own.order.name, own.misses, own.bytes) for own in expected
    ]
    for record, own in zip(records, expected, strict=True):
        assert [a["misses"] for a in record["arrays"]] == [a.misses for a in own.arrays]


def test_blocks_in_lockstep_are_those_of_python(run: Run) -> None:
    looped = (*DOT, "--loops", "k=8", *CACHE, "--wave", "5", "--order", "row,column")
    status, out, _ = run(*looped)
    tiling = indexing.tile(hlo.parse(PROGRAM).entry["dot"], (16, 16), loop_sizes={"k": 8})
    expected = indexing.best_block_orders(tiling, 8192, ["row", "column"], wave=5)
    head, *lines = out.splitlines()
    assert status == 0
    assert head.endswith("lines of 128 bytes, steps k=8, 5 tiles in lockstep")
    assert lines == [f"  {row}" for row in str(expected).splitlines()]
    for row in run(*looped, "--format", "json")[1].splitlines():
        record = json.loads(row)
        validator("tile").validate(record)
        assert record["wave"] == 5


def test_elements_at_runtime_values_are_unknown(run: Run) -> None:
    status, out, _ = run("-i", "slice", "--sizes", "4,32", *CACHE)
    assert status == 0
    assert "unknown: the elements of `p` that a tile needs depend on runtime values" in out
    (row,) = run("-i", "slice", "--sizes", "4,32", *CACHE, "--format", "json")[1].splitlines()
    assert json.loads(row)["result"] == "unknown"


# fmt: off
ERRORS = [
    # arguments                                status  error
    ((*DOT, *CACHE, "--order", "row,zigzag"),  1,      "unknown block order 'zigzag'"),
    (("-i", "dot", *CACHE),                    2,      "--cache needs --sizes"),
    ((*DOT, "--order", "row"),                 2,      "--order needs --cache"),
    ((*DOT, "--line", "64"),                   2,      "--line needs --cache"),
    ((*DOT, "--wave", "4"),                    2,      "--wave needs --cache"),
    ((*DOT, *CACHE, "--at", "0,0"),            2,      "--cache cannot be used with --at"),
    ((*DOT, *CACHE, "--explain"),              2,      "--cache cannot be used with --explain"),
    ((*DOT, "--cache", "many"),                2,      "expected a size such as 40MiB, or one of"),
    ((*DOT, "--cache", "4x"),                  2,      "expected a size such as 512MiB"),
    ((*DOT, "--cache", "40"),                  2,      "--cache 40 holds no line of 128 bytes"),
]
# fmt: on


@pytest.mark.parametrize("arguments, status, error", ERRORS)
def test_contradictions_are_refused(
    run: Run, arguments: tuple[str, ...], status: int, error: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (status, "")
    assert error in err


def test_a_gpu_is_the_size_of_its_l2_cache(run: Run) -> None:
    assert run(*DOT, "--cache", "A100") == run(*DOT, "--cache", "40MiB")
