"""Components of carried arrays that depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from indexing.dataflow.loops.powers import Pair
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import IndexingMap

Node = TypeVar("Node")


@dataclass(frozen=True, slots=True)
class Component:
    """Carried arrays that depend on each other from one iteration to the next.

    Attributes:
        sizes: the sizes of each array.
        steps: the maps ``(d, t) -> (e, t - 1)`` from each array to each array.
        last: the largest time, the maximum number of iterations.
    """

    sizes: Mapping[Path, tuple[int, ...]]
    steps: Mapping[Pair, Sequence[IndexingMap]]
    last: int


def strongly_connected(
    roots: Iterable[Node], successors: Callable[[Node], Iterable[Node]]
) -> list[tuple[Node, ...]]:
    """Return the strongly connected components that are reached, successors first.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms", 1972.

    >>> strongly_connected([1], {1: [2], 2: [3], 3: [2, 4], 4: []}.__getitem__)
    [(4,), (2, 3), (1,)]
    """
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    components: list[tuple[Node, ...]] = []
    for root in roots:
        if root in number:
            continue
        work = [(root, iter(successors(root)))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    start = stack.index(node)
                    components.append(tuple(stack[start:]))
                    on_stack.difference_update(stack[start:])
                    del stack[start:]
            elif following not in number:
                number[following] = low[following] = len(number)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(successors(following))))
            elif following in on_stack:
                low[node] = min(low[node], number[following])
    return components
