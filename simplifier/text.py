"""Printer of expressions in the notation of XLA and MLIR: ``d0 * 2 + (d1 mod 4) floordiv 3``.

``floordiv``, ``ceildiv`` and ``mod`` have the precedence of ``*``.  ``floordiv`` rounds towards
minus infinity, ``ceildiv`` towards plus infinity, and ``e mod m`` is in ``[0, m)``.
`simplifier.reading` parses the text.

Source: MLIR "'affine' Dialect", "Affine Expressions".

>>> from simplifier.atoms import Variable
>>> print(expr_text((Variable("d0", 0, 9) * 2 + 20) // 4 - 1))
d0 floordiv 2 + 4
"""

from __future__ import annotations

from simplifier.atoms import Floor, Variable
from simplifier.linear import Expr
from simplifier.mods import split
from simplifier.semiaffine import SemiAffine


def expr_text(expr: Expr) -> str:
    """Return the text of `expr`, which parses back to an expression with the same values."""
    text, constant = terms_and_constant(expr)
    if not constant:
        return text or "0"
    if not text:
        return str(constant)
    return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}"


def terms_and_constant(expr: Expr) -> tuple[str, int]:
    """Return ``(text, constant)`` with ``expr = text + constant``; `text` is empty for constants.

    Offsets are moved into floors and mods if that shortens the rest:

    >>> from simplifier.atoms import Variable
    >>> d0 = Variable("d0", 0, 99)
    >>> terms_and_constant((d0 - 3) // 7), terms_and_constant((d0 - 3) % 7)
    (('(d0 - 3) floordiv 7', 0), ('(d0 - 3) mod 7', 0))
    """
    mods, rest = split(expr)
    constant = rest.constant
    outside = {atom: c for atom, c in rest.terms if isinstance(atom, Variable)}
    others: list[tuple[int, str]] = []
    for atom, coefficient in rest.terms:
        if isinstance(atom, SemiAffine):
            others.append((coefficient, _semiaffine_text(atom)))
        if not isinstance(atom, Floor):
            continue
        numerator = _from_other_side(atom, coefficient, outside)
        if numerator.constant and constant == -coefficient:
            numerator, constant = numerator - atom.divisor, 0
        others.append((coefficient, f"{_operand(numerator)} floordiv {atom.divisor}"))
    for coefficient, dividend, modulus, _ in mods:
        nearer = dividend.constant * 2 > modulus
        dividend = dividend - modulus if nearer else dividend
        others.append((coefficient, f"{_operand(dividend)} mod {modulus}"))
    variables = [(c, variable.name) for variable, c in outside.items()]
    pieces = enumerate([*variables, *others])
    return "".join([_signed(c, text, first=k == 0) for k, (c, text) in pieces]), constant


def _from_other_side(floor: Floor, coefficient: int, outside: dict[Variable, int]) -> Expr:
    """The numerator of a floor, after moving variables from `outside` into it where possible.

    ``(d0 + s0) floordiv 2 - s0`` is ``(d0 - s0) floordiv 2``.
    """
    numerator, divisor = floor.numerator, floor.divisor
    for inner, count in numerator.terms:
        if isinstance(inner, Variable) and outside.get(inner) == -coefficient:
            if count * 2 == divisor:
                del outside[inner]
                numerator = numerator - inner * divisor
    return numerator


def _semiaffine_text(atom: SemiAffine) -> str:
    if atom.operator in ("min", "max"):
        return f"{atom.operator}({', '.join(map(expr_text, atom.operands))})"
    return f" {atom.operator} ".join(map(_operand, atom.operands))


def _operand(expr: Expr) -> str:
    """The text of `expr` as an operand, in parentheses if necessary."""
    text = expr_text(expr)
    return f"({text})" if _is_compound(text) or text.startswith("-") else text


def _is_compound(text: str) -> bool:
    """True if the text has an operator outside of parentheses; a call is not compound."""
    call = text.startswith(("min(", "max(")) and text.find(")") == len(text) - 1
    return " " in text and not call


def _signed(coefficient: int, piece: str, first: bool) -> str:
    compound = _is_compound(piece)
    if first:
        if coefficient == 1:
            return piece
        piece = f"({piece})" if compound else piece
        return f"-{piece}" if coefficient == -1 else f"{piece} * {coefficient}"
    sign, size = (" - ", -coefficient) if coefficient < 0 else (" + ", coefficient)
    if size == 1:
        return sign + piece
    return f"{sign}({piece}) * {size}" if compound else f"{sign}{piece} * {size}"
