"""Invalid modules: every question raises the error of what it reaches, found once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules import instruction_checks
from hlo.ops.op import OPS, Op, op
from hlo.shapes.shape import Shape
from indexing.codegen import loop_nest
from indexing.codegen.validation import validate_instruction
from indexing.dataflow import (
    all_to_parameters,
    device_maps,
    epilogue,
    grouped,
    grouped_through,
    input_to_output,
    output_to_input,
    soundness,
    to_parameters,
)
from indexing.execution import evaluate, run
from indexing.memory import read_counts
from indexing.tiling import collapse, gather_of
from tests.compiled import interpreted_only
from tests.hlo.fuzz import mutate, texts

# the body of the loop returns a wrong shape, in a computation that another one calls
NESTED = """
inner { p = f32[4] parameter(0)  unused = f32[9] negate(p)  ROOT n = f32[4] negate(p) }
less { p = (s32[], f32[4]) parameter(0)  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(5)  ROOT c = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[4]) parameter(0)  ROOT x = f32[4] get-tuple-element(p), index=1 }
outer { p = (s32[], f32[4]) parameter(0)
  ROOT w = (s32[], f32[4]) while(p), condition=less, body=body }
ENTRY e {
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  s = f32[4] fusion(x), kind=kLoop, calls=inner
  t = (s32[], f32[4]) tuple(z, s)
  c = (s32[], f32[4]) call(t), to_apply=outer
  g = f32[4] get-tuple-element(c), index=1
  ROOT r = f32[4] negate(g)
}"""


VALID = NESTED.replace("x = f32[4] get-tuple-element(p), index=1", "x = (s32[], f32[4]) copy(p)")
VALID = VALID.replace("constant(5)", "constant(0)")
EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.hlo"))
FLOATS = np.array([1, 2, 3, 4], np.float32)


def entry() -> hlo.Computation:
    return hlo.parse(NESTED).entry


# fmt: off
QUESTIONS: list[tuple[str, Callable[[hlo.Computation], object]]] = [
    ("output_to_input",    lambda e: output_to_input(e["c"])),
    ("input_to_output",    lambda e: input_to_output(e["c"])),
    ("to_parameters",      lambda e: to_parameters(e.root)),
    ("grouped",            lambda e: grouped(e.root)),
    ("grouped of a call",  lambda e: grouped(e["c"])),
    ("grouped_through",    lambda e: grouped_through(e["g"], [e["g"], e["c"]])),
    ("epilogue",           lambda e: epilogue(e["s"])),
    ("all_to_parameters",  lambda e: list(all_to_parameters(e))),
    ("device_maps",        lambda e: device_maps(e["c"])),
    ("read_counts",        lambda e: read_counts(e["c"])),
    ("collapse",           lambda e: collapse(e["c"])),
    ("loop_nest",          lambda e: loop_nest(e["c"])),
    ("loop_nest of entry", lambda e: loop_nest(e)),
    ("validated",          lambda e: validate_instruction(e["c"], 0, 100)),
    ("run",                lambda e: run(e, [FLOATS])),
    ("evaluate",           lambda e: evaluate(e, FLOATS)),
]
# fmt: on


@pytest.mark.parametrize("question", [ask for _, ask in QUESTIONS], ids=[n for n, _ in QUESTIONS])
def test_every_question_raises_the_error_of_a_computation_that_it_reaches(
    question: Callable[[hlo.Computation], object],
) -> None:
    with pytest.raises(hlo.HloError, match="`body` returns") as caught:
        question(entry())
    assert caught.value.code == "signature"


def test_a_gather_is_checked_before_it_is_converted() -> None:
    root = hlo.parse("""ENTRY e { p = f32[4,5] parameter(0)  i = s32[3] parameter(1)
      ROOT g = f32[3,5] gather(p, i), offset_dims={1}, collapsed_slice_dims={0},
        start_index_map={0}, index_vector_dim=1, slice_sizes={1} }""").entry.root
    with pytest.raises(hlo.HloError, match="slice_sizes"):
        gather_of(root)


def test_what_no_result_needs_may_be_invalid() -> None:
    """`unused` has a wrong shape; nothing that `s` returns depends on it."""
    start = entry()["s"]
    assert str(output_to_input(start).maps[0][0]) == "(d0) -> (d0), domain: d0 in [0, 3]"
    assert to_parameters(start).maps[0]
    assert not isinstance(loop_nest(start), indexing.Unknown)


def test_parameter_numbers_are_checked_where_parameters_are_the_result() -> None:
    text = "ENTRY e { p = f32[4] parameter(1)  ROOT n = f32[4] negate(p) }"
    assert output_to_input(hlo.parse(text).entry.root).maps[0]  # does not reach the parameters
    with pytest.raises(hlo.HloError, match="no parameter 0"):
        to_parameters(hlo.parse(text).entry.root)


def test_an_invalid_layout_of_an_operand_is_an_error() -> None:
    text = "ENTRY e { p = f32[4,8]{1,0:T(8,0)} parameter(0)  ROOT b = f32[32] bitcast(p) }"
    with pytest.raises(hlo.HloError, match="the layout of `p` is invalid"):
        output_to_input(hlo.parse(text).entry.root)


def test_the_same_error_has_no_traceback_of_earlier_questions() -> None:
    computation = entry()
    depths = []
    for _ in range(2):
        with pytest.raises(hlo.HloError) as caught:
            output_to_input(computation["c"])
        depths.append(len(caught.traceback))
    assert depths[0] == depths[1]


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of checks of each instruction, by name."""
    counts: Counter[str] = Counter()
    check = instruction_checks.check_instruction

    def count(instruction: hlo.Instruction) -> hlo.HloError | None:
        counts[instruction.name] += 1
        return check(instruction)

    monkeypatch.setattr(soundness, "check_instruction", count)
    return counts


@interpreted_only
def test_each_instruction_is_checked_once(checked: Counter[str]) -> None:
    """However many questions there are, about a valid and about an invalid module."""
    for text in (NESTED, VALID):
        checked.clear()
        computation = hlo.parse(text.replace(" = ", " = /* not XLA's text */ ")).entry
        for _, question in QUESTIONS:
            for _ in range(2):
                with suppress(hlo.HloError):
                    question(computation)
        names = {i.name for i in computation}
        assert names <= checked.keys()
        total = Counter(i.name for i in computation.module.instructions)
        assert all(checked[name] <= total[name] for name in names)


def test_deep_nests_of_calls_are_checked_without_recursion() -> None:
    depth = 3000
    lines = ["f0 { p = f32[2] parameter(0)  ROOT n = f32[3] negate(p) }"]
    lines += [
        f"f{k} {{ p = f32[2] parameter(0)  ROOT c = f32[3] call(p), to_apply=f{k - 1} }}"
        for k in range(1, depth)
    ]
    root = hlo.parse("\n".join(lines)).entry.root
    error = soundness.fault_of(root)
    assert error is not None
    assert error.message == "`n` is declared f32[3], but its inferred shape is f32[2]"


@interpreted_only
def test_shared_computations_are_checked_once(checked: Counter[str]) -> None:
    """Each of 40 computations calls the one before it twice: 2^40 paths, 40 checks."""
    lines = ["f0 { p = f32[2] parameter(0)  ROOT n0 = f32[2] negate(p) }"]
    lines += [
        f"f{k} {{ p = f32[2] parameter(0)  a{k} = f32[2] call(p), to_apply=f{k - 1} "
        f"ROOT n{k} = f32[2] call(a{k}), to_apply=f{k - 1} }}"
        for k in range(1, 40)
    ]
    assert soundness.fault_of(hlo.parse("\n".join(lines)).entry.root) is None
    assert checked["n0"] == checked["n20"] == 1


def faults(module: hlo.Module, step: int) -> list[str]:
    """The fault of each instruction in text order, found in that order or in reverse."""
    instructions = list(module.instructions)
    for instruction in instructions[::step]:
        soundness.fault_of(instruction)
    return [str(soundness.fault_of(instruction)) for instruction in instructions]


@pytest.mark.parametrize("step", [1, -1])
def test_instructions_of_one_text_have_their_own_faults(step: int) -> None:
    """Lazily parsed instructions share a form if the shapes of their operands are equal."""
    lines = [
        "p = f32[2] parameter(0)",
        "q = f32[3] parameter(1)",
        "bad = f32[2] negate(q)",
        "good = f32[2] negate(p), metadata={}",
        "two = f32[2] negate(p, p)",
        "again = f32[2] negate(bad)",
        "flat = f32[2,1]{1,0:T(8,0)} parameter(2)",
        "b = f32[2] bitcast(flat)",
        "copied = f32[2] bitcast(p)",
    ]
    text = "main {{ {} }} ENTRY e {{ x = f32[] parameter(0) }}".format("\n".join(lines))
    module = hlo.parse(text, lazy=True)
    _, _, bad, good, two, again, *_ = (each.form for each in module.computations["main"])
    assert bad is not good is again is not two
    expected = faults(hlo.parse(text), 1)
    wrong = [name for name, fault in zip("pqbgtafbcx", expected, strict=True) if fault != "None"]
    assert "".join(wrong) == "btfb"
    assert faults(module, step) == expected


@interpreted_only
@pytest.mark.parametrize("step", [1, -1])
def test_lazily_parsed_instructions_have_the_faults_of_parsed_ones(step: int) -> None:
    pieces = [text.replace("ENTRY ", "") for text in texts(EXAMPLES)[:40]]
    invalid = 0
    for seed in range(400):
        text = mutate(pieces[seed % len(pieces)], seed)
        with suppress(hlo.HloError):
            expected = faults(hlo.parse(text), 1)
            assert faults(hlo.parse(text, lazy=True), step) == expected, f"seed {seed}"
            invalid += any(fault != "None" for fault in expected)
    assert invalid > 30


def test_an_op_registered_later_is_that_of_lazily_parsed_instructions() -> None:
    lines = [f"{name} = f32[2] flip-later(p)" for name in ("first", "second", "third")]
    body = "\n".join(["p = f32[2] parameter(0)", *lines])
    module = hlo.parse(f"main {{ {body} }} ENTRY e {{ x = f32[] parameter(0) }}", lazy=True)
    _, *flips = module.computations["main"]
    assert (flips[0].op, soundness.fault_of(flips[0])) == (None, None)
    for number, instruction in enumerate(flips):

        @op("flip-later", samples=["f32[2] flip-later(f32[2] p)"])
        class Flip(Op):
            """Reverses the elements."""

            min_operands = max_operands = 1

            def infer_shape(self, operand: Shape) -> Shape:
                return operand

        try:
            assert type(instruction.op) is Flip, number
        finally:
            del OPS["flip-later"]
