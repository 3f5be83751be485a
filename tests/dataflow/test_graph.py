"""Maps through fusions, calls and computations; each instruction is visited once."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

import hlo
import indexing
from indexing import IndexingMap, parse_map
from indexing.dataflow.edges import LocalEdges
from indexing.maps import map_set
from tests.compiled import interpreted_only
from tests.growth.work import calls_of
from tests.oracles import invert_pairs, relation, runtime_relations, union


def root_of(text: str) -> hlo.Instruction:
    return hlo.parse(text).entry.root


def texts(maps: tuple[IndexingMap, ...]) -> list[str]:
    return [str(m.simplify(certify=True)) for m in maps]


# ---------------------------------------------------------------- fusions

NESTED = """
inner { p = f32[3,4] parameter(0)  ROOT t = f32[4,3] transpose(p), dimensions={1,0} }
middle {
  q = f32[3,4] parameter(0)
  t = f32[4,3] fusion(q), kind=kLoop, calls=inner
  ROOT r = f32[12] reshape(t)
}
outer {
  s = f32[3,4] parameter(0)
  r = f32[12] call(s), to_apply=middle
  ROOT v = f32[12] reverse(r), dimensions={0}
}
ENTRY main { a = f32[3,4] parameter(0)  ROOT f = f32[12] fusion(a), kind=kLoop, calls=outer }
"""


def test_nested_fusions_and_calls_compose_to_their_operands() -> None:
    (read,) = indexing.output_to_input(root_of(NESTED)).maps[0]
    source = np.arange(12).reshape(3, 4)
    result = source.T.reshape(12)[::-1]
    assert relation(read) == {((k,), (int(v) // 4, int(v) % 4)) for k, v in enumerate(result)}


def test_input_to_output_through_fusions_is_the_inverse() -> None:
    root = root_of(NESTED)
    (read,) = indexing.output_to_input(root).maps[0]
    (written,) = indexing.input_to_output(root).maps[0]
    assert relation(written) == invert_pairs(relation(read))


TWO_OUTPUTS = """
fused {
  p = f32[4,6] parameter(0)
  q = f32[6,4] parameter(1)
  t = f32[6,4] transpose(p), dimensions={1,0}
  s = f32[6,4] add(t, q)
  n = f32[4,6] negate(p)
  inner = (f32[4,6]) tuple(n)
  ROOT both = (f32[6,4], (f32[4,6])) tuple(s, inner)
}
ENTRY main {
  a = f32[4,6] parameter(0)
  b = f32[6,4] parameter(1)
  f = (f32[6,4], (f32[4,6])) fusion(a, b), kind=kLoop, calls=fused
  pair = (f32[4,6]) get-tuple-element(f), index=1
  ROOT last = f32[4,6] get-tuple-element(pair), index=0
}
"""


def test_each_output_of_a_fusion_has_its_own_maps() -> None:
    fusion = hlo.parse(TWO_OUTPUTS).entry.instructions[2]
    first, second = (indexing.output_to_input(fusion, output_id=k) for k in (0, 1))
    assert [texts(m) for m in first.maps] == [
        ["(d0, d1) -> (d1, d0), domain: d0 in [0, 5], d1 in [0, 3]"],
        ["(d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 3]"],
    ]
    assert [texts(m) for m in second.maps] == [
        ["(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 5]"],
        [],
    ]
    with pytest.raises(IndexError, match="no output 2"):
        indexing.output_to_input(fusion, output_id=2)


def test_each_operand_of_a_fusion_has_maps_to_its_outputs() -> None:
    fusion = hlo.parse(TWO_OUTPUTS).entry.instructions[2]
    assert [len(m) for m in indexing.input_to_output(fusion, input_id=0).maps] == [1, 1]
    assert [len(m) for m in indexing.input_to_output(fusion, input_id=1).maps] == [1, 0]


def test_maps_follow_the_leaves_of_tuples() -> None:
    answer = indexing.to_parameters(root_of(TWO_OUTPUTS))
    assert [texts(m) for m in answer.maps] == [
        ["(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 5]"],
        [],
    ]


def test_a_leaf_of_a_tuple_parameter_is_named_by_its_path() -> None:
    root = root_of("""
        fused {
          p = (f32[3], (s32[], f32[5])) parameter(0)
          inside = (s32[], f32[5]) get-tuple-element(p), index=1
          v = f32[5] get-tuple-element(inside), index=1
          ROOT r = f32[5] reverse(v), dimensions={0}
        }
        ENTRY main {
          a = (f32[3], (s32[], f32[5])) parameter(0)
          ROOT f = f32[5] fusion(a), kind=kLoop, calls=fused
        }""")
    answer = indexing.output_to_input(root)
    assert answer.paths == (((1, 1),),)
    assert texts(answer.maps[0]) == ["(d0) -> (-d0 + 4), domain: d0 in [0, 4]"]


def test_a_copy_of_a_tuple_has_the_identity_for_each_array() -> None:
    root = root_of("""
        ENTRY main {
          p = (f32[3,2], (s32[5], token[])) parameter(0)
          ROOT c = (f32[3,2]{0,1}, (s32[5], token[])) copy(p)
        }""")
    answers = [indexing.output_to_input(root, output_id=k) for k in range(2)]
    assert [answer.paths for answer in answers] == [(((0,),),), (((1, 0),),)]
    assert [texts(answer.maps[0]) for answer in answers] == [
        ["(d0, d1) -> (d0, d1), domain: d0 in [0, 2], d1 in [0, 1]"],
        ["(d0) -> (d0), domain: d0 in [0, 4]"],
    ]


def test_grouped_has_the_maps_to_every_instruction() -> None:
    root = root_of("""
        fused {
          p = f32[4,6] parameter(0)
          t = f32[6,4] transpose(p), dimensions={1,0}
          n = f32[6,4] negate(t)
          ROOT s = f32[6,4] add(t, n)
        }
        ENTRY main {
          a = f32[4,6] parameter(0)
          ROOT f = f32[6,4] fusion(a), kind=kLoop, calls=fused
        }""")
    groups = {each.name: texts(maps) for each, maps in indexing.grouped(root).items()}
    same = ["(d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 3]"]
    transposed = ["(d0, d1) -> (d1, d0), domain: d0 in [0, 5], d1 in [0, 3]"]
    assert groups == {"s": same, "n": same, "t": same, "p": transposed}


# ---------------------------------------------------------------- large programs


def diamonds(count: int) -> str:
    """``count`` times x + reverse(x): 2^count paths, and two different maps."""
    lines = ["x0 = f32[8] parameter(0)"]
    for k in range(count):
        lines.append(f"r{k} = f32[8] reverse(x{k}), dimensions={{0}}")
        lines.append(f"x{k + 1} = f32[8] add(x{k}, r{k})")
    return "ENTRY main {\n" + "\n".join(lines) + f"\nROOT last = f32[8] negate(x{count}) }}"


@interpreted_only
def test_paths_are_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 diamonds have 2^40 paths; only a few maps are composed at each instruction."""
    composed = calls_of(monkeypatch, IndexingMap, "then")
    visits = calls_of(monkeypatch, LocalEdges, "backward_edges")
    answer = indexing.to_parameters(root_of(diamonds(40)))
    assert sorted(texts(answer.maps[0])) == [
        "(d0) -> (-d0 + 7), domain: d0 in [0, 7]",
        "(d0) -> (d0), domain: d0 in [0, 7]",
    ]
    visited = Counter(array.instruction.name for _, array, *_ in visits)
    assert max(visited.values()) <= 2  # once for what is needed, once to compose
    assert len(visited) == 81  # all but the parameter
    assert len(composed) <= 8 * len(visited)


def test_three_hundred_nested_calls_need_no_recursion() -> None:
    lines = ["f0 { p = f32[5] parameter(0)  ROOT r = f32[5] reverse(p), dimensions={0} }"]
    lines += [
        f"f{k} {{ p = f32[5] parameter(0)  ROOT r = f32[5] call(p), to_apply=f{k - 1} }}"
        for k in range(1, 300)
    ]
    lines += ["ENTRY main { a = f32[5] parameter(0)  ROOT r = f32[5] call(a), to_apply=f299 }"]
    root = root_of("\n".join(lines))
    for answer in (indexing.output_to_input(root), indexing.input_to_output(root)):
        assert texts(answer.maps[0]) == ["(d0) -> (-d0 + 4), domain: d0 in [0, 4]"]


def test_too_many_maps_become_one_over_approximation() -> None:
    """More shifted windows than the limit; the maps include all dependencies."""
    count = map_set.MAX_MAPS + 5
    lines = [f"x = f32[{count}] parameter(0)"]
    for k in range(count):
        lines.append(f"s{k} = f32[1] slice(x), slice={{[{k}:{k + 1}]}}")
    parts = ", ".join(f"s{(k * 7) % count}" for k in range(count))
    lines.append(f"ROOT c = f32[{count}] concatenate({parts}), dimensions={{0}}")
    answer = indexing.to_parameters(root_of("ENTRY main {\n" + "\n".join(lines) + "\n}"))
    needed = {((k,), ((k * 7) % count,)) for k in range(count)}
    assert needed <= union(answer.maps[0])
    assert len(answer.maps[0]) <= map_set.MAX_MAPS
    if union(answer.maps[0]) != needed:
        assert "may" in {m.grade for m in answer.maps[0]}


# ---------------------------------------------------------------- unknown opcodes

UNKNOWN = """
fused {
  p = f32[4] parameter(0)
  q = f32[4] parameter(1)
  m = f32[4] mystery(p), backend_config="x"
  n = f32[4] negate(m)
  ROOT s = f32[4] add(n, q)
}
ENTRY main {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  f = f32[4] fusion(a, b), kind=kLoop, calls=fused
  ROOT g = f32[4] multiply(f, b)
}
"""


def test_an_unknown_opcode_does_not_affect_other_operands() -> None:
    main = hlo.parse(UNKNOWN).entry
    fusion, same = main.instructions[2], ["(d0) -> (d0), domain: d0 in [0, 3]"]
    for answer in (indexing.output_to_input(fusion), indexing.to_parameters(main.root)):
        unknown = answer.unknown[0]
        assert unknown is not None
        assert unknown.instruction is not None
        assert unknown.instruction.name == "m"
        assert "mystery" in unknown.reason
        assert "`m`" in unknown.reason
        assert answer.maps[0] == ()
        assert answer.unknown[1] is None
        assert texts(answer.maps[1]) == same


def test_forward_maps_through_an_unknown_opcode_are_unknown() -> None:
    fusion = hlo.parse(UNKNOWN).entry.instructions[2]
    through = indexing.input_to_output(fusion, input_id=0)
    assert through.unknown[0] is not None
    assert "mystery" in through.unknown[0].reason
    past = indexing.input_to_output(fusion, input_id=1)
    assert past.unknown == (None,)
    assert texts(past.maps[0]) == ["(d0) -> (d0), domain: d0 in [0, 3]"]


def test_an_array_read_directly_and_by_an_unknown_opcode_has_maps_and_a_reason() -> None:
    root = root_of("""ENTRY main {
      a = f32[4] parameter(0)
      m = f32[4] mystery(a)
      ROOT s = f32[4] add(m, a)
    }""")
    answer = indexing.to_parameters(root)
    assert answer.unknown[0] is not None
    assert texts(answer.maps[0]) == ["(d0) -> (d0), domain: d0 in [0, 3]"]


# ---------------------------------------------------------------- runtime variables (E4)

SLICE_OF_SLICE = """
ENTRY main {
  p = s32[7,11] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  k = s32[] parameter(3)
  wide = s32[5,6] dynamic-slice(p, i, j), dynamic_slice_sizes={5,6}
  ROOT small = s32[2,3] dynamic-slice(wide, k, i), dynamic_slice_sizes={2,3}
}
"""


def clamp(value: int, size: int, window: int) -> int:
    return min(max(value, 0), size - window)


def runtime_value(rt: object, arrays: dict[str, np.ndarray], point: dict[str, int]) -> int:
    """Return the value of a runtime variable: the clamped element of its source."""
    assert isinstance(rt, indexing.RuntimeVariable)
    assert isinstance(rt.source, hlo.Instruction)
    index = tuple(e.value({v: point[v.name] for v in e.variables()}) for e in rt.index)
    value = int(arrays[rt.source.name][index])
    return value if rt.clamp is None else min(max(value, rt.clamp[0]), rt.clamp[1])


def execute(
    read: IndexingMap, operand: np.ndarray, arrays: dict[str, np.ndarray], shape: tuple[int, ...]
) -> np.ndarray:
    """Return the result of copying the element that the map reads for each output element."""
    result = np.empty(shape, operand.dtype)
    for at in product(*map(range, shape)):
        point = {v.name: x for v, x in zip(read.dims, at, strict=True)}
        waiting = list(read.runtime)
        while waiting:
            for rt in waiting:
                if all(v.name in point for e in rt.index for v in e.variables()):
                    point[rt.name] = runtime_value(rt, arrays, point)
            waiting = [rt for rt in waiting if rt.name not in point]
        source = read.evaluate(at, runtime=[point[rt.name] for rt in read.runtime])
        assert source is not None
        result[at] = operand[source]
    return result


@pytest.mark.parametrize("i, j, k", [(0, 0, 0), (1, 4, 2), (2, 5, 3), (-4, 9, 1), (50, -1, 50)])
def test_nested_dynamic_slices_keep_both_starts(i: int, j: int, k: int) -> None:
    """`i` starts dimension 0 of one slice and dimension 1 of the other, clamped differently."""
    (read,) = indexing.to_parameters(root_of(SLICE_OF_SLICE)).maps[0]
    p = np.arange(77).reshape(7, 11)
    a, b = clamp(i, 7, 5), clamp(j, 11, 6)
    wide = p[a : a + 5, b : b + 6]
    c, d = clamp(k, 5, 2), clamp(i, 6, 3)
    scalars = {name: np.array(v) for name, v in (("i", i), ("j", j), ("k", k))}
    assert (execute(read, p, scalars, (2, 3)) == wide[c : c + 2, d : d + 3]).all()


SLICE_OF_GATHER = """
ENTRY main {
  p = s32[9,4] parameter(0)
  rows = s32[5,2] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  g = s32[5,2,3] gather(p, rows), offset_dims={1,2}, collapsed_slice_dims={},
    start_index_map={0,1}, index_vector_dim=1, slice_sizes={2,3}
  ROOT s = s32[2,2,3] dynamic-slice(g, i, zero, zero), dynamic_slice_sizes={2,2,3}
}
"""


@pytest.mark.parametrize("i", [-1, 0, 2, 3, 7])
def test_a_dynamic_slice_of_a_gather_reads_the_indices_in_its_window(i: int) -> None:
    (read,) = indexing.to_parameters(root_of(SLICE_OF_GATHER)).maps[0]
    p = np.arange(36).reshape(9, 4)
    rows = np.array([[3, 1], [8, 0], [-2, 5], [0, 1], [7, 2]])
    gathered = np.stack(
        [p[(r := clamp(a, 9, 2)) : r + 2, (c := clamp(b, 4, 3)) : c + 3] for a, b in rows]
    )
    start = clamp(i, 5, 2)
    arrays = {"rows": rows, "i": np.array(i), "zero": np.array(0)}
    assert (execute(read, p, arrays, (2, 2, 3)) == gathered[start : start + 2]).all()


GATHER_OF_GATHER_IN_CALLS = """
take {
  table = s32[9] parameter(0)
  rows = s32[9] parameter(1)
  ROOT g = s32[9] gather(table, rows), offset_dims={}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1}
}
twice {
  table = s32[9] parameter(0)
  first = s32[9] parameter(1)
  second = s32[9] parameter(2)
  inner = s32[9] call(table, first), to_apply=take
  ROOT outer = s32[9] call(inner, second), to_apply=take
}
ENTRY main {
  p = s32[9] parameter(0)
  a = s32[9] parameter(1)
  b = s32[9] parameter(2)
  c = s32[9] parameter(3)
  d = s32[9] parameter(4)
  ab = s32[9] call(p, a, b), to_apply=twice
  ROOT cd = s32[9] call(ab, c, d), to_apply=twice
}
"""


def test_gathers_in_nested_calls_read_the_operands_of_each_call() -> None:
    (read,) = indexing.to_parameters(root_of(GATHER_OF_GATHER_IN_CALLS)).maps[0]
    random = np.random.default_rng(7)
    p = np.arange(9) * 100
    arrays = {name: random.permutation(9) for name in "abcd"}
    a, b, c, d = (arrays[name] for name in "abcd")
    assert (execute(read, p, arrays, (9,)) == p[a][b][c][d]).all()


CALLED_TWICE = """
shifted {
  x = s32[10] parameter(0)
  i = s32[] parameter(1)
  one = s32[] constant(1)
  k = s32[] add(i, one)
  half = s32[5] dynamic-slice(x, k), dynamic_slice_sizes={5}
  ROOT both = s32[10] concatenate(half, half), dimensions={0}
}
ENTRY main {
  p = s32[10] parameter(0)
  a = s32[] parameter(1)
  b = s32[] parameter(2)
  once = s32[10] call(p, a), to_apply=shifted
  ROOT again = s32[10] call(once, b), to_apply=shifted
}
"""


def test_a_value_of_a_called_computation_differs_between_calls() -> None:
    """Both slices start at `k` of `shifted`, which is 1 in the first call and 4 in the second."""
    answer = indexing.to_parameters(root_of(CALLED_TWICE))
    p = np.arange(10)
    once = np.tile(p[1:6], 2)
    again = np.tile(once[4:9], 2)
    expected = {((k,), (int(v),)) for k, v in enumerate(again)}
    for read in answer.maps[0]:
        sources = [(rt.source, rt.calls) for rt in read.runtime]
        assert len({source for source, _ in sources}) == 1
        assert len({calls for _, calls in sources}) == 2
    read_by = {
        pair
        for read in answer.maps[0]
        for pairs in runtime_relations(read).values()
        for pair in pairs
    }
    assert expected <= read_by


def test_runtime_variables_with_one_source_are_merged_in_a_fusion() -> None:
    root = root_of("""
        fused {
          p = f32[9] parameter(0)
          i = s32[] parameter(1)
          s = f32[4] dynamic-slice(p, i), dynamic_slice_sizes={4}
          t = f32[4] reverse(s), dimensions={0}
          u = f32[4] dynamic-slice(p, i), dynamic_slice_sizes={4}
          ROOT r = f32[4] add(s, u)
        }
        ENTRY main {
          a = f32[9] parameter(0)
          k = s32[] parameter(1)
          ROOT f = f32[4] fusion(a, k), kind=kLoop, calls=fused
        }""")
    (read,) = indexing.output_to_input(root).maps[0]
    assert [rt.source.name for rt in read.runtime] == ["k"]  # type: ignore[union-attr]


def test_the_map_of_a_fusion_equals_a_parsed_map() -> None:
    (read,) = indexing.output_to_input(root_of(NESTED)).maps[0]
    text = "(d0) -> ((-d0 + 11) mod 3, (-d0 + 11) floordiv 3), domain: d0 in [0, 11]"
    assert read.is_equal(parse_map(text))
