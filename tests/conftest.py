"""Fixtures of all tests: the project's root and its examples."""

import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest

# There is one worker process per core: BLAS threads would only compete.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# XLA reads its flags on its first import; tests of collectives need devices.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

# Compilers for other devices may be installed; tests compute on the CPU.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Background jobs ignore interrupts, or the end of the terminal, and the processes that tests
# interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

import tests.oracles  # noqa: F401 - loads the Hypothesis profile before any test module
from tests import memos

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.hlo"))


@pytest.fixture(scope="session")
def root() -> Path:
    """Folder of the packages, examples and documentation."""
    return ROOT


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Use a new cache folder, also in the processes that tests start."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Restore what the process does on SIGINT, which a command ignores at its end."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def forget_maps() -> Iterator[Callable[[], None]]:
    """Forget the memoised maps of ops, now, when it is called, and after the test.

    For tests with wrong maps: what the process memoised would hide them, and show them later.
    """
    forget = partial(memos.forget, *memos.OF_MAPS)
    forget()
    yield forget
    forget()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with an argument `example` once for each module in ``examples/``."""
    if "example" in metafunc.fixturenames:
        paths: Sequence[Path] = EXAMPLES
        metafunc.parametrize("example", paths, ids=[path.name for path in paths])


SAMPLING = {"given", "sampled", "scaled"}
"""Names of the functions that draw fewer cases if ``FUZZ`` is less than 1."""


CALLING_SIMPLIFIER = ("simplifier", "indexing", "tiling")
"""Folders of the tests of what calls the modules of the simplifier most."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        help=f"run one in N tests, but all tests of {', '.join(CALLING_SIMPLIFIER)}",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that draw some of their cases; tests whose helpers draw are marked there."""
    one_in = config.getoption("--one-in")
    items[:] = [
        item
        for item in items
        if item.path.relative_to(config.rootpath).parts[1] in CALLING_SIMPLIFIER
        or crc32(item.nodeid.encode()) % one_in == 0
    ]
    for item in items:
        if isinstance(item, pytest.Function):
            code = getattr(item.function, "__code__", None)
            is_random = getattr(item.function, "is_hypothesis_test", False)
            if is_random or (code and SAMPLING & {*code.co_names}):
                item.add_marker(pytest.mark.sampled)


def pytest_collection_finish() -> None:
    """Exclude imported modules and collected tests from garbage collection."""
    gc.collect()
    gc.freeze()
