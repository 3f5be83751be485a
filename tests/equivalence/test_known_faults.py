"""Reported faults of XLA as small modules written by hand: before, as the fault left it, and right.

Each file in ``known_faults/`` has three modules and names the report.  A formula in NumPy, written
from the semantics of the ops, judges the first two.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import hlo
from hlo.modules.module import Module
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.equivalence.verdicts import ElementIndex
from indexing.execution import run

Array = NDArray[Any]
Formula = Callable[..., Array]

FOLDER: Final = Path(__file__).parent / "known_faults"
SEEDS: Final = range(40)


def clamp(start: Array, size: int, window: int) -> int:
    return int(np.clip(start, 0, size - window))


def window_sums(x: Array, low: int) -> Array:
    """Sums of two neighbours of a row, with `low` zeros before it."""
    padded = np.concatenate([np.zeros((1, low), x.dtype), x], axis=1)
    return np.asarray(padded[:, :-1] + padded[:, 1:])


def correlation(x: Array, k: Array, low: int) -> Array:
    padded = np.concatenate([np.zeros(low, x.dtype), x.ravel()])
    return np.array([[padded[:-1] * k[0, 0, 0] + padded[1:] * k[0, 0, 1]]])


def slice_twice(x: Array, i: Array, j: Array) -> Array:
    return x[clamp(i, 10, 4) :][clamp(j, 4, 1) :][:1]


def slice_once(x: Array, i: Array, j: Array) -> Array:
    return x[clamp(clamp(i, 10, 1) + j, 10, 1) :][:1]


def change_at(x: Array, c: Array, start: int) -> Array:
    return np.concatenate([x[:start], c, x[start + 1 :]])


def roll(x: Array, u: Array, starts: tuple[Array, Array, Array], shift: Array) -> Array:
    i, j, k = (clamp(s, size, 2) for s, size in zip(starts, x.shape, strict=True))
    y = x.copy()
    y[i : i + 2, j : j + 2, k : k + 2] = u
    return np.roll(y, -clamp(shift, 8, 4), axis=1)


def shards(x: Array, starts: tuple[int, int]) -> Array:
    """The columns of two devices, three each."""
    places = [clamp(np.asarray(start), 8, 3) for start in starts]
    return np.concatenate([x[:, start : start + 3] for start in places], axis=1)


class Fault(NamedTuple):
    """A reported fault and its verdict.

    Attributes:
        correct, wrong: the results of both modules.
        element: the output element with the witness.
        reads: the elements of the parameter that are read for it, before and after; None if they
            depend on runtime starts.
    """

    correct: Formula
    wrong: Formula
    element: ElementIndex
    reads: tuple[tuple[ElementIndex, ...], tuple[ElementIndex, ...]] | None = None


FAULTS: Final = {
    "cropping_pad_window": Fault(
        lambda x: window_sums(x[:, 2:], low=2),
        lambda x: window_sums(x, low=0),
        element=(0, 0),
        reads=((), ((0, 0), (0, 1))),  # both elements of the window are padding
    ),
    "cropping_pad_convolution": Fault(
        lambda x, k: correlation(x[:, :, 2:], k, low=2),
        lambda x, k: correlation(x, k, low=0),
        element=(0, 0, 0),
        reads=((), ((0, 0, 0), (0, 0, 1))),
    ),
    "nested_dynamic_slices": Fault(slice_twice, slice_once, element=(0,)),
    "nested_dynamic_updates": Fault(
        lambda x, c, i, j: change_at(x, c, clamp(i, 10, 4) + clamp(j, 4, 1)),
        lambda x, c, i, j: change_at(x, c, clamp(i + clamp(j, 4, 1), 10, 1)),
        element=(2,),
    ),
    "rotated_starts": Fault(
        lambda x, u, i, j, k, shift: roll(x, u, (i, j, k), shift),
        lambda x, u, i, j, k, shift: roll(x, u, (shift, i, j), shift),
        element=(1, 1, 1),
    ),
    "copies_around_bitcast": Fault(
        lambda x: x.transpose(1, 2, 0).reshape(1, 6),
        lambda x: x.reshape(1, 6),
        element=(0, 3),
        reads=(((0, 0, 1),), ((1, 0, 1),)),  # 3 = 1 * 3 + 0 in [1,2,3], and 1 * 2 + 1 in [3,1,2]
    ),
    "partitioned_dynamic_slice": Fault(
        lambda x, i: x[:, clamp(i, 8, 6) :][:, :6],
        lambda x, i: shards(x, (clamp(i, 8, 3), 3 + clamp(i, 8, 3))),
        element=(0, 0),
    ),
}

PARTITIONED: Final = "partitioned_dynamic_slice"


def modules(name: str) -> tuple[Module, Module, Module]:
    before, wrong, right = hlo.load_all(FOLDER / f"{name}.hlo")
    return before, wrong, right


def result_of(module: Module, inputs: list[Array]) -> Array:
    """Execute a module, a partitioned one on two devices; return the global result."""
    if any(i.opcode == "partition-id" for i in module.instructions):
        devices = run(module, [inputs, inputs], replicas=2)
        return np.concatenate([result for (result,) in devices], axis=1)
    return np.asarray(run(module, inputs)[0])


def inputs_of(module: Module, seed: int) -> list[Array]:
    """Integers from -3 to 11: as starts, they are out of bounds on both sides."""
    random = np.random.default_rng(seed)
    shapes: list[Any] = [p.shape for p in module.entry.parameters]
    kinds = [np.float32 if s.element_type == "f32" else np.int32 for s in shapes]
    return [
        np.asarray(random.integers(-3, 12, s.dims)).astype(kind)
        for s, kind in zip(shapes, kinds, strict=True)
    ]


def test_each_file_has_a_fault_and_names_its_report() -> None:
    assert sorted(FAULTS) == sorted(path.stem for path in FOLDER.iterdir())
    for path in FOLDER.iterdir():
        assert path.read_text().startswith("// openxla/xla")


@pytest.mark.parametrize("name", FAULTS)
def test_the_modules_compute_what_is_written_in_numpy(name: str) -> None:
    before, wrong, right = modules(name)
    fault = FAULTS[name]
    different = 0
    for seed in SEEDS:
        inputs = inputs_of(before, seed)
        correct, faulty = fault.correct(*inputs), fault.wrong(*inputs)
        for module, expected in ((before, correct), (wrong, faulty), (right, correct)):
            np.testing.assert_array_equal(result_of(module, inputs), expected)
        different += bool(correct[fault.element] != faulty[fault.element])
    assert different, "no input shows the difference at the element"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_shown_with_its_element(name: str) -> None:
    before, wrong, right = modules(name)
    fault = FAULTS[name]
    for correct in (before,) if name == PARTITIONED else (before, right):
        verdict = equivalent(correct, wrong)
        assert isinstance(verdict, Differs), verdict
        assert (verdict.output, verdict.element) == (0, fault.element)
        assert verdict.before != verdict.after
        assert name == PARTITIONED or verdict.reads_before != verdict.reads_after
        assert name == PARTITIONED or verdict.chain_before or verdict.chain_after
        if fault.reads is not None:
            assert (verdict.reads_before, verdict.reads_after) == fault.reads


@pytest.mark.parametrize("name", FAULTS)
def test_the_right_rewrite_is_proved(name: str) -> None:
    before, _, right = modules(name)
    pairs = [(before, right)] if name == PARTITIONED else [(before, right), (right, before)]
    for verdict in (equivalent(*pair) for pair in pairs):
        assert isinstance(verdict, Proved), verdict
        assert (verdict.level, dict(verdict.laws)) == ("values", {})
