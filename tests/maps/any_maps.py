"""Random maps with all features of maps, for round trips through other notations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from hypothesis import strategies as st

from indexing import IndexingMap, RuntimeVariable
from indexing.maps.indexing_map import Grade
from simplifier.atoms import Variable
from tests.oracles import Pair, boxes, constraint_lists, relation, tree_expr, trees

Values = tuple[int, ...]


@st.composite
def any_maps(draw: st.DrawFn, grade: Grade = "exact") -> IndexingMap:
    """Maps with negative, single-point and empty bounds, and floors and mods in all expressions."""
    dims = draw(boxes(max_dims=2, empty=True))
    kind = draw(st.sampled_from("si"))  # `i`: an iteration variable
    ranges = draw(boxes(max_dims=1, prefix=kind)) if draw(st.booleans()) else ()
    unknown = draw(boxes(max_dims=1, prefix="rt")) if draw(st.booleans()) else ()
    every = (*dims, *ranges, *unknown)
    results = draw(st.lists(trees(len(every), leaves=4), max_size=2))
    return IndexingMap.of(
        dims,
        [tree_expr(result, every) for result in results],
        ranges=ranges,
        runtime=[draw(runtime_variables(variable, every)) for variable in unknown],
        constraints=draw(constraint_lists(every, max_count=2)),
        grade=grade,
    )


@st.composite
def runtime_variables(
    draw: st.DrawFn, variable: Variable, every: tuple[Variable, ...]
) -> RuntimeVariable:
    """A runtime variable with these bounds, with a name, an operand index or no source."""
    index = draw(st.lists(trees(len(every), leaves=2), max_size=2))
    return RuntimeVariable(
        variable,
        draw(st.sampled_from(["start.1", 2, None])),
        tuple([tree_expr(tree, every) for tree in index]),
        draw(st.sampled_from([None, (-3, 8)])),
        draw(st.sampled_from([(), ("outer", "inner")])),
    )


def relations(maps: Iterable[IndexingMap], over: IndexingMap) -> dict[Values, set[Pair]]:
    """Return the union of the relations of `maps` for each assignment of runtime values.

    The runtime variables are those of `over`.  A map may lack some of them: its relation is then
    the same for all their values.
    """
    given = [*maps]
    by_values: dict[Values, set[Pair]] = {}
    for at in product(*[range(rt.variable.lower, rt.variable.upper + 1) for rt in over.runtime]):
        value = dict(zip([rt.name for rt in over.runtime], at, strict=True))
        by_values[at] = {
            pair for m in given for pair in relation(m, [value[rt.name] for rt in m.runtime])
        }
    return by_values


def meaning(indexing_map: IndexingMap) -> dict[Values, set[Pair]]:
    """The relation of one map."""
    return relations([indexing_map], indexing_map)
