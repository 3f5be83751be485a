"""For each rule of each op a program that breaks it: the rows of `rejected.txt`.

A row is the opcode, the label of the rule, the column of the error, and an instruction whose
operands have shapes. ``python -m tests.ops.rejected`` looks for programs for rules that have none
yet, among the samples of the op with one thing changed, and writes them into the file; read what it
writes: the error has to point at what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hlo
from hlo.ops.op import OPS, TARGETS, Op
from tests.ops.samples import parse_sample

TABLE = Path(__file__).parent / "rejected.txt"
OWN = "indexing."  # ops that other tests register are not asked for
UNREACHABLE = {("async-done", "C1")}  # the parser refuses an operand that no async-start gave

_NUMBER = re.compile(r"(?<=[\[{,=x_:<])-?\d+(?=[\]},x_:\[>]|$)")
_SHAPE = re.compile(r"\b([a-z]+\d*)\[([\d,<=]*)\]")
_LIST = re.compile(r"\{(-?\d+(?:,-?\d+)*)?\}|(?<=size=)\d+(?:x\d+)*")
_LABELS = re.compile(r"(?<=dim_labels=)[\w>\-]+")
_TYPES = ("f32", "s32", "u32", "pred", "c64", "s8", "u16")
_TUPLE = re.compile(r"^\([^()]*\)")


@dataclass(frozen=True)
class Row:
    """One program, the rule it breaks, and the column that the error points at."""

    opcode: str
    rule: str
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.opcode:24} {self.rule:3} {self.column:4}  {self.text}"


def rows() -> list[Row]:
    """The rows of the table."""
    found = []
    for line in TABLE.read_text().splitlines():
        opcode, rule, column, text = line.split(maxsplit=3)
        found.append(Row(opcode, rule, int(column), text))
    return found


def rules() -> dict[tuple[str, str], type[Op]]:
    """Every rule that can be broken: the opcode (or target) and the label."""
    named = {**OPS, **TARGETS}
    return {
        (name, label): cls
        for name, cls in named.items()
        if cls.__module__.startswith(OWN)
        for label in [*(rule.label for rule in cls.constraints), *(["T"] if cls.types else [])]
        if not (label == "C1" and takes_every_type(cls)) and (name, label) not in UNREACHABLE
    }


def takes_every_type(cls: type[Op]) -> bool:
    """An elementwise op that is defined for every element type cannot be given a wrong one."""
    from indexing.ops.elementwise import ANY, BinaryElementwise, UnaryElementwise

    return issubclass(cls, BinaryElementwise | UnaryElementwise) and cls.takes == ANY


def errors(text: str) -> list[tuple[str, hlo.HloError]]:
    """The rules that a program breaks, each with the error."""
    found = []
    for error in hlo.verify(parse_sample(text).instruction.module):
        if rule := re.match(r"\S+ (\w+) does not hold", error.message):
            found.append((rule[1], error))
    return found


# ---------------------------------------------------------------- looking for programs


def mutants(text: str) -> Iterator[str]:
    """`text` with one thing changed: a number, a list, a shape, or how many operands there are."""
    for pattern, others in (
        (_LIST, lambda m: [*_lists(m)]),
        (_LABELS, lambda m: [m[0].replace("0", "", 1)]),
        (_NUMBER, lambda m: [str(int(m[0]) + 1), "-1", "0", "9"]),
        (_SHAPE, lambda m: [*_shapes(m[1], m[2])]),
        (_TUPLE, lambda m: ["f32[]"]),
    ):
        for found in pattern.finditer(text):
            for other in others(found):
                yield text[: found.start()] + other + text[found.end() :]
    for kind in {found[1] for found in _SHAPE.finditer(text)}:
        for other in _TYPES:
            yield re.sub(rf"\b{kind}\[", f"{other}[", text)
    for operand in re.finditer(r", [\w\[\],]+ \w+(?=[,)])", text):
        yield text[: operand.start()] + text[operand.end() :]
        yield text[: operand.end()] + operand[0] + "2" + text[operand.end() :]


def _lists(found: re.Match[str]) -> Iterator[str]:
    mark = "," if found[0].startswith("{") else "x"
    items = [item for item in found[0].strip("{}").split(mark) if item]
    for changed in (items[:-1], [*items, "7"], [*items, *items[:1]], ["7", *items[1:]]):
        inside = mark.join(changed)
        yield f"{{{inside}}}" if mark == "," else inside


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
    """The shortest program among the mutants of the samples that breaks just this rule."""
    for text in sorted({m for sample in cls.samples for m in mutants(sample)}, key=len):
        try:
            broken = errors(text)
        except hlo.HloError:
            continue
        if [rule for rule, _ in broken] == [label]:
            return Row(name, label, broken[0][1].span.column, text)
    return None


def is_right(row: Row) -> bool:
    """Says that a program still breaks just the rule that it is there for."""
    is_rule = (row.opcode, row.rule) in rules()
    return is_rule and [rule for rule, _ in errors(row.text)] == [row.rule]


def main() -> None:
    """Write the rows that are missing, or say nothing about the rule any more."""
    known = {(row.opcode, row.rule): row for row in rows() if is_right(row)}
    for (name, label), cls in rules().items():
        if (name, label) not in known:
            row = search(name, label, cls)
            if row is None:
                print(f"nothing found for {name} {label}")
            else:
                known[name, label] = row
    TABLE.write_text("".join(f"{known[key]}\n" for key in sorted(known)))


if __name__ == "__main__":
    import indexing.ops  # noqa: F401 - registers the ops

    main()
