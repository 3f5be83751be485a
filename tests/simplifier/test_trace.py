"""Records of applied laws: complete, true, and empty outside a record."""

from collections.abc import Callable
from typing import Any

import pytest

from simplifier import Expr, trace, variable
from simplifier.laws import BOUND_MOD as MOD
from simplifier.laws import CANCEL_COMMON_FACTOR as FACTOR
from simplifier.laws import FACTOR_OUT_MULTIPLES as MULTIPLES
from simplifier.laws import FOLD_CONSTANT_FLOOR as CONSTANT
from simplifier.laws import MERGE_FLOORS as MERGE
from simplifier.laws import RECOMBINE_MOD as RECOMBINE
from simplifier.trace import Law, memoised, record_laws
from tests.oracles import points

x, y, z = variable("x", 0, 99), variable("y", -30, 30), variable("z", 0, 7)

# fmt: off
LAWS = [
    # dividend            divisor  laws, in order
    (x * 8 + z,           4,       [MULTIPLES]),
    (x + 100,             10,      [MULTIPLES]),
    (z + 8,               16,      [CONSTANT]),
    (x % 10 + z * 10,     100,     [RECOMBINE, MOD, CONSTANT]),
    (x * 6,               21,      [FACTOR]),
    (y * 10 + z,          100,     [FACTOR]),
    (x // 3,              5,       [MERGE]),
    (y // 3 + 4,          5,       [MERGE]),
    ((x // 2) // 3 + z,   7,       [MERGE]),
    (x * 12 + 8,          8,       [FACTOR]),
    (x,                   7,       []),                          # an atom: no law applies
    (x * 3 + z,           7,       []),
]
# fmt: on


def python_function(text: str) -> Callable[[int, int, int], Any]:
    """Python's function of x, y and z for `text`: its operators round and bind alike."""
    body = text.replace("floordiv", "//").replace("mod", "%")
    function: Callable[[int, int, int], Any] = eval(f"lambda x, y, z: {body}", {"__builtins__": {}})
    return function


@pytest.mark.parametrize("dividend, divisor, laws", LAWS)
def test_the_laws_of_a_division_are_recorded(dividend: Expr, divisor: int, laws: list[Law]) -> None:
    unrecorded = dividend // divisor
    with record_laws() as applied:
        quotient = dividend // divisor
    assert quotient == unrecorded
    assert [each.law for each in applied] == laws


@pytest.mark.parametrize("dividend, divisor, laws", LAWS)
def test_recorded_laws_are_true(dividend: Expr, divisor: int, laws: list[Law]) -> None:
    with record_laws() as applied:
        dividend // divisor
    for each in applied:
        before, after = python_function(each.before), python_function(each.after)
        for at in points([v for leaf in (x, y, z) for v in leaf.variables()]):
            value, other = before(*at.values()), after(*at.values())
            assert isinstance(value, int)
            if each.law.sign == "in":
                lower, upper = other
                assert lower <= value <= upper, (each, at)
            else:
                assert value == other, (each, at)
        assert str(each) == f"{each.law}: {each.before} {each.law.sign} {each.after}"


def test_a_nested_record_has_only_its_own_laws() -> None:
    with record_laws() as outer:
        x // 3 // 5
        with record_laws() as inner:
            (x * 8 + z) // 4
    assert [each.law for each in inner] == [MULTIPLES]
    assert [each.law for each in outer] == [MERGE, MULTIPLES]
    assert not trace.records


def test_a_record_ends_with_an_error() -> None:
    with pytest.raises(ValueError, match="positive"), record_laws():
        x // -1
    assert not trace.records


def test_laws_of_memoised_results_are_recorded() -> None:
    for _ in range(2):
        with record_laws() as applied:
            (x * 8 + z) // 4
        assert [each.law for each in applied] == [MULTIPLES]


def test_memoised_functions_compute_once_until_a_record_starts() -> None:
    calls = []

    @memoised(8)
    def double(value: int) -> int:
        calls.append(value)
        return value * 2

    assert [double(4), double(4)] == [8, 8]
    assert calls == [4]
    with record_laws():
        assert double(4) == 8
    assert calls == [4, 4]


def test_records_of_equal_content_end_in_any_order() -> None:
    with record_laws() as outer:
        with record_laws():
            pass
        (x * 8 + z) // 4
    assert [each.law for each in outer] == [MULTIPLES]
