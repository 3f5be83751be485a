"""`hlo-indexing bytes`: the table, the roofline bounds, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import hlo
from indexing import cli
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.roofline import PEAKS as PEAKS_BY_NAME
from indexing.memory.movement.roofline import Peak, peak_rates
from indexing.views.records import SCHEMAS
from indexing.views.traffic_tables import TrafficTable
from tests.cli.test_summary import ODD

Records = Callable[..., list[dict[str, Any]]]

GEMM = """HloModule gemm
ENTRY e {
  p = f32[128,256] parameter(0)
  q = f32[256,128] parameter(1)
  d = f32[128,128] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[128,128] tanh(d)
}"""


@pytest.fixture
def records(capsys: pytest.CaptureFixture[str]) -> Records:
    def run(*arguments: str) -> list[dict[str, Any]]:
        assert cli.run(["bytes", *arguments, "--format", "json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def write(tmp_path: Path, text: str) -> str:
    (tmp_path / "m.hlo").write_text(text)
    return str(tmp_path / "m.hlo")


def test_the_table_has_the_instructions_that_move_most_bytes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, GEMM)
    assert cli.run(["bytes", file, "--peak", "1TB/s,10TF/s"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head, dot, tanh = [line.split() for line in lines[-3:]]
    assert head[:5] == ["bytes", "read", "written", "requested", "flops"]
    assert dot[0] == f"{65_536 + 2 * 131_072:,}"
    assert (dot[3], dot[4]) == (f"{2 * 128 * 131_072:,}", "8,388,608")
    assert dot[6:9] == ["838.9", "ns", "compute"]  # 8,388,608 / 10^13
    assert tanh[-5:-2] == ["131.1", "ns", "memory"]  # 131,072 / 10^12
    assert lines[1] == "  458,752 bytes: 327,680 read, 131,072 written"
    assert lines[4] == "  969.9 ns at the peak rates"


def test_at_most_top_rows_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], records: Records
) -> None:
    file = write(tmp_path, GEMM)
    assert cli.run(["bytes", file, "--limit", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "  … 1 more"
    (record,) = records(file, "--limit", "1")
    assert [each["instruction"] for each in record["instructions"]] == ["d"]
    assert record["peak"] is None


def test_records_fit_the_schema(tmp_path: Path, records: Records) -> None:
    schema = json.loads(SCHEMAS["bytes"].read_text())
    for text in (GEMM, ODD):
        (record,) = records(write(tmp_path, text), "--peak", "3TB/s")
        jsonschema.validate(record, schema)
    by_name = {each["instruction"]: each for each in record["instructions"]}
    assert by_name["xw"]["executions"] == [0, (1 << 31) + 9]
    assert by_name["strange"]["flops"] is None
    assert "no-such-opcode" in by_name["strange"]["unknown"][0]
    assert by_name["wide"]["operands"][1]["distinct_grade"] == "may"


def test_figures_without_bounds_are_marked() -> None:
    lines = list(TrafficTable("odd", traffic(hlo.parse(ODD)), Peak(10**12, 10**12)).lines(99))
    dot = next(line for line in lines if "body/xw" in line)
    assert " each " in dot
    assert f"0 to {(1 << 31) + 9:,}" in dot
    assert "unknown figures (`?`):" in lines
    assert "instructions of unknown time" in lines[4]


# fmt: off
PEAKS = [
    ("4.8TB/s,67TF/s", Peak(4_800_000_000_000, 67_000_000_000_000)),
    ("67 TFLOPS , 2TiB/s", Peak(2 << 40, 67_000_000_000_000)),
    ("900GBps",        Peak(900_000_000_000, None)),
    (".5TFLOP/s",      Peak(None, 500_000_000_000)),
    # NVIDIA "H100 Tensor Core GPU", data sheet, H100 SXM: 3.35 TB/s, 67 TF/s
    ("H100",           Peak(3_352_320_000_000, 66_908_160_000_000)),
]
WRONG = [
    ("",               "'' is not a rate: write bytes per second as 4.8TB/s"),
    ("4.8",            "'4.8' is not a rate"),
    ("4.8TB/s,1TB/s",  "'1TB/s' is the second rate of bytes"),
    ("1TiF/s",         "binary prefixes such as Ti are prefixes of B"),
    ("0TB/s",          "'0TB/s' is not between 1 and 10^24 per second"),
    ("1e12B/s",        "'1e12B/s' is not a rate"),
    ("h100",           "B200, v4, v5e, v5p, v6e; did you mean `H100`?"),
    ("v9",             "unknown device 'v9': expected one of V100"),
    ("MI300",          "the peak rates of MI300 are not known"),
    ("A100,67TF/s",    "unknown device 'A100,67TF/s'"),
]
# fmt: on


@pytest.mark.parametrize(("text", "peak"), PEAKS)
def test_peak_rates(text: str, peak: Peak) -> None:
    assert Peak.parse(text) == peak_rates(text) == peak_rates(peak) == peak


@pytest.mark.parametrize("name", PEAKS_BY_NAME)
def test_the_guide_has_the_peak_rates(name: str) -> None:
    peak = PEAKS_BY_NAME[name]
    guide = (Path(__file__).parents[2] / "docs" / "memory.md").read_text()
    (row,) = [line for line in guide.splitlines() if line.startswith(f"| `{name}` |")]
    rates = [cell.strip().replace(" ", "") for cell in row.split("|")[2:4]]
    shown = Peak.parse(",".join(rates))
    for one, other in ((shown.bytes, peak.bytes), (shown.flops, peak.flops)):
        assert abs(Fraction(one or 0, other or 1) - 1) < Fraction(1, 1000)


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_peak_rates(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bytes", "m.hlo", "--peak", text]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_fusion_that_needs_few_elements_does_few_operations() -> None:
    module = hlo.parse("""
    fused { p = f32[1000] parameter(0)  n = f32[1000] negate(p)
      ROOT s = f32[10] slice(n), slice={[0:10]} }
    ENTRY e { p = f32[1000] parameter(0)
      ROOT f = f32[10] fusion(p), kind=kLoop, calls=fused }""")
    (fusion,) = traffic(module).instructions
    bound = Peak(flops=1).bound(fusion)
    assert (fusion.flops, getattr(bound, "seconds", None)) == (1000, Fraction(10))


def test_an_invalid_module_has_errors_and_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, GEMM.replace("tanh(d)", "add(d)"))
    assert cli.run(["bytes", file]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "error[" in err


def test_progress_covers_every_instruction() -> None:
    seen: list[tuple[int, int]] = []
    traffic(hlo.parse(GEMM), lambda done, total: seen.append((done, total)))
    assert seen == [(0, 2), (1, 2)]


MASKED = """
fused {
  x = f32[12,12] parameter(0)
  limit = s32[] parameter(1)
  limits = s32[12,12] broadcast(limit), dimensions={}
  column = s32[12,12] iota(), iota_dimension=1
  early = pred[12,12] compare(column, limits), direction=LE
  zero = f32[] constant(0)
  zeros = f32[12,12] broadcast(zero), dimensions={}
  ROOT masked = f32[12,12] select(early, x, zeros)
}
ENTRY e {
  x = f32[12,12] parameter(0)
  pos = s32[] parameter(1)
  one = s32[] constant(1)
  next = s32[] add(pos, one)
  ROOT f = f32[12,12] fusion(x, next), kind=kLoop, calls=fused
}"""


@pytest.mark.parametrize("jobs", [(), ("--jobs", "2")])
def test_given_values_decide_what_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], jobs: tuple[str, ...]
) -> None:
    """Columns 0 to pos + 1 are needed, the limit, and the operands of the sum."""
    file = write(tmp_path, MASKED)
    for pos, columns in ((3, 5), (-2, 0), (40, 12)):
        needed = 4 * 12 * columns + 3 * 4
        assert cli.run(["bytes", file, "--set", f"pos={pos}", *jobs]) == 0
        out = capsys.readouterr().out
        is_all = columns == 12
        assert is_all or f"  {needed} of the 588 bytes read are needed under masks\n" in out
        assert cli.run(["bytes", file, "--set", f"pos={pos}", "--format", "json", *jobs]) == 0
        total = json.loads(capsys.readouterr().out)["total"]
        assert (total["read"], total["needed"]) == ([588, 588], [needed, needed])
    assert cli.run(["bytes", file]) == 0
    assert "  12 to 588 of the 588 bytes read are needed under masks\n" in capsys.readouterr().out


def test_a_picture_of_what_is_read_takes_no_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, MASKED)
    assert cli.run(["bytes", file, "--format", "svg", "--set", "pos=3"]) == 2
    assert "cannot be used with --set" in capsys.readouterr().err


@pytest.mark.parametrize("notation", ["text", "json"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("poss=3", "has an integer parameter named `poss`\n  = help: did you mean `pos`?"),
        ("limit=3", "has an integer parameter named `limit`"),  # of the fusion
        ("pos=9999999999", "the value of --set pos does not fit"),
    ],
)
def test_a_value_that_fits_no_parameter_of_entry_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, message: str, notation: str
) -> None:
    file = write(tmp_path, MASKED)
    assert cli.run(["bytes", file, "--set", value, "--format", notation]) == 1
    assert message in capsys.readouterr().err
    assert cli.run(["bytes", file, file, "--set", "pos=3"]) == 0


def test_selected_instructions_have_their_own_totals_and_operands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], records: Records
) -> None:
    path = write(tmp_path, GEMM)
    assert cli.run(["bytes", path, "-i", "d"]) == 0
    out = capsys.readouterr().out
    # each element of an operand of 128 x 256 is read for 128 rows or columns of the result
    read, requested = 4 * 128 * 256, 4 * 128 * 128 * 256
    assert out.startswith(f"{path}: HloModule gemm: 1 of 2 instructions that move bytes\n")
    assert (
        f"{2 * read + 4 * 128 * 128:,} bytes: {2 * read:,} read, {4 * 128 * 128:,} written" in out
    )
    for number, name in enumerate("pq"):
        cells = [f"{read:,}", f"{requested:,}", "128", "operand", str(number), name, "d"]
        assert cells in [line.split() for line in out.splitlines()]
    (record,) = records(path, "-i", "d")
    assert [each["instruction"] for each in record["instructions"]] == ["d"]
    assert record["total"]["read"] == [2 * read, 2 * read]
    jsonschema.validate(record, json.loads(SCHEMAS["bytes"].read_text()))


def test_the_reads_of_an_element_are_unknown_where_bytes_are_bounds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = "examples/gpt2_tiny.opt.hlo"
    assert cli.run(["bytes", path, "-i", "copy_gather_fusion"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [
        "<=",
        "8,192",
        "8,192",
        "?",
        "operand",
        "0",
        "p__wte__.1",
        "copy_gather_fusion",
    ] in lines


@pytest.mark.parametrize("notation", ["text", "json"])
def test_a_name_that_no_instruction_has_is_an_error(
    notation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, GEMM)
    assert cli.run(["bytes", path, "-i", "dd", "--format", notation]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no instruction named `dd`" in printed.err
    assert cli.run(["bytes", path, "-i", "d", "-i", "u*", "--format", notation]) == 1
    printed = capsys.readouterr()
    assert "no instruction has a name like `u*`" in printed.err
    assert printed.out != ""


def test_a_picture_has_all_instructions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bytes", write(tmp_path, GEMM), "-i", "d", "--format", "svg"]) == 2
    assert "--instruction" in capsys.readouterr().err
