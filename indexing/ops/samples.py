"""Samples of ops as modules, with the operands as parameters.

A sample is one instruction, such as ``f32[3,2] transpose(f32[2,3] p), dimensions={1,0}``. It may
call the computations defined here: add, maximum, less_than, negate, ….
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import hlo
from hlo.modules.module import Instruction

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
add_both {
  a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = s32[] parameter(3)
  i = s32[] convert(a) j = s32[] convert(c)
  e = s32[] add(b, d) f = s32[] add(i, j) g = s32[] add(e, f)
  x = f32[] convert(b) y = f32[] convert(d)
  k = f32[] add(a, c) l = f32[] add(x, y) m = f32[] add(k, l)
  ROOT r = (f32[], s32[]) tuple(m, g)
}
less_than {
  a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT
}
greater_or_equal {
  a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE
}
first_less_than {
  a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}
add_twice {
  a = f32[] parameter(0) b = f32[] parameter(1) s = f32[] add(a, b)
  ROOT r = (f32[], f32[]) tuple(s, s)
}
negate { a = f32[2,3] parameter(0) ROOT r = f32[2,3] negate(a) }
less_than_five {
  p = (s32[], f32[2,3]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT
}
next_iteration {
  p = (s32[], f32[2,3]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(1)
  a = f32[2,3] get-tuple-element(p), index=1 j = s32[] add(i, n) b = f32[2,3] negate(a)
  ROOT r = (s32[], f32[2,3]) tuple(j, b)
}
"""
# a computation is parsed only with the samples that call it
_COMPUTATION = {text.split()[0]: text for text in re.split(r"(?<=})\n", COMPUTATIONS.strip())}
# operands that must be the result of a particular op
PRODUCERS = {
    ("async-update", "s"): "async-start(started), calls=negate",
    ("async-done", "s"): "async-start(started), calls=negate",
}


def instruction_of(text: str) -> Instruction:
    """Return the instruction of a sample, as the root of a module.

    Raises:
        ValueError: `text` is not of the form ``SHAPE OPCODE(OPERANDS), ATTRIBUTES``.
        HloError: the instruction is invalid.

    >>> print(instruction_of("f32[3,2] transpose(f32[2,3] p), dimensions={1,0}").operands[0])
    %p = f32[2,3] parameter(0)
    """
    opcode = text[: operands_start(text)].rpartition(" ")[2]
    lines = []
    for number, (shape, name) in enumerate(operands(text)):
        producer = PRODUCERS.get((opcode, name))
        if producer:
            lines.append(f"started = f32[2,3] parameter({number})")
        lines.append(f"{name} = {shape} {producer or f'parameter({number})'}")
    body = "\n".join(f"  {line}" for line in [*lines, f"ROOT out = {text}"])
    words = set(re.findall(r"\w+", body))
    called = "\n".join(text for name, text in _COMPUTATION.items() if name in words)
    return hlo.parse(f"{called}\nENTRY e {{\n{body}\n}}").entry.root


def operands_start(text: str) -> int:
    """Offset of the opening parenthesis after the opcode."""
    opcode = re.search(r" [a-z][a-z0-9-]*\(", text)
    if opcode is None:
        raise ValueError(f"expected a sample SHAPE OPCODE(OPERANDS), ATTRIBUTES, got {text!r}")
    return opcode.end() - 1


def operands_end(text: str) -> int:
    """Offset of the closing parenthesis of the operands.

    >>> text = "(f32[2], s32[]) tuple(f32[2] p, s32[] q)"
    >>> text[operands_start(text) : operands_end(text) + 1]
    '(f32[2] p, s32[] q)'
    """
    depth, start = 0, operands_start(text)
    for k in range(start, len(text)):
        depth += (text[k] == "(") - (text[k] == ")")
        if depth == 0:
            return k
    raise ValueError(f"expected `)` after the operands of {text!r}")


def operands(text: str) -> Iterator[tuple[str, str]]:
    """Yield shape and name of each operand; nothing if the parentheses contain no operands."""
    depth, item = 0, ""
    for character in text[operands_start(text) + 1 : operands_end(text)] + ",":
        if character == "," and depth == 0:
            shape, _, name = item.strip().rpartition(" ")
            if shape and name[0].isalpha():
                yield shape, name
            item = ""
            continue
        depth += (character in "([{") - (character in ")]}")
        item += character
