"""How what is computed becomes the array that a stage fills: with an axis for each dimension."""

from __future__ import annotations

from math import prod

from indexing.codegen.graph import Buffer, Stage
from indexing.codegen.numpy.access import Text, as_operand, expanded
from indexing.codegen.numpy.block import LARGE, Writing
from indexing.codegen.numpy.spaces import Space
from indexing.codegen.text import index_text, tuple_text


def store(
    writing: Writing, stage: Stage, buffer: Buffer, found: Text, space: Space, box: Space | None
) -> None:
    """``buffer = found``, as an array with all dimensions."""
    if buffer in writing.unread:
        return
    code = whole(stage, buffer, found, space, box)
    if code != buffer.name:
        writing.source.text.add(f"{buffer.name} = {code}")
    if prod(buffer.dims) >= LARGE:
        writing.large.add(buffer.name)


def whole(stage: Stage, buffer: Buffer, found: Text, space: Space, box: Space | None) -> str:
    missing = [v for v in space.variables if v not in found.axes]
    code = expanded(found, space.variables)
    if box is not None:
        sizes = [index_text(box.axis(d).size) if d in box.variables else "1" for d in stage.dims]
        if missing or not found.axes:
            axes = space.size_text(space.variables)
            code = f"np.broadcast_to({code}, {tuple_text(axes)})"
        if len(space.axes) < len(stage.dims):
            code = f"{as_operand(code)}.reshape({', '.join(sizes)})"
        return code
    if missing or not found.axes:
        if len(space.axes) == len([d for d in stage.dims if d.lower < d.upper]):
            at = [":" if d in found.axes else "None" for d in stage.dims]
            while at and at[0] == "None":
                at.pop(0)
            plain = not found.axes or all(piece == ":" for piece in at)
            code = found.code if plain else f"{as_operand(found.code)}[{', '.join(at)}]"
            return f"np.broadcast_to({code}, {tuple_text(buffer.dims)})"
        axes = space.size_text(space.variables)
        code = f"np.broadcast_to({code}, {tuple_text(axes)})"
    if tuple(v.upper + 1 for v in space.variables) != buffer.dims:
        code = f"{as_operand(code)}.reshape({tuple_text(buffer.dims)})"
    return code


def laid(stage: Stage, found: Text) -> str:
    """With an axis for each dimension, from the first one that there is."""
    if not found.axes:
        return found.code
    at = [":" if d in found.axes else "None" for d in stage.dims]
    while at[0] == "None":
        at.pop(0)
    plain = all(piece == ":" for piece in at)
    return found.code if plain else f"{as_operand(found.code)}[{', '.join(at)}]"
