"""Mutations of modules on the level of structure: operands, shapes, attributes, calls, order.

`mutant` applies one to three of them. Names stay defined before their use, so that most mutants
parse: the analysis is tested, not the parser (`tests.hlo.fuzz`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from hlo.text.syntax import CALLEE_ATTRIBUTES
from tests.analysis_fuzz.rows import Body, Program, Row, body_of, earlier, fresh_name, row_of
from tests.analysis_fuzz.shape_mutants import change_shape, change_shape_everywhere, infer_shapes
from tests.hlo.fuzz import mutate as mutated_text

Mutation = Callable[[Program, random.Random], object]

NUMBERS = ("0", "1", "2", "3", "4", "5", "7", "-1", "9")
HEADERS = (
    "num_partitions=2",
    "num_partitions=4",
    "replica_count=2",
    "replica_count=3, num_partitions=2",
    "is_scheduled=true",
)


def mutant(programs: Sequence[Program], seed: int) -> str:
    """Return the text of a mutant of one of `programs`, determined by the seed."""
    chance = random.Random(seed)
    program = programs[seed % len(programs)].copy()
    for _ in range(chance.choice([1, 1, 1, 2, 2, 3])):
        if chance.randrange(12) == 0:
            splice(program, chance, chance.choice(programs))
        else:
            chance.choice(MUTATIONS)(program, chance)
    if chance.randrange(3) == 0:
        infer_shapes(program)
    text = str(program)
    return mutated_text(text, seed) if chance.randrange(20) == 0 else text


# ---------------------------------------------------------------- operands


def change_operands(program: Program, chance: random.Random) -> None:
    """Swap, replace, drop, repeat or append operands of one instruction."""
    body, number = row_of(program, chance)
    row = body.rows[number]
    other = earlier(body, number, chance)
    if row.literal is not None or other is None:
        return
    at = chance.randrange(len(row.operands)) if row.operands else None
    match chance.randrange(6):
        case 0:
            chance.shuffle(row.operands)
        case 1 if at is not None:
            del row.operands[at]
        case 2:
            row.operands.append(other)
        case 3 if at is not None:
            row.operands.insert(at, row.operands[at])
        case _ if at is not None:
            row.operands[at] = other


def wrap_operand(program: Program, chance: random.Random) -> None:
    """Pass one operand through a tuple, with or without a get-tuple-element."""
    body, number = row_of(program, chance)
    row = body.rows[number]
    if not row.operands:
        return
    at = chance.randrange(len(row.operands))
    inner = next(r for r in body.rows if r.name == row.operands[at])
    if not inner.shape:
        return
    name = fresh_name(body, "wrapped")
    new = [Row(name, f"({inner.shape})", "tuple", [inner.name], None, {})]
    if chance.randrange(2):
        element = fresh_name(body, "element")
        index = {"index": chance.choice(["0", "0", "0", "1"])}
        new.append(Row(element, inner.shape, "get-tuple-element", [name], None, index))
        name = element
    row.operands[at] = name
    body.rows[number:number] = new


# ---------------------------------------------------------------- attributes


def change_attribute(program: Program, chance: random.Random) -> None:
    """Change numbers of an attribute, remove it, or take that of another instruction."""
    body, number = row_of(program, chance)
    row = body.rows[number]
    others = [r for b in program.bodies for r in b.rows if r.attributes]
    if not others:
        return
    other = chance.choice(others)
    taken = chance.choice(list(other.attributes))
    if not row.attributes:
        row.attributes[taken] = other.attributes[taken]
        return
    name = chance.choice(list(row.attributes))
    match chance.randrange(12):
        case 0:
            del row.attributes[name]
        case 1:
            row.attributes[taken] = other.attributes[taken]
        case 2:
            row.attributes[name] = other.attributes[taken]
        case 3:
            row.attributes[name] = re.sub(r"\{[^{},]*,", "{", row.attributes[name], count=1)
        case 4:
            row.attributes[name] = re.sub(r"(\d+)\}", r"\1,\1}", row.attributes[name], count=1)
        case 5:
            swapped = re.sub(r"(\d+)([,x])(-?\d+)", r"\3\2\1", row.attributes[name], count=1)
            row.attributes[name] = swapped
        case 6:
            flipped = {"true": "false", "false": "true"}.get(row.attributes[name], "true")
            row.attributes[name] = flipped
        case _:
            row.attributes[name] = new_number(row.attributes[name], chance)


def new_number(text: str, chance: random.Random) -> str:
    """Return `text` with one number changed."""
    numbers = list(re.finditer(r"-?\d+", text))
    if not numbers:
        return text
    one = chance.choice(numbers)
    return text[: one.start()] + chance.choice(NUMBERS) + text[one.end() :]


def change_literal(program: Program, chance: random.Random) -> None:
    """Change the number of a parameter or the value of a constant."""
    rows = [row for body in program.bodies for row in body.rows if row.literal is not None]
    if rows:
        row = chance.choice(rows)
        assert row.literal is not None
        row.literal = new_number(row.literal, chance)


def change_header(program: Program, chance: random.Random) -> None:
    """Change the number of devices."""
    program.header = f"HloModule m, {chance.choice(HEADERS)}"


# ---------------------------------------------------------------- calls


def change_callee(program: Program, chance: random.Random) -> None:
    """Let an instruction call other computations, or swap them."""
    callers = [
        (k, row, name)
        for k, body in enumerate(program.bodies)
        for row in body.rows
        for name in row.attributes
        if k and name in CALLEE_ATTRIBUTES
    ]
    if not callers:
        return
    k, row, name = chance.choice(callers)
    other = chance.choice(program.bodies[:k]).name
    text = row.attributes[name]
    if not text.startswith("{"):
        called = [n for n in row.attributes if n in CALLEE_ATTRIBUTES]
        if len(called) > 1 and chance.randrange(3) == 0:
            first, second = chance.sample(called, 2)
            attributes = row.attributes
            attributes[first], attributes[second] = attributes[second], attributes[first]
        elif chance.randrange(8) == 0:
            row.attributes[name] = f"{{{text}, {other}}}"
        else:
            row.attributes[name] = other
        return
    names = [each.strip() for each in text[1:-1].split(",") if each.strip()]
    match chance.randrange(4):
        case 0 if names:
            del names[chance.randrange(len(names))]
        case 1:
            names.append(other)
        case 2:
            chance.shuffle(names)
        case _ if names:
            names[chance.randrange(len(names))] = other
    row.attributes[name] = f"{{{', '.join(names)}}}"


# ---------------------------------------------------------------- instructions


def delete(program: Program, chance: random.Random) -> None:
    """Delete an instruction; its users take one of its operands or another instruction."""
    body, number = row_of(program, chance)
    if len(body.rows) < 2:
        return
    row = body.rows.pop(number)
    name = chance.choice(row.operands) if row.operands else body.rows[0].name
    for user in body.rows:
        user.operands = [name if operand == row.name else operand for operand in user.operands]
    if row.is_root:
        body.rows[-1].is_root = True


def duplicate(program: Program, chance: random.Random) -> None:
    """Repeat an instruction; some of its users take the copy."""
    body, number = row_of(program, chance)
    row = body.rows[number]
    name = fresh_name(body, row.name.split(".")[0])
    for user in body.rows[number + 1 :]:
        user.operands = [name if o == row.name and chance.randrange(2) else o
                         for o in user.operands]  # fmt: skip
    copy = row.copy()
    copy.name, copy.is_root = name, False
    body.rows.insert(number + 1, copy)


def reorder(program: Program, chance: random.Random) -> None:
    """Swap an instruction with the next one."""
    body, number = row_of(program, chance)
    if number + 1 < len(body.rows):
        rows = body.rows
        rows[number], rows[number + 1] = rows[number + 1], rows[number]


def change_root(program: Program, chance: random.Random) -> None:
    """Return another instruction."""
    body, number = row_of(program, chance)
    for row in body.rows:
        row.is_root = False
    body.rows[number].is_root = True


def change_opcode(program: Program, chance: random.Random) -> None:
    """Give an instruction the opcode of another one, or of its start, done or update."""
    body, number = row_of(program, chance)
    row = body.rows[number]
    if row.literal is not None:
        return
    base = re.sub("-(start|done|update)$", "", row.opcode)
    opcodes = [r.opcode for b in program.bodies for r in b.rows if r.literal is None]
    variants = [base, f"{base}-start", f"{base}-done", f"{base}-update"]
    row.opcode = chance.choice([*opcodes, *opcodes, *variants])


def change_name(program: Program, chance: random.Random) -> None:
    """Give an instruction the name of one in another computation, or of a computation."""
    body, number = row_of(program, chance)
    old = body.rows[number].name
    other = chance.choice(program.bodies)
    new = chance.choice([other.name, *(row.name for row in other.rows)])
    if new in {row.name for row in body.rows}:
        return
    body.rows[number].name = new
    for user in body.rows:
        user.operands = [new if operand == old else operand for operand in user.operands]


def splice(program: Program, chance: random.Random, other: Program) -> None:
    """Insert an instruction of another module, with the computations that it calls."""
    source = body_of(other, chance)
    row = chance.choice(source.rows).copy()
    body, number = row_of(program, chance)
    names = {each.name for each in program.bodies}
    for name, text in row.attributes.items():
        if name in CALLEE_ATTRIBUTES:
            called = [each.strip() for each in text.strip("{}").split(",")]
            for each in other.bodies:
                if each.name in called and each.name not in names:
                    copies = [inner.copy() for inner in each.rows]
                    if any(n in CALLEE_ATTRIBUTES for c in copies for n in c.attributes):
                        return
                    program.bodies.insert(0, Body(each.name, copies))
                    names.add(each.name)
    row.operands = [
        earlier(body, number, chance) or body.rows[0].name for _ in range(len(row.operands))
    ]
    row.name, row.is_root = fresh_name(body, "spliced"), False
    body.rows.insert(number, row)
    for user in body.rows[number + 1 :]:
        if user.operands and chance.randrange(2):
            user.operands[chance.randrange(len(user.operands))] = row.name
            return


MUTATIONS: Sequence[Mutation] = (
    change_operands,
    change_operands,
    wrap_operand,
    change_shape,
    change_shape,
    change_shape_everywhere,
    change_shape_everywhere,
    change_attribute,
    change_attribute,
    change_attribute,
    change_literal,
    change_header,
    change_callee,
    change_callee,
    delete,
    duplicate,
    reorder,
    change_root,
    change_opcode,
    change_name,
)
