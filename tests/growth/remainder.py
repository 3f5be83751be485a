"""Objects that remain when all caches are emptied: ``python -m tests.growth.remainder COUNT``.

Uses COUNT distinct modules three times.  Prints the allocated blocks of Python after each time,
when every table of the process is empty.
"""

from __future__ import annotations

import gc
import sys
from functools import _lru_cache_wrapper
from itertools import islice

import hlo
from benchmarks.session import texts, use
from hlo.memo import Memo
from simplifier.bounds import UNCONSTRAINED
from simplifier.unique_table import UniqueTable

TIMES = 3
ROUNDS = 4
"""Number of purges of each table: atoms of one table keep those of others in use."""


def empty_all() -> None:
    """Empty the caches of functions and all tables of the packages."""
    for each in gc.get_objects():
        if isinstance(each, _lru_cache_wrapper):
            each.cache_clear()
    UNCONSTRAINED.forget_divisions()
    packages = [m for name, m in [*sys.modules.items()] if name.startswith(("hlo", "indexing"))]
    for table in [value for module in packages for value in vars(module).values()]:
        if isinstance(table, Memo):
            table.clear()
    gc.collect()
    tables = [each for each in gc.get_objects() if isinstance(each, UniqueTable)]
    for _ in range(ROUNDS):
        for table in tables:
            table.purge()
    gc.collect()


def main(count: int) -> None:
    """Print the allocated blocks after each time."""
    distinct = texts()
    for _ in range(TIMES):
        for text in islice(distinct, count):
            use(hlo.parse(text))
        empty_all()
        print(sys.getallocatedblocks())


if __name__ == "__main__":
    main(int(sys.argv[1]))
