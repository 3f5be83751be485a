"""Mutants of the second program of a pair: none is proved whose execution differs."""

import random
import re
from collections.abc import Callable, Iterator

from hlo.text.source import HloError
from indexing.equivalence.compare import equivalent
from indexing.equivalence.values.engine import compare_values
from indexing.equivalence.verdicts import Differs
from tests.equivalence.test_values import EQUAL, program

OTHER = {
    "LT": "LE",
    "LE": "LT",
    "GT": "GE",
    "GE": "GT",
    "EQ": "NE",
    "NE": "EQ",
    "add": "subtract",
    "subtract": "add",
    "multiply": "add",
    "maximum": "minimum",
    "minimum": "maximum",
    "negate": "abs",
    "and": "or",
    "or": "and",
}
MUTATIONS: dict[str, Callable[[re.Match[str]], str]] = {  # pattern: replacement
    r"\[(\d+):(\d+)\]": lambda m: f"[{max(int(m[1]) - 1, 0)}:{max(int(m[2]) - 1, 1)}]",
    r"padding=(\d+)_(\d+)": lambda m: f"padding={m[2]}_{m[1]}",
    r"direction=(\w\w)": lambda m: f"direction={OTHER[m[1]]}",
    r"\b(add|subtract|multiply|maximum|minimum|negate|and|or)\(": lambda m: f"{OTHER[m[1]]}(",
    r"constant\((-?\d+)\)": lambda m: f"constant({int(m[1]) + 1})",
    r"dimensions=\{(\d),(\d)\}": lambda m: f"dimensions={{{m[2]},{m[1]}}}",
    r"dimensions=\{(\d)\}": lambda m: f"dimensions={{{1 - int(m[1])}}}",
    r"iota_dimension=(\d)": lambda m: f"iota_dimension={1 - int(m[1])}",
    r"\((\w), (\w)\)": lambda m: f"({m[2]}, {m[1]})",
    r"select\((\w), (\w), (\w)\)": lambda m: f"select({m[1]}, {m[3]}, {m[2]})",
    r"clamp\((\w), (\w), (\w)\)": lambda m: f"clamp({m[1]}, {m[2]}, {m[2]})",
    r"dynamic-slice\(x, i, z\)": lambda m: "dynamic-slice(x, z, i)",
    r"hs_contracting_dims=\{(\d)\}": lambda m: f"hs_contracting_dims={{{1 - int(m[1])}}}",
}


def mutants(body: str) -> Iterator[str]:
    for pattern, replacement in MUTATIONS.items():
        for match in re.finditer(pattern, body):
            mutant = body[: match.start()] + replacement(match) + body[match.end() :]
            if mutant != body:
                yield mutant


def decided_mutants(name: str) -> int:
    """Check some mutants of a pair; return the number of valid ones."""
    before = program(EQUAL[name][0])
    decided = 0
    every = list(mutants(EQUAL[name][1]))
    for body in random.Random(3).sample(every, min(len(every), 12)):
        try:
            after = program(body)
            (result,) = compare_values(before.entry, after.entry)
        except (HloError, ValueError):
            continue  # the mutant is invalid
        decided += 1
        if result:
            verdict = equivalent(before, after, level="numbers")
            assert not isinstance(verdict, Differs), (body, verdict)
    return decided


def test_no_mutant_with_other_numbers_is_proved() -> None:
    assert sum(map(decided_mutants, EQUAL)) >= 18
