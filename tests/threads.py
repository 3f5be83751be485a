"""Work in several threads that start together and switch as often as possible."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

THREADS = 6


def in_threads(work: Callable[[int], Any], batches: int) -> list[list[Any]]:
    """Return for each thread the results of ``work(0)`` to ``work(batches - 1)``.

    All threads start each batch together.
    """
    barrier = Barrier(THREADS)

    def results(_: int) -> list[Any]:
        collected = []
        for batch in range(batches):
            barrier.wait(timeout=60)
            collected.append(work(batch))
        return collected

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(results, range(THREADS)))
    finally:
        sys.setswitchinterval(interval)
