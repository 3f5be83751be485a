"""Stores computed elements in the array that a stage fills, with an axis for each dimension."""

from __future__ import annotations

from math import prod

from indexing.codegen.graph import Buffer, Stage
from indexing.codegen.numpy.access import Text, as_operand, expanded
from indexing.codegen.numpy.block import WriterState
from indexing.codegen.numpy.spaces import Space
from indexing.codegen.text import tuple_text


def store(
    state: WriterState, stage: Stage, buffer: Buffer, found: Text, space: Space, box: Space | None
) -> None:
    """``buffer = found``, as an array with all dimensions."""
    if buffer in state.unread:
        return
    code = whole(stage, buffer, found, space, box)
    if code != buffer.name:
        state.source.text.add(f"{buffer.name} = {code}")
    state.track(buffer.name, prod(buffer.dims))


def whole(stage: Stage, buffer: Buffer, found: Text, space: Space, box: Space | None) -> str:
    """Code with an axis for each dimension, of the full size."""
    axes = space.variables
    code, sizes = expanded(found, axes), space.size_text(axes)
    if not found.axes or set(found.axes) != set(axes):
        if box is None and set(axes) == {d for d in stage.dims if d.lower < d.upper}:
            return f"np.broadcast_to({laid(stage, found)}, {tuple_text(buffer.dims)})"
        code = f"np.broadcast_to({code}, {tuple_text(sizes)})"
    if box is None:
        is_complete = sizes == [str(n) for n in buffer.dims]
        shape = tuple_text(buffer.dims)
    else:
        is_complete = len(axes) == len(stage.dims)
        ones = dict(zip(axes, sizes, strict=True))
        shape = ", ".join([ones.get(d, "1") for d in stage.dims])
    return code if is_complete else f"{as_operand(code)}.reshape({shape})"


def laid(stage: Stage, found: Text) -> str:
    """Code with an axis for each dimension from the first one that it has."""
    if not found.axes:
        return found.code
    at = [":" if d in found.axes else "None" for d in stage.dims]
    while at[0] == "None":
        at.pop(0)
    plain = all(piece == ":" for piece in at)
    return found.code if plain else f"{as_operand(found.code)}[{', '.join(at)}]"
