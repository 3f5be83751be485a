"""Level ``counts``: numbers of reads along all paths, equal or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hlo
from hlo.shapes.shape import Shape
from indexing import equivalent
from indexing.equivalence import Differs, Proved, Undecided
from indexing.equivalence.counts import PathCounts, pair_counts
from indexing.equivalence.pairing import Pair, pair_of
from indexing.execution.program import run
from indexing.maps.answers import Unknown

REWRITES = Path(__file__).parent / "rewrites"
ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"
P = "p = f32[4,6] parameter(0)  z = f32[] constant(0)"
FUSED = """fused { a = f32[4,6] parameter(0)  b = f32[4,6] parameter(1)
  ROOT m = f32[4,6] multiply(a, b) }"""


def entry(body: str, called: str = ADD) -> hlo.Module:
    return hlo.parse(f"{called}\nENTRY e {{ {P}\n{body} }}")


ONCE = entry("ROOT r = f32[4,6] negate(p)")
TWICE = entry("ROOT r = f32[4,6] add(p, p)")
SQUARES = entry("n = f32[4,6] negate(p)  ROOT r = f32[4,6] multiply(n, n)")
UNSHARED = entry("n = f32[4,6] negate(p)  m = f32[4,6] abs(p)  ROOT r = f32[4,6] multiply(n, m)")
IN_A_FUSION = entry(
    "n = f32[4,6] copy(p)  ROOT r = f32[4,6] fusion(n, p), kind=kLoop, calls=fused", FUSED
)
FOUR_TIMES = entry("s = f32[4,6] add(p, p)  ROOT r = f32[4,6] add(s, s)")
FUSIONS_IN_A_CALL = entry(
    "n = f32[4,6] copy(p)  ROOT r = f32[4,6] call(n, p), to_apply=callee",
    f"""{FUSED}
  callee {{ a = f32[4,6] parameter(0)  b = f32[4,6] parameter(1)
    c = f32[4,6] fusion(b, a), kind=kLoop, calls=fused
    ROOT d = f32[4,6] fusion(c, c), kind=kLoop, calls=fused }}""",
)
REPEATED = entry("""b = f32[2,4,6] broadcast(p), dimensions={1,2}
  ROOT r = f32[4,6] reduce(b, z), dimensions={0}, to_apply=add""")
ROWS = entry("ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=add")
ROWS_OF_HALVES = entry("""h = f32[4,2,3] reshape(p)
  q = f32[4,2] reduce(h, z), dimensions={2}, to_apply=add
  ROOT r = f32[4] reduce(q, z), dimensions={1}, to_apply=add""")
ROWS_BY_SLICES = entry("""u = f32[4,3] slice(p), slice={[0:4], [0:3]}
  v = f32[4,3] slice(p), slice={[0:4], [3:6]}
  x = f32[4] reduce(u, z), dimensions={1}, to_apply=add
  y = f32[4] reduce(v, z), dimensions={1}, to_apply=add
  ROOT r = f32[4] add(x, y)""")
OVERLAPPING_SLICES = entry("""u = f32[4,4] slice(p), slice={[0:4], [0:4]}
  v = f32[4,3] slice(p), slice={[0:4], [3:6]}
  x = f32[4] reduce(u, z), dimensions={1}, to_apply=add
  y = f32[4] reduce(v, z), dimensions={1}, to_apply=add
  ROOT r = f32[4] add(x, y)""")
SUM_OF_WINDOWS = entry("""w = f32[4,5] reduce-window(p, z), window={size=1x2}, to_apply=add
  ROOT r = f32[4] reduce(w, z), dimensions={1}, to_apply=add""")
SUM_OF_OVERLAPS = entry("""u = f32[4,5] slice(p), slice={[0:4], [0:5]}
  v = f32[4,5] slice(p), slice={[0:4], [1:6]}
  w = f32[4,5] add(u, v)
  ROOT r = f32[4] reduce(w, z), dimensions={1}, to_apply=add""")

EQUAL = [
    (TWICE, SQUARES),
    (TWICE, UNSHARED),
    (TWICE, IN_A_FUSION),
    (TWICE, REPEATED),
    (FOUR_TIMES, FUSIONS_IN_A_CALL),
    (ROWS, ROWS_OF_HALVES),
    (ROWS, ROWS_BY_SLICES),
    (SUM_OF_WINDOWS, SUM_OF_OVERLAPS),
]
DIFFERENT = [
    (ONCE, TWICE, "output 0, parameter 0: [0, 0] reads [0, 0] 1 time more after"),
    (FOUR_TIMES, REPEATED, "output 0, parameter 0: [0, 0] reads [0, 0] 2 times more before"),
    (ROWS, OVERLAPPING_SLICES, "output 0, parameter 0: [0] reads [0, 3] 1 time more after"),
    (ROWS, SUM_OF_WINDOWS, "output 0, parameter 0: [0] reads [0, 1] 1 time more after"),
]


@pytest.mark.parametrize("number", range(len(EQUAL)))
def test_equal_counts_are_proved(number: int) -> None:
    before, after = EQUAL[number]
    for verdict in (equivalent(before, after, "counts"), equivalent(after, before, "counts")):
        assert verdict == Proved("counts")


@pytest.mark.parametrize("number", range(len(DIFFERENT)))
def test_other_counts_of_the_same_reads_are_undecided_with_the_element(number: int) -> None:
    before, after, reason = DIFFERENT[number]
    verdict = equivalent(before, after, "counts")
    assert isinstance(verdict, Undecided)
    assert (verdict.level, verdict.reason) == ("reads", reason)


def test_many_elements_are_compared_by_maps() -> None:
    text = "ENTRY e {{ p = f32[4096,4096] parameter(0)  {} }}"
    twice = hlo.parse(text.format("ROOT r = f32[4096,4096] add(p, p)"))
    turned = hlo.parse(
        text.format("""t = f32[4096,4096] transpose(p), dimensions={1,0}
      u = f32[4096,4096] transpose(t), dimensions={1,0}
      ROOT r = f32[4096,4096] multiply(u, p)""")
    )
    assert equivalent(twice, turned, "counts") == Proved("counts")
    once = hlo.parse(text.format("ROOT r = f32[4096,4096] negate(p)"))
    assert "more than 1048576 pairs" in str(equivalent(twice, once, "counts"))


LARGE = ADD + " ENTRY e { p = f32[4096,6000] parameter(0)  z = f32[] constant(0)  %s }"
LARGE_ROWS = "ROOT r = f32[4096] reduce(p, z), dimensions={1}, to_apply=add"
LARGE_ROWS_OF_PARTS = """h = f32[4096,20,300] reshape(p)
  q = f32[4096,20] reduce(h, z), dimensions={2}, to_apply=add
  ROOT r = f32[4096] reduce(q, z), dimensions={1}, to_apply=add"""
COPIES = """b = f32[%d,4096,6000] broadcast(p), dimensions={1,2}
  ROOT r = f32[4096,6000] reduce(b, z), dimensions={0}, to_apply=add"""


def test_maps_of_other_forms_are_compared_as_relations() -> None:
    rows, parts = [hlo.parse(LARGE % body) for body in (LARGE_ROWS, LARGE_ROWS_OF_PARTS)]
    assert equivalent(rows, parts, "counts") == Proved("counts")


def test_equal_relations_with_other_counts_are_not_proved() -> None:
    copies = [hlo.parse(LARGE % (COPIES % count)) for count in (2, 3)]
    assert equivalent(copies[0], copies[1], "reads") == Proved("reads")
    verdict = equivalent(copies[0], copies[1], "counts")
    assert isinstance(verdict, Undecided)
    assert "pairs of elements to count" in verdict.reason


def test_a_chain_with_many_maps_is_undecided() -> None:
    body = ["n0 = f32[300] copy(p)"]
    for k in range(1, 8):
        size = 300 - 2**k + 1
        a, b = (
            f"f32[{size}] slice(n{k - 1}), slice={{[{at}:{at + size}]}}" for at in (0, 2 ** (k - 1))
        )
        body.append(f"a{k} = {a}  b{k} = {b}  n{k} = f32[{size}] add(a{k}, b{k})")
    text = "ENTRY e {{ p = f32[300] parameter(0)  {}  ROOT r = f32[173] {}(n7) }}"
    one, two = [hlo.parse(text.format("  ".join(body), op)) for op in ("negate", "abs")]
    verdict = equivalent(one, two, "counts")
    assert isinstance(verdict, Undecided)
    assert verdict.reason == "there are more than 64 different maps to `n0`"


@pytest.mark.parametrize("opcode", ["sort", "while"])
def test_uncounted_reads_are_undecided(opcode: str) -> None:
    less = """less { a = f32[] parameter(0)  b = f32[] parameter(1)
      ROOT s = pred[] compare(a, b), direction=LT }
    never { x = f32[4,6] parameter(0)  ROOT c = pred[] constant(false) }
    same { x = f32[4,6] parameter(0)  ROOT c = f32[4,6] copy(x) }"""
    line = {
        "sort": "ROOT r = f32[4,6] sort(p), dimensions={1}, to_apply=less",
        "while": "ROOT r = f32[4,6] while(p), condition=never, body=same",
    }[opcode]
    before, after = (
        entry(line, less),
        entry(f"{line.replace('ROOT r', 'q')}  ROOT r = f32[4,6] copy(q)", less),
    )
    verdict = equivalent(before, after, "counts")
    assert isinstance(verdict, Undecided)
    assert verdict.level == "reads"
    assert opcode in verdict.reason


@pytest.mark.parametrize(
    "name",
    [
        "bitcast",
        "call_inlining",
        "dot_decomposer",
        "fusion",
        "layout_assignment",
        "convolution_canonicalization",
        "tuple_forwarding",
    ],
)
def test_rewrites_that_move_data_keep_the_counts(name: str) -> None:
    before, after, near_miss = hlo.load_all(REWRITES / f"{name}.hlo")
    assert equivalent(before, after, "counts") == Proved("counts")
    if name in ("bitcast", "layout_assignment", "tuple_forwarding"):
        assert isinstance(equivalent(before, near_miss, "counts"), Differs)


# Programs that only add and move elements: the output for the unit vector of a parameter element
# is the number of paths from each output element to it.
SUMS = [
    *(TWICE, FOUR_TIMES, REPEATED, ROWS, ROWS_OF_HALVES, ROWS_BY_SLICES, OVERLAPPING_SLICES),
    *(SUM_OF_WINDOWS, SUM_OF_OVERLAPS),
    *map(
        entry,
        [
            """l = f32[8,9] pad(p, z), padding=1_0_1x1_2
             w = f32[3,6] reduce-window(l, z), window={size=3x3 stride=2x2 pad=0_0x2_2},
               to_apply=add
             ROOT r = f32[6] reduce(w, z), dimensions={0}, to_apply=add""",
            """v = f32[4,6] reverse(p), dimensions={1}
             c = f32[8,6] concatenate(p, v), dimensions={0}
             h = f32[6,8] reshape(c)  ROOT r = f32[6] reduce(h, z), dimensions={1}, to_apply=add""",
            """one = f32[] constant(1)  k = f32[6,2] broadcast(one), dimensions={}
             s = f32[4,6] add(p, p)  ROOT r = f32[4,2] dot(s, k), lhs_contracting_dims={1},
               rhs_contracting_dims={0}""",
            """one = f32[] constant(1)  k = f32[2,3,1,1] broadcast(one), dimensions={}
             x = f32[1,4,6,1] reshape(p)  ROOT r = f32[1,3,6,1] convolution(x, k),
               window={size=2x3 pad=0_0x1_1}, dim_labels=b01f_01io->b01f""",
            """u = f32[4,5] slice(p), slice={[0:4], [0:5]}
             v = f32[4,5] slice(p), slice={[0:4], [1:6]}
             w = f32[4,5] add(u, v)  x = f32[4,4] slice(w), slice={[0:4], [0:4]}
             y = f32[4,4] slice(w), slice={[0:4], [1:5]}  ROOT r = f32[4,4] add(x, y)""",
        ],
    ),
]


@pytest.mark.parametrize("number", range(len(SUMS)))
def test_paths_are_those_that_executions_count(number: int) -> None:
    module = SUMS[number]
    pair = pair_of(module, module)
    assert isinstance(pair, Pair)
    paths, shape = PathCounts(pair.before).of_output(0), module.entry.root.shape
    assert not isinstance(paths, Unknown)
    assert isinstance(shape, Shape)
    counts = pair_counts(paths[0], (*shape.dims, 4, 6))
    assert isinstance(counts, np.ndarray)
    for element in np.ndindex(4, 6):
        unit = np.zeros((4, 6), np.float32)
        unit[element] = 1
        (executed,) = run(module, [unit])
        np.testing.assert_array_equal(counts[(..., *element)], executed)
