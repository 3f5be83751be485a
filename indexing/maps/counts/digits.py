"""Changes of variables that remove divisions: a variable becomes two digits, or two become one.

``d0 = 4·q + r`` with r in [0, 3] turns ``d0 floordiv 4`` into q.  Conversely ``n = d0·15 + d1``
with d1 in [0, 14] replaces both dimensions where they occur in divisions of ``d0·15 + d1`` only.
Both changes are bijections of the domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, islice, permutations
from math import gcd
from typing import NamedTuple

from indexing.maps.counts.forms import Form, floors
from simplifier.atoms import Floor, Variable, variables_in


class _Digits(NamedTuple):
    """``variable + shift = radix·q + r`` with r in ``[0, radix - 1]``."""

    variable: Variable
    radix: int
    shift: int


def split_forms(form: Form, is_alone: bool = True) -> Iterator[list[Form]]:
    """Yield forms on disjoint parts of the domain, in which one variable is two digits.

    Args:
        is_alone: the variable is the only one of a floor; else there are several.

    Beside the part in which the digits are independent, there are up to two parts with one value of
    the higher digit, at the ends of the bounds.

    >>> from indexing.maps.counts.forms import simplest
    >>> d0 = Variable("d0", 0, 9)
    >>> (parts,) = split_forms(Form((d0,), (d0 // 4,), ()))
    >>> [[str(r) for r in part.results] for part in parts], [v.bounds for v in parts[0].variables]
    ([['n0'], ['2']], [(0, 1), (0, 3)])
    """
    for digits in _digits(form, is_alone):
        yield list(_split_variable(form, digits))


def _digits(form: Form, is_alone: bool) -> list[_Digits]:
    """The digits that remove a variable from a floor, those with a large radix first."""
    every = Counter[_Digits]()
    for floor in floors(form):
        parts = floor.numerator.parts
        if (len(parts) == 1) != is_alone:
            continue
        for atom, factor in parts.items():
            assert isinstance(atom, Variable)
            radix = floor.divisor // gcd(factor, floor.divisor)
            shift = _shift(factor, floor) if is_alone else -atom.lower
            every[_Digits(atom, radix, shift % radix)] += 1
    useful = [d for d in every if d.radix > 1 and len(list(_parts(d))) > 0]
    return sorted(useful, key=lambda d: (-d.radix, -every[d], d.variable.name, d.shift))


def _shift(factor: int, floor: Floor) -> int:
    """The shift s with ``factor·s = constant`` modulo the divisor, if there is one, else 0."""
    common = gcd(factor, floor.divisor)
    constant, left = divmod(floor.numerator.constant, common)
    if left:
        return 0
    modulus = floor.divisor // common
    return constant * pow(factor // common, -1, modulus) % modulus


def _parts(digits: _Digits) -> Iterator[tuple[int, int, int, int]]:
    """Bounds of both digits ``(first q, last q, first r, last r)`` on disjoint parts."""
    variable, radix, shift = digits
    (first, head), (last, tail) = [divmod(b + shift, radix) for b in variable.bounds]
    if first == last:
        if (head, tail) != (0, radix - 1):
            return  # one value of the higher digit: the law of floors has removed it
        yield first, last, 0, radix - 1
        return
    whole_first = first + (head > 0)
    whole_last = last - (tail < radix - 1)
    if whole_first <= whole_last:
        yield whole_first, whole_last, 0, radix - 1
    if head > 0:
        yield first, first, head, radix - 1
    if tail < radix - 1:
        yield last, last, 0, tail


def _split_variable(form: Form, digits: _Digits) -> Iterator[Form]:
    variable, radix, shift = digits
    higher, lower = fresh_names(form)
    for first, last, low, high in _parts(digits):
        q, r = Variable(higher, first, last), Variable(lower, low, high)
        yield form.with_values({variable: q * radix + r - shift}, (q, r))


def merged_forms(form: Form) -> Iterator[Form]:
    """Yield forms in which one variable stands for two that are digits of it in every floor.

    >>> from indexing.maps.counts.forms import simplest
    >>> d0, d1 = Variable("d0", 0, 7), Variable("d1", 0, 14)
    >>> line = d0 * 15 + d1
    >>> (merged,) = merged_forms(Form((d0, d1), (line // 20, line % 20), ()))
    >>> [str(r) for r in merged.results], merged.variables[0].bounds
    (['n0 floordiv 20', 'n0 mod 20'], (0, 119))
    """
    own = floors(form)
    for high, low in _neighbours(own):
        size = low.size
        if all(_is_number(floor, high, low, size) for floor in own):
            last = high.size * size - 1
            number = Variable(fresh_names(form)[0], 0, last)
            values = {high: number // size + high.lower, low: number % size + low.lower}
            yield form.with_values(values, (number,))


def fresh_names(form: Form) -> list[str]:
    """Return two names that no variable has."""
    taken = {v.name for v in (*form.variables, *variables_in(form.exprs))}
    return list(islice((name for k in count() if (name := f"n{k}") not in taken), 2))


def _neighbours(every: Sequence[Floor]) -> Iterator[tuple[Variable, Variable]]:
    """Pairs of variables in a numerator, each once."""
    pairs: dict[tuple[Variable, Variable], None] = {}
    for floor in every:
        variables = floor.numerator.variables()
        pairs.update(dict.fromkeys(permutations(variables, 2)))
    yield from pairs


def _is_number(floor: Floor, high: Variable, low: Variable, size: int) -> bool:
    """True if a floor depends on ``high·size + low`` only, not on both."""
    parts = floor.numerator.parts
    return not (parts.get(high, 0) - size * parts.get(low, 0)) % floor.divisor
