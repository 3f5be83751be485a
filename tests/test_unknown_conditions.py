"""The check of conditions on `Unknown` finds each kind of condition, by mypy's types."""

from pathlib import Path

import pytest
from mypy.modulefinder import BuildSource

from tests.unknown_conditions import conditions_on_unknown

MODULE = """
from simplifier.unknown import Unknown

def tested(x: Unknown | None, y: bool | Unknown, many: list[bool | Unknown]) -> object:
    if x: return 1  # found
    while y: pass  # found
    results: list[object] = [x or 3, 0]  # found
    results.append(not y)  # found
    results.append({k for k in many if k})  # found
    results.append([k for k in range(3) if k or x])  # found
    results.append(any(many))  # found
    results.append(all(y for _ in many))  # found
    results.append(1 if x else 2)  # found
    results.append([*filter(None, many)])  # found
    results.append(bool(y))  # found
    results.append(x is not None and isinstance(y, bool) and y)
    results.append(any(isinstance(k, Unknown) or k for k in many))
    assert x  # found
    return results
"""


@pytest.mark.slow  # mypy without a cache takes several seconds
def test_the_check_finds_every_condition(tmp_path: Path) -> None:
    file = tmp_path / "conditions_of_a_test.py"
    file.write_text(MODULE)
    expected = [n for n, line in enumerate(MODULE.splitlines(), 1) if line.endswith("# found")]
    places = list(conditions_on_unknown([BuildSource(str(file), "conditions_of_a_test")]))
    assert places == [f"{file}:{line}" for line in expected]
