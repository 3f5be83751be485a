"""Updates in fusions, whose starts are constants of the callers."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from indexing.dataflow.arguments import arguments_decide

UPDATE = """f { x = f32[5,7] parameter(0)  u = f32[2,3] parameter(1)
  p = s32[] parameter(2)  q = s32[] parameter(3)
  ROOT w = f32[5,7] dynamic-update-slice(x, u, p, q) }
"""
STARTS = [(-2, 0), (0, 4), (1, 2), (3, 30), (9, -1), (2, 0)]


def elements_left(p: int, q: int) -> list[tuple[int, ...]]:
    """The elements of a NumPy array that an assignment to the clamped window leaves."""
    kept = np.ones((5, 7), bool)
    top, first = np.clip([p, q], 0, [3, 4])
    kept[top : top + 2, first : first + 3] = False
    return [tuple(map(int, i)) for i in np.argwhere(kept)]


def read(answer: indexing.Answer) -> list[tuple[int, ...]]:
    """The elements at which maps to the first operand lead to it, as often as they do."""
    points = np.ndindex(5, 7)
    return sorted(i for i in points for m in answer.maps[0] if m.evaluate(dims=i) is not None)


@pytest.mark.parametrize(("p", "q"), STARTS)
def test_a_fusion_with_constant_starts_is_exact(p: int, q: int) -> None:
    root = hlo.parse(f"""{UPDATE} ENTRY e {{ x = f32[5,7] parameter(0)  u = f32[2,3] parameter(1)
        p = s32[] constant({p})  q = s32[] constant({q})
        ROOT r = f32[5,7] fusion(x, u, p, q), kind=kLoop, calls=f }}""").entry.root
    assert arguments_decide(root, 0)
    answer = indexing.to_parameters(root)
    assert {m.grade for m in answer.maps[0]} == {"exact"}
    assert read(answer) == elements_left(p, q)


@pytest.mark.parametrize(("p", "q"), STARTS)
def test_a_fusion_with_given_starts_is_exact(p: int, q: int) -> None:
    root = hlo.parse(f"""{UPDATE} ENTRY e {{ x = f32[5,7] parameter(0)  u = f32[2,3] parameter(1)
        p = s32[] parameter(2)  o = s32[] constant(1)  p1 = s32[] add(p, o)
        q = s32[] parameter(3)
        ROOT r = f32[5,7] fusion(x, u, p1, q), kind=kLoop, calls=f }}""").entry.root
    answer = indexing.to_parameters(root)
    assert [m.grade for m in answer.maps[0]] == ["may"]
    region = answer.at(slice(0, 5), slice(0, 7), p=p - 1, q=q)[0]
    assert isinstance(region, indexing.Region)
    assert [tuple(map(int, i)) for i in region.elements()] == elements_left(p, q)


def test_a_start_that_is_not_constant_leaves_the_map_over_approximated() -> None:
    root = hlo.parse(f"""{UPDATE} ENTRY e {{ x = f32[5,7] parameter(0)  u = f32[2,3] parameter(1)
        p = s32[] constant(2)  q = s32[] parameter(2)
        ROOT r = f32[5,7] fusion(x, u, p, q), kind=kLoop, calls=f }}""").entry.root
    assert [m.grade for m in indexing.to_parameters(root).maps[0]] == ["may"]


def test_two_calls_with_other_starts_are_not_mixed_up() -> None:
    module = hlo.parse(f"""{UPDATE} ENTRY e {{ x = f32[5,7] parameter(0)  u = f32[2,3] parameter(1)
        p = s32[] constant(2)  q = s32[] constant(4)  z = s32[] constant(0)
        a = f32[5,7] fusion(x, u, p, q), kind=kLoop, calls=f
        b = f32[5,7] fusion(x, u, z, z), kind=kLoop, calls=f
        ROOT r = (f32[5,7], f32[5,7]) tuple(a, b) }}""")
    for name, start in ("a", (2, 4)), ("b", (0, 0)):
        answer = indexing.to_parameters(module.entry[name])
        assert set(elements_left(*start)) <= set(read(answer))
        exact = indexing.to_parameters(module.entry[name], exact=True)
        assert read(exact) == elements_left(*start)


def test_a_chain_of_updates_in_fusions_reads_what_none_replaces() -> None:
    """Each of three fusions writes another window of a cache; the last window covers the first."""
    root = hlo.parse(f"""
        {UPDATE} {UPDATE.replace("f {", "g {")} {UPDATE.replace("f {", "h {")}
        ENTRY e {{ x = f32[5,7] parameter(0)  u = f32[2,3] parameter(1)
        c1 = s32[] constant(1)  c3 = s32[] constant(3)  z = s32[] constant(0)
        a = f32[5,7] fusion(x, u, c1, c1), kind=kLoop, calls=f
        b = f32[5,7] fusion(a, u, c3, c3), kind=kLoop, calls=g
        ROOT r = f32[5,7] fusion(b, u, z, c1), kind=kLoop, calls=h }}""").entry.root
    answer = indexing.to_parameters(root)
    assert {m.grade for m in answer.maps[0]} == {"exact"}
    assert read(answer) == sorted(
        set(elements_left(1, 1)) & set(elements_left(3, 3)) & set(elements_left(0, 1))
    )
