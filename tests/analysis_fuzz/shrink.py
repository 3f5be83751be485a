"""Smaller modules that fail in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import hlo
from tests.analysis_fuzz.rows import Program


def shrunk(text: str, fails: Callable[[str], bool]) -> str:
    """Return a smaller text for which `fails`, without computations, rows and attributes."""
    try:
        program = Program.of(hlo.parse(text))
    except hlo.HloError:
        return text
    if not fails(str(program)):
        return text
    while True:
        smaller = next((each for each in _smaller(program) if fails(str(each))), None)
        if smaller is None:
            return str(program)
        program = smaller


def _smaller(program: Program) -> Iterator[Program]:
    """Yield programs with one part less, larger parts first."""
    for number in reversed(range(len(program.bodies))):
        copy = program.copy()
        del copy.bodies[number]
        if copy.bodies:
            yield copy
    for b, body in enumerate(program.bodies):
        for r in reversed(range(len(body.rows))):
            yield from _without_row(program, b, r)
    if program.header != "HloModule m":
        copy = program.copy()
        copy.header = "HloModule m"
        yield copy
    for b, body in enumerate(program.bodies):
        for r, row in enumerate(body.rows):
            for name in row.attributes:
                copy = program.copy()
                del copy.bodies[b].rows[r].attributes[name]
                yield copy
            for k in range(len(row.operands)):
                copy = program.copy()
                del copy.bodies[b].rows[r].operands[k]
                yield copy


def _without_row(program: Program, b: int, r: int) -> Iterator[Program]:
    row = program.bodies[b].rows[r]
    for name in row.operands[:1] or [""]:
        copy = program.copy()
        rows = copy.bodies[b].rows
        del rows[r]
        for user in rows:
            user.operands = [name if o == row.name else o for o in user.operands]
        if row.is_root and rows:
            rows[-1].is_root = True
        yield copy
    if row.operands and row.shape:  # a parameter in its place
        literals = [x.literal or "" for x in program.bodies[b].rows if x.opcode == "parameter"]
        numbers = [int(text) for text in literals if text.isdecimal()]
        copy = program.copy()
        new = copy.bodies[b].rows[r]
        new.opcode, new.operands, new.attributes = "parameter", [], {}
        new.literal = str(max(numbers, default=-1) + 1)
        yield copy
