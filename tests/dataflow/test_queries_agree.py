"""All queries agree: on the same programs they give the same maps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import hlo
import indexing
from hlo import Computation, Instruction
from hlo.shapes.shape import leaves
from indexing import IndexingMap
from indexing.dataflow import (
    all_to_parameters,
    device_maps_to_parameters,
    epilogue,
    grouped_through,
)
from indexing.devices import Devices
from indexing.maps.arrays import ArrayRef
from indexing.maps.coalescing import FEW
from indexing.maps.deduplicate import deduplicate
from tests.dataflow.programs import entry
from tests.oracles import union

ArrayMaps = dict[ArrayRef, frozenset[IndexingMap]]
EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.hlo"))
PLUS = "plus { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"


def sum_of_slices(count: int) -> Computation:
    """A sum of `count` overlapping slices of one array."""
    lines = [f"x = f32[{count + 6}] parameter(0)"]
    lines += [f"s{k} = f32[7] slice(x), slice={{[{k}:{k + 7}]}}" for k in range(count)]
    lines += ["t0 = f32[7] add(s0, s1)"]
    lines += [f"t{k} = f32[7] add(t{k - 1}, s{k + 1})" for k in range(1, count - 1)]
    return entry("\n".join([*lines, f"ROOT r = f32[7] negate(t{count - 2})"]))


def windows(count: int) -> Computation:
    """Nested windows: each adds range variables and constraints."""
    lines = ["x0 = f32[2,9] parameter(0)", "zero = f32[] constant(0)"]
    lines += [
        f"x{k + 1} = f32[2,9] reduce-window(x{k}, zero), window={{size=1x3 pad=0_0x1_1}}, "
        "to_apply=plus"
        for k in range(count)
    ]
    return entry("\n".join([*lines, f"ROOT r = f32[2,9] copy(x{count})"]), PLUS)


TUPLES = """
  p = (f32[4,6], (s32[], f32[6])) parameter(0)
  q = f32[4] parameter(1)
  c = (f32[4,6], (s32[], f32[6])) copy(p)
  pair = (s32[], f32[6]) get-tuple-element(c), index=1
  start = s32[] get-tuple-element(pair), index=0
  row = f32[6] get-tuple-element(pair), index=1
  table = f32[4,6] get-tuple-element(c), index=0
  zero = s32[] constant(0)
  cut = f32[4,2] dynamic-slice(table, zero, start), dynamic_slice_sizes={4,2}
  two = f32[2] slice(row), slice={[2:4]}
  b = f32[4,2] broadcast(two), dimensions={1}
  d = f32[4,2] broadcast(q), dimensions={0}
  n = f32[4,2] add(cut, b)
  ROOT all = f32[4,2] multiply(n, d)
"""

CALLED_AND_SHIFTED = """
  x = f32[8] parameter(0)
  y = f32[8] custom-call(x), custom_call_target="unknown"
  z = f32[8] reverse(x), dimensions={0}
  ROOT s = f32[8] add(y, z)
"""


def _same(computation: Computation) -> Computation:
    return computation


PROGRAMS: dict[str, Callable[[], Computation]] = {
    "a sum of 3 slices": lambda: sum_of_slices(3),
    "a sum of 300 slices": lambda: sum_of_slices(300),
    "3 windows": lambda: windows(3),
    "9 windows": lambda: windows(9),
    "leaves of tuples": lambda: entry(TUPLES),
    "everything, and more": lambda: entry(CALLED_AND_SHIFTED),
}
for _path in EXAMPLES:
    for _computation in hlo.load(_path).computations.values():
        if len(_computation) < 40 and not isinstance(_computation.root.shape, hlo.TupleShape):
            PROGRAMS[f"{_path.name}: {_computation.name}"] = partial(_same, _computation)


def of_answer(answer: indexing.Answer) -> ArrayMaps:
    by_array: ArrayMaps = {}
    for operand, maps, paths in zip(answer.operands, answer.maps, answer.paths, strict=True):
        for m, path in zip(maps, paths, strict=True):
            array = ArrayRef(operand, path)
            by_array[array] = by_array.get(array, frozenset()) | {m}
    return by_array


def of_parameters(arrays: dict[ArrayRef, tuple[IndexingMap, ...]]) -> ArrayMaps:
    return {a: frozenset(m) for a, m in arrays.items() if a.instruction.opcode == "parameter"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_queries_to_parameters_agree(name: str) -> None:
    root = PROGRAMS[name]().root
    expected = of_answer(indexing.to_parameters(root))
    *_, swept = all_to_parameters(root.computation)
    assert root.index < len(root.computation) - 1 or same(of_answer(swept), expected)
    if root.opcode != "fusion":  # which `grouped` expands
        assert same(of_parameters(indexing.grouped(root).arrays), expected)
    through = grouped_through(root, [i for i in root.computation if i.opcode != "parameter"])
    inside = {
        a: m for a, m in through.arrays.items() if a.instruction.computation is root.computation
    }
    assert same(of_parameters(inside), expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_maps_for_one_device_are_the_maps_without_devices(name: str) -> None:
    root = PROGRAMS[name]().root
    one = Devices()
    plain = indexing.to_parameters(root)
    devices = device_maps_to_parameters(root)
    for maps, lifted in zip(plain.maps, devices.maps, strict=True):
        assert len(maps) == len(lifted)
        assert {m.grade for m in maps} == {m.grade for m in lifted}
        for m, other in zip(maps, lifted, strict=True):
            assert one.lift(m).simplify().is_equal(other.simplify()) is True


def same(actual: ArrayMaps, expected: ArrayMaps) -> bool:
    """Return True if both have equal maps, perhaps with different text, or coalesced ones."""
    return actual.keys() == expected.keys() and all(
        len(deduplicate([*maps, *expected[array]])) == len(maps) == len(expected[array])
        or (len(maps) >= FEW > len(expected[array]) and union(maps) == union(expected[array]))
        for array, maps in actual.items()
    )


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "hlo" not in name])
def test_epilogues_are_the_inverse_of_maps_to_parameters(name: str) -> None:
    """Unless one has a `may` map: then both together may relate all elements."""
    root = PROGRAMS[name]().root
    for parameter, maps in zip(root.computation.parameters, *back(root), strict=True):
        arrays = [leaf for _, leaf in leaves(parameter.shape)]
        if len(arrays) > 1 or any(m.runtime for m in maps):
            continue
        forward = epilogue(parameter, root).maps[0]
        inverse = {(b, a) for a, b in union(forward)}
        both = {m.grade for m in (*maps, *forward)}
        assert inverse == union(maps) or (
            both != {"exact"} and (inverse | union(maps)) == everything(parameter, root)
        )


def back(root: Instruction) -> tuple[tuple[tuple[IndexingMap, ...], ...]]:
    return (indexing.to_parameters(root).maps,)


def everything(parameter: Instruction, root: Instruction) -> set[tuple[tuple[int, ...], ...]]:
    shapes = [ArrayRef(i).array_shape for i in (root, parameter)]
    assert shapes[0] is not None
    assert shapes[1] is not None
    from indexing.maps.over_approximation import every_element

    return set(union((every_element(shapes[0], shapes[1]),)))


def test_a_tuple_has_the_maps_of_each_leaf_once() -> None:
    main = entry("""
      p = (f32[4], f32[4]) parameter(0)
      a = f32[4] get-tuple-element(p), index=0
      b = f32[4] get-tuple-element(p), index=1
      ROOT s = f32[4] add(a, b)""")
    groups = indexing.grouped(main.root)
    (parameter,) = main.parameters
    assert list(map(str, groups[parameter])) == ["(d0) -> (d0), domain: d0 in [0, 3]"]
    for path in [(0,), (1,)]:
        assert groups.arrays[ArrayRef(parameter, path)] == groups[parameter]


def test_a_may_map_of_everything_absorbs_the_others() -> None:
    root = entry(CALLED_AND_SHIFTED).root
    (maps,) = indexing.to_parameters(root).maps
    assert [(m.grade, str(m)) for m in maps] == [
        ("may", "(d0)[s0] -> (s0), domain: d0 in [0, 7], s0 in [0, 7]")
    ]


def test_an_exact_map_of_a_scalar_is_not_absorbed() -> None:
    """The scalar is read exactly, although its broadcast may be read by a call."""
    root = entry(
        """
      c = f32[] parameter(0)
      x = f32[8] broadcast(c), dimensions={}
      y = f32[8] custom-call(x), custom_call_target="unknown"
      ROOT s = f32[8] add(y, x)"""
    ).root
    (maps,) = indexing.to_parameters(root).maps
    assert [(m.grade, str(m)) for m in maps] == [("exact", "(d0) -> (), domain: d0 in [0, 7]")]
