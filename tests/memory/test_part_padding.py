"""Padding of parts of arrays, against positions in memory listed one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.shapes.memory import is_padding
from hlo.shapes.shape import Shape, parse_shape
from hlo.shapes.tiling import position_of
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.part_padding import ArrayPart, padding_of_part

# fmt: off
LAYOUTS = [
    "f32[20,10]{1,0:T(8,128)}",
    "f32[20,10]{0,1:T(8,128)}",
    "bf16[3,13,150]{2,1,0:T(8,128)(2,1)}",
    "bf16[3,13,150]{1,0,2:T(8,128)(2,1)}",
    "f32[5,300]{1,0:T(4,128)}",
    "s32[700]{0:T(512)}",
    "pred[700]{0:T(512)(128)(4,1)S(1)}",
]
# fmt: on


def listed_padding(shape: Shape, part: Any) -> int:
    """Return the bytes of padding in the tiles of a layout that hold a part, by position.

    Args:
        part: the elements, as an index of NumPy.
    """
    layout = shape.layout_or_default
    size = int(np.prod(layout.tiles[0]))
    index = [k[part].ravel() for k in np.indices(shape.dims)]
    tiles = np.unique(position_of(index, shape.dims, layout) // size)
    positions = (tiles[:, None] * size + np.arange(size)).ravel()
    padding = is_padding(positions, shape.dims, layout)
    return int(np.count_nonzero(padding)) * shape.element_bits // 8


def as_amount(paddings: set[int]) -> Amount:
    return Amount(max(paddings), "exact" if len(paddings) == 1 else "may")


def layout_of(text: str) -> Shape:
    shape = parse_shape(text)
    assert isinstance(shape, Shape)
    return shape


@pytest.mark.parametrize("text", LAYOUTS)
def test_the_padding_of_a_slice_is_that_of_the_tiles_that_hold_it(text: str) -> None:
    shape = layout_of(text)
    random = np.random.default_rng(53)
    for _ in range(40):
        starts = [int(random.integers(0, n)) for n in shape.dims]
        limits = [int(random.integers(k, n)) + 1 for k, n in zip(starts, shape.dims, strict=True)]
        strides = [int(random.choice([1, 1, 2, 3, 8, 11, 128])) for _ in shape.dims]
        slices = tuple(map(slice, starts, limits, strides))
        sizes = ",".join([str(len(range(*s.indices(10**6)))) for s in slices])
        bounds = ", ".join([f"[{s.start}:{s.stop}:{s.step}]" for s in slices])
        root = hlo.parse(f"""ENTRY e {{ p = {text} parameter(0)
          ROOT s = {shape.element_type}[{sizes}] slice(p), slice={{{bounds}}} }}""").entry.root
        (read,) = indexing.traffic(root).instructions[0].operands
        assert read.padding == Amount(listed_padding(shape, slices)), bounds
        assert read.stored == Amount(read.distinct.number + read.padding.number)


@pytest.mark.parametrize("text", LAYOUTS)
def test_the_padding_of_a_window_has_the_bounds_of_all_its_starts(text: str) -> None:
    shape = layout_of(text)
    random = np.random.default_rng(54)
    for _ in range(8):
        sizes = [int(random.integers(1, min(n, 12) + 1)) for n in shape.dims]
        lasts = [n - size for n, size in zip(shape.dims, sizes, strict=True)]
        bounds = [(0, n) if random.integers(2) else (n // 2, n // 2) for n in lasts]
        paddings = {
            listed_padding(shape, tuple(slice(s, s + n) for s, n in zip(at, sizes, strict=True)))
            for at in product(*[range(low, high + 1) for low, high in bounds])
        }
        amount = padding_of_part(ArrayPart.window(sizes, bounds), shape)
        assert amount == as_amount(paddings), (sizes, bounds)


def dynamic(text: str, size: str, starts: str) -> indexing.Instruction:
    return hlo.parse(f"""ENTRY e {{ p = {text} parameter(0)  i = s32[] parameter(1)
      z = s32[] constant(3)
      ROOT s = f32[{size}] dynamic-slice(p, {starts}), dynamic_slice_sizes={{{size}}} }}
    """).entry.root


@pytest.mark.parametrize(
    ("size", "starts"), [("1,10", "i, z"), ("3,10", "i, z"), ("3,4", "z, i"), ("2,2", "i, i")]
)
@pytest.mark.parametrize("text", ["f32[20,10]{1,0:T(8,128)}", "f32[20,10]{0,1:T(8,128)}"])
def test_the_padding_of_a_slice_at_run_time_is_exact_if_no_start_changes_it(
    text: str, size: str, starts: str
) -> None:
    shape = layout_of(text)
    sizes = [int(n) for n in size.split(",")]
    (read, *_) = indexing.traffic(dynamic(text, size, starts)).instructions[0].operands
    paddings = set()
    for i in range(20):
        at = [{"i": i, "z": 3}[name] for name in starts.split(", ")]
        at = [min(k, n - w) for k, n, w in zip(at, shape.dims, sizes, strict=True)]
        part = tuple(slice(k, k + w) for k, w in zip(at, sizes, strict=True))
        paddings.add(listed_padding(shape, part))
    assert read.padding == as_amount(paddings)


@pytest.mark.parametrize("starts", ["i, zero", "i, i", "two, zero", "zero, i"])
def test_an_update_in_place_has_the_padding_of_the_tiles_that_it_changes(starts: str) -> None:
    base, dims, sizes = "f32[4,20,10]{2,1,0:T(8,128)}", (4, 20, 10), (1, 4, 10)
    module = hlo.parse(f"""HloModule m, is_scheduled=true, input_output_alias={{ {{}}: (0, {{}}) }}
    ENTRY e {{ p = {base} parameter(0)  u = f32[1,4,10]{{2,1,0:T(8,128)}} parameter(1)
      i = s32[] parameter(2)  zero = s32[] constant(0)  two = s32[] constant(2)
      ROOT d = {base} dynamic-update-slice(p, u, {starts}, zero) }}""")
    traffic = indexing.traffic(module)["d"]
    assert isinstance(traffic.writes, tuple)
    (written,) = traffic.writes
    paddings = set()
    for i in range(20):
        names = {"i": i, "zero": 0, "two": 2}
        at = [*[names[name] for name in starts.split(", ")], 0]
        at = [min(k, n - w) for k, n, w in zip(at, dims, sizes, strict=True)]
        part = tuple(slice(k, k + w) for k, w in zip(at, sizes, strict=True))
        paddings.add(listed_padding(layout_of(base), part))
    assert written.padding == as_amount(paddings)
    assert traffic.operands[0].padding == Amount(0)  # in place: the base is not read


@pytest.mark.parametrize(
    ("rows", "columns"),
    [((0, 3), (0, 10)), ((0, 1), (2, 7)), ((2, 11), (0, 5)), ((16, 20), (0, 1)), ((7, 9), (9, 10))],
)
def test_tiles_that_two_reads_share_are_padded_once(
    rows: tuple[int, int], columns: tuple[int, int]
) -> None:
    """One read has rows 1 to 3, the other one the window."""
    text = "f32[20,10]{1,0:T(8,128)}"
    (low, high), (first, last) = rows, columns
    module = hlo.parse(f"""
    f {{ p = {text} parameter(0)
      a = f32[3,10] slice(p), slice={{[1:4], [0:10]}}
      b = f32[{high - low},{last - first}] slice(p), slice={{[{low}:{high}], [{first}:{last}]}}
      ROOT t = (f32[3,10], f32[{high - low},{last - first}]) tuple(a, b) }}
    ENTRY e {{ x = {text} parameter(0)
      ROOT r = (f32[3,10], f32[{high - low},{last - first}]) fusion(x), kind=kLoop, calls=f }}""")
    (read,) = indexing.traffic(module)["r"].operands
    part = np.zeros((20, 10), bool)
    part[1:4] = part[low:high, first:last] = True
    assert read.elements == Amount(int(part.sum()))
    assert read.padding == Amount(listed_padding(layout_of(text), part))


@pytest.mark.parametrize(("second", "paddings"), [("i", {3776}), ("j", {3776, 7552})])
def test_slices_at_several_starts_have_at_most_the_padding_of_all_tiles(
    second: str, paddings: set[int]
) -> None:
    """The maps of both slices call their start rt0."""
    text = "f32[24,10]{1,0:T(8,128)}"
    module = hlo.parse(f"""
    f {{ p = {text} parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
      z = s32[] constant(0)  a = f32[1,10] dynamic-slice(p, i, z), dynamic_slice_sizes={{1,10}}
      b = f32[1,10] dynamic-slice(p, {second}, z), dynamic_slice_sizes={{1,10}}
      ROOT s = f32[1,10] add(a, b) }}
    ENTRY e {{ x = {text} parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
      ROOT r = f32[1,10] fusion(x, i, j), kind=kLoop, calls=f }}""")
    read = indexing.traffic(module)["r"].operands[0]
    listed = {
        listed_padding(layout_of(text), [[i, j]])
        for i in range(24)
        for j in ([i] if second == "i" else range(24))
    }
    assert listed == paddings
    if len(paddings) == 1:
        assert read.padding == Amount(3776)
    else:
        assert read.padding.grade == "may"
        assert read.padding.number >= max(paddings)


def test_windows_at_one_start_are_counted_together() -> None:
    """Both outputs read the rows i and i + 1, by different maps."""
    text = "f32[24,10]{1,0:T(8,128)}"
    module = hlo.parse(f"""
    f {{ p = {text} parameter(0)  i = s32[] parameter(1)  z = s32[] constant(0)
      a = f32[2,10] dynamic-slice(p, i, z), dynamic_slice_sizes={{2,10}}
      t = f32[10,2] transpose(a), dimensions={{1,0}}
      ROOT s = (f32[2,10], f32[10,2]) tuple(a, t) }}
    ENTRY e {{ x = {text} parameter(0)  i = s32[] parameter(1)
      ROOT r = (f32[2,10], f32[10,2]) fusion(x, i), kind=kLoop, calls=f }}""")
    read = indexing.traffic(module)["r"].operands[0]
    rows = [listed_padding(layout_of(text), slice(i, i + 2)) for i in range(23)]
    assert read.elements == Amount(20)
    assert read.padding == Amount(max(rows), "may") == as_amount(set(rows))


def test_a_part_that_is_not_known_has_at_most_the_padding_of_the_array() -> None:
    root = hlo.parse("""ENTRY e { p = f32[20,10]{1,0:T(8,128)} parameter(0)
      i = s32[7]{0:T(128)} parameter(1)
      ROOT g = f32[7,10]{1,0:T(8,128)} gather(p, i), offset_dims={1}, collapsed_slice_dims={0},
        start_index_map={0}, index_vector_dim=1, slice_sizes={1,10} }""").entry.root
    read = indexing.traffic(root).instructions[0].operands[0]
    assert read.elements.grade == read.padding.grade == "may"
    assert read.padding.number <= (24 * 128 - 200) * 4
