"""A client of a cluster whose workers are coroutines, which die, leave and pause as a test says."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, TypeAlias

from indexing.cli.dispatch import compute

Event: TypeAlias = dict[str, Any]


class FakeFuture:
    """A task at a worker; `number` is None for the question for its versions."""

    def __init__(self, number: int | None, value: Any, worker: FakeWorker) -> None:
        self.number, self.value, self.worker = number, value, worker
        self.is_done = asyncio.Event()
        self.is_released = False

    def release(self) -> None:
        self.is_released = True


class FakeWorker:
    """A worker, which computes its tasks in their order."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.tasks: asyncio.Queue[FakeFuture] = asyncio.Queue()
        self.is_running = asyncio.Event()
        self.is_running.set()
        self.is_alive = True
        self.work: asyncio.Future[None] | None = None


class FakeClient:
    """A client of `count` workers, as `distributed.Client`.

    Args:
        count: the number of workers; one that leaves is replaced by another.
        respond: called in a worker with its next number; it may call `leave` or `pause`.
        latency: the turns of the event loop until a result is received.
    """

    def __init__(
        self, count: int, respond: Callable[[FakeWorker, int], Awaitable[None]], latency: int = 0
    ) -> None:
        self.status = "running"
        self.respond = respond
        self.latency = latency
        self.workers: dict[str, FakeWorker] = {}
        self.all_workers: dict[str, FakeWorker] = {}  # also dead ones
        self.handlers: dict[str, Callable[[tuple[float, Event]], None]] = {}
        self.names = iter(range(10**6))
        self.deaths = 0
        self.most_tasks = 0  # that a worker had at a time
        self.computed: list[tuple[str, int]] = []
        self._loop = asyncio.new_event_loop()
        self.loop = SimpleNamespace(asyncio_loop=self._loop)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        for _ in range(count):
            asyncio.run_coroutine_threadsafe(self.join(), self._loop).result()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    # --- the interface of a client -------------------------------------------------------------

    def subscribe_topic(self, topic: str, handler: Callable[[tuple[float, Event]], None]) -> None:
        self.handlers[topic] = handler

    def unsubscribe_topic(self, topic: str) -> None:
        del self.handlers[topic]

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        return {"workers": {address: {} for address in list(self.workers)}}

    def submit(
        self, function: Any, *arguments: Any, key: str, workers: list[str], pure: bool
    ) -> FakeFuture:
        assert not pure
        number = pickle.loads(arguments[0])[1] if function is compute else None
        value = compute(*arguments) if function is compute else function()
        (address,) = workers
        future = FakeFuture(number, value, self.all_workers[address])
        self._loop.call_soon_threadsafe(self._take, future)
        return future

    async def gather(self, future: FakeFuture, asynchronous: bool) -> Any:
        assert asynchronous
        await future.is_done.wait()
        for _ in range(self.latency):  # meanwhile, the worker starts its next task
            await asyncio.sleep(0)
        if not future.worker.is_alive:
            await asyncio.Event().wait()  # the result is lost
        return future.value

    # --- workers -------------------------------------------------------------------------------

    def _take(self, future: FakeFuture) -> None:
        future.worker.tasks.put_nowait(future)
        self.most_tasks = max(self.most_tasks, future.worker.tasks.qsize())

    async def _work(self, worker: FakeWorker) -> None:
        while worker.is_alive:
            future = await worker.tasks.get()
            await worker.is_running.wait()
            if future.is_released:
                continue
            if future.number is not None:
                self.computed.append((worker.address, future.number))
                await self.respond(worker, future.number)
            if worker.is_alive:
                future.is_done.set()

    async def join(self) -> None:
        """Start a worker."""
        worker = FakeWorker(f"worker-{next(self.names)}")
        self.workers[worker.address] = self.all_workers[worker.address] = worker
        worker.work = asyncio.ensure_future(self._work(worker))
        self.publish("all", {"action": "add-worker", "worker": worker.address})

    async def leave(self, worker: FakeWorker, expected: bool = False) -> None:
        """End a worker; another one takes its place."""
        worker.is_alive = False
        self.deaths += not expected
        del self.workers[worker.address]
        event = {"action": "remove-worker", "worker": worker.address, "expected": expected}
        self.publish("all", event)
        await asyncio.sleep(0)
        await self.join()

    async def pause(self, worker: FakeWorker) -> None:
        """Start no task of a worker any more."""
        worker.is_running.clear()
        event = {"action": "worker-status-change", "status": "paused"}
        self.publish(worker.address, event)

    def publish(self, topic: str, event: Event) -> None:
        if handler := self.handlers.get(topic):
            handler((0.0, event))
