"""Maps for given values that decide masks, branches, reads and updates, against execution.

The oracle perturbs each element of an array: a result that no perturbation changes needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from indexing.execution import run

MAXIMUM = """
  larger { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT m = s32[] maximum(a, b) }
  ENTRY e {
    x = f32[6] parameter(0)  k = s32[3] parameter(1)  low = s32[] constant(-9)
    m = s32[] reduce(k, low), dimensions={0}, to_apply=larger
    i = s32[6] iota(), iota_dimension=0  n = s32[6] broadcast(m), dimensions={}
    p = pred[6] compare(i, n), direction=LT  z = f32[] constant(0)
    zs = f32[6] broadcast(z), dimensions={}  ROOT r = f32[6] select(p, x, zs)
  }"""
WIDE = """
  ENTRY e {
    x = f32[6] parameter(0)  k = s64[] parameter(1)
    i = s64[6] iota(), iota_dimension=0  n = s64[6] broadcast(k), dimensions={}
    p = pred[6] compare(i, n), direction=LT  z = f32[] constant(0)
    zs = f32[6] broadcast(z), dimensions={}  ROOT r = f32[6] select(p, x, zs)
  }"""
BRANCHES = """
  double { a = f32[4] parameter(0)  ROOT s = f32[4] add(a, a) }
  back { a = f32[4] parameter(0)  ROOT r = f32[4] reverse(a), dimensions={0} }
  choose {
    a = f32[4] parameter(0)  p = pred[] parameter(1)  n = s32[] convert(p)
    ROOT c = f32[4] conditional(n, a, a), branch_computations={double, back}
  }
  body {
    s = (s32[], f32[4], pred[3]) parameter(0)
    i = s32[] get-tuple-element(s), index=0  x = f32[4] get-tuple-element(s), index=1
    k = pred[3] get-tuple-element(s), index=2  one = s32[] constant(1)  j = s32[] add(i, one)
    ki = pred[1] dynamic-slice(k, i), dynamic_slice_sizes={1}  p = pred[] reshape(ki)
    c = f32[4] call(x, p), to_apply=choose
    ROOT t = (s32[], f32[4], pred[3]) tuple(j, c, k)
  }
  more {
    s = (s32[], f32[4], pred[3]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    n = s32[] constant(3)  ROOT r = pred[] compare(i, n), direction=LT
  }
  ENTRY e {
    x = f32[4] parameter(0)  k = pred[3] parameter(1)  z = s32[] constant(0)
    s = (s32[], f32[4], pred[3]) tuple(z, x, k)
    w = (s32[], f32[4], pred[3]) while(s), condition=more, body=body
    ROOT r = f32[4] get-tuple-element(w), index=1
  }"""
TABLE = """
  body {
    s = (s32[], f32[5], f32[3], s32[3]) parameter(0)
    i = s32[] get-tuple-element(s), index=0  x = f32[5] get-tuple-element(s), index=1
    y = f32[3] get-tuple-element(s), index=2  k = s32[3] get-tuple-element(s), index=3
    one = s32[] constant(1)  j = s32[] add(i, one)
    k1 = s32[1] dynamic-slice(k, i), dynamic_slice_sizes={1}  ki = s32[] reshape(k1)
    e = f32[1] dynamic-slice(x, ki), dynamic_slice_sizes={1}
    w = f32[3] dynamic-update-slice(y, e, i)
    ROOT t = (s32[], f32[5], f32[3], s32[3]) tuple(j, x, w, k)
  }
  more {
    s = (s32[], f32[5], f32[3], s32[3]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    n = s32[] constant(3)  ROOT r = pred[] compare(i, n), direction=LT
  }
  ENTRY e {
    x = f32[5] parameter(0)  k = s32[3] parameter(1)  z = s32[] constant(0)
    f = f32[] constant(0)  y = f32[3] broadcast(f), dimensions={}
    s = (s32[], f32[5], f32[3], s32[3]) tuple(z, x, y, k)
    w = (s32[], f32[5], f32[3], s32[3]) while(s), condition=more, body=body
    ROOT r = f32[3] get-tuple-element(w), index=2
  }"""
WRITTEN = """
  last { old = f32[] parameter(0)  ROOT new = f32[] parameter(1) }
  ENTRY e {
    x = f32[6] parameter(0)  k = s32[3] parameter(1)  z = f32[3] constant({7, 8, 9})
    ROOT r = f32[6] scatter(x, k, z), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last
  }"""
PAGES = """
  ENTRY e {
    x = f32[6] parameter(0)  k = s32[4] parameter(1)  two = s32[] constant(2)
    g = s32[1] slice(k), slice={[3:4]}  page = s32[] reshape(g)
    a = s32[1] dynamic-slice(k, page), dynamic_slice_sizes={1}  b = s32[] reshape(a)
    s = s32[] OP(b, two)  ROOT r = f32[2] dynamic-slice(x, s), dynamic_slice_sizes={2}
  }"""
PROGRAMS: dict[str, tuple[str, list[Any]]] = {
    "maximum": (MAXIMUM, [(2, 5, 1), (-3, -1, -2), (0, 0, 1)]),
    "wide": (WIDE, [-1, 0, 3, 1 << 40]),
    "branches": (BRANCHES, [(True, True, False), (True, False, False)]),
    "written": (WRITTEN, [(2, 0, 4), (5, 3, 6), (-1, 9, 3), (2, 2, 4), (0, 0, 0), (5, -1, 5)]),
    "table": (TABLE, [(2, 0, 4), (9, -1, 3)]),
    "remainder": (PAGES.replace("OP", "remainder"), [(5, -3, 4, 1), (5, -3, 4, 2), (1, 2, 3, -7)]),
    "divide": (PAGES.replace("OP", "divide"), [(5, -3, 4, 1), (5, -3, 7, 2), (9, 2, 3, 0)]),
}


TYPES = {"wide": np.int64, "branches": np.bool_}


def cases() -> Iterator[tuple[str, object]]:
    for name, (_, values) in PROGRAMS.items():
        for value in values:
            yield name, value


def needed_pairs(root: hlo.Instruction, k: np.ndarray[Any, Any]) -> set[tuple[int, int]]:
    """Return the pairs of elements of the result and of `x` of which one changes the other."""
    (size,) = root.computation["x"].shape.dims  # type: ignore[union-attr]
    x = np.arange(1, size + 1, dtype=np.float32)
    (before,) = run(root.module, [x, k])
    pairs = set()
    for element in range(size):
        other = x.copy()
        other[element] += 100
        (after,) = run(root.module, [other, k])
        pairs |= {(int(at), element) for (at,) in np.argwhere(after != before)}
    return pairs


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("name", "value"), list(cases()))
def test_given_values_decide_what_is_needed(name: str, value: object, exact: bool) -> None:
    root = hlo.parse(PROGRAMS[name][0]).entry.root
    k: np.ndarray[Any, Any] = np.array(value, TYPES.get(name, np.int32))
    answer = indexing.to_parameters(root, exact=exact)
    pairs = set()
    for at in range(root.shape.dims[0]):  # type: ignore[union-attr]
        region = answer.at(at, k=k)[0]
        assert isinstance(region, indexing.Region)
        assert region.grade == "exact"
        pairs |= {(at, element) for (element,) in region.elements()}
    assert pairs == needed_pairs(root, k)


@pytest.mark.parametrize("table", [((0, 9), (-3, 2), (1, 3)), ((9, -9), (-9, 9), (7, 7))])
def test_constant_indices_outside_of_both_dimensions_are_clamped(
    table: tuple[tuple[int, int], ...],
) -> None:
    """Each of the columns has three cases, and few of their pairs are possible."""
    text = "}, {".join(f"{first}, {second}" for first, second in table)
    root = hlo.parse(f"""ENTRY e {{ x = f32[5,4] parameter(0)  i = s32[3,2] constant({{{{{text}}}}})
      ROOT r = f32[3] gather(x, i), offset_dims={{}}, collapsed_slice_dims={{0,1}},
        start_index_map={{1,0}}, index_vector_dim=1, slice_sizes={{1,1}} }}""").entry.root
    maps = indexing.to_parameters(root).maps[0]
    assert not any(m.runtime for m in maps)
    for at, (column, row) in enumerate(table):
        reached = {m.evaluate(dims=(at,)) for m in maps} - {None}
        assert reached == {(min(max(row, 0), 4), min(max(column, 0), 3))}
