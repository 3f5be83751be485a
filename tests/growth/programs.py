"""Registry of programs that grow with a number n, and helpers that write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

Program = Callable[[int], str]
Step = Callable[[int, str], str]
"""Functions from the number of a step and the name of the value before to instructions."""

PROGRAMS: Final[dict[str, Program]] = {}
"""Functions from n to the text of a module, by the name of the construct that grows."""

ADD: Final = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"
ZERO: Final = "z = f32[] constant(0)"
REVERSE: Final = "f32[3] reverse(p), dimensions={0}"


def construct(program: Program) -> Program:
    """Add a program to `PROGRAMS`; a decorator."""
    PROGRAMS[program.__name__] = program
    return program


def module(lines: Iterable[str], *computations: str) -> str:
    """Return a module: computations, and an entry with these lines, the last of which is the root.

    >>> print(module(["p = f32[3] parameter(0)"]))
    HloModule m
    ENTRY e {
    p = f32[3] parameter(0)
    }
    """
    return "\n".join(["HloModule m", *computations, "ENTRY e {", *lines, "}"])


def computation(name: str, lines: Iterable[str]) -> str:
    """Return a computation, the last line of which is the root."""
    return "\n".join([f"{name} {{", *lines, "}"])


def chain(n: int, first: str, step: Step, *more: str) -> list[str]:
    """Return n steps, each a function of its number and the name of the value before.

    >>> chain(2, "f32[8] parameter(0)", lambda k, x: f"f32[8] negate({x})")
    ['x = f32[8] parameter(0)', 'x0 = f32[8] negate(x)', 'x1 = f32[8] negate(x0)']
    """
    lines, value = [f"x = {first}", *more], "x"
    for k in range(n):
        *before, last = step(k, value).split("; ")
        value = f"x{k}"
        lines += [*before, f"{value} = {last}"]
    return lines


def add_chain(first: str, *more: str, called: str = "") -> Callable[[Step], Step]:
    """Add n steps to `PROGRAMS` as a module, from ``x = first``; a decorator of one step.

    Args:
        first: the instruction that the first step reads.
        more: other instructions that steps read.
        called: a computation that steps call.
    """

    def add(step: Step) -> Step:
        computations = [called] if called else []
        PROGRAMS[step.__name__] = lambda n: module(chain(n, first, step, *more), *computations)
        return step

    return add


def names(prefix: str, n: int) -> str:
    """Return n names, separated by commas."""
    return ", ".join([f"{prefix}{k}" for k in range(n)])


def parameters(n: int, shape: str = "f32[3]") -> list[str]:
    """Return n parameters ``p0`` to ``p{n-1}``."""
    return [f"p{k} = {shape} parameter({k})" for k in range(n)]


def tuple_of(n: int, shape: str = "f32[3]") -> str:
    """Return the shape of a tuple of n arrays."""
    return f"({', '.join([shape] * n)})"
