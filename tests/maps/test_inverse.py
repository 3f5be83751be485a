"""Inverse, image and counts, compared with enumeration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from indexing import IndexingMap, parse_map
from simplifier import Variable
from simplifier.unknown import require_known
from tests.oracles import boxes, constraint_lists, fuzz, invert_pairs, relation, tree_expr, trees


@given(st.data(), boxes())
@fuzz(60)
def test_the_inverse_swaps_the_relation(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    results = [tree_expr(data.draw(trees(len(box), leaves=4)), box) for _ in range(2)]
    ranges = box[len(box) // 2 + 1 :]
    made = IndexingMap.of(
        [v for v in box if v not in ranges],
        results,
        ranges=ranges,
        constraints=data.draw(constraint_lists(box)),
    )
    pairs = relation(made)
    pieces = [relation(piece) for piece in require_known(made.inverse())]
    assert set().union(*pieces) == invert_pairs(pairs)
    assert sum(map(len, pieces)) == len(pairs)  # disjoint
    assert {at for piece in require_known(made.image()) for _, at in relation(piece)} == {
        at for _, at in pairs
    }
    assert made.count_image() == len({at for _, at in pairs})
    assert made.count_domain() == sum(1 for _ in made.points())


# fmt: off
NICE = [
    ("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]",
     ["(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]"]),
    ("(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]",
     ["(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]"]),
    ("(d0, d1) -> (d1), domain: d0 in [0, 4], d1 in [0, 6]",
     ["(d0)[s0] -> (s0, d0), domain: d0 in [0, 6], s0 in [0, 4]"]),
    ("(d0, d1) -> (-d1 + 6, d0), domain: d0 in [0, 4], d1 in [0, 6]",
     ["(d0, d1) -> (d1, -d0 + 6), domain: d0 in [0, 6], d1 in [0, 4]"]),
]
# fmt: on


@pytest.mark.parametrize("text, pieces", NICE, ids=[row[0] for row in NICE])
def test_inverses_have_the_expected_text(text: str, pieces: list[str]) -> None:
    assert [str(piece) for piece in require_known(parse_map(text).inverse())] == pieces


def test_the_inverse_of_a_dynamic_slice_is_its_input_to_output_map() -> None:
    root = hlo.parse("""ENTRY e {
        p = f32[7,9] parameter(0)
        i = s32[] parameter(1)
        j = s32[] parameter(2)
        ROOT s = f32[2,3] dynamic-slice(p, i, j), dynamic_slice_sizes={2,3}
    }""").entry.root
    (read,) = indexing.output_to_input(root).maps[0]
    (written,) = indexing.input_to_output(root, input_id=0).maps[0]
    (inverse,) = require_known(read.inverse())
    assert inverse.is_equal(written)
    assert [rt.source_name for rt in inverse.runtime] == ["i", "j"]


def test_counts_need_no_enumeration() -> None:
    reshape = IndexingMap.over((1_000_000,), lambda d: [d[0] // 1000, d[0] % 1000])
    assert reshape.count_image() == reshape.count_domain() == 1_000_000
