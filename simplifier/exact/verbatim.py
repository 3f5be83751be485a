"""Translation of the text of a map to isl, verbatim: no simplification law is applied.

Certificates compare a simplified map with the text it was parsed from, independently of the laws.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from simplifier.exact.context import NotAffineError


@dataclass(frozen=True, slots=True)
class IslText:
    """A relation in isl notation, and its numbers of inputs and results."""

    text: str
    inputs: int
    results: int


class IslTerm(NamedTuple):
    """A subexpression: its isl text, and its value if it is a constant."""

    text: str
    number: int | None = None


class Verbatim:
    """An `Algebra` of isl texts, which only folds constants."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    @property
    def names(self) -> Collection[str]:
        """The declared variables, which have other names in isl."""
        return self._names

    def number(self, value: int) -> IslTerm:
        return IslTerm(str(value), value)

    def variable(self, name: str) -> IslTerm:
        return IslTerm(self._names[name])

    def negate(self, value: IslTerm) -> IslTerm:
        return IslTerm(f"(-{value.text})") if value.number is None else self.number(-value.number)

    def call_function(self, function: str, values: list[IslTerm]) -> IslTerm:
        return IslTerm(f"{function}({', '.join(v.text for v in values)})")

    def apply_operator(self, operator: str, left: IslTerm, right: IslTerm) -> IslTerm:
        known = _number(operator, left, right)
        if known is not None:
            return self.number(known)
        if operator in ("+", "-"):
            return IslTerm(f"({left.text} {operator} {right.text})")
        if operator == "*":
            number, other = (left, right) if right.number is None else (right, left)
            if number.number is None:
                raise NotAffineError("isl cannot represent a product of variables")
            return IslTerm(f"({number.text}*({other.text}))")
        if right.number is None:
            raise NotAffineError(f"isl cannot represent {operator} by a variable")
        if operator == "mod":
            return IslTerm(f"(({left.text}) mod {abs(right.number)})")
        sign = "" if operator == "floordiv" else "-"
        inner = "-" if (right.number < 0) != (operator == "ceildiv") else ""
        return IslTerm(f"({sign}floor(({inner}({left.text}))/{abs(right.number)}))")


def _number(operator: str, left: IslTerm, right: IslTerm) -> int | None:
    if left.number is None or right.number is None:
        return None
    match operator:
        case "+":
            return left.number + right.number
        case "-":
            return left.number - right.number
        case "*":
            return left.number * right.number
    return None
