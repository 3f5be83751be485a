"""Values by the names that JAX has for parameters; equal runtime values; formulas of them.

The oracle of formulas is execution: each formula is evaluated in Python for every value of its
parameters, and compared with the instruction that the module computes.
"""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import hlo
import indexing
from indexing.dataflow.evaluation import Evaluation
from indexing.maps.arrays import ArrayRef
from indexing.views.value_texts import value_text

CACHE = """\
ENTRY e {
  x = f32[16] parameter(0), metadata={op_name="cache"}
  pos.1 = s8[] parameter(1), metadata={op_name="pos"}
  n.1 = s8[] parameter(2), metadata={op_name="p['n']"}
  z = s8[] constant(0)  s = s8[] constant(16)
  l = pred[] compare(pos.1, z), direction=LT
  a = s8[] add(pos.1, s)
  i = s8[] select(l, a, pos.1)
  l2 = pred[] compare(pos.1, z), direction=LT
  a2 = s8[] add(pos.1, s)
  i2 = s8[] select(l2, a2, pos.1)
  %s
}
"""
SLICE = CACHE % "ROOT r = f32[1] dynamic-slice(x, i), dynamic_slice_sizes={1}"
TWICE = (
    CACHE
    % """y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}
  u = f32[1] constant({0})
  w = f32[16] dynamic-update-slice(x, u, i2)
  b = f32[1] dynamic-slice(w, i), dynamic_slice_sizes={1}
  ROOT r = f32[1] copy(b)"""
)

FORMULAS = [
    "i = s8[] select(l, a, pos.1)",
    "i = s8[] add(pos.1, n.1)",
    "i = s8[] maximum(pos.1, n.1)",
    "i = s8[] clamp(z, pos.1, s)",
    "i = s8[] subtract(s, pos.1)",
    "i = s8[] negate(pos.1)",
    "i = s8[] remainder(pos.1, s)",
    "i = s8[] multiply(pos.1, s)",
]


WITHOUT = {FORMULAS[1], FORMULAS[-1]}
"""Sums and products that wrap around too often have no short formula."""


def place(answer: indexing.Answer, **values: int) -> list[list[int]]:
    """Return the elements of the first operand that element 0 needs."""
    region, *_ = answer.at(0, **values)
    assert isinstance(region, indexing.Region)
    elements = region.elements()
    assert isinstance(elements, np.ndarray)
    return elements.tolist()  # type: ignore[no-any-return]  # as NumPy types it


@pytest.mark.parametrize("name", ["pos", "pos.1"])
def test_a_parameter_has_the_name_of_jax_too(name: str) -> None:
    answer = indexing.output_to_input(hlo.parse(SLICE).entry.root)
    to_parameters = indexing.to_parameters(hlo.parse(SLICE).entry.root)
    for value, index in [(5, 5), (-1, 15), (-128, 0), (127, 15)]:
        assert place(to_parameters, **{name: value}) == [[index]]
        assert place(answer, **{name: value}) == [[index]]


def test_ambiguous_names_bind_nothing() -> None:
    text = SLICE.replace("n.1", "pos.2").replace("op_name=\"p['n']\"", 'op_name="pos"')
    answer = indexing.to_parameters(hlo.parse(text).entry.root)
    with pytest.raises(TypeError, match="pos"):
        answer.at(0, pos=5)
    assert place(answer, **{"pos.1": 5}) == [[5]]


def test_equal_runtime_values_of_a_map_are_one_variable() -> None:
    root = hlo.parse(TWICE).entry.root
    (m,) = indexing.to_parameters(root).maps[0] or (None,)
    assert m is None or len(m.runtime) == 1
    two = hlo.parse(
        CACHE.replace("f32[16] parameter", "f32[16,16] parameter")
        % "ROOT r = f32[1,1] dynamic-slice(x, i, i2), dynamic_slice_sizes={1,1}"
    )
    (m,) = indexing.to_parameters(two.entry.root).maps[0]
    assert [rt.source_name for rt in m.runtime] == ["i"]
    assert str(m.results[0]) == str(m.results[1]) == "rt0"


def test_different_values_stay_two_variables() -> None:
    """The near miss: one start is added another constant."""
    text = (
        CACHE.replace("f32[16] parameter", "f32[16,16] parameter").replace(
            "a2 = s8[] add(pos.1, s)", "a2 = s8[] subtract(pos.1, s)"
        )
        % "ROOT r = f32[1,1] dynamic-slice(x, i, i2), dynamic_slice_sizes={1,1}"
    )
    (m,) = indexing.to_parameters(hlo.parse(text).entry.root).maps[0]
    assert len(m.runtime) == 2


@pytest.mark.parametrize("line", FORMULAS)
def test_a_formula_is_the_value_for_all_parameters(line: str) -> None:
    module = hlo.parse(SLICE.replace(FORMULAS[0], line))
    entry = module.entry
    (rt,) = indexing.output_to_input(entry.root).maps[0][0].runtime
    text = value_text(rt)
    if text is None:
        assert line in WITHOUT
        return
    assert "pos.1" in text
    for pos, n in product(range(-128, 128), [-128, -3, 0, 7, 127] if "n.1" in line else [0]):
        values = {"pos.1": np.int8(pos), "n.1": np.int8(n)}
        given = {ArrayRef(entry[name]): value for name, value in values.items()}
        expected = Evaluation({key: np.asarray(v) for key, v in given.items()}).value(
            ArrayRef(entry["i"])
        )
        assert expected is not None
        assert evaluate(text, pos, n) == int(expected), (text, pos, n)


def evaluate(text: str, pos: int, n: int) -> int:
    """Return the value of a formula: ``condition ? value : formula``."""
    words = text.replace("pos.1", "pos").replace("n.1", "n").replace(" mod ", " % ")
    condition, mark, rest = words.partition(" ? ")
    if not mark:
        return int(eval(re.sub(r"\bfloordiv\b", "//", words), {}, {"pos": pos, "n": n}))
    value, _, other = rest.partition(" : ")
    return evaluate(value if evaluate(condition, pos, n) else other, pos, n)


def test_the_cases_of_a_negative_position_read_as_in_python() -> None:
    (rt,) = indexing.output_to_input(hlo.parse(SLICE).entry.root).maps[0][0].runtime
    assert value_text(rt) == "pos.1 < 0 ? pos.1 + 16 : pos.1"
