"""Elements that decide only control: how many iterations, or which branch, are executed.

Oracle: a loop with another condition, which executes a fixed number of iterations, has no control.
All that it reads, for any number of iterations, is data.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing import cli
from indexing.maps.answers import Answer
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.space_pairs import SpacePair
from indexing.views.map_tables import CONTROL
from tests.dataflow.influence import Mask, Pokes, mask_of
from tests.dataflow.loop_judge import miss

ROWS = 5
CUMSUM = """
open {
  s = (s32[], s32[], s32[5], s32[5], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  total = s32[] get-tuple-element(s), index=1
  limit = s32[] get-tuple-element(s), index=4
  n = s32[] constant(5)
  more = pred[] compare(i, n), direction=LT
  small = pred[] compare(total, limit), direction=LT
  ROOT r = pred[] and(more, small)
}
next {
  s = (s32[], s32[], s32[5], s32[5], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  total = s32[] get-tuple-element(s), index=1
  xs = s32[5] get-tuple-element(s), index=2
  sums = s32[5] get-tuple-element(s), index=3
  limit = s32[] get-tuple-element(s), index=4
  x = s32[1] dynamic-slice(xs, i), dynamic_slice_sizes={1}
  value = s32[] reshape(x)
  sum = s32[] add(total, value)
  row = s32[1] reshape(sum)
  updated = s32[5] dynamic-update-slice(sums, row, i)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], s32[], s32[5], s32[5], s32[]) tuple(j, sum, xs, updated, limit)
}
ENTRY cumsum {
  xs = s32[5] parameter(0)
  limit = s32[] parameter(1)
  zero = s32[] constant(0)
  empty = s32[5] broadcast(zero), dimensions={}
  s = (s32[], s32[], s32[5], s32[5], s32[]) tuple(zero, zero, xs, empty, limit)
  w = (s32[], s32[], s32[5], s32[5], s32[]) while(s), condition=open, body=next
  last = s32[] get-tuple-element(w), index=1
  sums = s32[5] get-tuple-element(w), index=3
  ROOT r = (s32[5], s32[]) tuple(sums, last)
}
"""
BRANCHES = """
left { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }
right { x = f32[4] parameter(0)  ROOT z = f32[4] reverse(x), dimensions={0} }
ENTRY e {
  which = pred[3] parameter(0)
  p = f32[4] parameter(1)
  first = pred[1] slice(which), slice={[0:1]}
  flag = pred[] reshape(first)
  chosen = f32[4] conditional(flag, p, p), true_computation=left, false_computation=right
  ROOT r = f32[2,2] reshape(chosen)
}
"""


def count_rows(rows: int) -> Module:
    """Return the program with a fixed number of iterations."""
    text = CUMSUM.replace("n = s32[] constant(5)", f"n = s32[] constant({rows})")
    return hlo.parse(text.replace("and(more, small)", "copy(more)"))


def mask(answer: Answer, parameter: int, *, control: bool | None = None) -> Mask:
    """Return the pairs of elements of the maps; only of control, or of data, unless None."""
    outputs = (ROWS,) if answer.domain_id == 0 else ()
    sizes = (ROWS,) if parameter == 0 else ()
    pairs = np.zeros((ROWS if outputs else 1, ROWS if sizes else 1), bool)
    for m, is_control in zip(answer.maps[parameter], answer.control[parameter], strict=True):
        if control in (None, is_control):
            pairs |= mask_of(m, (outputs, sizes), None, widened=True)
    return pairs


@pytest.mark.parametrize("output", [0, 1])
def test_what_a_fixed_number_of_iterations_reads_is_data(output: int) -> None:
    answer = indexing.to_parameters(hlo.parse(CUMSUM).entry.root, output)
    for rows in range(ROWS + 1):
        other = indexing.to_parameters(count_rows(rows).entry.root, output)
        assert not any(map(any, other.control))
        for parameter in range(2):
            lacking = mask(other, parameter) & ~mask(answer, parameter, control=False)
            assert not lacking.any()


def test_the_limit_of_an_exit_decides_only_control() -> None:
    for output in range(2):
        answer = indexing.to_parameters(hlo.parse(CUMSUM).entry.root, output)
        assert answer.control[1] == (True,)
        assert False in answer.control[0]


# fmt: off
UPDATES: dict[str, tuple[str, Callable[[int, int], bool]]] = {
    # name: lines of the body, elements of the sums that x[e] of iteration e decides, for x[0]
    "stacked":   ("updated = s32[5] dynamic-update-slice(sums, row, i)",
                  lambda d, e: e <= d),
    "reversed":  ("f = s32[] constant(4)  at = s32[] subtract(f, i)  "
                  "updated = s32[5] dynamic-update-slice(sums, row, at)",
                  lambda d, e: e <= 4 - d),
    "two":       ("a = s32[5] dynamic-update-slice(sums, row, i)  h = s32[] constant(2)  "
                  "updated = s32[5] dynamic-update-slice(a, row, h)",
                  lambda d, e: e <= d or d == 2),
    "clamped":   ("h = s32[] constant(2)  at = s32[] add(i, h)  "
                  "updated = s32[5] dynamic-update-slice(sums, row, at)",
                  lambda d, e: d >= 2 and (e <= d - 2 or d == 4)),
    "everywhere": ("b = s32[5] broadcast(sum), dimensions={}  updated = s32[5] add(sums, b)",
                   lambda d, e: True),
    "at data":   ("updated = s32[5] dynamic-update-slice(sums, row, value)",
                  lambda d, e: True),
}
# fmt: on


@pytest.mark.parametrize("name", UPDATES)
def test_the_exit_decides_only_as_long_as_an_element_is_changed(name: str) -> None:
    """Data and control of a stacked result are the rows up to its own; executions agree."""
    line, needed = UPDATES[name]
    stacked, _ = UPDATES["stacked"]
    module = hlo.parse(CUMSUM.replace(stacked, line.replace("  ", "\n  ")))
    answer = indexing.to_parameters(module.entry.root, 0)
    expected = np.array([[needed(d, e) for e in range(ROWS)] for d in range(ROWS)])
    assert np.array_equal(mask(answer, 0), expected)
    for seed in range(4):
        pokes = Pokes.of(module.entry, seed)
        for place in pokes.places():
            pokes.poke(*place, values=3)
        assert list(miss(module, pokes)) == []


def test_the_predicate_of_a_conditional_decides_only_control_through_calls_and_reshapes() -> None:
    root = hlo.parse(BRANCHES).entry.root
    answer = indexing.to_parameters(root)
    assert answer.control == ((True,), (False, False))
    assert answer.maps[0][0].grade == "exact"
    chosen = root.operands[0]
    assert indexing.output_to_input(chosen).control[0] == (True,)
    assert indexing.input_to_output(chosen, 0).control == ((True,),)
    assert indexing.epilogue(root.computation["flag"]).control == ((True,),)


def test_a_value_that_is_also_data_does_not_decide_only_control() -> None:
    text = BRANCHES.replace("ROOT r", "c = f32[] convert(flag)  r").rstrip().removesuffix("}")
    text += """
      b = f32[2,2] broadcast(c), dimensions={}
      ROOT s = f32[2,2] add(r, b)
    }"""
    root = hlo.parse(text).entry.root
    answer = indexing.to_parameters(root)
    assert False in answer.control[0]


SIZES = SpacePair(IndexingMap.identity((4,)).dims, (4,))
SAME = IndexingMap.identity((4,))
EVERY = IndexingMap.over((4,), lambda d, s: [s[0]], ranges=(4,))
# fmt: off
SETS = [
    # added first                   added second                    data, control
    ((SAME, True),                  (SAME, False),                  {SAME}, set()),
    ((SAME, False),                 (SAME, True),                   {SAME}, set()),
    ((SAME, True),                  (SAME.with_grade("may"), False), {SAME}, set()),
    ((SAME.with_grade("may"), True), (SAME, False),                 {SAME}, set()),
    ((SAME.with_grade("may"), True), (SAME, True),                  set(), {SAME}),
    ((EVERY.with_grade("may"), True), (SAME.with_grade("may"), False),
     {SAME.with_grade("may")}, {EVERY.with_grade("may")}),
    ((EVERY.with_grade("may"), False), (SAME.with_grade("may"), True),
     {EVERY.with_grade("may")}, set()),
]
# fmt: on


@pytest.mark.parametrize(("first", "second", "data", "control"), SETS)
def test_control_never_replaces_data(
    first: tuple[IndexingMap, bool],
    second: tuple[IndexingMap, bool],
    data: set[IndexingMap],
    control: set[IndexingMap],
) -> None:
    maps = MapSet((), SIZES)
    for m, is_control in (first, second):
        maps.extend([m], control=[m] if is_control else [])
    assert {m for m, is_control in maps.distinct if not is_control} == data
    assert {m for m, is_control in maps.distinct if is_control} == control


def test_control_is_printed_and_written_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "branches.hlo"
    file.write_text(BRANCHES)
    command = ["maps", str(file), "--to", "parameters"]
    assert cli.run(command) == 0
    text = capsys.readouterr().out.splitlines()
    (line,) = [number for number, each in enumerate(text) if each.strip() == CONTROL]
    assert "parameter 0 which" in text[line - 1]
    assert cli.run([*command, "--format", "json"]) == 0
    records = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert [each.get("control") for each in records] == [True, None, None]
