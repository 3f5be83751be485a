"""Ops on tiles: those of `xtile`, of `stablehlo`, and elementwise ones.

A tile may reach over the edge of an array: such elements are undefined when they are read, and are
not written.  What is undefined is a symbol of its own, which no formula of an instruction has.

Source: XLA ``xla/codegen/xtile/ir/xtile_ops.td``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hlo.shapes.element_type import ELEMENT_TYPES
from hlo.shapes.mixed_radix import number_of
from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula
from indexing.equivalence.values.terms.functions import is_float
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.accesses import KernelBuffer
from indexing.kernels.control import Handler, Values
from indexing.kernels.domains import Guards, NotHandled
from indexing.kernels.ir import MlirOp, MlirValue
from indexing.kernels.scalars import type_name, with_sign
from indexing.kernels.symbolic import Execution, Held
from indexing.kernels.tile_values import Element, Tile
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

Index = tuple[Expr, ...]

_REDUCED: Final = {"stablehlo.add": "add", "stablehlo.maximum": "maximum",
                   "stablehlo.minimum": "minimum", "stablehlo.multiply": "multiply",
                   "stablehlo.and": "and", "stablehlo.or": "or"}  # fmt: skip


def _tile(values: Mapping[MlirValue, Held], value: MlirValue) -> Tile:
    held = values[value]
    if not isinstance(held, Tile):
        raise NotHandled("a tile that is not an array of values")
    return held


# ---------------------------------------------------------------- memory


def _extract(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    buffer = values[op.operand("source")]
    if not isinstance(buffer, KernelBuffer):
        raise NotHandled("a tile of memory that is not an argument")
    offsets = execution.indices(values, op.group("indices"))
    sizes, strides = op.attributes["sizes"], op.attributes["strides"]
    kept = _kept_dims(sizes, op.result.type.dims)
    variables = _local_variables(execution, op.result.type.dims)
    own = _own(variables)
    place, guards = _place(buffer, offsets, strides, _widen(own, kept, len(sizes)))
    execution.record_tile(op, buffer, place, variables, guards, None)

    def at(index: Index) -> Element:
        spot, inside = _place(buffer, offsets, strides, _widen(index, kept, len(sizes)))
        value = execution.read_argument(buffer, spot)
        undefined = execution.algebra.undefined(value.type)
        return execution.algebra.where(inside, value, undefined) if inside else value

    return [Tile(op.result.type, at)]


def _kept_dims(sizes: Sequence[int], dims: Sequence[int]) -> list[int]:
    """Return the dimensions of a tile's place that the result keeps; others have size 1."""
    kept: list[int] = []
    for k, size in enumerate(sizes):
        if len(kept) < len(dims) and size == dims[len(kept)]:
            kept.append(k)
        elif size != 1:
            raise NotHandled("a tile whose sizes are not those of its type")
    if len(kept) != len(dims):
        raise NotHandled("a tile whose sizes are not those of its type")
    return kept


def _widen(index: Index, kept: Sequence[int], rank: int) -> Index:
    wide = [as_expr(0)] * rank
    for k, expr in zip(kept, index, strict=True):
        wide[k] = expr
    return tuple(wide)


def _place(
    buffer: KernelBuffer, offsets: Index, strides: Sequence[Any], index: Index
) -> tuple[Index, Guards]:
    """Return the element of memory that an element of a tile is, and when it is in bounds."""
    if not len(offsets) == len(index) == len(strides) == buffer.type.rank:
        raise NotHandled("a tile of another rank than its memory")
    place: list[Expr] = []
    guards: list[Constraint] = []
    for offset, stride, expr, size in zip(offsets, strides, index, buffer.type.dims, strict=True):
        if not isinstance(stride, int):
            raise NotHandled("a stride that is not constant")
        at = offset + expr * stride
        guard = Constraint(at, 0, size - 1)
        if not guard.is_true:
            guards.append(guard)
        place.append(at if size > 1 else as_expr(0))
    return tuple(place), tuple(guards)


def _local_variables(execution: Execution, dims: Sequence[int]) -> list[Variable]:
    return [execution.new_variable(size) for size in dims]


def _own(variables: Sequence[Variable]) -> Index:
    return tuple([v.as_expr() if v.upper else as_expr(0) for v in variables])


def _insert(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    buffer = values[op.operand("target")]
    tile = _tile(values, op.operand("value"))
    if not isinstance(buffer, KernelBuffer):
        raise NotHandled("a tile of memory that is not an argument")
    offsets = execution.indices(values, op.group("indices"))
    sizes, strides = op.attributes["sizes"], op.attributes["strides"]
    kept = _kept_dims(sizes, tile.dims)
    variables = _local_variables(execution, tile.dims)
    own = _own(variables)
    place, guards = _place(buffer, offsets, strides, _widen(own, kept, len(sizes)))
    value = execution.formula(tile.at(own))
    execution.record_tile(op, buffer, place, variables, guards, value)
    return []


# ---------------------------------------------------------------- shapes


def _transpose(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    tile, order = _tile(values, op.operand("value")), op.attributes["dims"]

    def at(index: Index) -> Element:
        source = [as_expr(0)] * len(order)
        for k, dimension in enumerate(order):
            source[dimension] = index[k]
        return tile.at(tuple(source))

    return [Tile(op.result.type, at)]


def _reshape(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    tile, dims = _tile(values, op.operand("value")), op.result.type.dims

    def at(index: Index) -> Element:
        number = as_expr(number_of(index, dims))
        source: list[Expr] = []
        for size in reversed(tile.dims):
            source.append(number % size if size > 1 else as_expr(0))
            number = number // size
        return tile.at(tuple(reversed(source)))

    return [Tile(op.result.type, at)]


def _broadcast(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    tile, dims = _tile(values, op.operand("value")), op.attributes["dims"]

    def at(index: Index) -> Element:
        pairs = zip(dims, tile.dims, strict=True)
        return tile.at(tuple([index[k] if size > 1 else as_expr(0) for k, size in pairs]))

    return [Tile(op.result.type, at)]


def _iota(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    dimension, kind = op.attributes["dim"], type_name(op.result.type)
    return [
        Tile(op.result.type, lambda index: execution.algebra.table.index(index[dimension], kind))
    ]


def _from_elements(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    """Return a tile of one element."""
    if len(op.operands) != 1 or math.prod(op.result.type.dims) != 1:
        raise NotHandled(f"`{op.name}` of {len(op.operands)} elements")
    value = values[op.operands[0]]
    if not isinstance(value, Element):
        raise NotHandled(f"`{op.name}` of an index")
    return [Tile(op.result.type, lambda index: value)]


def _mask(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    tile, bounds = _tile(values, op.operand("value")), op.attributes["bounds"]
    if tile.dims != op.result.type.dims or len(bounds) != len(tile.dims):
        raise NotHandled(f"`{op.name}` with {len(bounds)} bounds")
    other = values[op.operand("masked")]

    def at(index: Index) -> Element:
        guards = [Constraint(e, 0, bound - 1) for e, bound in zip(index, bounds, strict=True)]
        value = execution.formula(tile.at(index))
        masked = execution.scalars.of_type(execution.formula(other), value.type)
        return execution.algebra.where([g for g in guards if not g.is_true], value, masked)

    return [Tile(op.result.type, at)]


# ---------------------------------------------------------------- reductions


def _reduce(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    opcode = _REDUCED.get(op.attributes["applies"], "")
    if not opcode or len(op.group("values")) != 1:
        raise NotHandled(f"a reduction by `{op.attributes['applies']}`")
    tile, init = (_tile(values, op.operand(role)) for role in ("values", "inits"))
    dimensions = op.attributes["dimensions"]

    def at(index: Index) -> Element:
        own = iter(index)
        ranges: list[Variable] = []
        full: list[Expr] = []
        for k, size in enumerate(tile.dims):
            if k not in dimensions:
                full.append(next(own))
                continue
            ranges.append(execution.new_variable(size))
            full.append(ranges[-1].as_expr() if size > 1 else as_expr(0))
        value = execution.formula(tile.at(tuple(full)))
        start = execution.scalars.of_type(execution.formula(init.at(())), value.type)
        return _fold(execution, opcode, start, value, ranges)

    return [Tile(op.result.type, at)]


def _fold(
    execution: Execution, opcode: str, init: Formula, value: Formula, ranges: Sequence[Variable]
) -> Formula:
    """Return a reduction; extrema of narrow floats are those in f32."""
    kind, algebra = value.type, execution.algebra
    total = kind
    if is_float(kind) and ELEMENT_TYPES[kind].bits < 32:
        if opcode not in ("maximum", "minimum"):
            raise NotHandled(f"a reduction of {kind} by `{opcode}`")
        total = "f32"
    init, value = (_convert_term(execution, term, total) for term in (init, value))
    own = tuple([v for v in ranges if v.upper])
    term = fold_formula(algebra, Fold(opcode, (), 0, total, (init,), (value,), own))
    return _convert_term(execution, term, kind)


def _convert_term(execution: Execution, term: Formula, kind: str) -> Formula:
    if term.type == kind:
        return term
    return execution.algebra.apply("convert", (), kind, [term])


def _dot(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    left, right = (_tile(values, op.operand(role)) for role in ("lhs", "rhs"))
    batch = op.attributes.get("batching_dims", ((), ()))
    contracted = op.attributes["contracting_dims"]
    kind = type_name(op.result.type)

    def at(index: Index) -> Element:
        sums = [execution.new_variable(left.dims[k]) for k in contracted[0]]
        shared, rest = index[: len(batch[0])], list(index[len(batch[0]) :])
        terms: list[Formula] = []
        for side, tile in enumerate((left, right)):
            full: list[Expr] = []
            for k in range(len(tile.dims)):
                if k in batch[side]:
                    full.append(shared[batch[side].index(k)])
                elif k in contracted[side]:
                    v = sums[contracted[side].index(k)]
                    full.append(v.as_expr() if v.upper else as_expr(0))
                else:
                    full.append(rest.pop(0))
            term = execution.formula(tile.at(tuple(full)))
            terms.append(_convert_term(execution, term, kind))
        product = execution.algebra.apply("multiply", (), kind, terms)
        zero = execution.algebra.table.constant(0, kind)
        return _fold(execution, "add", zero, product, sums)

    return [Tile(op.result.type, at)]


# ---------------------------------------------------------------- elements


def elementwise(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    """Return the tile of an op whose elements are functions of the operands' elements."""
    if op.name == "arith.constant":
        return [_constant(execution, op)]
    operands = [values[v] for v in op.operands]
    tiles = [held for held in operands if isinstance(held, Tile)]
    if len(op.results) != 1 or not tiles or any(t.dims != op.result.type.dims for t in tiles):
        raise NotHandled(f"`{op.name}` of tiles")

    def at(index: Index) -> Element:
        elements = [held.at(index) if isinstance(held, Tile) else held for held in operands]
        result = _element(execution, op, elements)
        if not isinstance(result, Element):
            raise NotHandled(f"`{op.name}` of tiles")
        return result

    return [Tile(op.result.type, at)]


def _constant(execution: Execution, op: MlirOp) -> Tile:
    data, kind = op.attributes["value"], type_name(op.result.type)
    if not hasattr(data, "ravel"):
        raise NotHandled(f"a constant of type {op.result.type}")
    algebra = execution.algebra
    if not data.ndim:
        return Tile(op.result.type, lambda index: algebra.table.constant(data, kind))
    return Tile(op.result.type, lambda index: algebra.table_element(data, kind, index))


def _element(execution: Execution, op: MlirOp, elements: Sequence[Held]) -> Held:
    dialect, _, name = op.name.partition(".")
    if dialect != "stablehlo":
        return execution.scalar_op(op, elements)
    terms = [execution.formula(held) for held in elements]
    scalars, algebra = execution.scalars, execution.algebra
    if name == "convert":
        return _convert(execution, op, terms[0])
    if name == "compare":
        one, other = scalars.alike(terms)
        return scalars.compare(op.attributes["direction"], one, other)
    if name == "select":
        one, other = scalars.alike(terms[1:])
        return algebra.apply("select", (), one.type, [terms[0], one, other])
    kind = type_name(op.result.type)
    if any(t.type != terms[0].type for t in terms) or terms[0].type != kind:
        raise NotHandled(f"`{op.name}` of {', '.join(t.type for t in terms)}")
    return algebra.apply(name.replace("_", "-"), (), kind, terms)


def _convert(execution: Execution, op: MlirOp, term: Formula) -> Formula:
    target = type_name(op.result.type)
    source = op.operands[0].type.element
    if term.type == "pred" and source != "i1":
        if target == "pred" and source == "i8":
            return term  # a byte 0 or 1 is not 0 if it is 1
        raise NotHandled("a conversion of the byte of a predicate")
    if source == "i1" and target == "s8":
        return term  # the byte of the pred
    if source != "i1":
        term = execution.scalars.of_type(term, with_sign(term.type, "s"))
    return _convert_term(execution, term, target)


TILE_HANDLERS: Final[dict[str, Handler]] = {
    "xtile.extract": _extract,
    "xtile.insert": _insert,
    "xtile.mask": _mask,
    "tensor.from_elements": _from_elements,
    "stablehlo.transpose": _transpose,
    "stablehlo.reshape": _reshape,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.iota": _iota,
    "stablehlo.reduce": _reduce,
    "stablehlo.dot_general": _dot,
    "elementwise": elementwise,
}
