"""A mark for tests that replace functions or limits inside of modules that the wheel compiles."""

import pytest

from indexing.cli.build import build

interpreted_only = pytest.mark.skipif(
    build() != "interpreted", reason="compiled modules call their own functions directly"
)
