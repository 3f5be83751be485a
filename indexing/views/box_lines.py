"""Boxes of tiles on a terminal: offsets, sizes, strides and bounds below each other.

The text of a box has its vectors in one line, as XLA prints them.  A terminal gets a line for each
vector, with the elements of a dimension below each other:

    offsets  [tid_0 * 4,   0]
    sizes    [        4, 128]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from indexing.views.wrapping import Unit, wrap_units

_START: Final = re.compile(r"(?:inside of )?(?:offsets|sizes|strides|(?:lower|upper) bounds) \[")


class Vector(NamedTuple):
    """A vector of a box: its name, and an expression for each dimension."""

    name: str
    elements: tuple[str, ...]


def split_vectors(text: str) -> tuple[str, list[Vector]]:
    """Return the text before the vectors of a box, and the vectors; nothing may follow them.

    >>> split_vectors("q: 8 bytes sizes [min(a, b), 4]")
    ('q: 8 bytes', [Vector(name='sizes', elements=('min(a, b)', '4'))])
    """
    start = _START.search(text)
    if start is None:
        return text, []
    before, vectors, position = text[: start.start()].rstrip(), [], start.start()
    while head := _START.match(text, position):
        elements, end = _elements(text, head.end())
        vectors.append(Vector(head[0][:-2], elements))
        position = end + len(text[end:]) - len(text[end:].lstrip(" ,"))
    return (before, vectors) if position == len(text) else (text, [])


def _elements(text: str, start: int) -> tuple[tuple[str, ...], int]:
    """Return the elements of a list that begins at `start`, and the place behind its bracket."""
    parts, depth = [""], 0
    for place in range(start, len(text)):
        c = text[place]
        if c == "]" and depth == 0:
            return tuple([part.strip() for part in parts if part.strip()]), place + 1
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return (), start


def vector_lines(vectors: Sequence[Vector], width: int) -> Iterator[str]:
    """Yield the lines of the vectors of a box, of at most `width` columns.

    Elements of a dimension are below each other where that fits; otherwise each vector is on one
    line, or has a line for each element.

    >>> vectors = [Vector("offsets", ("tid_0 * 4", "0")), Vector("sizes", ("4", "128"))]
    >>> print(*vector_lines(vectors, 40), sep=chr(10))
    offsets  [tid_0 * 4,   0]
    sizes    [        4, 128]
    >>> print(*vector_lines(vectors, 20), sep=chr(10))
    offsets  [tid_0 * 4,
              0]
    sizes    [4, 128]
    """
    label = max([len(vector.name) for vector in vectors], default=0) + 2
    rank = max([len(vector.elements) for vector in vectors], default=0)
    widths = [
        max([len(v.elements[k]) for v in vectors if k < len(v.elements)]) for k in range(rank)
    ]
    is_aligned = label + sum(widths) + 2 * rank <= width
    for name, elements in vectors:
        cells = elements
        if is_aligned:
            cells = tuple([e.rjust(n) for e, n in zip(elements, widths, strict=False)])
        line = f"{name:<{label}}[{', '.join(cells)}]"
        if len(line) <= width:
            yield line
            continue
        start = f"{name:<{label}}["
        for k, element in enumerate(elements):
            end = "]" if k == len(elements) - 1 else ","
            for part in wrap_units(map(Unit, f"{element}{end}".split()), width - label - 1, 2):
                yield start + part.text
                start = " " * (label + 1)
