"""Names of inline computations: every body stays a computation of its own.

Random modules nest inline bodies under instructions with few names, beside named computations and
asynchronous starts whose names clash with those that the parser makes. The function of a body is a
product of unique factors, so the result says which bodies were called.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import hlo
from indexing.execution import run
from tests.oracles import scale

NAMES = ("c", "c.to_apply", "c.to_apply.1", "c.branch_computations.0", "async_wrapped", "e")
NAMED = (
    "c.to_apply",
    "c.to_apply.1",
    "c.branch_computations.0",
    "async_wrapped",
    "c",
    "u.to_apply",
)
ARGUMENT = 3


class RandomModule:
    """A random text, with the number of its computations and its result for `ARGUMENT`."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.computations = 1
        self.named: dict[str, int] = {}  # the factor of each named computation
        bodies = []
        for name in self.chance.sample(NAMED, self.chance.randrange(4)):
            text, factor = self.body(self.chance.randrange(3))
            self.computations += 1
            self.named[name] = factor
            bodies.append(f"{name} {text}")
        text, self.factor = self.body(3)
        self.text = "\n".join([f"HloModule m{seed}", *bodies, f"ENTRY e {text}"])

    def body(self, depth: int) -> tuple[str, int]:
        """Return the text of a body and the number by which it multiplies its parameter."""
        own = self.chance.choice((3, 5, 7, 11, 13))
        lines, last, factor = ["p = s32[] parameter(0)", f"k = s32[] constant({own})"], "p", own
        for number, name in enumerate(self.chance.sample(NAMES, self.chance.randrange(1, 3))):
            line, by = self.call(name, last, depth)
            lines.append(line)
            if line.endswith(f" negate-start({last})"):
                lines.append(f"d{number} = s32[] negate-done({name})")
                name = f"d{number}"
            last, factor = name, factor * by
        lines.append(f"ROOT r = s32[] multiply({last}, k)")
        return "{\n" + "\n".join(lines) + "\n}", factor

    def call(self, name: str, operand: str, depth: int) -> tuple[str, int]:
        """Return an instruction that calls computations, and its factor."""
        kind = self.chance.randrange(4) if depth else 3
        if kind < 2:
            text, factor = self.callee(depth - 1)
            return f"{name} = s32[] call({operand}), to_apply={text}", factor
        if kind == 2:
            first, second = self.callee(depth - 1), self.callee(depth - 1)
            chosen = self.chance.randrange(2)
            texts = f"{{ {first[0]}, {second[0]} }}"
            index = f"s32[] constant({chosen})"
            call = f"conditional({index}, {operand}, {operand}), branch_computations={texts}"
            return f"{name} = s32[] {call}", (first, second)[chosen][1]
        self.computations += 1
        return f"{name} = ((s32[]), s32[], u32[]) negate-start({operand})", -1

    def callee(self, depth: int) -> tuple[str, int]:
        """Return a named computation that precedes, or an inline body; and its factor."""
        if self.named and self.chance.randrange(3) == 0:
            name = self.chance.choice(list(self.named))
            return name, self.named[name]
        self.computations += 1
        return self.body(depth)


def _result(module: hlo.Module) -> int:
    (result,) = run(module, [np.int32(ARGUMENT)])
    return int(result)


def _expected_value(random: RandomModule) -> int:
    return (ARGUMENT * random.factor + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "lazy"])
def test_every_body_is_a_computation_that_survives_printing(lazy: bool) -> None:
    for seed in range(scale(40)):
        random = RandomModule(seed)
        module = hlo.parse(random.text, lazy=lazy)
        printed = str(module)
        again = hlo.parse(printed, lazy=lazy)
        for each in (module, again):
            assert len(each.computations) == random.computations, seed
            assert {c.name: c for c in each.computations.values()} == each.computations, seed
            assert _result(each) == _expected_value(random), seed
        for instruction in module.instructions:
            for called in instruction.called_computations:
                assert module.computations[called.name] is called, seed
        assert again == module, seed
        assert str(again) == printed, seed
        assert hlo.difference(module, again) is None, seed


def test_nested_bodies_of_instructions_with_one_name() -> None:
    body = "{ p = f32[] parameter(0) ROOT r = f32[] negate(p) }"
    for _ in range(3):
        body = f"{{ p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply={body} }}"
    module = hlo.parse(f"ENTRY e {body}")
    names = ["c.to_apply.2", "c.to_apply.1", "c.to_apply", "e"]
    assert list(module.computations) == names
    assert [module.computations[n].root.opcode for n in names] == ["negate", *["call"] * 3]


def test_a_named_computation_may_follow_an_inline_one_of_its_name() -> None:
    module = hlo.parse("""
    a { p = f32[] parameter(0)
      ROOT c = f32[] call(p), to_apply={ q = f32[] parameter(0) ROOT n = f32[] negate(q) } }
    c.to_apply { p = f32[] parameter(0) ROOT r = f32[] abs(p) }
    ENTRY e { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=c.to_apply }""")
    assert [c.root.opcode for c in module.entry.root.called_computations] == ["abs"]
    assert list(module.computations) == ["c.to_apply.1", "a", "c.to_apply", "e"]


@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "lazy"])
def test_a_text_cannot_call_an_inline_computation_by_its_made_name(lazy: bool) -> None:
    with pytest.raises(hlo.HloError, match=r"`c\.to_apply` is not defined"):
        hlo.parse(
            """
            a { p = f32[] parameter(0)
              ROOT c = f32[] call(p), to_apply={ q = f32[] parameter(0) ROOT n = f32[] negate(q) } }
            b { p = f32[] parameter(0) ROOT d = f32[] call(p), to_apply=c.to_apply }
            ENTRY e { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=b }""",
            lazy=lazy,
        )
