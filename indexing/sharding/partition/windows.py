"""Local instructions that read neighbouring shards: pad, slice, reverse, and sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeAlias

from hlo.modules.module import Instruction
from hlo.ops.attributes import Padding, SliceDimension, WindowDimension, window
from hlo.shapes.shape import Shape
from hlo.shardings.mesh import Mesh
from indexing.ops.convolution import Convolution
from indexing.ops.pad import Pad
from indexing.ops.reduce_window import ReduceWindow
from indexing.ops.slicing import Slice
from indexing.ops.transpose import Reverse
from indexing.sharding.partition.halos import Halo, exchange_halo
from indexing.sharding.partition.masks import sharding_count
from indexing.sharding.partition.moves import Axes, array_bytes
from indexing.sharding.partition.split_instruction import (
    SplitInstruction,
    add_local,
    sharding_of,
)
from indexing.sharding.partition.writer import LocalBody, LocalValue
from indexing.sharding.rules.combiners import COMBINERS, reducing_function
from indexing.sharding.rules.sharding_rules import ShardingRule

HaloOf: TypeAlias = Callable[[Sequence[int], int], Halo]
"""Returns the halo of the first elements that shards need, and their number."""


class WindowHalo(NamedTuple):
    """The halo of one dimension, and the op on it.

    Attributes:
        dim: the dimension of operand 0.
        out: the dimension of the result.
        halo: the elements of operand 0 that shards need.
        window: of a window, its entry for the local instruction.
        phases: of a pad with interior padding, the first element of each shard of the result.
    """

    dim: int
    out: int
    halo: Halo
    window: WindowDimension | None = None
    phases: tuple[int, ...] = ()


def halo_of(
    instruction: Instruction, rule: ShardingRule, number: int, count: int
) -> WindowHalo | None:
    """Return the halo of a permutation factor in `count` shards; None if it has no local form."""
    operand_dims = list(rule.dims_of(number, rule.operands))
    result_dims = list(rule.dims_of(number, rule.results))
    is_simple = [array for array, _ in (*operand_dims, *result_dims)] == [0, 0]
    if not is_simple or not isinstance(instruction.shape, Shape):
        return None
    ((_, dim),), ((_, out),) = operand_dims, result_dims
    if len(rule.operands[0][dim]) + len(rule.results[0][out]) > 2:
        return None
    shape = instruction.operands[0].shape
    assert isinstance(shape, Shape)
    sizes = shape.dims[dim], instruction.shape.dims[out]
    made = _halo(instruction, dim, out, sizes, count)
    return made if made is not None and made.halo.is_cheaper_than_gather else None


def _halo(
    instruction: Instruction, dim: int, out: int, sizes: tuple[int, int], count: int
) -> WindowHalo | None:
    size, result = sizes
    local, part = -(-size // count), -(-result // count)
    firsts = [shard * part for shard in range(count)]  # of the result

    def halo(starts: Sequence[int], length: int) -> Halo:
        return Halo(tuple(starts), length, size, local)

    match instruction.op:
        case Slice(slice=cuts):
            cut = cuts[dim]
            starts = [cut.start + first * cut.stride for first in firsts]
            return WindowHalo(dim, out, halo(starts, (part - 1) * cut.stride + 1))
        case Reverse():
            return WindowHalo(dim, out, halo([size - part - first for first in firsts], part))
        case Pad(padding=padding):
            edge = padding[dim]
            places = [first - edge.low for first in firsts]
            phases = tuple(place % edge.step for place in places)
            length = (max(phases) + part - 1) // edge.step + 1
            starts = [place // edge.step for place in places]
            return WindowHalo(dim, out, halo(starts, length), phases=phases)
        case ReduceWindow(window=windows):
            reduction = reducing_function(instruction.called_computations[0], 0)
            return _window_halo(dim, out, halo, windows[dim], firsts) if reduction else None
        case Convolution() as op:
            spatial = dict(zip(op.dim_labels.order("out")[2:], op.window, strict=True))
            return _window_halo(dim, out, halo, spatial[out], firsts) if out in spatial else None
    return None


def _window_halo(
    dim: int, out: int, halo: HaloOf, over: WindowDimension, firsts: Sequence[int]
) -> WindowHalo | None:
    """Return the halo of a sliding window; None if holes of a dilation differ between shards."""
    part = firsts[1] - firsts[0]
    span = (part - 1) * over.stride + (over.size - 1) * over.window_dilation + 1
    step = over.base_dilation
    places = [first * over.stride - over.low for first in firsts]  # in the dilated operand
    starts = [-(-place // step) for place in places]
    phases = {start * step - place for start, place in zip(starts, places, strict=True)}
    if len(phases) > 1 or max(phases) >= span:
        return None
    (phase,) = phases
    length = (span - 1 - phase) // step + 1
    high = span - (phase + (length - 1) * step + 1)
    return WindowHalo(dim, out, halo(starts, length), replace(over, low=phase, high=high))


def halo_bytes(
    instruction: Instruction, rule: ShardingRule, axes: tuple[Axes, ...], mesh: Mesh
) -> int:
    """Return the bytes that a device sends to its neighbours if factors are split along `axes`."""
    kinds = [factor.kind for factor in rule.factors]
    split = [n for n, kind in enumerate(kinds) if kind == "permutation" and axes[n]]
    if not split:
        return 0
    shape = instruction.operands[0].shape
    assert isinstance(shape, Shape)
    dims = list(sharding_of(rule.operands[0], axes, mesh).local_dims(shape.dims))
    sent = 0
    for number in split:
        count = prod([mesh.size_of(axis) for axis in axes[number]])
        made = halo_of(instruction, rule, number, count)
        if made is None:
            continue
        for slab in made.halo.slabs:
            if not slab.is_local:
                dims[made.dim] = slab.high - slab.low
                sent += array_bytes(shape.element_type, tuple(dims))
        dims[made.dim] = made.halo.length
    return sent


# ---------------------------------------------------------------- local instructions


def _exchange(
    body: LocalBody, split: SplitInstruction, fill: LocalValue | None
) -> list[WindowHalo]:
    """Read the neighbours' elements of operand 0 in each dimension that is split."""
    halos = list(_halos(body, split))
    for each, axes in halos:
        before = body.reason
        name = split.instruction.name
        body.reason = f"halo of `{name}` along dimension {each.dim} of operand 0"
        value = split.operands[0]
        split.operands[0] = exchange_halo(body, value, each.dim, each.halo, axes, fill)
        body.reason = before
    return [each for each, _ in halos]


def _halos(body: LocalBody, split: SplitInstruction) -> Iterator[tuple[WindowHalo, Axes]]:
    for number, axes in enumerate(split.axes):
        if axes and split.rule.factors[number].kind == "permutation":
            count = sharding_count(body, axes)
            halo = halo_of(split.instruction, split.rule, number, count)
            assert halo is not None  # otherwise the factor is not split
            yield halo, axes


def reverse(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Add a reverse of the mirrored shard."""
    _exchange(body, split, None)
    return add_local(body, split)


def slice_of_shards(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Add a slice; whole dimensions are those of the shard."""
    op = split.instruction.op
    assert isinstance(op, Slice)
    halos = {each.dim: each for each in _exchange(body, split, None)}
    cuts = []
    for dim, cut in enumerate(op.slice):
        if dim in halos:
            cuts.append(SliceDimension(0, halos[dim].halo.length, cut.stride))
        elif split.needed[0].dims[dim]:
            cuts.append(SliceDimension(0, split.operands[0].array.dims[dim]))
        else:
            cuts.append(cut)
    return add_local(body, split, slice=f"{{{', '.join(map(str, cuts))}}}")


def pad(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Add a pad; padding before and after the array is exchanged like neighbours' elements."""
    op, instruction = split.instruction.op, split.instruction
    assert isinstance(op, Pad)
    halos = {each.dim: each for each in _exchange(body, split, split.operands[1])}
    edges, dims = list(op.padding), list(split.result_shapes[0].dims)
    for dim, each in halos.items():
        step = op.padding[dim].step
        needed = max(each.phases) + dims[dim]
        high = needed - ((each.halo.length - 1) * step + 1)
        edges[dim], dims[dim] = Padding(0, high, step - 1), needed
    shape = Shape(split.result_shapes[0].element_type, tuple(dims))
    text = split.attributes(padding="x".join(map(str, edges)))
    value = body.add("pad", shape, split.operands, text, name=instruction.name)
    for dim, each in halos.items():
        if any(each.phases):
            (axes,) = (axes for halo, axes in _halos(body, split) if halo.dim == dim)
            start = body.by_number(axes, each.phases)
            value = body.window(value, dim, start, split.result_shapes[0].dims[dim])
    return [value]


def reduce_window(body: LocalBody, split: SplitInstruction) -> list[LocalValue]:
    """Add a reduce-window; elements outside of the array are neutral."""
    op = split.instruction.op
    assert isinstance(op, ReduceWindow)
    if not any(True for _ in _halos(body, split)):
        return add_local(body, split)
    reduction = reducing_function(split.instruction.called_computations[0], 0)
    assert reduction in COMBINERS
    neutral = body.neutral(reduction, split.operands[0].array.element_type)
    windows = list(op.window)
    for each in _exchange(body, split, neutral):
        assert each.window is not None
        windows[each.dim] = each.window
    return add_local(body, split, window=window.print(tuple(windows)))


def convolution_windows(body: LocalBody, split: SplitInstruction) -> dict[str, str]:
    """Read the neighbours' elements and return the attributes that change."""
    op = split.instruction.op
    assert isinstance(op, Convolution)
    zero = body.zero(split.operands[0].array.element_type)
    spatial = list(op.dim_labels.order("out")[2:])
    windows = list(op.window)
    halos = _exchange(body, split, zero)
    for each in halos:
        assert each.window is not None
        windows[spatial.index(each.out)] = each.window
    return {"window": window.print(tuple(windows))} if halos else {}
