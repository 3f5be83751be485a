"""Maps through counted loops: closed forms, compared with the same loop unrolled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing import Unknown
from indexing.dataflow.loops.loop_reads import LoopReads
from indexing.maps.indexing_map import IndexingMap
from tests.dataflow.programs import Run
from tests.oracles import union

HEAD = """
add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }}
less {{ s = ({types}) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({count})  ROOT r = pred[] compare(i, n), direction=LT }}
next {{
  s = ({types}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  {body}
}}
ENTRY e {{
  i = s32[] constant(0)
  {parameters}
  s = ({types}) tuple(i, {names})
  ROOT w = ({types}) while(s), condition=less, body=next
}}
"""


def loop(types: Sequence[str], body: Sequence[str], count: int = 5) -> Module:
    """Return a loop that carries x1, x2, … of these types; the body computes y1, y2, …"""
    names = [f"x{k}" for k in range(1, len(types) + 1)]
    every = ", ".join(["s32[]", *types])
    elements = [
        f"{name} = {kind} get-tuple-element(s), index={k}"
        for k, (name, kind) in enumerate(zip(names, types, strict=True), 1)
    ]
    results = ", ".join(["j", *[f"y{k}" for k in range(1, len(types) + 1)]])
    lines = [*elements, *body, f"ROOT t = ({every}) tuple({results})"]
    parameters = [
        f"{name} = {kind} parameter({k})"
        for k, (name, kind) in enumerate(zip(names, types, strict=True))
    ]
    text = HEAD.format(
        types=every,
        count=count,
        body="\n  ".join(lines),
        parameters="\n  ".join(parameters),
        names=", ".join(names),
    )
    return hlo.parse(text)


def maps_of(module: Module, output: int) -> tuple[tuple[IndexingMap, ...], ...]:
    """Return the maps of an output of the root to each parameter; none is unknown."""
    answer = indexing.to_parameters(module.entry.root, output)
    assert not any(answer.unknown)
    return answer.maps


STACKED = [
    "r = f32[1,4] dynamic-slice(x2, i, zero), dynamic_slice_sizes={1,4}",
    "v = f32[4] reshape(r)",
    "y1 = f32[4] add(x1, v)",
    "y2 = f32[5,4] copy(x2)",
    "u = f32[1,4] reshape(y1)",
    "y3 = f32[5,4] dynamic-update-slice(x3, u, i, zero)",
]
CASES = {
    "prefix sums": (["f32[4]", "f32[5,4]", "f32[5,4]"], STACKED),
    "mixed features": (
        ["f32[2,3]", "f32[5,2,3]", "f32[3,3]"],
        [
            "r = f32[1,2,3] dynamic-slice(x2, i, zero, zero), dynamic_slice_sizes={1,2,3}",
            "v = f32[2,3] reshape(r)",
            "m = f32[2,3] dot(x1, x3), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "y1 = f32[2,3] add(m, v)",
            "y2 = f32[5,2,3] copy(x2)",
            "y3 = f32[3,3] copy(x3)",
        ],
    ),
    "delay line": (
        ["f32[3]", "f32[5]"],
        [
            "old = f32[2] slice(x1), slice={[1:3]}",
            "r = f32[1] dynamic-slice(x2, i), dynamic_slice_sizes={1}",
            "y1 = f32[3] concatenate(old, r), dimensions={0}",
            "y2 = f32[5] copy(x2)",
        ],
    ),
    "rotation": (
        ["f32[7]"],
        [
            "a = f32[2] slice(x1), slice={[5:7]}",
            "b = f32[5] slice(x1), slice={[0:5]}",
            "y1 = f32[7] concatenate(a, b), dimensions={0}",
        ],
    ),
    "rotation modulo the size": (
        ["f32[7]"],
        [
            "d = s32[7] iota(), iota_dimension=0",
            "two = s32[7] constant({2, 2, 2, 2, 2, 2, 2})",
            "n = s32[7] constant({7, 7, 7, 7, 7, 7, 7})",
            "sum = s32[7] add(d, two)",
            "place = s32[7] remainder(sum, n)",
            "places = s32[7,1] reshape(place)",
            "y1 = f32[7] gather(x1, places), offset_dims={}, collapsed_slice_dims={0}, "
            "start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
        ],
    ),
    "swap": (["f32[2]", "f32[2]"], ["y1 = f32[2] copy(x2)", "y2 = f32[2] negate(x1)"]),
    "in-place prefix sums": (
        ["f32[6]"],
        [
            "a = f32[1] dynamic-slice(x1, i), dynamic_slice_sizes={1}",
            "b = f32[1] dynamic-slice(x1, j), dynamic_slice_sizes={1}",
            "c = f32[1] add(a, b)",
            "y1 = f32[6] dynamic-update-slice(x1, c, j)",
        ],
    ),
    "windows that overlap": (
        ["f32[9]", "f32[5,3]"],
        [
            "r = f32[1,3] dynamic-slice(x2, i, zero), dynamic_slice_sizes={1,3}",
            "v = f32[3] reshape(r)",
            "y1 = f32[9] dynamic-update-slice(x1, v, i)",
            "y2 = f32[5,3] copy(x2)",
        ],
    ),
    "rows that are mixed once": (
        ["f32[5,3]"],
        [
            "r = f32[1,3] dynamic-slice(x1, i, zero), dynamic_slice_sizes={1,3}",
            "v = f32[3] reshape(r)",
            "f = f32[] constant(0)",
            "m = f32[] reduce(v, f), dimensions={0}, to_apply=add",
            "b = f32[1,3] broadcast(m), dimensions={}",
            "y1 = f32[5,3] dynamic-update-slice(x1, b, i, zero)",
        ],
    ),
    "transposed each time": (["f32[3,3]"], ["y1 = f32[3,3] transpose(x1), dimensions={1,0}"]),
}


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("name", CASES)
def test_a_counted_loop_relates_what_the_unrolled_loop_relates(name: str, count: int) -> None:
    module = loop(*CASES[name], count=count)
    unrolled = indexing.unroll(module.entry.root)
    assert isinstance(unrolled, Module)
    for output in range(len(CASES[name][0]) + 1):
        expected = [
            union([m.fix(**{rt.name: 0 for rt in m.runtime}) for m in maps])  # clamped to 0
            for maps in indexing.to_parameters(unrolled.entry.root, output, exact=True).maps
        ]
        maps = maps_of(module, output)
        assert [union(each) for each in maps] == expected
        assert {m.grade for each in maps for m in each} <= {"exact"}


def test_a_stacked_output_reads_the_inputs_up_to_its_own_iteration() -> None:
    _, inputs, buffer = maps_of(loop(*CASES["prefix sums"]), 3)
    (read,) = inputs
    domain = "domain: d0 in [0, 4], d1 in [0, 3], {0} in [0, 4], d0 - {0} in [0, 4]"
    name = read.ranges[0].name
    assert str(read) == f"(d0, d1)[{name}] -> ({name}, d1), {domain.format(name)}"
    assert buffer == ()


@pytest.mark.parametrize(("name", "size"), [("rotation", 7), ("rotation modulo the size", 7)])
def test_a_rotation_is_a_formula_for_any_number_of_iterations(name: str, size: int) -> None:
    for count, shift in ((5, 5 * 2 % size), (10**9, 10**9 * 2 % size)):
        (reads,) = maps_of(loop(*CASES[name], count=count), 1)
        shift = -shift % size if name == "rotation" else shift
        expected = {((d,), ((d + shift) % size,)) for d in range(size)}
        assert union(reads) == expected
        assert [m.ranges for m in reads] == [()]


def test_a_rotation_between_devices_is_a_formula() -> None:
    body = ["y1 = f32[4] collective-permute(x1), source_target_pairs={{0,1},{1,2},{2,0}}"]
    for count in (4, 10**9):
        root = loop(["f32[4]"], body, count).entry.root
        (reads,) = indexing.device_maps_to_parameters(root, 1, num_replicas=3).maps
        pairs = {((p, d), ((p - count) % 3, d)) for p in range(3) for d in range(4)}
        assert union(reads) == pairs
        assert {m.grade for m in reads} == {"exact"}


@pytest.mark.parametrize("count", [10, 10**9])
def test_the_work_is_independent_of_the_number_of_iterations(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    composed: list[int] = []
    reads = LoopReads.reads

    def count_call(self: LoopReads, output: tuple[int, ...]) -> object:
        answer = reads(self, output)
        composed.append(sum(len(maps.maps) for maps in answer.values()))
        return answer

    monkeypatch.setattr(LoopReads, "reads", count_call)
    body = ["y1 = f32[4] add(x1, x2)", "y2 = f32[4] reverse(x2), dimensions={0}"]
    maps = maps_of(loop(["f32[4]", "f32[4]"], body, count), 1)
    assert [union(each) for each in maps] == [
        {((d,), (d,)) for d in range(4)},
        {((d,), (e,)) for d in range(4) for e in (d, 3 - d)},
    ]
    assert composed == [3]


UPDATED = """
less { s = (s32[], s32[], f32[3], f32[2]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  c = s32[] constant(2)  ROOT r = pred[] compare(i, c), direction=LT }
next { s = (s32[], s32[], f32[3], f32[2]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1  x = f32[3] get-tuple-element(s), index=2
  u = f32[2] get-tuple-element(s), index=3  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[3] dynamic-update-slice(x, u, n)
  ROOT t = (s32[], s32[], f32[3], f32[2]) tuple(j, n, y, u) }
ENTRY e { n = s32[] parameter(0)  x = f32[3] parameter(1)  u = f32[2] parameter(2)
  i = s32[] constant(0)  s = (s32[], s32[], f32[3], f32[2]) tuple(i, n, x, u)
  w = (s32[], s32[], f32[3], f32[2]) while(s), condition=less, body=next
  ROOT r = f32[3] get-tuple-element(w), index=2 }
"""


@pytest.mark.parametrize("start", [-1, 0, 1, 5])
def test_a_start_that_only_the_run_knows_stays_a_condition(start: int) -> None:
    """A start is clamped to 0 or 1; maps for each case hold only for their own starts."""
    main = hlo.parse(UPDATED).entry
    zeros = np.zeros(3, np.float32)
    run = Run(main, np.int32(start), zeros, zeros[:2])
    _, base, update = indexing.to_parameters(main.root).maps
    first = min(max(start, 0), 1)
    for maps in (base, update):
        assert {m.grade for m in maps} == {"exact"}
    assert run.read(base) == {((2 - 2 * first,), (2 - 2 * first,))}
    assert run.read(update) == {((first + k,), (k,)) for k in range(2)}


def test_read_counts_count_each_iteration_that_reads_an_element() -> None:
    types = ["f32[4]", "f32[5,4]", "f32[5,4]", "f32[]"]
    body = [
        "r = f32[1,4] dynamic-slice(x2, i, zero), dynamic_slice_sizes={1,4}",
        "v = f32[4] reshape(r)",
        "weight = f32[4] broadcast(x4), dimensions={}",
        "w = f32[4] multiply(v, weight)",
        "y1 = f32[4] add(x1, w)",
        "y2 = f32[5,4] copy(x2)",
        "u = f32[1,4] reshape(y1)",
        "y3 = f32[5,4] dynamic-update-slice(x3, u, i, zero)",
        "y4 = f32[] copy(x4)",
    ]
    root = loop(types, body).entry.root
    expected = {1: (4 * 5, 4 * 5), 3: (4 * 15, 4 * 15)}  # reads of the rows, and of the weight
    for output, totals in expected.items():
        counts = indexing.read_counts(root, output)
        rows, weight = counts[2], counts[4]
        assert not isinstance(rows, Unknown)
        assert not isinstance(weight, Unknown)
        assert (rows.total, weight.total) == totals
        assert (rows.distinct, weight.distinct) == (20, 1)
