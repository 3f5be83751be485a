"""The converse of the perturbation test: an element that an exact map reads can change the result.

For one element of the result and one element of an operand that an exact map relates, the operands
and the change are varied until the element of the result changes. If it never does, the map is not
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np

from hlo.modules.module import Instruction
from indexing.codegen.differences import ElementIndex
from indexing.codegen.graph import Array
from indexing.dataflow.needed import needed_by
from indexing.maps.indexing_map import IndexingMap

Results: TypeAlias = "Mapping[int, Array] | None"

MAX_DRAWS: Final = 8
"""Number of random elements of the result to find one that a map relates to something."""

RANDOM_FILLS: Final = 3
"""Number of random fillings of all operands."""

INDEX_FILLS: Final = 24
"""Number of fillings of integer operands with parts of an index."""

CONSTANT_FILLS: Final = (0, 1, 2, -1)
"""Values that fill all operands."""

EXTREMES: Final = (100, -100)
"""Values of the elements at the index of the changed one, so that a comparison selects them."""


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
        runs: how often `run` has been called.
    """

    arrays: Sequence[Array]
    run: Callable[[], Results]
    images: Callable[[IndexingMap, ElementIndex], set[ElementIndex] | None]
    draw: Callable[[Array], None]
    random: np.random.Generator
    runs: int = field(default=0, init=False)

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
        if _is_integer(array):
            related.append(tuple([v.lower for v in exact.dims]))
        for at in related:
            images = sorted(self.images(exact, at) or ())
            if images:
                j = images[int(self.random.integers(len(images)))]
                if self._is_seen(array, output, exact, at, j):
                    return None
                unseen = at, j
        return unseen

    def _is_seen(
        self, array: Array, output: int, exact: IndexingMap, at: ElementIndex, j: ElementIndex
    ) -> bool:
        """Return True if a change of operand element `j` changes element `at` of the result.

        With runtime variables, `j` depends on the operands.
        """
        saved = [each.copy() for each in self.arrays]
        try:
            for candidates in self._fillings(array, at, j):
                images = self.images(exact, at) if exact.runtime else None
                place = min(images) if images else j
                if self._moves(array, output, at, place, candidates):
                    return True
        finally:
            for each, old in zip(self.arrays, saved, strict=True):
                each[...] = old
        return False

    def _fillings(self, array: Array, at: ElementIndex, j: ElementIndex) -> Iterator[int | None]:
        """Fill the operands; yield the number of changes to try, None for all.

        * as they are;
        * random, with extremes at index `j`;
        * random;
        * random, with parts of the index `at` in integer operands: indices must select it;
        * constant.
        """
        yield None
        alike = [each for each in self.arrays if each.shape == array.shape]
        place: Any = (..., *[slice(k, k + 1) for k in j])
        for value in EXTREMES:
            self._draw_all()
            for each in alike:
                _fill(each[place], value)
            yield None
        for _ in range(RANDOM_FILLS):
            self._draw_all()
            yield 3
        integers = [each for each in self.arrays if _is_integer(each)]
        for _ in range(INDEX_FILLS if integers else 0):
            self._draw_all()
            for each in integers:
                if self.random.integers(2):
                    each[...] = self.random.choice((0, *at), each.shape).astype(each.dtype)
            yield 3
        for value in CONSTANT_FILLS:
            for each in self.arrays:
                _fill(each, value)
            yield None

    def _draw_all(self) -> None:
        for each in self.arrays:
            self.draw(each)

    def _moves(
        self, array: Array, output: int, at: ElementIndex, j: ElementIndex, count: int | None
    ) -> bool:
        """Return True if one of the first `count` changes of element `j` changes element `at`."""
        before = self._element(output, at)
        if before is None:
            return False
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
        self.runs += 1
        results = self.run()
        if results is None or any(i >= n for i, n in zip(at, results[output].shape, strict=True)):
            return None
        return results[output][at].copy()

    def _candidates(self, array: Array, at: ElementIndex) -> Iterator[Array]:
        """Yield values to change an element to: random ones, then extremes."""
        fresh = np.empty((), array.dtype)
        for _ in range(2):
            self.draw(fresh)
            yield fresh
        for value in dict.fromkeys((0, 1, -1, 2, 100, -100, *at)):
            if _fill(fresh, value):
                yield fresh
        if _is_integer(array):
            yield np.asarray(np.iinfo(array.dtype).max, array.dtype)
        elif array.dtype.kind in "fcV":
            yield np.asarray(np.nan).astype(array.dtype)


def may_hide_elements(instruction: Instruction) -> bool:
    """Return True if called computations may hide the elements that they read.

    ``v * 0`` depends on v, but no value of v changes it.  A computation of which some result
    depends on some parameters only is not trusted to do this: the maps may have missed that.
    """
    called = instruction.called_computations
    return bool(called) and all(
        set(each.parameters) <= set(needed_by([result]))
        for each in called
        for result in (each.root.operands if each.root.opcode == "tuple" else [each.root])
    )


def may_hide_changes(operands: Sequence[Array], results: Iterable[Array]) -> bool:
    """Return True if a change of an element that is read may have no effect on the result.

    Floats of less than 16 bits round or saturate, sums of narrow integers and booleans saturate,
    and a mean over no elements is not a number.

    >>> wide, narrow, none = np.zeros(3, np.float32), np.zeros(3, np.int8), np.zeros(0, np.float32)
    >>> may_hide_changes([wide, narrow], [wide]), may_hide_changes([narrow], [narrow])
    (False, True)
    >>> may_hide_changes([wide, none], [wide])
    True
    """
    arrays = [*operands, *results]
    return (
        any(array.size == 0 for array in arrays)
        or any(_is_narrow(array) and array.dtype.kind not in "iub" for array in arrays)
        or all(map(_is_narrow, operands))
    )


def _is_narrow(array: Array) -> bool:
    return array.dtype.itemsize < 2


def _is_integer(array: Array) -> bool:
    return array.dtype.kind in "iu"


def _fill(array: Array, value: int) -> bool:
    """Set all elements of an array, unless its type lacks the value; return True if it is set."""
    if array.dtype.kind in "ub" and not 0 <= value <= (1 if array.dtype.kind == "b" else 127):
        return False
    if array.dtype.kind == "i" and abs(value) > np.iinfo(array.dtype).max:
        return False
    array[...] = np.asarray(value).astype(array.dtype)
    return True
