"""Mutations of declared shapes."""

from __future__ import annotations

import random
import re

from tests.analysis_fuzz.rows import Program, row_of

SIZES = ("0", "1", "2", "2", "3", "4", "5", "6", "7", "8", "<=3", "?")
TYPES = ("f32", "s32", "pred", "u8", "c64", "bf16", "s4", "u32", "f64", "token", "s64")
LAYOUTS = ("{0}", "{1,0}", "{0,1}", "{2,1,0}", "{1,0:T(2)}", "{0:T(2,2)}", "{}", "{0,0}", "")
_ARRAY = re.compile(r"[a-z]\w*\[[^\]]*\](?:\{[^{}]*\})?")


def change_shape(program: Program, chance: random.Random) -> None:
    """Change a declared shape: a size, the rank, the type, the layout, the nesting."""
    body, number = row_of(program, chance)
    row = body.rows[number]
    others = [r.shape for b in program.bodies for r in b.rows if r.shape]
    if not row.shape or not others:
        return
    row.shape = new_shape(row.shape, chance.choice(others), chance)


def change_shape_everywhere(program: Program, chance: random.Random) -> None:
    """Change all equal shapes alike, so that more mutants are valid."""
    shapes = [s for b in program.bodies for r in b.rows for s in _ARRAY.findall(r.shape)]
    if not shapes:
        return
    old = chance.choice(shapes)
    new = new_array(old, chance.choice(shapes), chance)
    for body in program.bodies:
        for row in body.rows:
            row.shape = row.shape.replace(old, new)


def new_shape(old: str, other: str, chance: random.Random) -> str:
    """Return a shape similar to `old`, or `other`."""
    arrays = list(_ARRAY.finditer(old))
    match chance.randrange(10):
        case 0:
            return other
        case 1:
            return f"({old})"
        case 2:
            return f"({old}, {other})"
        case 3 if old.startswith("("):
            return re.sub(r",[^,]*\)$", ")", old)
        case 4 if old.startswith("("):
            return old[1:-1]
    if not arrays:
        return other
    one = chance.choice(arrays)
    return old[: one.start()] + new_array(one[0], other, chance) + old[one.end() :]


def new_array(old: str, other: str, chance: random.Random) -> str:
    """Return an array shape similar to `old`, or an array of `other`."""
    kind, _, rest = old.partition("[")
    inside, _, layout = rest.partition("]")
    sizes = inside.split(",") if inside else []
    match chance.randrange(8):
        case 0:
            kind = chance.choice(TYPES)
        case 1:
            layout = chance.choice(LAYOUTS)
        case 2:
            sizes.insert(chance.randrange(len(sizes) + 1), chance.choice(SIZES))
            layout = ""
        case 3 if sizes:
            del sizes[chance.randrange(len(sizes))]
            layout = ""
        case 4:
            chance.shuffle(sizes)
        case 5:
            arrays = _ARRAY.findall(other)
            return chance.choice(arrays) if arrays else other
        case _ if sizes:
            sizes[chance.randrange(len(sizes))] = chance.choice(SIZES)
    return f"{kind}[{','.join(sizes)}]{layout}"


def infer_shapes(program: Program) -> None:
    """Omit shapes that the operands determine, so that more mutants are valid."""
    for body in program.bodies:
        for row in body.rows:
            if row.opcode not in DECLARED:
                row.shape = ""


_DECLARED = """
parameter constant iota broadcast reshape bitcast bitcast-convert convert custom-call rng recv
infeed async-start async-update async-done send rng-bit-generator get-dimension-size
rng-get-and-update-state
"""
DECLARED = frozenset(_DECLARED.split())
