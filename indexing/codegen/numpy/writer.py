"""Writer of stages as NumPy code: each line computes all elements."""

from __future__ import annotations

from indexing.codegen.graph import (
    Choose,
    Node,
    Reduction,
    Scalar,
)
from indexing.codegen.numpy.access import expanded
from indexing.codegen.numpy.block import BlockWriter, WriterState
from indexing.codegen.numpy.reductions import ReductionWriter
from indexing.codegen.numpy.spaces import (
    GuardedBox,
    Space,
    depends_on_axes,
    guarded_box,
    split_space,
)
from indexing.codegen.numpy.storing import aligned, store
from indexing.codegen.stages import Stage
from indexing.codegen.text import dtype_text, scalar_text, tuple_text


def write_stage(state: WriterState, stage: Stage, box: Space | None = None) -> None:
    """Write the code that fills the buffers of a stage, or a box of them."""
    state.count(stage)
    if isinstance(stage.body, Reduction):
        ReductionWriter(state, stage, stage.body, box).write()
        return
    if box is None:
        plain = Space.full(stage.dims)
        if isinstance(stage.body, Choose) and _fills(state, stage, stage.body, plain):
            return
    space = split_space(stage, stage.dims) if box is None else box
    block = BlockWriter(state, space)
    store(state, stage, stage.buffers[0], block.text_of(stage.body), space, box)


def _fills(state: WriterState, stage: Stage, body: Choose, space: Space) -> bool:
    """Fill the buffer case by case if the box of each case is a box; return False if not."""
    boxes = []
    for case in body.cases:
        box = guarded_box(space, case.guards)
        if box is None or any(depends_on_axes(rt, space) for rt in case.runtime):
            return False
        boxes.append(box)
    buffer = stage.buffers[0]
    sizes, kind = tuple_text(buffer.dims), dtype_text(buffer.dtype)
    rest = guarded_box(space, body.rest) if body.rest else None
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
            text = BlockWriter(state, space, block).text_of(body.otherwise)
            state.source.text.add(f"{buffer.name}[...] = {aligned(stage, text)}")
        else:
            _fill(state, stage, body.otherwise, space, rest, block)
    for case, box in reversed(list(zip(body.cases, boxes, strict=True))):
        _fill(state, stage, case.value, space, box, block)
    return True


def _fill(
    state: WriterState,
    stage: Stage,
    value: Node,
    space: Space,
    box: GuardedBox,
    around: BlockWriter,
) -> None:
    """Write ``buffer[box] = value``."""
    inner = BlockWriter(state, box.space, around)
    text = inner.text_of(value)
    slices = dict(zip(space.variables, box.slices, strict=True))
    pieces = [slices.get(d, "0") for d in stage.dims]
    code = expanded(text, box.space.variables)
    state.source.text.add(f"{stage.buffers[0].name}[{', '.join(pieces) or '...'}] = {code}")
