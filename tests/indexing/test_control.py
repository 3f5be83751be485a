"""Loops, branches and calls: perturbation tests of their maps against runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo import Computation
from tests.indexing.programs import Run, entry
from tests.oracles import Pair, swapped, union

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
    for output, needed in enumerate(dependencies(main, arguments, changes)):
        answer = indexing.to_parameters(main.root, output)
        for number, pairs in enumerate(needed):
            assert answer.unknown[number] is None
            related = union(answer.maps[number])
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
    needed = dependencies(main, arguments, [1, -1])
    for output, pairs in enumerate(needed):
        answer = indexing.to_parameters(main.root, output)
        for number in range(4):
            assert pairs[number] <= union(answer.maps[number])


def test_a_loop_forwards_unchanged_values_and_keeps_elementwise_maps() -> None:
    main = entry(LOOP, COUNT)
    texts = [
        [[str(m) for m in maps] for maps in indexing.to_parameters(main.root, output).maps]
        for output in range(4)
    ]
    same = ["(d0) -> (d0), domain: d0 in [0, 3]"]
    assert texts[2] == [[], [], same, []]
    assert texts[1] == [["(d0) -> (), domain: d0 in [0, 3]"], same, [], []]
    every = "(d0)[s0] -> (s0), domain: d0 in [0, 2], s0 in [0, {}]"
    counter = ["(d0) -> (), domain: d0 in [0, 2]"]
    assert texts[3] == [counter, [], [every.format(3)], [every.format(2)]]


def test_forward_maps_of_a_loop_are_the_inverse() -> None:
    root = entry(LOOP, COUNT).root
    for output in range(4):
        back = indexing.output_to_input(root, output)
        forth = indexing.input_to_output(root, 0)
        for path in [(k,) for k in range(4)]:
            backward = [m for m, at in zip(back.maps[0], back.paths[0], strict=True) if at == path]
            at_output = zip(forth.maps[output], forth.paths[output], strict=True)
            forward = [m for m, at in at_output if at == path]
            assert union(forward) == swapped(union(backward))


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
