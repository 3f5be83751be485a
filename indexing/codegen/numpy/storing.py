"""Stores of computed elements in the buffer of a stage."""

from __future__ import annotations

from math import prod

from indexing.codegen.graph import Buffer
from indexing.codegen.numpy.access import Text, as_operand, expand_axes
from indexing.codegen.numpy.block import WriterState
from indexing.codegen.numpy.spaces import Space
from indexing.codegen.stages import Stage
from indexing.codegen.text import tuple_text


def store(
    state: WriterState, stage: Stage, buffer: Buffer, text: Text, space: Space, box: Space | None
) -> None:
    """Write ``buffer = text``, with all dimensions of the buffer."""
    if buffer in state.unread:
        return
    code = full_text(stage, buffer, text, space, box)
    if code != buffer.name:
        state.source.text.add(f"{buffer.name} = {code}")
    state.track(buffer.name, prod(buffer.dims))


def full_text(stage: Stage, buffer: Buffer, text: Text, space: Space, box: Space | None) -> str:
    """Return code of an array with the full size of each dimension."""
    axes = space.variables
    code, sizes = expand_axes(text, axes), space.size_text(axes)
    if not text.axes or set(text.axes) != set(axes):
        if box is None and set(axes) == {d for d in stage.dims if d.lower < d.upper}:
            return f"np.broadcast_to({align_axes(stage, text)}, {tuple_text(buffer.dims)})"
        code = f"np.broadcast_to({code}, {tuple_text(sizes)})"
    if box is None:
        is_complete = sizes == [str(n) for n in buffer.dims]
        shape = tuple_text(buffer.dims)
    else:
        is_complete = len(axes) == len(stage.dims)
        ones = dict(zip(axes, sizes, strict=True))
        shape = ", ".join([ones.get(d, "1") for d in stage.dims])
    return code if is_complete else f"{as_operand(code)}.reshape({shape})"


def align_axes(stage: Stage, text: Text) -> str:
    """Return code with an axis for each dimension of the stage, from the first that it has."""
    if not text.axes:
        return text.code
    at = [":" if d in text.axes else "None" for d in stage.dims]
    while at[0] == "None":
        at.pop(0)
    is_plain = all(piece == ":" for piece in at)
    return text.code if is_plain else f"{as_operand(text.code)}[{', '.join(at)}]"
