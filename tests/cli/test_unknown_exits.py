"""Every command on a loop whose exit depends on an op without maps: no command fails."""

from pathlib import Path

import pytest

from tests.cli.running import runner

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
    "an undeclared target": 'custom-call(z), custom_call_target="unknown_target"',
}
COMMANDS = [
    "maps FILE --all",
    "maps FILE --all --direction input-to-output",
    "maps FILE --all --direction both",
    "maps FILE --all --exact",
    "maps FILE --to parameters",
    "maps FILE --to parameters --all --format json",
    "tile FILE",
    "tile FILE -i w",
    "tile FILE --to parameters",
    "summary FILE",
    "report FILE",
    "bytes FILE",
    "access FILE -i w",
    "run FILE",
    "validate FILE",
    "check FILE",
    "diff FILE FILE",
    "shard FILE --mesh a=2",
]


@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize("exit_op", EXITS)
def test_no_command_fails(
    line: str, exit_op: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(MODULE.replace("EXIT", EXITS[exit_op]))
    status, _, err = runner(capsys)(line.replace("FILE", str(file)))
    assert status in (0, 1), err
    assert "neither true nor false" not in err


def test_the_reason_names_the_op(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.hlo"
    file.write_text(MODULE.replace("EXIT", EXITS["an unregistered opcode"]))
    status, out, err = runner(capsys)(f"maps {file} --to parameters")
    assert status == 0, err
    assert "operand 1 z f32[4]: unknown: frobnicate `c`: no maps are defined" in out
    assert "operand 0 x f32[8]: (d0) -> (d0)" in out
