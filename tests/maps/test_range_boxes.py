"""Range variables that reach a box become that box; near misses keep them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import IndexingMap, parse_map
from tests.oracles import boxes, constraint_lists, fuzz, relation, tree_expr, trees

# fmt: off
BOXES = [
    # map                                                                    simplified
    ("(d0)[s0, s1, s2] -> (s0, s2 + (s1 floordiv 16) * 16), domain: d0 in [0, 3], s0 in [0, 31], "
     "s1 in [0, 63], s2 in [0, 15]",
     "(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 3], s0 in [0, 31], s1 in [0, 63]"),
    ("()[s0] -> (s0 mod 16), domain: s0 in [0, 4095]", "()[s0] -> (s0), domain: s0 in [0, 15]"),
    ("()[s0] -> (s0 mod 16), domain: s0 in [0, 99999999]",  # counted by ISL
     "()[s0] -> (s0), domain: s0 in [0, 15]"),
    ("(d0)[s0] -> (d0 * 9 - s0 floordiv 4, s0 mod 4 + d0), domain: d0 in [0, 8], s0 in [0, 11]",
     "(d0)[s0, s1] -> (d0 * 9 + s0 - 2, d0 + s1), "
     "domain: d0 in [0, 8], s0 in [0, 2], s1 in [0, 3]"),
    ("()[s0, s1] -> (s0 * 4 + s1), domain: s0 in [0, 2], s1 in [0, 4]",  # 4 is read twice
     "()[s0] -> (s0), domain: s0 in [0, 12]"),
    ("()[s0, s1] -> (s0 * 6 + s1 * 2), domain: s0 in [0, 2], s1 in [0, 3]",
     "()[s0] -> (s0 * 2), domain: s0 in [0, 9]"),
    ("()[s0] -> (s0 floordiv 8, 5), domain: s0 in [0, 15], s0 mod 8 in [3, 6]",
     "()[s0] -> (s0, 5), domain: s0 in [0, 1]"),
    ("()[s0, s1]{rt0} -> (rt0 + s0 + s1), domain: s0 in [0, 2], s1 in [0, 4], rt0 in [0, 7]",
     "()[s0]{rt0} -> (rt0 + s0), domain: s0 in [0, 6], rt0 in [0, 7]"),
]

KEPT = [
    # map, and what is no box
    "()[s0] -> (s0 floordiv 8, s0 mod 8), domain: s0 in [0, 16]",  # (2, 0), not (2, 1)
    "()[s0] -> (s0, s0), domain: s0 in [0, 3]",  # a diagonal
    "()[s0] -> (s0 floordiv 8, s0 mod 8), domain: s0 in [0, 99999999], s0 in [1, 99999999]",
    "()[s0, s1] -> (s0 * 4 + s1), domain: s0 in [0, 2], s1 in [0, 2]",  # 3 is left out
    "(d0)[s0] -> ((d0 + s0) floordiv 4), domain: d0 in [0, 8], s0 in [0, 5]",  # mixed with d0
    "(d0)[s0] -> (s0 mod 4), domain: d0 in [0, 8], s0 in [0, 8], d0 + s0 in [0, 8]",
]
# fmt: on


@pytest.mark.parametrize(("before", "after"), BOXES)
def test_range_variables_become_the_box_that_they_reach(before: str, after: str) -> None:
    simple = parse_map(before).simplify(certify=True)
    assert str(simple) == after
    assert simple.simplify() == simple


@pytest.mark.parametrize("text", KEPT)
def test_range_variables_that_reach_no_box_are_kept(text: str) -> None:
    before = parse_map(text)
    assert len(before.simplify(certify=True).ranges) == len(before.ranges)


@pytest.mark.parametrize(("before", "after"), BOXES)
def test_multiplicity_is_kept_on_request(before: str, after: str) -> None:
    counted = parse_map(before).simplify(certify=True, keep_multiplicity=True)
    assert counted.count_domain() == parse_map(before).count_domain()


def test_an_index_of_a_runtime_variable_keeps_its_range_variables() -> None:
    import hlo
    import indexing

    text = """ENTRY e { p = f32[9,4] parameter(0)  i = s32[8,1] parameter(1)
      g = f32[8,4] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
        index_vector_dim=1, slice_sizes={1,4}
      b = f32[2,4,4] reshape(g)  z = f32[] constant(0)
      ROOT r = f32[4] reduce(b, z), dimensions={0,1}, to_apply={
        a = f32[] parameter(0)  c = f32[] parameter(1)  ROOT s = f32[] add(a, c) } }"""
    (m,) = indexing.to_parameters(hlo.parse(text).entry.root).maps[0]
    (rt,) = m.runtime
    assert {v for index in rt.index for v in index.variables()} <= set(m.ranges)


@st.composite
def maps_with_many_reads(draw: st.DrawFn) -> IndexingMap:
    """Up to one dimension, three range variables, two results and two constraints."""
    d, s = draw(boxes(max_dims=1)), draw(boxes(max_dims=3, prefix="s"))
    every = (*d, *s)
    own = draw(st.sampled_from([s, every]))
    results = [tree_expr(draw(trees(len(own), leaves=4)), own) for _ in range(2)]
    constraints = draw(constraint_lists(own, max_count=2))
    return IndexingMap.of(d, results, ranges=s, constraints=constraints)


@given(maps_with_many_reads())
@fuzz(500)
def test_replacing_range_variables_keeps_the_relation(m: IndexingMap) -> None:
    simple = m.simplify(certify=True)
    assert relation(simple) == relation(m)
    assert relation(m.simplify(keep_multiplicity=True)) == relation(m)
