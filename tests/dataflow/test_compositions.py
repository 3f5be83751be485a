"""A walk composes equal edges with equal map sets once; its answers do not depend on that."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from hlo import Computation
from indexing.dataflow import answering, compositions
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.queries import walk_of
from indexing.maps.arrays import ArrayRef
from indexing.maps.certificate import proofs
from indexing.maps.map_set import MapSet
from tests.compiled import interpreted_only
from tests.dataflow.programs import entry
from tests.growth.work import calls_of

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def layers(count: int) -> Computation:
    """Return rows of a table, to which each layer adds a parameter after a transposition."""
    lines = [
        "table = f32[50,6] parameter(0)",
        "row = s32[6] parameter(1)",
        "zero = s32[] constant(0)",
    ]
    lines.append(
        "x0 = f32[6,6] gather(table, row), offset_dims={1}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}"
    )
    for k in range(count):
        lines.append(f"w{k} = f32[6,6] parameter({k + 2})")
        lines.append(f"t{k} = f32[6,6] transpose(x{k}), dimensions={{1,0}}")
        lines.append(f"y{k} = f32[6,6] add(t{k}, w{k})")
        lines.append(f"x{k + 1} = f32[6,6] add(x{k}, y{k})")
    return entry("\n".join([*lines, f"ROOT r = f32[6,6] negate(x{count})"]))


def records(computation: Computation, *, exact: bool = False) -> list[object]:
    """Return all parts of the answers of a sweep, and of a walk from the root, as values."""
    swept = indexing.all_to_parameters(computation, exact=exact)
    return [
        (
            *(each.instruction.name, [operand.name for operand in each.operands]),
            *([[str(m) for m in maps] for maps in each.maps], each.paths, each.control),
            *([str(unknown) for unknown in each.unknown], str(each.reasons)),
        )
        for each in (*swept, indexing.to_parameters(computation.root, exact=exact))
    ]


def test_equal_layers_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk that composes each parameter anew takes quadratic time."""
    calls = calls_of(monkeypatch, MapSet, "add_composed")
    counts = []
    for count in (8, 16):
        *_, last = indexing.all_to_parameters(layers(count))
        counts.append(len(calls))
        assert [len(maps) for maps in last.maps] == [2, 2] * (count > 0) + [2] * (count - 1) + [1]
        calls.clear()
    assert counts[0] == counts[1] < 40


def test_equal_computations_have_one_summary() -> None:
    """The 1,653 summaries of a training step of GPT-2 have 134 different map sets."""
    text = "{ a = f32[6] parameter(0) b = f32[6] parameter(1) ROOT r = f32[6] "
    module = hlo.parse(
        f"f {text} add(b, a) }} g {text} multiply(b, a) }} ENTRY e {{ p = f32[6] parameter(0) "
        "x = f32[6] call(p, p), to_apply=f ROOT y = f32[6] call(x, p), to_apply=g }"
    )
    walk = walk_of()
    walk.prepare(module.entry.instructions, backward=True)
    first, second = (walk.read_summary(module.computations[name], ()) for name in "fg")
    assert first is second
    assert list(first) == [(1, ()), (0, ())]


def test_equal_layers_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each listing compares the maps of a set as relations."""
    calls = calls_of(monkeypatch, answering, "_leaf_entry")
    counts = []
    for count in (8, 16):
        assert list(indexing.all_to_parameters(layers(count)))
        counts.append(len(calls))
        calls.clear()
    assert counts[0] == counts[1] < 40


def test_a_walk_back_composes_equal_layers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of(monkeypatch, MapSet, "add_composed")
    counts = []
    for count in (8, 16):
        indexing.to_parameters(layers(count).root)
        counts.append(len(calls))
        calls.clear()
    assert counts[0] == counts[1] < 40


@interpreted_only
def test_a_walk_back_finds_the_edges_of_equal_ops_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of(monkeypatch, LocalEdges, "backward_edges")
    counts = []
    for count in (8, 16):
        indexing.to_parameters(layers(count).root)
        counts.append(len(calls))
        calls.clear()
    assert counts[0] == counts[1] < 10


def test_equal_ops_with_other_masks_or_starts_have_edges_of_their_own() -> None:
    computation = entry("""
      x = f32[6] parameter(0)
      i = s32[6] iota(), iota_dimension=0
      two = s32[] constant(2)
      four = s32[] constant(4)
      low = s32[6] broadcast(two), dimensions={}
      high = s32[6] broadcast(four), dimensions={}
      a = pred[6] compare(i, low), direction=GE
      b = pred[6] compare(i, high), direction=LT
      z = f32[] constant(0)
      zero = f32[6] broadcast(z), dimensions={}
      s = f32[6] select(a, x, zero)
      t = f32[6] select(b, s, zero)
      n = s32[] parameter(1)
      m = s32[] parameter(2)
      u = f32[9] parameter(3)
      d = f32[6] dynamic-slice(u, n), dynamic_slice_sizes={6}
      e = f32[6] dynamic-slice(u, m), dynamic_slice_sizes={6}
      f = f32[6] add(d, e)
      ROOT r = f32[6] add(t, f)""")
    answer = indexing.to_parameters(computation.root)
    by_name = dict(zip([o.name for o in answer.operands], answer.maps, strict=True))
    (needed,) = by_name["x"]
    assert [k for k in range(6) if needed(k)] == [2, 3]
    arrays = [rt.array for m in by_name["u"] for rt in m.runtime]
    named = [array.instruction for array in arrays if isinstance(array, ArrayRef)]
    assert {instruction.name for instruction in named} == {"n", "m"}


@pytest.mark.parametrize("exact", [False, True])
def test_equal_ops_with_other_constant_starts_have_edges_of_their_own(exact: bool) -> None:
    computation = entry("""
      u = f32[9] parameter(0)
      zero = s32[] constant(0)
      three = s32[] constant(3)
      d = f32[6] dynamic-slice(u, zero), dynamic_slice_sizes={6}
      e = f32[6] dynamic-slice(u, three), dynamic_slice_sizes={6}
      f = f32[6] add(d, e)
      v = f32[6] parameter(1)
      ROOT r = f32[6] add(f, v)""")
    ours = indexing.to_parameters(computation.root, exact=exact)
    for k in range(6):
        assert {m(k) for m in ours.maps[0]} == {(k,), (k + 3,)}


@interpreted_only
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", ["dynamic_slice_update.opt", "rnn.pre", "attention.opt"])
def test_answers_do_not_depend_on_sharing(
    name: str, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers() -> list[object]:
        module = hlo.load(EXAMPLES / f"{name}.hlo")
        return [records(each, exact=exact) for each in module.computations.values()]

    shared = answers()
    calls = calls_of(monkeypatch, MapSet, "add_composed")
    assert answers() == shared
    count = len(calls)
    monkeypatch.setattr(compositions, "MAX_SHARED", 0)
    assert answers() == shared
    assert len(calls) - count > count  # fewer were shared


def test_each_composition_is_certified() -> None:
    def prove(count: int) -> int:
        before = proofs().total()
        assert list(indexing.all_to_parameters(layers(count), certify=True))
        return proofs().total() - before

    assert prove(3) - prove(2) > prove(2) - prove(1) > 0  # more parameters are further away
