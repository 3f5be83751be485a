"""Modules with inputs and stored results of XLA's CPU backend (``data/``).

Integers are equal; floating-point results differ by at most 4e-6 of the largest element.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hlo
from indexing.execution import archive, run

DATA = Path(__file__).parent / "data"
MODULES = sorted(path.stem for path in DATA.glob("*.hlo"))
ROUNDING = 4e-6


def test_all_stored_modules_exist() -> None:
    assert len(MODULES) == 32


@pytest.mark.parametrize("name", MODULES)
def test_a_module_reproduces_the_stored_results(name: str, tmp_path: Path) -> None:
    module = hlo.load(str(DATA / f"{name}.hlo"))
    given = archive.read(str(DATA / f"{name}.npz"), module.entry, devices=1, seed=0)
    written = tmp_path / "out.npz"
    archive.write(str(written), archive.name_results([run(module, given.inputs)]))
    actual, expected = np.load(written), np.load(DATA / f"{name}.npz")
    names = [key for key in expected.files if key.startswith("out")]
    assert actual.files == names
    for key in names:
        assert (actual[key].dtype, actual[key].shape) == (expected[key].dtype, expected[key].shape)
        if actual[key].dtype.kind in "fc":
            scale = np.abs(expected[key]).max(initial=0)
            np.testing.assert_allclose(actual[key], expected[key], rtol=0, atol=ROUNDING * scale)
        else:
            np.testing.assert_array_equal(actual[key], expected[key])
