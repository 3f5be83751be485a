"""Modules to HLO text that parses back to an equal module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlo.modules.module import Computation, Instruction, Module
    from hlo.shapes.shape import AnyShape
    from hlo.text.syntax import AttributeText

_SPREAD = re.compile(r"/[/*]|\n")  # comments and line breaks are not printed back


def module_text(module: Module) -> str:
    """The whole module.

    >>> from hlo.formats.parser import parse
    >>> print(str(parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")).strip())
    HloModule module_e
    <BLANKLINE>
    ENTRY %e {
      %p = f32[2] parameter(0)
      ROOT %n = f32[2] negate(%p)
    }
    """
    header = f"HloModule {module.name}{_attributes(module.attributes)}"
    tables = (_table(name, lines) for name, lines in module.tables.items())
    computations = map(computation_text, module.computations.values())
    return "\n\n".join([header, *tables, *computations]) + "\n"


def computation_text(computation: Computation) -> str:
    """A computation, an instruction a line."""
    return "\n".join(_computation_lines(computation))


def _computation_lines(computation: Computation) -> Iterator[str]:
    yield f"{'ENTRY ' if computation.is_entry else ''}%{computation.name} {{"
    for instruction in computation.instructions:
        yield f"  {'ROOT ' if instruction.is_root else ''}{instruction_text(instruction)}"
    yield f"}}{_attributes(computation.attributes)}"


def instruction_text(instruction: Instruction) -> str:
    """An instruction on one line, without ``ROOT``."""
    declared = instruction.declared_shape
    shape = "" if declared is None else f"{_shape_text(declared)} "
    if instruction.literal is not None:
        inside = _value(instruction.literal)
    else:
        inside = ", ".join(f"%{operand.name}" for operand in instruction.operands)
    attributes = _attributes(instruction.attributes)
    return f"%{instruction.name} = {shape}{instruction.opcode}({inside}){attributes}"


@lru_cache(maxsize=1 << 12)
def _shape_text(shape: AnyShape) -> str:
    return str(shape)


def _attributes(attributes: Mapping[str, AttributeText]) -> str:
    return "".join(f", {name}={_value(value)}" for name, value in attributes.items())


def _value(value: AttributeText) -> str:
    return value.line if _SPREAD.search(value.text) else value.text


def _table(name: str, lines: Mapping[int, AttributeText]) -> str:
    rows: Iterable[str] = (f"{number} {_value(text)}" for number, text in lines.items())
    return "\n".join([name, *rows])
