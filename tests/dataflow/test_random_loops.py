"""Maps of random programs with loops, against executions and against unrolled loops.

``FUZZ=20`` checks twenty times as many programs, others in each run.
"""

from __future__ import annotations

import random

import pytest

import hlo
from hlo import Module
from tests.dataflow.influence import Pokes
from tests.dataflow.loop_judge import disagreements, miss, not_inverse, unroll
from tests.dataflow.random_loops import RandomLoops
from tests.oracles import scale

pytestmark = pytest.mark.sampled

POKES = 12
FEW = 12


def seeds(count: int) -> list[int]:
    """Return the seeds of `count` programs; random ones if there are more than by default."""
    first = random.randrange(1 << 30) if scale(10) > 10 else 0
    return list(range(first, first + scale(count)))


def program(seed: int, bound: str) -> tuple[Module, Pokes]:
    """Return a random program and random arguments."""
    text = RandomLoops(seed, bound).text
    module = hlo.parse(text)
    assert not hlo.verify(module), text
    return module, Pokes.of(module.entry, seed)


def with_bound(text: str, value: int) -> Module:
    """Return the program with a constant in place of the parameter `n`."""
    (line,) = [each for each in text.splitlines() if each.startswith("  n = s32[] parameter")]
    other = line.replace("  n =", "  unused =")
    return hlo.parse(text.replace(line, f"{other}\n  n = s32[] constant({value})"))


def test_maps_have_every_dependency_of_an_execution() -> None:
    for seed in seeds(FEW):
        for bound in ("constant", "n", "data"):
            module, pokes = program(seed, bound)
            pokes.poke_some(POKES)
            faults = [*miss(module, pokes), *miss(module, pokes, exact=True)]
            assert not faults, f"seed {seed}, bound {bound}: {faults[0]}\n{module}"


def test_maps_of_counted_loops_are_those_of_the_unrolled_loops() -> None:
    for seed in seeds(FEW):
        module, pokes = program(seed, "constant")
        arguments = pokes.arguments if pokes.results else None
        faults = list(disagreements(module, unroll(module), arguments))
        assert not faults, f"seed {seed}: {faults[0]}\n{module}"


def test_maps_of_loops_of_unknown_length_are_those_of_each_length() -> None:
    for seed in seeds(FEW):
        module, pokes = program(seed, "n")
        for length in range(-1, 5, 2):
            pokes.arguments[-1][...] = length
            without = unroll(with_bound(RandomLoops(seed, "n").text, length))
            faults = list(disagreements(module, without, pokes.arguments, constant="n"))
            assert not faults, f"seed {seed}, n = {length}: {faults[0]}\n{module}"


def test_maps_from_the_operand_of_a_loop_are_the_inverse_of_those_to_it() -> None:
    for seed in seeds(FEW):
        for bound in ("constant", "n", "data"):
            module, _ = program(seed, bound)
            for loop in module.find(opcode="while"):
                faults = list(not_inverse(loop))
                assert not faults, f"seed {seed}, bound {bound}: {faults[0]}\n{module}"
