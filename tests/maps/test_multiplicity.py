"""Read counts from maps, compared with enumeration."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo.shapes.shape import Shape, leaves
from indexing import IndexingMap, parse_map
from indexing.dataflow.queries import walk_of
from indexing.maps import counting
from indexing.maps.arrays import ArrayRef
from indexing.maps.counts.queries import count_domain, count_image
from indexing.maps.multiplicity import Multiplicity, multiplicity
from indexing.memory.counting import read_counts
from simplifier.atoms import Variable
from simplifier.unknown import Unknown, require_known
from tests.ops.samples import MAPPED, Sample, SampleChecks
from tests.oracles import boxes, constraint_lists, fuzz, sums, tree_expr, trees

Element = tuple[int, ...]


def enumerate_reads(
    maps: list[IndexingMap], values: dict[str, Any] | None = None
) -> Counter[Element]:
    """The read count of each element, by enumeration."""
    counts: Counter[Element] = Counter()
    for m in maps:
        for point in product(*[range(v.lower, v.upper + 1) for v in (*m.dims, *m.ranges)]):
            at = dict(zip((*m.dims, *m.ranges), point, strict=True))
            known: list[int] = []
            for rt in m.runtime:
                array = np.asarray((values or {})[str(rt.source_name or rt.name)])
                value = int(array[tuple([i.value(at) for i in rt.index])])
                low, high = rt.clamp or (value, value)
                known.append(min(max(value, low), high))
            result = m.evaluate(point[: len(m.dims)], point[len(m.dims) :], known)
            if result is not None:
                counts[result] += 1
    return counts


def check(reads: Multiplicity, expected: Counter[Element]) -> None:
    assert reads.total == expected.total()
    assert reads.distinct == len(expected)
    assert reads.maximum == max(expected.values(), default=0)
    assert reads.histogram() == dict(sorted(Counter(expected.values()).items()))
    for element in [*expected][:20]:
        assert reads.at(element) == expected[element]
    if expected:
        assert reads.at([k + 100 for k in next(iter(expected))]) == (
            0 if next(iter(expected)) else expected[()]
        )


def assert_unknown(answer: object, reason: str) -> None:
    assert isinstance(answer, Unknown)
    assert reason in answer.reason


@given(st.data(), boxes(max_dims=4))
@fuzz(150)
def test_counts_agree_with_enumeration(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    maps: list[IndexingMap] = []
    for _ in range(data.draw(st.integers(1, 2))):
        split = data.draw(st.integers(0, len(box)))
        kind = st.one_of(sums(len(box)), trees(len(box), leaves=3))
        maps.append(
            IndexingMap.of(
                box[:split] if not maps else maps[0].dims,
                [tree_expr(data.draw(kind), box) for _ in range(2)],
                ranges=box[split:] if not maps else maps[0].ranges,
                constraints=data.draw(constraint_lists(box, max_count=2)),
            )
        )
    check(require_known(multiplicity(maps)), enumerate_reads(maps))


@given(st.data(), boxes(max_dims=3))
@fuzz(60)
def test_counts_of_an_array_agree_with_enumeration(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    m = IndexingMap.of(
        box[:1],
        [tree_expr(data.draw(sums(len(box))), box) for _ in range(2)],
        ranges=box[1:],
        constraints=data.draw(constraint_lists(box, max_count=1)),
    )
    sizes = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
    points = enumerate_reads([m])
    expected = [[points[i, j] for j in range(sizes[1])] for i in range(sizes[0])]
    assert require_known(require_known(multiplicity(m)).counts(sizes)).tolist() == expected


# ---------------------------------------------------------------- ops


CHECKS = SampleChecks()


@CHECKS.of(MAPPED)
def reads_are_counted_point_by_point(sample: Sample) -> None:
    """Compare with the op's own maps, which are not simplified."""
    instruction = sample.instruction
    random = np.random.default_rng(5)
    values = {
        o.name: random.integers(-1, 4, o.shape.dims)
        for o in instruction.operands
        if isinstance(o.shape, Shape)
    }
    for output, (path, leaf) in enumerate(leaves(instruction.shape)):
        assert isinstance(leaf, Shape)
        reads = read_counts(instruction, output, values)
        steps = walk_of(simplify=False, masks=False).backward_edges(ArrayRef(instruction, path))
        for step in steps:
            answer = reads[step.operand]
            if step.unknown is not None:
                assert answer == step.unknown
                continue
            assert isinstance(answer, Multiplicity)
            expected = enumerate_reads(list(step.maps), values)
            assert answer.total == expected.total()
            assert answer.histogram() == dict(sorted(Counter(expected.values()).items()))
            assert (answer.distinct, answer.maximum) == (
                len(expected),
                max(expected.values(), default=0),
            )
            plain = [m for m in step.maps if not m.runtime]
            points = enumerate_reads(plain)
            assert count_domain(plain) == points.total()
            assert count_image(plain) == len(points)


@pytest.mark.parametrize("opcode", CHECKS.opcodes)
def test_read_counts_of_an_op_agree_with_enumeration(opcode: str) -> None:
    CHECKS.check(opcode)


FUSION = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
fused {
  p = f32[3,5] parameter(0)
  z = f32[] parameter(1)
  v = f32[3] reduce(p, z), dimensions={1}, to_apply=add
  b = f32[3,7] broadcast(v), dimensions={0}
  n = f32[3,7] negate(b)
  ROOT s = f32[3,7] add(b, n)
}
ENTRY e {
  p = f32[3,5] parameter(0)
  z = f32[] parameter(1)
  ROOT f = f32[3,7] fusion(p, z), kind=kLoop, calls=fused
}
"""


SCALAR = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
fused {
  p = f32[4,10] parameter(0)
  z = f32[] parameter(1)
  b = f32[4,10] broadcast(z), dimensions={}
  m = f32[4,10] multiply(p, b)
  ROOT r = f32[4] reduce(m, z), dimensions={1}, to_apply=add
}
updated {
  p = f32[4] parameter(0)
  u = f32[1] parameter(1)
  i = s32[] parameter(2)
  z = f32[] parameter(3)
  d = f32[4] dynamic-update-slice(p, u, i)
  r = f32[] reduce(p, z), dimensions={0}, to_apply=add
  b = f32[4] broadcast(r), dimensions={}
  ROOT m = f32[4] multiply(d, b)
}
ENTRY e {
  p = f32[4,10] parameter(0)
  z = f32[] parameter(1)
  q = f32[4] parameter(2)
  u = f32[1] parameter(3)
  i = s32[] parameter(4)
  d = f32[4] fusion(q, u, i, z), kind=kLoop, calls=updated
  r = f32[4] fusion(p, z), kind=kLoop, calls=fused
  ROOT t = (f32[4], f32[4]) tuple(r, d)
}"""


def test_read_counts_keep_reads_that_other_reads_cover() -> None:
    entry = hlo.parse(SCALAR).entry
    scalar = require_known(read_counts(entry["r"])[1])
    assert (scalar.total, scalar.distinct, scalar.grade) == (44, 1, "exact")  # 40 and 4 inits
    base = require_known(read_counts(entry["d"])[0])
    assert (base.total, base.grade) == (20, "may")  # 16, and at most 4 that are not updated


def test_read_counts_beyond_the_budget_of_maps_are_unknown() -> None:
    terms = [f"s{k} = f32[1] slice(p), slice={{[{k}:{k + 1}]}}" for k in range(300)]
    sums = [f"a{k} = f32[1] add(a{k - 1}, s{k})" for k in range(1, 300)]
    lines = "\n".join(["p = f32[300] parameter(0)", *terms, "a0 = f32[1] copy(s0)", *sums])
    text = f"""fused {{
      {lines.replace("a299 =", "ROOT a299 =")}
    }}
    ENTRY e {{ p = f32[300] parameter(0)  ROOT f = f32[1] fusion(p), kind=kLoop, calls=fused }}"""
    (reads,) = read_counts(hlo.parse(text).entry.root)
    assert isinstance(reads, Unknown)
    assert "more than 256 maps" in reads.reason


def test_read_counts_of_a_fusion_count_each_access_once() -> None:
    """Each of 21 results sums a row; a second use of the sum adds no reads."""
    rows, init = read_counts(hlo.parse(FUSION).entry.root)
    assert isinstance(rows, Multiplicity)
    assert isinstance(init, Multiplicity)
    assert (rows.total, rows.distinct, rows.histogram()) == (105, 15, {7: 15})
    assert (init.total, init.distinct, init.maximum) == (21, 1, 21)
    assert require_known(rows.counts((3, 5))).tolist() == [[7] * 5] * 3


def test_an_unused_range_variable_multiplies_the_counts() -> None:
    """One element is summed 1000 times: the simplified map drops the range, the count keeps it."""
    root = hlo.parse("""
        add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
        fused {
          p = f32[4] parameter(0)
          z = f32[] parameter(1)
          b = f32[4,1000] broadcast(p), dimensions={0}
          ROOT r = f32[4] reduce(b, z), dimensions={1}, to_apply=add
        }
        ENTRY e {
          p = f32[4] parameter(0)
          z = f32[] parameter(1)
          ROOT f = f32[4] fusion(p, z), kind=kLoop, calls=fused
        }""").entry.root
    (read,) = indexing.output_to_input(root).maps[0]
    assert str(read) == "(d0) -> (d0), domain: d0 in [0, 3]"
    assert require_known(multiplicity(read)).total == 4
    reads = read_counts(root)[0]
    assert isinstance(reads, Multiplicity)
    assert (reads.total, reads.maximum, reads.distinct) == (4000, 1000, 4)


# ---------------------------------------------------------------- values of the program

GATHER = """ENTRY e {
  p = f32[5,2] parameter(0)
  i = s32[4] parameter(1)
  ROOT g = f32[4,2] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,2}
}"""


def test_a_gather_is_counted_for_given_indices() -> None:
    root = hlo.parse(GATHER).entry.root
    unknown, _ = read_counts(root)
    assert_unknown(unknown, "depends on `i`: pass its values")
    params, indices = read_counts(root, values={"i": [3, 1, 3, 99]})  # 99 is clamped to 4
    assert isinstance(params, Multiplicity)
    assert isinstance(indices, Multiplicity)
    assert require_known(params.counts((5, 2))).tolist() == [
        [0, 0],
        [1, 1],
        [0, 0],
        [2, 2],
        [1, 1],
    ]  # 99 is 4
    assert indices.histogram() == {2: 4}
    with pytest.raises(
        ValueError, match="`i` needs one integer, or an array with 1 dimensions; got 2"
    ):
        read_counts(root, values={"i": [[1]]})
    with pytest.raises(ValueError, match=r"`i` has shape \(4,\); the given value has \(1,\)"):
        read_counts(root, values={"i": [1]})
    with pytest.raises(TypeError, match="no source of one, is named `ii`; did you mean `i`"):
        read_counts(root, values={"ii": [1]})


def test_a_start_index_only_translates_the_reads() -> None:
    root = hlo.parse("""ENTRY e {
        p = f32[9,4] parameter(0)
        i = s32[] parameter(1)
        j = s32[] parameter(2)
        ROOT s = f32[3,2] dynamic-slice(p, i, j), dynamic_slice_sizes={3,2}
    }""").entry.root
    window = read_counts(root)[0]
    assert isinstance(window, Multiplicity)
    assert (window.total, window.distinct, window.maximum) == (6, 6, 1)
    assert_unknown(window.at((0, 0)), "depends on `j`: pass its value")
    assert_unknown(window.counts((9, 4)), "depends on `j`: pass its value")
    placed = read_counts(root, values={"i": 7, "j": 1})[0]
    assert isinstance(placed, Multiplicity)
    assert [placed.at((k, 1)) for k in range(9)] == [0] * 6 + [1] * 3  # 7 is clamped to 6


def test_a_value_that_changes_the_counts_is_required() -> None:
    moved = parse_map(
        "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 3], d0 + rt0 in [0, 3]"
    )
    halved = parse_map("(d0){rt0} -> ((d0 + rt0) floordiv 2), domain: d0 in [0, 2], rt0 in [0, 3]")
    for m in (moved, halved):
        assert_unknown(multiplicity(m), "depends on `rt0`")
        for value in range(4):
            check(
                require_known(multiplicity(m, {"rt0": value})), enumerate_reads([m], {"rt0": value})
            )
    plain = parse_map("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 2], rt0 in [0, 3]")
    both = require_known(multiplicity([plain, plain]))
    assert both.total == 6
    assert_unknown(both.maximum, "depends on `rt0`: pass its value")


# ---------------------------------------------------------------- sizes


def test_independent_parts_are_counted_without_enumerating_the_array() -> None:
    """10¹² elements, 3·10¹² reads."""
    m = parse_map(
        "(d0, d1)[s0] -> (d0 + s0, d1 floordiv 1000, d1 mod 1000), "
        "domain: d0 in [0, 999999], d1 in [0, 999999], s0 in [0, 2]"
    )
    reads = require_known(multiplicity(m))
    assert reads.total == 3 * 10**12
    assert reads.distinct == 1000002 * 10**6
    assert reads.histogram() == {1: 2 * 10**6, 2: 2 * 10**6, 3: 999998 * 10**6}
    assert reads.at((0, 0, 0)) == 1
    assert reads.at((1, 999, 999)) == 2
    assert reads.at((1, 1000, 0)) == 0


def test_a_large_injective_part_is_counted() -> None:
    split = parse_map("(d0) -> (d0 floordiv 1000, d0 mod 1000), domain: d0 in [0, 99999999]")
    once = require_known(multiplicity(split))
    assert (once.total, once.distinct, once.maximum) == (10**8, 10**8, 1)
    assert (once.at((99999, 999)), once.at((100000, 0))) == (1, 0)
    sums = parse_map("(d0, d1) -> (d0 + d1 * 7), domain: d0 in [0, 9999], d1 in [0, 9999]")
    overlapping = require_known(multiplicity(sums))
    assert (overlapping.total, overlapping.distinct, overlapping.maximum) == (10**8, 79_993, 1_429)


def test_arrays_beyond_the_budget_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_POINTS", 10)
    m = parse_map("(d0) -> (d0), domain: d0 in [0, 3]")
    near = require_known(multiplicity(m))
    assert require_known(near.counts((10,))).sum() == 4
    assert_unknown(near.counts((11,)), "an array of")
    strided = parse_map("(d0) -> (d0 * 4), domain: d0 in [0, 3]")
    assert_unknown(require_known(multiplicity([m, strided])).maximum, "several maps")
    far = parse_map("(d0) -> (d0 + 8), domain: d0 in [0, 3]")
    assert require_known(multiplicity([m, far])).histogram() == {1: 8}


def test_a_given_start_index_needs_no_enumeration() -> None:
    root = hlo.parse("""ENTRY e {
        p = f32[90000000] parameter(0)
        i = s32[] parameter(1)
        ROOT s = f32[80000000] dynamic-slice(p, i), dynamic_slice_sizes={80000000}
    }""").entry.root
    window = read_counts(root, values={"i": 7})[0]
    assert isinstance(window, Multiplicity)
    assert (window.total, window.maximum) == (80000000, 1)
    assert [window.at((k,)) for k in (6, 7, 80000006, 80000007)] == [0, 1, 1, 0]


def test_counts_do_not_overflow() -> None:
    loops = ", ".join(f"s{k} in [0, 999999]" for k in range(4))
    m = parse_map(f"(d0)[s0, s1, s2, s3] -> (d0), domain: d0 in [0, 1], {loops}")
    reads = require_known(multiplicity([m, m]))
    assert require_known(reads.counts((2,))).tolist() == [2 * 10**24] * 2
    assert reads.histogram() == {2 * 10**24: 2}


def test_no_maps_read_nothing() -> None:
    nothing = require_known(multiplicity([]))
    assert (nothing.total, nothing.distinct, nothing.maximum, nothing.histogram()) == (0, 0, 0, {})
    empty = require_known(
        multiplicity(parse_map("(d0) -> (d0), domain: d0 in [0, 3], d0 * 2 in [3, 3]"))
    )
    assert (empty.total, empty.distinct, empty.maximum) == (0, 0, 0)
    assert require_known(empty.counts((4,))).tolist() == [0] * 4
