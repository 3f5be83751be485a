"""One question needs one part of a module, and its answer is that of the whole module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hlo
from hlo.formats import parser_state
from hlo.modules.instruction_checks import REGISTERED
from hlo.modules.module import Instruction
from hlo.ops.op import Op
from hlo.shapes.shape import leaves
from indexing import cli, output_to_input
from indexing.dataflow import soundness
from tests.compiled import interpreted_only
from tests.growth.work import calls_of

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
LARGE = EXAMPLES / "gpt2_tiny.opt.hlo"
MODULES = ["attention.opt.hlo", "embedding_gather.opt.hlo", "gpt2_tiny.opt.hlo"]

BROKEN = """
used { p = f32[3] parameter(0)  ROOT n = f32[4] negate(p) }
unused { p = f32[5] parameter(0)  ROOT n = f32[6] negate(p) }
ENTRY main {
  p = f32[3] parameter(0)
  q = f32[5] parameter(1)
  good = f32[3] abs(p)
  bad = f32[4] fusion(p), kind=kLoop, calls=used
  worse = f32[6] fusion(q), kind=kLoop, calls=unused
  ROOT r = f32[3] negate(good)
}
"""


class Bound:
    """The instructions whose op is bound."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.instructions: set[Instruction] = set()

        def count(instruction: Instruction) -> Op | None:
            self.instructions.add(instruction)
            return REGISTERED.bind(instruction)

        monkeypatch.setattr(parser_state, "REGISTERED", REGISTERED._replace(bind=count))


def ask_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.run(["maps", *arguments])
    return status, *capsys.readouterr()


def answers(module: hlo.Module, computation: str) -> Iterator[tuple[str, int, str]]:
    """The maps of every output of the instructions of a computation."""
    for instruction in module.computations[computation]:
        for number in range(len(leaves(instruction.shape))):
            yield instruction.name, number, str(output_to_input(instruction, number))


@pytest.mark.parametrize("name", MODULES)
def test_answers_are_those_of_the_whole_module(name: str) -> None:
    text = (EXAMPLES / name).read_text()
    whole = hlo.parse(text)
    assert not any(map(soundness.fault_of, whole.instructions))  # everything is bound
    for computation in whole.computations:
        alone = hlo.parse(text, lazy=True)
        assert list(answers(alone, computation)) == list(answers(whole, computation))


def test_a_question_makes_and_binds_only_what_it_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = hlo.load(LARGE)
    total = sum(map(len, whole.computations.values()))
    fusion = next(i for i in whole.entry if i.opcode == "fusion")
    inside = len(fusion.called_computations[0])
    bound, made = Bound(monkeypatch), calls_of(monkeypatch, Instruction, "__init__")
    status, out, _ = ask_command(capsys, str(LARGE), "-i", fusion.name)
    assert (status, bool(out)) == (0, True)
    assert len(made) <= len(whole.entry) + inside < total / 3
    assert len(bound.instructions) <= 1 + len(fusion.operands) + inside


@interpreted_only
@pytest.mark.parametrize(
    "options",
    [
        ["--opcode", "reduce"],
        ["-i", "dot*"],
        ["-i", "nowhere"],
        ["--reads", "Arg_0.1"],
    ],
    ids=" ".join,
)
def test_patterns_make_only_the_computations_that_they_match(
    options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = calls_of(monkeypatch, Instruction, "__init__")
    ask_command(capsys, str(LARGE), *options)
    few = len(made)
    ask_command(capsys, str(LARGE), "--all", "--format", "json")
    assert 0 < few < (len(made) - few) * 2 / 3


def test_the_command_prints_the_rows_of_the_whole_module(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(EXAMPLES / "attention.opt.hlo")
    _, everything, _ = ask_command(capsys, file, "--all", "--format", "json")
    module = hlo.load(file)
    rows = []
    for instruction in module.instructions:
        name = f"{instruction.computation.name}/{instruction.name}"
        rows.append(ask_command(capsys, file, "-i", name, "--format", "json")[1])
    assert "".join(rows) == everything


def test_an_error_that_no_answer_needs_is_reported_by_the_whole_module(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "broken.hlo"
    file.write_text(BROKEN)
    status, out, err = ask_command(capsys, str(file), "-i", "good")
    assert (status, err) == (0, "")
    assert "good" in out
    _, _, everything = ask_command(capsys, str(file), "--all")
    *_, bad = ask_command(capsys, str(file), "-i", "bad")
    *_, worse = ask_command(capsys, str(file), "-i", "worse")
    assert bad + worse == everything
    assert f" --> {file}:2:38\n" in bad
    assert "^^^" in bad
    assert ask_command(capsys, str(file))[::2] == (1, everything)
    assert ask_command(capsys, str(file), "--opcode", "fusion")[::2] == (1, everything)
    assert ask_command(capsys, str(file), "-i", "goodd")[2].endswith("did you mean `good`?\n")


def test_a_syntax_error_is_reported_wherever_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "broken.hlo"
    file.write_text(BROKEN.replace("ROOT n = f32[6] negate(p)", "ROOT n = f32[6] negate(x)"))
    status, out, err = ask_command(capsys, str(file), "-i", "good")
    assert (status, out) == (1, "")
    assert "operand `x` is not defined" in err
