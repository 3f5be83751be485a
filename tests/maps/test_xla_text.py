"""XLA's text of maps since 2026: ``/`` for a floor division, negative moduli, ``min``, ``max``."""

from __future__ import annotations

import re
from itertools import product
from typing import TypeAlias

import pytest

from indexing import parse_map
from indexing.maps.interchange import from_mlir
from indexing.maps.interchange.mlir import to_xla

PRINTED = [  # by XLA's emitters for an H100, jaxlib 0.10.2
    "(bl_x) -> ((bl_x / 2) mod 4), domain: bl_x in [0, 15]",
    "(th_x) -> ((th_x / 11) * -14 + th_x mod 11 + 112), domain: th_x in [0, 98]",
    "(th_x) -> (-(th_x / 11) + 8), domain: th_x in [0, 98]",
    "(pid_0) -> ((pid_0 mod 3) * 16), domain: pid_0 in [0, 11]",
    "(th_x, d1) -> (d1 * 4 + th_x / 32), domain: th_x in [0, 127], d1 in [0, 7]",
    "(d0, d1) -> (((d0 * 3 + 5) mod 14) * 13 + ((d0 * 3 + 5) / 14) * 143 + d1 * 2 - 40), "
    "domain: d0 in [0, 28], d1 in [0, 7]",
]
WRITTEN = [
    "(a, b) -> ((a - 7) / 3, (a - b) / -3, a/2/2), domain: a in [0, 9], b in [0, 9]",
    "(a, b) -> ((a - 7) mod -3, b mod -1, (a - b) mod 4), domain: a in [0, 9], b in [0, 9]",
    "(a, b) -> ((a - 7) floorDiv 3, (a - b) ceilDiv 3), domain: a in [0, 9], b in [0, 9]",
    "(a, b) -> ((a - b) ceildiv -3 + a / 2 * 2), domain: a in [0, 9], b in [0, 9]",
    "(a, b) -> (min(a, b, 3), max(a - b, b / 2)), domain: a in [0, 9], b in [0, 9]",
    "(a, floorDiv) -> (a floorDiv 2 + floorDiv), domain: a in [0, 9], floorDiv in [0, 9]",
]


class Index:
    """An integer with XLA's operations: a remainder is in ``[0, |divisor|)``."""

    def __init__(self, value: Number) -> None:
        self.value: int = int(value)

    def __int__(self) -> int:
        return self.value

    def __lt__(self, other: Number) -> bool:
        return self.value < int(other)

    def __gt__(self, other: Number) -> bool:
        return self.value > int(other)

    def __truediv__(self, other: Number) -> Index:
        return Index(self.value // int(other))

    def __mod__(self, other: Number) -> Index:
        return Index(self.value % abs(int(other)))

    def __pow__(self, other: Number) -> Index:  # stands for ceildiv
        return Index(-(-self.value // int(other)))

    def __add__(self, other: Number) -> Index:
        return Index(self.value + int(other))

    def __sub__(self, other: Number) -> Index:
        return Index(self.value - int(other))

    def __mul__(self, other: Number) -> Index:
        return Index(self.value * int(other))

    def __neg__(self) -> Index:
        return Index(-self.value)


Number: TypeAlias = Index | int


def values(text: str) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The results at each point, by Python's own parser."""
    head, results, domain = re.match(r"\((.*?)\) -> \((.*)\), domain: (.*)", text).groups()  # type: ignore[union-attr]
    names = head.split(", ")
    bounds = dict(re.findall(r"(\w+) in \[0, (\d+)\]", domain))
    code = re.sub(r"(?<=\S) (?:floordiv|floorDiv) (?=\d)", " / ", results)
    code = re.sub(r" (?:ceildiv|ceilDiv) ", " ** ", code).replace(" mod ", " % ")
    points = product(*[range(int(bounds[name]) + 1) for name in names])
    known = {"min": lambda *x: Index(min(x)), "max": lambda *x: Index(max(x))}
    return {
        point: tuple(
            map(int, eval(f"({code},)", known, dict(zip(names, map(Index, point), strict=True))))
        )
        for point in points
    }


@pytest.mark.parametrize("text", [*PRINTED, *WRITTEN[:3], *WRITTEN[4:]])
def test_operators_have_the_values_of_xla(text: str) -> None:
    m = parse_map(text)
    for point, results in values(text).items():
        assert m(*point) == results, point


def test_a_quotient_rounded_up_by_a_negative_number_is_a_floor() -> None:
    m = parse_map(WRITTEN[3])
    assert m(1, 6) == (2 + 0,)  # -5 / -3 rounds up to 2
    assert m(6, 1) == (-1 + 6,)  # 5 / -3 rounds up to -1


@pytest.mark.parametrize("text", [*PRINTED, *WRITTEN[:-1]])
def test_maps_print_in_the_forms_of_both_years_and_are_read_again(text: str) -> None:
    m = parse_map(text)
    new, old = to_xla(m), m.to_xla("floordiv")
    assert "floordiv" not in new
    assert "/" not in old
    assert parse_map(new) == parse_map(old) == m
    assert from_mlir(f'#xla.indexing_map<"{new}">') == m


def test_variables_may_have_the_names_of_operators() -> None:
    m = parse_map(WRITTEN[-1])
    assert parse_map(str(m)) == m
    assert m.to_xla().startswith("(a, x0) -> (x0 + a / 2)")


def test_the_text_of_a_map_has_one_name_for_each_operator() -> None:
    text = "(a) -> ((a/3 + 1)/2 ceilDiv 5), domain: a in [0, 99]"
    assert not re.search("/|Div", str(parse_map(text)))


def test_the_isl_proof_reads_the_same_operators() -> None:
    from indexing.maps.certificate import CertificateError, prove_text

    for text in (*PRINTED, *WRITTEN[:3]):
        prove_text(text, parse_map(text).simplify())
    with pytest.raises(CertificateError):
        prove_text(
            "(a) -> (a / 2), domain: a in [0, 9]",
            parse_map("(a) -> ((a + 1) / 2), domain: a in [0, 9]"),
        )
