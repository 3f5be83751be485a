"""The pictures of the documentation are up to date: ``make pictures`` writes them.

`tests/test_speed_history.py` has that of the measured speed.
"""

from __future__ import annotations

import pytest

from tests.drawing.gallery import FOLDER, PICTURES, REPORT
from tests.drawing.pictures import tree


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_up_to_date(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    tree(written)
    assert written == PICTURES[name]().svg + "\n", "run `make pictures`"


def test_no_other_pictures_are_stored() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*PICTURES, REPORT, "speed_history.svg"}
