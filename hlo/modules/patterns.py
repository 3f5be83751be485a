"""Patterns of names, opcodes and metadata, and criteria that select instructions by them.

A *pattern* is a name, a glob such as ``fusion.*`` (`fnmatch`: ``*``, ``?``, ``[..]``), or a regular
expression between slashes, such as ``/^(add|mul)/``, which may match anywhere in the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Final

from hlo.modules.module import Computation, Instruction
from hlo.modules.op_source import op_name_in

_WILDCARDS: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A name, a glob, or a regular expression between slashes.

    Raises:
        ValueError: the regular expression is invalid.

    >>> [Pattern("dot.*").matches(each) for each in ("dot.7", "wrapped_dot.7")]
    [True, False]
    >>> [Pattern(r"/dot\\.\\d/").matches(each) for each in ("dot.7", "wrapped_dot.7")]
    [True, True]
    """

    text: str

    def __post_init__(self) -> None:
        _matcher(self.text)

    @property
    def is_name(self) -> bool:
        """True unless the pattern is a glob or a regular expression."""
        return not _is_regex(self.text) and not _WILDCARDS.search(self.text)

    def matches(self, text: str) -> bool:
        """Return True if `text` has the form of the pattern, or equals it."""
        return text == self.text or _matcher(self.text)(text)

    def names(self, instruction: Instruction) -> bool:
        """Return True if the pattern matches NAME, or COMPUTATION/NAME if it has a slash."""
        return self.matches(full_name(instruction) if self._has_slash else instruction.name)

    def names_some_in(self, computation: Computation) -> bool:
        """Return True if the pattern names an instruction of `computation`."""
        prefix = f"{computation.name}/" if self._has_slash else ""
        if self.is_name:
            has_prefix = self.text.startswith(prefix)
            return has_prefix and computation.has_name(self.text.removeprefix(prefix))
        return any(self.matches(f"{prefix}{name}") for name in computation.names)

    @property
    def _has_slash(self) -> bool:
        return "/" in (self.text[1:-1] if _is_regex(self.text) else self.text)


def _is_regex(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == "/"


@lru_cache(maxsize=1 << 10)
def _matcher(text: str) -> Callable[[str], bool]:
    if _is_regex(text):
        try:
            search = re.compile(text[1:-1]).search
        except re.error as error:
            raise ValueError(f"invalid regular expression {text}: {error}") from None
        return lambda name: search(name) is not None
    if not _WILDCARDS.search(text):
        return text.__eq__
    match = re.compile(translate(text)).match
    return lambda name: match(name) is not None


def full_name(instruction: Instruction) -> str:
    """Return COMPUTATION/NAME."""
    return f"{instruction.computation.name}/{instruction.name}"


def name_pattern(text: str) -> Pattern:
    """Return the pattern of an instruction's name, which may have a ``%``."""
    return Pattern(text.removeprefix("%"))


def op_name_of(instruction: Instruction) -> str:
    """Return the ``op_name`` of the metadata; empty if there is none."""
    return op_name_in(instruction.attributes.get("metadata"))


# ---------------------------------------------------------------- criteria


@dataclass(frozen=True, slots=True)
class Criterion:
    """A condition on instructions.

    Attributes:
        holds: returns True for an instruction that meets the condition.
        may_hold_in: returns False if no instruction of a computation meets it.  The instructions of
            such a computation are not made (`Computation.names`).
    """

    holds: Callable[[Instruction], bool]
    may_hold_in: Callable[[Computation], bool]


def by_name(pattern: Pattern) -> Criterion:
    """Return the criterion that the pattern names the instruction."""
    return Criterion(pattern.names, pattern.names_some_in)


def by_opcode(pattern: Pattern) -> Criterion:
    """Return the criterion that the opcode matches."""
    return Criterion(
        lambda i: pattern.matches(i.opcode), lambda c: any(map(pattern.matches, set(c.opcodes)))
    )


def by_op_name(pattern: Pattern) -> Criterion:
    """Return the criterion that the ``op_name`` in the metadata matches."""

    def may_hold_in(computation: Computation) -> bool:
        if computation.body is None:
            return True
        text, start, end = computation.module.source.text, computation.start, computation.end
        is_plain = pattern.is_name and text.find("\\", start, end) < 0
        return not is_plain or text.find(pattern.text, start, end) >= 0

    return Criterion(lambda i: pattern.matches(op_name_of(i)), may_hold_in)


def among(instructions: Collection[Instruction]) -> Criterion:
    """Return the criterion that the instruction is one of `instructions`."""
    computations = {each.computation for each in instructions}
    return Criterion(instructions.__contains__, computations.__contains__)


def any_of(criteria: Sequence[Criterion]) -> Criterion:
    """Return the criterion that one of `criteria` holds."""
    return Criterion(
        lambda i: any(each.holds(i) for each in criteria),
        lambda c: any(each.may_hold_in(c) for each in criteria),
    )


def matching(
    computations: Iterable[Computation], criteria: Sequence[Criterion]
) -> list[Instruction]:
    """Return the instructions of `computations` that meet all criteria, in text order.

    >>> from hlo.formats.parser import parse
    >>> module = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
    >>> matching([module.entry], [by_opcode(Pattern("n*"))])
    [<negate 'n' of 'e'>]
    """
    return [
        instruction
        for computation in computations
        if all(each.may_hold_in(computation) for each in criteria)
        for instruction in computation.instructions
        if all(each.holds(instruction) for each in criteria)
    ]
