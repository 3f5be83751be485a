"""Writer of stages as NumPy code: each line computes all elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from indexing.codegen.graph import (
    Choose,
    Index,
    Node,
    Reduction,
    Scalar,
)
from indexing.codegen.numpy.access import expand_axes
from indexing.codegen.numpy.block import BlockWriter, WriterState
from indexing.codegen.numpy.reductions import ReductionWriter
from indexing.codegen.numpy.spaces import (
    GuardedBox,
    LoopAxis,
    Space,
    depends_on_axes,
    guarded_box,
    split_space,
)
from indexing.codegen.numpy.storing import align_axes, store
from indexing.codegen.stages import Repeat, Stage
from indexing.codegen.text import dtype_text, index_text, scalar_text, tuple_text
from simplifier.atoms import Variable
from simplifier.linear import as_expr


def write_stages(
    state: WriterState, stages: Iterable[Stage | Repeat], boxes: Mapping[Stage, str]
) -> None:
    """Write stages and loops in execution order.

    Args:
        boxes: the parameter with the box of each stage of which only a box is computed.
    """
    for stage in stages:
        if isinstance(stage, Repeat):
            for name in [each.buffer.name for each in stage.carried if each.is_in_place]:
                state.source.text.add(f"{name} = np.array({name})")
            block = BlockWriter(state, Space(()))
            for rt in stage.count.runtime:
                block.text_of(rt)
            with state.source.open_repeat(stage), state.keep_arrays():
                write_stages(state, stage.stages, {})
        elif stage.at is not None:
            _write_update(state, stage, stage.at)
        else:
            box = boxes.get(stage)
            write_stage(state, stage, _box_of(state, stage, box) if box else None)


def _box_of(state: WriterState, stage: Stage, name: str) -> Space:
    """Return the space of a stage's box, which the parameter `name` passes; set array offsets."""
    source, ends = state.source, []
    for k, n in enumerate(stage.buffers[0].dims):
        low = Variable(source.names.new(f"{stage.name}_lo{k}"), 0, n - 1)
        ends.append((low, Variable(source.names.new(f"{stage.name}_hi{k}"), 0, n)))
    if ends:
        pairs = tuple_text([f"({low.name}, {high.name})" for low, high in ends])
        source.text.add(f"{pairs[1:-1] if len(ends) > 1 else pairs} = {name}")
    for buffer in stage.buffers:
        state.offsets[buffer] = tuple([low.as_expr() for low, _ in ends])
    bounds = zip(stage.dims, ends, strict=True)
    axes = [LoopAxis(d, a.as_expr(), b.as_expr()) for d, (a, b) in bounds if d.lower < d.upper]
    return Space(tuple(axes))


def _write_update(state: WriterState, stage: Stage, at: Index) -> None:
    """Write the code that updates a box of a buffer in place."""
    state.count(stage)
    assert not isinstance(stage.body, Reduction)
    space, (buffer,) = Space.full(stage.dims), stage.buffers
    text = expand_axes(BlockWriter(state, space).text_of(stage.body), space.variables)
    pieces = []
    for d, index, size in zip(stage.dims, at, buffer.dims, strict=True):
        begin = index - d
        if d.lower == d.upper:
            pieces.append(index_text(begin))
        else:
            is_full = begin == as_expr(0) and d.upper == size - 1
            ends = f"{index_text(begin)}:{index_text(begin + d.upper + 1)}"
            pieces.append(":" if is_full else ends)
    state.source.text.add(f"{buffer.name}[{', '.join(pieces) or '...'}] = {text}")


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
            state.source.text.add(f"{buffer.name}[...] = {align_axes(stage, text)}")
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
    code = expand_axes(text, box.space.variables)
    state.source.text.add(f"{stage.buffers[0].name}[{', '.join(pieces) or '...'}] = {code}")
