"""Deprecated public names still work, with a warning that gives the new name."""

from importlib import import_module

import pytest

import hlo
import indexing
from tests.test_layers import EVERY_ROOM

OLD_NAMES = [
    (package, f"{package}.{room}", old, new)
    for package, room in EVERY_ROOM
    if room
    for old, new in getattr(import_module(f"{package}.{room}"), "OLD_NAMES", {}).items()
]
PACKAGES = {"hlo": hlo, "indexing": indexing}


@pytest.mark.parametrize("package, room, old, new", OLD_NAMES, ids=lambda text: text)
def test_an_old_name_is_the_new_one_with_a_warning(
    package: str, room: str, old: str, new: str
) -> None:
    current = getattr(import_module(room), new)
    for module in (import_module(room), PACKAGES[package]):
        with pytest.warns(DeprecationWarning, match=f"{old} is deprecated: use {room}.{new}"):
            assert getattr(module, old) is current
