"""Loops, branches and calls: perturbation tests of their maps against runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo import Computation
from indexing.maps.mask_values import without_values
from tests.dataflow.programs import Run, entry
from tests.oracles import Pair, invert_pairs, union

COUNT = """
less { s = (s32[], f32[4], f32[4], f32[3]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)  ROOT r = pred[] compare(i, n), direction=LT }
step {
  s = (s32[], f32[4], f32[4], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  a = f32[4] get-tuple-element(s), index=1
  b = f32[4] negate(a)
  c = f32[4] get-tuple-element(s), index=2
  d = f32[4] copy(c)
  e = f32[3] get-tuple-element(s), index=3
  f = f32[3] slice(d), slice={[0:3]}
  g = f32[3] add(e, f)
  h = f32[3] reverse(g), dimensions={0}
  ROOT t = (s32[], f32[4], f32[4], f32[3]) tuple(j, b, d, h)
}
"""
LOOP = """
  i = s32[] parameter(0)  x = f32[4] parameter(1)  y = f32[4] parameter(2)  z = f32[3] parameter(3)
  t = (s32[], f32[4], f32[4], f32[3]) tuple(i, x, y, z)
  ROOT w = (s32[], f32[4], f32[4], f32[3]) while(t), condition=less, body=step
"""
FLIPPED = "  ROOT w = (s32[], f32[4], f32[4], f32[3]) while(t), body=step, condition=less\n"


def dependencies(
    main: Computation, arguments: list[Any], changes: list[Any]
) -> list[list[set[Pair]]]:
    """Return the dependencies of each output on each parameter, found by changing elements."""
    before = Run(main, *arguments).result
    before = before if isinstance(before, tuple) else (before,)
    pairs: list[list[set[Pair]]] = [[set() for _ in arguments] for _ in before]
    for number, array in enumerate(arguments):
        for element in np.ndindex(*np.shape(array)):
            for change in changes:
                changed = [np.array(a) for a in arguments]
                changed[number][element] += np.asarray(change).astype(changed[number].dtype)
                after = Run(main, *changed).result
                after = after if isinstance(after, tuple) else (after,)
                for output, (old, new) in enumerate(zip(before, after, strict=True)):
                    for at in np.argwhere(np.asarray(old) != np.asarray(new)):
                        pairs[output][number].add((tuple(map(int, at)), element))
    return pairs


def check(main: Computation, arguments: list[Any], changes: list[Any]) -> None:
    """Check that the maps include all dependencies, and no other pairs if they are exact."""
    run = Run(main, *arguments)
    for output, needed in enumerate(dependencies(main, arguments, changes)):
        answer = indexing.to_parameters(main.root, output)
        for number, pairs in enumerate(needed):
            assert answer.unknown[number] is None
            related = run.read(answer.maps[number])
            assert pairs <= related
            if {m.grade for m in answer.maps[number]} <= {"exact"}:
                assert pairs == related


@pytest.mark.parametrize("iterations", [0, 1, 2, 3])
@pytest.mark.parametrize("text", [LOOP, LOOP.rpartition("\n  ROOT")[0] + "\n" + FLIPPED])
def test_maps_include_the_dependencies_of_a_loop(text: str, iterations: int) -> None:
    """The counter is a dependency, too: it determines how often an element is negated."""
    main = entry(text, COUNT)
    x, y, z = (np.array(v, np.float32) for v in ([1, 2, 3, 4], [5, 6, 7, 8], [9, 11, 13]))
    arguments = [np.array(3 - iterations, np.int32), x, y, z]
    needed, run = dependencies(main, arguments, [1, -1]), Run(main, *arguments)
    for output, pairs in enumerate(needed):
        answer = indexing.to_parameters(main.root, output)
        for number in range(4):
            assert pairs[number] <= run.read(answer.maps[number])


def test_a_loop_forwards_unchanged_values_and_keeps_elementwise_maps() -> None:
    main = entry(LOOP, COUNT)
    texts = [
        [[str(m) for m in maps] for maps in indexing.to_parameters(main.root, output).maps]
        for output in range(4)
    ]
    same = ["(d0) -> (d0), domain: d0 in [0, 3]"]
    assert texts[2] == [[], [], same, []]
    assert texts[1] == [["(d0) -> (), domain: d0 in [0, 3]"], same, [], []]
    assert texts[3][:2] == [["(d0) -> (), domain: d0 in [0, 2]"], []]
    y, z = indexing.to_parameters(main.root, 3).maps[2:]
    x = np.zeros(4, np.float32)
    for start in (-1, 0, 1, 2, 3, 4):  # z is reversed in each of 3 - start iterations
        run, times = Run(main, np.int32(start), x, x, x[:3]), max(3 - start, 0)
        exact = run.read([m for m in z if m.grade == "exact"])
        assert exact == {((d,), (2 - d if times % 2 else d,)) for d in range(3)}
        assert run.read(z) <= {((d,), (e,)) for d in range(3) for e in (d, 2 - d)}
        assert {((d,), (2 - d,)) for d in range(3) if times} <= run.read(y)


def test_forward_maps_of_a_loop_are_the_inverse() -> None:
    root = entry(LOOP, COUNT).root
    x = np.zeros(4, np.float32)
    run = Run(root.computation, np.int32(1), x, x, x[:3])
    for output in range(4):
        back = indexing.output_to_input(root, output)
        forth = indexing.input_to_output(root, 0)
        for path in [(k,) for k in range(4)]:
            backward = [m for m, at in zip(back.maps[0], back.paths[0], strict=True) if at == path]
            at_output = zip(forth.maps[output], forth.paths[output], strict=True)
            forward = [m for m, at in at_output if at == path]
            assert run.read(forward) == invert_pairs(run.read(backward))


BRANCHES = """
plain { p = f32[3] parameter(0)  ROOT r = f32[3] reverse(p), dimensions={0} }
first { p = (f32[3], f32[2]) parameter(0)  a = f32[3] get-tuple-element(p), index=0
  b = f32[2] get-tuple-element(p), index=1  z = f32[] constant(0)
  c = f32[3] pad(b, z), padding=0_1
  ROOT r = f32[3] add(a, c) }
"""


@pytest.mark.parametrize("index", [-1, 0, 1, 2])
def test_maps_include_the_dependencies_of_a_branch(index: int) -> None:
    main = entry(
        """
      i = s32[] parameter(0)  x = f32[3] parameter(1)  y = f32[3] parameter(2)
      v = f32[2] parameter(3)
      t = (f32[3], f32[2]) tuple(y, v)
      ROOT c = f32[3] conditional(i, x, t), branch_computations={plain, first}""",
        BRANCHES,
    )
    assert not hlo.verify(main.module)
    x, y, v = (np.array(a, np.float32) for a in ([1, 2, 4], [8, 16, 32], [64, 128]))
    check(main, [np.array(index, np.int32), x, y, v], [1, -1, 2, -2])


THREE = """
plain { p = f32[3] parameter(0)  ROOT r = f32[3] reverse(p), dimensions={0} }
last { p = f32[3] parameter(0)  a = f32[2] slice(p), slice={[1:3]}  z = f32[] constant(0)
  ROOT r = f32[3] pad(a, z), padding=1_0 }
same { i = s32[] parameter(0)  ROOT r = s32[] copy(i) }
two { t = (s32[], s32[]) parameter(0)  ROOT i = s32[] get-tuple-element(t), index=1 }
"""
SWITCH = "  ROOT r = f32[3] conditional(i, x, y, z), branch_computations={plain, same3, last}"
CHOICE = "  ROOT r = f32[3] conditional(i, x, y), true_computation=plain, false_computation=last"
COPY = "same3 { p = f32[3] parameter(0)  ROOT r = f32[3] copy(p) }\n"
LIST = "s = s32[1] slice(c), slice={[1:2]}  i = s32[] reshape(s)"
# fmt: off
INDICES = [
    # index                                                                              branch
    ("i = s32[] constant(0)",                                                            0),
    ("i = s32[] constant(1)",                                                            1),
    ("i = s32[] constant(2)",                                                            2),
    ("i = s32[] constant(3)",                                                            2),
    ("i = s32[] constant(-1)",                                                           2),
    ("i = s32[] constant(-2147483648)",                                                  2),
    ("c = s32[] constant(1)  i = s32[] negate(c)",                                       2),
    ("c = s32[] constant(1)  i = s32[] subtract(c, c)",                                  0),
    ("c = s32[] constant(1)  i = s32[] call(c), to_apply=same",                          1),
    ("c = s32[] constant(1)  i = s32[] fusion(c), kind=kLoop, calls=same",               1),
    ("c = s32[] constant(1)  t = (s32[], s32[]) tuple(n, c)  i = s32[] call(t), to_apply=two", 1),
    ("c = s8[] constant(1)  i = s32[] convert(c)",                                       1),
    (f"c = s32[3] constant({{9, 1, 4}})  {LIST}",                                        1),
    (f"c = s32[3] iota(), iota_dimension=0  {LIST}",                                     1),
    ("i = pred[] constant(true)",                                                        0),
    ("i = pred[] constant(false)",                                                       1),
    ("c = pred[] constant(false)  i = pred[] copy(c)",                                   1),
    # the program does not determine the index
    ("i = s32[] copy(n)",                                                                None),
    ("t = (s32[], s32[]) tuple(n, n)  i = s32[] call(t), to_apply=two",                  None),
    ("c = s32[] constant(0)  i = pred[] compare(n, c), direction=LT",                    None),
]
# fmt: on


@pytest.mark.parametrize("index, branch", INDICES)
def test_a_known_index_selects_one_branch(index: str, branch: int | None) -> None:
    root = CHOICE if "i = pred" in index else SWITCH
    arrays = "n = s32[] parameter(0)  x = f32[3] parameter(1)  y = f32[3] parameter(2)"
    main = entry(f"  {arrays}  z = f32[3] parameter(3)\n  {index}\n{root}", COPY + THREE)
    assert not hlo.verify(main.module)
    values = (np.array(a, np.float32) for a in ([1, 2, 4], [8, 16, 32], [64, 128, 256]))
    check(main, [np.array(0, np.int32), *values], [1, -1, 2])
    back = indexing.output_to_input(main.root)
    branches = range(len(main.root.operands) - 1)
    assert [bool(maps) for maps in back.maps[1:]] == [branch in (k, None) for k in branches]
    assert {m.grade for maps in back.maps[1:] for m in maps} == {"exact"}
    for number in branches:
        forth = indexing.input_to_output(main.root, number + 1)
        assert {m.grade for m in forth.maps[0]} <= {"exact"}
        writes, reads = [
            union([without_values(m, m.runtime) for m in maps])
            for maps in (forth.maps[0], back.maps[number + 1])
        ]
        assert writes == invert_pairs(reads)


def test_the_only_branch_does_not_read_the_index() -> None:
    text = """
  i = s32[] parameter(0)  x = f32[3] parameter(1)
  ROOT r = f32[3] conditional(i, x), branch_computations={plain}"""
    main = entry(text, THREE)
    answer = indexing.output_to_input(main.root)
    assert answer.maps[0] == ()
    assert [str(m) for m in answer.maps[1]] == ["(d0) -> (-d0 + 2), domain: d0 in [0, 2]"]
    assert answer.maps[1][0].grade == "exact"
    for index in (-1, 0, 1):
        check(main, [np.array(index, np.int32), np.array([1, 2, 4], np.float32)], [1, -1])


def test_a_known_index_selects_the_branch_of_a_conditional_in_a_branch() -> None:
    inner = """
inner { p = (f32[3], f32[3]) parameter(0)  c = pred[] constant(false)
  a = f32[3] get-tuple-element(p), index=0  b = f32[3] get-tuple-element(p), index=1
  ROOT r = f32[3] conditional(c, a, b), true_computation=same3, false_computation=plain }
"""
    text = """
  x = f32[3] parameter(0)  y = f32[3] parameter(1)  c = s32[] constant(7)
  t = (f32[3], f32[3]) tuple(x, y)
  ROOT r = f32[3] conditional(c, x, t), branch_computations={plain, inner}"""
    main = entry(text, COPY + THREE + inner)
    assert not hlo.verify(main.module)
    answer = indexing.to_parameters(main.root)
    assert answer.maps[0] == ()
    assert [m.grade for m in answer.maps[1]] == ["exact"]
    check(main, [np.array(a, np.float32) for a in ([1, 2, 4], [8, 16, 32])], [1, -1])


@pytest.mark.parametrize("start", [-1, 0, 1, 3])
def test_a_window_in_the_selected_branch_stays_exact(start: int) -> None:
    body = """
window { p = (f32[4], s32[]) parameter(0)  a = f32[4] get-tuple-element(p), index=0
  i = s32[] get-tuple-element(p), index=1
  ROOT r = f32[3] dynamic-slice(a, i), dynamic_slice_sizes={3} }
"""
    text = """
  v = f32[4] parameter(0)  s = s32[] parameter(1)  x = f32[3] parameter(2)  c = s32[] constant(1)
  t = (f32[4], s32[]) tuple(v, s)
  ROOT r = f32[3] conditional(c, x, t), branch_computations={plain, window}"""
    main = entry(text, THREE + body)
    arguments = [np.arange(4, dtype=np.float32), np.array(start, np.int32), np.ones(3, np.float32)]
    answer = indexing.to_parameters(main.root)
    (read,) = answer.maps[0]
    assert read.grade == "exact"
    assert answer.maps[2] == ()
    ((needed, _, _),) = dependencies(main, arguments, [1])
    assert Run(main, *arguments).read([read]) == needed
