"""What every test may use: the project's root and its examples."""

import gc
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

# One worker process a core: BLAS threads would only wait for each other, and burn the time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# XLA reads its flags at the first import of any part of it; tests of collectives need devices.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import tests.oracles  # noqa: F401 - loads the profile of Hypothesis before any test module

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


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
