"""The choices around each read of an element: how deep they nest, and how often they print it.

Generated code prints an element once in each choice that needs it, in the branch where its index is
in bounds.  If both branches of a choice read the same element, nested choices print it 2, 4, 8, ..
times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from indexing.codegen.graph import (
    Apply,
    BufferRead,
    Choose,
    Node,
    Runtime,
    topological_order,
    with_cases,
)
from indexing.codegen.graph import children as unconditional

MAX_NESTED: Final = 32
"""Limit on nested choices; beyond it, the array gets a buffer. Python nests 100 blocks at most."""

MAX_PRINTED: Final = 64
"""Limit on the branches that compute one element; beyond it, the array gets a buffer."""

MAX_INDEX_WEIGHT: Final = 200
"""Limit on the atoms in the text of an index; beyond it, the array gets a buffer.  Reshapes and
reverses that do not cancel multiply the atoms of an index."""

Branch = tuple[Node, int]


class EnclosingChoices:
    """The choices that enclose the reads of inlined arrays."""

    def __init__(self) -> None:
        self._depth: dict[Node, int] = {}
        self._computed: set[Node] = set()  # runtime variables
        # For each read, the branches that contain it, and how often each branch is printed.
        self._branches: dict[Node, dict[Branch | None, int]] = {}

    def add(self, read: BufferRead, definition: Node) -> None:
        """Record that `definition` is printed in place of `read`."""
        own, depth = self._around(read), self._depth.get(read, 0)
        printed = sum(own.values())
        for node, branch in self._reads(definition):
            around = self._branches.setdefault(node, {})
            around.update(own if branch is None else {branch: printed})
            inner = depth + (branch is not None)
            self._depth[node] = max(self._depth.get(node, 0), inner)

    def exceed_limits(self, read: BufferRead) -> bool:
        """Return True if the text of an element at this read would be too long or too deep."""
        return (
            self._depth.get(read, 0) > MAX_NESTED
            or sum(self._around(read).values()) > MAX_PRINTED
            or any(expr.weight > MAX_INDEX_WEIGHT for expr in read.index)
        )

    def _around(self, read: BufferRead) -> dict[Branch | None, int]:
        return self._branches.get(read) or {None: 1}

    def _reads(self, definition: Node) -> Iterator[tuple[BufferRead, Branch | None]]:
        """Yield the reads in a definition, each with the branch of a choice around it, or None.

        The reads of a runtime variable, which is computed once, are yielded at its first use.
        """
        yield from [(read, None) for read in self._reads_below(definition, outside=True)]
        for choice in topological_order([definition], _inner):
            if isinstance(choice, Choose):
                for number, value in enumerate(_values(choice)):
                    for read in self._reads_below(value, outside=False):
                        yield read, (choice, number)

    def _reads_below(self, root: Node, *, outside: bool) -> list[BufferRead]:
        """Return the reads below a node, or only those `outside` of the branches of choices."""

        def children(node: Node) -> tuple[Node, ...]:
            below = unconditional(node) if outside else with_cases(node)
            return tuple([child for child in below if child not in self._computed])

        nodes = list(topological_order([root], children))
        self._computed.update([node for node in nodes if isinstance(node, Runtime)])
        return [node for node in nodes if isinstance(node, BufferRead)]


def _inner(node: Node) -> tuple[Node, ...]:
    return node.arguments if isinstance(node, Apply) else ()


def _values(choice: Choose) -> list[Node]:
    return [*[case.value for case in choice.cases], choice.otherwise]
