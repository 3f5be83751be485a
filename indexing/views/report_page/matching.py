"""Counterparts of the instructions of a module in another one, such as that after a pass."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from hlo.modules.forms import METADATA
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.patterns import op_name_of
from indexing.views.report_page.structure import numbers_of

Key: TypeAlias = "Hashable | None"
Evidence: TypeAlias = Literal["name", "program", "op_name"]

_NAME: Final = re.compile(r"[\w.-]+")


class Match(NamedTuple):
    """An instruction and its counterpart.

    Attributes:
        before, after: the instructions.
        by: "name": equal names; "program": equal programs that compute them, besides names; or
            "op_name": the only ones of this opcode, shape and ``op_name`` that have no other
            counterpart.
    """

    before: Instruction
    after: Instruction
    by: Evidence


def counterparts(before: Module, after: Module) -> list[Match]:
    """Return the instructions that correspond, in the order of `before`.

    Instructions with equal names correspond, in computations with equal names; ENTRY is that of the
    other module.  Further instructions of ENTRY do so by their programs, or by ``op_name``.

    >>> import hlo
    >>> text = "ENTRY e { p = f32[4] parameter(0)  n = f32[4] negate(p)  ROOT r = f32[4] exp(n) }"
    >>> other = text.replace("n =", "neg.1 =").replace("(n)", "(neg.1)").replace("exp", "cosine")
    >>> for before, after, by in counterparts(hlo.parse(text), hlo.parse(other)):
    ...     print(before.name, after.name, by)
    p p name
    n neg.1 program
    r r name
    """
    old, new = instructions_by_name(before), instructions_by_name(after)
    matches = {old[key]: Match(old[key], new[key], "name") for key in old if key in new}
    programs = _Programs()
    rest_of = _Rest(before.entry.instructions, after.entry.instructions, matches)
    matches |= rest_of.matched("program", programs.number)
    matches |= rest_of.matched("op_name", _described, is_unique=True)
    return [matches[i] for i in old.values() if i in matches]


def numbered_matches(before: Module, after: Module, matches: Sequence[Match]) -> list[Any]:
    """Return the numbers of counterparts, and the evidence of those with other names."""
    old, new = numbers_of(before), numbers_of(after)
    return [[old[one], new[other], *([] if by == "name" else [by])] for one, other, by in matches]


def instructions_by_name(module: Module) -> dict[tuple[str, str], Instruction]:
    """Return the instructions by the names of computation and instruction, "" for ENTRY."""
    return {
        ("" if c.is_entry else c.name, instruction.name): instruction
        for c in module.computations.values()
        for instruction in c.instructions
    }


class _Rest:
    """The instructions of two computations that have no counterpart yet."""

    def __init__(
        self,
        before: Iterable[Instruction],
        after: Iterable[Instruction],
        matches: dict[Instruction, Match],
    ) -> None:
        done = {match.after for match in matches.values()}
        self.before = [i for i in before if i not in matches]
        self.after = [i for i in after if i not in done]

    def matched(
        self, by: Evidence, key_of: Callable[[Instruction], Key], *, is_unique: bool = False
    ) -> dict[Instruction, Match]:
        """Return the matches of instructions with equal keys, and remove them from the rest.

        Keys that the two sides have different numbers of times decide nothing.

        Args:
            is_unique: a key that several instructions have decides nothing either.
        """
        sides: dict[Key, tuple[list[Instruction], list[Instruction]]] = defaultdict(
            lambda: ([], [])
        )
        for side, instructions in enumerate((self.before, self.after)):
            for instruction in instructions:
                sides[key_of(instruction)][side].append(instruction)
        matches = {
            one: Match(one, other, by)
            for key, (old, new) in sides.items()
            if key is not None and len(old) == len(new) and not (is_unique and len(old) > 1)
            for one, other in zip(old, new, strict=True)
        }
        self.before = [i for i in self.before if i not in matches]
        done = {match.after for match in matches.values()}
        self.after = [i for i in self.after if i not in done]
        return matches


def _described(instruction: Instruction) -> Key:
    """Return opcode, shape and ``op_name``; None without the latter."""
    name = op_name_of(instruction)
    return (instruction.opcode, str(instruction.shape), name) if name else None


class _Programs:
    """Numbers of the programs that compute instructions: equal for equal ones, besides names."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._of_instruction: dict[Instruction, int] = {}
        self._of_computation: dict[Computation, int] = {}

    def number(self, instruction: Instruction) -> int:
        """Return the number of the program that computes an instruction from parameters."""
        if instruction not in self._of_instruction:
            self._read(instruction.computation)
        return self._of_instruction[instruction]

    def _read(self, computation: Computation) -> int:
        for instruction in computation.instructions:
            called = [self._number_of(each) for each in instruction.called_computations]
            key = (
                instruction.opcode,
                str(instruction.shape),
                None if instruction.literal is None else instruction.literal.printed,
                _attributes(instruction),
                tuple(called),
                tuple([self._of_instruction[operand] for operand in instruction.operands]),
            )
            self._of_instruction[instruction] = self._intern(key)
        return self._intern((self._of_instruction[computation.root], len(computation.parameters)))

    def _number_of(self, computation: Computation) -> int:
        if computation not in self._of_computation:
            self._of_computation[computation] = self._read(computation)
        return self._of_computation[computation]

    def _intern(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _attributes(instruction: Instruction) -> Sequence[tuple[str, str]]:
    """Return the attributes besides metadata; names of computations are left out."""
    called = {computation.name for computation in instruction.called_computations}

    def without_called(text: str) -> str:
        return _NAME.sub(lambda word: "" if word[0] in called else word[0], text)

    return tuple(
        [
            (name, without_called(value.printed) if called else value.printed)
            for name, value in instruction.attributes.items()
            if name != METADATA
        ]
    )
