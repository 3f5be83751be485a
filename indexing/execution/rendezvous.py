"""A rendezvous of simulated devices: each is a thread, and waits for the members of its group."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextvars import copy_context
from threading import Condition, Lock, Thread
from typing import TypeVar

from indexing.execution.values import Value

T = TypeVar("T")


class Aborted(Exception):
    """A member of the group has ended or failed, so that the rendezvous never completes."""


class DeviceLimitError(Exception):
    """The system does not start a thread for each device."""


class Meeting:
    """One exchange of values: the members that wait are woken once, when the last one is there.

    Attributes:
        values: the value of each member that is there, by device number.
        missing: the members that are not there yet.
        changed: notified when no member is missing, or when a missing one has ended.
    """

    def __init__(self, members: Sequence[int], lock: Lock) -> None:
        self.values: dict[int, Value] = {}
        self.missing = set(members)
        self.changed = Condition(lock)
        self._computing = Lock()
        self._computed: list[Sequence[Value]] = []

    def once(self, compute: Callable[[], Sequence[T]]) -> list[T]:
        """Return values that are the same for all members; only the first one computes them."""
        with self._computing:
            if not self._computed:
                self._computed.append(compute())
            return list(self._computed[0])


class Rendezvous:
    """Runs devices concurrently and exchanges values between them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._meetings: dict[Hashable, Meeting] = {}
        self._ended: set[int] = set()

    def exchange(
        self, topic: Hashable, number: int, members: Sequence[int], value: Value
    ) -> Meeting:
        """Wait for all members of a topic; return their meeting, with the value of each.

        All devices name the same members of a topic.

        Raises:
            Aborted: a member has ended without reaching the topic.
        """
        with self._lock:
            meeting = self._meetings.setdefault(topic, Meeting(members, self._lock))
            meeting.values[number] = value
            meeting.missing.discard(number)
            if not meeting.missing:
                del self._meetings[topic]
                meeting.changed.notify_all()
            while meeting.missing:
                if meeting.missing & self._ended:
                    ended = min(meeting.missing & self._ended)
                    raise Aborted(f"device {ended} never reaches it")
                meeting.changed.wait()
            return meeting

    def _end(self, numbers: Sequence[int]) -> None:
        """Wake the devices that wait for devices that have ended."""
        with self._lock:
            self._ended.update(numbers)
            for meeting in self._meetings.values():
                if not meeting.missing.isdisjoint(numbers):
                    meeting.changed.notify_all()

    def run_all(self, count: int, work: Callable[[int], T]) -> list[T]:
        """Call ``work(number)`` for `count` devices concurrently; return the results in order.

        Context variables have the caller's values, for example where results are recorded that HLO
        leaves open (`indexing.ops.unspecified`).

        Raises:
            Exception: the error of a device that failed other than by `Aborted`, if any.
            DeviceLimitError: the system does not start as many threads.
        """
        results: dict[int, T] = {}
        faults: dict[int, BaseException] = {}

        def run(number: int) -> None:
            try:
                results[number] = work(number)
            except BaseException as error:  # re-raised below, in the caller's thread
                faults[number] = error
            finally:
                self._end([number])

        threads = [
            Thread(target=copy_context().run, args=(run, number), daemon=True)
            for number in range(count)
        ]
        refusal = self._start(threads)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        if refusal is not None:
            raise refusal
        if faults:
            causes = [e for e in faults.values() if not isinstance(e.__cause__, Aborted)]
            raise [*causes, *faults.values()][0]
        return [results[number] for number in range(count)]

    def _start(self, threads: Sequence[Thread]) -> DeviceLimitError | None:
        """Start the threads of all devices; if one does not start, the rest count as ended."""
        for number, thread in enumerate(threads):
            try:
                thread.start()
            except RuntimeError as error:
                self._end(range(number, len(threads)))
                return DeviceLimitError(f"device {number} of {len(threads)}: {error}")
        return None
