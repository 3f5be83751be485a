"""Atoms of sums: equal structures are the same object, so terms merge by identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from simplifier.interval import Interval

OrderKey: TypeAlias = tuple[object, ...]

MAX_DEPTH: Final = 64
"""Maximum depth of nested atoms that recursive functions visit; deeper ones need iteration."""


def depth_above(operands: Iterable[Any]) -> int:
    """Return the depth of an atom with these operands, which are expressions."""
    return 1 + max([atom.depth for operand in operands for atom in operand.parts], default=0)


class Atom:
    """Base class of the atoms of a sum.

    Attributes:
        bounds: an interval that contains every value, from the bounds of variables.
        weight: number of atoms in its text; repeated parts count each time.
        depth: number of nested atoms; 1 for a variable.
        operands: its subexpressions.
        is_affine: True if it has no product, quotient, minimum or maximum of variables.
        divides: True for a floor.
    """

    __slots__ = ("_key", "_variables", "bounds")

    bounds: Interval
    weight: int
    depth: int
    operands: tuple[Any, ...]  # of `Expr`, which is written on top of this module
    is_affine = False
    divides = False
    _key: OrderKey | None
    _variables: frozenset[Any] | None

    @property
    def key(self) -> OrderKey:
        """Sort key that is the same in every process: variables by name, then floors.

        Atoms deeper than `MAX_DEPTH` come last; their keys may be equal.

        >>> from simplifier import Variable
        >>> Variable("d2", 0, 9).key < Variable("d10", 0, 9).key
        True
        """
        if self._key is None:
            is_deep = self.depth > MAX_DEPTH
            self._key = (3, self.depth, self.weight, *self.bounds) if is_deep else self._made_key()
        return self._key

    @property
    def variables(self) -> frozenset[Any]:
        """Its variables, at any depth; memoised.

        >>> from simplifier import variable
        >>> (floor,) = ((variable("d0", 0, 9) + variable("s0", 0, 2) * 2) // 4).parts
        >>> sorted(v.name for v in floor.variables)
        ['d0', 's0']
        """
        if not self.operands:
            return frozenset((self,))
        return _variables_in(self) if self._variables is None else self._variables

    def _made_key(self) -> OrderKey:
        raise NotImplementedError

    def value(self, point: Mapping[Any, Any]) -> Any:
        """Return the value at `point`; with arrays, the values at many points.

        >>> from simplifier import Variable
        >>> d0, s0 = Variable("d0", 0, 9), Variable("s0", 0, 2)
        >>> (floor,) = ((d0 + s0 * 2) // 4).parts
        >>> floor.value({d0: 9, s0: 1})  # 11 // 4
        2
        """
        raise NotImplementedError

    def value_of(self, values: Iterable[Any]) -> Any:
        """Return the value for these values of the operands.

        >>> from simplifier import variable
        >>> (floor,) = (variable("d0", 0, 9) // 4).parts
        >>> floor.value_of([9])  # 9 // 4
        2
        """
        raise NotImplementedError


def _variables_in(outer: Atom) -> frozenset[Any]:
    """The variables in an atom; memoises them for it and the atoms in it, without recursion."""
    variables: frozenset[Any] = frozenset()
    pending = [outer]
    while pending:
        atom = pending[-1]
        inner = [part for operand in atom.operands for part in operand.parts]
        unknown = [part for part in inner if part.operands and part._variables is None]
        if unknown:
            pending += unknown
        else:
            own = frozenset([part for part in inner if not part.operands])
            sets = [part.variables for part in inner if part.operands]
            variables = atom._variables = _union([own, *sets]) if sets else own
            pending.pop()
    return variables


def _union(sets: list[frozenset[Any]]) -> frozenset[Any]:
    """The union, which is one of the sets if it contains the others."""
    largest = max(sets, key=len, default=frozenset())
    others = [each for each in sets if not each <= largest]
    return largest.union(*others) if others else largest
