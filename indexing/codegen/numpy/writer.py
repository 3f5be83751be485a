"""Writes the stages of a loop nest as NumPy code: each line computes all elements at once."""

from __future__ import annotations

from indexing.codegen.graph import (
    Choose,
    Fold,
    Node,
    Scalar,
    Stage,
)
from indexing.codegen.numpy.access import expanded
from indexing.codegen.numpy.block import BlockWriter, WriterState
from indexing.codegen.numpy.folds import FoldWriter
from indexing.codegen.numpy.spaces import (
    Region,
    Space,
    depends_on_axes,
    region_of,
    split_space,
)
from indexing.codegen.numpy.storing import laid, store
from indexing.codegen.text import dtype_text, scalar_text, tuple_text


def write_stage(state: WriterState, stage: Stage, box: Space | None = None) -> None:
    """Code that fills the buffers of a stage; of a box of it, if one is given."""
    state.count(stage)
    if isinstance(stage.body, Fold):
        FoldWriter(state, stage, stage.body, box).write()
        return
    if box is None:
        plain = Space.whole(stage.dims)
        if isinstance(stage.body, Choose) and _fills(state, stage, stage.body, plain):
            return
    space = split_space(stage, stage.dims) if box is None else box
    block = BlockWriter(state, space)
    store(state, stage, stage.buffers[0], block.text_of(stage.body), space, box)


def _fills(state: WriterState, stage: Stage, body: Choose, space: Space) -> bool:
    """Fill the buffer box by box, where each case holds in a box; else do nothing."""
    regions = []
    for case in body.cases:
        region = region_of(space, case.guards)
        if region is None or any(depends_on_axes(rt, space) for rt in case.runtime):
            return False
        regions.append(region)
    buffer = stage.buffers[0]
    sizes, kind = tuple_text(buffer.dims), dtype_text(buffer.dtype)
    rest = region_of(space, body.rest) if body.rest else None
    block = BlockWriter(state, space)
    for case in body.cases:
        for rt in case.runtime:
            block.text_of(rt)
    if isinstance(body.otherwise, Scalar):
        value = scalar_text(body.otherwise.value)
        state.source.text.add(f"{buffer.name} = np.full({sizes}, {value}, {kind})")
    else:
        state.source.text.add(f"{buffer.name} = np.empty({sizes}, {kind})")
        if rest is None:
            whole = BlockWriter(state, space, block)
            found = whole.text_of(body.otherwise)
            state.source.text.add(f"{buffer.name}[...] = {laid(stage, found)}")
        else:
            _fill(state, stage, body.otherwise, space, rest, block)
    for case, region in reversed(list(zip(body.cases, regions, strict=True))):
        _fill(state, stage, case.value, space, region, block)
    return True


def _fill(
    state: WriterState, stage: Stage, value: Node, space: Space, region: Region, around: BlockWriter
) -> None:
    """``buffer[region] = value``."""
    inner = BlockWriter(state, region.space, around)
    found = inner.text_of(value)
    wanted = dict(zip(space.variables, region.slices, strict=True))
    pieces = [wanted.get(d, "0") for d in stage.dims]
    code = expanded(found, region.space.variables)
    state.source.text.add(f"{stage.buffers[0].name}[{', '.join(pieces) or '...'}] = {code}")
