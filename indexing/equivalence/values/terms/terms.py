"""Terms: formulas of array elements, hash-consed, so that equal formulas are one object.

A term has the index variables of its array as free variables.  An array term is closed: a
parameter, or the result of a fold or of an opaque op, whose own variables are bound.

>>> table = FormulaTable()
>>> p = table.array("symbol", ("parameter", 0, ()), "f32", (4, 3))
>>> i, j = Variable("d0", 0, 3).as_expr(), Variable("d1", 0, 2).as_expr()
>>> table.read(p, (i, j)) is table.read(p, (i, j))
True
>>> print(table.read(p, (i, j * 1 + 0)))
parameter 0[d0, d1]
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from hlo.shapes.shape import dtype
from simplifier.atoms import Atom, Variable, variables_in
from simplifier.interval import Interval
from simplifier.linear import Expr
from simplifier.text import normal_form_text

Kind: TypeAlias = Literal[
    "constant", "index", "apply", "choose", "read",
    "symbol", "table", "fold", "opaque", "let",
]  # fmt: skip
ARRAYS: Final = frozenset(["symbol", "table", "fold", "opaque", "let"])
UNDEFINED: Final = "undefined"
NO_VARIABLES: Final[frozenset[Variable]] = frozenset()
MAX_SHOWN: Final = 240
"""Characters of a term in a text from which more of its subterms are elided."""
MAX_LISTED: Final = 4
"""Limit on the operands that the text of a long term lists."""
MIN_DETAILED: Final = 5
"""Depth of a text from which runtime variables are shown with their terms."""


class Formula:
    """One formula; equal formulas of a table are one object.

    Attributes:
        kind: a scalar ("constant", "index", "apply", "choose", "read") or an array (`ARRAYS`).
        head: the part of the key that is not a term: an opcode with attributes, a value, bounds.
        type: the element type.
        arguments: the subterms; of an array term, its closed formulas.
        index: the expressions: of a read, its index; of a choice, the deciding expression.
        array: the array of a read, else None.
        free: the free index variables.
        children: the arguments, and the terms of the runtime variables in `index`.
        dims: the sizes of an array term, else ().
        number: the position in the table.
        key: equal for terms that differ only in the names of variables.
        depth: the length of the longest path to a leaf, through `children`.
        is_partial: True if it may have no value: it has the symbol `UNDEFINED` in it.
        has_choice: True for a choice, and for a function of one, outside of arrays.
    """

    __slots__ = (
        *("kind", "head", "type", "arguments", "index", "array", "free", "children", "dims"),
        *("number", "key", "depth", "is_partial", "has_choice"),
    )

    kind: Kind
    head: Any
    type: str
    arguments: tuple[Formula, ...]
    index: tuple[Expr, ...]
    array: Formula | None
    free: frozenset[Variable]
    children: tuple[Formula, ...]
    dims: tuple[int, ...]
    number: int
    key: int
    depth: int
    is_partial: bool
    has_choice: bool

    def __str__(self) -> str:
        return text_of(self)

    def __repr__(self) -> str:
        return f"<term {self.number}: {self}>"

    @property
    def value(self) -> Any:
        """The value of a constant, as a NumPy scalar."""
        _, data = self.head
        return np.frombuffer(data, dtype(self.type))[0]


class UnboundVariable(Exception):
    """An array would depend on the index of another array."""


class FormulaTable:
    """A table of terms.

    Attributes:
        runtime: the term that each runtime variable is the value of; its bounds clamp the value.
        unbound: variables that an array cannot bind: they are not its own dimensions.
    """

    unbound: frozenset[Variable] = NO_VARIABLES

    def __init__(self) -> None:
        self._terms: dict[Hashable, Formula] = {}
        self.runtime: dict[Variable, Formula] = {}
        self._keys: dict[Atom, int] = {}
        self._expr_keys: dict[Expr, int] = {}
        self._orders: dict[Expr, tuple[int, str]] = {}
        self._ordered: dict[Expr, list[Variable]] = {}
        self._integers: dict[tuple[int, str], Formula] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def make(
        self, kind: Kind, head: Hashable, element_type: str, arguments: Sequence[Formula] = (),
        index: Sequence[Expr] = (), array: Formula | None = None, dims: tuple[int, ...] = (),
    ) -> Formula:  # fmt: skip
        """Return the term with this structure, without simplification."""
        arguments, index = tuple(arguments), tuple(index)
        key = kind, head, element_type, arguments, index, array, dims
        known = self._terms.get(key)
        if known is not None:
            return known
        term = Formula()
        term.kind, term.head, term.type = kind, head, element_type
        term.arguments, term.index, term.array, term.dims = arguments, index, array, dims
        self._relate(term)
        parts = arguments if array is None else (*arguments, array)
        is_undefined = kind == "symbol" and UNDEFINED in term.head
        term.is_partial = is_undefined or any(t.is_partial for t in parts)
        is_branched = kind == "apply" and any(t.has_choice for t in arguments)
        term.has_choice = is_branched or kind == "choose"
        keys = [t.key for t in arguments] + [self.expr_key(e) for e in index]
        keys.append(0 if array is None else array.key)
        term.key = stable_hash(kind, _name_key(kind, head), element_type, *keys, *dims)
        self._terms[key] = term
        return term

    def _relate(self, term: Formula) -> None:
        """Compute the children, the free variables, the number and the depth of a new term."""
        variables = variables_in(term.index) if term.index else ()
        inside = [self.runtime[v] for v in variables if v in self.runtime]
        term.children = (*term.arguments, *sorted(inside, key=lambda t: t.number))
        term.free = NO_VARIABLES
        if term.kind not in ARRAYS:
            own = frozenset([v for v in variables if v not in self.runtime])
            term.free = own.union(*[t.free for t in term.children])
        term.number = len(self._terms)
        term.depth = 1 + max([t.depth for t in term.children], default=0)

    # ------------------------------------------------------------ leaves

    def constant(self, value: Any, element_type: str) -> Formula:
        """Return a scalar constant."""
        if type(value) is int:
            known = self._integers.get((value, element_type))
            if known is None:
                known = self._integers[value, element_type] = self._constant(value, element_type)
            return known
        return self._constant(value, element_type)

    def _constant(self, value: Any, element_type: str) -> Formula:
        data = np.asarray(value, dtype(element_type))
        if data.dtype.kind == "f" or data.dtype.kind == "V":
            data = np.where(data != data, np.asarray(np.nan).astype(data.dtype), data)
        return self.make("constant", (element_type, data.tobytes()), element_type)

    def array(
        self, kind: Kind, head: Hashable, element_type: str, dims: tuple[int, ...],
        arguments: Sequence[Formula] = (), index: Sequence[Expr] = (),
    ) -> Formula:  # fmt: skip
        """Return an array term.

        Raises:
            UnboundVariable: the values of the array depend on a variable in `unbound`.
        """
        if self.unbound and kind != "fold" and any(t.free & self.unbound for t in arguments):
            raise UnboundVariable
        return self.make(kind, head, element_type, arguments, index, dims=dims)

    def read(self, array: Formula, index: Iterable[Expr]) -> Formula:
        """Return an element of an array."""
        return self.make("read", (), array.type, (), tuple(index), array)

    def index(self, expr: Expr, element_type: str) -> Formula:
        """Return the value of an index expression, which the type can represent."""
        if expr.is_constant:
            return self.constant(expr.constant, element_type)
        return self.make("index", (), element_type, (), (expr,))

    def variable(self, term: Formula, clamp: Interval) -> Variable:
        """Return the runtime variable with the value of a term, clamped."""
        lower, upper = clamp
        variable = Variable(f"v{term.number}", lower, upper)
        self.runtime[variable] = term
        return variable

    # ------------------------------------------------------------ keys

    def expr_key(self, expr: Expr) -> int:
        """Return a number that is equal for expressions that differ only in names of variables."""
        key = self._expr_keys.get(expr)
        if key is None:
            parts = sorted([(self._atom_key(atom), factor) for atom, factor in expr.parts.items()])
            key = stable_hash(expr.constant, *[x for part in parts for x in part])
            self._expr_keys[expr] = key
        return key

    def expr_order(self, expr: Expr) -> tuple[int, str]:
        """Return the position of an expression in a total order."""
        order = self._orders.get(expr)
        if order is None:
            order = self._orders[expr] = self.expr_key(expr), normal_form_text(expr)
        return order

    def _atom_key(self, atom: Atom) -> int:
        key = self._keys.get(atom)
        if key is None:
            if isinstance(atom, Variable):
                value = self.runtime.get(atom)
                name = atom.name[:1] if value is None else value.key
                key = stable_hash(name, atom.lower, atom.upper)
            else:
                operands = [self.expr_key(e) for e in atom.operands]
                divisor = getattr(atom, "divisor", 0)
                divisor = divisor if isinstance(divisor, int) else 0
                key = stable_hash(type(atom).__name__, divisor, *operands)
            self._keys[atom] = key
        return key

    def first_variables(self, expr: Expr) -> list[Variable]:
        """Return the variables of an expression in an order that does not depend on names."""
        known = self._ordered.get(expr)
        if known is not None:
            return known
        ordered: dict[Variable, None] = {}
        pending = [expr]
        while pending:
            parts = pending.pop().parts.items()
            inner: list[Expr] = []
            for atom, _ in sorted(parts, key=lambda part: (self._atom_key(part[0]), part[1])):
                if isinstance(atom, Variable):
                    ordered[atom] = None
                else:
                    inner += atom.operands
            pending += inner[::-1]
        self._ordered[expr] = list(ordered)
        return self._ordered[expr]


def stable_hash(*parts: object) -> int:
    """Return a hash of strings, integers and None that is the same in every process."""
    return zlib.crc32(repr(parts).encode()) | len(parts) << 32


def _name_key(kind: Kind, head: Hashable) -> str:
    """Return a text of a head; the carried leaves of a loop differ by initial value only."""
    if kind == "apply" and not head[1]:  # type: ignore[index]
        return f"({head[0]!r},())"  # type: ignore[index]
    is_carried = kind == "symbol" and isinstance(head, tuple) and head[0] == "loop"
    return _stable(head[:3] if isinstance(head, tuple) and is_carried else head)


def _stable(head: Hashable) -> str:
    """Return a text of a head in which array terms are their keys."""
    if isinstance(head, tuple):
        return f"({','.join([_stable(each) for each in head])})"
    return str(head.key) if isinstance(head, Formula) else repr(head)


def text_of(term: Formula, characters: int = MAX_SHOWN) -> str:
    """Return a term as text; the deepest subterms are elided if it is long."""
    texts = (_spell(term, depth, n) for n in (99, MAX_LISTED) for depth in range(8, 2, -1))
    return next((text for text in texts if len(text) <= characters), _spell(term, 2, MAX_LISTED))


def _runtime_text(term: Formula, depth: int, listed: int) -> str:
    """Return the runtime variables of an index with their terms."""
    inside = term.children[len(term.arguments) :]
    if not inside or depth < MIN_DETAILED:
        return ""
    values = [f"v{t.number} = {_spell(t, depth - 1, listed)}" for t in inside]
    return f"{{{', '.join(values)}}}"


def _spell(term: Formula, depth: int, listed: int) -> str:
    """Return a term as text; subterms below `depth` and operands after `listed` are elided."""
    if not depth and term.kind not in ("constant", "symbol"):
        return "…"
    inner = [_spell(t, depth - 1, listed) for t in term.arguments[:listed]]
    more = len(term.arguments) - len(inner)
    inner += [f"… {more} more"] * (more > 0)
    at = ", ".join(map(str, term.index))
    match term.kind:
        case "constant":
            return f"{term.type} {term.value}"
        case "index":
            return f"{term.type}({at})"
        case "apply":
            return f"{_function_name(term)}({', '.join(_with_factors(term, inner))})"
        case "choose":
            return f"choose({at} <= {term.head}: {', '.join(inner)})"
        case "read":
            assert term.array is not None
            runtime = _runtime_text(term, depth, listed)
            return f"{_spell(term.array, depth - 1, listed)}[{at}]{runtime}"
        case "symbol":
            *name, number, path = term.head
            return " ".join(map(str, name)) + f" {'.'.join(map(str, (number, *path)))}"
        case "table":
            return f"constant {term.type}{list(term.dims)}"
        case _:
            name = _opcode(term)
            guards = _guards(term) if term.kind == "fold" else f" where {at}" * bool(at)
            runtime = _runtime_text(term, depth, listed)
            return f"{name}{list(term.dims)}({', '.join(inner)}{guards}){runtime}"


def _opcode(term: Formula) -> str:
    return str(term.head[0] if isinstance(term.head, tuple) else term.head)


def _function_name(term: Formula) -> str:
    """Return the opcode of a function; of a conversion, with the type that it rounds to."""
    name = _opcode(term)
    return f"{name} {term.type}" if name == "convert" else name


def _with_factors(term: Formula, operands: Sequence[str]) -> list[str]:
    """Return the operands of a function as text; those of an integer sum with their factors."""
    attributes = dict(term.head[1]) if term.head[0] == "sum" else {}
    factors = attributes.get("factors", (1,) * len(operands))
    pairs = zip(factors, operands, strict=False)
    shown = [text if factor == 1 else f"{factor} * {text}" for factor, text in pairs]
    constant = attributes.get("constant", 0)
    return [*shown, *operands[len(shown) :], *([str(constant)] if constant else [])]


def _guards(term: Formula) -> str:
    """Return the ranges and conditions of a fold as text."""
    *_, ranges, bounds = term.head
    over = [f"s{k} in {list(each)}" for k, each in enumerate(ranges)]
    where = [
        f"{expr} = {low}" if low == high else f"{expr} in [{low}, {high}]"
        for expr, (low, high) in zip(term.index, bounds, strict=True)
    ]
    texts = [f" over {', '.join(over)}"] if over else []
    return "".join(texts + ([f" where {', '.join(where)}"] if where else []))
