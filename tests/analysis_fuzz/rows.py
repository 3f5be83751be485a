"""A module as editable rows: each instruction is a row of texts, and all references are names."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import hlo
from hlo.text.syntax import attributes_text


@dataclass
class Row:
    """One instruction."""

    name: str
    shape: str
    opcode: str
    operands: list[str]
    literal: str | None
    attributes: dict[str, str]
    is_root: bool = False

    def copy(self) -> Row:
        """Return a row that can be edited independently."""
        return replace(self, operands=list(self.operands), attributes=dict(self.attributes))

    def __str__(self) -> str:
        inside = ", ".join(self.operands) if self.literal is None else self.literal
        attributes = "".join([f", {name}={text}" for name, text in self.attributes.items()])
        head = f"{'ROOT ' if self.is_root else ''}{self.name} = {self.shape}".rstrip()
        return f"  {head} {self.opcode}({inside}){attributes}"


@dataclass
class Body:
    """One computation."""

    name: str
    rows: list[Row]
    is_entry: bool = False

    def __str__(self) -> str:
        head = f"{'ENTRY ' if self.is_entry else ''}{self.name} {{"
        return "\n".join([head, *map(str, self.rows), "}"])


@dataclass
class Program:
    """One module."""

    header: str
    bodies: list[Body] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n\n".join([self.header, *map(str, self.bodies)]) + "\n"

    def copy(self) -> Program:
        """Return a program that can be edited independently."""
        bodies = [replace(body, rows=[row.copy() for row in body.rows]) for body in self.bodies]
        return Program(self.header, bodies)

    @classmethod
    def of(cls, module: hlo.Module) -> Program:
        """Return a module as rows."""
        return cls(
            f"HloModule {module.name}{attributes_text(module.attributes)}",
            [
                Body(computation.name, [_row(i) for i in computation], computation.is_entry)
                for computation in module.computations.values()
            ],
        )


def _row(instruction: hlo.Instruction) -> Row:
    return Row(
        instruction.name,
        "" if instruction.declared_shape is None else str(instruction.declared_shape),
        instruction.opcode,
        [operand.name for operand in instruction.operands],
        None if instruction.literal is None else instruction.literal.printed,
        {
            name: text.printed
            for name, text in instruction.attributes.items()
            if name not in ("metadata", "backend_config", "sharding", "frontend_attributes")
        },
        instruction.is_root,
    )


# ---------------------------------------------------------------- choices


def body_of(program: Program, chance: random.Random) -> Body:
    """Choose a computation, larger ones more often."""
    return chance.choices(program.bodies, [len(body.rows) for body in program.bodies])[0]


def row_of(program: Program, chance: random.Random) -> tuple[Body, int]:
    """Choose an instruction."""
    body = body_of(program, chance)
    return body, chance.randrange(len(body.rows))


def earlier(body: Body, number: int, chance: random.Random) -> str | None:
    """Choose an instruction before the one numbered `number`."""
    return chance.choice(body.rows[:number]).name if number else None


def fresh_name(body: Body, prefix: str) -> str:
    """Return a name that no instruction of `body` has."""
    names = {row.name for row in body.rows}
    return next(name for k in range(len(names) + 1) if (name := f"{prefix}.{k}") not in names)
