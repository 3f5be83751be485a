"""Random bits equal those of XLA."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from indexing.ops.random_bits import philox, three_fry
from tests.ops.samples import parse_sample

# fmt: off
BITS = [
    # generator  state        sizes   type  next state   bits of XLA on CPU
    (three_fry, [42, 7],      (6,),   "u4", [42, 10],    [2642642533, 3437982737, 356970675, 1736384518, 4222757798, 1010817143]),
    (three_fry, [42, 7],      (3, 5), "u4", [42, 16],    [[2642642533, 3437982737, 356970675, 1736384518, 4222757798],
                                                          [563344011, 4074627445, 653491321, 3185375099, 2676170827],
                                                          [1532797651, 4222029849, 1855476965, 944181238, 1747370287]]),
    (three_fry, [42, 7],      (3,),   "u8", [42, 10],    [14766023422270211685, 7457714718447694003, 4341426575643913126]),
    (three_fry, [42, 7],      (5,),   "u1", [42, 10],    [101, 17, 179, 6, 166]),
    (three_fry, [42, 7],      (),     "u4", [42, 8],     2642642533),
    (philox,    [42, 7],      (6,),   "u4", [42, 9],     [1436477672, 1015822685, 1056814300, 3113490754, 1193696974, 489625878]),
    (philox,    [42, 7, 9],   (6,),   "u4", [42, 9, 9],  [4151367164, 999626888, 3987458082, 3312483252, 2698840385, 900517438]),
    (philox,    [42, 7],      (3,),   "u8", [42, 9],     [4362925212046387432, 13372340965885195484, 2102927134478982862]),
    (philox,    [42, 7],      (5,),   "u1", [42, 9],     [232, 93, 220, 66, 206]),
]
# fmt: on


@pytest.mark.parametrize("generator, state, sizes, kind, after, bits", BITS)
def test_bits_equal_those_of_xla(
    generator: object,
    state: list[int],
    sizes: tuple[int, ...],
    kind: str,
    after: object,
    bits: object,
) -> None:
    assert callable(generator)
    results = generator(np.array(state, np.uint64), sizes, np.dtype(kind))
    assert [array.tolist() for array in results] == [after, bits]


@pytest.mark.parametrize(
    "state", [np.uint64(0), np.zeros(1, np.uint64), np.zeros(4, np.uint64), np.zeros(2, np.uint32)]
)
def test_the_default_generator_names_the_states_that_it_takes(state: np.ndarray[Any, Any]) -> None:
    """The backend defines the states of `rng_default`, so that no constraint refuses them."""
    kind = f"u{8 * state.itemsize}{list(state.shape)}"
    sample = f"({kind}, u8[7]) rng-bit-generator({kind} state), algorithm=rng_default"
    with pytest.raises(ValueError, match=r"requires a state u64\[2\] or u64\[3\], not uint"):
        parse_sample(sample).run([np.asarray(state)])


def test_uniform_numbers_stay_in_their_interval() -> None:
    text = "s32[1000] rng(s32[] low, s32[] high), distribution=rng_uniform"
    (numbers,) = parse_sample(text).run([np.array(-2, np.int32), np.array(3, np.int32)])
    assert set(numbers.tolist()) == {-2, -1, 0, 1, 2}


def test_normal_numbers_have_the_given_mean_and_deviation() -> None:
    text = "f32[4000] rng(f32[] mean, f32[] deviation), distribution=rng_normal"
    (numbers,) = parse_sample(text).run([np.array(5, np.float32), np.array(2, np.float32)])
    assert abs(numbers.mean() - 5) < 0.2
    assert abs(numbers.std() - 2) < 0.2
