"""The formats for maps alone: each line is one map, which other tools read."""

from __future__ import annotations

import json
from pathlib import Path

import islpy
import pytest

from indexing import cli, parse_map
from indexing.maps.interchange import from_mlir

ROOT = Path(__file__).parents[2]
NAMES = "dynamic_slice_update.opt embedding_gather.opt layernorm.opt reduce_window.pre"
EXAMPLES = [str(ROOT / "examples" / f"{name}.hlo") for name in NAMES.split()]
REQUESTS = [["--to", "parameters"], ["--direction", "both", "--exact"]]


def lines(capsys: pytest.CaptureFixture[str], notation: str, *flags: str) -> list[str]:
    assert cli.run(["maps", *EXAMPLES, "--all", *flags, "--format", notation]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("flags", REQUESTS, ids=" ".join)
def test_each_line_is_the_map_of_a_json_record(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    records = [json.loads(line) for line in lines(capsys, "json", *flags)]
    maps = [parse_map(r["map"]) for r in records if r["map"] not in (None, "KNOWN EMPTY")]
    assert len(maps) == sum(record["map"] is not None for record in records)
    mlir, isl = lines(capsys, "mlir", *flags), lines(capsys, "isl", *flags)
    latex = lines(capsys, "latex", *flags)
    assert len(maps) == len(mlir) == len(isl) == len(latex)
    for m, mlir_line, isl_line, latex_line in set(zip(maps, mlir, isl, latex, strict=True)):
        assert str(from_mlir(mlir_line)) == str(m)
        relation = islpy.Map(isl_line)
        assert relation.dim(islpy.dim_type.in_) == len(m.dims)
        assert relation.dim(islpy.dim_type.out) == len(m.results)
        assert latex_line.count("{") == latex_line.count("}")
        assert r"\mapsto" in latex_line
