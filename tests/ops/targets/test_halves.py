"""Types of 64 bits, split into two parts by XLA:TPU and combined again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from indexing.equivalence import Differs, Proved
from indexing.execution import run
from indexing.ops.targets.halves import HALVES
from tests.ops.samples import parse_sample

NUMBERS: dict[str, Any] = {
    "u64": np.array([[0, 1, 2**32 - 1], [2**32, 2**63 + 7, 2**64 - 1]], np.uint64),
    "s64": np.array([[0, -1, 2**32 - 1], [-(2**32), 2**63 - 1, -(2**63)]], np.int64),
    "c64": np.array([[0, 1j, -2], [3 - 4j, -0.0, np.inf]], np.complex64),
    "f64": np.array([[0.0, 0.1, -1 / 3], [1e20, -np.pi, 2.0**-20]], np.float64),
}
SPLIT = """ENTRY e {
  p = %(wide)s[2,3] parameter(0)
  low = %(narrow)s[2,3] custom-call(p), custom_call_target="X64SplitLow"
  high = %(narrow)s[2,3] custom-call(p), custom_call_target="X64SplitHigh"
  both = %(wide)s[2,3] custom-call(low, high), custom_call_target="X64Combine"
  ROOT r = (%(narrow)s[2,3], %(narrow)s[2,3], %(wide)s[2,3]) tuple(low, high, both)
}"""


@pytest.mark.parametrize("wide", HALVES)
def test_parts_are_those_of_the_number_in_memory_or_of_the_sum(wide: str) -> None:
    module = hlo.parse(SPLIT % {"wide": wide, "narrow": HALVES[wide]})
    assert hlo.verify(module) == []
    numbers = NUMBERS[wide]
    low, high, both = run(module, [numbers])
    if wide == "f64":
        assert (low == numbers.astype(np.float32)).all()
        exact = [float(a) + float(b) for a, b in zip(low.flat, high.flat, strict=True)]
        np.testing.assert_allclose(exact, numbers.ravel(), rtol=2.0**-47)
        assert both.ravel().tolist() == exact
    else:
        words = numbers.view("<f4" if wide == "c64" else "<u4").reshape(2, 3, 2)
        assert (low == words[..., 0]).all()
        assert (high == words[..., 1]).all()
        assert (both == numbers).all()
    for output in range(3):
        ((read,),) = indexing.to_parameters(module.entry.root, output).maps
        assert read.is_identity
        assert read.grade == "exact"


PAIRS = [
    ("u64", "u32", "ROOT r = u32[2,3] convert(p)", "X64SplitLow"),
    ("c64", "f32", "ROOT r = f32[2,3] real(p)", "X64SplitLow"),
    ("c64", "f32", "ROOT r = f32[2,3] imag(p)", "X64SplitHigh"),
    ("f64", "f32", "ROOT r = f32[2,3] convert(p)", "X64SplitLow"),
    (
        "s64",
        "u32",
        "c = s64[] constant(32)  b = s64[2,3] broadcast(c), dimensions={}"
        "  s = s64[2,3] shift-right-logical(p, b)  ROOT r = u32[2,3] convert(s)",
        "X64SplitHigh",
    ),
]


@pytest.mark.parametrize(("wide", "narrow", "body", "target"), PAIRS)
def test_a_part_is_proved_equal_to_ops(wide: str, narrow: str, body: str, target: str) -> None:
    """The calls are those into which XLA:TPU compiles these ops."""
    head = f"p = {wide}[2,3] parameter(0)"
    before = hlo.parse(f"ENTRY e {{ {head}  {body} }}")
    calls = {
        name: hlo.parse(
            f"ENTRY e {{ {head}  ROOT r = {narrow}[2,3] custom-call(p), "
            f'custom_call_target="{name}" }}'
        )
        for name in ("X64SplitLow", "X64SplitHigh")
    }
    right = calls.pop(target)
    (wrong,) = calls.values()
    assert isinstance(indexing.equivalent(before, right), Proved)
    assert isinstance(indexing.equivalent(before, wrong), Differs)


def test_parts_of_another_size_may_read_all() -> None:
    other = 'u32[2,3] custom-call(u64[3,2] p), custom_call_target="X64SplitLow"'
    ((read,),) = indexing.output_to_input(parse_sample(other).instruction).maps
    assert read.grade == "may"


def test_memory_that_a_loop_writes_is_executed() -> None:
    module = hlo.parse("""ENTRY e {
      ROOT b = f32[2,3] custom-call(), custom_call_target="AllocateBuffer"
    }""")
    (memory,) = run(module, [])
    assert memory.shape == (2, 3)
