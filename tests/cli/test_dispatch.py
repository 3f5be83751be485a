"""Tasks of a cluster: repeated if their worker ends, and blamed for two deaths, each alone."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import pytest

from indexing.cli import dispatch
from indexing.cli.dispatch import AHEAD, DEPTH, ClusterError, Dispatcher
from indexing.cli.workers import WorkerDeath
from tests.cli.cluster_tasks import double
from tests.cli.fake_cluster import FakeClient, FakeWorker

pytest.importorskip("distributed", reason="needs the extra [dask]")

Respond = Callable[[FakeClient, FakeWorker, int], Awaitable[None]]


def ran(
    respond: Respond, tasks: Iterable[int], workers: int = 3, latency: int = 0
) -> tuple[list[int | WorkerDeath], FakeClient]:
    """Return the results of `double` for `tasks`."""

    async def responds(worker: FakeWorker, number: int) -> None:
        await respond(client, worker, number)

    with closing(FakeClient(workers, responds, latency)) as client:
        found_client: Any = client
        dispatcher = Dispatcher(found_client, double, tasks, lambda *_: None, pytest.fail)
        return list(dispatcher.results()), client


async def wait_for_a_turn(rng: random.Random) -> None:
    for _ in range(rng.randrange(4)):
        await asyncio.sleep(0)


@pytest.mark.parametrize("latency", [0, 3, 20])
@pytest.mark.parametrize("seed", range(12))
def test_only_poisonous_tasks_are_blamed(seed: int, latency: int) -> None:
    """Each kills two workers, or three: the first may have a complete task, too, and blame it."""
    rng = random.Random(seed)
    count, workers = rng.randrange(60), rng.randrange(1, 5)
    poisonous = set(rng.sample(range(count), min(count, rng.randrange(4))))

    async def respond(client: FakeClient, worker: FakeWorker, number: int) -> None:
        await wait_for_a_turn(rng)
        if number in poisonous:
            await client.leave(worker)

    results, client = ran(respond, range(count), workers, latency)
    blamed = {number for number, each in enumerate(results) if isinstance(each, WorkerDeath)}
    assert blamed == poisonous
    assert [each for each in results if isinstance(each, int)] == [
        2 * number for number in range(count) if number not in poisonous
    ]
    assert 2 * len(poisonous) <= client.deaths <= 3 * len(poisonous)
    assert client.most_tasks <= DEPTH


def test_a_task_that_was_blamed_once_is_repeated_alone() -> None:
    """Task 0 is complete, but not received, when task 1 kills their worker."""

    async def respond(client: FakeClient, worker: FakeWorker, number: int) -> None:
        if number == 1:
            await client.leave(worker)
        elif number == 0 and client.deaths:
            await asyncio.sleep(0.05)  # task 1 would be sent to the same worker again
        while number == 0 and not client.deaths and worker.tasks.empty():
            await asyncio.sleep(0.001)

    results, client = ran(respond, range(4), workers=1, latency=20)
    assert Counter(number for _, number in client.computed)[0] == 2
    assert [n for n, each in enumerate(results) if isinstance(each, WorkerDeath)] == [1]


def test_the_message_names_both_workers() -> None:
    async def respond(client: FakeClient, worker: FakeWorker, number: int) -> None:
        await client.leave(worker)

    (death,), _ = ran(respond, [5], workers=1)
    assert str(death) == "ended on worker-0 and again on worker-1"


def test_a_worker_that_leaves_on_purpose_blames_nobody() -> None:
    async def respond(client: FakeClient, worker: FakeWorker, number: int) -> None:
        if Counter(client.computed)[worker.address, number] and len(client.computed) % 2:
            await client.leave(worker, expected=True)

    results, _ = ran(respond, range(40), workers=2)
    assert results == [2 * number for number in range(40)]


def test_other_workers_repeat_the_tasks_of_a_paused_one() -> None:
    async def respond(client: FakeClient, worker: FakeWorker, number: int) -> None:
        if worker.address == "worker-0" and number > 3:
            await client.pause(worker)
            await worker.is_running.wait()

    results, _ = ran(respond, range(30), workers=2)
    assert results == [2 * number for number in range(30)]


def test_an_idle_worker_takes_over_the_task_that_waits_behind_a_long_one() -> None:
    async def respond(client: FakeClient, worker: FakeWorker, number: int) -> None:
        if number == 0:  # longer than all others together
            while len(client.computed) < 10:
                await asyncio.sleep(0.001)

    results, client = ran(respond, range(10), workers=2)
    assert results == [2 * number for number in range(10)]
    assert Counter(address for address, _ in client.computed)["worker-0"] == 1


def test_tasks_are_taken_when_workers_are_free_and_results_printed() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(200):
            taken.append(number)
            yield number

    async def respond(client: FakeClient, worker: FakeWorker, number: int) -> None:
        while number == 0 and len(taken) < AHEAD * 2:
            await asyncio.sleep(0.001)

    async def responds(worker: FakeWorker, number: int) -> None:
        await respond(client, worker, number)

    with closing(FakeClient(2, responds)) as client:
        fake: Any = client
        results = Dispatcher(fake, double, tasks(), lambda *_: None, pytest.fail).results()
        for number, result in enumerate(results):
            assert result == 2 * number
            assert len(taken) <= number + 1 + AHEAD * 2


def test_large_tasks_are_sent_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MAX_SENT", 1)
    running: set[int] = set()

    async def respond(client: FakeClient, worker: FakeWorker, number: int) -> None:
        running.add(number)
        assert len(running) == 1
        await asyncio.sleep(0.001)
        running.remove(number)

    results, _ = ran(respond, range(8))
    assert results == [2 * number for number in range(8)]


def test_no_workers_is_an_error_after_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, seconds in (("POLL", 0.001), ("NOTE_AFTER", 0.002), ("PATIENCE", 0.02)):
        monkeypatch.setattr(dispatch, limit, seconds)
    notes: list[str] = []

    async def respond(worker: FakeWorker, number: int) -> None:
        raise AssertionError

    with closing(FakeClient(0, respond)) as client:
        fake: Any = client
        results = Dispatcher(fake, double, [1], lambda *_: None, notes.append).results()
        with pytest.raises(ClusterError, match="the scheduler has no workers after"):
            next(results)
    assert notes == ["the scheduler has no workers: waiting for workers"]
