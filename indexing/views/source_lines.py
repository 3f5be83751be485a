"""All lines of a program that a result depends on.

XLA keeps the metadata of one instruction for a fusion: the others are those of the instructions
inside of it.  A result that is composed down to the parameters depends on the lines of everything
on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from hlo.modules.module import Instruction
from indexing.ops.structured_ops import InlineOp

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
    start = instruction
    if instruction.opcode == "tuple" and output < len(instruction.operands):
        start = instruction.operands[output]
    behind = _ancestors(start) if to_parameters else [instruction]
    numbers: dict[str, set[int]] = {}
    for each in behind:
        for made in _everything(each) if to_parameters else inner_instructions(each):
            frame = made.source.frame
            if frame is not None and frame.line is not None:
                numbers.setdefault(frame.file, set()).add(frame.line)
    return {file: tuple(sorted(numbers[file])) for file in sorted(numbers)}


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
