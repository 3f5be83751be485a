"""Modules with inputs and the results that XLA's CPU backend gave for them (``data/``).

Integers are equal; floating numbers differ by rounding only, 4e-6 of the largest one at most.
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


def test_there_are_modules() -> None:
    assert len(MODULES) == 32


@pytest.mark.parametrize("name", MODULES)
def test_a_module_reproduces_the_stored_results(name: str, tmp_path: Path) -> None:
    module = hlo.load(str(DATA / f"{name}.hlo"))
    given = archive.read(str(DATA / f"{name}.npz"), module.entry, devices=1, seed=0)
    written = tmp_path / "out.npz"
    archive.write(str(written), archive.named([run(module, given.inputs)]))
    found, wanted = np.load(written), np.load(DATA / f"{name}.npz")
    names = [key for key in wanted.files if key.startswith("out")]
    assert found.files == names
    for key in names:
        assert (found[key].dtype, found[key].shape) == (wanted[key].dtype, wanted[key].shape)
        if found[key].dtype.kind in "fc":
            scale = np.abs(wanted[key]).max(initial=0)
            np.testing.assert_allclose(found[key], wanted[key], rtol=0, atol=ROUNDING * scale)
        else:
            np.testing.assert_array_equal(found[key], wanted[key])
