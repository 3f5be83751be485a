"""The converse of the perturbation test: an element that an exact map reads can change the result.

For one element of the result and one element of an operand that an exact map relates, the operands
and the change are varied until the element of the result changes. If it never does, the map is not
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np

from indexing.codegen.differences import ElementIndex
from indexing.codegen.element_values import INDEX_FILLS, extremes, fill, is_square, rows_selecting
from indexing.codegen.graph import Array
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.mask_values import mask_values
from indexing.ops.numerics import is_integer, limits

Aim: TypeAlias = "Callable[[IndexingMap, ElementIndex, Sequence[int], Sequence[int]], bool]"

Results: TypeAlias = "Mapping[int, Array] | None"

MAX_DRAWS: Final = 8
"""Number of random elements of the result to find one that a map relates to something."""

RANDOM_FILLS: Final = 3
"""Number of random fillings of all operands."""

CONSTANT_FILLS: Final = (0, 1, 2, -1)
"""Values that fill all operands."""

BORDER_FILLS: Final = 16
"""Number of fillings of integer operands with values at the borders of masks."""

UNIFORM_FILLS: Final = 12
"""Number of fillings of each operand with a value of its own."""

LONE_VALUES: Final = ((0, 1), (2, 1))
"""Values of the elements of an operand, and of the one at the index of the result.

One less where the type has no 2: in each case, it has a value on the far side of the lone one.
"""

EXTREMES: Final = (100, -100)
"""Values of the elements at the index of the changed one, so that a comparison selects them."""


def no_aim(m: IndexingMap, at: ElementIndex, inside: Sequence[int], values: Sequence[int]) -> bool:
    """Return False: no mask values are set."""
    return False


@dataclass(slots=True)
class Influence:
    """Varies the operands of a kernel.

    Attributes:
        arrays: the operands, which `run` and `images` read.
        run: computes the results; None if it rejects the operands.
        images: the elements that a map relates to an element of the result; None if there are
            too many.
        draw: gives an array random values.
        random: draws elements.
        values: further values of elements, such as those with which the program compares.
        borders: integers that may lie at the border of a mask; none without masks.
        aim: sets integers for which a map reads a point, to some of those given; False if none was
            found.
        runs: how often `run` has been called.
        is_number: False if the element of the result was NaN before each change of `is_seen`.
    """

    arrays: Sequence[Array]
    run: Callable[[], Results]
    images: Callable[[IndexingMap, ElementIndex], set[ElementIndex] | None]
    draw: Callable[[Array], None]
    random: np.random.Generator
    values: Sequence[float] = ()
    borders: Sequence[int] = ()
    aim: Aim = no_aim
    runs: int = field(default=0, init=False)
    is_number: bool = field(default=False, init=False)

    def aims(self, exact: IndexingMap, at: ElementIndex, inside: Sequence[int]) -> bool:
        """Set integers for which a map reads a point; return True if some are found."""
        return self.aim(exact, at, inside, [*self.borders, *map(int, self.values)])

    @property
    def no_effect(self) -> str:
        """Why the last `is_seen` saw nothing."""
        if self.is_number:
            return "no change there has an effect"
        return "the output element is NaN for all operands that were drawn"

    def unseen_read(
        self, array: Array, output: int, exact: IndexingMap
    ) -> tuple[ElementIndex, ElementIndex] | None:
        """Return a read of a map that no change of the operand element shows, or None.

        A random element of the result is tried; for integer operands, which may contain indices,
        also the first one, which the least indices select.

        Args:
            array: the operand.
            output: the number of the result.
            exact: the map from that result to the operand.
        Returns:
            The element of the result and that of the operand.
        """
        drawn = [
            tuple([int(self.random.integers(v.lower, v.upper + 1)) for v in exact.dims])
            for _ in range(MAX_DRAWS)
        ]
        unseen = None
        related = [at for at in drawn if self.images(exact, at)][:1]
        if is_integer(array):
            related.append(tuple([v.lower for v in exact.dims]))
        for at in related:
            images = sorted(self.images(exact, at) or ())
            if images:
                j = images[int(self.random.integers(len(images)))]
                if self.is_seen(array, output, exact, at, j):
                    return None
                unseen = at, j
        return unseen

    def is_seen(
        self,
        array: Array,
        output: int,
        exact: IndexingMap,
        at: ElementIndex,
        j: ElementIndex,
        inside: tuple[int, ...] | None = None,
    ) -> bool:
        """Return True if a change of operand element `j` changes element `at` of the result.

        With runtime variables, `j` depends on the operands.

        Args:
            inside: values of the range variables of the map, for which mask values are chosen.
        """
        self.is_number = False
        with self.restore_after():
            for candidates in self._fillings(array, at, j):
                place = self._place(exact, at, j, inside)
                if place is not None and self._moves(array, output, at, place, candidates):
                    return True
        return False

    def _place(
        self,
        exact: IndexingMap,
        at: ElementIndex,
        j: ElementIndex,
        inside: tuple[int, ...] | None,
    ) -> ElementIndex | None:
        """Return the element that the map reads now; None if a mask hides it for all values."""
        images = self.images(exact, at) if exact.runtime else None
        if images is None or j in images:
            return j
        if inside is not None and self.aims(exact, at, inside):
            return j
        if len(mask_values(exact)) == len(exact.runtime):
            return None
        return min(images) if images else j

    @contextmanager
    def restore_after(self) -> Iterator[None]:
        """Restore the operands at the end of a block."""
        saved = [each.copy() for each in self.arrays]
        try:
            yield
        finally:
            for each, old in zip(self.arrays, saved, strict=True):
                each[...] = old

    def _fillings(self, array: Array, at: ElementIndex, j: ElementIndex) -> Iterator[int | None]:
        """Fill the operands; yield the number of changes to try, None for all.

        * as they are;
        * random, with extremes at index `j`;
        * random;
        * random, with square matrices whose diagonals dominate: they have decompositions;
        * constant but for the element at `at`: a comparison selects it, or the changed element;
        * random, with the index `at` in the rows of integer operands: indices must select it;
        * random, with small integers, or parts of the index, in their elements;
        * random, with integers at the borders of masks;
        * constant;
        * constant, with another value in each operand: all elements of a comparison are alike.
        """
        yield None
        alike = [each for each in self.arrays if each.shape == array.shape]
        place: Any = (..., *[slice(k, k + 1) for k in j])
        for value in EXTREMES:
            self.draw_all()
            for each in alike:
                fill(each[place], value)
            yield None
        for _ in range(RANDOM_FILLS):
            self.draw_all()
            yield 3
        if any(map(is_square, self.arrays)):
            self.draw_definite()
            yield None
        yield from self._lone_fillings(at)
        yield from self._indexed_fillings(at)
        for _ in range(BORDER_FILLS if self.borders else 0):
            self.draw_borders()
            yield 5
        yield from self._constant_fillings()

    def _indexed_fillings(self, at: ElementIndex) -> Iterator[int | None]:
        """Fill integer operands with indices that may select the element at `at`."""
        integers = [each for each in self.arrays if is_integer(each)]
        rows = {id(each): rows_selecting(each, at) for each in integers}
        for k in range(max(map(len, rows.values()), default=0)):
            self.draw_all()
            for each in integers:
                if rows[id(each)]:
                    each[...] = rows[id(each)][k % len(rows[id(each)])]
            yield 5
        for _ in range(INDEX_FILLS // 2 if integers else 0):
            self.draw_all()
            self.draw_indices()
            yield 5
        for _ in range(INDEX_FILLS if integers else 0):
            self.draw_all()
            for each in integers:
                if self.random.integers(2):
                    each[...] = self.random.choice((0, *at), each.shape).astype(each.dtype)
            yield 5

    def _constant_fillings(self) -> Iterator[int | None]:
        """Fill the operands with one value, and each with a value of its own."""
        for value in CONSTANT_FILLS:
            for each in self.arrays:
                fill(each, value)
            yield None
        for _ in range(UNIFORM_FILLS):
            self.draw_constants()
            yield None

    def _lone_fillings(self, at: ElementIndex) -> Iterator[int | None]:
        """Fill the largest operands with an element at `at` with one value there, one elsewhere.

        The others are random and not 0, so that it shows which of them are added where.
        """
        holders = [
            each
            for each in self.arrays
            if each.ndim == len(at) and all(i < n for i, n in zip(at, each.shape, strict=True))
        ]
        size = max([each.size for each in holders], default=0)
        place: Any = (..., *[slice(k, k + 1) for k in at])
        for others, lone in LONE_VALUES if size > 1 else ():
            self.draw_all()
            for each in self.arrays:
                if each.size < size:
                    each[each == 0] = 1
            for each in holders:
                if each.size == size:
                    less = not fill(each, 2)
                    fill(each, others - less)
                    fill(each[place], lone - less)
            yield None

    def draw_all(self, scale: int = 1) -> None:
        """Fill all operands with random values, floats times `scale`."""
        for each in self.arrays:
            self.draw(each)
            if scale != 1 and each.dtype.kind in "fcV" and not is_integer(each):
                with np.errstate(all="ignore"):
                    each *= each.dtype.type(scale)

    def draw_definite(self) -> None:
        """Fill all operands at random, and add its size to the diagonal of each square matrix."""
        self.draw_all()
        for each in filter(is_square, self.arrays):
            diagonal = np.arange(each.shape[-1])
            each[..., diagonal, diagonal] += each.dtype.type(each.shape[-1])

    def draw_constants(self) -> None:
        """Fill each operand with one value, so that comparisons of operands agree everywhere."""
        for each in self.arrays:
            fill(each, int(self.random.choice((*CONSTANT_FILLS, *EXTREMES))))

    def draw_indices(self) -> None:
        """Fill integer operands with small indices, which are within most bounds."""
        for each in filter(is_integer, self.arrays):
            each[...] = self.random.integers(0, 3, each.shape).astype(each.dtype)

    def draw_borders(self, first: int | None = None) -> None:
        """Fill floats at random, and integers with those at borders of masks.

        Some arrays get one value, others a value for each element.

        Args:
            first: the number of the one value of each array; by default, a random one.
        """
        self.draw_all()
        for k, each in enumerate(filter(is_integer, self.arrays)):
            low, high = limits(each.dtype)
            values = [value for value in (*self.borders, low, high) if low <= value <= high]
            if first is not None and (first < len(values) or not each.shape):
                each[...] = values[(first + 5 * k) % len(values)]
                continue
            shape = each.shape if self.random.integers(3) else ()
            each[...] = self.random.choice(np.array(values, object), shape or None)

    def _moves(
        self, array: Array, output: int, at: ElementIndex, j: ElementIndex, count: int | None
    ) -> bool:
        """Return True if one of the first `count` changes of element `j` changes element `at`."""
        before = self._element(output, at)
        if before is None:
            return False
        self.is_number = self.is_number or bool(before == before)
        old = array[j].copy()
        for value in islice(self._candidates(array, at), count):
            array[j] = value
            after = self._element(output, at)
            array[j] = old
            if after is not None and after != before and not (after != after and before != before):
                return True
        return False

    def _element(self, output: int, at: ElementIndex) -> Any:
        """Return an element of the result; None if the kernel rejects the operands."""
        result = self.result(output)
        if result is None or any(i >= n for i, n in zip(at, result.shape, strict=True)):
            return None
        return result[at].copy()

    def result(self, output: int) -> Array | None:
        """Return a result; None if the kernel rejects the operands."""
        self.runs += 1
        results = self.run()
        return None if results is None else results[output]

    def plain_candidates(self, array: Array) -> Iterator[Array]:
        """Yield few values to change elements to: a random one, large ones, and an extreme."""
        fresh = np.empty((), array.dtype)
        self.draw(fresh)
        yield fresh
        for value in EXTREMES:
            if fill(fresh, value):
                yield fresh
        yield from extremes(array)

    def _candidates(self, array: Array, at: ElementIndex) -> Iterator[Array]:
        """Yield values to change an element to: random ones, then extremes."""
        fresh = np.empty((), array.dtype)
        for _ in range(2):
            self.draw(fresh)
            yield fresh
        for value in dict.fromkeys((0, 1, -1, 2, 100, -100, *at, *self.values)):
            if fill(fresh, value):
                yield fresh
        yield from extremes(array)
