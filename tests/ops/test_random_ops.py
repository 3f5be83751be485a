"""Random instructions of the ops with many attributes: their maps are what their kernels read.

``FUZZ=20`` tries twenty times as many, new ones each time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from tests.ops.samples import parse_sample
from tests.ops.test_ops import check_inverse, check_reads
from tests.oracles import fuzz

Draw = Any
SIZE = st.integers(1, 4)


def ints(values: Any) -> str:
    return ",".join(map(str, values))


def array(sizes: Any, element_type: str = "f32") -> str:
    return f"{element_type}[{ints(sizes)}]"


@st.composite
def pads(draw: Draw) -> str:
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
    edges, out = [], []
    for n in sizes:
        low, high, interior = draw(st.tuples(*[st.integers(-3, 3)] * 2, st.integers(0, 2)))
        extent = low + high + ((n - 1) * (interior + 1) + 1 if n else 0)
        if extent < 0:
            high, extent = high - extent, 0
        edges.append(f"{low}_{high}_{interior}")
        out.append(extent)
    return f"{array(out)} pad({array(sizes)} p, f32[] v), padding={'x'.join(edges)}"


@st.composite
def slices(draw: Draw) -> str:
    sizes = draw(st.lists(st.integers(0, 7), min_size=1, max_size=2))
    cuts, out = [], []
    for n in sizes:
        start = draw(st.integers(0, n))
        limit = draw(st.integers(start, n))
        stride = draw(st.integers(1, 4))
        cuts.append(f"[{start}:{limit}:{stride}]")
        out.append(len(range(start, limit, stride)))
    return f"{array(out)} slice({array(sizes)} p), slice={{{', '.join(cuts)}}}"


@st.composite
def windows(draw: Draw) -> str:
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
    rows = []
    for n in sizes:
        size, stride, base, dilation = draw(st.tuples(*[st.integers(1, 3)] * 4))
        low, high = draw(st.tuples(*[st.integers(-2, 3)] * 2))
        padded = low + high + ((n - 1) * base + 1 if n else 0)
        extent = (size - 1) * dilation + 1
        count = 0 if padded < extent else (padded - extent) // stride + 1
        rows.append((size, stride, f"{low}_{high}", base, dilation, count))
    size, stride, pad, base, dilation, counts = zip(*rows, strict=True)
    fields = {
        "size": size,
        "stride": stride,
        "pad": pad,
        "lhs_dilate": base,
        "rhs_dilate": dilation,
    }
    window = " ".join(f"{name}={'x'.join(map(str, value))}" for name, value in fields.items())
    operands = f"{array(sizes)} p, f32[] z"
    return f"{array(counts)} reduce-window({operands}), window={{{window}}}, to_apply=add"


def factors(draw: Draw, size: int) -> list[int]:
    """Sizes, some of them 1, whose product is `size`."""
    found: list[int] = []
    while size > 1:
        found.append(draw(st.sampled_from([d for d in range(2, size + 1) if size % d == 0])))
        size //= found[-1]
    for _ in range(draw(st.integers(0, 2))):
        found.insert(draw(st.integers(0, len(found))), 1)
    return found


@st.composite
def reshapes(draw: Draw) -> str:
    size = draw(st.sampled_from([1, 4, 6, 12, 24, 30, 36]))
    return f"{array(factors(draw, size))} reshape({array(factors(draw, size))} p)"


@st.composite
def bitcasts(draw: Draw) -> str:
    size = draw(st.sampled_from([1, 4, 6, 12, 24, 36]))
    ours, theirs = draw(st.sampled_from([("u16", "u16"), ("u16", "u8"), ("u8", "u16")]))
    shapes = []
    for name in (ours, theirs):
        sizes = factors(draw, size * (2 if name == "u8" and ours != theirs else 1))
        order = draw(st.permutations(range(len(sizes))))
        shapes.append(array(sizes, name) + (f"{{{ints(order)}}}" if sizes else ""))
    return f"{shapes[0]} bitcast({shapes[1]} p)"


@st.composite
def dots(draw: Draw) -> str:
    batch, summed = draw(st.tuples(*[st.lists(SIZE, max_size=2)] * 2))
    shapes, attributes, free = [], [], []
    for side in ("lhs", "rhs"):
        own = draw(st.lists(SIZE, max_size=1))
        order = draw(st.permutations(range(len(batch) + len(summed) + len(own))))
        sizes = [0] * len(order)
        for place, n in zip(order, [*batch, *summed, *own], strict=True):
            sizes[place] = n
        shapes.append(array(sizes))
        free += own
        attributes.append(f"{side}_batch_dims={{{ints(order[: len(batch)])}}}")
        contracting = order[len(batch) : len(batch) + len(summed)]
        attributes.append(f"{side}_contracting_dims={{{ints(contracting)}}}")
    out = array([*batch, *free])
    return f"{out} dot({shapes[0]} p, {shapes[1]} q), {', '.join(attributes)}"


@st.composite
def dynamic(draw: Draw) -> str:
    sizes = draw(st.lists(SIZE, min_size=1, max_size=3))
    window = [draw(st.integers(1, n)) for n in sizes]
    starts = ", ".join(f"s32[] i{k}" for k in range(len(sizes)))
    if draw(st.booleans()):
        operands = f"{array(sizes)} p, {starts}"
        return f"{array(window)} dynamic-slice({operands}), dynamic_slice_sizes={{{ints(window)}}}"
    return f"{array(sizes)} dynamic-update-slice({array(sizes)} p, {array(window)} u, {starts})"


@st.composite
def gathers(draw: Draw) -> str:
    """Any form: windowed, collapsed and batching dimensions; the index vector is anywhere."""
    kinds = draw(st.lists(st.sampled_from("wwcb"), min_size=1, max_size=3))
    sizes = [draw(SIZE) for _ in kinds]
    taken = [draw(st.integers(1, n)) if k == "w" else 1 for n, k in zip(sizes, kinds, strict=True)]
    places = {kind: [k for k, other in enumerate(kinds) if other == kind] for kind in "wcb"}
    starts = draw(st.permutations([k for k in range(len(kinds)) if kinds[k] != "b"]))
    starts = starts[: draw(st.integers(0, len(starts)))]
    batch = [*places["b"], *[None] * draw(st.integers(0, 1))]
    batch = draw(st.permutations(batch))
    batch_sizes = [sizes[k] if k is not None else draw(st.integers(1, 3)) for k in batch]
    vector = draw(st.integers(0, len(batch)))
    indices = list(batch_sizes)
    if len(starts) != 1 or vector < len(batch) or draw(st.booleans()):
        indices.insert(vector, len(starts))
    shift = [k + (len(indices) > len(batch) and k >= vector) for k in range(len(batch))]
    pairs = [(k, shift[place]) for place, k in enumerate(batch) if k is not None]
    rank = len(batch) + len(places["w"])
    offsets = sorted(draw(st.permutations(range(rank)))[: len(places["w"])])
    values, windows = iter(batch_sizes), iter([taken[k] for k in places["w"]])
    out = [next(windows) if k in offsets else next(values) for k in range(rank)]
    return (
        f"{array(out)} gather({array(sizes)} p, {array(indices, 's32')} i), "
        f"offset_dims={{{ints(offsets)}}}, collapsed_slice_dims={{{ints(places['c'])}}}, "
        f"start_index_map={{{ints(starts)}}}, "
        f"operand_batching_dims={{{ints(k for k, _ in pairs)}}}, "
        f"start_indices_batching_dims={{{ints(n for _, n in pairs)}}}, "
        f"index_vector_dim={vector}, slice_sizes={{{ints(taken)}}}"
    )


STRATEGIES = {
    "pad": pads(),
    "slice": slices(),
    "reduce-window": windows(),
    "reshape": reshapes(),
    "bitcast": bitcasts(),
    "dot": dots(),
    "dynamic-slice and dynamic-update-slice": dynamic(),
    "gather": gathers(),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_random_instructions_are_read_as_their_maps_say(name: str) -> None:
    @fuzz(25)
    @given(STRATEGIES[name], st.integers(0, 1 << 30))
    def check(text: str, seed: int) -> None:
        sample = parse_sample(text)
        assert hlo.verify(sample.instruction.module) == []
        if sum(math.prod(s.dims) for s in (*sample.outputs, *sample.arrays)) > 200:
            return
        random = np.random.default_rng(seed)
        check_reads(sample, random, choices=1)
        check_inverse(sample, random, choices=1)

    check()
