"""Unrolling of counted loops: the same module with the body inlined once for each iteration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from hlo.arguments import checked
from hlo.formats.parser import parse
from hlo.formats.parser_state import free_name
from hlo.modules.effects import has_effects
from hlo.modules.module import Computation, Instruction, Module
from hlo.text.syntax import AttributeText, attributes_text
from indexing.dataflow.loops.counted import trip_count
from indexing.maps.answers import Unknown
from indexing.ops.control import callees

MAX_UNROLLED: Final = 1 << 16
"""Limit on the instructions of the unrolled loop."""

_PREDECESSORS: Final = "control-predecessors"
_NAME: Final = re.compile(r"%?([A-Za-z_][\w.\-]*)")


@checked
def unroll(instruction: Instruction) -> Module | Unknown:
    """Return the module of a counted loop with the loop unrolled.

    The body is inlined once for each iteration; the carried value of an iteration is the operand
    of the next one.  All other computations are unchanged, and the result computes the same
    values.

    Args:
        instruction: a ``while`` whose `trip_count` is a number.
    Raises:
        HloError: the loop, or an instruction of a computation it calls, is invalid.
        ValueError: the instruction is not a ``while``.
    Source: XLA ``xla/service/while_loop_unroller.h``, ``WhileLoopUnroller``.

    >>> import hlo
    >>> module = hlo.parse('''
    ... less { s = (s32[], f32[2]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   n = s32[] constant(2)  ROOT r = pred[] compare(i, n), direction=LT }
    ... next { s = (s32[], f32[2]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   x = f32[2] get-tuple-element(s), index=1  one = s32[] constant(1)
    ...   j = s32[] add(i, one)  y = f32[2] reverse(x), dimensions={0}
    ...   ROOT t = (s32[], f32[2]) tuple(j, y) }
    ... ENTRY e { x = f32[2] parameter(0)  zero = s32[] constant(0)
    ...   s = (s32[], f32[2]) tuple(zero, x)
    ...   w = (s32[], f32[2]) while(s), condition=less, body=next
    ...   ROOT r = f32[2] get-tuple-element(w), index=1 }''')
    >>> unrolled = unroll(module.entry["w"])
    >>> print([i.name for i in unrolled.entry if i.opcode in ("reverse", "tuple")])
    ['s', 'y.0', 't.0', 'y.1', 't.1']
    >>> import indexing
    >>> print(*indexing.to_parameters(unrolled.entry.root).maps[0])
    (d0) -> (d0), domain: d0 in [0, 1]
    """
    count = trip_count(instruction)
    if isinstance(count, Unknown):
        return count
    if count.number is None:
        return Unknown(f"the loop has {count} iterations", instruction)
    condition, body = callees(instruction, "condition", "body")
    if has_effects(condition):
        return Unknown(f"`{condition.name}` has side effects", instruction)
    if count.number * len(body) > MAX_UNROLLED:
        size = f"{count.number} iterations of {len(body)} instructions"
        return Unknown(f"budget: {size}; the limit is {MAX_UNROLLED}", instruction)
    return _with_computation(
        instruction.computation, _unrolled_text(instruction, body, count.number)
    )


def _with_computation(changed: Computation, text: str) -> Module:
    """Return the module of a computation with the text of that computation replaced."""
    module = changed.module
    texts = [text if each is changed else str(each) for each in module.computations.values()]
    head = str(module).partition(f"\n\n{next(iter(module.computations.values()))}")[0]
    return parse("\n\n".join([head, *texts]) + "\n", module.filename)


def _unrolled_text(loop: Instruction, body: Computation, iterations: int) -> str:
    """Return the text of the computation of a loop with the loop unrolled."""
    computation = loop.computation
    names = {each: each.name for each in computation.instructions}
    taken, lines = set(names.values()), list[tuple[str, str]]()
    for instruction in computation.instructions:
        if instruction is not loop:
            lines.append((names[instruction], _line(instruction, names)))
            continue
        names[loop] = names[loop.operands[0]]
        for number in range(iterations):
            inside = dict(_names_inside(body, number, names[loop], taken))
            taken.update(inside.values())
            lines += [
                (inside[each], _line(each, inside))
                for each in body.instructions
                if each.opcode != "parameter"
            ]
            names[loop] = inside[body.root]
    root = names[computation.root]
    texts = [f"  {'ROOT ' if name == root else ''}{line}" for name, line in lines]
    first = f"{'ENTRY ' if computation.is_entry else ''}%{computation.name} {{"
    return "\n".join([first, *texts, f"}}{attributes_text(computation.attributes)}"])


def _names_inside(
    body: Computation, number: int, carried: str, taken: set[str]
) -> Iterator[tuple[Instruction, str]]:
    """Yield the name of each instruction of the body in one iteration."""
    used = set(taken)
    for each in body.instructions:
        name = carried
        if each.opcode != "parameter":
            name = free_name(f"{each.name}.{number}", used)
            used.add(name)
        yield each, name


def _line(instruction: Instruction, names: Mapping[Instruction, str]) -> str:
    """Return the text of an instruction with other names for it and the instructions it names."""
    shape = "" if instruction.declared_shape is None else f"{instruction.declared_shape} "
    operands = ", ".join([f"%{names[operand]}" for operand in instruction.operands])
    literal = instruction.literal
    attributes = dict(instruction.attributes)
    if _PREDECESSORS in attributes:
        renamed = {each.name: name for each, name in names.items()}
        text = _NAME.sub(lambda match: f"%{renamed[match[1]]}", attributes[_PREDECESSORS].normal)
        attributes[_PREDECESSORS] = AttributeText.of(text)
    inside = operands if literal is None else literal.printed
    texts = attributes_text(attributes)
    return f"%{names[instruction]} = {shape}{instruction.opcode}({inside}){texts}"
