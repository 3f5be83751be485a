"""Arrays of more dimensions than NumPy supports: maps, and clear errors of what executes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from indexing import cli
from indexing.execution import run


def transpose_all(rank: int) -> str:
    """A module that reverses the dimensions of an array with eight elements."""
    sizes = [2 if k < 3 else 1 for k in range(rank)]
    shape, reverse = (
        ",".join(map(str, each)) for each in (sizes, [rank - 1 - k for k in range(rank)])
    )
    mirrored = ",".join(map(str, sizes[::-1]))
    return f"""ENTRY e {{ p = f32[8] parameter(0)  x = f32[{shape}] reshape(p)
      ROOT t = f32[{mirrored}] transpose(x), dimensions={{{reverse}}} }}"""


def test_the_largest_rank_of_numpy_is_executed() -> None:
    (result,) = run(hlo.parse(transpose_all(64)), [np.arange(8, dtype=np.float32)])
    assert result.ravel().tolist() == [0, 4, 2, 6, 1, 5, 3, 7]


@pytest.mark.parametrize("rank", [65, 200])
def test_a_larger_rank_is_an_error(rank: int) -> None:
    message = f"`x` has {rank} dimensions; NumPy arrays have at most 64"
    with pytest.raises(hlo.HloError, match=message):
        run(hlo.parse(transpose_all(rank)), [np.arange(8, dtype=np.float32)])


@pytest.mark.parametrize("command", [["run"], ["run", "--loops"], ["validate"]])
def test_commands_that_execute_a_larger_rank_say_so(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.hlo").write_text(transpose_all(65))
    cli.run([command[0], str(tmp_path / "m.hlo"), *command[1:]])
    output, errors = capsys.readouterr()
    assert "has 65 dimensions; NumPy arrays have at most 64" in output + errors
    assert "error[internal]" not in errors


@pytest.mark.parametrize("notation", ["text", "json", "mlir", "isl", "latex"])
def test_maps_of_a_larger_rank_are_printed(
    notation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.hlo").write_text(transpose_all(65))
    status = cli.run(["maps", str(tmp_path / "m.hlo"), "--all", "--format", notation])
    output, errors = capsys.readouterr()
    assert (status, errors) == (0, "")
    if notation == "json":
        texts = [json.loads(line)["map"] for line in output.splitlines()]
        last = indexing.output_to_input(hlo.parse(transpose_all(65)).entry.root).maps[0][0]
        assert texts[-1] == str(last)


def test_a_map_that_isl_does_not_read_within_its_budget_is_an_error_of_the_map(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.hlo").write_text(transpose_all(600))
    status = cli.run(["maps", str(tmp_path / "m.hlo"), "--format", "isl"])
    errors = capsys.readouterr().err
    assert status == 1
    assert errors.startswith("error[isl]: ")
    assert "cannot convert the map to isl: beyond the budget" in errors
