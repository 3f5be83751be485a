"""For each constraint of each op, a program that breaks it: the rows of `rejected.txt`.

A row is the opcode, the label of the constraint, the column of the error, and an instruction whose
operands have shapes. ``python -m tests.ops.rejected`` searches programs for constraints without a
row, among the samples of the op with one change, and writes them to the file. Review the new rows:
the error must point at the fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hlo
from hlo.ops.op import OPS, OPS_BY_TARGET, Op
from tests.ops.samples import parse_sample

TABLE = Path(__file__).parent / "rejected.txt"
OWN = "indexing."  # excludes ops that other tests register
UNREACHABLE = {("async-done", "C1")}  # the parser rejects other operands

_NUMBER = re.compile(r"(?<=[\[{,=x_:<])-?\d+(?=[\]},x_:\[>]|$)")
_SHAPE = re.compile(r"\b([a-z]+\d*)\[([\d,<=]*)\]")
_LIST = re.compile(r"\{(-?\d+(?:,-?\d+)*)?\}|(?<=size=)\d+(?:x\d+)*")
_LABELS = re.compile(r"(?<=dim_labels=)[\w>\-]+")
_TYPES = ("f32", "s32", "u32", "pred", "c64", "s8", "u16")
_TUPLE = re.compile(r"^\([^()]*\)")


@dataclass(frozen=True)
class Row:
    """A program, the constraint that it breaks, and the column of the error."""

    opcode: str
    rule: str
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.opcode:24} {self.rule:3} {self.column:4}  {self.text}"


def rows() -> list[Row]:
    """The rows of the table."""
    table = []
    for line in TABLE.read_text().splitlines():
        opcode, rule, column, text = line.split(maxsplit=3)
        table.append(Row(opcode, rule, int(column), text))
    return table


def rules() -> dict[tuple[str, str], type[Op]]:
    """The class of every constraint that can be broken, by opcode (or target) and label."""
    named = {**OPS, **OPS_BY_TARGET}
    return {
        (name, label): cls
        for name, cls in named.items()
        if cls.__module__.startswith(OWN)
        for label in [*own_labels(cls), *(["T"] if cls.types else [])]
        if not (label == "C1" and takes_every_type(cls)) and (name, label) not in UNREACHABLE
    }


def own_labels(cls: type[Op]) -> list[str]:
    """The labels of the constraints that a target does not have from the class of any call."""
    inherited = OPS[cls.opcode].constraints if cls.target else ()
    return [rule.label for rule in cls.constraints if rule not in inherited]


def takes_every_type(cls: type[Op]) -> bool:
    """Return True for an elementwise op that is defined for every element type."""
    from indexing.ops.elementwise import ANY, BinaryElementwise, UnaryElementwise

    return issubclass(cls, BinaryElementwise | UnaryElementwise) and cls.takes == ANY


def errors(text: str) -> list[tuple[str, hlo.HloError]]:
    """The constraints that a program breaks, each with its error."""
    broken = []
    for error in hlo.verify(parse_sample(text).instruction.module):
        if rule := re.match(r"\S+ ([A-Z]\d*): ", error.message):
            broken.append((rule[1], error))
    return broken


# ---------------------------------------------------------------- search for programs


def mutants(text: str) -> Iterator[str]:
    """Variants of `text` with one change: a number, a list, a shape or the number of operands."""
    for pattern, replacements in (
        (_LIST, lambda m: [*_lists(m)]),
        (_LABELS, lambda m: [m[0].replace("0", "", 1)]),
        (_NUMBER, lambda m: [str(int(m[0]) + 1), "-1", "0", "9"]),
        (_SHAPE, lambda m: [*_shapes(m[1], m[2])]),
        (_TUPLE, lambda m: ["f32[]"]),
    ):
        for match in pattern.finditer(text):
            for replacement in replacements(match):
                yield text[: match.start()] + replacement + text[match.end() :]
    for kind in {match[1] for match in _SHAPE.finditer(text)}:
        for other in _TYPES:
            yield re.sub(rf"\b{kind}\[", f"{other}[", text)
    for operand in re.finditer(r", [\w\[\],]+ \w+(?=[,)])", text):
        yield text[: operand.start()] + text[operand.end() :]
        yield text[: operand.end()] + operand[0] + "2" + text[operand.end() :]


def _lists(match: re.Match[str]) -> Iterator[str]:
    separator = "," if match[0].startswith("{") else "x"
    items = [item for item in match[0].strip("{}").split(separator) if item]
    for changed in (items[:-1], [*items, "7"], [*items, *items[:1]], ["7", *items[1:]]):
        inside = separator.join(changed)
        yield f"{{{inside}}}" if separator == "," else inside


def _shapes(kind: str, sizes: str) -> Iterator[str]:
    for other in _TYPES:
        if other != kind:
            yield f"{other}[{sizes}]"
    yield from (f"{kind}[{more}]" for more in (f"{sizes},2" if sizes else "2", "", "7"))
    dims = sizes.split(",") if sizes else []
    for k in range(len(dims)):
        yield f"{kind}[{','.join([*dims[:k], '11', *dims[k + 1 :]])}]"
        yield f"{kind}[{','.join([*dims[:k], *dims[k + 1 :]])}]"
    yield "token[]"


def search(name: str, label: str, cls: type[Op]) -> Row | None:
    """The shortest mutant of the samples that breaks only this constraint."""
    for text in sorted({m for sample in cls.samples for m in mutants(sample)}, key=len):
        try:
            broken = errors(text)
        except hlo.HloError:
            continue
        if [rule for rule, _ in broken] == [label]:
            return Row(name, label, broken[0][1].span.column, text)
    return None


def is_valid(row: Row) -> bool:
    """Return True if the program of a row still breaks only its constraint."""
    is_rule = (row.opcode, row.rule) in rules()
    return is_rule and [rule for rule, _ in errors(row.text)] == [row.rule]


def main() -> None:
    """Add missing rows to the table, and replace rows that no longer break their constraint."""
    table = {(row.opcode, row.rule): row for row in rows() if is_valid(row)}
    for (name, label), cls in rules().items():
        if (name, label) not in table:
            row = search(name, label, cls)
            if row is None:
                print(f"no program breaks only {name} {label}")
            else:
                table[name, label] = row
    TABLE.write_text("".join(f"{table[key]}\n" for key in sorted(table)))


if __name__ == "__main__":
    import indexing.ops  # noqa: F401 - registers the ops

    main()
