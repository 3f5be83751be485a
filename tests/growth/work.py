"""Work, counted as function calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[tuple[Any, ...]]:
    """Return a list of the positional arguments of every call of ``owner.name`` from now on.

    Calls of a method record its instance first.
    """
    calls: list[tuple[Any, ...]] = []
    called = getattr(owner, name)

    def record(*arguments: Any, **keywords: Any) -> Any:
        calls.append(arguments)
        return called(*arguments, **keywords)

    monkeypatch.setattr(owner, name, record)
    return calls


def calls_in(function: Callable[[], int]) -> tuple[int, int]:
    """Return the number of function calls that a function makes, and its result."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        size = function()
    finally:
        sys.setprofile(before)
    return calls, size
