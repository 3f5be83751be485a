"""Runtime variables that loops compute name the iteration in which they are read."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing import IndexingMap, RuntimeVariable
from indexing.codegen.nest import LoopNest
from indexing.dataflow.loops import steps
from indexing.maps.multiplicity import Multiplicity
from indexing.views.map_tables import runtime_text
from indexing.views.records import runtime_records
from tests.dataflow.influence import Pokes
from tests.dataflow.loop_judge import answers, disagreements, miss, unroll
from tests.dataflow.test_loop_maps import loop

INDEX = ["k = s32[] convert(x1)", "r = f32[1] dynamic-slice(x2, k), dynamic_slice_sizes={1}"]
LOOKUP = [
    *INDEX,
    "v = f32[] reshape(r)",
    "y1 = f32[] add(x1, v)",
    "y2 = f32[7] copy(x2)",
    "u = f32[1] reshape(y1)",
    "y3 = f32[5] dynamic-update-slice(x3, u, i)",
]
"""``state += table[state]``, and all states stacked."""

PROGRAMS = {
    "lookup": loop(["f32[]", "f32[7]", "f32[5]"], LOOKUP),
    "the value before": loop(
        ["f32[]", "f32[7]", "f32[5]", "f32[]"],
        [
            *INDEX,
            "v = f32[] reshape(r)",
            "m = f32[] constant(-1)",
            "y1 = f32[] multiply(x1, m)",
            "y2 = f32[7] copy(x2)",
            "u = f32[1] reshape(x4)",
            "y3 = f32[5] dynamic-update-slice(x3, u, i)",
            "y4 = f32[] copy(v)",
        ],
    ),
    "gather": loop(
        ["f32[3]", "f32[7,2]", "f32[5,3,2]"],
        [
            "k = s32[3] convert(x1)",
            "r = f32[3,2] gather(x2, k), offset_dims={1}, collapsed_slice_dims={0}, "
            "start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}",
            "f = f32[] constant(0)",
            "v = f32[3] reduce(r, f), dimensions={1}, to_apply=add",
            "y1 = f32[3] add(x1, v)",
            "y2 = f32[7,2] copy(x2)",
            "u = f32[1,3,2] reshape(r)",
            "y3 = f32[5,3,2] dynamic-update-slice(x3, u, i, zero, zero)",
        ],
    ),
    "an update at a place that is computed": loop(
        ["f32[]", "f32[5]", "f32[4]"],
        [
            "r = f32[1] dynamic-slice(x2, i), dynamic_slice_sizes={1}",
            "v = f32[] reshape(r)",
            "k = s32[] convert(x1)",
            "y1 = f32[] add(x1, v)",
            "y2 = f32[5] copy(x2)",
            "y3 = f32[4] dynamic-update-slice(x3, r, k)",
        ],
    ),
}

NESTED = hlo.parse("""
less { s = (s32[], f32[], f32[7], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)  ROOT r = pred[] compare(i, n), direction=LT }
inner {
  s = (s32[], f32[], f32[7], f32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[] get-tuple-element(s), index=1
  x = f32[7] get-tuple-element(s), index=2
  b = f32[] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  inside = s32[] convert(a)
  r = f32[1] dynamic-slice(x, inside), dynamic_slice_sizes={1}
  v = f32[] reshape(r)
  c = f32[] add(a, v)
  ROOT t = (s32[], f32[], f32[7], f32[]) tuple(j, c, x, b)
}
less2 { s = (s32[], f32[], f32[7], f32[2], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2)  ROOT r = pred[] compare(i, n), direction=LT }
outer {
  s = (s32[], f32[], f32[7], f32[2], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[] get-tuple-element(s), index=1
  x = f32[7] get-tuple-element(s), index=2
  out = f32[2] get-tuple-element(s), index=3
  y = f32[9] get-tuple-element(s), index=4
  zero = s32[] constant(0)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  outside = s32[] convert(a)
  w = f32[7] dynamic-slice(y, outside), dynamic_slice_sizes={7}
  first = (s32[], f32[], f32[7], f32[]) tuple(zero, a, w, a)
  last = (s32[], f32[], f32[7], f32[]) while(first), condition=less, body=inner
  b = f32[] get-tuple-element(last), index=1
  u = f32[1] reshape(b)
  o = f32[2] dynamic-update-slice(out, u, i)
  ROOT t = (s32[], f32[], f32[7], f32[2], f32[9]) tuple(j, b, x, o, y)
}
ENTRY e {
  zero = s32[] constant(0)
  a = f32[] parameter(0)
  x = f32[7] parameter(1)
  out = f32[2] parameter(2)
  y = f32[9] parameter(3)
  s = (s32[], f32[], f32[7], f32[2], f32[9]) tuple(zero, a, x, out, y)
  ROOT w = (s32[], f32[], f32[7], f32[2], f32[9]) while(s), condition=less2, body=outer
}
""")
MODULES = PROGRAMS | {"nested": NESTED}


def describe(m: IndexingMap) -> list[str]:
    """Return a map and the sources of its runtime variables."""
    return [str(m), *map(runtime_text, m.runtime)]


def varying(module: Module) -> list[RuntimeVariable]:
    """Return the runtime variables of a program's maps that have iterations."""
    maps = [m for answer in answers(module) for each in answer.maps for m in each]
    return [rt for m in maps for rt in m.runtime if rt.iterations]


def faults(module: Module, seed: int) -> list[str]:
    """Return what is wrong with the maps of a program, by executions and without its loops."""
    pokes = Pokes.of(module.entry, seed)
    pokes.poke_some(1000)
    without = unroll(module)
    return [
        *miss(module, pokes),
        *miss(module, pokes, exact=True),
        *disagreements(module, without, pokes.arguments),
    ]


# ---------------------------------------------------------------- maps


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MODULES)
def test_maps_read_with_the_values_of_their_iteration(name: str, seed: int) -> None:
    assert varying(MODULES[name])
    assert not faults(MODULES[name], seed)


def test_a_stacked_output_reads_at_the_index_of_its_own_iteration() -> None:
    answer = indexing.to_parameters(PROGRAMS["gather"].entry.root, 3)
    read, _ = answer.maps[1]
    assert read.grade == "exact"
    domain = "d0 in [0, 4], d1 in [0, 2], d2 in [0, 1], rt0 in [0, 6]"
    assert describe(read) == [
        f"(d0, d1, d2){{rt0}} -> (rt0, d2), domain: {domain}",
        "rt0 = w/k[d1] at iteration d0, clamped to [0, 6]",
    ]


def test_a_value_of_an_earlier_iteration_names_it() -> None:
    (read,) = indexing.to_parameters(PROGRAMS["the value before"].entry.root, 3).maps[1]
    assert read.grade == "exact"
    assert describe(read) == [
        "(d0){rt0} -> (rt0), domain: d0 in [1, 4], rt0 in [0, 6]",
        "rt0 = w/k at iteration d0 - 1, clamped to [0, 6]",
    ]


def test_an_accumulator_reads_in_all_iterations() -> None:
    answer = indexing.to_parameters(PROGRAMS["lookup"].entry.root, 1)
    (read,) = answer.maps[1]
    assert read.grade == "exact"
    assert not any(answer.reasons[1])
    assert describe(read) == [
        "()[i0]{rt0} -> (rt0), domain: i0 in [0, 4], rt0 in [0, 6]",
        "rt0 = w/k at iteration i0, clamped to [0, 6]",
    ]


def test_nested_loops_have_an_iteration_each() -> None:
    (read,) = indexing.to_parameters(NESTED.entry.root, 1).maps[3]
    assert read.grade == "exact"
    assert sorted(describe(read)[1:]) == [
        "rt0 = w/last/inside at iterations i0, i1, clamped to [0, 6]",
        "rt1 = w/outside at iteration i0, clamped to [0, 2]",
    ]
    assert [rt.calls for rt in read.runtime if len(rt.iterations) == 2] == [
        (NESTED.entry["w"], NESTED.computations["outer"]["last"])
    ]


def test_values_of_two_iterations_are_never_one_variable() -> None:
    module = loop(
        ["f32[]", "f32[7]", "f32[5]", "f32[7]"],
        [
            "k = s32[] convert(x1)",
            "r = f32[1] dynamic-slice(x4, k), dynamic_slice_sizes={1}",
            "y1 = f32[] negate(x1)",
            "y2 = f32[7] copy(x2)",
            "y3 = f32[5] dynamic-update-slice(x3, r, i)",
            "double = f32[14] concatenate(x2, x2), dimensions={0}",
            "y4 = f32[7] dynamic-slice(double, k), dynamic_slice_sizes={7}",
        ],
    )
    assert not faults(module, 0)
    maps = indexing.to_parameters(module.entry.root, 3).maps[1]
    pairs = [[str(rt.iterations[0]) for rt in m.runtime] for m in maps]
    assert pairs
    assert all(pair == ["d0", "d0 - 1"] for pair in pairs)


def test_a_chain_of_updates_at_places_that_are_computed_stays_may() -> None:
    answer = indexing.to_parameters(PROGRAMS["an update at a place that is computed"].entry.root, 3)
    assert {m.grade for m in answer.maps[2]} == {"may"}
    reason = "an index is not affine in the number of the iteration: `k`"
    assert reason in {each.text for reasons in answer.reasons[2] for each in reasons}


def test_a_value_on_a_device_has_an_iteration_and_the_device() -> None:
    text = str(PROGRAMS["the value before"])
    old, new = "%v = f32[] reshape(%r)", "%p = f32[] reshape(%r)"
    reduced = "%v = f32[] all-reduce(%p), replica_groups={{0,1}}, to_apply=%add"
    summed = text.replace("module_e", "module_e, replica_count=2").replace(
        old, f"{new}\n  {reduced}"
    )
    answer = indexing.device_maps(hlo.parse(summed).entry.root, 3)
    pairs = zip(answer.maps[0], answer.paths[0], strict=True)
    (read,) = [m for m, leaf in pairs if leaf == (2,)]
    assert read.grade == "exact"
    (rt,) = read.runtime
    assert [list(map(str, each)) for each in (rt.iterations, rt.element)] == [["d0 - 1"], ["s0"]]
    assert [str(result) for result in read.results] == ["s0", "rt0"]


def test_maps_to_outputs_name_iterations_too() -> None:
    forward = indexing.input_to_output(PROGRAMS["gather"].entry.root, 0)
    maps = [m for m, leaf in zip(forward.maps[3], forward.paths[3], strict=True) if leaf == (2,)]
    assert describe(maps[0]) == [
        "(d0, d1)[s0, s1]{rt0} -> (s0, s1, d1), domain: d0 in [0, 6], d1 in [0, 1], "
        "s0 in [0, 4], s1 in [0, 2], rt0 in [0, 6], d0 - rt0 in [0, 0]",
        "rt0 = w/k[s1] at iteration s0, clamped to [0, 6]",
    ]


# ---------------------------------------------------------------- values


def stacked_read() -> IndexingMap:
    """Return the map from the stacked rows of a gather to the table."""
    return indexing.to_parameters(PROGRAMS["gather"].entry.root, 3).maps[1][0]


def test_values_are_given_for_all_iterations() -> None:
    read = stacked_read()
    values = np.arange(15).reshape(5, 3)
    assert str(read.at(1, 2, 0, k=values)) == "[5, 0]"
    assert str(read.at(4, 0, 1, k=values)) == "[6, 1]"  # 12 is clamped
    assert str(read.at(0, ..., 0, k=values)) == "[0:3, 0]"
    counts = read.multiplicity({"k": values % 4})
    assert isinstance(counts, Multiplicity)
    table = counts.counts((7, 2))
    assert isinstance(table, np.ndarray)
    assert table[:, 0].tolist() == [4, 4, 4, 3, 0, 0, 0]


def test_values_must_have_every_iteration_that_is_read() -> None:
    read = stacked_read()
    assert str(read.at(1, 2, 0, k=np.zeros((2, 3), int))) == "[0, 0]"
    text = "`w/k` is read up to iteration 4; the given value has 2 iterations"
    with pytest.raises(ValueError, match=text):
        read.at(..., 2, 0, k=np.zeros((2, 3), int))
    with pytest.raises(ValueError, match=r"`w/k` has shape \(3,\); the given value has \(4,\)"):
        read.at(1, 2, 0, k=np.zeros((5, 4), int))


def test_iterations_survive_json_and_pickle() -> None:
    read = stacked_read()
    named = IndexingMap.from_json(read.to_json())
    unpickled = pickle.loads(pickle.dumps(read))
    assert IndexingMap.from_json(unpickled.to_json()) == named
    (rt,) = named.runtime
    assert (list(map(str, rt.iterations)), list(map(str, rt.element))) == (["d0"], ["d1"])
    assert runtime_text(rt) == "rt0 = w/k[d1] at iteration d0, clamped to [0, 6]"
    assert str(read.source_map(read.runtime[0])).startswith("(d0, d1, d2) -> (d1), domain: ")


def test_json_of_the_command_has_iterations_only_inside_of_loops() -> None:
    (record,) = runtime_records(stacked_read())
    assert record | {"map": None} == {
        "name": "rt0",
        "instruction": "k",
        "calls": ("w",),
        "iterations": ["d0"],
        "map": None,
        "clamp": (0, 6),
    }
    row = hlo.parse("""ENTRY e { p = f32[9] parameter(0)  i = s32[] parameter(1)
      ROOT s = f32[5] dynamic-slice(p, i), dynamic_slice_sizes={5} }""").entry.root
    (record,) = runtime_records(indexing.output_to_input(row).maps[0][0])
    assert "iterations" not in record


@pytest.mark.parametrize("name", MODULES)
def test_loop_nests_compute_the_indices(name: str) -> None:
    main = MODULES[name].entry
    pokes = Pokes.of(main, seed=3)
    assert pokes.results is not None
    for number, expected in enumerate(pokes.results):
        nest = indexing.loop_nest(main, output_id=number)
        assert isinstance(nest, LoopNest)
        np.testing.assert_allclose(nest.run(*pokes.arguments), expected, rtol=1e-6)


# ---------------------------------------------------------------- the judge


@pytest.mark.parametrize("off", [-1, 1])
@pytest.mark.parametrize("name", ["lookup", "gather"])
def test_a_value_of_another_iteration_is_noticed(
    name: str, off: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = steps._inside
    monkeypatch.setattr(
        steps, "_inside", lambda rt, iteration, number: inside(rt, iteration, number + off)
    )
    again = hlo.parse(str(MODULES[name]))
    wrong = "\n".join([fault for seed in range(4) for fault in faults(again, seed)])
    assert " depends on " in wrong
    assert "the loop's maps lack" in wrong
