"""Results of shape ``()`` have no outputs: queries return no maps, loop nests are unknown."""

from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing import Unknown, cli
from indexing.codegen.running import nests_of
from indexing.codegen.validation import is_checked, validate_instruction
from indexing.execution import random_inputs, run

NOTHING = "nothing { p = f32[2] parameter(0)  ROOT u = () tuple() }"
EMPTY = "empty { p = () parameter(0)  ROOT u = () tuple() }"
BOTH = "both { p = () parameter(0)  q = f32[2] parameter(1)  ROOT t = ((), f32[2]) tuple(p, q) }"

# fmt: off
PROGRAMS = {
    "tuple":             "ENTRY e { ROOT u = () tuple() }",
    "parameter":         "ENTRY e { ROOT u = () parameter(0) }",
    "constant":          "ENTRY e { ROOT u = () constant(()) }",
    "custom-call":       'ENTRY e { p = f32[2] parameter(0)  ROOT u = () custom-call(p), '
                         'custom_call_target="xla_ffi_python_cpu_callback" }',
    "nested":            "ENTRY e { p = f32[2] parameter(0)  u = () tuple() "
                         "ROOT t = (f32[2], ()) tuple(p, u) }",
    "get-tuple-element": "ENTRY e { p = ((), (f32[2], ()), token[]) parameter(0) "
                         "ROOT u = () get-tuple-element(p), index=0 }",
    "opt-barrier":       "ENTRY e { p = () parameter(0)  ROOT u = () opt-barrier(p) }",
    "while":             "c { p = (s32[], ()) parameter(0)  ROOT f = pred[] constant(false) } "
                         "b { ROOT p = (s32[], ()) parameter(0) } "
                         "ENTRY e { p = (s32[], ()) parameter(0) "
                         "w = (s32[], ()) while(p), condition=c, body=b "
                         "ROOT u = () get-tuple-element(w), index=1 }",
    "while of nothing":  "c { p = () parameter(0)  ROOT f = pred[] constant(false) } "
                         "b { ROOT p = () parameter(0) } "
                         "ENTRY e { p = () parameter(0) "
                         "ROOT u = () while(p), condition=c, body=b }",
    "conditional":       NOTHING + EMPTY +
                         "ENTRY e { i = pred[] parameter(0)  p = f32[2] parameter(1) "
                         "n = () tuple() ROOT u = () conditional(i, p, n), "
                         "true_computation=nothing, false_computation=empty }",
    "call":              NOTHING + "ENTRY e { p = f32[2] parameter(0) "
                         "ROOT u = () call(p), to_apply=nothing }",
    "fusion":            BOTH + "ENTRY e { p = () parameter(0)  q = f32[2] parameter(1) "
                         "ROOT f = ((), f32[2]) fusion(p, q), kind=kLoop, calls=both }",
    "async":             NOTHING + "ENTRY e { p = f32[2] parameter(0) "
                         "s = ((f32[2]), (), u32[]) async-start(p), calls=nothing "
                         "ROOT u = () async-done(s) }",
    "infeed":            "ENTRY e { t = token[] after-all()  ROOT i = ((), token[]) infeed(t) }",
    "add-dependency":    "ENTRY e { t = token[] after-all()  p = () parameter(0) "
                         "ROOT u = () add-dependency(p, t) }",
}
# fmt: on


def everything(instruction: Instruction) -> list[object]:
    """Return the answers to all queries about output 0 of an instruction."""
    around = [instruction, *instruction.operands]
    answers: list[object] = [
        indexing.output_to_input(instruction),
        indexing.output_to_input(instruction, exact=True),
        indexing.to_parameters(instruction),
        indexing.device_maps(instruction),
        indexing.device_maps_to_parameters(instruction),
        indexing.grouped(instruction),
        indexing.grouped_through(instruction, around),
        indexing.epilogue(instruction),
        indexing.read_counts(instruction),
        indexing.collapse(instruction),
        indexing.gather_of(instruction),
        indexing.loop_nest(instruction),
    ]
    for number in range(len(instruction.operands)):
        answers.append(indexing.input_to_output(instruction, number))
        answers.append(indexing.device_input_to_output(instruction, number))
    if is_checked(instruction):
        answers.append(validate_instruction(instruction, seed=0, max_elements=100))
    return answers


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_every_query_answers_about_results_without_outputs(text: str) -> None:
    module = hlo.parse(text)
    assert hlo.verify(module) == []
    for computation in module.computations.values():
        list(indexing.all_to_parameters(computation))
        for instruction in computation:
            everything(instruction)
            if not leaves(instruction.shape):
                answer = indexing.output_to_input(instruction)
                assert answer.maps == ((),) * len(instruction.operands)
                assert answer.unknown == (None,) * len(instruction.operands)
                assert isinstance(indexing.loop_nest(instruction), Unknown)


def test_a_missing_output_is_an_error_that_gives_the_number_of_outputs() -> None:
    empty = hlo.parse(PROGRAMS["tuple"]).entry.root
    for query in (indexing.output_to_input, indexing.to_parameters, indexing.loop_nest):
        with pytest.raises(IndexError, match=r"`u` has no output 1 \(number of outputs: 0\)"):
            query(empty, 1)


def test_modules_with_empty_tuples_run_as_kernels_and_as_nests() -> None:
    module = hlo.parse(PROGRAMS["nested"])
    inputs = random_inputs(module.entry, 0)
    for results in (
        run(module, inputs),
        nests_of(module).run(inputs),
        nests_of(module, (2,)).run(inputs),
    ):
        assert len(results) == 1
        assert np.array_equal(results[0], inputs[0])
    assert run(hlo.parse(PROGRAMS["while of nothing"]), []) == ()


TOKEN_FIRST = """
f {
  a = f32[3] parameter(0)
  b = f32[5] parameter(1)
  t = token[] after-all()
  n = f32[3] negate(a)
  r = f32[5] reverse(b), dimensions={0}
  ROOT o = (token[], f32[3], f32[5]) tuple(t, n, r)
}
ENTRY e {
  a = f32[3] parameter(0)
  b = f32[5] parameter(1)
  ROOT c = (token[], f32[3], f32[5]) call(a, b), to_apply=f
}
"""


def test_loop_nests_number_outputs_as_queries_do() -> None:
    call = hlo.parse(TOKEN_FIRST).entry.root
    token = indexing.loop_nest(call, 0)
    assert isinstance(token, Unknown)
    assert token.reason == "output 0 of `c` must be an array, not token[]"
    for number, size in ((1, 3), (2, 5)):
        nest = indexing.loop_nest(call, number)
        assert not isinstance(nest, Unknown)
        assert nest.output.dims == (size,)


def test_validation_counts_tokens_as_outputs() -> None:
    report = validate_instruction(hlo.parse(TOKEN_FIRST).entry.root, seed=0, max_elements=100)
    assert (report.status, report.checks) == ("ok", "numpy, loops, poke")


@pytest.mark.parametrize(
    "options", [[], ["--direction", "both"], ["--to", "parameters"], ["--jobs", "2"]]
)
def test_the_command_notes_that_an_instruction_has_no_outputs(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nested.hlo"
    path.write_text(PROGRAMS["nested"], encoding="utf-8")
    assert cli.run(["maps", "-i", "u", *options, str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"note: {path}: e: u has no outputs\n"
