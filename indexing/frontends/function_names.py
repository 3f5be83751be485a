"""Names of functions of JAX at the shell: ``jax:FILE.py:FUNCTION`` and ``jax:MODULE:FUNCTION``."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "jax:"
"""Begins the name of an input that is a function."""

EXAMPLE: Final = "jax:layers.py:attention"
FORM: Final = "jax:FILE.py:FUNCTION or jax:MODULE:FUNCTION"


def is_function(name: str) -> bool:
    """Return True if an input is a function of JAX.

    >>> is_function("jax:layers.py:mlp"), is_function("m.hlo")
    (True, False)
    """
    return name.startswith(PREFIX)


def split_name(name: str) -> tuple[str, str]:
    """Return the file or module, and the function, that a name has.

    Raises:
        ValueError: the text is no such name.

    >>> split_name("jax:layers.py:mlp")
    ('layers.py', 'mlp')
    """
    place, _, function = name.removeprefix(PREFIX).rpartition(":")
    if not place or not function:
        raise ValueError(f"{name!r} names no function: write {FORM}, such as {EXAMPLE}")
    return place, function
