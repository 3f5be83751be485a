"""What an element of each op's result is: read from somewhere, computed, or folded.

The *index* part of it, which elements are read and when, is never said here: it comes from
`indexing.output_to_input`.  What is said here is the scalar part: which operands hold the data,
and what is done with what is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from hlo.modules.module import Computation
from hlo.ops.op import Op
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype
from indexing.codegen.functions import (
    batch_norm,
    cast,
    function_of,
    joined,
    part_of,
    reinterpreted,
)
from indexing.codegen.nest import Function
from indexing.codegen.values import Value
from indexing.maps.answers import Unknown
from indexing.ops.elementwise import BinaryElementwise, Imag, UnaryElementwise
from indexing.ops.selection import TernaryElementwise


@dataclass(frozen=True, slots=True)
class Says:
    """A number or an array of the program's text."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The index along a dimension."""

    dimension: int


@dataclass(frozen=True, slots=True)
class Computes:
    """``function(operand elements)``; `applied` is a computation that does it, if one does."""

    function: Function | None = None
    applied: Computation | None = None
    reads_nothing: bool = False


@dataclass(frozen=True, slots=True)
class Moves:
    """An element of one of the operands `data`, whichever map says so; then `function` of it.

    With `has_padding`, elements that no map leads from are 0: what padding holds is not said. With
    `parts`, the elements of the operand have the bits of so many: `function` takes the element and
    the number of the part. With `joins`, it takes the elements of the range, in order.
    """

    data: tuple[int, ...] = (0,)
    function: Function | None = None
    has_padding: bool = False
    parts: int = 1
    joins: bool = False


@dataclass(frozen=True, slots=True)
class Folds:
    """A fold over the range variables.

    Attributes:
        inits: operands that the totals are at first; () for zero.
        values: operands that are folded; if `is_product`, they are multiplied.
        applied: the computation that folds; None for a sum.
        is_windowed: elements of an operand may be folded many times.
        is_placed: each value goes to one place, which a runtime variable says.
        wide: the type in which products are summed.
    """

    inits: tuple[int, ...]
    values: tuple[int, ...]
    applied: Computation | None = None
    is_product: bool = False
    is_windowed: bool = False
    is_placed: bool = False
    wide: np.dtype[Any] | None = None


Rule: TypeAlias = Says | Counts | Computes | Moves | Folds

_MOVING: Final[dict[str, tuple[int, ...]]] = {
    "broadcast": (0,),
    "dynamic-slice": (0,),
    "dynamic-update-slice": (0, 1),
    "gather": (0,),
    "pad": (0, 1),
    "reshape": (0,),
    "reverse": (0,),
    "slice": (0,),
    "transpose": (0,),
}


def rule_of(value: Value) -> Rule | Unknown:
    """What an element of an array is; `Unknown` where it cannot be said as a loop nest."""
    found = _rule(value)
    if isinstance(found, str):
        instruction = value.instruction
        reason = f"no loop nest for {instruction.opcode} `{instruction.name}`: {found}"
        return Unknown(reason, instruction)
    return found


def _rule(value: Value) -> Rule | str:
    instruction = value.instruction
    op, opcode = instruction.op, instruction.opcode
    count = len(instruction.operands)
    if op is None:
        return "the opcode is not registered"
    match opcode:
        case "constant":
            return Says()
        case "iota":
            return Counts(op.iota_dimension)  # type: ignore[attr-defined]  # Iota
        case "map":
            return Computes(applied=instruction.called_computations[0])
        case "batch-norm-inference":
            return Computes(batch_norm(op.epsilon))  # type: ignore[attr-defined]
        case "concatenate":
            return Moves(tuple(range(count)))
        case "bitcast" | "bitcast-convert":
            return _same_bits(value)
        case "reduce" | "reduce-window":
            inits, values = tuple(range(count // 2, count)), tuple(range(count // 2))
            applied = instruction.called_computations[0]
            return Folds(inits, values, applied, is_windowed=opcode == "reduce-window")
        case "scatter":
            updates = tuple(range(count // 2 + 1, count))
            applied = instruction.called_computations[0]
            bases = tuple(range(count // 2))
            return Folds(bases, updates, applied, is_windowed=True, is_placed=True)
        case "dot" | "convolution":
            if getattr(op, "sparsity", ""):
                return "the dot has structured sparsity"
            return Folds((), (0, 1), is_product=True, wide=_wide(value))
        case "imag" if isinstance(op, Imag):
            is_real = ELEMENT_TYPES[value.operands[0].shape.element_type].kind != "complex"  # type: ignore[union-attr]
            return Computes(function_of(op), reads_nothing=is_real)
        case _ if opcode in _MOVING:
            return Moves(_MOVING[opcode])
    if isinstance(op, UnaryElementwise | BinaryElementwise | TernaryElementwise):
        return Computes(function_of(op))
    return _reason(op)


def _reason(op: Op) -> str:
    """Why an op is no loop nest."""
    if op.opcode.startswith(_COLLECTIVES):
        return "its values come from other devices"
    return _REASONS.get(op.opcode, "an element of its result is not said as a formula")


_DEPENDS: Final = "what it reads depends on the values that it finds"
_WHOLE: Final = "an element of its result is not a fold of elements that it reads"
_OTHERS: Final = "its values come from outside of the program"
_RUNS: Final = "it runs a computation on whole values"
_SIZES: Final = "sizes are said by the running program"
_COLLECTIVES: Final = ("all-", "collective-", "ragged-all-", "reduce-scatter")
_REASONS: Final = {
    **dict.fromkeys(["sort", "topk", "select-and-scatter"], _DEPENDS),
    **dict.fromkeys(["fft", "cholesky", "triangular-solve"], _WHOLE),
    **dict.fromkeys(["rng", "rng-bit-generator", "rng-get-and-update-state"], "it makes numbers"),
    **dict.fromkeys(["infeed", "recv", "recv-done", "custom-call"], _OTHERS),
    **dict.fromkeys(["dynamic-reshape", "get-dimension-size", "set-dimension-size"], _SIZES),
    **dict.fromkeys(["while", "conditional", "scan", "async-start"], _RUNS),
}


def _same_bits(value: Value) -> Rule | str:
    operand = value.operands[0]
    assert isinstance(operand, Value)
    ours, theirs = (ELEMENT_TYPES[s.element_type] for s in (value.shape, operand.shape))
    tiled = value.instruction.opcode == "bitcast" and (
        _is_tiled(value.shape) or _is_tiled(operand.shape)
    )
    if ours.name == theirs.name:
        return Moves(has_padding=tiled)
    kind = dtype(ours.name)
    if ours.bits == theirs.bits:
        return Moves(function=reinterpreted(kind, ours.name), has_padding=tiled)
    if min(ours.bits, theirs.bits) < 8 or tiled:
        return f"elements of {ours.bits} bits are made of elements of {theirs.bits} bits"
    if ours.bits > theirs.bits:
        return Moves(function=joined(kind, ours.name), joins=True)
    return Moves(function=part_of(kind, ours.name), parts=theirs.bits // ours.bits)


def _is_tiled(shape: Shape) -> bool:
    layout = shape.layout_or_default
    return bool(layout.tiles or layout.padded_dimensions) or layout.tail_padding != 1


def _wide(value: Value) -> np.dtype[Any]:
    """The type in which products are summed: at least f32 for floating-point numbers."""
    kind = dtype(value.shape.element_type)
    left = value.operands[0]
    assert isinstance(left, Value)
    is_plain = dtype(left.shape.element_type).kind in "biucO"
    return kind if is_plain else np.result_type(kind, np.float32)


def widened(wide: np.dtype[Any], element_type: str) -> Function | None:
    """How an operand's elements become those that are multiplied; None if they stay."""
    if dtype(element_type) == wide:
        return None
    return cast(wide, _NAMES.get(wide, wide.name))


_NAMES: Final = {dtype(name): name for name in ELEMENT_TYPES if name not in ("token", "opaque")}
