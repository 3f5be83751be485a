"""Parser of expressions in the notation of XLA and MLIR; `simplifier.text` prints them.

The parser is generic over an `Algebra`, which builds the values: expressions in normal form, or isl
text to which no law is applied (`simplifier.exact`).

Sources: MLIR "'affine' Dialect", "Affine Expressions" (grammar; ``floordiv``, ``ceildiv``,
``mod``); XLA ``xla/hlo/analysis/symbolic_expr.cc`` (``min``, ``max``; a negative modulus) and its
dumps of emitters (``/``).

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
    """A syntax error in the text of an expression or map, at ``text[start:end]``.

    Attributes:
        message, hint: the error, and a repair or ``""``.
        start, end: the location, as offsets in the text.

    >>> try:
    ...     parse_expr("d0 + ", {"d0": 7})
    ... except TextError as error:
    ...     print(error.start, error)
    4 expected a variable, a number or `(`, found the end of the text
    """

    def __init__(self, message: str, start: int, end: int, hint: str = "") -> None:
        super().__init__(message, start, end, hint)  # what a pickle has
        self.message, self.start, self.end, self.hint = message, start, end, hint

    def __str__(self) -> str:
        return self.message


_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_][\w.$]*)|(?P<sign>->|[<>=]=|[-+*/()\[\]{},:=]))"
)
# Larger numbers are not plausible indices, and their conversion takes quadratic time.
_MAX_DIGITS: Final = 40


class Token(NamedTuple):
    """A token; its ``kind`` is "number", "name", "sign", or "end" after the last token."""

    kind: str
    text: str
    start: int
    end: int


class Tokens:
    """The tokens of a text, and the current position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = _tokenize(text)
        self._at = 0

    @property
    def next(self) -> Token:
        """The next token."""
        return self._tokens[self._at]

    def take(self) -> Token:
        """Return the next token and advance."""
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def accept(self, text: str) -> bool:
        """Advance if the next token is `text`; return True if it is."""
        if self.next.text != text or self.next.kind == "end":
            return False
        self._at += 1
        return True

    def expect(self, text: str, where: str) -> Token:
        """Return the next token if it is `text`, and advance; otherwise raise a `TextError`."""
        token = self.next
        if not self.accept(text):
            self.fail(f"expected `{text}` {where}, found {self.next_text()}")
        return token

    def next_text(self) -> str:
        """The next token in quotes, for a message."""
        return "the end of the text" if self.next.kind == "end" else f"`{self.next.text}`"

    def integer(self, where: str) -> int:
        """Return the next integer, with an optional sign, and advance."""
        negative = self.accept("-")
        if self.next.kind != "number":
            self.fail(f"expected an integer {where}, found {self.next_text()}")
        value = int(self.take().text)
        return -value if negative else value

    def fail(self, message: str, token: Token | None = None, hint: str = "") -> NoReturn:
        """Raise a `TextError` at `token`, by default the next token."""
        token = token or self.next
        raise TextError(message, token.start, max(token.end, token.start + 1), hint)


def _tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            if text.startswith("...", start):
                hint = "long operands are elided when a map is printed; such a text is not a map"
                raise TextError("an elided operand `...`", start, start + 3, hint)
            character = f"`{text[start]}`" if text[start].isprintable() else repr(text[start])
            raise TextError(f"unexpected character {character}", start, start + 1)
        kind = match.lastgroup or ""
        start, at = match.span(kind)
        if kind == "number" and at - start > _MAX_DIGITS:
            raise TextError(
                f"a number of {at - start} digits",
                start,
                at,
                f"numbers have at most {_MAX_DIGITS} digits",
            )
        tokens.append(Token(kind, text[start:at], start, at))
    tokens.append(Token("end", "", end, end))
    return tokens


# An expression with shared subexpressions can be small, and its text exponentially large.
_MAX_WEIGHT: Final = 100_000

# Precedence of operators; a higher number binds tighter.
_BINDS: Final = {"+": 1, "-": 1, "*": 2, "floordiv": 2, "ceildiv": 2, "mod": 2}
_SPELLINGS: Final = {"/": "floordiv", "floorDiv": "floordiv", "ceilDiv": "ceildiv"}
_SPELLING: Final = re.compile(r"\s*/\s*|(?<=[\w)] )(?:floorDiv|ceilDiv)(?= )")
_NEGATE: Final = Token("sign", "negate", 0, 0)
_CALLS: Final = {"min": minimum, "max": maximum}


class Algebra(Protocol[Value]):
    """Builder of the values of expressions; its methods raise `ValueError` for invalid operands."""

    @property
    def names(self) -> Collection[str]:
        """The declared variables."""
        ...

    def number(self, value: int) -> Value:
        """Return the value of an integer literal."""
        ...

    def variable(self, name: str) -> Value:
        """Return the value of a variable in `names`."""
        ...

    def negate(self, value: Value) -> Value:
        """Return ``-value``."""
        ...

    def apply_operator(self, operator: str, left: Value, right: Value) -> Value:
        """Return ``left operator right``, for ``+ - * floordiv ceildiv mod``."""
        ...

    def call_function(self, function: str, values: list[Value]) -> Value:
        """Return ``min`` or ``max`` of `values`."""
        ...


class NormalForm:
    """The algebra of expressions in normal form: simplification laws apply during parsing."""

    def __init__(self, names: Mapping[str, Affine]) -> None:
        self._names = names

    @property
    def names(self) -> Collection[str]:
        return self._names

    def number(self, value: int) -> Expr:
        return as_expr(value)

    def variable(self, name: str) -> Expr:
        return as_expr(self._names[name])

    def negate(self, value: Expr) -> Expr:
        return -value

    def call_function(self, function: str, values: list[Expr]) -> Expr:
        return _CALLS[function](*values)

    def apply_operator(self, operator: str, left: Expr, right: Expr) -> Expr:
        expr = self._operate(operator, left, right)
        if expr.weight > _MAX_WEIGHT:
            raise ValueError(f"the expression has more than {_MAX_WEIGHT} terms")
        return expr

    def _operate(self, operator: str, left: Expr, right: Expr) -> Expr:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
        if right == as_expr(0):
            raise ValueError(f"the right operand of {operator} must not be 0")
        if operator == "mod":
            return left % (abs(right.constant) if right.is_constant else right)
        if right.is_constant and right.constant < 0:
            left, right = -left, -right
        if operator == "floordiv":
            return left // (right.constant if right.is_constant else right)
        if right.is_constant:
            return (left + right.constant - 1) // right.constant
        return -(-left // right)


def parse_expr(text: str | Tokens, names: Mapping[str, Affine]) -> Expr:
    """Parse an expression of the variables in `names`.

    Args:
        text: a text, all of it an expression; or tokens that start with an expression.
        names: the variable, expression or integer for each name.
    Raises:
        TextError: the text is not an expression of these variables, with the location.

    >>> from simplifier.atoms import Variable
    >>> parse_expr("d0 * 4 mod 2", {"d0": Variable("d0", 0, 9)})
    Expr('0')
    """
    if isinstance(text, str):
        tokens = Tokens(text)
        expr = parse_expr(tokens, names)
        if tokens.next.kind != "end":
            tokens.fail(f"expected an operator or the end, found {tokens.next_text()}")
        return expr
    return read_expr(text, NormalForm(names))


def read_expr(tokens: Tokens, algebra: Algebra[Value]) -> Value:
    """Parse the expression at the start of `tokens` into a value of `algebra`.

    Raises:
        TextError: the text is not an expression, or not one of this algebra, with the location.
    """
    return _Shunting(tokens, algebra).run()


class _Shunting(Generic[Value]):
    """The shunting-yard algorithm, without recursion: nesting has no limit."""

    def __init__(self, tokens: Tokens, algebra: Algebra[Value]) -> None:
        self.tokens, self.algebra = tokens, algebra
        self.values: list[Value] = []
        self.operators: list[Token] = []
        self.calls: list[OpenCall] = []

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
            operator = _operator(self.tokens.next)
            if operator.text not in _BINDS:
                break
            self.tokens.take()
            self._reduce(_BINDS[operator.text])
            self.operators.append(operator)
        self._reduce(0)
        if self.operators:
            self.tokens.fail(
                f"expected `)` or an operator, found {self.tokens.next_text()}",
                hint=f"the `(` at offset {self.operators[-1].start} is not closed",
            )
        return self.values.pop()

    def _open_parenthesis(self) -> bool:
        return any(operator.text == "(" for operator in reversed(self.operators))

    def _in_call(self) -> bool:
        """True if the innermost open parenthesis belongs to a call."""
        opened = [operator for operator in self.operators if operator.text == "("]
        return bool(self.calls and opened and self.calls[-1].opened is opened[-1])

    def _close(self, opened: Token) -> None:
        """Apply the function whose parenthesis is `opened`, if it belongs to a call."""
        if self.calls and self.calls[-1].opened is opened:
            call = self.calls.pop()
            arguments, self.values[call.below :] = self.values[call.below :], []
            self.values.append(self.algebra.call_function(call.function, arguments))

    def _operand(self) -> None:
        while True:
            token = self.tokens.take()
            if token.text == "(":
                self.operators.append(token)
            elif token.text == "-":
                self.operators.append(_NEGATE)
            elif token.text in _CALLS and self.tokens.next.text == "(":
                self.operators.append(self.tokens.take())
                self.calls.append(OpenCall(token.text, self.operators[-1], len(self.values)))
            else:
                break
        if token.kind == "number":
            self.values.append(self._number(token))
        elif token.kind == "name" and token.text in self.algebra.names:
            self.values.append(self.algebra.variable(token.text))
        elif token.kind == "name" and token.text not in _BINDS:
            near = get_close_matches(token.text, self.algebra.names, 1)
            known = ", ".join(self.algebra.names) or "none"
            self.tokens.fail(
                f"`{token.text}` is not a variable of this map",
                token,
                f"did you mean `{near[0]}`?" if near else f"the variables are: {known}",
            )
        else:
            text = f"`{token.text}`" if token.kind != "end" else "the end of the text"
            self.tokens.fail(f"expected a variable, a number or `(`, found {text}", token)

    def _number(self, token: Token) -> Value:
        """Return a number, or its product with the variable directly after it: ``100d0``."""
        value, name = self.algebra.number(int(token.text)), self.tokens.next
        if name.start != token.end or name.text not in self.algebra.names:
            return value
        self.tokens.take()
        return self.algebra.apply_operator("*", value, self.algebra.variable(name.text))

    def _reduce(self, binds: int) -> None:
        """Apply the operators on the stack that bind at least as tightly as `binds`."""
        while self.operators and self.operators[-1].text != "(":
            operator = self.operators[-1]
            if operator is _NEGATE:
                self.values.append(self.algebra.negate(self.values.pop()))
            elif _BINDS[operator.text] >= binds:
                right, left = self.values.pop(), self.values.pop()
                try:
                    self.values.append(self.algebra.apply_operator(operator.text, left, right))
                except ValueError as error:
                    self.tokens.fail(str(error), operator)
            else:
                return
            self.operators.pop()


def _operator(token: Token) -> Token:
    """Return a token with the name of the operator that it spells."""
    name = _SPELLINGS.get(token.text)
    return token if name is None else token._replace(text=name)


def spell_operators(text: str) -> str:
    """Return the text of an expression with the names of operators that `simplifier.text` prints.

    >>> spell_operators("d0/2 + (d1 ceilDiv 4)")
    'd0 floordiv 2 + (d1 ceildiv 4)'
    """
    return _SPELLING.sub(_spell, text)


def _spell(match: re.Match[str]) -> str:
    name = _SPELLINGS[match[0].strip()]
    return f" {name} " if "/" in match[0] else name


class OpenCall(NamedTuple):
    """A call whose parenthesis is open, and the height of the value stack below its arguments."""

    function: str
    opened: Token
    below: int
