"""Counts in closed form, relative to isl and to enumeration with NumPy.

    python -m benchmarks.counts

For each map: the microseconds of `count_image` when it is first asked (cold) and when it is asked
again (memoised), and how many times longer isl's count and an enumeration of all points take. The
queries of one map run in turn, so that other load on the machine affects all of them. The counts
must agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np

from indexing import IndexingMap, parse_map
from indexing.maps.counts import closed
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

REPEAT: Final = 5
SHAPES: Final = [(961, 1000), (31, 31_000), (620, 1550), (25, 38_440), (1240, 775), (961, 1000)]
CONVOLUTION: Final = (
    "(d0, d1, d2, d3)[s0, s1, s2] -> (d0, d1 * 2 + s0 - 2, d2 * 2 + s1 - 2, s2), "
    "domain: d0 in [0, 1], d1 in [0, 55], d2 in [0, 55], d3 in [0, 7], s0 in [0, 6], "
    "s1 in [0, 6], s2 in [0, 2], d1 * 2 + s0 in [2, 113], d2 * 2 + s1 in [2, 113]"
)


def position(d: Sequence[Variable], shape: Sequence[int]) -> Expr:
    """Return the row-major position of an index."""
    line = as_expr(0)
    for v, size in zip(d, shape, strict=True):
        line = line * size + v
    return line


def reshape(source: Sequence[int], target: Sequence[int]) -> IndexingMap:
    """Return the map of a reshape between arrays of rank 2."""
    return IndexingMap.over(
        source,
        lambda d: [position(d, source) // target[1], position(d, source) % target[1]],
    )


def maps() -> dict[str, IndexingMap]:
    """Return the maps to count."""
    chain = IndexingMap.identity(SHAPES[0])
    for source, target in pairwise(SHAPES):
        chain = chain.then(reshape(source, target))
    return {
        "reshape": reshape(SHAPES[0], SHAPES[2]),
        "five reshapes": chain,
        "five reshapes, last open": reshape(SHAPES[0], SHAPES[1]).then(
            reshape(SHAPES[1], SHAPES[3])
        ),
        "transposed reshape": IndexingMap.over(
            (1000, 961), lambda d: [d[0] % 40 * 24025 + d[1] * 25 + d[0] // 40]
        ),
        "windows": IndexingMap.over((500_000,), lambda d, s: [d[0] * 2 + s[0]], ranges=(3,)),
        "strides 1007 and 995": IndexingMap.over(
            (1000, 1000), lambda d: [d[0] * 1007 + d[1] * 995]
        ),
        "padded convolution": parse_map(CONVOLUTION),
    }


def isl_count(m: IndexingMap) -> int | Unknown:
    """Return the count of isl."""
    return exact.count(exact.Relation((), m.variables, m.results, m.constraints))


def enumerate_points(m: IndexingMap) -> int:
    """Return the count of an enumeration of all points."""
    boxes = [np.arange(v.lower, v.upper + 1) for v in m.variables]
    arrays = dict(zip(m.variables, np.meshgrid(*boxes, indexing="ij"), strict=True))
    shape = [len(box) for box in boxes]
    inside = np.ones(shape, bool)
    for constraint in m.constraints:
        value = constraint.expr.value(arrays)
        inside &= (value >= constraint.lower) & (value <= constraint.upper)
    columns = [np.broadcast_to(result.value(arrays), shape)[inside] for result in m.results]
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low, high = int(column.min()), int(column.max())
        key = key * (high - low + 1) + (column - low)
    return len(np.unique(key))


def seconds(compute: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    compute()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    print(f"{'map':26}{'count':>10}{'cold µs':>10}{'again µs':>10}{'isl':>9}{'NumPy':>9}")
    for name, m in maps().items():
        count = m.count_image()
        assert count == enumerate_points(m) == isl_count(m), name
        rows: list[tuple[float, ...]] = []
        for _ in range(REPEAT):
            closed.forget()
            cold, again = seconds(m.count_image), seconds(m.count_image)
            rows.append(
                (cold, again, seconds(partial(isl_count, m)), seconds(partial(enumerate_points, m)))
            )
        cold, again, isl, numpy = (min(column) for column in zip(*rows, strict=True))
        print(
            f"{name:26}{count!s:>10}{cold * 1e6:>10.0f}{again * 1e6:>10.1f}"
            f"{isl / cold:>8.0f}x{numpy / cold:>8.0f}x"
        )


if __name__ == "__main__":
    main()
