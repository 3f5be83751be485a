"""What is recorded of the laws: each application, truly, and nothing when nobody asks."""

from collections.abc import Callable

import pytest

from simplifier import Expr, trace, variable
from simplifier.trace import Law, recorded
from tests.oracles import points

x, y, z = variable("x", 0, 99), variable("y", -30, 30), variable("z", 0, 7)

# fmt: off
LAWS = [
    # dividend            divisor  laws, in order
    (x * 8 + z,           4,       [Law.MULTIPLES]),
    (x + 100,             10,      [Law.MULTIPLES]),
    (z + 8,               16,      [Law.INSIDE]),
    (x % 10 + z * 10,     100,     [Law.INSIDE]),
    (x * 6,               21,      [Law.FACTOR]),
    (y * 10 + z,          100,     [Law.FACTOR]),
    (x // 3,              5,       [Law.MERGED]),
    (y // 3 + 4,          5,       [Law.MERGED]),
    ((x // 2) // 3 + z,   7,       [Law.MERGED]),
    (x * 12 + 8,          8,       [Law.FACTOR]),
    (x,                   7,       []),                          # an atom: no law applies
    (x * 3 + z,           7,       []),
]
# fmt: on


def python_function(text: str) -> Callable[[int, int, int], int]:
    """What Python computes for `text` from x, y and z: its operators round and bind as ours."""
    body = text.replace("floordiv", "//").replace("mod", "%")
    function: Callable[[int, int, int], int] = eval(f"lambda x, y, z: {body}", {"__builtins__": {}})
    return function


@pytest.mark.parametrize("dividend, divisor, laws", LAWS)
def test_the_laws_of_a_division_are_recorded(dividend: Expr, divisor: int, laws: list[Law]) -> None:
    unrecorded = dividend // divisor
    with recorded() as applied:
        found = dividend // divisor
    assert found == unrecorded
    assert [each.law for each in applied] == laws


@pytest.mark.parametrize("dividend, divisor, laws", LAWS)
def test_what_is_recorded_is_true(dividend: Expr, divisor: int, laws: list[Law]) -> None:
    with recorded() as applied:
        dividend // divisor
    for each in applied:
        before, after = python_function(each.before), python_function(each.after)
        for at in points([v for leaf in (x, y, z) for v in leaf.variables()]):
            value = before(*at.values())
            assert isinstance(value, int)
            assert value == after(*at.values()), (each, at)
        assert str(each) == f"{each.law}: {each.before} = {each.after}"


def test_a_record_inside_a_record_has_its_own_part() -> None:
    with recorded() as outer:
        x // 3 // 5
        with recorded() as inner:
            (x * 8 + z) // 4
    assert [each.law for each in inner] == [Law.MULTIPLES]
    assert [each.law for each in outer] == [Law.MERGED, Law.MULTIPLES]
    assert not trace.records


def test_a_record_ends_with_an_error() -> None:
    with pytest.raises(ValueError, match="positive"), recorded():
        x // -1
    assert not trace.records
