"""Random terms and their values on edge values: the judge of the laws of values."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from hlo.shapes.element_type import range_of
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.functions import Attributes, evaluate, function_of
from indexing.equivalence.values.terms.terms import Formula, FormulaTable

Array: TypeAlias = "np.ndarray[Any, Any]"
Values: TypeAlias = Mapping[Formula, Array]
Twin: TypeAlias = tuple[Formula, Formula]
TYPES = ("f32", "bf16", "f16", "s32", "u8", "s8", "pred")

UNARY = {
    "float": ["negate", "abs", "sqrt"],
    "integer": ["negate", "abs", "not"],
    "pred": ["not"],
}
BINARY = {
    "float": ["add", "subtract", "multiply", "divide", "maximum", "minimum"],
    "integer": [
        *("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and"),
        *("or", "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic"),
    ],
    "pred": ["and", "or", "xor"],
}


def edges(element_type: str) -> list[float]:
    """Edge values of a type: extremes, neutral elements, powers of two, NaN, signed zeros."""
    if element_type == "pred":
        return [0, 1]
    limits = range_of(element_type)
    if limits is not None:
        low, high = limits
        return [v for v in (low, low + 1, -8, -5, -1, 0, 1, 2, 3, 7, 8, high - 1, high)
                if low <= v <= high]  # fmt: skip
    return [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.25,
            1e-40, -1e-45, 3e38, -3e38, 1 + 2**-7]  # fmt: skip


def kind_of(element_type: str) -> str:
    kind = ELEMENT_TYPES[element_type].kind
    return {"floating": "float", "pred": "pred"}.get(kind, "integer")


class RandomTerms:
    """Random applications of ops to parameters and constants, with and without laws.

    Each term is made twice: by an algebra with laws and by one without.
    """

    def __init__(self, seed: int, algebra: FormulaAlgebra, plain: FormulaAlgebra) -> None:
        self.random = random.Random(seed)
        self.algebra, self.plain = algebra, plain
        self.parameters = {t: [parameter(algebra.table, t, k) for k in (0, 1)] for t in TYPES}

    def both(self, opcode: str, attributes: Attributes, kind: str, *pairs: Twin) -> Twin:
        first = self.algebra.apply(opcode, attributes, kind, [a for a, _ in pairs])
        return first, self.plain.apply(opcode, attributes, kind, [b for _, b in pairs])

    def term(self, kind: str, depth: int) -> Twin:
        """Return a random term of a type, simplified and not."""
        choice = self.random.random()
        if not depth or choice < 0.12:
            if self.random.random() < 0.45:
                value = self.random.choice(edges(kind))
                with np.errstate(all="ignore"):
                    term = self.algebra.table.constant(value, kind)
            else:
                term = self.random.choice(self.parameters[kind])
            return term, term
        name = kind_of(kind)
        if choice < 0.3:
            opcode = self.random.choice(UNARY[name])
            if (opcode, ELEMENT_TYPES[kind].kind) in (("abs", "unsigned"), ("negate", "pred")):
                opcode = "not"
            return self.both(opcode, (), kind, self.term(kind, depth - 1))
        if choice < 0.4:
            return self.special(kind, depth)
        opcode = self.random.choice(BINARY[name])
        left = self.term(kind, depth - 1)
        right = left if self.random.random() < 0.1 else self.term(kind, depth - 1)
        return self.both(opcode, (), kind, left, right)

    def special(self, kind: str, depth: int) -> Twin:
        """Return a selection, a clamp, a comparison or a conversion."""
        other = self.random.choice(TYPES)
        if kind == "pred" or self.random.random() < 0.2:
            if kind != "pred":
                inner = self.term("pred", depth - 1)
                branches = self.term(kind, depth - 1), self.term(kind, depth - 1)
                return self.both("select", (), kind, inner, *branches)
            direction = self.random.choice(["LT", "LE", "GT", "GE", "EQ", "NE"])
            order = self.random.choice(["", "TOTALORDER"]) if kind_of(other) == "float" else ""
            attributes = ("direction", direction), ("type", order)
            operands = self.term(other, depth - 1), self.term(other, depth - 1)
            return self.both("compare", attributes, "pred", *operands)
        if self.random.random() < 0.4:
            low, high = sorted([v for v in self.random.sample(edges(kind), 2) if v == v] + [1, 2])[
                :2
            ]
            with np.errstate(all="ignore"):
                ends = [self.algebra.table.constant(v, kind) for v in (low, high)]
            x = self.term(kind, depth - 1)
            return self.both("clamp", (), kind, (ends[0],) * 2, x, (ends[1],) * 2)
        return self.both("convert", (), kind, self.term(other, depth - 1))


def parameter(table: FormulaTable, kind: str, number: int) -> Formula:
    return table.read(table.array("symbol", ("parameter", number, (kind,)), kind, ()), ())


def value(term: Formula, values: Values, memo: dict[int, Array]) -> Array:
    """Return the values of a term, by the element functions of the ops."""
    if term.number not in memo:
        result = _value(term, values, memo)
        with np.errstate(all="ignore"):
            if kind_of(term.type) == "float":  # NaN is one value
                result = np.where(result != result, np.array(np.nan, result.dtype), result)
        memo[term.number] = result
    return memo[term.number]


def _value(term: Formula, values: Values, memo: dict[int, Array]) -> Array:
    if term in values:
        return values[term]
    if term.kind == "constant":
        return np.full(next(iter(values.values())).shape, term.value)
    if term.kind in ("index", "choose"):
        return _index(term, values, memo)
    assert term.kind == "apply", term
    opcode, attributes = term.head
    arguments = [value(each, values, memo) for each in term.arguments]
    kind = dtype(term.type)
    if opcode == "bitcast-convert":
        return arguments[0].view(kind)
    if opcode == "sum":
        (_, factors), (_, constant) = attributes
        total = sum(f * a.astype(object) for f, a in zip(factors, arguments, strict=True))
        return _wrap(total + constant, term.type)
    if opcode == "product":
        total = np.ones(arguments[0].shape, object)
        for each in arguments:
            total = total * each.astype(object)
        return _wrap(total, term.type)
    if opcode in ("maximum", "minimum", "clamp") and kind_of(term.type) == "float":
        return _extremum(opcode, arguments)
    function = function_of(opcode, attributes, term.type)
    assert function is not None, opcode
    if opcode in ("and", "or", "xor", "add", "multiply") and len(arguments) > 2:
        total = arguments[0]
        for each in arguments[1:]:
            total = evaluate(function, [total, each], term.type)
        return np.asarray(total)
    return np.asarray(evaluate(function, arguments, term.type))


def _index(term: Formula, values: Values, memo: dict[int, Array]) -> Array:
    """Values of an index, or of a choice by one: runtime variables are clamped terms."""
    (expr,) = term.index
    terms = {f"v{t.number}": t for t in term.children}
    variables = list(expr.variables())
    clamped = [
        np.clip(value(terms[v.name], values, memo).astype(object), v.lower, v.upper)
        for v in variables
    ]
    points = [dict(zip(variables, point, strict=True)) for point in zip(*clamped, strict=True)]
    at = [expr.value({v: int(i) for v, i in point.items()}) for point in points]
    if term.kind == "index":
        return np.array(at).astype(dtype(term.type))
    pieces = [np.broadcast_to(value(t, values, memo), len(at)) for t in term.arguments]
    last = len(pieces) - 1
    uppers = list(term.head)[:last]
    return np.array([pieces[sum(i > upper for upper in uppers)][k] for k, i in enumerate(at)])


def _extremum(opcode: str, arguments: list[Array]) -> Array:
    """Maxima and minima with -0 < 0, as IEEE 754-2019; HLO does not order zeros."""
    if opcode == "clamp":
        low, x, high = arguments
        return _extremum("minimum", [_extremum("maximum", [x, low]), high])
    x, y = arguments
    function = np.maximum if opcode == "maximum" else np.minimum
    first = np.signbit(y) if opcode == "maximum" else np.signbit(x)
    with np.errstate(all="ignore"):
        others = function(x, y)
    return np.where((x == 0) & (y == 0), np.where(first, x, y), others).astype(x.dtype)


def _wrap(total: Array, element_type: str) -> Array:
    bits = ELEMENT_TYPES[element_type].bits
    unsigned = (total % (1 << bits)).astype(np.uint64)
    return unsigned.astype(np.dtype(f"u{bits // 8}")).view(dtype(element_type))


def same(ours: Array, theirs: Array) -> Array:
    """Return where two arrays have the same bits; NaN is one value."""
    bits = np.dtype(f"u{ours.dtype.itemsize}")
    with np.errstate(all="ignore"):
        both_nan = (ours != ours) & (theirs != theirs)
    return np.asarray((ours.view(bits) == theirs.view(bits)) | both_nan)
