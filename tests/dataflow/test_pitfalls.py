"""Bugs of other systems, each with its witness."""

# ruff: noqa: E501 - a row of a table is one line

from collections import Counter

import numpy as np
import pytest

import hlo
import indexing
from indexing import IndexingMap, parse_map
from indexing.maps.unused import drop_unused
from tests.oracles import relation, union

# E1: XLA dropped the low part of ``8·d0 + d1`` from a constraint.
PAD_RESHAPE_SLICE_PAD = """
ENTRY main {
  p = f32[11] parameter(0)
  zero = f32[] constant(0)
  long = f32[80] pad(p, zero), padding=0_69
  square = f32[10,8] reshape(long)
  cut = f32[10,3] slice(square), slice={[0:10], [3:6]}
  ROOT wide = f32[10,8] pad(cut, zero), padding=0_0x3_2
}
"""


def test_e1_a_constraint_keeps_its_small_part() -> None:
    constrained = parse_map(
        "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [3, 5], d0 * 8 + d1 in [0, 10]"
    )
    simple = constrained.simplify(certify=True)
    assert simple.evaluate([1, 3]) is None
    assert relation(simple) == relation(constrained)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("low", [-5, 0, 3])
def test_e1_small_parts_are_kept_for_all_signs(sign: int, low: int) -> None:
    written = parse_map(
        f"(d0, d1) -> (d0 + d1), domain: d0 in [-4, 4], d1 in [{low}, {low + 2}], "
        f"d0 * 8 + d1 * {sign} in [-9, 10]"
    )
    assert relation(written.simplify(certify=True)) == {
        ((a, b), (a + b,))
        for a in range(-4, 5)
        for b in range(low, low + 3)
        if -9 <= a * 8 + b * sign <= 10
    }


def test_e1_row_one_of_the_slice_reads_nothing() -> None:
    """Its elements are numbers 11, 12 and 13 of the padded vector: padding."""
    reads = indexing.to_parameters(hlo.parse(PAD_RESHAPE_SLICE_PAD).entry.root).maps[0]
    pairs = union(m.simplify(certify=True) for m in reads)
    assert pairs == {((0, 3 + k), (3 + k,)) for k in range(3)}


# fmt: off
NEGATIVE = [
    # E2, pytorch#119883: floordiv and mod round down, whatever the signs
    ("d0 floordiv 4",         -1, -1),
    ("d0 floordiv 4",         -4, -1),
    ("d0 floordiv 4",         -5, -2),
    ("d0 mod 4",              -1, 3),
    ("d0 mod 4",              -8, 0),
    ("d0 floordiv -4",        1,  -1),
    ("d0 floordiv -4",        -1, 0),
    ("d0 floordiv -4",        -5, 1),
    ("d0 ceildiv 4",          -5, -1),
    ("d0 ceildiv 4",          5,  2),
    ("d0 ceildiv -4",         5,  -1),
    ("(d0 floordiv 2) mod 6", -3, 4),
    ("3 - d0",                7,  -4),     # was computed as d0 - 3
    ("-d0 mod 4",             1,  3),      # (-d0) mod 4
]
# fmt: on


@pytest.mark.parametrize("text, at, value", NEGATIVE)
def test_e2_division_rounds_down_for_all_signs(text: str, at: int, value: int) -> None:
    indexing_map = parse_map(f"(d0) -> ({text}), domain: d0 in [-9, 9]")
    assert indexing_map.evaluate([at]) == (value,)
    assert indexing_map.simplify(certify=True).evaluate([at]) == (value,)


@pytest.mark.parametrize("divisor", [4, -4, 3, -3])
@pytest.mark.parametrize("low, high", [(-2, -1), (-1, 0), (0, 1), (1, 2)])
def test_e2_a_floordiv_in_a_constraint_is_undone_for_all_signs(
    divisor: int, low: int, high: int
) -> None:
    """XLA truncated: ``s floordiv -3 in [-11, -5]`` is s in [13, 33]."""
    written = parse_map(
        f"(d0) -> (d0), domain: d0 in [-9, 9], d0 floordiv {divisor} in [{low}, {high}]"
    )
    expected = {((d,), (d,)) for d in range(-9, 10) if low <= d // divisor <= high}
    simple = written.simplify(certify=True)
    assert relation(simple) == relation(written) == expected
    assert not simple.constraints


@pytest.mark.parametrize("low, high", [(-9, -3), (-7, 0), (-8, 8), (-1, 1), (3, 9)])
def test_e3_two_mods_with_negative_bounds_merge_correctly(low: int, high: int) -> None:
    both = parse_map(
        f"(d0) -> (d0), domain: d0 in [{low}, {high}], d0 mod 2 in [1, 1], d0 mod 3 in [2, 2]"
    )
    expected = {((d,), (d,)) for d in range(low, high + 1) if d % 2 == 1 and d % 3 == 2}
    assert relation(both.simplify(certify=True)) == relation(both) == expected
    turned = parse_map(f"()[s0] -> (s0), domain: s0 in [{low}, {high}], (-s0) mod 4 in [1, 1]")
    assert relation(turned.rescale()) == relation(turned)


@pytest.mark.parametrize("text", ["(d0 * 5) mod 6", "(-d0) mod 6", "(d0 - 8) mod 6"])
@pytest.mark.parametrize("other", ["d0 mod 4 in [1, 1]", "d0 mod 9 in [2, 4]", "d0 in [-6, 5]"])
def test_e3_mods_of_any_sign_merge_correctly(text: str, other: str) -> None:
    written = parse_map(f"(d0) -> (d0), domain: d0 in [-19, 20], {text} in [3, 3], {other}")
    assert relation(written.simplify(certify=True)) == relation(written)
    assert relation(written)


def test_e6_rescaling_keeps_two_constraints_that_collide() -> None:
    """``s mod 4 == 1`` and ``s mod 6 == 3`` leave every twelfth value: 9, 21, …"""
    both = parse_map(
        "()[s0] -> (s0), domain: s0 in [0, 40], s0 mod 4 in [1, 1], s0 mod 6 in [3, 3]"
    )
    assert relation(both.rescale()) == {((), (s,)) for s in (9, 21, 33)}


def test_e6_rescaling_finds_that_two_constraints_contradict() -> None:
    never = parse_map(
        "()[s0] -> (s0), domain: s0 in [0, 40], s0 mod 4 in [1, 1], s0 mod 6 in [2, 2]"
    )
    assert relation(never.rescale()) == set()
    assert never.rescale().is_empty()


def test_e6_a_runtime_variable_is_not_renamed_by_its_stride() -> None:
    """Its value is that of its source: it is kept, with the constraint."""
    strided = parse_map("(){rt0} -> (rt0), domain: rt0 in [0, 7], rt0 mod 4 in [1, 1]")
    rescaled = strided.rescale()
    assert [rescaled.evaluate(runtime=[k]) for k in (0, 1, 5)] == [None, (1,), (5,)]


def test_e6_a_stride_simplifies_results_for_both_kinds_of_variables() -> None:
    """Only the range variable is rescaled; expressions of both are simplified."""
    for brackets, name in (("[s0]", "s0"), ("{rt0}", "rt0")):
        written = parse_map(
            f"(){brackets} -> (({name} - 1) floordiv 2 - {name} floordiv 2, {name} mod 4, "
            f"({name} + 3) floordiv 4 - {name} floordiv 4), domain: {name} in [-8, 9], "
            f"{name} mod 4 in [1, 1]"
        )
        assert [str(r) for r in written.simplify(certify=True).results] == ["0", "1", "1"]


# fmt: off
EMPTY_BUT_UNUSED = [
    "(d0)[s0] -> (d0), domain: d0 in [0, 4], s0 in [1, 0]",
    "(d0)[s0] -> (d0), domain: d0 in [0, 4], s0 in [0, 5], s0 in [7, 9]",
    "(d0)[s0] -> (d0), domain: d0 in [0, 4], s0 in [0, 5], s0 mod 8 in [6, 7]",
    "(d0)[s0] -> (d0), domain: d0 in [0, 4], s0 in [0, 5], s0 * 2 in [3, 3]",
    "(d0)[s0, s1] -> (d0), domain: d0 in [0, 4], s0 in [0, 5], s1 in [0, 5], s0 + s1 in [11, 20]",
]
# fmt: on


@pytest.mark.parametrize("text", EMPTY_BUT_UNUSED)
def test_e10_dropping_unused_variables_does_not_fill_an_empty_domain(text: str) -> None:
    empty = parse_map(text)
    assert relation(empty) == set()
    for m in (empty.simplify(certify=True), drop_unused(empty), empty.rescale()):
        assert relation(m) == set()
        assert m.is_empty()


def test_e10_an_unused_variable_constrained_with_a_dimension_is_kept() -> None:
    """s0 restricts d0: without s0 the domain would include d0 = 5."""
    tied = parse_map("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 4], d0 - s0 in [0, 0]")
    assert relation(tied.simplify(certify=True)) == {((k,), (k,)) for k in range(5)}


def test_e10_keep_multiplicity_keeps_unused_variables() -> None:
    """Each element is read for 3 values of s0 and 2 of s1, which has only every fourth value."""
    written = parse_map(
        "(d0)[s0, s1] -> (d0), domain: d0 in [0, 4], s0 in [-1, 1], s1 in [-4, 3], s1 mod 4 in [1, 1]"
    )
    assert str(written.simplify(certify=True)) == "(d0) -> (d0), domain: d0 in [0, 4]"
    counted = written.simplify(certify=True, keep_multiplicity=True)
    assert Counter(counted.points()) == Counter(written.points())
    assert Counter(counted.points())[(0,), (0,)] == 6


# ---------------------------------------------------------------- TVM and MLIR


def test_tvm_a_floor_before_a_mod_keeps_its_offset() -> None:
    """``(x floordiv 2) mod 6`` on [3, 10] became ``(x - 3 + 2) floordiv 2``: wrong at x = 4."""
    simple = parse_map("(x) -> ((x floordiv 2) mod 6), domain: x in [3, 10]").simplify(certify=True)
    assert simple.evaluate([4]) == (2,)
    assert [simple.evaluate([x]) for x in range(3, 11)] == [(x // 2 % 6,) for x in range(3, 11)]


def test_tvm_the_predicate_of_padding_is_not_dropped() -> None:
    """tvm#20169: 3 tiles of 4 cover 10 elements; the last two points of the grid read nothing."""
    tiles = parse_map(
        "(i, j) -> (i * 4 + j), domain: i in [0, 2], j in [0, 3], i * 4 + j in [0, 9]"
    )
    simple = tiles.simplify(certify=True)
    assert simple.evaluate([2, 1]) == (9,)
    assert simple.evaluate([2, 2]) is None
    assert len(relation(simple)) == 10


@pytest.mark.parametrize(
    "low, factor, count", [(0, 4, 4), (-3, 4, 4), (0, -4, 4), (0, 4, 3), (0, 4, 5)]
)
def test_tvm_iterators_are_fused_only_if_each_number_occurs_once(
    low: int, factor: int, count: int
) -> None:
    """``s0 · 4 + s1`` with 3 values of s1 skips numbers, and with 5 it repeats some."""
    written = parse_map(
        f"()[s0, s1] -> (s0 * {factor} + s1), "
        f"domain: s0 in [-1, 2], s1 in [{low}, {low + count - 1}]"
    )
    counted = written.simplify(certify=True, keep_multiplicity=True)
    assert len(counted.ranges) == (1 if count == 4 else 2)
    simple = written.simplify(certify=True)  # what is read twice is read
    assert len(simple.ranges) == (2 if count == 3 else 1)
    assert Counter(counted.points()) == Counter(written.points())
    assert set(simple.points()) == set(written.points())


# fmt: off
MLIR = [
    # expression                                  domain                               what a wrong rule would give
    ("(d0 * 4 + d1) floordiv 4",                  "d0 in [0, 5], d1 in [-1, 3]"),       # not d0: d1 may be -1
    ("(d0 + d1 * 4) mod 4",                       "d0 in [-3, 3], d1 in [0, 5]"),       # not d0
    ("(d0 - d0 floordiv 4 * 4) floordiv 2",       "d0 in [-9, 9], d1 in [0, 0]"),
    ("(d0 * 6 + 4) floordiv 4",                   "d0 in [-5, 5], d1 in [0, 0]"),
    ("(d0 floordiv 3 + d1) floordiv 2",           "d0 in [-9, 9], d1 in [-3, 3]"),
    ("(d0 mod 6) mod 4",                          "d0 in [-9, 9], d1 in [0, 0]"),       # 4 does not divide 6
    ("(d0 mod 6) floordiv 4",                     "d0 in [-9, 9], d1 in [0, 0]"),
    ("(d0 * -3) floordiv 2 + d0",                 "d0 in [-9, 9], d1 in [0, 0]"),
    ("(d0 + 5) mod 7 - (d0 + 5)",                 "d0 in [-9, 9], d1 in [0, 0]"),
    ("(-d0 - 1) floordiv 4 + (d0 ceildiv 4)",     "d0 in [-9, 9], d1 in [0, 0]"),
    ("(d0 * 2 + d1) ceildiv 2 - d0",              "d0 in [-9, 9], d1 in [0, 1]"),
]
# fmt: on


@pytest.mark.parametrize("text, domain", MLIR)
def test_mlir_sums_of_floors_and_mods_have_python_s_value(text: str, domain: str) -> None:
    python = (
        text.replace("(d0 ceildiv 4)", "-(-d0 // 4)")
        .replace("(d0 * 2 + d1) ceildiv 2", "-(-(d0 * 2 + d1) // 2)")
        .replace("floordiv", "//")
        .replace("mod", "%")
    )
    simple = parse_map(f"(d0, d1) -> ({text}), domain: {domain}").simplify(certify=True)
    for at, (value,) in relation(simple):
        assert value == eval(python, {}, dict(zip(("d0", "d1"), at, strict=True)))


def test_two_reshapes_with_a_transpose_read_each_element_once() -> None:
    root = hlo.parse("""
        ENTRY main {
          p = s32[6,4,5] parameter(0)
          a = s32[8,15] reshape(p)
          b = s32[15,8] transpose(a), dimensions={1,0}
          c = s32[3,40] reshape(b)
          ROOT d = s32[3,40] reverse(c), dimensions={1}
        }""").entry.root
    (read,) = indexing.to_parameters(root).maps[0]
    p = np.arange(120)
    expected = p.reshape(8, 15).T.reshape(3, 40)[:, ::-1]
    linear = IndexingMap.over((6, 4, 5), lambda d: [d[0] * 20 + d[1] * 5 + d[2]])
    composite = read.then(linear).simplify(certify=True)
    assert {(i, j): v for (i, j), (v,) in relation(composite)} == dict(np.ndenumerate(expected))
