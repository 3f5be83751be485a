"""Linear layouts against those of Triton: results, ranks, and the layouts that Triton computes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from indexing import IndexingMap
from indexing.memory import LinearLayout
from tests.memory.linear_layouts import linear_layouts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def triton_layout() -> Callable[[LinearLayout], Any]:
    """Return the conversion to a layout of Triton."""
    tools = pytest.importorskip("triton.tools", reason="needs the extra triton")

    def convert(layout: LinearLayout) -> Any:
        names, sizes = [*layout.out_dims], [*layout.out_dims.values()]
        return tools.LinearLayout.from_bases([*layout.bases.items()], names, sizes, False)

    return convert


# Triton's compiler runs in its own process: it aborts on errors, and reports leaks at its end.
COMPILER = """
import json
from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon import language

context = ir.context()
ir.load_dialects(context)
builder = gluon_ir.GluonOpBuilder(context)

def linear(layout, shape):
    return builder.to_linear_layout(layout._to_ir(builder), shape)

blocked = linear(language.BlockedLayout([1, 4], [8, 4], [2, 2], [1, 0]), [32, 64])
swizzled = {
    str(swizzle): linear(language.SwizzledSharedLayout(*swizzle, [1, 0]), [16, 32]).offset_bases
    for swizzle in SWIZZLES
}
print(json.dumps([[blocked.reg_bases, blocked.lane_bases, blocked.warp_bases], swizzled]))
"""
SWIZZLES = [
    # elements together, rows of a phase, phases     in CuTe
    ((4, 1, 8),                                      "Sw<3,2,3>"),
    ((8, 2, 4),                                      "Sw<2,3,3>"),
    ((2, 1, 4),                                      "Sw<2,1,4>"),
    ((1, 4, 1),                                      "Sw<0,4,3>"),
]  # fmt: skip


@pytest.fixture(scope="module")
def compiled() -> Any:
    """Return the bases of a blocked layout and of swizzled layouts that Triton computes."""
    pytest.importorskip("triton.tools", reason="needs the extra triton")
    script = f"SWIZZLES = {[swizzle for swizzle, _ in SWIZZLES]}{COMPILER}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(run.stdout.splitlines()[0])


@given(layout=linear_layouts())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_results_and_ranks_are_those_of_triton(
    triton_layout: Callable[[LinearLayout], Any], layout: LinearLayout
) -> None:
    theirs = triton_layout(layout)
    assert dict(theirs.bases) == layout.bases
    assert theirs.is_injective() == layout.is_injective
    assert theirs.is_surjective() == layout.is_surjective
    for index in np.ndindex(*layout.in_dims.values()):
        point = dict(zip(layout.in_dims, map(int, index), strict=True))
        assert theirs.apply(point) == layout(**point)


def test_inferred_sizes_are_those_of_triton() -> None:
    tools = pytest.importorskip("triton.tools", reason="needs the extra triton")
    bases = {"lane": [[1, 0], [2, 1]], "warp": [[0, 2], [0, 1]]}  # surjective: Triton aborts else
    theirs = tools.LinearLayout.from_bases([*bases.items()], ["dim0", "dim1"])
    assert dict(theirs.out_dims) == LinearLayout.from_bases(bases).out_dims


def test_composition_of_maps_is_that_of_triton(
    triton_layout: Callable[[LinearLayout], Any],
) -> None:
    first = LinearLayout.from_bases({"lane": [[1, 0], [2, 1], [3, 3]]}, {"x": 4, "y": 4})
    second = LinearLayout.from_bases({"x": [[5], [2]], "y": [[8], [1]]}, {"offset": 16})
    composed = first.map.then(second.map).to_linear_layout()
    assert isinstance(composed, LinearLayout)
    theirs = triton_layout(first).compose(triton_layout(second))
    assert dict(theirs.bases) == composed.bases


def test_a_blocked_layout_of_triton_is_a_map(compiled: Any) -> None:
    # a tile of 16 x 32: 4 elements, 4 lanes and 2 warps in a row; 8 lanes and 2 warps in a column
    m = IndexingMap.over(
        (16, 32, 4),
        lambda d: [
            d[1] // 4 + d[2] // 2 * 8 + d[0] // 8 * 16,
            d[0] % 4 + d[1] % 4 * 4 + d[2] % 2 * 16 + d[0] // 4 % 2 * 32,
        ],
    )
    layout = m.to_linear_layout()
    assert isinstance(layout, LinearLayout)
    assert [*layout.bases.values()] == compiled[0]


@pytest.mark.parametrize("of_triton, of_cute", SWIZZLES)
def test_a_swizzle_of_triton_is_a_swizzle_of_cute(
    compiled: Any, of_triton: tuple[int, int, int], of_cute: str
) -> None:
    # the element at an offset: the swizzle is its own inverse, and rows have 32 elements
    element = IndexingMap.over((512,), lambda d: [d[0] // 32, d[0] % 32])
    layout = IndexingMap.from_cute(f"{of_cute} o 0 o 512:1").then(element).to_linear_layout()
    assert isinstance(layout, LinearLayout)
    assert layout.bases["d0"] == compiled[1][str(of_triton)]
