"""Expressions as text, in the notation of XLA and MLIR: ``d0 * 2 + (d1 mod 4) floordiv 3``.

``floordiv``, ``ceildiv`` and ``mod`` bind as tightly as ``*``; ``floordiv`` rounds towards minus
infinity, ``ceildiv`` towards plus infinity, and ``e mod m`` lies in ``[0, m)``.

>>> from simplifier.linear import Variable
>>> names = {"d0": Variable("d0", 0, 9)}
>>> parse_expr("(d0 * 2 + 20) floordiv 4 - 1", names)
Expr('d0 floordiv 2 + 4')
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple, NoReturn

from simplifier.linear import Affine, Expr, Floor, Variable, as_expr, scaled
from simplifier.mods import split
from simplifier.semiaffine import SemiAffine, maximum, minimum


class TextError(ValueError):
    """Text that is no expression or map; ``text[start:end]`` is the place."""

    def __init__(self, message: str, start: int, end: int, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.start, self.end, self.hint = message, start, end, hint


# ---------------------------------------------------------------- printing


def expr_text(expr: Expr) -> str:
    """`expr` as text; what it parses back to has the same value everywhere."""
    text, constant = terms_and_constant(expr)
    if not constant:
        return text or "0"
    if not text:
        return str(constant)
    return f"{text} {'-' if constant < 0 else '+'} {abs(constant)}"


def terms_and_constant(expr: Expr) -> tuple[str, int]:
    """``expr = text + constant``, where `text` is empty for a constant.

    What stands inside floors and mods is chosen so that little is left outside:

    >>> from simplifier.linear import Variable
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
        numerator, divisor = atom.numerator, atom.divisor
        for inner, count in numerator.terms:
            if isinstance(inner, Variable) and outside.get(inner) == -coefficient:
                if count * 2 == divisor:  # as far from the other side: (d0 - s0) floordiv 2
                    del outside[inner]
                    numerator = numerator - inner * divisor
        if numerator.constant and constant == -coefficient:
            numerator, constant = numerator - divisor, 0
        others.append((coefficient, f"{_operand(numerator)} floordiv {divisor}"))
    for coefficient, dividend, modulus, _ in mods:
        nearer = dividend.constant * 2 > modulus
        dividend = dividend - modulus if nearer else dividend
        others.append((coefficient, f"{_operand(dividend)} mod {modulus}"))
    variables = [(c, variable.name) for variable, c in outside.items()]
    pieces = enumerate([*variables, *others])
    return "".join([_signed(c, text, first=k == 0) for k, (c, text) in pieces]), constant


def _semiaffine_text(atom: SemiAffine) -> str:
    if atom.operator in ("min", "max"):
        return f"{atom.operator}({', '.join(map(expr_text, atom.operands))})"
    return f" {atom.operator} ".join(map(_operand, atom.operands))


def _operand(expr: Expr) -> str:
    """`expr` where an operator follows it."""
    text = expr_text(expr)
    return f"({text})" if _is_compound(text) or text.startswith("-") else text


def _is_compound(text: str) -> bool:
    """An operator stands outside all parentheses; those of a call do not count."""
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


# ---------------------------------------------------------------- reading

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_][\w.$]*)|(?P<sign>->|[<>=]=|[-+*/()\[\]{},:=]))"
)
# Larger numbers are no index of anything, and turning their digits into a number takes long.
_LONGEST_NUMBER: Final = 40


class Token(NamedTuple):
    """A number, a name or a sign; ``kind`` is "end" after the last one."""

    kind: str
    text: str
    start: int
    end: int


class Tokens:
    """The tokens of a text, with a place to stand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _tokenized(text)
        self._at = 0

    @property
    def next(self) -> Token:
        """The token that is not yet taken."""
        return self._tokens[self._at]

    def take(self) -> Token:
        """Take the next token, whatever it is."""
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def took(self, text: str) -> bool:
        """Take the next token if it is `text`."""
        if self.next.text != text or self.next.kind == "end":
            return False
        self._at += 1
        return True

    def expect(self, text: str, where: str) -> Token:
        """Take `text`, or say that it was expected `where`."""
        token = self.next
        if not self.took(text):
            self.fail(f"expected '{text}' {where}, found {self.found()}")
        return token

    def found(self) -> str:
        """The next token, for a message."""
        return "the end of the text" if self.next.kind == "end" else f"'{self.next.text}'"

    def integer(self, where: str) -> int:
        """Take a number that may have a sign."""
        negative = self.took("-")
        if self.next.kind != "number":
            self.fail(f"expected an integer {where}, found {self.found()}")
        value = int(self.take().text)
        return -value if negative else value

    def fail(self, message: str, token: Token | None = None, hint: str = "") -> NoReturn:
        """Raise a `TextError` at `token`, or at the next one."""
        token = token or self.next
        raise TextError(message, token.start, max(token.end, token.start + 1), hint)


def _tokenized(text: str) -> list[Token]:
    tokens: list[Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise TextError(f"unexpected character {text[start]!r}", start, start + 1)
        kind = match.lastgroup or ""
        start, at = match.span(kind)
        if kind == "number" and at - start > _LONGEST_NUMBER:
            raise TextError(
                f"a number of {at - start} digits",
                start,
                at,
                f"numbers have at most {_LONGEST_NUMBER} digits here",
            )
        tokens.append(Token(kind, text[start:at], start, at))
    tokens.append(Token("end", "", end, end))
    return tokens


# An expression that shares its parts can be small, and its text exponentially large.
_HEAVIEST: Final = 100_000

# How tightly an operator binds; a higher number binds first.
_BINDS: Final = {"+": 1, "-": 1, "*": 2, "floordiv": 2, "ceildiv": 2, "mod": 2}
_NEGATE: Final = Token("sign", "negate", 0, 0)
_CALLS: Final = {"min": minimum, "max": maximum}


def parse_expr(text: str | Tokens, names: Mapping[str, Affine]) -> Expr:
    """The expression at the front of `text`, whose variables are `names`.

    Raises:
        TextError: with the place, for text that is no affine expression of these variables.
    """
    if isinstance(text, str):
        tokens = Tokens(text)
        expr = parse_expr(tokens, names)
        if tokens.next.kind != "end":
            tokens.fail(f"expected an operator or the end, found {tokens.found()}")
        return expr
    return _Shunting(text, names).run()


class _Shunting:
    """Operator precedence with two stacks: no recursion, so nesting has no limit."""

    def __init__(self, tokens: Tokens, names: Mapping[str, Affine]) -> None:
        self.tokens, self.names = tokens, names
        self.values: list[Expr] = []
        self.operators: list[Token] = []
        self.calls: list[tuple[Token, int]] = []  # open calls, with the values below their own

    def run(self) -> Expr:
        while True:
            self._operand()
            while self.tokens.next.text == ")" and self._open_parenthesis():
                self.tokens.take()
                self._reduce(0)
                self._close(self.operators.pop())
            if self.tokens.next.text == "," and self._in_call():
                self.tokens.take()
                self._reduce(0)
                continue
            if self.tokens.next.text not in _BINDS:
                break
            operator = self.tokens.take()
            self._reduce(_BINDS[operator.text])
            self.operators.append(operator)
        self._reduce(0)
        if self.operators:
            self.tokens.fail(
                f"expected ')' or an operator, found {self.tokens.found()}",
                hint=f"the '(' at offset {self.operators[-1].start} is not closed",
            )
        return self.values.pop()

    def _open_parenthesis(self) -> bool:
        return any(operator.text == "(" for operator in reversed(self.operators))

    def _in_call(self) -> bool:
        """The innermost parenthesis that is open is that of a call."""
        opened = [operator for operator in self.operators if operator.text == "("]
        return bool(self.calls and opened and self.calls[-1][0] is opened[-1])

    def _close(self, opened: Token) -> None:
        """Apply the function whose parenthesis was `opened`, if there is one."""
        if self.calls and self.calls[-1][0] is opened:
            _, below = self.calls.pop()
            given, self.values[below:] = self.values[below:], []
            name = self.tokens.text[: opened.start].rstrip()[-3:]
            self.values.append(_CALLS[name](*given))

    def _operand(self) -> None:
        while True:
            token = self.tokens.take()
            if token.text == "(":
                self.operators.append(token)
            elif token.text == "-":
                self.operators.append(_NEGATE)
            elif token.text in _CALLS and self.tokens.next.text == "(":
                self.operators.append(self.tokens.take())
                self.calls.append((self.operators[-1], len(self.values)))
            else:
                break
        if token.kind == "number":
            self.values.append(as_expr(int(token.text)))
        elif token.kind == "name" and token.text in self.names:
            self.values.append(as_expr(self.names[token.text]))
        elif token.kind == "name" and token.text not in _BINDS:
            near = get_close_matches(token.text, self.names, 1)
            known = ", ".join(self.names) or "none"
            self.tokens.fail(
                f"'{token.text}' is not a variable of this map",
                token,
                f"did you mean '{near[0]}'?" if near else f"the variables are: {known}",
            )
        else:
            found = f"'{token.text}'" if token.kind != "end" else "the end of the text"
            self.tokens.fail(f"expected a variable, a number or '(', found {found}", token)

    def _reduce(self, binds: int) -> None:
        """Apply the operators on the stack that bind at least as tightly as `binds`."""
        while self.operators and self.operators[-1].text != "(":
            operator = self.operators[-1]
            if operator is _NEGATE:
                self.values.append(scaled(self.values.pop(), -1))
            elif _BINDS[operator.text] >= binds:
                right, left = self.values.pop(), self.values.pop()
                self.values.append(self._applied(operator, left, right))
                if self.values[-1].weight > _HEAVIEST:
                    self.tokens.fail(f"written out, this has more than {_HEAVIEST} terms", operator)
            else:
                return
            self.operators.pop()

    def _applied(self, operator: Token, left: Expr, right: Expr) -> Expr:
        match operator.text:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        if right == as_expr(0):
            self.tokens.fail(f"the right side of {operator.text} is other than 0", operator)
        if operator.text == "mod":
            if right.is_constant and right.constant < 0:
                self.tokens.fail(f"a modulus is positive, not {right}", operator)
            return left % (right.constant if right.is_constant else right)
        if right.is_constant and right.constant < 0:
            left, right = -left, -right
        if operator.text == "floordiv":
            return left // (right.constant if right.is_constant else right)
        if right.is_constant:
            return (left + right.constant - 1) // right.constant
        return -(-left // right)
