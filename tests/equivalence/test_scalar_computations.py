"""Scalar computations applied to the elements of an array: each result depends on its index."""

import pytest

import hlo
from indexing import equivalent
from indexing.equivalence.values.engine import compare_values
from indexing.equivalence.values.formulas.elements import MAX_TERM_DEPTH

CALLED = """
less { s = (f32[], s32[]) parameter(0)  k = s32[] get-tuple-element(s), index=1
  n = s32[] constant(7)  ROOT r = pred[] compare(k, n), direction=LT }
next { s = (f32[], s32[]) parameter(0)  k = s32[] get-tuple-element(s), index=1
  x = f32[] get-tuple-element(s), index=0  one = s32[] constant(1)  j = s32[] add(k, one)
  y = f32[] sine(x)  ROOT t = (f32[], s32[]) tuple(y, j) }
opaque { b = f32[] parameter(0)  ROOT r = f32[] custom-call(b), custom_call_target="f" }
sine { b = f32[] parameter(0)  ROOT r = f32[] sine(b) }
"""

# fmt: off
COMPUTATIONS = {
    "an elementwise op": "ROOT r = f32[] sine(a)",
    "a custom call": 'ROOT r = f32[] custom-call(a), custom_call_target="f"',
    "a custom call and an elementwise op":
        'c = f32[] custom-call(a), custom_call_target="f"  ROOT r = f32[] multiply(a, c)',
    "a loop":
        "z = s32[] constant(0)  t = (f32[], s32[]) tuple(a, z)  "
        "w = (f32[], s32[]) while(t), condition=less, body=next  "
        "ROOT r = f32[] get-tuple-element(w), index=0",
    "a map": "ROOT r = f32[] map(a), dimensions={}, to_apply=opaque",
    "branches":
        "z = f32[] constant(0)  p = pred[] compare(a, z), direction=LT  ROOT r = f32[] "
        "conditional(p, a, a), true_computation=opaque, false_computation=sine",
}
# fmt: on


def map_chain(computation: str, *, start: int, depth: int = 1) -> hlo.Module:
    """A slice from `start` of a map of the values of a chain of functions."""
    chain = [f"x{k} = f32[8] {('sine', 'cosine')[k % 2]}(x{k - 1})" for k in range(1, depth)]
    return hlo.parse(f"""HloModule m
      {CALLED}
      applied {{ a = f32[] parameter(0)  {computation} }}
      ENTRY e {{ x0 = f32[8] parameter(0)  {"  ".join(chain)}
        m = f32[8] map(x{depth - 1}), dimensions={{0}}, to_apply=applied
        ROOT r = f32[3] slice(m), slice={{[{start}:{start + 3}]}} }}""")


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_elements_of_a_map_at_other_indices_differ(name: str) -> None:
    before, same, other = (map_chain(COMPUTATIONS[name], start=start) for start in (0, 0, 1))
    assert equivalent(before, same)
    assert not equivalent(before, other)


@pytest.mark.parametrize("depth", range(MAX_TERM_DEPTH - 4, MAX_TERM_DEPTH + 2))
def test_deep_formulas_of_a_map_at_other_indices_differ(depth: int) -> None:
    computation = "b = f32[] sine(a)  c = f32[] cosine(b)  ROOT r = f32[] sine(c)"
    before, same, other = (map_chain(computation, start=start, depth=depth) for start in (0, 0, 1))
    assert all(compare_values(before.entry, same.entry))
    assert not any(compare_values(before.entry, other.entry))
