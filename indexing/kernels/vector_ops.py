"""Vectors: tiles that one thread holds, and loads and stores of adjacent elements.

A load or a store of a vector is one access at an address that is a multiple of the vector's bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hlo.shapes.element_type import ELEMENT_TYPES
from hlo.shapes.mixed_radix import number_of
from indexing.kernels.accesses import KernelBuffer
from indexing.kernels.accumulation import Accumulated
from indexing.kernels.control import Handler, Values
from indexing.kernels.domains import NotHandled
from indexing.kernels.ir import MlirOp
from indexing.kernels.scalars import type_name
from indexing.kernels.symbolic import Execution, Held
from indexing.kernels.tile_values import Element, Tile
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr

ALIGNED: Final = "vector aligned"
ALIGNED_TILES: Final = "tiles in shared memory are aligned as the vectors that are read from them"

Index = tuple[Expr, ...]


def _vector(held: Held) -> Tile:
    if not isinstance(held, Tile):
        raise NotHandled("a vector that is not an array of values")
    return held


def _poison(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    undefined = execution.algebra.undefined(type_name(op.result.type))
    if not op.result.type.is_shaped:
        return [undefined]
    return [Tile(op.result.type, lambda index: undefined)]


def _broadcast(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    value = values[op.operand("value")]
    if not isinstance(value, Element):
        raise NotHandled("a vector of vectors")
    return [Tile(op.result.type, lambda index: value)]


def _position(execution: Execution, op: MlirOp, values: Values, tile: Tile) -> Index:
    """Return the index of the element that an op names, which must be in bounds."""
    given = [values[p] if not isinstance(p, int) else as_expr(p) for p in op.attributes["position"]]
    exprs = [held for held in given if isinstance(held, Expr)]
    if len(exprs) != len(given) or len(exprs) != len(tile.dims):
        raise NotHandled(f"`{op.name}` of a part of a vector")
    for expr, size in zip(exprs, tile.dims, strict=True):
        execution.promise(Constraint(expr, 0, size - 1), op, "element of a vector in bounds")
    return tuple(exprs)


def _extract(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    tile = _vector(values[op.operand("source")])
    return [tile.at(_position(execution, op, values, tile))]


def _insert(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    tile, value = _vector(values[op.operand("target")]), values[op.operand("value")]
    position = _position(execution, op, values, tile)
    if not isinstance(value, Element):
        raise NotHandled("a vector of vectors")

    def at(index: Index) -> Element:
        same = [Constraint(i - p, 0, 0) for i, p in zip(index, position, strict=True)]
        guards = tuple([c for c in same if not c.is_true])
        if any(c.is_false for c in guards):
            return tile.at(index)
        if not guards:
            return value
        old = tile.at(index)
        if isinstance(value, Accumulated):
            return _grow_element(tile.at(position), old, value, guards)
        if execution.is_carried(old):
            raise NotHandled("an element of a vector that a loop carries is replaced")
        new, kept = execution.scalars.alike([value, execution.formula(old)])
        return execution.algebra.where(guards, new, kept)

    return [Tile(tile.type, at)]


def _grow_element(
    base: Element, old: Element, value: Accumulated, guards: tuple[Constraint, ...]
) -> Element:
    """Return an element that has what was added to the one of the position, under guards."""
    first, known = (base.init, base.parts) if isinstance(base, Accumulated) else (base, ())
    init, parts = (old.init, old.parts) if isinstance(old, Accumulated) else (old, ())
    if value.init is not first or value.parts[: len(known)] != known:
        raise NotHandled("an element of a vector that does not continue the one before")
    added = [part.over((), guards) for part in value.parts[len(known) :]]
    return Accumulated(value.opcode, init, (*parts, *added))


def _from_elements(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    held = [values[v] for v in op.operands]
    elements = [each for each in held if isinstance(each, Element)]
    if len(elements) != len(held):
        raise NotHandled("a vector of vectors")

    def at(index: Index) -> Element:
        place = as_expr(number_of(index, op.result.type.dims))
        if place.is_constant:
            return elements[place.constant]
        terms = execution.scalars.alike([execution.formula(each) for each in elements])
        return execution.algebra.choose(place, list(enumerate(terms)))

    return [Tile(op.result.type, at)]


# ---------------------------------------------------------------- memory


def _buffer(op: MlirOp, values: Values, role: str) -> KernelBuffer:
    buffer = values[op.operand(role)]
    if not isinstance(buffer, KernelBuffer):
        raise NotHandled("a vector of a tensor that is not a buffer")
    if op.attributes.get("in_bounds") not in ((True,), None) or "mask" in op.attributes:
        raise NotHandled("a vector that may be out of bounds")
    return buffer


def _align(execution: Execution, op: MlirOp, buffer: KernelBuffer, index: Index, size: int) -> None:
    """Promise that an access of a vector is aligned."""
    if buffer.type.layout != tuple(reversed(range(buffer.type.rank))):
        raise NotHandled("a vector of an array that is not in row-major order")
    bits = ELEMENT_TYPES[type_name(buffer.type)].bits
    width = max(bits, 8) // 8 * size
    if buffer.is_shared:
        execution.premises[ALIGNED_TILES] = None
    elif buffer.alignment < width:
        raise NotHandled(
            f"a vector of {width} bytes of an argument that is aligned to {buffer.alignment}"
        )
    place = as_expr(number_of(index, buffer.type.dims))
    what = f"{ALIGNED} to its {width} bytes"
    execution.promise(Constraint(place % size, 0, 0), op, what)


def _transfer_read(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    buffer, held = _buffer(op, values, "source"), op.result.type
    if held.rank != 1:
        raise NotHandled(f"a vector of {held.rank} dimensions in memory")
    index = execution.indices(values, op.group("indices"))
    _align(execution, op, buffer, index, held.dims[0])
    lane = execution.new_variable(held.dims[0])
    with execution.restricted((), [lane] if lane.upper else []):
        value = execution.read(op, buffer, (*index[:-1], index[-1] + lane.as_expr()))
    return [Tile(held, lambda at: execution.algebra.rewriting({lane: at[0]})(value))]


def _transfer_write(execution: Execution, op: MlirOp, values: Values) -> Sequence[Held]:
    buffer, vector = _buffer(op, values, "target"), _vector(values[op.operand("value")])
    if len(vector.dims) != 1:
        raise NotHandled(f"a vector of {len(vector.dims)} dimensions in memory")
    index = execution.indices(values, op.group("indices"))
    _align(execution, op, buffer, index, vector.dims[0])
    lane = execution.new_variable(vector.dims[0])
    own = lane.as_expr()
    with execution.restricted((), [lane] if lane.upper else []):
        execution.write(op, buffer, (*index[:-1], index[-1] + own), vector.at((own,)))
    return [buffer]


VECTOR_HANDLERS: Final[Mapping[str, Handler]] = {
    "ub.poison": _poison,
    "vector.broadcast": _broadcast,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.from_elements": _from_elements,
    "vector.transfer_read": _transfer_read,
    "vector.transfer_write": _transfer_write,
}
