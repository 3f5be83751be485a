"""Small loops as HLO text, and their number of iterations by simulation."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np

import hlo
from hlo import Computation, Instruction

DIRECTIONS = ("LT", "LE", "GT", "GE", "EQ", "NE")
SKELETON = """
condition {{
  s = ({types}) parameter(0)
  {elements}
{condition}
}}
body {{
  s = ({types}) parameter(0)
  {elements}
  one = s64[] constant(1)
  next = s64[] add(k, one)
{body}
  ROOT t = ({types}) tuple(next, {carried})
}}
ENTRY main {{
{before}
  zero = s64[] constant(0)
  s = ({types}) tuple(zero, {starts})
  ROOT w = ({types}) while(s), condition=condition, body=body{config}
}}
"""


class LoopText(NamedTuple):
    """The parts of a program with one loop, which carries its number of iterations and `names`.

    Attributes:
        names, types: the carried elements after the counter `k`.
        starts, carried: the names of their first values in the entry, and of the next values.
        condition, body, before: lines of the condition, the body and the entry computation.
        extra: computations that these call.
    """

    names: list[str]
    types: list[str]
    starts: list[str]
    carried: list[str]
    condition: str
    body: str
    before: str
    extra: str = ""
    config: str = ""

    @property
    def entry(self) -> Computation:
        """The entry computation."""
        names, types = ["k", *self.names], ["s64[]", *self.types]
        elements = [
            f"{name} = {kind} get-tuple-element(s), index={number}"
            for number, (name, kind) in enumerate(zip(names, types, strict=True))
        ]
        text = SKELETON.format(
            types=", ".join(types),
            elements="\n  ".join(elements),
            condition=self.condition,
            body=self.body,
            carried=", ".join(self.carried),
            before=self.before,
            starts=", ".join(self.starts),
            config=self.config,
        )
        return hlo.parse(self.extra + text).entry


def count_from(
    kind: str, start: str, step: str, condition: str, before: str = "", body: str = ""
) -> Instruction:
    """Return a loop with one counter `i`, next value `j = i + step`, and a condition on `i`."""
    declared = f"  start = {kind}[] {start}\n{before}"
    update = f"  step = {kind}[] {step}\n  j = {kind}[] add(i, step)\n{body}"
    loop = LoopText(["i"], [f"{kind}[]"], ["start"], ["j"], condition, update, declared)
    return loop.entry.root


def simulate(
    start: int, step: int, bound: int, direction: str, limits: tuple[int, int]
) -> tuple[int, bool] | None:
    """Return the iterations of a counter of a machine type, and whether it wraps around.

    The result is None if the loop does not terminate.
    """
    low, high = limits
    compare = {
        "LT": int.__lt__,
        "LE": int.__le__,
        "GT": int.__gt__,
        "GE": int.__ge__,
        "EQ": int.__eq__,
        "NE": int.__ne__,
    }[direction]
    value, count, wraps = start, 0, False
    while compare(value, bound):
        if count > high - low:
            return None
        value, count = value + step, count + 1
        wraps |= not low <= value <= high
        value = (value - low) % (high - low + 1) + low
    return count, wraps


class RandomLoop:
    """A random loop with several counters of 8-bit types, through calls and conversions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.extra: list[str] = []
        self.count = 0

    def line(self, text: str) -> str:
        """Add an instruction; return its name."""
        self.count += 1
        self.lines.append(f"  v{self.count} = {text}")
        return f"v{self.count}"

    def taken(self) -> str:
        """Return the instructions added since the last call."""
        text, self.lines = "\n".join(self.lines), []
        return text

    def number(self, kind: str) -> int:
        """Return a random value of a type, often a small one."""
        info = np.iinfo(np.int8 if kind == "s8" else np.uint8)
        small = self.random.choice([-3, -2, -1, 1, 1, 1, 2, 3, 5])
        value = small if self.random.random() < 0.7 else self.random.randrange(256)
        return int(np.array(value % 256, np.uint8).astype(info.dtype))

    def changed(self, value: str, kind: str, depth: int = 2) -> str:
        """Return `value` after random affine operations."""
        choice = self.random.randrange(9) if depth else 0
        constant = self.line(f"{kind}[] constant({self.number(kind)})")
        match choice:
            case 0 | 1 | 2:
                return self.line(f"{kind}[] add({value}, {constant})")
            case 3:
                return self.line(f"{kind}[] subtract({value}, {constant})")
            case 4:
                inner = self.line(f"{kind}[] subtract({constant}, {value})")
                return self.line(f"{kind}[] negate({inner})")
            case 5:
                wide = self.random.choice(["s16", "s32", "u32"])
                inner = self.changed(self.line(f"{wide}[] convert({value})"), wide, 0)
                return self.line(f"{kind}[] convert({inner})")
            case 6:
                copy = self.line(f"{kind}[1] reshape({value})")
                return self.changed(self.line(f"{kind}[] reshape({copy})"), kind, depth - 1)
            case 7:
                self.extra.append(
                    f"f{self.count} {{ a = {kind}[] parameter(0)  b = {kind}[] parameter(1)\n"
                    f"  ROOT r = {kind}[] add(b, a) }}\n"
                )
                call = self.random.choice([f"to_apply=f{self.count}", "fusion"])
                if call == "fusion":
                    call = f"kind=kLoop, calls=f{self.count}"
                    return self.line(f"{kind}[] fusion({value}, {constant}), {call}")
                return self.line(f"{kind}[] call({value}, {constant}), {call}")
            case _:
                return self.changed(self.changed(value, kind, 0), kind, depth - 1)

    def compare_counter(self, names: list[str], kinds: list[str], bound: str, kind: str) -> str:
        """Return a comparison of a random counter."""
        number = self.random.randrange(len(names))
        left, of = names[number], kinds[number]
        if self.random.random() < 0.3:
            left = self.changed(left, of, 1)
        right = bound if of == kind and self.random.random() < 0.6 else ""
        if not right:
            right = self.line(f"{of}[] constant({self.number(of)})")
        if self.random.random() < 0.2:
            left, right = (self.line(f"s32[] convert({each})") for each in (left, right))
        if self.random.random() < 0.5:
            left, right = right, left
        direction = self.random.choice(DIRECTIONS)
        return self.line(f"pred[] compare({left}, {right}), direction={direction}")

    def entry(self) -> Computation:
        """Return a program of one loop; its parameters are a start and a bound."""
        kinds = [self.random.choice(["s8", "u8"]) for _ in range(self.random.randint(1, 2))]
        names, kind = [f"i{number}" for number in range(len(kinds))], self.random.choice(kinds)
        carried = [self.changed(*each) for each in zip(names, kinds, strict=True)]
        body = self.taken()
        test = self.compare_counter(names, kinds, "n", kind)
        if self.random.random() < 0.2:
            other = self.compare_counter(names, kinds, "n", kind)
            test = self.line(f"pred[] and({test}, {other})")
        if self.random.random() < 0.1:
            test = self.line(f"pred[] not({test})")
        condition = self.taken() + f"\n  ROOT r = pred[] copy({test})"
        before = [f"  p = {kind}[] parameter(0)", f"  q = {kind}[] parameter(1)"]
        for name, each in zip(names, kinds, strict=True):
            first = f"{each}[] constant({self.number(each)})"
            if each == kind and self.random.random() < 0.3:
                first = f"{each}[] copy(p)"
            before.append(f"  start_{name} = {first}")
        top = f"{kind}[] constant({self.number(kind)})" if self.random.random() < 0.6 else ""
        before.append(f"  limit = {top or f'{kind}[] copy(q)'}")
        loop = LoopText(
            [*names, "n"],
            [f"{each}[]" for each in (*kinds, kind)],
            [*[f"start_{name}" for name in names], "limit"],
            [*carried, "n"],
            condition,
            body,
            "\n".join(before),
            "".join(self.extra),
        )
        return loop.entry


def value_of(expr: Any, runtime: Any, arguments: dict[str, int]) -> int:
    """Return the value of an expression over the parameters of the entry computation."""
    names = {rt.variable: arguments[str(rt.source_name)] for rt in runtime}
    return int(expr.value(names))
