"""Seeded mutants of a module: one instruction of the entry, or of a called computation, is changed.

Each mutant is a fault that a compiler pass could have: another bound, sign, order or constant.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping

import hlo
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape

Mutation = Callable[[Instruction, str, random.Random], str | None]
"""From an instruction and its line to another line, or None if it does not apply."""

_OPPOSITE = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
_ORDERED = ("subtract", "divide", "power", "remainder", "atan2", "shift-left", "complex")
_OTHER = {"add": "multiply", "multiply": "add", "maximum": "minimum", "minimum": "maximum"}


def slice_bound(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Shift the bounds of a slice by one along a dimension."""
    if i.opcode != "slice" or not isinstance(i.operands[0].shape, Shape):
        return None
    sizes = i.operands[0].shape.dims
    bounds = list(re.finditer(r"\[(\d+):(\d+)((?::\d+)?)\]", line))
    for match in chance.sample(bounds, len(bounds)):
        size = sizes[bounds.index(match)]
        low, high = int(match[1]), int(match[2])
        for shift in (1, -1):
            if low + shift >= 0 and high + shift <= size:
                text = f"[{low + shift}:{high + shift}{match[3]}]"
                return line[: match.start()] + text + line[match.end() :]
    return None


def pad_sign(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Exchange the padding before and after a dimension."""
    if i.opcode != "pad":
        return None
    match = re.search(r"padding=([-\dx_]+)", line)
    assert match
    parts = [part.split("_") for part in match[1].split("x")]
    for part in parts:
        part[:2] = part[1::-1]
    text = "x".join("_".join(part) for part in parts)
    return None if text == match[1] else line.replace(match[0], f"padding={text}")


def permutation(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Exchange dimensions of equal size of a transpose or broadcast."""
    if i.opcode not in ("transpose", "broadcast") or not isinstance(i.shape, Shape):
        return None
    order = [int(k) for k in re.findall(r"\d+", re.search(r"dimensions=\{([\d,]*)\}", line)[1])]  # type: ignore[index]
    own = i.operands[0].shape.dims if i.opcode == "transpose" else i.shape.dims  # type: ignore[union-attr]
    for a in range(len(order)):
        for b in range(a):
            if own[order[a]] == own[order[b]]:
                order[a], order[b] = order[b], order[a]
                text = ",".join(map(str, order))
                return re.sub(r"dimensions=\{[\d,]*\}", f"dimensions={{{text}}}", line, count=1)
    return None


def reversed_comparison(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Negate a comparison."""
    match = re.search(r"direction=(\w\w)", line)
    if i.opcode != "compare" or match is None:
        return None
    return line.replace(match[0], f"direction={_OPPOSITE[match[1]]}")


def swapped_operands(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Exchange the operands of an op that is not commutative."""
    if i.opcode not in _ORDERED or i.operands[0] is i.operands[1]:
        return None
    one, other = (f"%{operand.name}" for operand in i.operands)
    return line.replace(f"({one}, {other})", f"({other}, {one})")


def dropped_clamp(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Replace a clamp by the number that it clamps."""
    if i.opcode not in ("clamp", "maximum", "minimum"):
        return None
    clamped = i.operands[1:2] if i.opcode == "clamp" else i.operands
    numbers = [each for each in clamped if each.opcode not in ("constant", "broadcast")]
    kept = (numbers or clamped)[0]
    return f"{line.partition(' = ')[0]} = {i.shape} copy(%{kept.name})"


def reduce_dimension(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Reduce over another dimension of the same size."""
    if i.opcode != "reduce" or not isinstance(i.operands[0].shape, Shape):
        return None
    sizes = i.operands[0].shape.dims
    match = re.search(r"dimensions=\{(\d+)\}", line)
    if match is None:
        return None
    others = [k for k, n in enumerate(sizes) if n == sizes[int(match[1])] and k != int(match[1])]
    return line.replace(match[0], f"dimensions={{{others[0]}}}") if others else None


def other_constant(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Change a scalar constant: also an off-by-one start, bound or step."""
    match = re.search(r"constant\((-?\d+(?:\.\d+)?|true|false)\)", line)
    if i.opcode != "constant" or match is None:
        return None
    if match[1] in ("true", "false"):
        value = "false" if match[1] == "true" else "true"
    elif "." in match[1]:
        value = str(float(match[1]) * 1.5 + 0.5)
    else:
        is_signed = isinstance(i.shape, Shape) and i.shape.element_type[0] != "u"
        value = str(int(match[1]) + (chance.choice((1, -1)) if is_signed else 1))
    return line.replace(match[0], f"constant({value})")


def other_function(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Compute another function of the same operands."""
    other = _OTHER.get(i.opcode)
    if other is None or (isinstance(i.shape, Shape) and i.shape.element_type == "pred"):
        return None
    return line.replace(f" {i.opcode}(", f" {other}(", 1)


def reversed_dimension(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Do not reverse, or accumulate from the other end."""
    if i.opcode != "reverse":
        return None
    return f"{line.partition(' = ')[0]} = {i.shape} copy(%{i.operands[0].name})"


def other_setting(i: Instruction, line: str, chance: random.Random) -> str | None:
    """Exchange the lower and the upper triangle, or N and U, in a setting of a custom call."""
    settings = list(re.finditer(r"= (76|85|78) : ui8", line))
    if i.opcode != "custom-call" or not settings:
        return None
    match = chance.choice(settings)
    text = {"76": "85", "85": "76", "78": "85"}[match[1]]
    return f"{line[: match.start()]}= {text} : ui8{line[match.end() :]}"


MUTATIONS: dict[str, Mutation] = {
    each.__name__: each
    for each in (
        *(slice_bound, pad_sign, permutation, reversed_comparison, swapped_operands),
        *(
            dropped_clamp,
            reduce_dimension,
            other_constant,
            other_function,
            reversed_dimension,
            other_setting,
        ),
    )
}


def mutants(
    module: Module, seed: int, count: int, mutations: Mapping[str, Mutation] = MUTATIONS
) -> Iterator[tuple[str, str, Module]]:
    """Yield up to `count` valid mutants: the mutation, the new line, and the module."""
    chance = random.Random(seed)
    sites = [(name, i) for name in mutations for i in module.instructions]
    made = 0
    for name, instruction in chance.sample(sites, len(sites)):
        line = mutations[name](instruction, str(instruction), chance)
        if line is None or line == str(instruction):
            continue
        try:
            mutant = hlo.parse(_with_line(module, instruction, line))
            faults = hlo.verify(mutant)
        except hlo.HloError:
            continue
        if not faults:
            yield name, line, mutant
            made += 1
            if made == count:
                return


def _with_line(module: Module, changed: Instruction, line: str) -> str:
    """Return the text of a module with another line for one instruction."""
    computations = []
    for computation in module.computations.values():
        text = str(computation)
        if computation is changed.computation:
            old = f"  {'ROOT ' if changed is computation.root else ''}{changed}"
            assert text.count(f"\n{old}\n") == 1
            mark = "ROOT " if changed is computation.root else ""
            text = text.replace(f"\n{old}\n", f"\n  {mark}{line}\n")
        computations.append(text)
    header = str(module).split("\n", 1)[0]
    return "\n\n".join([header, *computations])
