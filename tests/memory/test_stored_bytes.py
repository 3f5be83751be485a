"""Bytes in memory by space: positions of padding are listed one by one with the layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo.shapes.memory import is_padding
from hlo.shapes.shape import Shape, parse_shape
from indexing import cli

# fmt: off
SHAPES = [
    "f32[64,10]{1,0:T(8,128)}",
    "f32[13,5]{0,1:T(8,128)}",
    "bf16[3,17,7]{1,2,0:T(8,128)(2,1)S(1)}",
    "pred[33]{0:T(512)(128)(4,1)}",
    "f32[8,128]{1,0:T(8,128)}",       # no padding
    "f32[6,5]{1,0}",                  # no tiles
    "s32[]{:T(128)S(6)}",
]
# fmt: on


def count_bytes(shape: Shape) -> tuple[int, int]:
    """Return the bytes in memory of an array, and those of padding, position by position."""
    layout = shape.layout_or_default
    padding = is_padding(np.arange(shape.physical_size), shape.dims, layout)
    bits = shape.element_bits
    return shape.physical_size * bits // 8, int(np.count_nonzero(padding)) * bits // 8


def copy_array(text: str) -> hlo.Module:
    """Return a module that reads and writes an array once."""
    return hlo.parse(f"ENTRY e {{ p = {text} parameter(0)  ROOT n = {text} copy(p) }}")


@pytest.mark.parametrize("text", SHAPES)
def test_padding_of_traffic_is_that_of_the_layout(text: str) -> None:
    shape = parse_shape(text)
    assert isinstance(shape, Shape)
    stored, padding = count_bytes(shape)
    traffic = indexing.traffic(copy_array(text))
    (moved,) = traffic.spaces.values()
    assert moved.stored.number == 2 * stored
    assert moved.padding.number == 2 * padding
    assert moved.elements.number == 2 * shape.size
    assert moved.stored.number - moved.padding.number == moved.read.lower + moved.written.lower


def test_a_part_of_a_padded_array_has_the_padding_of_its_tiles() -> None:
    module = hlo.parse("""ENTRY e { p = f32[64,10]{1,0:T(8,128)} parameter(0)
      ROOT s = f32[8,10]{1,0:T(8,128)} slice(p), slice={[0:8], [0:10]} }""")
    (moved,) = indexing.traffic(module).spaces.values()
    assert moved.elements.number == 2 * 80
    assert (moved.stored.lower, moved.stored.upper) == (4096 + 4096, 4096 + 4096)
    assert moved.padding.number == 2 * (4096 - 320)


def test_columns_of_padding_are_printed_where_there_is_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines(text: str) -> list[str]:
        (tmp_path / "m.hlo").write_text(str(copy_array(text)))
        assert cli.run(["bytes", str(tmp_path / "m.hlo")]) == 0
        return capsys.readouterr().out.splitlines()

    dense, padded = lines(SHAPES[4]), lines(SHAPES[0])
    assert not any("padding" in line.split() for line in dense)
    memory, head = [line.split() for line in padded if "padding" in line.split()]
    assert memory == ["memory", "elements", "read", "written", "stored", "padding"]
    cells = dict(zip(head, padded[-1].split(), strict=False))
    assert (cells["stored"], cells["padding"]) == ("65,536", "60,416")


def test_summaries_have_bytes_in_memory_by_space() -> None:
    parameters = "  ".join(f"p{k} = {text} parameter({k})" for k, text in enumerate(SHAPES))
    summary = indexing.summary(hlo.parse(f"ENTRY e {{ {parameters}  ROOT r = () tuple() }}"))
    sums: dict[int, list[int]] = {}
    for array, text in zip(summary.parameters, SHAPES, strict=True):
        shape = parse_shape(text)
        assert isinstance(shape, Shape)
        stored, padding = count_bytes(shape)
        assert (array.stored_bytes, array.padding) == (stored, padding)
        assert array.bytes == stored - padding
        total = sums.setdefault(array.space, [0] * 4)
        total[:] = [a + b for a, b in zip(total, (1, shape.size, stored, padding), strict=True)]
    assert {s.memory: s.space for s in summary.spaces} == {"HBM": 0, "VMEM": 1, "S(6)": 6}
    assert {
        s.space: [s.arrays, s.elements, s.stored_bytes, s.padding] for s in summary.spaces
    } == sums
    ranked = [array.stored_bytes or 0 for array in summary.largest]
    assert ranked == sorted(ranked, reverse=True)
    assert any("padding" in line.split() for line in str(summary).splitlines())


def test_the_source_of_a_copy_is_one_array() -> None:
    summary = indexing.summary(
        hlo.parse("""ENTRY e { p = f32[64]{0:T(128)} parameter(0)
      s = (f32[64]{0:T(128)S(1)}, f32[64]{0:T(128)}, u32[]{:S(2)}) copy-start(p)
      ROOT d = f32[64]{0:T(128)S(1)} copy-done(s) }""")
    )
    sizes = {each.memory: (each.arrays, each.stored_bytes, each.padding) for each in summary.spaces}
    assert sizes == {"HBM": (1, 512, 256), "VMEM": (1, 512, 256), "semaphores": (1, 4, 0)}


def test_summaries_of_dense_modules_have_no_column_of_padding() -> None:
    text = str(indexing.summary(copy_array("f32[6,5]{1,0}")))
    assert "padding" not in text
    assert "stored" not in text


def test_instructions_that_move_the_most_stored_bytes_are_first() -> None:
    """`thin` moves fewer elements than `wide`, in tiles of 128 columns."""
    module = hlo.parse("""ENTRY e { p = f32[64,10]{1,0:T(8,128)} parameter(0)
      q = f32[24,128]{1,0:T(8,128)} parameter(1)
      wide = f32[24,128]{1,0:T(8,128)} negate(q)
      thin = f32[64,10]{1,0:T(8,128)} negate(p)
      ROOT t = (f32[64,10]{1,0:T(8,128)}, f32[24,128]{1,0:T(8,128)}) tuple(thin, wide) }""")
    first, second = indexing.traffic(module).ranked
    assert (first.instruction.name, second.instruction.name) == ("thin", "wide")
    assert first.bytes.number < second.bytes.number
