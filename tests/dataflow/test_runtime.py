"""Constant folding of runtime variables, and the values of those that do not fold."""

# ruff: noqa: E501 - a row of a table is one line
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hlo
import indexing
from hlo import Computation
from indexing.dataflow.runtime import fold_runtime
from indexing.dataflow.values import value_maps
from indexing.maps.arrays import ArrayRef
from tests.dataflow.programs import Run, entry
from tests.oracles import Pair

# ---------------------------------------------------------------- folding

SIZE = 10  # of the table


def lookup(lines: str) -> Computation:
    """Return a gather from a table of ten elements at four indices `i`, computed by `lines`."""
    return entry(f"""
      p = f32[{SIZE}] parameter(0)
      {lines}
      ROOT r = f32[4] gather(p, i), offset_dims={{}}, collapsed_slice_dims={{0}},
        start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}""")


def clamp(number: int, size: int = SIZE, window: int = 1) -> int:
    return min(max(number, 0), size - window)


IOTA = "n = s32[4] iota(), iota_dimension=0\n"


def splat(number: int, kind: str = "s32") -> str:
    return f"c = {kind}[] constant({number})\n  k = {kind}[4] broadcast(c), dimensions={{}}\n"


# fmt: off
FOLDS: list[tuple[str, Callable[[int], int]]] = [
    # the indices                                                                        index d0
    ("i = s32[4] iota(), iota_dimension=0",                                              lambda d: d),
    (splat(7) + "i = s32[4] copy(k)",                                                    lambda d: 7),
    (splat(-7) + "i = s32[4] copy(k)",                                                   lambda d: 0),
    (splat(70) + "i = s32[4] copy(k)",                                                   lambda d: 9),
    ("i = s32[4] constant({ 1, 4, 7, 10 })",                                             lambda d: 3 * d + 1),
    ("i = s32[4] constant({ 2, 2, 2, 2 })",                                              lambda d: 2),
    ("n = s32[3,4] iota(), iota_dimension=1  s = s32[1,4] slice(n), slice={[1:2], [0:4]}  i = s32[4] reshape(s)", lambda d: d),
    ("n = s32[2,2] iota(), iota_dimension=0  t = s32[2,2] transpose(n), dimensions={1,0}  i = s32[4] reshape(t)", lambda d: d % 2),
    ("n = s32[2] iota(), iota_dimension=0  b = s32[2,2] broadcast(n), dimensions={0}  i = s32[4] reshape(b)", lambda d: d // 2),
    ("n = s32[9] iota(), iota_dimension=0  i = s32[4] slice(n), slice={[1:9:2]}",        lambda d: 1 + 2 * d),
    (IOTA + "i = s32[4] reverse(n), dimensions={0}",                                     lambda d: 3 - d),
    (IOTA + "i = s32[4] negate(n)",                                                      lambda d: -d),
    (IOTA + splat(5) + "i = s32[4] add(n, k)",                                           lambda d: d + 5),
    (IOTA + splat(8) + "i = s32[4] add(n, k)",                                           lambda d: d + 8),      # 10 and 11 are clamped
    (IOTA + splat(2) + "i = s32[4] subtract(n, k)",                                      lambda d: d - 2),      # -2 and -1 are clamped
    (IOTA + splat(5) + "i = s32[4] multiply(k, n)",                                      lambda d: 5 * d),
    (IOTA + splat(2) + "i = s32[4] divide(n, k)",                                        lambda d: d // 2),
    (IOTA + splat(-3) + "a = s32[4] add(n, k)  e = s32[4] constant({ 2, 2, 2, 2 })  q = s32[4] divide(a, e)  i = s32[4] add(q, e)",
                                                                                         lambda d: int((d - 3) / 2) + 2),  # E7: truncated
    (IOTA + splat(-2) + "q = s32[4] divide(n, k)  e = s32[4] constant({ 4, 4, 4, 4 })  i = s32[4] add(q, e)",
                                                                                         lambda d: int(d / -2) + 4),
    (IOTA + splat(1) + "h = s32[] constant(2)  i = s32[4] clamp(c, n, h)",               lambda d: min(max(d, 1), 2)),
    (IOTA + "i = u8[4] convert(n)",                                                      lambda d: d),
    (IOTA + splat(2) + "l = pred[4] compare(n, k), direction=LT  a = s32[4] add(n, k)  i = s32[4] select(l, a, n)",
                                                                                         lambda d: d + 2 if d < 2 else d),
    (IOTA + splat(2) + "i = s32[4] maximum(n, k)",                                       lambda d: max(d, 2)),
    (IOTA + splat(2) + "i = s32[4] minimum(k, n)",                                       lambda d: min(d, 2)),
    ("n = s32[2] iota(), iota_dimension=0  m = s32[2] constant({ 9, 8 })  i = s32[4] concatenate(n, m), dimensions={0}",
                                                                                         lambda d: [0, 1, 9, 8][d]),
    ("n = s32[4] iota(), iota_dimension=0  t = (s32[4], f32[10]) tuple(n, p)  i = s32[4] get-tuple-element(t), index=0", lambda d: d),
    # wrap-around
    ("n = s8[4] iota(), iota_dimension=0\n" + splat(126, "s8") + "i = s8[4] add(n, k)",   lambda d: (d + 126 + 128) % 256 - 128),
    ("n = u8[4] iota(), iota_dimension=0\n" + splat(1, "u8") + "i = u8[4] subtract(n, k)", lambda d: (d - 1) % 256),
    ("n = u8[4] iota(), iota_dimension=0  i = u8[4] negate(n)",                          lambda d: -d % 256),
    ("n = s8[4] iota(), iota_dimension=0\n" + splat(100, "s8") + "i = s8[4] multiply(n, k)", lambda d: (100 * d + 128) % 256 - 128),
    (IOTA + splat(300) + "a = s32[4] add(n, k)  i = s8[4] convert(a)",                   lambda d: (d + 300 + 128) % 256 - 128),
    # evaluated
    (IOTA + "i = s32[4] multiply(n, n)",                                                 lambda d: d * d),
    ("i = s32[4] constant({ 1, 4, 2, 8 })",                                              lambda d: [1, 4, 2, 8][d]),
    (IOTA + splat(0) + "i = s32[4] divide(n, k)",                                        lambda d: -1),
    (IOTA + splat(3) + "i = s32[4] divide(k, n)",                                        lambda d: [-1, 3, 1, 1][d]),
    ("n = f32[4] iota(), iota_dimension=0  i = s32[4] convert(n)",                       lambda d: d),
    (IOTA + splat(40) + "i = s32[4] shift-left(n, k)",                                   lambda d: 0),
]
# fmt: on


@pytest.mark.parametrize("lines, expected", FOLDS)
def test_a_start_determined_by_the_program_is_folded(
    lines: str, expected: Callable[[int], int]
) -> None:
    maps = indexing.to_parameters(lookup(lines).root).maps[0]
    assert [m.runtime for m in maps] == [()] * len(maps)
    pairs = [pair for m in maps for pair in set(m.points())]
    assert sorted(pairs) == [((d,), (clamp(expected(d)),)) for d in range(4)]
    for m in maps:
        assert m.grade == "exact"
        m.simplify(certify=True)


# fmt: off
STAYS = [
    # near misses: not folded, because the formula would be wrong or unknown
    "i = s32[4] parameter(1)",
    "q = s32[4] parameter(1)  n = s32[4] iota(), iota_dimension=0  i = s32[4] add(n, q)",
    "q = s32[4] parameter(1)  i = s32[4] multiply(q, q)",
    "q = s32[4] parameter(1)  n = s32[4] constant({ 3, 0, 2, 1 })  i = s32[4] divide(n, q)",
]
# fmt: on


@pytest.mark.parametrize("lines", STAYS)
def test_a_start_that_does_not_fold_stays_a_runtime_variable(
    lines: str,
) -> None:
    main = lookup(lines)
    run = Run(main, np.arange(SIZE, dtype=np.float32) * 10, np.array([3, -1, 12, 5], np.int32))
    (read,) = indexing.to_parameters(main.root).maps[0]
    assert len(read.runtime) == 1
    assert run.read_by(read) == {((d,), (int(v) // 10,)) for d, v in enumerate(run.result)}


def test_an_element_at_a_constant_index_of_a_table_is_folded() -> None:
    """A vector of start indices, as in HLO before 2019."""
    main = entry("""
      p = f32[5,7] parameter(0)
      c = s32[2] constant({ 2, 90 })
      ROOT r = f32[2,3] dynamic-slice(p, c), dynamic_slice_sizes={2,3}""")
    (read,) = indexing.to_parameters(main.root).maps[0]
    assert str(read) == "(d0, d1) -> (d0 + 2, d1 + 4), domain: d0 in [0, 1], d1 in [0, 2]"


def test_elided_constants_are_not_folded() -> None:
    (read,) = indexing.to_parameters(lookup("i = s32[4] constant({...})").root).maps[0]
    assert [rt.source_name for rt in read.runtime] == ["i"]


# ---------------------------------------------------------------- E7: clamping


@pytest.mark.parametrize("start", [-3, 0, 2, 6, 7, 9, 1000])
def test_e7_a_constant_start_is_clamped(start: int) -> None:
    """openxla/xla#49120: start 9 of a window of 4 in 10 elements was not clamped to 6."""
    main = entry(f"""
      p = f32[10] parameter(0)
      c = s32[] constant({start})
      ROOT r = f32[4] dynamic-slice(p, c), dynamic_slice_sizes={{4}}""")
    (read,) = indexing.to_parameters(main.root).maps[0]
    at = clamp(start, 10, 4)
    assert set(read.points()) == {((k,), (at + k,)) for k in range(4)}


def test_e7_an_iota_out_of_bounds_is_clamped_at_both_ends() -> None:
    """openxla/xla#49121: rows −2 to 5 of four rows."""
    main = entry("""
      p = f32[4,3] parameter(0)
      n = s32[8,1] iota(), iota_dimension=0
      c = s32[] constant(-2)
      k = s32[8,1] broadcast(c), dimensions={}
      i = s32[8,1] add(n, k)
      ROOT r = f32[8,3] gather(p, i), offset_dims={1}, collapsed_slice_dims={0},
        start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}""")
    maps = indexing.to_parameters(main.root).maps[0]
    expected = {((d, k), (clamp(d - 2, 4), k)) for d in range(8) for k in range(3)}
    pieces = [set(m.points()) for m in maps]
    assert set().union(*pieces) == expected
    assert sum(map(len, pieces)) == len(expected)


def test_e7_the_start_of_an_update_is_clamped() -> None:
    main = entry("""
      p = f32[10] parameter(0)
      u = f32[4] parameter(1)
      c = s32[] constant(8)
      ROOT r = f32[10] dynamic-update-slice(p, u, c)""")
    base, update = indexing.to_parameters(main.root, exact=True).maps[:2]
    assert {pair for m in update for pair in m.points()} == {((6 + k,), (k,)) for k in range(4)}
    assert {pair for m in base for pair in m.points()} == {((k,), (k,)) for k in range(6)}


def test_a_scatter_update_out_of_bounds_is_skipped_not_clamped() -> None:
    """The updates are at rows 3, 4, 5 and 6 of five rows."""
    main = entry(
        """
      p = f32[5] parameter(0)
      u = f32[4] parameter(1)
      n = s32[4] iota(), iota_dimension=0
      c = s32[] constant(3)
      k = s32[4] broadcast(c), dimensions={}
      i = s32[4] add(n, k)
      ROOT r = f32[5] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus""",
        "plus { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }",
    )
    maps = indexing.to_parameters(main.root).maps[1]
    assert {pair for m in maps for pair in m.points()} == {((3,), (0,)), ((4,), (1,))}


# ---------------------------------------------------------------- scope of folding

INSIDE = """
fused {
  p = f32[10] parameter(0)
  k = s32[1,1] parameter(1)
  c = s32[] constant(3)
  a = f32[5] dynamic-slice(p, c), dynamic_slice_sizes={5}
  s = s32[] reshape(k)
  ROOT b = f32[2] dynamic-slice(a, s), dynamic_slice_sizes={2}
}
"""


def test_a_fusion_folds_values_inside_it_but_not_its_operands() -> None:
    main = entry(
        """
      x = f32[10] parameter(0)
      one = s32[] constant(1)
      start = s32[1,1] reshape(one)
      ROOT f = f32[2] fusion(x, start), kind=kLoop, calls=fused""",
        INSIDE,
    )
    (of_fusion,) = indexing.output_to_input(main.root).maps[0]
    assert str(of_fusion) == "(d0){rt0} -> (d0 + rt0 + 3), domain: d0 in [0, 1], rt0 in [0, 3]"
    (rt,) = of_fusion.runtime
    assert (rt.source_name, rt.call_names, [str(i) for i in rt.index]) == ("start", (), ["0", "0"])
    (through,) = indexing.to_parameters(main.root).maps[0]
    assert str(through) == "(d0) -> (d0 + 4), domain: d0 in [0, 1]"


def test_a_single_instruction_does_not_fold_its_operands() -> None:
    main = entry("""
      p = f32[10] parameter(0)
      c = s32[] constant(9)
      ROOT r = f32[4] dynamic-slice(p, c), dynamic_slice_sizes={4}""")
    (read,) = indexing.output_to_input(main.root).maps[0]
    assert [rt.source_name for rt in read.runtime] == ["c"]
    assert [str(m) for m in fold_runtime(read)] == ["(d0) -> (d0 + 6), domain: d0 in [0, 3]"]


def test_input_to_output_folds_like_output_to_input() -> None:
    main = entry(
        """
      x = f32[10] parameter(0)
      start = s32[1,1] constant({ {2} })
      ROOT f = f32[2] fusion(x, start), kind=kLoop, calls=fused""",
        INSIDE.replace("s = s32[] reshape(k)", "s = s32[] constant(1)"),
    )
    (back,) = indexing.output_to_input(main.root).maps[0]
    (forth,) = indexing.input_to_output(main.root, 0).maps[0]
    assert set(back.points()) == {(b, a) for a, b in forth.points()} == {((0,), (4,)), ((1,), (5,))}


def test_runtime_variables_traced_to_one_element_are_merged() -> None:
    """The element is copied by a reshape, a slice, a wider type and a call."""
    main = entry(
        """
      p = f32[10,10] parameter(0)
      k = s32[3] parameter(1)
      a = s32[1] slice(k), slice={[1:2]}
      i = s32[] reshape(a)
      w = s64[3] convert(k)
      r = s64[3] reverse(w), dimensions={0}
      j = s64[] call(r), to_apply=middle
      ROOT d = f32[4,4] dynamic-slice(p, i, j), dynamic_slice_sizes={4,4}""",
        """middle {
      v = s64[3] parameter(0)
      s = s64[1] slice(v), slice={[1:2]}
      ROOT m = s64[] reshape(s)
    }""",
    )
    (read,) = indexing.to_parameters(main.root).maps[0]
    (rt,) = read.runtime
    assert (rt.source, [str(i) for i in rt.index]) == (main["k"], ["1"])
    run = Run(main, np.arange(100).reshape(10, 10), np.array([9, 2, 7], np.int32))
    assert run.read_by(read) == {((a, b), (2 + a, 2 + b)) for a in range(4) for b in range(4)}


def test_a_narrowing_conversion_is_not_a_copy() -> None:
    main = entry("""
      p = f32[300] parameter(0)
      k = s32[] parameter(1)
      n = s8[] convert(k)
      ROOT d = f32[4] dynamic-slice(p, n), dynamic_slice_sizes={4}""")
    (read,) = indexing.to_parameters(main.root).maps[0]
    assert [rt.source_name for rt in read.runtime] == ["n"]


# ---------------------------------------------------------------- E4: nested runtime starts


def expected_pairs(run: Run, size: tuple[int, ...]) -> set[Pair]:
    """Return the source of each result element; elements of parameter 0 are numbered."""
    return {
        (at, tuple(int(i) for i in np.unravel_index(int(v), size)))
        for at, v in np.ndenumerate(run.result)
    }


SLICES = """
  p = s32[7,11] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  k = s32[] parameter(3)
  wide = s32[5,6] dynamic-slice(p, i, j), dynamic_slice_sizes={5,6}
  flipped = s32[6,5] transpose(wide), dimensions={1,0}
  mid = s32[4,4] dynamic-slice(flipped, k, i), dynamic_slice_sizes={4,4}
  ROOT small = s32[2,3] dynamic-slice(mid, j, k), dynamic_slice_sizes={2,3}
"""


@pytest.mark.parametrize("starts", [(0, 0, 0), (1, 4, 2), (2, 5, 1), (-4, 9, 1), (50, -1, 50)])
def test_e4_three_nested_slices_keep_all_starts(starts: tuple[int, ...]) -> None:
    """openxla/xla#49119: runtime variables were bound to the wrong start operands."""
    main = entry(SLICES)
    run = Run(main, np.arange(77, dtype=np.int32).reshape(7, 11), *map(np.int32, starts))
    (read,) = indexing.to_parameters(main.root).maps[0]
    assert run.read_by(read) == expected_pairs(run, (7, 11))


TAKE = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"


@pytest.mark.parametrize("seed", range(4))
def test_e4_a_gather_at_gathered_indices(seed: int) -> None:
    """``p[a][b[c]]``: table and indices are gathered; some indices are out of bounds."""
    main = entry(f"""
      p = s32[9] parameter(0)
      a = s32[7] parameter(1)
      b = s32[6] parameter(2)
      c = s32[5] parameter(3)
      pa = s32[7] gather(p, a), {TAKE}
      bc = s32[5] gather(b, c), {TAKE}
      ROOT r = s32[5] gather(pa, bc), {TAKE}""")
    random = np.random.default_rng(seed)
    indices = [
        random.integers(-2, n + 2, size).astype(np.int32) for n, size in [(9, 7), (7, 6), (6, 5)]
    ]
    run = Run(main, np.arange(9, dtype=np.int32), *indices)
    (read,) = indexing.to_parameters(main.root).maps[0]
    assert run.read_by(read) == expected_pairs(run, (9,))


LOOP = """
body {
  state = (s32[], f32[6,3], f32[6,3]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  out = f32[6,3] get-tuple-element(state), index=1
  x = f32[6,3] get-tuple-element(state), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  five = s32[] constant(5)
  j = s32[] subtract(five, i)
  row = f32[1,3] dynamic-slice(x, j, zero), dynamic_slice_sizes={1,3}
  new = f32[6,3] dynamic-update-slice(out, row, i, zero)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[6,3], f32[6,3]) tuple(next, new, x)
}
condition {
  state = (s32[], f32[6,3], f32[6,3]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(6)
  ROOT go = pred[] compare(i, n), direction=LT
}
"""


@pytest.mark.parametrize("iteration", [0, 2, 5])
def test_e4_an_update_in_a_loop_body_accesses_the_row_of_its_iteration(iteration: int) -> None:
    body = hlo.parse(LOOP + "ENTRY e { ROOT p = f32[] parameter(0) }").computations["body"]
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    run = Run(body, (np.int32(iteration), -x - 1, x))
    answer = indexing.to_parameters(body.root, output_id=1, exact=True)
    seen: dict[tuple[int, ...], float] = {}
    for each, path in zip(answer.maps[0], answer.paths[0], strict=True):
        if path != (0,):  # not the counter
            for at, element in run.read_by(each):
                assert at not in seen
                seen[at] = (x if path == (2,) else -x - 1)[element]
    assert seen == dict(np.ndenumerate(run.result[1]))


def test_a_loop_that_reverses_rows_reads_each_row_from_the_other_end() -> None:
    main = entry(
        """
      x = f32[6,3] parameter(0)
      zero = s32[] constant(0)
      t = (s32[], f32[6,3], f32[6,3]) tuple(zero, x, x)
      w = (s32[], f32[6,3], f32[6,3]) while(t), condition=condition, body=body
      ROOT r = f32[6,3] get-tuple-element(w), index=1""",
        LOOP,
    )
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    run = Run(main, x)
    assert (run.result == x[::-1]).all()
    answer = indexing.to_parameters(main.root)
    assert {(at, (5 - at[0], at[1])) for at in np.ndindex(6, 3)} == run.read(answer.maps[0])
    assert {m.grade for m in answer.maps[0]} == {"exact"}


# ---------------------------------------------------------------- limits


def test_too_many_clamped_cases_are_not_folded() -> None:
    """Three cases for each of three dimensions would be 27 pieces."""
    lines = ["p = s32[3,3,3] parameter(0)", "n = s32[5] iota(), iota_dimension=0"]
    lines += ["c = s32[5] constant({ -1, -1, -1, -1, -1 })", "m = s32[5] add(n, c)"]
    lines += ["t = s32[5,1] reshape(m)", "i = s32[5,3] concatenate(t, t, t), dimensions={1}"]
    lines += [
        "ROOT r = s32[5] gather(p, i), offset_dims={}, collapsed_slice_dims={0,1,2}, "
        "start_index_map={0,1,2}, index_vector_dim=1, slice_sizes={1,1,1}"
    ]
    main = entry("\n".join(lines))
    run = Run(main, np.arange(27, dtype=np.int32).reshape(3, 3, 3))
    maps = indexing.to_parameters(main.root).maps[0]
    assert run.read(maps) == expected_pairs(run, (3, 3, 3))
    assert len(maps) <= 9


def test_folding_a_long_chain_needs_no_recursion() -> None:
    lines = ["x0 = s32[4] iota(), iota_dimension=0", "one = s32[4] constant({ 1, 1, 1, 1 })"]
    lines += [f"x{k + 1} = s32[4] add(x{k}, one)" for k in range(3000)]
    main = entry("\n".join(lines) + "\nROOT r = s32[4] copy(x3000)")
    (piece,) = value_maps(ArrayRef(main.root)) or ()
    assert str(piece) == "(d0) -> (d0 + 3000), domain: d0 in [0, 3]"


UPDATED = """ENTRY e {{ p = f32[7,3] parameter(0)  n = s32[] parameter(1)  z = s32[] constant(0)
  u = f32[{window}] parameter(2)  v = f32[7,3] negate(p)
  r = f32[7,3] dynamic-update-slice({base}, u, n, z)
  ROOT s = f32[7,3] {after} }}"""
# fmt: off
BASES = [
    # window  base   after                                      maps of the base
    ("2,3",   "p",   "negate(r)",                               ["exact", "exact"]),
    ("7,2",   "p",   "negate(r)",                               ["exact", "exact"]),
    ("2,2",   "p",   "negate(r)",                               ["may"]),
    ("7,3",   "p",   "negate(r)",                               []),
    ("2,3",   "v",   "negate(r)",                               ["exact", "exact"]),
    ("2,3",   "p",   "dynamic-update-slice(r, u, z, n)",        ["may"]),    # one of a chain
]
# fmt: on


@pytest.mark.parametrize("window, base, after, grades", BASES)
def test_the_base_of_an_update_alone_has_both_sides_of_the_window(
    window: str, base: str, after: str, grades: list[str]
) -> None:
    text = UPDATED.format(window=window, base=base, after=after)
    update = hlo.parse(text).entry["r"]
    answer = indexing.output_to_input(update)
    maps = answer.maps[0]
    assert [m.grade for m in maps] == grades
    assert {m.grade for m in indexing.output_to_input(update, masks=False).maps[0]} <= {"may"}
    rows, columns = map(int, window.split(","))
    for n in (-9, -1, 0, 1, 3, 5, 6, 99):
        start = min(max(n, 0), 7 - rows)
        kept = np.ones((7, 3), bool)
        kept[start : start + rows, :columns] = False
        read = np.zeros((7, 3), bool)
        for row, column in np.ndindex(7, 3):
            (region, *_) = answer.at(row, column, n=n)
            assert isinstance(region, indexing.Region)
            read[row, column] = region.count() > 0
        assert (read >= kept).all()
        if set(grades) <= {"exact"}:
            assert (read == kept).all()
