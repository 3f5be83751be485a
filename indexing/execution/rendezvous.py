"""Where simulated devices exchange values: each is a thread, and waits for those of its group."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Condition, Thread
from typing import TypeVar

from indexing.execution.values import Value

T = TypeVar("T")


class Aborted(Exception):
    """A device of the group has ended or failed, so that the rendezvous never completes."""


class Rendezvous:
    """Devices that run at the same time, and what they tell each other."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._brought: dict[Hashable, dict[int, Value]] = {}
        self._left: dict[Hashable, int] = {}
        self._gone: set[int] = set()

    def exchange(
        self, topic: Hashable, number: int, members: Sequence[int], value: Value
    ) -> dict[int, Value]:
        """What each member brings to a topic, by their numbers; waits until all are there.

        Raises:
            Aborted: one of them will never come.
        """
        with self._changed:
            brought = self._brought.setdefault(topic, {})
            brought[number] = value
            self._changed.notify_all()
            while missing := set(members) - brought.keys():
                if missing & self._gone:
                    raise Aborted(f"device {min(missing & self._gone)} does not come to it")
                self._changed.wait()
            self._left[topic] = self._left.get(topic, 0) + 1
            if self._left[topic] == len(members):
                del self._brought[topic], self._left[topic]
            return dict(brought)

    def together(self, count: int, work: Callable[[int], T]) -> list[T]:
        """``work(number)`` of `count` devices at the same time.

        Raises:
            Exception: what the first device that failed on its own account has raised.
        """
        results: dict[int, T] = {}
        faults: dict[int, BaseException] = {}

        def run(number: int) -> None:
            try:
                results[number] = work(number)
            except BaseException as error:  # raised again below, in the caller's thread
                faults[number] = error
            finally:
                with self._changed:
                    self._gone.add(number)
                    self._changed.notify_all()

        threads = [Thread(target=run, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if faults:
            causes = [e for e in faults.values() if not isinstance(e.__cause__, Aborted)]
            raise [*causes, *faults.values()][0]
        return [results[number] for number in range(count)]
