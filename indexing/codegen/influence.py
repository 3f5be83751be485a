"""The converse of the perturbation test: an element that an exact map reads can change the result.

For one element of the result and one element of an operand that an exact map relates, the operands
and the change are varied until the element of the result changes. If it never does, the map is not
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, permutations
from typing import Any, Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation, Instruction
from indexing.codegen.differences import ElementIndex
from indexing.codegen.graph import Array
from indexing.dataflow.needed import needed_by
from indexing.execution import random_inputs, run
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.numerics import is_integer, limits

Results: TypeAlias = "Mapping[int, Array] | None"

MAX_DRAWS: Final = 8
"""Number of random elements of the result to find one that a map relates to something."""

RANDOM_FILLS: Final = 3
"""Number of random fillings of all operands."""

INDEX_FILLS: Final = 24
"""Number of fillings of integer operands with parts of an index: of their rows, and elements."""

CONSTANT_FILLS: Final = (0, 1, 2, -1)
"""Values that fill all operands."""

SCALAR_DRAWS: Final = 40
"""Number of random values of the parameters of a called computation."""

UNIFORM_FILLS: Final = 12
"""Number of fillings of each operand with a value of its own."""

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
        values: further values of elements, such as those with which the program compares.
        runs: how often `run` has been called.
    """

    arrays: Sequence[Array]
    run: Callable[[], Results]
    images: Callable[[IndexingMap, ElementIndex], set[ElementIndex] | None]
    draw: Callable[[Array], None]
    random: np.random.Generator
    values: Sequence[float] = ()
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
        self, array: Array, output: int, exact: IndexingMap, at: ElementIndex, j: ElementIndex
    ) -> bool:
        """Return True if a change of operand element `j` changes element `at` of the result.

        With runtime variables, `j` depends on the operands.
        """
        with self.restore_after():
            for candidates in self._fillings(array, at, j):
                images = self.images(exact, at) if exact.runtime else None
                place = min(images) if images else j
                if self._moves(array, output, at, place, candidates):
                    return True
        return False

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
        * random, with the index `at` in the rows of integer operands: indices must select it;
        * random, with small integers, or parts of the index, in their elements;
        * constant;
        * constant, with another value in each operand: all elements of a comparison are alike.
        """
        yield None
        alike = [each for each in self.arrays if each.shape == array.shape]
        place: Any = (..., *[slice(k, k + 1) for k in j])
        for value in EXTREMES:
            self.draw_all()
            for each in alike:
                _fill(each[place], value)
            yield None
        for _ in range(RANDOM_FILLS):
            self.draw_all()
            yield 3
        yield from self._indexed_fillings(at)
        yield from self._constant_fillings()

    def _indexed_fillings(self, at: ElementIndex) -> Iterator[int | None]:
        """Fill integer operands with indices that may select the element at `at`."""
        integers = [each for each in self.arrays if is_integer(each)]
        rows = {id(each): _rows(each, at) for each in integers}
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
                _fill(each, value)
            yield None
        for _ in range(UNIFORM_FILLS):
            self.draw_constants()
            yield None

    def draw_all(self, scale: int = 1) -> None:
        """Fill all operands with random values, floats times `scale`."""
        for each in self.arrays:
            self.draw(each)
            if scale != 1 and each.dtype.kind in "fcV" and not is_integer(each):
                with np.errstate(all="ignore"):
                    each *= each.dtype.type(scale)

    def draw_constants(self) -> None:
        """Fill each operand with one value, so that comparisons of operands agree everywhere."""
        for each in self.arrays:
            _fill(each, int(self.random.choice((*CONSTANT_FILLS, *EXTREMES))))

    def draw_indices(self) -> None:
        """Fill integer operands with small indices, which are within most bounds."""
        for each in filter(is_integer, self.arrays):
            each[...] = self.random.integers(0, 3, each.shape).astype(each.dtype)

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
            if _fill(fresh, value):
                yield fresh
        yield from _extremes(array)

    def _candidates(self, array: Array, at: ElementIndex) -> Iterator[Array]:
        """Yield values to change an element to: random ones, then extremes."""
        fresh = np.empty((), array.dtype)
        for _ in range(2):
            self.draw(fresh)
            yield fresh
        for value in dict.fromkeys((0, 1, -1, 2, 100, -100, *at, *self.values)):
            if _fill(fresh, value):
                yield fresh
        yield from _extremes(array)


def may_hide_elements(instruction: Instruction) -> bool:
    """Return True if called computations may hide the elements that they read.

    ``v * 0`` depends on v, but no value of v changes it.  A computation of which some result
    depends on some parameters only is not trusted to do this: the maps may have missed that.
    """
    called = instruction.called_computations
    return bool(called) and all(
        set(each.parameters) <= set(needed_by([result]))
        for each in called
        for result in _results(each)
    )


def _results(computation: Computation) -> Sequence[Instruction]:
    """Return the results of a computation of scalars."""
    root = computation.root
    return root.operands if root.opcode == "tuple" else [root]


def hides_parameters(computation: Computation) -> bool:
    """Return True if a parameter of scalars changes no result that depends on it, as far as tried.

    >>> import hlo, indexing.ops
    >>> entry = hlo.parse('''ENTRY e { p = pred[] parameter(0)  x = f32[] parameter(1)
    ...   ROOT s = f32[] select(p, x, x) }''').entry
    >>> hides_parameters(entry)
    True
    """
    parameters = computation.parameters
    depends = {
        (k, j)
        for j, result in enumerate(_results(computation))
        for k in range(len(parameters))
        if parameters[k] in needed_by([result])
    }
    for seed in range(SCALAR_DRAWS):
        inputs, others = (
            random_inputs(computation, seed),
            random_inputs(computation, SCALAR_DRAWS + seed),
        )
        before = run(computation, inputs)
        for k in {k for k, _ in depends}:
            after = run(computation, [*inputs[:k], others[k], *inputs[k + 1 :]])
            pairs = enumerate(zip(before, after, strict=True))
            depends -= {(k, j) for j, (one, other) in pairs if one.tobytes() != other.tobytes()}
    return bool(depends)


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


def _rows(array: Array, at: ElementIndex) -> list[Array]:
    """Return rows of an array of indices that select the element at `at`, in any order.

    The start of a window that fills its dimension is 0.

    >>> for row in _rows(np.zeros((4, 2), np.int32), (5, 7)):
    ...     print(*row, end="  ")
    0 5  0 7  5 0  5 7  7 0  7 5
    """
    width = array.shape[-1] if array.shape else 1
    rows = [
        np.array(row).astype(array.dtype)
        for row in islice(permutations((0, *at), width), INDEX_FILLS)
    ]
    return [row if array.shape else row[0] for row in rows]


def _is_narrow(array: Array) -> bool:
    return array.dtype.itemsize < 2


def _extremes(array: Array) -> Iterator[Array]:
    """Yield the largest integer, or else the infinities and a NaN, of the type of an array."""
    if is_integer(array):
        yield np.asarray(limits(array.dtype)[1]).astype(array.dtype)
    elif array.dtype.kind in "fcV":
        for value in (np.nan, np.inf, -np.inf):
            with np.errstate(all="ignore"):
                yield np.asarray(value).astype(array.dtype)


def _fill(array: Array, value: float) -> bool:
    """Set all elements of an array, unless its type lacks the value; return True if it is set."""
    if array.dtype.kind == "b" and not 0 <= value <= 1:
        return False
    if is_integer(array):
        least, largest = limits(array.dtype)
        if not least <= value <= largest:
            return False
    with np.errstate(all="ignore"):
        array[...] = np.asarray(value).astype(array.dtype)
    return True
