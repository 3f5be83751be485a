"""An op does not read the operands that the computation it applies ignores.

The oracle executes programs: it changes single elements of the operands, and observes which
elements of the results change.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

import hlo
from hlo import Instruction
from indexing import (
    Answer,
    IndexingMap,
    input_to_output,
    loop_nest,
    output_to_input,
    to_parameters,
)
from indexing.dataflow.device_queries import device_maps
from indexing.execution import run
from tests.oracles import Pair

PARAMETERS = """
  p = s32[3,2] parameter(0)  q = s32[3,2] parameter(1)
  y = s32[] parameter(2)  z = s32[] parameter(3)
  i = s32[2,1] parameter(4)  u = s32[2,2] parameter(5)  v = s32[2,2] parameter(6)
"""
SHAPES = [(3, 2), (3, 2), (), (), (2, 1), (2, 2), (2, 2)]
INDICES = 4
SCATTER = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
    "index_vector_dim=1"
)
PAIR = "(s32[3,2], s32[3,2])"
LONG = "(s32[4,2], s32[4,2])"
# fmt: off
PROGRAMS = {
    # name: root, number of parameters and of results of the computation
    "map": ("s32[3,2] map(p, q), dimensions={0,1}", 2, 1),
    "reduce": ("s32[3] reduce(p, y), dimensions={1}", 2, 1),
    "reduce two": ("(s32[3], s32[3]) reduce(p, q, y, z), dimensions={1}", 4, 2),
    "reduce one step": ("s32[3,2] reduce(p, y), dimensions={}", 2, 1),
    "window": (f"{PAIR} reduce-window(p, q, y, z), window={{size=2x1 pad=1_0x0_0}}", 4, 2),
    "padding": (f"{LONG} reduce-window(p, q, y, z), window={{size=1x1 pad=1_0x0_0}}", 4, 2),
    "scatter": (f"s32[3,2] scatter(p, i, u), {SCATTER}", 2, 1),
    "scatter two": (f"{PAIR} scatter(p, q, i, u, v), {SCATTER}", 4, 2),
}
# fmt: on
BINARY = ("add", "subtract", "xor")


def computation(reads: list[tuple[int, ...]], parameters: int) -> str:
    """A computation whose result k depends on exactly the parameters ``reads[k]``."""
    lines = [f"a{n} = s32[] parameter({n})" for n in range(parameters)]
    results = []
    for k, needed in enumerate(reads):
        lines.append(f"r{k}_ = s32[] constant({k + 3})")
        last = f"r{k}_"
        for step, n in enumerate(needed):
            name, op = f"r{k}_{step}", BINARY[(n + k) % len(BINARY)]
            lines.append(f"{name} = s32[] {op}({last}, a{n})")
            last = name
        results.append(last)
    if len(results) == 1:
        root = f"one = s32[] constant(1)  ROOT root = s32[] add({results[0]}, one)"
    else:
        types = ", ".join(["s32[]"] * len(results))
        root = f"ROOT root = ({types}) tuple({', '.join(results)})"
    return f"f {{ {' '.join(lines)} {root} }}"


def program(name: str, body: str) -> Instruction:
    root, _, _ = PROGRAMS[name]
    module = hlo.parse(f"{body}\nENTRY e {{ {PARAMETERS} ROOT r = {root}, to_apply=f }}")
    assert not hlo.verify(module)
    return module.entry.root


def random_reads(draw: random.Random, name: str) -> list[tuple[int, ...]]:
    _, parameters, outputs = PROGRAMS[name]
    return [tuple(n for n in range(parameters) if draw.random() < 0.5) for _ in range(outputs)]


def inputs(rng: np.random.Generator) -> list[np.ndarray]:
    values = [rng.integers(-50, 50, dims, np.int32) for dims in SHAPES]
    values[INDICES] = rng.integers(-1, 4, SHAPES[INDICES], np.int32)
    return values


def results(root: Instruction, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [np.array(array) for array in run(root.module, arrays)]


def observe(root: Instruction, arrays: list[np.ndarray], operand: int) -> list[set[Pair]]:
    """For each result, the pairs of its element and an operand element that changes it."""
    number = root.computation.parameters.index(root.operands[operand])
    before = results(root, arrays)
    pairs: list[set[Pair]] = [set() for _ in before]
    for at in np.ndindex(*SHAPES[number]):
        changed = [array.copy() for array in arrays]
        for value in (0, 1, 2, 77) if number == INDICES else (77, -31):
            changed[number][at] = value
            for k, after in enumerate(results(root, changed)):
                pairs[k] |= {(tuple(map(int, o)), at) for o in np.argwhere(after != before[k])}
    return pairs


def related_pairs(m: IndexingMap, arrays: list[np.ndarray], root: Instruction) -> set[Pair]:
    variables = (*m.dims, *m.ranges)
    pairs = set()
    for point in product(*[range(v.lower, v.upper + 1) for v in variables]):
        values = dict(zip(variables, point, strict=True))
        runtime = []
        for rt in m.runtime:
            assert isinstance(rt.source, Instruction)
            array = arrays[root.computation.parameters.index(rt.source)]
            value = int(array[tuple(e.value(values) for e in rt.index)])
            runtime.append(value if rt.clamp is None else min(max(value, rt.clamp[0]), rt.clamp[1]))
        count = len(m.dims)
        image = m.evaluate(point[:count], point[count:], runtime)
        if image is not None:
            pairs.add((point[:count], image))
    return pairs


def check(root: Instruction, seed: int) -> None:
    """Check that every observed read has a map, and that every exact map is observed."""
    rng = np.random.default_rng(seed)
    certain: dict[tuple[int, int], set[Pair]] = {}
    seen: dict[tuple[int, int], set[Pair]] = {}
    for _ in range(4):
        arrays = inputs(rng)
        for operand in range(len(root.operands)):
            for k, pairs in enumerate(observe(root, arrays, operand)):
                answer = output_to_input(root, k)
                assert answer.unknown[operand] is None
                mapped = [(m.grade, related_pairs(m, arrays, root)) for m in answer.maps[operand]]
                assert pairs <= {pair for _, each in mapped for pair in each}, (operand, k)
                exact = {pair for grade, each in mapped if grade == "exact" for pair in each}
                if any(m.runtime for m in answer.maps[operand]):
                    assert exact <= pairs, (operand, k)
                elif root.operands[operand].name != "i":  # an index may be out of every bound
                    seen.setdefault((operand, k), set()).update(pairs)
                    certain[operand, k] = exact
    for key, exact in certain.items():
        assert exact <= seen[key], key


@pytest.mark.parametrize("name", PROGRAMS)
def test_reads_are_those_that_execution_shows(name: str) -> None:
    draw = random.Random(7)
    for seed in range(5):
        reads = random_reads(draw, name)
        check(program(name, computation(reads, PROGRAMS[name][1])), seed)


@pytest.mark.parametrize("name", ["reduce", "window", "scatter"])
@pytest.mark.parametrize("result", ["a0", "a1", "c"])
def test_a_reducer_may_return_a_parameter_or_a_constant(name: str, result: str) -> None:
    count = PROGRAMS[name][1]
    lines = " ".join(f"a{n} = s32[] parameter({n})" for n in range(count))
    if count == 2:
        body = f"f {{ {lines} c = s32[] constant(3)  ROOT r = s32[] copy({result}) }}"
    else:
        root = f"ROOT r = (s32[], s32[]) tuple({result}, a3)"
        body = f"f {{ {lines} c = s32[] constant(3)  {root} }}"
    check(program(name, body), 1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_directions_and_loop_nests_agree(name: str) -> None:
    _, parameters, outputs = PROGRAMS[name]
    draw = random.Random(11)
    rng = np.random.default_rng(3)
    for _ in range(4):
        root = program(name, computation(random_reads(draw, name), parameters))
        arrays = inputs(rng)
        there: list[set[tuple[str, int, int, Pair]]] = [set(), set()]
        for k in range(outputs):
            for operand, maps in enumerate(output_to_input(root, k).maps):
                for m in maps:
                    pairs = related_pairs(m, arrays, root)
                    there[0] |= {(m.grade, k, operand, pair) for pair in pairs}
        for operand in range(len(root.operands)):
            for k, maps in enumerate(input_to_output(root, operand).maps):
                for m in maps:
                    pairs = {(o, j) for j, o in related_pairs(m, arrays, root)}
                    there[1] |= {(m.grade, k, operand, pair) for pair in pairs}
        assert there[0] == there[1]
        for k, wanted in enumerate(results(root, arrays)):
            nest = loop_nest(root, k)
            flat = [arrays[root.computation.parameters.index(o)] for o in root.operands]
            assert (nest.run(*flat) == wanted).all()
            assert (nest.vectorized().run(*flat) == wanted).all()


BROADCASTS = [
    "s32[3,5] map(x, p), dimensions={0,1}",
    "s32[3,5] map(p, x), dimensions={0,1}",
    "s32[5] reduce(x, y), dimensions={0}",
    "s32[5] reduce(p, y), dimensions={0}",
    "s32[3,5] reduce-window(x, y), window={size=2x1 pad=1_0x0_0}",
]


@pytest.mark.parametrize("root", BROADCASTS)
@pytest.mark.parametrize("result", ["copy(a)", "copy(b)", "constant(1)"])
def test_a_result_that_ignores_an_array_has_all_dimensions_in_a_loop_nest(
    root: str, result: str
) -> None:
    shape = root.split(" ")[0]
    module = hlo.parse(f"""
f {{ a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT r = s32[] {result} }}
g {{ p = s32[3,5] parameter(0)  y = s32[] parameter(1)  x = s32[3,5] broadcast(y), dimensions={{}}
  ROOT m = {root}, to_apply=f }}
ENTRY e {{ p = s32[3,5] parameter(0)  y = s32[] parameter(1)
  ROOT u = {shape} fusion(p, y), kind=kLoop, calls=g }}""")
    arrays = [np.arange(15, dtype=np.int32).reshape(3, 5), np.array(77, np.int32)]
    (wanted,) = results(module.entry.root, arrays)
    nest = loop_nest(module.entry.root)
    assert (nest.run(*arrays) == wanted).all()
    assert (nest.vectorized().run(*arrays) == wanted).all()
    assert (nest.vectorized().run(*arrays, tile=(1,) * wanted.ndim) == wanted).all()


# ---------------------------------------------------------------- grades


def grades(answer: Answer) -> list[str]:
    """The grade of each operand's maps; empty for an operand that is not read."""
    assert answer.unknown == (None,) * len(answer.maps)
    return [" ".join(m.grade for m in maps) for maps in answer.maps]


# fmt: off
GRADES = [
    # reducer of (t, v)                                   values   init
    ("ROOT r = s32[] add(t, v)",                          "exact", "exact"),
    ("ROOT r = s32[] negate(t)",                          "",      "exact"),
    ("ROOT r = s32[] negate(v)",                          "may",   ""),       # only the last value
    ("ROOT r = s32[] constant(3)",                        "",      ""),
    ("""c = pred[] compare(v, t), direction=LT
        ROOT r = s32[] select(c, t, t)""",                "exact", "exact"),  # a condition is read
    ("""n = s32[] call(v, t), to_apply=second
        ROOT r = s32[] add(n, t)""",                      "",      "exact"),
    ("""c = pred[] compare(v, t), direction=LT
        ROOT r = s32[] conditional(c, t, v), true_computation=one, false_computation=one""",
                                                          "exact", "exact"),  # by the condition
    ("""c = pred[] compare(t, t), direction=LT
        ROOT r = s32[] conditional(c, t, v), true_computation=one, false_computation=one""",
                                                          "may",   ""),       # never true
    ("""w = (s32[], s32[]) tuple(t, v)
        l = (s32[], s32[]) while(w), condition=unequal, body=next
        ROOT r = s32[] get-tuple-element(l), index=0""",  "may",   "exact"),  # by the condition
]
# fmt: on
HELPERS = """
second { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT n = s32[] negate(b) }
one { a = s32[] parameter(0)  ROOT n = s32[] negate(a) }
unequal {
  w = (s32[], s32[]) parameter(0)  a = s32[] get-tuple-element(w), index=0
  b = s32[] get-tuple-element(w), index=1  ROOT c = pred[] compare(a, b), direction=NE
}
next {
  w = (s32[], s32[]) parameter(0)  a = s32[] get-tuple-element(w), index=0
  b = s32[] get-tuple-element(w), index=1  n = s32[] negate(a)
  ROOT r = (s32[], s32[]) tuple(n, b)
}"""


def reduction(reducer: str, root: str) -> Instruction:
    module = hlo.parse(f"""{HELPERS}
f {{ t = s32[] parameter(0)  v = s32[] parameter(1)  {reducer} }}
ENTRY e {{ p = s32[5,3] parameter(0)  y = s32[] parameter(1)
  {root} }}""")
    assert not hlo.verify(module)
    return module.entry.root


@pytest.mark.parametrize("reducer, values, init", GRADES)
def test_grades_of_a_reduction(reducer: str, values: str, init: str) -> None:
    root = reduction(reducer, "ROOT r = s32[5] reduce(p, y), dimensions={1}, to_apply=f")
    assert grades(output_to_input(root)) == [values, init]
    assert [grades(input_to_output(root, k)) for k in range(2)] == [[values], [init]]


def test_a_reduction_of_nothing_returns_the_init_value() -> None:
    """Even if the reducer ignores the totals: it is never applied."""
    text = """f { t = s32[] parameter(0)  v = s32[] parameter(1)  ROOT n = s32[] negate(v) }
ENTRY e { p = s32[5,SIZE] parameter(0)  y = s32[] parameter(1)
  ROOT r = s32[5] reduce(p, y), dimensions={1}, to_apply=f }"""
    for size, expected in [("0", ["", "may"]), ("<=3", ["may", "may"]), ("1", ["exact", ""])]:
        root = hlo.parse(text.replace("SIZE", size)).entry.root
        assert grades(output_to_input(root)) == expected


def test_async_and_fused_reductions_are_the_same() -> None:
    fused = """g { a = s32[5,3] parameter(0)  b = s32[] parameter(1)
  ROOT s = s32[5] reduce(a, b), dimensions={1}, to_apply=f }"""
    for root in (
        "ROOT r = s32[5] fusion(p, y), kind=kLoop, calls=g",
        """start = ((s32[5,3], s32[]), s32[5], u32[]) async-start(p, y), calls=g
           ROOT r = s32[5] async-done(start)""",
    ):
        module = hlo.parse(f"""
f {{ t = s32[] parameter(0)  v = s32[] parameter(1)  ROOT n = s32[] negate(v) }}
{fused}
ENTRY e {{ p = s32[5,3] parameter(0)  y = s32[] parameter(1)
  {root} }}""")
        assert not hlo.verify(module)
        assert grades(to_parameters(module.entry.root)) == ["may", ""]


COLLECTIVES = [
    ("s32[6] all-reduce(p), replica_groups={{0,1}}, to_apply=f", "exact"),
    ("s32[6] all-reduce-start(p), replica_groups={{0,1}}, to_apply=f", "exact"),
    ("s32[3] reduce-scatter(p), replica_groups={{0,1}}, dimensions={0}, to_apply=f", "may"),
]


@pytest.mark.parametrize("collective, grade", COLLECTIVES)
@pytest.mark.parametrize("result", ["add(t, v)", "negate(t)", "negate(v)", "constant(3)"])
def test_a_collective_is_certain_only_if_its_reducer_reads_both(
    collective: str, grade: str, result: str
) -> None:
    module = hlo.parse(f"""HloModule m, replica_count=2
f {{ t = s32[] parameter(0)  v = s32[] parameter(1)  ROOT r = s32[] {result} }}
ENTRY e {{ p = s32[6] parameter(0)  ROOT c = {collective} }}""")
    assert not hlo.verify(module)
    root, reads_both = module.entry.root, result == "add(t, v)"
    assert grades(output_to_input(root)) == [grade if reads_both else "may"]
    assert grades(input_to_output(root)) == [grade if reads_both else "may"]
    (maps,) = device_maps(root).maps
    assert {m.grade for m in maps} == {"exact" if reads_both else "may"}


# ---------------------------------------------------------------- other ops

SORT = """
f {{ a = s32[] parameter(0)  b = s32[] parameter(1)  c = s32[] parameter(2)  d = s32[] parameter(3)
  ROOT less = pred[] compare({left}, {right}), direction=LT }}
ENTRY e {{ p = s32[3,2] parameter(0)  q = s32[3,2] parameter(1)
  ROOT r = (s32[3,2], s32[3,2]) sort(p, q), dimensions={{0}}, to_apply=f }}"""


@pytest.mark.parametrize(
    "left, right, read",
    [
        ("a", "b", [[0], [0, 1]]),
        ("c", "d", [[0, 1], [1]]),
        ("a", "d", [[0, 1], [0, 1]]),
    ],
)
def test_a_sort_reads_its_keys_and_the_operand_itself(
    left: str, right: str, read: list[list[int]]
) -> None:
    root = hlo.parse(SORT.format(left=left, right=right)).entry.root
    for k, wanted in enumerate(read):
        maps = output_to_input(root, k).maps
        assert [operand for operand, each in enumerate(maps) if each] == wanted
        back = [input_to_output(root, operand).maps[k] for operand in range(2)]
        assert [operand for operand, each in enumerate(back) if each] == wanted


SELECT = """
select {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] {select} }}
scatter {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] {scatter} }}
ENTRY e {{ p = f32[4] parameter(0)  q = f32[2] parameter(1)  z = f32[] parameter(2)
  ROOT r = f32[4] select-and-scatter(p, q, z), window={{size=2 stride=2}}, select=select,
    scatter=scatter }}"""


@pytest.mark.parametrize(
    "select, scatter, read",
    [
        ("compare(a, b), direction=GE", "add(a, b)", ["exact", "exact", "exact"]),
        ("compare(a, b), direction=GE", "negate(b)", ["may", "may", "may"]),
        ("compare(a, b), direction=GE", "negate(a)", ["may", "", "exact"]),
        ("constant(true)", "add(a, b)", ["", "may", "exact"]),
        ("constant(true)", "negate(a)", ["", "", "exact"]),
    ],
)
def test_grades_of_a_select_and_scatter(select: str, scatter: str, read: list[str]) -> None:
    root = hlo.parse(SELECT.format(select=select, scatter=scatter)).entry.root
    assert grades(output_to_input(root)) == read
    back = [input_to_output(root, operand) for operand in range(3)]
    assert [grade for answer in back for grade in grades(answer)] == read


def test_selections_decide_how_often_a_total_is_negated() -> None:
    """The operand is needed although the scatter computation ignores the source."""
    text = SELECT.format(select="compare(a, b), direction=GE", scatter="negate(a)")
    module = hlo.parse(text)
    arrays = [np.array([0, 1, 2, 3], np.float32), np.zeros(2, np.float32), np.array(7, np.float32)]
    (before,) = run(module, arrays)
    arrays[0] = np.array([5, 1, 2, 3], np.float32)
    (after,) = run(module, arrays)
    assert list(before) == [7, -7, 7, -7]
    assert list(after) == [-7, 7, 7, -7]


def test_with_unique_indices_an_update_is_not_overwritten() -> None:
    text = "s32[3,2] scatter(p, i, u), " + SCATTER
    for unique, grade in (("", "may"), (", unique_indices=true", "exact")):
        body = computation([(1,)], 2)
        module = hlo.parse(
            f"{body}\nENTRY e {{ {PARAMETERS} ROOT r = {text}{unique}, to_apply=f }}"
        )
        assert grades(output_to_input(module.entry.root)) == ["may", "exact", grade]


# ---------------------------------------------------------------- nesting


def test_a_parameter_that_a_nested_call_ignores_is_not_read() -> None:
    module = hlo.parse("""
inner { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT n = f32[] negate(a) }
outer { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] call(a, b), to_apply=inner }
ENTRY e { p = f32[5] parameter(0)  q = f32[5] parameter(1)
  ROOT m = f32[5] map(p, q), dimensions={0}, to_apply=outer }""")
    assert grades(output_to_input(module.entry.root)) == ["exact", ""]


def test_maps_nested_2000_deep_need_no_recursion() -> None:
    computations = ["f0 { a = f32[] parameter(0) b = f32[] parameter(1) ROOT n = f32[] negate(a) }"]
    computations += [
        f"f{k} {{ a = f32[] parameter(0) b = f32[] parameter(1) "
        f"ROOT n = f32[] map(a, b), dimensions={{}}, to_apply=f{k - 1} }}"
        for k in range(1, 2000)
    ]
    root = "ROOT m = f32[5] map(p, q), dimensions={0}, to_apply=f1999"
    entry = f"ENTRY e {{ p = f32[5] parameter(0)  q = f32[5] parameter(1)  {root} }}"
    module = hlo.parse("\n".join([*computations, entry]))
    assert grades(output_to_input(module.entry.root)) == ["exact", ""]
    assert grades(input_to_output(module.entry.root, 1)) == [""]


# ---------------------------------------------------------------- independent reductions

INDEPENDENT = """
min {
  a = f32[] parameter(0)  b = s32[] parameter(1)  x = f32[] parameter(2)  y = s32[] parameter(3)
  m = f32[] minimum(a, x)  n = s32[] minimum(b, y)  ROOT t = (f32[], s32[]) tuple(m, n)
}
ENTRY e {
  p = f32[8,5] parameter(0)  q = s32[8,5] parameter(1)
  x = f32[] parameter(2)  y = s32[] parameter(3)
  ROOT r = ROOT_TEXT, to_apply=min
}"""


@pytest.mark.parametrize(
    "root",
    [
        "(f32[5], s32[5]) reduce(p, q, x, y), dimensions={0}",
        "(f32[7,4], s32[7,4]) reduce-window(p, q, x, y), window={size=2x2}",
    ],
)
def test_result_k_of_an_independent_reduction_depends_on_array_k_only(root: str) -> None:
    """XLA's ``docs/indexing.md`` relates each result to every operand; execution disproves it."""
    module = hlo.parse(INDEPENDENT.replace("ROOT_TEXT", root))
    rng = np.random.default_rng(0)
    for _ in range(3):
        arrays: list[np.ndarray] = [
            rng.normal(size=(8, 5)).astype(np.float32),
            rng.integers(-9, 9, (8, 5), np.int32),
            np.array(9, np.float32),
            np.array(9, np.int32),
        ]
        before = [np.array(array) for array in run(module, arrays)]
        for operand, other in [(0, 1), (1, 0), (2, 1), (3, 0)]:
            for at in np.ndindex(*arrays[operand].shape):
                changed = [np.array(array) for array in arrays]
                changed[operand][at] = -100
                after = [np.array(array) for array in run(module, changed)]
                assert (after[other] == before[other]).all()
                assert (after[1 - other] != before[1 - other]).any()
    assert grades(output_to_input(module.entry.root, 0)) == ["exact", "", "exact", ""]
    assert grades(output_to_input(module.entry.root, 1)) == ["", "exact", "", "exact"]
    for operand, other in [(0, 1), (1, 0), (2, 1), (3, 0)]:
        answer = input_to_output(module.entry.root, operand)
        assert [bool(maps) for maps in answer.maps] == [other == 1, other == 0]
