"""A rendezvous of simulated devices: each is a thread, and waits for the members of its group."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextvars import copy_context
from threading import Condition, Thread
from typing import TypeVar

from indexing.execution.values import Value

T = TypeVar("T")


class Aborted(Exception):
    """A member of the group has ended or failed, so that the rendezvous never completes."""


class DeviceLimitError(Exception):
    """The system does not start a thread for each device."""


class Rendezvous:
    """Runs devices concurrently and exchanges values between them."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._values: dict[Hashable, dict[int, Value]] = {}
        self._left: dict[Hashable, int] = {}
        self._ended: set[int] = set()

    def exchange(
        self, topic: Hashable, number: int, members: Sequence[int], value: Value
    ) -> dict[int, Value]:
        """Wait for all members of a topic; return the value of each, by device number.

        Raises:
            Aborted: a member has ended without reaching the topic.
        """
        with self._changed:
            values = self._values.setdefault(topic, {})
            values[number] = value
            self._changed.notify_all()
            while missing := set(members) - values.keys():
                if missing & self._ended:
                    raise Aborted(f"device {min(missing & self._ended)} never reaches it")
                self._changed.wait()
            self._left[topic] = self._left.get(topic, 0) + 1
            if self._left[topic] == len(members):
                del self._values[topic], self._left[topic]
            return dict(values)

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
                with self._changed:
                    self._ended.add(number)
                    self._changed.notify_all()

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
                with self._changed:
                    self._ended.update(range(number, len(threads)))
                    self._changed.notify_all()
                return DeviceLimitError(f"device {number} of {len(threads)}: {error}")
        return None
