"""Expressions read from text, in the notation of XLA and MLIR; `simplifier.text` prints them.

The grammar is one, what is made of it is an `Algebra`: expressions in normal form, or a text of isl
to which no law was applied (`simplifier.exact`).

>>> from simplifier.atoms import Variable
>>> parse_expr("(d0 * 2 + 20) floordiv 4 - 1", {"d0": Variable("d0", 0, 9)})
Expr('d0 floordiv 2 + 4')
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from simplifier.linear import Affine, Expr, as_expr
from simplifier.semiaffine import maximum, minimum

Value = TypeVar("Value")


class TextError(ValueError):
    """Text that is no expression or map; ``text[start:end]`` is the place."""

    def __init__(self, message: str, start: int, end: int, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.start, self.end, self.hint = message, start, end, hint


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


class Algebra(Protocol[Value]):
    """What the parts of an expression become; a `ValueError` says why one cannot be."""

    @property
    def names(self) -> Collection[str]:
        """The variables that may be written."""
        ...

    def number(self, value: int) -> Value:
        """A number."""
        ...

    def variable(self, name: str) -> Value:
        """One of `names`."""
        ...

    def negated(self, value: Value) -> Value:
        """``-value``."""
        ...

    def applied(self, operator: str, left: Value, right: Value) -> Value:
        """``left operator right``, for ``+ - * floordiv ceildiv mod``."""
        ...

    def called(self, function: str, values: list[Value]) -> Value:
        """``min`` or ``max`` of `values`."""
        ...


class Normal:
    """Expressions in normal form: laws are applied while they are read."""

    def __init__(self, names: Mapping[str, Affine]) -> None:
        self._names = names

    @property
    def names(self) -> Collection[str]:
        return self._names

    def number(self, value: int) -> Expr:
        return as_expr(value)

    def variable(self, name: str) -> Expr:
        return as_expr(self._names[name])

    def negated(self, value: Expr) -> Expr:
        return -value

    def called(self, function: str, values: list[Expr]) -> Expr:
        return _CALLS[function](*values)

    def applied(self, operator: str, left: Expr, right: Expr) -> Expr:
        found = self._applied(operator, left, right)
        if found.weight > _HEAVIEST:
            raise ValueError(f"written out, this has more than {_HEAVIEST} terms")
        return found

    def _applied(self, operator: str, left: Expr, right: Expr) -> Expr:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        if right == as_expr(0):
            raise ValueError(f"the right side of {operator} is other than 0")
        if operator == "mod":
            if right.is_constant and right.constant < 0:
                raise ValueError(f"a modulus is positive, not {right}")
            return left % (right.constant if right.is_constant else right)
        if right.is_constant and right.constant < 0:
            left, right = -left, -right
        if operator == "floordiv":
            return left // (right.constant if right.is_constant else right)
        if right.is_constant:
            return (left + right.constant - 1) // right.constant
        return -(-left // right)


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
    return read_expr(text, Normal(names))


def read_expr(tokens: Tokens, algebra: Algebra[Value]) -> Value:
    """What `algebra` makes of the expression at the front of `tokens`.

    Raises:
        TextError: with the place, for text that is no expression, or none for this algebra.
    """
    return _Shunting(tokens, algebra).run()


class _Shunting(Generic[Value]):
    """Operator precedence with two stacks: no recursion, so nesting has no limit."""

    def __init__(self, tokens: Tokens, algebra: Algebra[Value]) -> None:
        self.tokens, self.algebra = tokens, algebra
        self.values: list[Value] = []
        self.operators: list[Token] = []
        self.calls: list[Call] = []

    def run(self) -> Value:
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
        return bool(self.calls and opened and self.calls[-1].opened is opened[-1])

    def _close(self, opened: Token) -> None:
        """Apply the function whose parenthesis was `opened`, if there is one."""
        if self.calls and self.calls[-1].opened is opened:
            call = self.calls.pop()
            given, self.values[call.below :] = self.values[call.below :], []
            self.values.append(self.algebra.called(call.function, given))

    def _operand(self) -> None:
        while True:
            token = self.tokens.take()
            if token.text == "(":
                self.operators.append(token)
            elif token.text == "-":
                self.operators.append(_NEGATE)
            elif token.text in _CALLS and self.tokens.next.text == "(":
                self.operators.append(self.tokens.take())
                self.calls.append(Call(token.text, self.operators[-1], len(self.values)))
            else:
                break
        if token.kind == "number":
            self.values.append(self.algebra.number(int(token.text)))
        elif token.kind == "name" and token.text in self.algebra.names:
            self.values.append(self.algebra.variable(token.text))
        elif token.kind == "name" and token.text not in _BINDS:
            near = get_close_matches(token.text, self.algebra.names, 1)
            known = ", ".join(self.algebra.names) or "none"
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
                self.values.append(self.algebra.negated(self.values.pop()))
            elif _BINDS[operator.text] >= binds:
                right, left = self.values.pop(), self.values.pop()
                try:
                    self.values.append(self.algebra.applied(operator.text, left, right))
                except ValueError as error:
                    self.tokens.fail(str(error), operator)
            else:
                return
            self.operators.pop()


class Call(NamedTuple):
    """A call whose parenthesis is open, and how many values were there before its own."""

    function: str
    opened: Token
    below: int
