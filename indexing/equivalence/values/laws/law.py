"""Laws of values: records that rewrite a function of terms, shared by code, tests and docs.

* An *exact* law is valid for every value of the type.  NaN is one value: its sign and payload are
  not compared, because HLO does not define them.
* A law *up to the sign of zero* may exchange 0 and -0.
* A *real* law is valid in the reals; floats round differently.
* A *definition* replaces an op by its defining formula, as the compiler does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from indexing.equivalence.values.terms.functions import Attributes
from indexing.equivalence.values.terms.terms import Formula, FormulaTable
from simplifier.linear import Expr

LawGrade: TypeAlias = Literal["exact", "sign of zero", "real", "definition"]


class Application(NamedTuple):
    """A function of terms before it is simplified."""

    opcode: str
    attributes: Attributes
    element_type: str
    arguments: tuple[Formula, ...]


class Constructors(Protocol):
    """Constructors of terms (`indexing.equivalence.values.laws.algebra.FormulaAlgebra`)."""

    table: FormulaTable
    computed: set[Formula]

    def apply(
        self, opcode: str, attributes: Attributes, element_type: str, arguments: Sequence[Formula]
    ) -> Formula:
        """Return a function of terms, simplified."""

    def raw(self, call: Application) -> Formula:
        """Return a function of terms by no law but commutation."""

    def note(self, names: Iterable[str]) -> None:
        """Record uses of laws that are not exact."""

    def choose(self, expr: Expr, pieces: Sequence[tuple[int, Formula]]) -> Formula:
        """Return the term of the first piece whose upper bound `expr` does not exceed."""


Rewrite: TypeAlias = Callable[[Constructors, Application], Formula | None]


@dataclass(frozen=True, slots=True)
class ValueLaw:
    """A law that rewrites an application of `opcode`.

    Attributes:
        name: as reported: the formula.
        grade: for which values the law is valid.
        opcodes: the functions that it rewrites.
        condition: when it applies, in words.
        proof: why it is valid, or by which rule of HLO.
        rewrite: returns the other side, or None if the law does not apply.
    """

    name: str
    grade: LawGrade
    opcodes: tuple[str, ...]
    condition: str
    proof: str
    rewrite: Rewrite
