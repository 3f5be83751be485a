"""`weakly_referenced`: the mark of classes whose instances need weak references."""

from __future__ import annotations

from typing import TypeVar

Class = TypeVar("Class", bound=type)


def weakly_referenced(cls: Class) -> Class:
    """Return the class; mypyc leaves decorated classes as Python classes, which have them."""
    return cls
