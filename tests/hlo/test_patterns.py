"""The regular expressions match alike in all versions of Python from 3.11 on.

Patterns avoid two faults of possessive repeats in CPython:

* gh-106052, up to 3.11.4: the match includes what the body consumed before it failed.
* gh-101955, up to 3.13.0: a repeat of groups in alternatives raises `SystemError`.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("hlo", "indexing", "simplifier")
_syntax: Any = import_module("re._parser")  # neither public nor typed
_UNITS = {_syntax.LITERAL, _syntax.NOT_LITERAL, _syntax.ANY, _syntax.IN}


def faults(pattern: str | bytes, flags: int = 0) -> list[str]:
    """Return the reason for each possessive repeat whose matches depend on the version."""
    texts = []
    for repeat in possessive(_syntax.parse(pattern, flags)):
        _, maximum, body = repeat
        operations = [operation for operation, _ in body]
        if operations != [_syntax.ATOMIC_GROUP] and (len(body) > 1 or operations[0] not in _UNITS):
            texts.append(f"gh-106052: not atomic: {body}")
        if maximum > 1 and any(op is _syntax.SUBPATTERN and av[0] for op, av in nodes(body)):
            texts.append(f"gh-101955: groups in a repeat: {body}")
    return texts


def possessive(parsed: Any) -> Iterator[Any]:
    return (value for operation, value in nodes(parsed) if operation is _syntax.POSSESSIVE_REPEAT)


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the operation and the arguments of each part of a parsed pattern."""
    if isinstance(value, _syntax.SubPattern):
        for operation, arguments in value:
            yield operation, arguments
            yield from nodes(arguments)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from nodes(part)


# fmt: off
PATTERNS = [
    (r"(?:ab?c)*+",            ["gh-106052"]),
    (r"(?:\s++|/\*x\*/)*+",    ["gh-106052"]),
    (r"(?:(?!C).)++",          ["gh-106052"]),  # a lookahead advances the position, too
    (r"(ROOT )?+",             ["gh-106052"]),
    (r"(?:<=)?+",              ["gh-106052"]),
    (r"(?>a(?:bc)*+d)?+",      ["gh-106052"]),
    (r"(?=(?:bc){2,3}+)",      ["gh-106052"]),
    (r"(?>((x)|y|z))*+",       ["gh-101955"]),
    (r"((x)|y|z)*+",           ["gh-106052", "gh-101955"]),
    (r"(?>ab?c)*+",            []),
    (r"(?>\s++|/\*x\*/)*+",    []),
    (r"(?>(ROOT ))?+",         []),
    (r"((?>ab)*+)",            []),
    (r"a++[bc]*+(?:d|e)?+.*+", []),
    (r"(?:ab)*(?:cd)+(e(f))?", []),  # backtracking repeats are right in all versions
]
# fmt: on


@pytest.mark.parametrize(("pattern", "texts"), PATTERNS)
def test_which_patterns_depend_on_the_version(pattern: str, texts: list[str]) -> None:
    assert [text.partition(": ")[0] for text in faults(pattern)] == texts


def test_no_pattern_of_the_packages_depends_on_the_version() -> None:
    """Compiled patterns, and the constants that patterns are composed of."""
    checked = 0
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if path.stem in {"__init__", "__main__"}:
                continue
            for name, value in vars(import_module(module)).items():
                if isinstance(value, re.Pattern):
                    faulty = faults(value.pattern, value.flags)
                elif isinstance(value, str) and re.search(r"[)\]*+?}]\+", value):
                    faulty = faults(value)
                else:
                    continue
                assert not faulty, (module, name, faulty)
                checked += 1
    assert checked > 100
