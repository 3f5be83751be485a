"""Offsets of layouts, swizzles and pointers, as NVIDIA's pycute computes them.

The values below are those of ``pycute`` in the package ``nvidia-cutlass`` 4.2.0.0: of ``Layout``,
``Swizzle`` and ``ComposedLayout``; with a pointer to elements of n bytes, ``Swizzle`` of the offset
in bytes, divided by n.  The package needs CUDA, so that it is no dependency of the tests; where
``pycute`` can be imported, random layouts are compared, too.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from indexing.memory import parse_cute

# fmt: off
TABLE = [
    ("(4,(2,3)):(2,(1,8))",
     [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 16, 18, 20, 22, 17, 19, 21, 23]),
    ("Sw<2,0,3> o 0 o (4,8):(8,1)",
     [0, 9, 18, 27, 1, 8, 19, 26, 2, 11, 16, 25, 3, 10, 17, 24, 4, 13, 22, 31, 5, 12, 23, 30, 6,
      15, 20, 29, 7, 14, 21, 28]),
    ("Sw<2,0,3> o 5 o (4,(2,3)):(2,(1,8))",
     [5, 7, 8, 10, 6, 9, 11, 13, 12, 14, 19, 17, 15, 18, 16, 22, 23, 21, 26, 24, 20, 27, 25, 31]),
    ("Sw<1,2,-2> o 3 o (3,5):(7,2)",
     [3, 10, 17, 21, 28, 19, 23, 30, 5, 9, 16, 7, 11, 18, 25]),
    ("Sw<2,1,4> o 7 o ((2,3),4):((11,2),32)",
     [7, 18, 9, 20, 11, 22, 37, 48, 43, 54, 41, 52, 67, 86, 77, 80, 79, 82, 97, 116, 111, 114, 109,
      112]),
    ("Sw<3,3,3> o smem_ptr[16b](unset) o (8,3):(64,8)",
     [0, 72, 144, 216, 256, 328, 400, 472, 8, 64, 152, 208, 264, 320, 408, 464, 16, 88, 128, 200,
      272, 344, 384, 456]),
    ("Sw<2,4,3> o smem_ptr[8b](unset) o (8,4):(32,16)",
     [0, 32, 64, 96, 144, 176, 208, 240, 16, 48, 80, 112, 128, 160, 192, 224, 32, 64, 96, 144, 176,
      208, 240, 288, 48, 80, 112, 128, 160, 192, 224, 304]),
]
# fmt: on


@pytest.mark.parametrize("text, offsets", TABLE)
def test_offsets_are_those_of_pycute(text: str, offsets: list[int]) -> None:
    assert parse_cute(text).offsets().tolist() == offsets


def test_random_layouts_have_the_offsets_of_pycute() -> None:
    pycute: Any = pytest.importorskip("pycute", reason="in nvidia-cutlass, which needs CUDA")
    swizzles: Any = pytest.importorskip("pycute.swizzle", reason="in nvidia-cutlass")
    chosen = random.Random(54)
    for _ in range(300):
        shape = tuple(chosen.choices([1, 2, 3, 4, 5, 8], k=chosen.randint(2, 3)))
        stride = tuple(chosen.choices([0, 1, 2, 3, 7, 8, 33], k=len(shape)))
        bits, start = chosen.randint(0, 3), chosen.randint(0, 9)
        shift = chosen.choice([-1, 1]) * chosen.randint(max(bits, 1), 5)
        numbers = bits, chosen.randint(0, 4), shift
        theirs, swizzle = pycute.Layout(shape, stride), swizzles.Swizzle(*numbers)
        expected = [swizzle(start + theirs(i)) for i in range(pycute.size(theirs))]
        plain = f"{shape}:{stride}".replace(" ", "")
        text = f"Sw<{','.join(map(str, numbers))}> o {start} o {plain}"
        assert parse_cute(text).offsets().tolist() == expected, text
