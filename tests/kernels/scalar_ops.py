"""Ops on values of lanes: `arith`, `math`, and those of StableHLO on tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from indexing.kernels.ir import MlirOp
from tests.kernels.memory import Array, Held, NotExecutable

Function = Callable[..., Any]


def _float(function: Function) -> Function:
    """Return a function of floats that is rounded to the type of its operand."""

    def round_to_type(value: Array) -> Array:
        wide = value.astype(np.float32) if value.dtype == ml_dtypes.bfloat16 else value
        return np.asarray(function(wide)).astype(value.dtype)

    return round_to_type


_UNARY: dict[str, Function] = {
    "negf": np.negative, "negate": np.negative, "absf": np.abs, "abs": np.abs,
    "exp": _float(np.exp), "exponential": _float(np.exp), "log": _float(np.log),
    "log1p": _float(np.log1p), "expm1": _float(np.expm1), "sqrt": _float(np.sqrt),
    "rsqrt": _float(lambda x: (1 / np.sqrt(x)).astype(x.dtype)), "sin": _float(np.sin),
    "cos": _float(np.cos), "tanh": _float(np.tanh), "sine": _float(np.sin),
    "cosine": _float(np.cos), "floor": _float(np.floor), "ceil": _float(np.ceil),
    "tan": _float(np.tan), "roundeven": _float(np.rint),
}  # fmt: skip
_FLOATS: dict[str, Function] = {
    "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide,
    "maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin,
    "remf": np.fmod,
}  # fmt: skip
_INTEGERS: dict[str, Function] = {
    "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and,
    "ori": np.bitwise_or, "xori": np.bitwise_xor, "minsi": np.minimum, "maxsi": np.maximum,
}  # fmt: skip
_COMPARISONS: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_STABLE: dict[str, Function] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def scalar_op(op: MlirOp, operands: Sequence[Held], width: int, machine: Any) -> Held:
    """Return the result of an op on values."""
    dialect, _, name = op.name.partition(".")
    with np.errstate(all="ignore"):
        if dialect == "stablehlo" and name in _TILES:
            return _TILES[name](op, operands)
        if name == "select":
            return _select(*operands)
        arrays = [held.data for held in operands]
        data, defined = _compute(op, name, arrays, width, machine)
    oks = [held.ok for held in operands if held.ok is not None]
    ok = None if defined is None else np.broadcast_to(defined, data.shape)
    for each in oks:
        ok = each if ok is None else ok & each
    return Held(data, None if ok is None else np.broadcast_to(ok, data.shape))


def _select(condition: Held, one: Held, other: Held) -> Held:
    chosen = condition.data
    if chosen.dtype != np.bool_:
        raise NotExecutable("a condition that is no i1")
    if chosen.ndim < one.data.ndim:
        chosen = chosen.reshape(len(chosen), *[1] * (one.data.ndim - 1))
    data = np.where(chosen, one.data, other.data)
    if all(h.ok is None for h in (condition, one, other)):
        return Held(data)
    ok = np.where(chosen, True if one.ok is None else one.ok,
                  True if other.ok is None else other.ok)  # fmt: skip
    if condition.ok is not None:
        ok = ok & condition.ok.reshape(chosen.shape)
    return Held(data, np.broadcast_to(ok, data.shape))


def _compute(
    op: MlirOp, name: str, arrays: list[Array], width: int, machine: Any
) -> tuple[Array, Array | None]:
    """Return the elements, and which of them are defined if not all are."""
    if name in ("cmpi", "cmpf"):
        return _compare(op, arrays, width), None
    if name in _UNARY:
        return _UNARY[name](arrays[0]), None
    if name in _FLOATS:
        return _FLOATS[name](*arrays), None
    if name in _STABLE and op.name.startswith("stablehlo."):
        if name == "divide" and arrays[0].dtype.kind in "iu":
            raise NotExecutable("a division of integers in StableHLO")
        return _STABLE[name](*arrays), None
    element = op.result.type.element
    if element == "index":
        return _index(op, name, arrays, width, machine)
    if name in ("index_cast", "index_castui", "extui", "extsi", "trunci", "sitofp", "uitofp",
                "extf", "truncf"):  # fmt: skip
        return _cast(op, name, arrays[0]), None
    if name in ("fptosi", "fptoui"):
        return _whole(arrays[0], _bits(element), name == "fptosi")
    if name in _INTEGERS:
        if arrays[0].dtype == np.bool_:  # a bit that is set is -1
            name = {"addi": "xori", "subi": "xori", "muli": "andi", "minsi": "ori",
                    "maxsi": "andi"}.get(name, name)  # fmt: skip
        return _wrap(_INTEGERS[name](*arrays), element), None
    bits = _bits(element)
    if name in ("shli", "shrsi", "shrui"):
        return _shift(name, arrays, bits, element)
    if name in ("divsi", "remsi", "divui", "remui"):
        return _divide(name, arrays, bits)
    if name in ("minui", "maxui"):
        one, other = (_as_unsigned(a, bits) for a in arrays)
        first = one < other if name == "minui" else one > other
        return np.where(first, *arrays), None
    raise NotExecutable(f"`{op.name}`")


def _index(
    op: MlirOp, name: str, arrays: list[Array], width: int, machine: Any
) -> tuple[Array, Array | None]:
    if name in ("index_cast", "index_castui"):
        value = arrays[0].astype(np.int64)
        bits = _bits(op.operands[0].type.element)
        if name == "index_castui" or bits == 1:
            value = value & ((1 << bits) - 1) if bits < 64 else value
        return _as_signed(value, width), None
    if name in ("divsi", "remsi", "divui", "remui"):
        return _divide(name, arrays, width)
    if name not in _INTEGERS:
        raise NotExecutable(f"`{op.name}` of indices")
    return machine.fits(_INTEGERS[name](*arrays), f"an index in line {op.span.line}"), None


def _bits(element: str) -> int:
    if not element.startswith("i"):
        raise NotExecutable(f"integers of type {element}")
    return 64 if element == "index" else int(element[1:])


def _as_signed(value: Array, bits: int) -> Array:
    """Return the value of the low bits, the highest of which is the sign."""
    if bits >= 64:
        return value
    half = 1 << (bits - 1)
    return ((value & ((1 << bits) - 1)) ^ half) - half


def _as_unsigned(value: Array, bits: int) -> Array:
    wide = value.astype(np.int64).astype(np.uint64)
    return wide if bits >= 64 else wide & np.uint64((1 << bits) - 1)


def _wrap(value: Array, element: str) -> Array:
    """Return integers of a type that NumPy does not have in its bits."""
    if element in ("i2", "i4"):
        return np.asarray(_as_signed(value.astype(np.int64), int(element[1:])), np.int8)
    return value


def _compare(op: MlirOp, arrays: list[Array], width: int) -> Array:
    predicate: str = op.attributes["predicate"]
    if op.name == "arith.cmpi":
        if predicate in ("eq", "ne"):
            return np.asarray(_COMPARISONS[predicate](*arrays))
        element = op.operands[0].type.element
        if predicate[0] == "u":
            bits = width if element == "index" else _bits(element)
            arrays = [_as_unsigned(a, bits) for a in arrays]
        elif element == "i1":
            arrays = [-a.astype(np.int8) for a in arrays]
        return np.asarray(_COMPARISONS[predicate[1:]](*arrays))
    one, other = arrays
    unordered = np.isnan(one.astype(np.float64)) | np.isnan(other.astype(np.float64))
    if predicate in ("uno", "ord"):
        return unordered if predicate == "uno" else ~unordered
    if predicate in ("true", "false"):
        return np.full(unordered.shape, predicate == "true")
    result = np.asarray(_COMPARISONS[predicate[1:]](one, other))
    return result | unordered if predicate[0] == "u" else result & ~unordered


def _cast(op: MlirOp, name: str, value: Array) -> Array:
    from tests.kernels.interpreter import dtype_of

    source, target = op.operands[0].type.element, op.result.type.element
    if name in ("extf", "truncf"):
        return value.astype(dtype_of(target))
    if name in ("extui", "uitofp") or (source == "i1" and name != "sitofp"):
        if name == "extsi":
            value = -value.astype(np.int8)
        else:
            value = _as_unsigned(value, _bits(source))
    if target == "i1":
        return (value.astype(np.int64) & 1).astype(bool)
    return _wrap(value.astype(dtype_of(target)), target)


def _whole(value: Array, bits: int, is_signed: bool) -> tuple[Array, Array]:
    """Return the bits of floats as integers, and which of them have a value."""
    low, high = (-(1 << bits - 1), 1 << bits - 1) if is_signed else (0, 1 << bits)
    exact = [math.trunc(float(x)) if math.isfinite(float(x)) else high for x in value.flat]
    ok = np.array([low <= x < high for x in exact], bool).reshape(value.shape)
    half = 1 << bits - 1
    data = [((x if low <= x < high else 0) + half) % (2 * half) - half for x in exact]
    return np.array(data, f"int{bits}").reshape(value.shape), ok


def _shift(name: str, arrays: list[Array], bits: int, element: str) -> tuple[Array, Array | None]:
    value, amount = arrays
    count = _as_unsigned(amount, bits)
    defined = count < bits
    safe = np.where(defined, count, np.uint64(0))
    if name == "shrsi":
        data = np.right_shift(value, safe.astype(value.dtype))
    elif name == "shrui":
        data = np.right_shift(_as_unsigned(value, bits), safe).astype(value.dtype)
    else:
        data = np.left_shift(value, safe.astype(value.dtype))
    return _wrap(data, element), None if defined.all() else defined


def _divide(name: str, arrays: list[Array], bits: int) -> tuple[Array, Array | None]:
    one, other = arrays
    lowest = -(1 << (bits - 1))
    defined = other != 0
    if name in ("divsi", "remsi"):
        defined = defined & ~((one == lowest) & (other == -1))
        safe = np.where(defined, other, 1).astype(np.int64)
        wide = one.astype(np.int64)
        remainder = np.fmod(wide, safe)
        data = (wide - remainder) // safe if name == "divsi" else remainder
    else:
        left, right = (
            _as_unsigned(one, bits),
            np.where(defined, _as_unsigned(other, bits), np.uint64(1)),
        )
        data = left // right if name == "divui" else left % right
    return data.astype(one.dtype), None if defined.all() else defined


# ------------------------------------------------------------------ tiles


def _both(held: Held, function: Callable[[Array], Array]) -> Held:
    """Return a tile whose elements are moved."""
    return Held(function(held.data), None if held.ok is None else function(held.ok))


def _convert(op: MlirOp, operands: Sequence[Held]) -> Held:
    from tests.kernels.interpreter import dtype_of

    (held,) = operands
    target = dtype_of(op.result.type.element)
    if target == np.bool_:
        return Held(held.data != 0, held.ok)
    if held.data.dtype.kind in "fV" and np.dtype(target).kind in "iu":
        raise NotExecutable("a conversion of floats to integers")
    return Held(held.data.astype(target), held.ok)


def _transpose(op: MlirOp, operands: Sequence[Held]) -> Held:
    order = [0, *[d + 1 for d in op.attributes["dims"]]]
    return _both(operands[0], lambda a: a.transpose(order))


def _reshape(op: MlirOp, operands: Sequence[Held]) -> Held:
    dims = op.result.type.dims
    return _both(operands[0], lambda a: a.reshape(len(a), *dims))


def _broadcast_in_dim(op: MlirOp, operands: Sequence[Held]) -> Held:
    dims, at = op.result.type.dims, op.attributes["dims"]

    def wide(array: Array) -> Array:
        shape = [len(array), *[1] * len(dims)]
        for k, d in enumerate(at):
            shape[d + 1] = array.shape[k + 1]
        return np.broadcast_to(array.reshape(shape), (len(array), *dims))

    return _both(operands[0], wide)


def _tile_compare(op: MlirOp, operands: Sequence[Held]) -> Held:
    name = op.attributes["direction"].lower()
    oks = [h.ok for h in operands if h.ok is not None]
    data = np.asarray(_COMPARISONS[name](*[h.data for h in operands]))
    ok = None
    for each in oks:
        ok = each if ok is None else ok & each
    return Held(data, None if ok is None else np.broadcast_to(ok, data.shape))


def _iota(op: MlirOp, operands: Sequence[Held]) -> Held:
    from tests.kernels.interpreter import dtype_of

    dims, d = op.result.type.dims, op.attributes["dim"]
    shape = [1] * (len(dims) + 1)
    shape[d + 1] = dims[d]
    data = np.arange(dims[d]).reshape(shape).astype(dtype_of(op.result.type.element))
    return Held(np.broadcast_to(data, (1, *dims)))


def _reduce(op: MlirOp, operands: Sequence[Held]) -> Held:
    if len(operands) != 2:
        raise NotExecutable("a reduction of several tiles")
    value, init = operands
    function = _STABLE[op.attributes["applies"].partition(".")[2]]
    axes = tuple(d + 1 for d in op.attributes["dimensions"])
    assert isinstance(function, np.ufunc)
    data = value.data
    is_short = data.dtype == ml_dtypes.bfloat16
    wide = data.astype(np.float32) if is_short else data
    result = function.reduce(wide, axis=axes, keepdims=True)
    result = result.reshape([s for k, s in enumerate(result.shape) if k not in axes])
    start = init.data.reshape(len(init.data), *[1] * (result.ndim - 1)).astype(result.dtype)
    ok = None if value.ok is None else np.asarray(value.ok.all(axis=axes))
    return Held(np.asarray(function(start, result)).astype(data.dtype), ok)


def _dot(op: MlirOp, operands: Sequence[Held]) -> Held:
    from tests.kernels.interpreter import dtype_of

    pairs = [op.attributes.get(n) or ((), ()) for n in ("batching_dims", "contracting_dims")]
    lhs, rhs = operands
    left = [f"l{k}" for k in range(lhs.data.ndim - 1)]
    right = [f"r{k}" for k in range(rhs.data.ndim - 1)]
    for one, other in pairs:
        for a, b in zip(one, other, strict=True):
            right[b] = left[a]
    batch = [left[k] for k in pairs[0][0]]
    summed = {left[k] for k in pairs[1][0]}
    free = [n for n in left if n not in batch and n not in summed]
    free += [n for n in right if n not in left]
    letters = {n: "abcdefghijklmnop"[k] for k, n in enumerate(dict.fromkeys([*left, *right]))}

    def text(names: Sequence[str]) -> str:
        return "z" + "".join(letters[n] for n in names)

    rule = f"{text(left)},{text(right)}->{text([*batch, *free])}"
    count = max(len(lhs.data), len(rhs.data))
    wide = [np.broadcast_to(h.data, (count, *h.data.shape[1:])).astype(np.float32)
            for h in operands]  # fmt: skip
    data = np.einsum(rule, *wide, optimize=True).astype(dtype_of(op.result.type.element))
    if lhs.ok is None and rhs.ok is None:
        return Held(data)
    bad = [np.broadcast_to(False if h.ok is None else ~h.ok, (count, *h.data.shape[1:]))
           .astype(np.float32) for h in operands]  # fmt: skip
    ones = [np.ones_like(b) for b in bad]
    touched = np.einsum(rule, bad[0], ones[1]) + np.einsum(rule, ones[0], bad[1])
    return Held(data, touched == 0)


_TILES: dict[str, Callable[[MlirOp, Sequence[Held]], Held]] = {
    "convert": _convert, "transpose": _transpose, "reshape": _reshape,
    "broadcast_in_dim": _broadcast_in_dim, "compare": _tile_compare, "iota": _iota,
    "reduce": _reduce, "dot_general": _dot,
}  # fmt: skip
