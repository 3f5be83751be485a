"""The two counter-based random number generators of HLO: ThreeFry 2x32-20 and Philox 4x32-10.

A state consists of a 64-bit key and a 64-bit counter. The counter of Philox has 128 bits; if the
state omits its upper half, the upper half is the key. A generator encrypts the values counter,
counter + 1, .. The next state is the key and the next counter.

Sources: Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011), for
the ciphers and their constants; XLA ``xla/hlo/builder/lib/prng.cc`` for the order of the words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Bits: TypeAlias = tuple[Array, Array]
"""The next state and the random integers."""

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA
_MULTIPLIERS: Final = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS: Final = 0x9E3779B9, 0xBB67AE85


def three_fry(state: Array, sizes: tuple[int, ...], dtype: np.dtype[Any]) -> Bits:
    """Next state and random integers by ThreeFry: two 32-bit words from each counter.

    The two words are neighbours along the first dimension of even size; without such a dimension,
    along the first of the largest dimensions.
    """
    key, counter = int(state[0]), int(state[1])
    is_wide = dtype.itemsize == 8
    split = 0 if is_wide or not sizes else _split_dimension(sizes)
    grid = list(sizes)
    if not is_wide:
        grid[split : split + 1] = [-(-sizes[split] // 2) if sizes else 1]
    count = math.prod(grid)
    counters = np.arange(count, dtype=np.uint64) + np.uint64(counter)
    low, high = _three_fry(key, *_words(counters))
    after = np.array([key, (counter + count) % 2**64], np.uint64)
    if is_wide:
        return after, _join_words(low, high).reshape(sizes).astype(dtype)
    if not sizes:
        return after, low.reshape(()).astype(dtype)
    pairs = np.stack([low.reshape(grid), high.reshape(grid)], split + 1)
    grid[split] *= 2
    kept = [slice(0, n) for n in sizes]
    return after, pairs.reshape(grid)[tuple(kept)].astype(dtype)


def philox(state: Array, sizes: tuple[int, ...], dtype: np.dtype[Any]) -> Bits:
    """Next state and random integers by Philox: four consecutive 32-bit words from each counter."""
    key, counter = int(state[0]), int(state[1]) + (int(state[2 if len(state) > 2 else 0]) << 64)
    is_wide = dtype.itemsize == 8
    number = math.prod(sizes)
    count = -(-number // (2 if is_wide else 4))
    low = np.arange(count, dtype=np.uint64) + np.uint64(counter % 2**64)
    carry = (low < np.uint64(counter % 2**64)).astype(np.uint64)
    high = np.uint64(counter >> 64) + carry
    words = _philox(key, (*_words(low), *_words(high)))
    if is_wide:
        words = [_join_words(*words[:2]), _join_words(*words[2:])]
    next_counter = (counter + count) % 2**128
    after = [key, next_counter % 2**64, next_counter >> 64][: len(state)]
    bits = np.stack(words, 1).reshape(-1)[:number].reshape(sizes)
    return np.array(after, np.uint64), bits.astype(dtype)


def _split_dimension(sizes: tuple[int, ...]) -> int:
    even = [k for k, n in enumerate(sizes) if n % 2 == 0]
    return even[0] if even else sizes.index(max(sizes))


def _words(wide: Array) -> tuple[Array, Array]:
    """The lower and the upper half of 64-bit integers."""
    return wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)


def _join_words(low: Array, high: Array) -> Array:
    return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))


# ---------------------------------------------------------------- ciphers


def _three_fry(key: int, left: Array, right: Array) -> tuple[Array, Array]:
    """Twenty rounds of ThreeFry; a part of the key is added after every fourth round.

    >>> words = _three_fry(0, np.zeros(1, np.uint32), np.zeros(1, np.uint32))
    >>> [hex(int(word[0])) for word in words]
    ['0x6b200159', '0x99ba4efe']
    """
    low, high = key % 2**32, key >> 32
    keys = [np.uint32(k) for k in (low, high, low ^ high ^ _PARITY)]
    left, right = left + keys[0], right + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            left = left + right
            right = (right << np.uint32(rotation)) | (right >> np.uint32(32 - rotation))
            right = left ^ right
        left = left + keys[(group + 1) % 3]
        right = right + keys[(group + 2) % 3] + np.uint32(group + 1)
    return left, right


def _philox(key: int, words: tuple[Array, ...]) -> list[Array]:
    """Ten rounds of Philox; the key is incremented in each round.

    >>> [hex(int(word[0])) for word in _philox(0, (np.zeros(1, np.uint32),) * 4)]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    a, b, c, d = words
    for low_key, high_key in _philox_keys(key):
        low_a, high_a = _words(a.astype(np.uint64) * np.uint64(_MULTIPLIERS[0]))
        low_c, high_c = _words(c.astype(np.uint64) * np.uint64(_MULTIPLIERS[1]))
        a, b, c, d = high_c ^ b ^ low_key, low_c, high_a ^ d ^ high_key, low_a
    return [a, b, c, d]


def _philox_keys(key: int) -> Iterator[tuple[np.uint32, np.uint32]]:
    for k in range(10):
        low, high = key % 2**32 + k * _KEY_STEPS[0], (key >> 32) + k * _KEY_STEPS[1]
        yield np.uint32(low % 2**32), np.uint32(high % 2**32)
