"""Results of the comparison of formulas, and what roundings to a narrower type make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from indexing.equivalence.values.laws.roundings import EXCESS, FACTORS
from indexing.equivalence.values.matching.matching import Difference

Roundings: TypeAlias = Literal["dropped", "kept", "added to factors"]
"""What a comparison over the reals does with roundings to a narrower type."""

OTHERS: Final[tuple[Roundings, ...]] = ("added to factors", "dropped")
"""The comparisons of outputs that are not proved as long as roundings are kept, in this order."""

ROUNDED_AFTER: Final = "only the program after rounds a value to a narrower type"

_NO_LAWS: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EqualFormulas:
    """A proof that an output has the same formula in both programs.

    Attributes:
        laws: the number of uses of each law that is not exact, by name.
        is_structural: the arrays have the same value number; no formula was needed.
    """

    laws: Mapping[str, int] = field(default_factory=lambda: _NO_LAWS)
    is_structural: bool = False

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Residual:
    """The part of an output's formulas that is not proved equal.

    Attributes:
        before, after: the smallest pair of subterms that differ, as text.
        difference: the part in which they differ.
        reason: the obstacle, if the formulas are not known.
        in_the_reals: the laws by which the formulas are equal, if only the program after rounds
            some values to a narrower type; else None.
    """

    before: str
    after: str
    difference: Difference | None
    reason: str
    in_the_reals: Mapping[str, int] | None = None

    def __bool__(self) -> bool:
        return False


ValueResult: TypeAlias = EqualFormulas | Residual


def judged_roundings(
    results: Sequence[ValueResult],
    compare: Callable[[Roundings, Sequence[int]], Sequence[ValueResult]],
) -> list[ValueResult]:
    """Return results with those outputs judged that are not proved as long as roundings are kept.

    Args:
        results: of a comparison in which the program after may not round more.
        compare: returns the results of another comparison, of the outputs with these numbers.
    """
    judged = list(results)
    for roundings in OTHERS:
        numbers = [k for k, each in enumerate(judged) if not each]
        own = compare(roundings, numbers) if numbers else []
        if len(own) != len(numbers):
            continue  # a program is beyond the comparison
        for k, result in zip(numbers, own, strict=True):
            if roundings == "added to factors":
                judged[k] = _with_laws(result, {FACTORS: 1}) if result else judged[k]
            elif isinstance(result, Residual):
                judged[k] = result
            else:
                residual = judged[k]
                assert isinstance(residual, Residual)
                judged[k] = replace(residual, reason=ROUNDED_AFTER, in_the_reals=result.laws)
    return judged


def drops_roundings(result: ValueResult) -> bool:
    """Return True for a proof that drops roundings in one of both programs."""
    return isinstance(result, EqualFormulas) and EXCESS in result.laws


def directed_result(dropped: ValueResult, directed: ValueResult) -> ValueResult:
    """Return a result in which the program after does not round more.

    Args:
        dropped: of a comparison that drops roundings in both programs.
        directed: of one that adds roundings to factors, and keeps the others.
    """
    if not isinstance(dropped, EqualFormulas) or not drops_roundings(dropped):
        return dropped
    if isinstance(directed, Residual):
        return replace(directed, reason=ROUNDED_AFTER, in_the_reals=dropped.laws)
    return _with_laws(directed, {FACTORS: 1})


def _with_laws(result: ValueResult, laws: Mapping[str, int]) -> ValueResult:
    """Return a proof with further laws; a residual as it is."""
    if not isinstance(result, EqualFormulas) or not laws:
        return result
    return EqualFormulas(MappingProxyType(dict(sorted({**result.laws, **laws}.items()))))
