"""Answers printed from the text of another: the bytes are those of answers printed one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexing.cli import all_answers
from indexing.views.repeated_answers import RepeatedAnswers
from tests.cli.running import Run, runner

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(str(path) for path in (ROOT / "examples").glob("*.hlo"))

NAMES = """HloModule names
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
half { p = f32[8]{0} parameter(0)  ROOT n = f32[8]{0} negate(p) }
ENTRY e {
  p.1 = f32[8]{0} parameter(0)
  p.2 = f32[8]{0} parameter(1)
  i = s32[] parameter(2)
  a = f32[8]{0} add(p.1, p.2)
  b = f32[8]{0} add(p.1, p.1)
  c = f32[8]{0} add(a, p.2)
  d = f32[8]{0} add(p.2, a)
  x.1 = f32[8]{0} add(a, b)
  x.2 = f32[8]{0} add(c, d)
  c.1 = f32[] constant(1)
  c.2 = f32[] constant(1)
  m = s32[8]{0} iota(), iota_dimension=0
  q = pred[8]{0} compare(m, m), direction=LT
  s.1 = f32[8]{0} select(q, x.1, x.2)
  s.2 = f32[8]{0} select(q, x.2, x.1)
  r.1 = f32[] reduce(s.1, c.1), dimensions={0}, to_apply=add
  r.2 = f32[] reduce(s.2, c.2), dimensions={0}, to_apply=add
  w.1 = f32[4]{0} dynamic-slice(s.1, i), dynamic_slice_sizes={4}
  w.2 = f32[4]{0} dynamic-slice(s.2, i), dynamic_slice_sizes={4}
  k.1 = f32[8]{0} call(s.1), to_apply=half
  k.2 = f32[8]{0} call(s.2), to_apply=half
  u.1 = f32[8]{0} custom-call(s.1), custom_call_target="unheard"
  u.2 = f32[8]{0} custom-call(s.2), custom_call_target="unheard"
  t.1 = (f32[8]{0}, f32[8]{0}) tuple(k.1, k.2)
  t.2 = (f32[8]{0}, f32[8]{0}) tuple(u.1, u.2)
  g.1 = f32[8]{0} get-tuple-element(t.1), index=0
  g.2 = f32[8]{0} get-tuple-element(t.2), index=0
  ROOT z = f32[8]{0} add(g.1, g.2)
}
"""

INVALID = """HloModule invalid
ENTRY e {
  p = f32[8]{0} parameter(0)
  a = f32[8]{0} add(p, p)
  b = f32[8]{0} add(a, p)
  x = f32[7]{0} add(a, b)
  y = f32[7]{0} add(b, a)
  ROOT z = f32[8]{0} add(b, b)
}
"""

LINES = [
    "maps --all {}",
    "maps --all --format json {}",
    "maps --all --exact {}",
    "maps --all --no-simplify --format json {}",
    "maps --opcode 'a*' --stats {}",
    "maps --opcode '*' --source {}",
    "maps --all --direction both {}",
    "maps --all --verify {}",
    "maps --all --explain {}",
    "maps --all --limit 3 {}",
    "maps --all --format mlir {}",
]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


def answer_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_answers, "repeats", lambda *_: False)


@pytest.mark.parametrize("line", LINES)
def test_bytes_of_answers_one_by_one(
    line: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = []
    for name, text in [("names%s@2@{0}.hlo", NAMES), ("ünvalid '\".hlo", INVALID)]:
        files.append(tmp_path / name)
        files[-1].write_text(text)
    for path in [*files, *EXAMPLES[:6]]:
        quoted = "'" + str(path).replace("'", "'\\''") + "'"
        command = line.format(quoted)
        printed = run(command)
        with monkeypatch.context() as patch:
            answer_one_by_one(patch)
            assert run(command) == printed


def test_most_answers_are_not_made_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hits: list[bool] = []
    find = RepeatedAnswers.find

    def count_call(self: RepeatedAnswers, instruction: object) -> object:
        answer = find(self, instruction)  # type: ignore[arg-type]
        hits.append(answer is not None)
        return answer

    monkeypatch.setattr(RepeatedAnswers, "find", count_call)
    run(f"maps --all {ROOT / 'examples' / 'gpt2_tiny.opt.hlo'}")
    assert sum(hits) > len(hits) / 2


def test_computations_of_inferred_shapes(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "inferred.hlo"
    path.write_text(
        "HloModule m\nENTRY e {\n  a = f32[8] parameter(0)\n  b = f32[9] parameter(1)\n"
        "  n = negate(a)\n  k = negate(b)\n  u = negate(n)\n  v = negate(k)\n"
        "  ROOT t = tuple(u, v)\n}\n"
    )
    printed = run(f"maps --all {path}")
    answer_one_by_one(monkeypatch)
    assert printed == run(f"maps --all {path}")
    assert "operand 0 k f32[9]" in printed[1]
