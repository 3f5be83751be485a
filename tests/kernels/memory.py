"""Values of lanes and buffers of the interpreter of kernels, with the races between threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NOBODY, MANY = -1, -2
Array = np.ndarray[Any, np.dtype[Any]]


class KernelFault(Exception):
    """A kernel does what none may do; `kind` is a word, `witness` the point and the element."""

    def __init__(self, kind: str, what: str, **witness: Any) -> None:
        super().__init__(f"{kind}: {what} {witness or ''}".strip())
        self.kind, self.witness = kind, witness


class NotExecutable(Exception):
    """The interpreter does not cover an op."""


class NeedsOrder(Exception):
    """Iterations of a loop touch one element, so they must run one after the other."""


@dataclass(frozen=True, slots=True)
class Held:
    """A value of each lane; `data` has one row a lane, or one for all lanes.

    Attributes:
        ok: which elements are defined; None if all are.
    """

    data: Array
    ok: Array | None = None

    def rows(self, lanes: Array) -> Held:
        """Return the value of some lanes."""
        if len(self.data) == 1:
            return self
        return Held(self.data[lanes], None if self.ok is None else self.ok[lanes])

    def full(self, count: int) -> Held:
        """Return the value with a row for each lane, to be written into."""
        shape = (count, *self.data.shape[1:])
        ok = None if self.ok is None else np.broadcast_to(self.ok, shape).copy()
        return Held(np.broadcast_to(self.data, shape).copy(), ok)

    def merge(self, lanes: Array, part: Held, count: int) -> Held:
        """Return the value with that of some lanes replaced."""
        whole = self.full(count)
        whole.data[lanes] = part.data
        if whole.ok is None and part.ok is None:
            return whole
        ok = np.ones(whole.data.shape, bool) if whole.ok is None else whole.ok
        ok[lanes] = True if part.ok is None else part.ok
        return Held(whole.data, ok)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes that execute: the block and the thread of each, and its iteration.

    Attributes:
        instance: the loop whose iterations are lanes; 0 if none.
        iteration: the number of the iteration, which differs between lanes of an instance.
    """

    block: Array
    thread: Array
    iteration: Array
    instance: int = 0

    def __len__(self) -> int:
        return len(self.block)

    def some(self, which: Array) -> Lanes:
        """Return some of the lanes."""
        return Lanes(self.block[which], self.thread[which], self.iteration[which], self.instance)

    def witness(self, lane: int) -> dict[str, int]:
        """Return the point of a lane."""
        return {"block": int(self.block[lane]), "thread": int(self.thread[lane])}


@dataclass(eq=False)
class Memory:
    """A buffer: of an argument (one row), or a shared tile (a row for each block).

    Attributes:
        data, ok: the elements in logical row-major order, and which are defined.
        written: which elements the kernel has written.
        is_tracked: False for memory that no op writes.
    """

    name: str
    dims: tuple[int, ...]
    data: Array
    ok: Array
    is_shared: bool = False
    is_tracked: bool = True
    notes: set[str] = field(default_factory=set)
    trace: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.written = np.zeros(self.data.shape, bool)
        for who in ("writer", "reader"):
            self.trace[who] = np.full(self.data.shape, NOBODY)
            for what in ("block", "interval", "iteration", "instance"):
                self.trace[who + what] = np.zeros(self.data.shape, np.int64)

    # ------------------------------------------------------------ places

    def places(self, index: Sequence[Array], lanes: Lanes, what: str) -> tuple[Array, Array]:
        """Return row and position of elements that must be in bounds."""
        if len(index) != len(self.dims):
            raise NotExecutable(f"{len(index)} indices of {len(self.dims)} dimensions")
        flat = np.zeros(len(lanes), np.int64)
        for k, (i, size) in enumerate(zip(index, self.dims, strict=True)):
            outside = (i < 0) | (i >= size)
            if outside.any():
                lane = int(np.argmax(np.broadcast_to(outside, len(lanes))))
                element = [int(np.broadcast_to(j, len(lanes))[lane]) for j in index]
                raise KernelFault(
                    "bounds", f"{what} of {self.name} {self.dims}, dimension {k}",
                    **lanes.witness(lane), element=element,
                )  # fmt: skip
            flat = flat * size + i
        row = lanes.block if self.is_shared else np.zeros(len(lanes), np.int64)
        return row, np.broadcast_to(flat, len(lanes))

    # ------------------------------------------------------------ accesses

    def read(self, index: Sequence[Array], lanes: Lanes, intervals: Array) -> Held:
        """Return an element for each lane."""
        place = self.places(index, lanes, "read")
        if self.is_tracked:
            race = self._clash("writer", place, lanes, intervals)
            if race.any():
                self._race("reads what another thread writes", race, place, lanes)
            self._mark("reader", place, lanes, intervals)
        ok = self.ok[place]
        return Held(self.data[place], None if ok.all() else ok)

    def write(
        self, index: Sequence[Array], value: Held, lanes: Lanes, intervals: Array,
        is_atomic: bool = False,
    ) -> None:  # fmt: skip
        """Write an element for each lane."""
        place = self.places(index, lanes, "write")
        data = np.broadcast_to(value.data, len(lanes))
        ok = np.broadcast_to(True if value.ok is None else value.ok, len(lanes))
        if not self.is_shared and not ok.all():
            lane = int(np.argmin(ok))
            element = self._element(place, lane)
            raise KernelFault("undefined", f"an undefined value is stored to {self.name}",
                              **lanes.witness(lane), element=element)  # fmt: skip
        if not is_atomic:
            self._check_write(place, data, lanes, intervals)
        self.data[place], self.ok[place], self.written[place] = data, ok, True
        self._mark("writer", place, lanes, intervals)

    def _check_write(self, place: tuple[Array, Array], data: Array, lanes: Lanes,
                     intervals: Array) -> None:  # fmt: skip
        key = place[0] * self.data.shape[1] + place[1]
        order = np.argsort(key, kind="stable")
        twice = order[1:][key[order][1:] == key[order][:-1]]
        if len(twice):
            self._check_twice(order, key, place, data, lanes)
        race = self._clash("writer", place, lanes, intervals)
        if race.any():
            same = _same_bits(self.data[place], data)
            self.notes.add("one value is written twice")
            if not same[race].all():
                self._race("is written by two threads", race & ~same, place, lanes)
        race = self._clash("reader", place, lanes, intervals)
        if race.any():
            self._race("is overwritten while another thread reads it", race, place, lanes)

    def _check_twice(self, order: Array, key: Array, place: tuple[Array, Array], data: Array,
                     lanes: Lanes) -> None:  # fmt: skip
        one, other = order[:-1], order[1:]
        equal = key[one] == key[other]
        one, other = one[equal], other[equal]
        if (self._threads(lanes)[one] == self._threads(lanes)[other]).any():
            raise NeedsOrder
        self.notes.add("one value is written twice")
        different = ~_same_bits(data[one], data[other])
        if different.any():
            race = np.zeros(len(lanes), bool)
            race[other[different]] = True
            self._race("is written by two threads", race, place, lanes)

    # ------------------------------------------------------------ traces

    def _threads(self, lanes: Lanes) -> Array:
        return np.asarray(lanes.block * 2048 + lanes.thread)

    def _mix(self, who: str, place: tuple[Array, Array], lanes: Lanes) -> Array:
        """Return where another iteration of the same thread and loop has accessed an element."""
        mixed = (
            (self.trace[who][place] == self._threads(lanes))
            & (self.trace[who + "instance"][place] == lanes.instance)
            & (self.trace[who + "iteration"][place] != lanes.iteration)
            & (lanes.instance > 0)
        )
        return np.asarray(mixed)

    def _others(
        self, who: str, place: tuple[Array, Array], lanes: Lanes, intervals: Array
    ) -> Array:
        """Return where another thread has accessed an element, with no barrier between."""
        earlier = self.trace[who][place]
        same_block = self.trace[who + "block"][place] == lanes.block
        before = self.trace[who + "interval"][place] < intervals[lanes.block]
        is_other = (earlier != NOBODY) & (earlier != self._threads(lanes))
        return np.asarray(is_other & ~(same_block & before))

    def _clash(self, who: str, place: tuple[Array, Array], lanes: Lanes, intervals: Array) -> Array:
        if self._mix(who, place, lanes).any():
            raise NeedsOrder
        return self._others(who, place, lanes, intervals)

    def _mark(self, who: str, place: tuple[Array, Array], lanes: Lanes, intervals: Array) -> None:
        """Keep who accessed each element last; of readers, whether there are many."""
        threads, trace = self._threads(lanes), self.trace
        value, iteration = threads, lanes.iteration
        if who == "reader":
            mixed = self._mix(who, place, lanes)
            value = np.where(self._others(who, place, lanes, intervals), MANY, threads)
            key = place[0] * self.data.shape[1] + place[1]
            _, back, counts = np.unique(key, return_inverse=True, return_counts=True)
            low, high = (np.full(len(counts), threads[0]) for _ in range(2))
            low[back], high[back] = threads, threads
            np.minimum.at(low, back, threads)
            np.maximum.at(high, back, threads)
            value = np.where((low != high)[back], MANY, value)
            iteration = np.where(mixed | (counts[back] > 1), -1, iteration)
        trace[who][place] = value
        trace[who + "block"][place] = lanes.block
        trace[who + "interval"][place] = intervals[lanes.block]
        trace[who + "iteration"][place] = iteration
        trace[who + "instance"][place] = lanes.instance

    def _element(self, place: tuple[Array, Array], lane: int) -> list[int]:
        return [int(i) for i in np.unravel_index(int(place[1][lane]), self.dims or (1,))]

    def _race(self, what: str, race: Array, place: tuple[Array, Array], lanes: Lanes) -> None:
        lane = int(np.argmax(race))
        raise KernelFault("race", f"an element of {self.name} {what}",
                          **lanes.witness(lane), element=self._element(place, lane))  # fmt: skip


def _same_bits(one: Array, other: Array) -> Array:
    if one.dtype.kind in "fcV":
        return np.asarray((one == other) | ((one != one) & (other != other)))
    return np.asarray(one == other)
