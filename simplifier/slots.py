"""Setters of the slots of read-only classes, for their own constructors.

The constructor that `dataclasses` writes for a frozen class calls ``object.__setattr__`` for each
field, which takes twice as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Setter: TypeAlias = Callable[[Any, Any], None]
"""Sets one slot of an object: ``setter(instance, value)``."""


def setters(cls: type, *names: str) -> tuple[Setter, ...]:
    """Return the setters of these slots, which set them whatever ``cls.__setattr__`` refuses.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    >>> point = Point(3)
    >>> (set_x,) = setters(Point, "x")
    >>> set_x(point, 4)
    >>> point
    Point(x=4)
    """
    return tuple([cls.__dict__[name].__set__ for name in names])
