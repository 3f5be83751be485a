"""Pictures of layouts: cells are compared with positions that NumPy and the definitions give."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import hlo
import indexing
from tests.drawing.pictures import cells, texts


def memory_of(shape: tuple[int, ...], array: np.ndarray) -> dict[str, str]:
    """Return the element of each position: `array` has numbers of elements, or -1 for padding."""
    return {
        str(k): "padding" if n < 0 else ",".join(map(str, np.unravel_index(n, shape)))
        for k, n in enumerate(array.ravel().tolist())
    }


@pytest.mark.parametrize("order", ["0,1", "1,0"])
def test_memory_in_order(order: str) -> None:
    elements = np.arange(24).reshape(4, 6)
    svg = indexing.plot_layout(f"f32[4,6]{{{order}}}").svg
    stored = elements if order == "1,0" else elements.T
    assert cells(svg, "memory") == memory_of((4, 6), stored)
    positions = {text: place for place, text in cells(svg, "memory").items()}
    assert cells(svg, "elements") == positions
    assert "arrows: the order in memory" in texts(svg)


def test_three_dimensions() -> None:
    elements = np.arange(24).reshape(2, 3, 4)
    svg = indexing.plot_layout("f32[2,3,4]{0,2,1}").svg
    assert cells(svg, "memory") == memory_of((2, 3, 4), elements.transpose(1, 2, 0))
    assert len(cells(svg, "elements")) == 24


def test_tiles_and_padding() -> None:
    padded = np.full((6, 12), -1)
    padded[:5, :9] = np.arange(45).reshape(5, 9)
    stored = padded.reshape(3, 2, 3, 4).transpose(0, 2, 1, 3)
    svg = indexing.plot_layout("f32[5,9]{1,0:T(2,4)}").svg
    assert cells(svg, "memory") == memory_of((5, 9), stored)
    assert "hatched: padding" in texts(svg)


def test_large_layouts_are_cut() -> None:
    svg = indexing.plot_layout("f32[100,300]{1,0}").svg
    assert cells(svg, "memory")["1023"] == "3,123"
    assert len(cells(svg, "memory")) == 1024
    assert cells(svg, "elements")["63,63"] == str(63 * 300 + 63)
    assert "cut to the first 1,024 of 30,000 positions" in texts(svg)
    assert "cut to the first 64 of 300 indices of d1" in texts(svg)


def test_scalars_and_wrong_shapes() -> None:
    assert cells(indexing.plot_layout("f32[]").svg, "memory") == {"0": ""}
    assert not cells(indexing.plot_layout("f32[0,3]").svg, "memory")
    with pytest.raises(ValueError, match="expected the shape of an array"):
        indexing.plot_layout("(f32[2], f32[3])")
    with pytest.raises(hlo.HloError):
        indexing.plot_layout("f33[2]")


def test_offsets_of_a_layout_of_cute() -> None:
    layout = indexing.parse_cute("(8,(4,4)):(4,(1,32))")
    shown = cells(layout.plot().svg, "layout")
    assert shown == {
        f"{row},{column}": str(row * 4 + column % 4 + column // 4 * 32)
        for row, column in product(range(8), range(16))
    }


def test_banks_of_a_layout() -> None:
    layout = indexing.parse_cute("(4,32):(40,1)")
    shown = cells(layout.plot("A100", element_bits=16).svg, "layout")
    assert shown == {
        f"{row},{column}": str((row * 40 + column) * 2 // 4 % 32)
        for row, column in product(range(4), range(32))
    }


def test_positions_before_the_first_bank() -> None:
    layout = indexing.CuteLayout((4,), (-1,))
    assert cells(layout.plot().svg, "layout") == {"0": "0", "1": "-1", "2": "-2", "3": "-3"}
    shown = cells(layout.plot("A100").svg, "layout")
    assert shown == {"0": "0", **dict.fromkeys("123", "before the first bank")}
    with pytest.raises(ValueError, match="`element_bits` is at least 1"):
        layout.plot("A100", element_bits=0)


def test_modes_beyond_two_are_slices() -> None:
    svg = indexing.parse_cute("(2,3,5):(1,2,6)").plot().svg
    assert cells(svg, "layout")["1,2,3"] == str(1 + 2 * 2 + 3 * 6)
    assert "4 of 5 slices" in texts(svg)
    assert cells(indexing.CuteLayout(4, 3).plot().svg, "layout") == {
        str(k): str(3 * k) for k in range(4)
    }


@pytest.mark.parametrize("bits, base, shift", [(3, 0, 3), (2, 2, 3), (2, 0, -3), (0, 4, 3)])
def test_swizzles(bits: int, base: int, shift: int) -> None:
    swizzle = indexing.Swizzle.xor(bits, base, shift)
    shown = cells(swizzle.plot(columns=8).svg, "swizzle")
    mask = ((1 << bits) - 1) << (base + max(0, shift))
    for index, image in shown.items():
        row, column = map(int, index.split(","))
        x = row * 8 + column
        moved = (x & mask) >> shift if shift > 0 else (x & ((1 << bits) - 1) << base) << -shift
        assert int(image) == x ^ moved
    assert len(shown) >= len(swizzle.columns)
    assert cells(swizzle.plot().svg, "swizzle")
    with pytest.raises(ValueError, match="`columns` is at least 1"):
        swizzle.plot(columns=0)


def test_a_layout_of_triton() -> None:
    bases = {"register": [[0, 1]], "lane": [[0, 2], [1, 0]], "warp": [[2, 0]]}
    layout = indexing.LinearLayout.from_bases(bases)
    shown = cells(layout.plot().svg, "layout")
    for register, lane, warp in product(range(2), range(4), range(2)):
        place = f"{(lane >> 1) + 2 * warp},{register + 2 * (lane & 1)}"
        assert shown[place] == f"register={register} lane={lane} warp={warp}"
    assert len(shown) == 16


def test_inputs_with_the_same_element() -> None:
    layout = indexing.LinearLayout.from_bases({"lane": [[1], [0]]}, {"x": 4})
    shown = cells(layout.plot().svg, "layout")
    assert shown == {"0": "lane=0; lane=2", "1": "lane=1; lane=3", "2": "no input", "3": "no input"}
