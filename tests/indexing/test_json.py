"""Maps as JSON: everything a map is comes back, instructions as their names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from indexing import IndexingMap
from simplifier import Variable
from tests.oracles import boxes, constraint_lists, fuzz, relation, tree_expr, trees


@given(st.data(), boxes())
@fuzz(60)
def test_any_map_comes_back_from_json(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    results = [tree_expr(data.draw(trees(len(box), leaves=5)), box)]
    made = IndexingMap.of(box, results, constraints=data.draw(constraint_lists(box)), grade="may")
    again = IndexingMap.from_json(made.to_json())
    assert again.grade == "may"
    assert relation(again) == relation(made)


def test_runtime_variables_come_back_with_names_of_their_sources() -> None:
    root = hlo.parse("""ENTRY e {
        p = f32[9] parameter(0)
        i = s32[5,1] parameter(1)
        ROOT g = f32[5,2] gather(p, i), offset_dims={1}, collapsed_slice_dims={},
          start_index_map={0}, index_vector_dim=1, slice_sizes={2}
    }""").entry.root
    (read,) = indexing.output_to_input(root).maps[0]
    again = IndexingMap.from_json(read.to_json())
    assert str(again) == str(read)
    (mine,), (theirs,) = again.runtime, read.runtime
    assert (mine.source, mine.index, mine.clamp) == ("i", theirs.index, theirs.clamp)
    assert again.to_json() == read.to_json()


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"version": 2}', json.dumps({"version": 1, "map": "() -> ()"})],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json.JSONDecodeError is one
        IndexingMap.from_json(text)
