"""JAX programs in which masks, constants and integer arithmetic decide what is read.

Arrays are small, so that `benchmarks.masks` can change every element.  Programs of attention are in
`benchmarks.mask_attention`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Values: TypeAlias = Mapping[str, Array]

_TYPES: Final = {
    "f32": np.float32,
    "s32": np.int32,
    "s8": np.int8,
    "u8": np.uint8,
    "u32": np.uint32,
    "pred": np.bool_,
}
_DRAWS: Final = 24
"""Number of random values of runtime arrays."""
_COMBINATIONS: Final = 400
"""Limit on the combinations of values of several runtime arguments."""


@dataclass(frozen=True)
class Tiles:
    """Tiles of the queries and blocks of the keys of attention.

    Attributes:
        queries: the dimension of queries of the output.
        keys: the dimension of keys of the argument `k`.
        size: the number of queries in a tile, and of keys in a block.
        name: the name of the argument with keys.
    """

    queries: int
    keys: int
    size: int = 2
    name: str = "k"


@dataclass(frozen=True)
class Program:
    """A JAX function and the arguments that it is executed with.

    Attributes:
        name, kind: the name of the function, and of its group.
        function: the function; its arguments are arrays.
        names, arguments: the name and the type of each argument.
        runtime: the names of the arguments that are runtime values: positions, lengths, indices.
        near: about the largest index that these have; larger numbers, and negative ones, are tried
            too.
        bound: values of the runtime arguments for which the maps are asked again.
        tiles: the tiles of attention, if it is one.
    """

    name: str
    kind: str
    function: Callable[..., Any]
    names: tuple[str, ...]
    arguments: tuple[Any, ...]
    runtime: tuple[str, ...]
    near: int
    bound: tuple[Values, ...] = ()
    tiles: Tiles | None = None

    def base(self, seed: int, values: Values) -> list[Array]:
        """Return arguments: those given, and random ones."""
        random = np.random.default_rng(seed)
        return [
            values[name] if name in values else _draw(each, random, seed, self.near)
            for name, each in zip(self.names, self.arguments, strict=True)
        ]

    def bases(self) -> Iterator[list[Array]]:
        """Yield arguments for the question about all values of the runtime arguments."""
        if not self.runtime:
            yield from [self.base(seed, {}) for seed in range(4)]
            return
        for seed, values in enumerate(self._runtime_values()):
            yield self.base(2 * seed, values)
            yield self.base(2 * seed + 1, values)

    def _runtime_values(self) -> Iterator[Values]:
        yield from self.bound
        types = [self._type(name) for name in self.runtime]
        if all(each.shape == () for each in types):
            most = math.floor(_COMBINATIONS ** (1 / len(types)))
            lists = [_scalars(each.dtype, self.near)[-most:] for each in types]
            for row in product(*lists):
                yield {n: self.value(n, v) for n, v in zip(self.runtime, row, strict=True)}
            return
        random = np.random.default_rng(len(self.name))
        if len(types) > 1:
            for _ in range(_COMBINATIONS // 2):
                seeds = random.integers(0, _DRAWS + 3 * self.near, len(types)).tolist()
                pairs = zip(self.runtime, seeds, strict=True)
                yield {name: self.indices(name, random, seed) for name, seed in pairs}
            return
        for seed in range(_DRAWS + 3 * self.near):
            yield {self.runtime[0]: self.indices(self.runtime[0], random, seed)}

    def indices(
        self, name: str, random: np.random.Generator, seed: int, scalar: int | None = None
    ) -> Array:
        """Return indices: random ones, in order, all equal, out of range, and extreme.

        Args:
            scalar: the value of an argument without dimensions, unless its type is unsigned.
        """
        each = self._type(name)
        if each.dtype == np.bool_:
            return np.asarray(random.integers(0, 2, each.shape), bool)
        limits = np.iinfo(each.dtype)
        if scalar is not None and not each.shape:
            return self.value(name, max(scalar, limits.min))
        array = random.integers(0, self.near, each.shape)
        if seed >= _DRAWS:  # each index at each place, and no, one or several equal ones
            place, step = divmod(seed - _DRAWS, 3)
            array = np.arange(array.size).reshape(each.shape) * step + place
            array %= self.near
        elif seed % 6 == 1:
            array = np.sort(array, axis=None).reshape(each.shape)
        elif seed % 6 == 2:
            array = np.full(each.shape, (seed // 6 - 1) % self.near)
        elif seed % 6 == 3:
            array = random.integers(-self.near - 2, 2 * self.near + 2, each.shape)
        elif seed % 6 == 4:
            array = random.choice([-1, 0, self.near - 1, self.near], each.shape)
        elif seed % 6 == 5:
            array = random.choice([limits.min, limits.max, 0, 1, self.near // 2], each.shape)
        return self.value(name, np.clip(array, limits.min, limits.max))

    def value(self, name: str, value: Any) -> Array:
        """Return a value of an argument."""
        return np.asarray(value, self._type(name).dtype)

    def _type(self, name: str) -> Any:
        return self.arguments[self.names.index(name)]


def _scalars(kind: Any, near: int) -> list[int]:
    """Return values of a runtime scalar, those in range last."""
    if kind == np.bool_:
        return [0, 1]
    limits = np.iinfo(kind)
    outside = [*range(-near - 2, -2), near + 3, 2 * near, near + 2, limits.min, limits.max]
    listed = dict.fromkeys([*outside, -2, near + 1, *range(-1, near + 1)])
    return [number for number in listed if limits.min <= number <= limits.max]


def _draw(kind: Any, random: np.random.Generator, seed: int, near: int) -> Array:
    """Return random numbers: of floats also larger ones, and small whole ones with zeros."""
    if kind.dtype == np.bool_:
        return np.asarray(random.integers(0, 2, kind.shape), bool)
    if kind.dtype.kind in "iu":
        low = 0 if kind.dtype.kind == "u" else -near
        return np.asarray(random.integers(low, near + 1, kind.shape), kind.dtype)
    if seed % 4 == 3:
        return np.asarray(random.integers(-2, 3, kind.shape), kind.dtype)
    scale = (0.5, 1.0, 4.0)[seed % 4 % 3]
    return np.asarray(scale * random.standard_normal(kind.shape), kind.dtype)


PROGRAMS: dict[str, Program] = {}


def program(
    kind: str,
    *types: str,
    near: int = 0,
    data: Sequence[str] = (),
    runtime: Sequence[str] = (),
    bound: Sequence[Mapping[str, Any]] | None = None,
    tiles: Tiles | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a program; a text such as ``f32[3,4]`` is the type of an argument.

    Arguments of integers are runtime values, except those named in `data`, and so are those named
    in `runtime`.  By default, there are three bindings of the runtime values.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        names = tuple(inspect.signature(function).parameters)
        arguments = tuple(map(_argument, types))
        assert len(names) == len(types), function.__name__
        varied = tuple(
            name
            for name, each in zip(names, arguments, strict=True)
            if name in runtime or (each.dtype.kind in "iu" and name not in data)
        )
        size = near or max([max(each.shape) for each in arguments if each.shape], default=8)
        new = Program(function.__name__, kind, function, names, arguments, varied, size)
        given: Iterable[Values] = _bindings(new) if varied else ()
        if bound is not None:
            given = [{name: new.value(name, v) for name, v in each.items()} for each in bound]
        assert new.name not in PROGRAMS, new.name
        PROGRAMS[new.name] = replace(new, bound=tuple(given), tiles=tiles)
        return function

    return register


def _bindings(new: Program) -> Iterator[Values]:
    random = np.random.default_rng(len(new.name) + 1)
    for seed, scalar in ((0, new.near // 2), (1, new.near - 1), (3, -2)):
        yield {name: new.indices(name, random, seed, scalar) for name in new.runtime}


def _argument(text: str) -> Any:
    match = re.fullmatch(r"(\w+)\[([\d,]*)\]", text)
    assert match, text
    dims = tuple([int(size) for size in match[2].split(",") if size])
    return jax.ShapeDtypeStruct(dims, _TYPES[match[1]])
