"""Totals that follow a statistic: the factor of a step, and factors that are applied at the end.

The law of `indexing.tiling.loops.rescaling` decides which nests may share a phase.  A factor that
is a function of statistics alone does not enter the total: the sum without it is multiplied by its
last value.  A maximum that shifts the argument of an exponential stays, and the total is rescaled
by ``exp(old - new)`` in each step.  Before the first finite element, the maximum is -inf, and
``exp(-inf - -inf)`` is no number: 0 stands for it, so that the terms are 0, as for each later
maximum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from hlo.shapes.shape import dtype
from indexing.codegen.tile_programs.program import NotEmitted, StepTotal
from indexing.codegen.tile_programs.tile_values import (
    TileApply,
    TileFold,
    TileIndex,
    TileLoad,
    TileScalar,
    TileTotal,
    TileValue,
    TotalState,
    in_order,
)
from indexing.ops import numerics
from indexing.ops.functions import ScalarFunction

Factors: TypeAlias = tuple[tuple[TileValue, bool], ...]
Memo: TypeAlias = dict[tuple[str, TileValue], TileValue]
SUBTRACT: Final = ScalarFunction.of(np.subtract)
MULTIPLY: Final = ScalarFunction.of(np.multiply)
EXP: Final = ScalarFunction.of(np.exp)
WHERE: Final = ScalarFunction.of(np.where)
EQUAL: Final = ScalarFunction("==", "infix", np.equal)


def followed_total(
    number: int, fold: TileFold, known: dict[int, StepTotal], memo: Memo
) -> StepTotal:
    """Return a total of a phase, which may use running totals of the same phase.

    Args:
        number: the number of its nest.
        fold: what a step adds.
        known: the other totals of the phase.
        memo: values that the totals of the phase share.
    Raises:
        NotEmitted: the statistic enters in a form that is not emitted.
    """
    if not _uses_running(fold):
        return StepTotal(number, fold)
    follower = _Follower(known, fold.name, memo)
    terms: list[TileValue] = []
    factors: list[tuple[TileValue, bool]] = []
    rescale: TileValue | None = None
    for term in fold.terms:
        value, own = follower.without_factors(term)
        rescale = product(rescale, follower.ratio(value), fold)
        terms.append(follower.guarded(value))
        factors += own
    return StepTotal(number, replace(fold, terms=tuple(terms)), rescale, tuple(factors))


def product(a: TileValue | None, b: TileValue | None, fold: TileFold) -> TileValue | None:
    """Return the product of two factors; None is 1."""
    if a is None or b is None:
        return b if a is None else a
    return TileApply(MULTIPLY, (a, b), fold.total_kind, fold.name)


def _uses_running(value: TileValue) -> bool:
    return any(isinstance(v, TileTotal) and v.state == "running" for v in in_order([value]))


def _is_statistic(value: TileValue) -> bool:
    """Return True for a function of statistics alone."""
    parts = in_order([value])
    is_plain = not any(isinstance(v, TileLoad | TileIndex | TileFold) for v in parts)
    return is_plain and _uses_running(value)


def with_state(value: TileValue, state: TotalState) -> TileValue:
    """Return a function of statistics with other states of its totals."""
    match value:
        case TileTotal(state="running"):
            return replace(value, state=state)
        case TileApply():
            return replace(value, arguments=tuple([with_state(a, state) for a in value.arguments]))
        case _:
            return value


class _Follower:
    """The parts of terms that depend on running totals."""

    def __init__(self, known: dict[int, StepTotal], name: str, memo: Memo) -> None:
        self._known, self._name, self._memo = known, name, memo

    def _refuse(self, value: TileValue) -> NotEmitted:
        name = getattr(value, "name", self._name)
        return NotEmitted(f"`{name}` uses a statistic of the same phase: no factor is known")

    def without_factors(self, value: TileValue) -> tuple[TileValue, Factors]:
        """Return a value without the factors that are functions of statistics, and these."""
        if not _uses_running(value) or not isinstance(value, TileApply):
            if _uses_running(value):
                raise self._refuse(value)
            return value, ()
        call = value.function.call
        if call is np.exp:
            return value, ()
        if _is_cast(value.function):
            inner, factors = self.without_factors(value.arguments[0])
            return replace(value, arguments=(inner,)), factors
        if call not in (np.multiply, numerics.divide):
            raise self._refuse(value)
        left, right = value.arguments
        if _is_statistic(right):
            inner, factors = self.without_factors(left)
            last = with_state(right, "final")
            return inner, (*factors, (last, call is not np.multiply))
        if _is_statistic(left) and call is np.multiply:
            inner, factors = self.without_factors(right)
            return inner, (*factors, (with_state(left, "final"), False))
        if call is not np.multiply and _uses_running(right):
            raise self._refuse(value)
        first, factors = self.without_factors(left)
        second, more = self.without_factors(right)
        return replace(value, arguments=(first, second)), (*factors, *more)

    def ratio(self, value: TileValue) -> TileValue | None:
        """Return by what a value changes when statistics change; None for nothing."""
        if not _uses_running(value):
            return None
        assert isinstance(value, TileApply)
        if value.function.call is np.exp:
            return self._exponential_ratio(value)
        factors = [self.ratio(each) for each in value.arguments]
        known = [each for each in factors if each is not None]
        if len(known) != 1:
            raise self._refuse(value)
        return known[0]

    def _exponential_ratio(self, value: TileApply) -> TileValue:
        key = "ratio", value
        if key not in self._memo:
            self._memo[key] = self._new_ratio(value)
        return self._memo[key]

    def _new_ratio(self, value: TileApply) -> TileValue:
        change = self._change(value.arguments[0])
        assert change is not None
        if not _is_decrease(change):
            raise NotEmitted(
                f"`{value.name}` grows with a statistic in its exponential: tile with online=False"
            )
        self._check_maxima(value)
        return TileApply(EXP, (self._finite(change),), change.kind, value.name)

    def _check_maxima(self, value: TileApply) -> None:
        """Refuse statistics within an exponential that are no maxima: they could overflow."""
        for top in in_order([value]):
            if isinstance(top, TileTotal) and top.state == "running":
                if self._known[top.number].fold.combine is not np.maximum:
                    raise NotEmitted(
                        f"`{top.name}` is within an exponential and no maximum, so that it could "
                        "overflow: tile with online=False"
                    )

    def _change(self, value: TileValue) -> TileValue | None:
        """Return the value for the new statistics minus that for the old; None if it is equal.

        Of ``x - top``, it is ``old - new``.
        """
        if not _uses_running(value):
            return None
        if _is_statistic(value):
            before = with_state(value, "previous")
            return TileApply(SUBTRACT, (value, before), value.kind, self._name)
        if not isinstance(value, TileApply):
            raise self._refuse(value)
        changes = [self._change(each) for each in value.arguments]
        if _is_cast(value.function):
            return changes[0]
        change = self._change_of(value, [each for each in changes if each is not None])
        is_other = len(changes) == 2 and changes[1] is not None
        return self._negate(change) if value.function.call is np.subtract and is_other else change

    def _change_of(self, value: TileApply, changes: list[TileValue]) -> TileValue:
        """Return the change of a function, or of the only argument that changes of a difference."""
        if len(changes) != 1:
            raise self._refuse(value)
        call = value.function.call
        if call in (np.add, np.subtract):
            return changes[0]
        if call is np.negative:
            return self._negate(changes[0])
        scalars = [each for each in value.arguments if isinstance(each, TileScalar)]
        if call is np.multiply and scalars:
            return replace(value, arguments=(changes[0], scalars[0]))
        raise self._refuse(value)

    def _negate(self, change: TileValue) -> TileValue:
        assert isinstance(change, TileApply)
        if change.function is SUBTRACT:
            return replace(change, arguments=change.arguments[::-1])
        return TileApply(ScalarFunction.of(np.negative), (change,), change.kind, change.name)

    def guarded(self, value: TileValue) -> TileValue:
        """Return a term with finite maxima in its exponentials."""
        if not _uses_running(value):
            return value
        assert isinstance(value, TileApply)
        if value.function.call is np.exp:
            return self._finite(value)
        return replace(value, arguments=tuple(map(self.guarded, value.arguments)))

    def _finite(self, value: TileValue) -> TileValue:
        """Return a value with 0 for a running maximum of -inf."""
        key = "finite", value
        if key not in self._memo:
            self._memo[key] = self._new_finite(value)
        return self._memo[key]

    def _new_finite(self, value: TileValue) -> TileValue:
        if isinstance(value, TileTotal) and value.state == "running":
            kind = value.kind
            low = TileScalar(np.asarray(-np.inf, dtype(kind)), kind)
            zero = TileScalar(np.zeros((), dtype(kind)), kind)
            is_low = TileApply(EQUAL, (value, low), "pred", value.name)
            return TileApply(WHERE, (is_low, zero, value), kind, value.name)
        if isinstance(value, TileApply) and _uses_running(value):
            return replace(value, arguments=tuple(map(self._finite, value.arguments)))
        return value


def _is_decrease(change: TileValue) -> bool:
    """Return True for old statistics minus new ones, possibly times a positive number."""
    if not isinstance(change, TileApply):
        return False
    if change.function is SUBTRACT:
        return _uses_running(change.arguments[1]) and not _uses_running(change.arguments[0])
    first, *others = change.arguments
    scalars = [each for each in others if isinstance(each, TileScalar) and each.value > 0]
    return change.function.call is np.multiply and bool(scalars) and _is_decrease(first)


def _is_cast(function: ScalarFunction) -> bool:
    return function.name.startswith("to_")
