"""Maps of one form are joined without gain or loss; ISL and enumeration are the oracles."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import hypothesis.strategies as st
import pytest
from hypothesis import given

import hlo
import indexing
from indexing import IndexingMap
from indexing.maps.joining import join_maps
from indexing.maps.map_set import MapSet
from indexing.maps.mask_values import mask_values, without_values
from indexing.maps.shared_runtime import share_runtime
from simplifier.atoms import Variable
from simplifier.linear import Expr

N = 6


def part(low: int, high: int, first: int, last: int) -> IndexingMap:
    """Return a map with bounds of a dimension and of a difference."""
    return indexing.parse_map(
        f"(d0)[s0] -> (d0, s0), domain: d0 in [{low}, {high}], s0 in [0, {N}], "
        f"d0 - s0 in [{first}, {last}]"
    )


def points(maps: list[IndexingMap]) -> set[object]:
    return {pair for m in maps for pair in m.points()}


INTERVALS = st.tuples(st.integers(0, N), st.integers(0, 3)).map(lambda x: (x[0], min(N, sum(x))))
SLOPES = st.tuples(st.integers(-N, N), st.integers(0, 6)).map(lambda x: (x[0], sum(x)))


@given(st.lists(st.tuples(INTERVALS, SLOPES), min_size=1, max_size=5), st.booleans())
def test_the_union_stays(bounds: list[tuple[tuple[int, int], tuple[int, int]]], only: bool) -> None:
    maps = [part(*own, *slope) for own, slope in bounds]
    joined = join_maps(maps, only_masks=only)
    assert len(joined) <= len(maps)
    assert points(joined) == points(maps)


def mask_identity(*parts: str) -> list[IndexingMap]:
    """Return the identity under masks of an integer scalar of a program."""
    text = "ENTRY e { x = f32[4] parameter(0)  n = s8[] parameter(1)  ROOT c = f32[4] copy(x) }"
    scalar = hlo.parse(text).entry["n"]
    limits = (-128, 127)
    variable = Variable("rt0", *limits)
    rt = indexing.RuntimeVariable(variable, scalar, (), limits)
    maps = []
    for each in parts:
        low, high = map(int, each.split(":"))
        own = Variable("d0", 0, 3)
        maps.append(
            IndexingMap.of(
                [own],
                [own],
                runtime=[rt],
                constraints=[indexing.Constraint(rt.expr, low, high)],
            ).simplify()
        )
    return maps


def test_complementary_masks_are_no_mask() -> None:
    maps = MapSet(mask_identity("-128:-1", "3:127", "0:2"))
    maps.extend(mask_identity("1:2"))
    (whole,) = MapSet(maps.maps).maps if len(maps.maps) == 1 else join_maps(maps.maps)
    assert str(whole.simplify()) == "(d0) -> (d0), domain: d0 in [0, 3]"


def test_a_mask_beside_the_whole_is_redundant() -> None:
    whole = indexing.parse_map("(d0) -> (d0), domain: d0 in [0, 3]")
    assert join_maps([*mask_identity("2:5"), whole], only_masks=True) == [whole]
    assert join_maps([whole.with_grade("may"), *mask_identity("2:5")], only_masks=True) != [whole]


def test_apart_masks_stay() -> None:
    maps = mask_identity("-128:-1", "3:127")
    assert join_maps(maps) == maps


def test_two_variables_of_one_value_have_the_bounds_of_both() -> None:
    """The maps for n in [3, 127], and for n = 0; the first has two variables for n."""
    small, large = mask_identity("0:0", "3:127")
    twice = replace(large.runtime[0], variable=Variable("rt1", 0, 127))
    both = replace(large, runtime=(*large.runtime, twice))
    assert len(join_maps([small, both])) == 2
    (shared,), (rt,) = share_runtime([both])
    assert shared.runtime == (rt,)
    assert str(shared.simplify()) == str(large)


def test_the_index_of_a_value_has_the_widest_bounds_of_another_one() -> None:
    """The element at n of a table, for n in [0, 1] and for n in [2, 3]."""
    text = "ENTRY e { t = s8[4] parameter(0)  n = s8[] parameter(1)  ROOT c = s8[4] copy(t) }"
    entry = hlo.parse(text).entry
    maps = []
    for low, high in ((0, 1), (2, 3)):
        n = indexing.RuntimeVariable(Variable("rt0", low, high), entry["n"], (), (0, 3))
        element = indexing.RuntimeVariable(Variable("rt1", -128, 127), entry["t"], (n.expr,))
        maps.append(IndexingMap.of([], [element.expr], runtime=[n, element]))
    shared, (n, element) = share_runtime(maps)
    assert n.variable.bounds == (0, 3)
    assert element.index == (n.expr,)
    assert [m.runtime for m in shared] == [(n, element)] * 2
    assert [[(c.lower, c.upper) for c in m.constraints] for m in shared] == [[(0, 1)], [(2, 3)]]


def runtime_maps() -> dict[str, list[IndexingMap]]:
    """Return maps whose variables have their final names, and near misses."""
    text = "ENTRY e { t = s8[4] parameter(0)  n = s8[] parameter(1)  ROOT c = s8[4] copy(t) }"
    entry = hlo.parse(text).entry

    def make_variable(
        name: str, source: str, high: int = 3, index: tuple[Expr, ...] = ()
    ) -> IndexingMap:
        rt = indexing.RuntimeVariable(Variable(name, 0, high), entry[source], index)
        return IndexingMap.of([Variable("d0", 0, 3)], [rt.expr], runtime=[rt])

    n, d0 = make_variable("rt0", "n"), Variable("d0", 0, 3).as_expr()
    element, other = make_variable("rt1", "t", 3, (d0,)), make_variable("rt1", "t", 3, (d0 // 2,))
    symbol = indexing.RuntimeVariable(Variable("k", 0, 3))
    named = IndexingMap.of(n.dims, [symbol.expr], runtime=[symbol])
    both = replace(n, runtime=(*n.runtime, *element.runtime))
    return {
        "one variable": [n, n, IndexingMap.of(n.dims, [d0])],
        "two variables": [n, element, both],
        "a symbol": [named, element, named],
        "other names": [make_variable("rt1", "n"), n],
        "other bounds": [n, make_variable("rt0", "n", 2)],
        "another order": [element, n],
        "another element": [n, element, other],
        "one value twice": [
            n,
            replace(n, runtime=(*n.runtime, *make_variable("rt1", "n").runtime)),
        ],
    }


@pytest.mark.parametrize("name", runtime_maps())
def test_maps_that_share_their_variables_already_stay(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle renames the variables of all maps."""
    maps = runtime_maps()[name]
    module = import_module("indexing.maps.shared_runtime")
    shared = share_runtime(maps)
    are_shared = module._already_shared(maps) is not None
    monkeypatch.setattr(module, "_already_shared", lambda maps: None)
    texts = [
        ([str(m) for m in renamed], [(rt.variable, rt.index, rt.clamp) for rt in runtime])
        for renamed, runtime in (shared, share_runtime(maps))
    ]
    assert texts[0] == texts[1]
    assert are_shared == (name in ("one variable", "two variables", "a symbol"))


def test_without_its_masks_a_map_reads_more() -> None:
    (m,) = mask_identity("3:127")
    assert [rt.source_name for rt in mask_values(m)] == ["n"]
    assert str(without_values(m, mask_values(m))) == "(d0) -> (d0), domain: d0 in [0, 3]"
