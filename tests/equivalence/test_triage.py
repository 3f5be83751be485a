"""Cases sorted by what differs and by its cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlo
from indexing.equivalence.reduction import smallest_program
from indexing.equivalence.triage import TriageClass, of_pair, triage
from indexing.execution import xla
from tests.cli.running import Run, runner, validator

FOUND = Path(__file__).parents[2] / "examples" / "found"
TEXT = "ENTRY e {{ p = f32[5] parameter(0)  a = f32[5] exponential(p)  {} }}"
ROWS: list[tuple[str, str, TriageClass, str]] = [
    ("ROOT r = f32[5] negate(a)", "ROOT r = f32[5] sine(a)", "wrong element", "negate became sine"),
    (
        "s = f32[3] slice(a), slice={[0:3]}  ROOT n = f32[3] negate(s)",
        "s = f32[3] slice(a), slice={[1:4]}  ROOT n = f32[3] negate(s)",
        *("wrong element", "another slice"),
    ),
    (
        "ROOT r = f32[5] cosine(a)",
        "n = bf16[5] convert(a)  w = f32[5] convert(n)  ROOT r = f32[5] cosine(w)",
        *("rounding", "cosine became convert"),
    ),
    (
        "b = f32[5] add(a, p)  ROOT r = f32[5] add(b, p)",
        "b = f32[5] add(p, p)  ROOT r = f32[5] add(a, b)",
        *("law of real numbers", "(x + y) + z = x + (y + z)"),
    ),
    ("ROOT r = f32[5] add(a, p)", "ROOT r = f32[5] add(p, a)", "no difference", ""),
    (
        "ROOT r = f32[5] log(a)",
        "ROOT r = f32[5] copy(p)",
        *("NaN, infinity or undefined value", "log(exp(x)) = x"),
    ),
]


@pytest.mark.parametrize("before, after, kind, cause", ROWS)
def test_pairs_have_their_class_and_cause(
    before: str, after: str, kind: TriageClass, cause: str
) -> None:
    case = of_pair("x", hlo.parse(TEXT.format(before)), hlo.parse(TEXT.format(after)))
    assert case.kind == kind, case
    assert cause.split(" became ")[0] in case.cause
    assert bool(case.smallest) == (kind in ("wrong element", "rounding"))
    assert case.count <= 6  # of both modules


def test_a_folder_is_grouped(tmp_path: Path) -> None:
    wrong = TEXT.format("ROOT r = f32[5] negate(a)"), TEXT.format("ROOT r = f32[5] sine(a)")
    for name in ("x", "y"):
        (tmp_path / f"{name}.pre.hlo").write_text(wrong[0])
        (tmp_path / f"{name}.opt.hlo").write_text(wrong[1])
    (tmp_path / "both.hlo").write_text("\n// -----\n".join([wrong[0], wrong[0]]))
    groups = triage(tmp_path)
    assert [(group.kind, len(group.cases)) for group in groups] == [
        ("wrong element", 2),
        ("no difference", 1),
    ]
    parts = hlo.parse_all(groups[0].cases[0].smallest)
    assert len(parts) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="has no modules"):
        triage(tmp_path / "empty")


def test_dumps_of_passes_are_blamed_on_the_pass(tmp_path: Path) -> None:
    texts = [TEXT.format(f"ROOT r = f32[5] {opcode}(a)") for opcode in ("negate", "negate", "sine")]
    for number, text in enumerate(texts):
        name = f"module_0001.m.{number:04}.simplification.after_pass{number}.before_dce.txt"
        (tmp_path / name).write_text(text)
    (group,) = triage(tmp_path)
    assert (group.kind, group.cause) == ("wrong element", "pass `pass2`")


def test_the_smallest_program_keeps_the_fault() -> None:
    module = hlo.parse(
        TEXT.format("b = f32[5] sine(a)  c = f32[5] abs(b)  ROOT d = f32[5] sine(c)")
    )
    part = smallest_program(module, lambda m: any(i.opcode == "abs" for i in m.entry), 40)
    assert [i.opcode for i in part.entry] == ["parameter", "abs"]
    assert smallest_program(module, lambda m: False, 40) is module


@pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")
@pytest.mark.parametrize("name, place", [("reduce_of_one", "pass `algsimp`")])
def test_a_fault_of_xla_is_found_and_reduced(tmp_path: Path, name: str, place: str) -> None:
    (tmp_path / f"{name}.hlo").write_text((FOUND / f"{name}.hlo").read_text())
    (group,) = triage(tmp_path)
    assert (group.kind, group.cause) == ("wrong element", place)
    assert 0 < group.cases[0].count <= 10


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("cases").mkdir()
    Path("cases/a.pre.hlo").write_text(TEXT.format("ROOT r = f32[5] negate(a)"))
    Path("cases/a.opt.hlo").write_text(TEXT.format("ROOT r = f32[5] sine(a)"))
    return runner(capsys)


def test_the_command_prints_groups_and_saves_the_smallest(command: Run) -> None:
    status, output, _ = command("triage cases --save smallest")
    assert status == 1
    assert output.splitlines()[1].split()[:2] == ["wrong", "element"]
    assert len(hlo.load_all("smallest/a.pre.hlo")) == 2


def test_the_json_of_cases_is_described_by_its_schema(command: Run) -> None:

    status, output, _ = command("triage cases --format json")
    assert status == 1
    record = json.loads(output)
    validator("triage").validate(record)
    assert record["class"] == "wrong element"
