"""The check of conditions on `Unknown` finds each kind of condition, by mypy's types."""

from pathlib import Path

import pytest
from mypy.main import process_options

from tests.unknown_conditions import conditions_on_unknown

MODULE = """
import operator
from collections.abc import Callable
from itertools import dropwhile, filterfalse, takewhile
from typing import NamedTuple
from simplifier.unknown import Unknown

class Undecided(Unknown):
    def __bool__(self) -> bool:
        return False

class Maps(NamedTuple):
    maps: list[int]
    unknown: Unknown | None

def tested(
    x: Unknown | None, y: bool | Unknown, many: list[bool | Unknown],
    test: Callable[[int], bool | Unknown], maps: Maps, pair: tuple[int, Unknown],
    verdict: Undecided | None,
) -> object:
    if x: return 1  # found
    if maps.maps or maps.unknown: return 1  # found
    if maps.maps and (maps.maps and y): return 1  # found
    while y: pass  # found
    results: list[object] = [x or 3, 0]  # found
    results.append(3 if maps.maps else (y and 3))  # found
    results.append(not y)  # found
    results.append(not (maps.maps or x))  # found
    results.append({k for k in many if k})  # found
    results.append({k: k for k in many if k})  # found
    results.append([k for k in range(3) if k or x])  # found
    results.append(any(many))  # found
    results.append(any(pair))  # found
    results.append(any([y, 3]))  # found
    results.append(any([y for _ in range(3)]))  # found
    results.append(all(map(test, range(3))))  # found
    results.append(any(test(k) for k in range(3)))  # found
    results.append(all(y for _ in many))  # found
    results.append(1 if x else 2)  # found
    results.append([*filter(None, many)])  # found
    results.append([*filter(test, range(3))])  # found
    results.append([*filter(lambda k: y, range(3))])  # found
    results.append([*takewhile(test, range(3)), *dropwhile(test, range(3))])  # found
    results.append([*filterfalse(test, range(3))])  # found
    results.append([*map(bool, many)])  # found
    results.append(bool(y))  # found
    results.append(operator.not_(y))  # found
    match maps.maps:
        case [] if y: return 1  # found
    def inner() -> None:
        assert x  # found
    results.append(x is not None and isinstance(y, bool) and y)
    results.append(maps.maps or maps.unknown)
    results.append(any(isinstance(k, Unknown) or k for k in many))
    results.append(inner)
    if maps.maps or maps.unknown is not None: return 1
    if verdict: return 1
    if x is None or isinstance(y, Unknown): return 1
    if y: return 1
    return results
"""


@pytest.mark.slow  # mypy without a cache takes several seconds
def test_the_check_finds_every_condition(tmp_path: Path) -> None:
    file = tmp_path / "conditions_of_a_test.py"
    file.write_text(MODULE)
    sources, options = process_options([str(file)])
    options.cache_dir = str(tmp_path / "cache")
    expected = [n for n, line in enumerate(MODULE.splitlines(), 1) if line.endswith("# found")]
    places = list(conditions_on_unknown(sources, options))
    assert places == [f"{file}:{line}" for line in expected]
