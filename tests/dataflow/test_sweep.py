"""One sweep over a computation agrees with a walk from each of its instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
import indexing
from hlo import Computation
from hlo.ops.op import OPS
from indexing.dataflow.edges import LocalEdges
from indexing.maps import map_set, space_pairs
from indexing.maps.answers import Answer
from indexing.maps.deduplicate import deduplicate
from tests.compiled import interpreted_only
from tests.dataflow.programs import entry
from tests.growth.work import calls_of
from tests.oracles import relation, union

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.hlo"))


def same_answer(swept: Answer, walked: Answer) -> bool:
    """Return True if both have equal maps and the same unknowns for each parameter."""
    position = {parameter: k for k, parameter in enumerate(swept.operands)}
    for k, parameter in enumerate(walked.operands):
        at = position.get(parameter)
        if at is None:
            if walked.maps[k] or walked.unknown[k] is not None:
                return False
        elif (walked.unknown[k] is None) != (swept.unknown[at] is None) or not all(
            _equal(path, swept.maps[at], swept.paths[at], walked.maps[k], walked.paths[k])
            for path in {*swept.paths[at], *walked.paths[k]}
        ):
            return False
    return True


def _equal(path: object, a: object, a_paths: object, b: object, b_paths: object) -> bool:
    """Return True if both lists have equal maps of one leaf."""
    left = [m for m, at in zip(a, a_paths, strict=True) if at == path]  # type: ignore[call-overload]
    right = [m for m, at in zip(b, b_paths, strict=True) if at == path]  # type: ignore[call-overload]
    return len(deduplicate([*left, *right])) == len(left) == len(right)


def check(computation: Computation) -> int:
    """Check that every answer of a sweep is that of a walk; return the number of answers."""
    count = 0
    for answer in indexing.all_to_parameters(computation):
        assert same_answer(answer, indexing.to_parameters(answer.instruction, answer.domain_id))
        count += 1
    return count


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_sweep_agrees_with_walks(path: Path) -> None:
    small = [c for c in hlo.load(path).computations.values() if len(c) < 60]
    assert sum(map(check, small)) > 0


def test_a_sweep_handles_tuples_unknowns_and_runtime_variables() -> None:
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


def test_unread_parameters_are_omitted() -> None:
    main = entry("p = f32[4] parameter(0)  q = f32[4] parameter(1)  ROOT n = f32[4] negate(q)")
    named = [[p.name for p in a.operands] for a in indexing.all_to_parameters(main)]
    assert named == [["p"], ["q"], ["q"]]


@interpreted_only
def test_a_sweep_visits_each_instruction_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Walks from each of n instructions would visit n²/2."""
    calls = calls_of(monkeypatch, LocalEdges, "backward_edges")
    lines = ["x0 = f32[8] parameter(0)"]
    for k in range(200):
        lines.append(f"r{k} = f32[8] reverse(x{k}), dimensions={{0}}")
        lines.append(f"x{k + 1} = f32[8] add(x{k}, r{k})")
    chain = entry("\n".join(lines) + "\nROOT last = f32[8] negate(x200)")
    answers = list(indexing.all_to_parameters(chain))
    assert len(answers) == len(chain) == len(calls) + 1  # a parameter has no edges
    assert all(len(a.maps[0]) <= 2 for a in answers)


def windows(count: int) -> Computation:
    """Read each of `count` pairs of elements in both orders."""
    lines = [f"p = f32[{7 * count}] parameter(0)"]
    lines += [f"s{k} = f32[2] slice(p), slice={{[{7 * k}:{7 * k + 2}]}}" for k in range(count)]
    parts = ", ".join(f"s{k}" for k in range(count))
    lines += [f"c = f32[{2 * count}] concatenate({parts}), dimensions={{0}}"]
    lines += [f"a = f32[{2 * count}] reverse(c), dimensions={{0}}"]
    return entry("\n".join([*lines, f"ROOT m = f32[{2 * count}] add(a, c)"]))


def test_an_exceeded_budget_is_unknown_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, within = indexing.all_to_parameters(windows(8))
    assert (len(within.maps[0]), within.unknown) == (16, (None,))
    monkeypatch.setattr(map_set, "MAX_COMPOSED", 7)
    *_, beyond = indexing.all_to_parameters(windows(8))
    (unknown,) = beyond.unknown
    assert unknown is not None
    assert unknown.reason.startswith("budget: 8 pairs of maps to compose, more than 7")


def test_a_map_that_is_too_long_is_over_approximated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each window adds two range variables; the batch index is preserved."""
    lines = ["x0 = f32[2,9] parameter(0)", "zero = f32[] constant(0)"]
    lines += [
        f"x{k + 1} = f32[2,9] reduce-window(x{k}, zero), window={{size=1x3 pad=0_0x1_1}}, "
        "to_apply=plus"
        for k in range(4)
    ]
    plus = "plus { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }"
    main = entry("\n".join([*lines, "ROOT r = f32[2,9] copy(x4)"]), plus)
    expected = {
        ((b, i), (b, i + k))
        for b in range(2)
        for i in range(9)
        for k in range(-4, 5)
        if 0 <= i + k < 9
    }
    exact = indexing.to_parameters(main.root).maps[0]
    assert {m.grade for m in exact} == {"exact"}
    assert union(exact) == expected
    monkeypatch.setattr("indexing.maps.over_approximation.MAX_PARTS", 3)
    (over_approximation,) = indexing.to_parameters(main.root).maps[0]
    assert over_approximation.grade == "may"
    assert len(over_approximation.ranges) + len(over_approximation.constraints) <= 3
    related = relation(over_approximation)
    assert expected <= related
    assert {b - a for (a, _), (b, _) in related} == {0}
    assert {i for _, (_, i) in related} == set(range(9))  # and no padding


# fmt: off
ABSORBED = [
    # two maps to p[6], and the number that remain
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
     2),                                                            # neither includes the other
    ("may (d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 5], d0 + s0 in [0, 4]",
     "may (d0) -> (d0), domain: d0 in [0, 3]",
     2),                                                            # not a box
    ("may (d0) -> (-d0 + 3), domain: d0 in [0, 3]",
     "may (d0) -> (d0), domain: d0 in [1, 2]",
     2),
]
# fmt: on


@pytest.mark.parametrize("wide, narrow, count", ABSORBED)
def test_a_may_map_is_absorbed_by_a_box_that_includes_it(
    wide: str, narrow: str, count: int
) -> None:
    added = [swept_map(wide), swept_map(narrow)]
    for order in (added, added[::-1]):
        maps = map_set.MapSet((), space_pairs.SpacePair(indexing.dims((4,)), (6,)))
        maps.extend(order)
        assert set(maps.effective) == set(added[:count])
        assert union(maps.effective) == union(tuple(added))


def swept_map(text: str) -> indexing.IndexingMap:
    grade, _, rest = text.partition(" ")
    return (
        indexing.parse_map(rest).with_grade("may") if grade == "may" else indexing.parse_map(text)
    )


def test_maps_that_are_too_long_together_are_over_approximated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [
        f"(d0)[s0, s1] -> (d0 + s0 * {k} + s1), domain: d0 in [0, 3], s0 in [0, 2], s1 in [0, 1], "
        f"d0 + s0 in [{k}, 4]"
        for k in range(1, 4)
    ]
    maps = [*map(swept_map, texts), swept_map("(d0) -> (d0), domain: d0 in [0, 3]")]
    spaces = space_pairs.SpacePair(indexing.dims((4,)), (11,))
    expected = union(tuple(maps))
    monkeypatch.setattr(map_set, "MAX_PARTS_TOGETHER", 9)
    kept = map_set.MapSet((), spaces)
    kept.extend(maps)
    assert list(kept.maps) == maps
    monkeypatch.setattr(map_set, "MAX_PARTS_TOGETHER", 8)
    monkeypatch.setattr(map_set, "FEW_PARTS", 1)
    kept.extend(())
    assert expected <= union(tuple(kept.maps))
    assert sum(len(m.ranges) + len(m.constraints) for m in kept.maps) < 9
    assert all(0 <= i < 11 for _, (i,) in union(tuple(kept.maps)))


def test_equal_sub_problems_are_memoised(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of(monkeypatch, OPS["transpose"], "output_to_input")
    lines = ["x0 = f32[13,13,17] parameter(0)"]
    lines += [f"x{k + 1} = f32[13,13,17] transpose(x{k}), dimensions={{1,0,2}}" for k in range(20)]
    main = entry("\n".join([*lines, "ROOT r = f32[13,13,17] copy(x20)"]))
    for instruction in main:
        indexing.output_to_input(instruction)
    assert len(calls) == 1
