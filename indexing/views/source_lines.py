"""All lines of a program that a result depends on.

XLA keeps the metadata of one instruction for a fusion: the others are those of the instructions
inside of it.  A result that is composed down to the parameters depends on the lines of everything
on the way.  The module before the passes has the lines of instructions that were merged or
rewritten: `lines_before`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from hlo.modules.module import Instruction, Module
from indexing.ops.structured_ops import InlineOp

if TYPE_CHECKING:
    from indexing.equivalence.correspondence import InstructionLink
    from indexing.equivalence.linking import How

Links: TypeAlias = "Mapping[Instruction, tuple[InstructionLink, ...]]"
"""The links to instructions of the module before, by instruction of the module after."""

RECORDED: Final[Sequence[How]] = ("value", "op_name")
"""How links are found that lines are taken from."""

HOW_TEXTS: Final[Mapping[How, str]] = {"value": "equal value", "op_name": "same op_name"}
"""How a link is found, as text."""

MAX_FILES: Final = 8
"""Limit on the files that a text lists."""


def inner_instructions(instruction: Instruction) -> Iterator[Instruction]:
    """Yield an instruction, or those inside of a fusion or call."""
    if not isinstance(instruction.op, InlineOp):
        yield instruction
        return
    for called in instruction.called_computations:
        for each in called.instructions:
            if each.opcode != "parameter":
                yield from inner_instructions(each)


def lines_behind(
    instruction: Instruction, output: int = 0, *, to_parameters: bool = False
) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the lines that made an instruction and those inside of it, by file.

    Args:
        output: the number of an array of the result: of a tuple, only its operand counts.
        to_parameters: those of all instructions of its computation that it depends on, too.

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p = f32[2] parameter(0)
    ...   n = f32[2] negate(p), metadata={source_file="m.py" source_line=3}
    ...   ROOT a = f32[2] abs(n), metadata={source_file="m.py" source_line=5} }''').entry.root
    >>> lines_behind(root), lines_behind(root, to_parameters=True)
    ({'m.py': (5,)}, {'m.py': (3, 5)})
    """
    return _lines_of(_behind(instruction, output, to_parameters))


def lines_before(
    instruction: Instruction, links: Links, output: int = 0, *, to_parameters: bool = False
) -> dict[How, dict[str, tuple[int, ...]]]:
    """Return the lines of the instructions before a compiler that became those of `lines_behind`.

    Args:
        links: `links_between` the module before and that of the instruction.
        output, to_parameters: as for `lines_behind`.
    Returns:
        By how the link was found: ``"value"`` for values that are proved equal, then
        ``"op_name"``; lines that `lines_behind` or an earlier entry has are left out.

    >>> import hlo
    >>> before = hlo.parse('''ENTRY e { p = f32[2] parameter(0)
    ...   n = f32[2] negate(p), metadata={source_file="m.py" source_line=3}
    ...   m = f32[2] negate(p), metadata={source_file="m.py" source_line=4}
    ...   ROOT a = f32[2] add(n, m), metadata={source_file="m.py" source_line=5} }''')
    >>> after = hlo.parse('''ENTRY e { p = f32[2] parameter(0)
    ...   n = f32[2] negate(p), metadata={source_file="m.py" source_line=3}
    ...   ROOT a = f32[2] add(n, n), metadata={source_file="m.py" source_line=5} }''')
    >>> lines_before(after.entry["n"], links_between(before, after))
    {'value': {'m.py': (4,)}}
    """
    known = lines_behind(instruction, output, to_parameters=to_parameters)
    behind = [instruction, *_behind(instruction, output, to_parameters)]
    linked = [link for each in dict.fromkeys(behind) for link in links.get(each, ())]
    seen = {(file, line) for file, numbers in known.items() for line in numbers}
    lines: dict[How, dict[str, tuple[int, ...]]] = {}
    for how in RECORDED:
        new = _unseen(_lines_of(link.before for link in linked if link.how == how), seen)
        seen.update((file, line) for file, numbers in new.items() for line in numbers)
        if new:
            lines[how] = new
    return lines


def _unseen(
    lines: Mapping[str, Sequence[int]], seen: Container[tuple[str, int]]
) -> dict[str, tuple[int, ...]]:
    """Return the lines that are not among the pairs of a file and a line."""
    new = {
        file: tuple([line for line in numbers if (file, line) not in seen])
        for file, numbers in lines.items()
    }
    return {file: numbers for file, numbers in new.items() if numbers}


def links_between(before: Module, after: Module) -> Links:
    """Return the links of `correspondence` by value and by ``op_name``, by instruction after.

    Links by neighbours are left out: they are no evidence that one became the other.
    """
    return after.memoised((links_between, before), lambda: _links_between(before, after))


def _links_between(before: Module, after: Module) -> Links:
    from indexing.equivalence.correspondence import correspondence  # slow to load

    links: dict[Instruction, tuple[InstructionLink, ...]] = {}
    for link in correspondence(before, after).links:
        if link.how in RECORDED:
            links[link.after] = (*links.get(link.after, ()), link)
    return links


def _lines_of(instructions: Iterable[Instruction]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of the lines that the metadata of instructions record, by file."""
    numbers: dict[str, set[int]] = {}
    for made in instructions:
        frame = made.source.frame
        if frame is not None and frame.line is not None:
            numbers.setdefault(frame.file, set()).add(frame.line)
    return {file: tuple(sorted(numbers[file])) for file in sorted(numbers)}


def _behind(instruction: Instruction, output: int, to_parameters: bool) -> Iterator[Instruction]:
    """Yield the instructions that made a result: those inside, or all that it depends on."""
    if not to_parameters:
        yield from inner_instructions(instruction)
        return
    start = instruction
    if instruction.opcode == "tuple" and output < len(instruction.operands):
        start = instruction.operands[output]
    for each in _ancestors(start):
        yield from _everything(each)


def lines_before_text(lines: Mapping[How, Mapping[str, tuple[int, ...]]]) -> str:
    """Return the lines of `lines_before` as text.

    >>> lines_before_text({"value": {"m.py": (4,)}, "op_name": {"m.py": (6, 7)}})
    'm.py:4 (equal value); m.py:6, 7 (same op_name)'
    """
    return "; ".join([f"{lines_text(each)} ({HOW_TEXTS[how]})" for how, each in lines.items()])


def lines_text(lines: Mapping[str, tuple[int, ...]]) -> str:
    """Return lines as text; files beyond `MAX_FILES` are counted.

    >>> lines_text({"m.py": (3, 5), "n.py": (7,)})
    'm.py:3, 5; n.py:7'
    """
    texts = [f"{file}:{', '.join(map(str, numbers))}" for file, numbers in lines.items()]
    more = len(texts) - MAX_FILES
    return "; ".join([*texts[:MAX_FILES], *([f"… {more} more files"] if more > 0 else [])])


def _ancestors(instruction: Instruction) -> Iterable[Instruction]:
    """Return an instruction and all that it depends on in its computation."""
    seen = {instruction: None}
    waiting = [instruction]
    while waiting:
        for operand in waiting.pop().operands:
            if operand not in seen:
                seen[operand] = None
                waiting.append(operand)
    return seen


def _everything(instruction: Instruction) -> Iterator[Instruction]:
    """Yield an instruction, and those of all computations that it calls."""
    waiting, seen = [instruction], set(instruction.called_computations)
    yield instruction
    while waiting:
        for called in waiting.pop().called_computations:
            for each in called.instructions:
                yield each
                if not seen.issuperset(each.called_computations):
                    seen.update(each.called_computations)
                    waiting.append(each)
