"""Tilings executed block by block and step by step, with poison elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
from indexing import cli
from indexing.codegen.tile_programs import stepwise
from indexing.codegen.tile_programs.lowering import tile_program
from indexing.codegen.tile_programs.program import NotEmitted
from indexing.codegen.tile_programs.stepped_runs import (
    TOLERANCES,
    relative_difference,
    stepped_entry,
)
from indexing.codegen.tile_programs.stepwise import run_stepwise
from tests.codegen.tile_programs.problems import (
    BLOCKED,
    FILES,
    OVERLAPPING,
    RECOMPUTED,
    TileCase,
    case_of,
    file_cases,
    redrawn,
)
from tests.tiling.loops import hand_problems as hand


def error_of(case: TileCase) -> float:
    """Return how many times the tolerance the result of steps differs."""
    program = tile_program(case.tiling)
    result = run_stepwise(program, {a: case.given[a] for a in program.arrays})
    difference = relative_difference(result, case.wanted)
    kind = case.tiling.shape.element_type
    return difference / TOLERANCES[kind] if kind in TOLERANCES else difference


@pytest.mark.parametrize("name", [*BLOCKED, *OVERLAPPING])
def test_steps_compute_what_the_kernels_compute(name: str) -> None:
    assert error_of(case_of(name)) <= 1


@pytest.mark.parametrize("name", RECOMPUTED)
def test_statistics_are_recomputed_in_phases(name: str) -> None:
    case = case_of(name, online=False)
    assert not case.tiling.online
    assert error_of(case) <= 1
    assert case_of(name).tiling.online


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", [*BLOCKED, *OVERLAPPING])
def test_random_sizes_and_steps_compute_the_same(name: str, seed: int) -> None:
    case = redrawn(name, seed)
    assert error_of(case) <= 1, case.tiling


@pytest.mark.parametrize("file", FILES)
def test_instructions_of_files_compute_the_same(file: str) -> None:
    checked = 0
    for case in file_cases(file):
        try:
            assert error_of(case) <= 1, case.name
            checked += 1
        except NotEmitted:
            continue
    assert checked >= 3


@pytest.mark.parametrize("name", ["dot", "softmax, online", "attention", "convolution", "stencil"])
def test_a_step_without_some_element_has_another_result(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = stepwise._places

    def places(region: Any) -> Iterator[Any]:
        (first, *others) = list(whole(region)) or [()]
        if first:
            low = first[0]
            yield (slice(low.start, low.stop - 1, low.step), *first[1:])
        yield from others

    case = case_of(name)
    assert error_of(case) <= 1
    monkeypatch.setattr(stepwise, "_places", places)
    assert error_of(case) > 1


def test_queries_that_see_no_key_yet_are_no_fault() -> None:
    case = case_of("masked attention")
    assert case.tiling.online
    assert np.isfinite(case.wanted).all()
    assert error_of(case) <= 1


# fmt: off
REFUSED = [
    ("ENTRY e { x = f32[5,2] parameter(0)  i = s32[4,1] parameter(1) "
     "ROOT g = f32[4,2] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,2} }",
     "the index into `x` depends on runtime values"),
    ("less { a = f32[] parameter(0)  b = f32[] parameter(1) "
     "ROOT c = pred[] compare(a, b), direction=LT } "
     "ENTRY e { x = f32[5,4] parameter(0)  ROOT s = f32[5,4] sort(x), dimensions={1}, "
     "to_apply=less }",
     "reads depend on element values"),
    ("ENTRY e { x = f32[2,3] parameter(0)  c = f32[2,3] constant({{1,2,3},{4,5,6}}) "
     "ROOT a = f32[2,3] add(x, c) }",
     "the constant `c` has different elements"),
]
# fmt: on


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_values_without_this_form_are_refused_with_the_reason(text: str, reason: str) -> None:
    import indexing

    root = hlo.parse(text).entry.root
    assert isinstance(root.shape, hlo.Shape)
    tiling = indexing.tile(root, (2, root.shape.dims[1]), "parameters", loop_sizes={})
    with pytest.raises(NotEmitted, match=reason.replace("`", ".")):
        tile_program(tiling)


# fmt: off
NEAR_MISSES = [
    ("subtract(x, tops)",   "add(x, tops)",   "grows with a statistic in its exponential"),
    ("to_apply=max",        "to_apply=add",   "is within an exponential and no maximum"),
]
# fmt: on


@pytest.mark.parametrize(("before", "after", "reason"), NEAR_MISSES)
def test_statistics_that_could_overflow_are_no_online_kernels(
    before: str, after: str, reason: str
) -> None:
    import indexing

    text = hand.softmax(7, 9).text.replace("constant(-inf)", "constant(0)")
    root = hlo.parse(text.replace(before, after, 1)).entry.root
    tiling = indexing.tile(root, (4, 9), "parameters", loop_sizes={"k": 4})
    assert tiling.online
    with pytest.raises(NotEmitted, match=reason):
        tile_program(tiling)
    waiting = indexing.tile(root, (4, 9), "parameters", loop_sizes={"k": 4}, online=False)
    assert tile_program(waiting).phases


def test_split_loops_are_refused() -> None:
    import indexing

    root = hlo.parse(hand.dot(8, 8, 8).text).entry.root
    tiling = indexing.tile(root, (4, 4), loop_sizes={"k": 2}, split_k=2)
    with pytest.raises(NotEmitted, match="split_k"):
        tile_program(tiling)


# ---------------------------------------------------------------- entries, and the command

MIXED = """
less { a = f32[] parameter(0)  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[6,5] parameter(0)  y = f32[5,4] parameter(1)
  d = f32[6,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[6,4] sort(d), dimensions={1}, to_apply=less
  ROOT n = f32[6,4] negate(s) }"""


def test_instructions_without_tiles_are_executed_whole() -> None:
    entry = stepped_entry(hlo.parse(MIXED), (4, 3), {"k": 2})
    assert entry.by_result is None
    assert "`s` is executed whole" in "\n".join(entry.remarks)
    random = np.random.default_rng(0)
    x = random.standard_normal((6, 5)).astype(np.float32)
    y = random.standard_normal((5, 4)).astype(np.float32)
    (result,) = entry.run([x, y])
    assert np.allclose(result, -np.sort(x @ y, axis=1), rtol=1e-5)
    assert 0 <= entry.differences[0] < 1e-5


def test_a_wrong_step_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = stepped_entry(hlo.parse(hand.dot(6, 4, 5, "f32").text), (4, 3), {"k": 2})
    inputs = [np.ones((6, 5), np.float32), np.ones((5, 4), np.float32)]
    assert entry.run(inputs)[0].tolist() == np.full((6, 4), 5.0).tolist()
    own = stepwise._BlockRun._regions
    monkeypatch.setattr(stepwise._BlockRun, "_regions", lambda *given: islice(own(*given), 1))
    with pytest.raises(hlo.HloError, match="differs from a whole execution"):
        entry.run(inputs)


# fmt: off
LINES = [
    # arguments                                status  the message
    ("--tile 4,3 --loops k=2",                 0, "note: m.hlo: out0: 4 blocks, each in 3 steps"),
    ("--loops k=2 --tile 4,3",                 0, "the results are those of a whole execution"),
    ("--tile 4,3 --loops",                     2, "--loops without steps"),
    ("--loops k=2",                            2, "--loops with steps needs --tile"),
    ("--tile 4,3 --loops j=2",                 1, "no loop `j`"),
    ("--tile 4,3,2 --loops k=2",               1, "has rank 2, the tile has rank 3"),
    ("--tile 4,3 --loops k=0",                 2, "is not a list of positive steps"),
    ("--tile 4,3 --loops k=2 --replicas 2",    2, "cannot be used with --replicas"),
    ("--loops",                                0, ""),
]
# fmt: on


@pytest.mark.parametrize(("line", "status", "message"), LINES)
def test_the_command_runs_steps(
    line: str,
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(hand.dot(6, 4, 5, "f32").text)
    assert cli.run(["run", *line.split(), "m.hlo"]) == status
    captured = capsys.readouterr()
    assert message in captured.err, captured.err
    assert captured.out.startswith("out0: f32[6,4]") == (status == 0)
