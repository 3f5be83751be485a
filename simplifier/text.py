"""Printer of expressions in the notation of XLA and MLIR: ``d0 * 2 + (d1 mod 4) floordiv 3``.

``floordiv``, ``ceildiv`` and ``mod`` have the precedence of ``*``.  ``floordiv`` rounds towards
minus infinity, ``ceildiv`` towards plus infinity, and ``e mod m`` is in ``[0, m)``.
`simplifier.reading` parses the text.  The normal form releases the mods inside floors; the printer
writes the cheapest of some equal sums (`simplifier.chains`, `simplifier.equal_sums`,
`simplifier.text_cost`), as long as its text parses back to the same normal form.

Source: MLIR "'affine' Dialect", "Affine Expressions".

>>> from simplifier.atoms import Variable
>>> print(expr_text((Variable("d0", 0, 9) * 2 + 20) // 4 - 1))
d0 floordiv 2 + 4
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from simplifier import trace
from simplifier.atoms import Atom, Floor, Variable
from simplifier.chains import chains
from simplifier.equal_sums import WholeDivisions, congruent, equal_sums
from simplifier.linear import Affine, Expr, add_multiple, as_expr, from_atom
from simplifier.mods import split
from simplifier.reading import TextError, parse_expr
from simplifier.semiaffine import SemiAffine, factors_of, product
from simplifier.shared import MAX_TREE, atoms_in_order
from simplifier.smaller_fractions import with_smaller_fractions
from simplifier.text_cost import TextCost, names_in, text_cost

MAX_TEXT: Final = 1 << 14
"""Maximum number of characters of an operand, and approximately of an expression.  The text of an
expression with shared subexpressions can be exponentially larger than the expression."""

MAX_TRIALS: Final = 60
"""Maximum number of equal sums that are printed to find the cheapest text of an expression."""

MAX_DEPTH: Final = 8
"""Maximum number of equal sums printed one inside the other."""

MAX_EQUAL: Final = 8
"""Maximum number of equal sums of one expression that are printed, those with the fewest atoms."""

ELIDED: Final = "(...)"
"""Text of an operand of more than `MAX_TEXT` characters, and of the further terms of a sum with so
many; no other text contains it."""


class Texts(dict[Expr, str]):
    """Texts of expressions, and of the units for which their variables stand."""

    def __init__(self, trials: int = MAX_TRIALS) -> None:
        super().__init__()
        self.units = WholeDivisions()
        self.trials = trials
        self.depth = 0
        self.plain = Texts(0) if trials else self
        self._of_units: dict[Variable, str] = {}

    def of_variable(self, variable: Variable) -> str:
        """The name of a variable, or the cheapest text of its unit."""
        unit = self.units.get(variable)
        if unit is None:
            return variable.name
        known = self._of_units.get(variable)
        if known is None:
            dividend = _expr_text(unit.dividend, self)
            dividends = [(text_cost(dividend), dividend)]
            if unit.operator == "mod":
                dividends += self.of_sums(congruent(unit, self.units), unit.dividend)
            dividend = _in_parentheses(min(dividends)[1])
            known = f"{dividend} {unit.operator} {unit.divisor}"
            self._of_units[variable] = known
        return known

    def of_sums(self, sums: Iterable[Expr], expr: Expr) -> list[tuple[TextCost, str]]:
        """Costs and texts of the sums with the fewest atoms, none with more than `expr`."""
        weights = {equal: self.units.weight(equal) for equal in sums}
        limit, _ = self.units.weight(expr)
        light = [equal for equal, weight in weights.items() if weight[0] <= limit]
        texts: list[tuple[TextCost, str]] = []
        for equal in sorted(light, key=weights.__getitem__)[:MAX_EQUAL]:
            if self.trials and self.depth < MAX_DEPTH:
                self.trials -= 1
                self.depth += 1
                text = _expr_text(equal, self)
                self.depth -= 1
                texts.append((text_cost(text), text))
        return texts


def expr_text(expr: Expr) -> str:
    """Return the text of `expr`, which parses back to an expression with the same values.

    Operands of more than `MAX_TEXT` characters are elided; `is_elided` recognises such a text.
    """
    if trace.records or expr.weight > MAX_TREE:  # a record's texts are those of the normal form
        return _bounded_text(expr, Texts())
    return _memoised_text(expr)


@lru_cache(maxsize=1 << 12)
def _memoised_text(expr: Expr) -> str:
    """The text of a small expression: a module prints few distinct ones, each many times."""
    return _expr_text(expr, Texts())


def normal_form_text(expr: Expr) -> str:
    """Return the text of the normal form of `expr`: no cheaper text is searched.

    >>> from simplifier.atoms import Variable
    >>> expr = (Variable("d0", 0, 9).as_expr() * 5) // 4
    >>> normal_form_text(expr), str(expr)
    ('d0 + d0 floordiv 4', '(d0 * 5) floordiv 4')
    """
    return _bounded_text(expr, Texts(trials=0))


def _bounded_text(expr: Expr, texts: Texts) -> str:
    if expr.weight > MAX_TREE:  # the operands first: deep expressions need no recursion
        for atom in atoms_in_order([expr]):
            for operand in atom.operands:
                _expr_text(operand, texts)
    return _expr_text(expr, texts)


def is_elided(text: str) -> bool:
    """Return True if `text` has an elided operand, so that it does not parse.

    >>> from simplifier.atoms import Variable
    >>> a, b = Variable("a", 0, 999).as_expr(), Variable("b", 0, 10).as_expr()
    >>> for _ in range(20):
    ...     a, b = (a * 7 + b) // 5, (a * 7 + b) % 11
    >>> is_elided(str(a)), a.weight > 10**7, len(str(a)) < 2 * MAX_TEXT
    (True, True, True)
    """
    return ELIDED in text


def exact_text(expr: Expr) -> str:
    """Return the text of `expr`.

    Raises:
        ValueError: an operand of the text is elided.
    """
    text = expr_text(expr)
    if is_elided(text):
        raise ValueError(
            f"an operand has more than {MAX_TEXT} characters: no notation shares subexpressions"
        )
    return text


def _expr_text(expr: Expr, texts: Texts) -> str:
    known = texts.get(expr)
    if known is None:
        searches = texts.trials and expr.divides and expr.weight <= MAX_TREE and not trace.records
        known = texts[expr] = _cheapest(expr, texts) if searches else _plain(expr, texts)
    return known


def _plain(expr: Expr, texts: Texts) -> str:
    """The text of `expr` as it is; only the texts of its operands are the cheapest."""
    text, constant = _terms_and_constant(expr, texts)
    if not text:
        return str(constant)
    sign = "-" if constant < 0 else "+"
    return f"{text} {sign} {abs(constant)}" if constant else text


def _cheapest(expr: Expr, texts: Texts) -> str:
    """Return the cheapest text of `expr` and equal sums: the normal form if none is cheaper.

    The normal form stays unless another text has fewer divisions, or as many and fewer terms.  A
    text without units parses back to `expr`.  Records of laws show the normal form.
    """
    has_units = not texts.units.keys().isdisjoint(expr.variables())
    chain = None
    if not has_units and not texts.depth:
        plain = _plain(expr, texts.plain)
        if not _repeats(plain):
            return plain
        chain = _chain_text(expr, text_cost(plain), texts)
        if chain is not None and not _repeats(chain):
            return chain
    plain = _plain(expr, texts)
    cost = text_cost(plain)
    repeats = _repeats(plain)
    if not (repeats or has_units):
        return plain
    if not has_units:
        cost = cost._replace(characters=0)
    sums = equal_sums(expr, texts.units) if repeats else with_smaller_fractions(expr)
    for other, text in sorted(texts.of_sums(sums, expr)):
        if other >= cost:
            break
        if has_units or _parses_to(text, expr):
            plain = text
            break
    return plain if chain is None else min(plain, chain, key=text_cost)


def _repeats(text: str) -> bool:
    """True if a variable occurs twice in a text, or a constant is added."""
    return text_cost(text).terms > len(names_in(text))


def _chain_text(expr: Expr, cost: TextCost, texts: Texts) -> str | None:
    """The cheapest text of a chain of divisions that parses back to `expr`, if cheaper."""
    texts_of_sums = [_plain(equal, texts) for equal in chains(expr, texts.units)]
    cheaper = [text for text in texts_of_sums if text_cost(text) < cost._replace(characters=0)]
    cheaper.sort(key=lambda text: (text_cost(text), text))
    return next((text for text in cheaper if _parses_to(text, expr)), None)


def _parses_to(text: str, expr: Expr) -> bool:
    """True if the names of variables are distinct words and `text` parses back to `expr`."""
    variables = expr.variables()
    names = {variable.name: variable for variable in variables}
    try:
        return len(names) == len(variables) and parse_expr(text, names) == expr
    except TextError:
        return False


def terms_and_constant(expr: Expr) -> tuple[str, int]:
    """Return ``(text, constant)`` with ``expr = text + constant``; `text` is empty for constants.

    Offsets are moved into floors and mods if that shortens the rest:

    >>> from simplifier.atoms import Variable
    >>> d0 = Variable("d0", 0, 99)
    >>> terms_and_constant((d0 - 3) // 7), terms_and_constant((d0 - 3) % 7)
    (('(d0 - 3) floordiv 7', 0), ('(d0 - 3) mod 7', 0))
    """
    return _terms_and_constant(expr, Texts())


def _terms_and_constant(expr: Expr, texts: Texts) -> tuple[str, int]:
    symbolic, expr = symbolic_mods(expr)
    mods, rest = split(expr)
    absorbing = _absorbing_floor(rest)
    outside = {atom: c for atom, c in rest.terms if isinstance(atom, Variable)}
    others = _Terms()
    for atom, coefficient in rest.terms:
        if others.is_full:
            break
        if isinstance(atom, SemiAffine):
            others.append((coefficient, _semiaffine_text(atom, texts)))
        if not isinstance(atom, Floor):
            continue
        numerator = _from_other_side(atom, coefficient, outside)
        if atom is absorbing:
            numerator = numerator - atom.divisor
        others.append((coefficient, f"{_operand(numerator, texts)} floordiv {atom.divisor}"))
    for mod in mods:
        dividend, modulus = mod.dividend, mod.modulus
        nearer = dividend.constant * 2 > modulus
        moved = dividend - modulus if nearer else dividend
        others.append_mod(mod.coefficient, moved, modulus, texts)
    for coefficient, dividend, divisor in symbolic:
        others.append_mod(coefficient, dividend, divisor, texts)
    variables = [(c, texts.of_variable(variable)) for variable, c in outside.items()]
    pieces = enumerate([*variables, *others])
    text = "".join([_signed_term(c, text, first=k == 0) for k, (c, text) in pieces])
    return text, 0 if absorbing else rest.constant


def printed_constant(expr: Expr) -> int:
    """Return the constant of `terms_and_constant`, without writing the text."""
    _, expr = symbolic_mods(expr)
    _, rest = split(expr)
    return 0 if _absorbing_floor(rest) else rest.constant


def _absorbing_floor(rest: Expr) -> Floor | None:
    """The floor into which the constant of a sum without mods moves, if any.

    ``(x - 3) floordiv 7`` is ``(x + 4) floordiv 7 - 1``.
    """
    for atom, coefficient in rest.terms if rest.constant else ():
        if isinstance(atom, Floor) and coefficient == -rest.constant and atom.numerator.constant:
            return atom
    return None


def symbolic_mods(expr: Expr) -> tuple[list[tuple[int, Expr, Expr]], Expr]:
    """Return ``(coefficient, dividend, divisor)`` of mods with variable divisors, and the rest.

    >>> from simplifier.linear import as_expr, variable
    >>> n = variable("n", 1, 9)
    >>> symbolic_mods(as_expr(6) % n + 2)
    ([(1, Expr('6'), Expr('n'))], Expr('2'))
    """
    mods: list[tuple[int, Expr, Expr]] = []
    quotients = [(atom, q) for atom in expr.parts for q in factors_of(atom) if _is_quotient(q)]
    for atom, quotient in sorted(quotients, key=lambda pair: (-pair[1].depth, pair[1].key)):
        dividend, divisor = quotient.operands
        multiple = product(divisor, from_atom(quotient))
        times, left = divmod(-expr.parts.get(atom, 0), multiple.parts.get(atom, 1))
        if times and not left:
            rest = add_multiple(add_multiple(expr, multiple, times), dividend, -times)
            if _term_count(rest) < _term_count(expr):
                mods.append((times, dividend, divisor))
                expr = rest
    return mods, expr


def _is_quotient(atom: Atom) -> bool:
    return isinstance(atom, SemiAffine) and atom.operator == "floordiv"


def _term_count(expr: Expr) -> int:
    return len(expr.parts) + bool(expr.constant)


class _Terms(list[tuple[int, str]]):
    """Coefficients and texts of terms; `ELIDED` is the last one beyond `MAX_TEXT` characters."""

    size = 0

    @property
    def is_full(self) -> bool:
        """True if further terms are elided."""
        return self.size > MAX_TEXT

    def append_mod(self, coefficient: int, dividend: Expr, modulus: Affine, texts: Texts) -> None:
        """Add ``coefficient * (dividend mod modulus)`` unless terms are elided."""
        if not self.is_full:
            operands = [_operand(as_expr(operand), texts) for operand in (dividend, modulus)]
            self.append((coefficient, " mod ".join(operands)))

    def append(self, term: tuple[int, str]) -> None:
        """Add a term."""
        super().append(term)
        self.size += len(term[1])
        if self.is_full:
            super().append((1, ELIDED))


def _from_other_side(floor: Floor, coefficient: int, outside: dict[Variable, int]) -> Expr:
    """The numerator of a floor, after moving variables from `outside` into it where possible.

    ``(d0 + s0) floordiv 2 - s0`` is ``(d0 - s0) floordiv 2``.
    """
    numerator, divisor = floor.numerator, floor.divisor
    for variable, count in list(outside.items()):
        if count == -coefficient and numerator.parts.get(variable, 0) * 2 == divisor:
            del outside[variable]
            numerator = numerator - variable * divisor
    return numerator


def _semiaffine_text(atom: SemiAffine, texts: Texts) -> str:
    if atom.operator in ("min", "max"):
        operands = _Terms()
        for operand in atom.operands:
            if not operands.is_full:
                text = _expr_text(operand, texts)
                operands.append((1, ELIDED if len(text) > MAX_TEXT else text))
        return f"{atom.operator}({', '.join([text for _, text in operands])})"
    return f" {atom.operator} ".join([_operand(operand, texts) for operand in atom.operands])


def _operand(expr: Expr, texts: Texts) -> str:
    """The text of `expr` as an operand, in parentheses if necessary; elided if it is long."""
    text = _expr_text(expr, texts)
    if len(text) > MAX_TEXT:
        return ELIDED
    return _in_parentheses(text)


def _in_parentheses(text: str) -> str:
    """The text as an operand, in parentheses if necessary."""
    return f"({text})" if _is_compound(text) or text.startswith("-") else text


def _is_compound(text: str) -> bool:
    """True if the text has an operator outside of parentheses; a call is not compound."""
    call = text.startswith(("min(", "max(")) and text.find(")") == len(text) - 1
    return " " in text and not call


def _signed_term(coefficient: int, piece: str, first: bool) -> str:
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
