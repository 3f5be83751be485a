"""Calls are inlined and tuples routed in the same way, whatever the arrays are made for."""

from collections.abc import Callable, Sequence

import pytest

import hlo
import indexing
from hlo.modules.module import Computation
from indexing.codegen.flattening import arrays_of
from indexing.codegen.program_arrays import ProgramArray
from indexing.equivalence.values.formulas.numbering import NumberedArray, Numbering

CALLS = 2_000  # more than Python's limit on nested calls

SWAPPED_TWICE = """
swap { x = (f32[3], token[], f32[3]) parameter(0)
  a = f32[3] get-tuple-element(x), index=0  t = token[] get-tuple-element(x), index=1
  b = f32[3] get-tuple-element(x), index=2  ROOT s = (f32[3], token[], f32[3]) tuple(b, t, a) }
ENTRY e { p = f32[3] parameter(0)  q = f32[3] parameter(1)  t = token[] after-all()
  n = f32[3] negate(p)  first = (f32[3], token[], f32[3]) tuple(n, t, q)
  once = (f32[3], token[], f32[3]) call(first), to_apply=swap
  twice = (f32[3], token[], f32[3]) call(once), to_apply=swap
  a = f32[3] get-tuple-element(twice), index=0  b = f32[3] get-tuple-element(twice), index=2
  m = f32[3] negate(p)  ROOT r = (f32[3], f32[3], f32[3]) tuple(a, b, m) }
"""

results = pytest.mark.parametrize(
    "results_of",
    [Numbering().outputs, lambda computation: arrays_of(computation)[1]],
    ids=["numbering", "loop nests"],
)
ResultsOf = Callable[[Computation], Sequence[NumberedArray | ProgramArray]]


@results
def test_tuples_are_routed_through_calls_and_equal_instructions_are_one_array(
    results_of: ResultsOf,
) -> None:
    first, second, third = results_of(hlo.parse(SWAPPED_TWICE).entry)
    assert first is third
    assert first is not second


def nested_calls(number: int) -> hlo.Module:
    """Return a module in which a computation calls the next one, and the last one negates."""
    text = "c0 { x = f32[3] parameter(0)  ROOT y = f32[3] negate(x) }\n"
    for k in range(1, number):
        call = f"call(x), to_apply=c{k - 1}"
        text += f"c{k} {{ x = f32[3] parameter(0)  ROOT y = f32[3] {call} }}\n"
    call = f"call(p), to_apply=c{number - 1}"
    return hlo.parse(f"{text}ENTRY e {{ p = f32[3] parameter(0)  ROOT r = f32[3] {call} }}")


@results
def test_calls_may_be_nested_deeper_than_calls_of_python(results_of: ResultsOf) -> None:
    (result,) = results_of(nested_calls(CALLS).entry)
    assert result.instruction is not None
    assert result.instruction.opcode == "negate"


def test_programs_with_deeply_nested_calls_are_compared() -> None:
    assert indexing.equivalent(nested_calls(CALLS), nested_calls(1), level="values")
