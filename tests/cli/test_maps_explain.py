"""``maps --explain`` lists the laws applied; ``maps --verify`` counts the proofs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from indexing import cli, parse_map
from simplifier.laws import TABLE

# Rows of 6 are reshaped to rows of 4; the maps of padded windows have a constraint.
MODULE = """\
plus { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
fused {
  p = f32[4,6] parameter(0)
  flat = f32[24] reshape(p)
  ROOT rows = f32[6,4] reshape(flat)
}
ENTRY main {
  p = f32[4,6] parameter(0)
  zero = f32[] constant(0)
  f = f32[6,4] fusion(p), kind=kLoop, calls=fused
  w = f32[6,4] reduce-window(f, zero), window={size=3x1 pad=1_1x0_0}, to_apply=plus
  ROOT c = f32[6,4] copy(w)
}
"""
EXPRESSION_LAWS = tuple(f"{law}: " for law in TABLE if law.sign == "=")
VERIFIED = re.compile(r"verified all \d+ maps: (\d+) simplified, (\d+) unchanged\n")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "rows.hlo"
    path.write_text(MODULE)
    return str(path)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.run(["maps", *arguments])
    return status, *capsys.readouterr()


REQUESTS = [
    ["--instruction", "f"],
    ["--all"],
    ["--all", "--to", "parameters"],
    ["--all", "--direction", "both"],
]


@pytest.mark.parametrize("request_", REQUESTS, ids=" ".join)
def test_explained_maps_are_the_same_with_steps_below(
    request_: list[str], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, plain, _ = ran(capsys, file, *request_)
    status, out, err = ran(capsys, file, *request_, "--explain")
    lines = out.splitlines(keepends=True)
    steps = [line for line in lines if line.startswith("      ")]
    assert (status, err) == (0, "")
    assert "".join(line for line in lines if line not in steps) == plain
    assert steps
    maps = [n for n, line in enumerate(lines) if " -> " in line and line.startswith("  operand")]
    assert all(any(step in lines[n + 1 : n + 4] for step in steps) for n in maps)


def test_the_laws_of_a_memoised_composition_are_listed(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(capsys, file, "--instruction", "f")  # everything is memoised now
    _, out, _ = ran(capsys, file, "--instruction", "f", "--explain")
    lines = [line.strip() for line in out.splitlines() if line.startswith("      ")]
    laws = [line for line in lines if line.startswith(EXPRESSION_LAWS)]
    assert laws
    for law in laws:  # both sides are equal at every point
        before, after = law.split(": ", 1)[1].rsplit(" = ", 1)
        names = sorted(set(re.findall(r"[ds]\d+", law)))
        space = f"({', '.join(names)}) -> ({before}, {after}), domain: "
        box = ", ".join(f"{name} in [0, {7 - int(name[1:])}]" for name in names)
        both = parse_map(space + box)
        assert str(both.results[0]) == str(both.results[1])


def test_json_lists_the_steps_under_their_own_key(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = ran(capsys, file, "--all", "--explain", "--format", "json")
    rows = [json.loads(line) for line in out.splitlines()]
    steps = [row["steps"] for row in rows if row["instruction"] == "f"]
    assert steps[0]
    assert all(isinstance(step, str) for step in steps[0])
    _, out, _ = ran(capsys, file, "--all", "--format", "json")
    for row in rows:
        row.pop("steps", None)
    assert [json.loads(line) for line in out.splitlines()] == rows


# Operand 0 of the call is the base of an update.
MAY = """\
ENTRY main {
  p = f32[5,3] parameter(0)
  u = f32[2,2] parameter(1)
  i = s32[] parameter(2)
  d = f32[5,3] dynamic-update-slice(p, u, i, i)
  ROOT s = f32[5,3] custom-call(d), custom_call_target="unknown"
}
"""
ANY_CODE = "no rule is registered for the target 'unknown'"
REPLACED = "replaced elements are included; `exact` leaves them out, as do given starts"


@pytest.fixture
def may(tmp_path: Path) -> str:
    path = tmp_path / "may.hlo"
    path.write_text(MAY)
    return str(path)


def test_the_reasons_of_a_may_map_are_below_it(
    may: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = ran(capsys, may, "--instruction", "s", "--to", "parameters", "--explain")
    base, _, update = out.partition("parameter 1")
    assert [line for line in base.splitlines() if "because" in line] == [
        f"      may because custom-call `s`: {ANY_CODE}",
        f"      may because dynamic-update-slice `d`: {REPLACED}",
    ]
    assert f"may because custom-call `s`: {ANY_CODE}" in update
    assert REPLACED not in update
    _, plain, _ = ran(capsys, may, "--instruction", "s", "--to", "parameters")
    assert "because" not in plain
    _, starts, _ = ran(capsys, may, "--instruction", "d", "--exact", "--explain")
    assert "because" not in starts


def test_a_terminal_shows_the_reasons_of_a_may_map(
    may: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = ran(capsys, may, "--instruction", "s", "--explain", "--color", "never")
    assert f"may because custom-call `s`: {ANY_CODE}" in out


@pytest.mark.parametrize("point", [[], ["--at", "..."]], ids=["map", "region"])
def test_json_has_the_reasons_of_may_maps_only(
    point: list[str], may: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = ran(capsys, may, "--instruction", "d", "--format", "json", *point)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row.get("reasons") for row in rows] == [
        [
            {
                "reason": REPLACED,
                "opcode": "dynamic-update-slice",
                "computation": "main",
                "instruction": "d",
            }
        ],
        None,
        None,
        None,
    ]


WRONG = [
    (["--explain", "--no-simplify"], "--explain cannot be used with --no-simplify"),
    (["--explain", "--jobs", "2"], "--explain cannot be used with --jobs"),
    (["--explain", "--format", "isl"], "--explain cannot be used with --format isl"),
]


@pytest.mark.parametrize("flags, message", WRONG)
def test_explain_rejects_options_that_it_excludes(
    flags: list[str], message: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = ran(capsys, file, *flags)
    assert (status, out) == (2, "")
    assert message in err


def test_verify_reports_the_number_of_proofs(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, plain, no_note = ran(capsys, file, "--all", "--to", "parameters")
    status, out, err = ran(capsys, file, "--all", "--to", "parameters", "--verify")
    assert (status, out, no_note) == (0, plain, "")
    counts = VERIFIED.fullmatch(err)
    assert counts
    proved, unchanged = map(int, counts.groups())
    assert proved > 0
    assert unchanged > 0
    assert (
        ran(capsys, file, "--all", "--to", "parameters", "--verify")[2] == err
    )  # counts only its run


def test_proofs_of_worker_processes_are_counted(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one_process = ran(capsys, file, "--all", "--verify")
    assert ran(capsys, file, "--all", "--verify", "--jobs", "2") == one_process
    assert ran(capsys, file, "--all", "--verify", "--explain")[2] == one_process[2]
