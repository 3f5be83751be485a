"""Collapsed shapes: the smallest shapes with equivalent maps."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from indexing.tiling.collapsing import Collapse, CollapsedArray, collapse
from tests.ops.samples import ALL, Sample, SampleChecks, parse_sample
from tests.oracles import fuzz, relation

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
"""


def collapse_text(body: str, before: str = "") -> Collapse:
    root = hlo.parse(f"{COMPUTATIONS}{before}\nENTRY e {{ {body} }}").entry.root
    result = collapse(root)
    assert isinstance(result, Collapse)
    check(result)
    return result


def check(result: Collapse) -> None:
    """Check that each restored map equals the original.

    Each array and its collapsed form must have the same elements, in the same order.
    """
    for output, row in enumerate(result.originals):
        for operand, originals in enumerate(row):
            restored = result.restored(output, operand)
            assert len(restored) == len(originals)
            for original, again in zip(originals, restored, strict=True):
                assert again.is_equal(original) is True, f"{original}\n{again}"
                assert again.grade == original.grade or original.is_empty()
    for array in (*result.outputs, *result.operands):
        check_array(array)


def check_array(array: CollapsedArray) -> None:
    assert [k for group in array.groups for k in group] == list(range(array.shape.rank))
    assert array.collapsed.size == array.shape.size
    if 0 < array.shape.size < 2000:
        elements = np.arange(array.shape.size)
        original = elements.reshape(array.shape.dims)
        flat = elements.reshape(array.collapsed.dims)
        pairs = relation(array.to_collapsed)
        assert {(original[a], flat[b]) for a, b in pairs} == {(k, k) for k in elements}
        assert {(b, a) for a, b in pairs} == relation(array.from_collapsed)


def sizes(arrays: tuple[CollapsedArray, ...]) -> list[tuple[int, ...]]:
    return [array.collapsed.dims for array in arrays]


# fmt: off
TABLE = [
    # computation, sizes of the results, sizes of the operands
    ("p = f32[2,3,4] parameter(0)  ROOT r = f32[2,3,4] negate(p)",
     [(24,)], [(24,)]),
    ("p = f32[2,3,4] parameter(0)  ROOT r = f32[2,3,4] add(p, p)",
     [(24,)], [(24,), (24,)]),
    ("p = f32[] parameter(0)  ROOT r = f32[] negate(p)",
     [()], [()]),
    ("p = f32[2,3,4] parameter(0)  ROOT r = f32[3,4,2] transpose(p), dimensions={1,2,0}",
     [(12, 2)], [(2, 12)]),
    ("p = f32[2,3,4] parameter(0)  ROOT r = f32[4,3,2] transpose(p), dimensions={2,1,0}",
     [(4, 3, 2)], [(2, 3, 4)]),
    ("p = f32[2,1,4] parameter(0)  ROOT r = f32[4,1,2] transpose(p), dimensions={2,1,0}",
     [(4, 2)], [(2, 4)]),
    ("p = f32[3,4] parameter(0)  ROOT r = f32[2,5,3,4] broadcast(p), dimensions={2,3}",
     [(10, 12)], [(12,)]),
    ("p = f32[3,4] parameter(0)  ROOT r = f32[3,2,4] broadcast(p), dimensions={0,2}",
     [(3, 2, 4)], [(3, 4)]),
    ("p = f32[] parameter(0)  ROOT r = f32[2,5,3] broadcast(p), dimensions={}",
     [(30,)], [()]),
    ("p = f32[6,4] parameter(0)  ROOT r = f32[3,8] reshape(p)",
     [(24,)], [(24,)]),
    ("p = f32[4,9,5] parameter(0)  ROOT r = f32[4,9,5] reverse(p), dimensions={0,1}",
     [(36, 5)], [(36, 5)]),
    ("p = f32[4,9,5] parameter(0)  ROOT r = f32[4,9,5] reverse(p), dimensions={0,1,2}",
     [(180,)], [(180,)]),
    # whole rows are one block; parts of rows and strided rows have no single index
    ("p = f32[7,4,5] parameter(0)  ROOT r = f32[3,4,5] slice(p), slice={[2:5],[0:4],[0:5]}",
     [(60,)], [(140,)]),
    ("p = f32[7,4,5] parameter(0)  ROOT r = f32[7,4,2] slice(p), slice={[0:7],[0:4],[1:3]}",
     [(28, 2)], [(28, 5)]),
    ("p = f32[7,4,5] parameter(0)  ROOT r = f32[4,4,5] slice(p), slice={[0:7:2],[0:4],[0:5]}",
     [(4, 20)], [(7, 20)]),
    # one row is a block; one column has a stride
    ("p = f32[5,4] parameter(0)  ROOT r = f32[1,4] slice(p), slice={[3:4],[0:4]}",
     [(4,)], [(20,)]),
    ("p = f32[5,4] parameter(0)  ROOT r = f32[5,1] slice(p), slice={[0:5],[2:3]}",
     [(5,)], [(5, 4)]),
    ("p = f32[2,3,5] parameter(0) q = f32[4,3,5] parameter(1) "
     "ROOT r = f32[6,3,5] concatenate(p, q), dimensions={0}",
     [(90,)], [(30,), (60,)]),
    ("p = f32[3,2,5] parameter(0) q = f32[3,4,5] parameter(1) "
     "ROOT r = f32[3,6,5] concatenate(p, q), dimensions={1}",
     [(3, 30)], [(3, 10), (3, 20)]),
    ("p = f32[3,4,5] parameter(0) v = f32[] parameter(1) "
     "ROOT r = f32[6,4,5] pad(p, v), padding=1_2x0_0x0_0",
     [(120,)], [(60,), ()]),
    ("p = f32[3,4,5] parameter(0) v = f32[] parameter(1) "
     "ROOT r = f32[3,7,5] pad(p, v), padding=0_0x1_2x0_0",
     [(3, 35)], [(3, 20), ()]),
    ("p = f32[2,3,4,5] parameter(0) z = f32[] parameter(1) "
     "ROOT r = f32[2,3] reduce(p, z), dimensions={2,3}, to_apply=add",
     [(6,)], [(6, 20), ()]),
    ("p = f32[2,3,4,5] parameter(0) z = f32[] parameter(1) "
     "ROOT r = f32[2,5] reduce(p, z), dimensions={1,2}, to_apply=add",
     [(2, 5)], [(2, 12, 5), ()]),
    # contracting dimensions merge only if both operands have them in one order
    ("p = f32[2,3,4,5,6,7] parameter(0) q = f32[2,3,6,7,8,9] parameter(1) "
     "ROOT r = f32[2,3,4,5,8,9] dot(p, q), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
     "lhs_contracting_dims={4,5}, rhs_contracting_dims={2,3}",
     [(6, 20, 72)], [(6, 20, 42), (6, 42, 72)]),
    ("p = f32[4,6,7] parameter(0) q = f32[7,6,8] parameter(1) "
     "ROOT r = f32[4,8] dot(p, q), lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}",
     [(4, 8)], [(4, 6, 7), (7, 6, 8)]),
    ("p = f32[4,6,7] parameter(0) q = f32[6,8,7] parameter(1) "
     "ROOT r = f32[4,8] dot(p, q), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,2}",
     [(4, 8)], [(4, 6, 7), (6, 8, 7)]),
    ("p = f32[2,3,8,9] parameter(0) z = f32[] parameter(1) "
     "ROOT r = f32[2,3,7,8] reduce-window(p, z), window={size=1x1x2x2}, to_apply=add",
     [(6, 7, 8)], [(6, 8, 9), ()]),
    # a runtime start in rows is not a unit-stride start in elements
    ("p = f32[9,4] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) "
     "ROOT r = f32[3,4] dynamic-slice(p, i, j), dynamic_slice_sizes={3,4}",
     [(3, 4)], [(9, 4), (), ()]),
    ("p = f32[9,4,5] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2) "
     "ROOT r = f32[3,4,5] dynamic-slice(p, i, j, j), dynamic_slice_sizes={3,4,5}",
     [(3, 20)], [(9, 20), (), (), ()]),
    # gathers
    ("p = f32[4,2,3,2,6] parameter(0) i = s32[5,7] parameter(1) "
     "ROOT r = f32[4,2,5,7,2,6] gather(p, i), offset_dims={0,1,4,5}, collapsed_slice_dims={2}, "
     "start_index_map={2}, index_vector_dim=2, slice_sizes={4,2,1,2,6}",
     [(8, 35, 12)], [(8, 3, 12), (35,)]),
    ("p = f32[2,5,2] parameter(0) i = s32[2,3,1] parameter(1) "
     "ROOT r = f32[2,2,3,2] gather(p, i), offset_dims={0,3}, collapsed_slice_dims={1}, "
     "start_index_map={1}, index_vector_dim=2, slice_sizes={2,1,2}",
     [(2, 6, 2)], [(2, 5, 2), (6,)]),
    ("p = f32[2,5,3,7,4] parameter(0) i = s32[2,5,6] parameter(1) "
     "ROOT r = f32[2,5,3,6,4] gather(p, i), offset_dims={2,4}, collapsed_slice_dims={3}, "
     "start_index_map={3}, operand_batching_dims={0,1}, start_indices_batching_dims={0,1}, "
     "index_vector_dim=3, slice_sizes={1,1,3,1,4}",
     [(10, 3, 6, 4)], [(10, 3, 7, 4), (10, 6)]),
    # arrays without elements are not collapsed
    ("p = f32[2,3,0] parameter(0) ROOT r = f32[2,3,0] negate(p)",
     [(2, 3, 0)], [(2, 3, 0)]),
]
# fmt: on


@pytest.mark.parametrize("body, outputs, operands", TABLE, ids=range(len(TABLE)))
def test_shapes_collapse(
    body: str, outputs: list[tuple[int, ...]], operands: list[tuple[int, ...]]
) -> None:
    result = collapse_text(body)
    assert (sizes(result.outputs), sizes(result.operands)) == (outputs, operands)


# ---------------------------------------------------------------- fusions

FUSED = """
fused {
  p = f32[4,6,5] parameter(0)
  q = f32[6,5] parameter(1)
  b = f32[4,6,5] broadcast(q), dimensions={1,2}
  s = f32[4,6,5] add(p, b)
  ROOT r = f32[2,2,30] reshape(s)
}
transposed {
  p = f32[4,6,5] parameter(0)
  t = f32[6,4,5] transpose(p), dimensions={1,0,2}
  u = f32[4,6,5] transpose(t), dimensions={1,0,2}
  ROOT r = f32[4,6,5] add(p, u)
}
both {
  p = f32[4,6,5] parameter(0)
  t = f32[5,4,6] transpose(p), dimensions={2,0,1}
  n = f32[4,6,5] negate(p)
  ROOT r = (f32[5,4,6], f32[4,6,5]) tuple(t, n)
}
square {
  p = f32[5,5,3] parameter(0)
  t = f32[5,5,3] transpose(p), dimensions={1,0,2}
  ROOT r = f32[5,5,3] add(p, t)
}
gathered {
  p = f32[4,7,3] parameter(0)
  i = s32[10] parameter(1)
  j = s32[2,5] reshape(i)
  g = f32[4,2,5,3] gather(p, j), offset_dims={0,3}, collapsed_slice_dims={1},
    start_index_map={1}, index_vector_dim=2, slice_sizes={4,1,3}
  ROOT r = f32[2,2,10,3] reshape(g)
}
"""

# fmt: off
FUSIONS = [
    ("p = f32[4,6,5] parameter(0) q = f32[6,5] parameter(1) "
     "ROOT f = f32[2,2,30] fusion(p, q), kind=kLoop, calls=fused",
     [(4, 30)], [(4, 30), (30,)]),
    ("p = f32[4,6,5] parameter(0) ROOT f = f32[4,6,5] fusion(p), kind=kLoop, calls=transposed",
     [(120,)], [(120,)]),
    # the transpose keeps the order of the first two dimensions
    ("p = f32[4,6,5] parameter(0) "
     "ROOT f = (f32[5,4,6], f32[4,6,5]) fusion(p), kind=kLoop, calls=both",
     [(5, 24), (24, 5)], [(24, 5)]),
    # one of two accesses needs separate dimensions
    ("p = f32[5,5,3] parameter(0) ROOT f = f32[5,5,3] fusion(p), kind=kLoop, calls=square",
     [(5, 5, 3)], [(5, 5, 3)]),
    ("p = f32[4,7,3] parameter(0) i = s32[10] parameter(1) "
     "ROOT f = f32[2,2,10,3] fusion(p, i), kind=kLoop, calls=gathered",
     [(4, 10, 3)], [(4, 7, 3), (10,)]),
]
# fmt: on


@pytest.mark.parametrize("body, outputs, operands", FUSIONS, ids=range(len(FUSIONS)))
def test_fusions_collapse(
    body: str, outputs: list[tuple[int, ...]], operands: list[tuple[int, ...]]
) -> None:
    result = collapse_text(body, FUSED)
    assert (sizes(result.outputs), sizes(result.operands)) == (outputs, operands)


# ---------------------------------------------------------------- all ops


CHECKS = SampleChecks()


@CHECKS.of(ALL)
def collapsed_maps_are_those_of_the_op(sample: Sample) -> None:
    instruction = sample.instruction
    result = collapse(instruction)
    if isinstance(result, indexing.Unknown):
        assert result in {
            unknown
            for n in range(len(hlo.shapes.shape.leaves(instruction.shape)))
            for unknown in indexing.output_to_input(instruction, n).unknown
        }
        return
    check(result)


@pytest.mark.parametrize("opcode", CHECKS.opcodes)
def test_every_op_collapses_consistently_with_its_maps(opcode: str) -> None:
    CHECKS.check(opcode)


def ints(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


@st.composite
def reshapes(draw: st.DrawFn) -> str:
    """A reshape between two random factorisations of one size."""
    size = draw(st.sampled_from([1, 4, 6, 12, 24, 30, 36, 64]))
    shapes = []
    for _ in range(2):
        left, sizes = size, []
        while left > 1:
            sizes.append(draw(st.sampled_from([d for d in range(2, left + 1) if left % d == 0])))
            left //= sizes[-1]
        for _ in range(draw(st.integers(0, 2))):
            sizes.insert(draw(st.integers(0, len(sizes))), 1)
        shapes.append(ints(sizes))
    return f"f32[{shapes[0]}] reshape(f32[{shapes[1]}] p)"


@given(reshapes())
@fuzz(60)
def test_a_reshape_is_one_dimensional(text: str) -> None:
    result = collapse(parse_sample(text).instruction)
    assert isinstance(result, Collapse)
    check(result)
    size = result.outputs[0].shape.size
    for array in (*result.outputs, *result.operands):
        assert array.collapsed.dims in ((size,), ())


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.data())
@fuzz(60)
def test_a_transpose_collapses_to_its_runs(sizes: list[int], data: st.DataObject) -> None:
    """The collapsed rank is the number of runs of consecutive dimensions."""
    order = data.draw(st.permutations(range(len(sizes))))
    out = [sizes[k] for k in order]
    text = f"f32[{ints(out)}] transpose(f32[{ints(sizes)}] p), dimensions={{{ints(order)}}}"
    result = collapse(parse_sample(text).instruction)
    assert isinstance(result, Collapse)
    check(result)
    wide = [k for k in order if sizes[k] > 1]
    position = {k: n for n, k in enumerate(sorted(wide))}
    runs = sum(position[b] != position[a] + 1 for a, b in pairwise(wide)) + 1
    assert result.outputs[0].collapsed.rank == result.operands[0].collapsed.rank == max(runs, 1)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
@fuzz(60)
def test_slices_collapse(sizes: list[int], data: st.DataObject) -> None:
    cuts, out = [], []
    for n in sizes:
        start = data.draw(st.integers(0, n - 1))
        limit, stride = data.draw(st.integers(start + 1, n)), data.draw(st.integers(1, 3))
        cuts.append(f"[{start}:{limit}:{stride}]")
        out.append(len(range(start, limit, stride)))
    text = f"f32[{ints(out)}] slice(f32[{ints(sizes)}] p), slice={{{', '.join(cuts)}}}"
    result = collapse(parse_sample(text).instruction)
    assert isinstance(result, Collapse)
    check(result)


def test_unknown_maps_do_not_collapse() -> None:
    root = hlo.parse("ENTRY e { p = f32[2,3] parameter(0)  ROOT r = f32[2,3] no-such-op(p) }")
    result = collapse(root.entry.root)
    assert isinstance(result, indexing.Unknown)
    assert "no-such-op" in result.reason


def test_an_empty_map_collapses_to_an_empty_map() -> None:
    """The slice selects only padding."""
    result = collapse_text(
        "p = f32[3,4] parameter(0) v = f32[] parameter(1) "
        "ROOT f = f32[2,4] fusion(p, v), kind=kLoop, calls=cut",
        """cut {
          p = f32[3,4] parameter(0)
          v = f32[] parameter(1)
          q = f32[5,4] pad(p, v), padding=0_2x0_0
          ROOT s = f32[2,4] slice(q), slice={[3:5],[0:4]}
        }""",
    )
    assert [m.is_known_empty for m in result.maps[0][0]] == [True]
    assert sizes(result.outputs) == [(8,)]
    assert [len(m.dims) for m in result.maps[0][0]] == [1]
