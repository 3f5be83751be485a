"""Scatters: which elements are kept, and which update the others have, against executions."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module, Shape
from indexing.maps.answers import Answer
from tests.dataflow.influence import Pokes
from tests.dataflow.loop_judge import answers, miss
from tests.dataflow.programs import Run
from tests.dataflow.random_masks import VALUES, superfluous

COMBINERS: Final = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
least { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] minimum(a, b) }
set { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }
"""
NUMBERS: Final = (
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1"
)
SEEDS: Final = range(3)


def judge(module: Module) -> Answer:
    """Return the answer of the root, whose exact maps have just what executions show."""
    assert not hlo.verify(module)
    for seed in SEEDS:
        pokes = Pokes.of(module.entry, seed)
        for place in pokes.places():
            pokes.poke(*place, values=VALUES)
        assert pokes.results is not None
        assert not list(miss(module, pokes))
    assert not list(superfluous(module, pokes))
    (answer,) = answers(module)
    return answer


def grades(answer: Answer, parameter: int) -> set[str]:
    return {m.grade for m in answer.maps[parameter]}


@pytest.mark.parametrize("combiner", ["add", "least"])
@pytest.mark.parametrize("indices", ["s32[3,1] constant({{1}, {6}, {1}})", "s32[3,1] parameter(2)"])
def test_every_element_of_an_accumulating_scatter_is_needed(combiner: str, indices: str) -> None:
    module = hlo.parse(f"""{COMBINERS} ENTRY e {{ x = f32[8] parameter(0)  u = f32[3] parameter(1)
      i = {indices}
      ROOT r = f32[8] scatter(x, i, u), {NUMBERS}, to_apply={combiner} }}""")
    answer = judge(module)
    assert [str(m) for m in answer.maps[0]] == ["(d0) -> (d0), domain: d0 in [0, 7]"]
    assert grades(answer, 0) == {"exact"}
    assert not any(answer.reasons[0])


def test_elements_with_several_updates_have_any_of_them_and_no_base() -> None:
    module = hlo.parse(f"""{COMBINERS} ENTRY e {{ x = f32[8] parameter(0)  u = f32[3] parameter(1)
      i = s32[3,1] constant({{{{1}}, {{6}}, {{1}}}})
      ROOT r = f32[8] scatter(x, i, u), {NUMBERS}, to_apply=set }}""")
    answer = judge(module)
    assert grades(answer, 0) == {"exact"}
    read = {at: [str(each) for each in answer.at(at)] for at in (1, 3, 6)}
    assert read == {1: ["∅", "[0:3:2]"], 3: ["[3]", "∅"], 6: ["∅", "[1]"]}
    updates = {at: answer.at(at)[1] for at in (1, 6)}
    assert [(at, r.grade) for at, r in updates.items() if isinstance(r, indexing.Region)] == [
        (1, "may"),
        (6, "exact"),
    ]


CALLED: Final = """
s { x = f32[8] parameter(0)  i = s32[3,1] parameter(1)  u = f32[3] parameter(2)
  ROOT r = f32[8] scatter(x, i, u), NUMBERS, to_apply=set }
outer { i = s32[3,1] parameter(0)  x = f32[8] parameter(1)  u = f32[3] parameter(2)
  ROOT r = f32[8] fusion(x, i, u), kind=kLoop, calls=s }
""".replace("NUMBERS", NUMBERS)
INDICES: Final = "s32[3,1] constant({{1}, {6}, {3}})"
ARRAYS: Final = "x = f32[8] parameter(0)  u = f32[3] parameter(1)"


@pytest.mark.parametrize(
    "call",
    [
        "f32[8] fusion(x, i, u), kind=kLoop, calls=s",
        "f32[8] call(i, x, u), to_apply=outer",
    ],
)
@pytest.mark.parametrize("indices", [INDICES, "s32[3,1] iota(), iota_dimension=0"])
def test_indices_that_stand_outside_of_a_call_decide_what_its_scatter_keeps(
    call: str, indices: str
) -> None:
    called = CALLED if "outer" in call else CALLED[: CALLED.index("outer")]
    module = hlo.parse(f"""{COMBINERS} {called} ENTRY e {{ {ARRAYS}  i = {indices}
      ROOT r = {call} }}""")
    answer = judge(module)
    assert grades(answer, 0) == grades(answer, 1) == {"exact"}
    assert str(answer.at(1)[0]) == "∅"
    (swept,) = [
        each
        for each in indexing.all_to_parameters(module.entry)
        if each.instruction is module.entry.root
    ]
    assert str(swept.at(1)[0]) == "∅"


def test_a_call_alone_does_not_know_its_arguments() -> None:
    """It is asked about any operands, as XLA is."""
    called = CALLED[: CALLED.index("outer")]
    module = hlo.parse(f"""{COMBINERS} {called} ENTRY e {{ {ARRAYS}  i = {INDICES}
      ROOT r = f32[8] fusion(x, i, u), kind=kLoop, calls=s }}""")
    assert grades(indexing.output_to_input(module.entry.root), 0) == {"may"}
    assert grades(indexing.to_parameters(module.entry.root), 0) == {"exact"}
    assert grades(indexing.output_to_input(module.entry.root), 0) == {"may"}


def test_two_calls_with_other_indices_are_not_mistaken_for_each_other() -> None:
    called = CALLED[: CALLED.index("outer")]
    module = hlo.parse(f"""{COMBINERS} {called} ENTRY e {{ {ARRAYS}  i = {INDICES}
      j = s32[3,1] constant({{{{0}}, {{2}}, {{7}}}})
      f = f32[8] fusion(x, i, u), kind=kLoop, calls=s
      ROOT r = f32[8] fusion(f, j, u), kind=kLoop, calls=s }}""")
    answer = judge(module)
    assert str(answer.at(1)[0]) == "[1]"


def test_a_call_does_not_know_the_arguments_of_its_caller() -> None:
    """The answer about an instruction of `outer` holds for any arguments of `outer`."""
    module = hlo.parse(f"""{COMBINERS} {CALLED} ENTRY e {{ {ARRAYS}  i = {INDICES}
      ROOT r = f32[8] call(i, x, u), to_apply=outer }}""")
    assert grades(indexing.to_parameters(module.entry.root), 0) == {"exact"}
    inside = indexing.to_parameters(module.computations["outer"].root)
    assert grades(inside, 1) == {"may"}


# ---------------------------------------------------------------- indices at run time

WINDOW: Final = (
    "f32[6] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=set"
)
ROW: Final = (
    "f32[3,4] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=set"
)
POINT: Final = (
    "f32[3,4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, "
    "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=set"
)
IN_ROWS: Final = (
    "f32[3,4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0,1}, "
    "scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=set, unique_indices=true"
)
RUNTIME: Final = [
    ("f32[6]", "f32[1]", "s32[1]", "i = s32[1] copy(n)", WINDOW),
    ("f32[6]", "f32[3]", "s32[1]", "i = s32[1] copy(n)", WINDOW),
    ("f32[6]", "f32[6]", "s32[1]", "i = s32[1] copy(n)", WINDOW),
    ("f32[6]", "f32[3]", "s32[1]", "i = s32[1] negate(n)", WINDOW),
    ("f32[6]", "f32[3]", "s32[1]", "i = u8[1] convert(n)", WINDOW),
    ("f32[6]", "f32[2]", "s32[1]", "c = s32[1] constant({3})  i = s32[1] minimum(n, c)", WINDOW),
    ("f32[6]", "f32[2]", "s32[1]", "c = s32[1] constant({2})  i = s32[1] remainder(n, c)", WINDOW),
    ("f32[3,4]", "f32[4]", "s32[1]", "i = s32[1] copy(n)", ROW),
    ("f32[3,4]", "f32[2]", "s32[1]", "i = s32[1] copy(n)", ROW),
    ("f32[3,4]", "f32[]", "s32[2]", "i = s32[2] copy(n)", POINT),
    ("f32[3,4]", "f32[]", "s32[2]", "i = s32[2] reverse(n), dimensions={0}", POINT),
    (
        *("f32[3,4]", "f32[3]", "s32[3]"),
        "a = s32[3,1] iota(), iota_dimension=0  b = s32[3,1] reshape(n) "
        "i = s32[3,2] concatenate(a, b), dimensions={1}",
        IN_ROWS,
    ),
]
INDEX_VALUES: Final = (-(2**31), -4, -1, 0, 1, 2, 3, 4, 5, 6, 255, 256, 258, 2**31 - 1)


def find_changes(module: Module, arguments: list[np.ndarray]) -> np.ndarray:
    """Return which elements of the result each element of x changes, as a mask."""
    before = Run(module.entry, *arguments).result
    size = arguments[0].size
    mask = np.zeros((size, size), bool)
    for place in range(size):
        x = arguments[0].copy()
        x.reshape(-1)[place] = 100
        mask[:, place] = (Run(module.entry, x, *arguments[1:]).result != before).reshape(-1)
    return mask


@pytest.mark.parametrize("x, u, n, index, scatter", RUNTIME)
def test_an_element_is_kept_for_the_indices_that_no_update_has(
    x: str, u: str, n: str, index: str, scatter: str
) -> None:
    module = hlo.parse(f"""{COMBINERS} ENTRY e {{ x = {x} parameter(0)  u = {u} parameter(1)
      n = {n} parameter(2)  {index}  ROOT r = {scatter} }}""")
    assert not hlo.verify(module)
    answer = indexing.to_parameters(module.entry.root)
    assert grades(answer, 0) <= {"exact"}
    base, update, indices = [parameter.shape for parameter in module.entry.parameters]
    assert isinstance(base, Shape)
    assert isinstance(update, Shape)
    assert isinstance(indices, Shape)
    random = np.random.default_rng(0)
    draws = [np.full(indices.dims, value) for value in INDEX_VALUES]
    draws += [random.choice(INDEX_VALUES[1:8], indices.dims) for _ in range(12)]
    kept = np.zeros((base.size, base.size), bool)
    for draw in draws:
        numbers = np.asarray(draw, np.int32)
        seen = find_changes(
            module, [np.zeros(base.dims, "f4"), np.ones(update.dims, "f4"), numbers]
        )
        kept |= seen
        for row, point in enumerate(np.ndindex(base.dims)):
            region = answer.at(*point, n=numbers)[0]
            assert isinstance(region, indexing.Region)
            claimed = np.zeros(base.dims, bool)
            claimed[tuple(region.elements().T)] = True
            assert np.array_equal(claimed.reshape(-1), seen[row]), (draw, point)
    assert kept.any() == bool(answer.maps[0])


@pytest.mark.parametrize(
    "index",
    [
        "i = s32[3,1] reshape(n)",  # several updates: each may replace each element
        "p = f32[3] convert(n)  z = f32[3] constant({0, 0, 0})  c = pred[3] compare(p, z), "
        "direction=GT  d = s32[3] convert(c)  i = s32[3,1] reshape(d)",
    ],
)
def test_several_updates_at_run_time_may_replace_every_element(index: str) -> None:
    module = hlo.parse(f"""{COMBINERS} ENTRY e {{ x = f32[8] parameter(0)  u = f32[3] parameter(1)
      n = s32[3] parameter(2)  {index}
      ROOT r = f32[8] scatter(x, i, u), {NUMBERS}, to_apply=set }}""")
    assert grades(judge(module), 0) == {"may"}


# ---------------------------------------------------------------- batches that the indices state

COUNT: Final = "rows = s32[3,1] iota(), iota_dimension=0"
FIRST: Final = "i = s32[3,2] concatenate(rows, p), dimensions={1}"
LAST: Final = "i = s32[3,2] concatenate(p, rows), dimensions={1}"
TO_ROWS: Final = "scatter_dims_to_operand_dims={0,1}"
TO_COLUMNS: Final = "scatter_dims_to_operand_dims={1,0}"
POINTS: Final = "u = f32[3] parameter(1)", "update_window_dims={}, inserted_window_dims={0,1}"
WINDOWS: Final = "u = f32[3,1,2] parameter(1)", "update_window_dims={1,2}, inserted_window_dims={}"


def scatter_counted(
    count: str, join: str, starts: str, form: tuple[str, str], combiner: str = "set"
) -> str:
    """Return a fusion of a scatter whose index vectors stand in another computation."""
    updates, windows = form
    shape = updates.split()[2]
    return f"""{COMBINERS}
    table {{ p = s32[3,1] parameter(0)  {count}  ROOT {join} }}
    s {{ x = f32[3,4] parameter(0)  {updates}  i = s32[3,2] parameter(2)
      ROOT r = f32[3,4] scatter(x, i, u), {windows}, {starts}, index_vector_dim=1,
        to_apply={combiner} }}
    ENTRY e {{ x = f32[3,4] parameter(0)  u = {shape} parameter(1)  p = s32[3,1] parameter(2)
      i = s32[3,2] fusion(p), kind=kLoop, calls=table
      ROOT r = f32[3,4] fusion(x, u, i), kind=kLoop, calls=s }}"""


@pytest.mark.parametrize("form", [POINTS, WINDOWS], ids=["points", "windows"])
@pytest.mark.parametrize("joined", [(FIRST, TO_ROWS), (LAST, TO_COLUMNS)], ids=["first", "last"])
def test_a_column_that_counts_the_index_vectors_is_a_batch(
    form: tuple[str, str], joined: tuple[str, str]
) -> None:
    answer = judge(hlo.parse(scatter_counted(COUNT, *joined, form)))
    assert grades(answer, 0) == grades(answer, 1) == {"exact"}
    assert [str(m) for m in answer.maps[2]] == [
        "(d0, d1) -> (d0, 0), domain: d0 in [0, 2], d1 in [0, 3]"
    ]


def test_a_batch_is_one_for_every_combiner() -> None:
    answer = judge(hlo.parse(scatter_counted(COUNT, FIRST, TO_ROWS, POINTS, "add")))
    assert len(answer.maps[2]) == 1
    assert not answer.maps[2][0].ranges


@pytest.mark.parametrize(
    "count",
    [
        "k = s32[3,1] iota(), iota_dimension=0  rows = s32[3,1] reverse(k), dimensions={0}",
        "k = s32[3,1] iota(), iota_dimension=0  rows = s32[3,1] add(k, k)",
        "rows = s32[3,1] iota(), iota_dimension=1",
        "k = s32[3,1] iota(), iota_dimension=0  rows = s32[3,1] maximum(k, p)",
    ],
    ids=["reversed", "doubled", "other dimension", "at run time"],
)
def test_another_column_is_no_batch(count: str) -> None:
    answer = judge(hlo.parse(scatter_counted(count, FIRST, TO_ROWS, POINTS)))
    assert all(m.ranges for m in answer.maps[2])


def test_a_column_that_counts_fewer_rows_than_the_array_has_is_no_batch() -> None:
    text = scatter_counted(COUNT, FIRST, TO_ROWS, POINTS).replace("f32[3,4]", "f32[5,4]")
    answer = judge(hlo.parse(text))
    assert answer.maps[2][0].ranges


def test_columns_that_count_two_dimensions_are_two_batches() -> None:
    module = hlo.parse(f"""{COMBINERS} ENTRY e {{ x = f32[2,3,4] parameter(0)
      u = f32[2,3] parameter(1)  p = s32[2,3,1] parameter(2)
      a = s32[2,3,1] iota(), iota_dimension=0  b = s32[2,3,1] iota(), iota_dimension=1
      i = s32[2,3,3] concatenate(b, p, a), dimensions={{2}}
      ROOT r = f32[2,3,4] scatter(x, i, u), update_window_dims={{}},
        inserted_window_dims={{0,1,2}}, scatter_dims_to_operand_dims={{1,2,0}},
        index_vector_dim=2, to_apply=set }}""")
    answer = judge(module)
    assert [str(m) for m in answer.maps[2]] == [
        "(d0, d1, d2) -> (d0, d1, 0), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3]"
    ]
    assert grades(answer, 0) == grades(answer, 1) == {"exact"}


def test_a_column_that_counts_two_dimensions_of_size_one_is_one_batch() -> None:
    module = hlo.parse(f"""{COMBINERS} ENTRY e {{ x = f32[1,3] parameter(0)
      u = f32[1,1,1] parameter(1)  i = s32[1,1,1] iota(), iota_dimension=2
      ROOT r = f32[1,3] scatter(x, i, u), update_window_dims={{2}}, inserted_window_dims={{1}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add }}""")
    answer = judge(module)
    assert [len(m.results) for m in answer.maps[1]] == [3]


def test_the_entries_of_one_index_vector_are_no_batch() -> None:
    module = hlo.parse(f"""{COMBINERS} ENTRY e {{ x = f32[5,1] parameter(0)
      u = f32[5] parameter(1)  i = s32[1] constant({{0}})
      ROOT r = f32[5,1] scatter(x, i, u), update_window_dims={{0}}, inserted_window_dims={{1}},
        scatter_dims_to_operand_dims={{1}}, index_vector_dim=0, to_apply=add }}""")
    answer = judge(module)
    assert [str(m) for m in answer.maps[1]] == [
        "(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [0, 0]"
    ]
