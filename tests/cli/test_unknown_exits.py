"""Every command on a loop whose exit depends on an op without maps: it answers, with the reason."""

from pathlib import Path

import pytest

from indexing.cli.group import COMMANDS
from tests.cli.running import runner
from tests.report_page.reading import scripts

MODULE = """
body {
  p = (s32[], f32[8], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  z = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[8] negate(x)
  ROOT t = (s32[], f32[8], f32[4]) tuple(n, y, z)
}

cond {
  p = (s32[], f32[8], f32[4]) parameter(0)
  z = f32[4] get-tuple-element(p), index=2
  ROOT c = pred[] EXIT
}

ENTRY main {
  i = s32[] constant(0)
  x = f32[8] parameter(0)
  z = f32[4] parameter(1)
  t = (s32[], f32[8], f32[4]) tuple(i, x, z)
  w = (s32[], f32[8], f32[4]) while(t), condition=cond, body=body
  ROOT r = f32[8] get-tuple-element(w), index=1
}
"""
EXITS = {
    "an unregistered opcode": "frobnicate(z)",
    "an undeclared target": 'custom-call(z), custom_call_target="mine"',
}
DUMP = "module_0001.jit_f.{}.simplification.after_{}.before_dce.txt"

NO_MAPS = "frobnicate `c`: no maps are defined for this opcode"
UNKNOWN = f"unknown: {NO_MAPS}"
IN_JSON = f'"unknown": "{NO_MAPS}"'
BY_WHILE = f"while: {NO_MAPS}"
IN_C = "   ROOT c = pred[] "
READS = "operand 0 t {2} f32[4]: may: (d0)[s0] -> (s0), domain: d0 in [0, 7], s0 in [0, 3]"
MOVES = "operand 0 t {2} f32[4]: may: (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 7]"
BECAUSE = "may because custom-call `c`: no rule is registered for the target 'mine'"
REASON = '"opcode": "custom-call", "computation": "cond", "instruction": "c"}'
TILE = "parameter 1 z f32[4]: may, offsets [0], sizes [4]"
MAY = "the loop's exit depends on data: `c` (custom-call) is not an affine comparison of integers"
SKIPPED = "skipped: m.hlo: cond: c: "

# fmt: off
ROWS = [
    # command                                         status, and a part of the answer for each exit
    ("ls m.hlo",                                      0, "frobnicate", 0, "custom-call"),
    ("check m.hlo",                                   0, "`c` is not checked", 0, "ok, 17"),
    ("maps m.hlo -i w",                               0, UNKNOWN, 0, READS),
    ("maps m.hlo -i w --direction input-to-output",   0, UNKNOWN, 0, MOVES),
    ("maps m.hlo -i w --direction both",              0, UNKNOWN, 0, MOVES),
    ("maps m.hlo -i w --exact",                       0, UNKNOWN, 0, READS),
    ("maps m.hlo -i w --explain",                     0, UNKNOWN, 0, BECAUSE),
    ("maps m.hlo -i w --explain --direction both",    0, UNKNOWN, 0, BECAUSE),
    ("maps m.hlo --to parameters",                    0, UNKNOWN, 0, "parameter 1 z f32[4]: may: "),
    ("maps m.hlo --to parameters --explain",          0, UNKNOWN, 0, BECAUSE),
    ("maps m.hlo --to parameters --verify",           0, UNKNOWN, 0, "parameter 1 z f32[4]: may: "),
    ("maps m.hlo --all",                              0, UNKNOWN, 0, READS),
    ("maps m.hlo --all --direction input-to-output",  0, UNKNOWN, 0, MOVES),
    ("maps m.hlo --all --direction both --verify",    0, UNKNOWN, 0, MOVES),
    ("maps m.hlo --all --format json",                0, IN_JSON, 0, REASON),
    ("maps m.hlo --all --direction input-to-output --format json", 0, IN_JSON, 0, REASON),
    ("maps m.hlo --to parameters --format json",      0, IN_JSON, 0, REASON),
    ("tile m.hlo -i w",                               0, UNKNOWN, 0, "t {2} f32[4]: may, offsets"),
    ("tile m.hlo -i w --direction input-to-output",   0, UNKNOWN, 0, "w {1} f32[8]: may, offsets"),
    ("tile m.hlo --to parameters",                    0, UNKNOWN, 0, TILE),
    ("tile m.hlo --to parameters --sizes 4",          0, UNKNOWN, 0, "1 z f32[4]: bounding"),
    ("tile m.hlo --to parameters --format json",      0, IN_JSON, 0, '"grade": "may"'),
    ("summary m.hlo",                                 0, BY_WHILE, 0, "accesses: 3"),
    ("summary m.hlo --format json",                   0, NO_MAPS, 0, MAY),
    ("bytes m.hlo",                                   0, NO_MAPS, 0, "custom-call `c`"),
    ("bytes m.hlo -i c",                              0, NO_MAPS, 0, "custom-call `c`"),
    ("memory m.hlo",                                  0, "memory: 56", 0, "memory: 56"),
    ("check m.hlo --in-place",                        0, "`c` is not checked", 0, "0 not safe"),
    ("access m.hlo -i c",                             0, UNKNOWN, 0, "<=16"),
    ("validate m.hlo",                                0, SKIPPED, 0, SKIPPED),
    ("diff m.hlo m.hlo",                              0, "proved", 0, "proved"),
    ("diff m.hlo other.hlo",                          3, NO_MAPS, 3, "undecided"),
    ("passes dumps",                                  3, NO_MAPS, 3, "undecided"),
    ("run m.hlo",                                     1, IN_C, 1, IN_C),
    ("shard m.hlo --mesh a=2",                        1, "`c` cannot be", 0, "cond/c"),
]
# fmt: on


def test_no_command_is_missing() -> None:
    read_no_modules = {"simplify", "compose", "ops", "explain"}
    others = {"report", "dump", "pallas", "kernels", "source", "triage"}  # no access is asked for
    assert {line.split()[0] for line, *_ in ROWS} == COMMANDS.keys() - read_no_modules - others


def write_files(exit_op: str) -> None:
    """Write the module, and one that differs from it in the loop's body, also as dumps."""
    module = MODULE.replace("EXIT", EXITS[exit_op])
    other = module.replace("negate(x)", "abs(x)")
    Path("dumps").mkdir()
    Path("m.hlo").write_text(module)
    Path("other.hlo").write_text(other)
    Path("dumps", DUMP.format("0001", "dce")).write_text(module)
    Path("dumps", DUMP.format("0002", "cse")).write_text(other)


@pytest.mark.parametrize("exit_op", EXITS)
def test_a_command_answers_with_the_reason(
    exit_op: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(exit_op)
    run = runner(capsys)
    faults = []
    for line, of_opcode, opcode_part, of_target, target_part in ROWS:
        is_opcode = exit_op == "an unregistered opcode"
        status, part = (of_opcode, opcode_part) if is_opcode else (of_target, target_part)
        actual, out, err = run(line)
        if actual != status or part not in out + err or "neither true nor false" in out + err:
            faults.append(f"{line}: status {actual}, expected {status}; no {part!r} in\n{out}{err}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "exit_op, reason", [("an unregistered opcode", NO_MAPS), ("an undeclared target", BECAUSE)]
)
def test_a_report_has_the_reason(
    exit_op: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "m.hlo", tmp_path / "m.html"
    file.write_text(MODULE.replace("EXIT", EXITS[exit_op]))
    status, _, err = runner(capsys)(f"report {file} -o {page}")
    assert status == 0, err
    assert reason in str(scripts(page.read_text())).replace("\\'", "'")


def test_other_parameters_have_exact_maps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for exit_op in EXITS.values():
        file = tmp_path / "m.hlo"
        file.write_text(MODULE.replace("EXIT", exit_op))
        _, out, _ = runner(capsys)(f"maps {file} --to parameters")
        assert "parameter 0 x f32[8]: (d0) -> (d0)" in out
