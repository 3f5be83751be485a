"""Strategies for random instructions, as text, of every op with maps and a kernel.

Shapes include rank 0 and sizes 0 and 1; attributes are any valid ones.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hypothesis import strategies as st

from hlo.ops.op import OPS

Draw = Any
SIZE = st.integers(1, 4)
SIZES = st.lists(st.integers(0, 3), max_size=3)


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
    sizes = draw(st.lists(st.integers(0, 7), max_size=2))
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
    """Sizes with product `size`, some of them 1."""
    sizes: list[int] = []
    while size > 1:
        sizes.append(draw(st.sampled_from([d for d in range(2, size + 1) if size % d == 0])))
        size //= sizes[-1]
    for _ in range(draw(st.integers(0, 2))):
        sizes.insert(draw(st.integers(0, len(sizes))), 1)
    return sizes


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
    batch, summed = draw(st.tuples(*[st.lists(st.integers(0, 4), max_size=2)] * 2))
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
def dynamic(draw: Draw, opcode: str) -> str:
    sizes = draw(st.lists(st.integers(0, 4), max_size=3))
    window = [draw(st.integers(0, n)) for n in sizes]
    starts = "".join(f", s32[] i{k}" for k in range(len(sizes)))
    if sizes and draw(st.booleans()):  # the syntax before 2019
        starts = f", s32[{len(sizes)}] i"
    if opcode == "dynamic-slice":
        operands = f"{array(sizes)} p{starts}"
        return f"{array(window)} dynamic-slice({operands}), dynamic_slice_sizes={{{ints(window)}}}"
    return f"{array(sizes)} dynamic-update-slice({array(sizes)} p, {array(window)} u{starts})"


class Lookup(NamedTuple):
    """Dimension numbers common to gather and scatter, and shapes that fit them.

    Attributes:
        sizes: sizes of the operand.
        taken: sizes of the window at each index.
        indices: sizes of the indices.
        result: sizes of the result of gather, or of the updates of scatter.
        windowed: window dimensions of `result`.
        dropped: collapsed (gather) or inserted (scatter) dimensions of the operand.
        starts: operand dimension of each component of an index vector.
        pairs: batching dimensions of the operand and of the indices.
        vector: ``index_vector_dim``; the rank of the indices for scalar indices.
    """

    sizes: list[int]
    taken: list[int]
    indices: list[int]
    result: list[int]
    windowed: list[int]
    dropped: list[int]
    starts: list[int]
    pairs: list[tuple[int, int]]
    vector: int


@st.composite
def lookups(draw: Draw) -> Lookup:
    """Lookups with windowed, collapsed and batching dimensions, and any index_vector_dim."""
    kinds = draw(st.lists(st.sampled_from("wwdb"), max_size=3))
    sizes = [draw(SIZE if kind == "w" else st.integers(0, 4)) for kind in kinds]
    taken = [
        draw(st.integers(0, n)) if kind == "w" else min(n, 1)
        for n, kind in zip(sizes, kinds, strict=True)
    ]
    places = {kind: [k for k, other in enumerate(kinds) if other == kind] for kind in "wdb"}
    starts = draw(st.permutations([k for k in range(len(kinds)) if kinds[k] != "b"]))
    starts = starts[: draw(st.integers(0, len(starts)))]
    batch = [*places["b"], *[None] * draw(st.integers(0, 1))]
    batch = draw(st.permutations(batch))
    batch_sizes = [sizes[k] if k is not None else draw(st.integers(0, 3)) for k in batch]
    indices, vector, pairs = draw(index_arrays(batch, batch_sizes, len(starts)))
    kept = [taken[k] for k in places["w"]]
    result, windowed = draw(lookup_results(batch_sizes, kept))
    return Lookup(sizes, taken, indices, result, windowed, places["d"], starts, pairs, vector)


@st.composite
def index_arrays(
    draw: Draw, batch: list[int | None], sizes: list[int], length: int
) -> tuple[list[int], int, list[tuple[int, int]]]:
    """Sizes of the indices, index_vector_dim for vectors of `length`, and batching dimensions."""
    vector = draw(st.integers(0, len(batch)))
    indices = list(sizes)
    if length != 1 or vector < len(batch) or draw(st.booleans()):
        indices.insert(vector, length)
    is_explicit = len(indices) > len(batch)
    shift = [k + (is_explicit and k >= vector) for k in range(len(batch))]
    return indices, vector, [(k, shift[n]) for n, k in enumerate(batch) if k is not None]


@st.composite
def lookup_results(draw: Draw, batch: list[int], window: list[int]) -> tuple[list[int], list[int]]:
    """Sizes of the result, and its window dimensions."""
    rank = len(batch) + len(window)
    windowed = sorted(draw(st.permutations(range(rank)))[: len(window)])
    free, held = iter(batch), iter(window)
    return [next(held) if k in windowed else next(free) for k in range(rank)], windowed


@st.composite
def gathers(draw: Draw) -> str:
    at = draw(lookups())
    return (
        f"{array(at.result)} gather({array(at.sizes)} p, {array(at.indices, 's32')} i), "
        f"offset_dims={{{ints(at.windowed)}}}, collapsed_slice_dims={{{ints(at.dropped)}}}, "
        f"start_index_map={{{ints(at.starts)}}}, "
        f"operand_batching_dims={{{ints(k for k, _ in at.pairs)}}}, "
        f"start_indices_batching_dims={{{ints(n for _, n in at.pairs)}}}, "
        f"index_vector_dim={at.vector}, slice_sizes={{{ints(at.taken)}}}"
    )


@st.composite
def scatters(draw: Draw) -> str:
    at, kind = draw(lookups()), draw(st.sampled_from(["s32", "u8"]))
    into, updates = array(at.sizes), array(at.result)
    return (
        f"{into} scatter({into} p, {array(at.indices, kind)} i, {updates} u), "
        f"update_window_dims={{{ints(at.windowed)}}}, inserted_window_dims={{{ints(at.dropped)}}}, "
        f"scatter_dims_to_operand_dims={{{ints(at.starts)}}}, "
        f"input_batching_dims={{{ints(k for k, _ in at.pairs)}}}, "
        f"scatter_indices_batching_dims={{{ints(n for _, n in at.pairs)}}}, "
        f"index_vector_dim={at.vector}, to_apply=add"
    )


# ---------------------------------------------------------------- data movement


@st.composite
def broadcasts(draw: Draw) -> str:
    out = draw(SIZES)
    some = draw(st.permutations(range(len(out))))[: draw(st.integers(0, len(out)))]
    return f"{array(out)} broadcast({array(out[k] for k in some)} p), dimensions={{{ints(some)}}}"


@st.composite
def transposes(draw: Draw) -> str:
    sizes = draw(SIZES)
    order = draw(st.permutations(range(len(sizes))))
    out = array(sizes[k] for k in order)
    return f"{out} transpose({array(sizes)} p), dimensions={{{ints(order)}}}"


@st.composite
def reverses(draw: Draw) -> str:
    shape = array(sizes := draw(SIZES))
    some = draw(st.permutations(range(len(sizes))))[: draw(st.integers(0, len(sizes)))]
    return f"{shape} reverse({shape} p), dimensions={{{ints(some)}}}"


@st.composite
def concatenates(draw: Draw) -> str:
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    at, extents = (
        draw(st.integers(0, len(sizes) - 1)),
        draw(st.lists(st.integers(0, 3), min_size=1)),
    )
    shapes = [array([*sizes[:at], n, *sizes[at + 1 :]]) for n in [*extents[:4], sum(extents[:4])]]
    parts = ", ".join(f"{shape} p{k}" for k, shape in enumerate(shapes[:-1]))
    return f"{shapes[-1]} concatenate({parts}), dimensions={{{at}}}"


@st.composite
def bitcast_converts(draw: Draw) -> str:
    sizes, ratio = draw(SIZES), draw(st.sampled_from([1, 2, 4]))
    wide, narrow = {1: ("u16", "s16"), 2: ("u32", "u16"), 4: ("f32", "u8")}[ratio]
    shapes = array(sizes, wide), array([*sizes, ratio][: len(sizes) + (ratio > 1)], narrow)
    out, operand = draw(st.permutations(shapes))
    return f"{out} bitcast-convert({operand} p)"


# ---------------------------------------------------------------- sums and windows


@st.composite
def reduces(draw: Draw) -> str:
    sizes = draw(SIZES)
    some = draw(st.permutations(range(len(sizes))))[: draw(st.integers(0, len(sizes)))]
    kept = [n for k, n in enumerate(sizes) if k not in some]
    dimensions = f"dimensions={{{ints(some)}}}"
    if draw(st.booleans()):
        function = draw(st.sampled_from(["add", "maximum"]))
        operands = f"{array(sizes)} p, f32[] z"
        return f"{array(kept)} reduce({operands}), {dimensions}, to_apply={function}"
    operands = f"{array(sizes)} p, {array(sizes, 's32')} q, f32[] y, s32[] z"
    result = f"({array(kept)}, {array(kept, 's32')})"
    return f"{result} reduce({operands}), {dimensions}, to_apply=add_both"


@st.composite
def selections(draw: Draw) -> str:
    """Samples of select-and-scatter with strides and padding."""
    sizes = draw(st.lists(st.integers(0, 4), max_size=2))
    rows = []
    for n in sizes:
        size, stride = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        low, high = draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))
        padded = n + low + high
        rows.append((size, stride, f"{low}_{high}", (padded - size) // stride + 1))
        if padded < size:
            rows[-1] = (*rows[-1][:3], 0)
    names = ["size", "stride", "pad"]
    fields = [f"{name}={'x'.join(str(r[k]) for r in rows)}" for k, name in enumerate(names) if rows]
    shape, source = array(sizes), array(r[3] for r in rows)
    return (
        f"{shape} select-and-scatter({shape} p, {source} q, f32[] z), "
        f"window={{{' '.join(fields)}}}, select=greater_or_equal, scatter=add"
    )


@st.composite
def scaled_dots(draw: Draw) -> str:
    """Samples with scales of blocks of the contracting dimension, or of a whole operand."""
    m, n, blocks, width = draw(st.tuples(*[st.integers(1, 3)] * 4))
    k = blocks * width
    left = draw(st.sampled_from([array([m, blocks]), array([1, 1]), array([m, k])]))
    right = draw(st.sampled_from([array([blocks, n]), array([1, 1]), array([k, n])]))
    return (
        f"{array([m, n])} scaled-dot({array([m, k])} p, {array([k, n])} q, {left} r, {right} s), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )


@st.composite
def ragged_dots(draw: Draw) -> str:
    """Samples with a free, a contracting or a batch ragged dimension."""
    m, n, k, groups, b = draw(st.tuples(*[st.integers(1, 3)] * 5))
    left, right, out, attributes = {
        "rows": (
            [m, k],
            [groups, k, n],
            [m, n],
            "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
            "rhs_group_dims={0}",
        ),
        "sums": (
            [m, k],
            [k, n],
            [groups, m, n],
            "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
        ),
        "batches": (
            [b, m, k],
            [b, k, n],
            [b, m, n],
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
            "rhs_contracting_dims={1}, lhs_ragged_dims={0}",
        ),
    }[draw(st.sampled_from(["rows", "sums", "batches"]))]
    operands = f"{array(left)} p, {array(right)} q, s32[{groups}] r"
    return f"{array(out)} ragged-dot({operands}), {attributes}"


# ---------------------------------------------------------------- linear algebra and statistics


@st.composite
def ffts(draw: Draw) -> str:
    batch = draw(st.lists(st.integers(0, 2), max_size=1))
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    half = [*lengths[:-1], lengths[-1] // 2 + 1]
    kind = draw(st.sampled_from(["FFT", "IFFT", "RFFT", "IRFFT"]))
    real, full, short = (
        array([*batch, *sizes], name)
        for sizes, name in ((lengths, "f32"), (lengths, "c64"), (half, "c64"))
    )
    out, operand = {
        "FFT": (full, full),
        "IFFT": (full, full),
        "RFFT": (short, real),
        "IRFFT": (real, short),
    }[kind]
    return f"{out} fft({operand} p), fft_type={kind}, fft_length={{{ints(lengths)}}}"


@st.composite
def choleskys(draw: Draw) -> str:
    n = draw(st.integers(1, 3))
    shape = array([*draw(st.lists(st.integers(0, 2), max_size=1)), n, n], "f64")
    return f"{shape} cholesky({shape} p), lower={str(draw(st.booleans())).lower()}"


@st.composite
def triangular_solves(draw: Draw) -> str:
    batch = draw(st.lists(st.integers(0, 2), max_size=1))
    n, m, is_left = draw(st.integers(1, 3)), draw(st.integers(0, 2)), draw(st.booleans())
    side = array([*batch, *((n, m) if is_left else (m, n))], "f64")
    flags = {
        "left_side": is_left,
        "lower": draw(st.booleans()),
        "unit_diagonal": draw(st.booleans()),
    }
    given = ", ".join(f"{name}={str(value).lower()}" for name, value in flags.items())
    turned = draw(st.sampled_from(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]))
    square = array([*batch, n, n], "f64")
    return f"{side} triangular-solve({square} p, {side} q), {given}, transpose_a={turned}"


@st.composite
def batch_norms(draw: Draw, opcode: str) -> str:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    at = draw(st.integers(0, len(sizes) - 1))
    full, feature = array(sizes, "f64"), array([sizes[at]], "f64")
    three = f"({full}, {feature}, {feature})"
    result, operands = {
        "batch-norm-training": (three, [full, feature, feature]),
        "batch-norm-inference": (full, [full, *[feature] * 4]),
        "batch-norm-grad": (three, [full, *[feature] * 3, full]),
    }[opcode]
    names = ", ".join(f"{shape} {name}" for shape, name in zip(operands, "pqrst", strict=False))
    return f"{result} {opcode}({names}), epsilon=0.5, feature_index={at}"


# ---------------------------------------------------------------- data-dependent selection


@st.composite
def sorts(draw: Draw) -> str:
    sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    fixed = f"dimensions={{{draw(st.integers(0, len(sizes) - 1))}}}"
    fixed += f", is_stable={str(draw(st.booleans())).lower()}"
    if draw(st.booleans()):
        return f"{array(sizes)} sort({array(sizes)} p), {fixed}, to_apply=less_than"
    shapes = array(sizes, "s32"), array(sizes)
    both = f"({', '.join(shapes)}) sort({shapes[0]} p, {shapes[1]} q)"
    return f"{both}, {fixed}, to_apply=first_less_than"


@st.composite
def topks(draw: Draw) -> str:
    batch, n = draw(st.lists(st.integers(0, 2), max_size=1)), draw(st.integers(0, 4))
    k = draw(st.integers(0, n))
    values, places = array([*batch, k]), array([*batch, k], "s32")
    largest = str(draw(st.booleans())).lower()
    return f"({values}, {places}) topk({array([*batch, n])} p), k={k}, largest={largest}"


@st.composite
def choices(draw: Draw, opcode: str) -> str:
    """Samples of select and clamp; some operands may be scalars."""
    shape = array(draw(SIZES))
    if opcode == "select":
        chosen = draw(st.sampled_from([shape.replace("f32", "pred"), "pred[]"]))
        return f"{shape} select({chosen} p, {shape} a, {shape} b)"
    low, high = draw(st.tuples(*[st.sampled_from([shape, "f32[]"])] * 2))
    return f"{shape} clamp({low} low, {shape} x, {high} high)"


# ---------------------------------------------------------------- sizes and random numbers


@st.composite
def set_dimension_sizes(draw: Draw) -> str:
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    at = draw(st.integers(0, len(sizes) - 1))
    out = f"f32[{','.join(f'<={n}' if k == at else str(n) for k, n in enumerate(sizes))}]"
    return f"{out} set-dimension-size({array(sizes)} p, s32[] n), dimensions={{{at}}}"


@st.composite
def get_dimension_sizes(draw: Draw) -> str:
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    at = draw(st.integers(0, len(sizes) - 1))
    return f"s32[] get-dimension-size({array(sizes)} p), dimensions={{{at}}}"


@st.composite
def dynamic_reshapes(draw: Draw) -> str:
    count = draw(st.sampled_from([1, 4, 6, 12]))
    ours, theirs = factors(draw, count), factors(draw, count)
    dynamic = draw(st.integers(-1, len(theirs) - 1))
    out = ",".join(f"<={n}" if k == dynamic else str(n) for k, n in enumerate(theirs))
    sizes = "".join(f", s32[] n{k}" for k in range(len(theirs)))
    return f"f32[{out}] dynamic-reshape({array(ours)} p{sizes})"


@st.composite
def random_numbers(draw: Draw, opcode: str) -> str:
    sizes = draw(SIZES)
    if opcode == "rng":
        kind = draw(st.sampled_from(["rng_uniform", "rng_normal"]))
        return f"{array(sizes)} rng(f32[] low, f32[] high), distribution={kind}"
    out = array(sizes, draw(st.sampled_from(["u8", "u16", "u32", "u64"])))
    kind, words = draw(
        st.sampled_from([("rng_three_fry", 2), ("rng_philox", 3), ("rng_default", 2)])
    )
    state = f"u64[{words}]"
    return f"({state}, {out}) rng-bit-generator({state} state), algorithm={kind}"


@st.composite
def copy_starts(draw: Draw) -> str:
    shape = array(draw(SIZES))
    return f"({shape}, {shape}, u32[]) copy-start({shape} p)"


# ---------------------------------------------------------------- elementwise


@st.composite
def elementwise(draw: Draw, opcodes: tuple[str, ...]) -> str:
    """A sample of one of the ops with random sizes."""
    sample = draw(st.sampled_from([text for name in opcodes for text in OPS[name].samples]))
    sizes = draw(SIZES)
    text = SHAPE.sub(lambda match: array(sizes, match[1]), sample)
    return re.sub(r"dimensions=\{[\d,]*\}", f"dimensions={{{ints(range(len(sizes)))}}}", text)


def is_elementwise(opcode: str) -> bool:
    """Return True if all shapes of a sample have the same sizes."""
    return all(len({m[2] for m in SHAPE.finditer(text)}) == 1 for text in OPS[opcode].samples)


SHAPE = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\](?:\{[\d,]*\})?")
