"""One sweep over a computation says what a walk from each of its instructions says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from hlo import Computation
from hlo.ops.op import OPS
from indexing.dataflow.edges import LocalEdges
from indexing.maps import map_set
from indexing.maps.answers import Answer
from indexing.maps.deduplicate import deduplicate
from tests.indexing.programs import entry
from tests.oracles import relation, union

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.hlo"))


def same_answer(swept: Answer, walked: Answer) -> bool:
    """The same maps up to the way they are written, and the same unknowns, by parameter."""
    place = {parameter: k for k, parameter in enumerate(swept.operands)}
    for k, parameter in enumerate(walked.operands):
        at = place.get(parameter)
        if at is None:
            if walked.maps[k] or walked.unknown[k] is not None:
                return False
        elif (walked.unknown[k] is None) != (swept.unknown[at] is None) or not all(
            _alike(path, swept.maps[at], swept.paths[at], walked.maps[k], walked.paths[k])
            for path in {*swept.paths[at], *walked.paths[k]}
        ):
            return False
    return True


def _alike(path: object, a: object, a_paths: object, b: object, b_paths: object) -> bool:
    """The maps of one leaf: put together they are no more different maps than either has."""
    left = [m for m, at in zip(a, a_paths, strict=True) if at == path]  # type: ignore[call-overload]
    right = [m for m, at in zip(b, b_paths, strict=True) if at == path]  # type: ignore[call-overload]
    return len(deduplicate([*left, *right])) == len(left) == len(right)


def check(computation: Computation) -> int:
    """How many answers a sweep gives; each is that of a walk."""
    count = 0
    for answer in indexing.all_to_parameters(computation):
        assert same_answer(answer, indexing.to_parameters(answer.instruction, answer.domain_id))
        count += 1
    return count


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_sweep_says_what_walks_say(path: Path) -> None:
    small = [c for c in hlo.load(path).computations.values() if len(c) < 60]
    assert sum(map(check, small)) > 0


def test_a_sweep_knows_leaves_of_tuples_unknowns_and_runtime_variables() -> None:
    assert check(
        entry("""
      p = (f32[4,6], (s32[], f32[6])) parameter(0)
      q = f32[4] parameter(1)
      pair = (s32[], f32[6]) get-tuple-element(p), index=1
      start = s32[] get-tuple-element(pair), index=0
      row = f32[6] get-tuple-element(pair), index=1
      m = f32[4] mystery(q)
      table = f32[4,6] get-tuple-element(p), index=0
      zero = s32[] constant(0)
      cut = f32[4,2] dynamic-slice(table, zero, start), dynamic_slice_sizes={4,2}
      b = f32[4,2] broadcast(m), dimensions={0}
      n = f32[4,2] add(cut, b)
      t = (f32[4]) tuple(q)
      ROOT all = (f32[4,2], f32[6], (f32[4])) tuple(n, row, t)""")
    )


def test_parameters_that_nothing_reads_are_left_out() -> None:
    main = entry("p = f32[4] parameter(0)  q = f32[4] parameter(1)  ROOT n = f32[4] negate(q)")
    named = [[p.name for p in a.operands] for a in indexing.all_to_parameters(main)]
    assert named == [["p"], ["q"], ["q"]]


def test_a_sweep_costs_as_many_steps_as_there_are_instructions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Walks from each of n instructions would take n²/2."""
    asked = 0
    real = LocalEdges.backward_edges

    def counted(*arguments: Any, **keywords: Any) -> object:
        nonlocal asked
        asked += 1
        return real(*arguments, **keywords)

    monkeypatch.setattr(LocalEdges, "backward_edges", counted)
    lines = ["x0 = f32[8] parameter(0)"]
    for k in range(200):
        lines.append(f"r{k} = f32[8] reverse(x{k}), dimensions={{0}}")
        lines.append(f"x{k + 1} = f32[8] add(x{k}, r{k})")
    chain = entry("\n".join(lines) + "\nROOT last = f32[8] negate(x200)")
    answers = list(indexing.all_to_parameters(chain))
    assert len(answers) == len(chain) == asked + 1  # a parameter needs no step
    assert all(len(a.maps[0]) <= 2 for a in answers)


def windows(count: int) -> Computation:
    """Each of `count` pairs of elements is read in both orders."""
    lines = [f"p = f32[{7 * count}] parameter(0)"]
    lines += [f"s{k} = f32[2] slice(p), slice={{[{7 * k}:{7 * k + 2}]}}" for k in range(count)]
    parts = ", ".join(f"s{k}" for k in range(count))
    lines += [f"c = f32[{2 * count}] concatenate({parts}), dimensions={{0}}"]
    lines += [f"a = f32[{2 * count}] reverse(c), dimensions={{0}}"]
    return entry("\n".join([*lines, f"ROOT m = f32[{2 * count}] add(a, c)"]))


def test_a_budget_that_is_hit_is_unknown_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, within = indexing.all_to_parameters(windows(8))
    assert (len(within.maps[0]), within.unknown) == (16, (None,))
    monkeypatch.setattr(map_set, "MAX_COMPOSED", 7)
    *_, beyond = indexing.all_to_parameters(windows(8))
    (unknown,) = beyond.unknown
    assert unknown is not None
    assert unknown.reason.startswith("budget: 8 pairs of maps to compose, more than 7")


def test_a_map_that_gets_too_long_is_a_coarse_one_that_misses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each window adds two range variables; the batch keeps its place."""
    lines = ["x0 = f32[2,9] parameter(0)", "zero = f32[] constant(0)"]
    lines += [
        f"x{k + 1} = f32[2,9] reduce-window(x{k}, zero), window={{size=1x3 pad=0_0x1_1}}, "
        "to_apply=plus"
        for k in range(4)
    ]
    plus = "plus { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }"
    main = entry("\n".join([*lines, "ROOT r = f32[2,9] copy(x4)"]), plus)
    wanted = {
        ((b, i), (b, i + k))
        for b in range(2)
        for i in range(9)
        for k in range(-4, 5)
        if 0 <= i + k < 9
    }
    exact = indexing.to_parameters(main.root).maps[0]
    assert {m.grade for m in exact} == {"exact"}
    assert union(exact) == wanted
    monkeypatch.setattr(map_set, "MAX_PARTS", 3)
    (found,) = indexing.to_parameters(main.root).maps[0]
    assert found.grade == "may"
    assert len(found.ranges) + len(found.constraints) <= 3
    assert wanted <= relation(found)
    assert {b - a for (a, _), (b, _) in relation(found)} == {0}
    assert {i for _, (_, i) in relation(found)} == set(range(9))  # and no padding


# fmt: off
ABSORBED = [
    # what leads to p[6], and what is left of it
    ("(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 5]",
     "may (d0)[s0] -> (s0), domain: d0 in [1, 3], s0 in [2, 5]",
     1),                                                            # fewer points, fewer elements
    ("may (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 5]",
     "may (d0) -> (d0 + 1), domain: d0 in [1, 3]",
     1),
    ("may (d0) -> (d0), domain: d0 in [0, 3]",
     "may (d0) -> (d0), domain: d0 in [1, 3]",
     1),
    ("(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 5]",
     "may (d0)[s0, s1] -> (s0 + s1 - 1), domain: d0 in [0, 3], s0 in [0, 5], s1 in [0, 2], "
     "s0 + s1 in [1, 6]",
     1),                                                            # a window reads no padding
    ("may (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 5]",
     "(d0) -> (d0), domain: d0 in [0, 3]",
     1),                                                            # and adds nothing
    ("may (d0)[s0] -> (s0), domain: d0 in [1, 3], s0 in [0, 5]",
     "may (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 4]",
     2),                                                            # neither has all of the other
    ("may (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 5], d0 + s0 in [0, 4]",
     "may (d0) -> (d0), domain: d0 in [0, 3]",
     2),                                                            # not a box
    ("may (d0) -> (-d0 + 3), domain: d0 in [0, 3]",
     "may (d0) -> (d0), domain: d0 in [1, 2]",
     2),
]
# fmt: on


@pytest.mark.parametrize("wide, narrow, left", ABSORBED)
def test_what_may_be_read_goes_where_a_box_relates_all_of_it(
    wide: str, narrow: str, left: int
) -> None:
    given = [graded(wide), graded(narrow)]
    for order in (given, given[::-1]):
        maps = map_set.MapSet((), map_set.Ends(indexing.dims((4,)), (6,)))
        maps.extend(order)
        assert set(maps.distinct) == set(given[:left])
        assert union(maps.distinct) == union(tuple(given))


def graded(text: str) -> indexing.IndexingMap:
    grade, _, rest = text.partition(" ")
    return (
        indexing.parse_map(rest).with_grade("may") if grade == "may" else indexing.parse_map(text)
    )


def test_maps_that_are_too_long_together_miss_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        f"(d0)[s0, s1] -> (d0 + s0 * {k} + s1), domain: d0 in [0, 3], s0 in [0, 2], s1 in [0, 1], "
        f"d0 + s0 in [{k}, 4]"
        for k in range(1, 4)
    ]
    given = [*map(graded, texts), graded("(d0) -> (d0), domain: d0 in [0, 3]")]
    ends = map_set.Ends(indexing.dims((4,)), (11,))
    wanted = union(tuple(given))
    monkeypatch.setattr(map_set, "MAX_PARTS_TOGETHER", 9)
    kept = map_set.MapSet((), ends)
    kept.extend(given)
    assert list(kept.maps) == given
    monkeypatch.setattr(map_set, "MAX_PARTS_TOGETHER", 8)
    monkeypatch.setattr(map_set, "FEW_PARTS", 1)
    kept.extend(())
    assert wanted <= union(tuple(kept.maps))
    assert sum(len(m.ranges) + len(m.constraints) for m in kept.maps) < 9
    assert all(0 <= i < 11 for _, (i,) in union(tuple(kept.maps)))


def test_equal_sub_problems_are_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    transpose: Any = OPS["transpose"]
    real = transpose.output_to_input

    def counted(self: object, *arguments: object) -> object:
        nonlocal asked
        asked += 1
        return real(self, *arguments)

    monkeypatch.setattr(transpose, "output_to_input", counted)
    lines = ["x0 = f32[13,13,17] parameter(0)"]
    lines += [f"x{k + 1} = f32[13,13,17] transpose(x{k}), dimensions={{1,0,2}}" for k in range(20)]
    main = entry("\n".join([*lines, "ROOT r = f32[13,13,17] copy(x20)"]))
    for instruction in main:
        indexing.output_to_input(instruction)
    assert asked == 1
