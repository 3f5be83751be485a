"""`type_fault`: the types of an op's operands and results, as its dialect requires them.

The reader does not verify ops, and executions on NumPy rely on the shapes that types state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from indexing.kernels.ir import MlirModule, MlirOp, MlirType

_ELEMENTWISE: Final = frozenset(["arith", "math", "complex", "stablehlo"])


def type_fault(module: MlirModule, op: MlirOp, *, any_memory: bool = False) -> str:
    """Return how the types of an op do not fit together; "" if they do or no rule is known.

    Args:
        any_memory: calls take memory of any element type, as its accesses are checked.
    """
    rule = _RULES.get(op.name)
    if rule is not None:
        return rule(op)
    if op.name in ("xla.pure_call", "func.call", "call"):
        return _call(module, op, any_memory)
    dialect, _, _ = op.name.partition(".")
    is_elementwise = dialect in _ELEMENTWISE and op.is_known and len(op.results) == 1
    return _elementwise(op) if is_elementwise else ""


def _kind(held: MlirType, any_memory: bool = False) -> tuple[str, str, tuple[int, ...]]:
    """Return what a value of a call must have; a tensor is its memory, of any sizes."""
    is_memory = held.kind in ("tensor", "memref")
    element = "" if is_memory and any_memory else held.element
    return held.kind, element, () if is_memory else tuple(held.dims)


def _sizes(held: MlirType) -> tuple[int, ...] | None:
    return tuple(held.dims) if held.is_shaped else None


def _elementwise(op: MlirOp) -> str:
    operands = list(op.operands)
    if op.name in ("arith.select", "stablehlo.select") and _sizes(operands[0].type) is None:
        operands = operands[1:]
    result = op.result.type
    wrong = [v.type for v in operands if _sizes(v.type) != _sizes(result)]
    if wrong:
        return f"an operand is {wrong[0]}, the result {result}"
    return _elements(op, [v.type.element for v in operands], result.element)


def _elements(op: MlirOp, operands: Sequence[str], result: str) -> str:
    """Return how the elements of an elementwise op do not fit together."""
    dialect, _, name = op.name.partition(".")
    is_choice = name[:3] in ("cmp", "sel")
    kinds = set(operands[name == "select" and len(operands) > 2 :])
    if (dialect == "math" or len(operands) > 1) and result != "i1" and dialect != "complex":
        kinds.add(result)
    if dialect == "arith" and len(operands) == 2 and not is_choice:
        if name.endswith("f") != result.startswith(("f", "bf")):
            return f"elements are {result}"
    is_mixed = len(kinds) > 1 and name != "fpowi"
    return f"elements are {' and '.join(sorted(kinds))}" if is_mixed else ""


def _call(module: MlirModule, op: MlirOp, any_memory: bool) -> str:
    function = module.functions.get(op.attributes["callee"])
    if function is None:
        return ""
    given = [v.type for v in op.group("arguments")]
    wanted = [v.type for v in function.arguments]
    kinds = [[_kind(t, any_memory) for t in types] for types in (given, wanted)]
    if kinds[0] != kinds[1]:
        return f"arguments are {_list_types(given)}, @{function.name} takes {_list_types(wanted)}"
    results = [r.type for r in op.results]
    if [_kind(r) for r in results] != [_kind(t) for t in function.result_types]:
        return f"results are {_list_types(results)}, those of @{function.name} others"
    return ""


def _list_types(types: Sequence[MlirType]) -> str:
    return ", ".join(map(str, types)) or "none"


def _element_of(op: MlirOp) -> str:
    source = op.operand("source").type
    wrong = [v.type for v in op.group("indices") if v.type.is_shaped]
    if not source.is_shaped or source.rank != len(op.group("indices")):
        return f"{len(op.group('indices'))} indices of {source}"
    return f"an index is {wrong[0]}" if wrong else ""


def _reshape(op: MlirOp) -> str:
    source, result = op.operands[0].type, op.result.type
    is_fit = math.prod(source.dims) == math.prod(result.dims)
    return "" if is_fit else f"{source} has another number of elements than {result}"


def _transpose(op: MlirOp) -> str:
    source, result, order = op.operands[0].type, op.result.type, op.attributes["dims"]
    if sorted(order) != list(range(source.rank)):
        return f"{list(order)} is not an order of the dimensions of {source}"
    is_fit = [source.dims[k] for k in order] == list(result.dims)
    return "" if is_fit else f"{source} has other sizes than {result}"


def _broadcast(op: MlirOp) -> str:
    source, result, dims = op.operands[0].type, op.result.type, op.attributes["dims"]
    if len(dims) != source.rank or any(not 0 <= k < result.rank for k in dims):
        return f"dims = {list(dims)} from {source} to {result}"
    pairs = zip(dims, source.dims, strict=True)
    is_fit = len(set(dims)) == len(dims) and all(n in (1, result.dims[k]) for k, n in pairs)
    return "" if is_fit else f"{source} does not extend to {result}"


def _reduce(op: MlirOp) -> str:
    dimensions = op.attributes["dimensions"]
    source = op.operand("values").type
    if len(op.group("values")) != 1 or any(not 0 <= k < source.rank for k in dimensions):
        return f"dimensions = {list(dimensions)} of {source}"
    kept = [n for k, n in enumerate(source.dims) if k not in dimensions]
    return "" if kept == list(op.result.type.dims) else f"{source} to {op.result.type}"


def dot_sizes(op: MlirOp) -> list[int] | None:
    """Return the sizes of the result of a dot; None if its dimensions do not fit together."""
    dims = [op.operand(role).type.dims for role in ("lhs", "rhs")]
    batch = op.attributes.get("batching_dims") or ((), ())
    contracted = op.attributes["contracting_dims"]
    free: list[int] = []
    for side in (0, 1):
        used = [*batch[side], *contracted[side]]
        if len(set(used)) < len(used) or any(not 0 <= k < len(dims[side]) for k in used):
            return None
        free += [size for k, size in enumerate(dims[side]) if k not in used]
    for pairs in (batch, contracted):
        if [dims[0][k] for k in pairs[0]] != [dims[1][k] for k in pairs[1]]:
            return None
    return [*[dims[0][k] for k in batch[0]], *free]


def _dot(op: MlirOp) -> str:
    operands, result = [v.type for v in op.operands], op.result.type
    return (
        ""
        if dot_sizes(op) == list(result.dims)
        else f"a dot of {_list_types(operands)} to {result}"
    )


def _iota(op: MlirOp) -> str:
    dimension, result = op.attributes["dim"], op.result.type
    return "" if 0 <= dimension < result.rank else f"dim = {dimension} of {result}"


_RULES: Final[dict[str, Callable[[MlirOp], str]]] = {
    "arith.constant": lambda op: "",
    "tensor.extract": _element_of,
    "xla.predicated_extract": _element_of,
    "tensor.from_elements": _reshape,
    "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reduce": _reduce,
    "stablehlo.dot_general": _dot,
    "stablehlo.iota": _iota,
}
