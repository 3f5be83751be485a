"""Formulas of integer arrays against the kernels, for each op with an integer rule."""

from __future__ import annotations

from itertools import product

import pytest

from hlo import parse
from indexing.dataflow.values import named_values, value_maps
from indexing.execution.program import run
from indexing.maps.arrays import ArrayRef

LIMITS = {
    "pred": (0, 1), "s2": (-2, 1), "u4": (0, 15), "s8": (-128, 127), "u8": (0, 255),
    "s32": (-(1 << 31), (1 << 31) - 1), "u32": (0, (1 << 32) - 1),
}  # fmt: skip
KINDS = list(LIMITS)
BINARY = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or",
          "shift-right-logical", "shift-right-arithmetic"]  # fmt: skip
DIRECTIONS = ["LT", "LE", "EQ", "NE", "GE", "GT"]
OF_PREDICATES = ["add", "multiply", "maximum", "minimum", "and", "or"]
"""The ops of two arrays that HLO defines for predicates: a sum is a disjunction."""


def check(lines: str) -> bool:
    """Check the formulas of array `r` of 12 elements; return False if it has none."""
    module = parse(f"ENTRY e {{\n  i = s32[12] iota(), iota_dimension=0\n  {lines}\n}}")
    maps = value_maps(ArrayRef(module.entry.root))
    if maps is None:
        return False
    (result,) = run(module, [])
    values = {at: value for piece in maps for at, (value,) in piece.points()}
    assert [values[k,] for k in range(12)] == [int(x) for x in result], lines
    assert sum(len(list(piece.points())) for piece in maps) == 12
    return True


def numbers(kind: str) -> list[str]:
    """Return definitions of `x`: the values of a type from its ends and from its middle."""
    low, high = LIMITS[kind]
    return [f"o = s32[] constant({max(low, -(1 << 31))})\n"
            "  ob = s32[12] broadcast(o), dimensions={}\n"
            "  w = s32[12] add(i, ob)\n"
            f"  x = {kind}[12] convert(w)",
            f"x = {kind}[12] convert(i)",
            f"x = {kind}[12] constant({{{', '.join([str(high)] * 12)}}})"]  # fmt: skip


def constants(kind: str) -> list[str]:
    """Return definitions of `y`: constants of a type."""
    low, high = LIMITS[kind]
    values = sorted({low, max(low, -1), 0, 1, min(3, high), high})
    return [
        f"c = {kind}[] constant({n})\n  y = {kind}[12] broadcast(c), dimensions={{}}"
        for n in values
    ]


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [each for each in product(BINARY, KINDS) if each[1] != "pred" or each[0] in OF_PREDICATES],
)
def test_values_of_functions_of_two_arrays_are_those_of_the_kernel(opcode: str, kind: str) -> None:
    known = [
        check(f"{x}\n  {y}\n  ROOT r = {kind}[12] {opcode}({operands})")
        for x in numbers(kind)
        for y in constants(kind)
        for operands in ("x, y", "y, x")
    ]
    of_the_sign = opcode == "shift-right-arithmetic" and kind[0] == "u"
    assert any(known) or opcode == "or" or of_the_sign


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_values_of_comparisons_are_those_of_the_kernel(direction: str, kind: str) -> None:
    known = [
        check(f"{x}\n  {y}\n  ROOT r = pred[12] compare(x, y), direction={direction}")
        for x in numbers(kind)
        for y in constants(kind)
    ]
    assert any(known)


@pytest.mark.parametrize("source", KINDS)
def test_values_of_conversions_are_those_of_the_kernel(source: str) -> None:
    for target in KINDS:
        known = [check(f"{x}\n  ROOT r = {target}[12] convert(x)") for x in numbers(source)]
        assert any(known), target


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pred"])
def test_values_of_negations_and_bitcasts_are_those_of_the_kernel(kind: str) -> None:
    other = ("s" if kind[0] == "u" else "u") + kind[1:]
    assert any(check(f"{x}\n  ROOT r = {kind}[12] negate(x)") for x in numbers(kind))
    assert any(check(f"{x}\n  ROOT r = {other}[12] bitcast-convert(x)") for x in numbers(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_clamps_and_selections_are_those_of_the_kernel(kind: str) -> None:
    low, high = LIMITS[kind]
    for x in numbers(kind):
        for least, most in ((low, high), (0, min(3, high)), (high, low)):
            bounds = f"a = {kind}[] constant({least})\n  b = {kind}[] constant({most})"
            check(f"{x}\n  {bounds}\n  ROOT r = {kind}[12] clamp(a, x, b)")
        for y in constants(kind):
            flag = "p = pred[12] compare(x, y), direction=LT"
            check(f"{x}\n  {y}\n  {flag}\n  ROOT r = {kind}[12] select(p, x, y)")


@pytest.mark.parametrize("sparse", [[0, 65535, 65535, 0, 1, 0] * 2, [0, 60000] * 6])
def test_values_that_leave_out_many_multiples_of_the_range_wrap_around(sparse: list[int]) -> None:
    wide = f"w = u16[12] constant({{{', '.join(map(str, sparse))}}})"
    assert check(f"{wide}\n  ROOT r = u8[12] convert(w)")
    assert check(f"{wide}\n  n = u8[12] convert(w)\n  ROOT r = pred[12] convert(n)")


ADD = "add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }"


@pytest.mark.parametrize(
    "rows", [[(2, 1), (0, -2147483647), (2147483647, 1)], [(5, 1), (5, 1), (0, 9)]]
)
def test_sums_of_tables_with_a_piece_for_some_rows_have_the_values_of_the_kernel(
    rows: list[tuple[int, int]],
) -> None:
    table = ", ".join([f"{{{one}, {other}}}" for one, other in rows])
    entry = parse(f"""{ADD} ENTRY e {{ t = s32[3,2] constant({{{table}}})  z = s32[] constant(0)
      ROOT r = s32[3] reduce(t, z), dimensions={{1}}, to_apply=add }}""").entry
    maps = value_maps(ArrayRef(entry.root))
    assert maps is not None
    values = {at: value for piece in maps for at, (value,) in piece.points()}
    wrapped = [(sum(row) + (1 << 31)) % (1 << 32) - (1 << 31) for row in rows]
    assert values == {(k,): value for k, value in enumerate(wrapped)}


FLOORED = {
    "floordiv": """q = s8[] divide(n, m)  one = s8[] constant(1)  less = s8[] subtract(q, one)
      ns = s8[] sign(n)  ms = s8[] sign(m)  differ = pred[] compare(ns, ms), direction=NE
      rest = s8[] remainder(n, m)  zero = s8[] constant(0)
      uneven = pred[] compare(rest, zero), direction=NE  rounds = pred[] and(differ, uneven)
      ROOT r = s8[] select(rounds, less, q)""",
    "mod": """rest = s8[] remainder(n, m)  zero = s8[] constant(0)
      uneven = pred[] compare(rest, zero), direction=NE
      low = pred[] compare(rest, zero), direction=LT  mlow = pred[] compare(m, zero), direction=LT
      differ = pred[] compare(low, mlow), direction=NE  wrong = pred[] and(differ, uneven)
      other = s8[] add(rest, m)  ROOT r = s8[] select(wrong, other, rest)""",
}
"""The quotient that is rounded down, and the modulus that goes with it, as JAX computes them."""


@pytest.mark.parametrize("m", [-6, -1, 1, 3, 64])
@pytest.mark.parametrize("name", FLOORED)
def test_division_rounded_down_has_the_values_of_python(name: str, m: int) -> None:
    entry = parse(
        f"ENTRY e {{ n = s8[] parameter(0)  m = s8[] constant({m})  {FLOORED[name]} }}"
    ).entry
    maps = named_values(ArrayRef(entry.root))
    assert maps is not None
    assert m <= 1 or len(maps) == 1, list(map(str, maps))
    for n in range(-128, 128):
        values = [piece.evaluate((), (), (n,) * len(piece.runtime)) for piece in maps]
        (value,) = [value for value in values if value is not None]
        expected = n // m if name == "floordiv" else n % m
        assert value == ((expected + 128) % 256 - 128,)
