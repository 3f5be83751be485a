"""Values of lanes, and memory with the threads that accessed each element, on NumPy.

A lane is a thread of a block, at an iteration of the loops that are executed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_NO_THREAD: Final = -1
_SEVERAL: Final = -2


class NotExecuted(Exception):
    """A kernel has an op or a size that the execution does not cover."""


class IterationsDepend(Exception):
    """Iterations that are executed at once access one element, and one of them writes it."""


class KernelFault(Exception):
    """A lane does what no kernel may do.

    Attributes:
        block, thread: the numbers of the lane's block and thread.
        element: the element that it accesses.
    """

    def __init__(
        self, what: str, block: int, thread: int, element: tuple[int, ...] | None = None
    ) -> None:
        super().__init__(what)
        self.what, self.block, self.thread, self.element = what, block, thread, element


@dataclass(frozen=True, slots=True)
class LaneValue:
    """A value of each lane.

    Attributes:
        data: a row for each lane, or one row that all lanes share.
        defined: which elements are defined, in a shape that broadcasts; None if all are.
    """

    data: Array
    defined: Array | None = None

    def rows(self, lanes: Array) -> LaneValue:
        """Return the value of some lanes."""

        def some(array: Array) -> Array:
            return array if len(array) == 1 else array[lanes]

        return LaneValue(some(self.data), None if self.defined is None else some(self.defined))

    def full(self, count: int) -> LaneValue:
        """Return a copy with a row for each lane."""
        shape = count, *self.data.shape[1:]
        known = None if self.defined is None else np.broadcast_to(self.defined, shape).copy()
        return LaneValue(np.broadcast_to(self.data, shape).copy(), known)

    def mask(self) -> Array:
        """Return which elements are defined, in the shape of the data."""
        known = True if self.defined is None else self.defined
        return np.broadcast_to(np.asarray(known), self.data.shape)

    def updated(self, lanes: Array, part: LaneValue, count: int) -> LaneValue:
        """Return the value with that of some lanes replaced."""
        whole = self.full(count)
        whole.data[lanes] = part.data
        if whole.defined is None and part.defined is None:
            return whole
        known = whole.mask().copy()
        known[lanes] = part.mask()
        return LaneValue(whole.data, known)

    def moved(self, function: Any) -> LaneValue:
        """Return the value with its elements moved by a function of arrays."""
        if self.defined is None:
            return LaneValue(function(self.data))
        return LaneValue(function(self.data), function(self.mask()))


def all_defined(*values: LaneValue) -> Array | None:
    """Return where all values are defined; None if they are everywhere."""
    known: Array | None = None
    for value in values:
        if value.defined is not None:
            known = value.defined if known is None else known & value.defined
    return known


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes that execute an op.

    Attributes:
        block, thread: the numbers of the block and of the thread in it.
        iteration: the number of the iteration, if iterations are executed at once.
        loop: the number of the loop whose iterations they are; 0 for none.
    """

    block: Array
    thread: Array
    iteration: Array
    loop: int = 0

    def __len__(self) -> int:
        return len(self.block)

    def some(self, which: Array) -> Lanes:
        """Return some of the lanes."""
        return replace(
            self, block=self.block[which], thread=self.thread[which],
            iteration=self.iteration[which],
        )  # fmt: skip

    def fault(self, what: str, lane: int, element: Sequence[int] | None = None) -> KernelFault:
        """Return the fault of one lane."""
        at = None if element is None else tuple([int(i) for i in element])
        return KernelFault(what, int(self.block[lane]), int(self.thread[lane]), at)


class _Accessors:
    """For each element of memory, the last access of a kind: by which thread, and when."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.thread = np.full(shape, _NO_THREAD, np.int64)
        self.block, self.interval, self.iteration, self.loop, self._scratch = (
            np.zeros(shape, np.int64) for _ in range(5)
        )

    def others(self, place: tuple[Array, Array], lanes: Lanes, interval: Array) -> Array:
        """Return which lanes access what another thread accessed, no barrier between."""
        thread, block = self.thread[place], self.block[place]
        is_other = (thread != _NO_THREAD) & ((thread != lanes.thread) | (block != lanes.block))
        is_before = (block == lanes.block) & (self.interval[place] < interval)
        return np.asarray(is_other & ~is_before)

    def iterations(self, place: tuple[Array, Array], lanes: Lanes) -> Array:
        """Return which lanes access what another iteration of their thread accessed."""
        if not lanes.loop:
            return np.zeros(len(lanes), bool)
        same = (self.thread[place] == lanes.thread) & (self.block[place] == lanes.block)
        return np.asarray(
            same & (self.loop[place] == lanes.loop) & (self.iteration[place] != lanes.iteration)
        )

    def mark_writes(self, place: tuple[Array, Array], lanes: Lanes, interval: Array) -> None:
        """Keep the accesses of lanes to elements that are different, or have the same value."""
        self._keep(place, lanes, interval, lanes.thread, lanes.iteration)

    def mark_reads(self, place: tuple[Array, Array], lanes: Lanes, interval: Array) -> None:
        """Keep the accesses of lanes; of an element that several threads read, that they do."""
        seen = self.others(place, lanes, interval)
        again = self.iterations(place, lanes)
        number = lanes.block * (int(lanes.thread.max(initial=0)) + 1) + lanes.thread
        thread = np.where(self._differs_at(place, number) | seen, _SEVERAL, lanes.thread)
        iteration = lanes.iteration
        if lanes.loop:
            iteration = np.where(self._differs_at(place, iteration) | again, -1, iteration)
        self._keep(place, lanes, interval, thread, iteration)

    def _keep(self, place: tuple[Array, Array], lanes: Lanes, interval: Array, thread: Array,
              iteration: Array) -> None:  # fmt: skip
        self.thread[place], self.iteration[place] = thread, iteration
        self.block[place], self.interval[place] = lanes.block, interval
        self.loop[place] = lanes.loop

    def _differs_at(self, place: tuple[Array, Array], numbers: Array) -> Array:
        """Return which lanes access an element that a lane of another number accesses."""
        self._scratch[place] = numbers
        differs = self._scratch[place] != numbers
        self._scratch[place] = 0
        self._scratch[tuple([p[differs] for p in place])] = 1
        return np.asarray(self._scratch[place] == 1)

    def repeated(self, place: tuple[Array, Array]) -> Array:
        """Return which lanes but one for each element access an element together."""
        numbers = np.arange(len(place[1]))
        self._scratch[place] = numbers
        return np.asarray(self._scratch[place] != numbers)


@dataclass(eq=False)
class LaneMemory:
    """Memory of arguments, with one row, or a tile of shared memory, with a row for each block.

    Attributes:
        dims: the sizes of the tensor.
        data, defined: the elements in row-major order of the indices, and which are defined.
        is_tracked: False for memory that the kernel does not write.
    """

    name: str
    dims: tuple[int, ...]
    data: Array
    defined: Array
    is_shared: bool = False
    is_tracked: bool = True
    readers: _Accessors = field(init=False)
    writers: _Accessors = field(init=False)

    def __post_init__(self) -> None:
        shape = self.data.shape if self.is_tracked else (1, 1)
        self.readers, self.writers = _Accessors(shape), _Accessors(shape)

    def place(self, index: Sequence[Array], lanes: Lanes, verb: str) -> tuple[Array, Array]:
        """Return row and position of an element for each lane.

        Raises:
            KernelFault: an element is out of bounds.
        """
        if len(index) != len(self.dims):
            raise NotExecuted(f"{len(index)} indices of a tensor of rank {len(self.dims)}")
        at = np.zeros(len(lanes), np.int64)
        for each, size in zip(index, self.dims, strict=True):
            outside = np.broadcast_to((each < 0) | (each >= size), len(lanes))
            if outside.any():
                lane = int(np.argmax(outside))
                element = [np.broadcast_to(i, len(lanes))[lane] for i in index]
                raise lanes.fault(
                    f"an element of {self.name} out of bounds is {verb}", lane, element
                )
            at = at * size + each
        row = lanes.block if self.is_shared else np.zeros(len(lanes), np.int64)
        return row, np.broadcast_to(at, len(lanes))

    def element(self, place: tuple[Array, Array], lane: int) -> tuple[int, ...]:
        """Return the element that a lane accesses."""
        return tuple([int(i) for i in np.unravel_index(int(place[1][lane]), self.dims)])

    def read(self, place: tuple[Array, Array], lanes: Lanes, interval: Array) -> LaneValue:
        """Return the elements at a place for each lane.

        Raises:
            KernelFault: another thread writes an element, and no barrier is between.
        """
        if self.is_tracked:
            self._check(self.writers, place, lanes, interval, "read while another thread writes it")
            self.readers.mark_reads(place, lanes, interval)
        known = self.defined[place]
        return LaneValue(self.data[place], None if known.all() else known)

    def write(
        self, place: tuple[Array, Array], value: LaneValue, lanes: Lanes, interval: Array
    ) -> None:
        """Write the elements at a place; several lanes may write the same value.

        Raises:
            KernelFault: another thread reads an element, or writes another value to it, and no
                barrier is between.
        """
        if not self.is_tracked:
            raise NotExecuted("memory is written that is declared as invariant")
        data = np.broadcast_to(value.data, len(lanes))
        known = np.broadcast_to(True if value.defined is None else value.defined, len(lanes))
        if self.writers.repeated(place).any():
            self._check_repeated(place, data, lanes)
        if self.writers.iterations(place, lanes).any():
            raise IterationsDepend
        apart = self.writers.others(place, lanes, interval) & ~_same(self.data[place], data)
        self._raise_at(apart, place, lanes, "written with different values by two threads")
        self._check(self.readers, place, lanes, interval, "written while another thread reads it")
        self.store(place, data, known, lanes, interval)

    def store(
        self, place: tuple[Array, Array], data: Array, known: Array, lanes: Lanes, interval: Array
    ) -> None:
        """Write elements without a check of other accesses, as an atomic op does."""
        self.data[place], self.defined[place] = data, known
        self.writers.mark_writes(place, lanes, interval)

    def _check(
        self, accessors: _Accessors, place: tuple[Array, Array], lanes: Lanes, interval: Array,
        what: str,
    ) -> None:  # fmt: skip
        if accessors.iterations(place, lanes).any():
            raise IterationsDepend
        self._raise_at(accessors.others(place, lanes, interval), place, lanes, what)

    def _raise_at(self, where: Array, place: tuple[Array, Array], lanes: Lanes, what: str) -> None:
        if where.any():
            lane = int(np.argmax(where))
            element = self.element(place, lane)
            raise lanes.fault(f"race: an element of {self.name} is {what}", lane, element)

    def _check_repeated(self, place: tuple[Array, Array], data: Array, lanes: Lanes) -> None:
        """Check elements that several lanes write at once."""
        key = place[0] * self.data.shape[1] + place[1]
        order = np.argsort(key, kind="stable")
        equal = key[order][1:] == key[order][:-1]
        one, other = order[:-1][equal], order[1:][equal]
        same = (lanes.thread[one] == lanes.thread[other]) & (lanes.block[one] == lanes.block[other])
        if same.any():
            raise IterationsDepend
        apart = np.zeros(len(lanes), bool)
        apart[other] = ~_same(data[one], data[other])
        self._raise_at(apart, place, lanes, "written with different values by two threads")


def _same(one: Array, other: Array) -> Array:
    return np.asarray((one == other) | ((one != one) & (other != other)))
