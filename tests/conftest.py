"""What every test may use: the project's root and its examples."""

from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.hlo"))


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder that holds the packages, the examples and the documentation."""
    return ROOT


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument `example` runs once for each module in ``examples/``."""
    if "example" in metafunc.fixturenames:
        paths: Sequence[Path] = EXAMPLES
        metafunc.parametrize("example", paths, ids=[path.name for path in paths])
