"""Floor division of an expression by a positive constant, and the laws of its normal form.

For ``floor(e / d)``, in this order (`simplifier.laws` has the conditions and proofs):

1. *factor out multiples*: ``floor((d·q + r) / d) = q + floor(r / d)``;
2. *fold a constant floor*: the bounds of the remainder lie within one multiple of ``d``;
3. *cancel a common factor*: ``floor((g·a + b) / (g·c)) = floor((a + k) / c)`` if
   ``floor(b / g)`` is the constant ``k``;
4. *merge nested floors*: ``floor((floor(n / e) + r) / d) = floor((n + e·r) / (d·e))``, or *merge a
   negated floor*, for ``−floor(n / e)``;
5. otherwise a new atom.

Laws 1 to 3 are tried first with the mods in ``e`` as a whole, because ``x mod m`` has much tighter
bounds than ``x − m·floor(x / m)`` term by term, and then with the mods expanded to their terms.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from simplifier import laws, trace
from simplifier.atoms import Atom, Floor
from simplifier.bounds import UNCONSTRAINED, AtomLike, DivisionKey, KnownBounds
from simplifier.division import Division
from simplifier.linear import Expr, add_multiple, constant, from_atom
from simplifier.mods import Mod, may_contain_mods, split_finest_for, split_for
from simplifier.trace import Law

_RECORDS: Final = trace.records
_FOLD: Final = laws.FOLD_CONSTANT_FLOOR


def floor_div(expr: Expr, divisor: int, known: KnownBounds = UNCONSTRAINED) -> Expr:
    """Return ``floor(expr / divisor)`` in normal form, rounded towards minus infinity.

    Args:
        expr: dividend.
        divisor: positive constant.
        known: bounds on a domain; the result is equal there.

    Raises:
        ValueError: `divisor` is not positive.

    >>> from simplifier.linear import variable
    >>> d0, d1 = variable("d0", 0, 9), variable("d1", 0, 5)
    >>> floor_div(d0 * 8 + d1, 4)
    Expr('d0 * 2 + d1 floordiv 4')
    """
    if divisor <= 1:
        if divisor < 1:
            raise ValueError(f"the divisor must be positive, got {divisor}")
        return expr
    bounds = expr.bounds_memo
    if bounds is not None:  # most often those of a variable or a floor
        multiple = bounds[0] // divisor
        if multiple == bounds[1] // divisor and not _RECORDS:
            return Expr({}, multiple)
    key = expr._identity or expr.identity, divisor
    return known.floors.get(key) or _new_floor(expr, divisor, known, key)


def _new_floor(expr: Expr, divisor: int, known: KnownBounds, key: DivisionKey) -> Expr:
    """`floor_div` of a division that `known` does not hold yet."""
    law, floor = _divide(expr, divisor, known)
    if _RECORDS and law is not None:
        trace.record(law, f"{trace.operand_text(expr)} floordiv {divisor}", floor)
    if len(known.floors) >= _MAX_FLOORS:
        known.forget_divisions()
    known.floors[key] = floor
    return floor


_MAX_FLOORS: Final = 1 << 9

trace.clear_when_recording(UNCONSTRAINED.forget_divisions)


def floor_mod(expr: Expr, modulus: int, known: KnownBounds = UNCONSTRAINED) -> Expr:
    """Return ``expr − modulus·floor(expr / modulus)``, which lies in ``[0, modulus)``.

    Raises:
        ValueError: `modulus` is not positive.
    """
    if modulus <= 1:
        return add_multiple(expr, floor_div(expr, modulus, known), -modulus)
    bounds = expr.bounds_memo
    if bounds is not None:
        multiple = bounds[0] // modulus
        if multiple == bounds[1] // modulus and not _RECORDS:
            return expr - multiple * modulus if multiple else expr
    key = expr._identity or expr.identity, modulus
    remainder = known.remainders.get(key)
    if remainder is None:
        floor = known.floors.get(key) or _new_floor(expr, modulus, known, key)
        remainder = add_multiple(expr, floor, -modulus)
        if not known.sums:
            remainder.modulus = modulus
        if _RECORDS:
            trace.record(laws.EXPAND_MOD, f"{trace.operand_text(expr)} mod {modulus}", remainder)
        known.remainders[key] = remainder
    return remainder


def _divide(expr: Expr, divisor: int, known: KnownBounds) -> tuple[Law | None, Expr]:
    """Return ``floor(expr / divisor)`` and the last law applied to it."""
    parts = expr.parts
    if len(parts) < 2:
        if not parts:
            return None, constant(expr.constant // divisor)
        if divisor > 2 and not expr.constant and not known.sums:
            ((only, coefficient),) = parts.items()
            if coefficient == 1:
                return _divided_atom(expr, only, divisor, known)
    floors: list[Floor] = []
    for atom in parts:  # the hottest function: no comprehension, which is a call
        if isinstance(atom, Floor):
            floors.append(atom)
    may_have_mods = bool(floors) and may_contain_mods(floors, parts)
    if may_have_mods:
        folded = _with_whole_mods(expr, floors, divisor, known)
        if folded is not None:
            return folded
    return _divided_by_terms(expr, floors, divisor, known, may_have_mods)


def _divided_by_terms(
    expr: Expr, floors: list[Floor], divisor: int, known: KnownBounds, may_have_mods: bool
) -> tuple[Law | None, Expr]:
    """`_divide` with the mods expanded to their terms; `floors` are those of the sum."""
    pieces: dict[AtomLike, int] = expr.parts  # type: ignore[assignment]  # never modified
    if known.sums:
        pieces = known.pieces(expr.parts)
    is_plain = not may_have_mods and not known.sums
    division = Division(pieces, expr.constant, divisor, known, is_plain)
    decided = _decide_by_intervals(division)
    if decided is not None:
        return decided
    law, remainder = None, expr
    if division.quotient or division.constant:
        law = laws.FACTOR_OUT_MULTIPLES
        remainder = division.sum(division.remainder, division.offset)
        if may_have_mods:  # the remainder may have other mods
            return law, division.quotient_and(floor_div(remainder, divisor, known))
    floor = _mergeable(remainder) if floors else None
    if floor is not None:
        law = laws.MERGE_FLOORS if remainder.parts[floor] > 0 else laws.MERGE_NEGATED_FLOOR
        return law, division.quotient_and(_merge_floors(remainder, floor, divisor, known))
    return law, division.with_new_floor(remainder)


def _divided_atom(
    expr: Expr, atom: Atom, divisor: int, known: KnownBounds
) -> tuple[Law | None, Expr]:
    """`_divide` for an expression that is just an atom, and a divisor above 2."""
    low, high = atom.bounds
    lower, upper = low // divisor, high // divisor
    if lower == upper:
        return _FOLD, Expr({}, lower)
    if isinstance(atom, Floor):
        return laws.MERGE_FLOORS, floor_div(atom.numerator, divisor * atom.divisor, known)
    return None, from_atom(Floor(expr, divisor, (lower, upper)))


def _with_whole_mods(
    expr: Expr, floors: list[Floor], divisor: int, known: KnownBounds
) -> tuple[Law, Expr] | None:
    """Apply laws 1 to 3 with the mods in `expr` as a whole; `None` if intervals do not decide.

    Recombine the mods in two ways, the likelier first.
    """
    mods, rest = split_for(expr, floors, divisor)
    folded = _with_mods(mods, rest, divisor, known) if mods else None
    is_only = len(floors) == 1 and bool(mods) and mods[0].dividend is floors[0].numerator
    if folded is None and not is_only:
        finest, rest = split_finest_for(expr, floors)
        if finest and (len(finest) != len(mods) or not all(map(Mod.is_same, finest, mods))):
            folded = _with_mods(finest, rest, divisor, known)
    return folded


def _with_mods(
    mods: tuple[Mod, ...], rest: Expr, divisor: int, known: KnownBounds
) -> tuple[Law, Expr] | None:
    """Apply laws 1 to 3 to ``Σ mods + rest``; `None` if intervals do not decide."""
    pieces = known.pieces(rest.parts)
    for mod in mods:
        pieces[known.whole_mod(mod)] = mod.coefficient
    decided = _decide_by_intervals(Division(pieces, rest.constant, divisor, known, False))
    if _RECORDS and decided is not None:
        _record_mods(mods, known)
    return decided


def _decide_by_intervals(division: Division) -> tuple[Law, Expr] | None:
    """Apply laws 2 and 3; `None` if intervals do not decide."""
    folded = division.fold_by_bounds()
    if folded is not None:
        return _FOLD, folded
    smaller = division.without_factor()
    if smaller is None:
        return None
    floor = floor_div(*smaller, division.known)
    return laws.CANCEL_COMMON_FACTOR, division.quotient_and(floor)


def _record_mods(mods: Iterable[Mod], known: KnownBounds) -> None:
    """Record for `simplifier.trace` that `mods` were recombined and bounded as a whole."""
    for mod in mods:
        text, factor = trace.operand_text(mod.dividend), mod.coefficient
        whole = f"{text} mod {mod.modulus}"
        terms = f"{text} * {factor} - ({from_atom(mod.floor)}) * {factor * mod.modulus}"
        trace.record(laws.RECOMBINE_MOD, terms, f"({whole}) * {factor}")
        lower, upper = known.bounds_of_mod(mod.dividend, mod.modulus)
        trace.record(laws.BOUND_MOD, whole, f"[{lower}, {upper}]")


def _mergeable(remainder: Expr) -> Floor | None:
    """Return the only floor with coefficient 1 or -1, or `None`."""
    inner = [a for a, c in remainder.parts.items() if isinstance(a, Floor) and c in (1, -1)]
    return inner[0] if len(inner) == 1 else None


def _merge_floors(remainder: Expr, floor: Floor, divisor: int, known: KnownBounds) -> Expr:
    """``floor(remainder / divisor)`` by law 4, where `floor` has the coefficient 1 or -1.

    ``floor((r − floor(n/e)) / d) = floor((e·r − n + e − 1) / (d·e))``, because ``−floor(x)`` is
    the ceiling of ``−x``.
    """
    sign = remainder.parts[floor]
    rest = add_multiple(remainder, from_atom(floor), -sign)
    inside = floor.numerator
    if sign < 0:
        inside = add_multiple(constant(floor.divisor - 1), inside, -1)
    return floor_div(add_multiple(inside, rest, floor.divisor), divisor * floor.divisor, known)
