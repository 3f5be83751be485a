"""The versions that an answer may depend on, compared between the processes of a cluster."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, TypeAlias

Environment: TypeAlias = dict[str, str]
"""The version of each package, by name; "none" if it is not installed."""

PACKAGES: Final = ("islpy", "jax", "jaxlib", "ml_dtypes", "numpy", "scipy", "sympy")


@cache
def environment() -> Environment:
    """Return the versions of this process: of Python, of hlo-indexing and what it imports.

    The version of hlo-indexing has a digest of its modules, since a checkout may have changes.

    >>> list(environment())[:3]
    ['Python', 'hlo-indexing', 'islpy']
    """
    python = ".".join(platform.python_version_tuple()[:2])
    own = f"{version_of('hlo-indexing')} ({_digest()})"
    return {
        "Python": python,
        "hlo-indexing": own,
        **{name: version_of(name) for name in PACKAGES},
    }


def differences(ours: Environment, theirs: Environment) -> list[str]:
    """Return one phrase for each version that differs.

    >>> differences({"Python": "3.13", "numpy": "2.0"}, {"Python": "3.11", "numpy": "2.0"})
    ['Python 3.11, here 3.13']
    """
    return [
        f"{name} {theirs.get(name, 'none')}, here {version}"
        for name, version in ours.items()
        if theirs.get(name, "none") != version
    ]


def version_of(package: str) -> str:
    """Return the version of an installed package, or "none"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _digest() -> str:
    """Return a digest of the sources of all modules."""
    root = Path(__file__).parents[2]
    total = hashlib.blake2b(digest_size=4)
    for package in ("hlo", "indexing", "simplifier"):
        for module in sorted((root / package).rglob("*.py")):
            total.update(module.relative_to(root).as_posix().encode())
            total.update(module.read_bytes())
    return total.hexdigest()
