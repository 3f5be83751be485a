"""Outlines of modules: the places and names in regular bodies, which spare scanning the text again.

An outline belongs to one text.  The reader of modules uses it in place of `BodyScanner.scan_body`,
and makes the instructions of a computation from the text on first use: an outline has no shapes,
operands or attributes, and cannot change them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from hlo.modules.module import Computation

_CODES: Final = tuple(map(chr, [*range(35, 92), *range(93, 127), *range(161, 0x800)]))
"""A character for each opcode of a module; JSON needs no escapes for them."""


class WrongOutline(Exception):
    """An outline is not that of the text."""


class OutlinedBody(NamedTuple):
    """The body of a computation.

    Attributes:
        start: the position of its first instruction; 0 if the body is not regular.
        end: the position after its closing brace; 0 if the body is not regular.
        names: the names of its instructions, one a line.
        codes: the opcode of each instruction, as a position in `ModuleOutline.opcodes`.
    """

    start: int = 0
    end: int = 0
    names: str = ""
    codes: str = ""


@dataclass(frozen=True, slots=True)
class ModuleOutline:
    """The computations of a module.

    Attributes:
        opcodes: the distinct opcodes of regular bodies.
        bodies: the computations in text order, without those inside of instructions.

    >>> body = OutlinedBody(20, 90, "p\\nn", "#$")
    >>> outline = ModuleOutline(("parameter", "negate"), (body,))
    >>> outline.opcodes_of(body)
    ('parameter', 'negate')
    >>> ModuleOutline.of_json(outline.json()) == outline
    True
    """

    opcodes: tuple[str, ...]
    bodies: tuple[OutlinedBody, ...]

    def opcodes_of(self, body: OutlinedBody) -> tuple[str, ...]:
        """Return the opcode of each instruction of a regular body."""
        opcode_of = dict(zip(_CODES, self.opcodes, strict=False))
        return tuple([opcode_of[code] for code in body.codes])

    def json(self) -> str:
        """Return the outline as JSON."""
        return json.dumps([self.opcodes, self.bodies], ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of_json(cls, text: str) -> ModuleOutline:
        """Return the outline that `json` has written.

        Raises:
            ValueError: the text is none.
        """
        try:
            opcodes, bodies = json.loads(text)
            outline = cls(tuple(opcodes), tuple([OutlinedBody(*body) for body in bodies]))
        except TypeError:
            raise ValueError("not an outline") from None
        if not all(tuple(map(type, body)) == (int, int, str, str) for body in outline.bodies):
            raise ValueError("not the bodies of an outline")
        return outline


class BodyPlace(NamedTuple):
    """A computation that was parsed, and the place of its body; see `OutlinedBody`."""

    computation: Computation
    start: int
    end: int


def outline_of(places: Sequence[BodyPlace]) -> ModuleOutline:
    """Return the outline of the computations of a module, given in text order."""
    codes: dict[str, str] = {}
    bodies = []
    for computation, start, end in places:
        body = OutlinedBody()
        if start:
            opcodes = computation.opcodes
            new = [opcode for opcode in dict.fromkeys(opcodes) if opcode not in codes]
            if len(codes) + len(new) <= len(_CODES):  # else the parser reads the body again
                codes.update(zip(new, _CODES[len(codes) :], strict=False))
                listed = "".join([codes[opcode] for opcode in opcodes])
                body = OutlinedBody(start, end, "\n".join(computation.names), listed)
        bodies.append(body)
    return ModuleOutline(tuple(codes), tuple(bodies))


class OutlineStore(Protocol):
    """A store of outlines by the text of their modules."""

    def find(self, text: str) -> ModuleOutline | None:
        """Return the outline of exactly this text; None if the store does not have it."""

    def keep(self, text: str, outline: ModuleOutline) -> None:
        """Store the outline of a text that was parsed without an error."""
