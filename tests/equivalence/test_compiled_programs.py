"""Programs before and after all passes of a compiler, each of which needs several laws at once.

They are stored without metadata.  ``NAME.pre.hlo`` becomes ``NAME.opt.hlo``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Differs, Proved

PROGRAMS: Final = Path(__file__).parent / "data" / "programs"
NAMES: Final = sorted(path.name.removesuffix(".pre.hlo") for path in PROGRAMS.glob("*.pre.hlo"))

MUTANTS: Final = {
    # name: (text of the program after, text in its place)
    "gpu_autoencoder_grad": ("window={size=9x9 rhs_reversal=1x1}", "window={size=9x9}"),
}


def pair(name: str) -> tuple[hlo.Module, hlo.Module]:
    before, after = (hlo.load(PROGRAMS / f"{name}.{stage}.hlo") for stage in ("pre", "opt"))
    return before, after


@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_program_is_proved(name: str) -> None:
    verdict = equivalent(*pair(name))
    assert isinstance(verdict, Proved), verdict
    assert verdict.level == "values"


@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_differs(name: str) -> None:
    before, _ = pair(name)
    text = (PROGRAMS / f"{name}.opt.hlo").read_text()
    old, new = MUTANTS[name]
    assert old in text
    verdict = equivalent(before, hlo.parse(text.replace(old, new, 1)))
    assert isinstance(verdict, Differs), verdict
