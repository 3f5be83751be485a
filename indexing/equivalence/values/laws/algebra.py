"""Construction of terms by laws: equal formulas become one term.

`FormulaAlgebra.apply` evaluates constants and applies the exact laws (`exact`).  Every law
is valid for each value of the type, NaN being one value.

>>> algebra = FormulaAlgebra(FormulaTable())
>>> x = algebra.table.read(algebra.table.array("symbol", ("p", 0, ()), "f32", ()), ())
>>> one = algebra.table.constant(1, "f32")
>>> algebra.apply("multiply", (), "f32", [one, x]) is x
True
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from hlo.shapes.mixed_radix import number_of
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.equivalence.values.laws.integers import integer_expr
from indexing.equivalence.values.laws.law import Application, ValueLaw
from indexing.equivalence.values.laws.table import EXACT_LAWS
from indexing.equivalence.values.terms.decision_diagrams import choose_piece, piece_at
from indexing.equivalence.values.terms.formula_substitution import FormulaSubstitution, Rebuilt
from indexing.equivalence.values.terms.functions import (
    ROUNDED,
    Attributes,
    evaluate,
    function_of,
    is_integral,
)
from indexing.equivalence.values.terms.terms import (
    UNDEFINED,
    Formula,
    FormulaTable,
)
from indexing.ops import combiners
from indexing.ops.functions import ScalarFunction
from simplifier.atoms import Variable, variables_in
from simplifier.constraints import Constraint
from simplifier.interval import Interval, contains
from simplifier.linear import Expr, as_expr
from simplifier.semiaffine import maximum, minimum
from simplifier.substitute import Substitution

COMMUTATIVE: Final = combiners.COMMUTATIVE | {"sum", "product"}
"""Commutative functions: those of HLO, and sums and products of several terms."""
PARTS_OF_COMPLEX: Final = frozenset(["complex", "real", "imag"])
"""Functions of complex numbers that are evaluated: they do not round."""


class FormulaAlgebra:
    """Constructors of terms.

    Attributes:
        table: the table of the terms.
        functions: functions of ops whose attributes do not determine them, by opcode and type.
        laws: the laws to apply, by opcode, in this order.
        reassociates: sums and products of floats may be reordered.
        computed: constants that laws of the reals computed, with other roundings than the program.
        written: constants of the programs.
        uses: the names of the laws used since the list was emptied that are not exact.
    """

    reassociates: bool = False

    def __init__(
        self,
        table: FormulaTable,
        functions: dict[Hashable, ScalarFunction] | None = None,
        laws: Mapping[str, Sequence[ValueLaw]] = EXACT_LAWS,
    ) -> None:
        self.table = table
        self.functions = {} if functions is None else functions
        self.laws = laws
        self.uses: list[str] = []
        self.computed: set[Formula] = set()
        self.written: set[Formula] = set()
        self._applied: dict[Hashable, tuple[Formula, tuple[str, ...]]] = {}
        self._starts_of: dict[Formula, Any] = {}
        self._rebuilt: dict[tuple[tuple[Variable, Expr], ...], Rebuilt] = {}

    def note(self, names: Iterable[str]) -> None:
        """Record uses of laws that are not exact."""
        self.uses += names

    # ------------------------------------------------------------ functions

    def apply(
        self, opcode: str, attributes: Attributes, element_type: str, arguments: Sequence[Formula]
    ) -> Formula:
        """Return a function of terms, with a result of this type; each is simplified once."""
        key = opcode, attributes, element_type, tuple(arguments)
        known = self._applied.get(key)
        if known is None:
            start = len(self.uses)
            result = self._simplify(opcode, attributes, element_type, arguments)
            self._applied[key] = result, tuple(self.uses[start:])
            return result
        result, names = known
        self.uses += names
        return result

    def _simplify(
        self, opcode: str, attributes: Attributes, element_type: str, arguments: Sequence[Formula]
    ) -> Formula:
        """Return a function of terms, by the first law that applies."""
        if any(map(_is_undefined, arguments[: 1 if opcode == "select" else None])):
            return self.undefined(element_type)
        folded = self._fold_constants(opcode, attributes, element_type, arguments)
        folded = folded or self._by_piece(opcode, attributes, element_type, arguments)
        if folded is None and any(map(_is_entry, arguments)):
            folded = self._by_entry(opcode, attributes, element_type, arguments)
        if folded is not None:
            return folded
        call = Application(opcode, attributes, element_type, tuple(arguments))
        for law in self.laws.get(opcode, ()):
            result = law.rewrite(self, call)
            if result is not None:
                return result
        return self.raw(call)

    def undefined(self, element_type: str) -> Formula:
        """Return a term without a value; two such terms are equal."""
        symbol = self.table.array("symbol", (UNDEFINED, 0, ()), element_type, ())
        return self.table.read(symbol, ())

    def raw(self, call: Application) -> Formula:
        """Return a function of terms by no law but commutation."""
        arguments = call.arguments
        is_equality = call.opcode == "compare" and dict(call.attributes)["direction"] in (
            "EQ",
            "NE",
        )
        if call.opcode in COMMUTATIVE or is_equality:
            arguments = tuple(sorted(arguments, key=lambda t: (t.key, t.number)))
        head = call.opcode, call.attributes
        return self.table.make("apply", head, call.element_type, arguments)

    def _fold_constants(
        self, opcode: str, attributes: Attributes, element_type: str, arguments: Sequence[Formula]
    ) -> Formula | None:
        """Return the value of a function of constants; None if it is not evaluated."""
        if not arguments or any(t.kind != "constant" for t in arguments):
            return None
        function = self._function(opcode, attributes, element_type, arguments)
        if function is None:
            return None
        values = [t.value for t in arguments]
        return self.table.constant(evaluate(function, values, element_type), element_type)

    def _function(
        self, opcode: str, attributes: Attributes, element_type: str, arguments: Sequence[Formula]
    ) -> ScalarFunction | None:
        """Return the function that evaluates an op of constants; None if it is not evaluated."""
        if opcode in ROUNDED or (len(arguments) > 2 and opcode in COMMUTATIVE):
            return None
        is_evaluable = np_evaluable(element_type, *[t.type for t in arguments])
        if not is_evaluable and opcode not in PARTS_OF_COMPLEX:
            return None
        function = self.functions.get((opcode, attributes, element_type))
        return function or function_of(opcode, attributes, element_type)

    def _by_piece(
        self, opcode: str, attributes: Attributes, element_type: str, arguments: Sequence[Formula]
    ) -> Formula | None:
        """Return a function of constants, and of choices among constants, as a choice."""
        first = next(filter(_is_choice, arguments), None)
        if first is None or opcode in ("select", *ROUNDED) or not _is_piecewise(arguments, first):
            return None

        def part(take: Callable[[Formula], Formula]) -> Formula:
            values = [t if t.kind == "constant" else take(t) for t in arguments]
            return self.apply(opcode, attributes, element_type, values)

        if first.kind != "choose":
            parts = [part(lambda t: t.arguments[1]), part(lambda t: t.arguments[2])]
            return self.apply("select", (), element_type, [first.arguments[0], *parts])
        bounds = sorted({bound for t in arguments if t.kind == "choose" for bound in t.head})
        pieces = [(bound, part(partial(piece_at, value=bound))) for bound in bounds]
        return self.choose(first.index[0], pieces)

    def _by_entry(
        self, opcode: str, attributes: Attributes, element_type: str, arguments: Sequence[Formula]
    ) -> Formula | None:
        """Return a function of constants, and of tables at one index, as an element of a table."""
        tables = {t: entries(t.array) for t in arguments if _is_entry(t) and t.array is not None}
        if len({(t.index, len(tables[t])) for t in tables}) != 1:
            return None
        function = self._function(opcode, attributes, element_type, arguments)
        if function is None:
            return None
        first, *_ = tables
        for t in arguments:
            numbers = _numbers_at(t, first.index[0], len(tables[first]))
            if numbers is not None:
                tables[t] = numbers
        if any(t not in tables and t.kind != "constant" for t in arguments):
            return None
        size = len(tables[first])
        values = [tables[t] if t in tables else np.full(size, t.value) for t in arguments]
        result = evaluate(function, values, element_type)
        return self.table_element(result, element_type, first.index)

    # ------------------------------------------------------------ indices

    def index_of(self, term: Formula, clamp: Interval) -> Expr:
        """Return the value of an integer term as an index, clamped."""
        value = integer_expr(term)
        if value is None:
            return self.table.variable(term, clamp).as_expr()
        if contains(clamp, value.bounds):
            return value
        return minimum(maximum(value, clamp[0]), clamp[1])

    def rewriting(self, values: Mapping[Variable, Expr]) -> FormulaSubstitution:
        """Return the substitution of expressions for variables."""
        key = tuple(values.items())
        shared = self._rebuilt.get(key)
        if shared is None:
            shared = self._rebuilt[key] = Rebuilt()
        return FormulaSubstitution(
            self.table, values, self.rebuild, self.index_of, self.uses, shared
        )

    def rebuild(
        self, term: Formula, arguments: tuple[Formula, ...], index: tuple[Expr, ...]
    ) -> Formula:
        """Return a term of the same kind with other subterms, by the laws."""
        match term.kind:
            case "apply":
                opcode, attributes = term.head
                return self.apply(opcode, attributes, term.type, arguments)
            case "choose":
                uppers: tuple[int, ...] = term.head
                return self.choose(index[0], list(zip(uppers, arguments, strict=True)))
            case "index":
                known = self._values_by_entry(index[0])
                if known is not None:
                    return self.table_element(
                        np.array(known[0], dtype(term.type)), term.type, known[1]
                    )
                return self.table.index(index[0], term.type)
            case "read":
                assert term.array is not None
                return self.read(term.array, index)
            case _:
                return self.table.make(term.kind, term.head, term.type, arguments, index,
                                       term.array, term.dims)  # fmt: skip

    def read(self, array: Formula, index: Sequence[Expr]) -> Formula:
        """Return an element of an array; of a table, the constant if the index has one value."""
        if array.kind == "table":
            known = self._entries_between(array, index[0]) or self._entry_of_entry(array, index[0])
            if known is not None:
                return known
        return self.table.read(array, index)

    def _written_constant(self, value: Any, element_type: str) -> Formula:
        """Return a constant of a program, whose rounding is not that of a law."""
        term = self.table.constant(value, element_type)
        self.written.add(term)
        return term

    def _entry_of_entry(self, array: Formula, index: Expr) -> Formula | None:
        """Return the entry of a table whose place is an entry of a table."""
        known = self._values_by_entry(index)
        values = entries(array)
        if known is None or not all(0 <= i < len(values) for i in known[0]):
            return None
        return self.table_element(values[known[0]], array.type, known[1])

    def _values_by_entry(self, index: Expr) -> tuple[list[int], Sequence[Expr]] | None:
        """Return the values of an expression of an entry of a table, and the entry's place."""
        variables = variables_in([index])
        if len(variables) != 1 or not variables <= self.table.runtime.keys():
            return None
        (v,) = variables
        place = self.table.runtime[v]
        if place.array is None or place.array.kind != "table" or not is_integral(place.type):
            return None
        places = [min(max(int(i), v.lower), v.upper) for i in entries(place.array)]
        return [index.value({v: i}) for i in places], place.index

    def table_element(self, values: Any, element_type: str, index: Sequence[Expr]) -> Formula:
        """Return the element of an array of constants at an index."""
        flat = np.ascontiguousarray(values).reshape(-1)
        table = self.table.array("table", (element_type, flat.shape, flat.tobytes()),
                                 element_type, flat.shape)  # fmt: skip
        return self.read(table, (as_expr(number_of(index, values.shape)),))

    def _entries_between(self, array: Formula, place: Expr) -> Formula | None:
        """Return the entries of a table at the values of a place, if they are one or two constants.

        A place beyond the table is not read: a choice around the read excludes it.
        """
        values = entries(array)
        first, last = max(place.bounds[0], 0), min(place.bounds[1], len(values) - 1)
        starts = self._starts(array)
        low, high = (np.searchsorted(starts, bound, "right") for bound in (first, last))
        if first > last or high - low > 1:
            return None
        ends = [*[int(start) - 1 for start in starts[low:high]], last]
        constants = [self._written_constant(values[end], array.type) for end in ends]
        return self.choose(place, list(zip(ends, constants, strict=True)))

    def _starts(self, array: Formula) -> Any:
        """Return the places of a table whose entry differs from the one before; 0 is not -0."""
        if array not in self._starts_of:
            rows = np.frombuffer(array.head[-1], np.uint8).reshape(array.dims[0], -1)
            steps = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1))
            self._starts_of[array] = steps + 1
        return self._starts_of[array]

    # ------------------------------------------------------------ choices

    def where(self, guards: Sequence[Constraint], value: Formula, otherwise: Formula) -> Formula:
        """Return `value` where all guards hold, else `otherwise`."""
        for guard in guards:
            pieces = [(guard.lower - 1, otherwise), (guard.upper, value)]
            value = self.choose(guard.expr, [*pieces, (guard.upper + 1, otherwise)])
        return value

    def choose(self, expr: Expr, pieces: Sequence[tuple[int, Formula]]) -> Formula:
        """Return the term of the first piece whose upper bound `expr` does not exceed.

        The upper bound of the last piece is ignored.
        """
        return choose_piece(self.table, expr, pieces)


def _is_entry(term: Formula) -> bool:
    """Return True for an element of a table of constants."""
    return term.array is not None and term.array.kind == "table"


def _numbers_at(term: Formula, place: Expr, size: int) -> Any:
    """Return the values of an index, or of a choice among constants, for the places 0, 1, …

    Args:
        size: the number of places.
    """
    is_known = term.kind == "index" or (term.kind == "choose" and _is_choice(term))
    if not is_known or len(place.parts) != 1 or place.bounds[1] >= size:
        return None
    ((v, factor),) = place.parts.items()
    if factor != 1 or place.constant or not isinstance(v, Variable) or v.lower < 0:
        return None
    if variables_in(term.index) != {v}:
        return None
    wide = Substitution({v: Variable(v.name, 0, size - 1).as_expr()})(term.index[0])
    (own,) = variables_in([wide])
    numbers = [wide.value({own: k}) for k in range(size)]
    if term.kind == "index":
        return np.array(numbers, dtype(term.type))
    return np.array([piece_at(term, k).value for k in numbers], dtype(term.type))


def entries(table: Formula) -> Any:
    """Return the values of a table of constants."""
    _, dims, data = table.head
    return np.frombuffer(data, dtype(table.type)).reshape(dims)


def _is_piecewise(arguments: Sequence[Formula], first: Formula) -> bool:
    """Return True for constants, and choices among constants by the same decision as `first`."""
    decision = first.index if first.kind == "choose" else first.arguments[:1]
    for term in arguments:
        if term.kind == "constant":
            continue
        own = term.index if term.kind == "choose" else term.arguments[:1]
        if not _is_choice(term) or term.kind != first.kind or own != decision:
            return False
    return True


def _is_undefined(term: Formula) -> bool:
    return term.is_partial and term.array is not None and term.array.kind == "symbol"


def _is_choice(term: Formula) -> bool:
    """Return True for a choice or a selection among constants."""
    if term.kind == "choose":
        return all(part.kind == "constant" for part in term.arguments)
    if term.kind != "apply" or term.head[0] != "select":
        return False
    return all(part.kind == "constant" for part in term.arguments[1:])


def np_evaluable(*element_types: str) -> bool:
    """Return True for types whose arithmetic NumPy has: no sub-byte integers, no complex."""
    kinds = [ELEMENT_TYPES[name] for name in element_types]
    return all(e.kind != "complex" and (e.bits >= 8 or e.kind == "pred") for e in kinds)
