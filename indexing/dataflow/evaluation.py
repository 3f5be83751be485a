"""Evaluation of arrays that depend on constants only, with the reference kernels of the ops.

Kernels decide what formulas cannot: rounding, wrap-around, comparisons with NaN, sorting.  Floating
point is evaluated only where every implementation has the same bits: single operations that IEEE
754 rounds correctly, in types that compilers do not compute in a wider one.

Modules that few programs need are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from hlo.text.source import HloError
from indexing.dataflow.constants import MAX_ELEMENTS
from indexing.dataflow.copies import MAX_TRACED, origin_outside, source_of
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import fault_of
from indexing.maps.arrays import ArrayRef
from indexing.ops.access_edge import why_unbounded
from indexing.ops.base import MappedOp
from indexing.ops.combiners import COMBINERS
from indexing.ops.control import While
from indexing.ops.element import (
    ConstantRule,
    CopyRule,
    ElementwiseRule,
    IotaRule,
    ReductionRule,
    element_of,
)
from indexing.ops.elementwise import Compare, ElementwiseOp
from indexing.ops.functions import ROUNDING, ScalarFunction
from indexing.ops.reduce import Reduce
from indexing.ops.scatter import Scatter
from indexing.ops.sort import Sort, TopK, TopKCall

if TYPE_CHECKING:
    from indexing.dataflow.loops.call_stacks import Calls
    from indexing.dataflow.loops.simulation import Integers, Known

MAX_KEPT: Final = 1 << 22
"""Limit on the elements of all arrays that are kept; beyond it, they are evaluated again."""
MOST_ITERATIONS: Final = (128, 32)
"""Limit on the iterations that are computed of a loop, as in XLA, and of a loop in its body."""
_EXACT_FLOATS: Final = frozenset(["f32", "f64"])
"""Types whose operations are not computed in wider types."""
_KINDS: Final = frozenset(["pred", "integral", "unsigned", "floating"])
"""The kinds of types that are evaluated."""


def evaluate_array(array: ArrayRef) -> np.ndarray[Any, Any] | None:
    """Return the elements of an array that depends on constants only, else None.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e {
    ...   i = u8[4] iota(), iota_dimension=0
    ...   c = u8[4] constant({ 253, 253, 253, 253 })
    ...   ROOT s = u8[4] add(i, c)
    ... }''').entry.root
    >>> evaluate_array(ArrayRef(root))
    array([253, 254, 255,   0], dtype=uint8)
    """
    module = array.instruction.module
    with module.lock:
        known: Evaluation = module.memoised((evaluate_array,), Evaluation)
        return known.value(array)


def known_integers(loop: Instruction, calls: Calls) -> Iterator[Known]:
    """Yield what the known integers of a loop determine in its body, in each iteration, endlessly.

    Args:
        calls: the call stack of the computation of the loop.

    >>> import hlo
    >>> from itertools import islice
    >>> module = hlo.parse('''
    ... body { t = (s32[]) parameter(0)  i = s32[] get-tuple-element(t), index=0
    ...   n = s32[] multiply(i, i)  ROOT r = (s32[]) tuple(n) }
    ... running { t = (s32[]) parameter(0)  i = s32[] get-tuple-element(t), index=0
    ...   ten = s32[] constant(99)  ROOT less = pred[] compare(i, ten), direction=LT }
    ... ENTRY e { z = s32[] constant(2)  t = (s32[]) tuple(z)
    ...   ROOT w = (s32[]) while(t), condition=running, body=body }''')
    >>> counter = ArrayRef(module.computations["body"]["i"])
    >>> print(*[known.value(counter) for known in islice(known_integers(module.entry.root, ()), 3)])
    2 4 16
    >>> executed_iterations(module.entry.root, ())
    3
    """
    from indexing.dataflow.loops.simulation import iterations_from

    return iterations_from(loop, _integers_before(loop, calls), Evaluation.inside)


def executed_iterations(loop: Instruction, calls: Calls) -> int | None:
    """Return the number of iterations of a loop if known integers decide its condition, else None.

    Args:
        calls: the call stack of the computation of the loop.
    """
    from indexing.dataflow.loops.simulation import last_iteration

    before = _integers_before(loop, calls)
    executed = last_iteration(loop, before, Evaluation.inside, MOST_ITERATIONS[0])
    return None if executed is None else executed[0]


def _integers_before(loop: Instruction, calls: Calls) -> Integers:
    from indexing.dataflow.loops.simulation import followed_leaves

    before, paths = loop.operands[0], followed_leaves(loop)
    return {path: evaluate_array(origin_outside(ArrayRef(before, path, calls))) for path in paths}


class Evaluation:
    """The arrays of a module that have been evaluated; None for those that cannot be.

    Args:
        given: values of parameters.
        depth: the number of loops around, whose iterations are computed one after the other.
    """

    def __init__(
        self, given: Mapping[ArrayRef, np.ndarray[Any, Any]] | None = None, depth: int = 0
    ) -> None:
        self.depth = depth
        self._given = dict(given or {})
        self._known: dict[ArrayRef, np.ndarray[Any, Any] | None] = dict(self._given)
        self._kept = 0

    @classmethod
    def inside(cls, given: Mapping[ArrayRef, np.ndarray[Any, Any]]) -> Evaluation:
        """Return the evaluation of the body of a loop that is in no other one."""
        return cls(given, 1)

    def value(self, array: ArrayRef) -> np.ndarray[Any, Any] | None:
        """Return the elements of an array, or None."""
        if array in self._known:
            return self._known[array]
        if self._kept > MAX_KEPT:
            self._known, self._kept = dict(self._given), 0
        waiting = [array]
        visits = 0
        while waiting and visits < MAX_TRACED:
            visits += 1
            missing = self._evaluate(waiting[-1])
            if missing is not None and missing not in waiting:
                waiting.append(missing)
                continue
            if missing is not None:  # recursive computations
                self._keep(waiting[-1], None)
            waiting.pop()
        if waiting:
            self._keep(array, None)
        return self._known[array]

    def _evaluate(self, array: ArrayRef) -> ArrayRef | None:
        """Evaluate an array, or return an array that must be evaluated first."""
        sources = _sources(array)
        if sources is None or any(s in self._known and self._known[s] is None for s in sources):
            self._keep(array, None)
            return None
        missing = next((each for each in sources if each not in self._known), None)
        if missing is None:
            operands = [self._known[each] for each in sources]
            is_after = isinstance(array.instruction.op, While) and source_of(array) is None
            value = self._integer_after(array, operands) if is_after else _compute(array, operands)
            self._keep(array, value)
        return missing

    def _integer_after(
        self, array: ArrayRef, before: list[np.ndarray[Any, Any] | None]
    ) -> np.ndarray[Any, Any] | None:
        """Return an integer after a loop, from those that it carries before it; or None."""
        if self.depth >= len(MOST_ITERATIONS):
            return None
        from indexing.dataflow.loops.simulation import followed_leaves, last_iteration

        evaluate, loop = partial(Evaluation, depth=self.depth + 1), array.instruction
        integers = dict(zip(followed_leaves(loop), before, strict=True))
        executed = last_iteration(loop, integers, evaluate, MOST_ITERATIONS[self.depth])
        return None if executed is None else executed[1][array.path]

    def _keep(self, array: ArrayRef, value: np.ndarray[Any, Any] | None) -> None:
        self._kept += 0 if value is None else value.size
        self._known[array] = value


def _sources(array: ArrayRef) -> list[ArrayRef] | None:
    """Return the arrays that an array is evaluated from; None if it is not evaluated."""
    instruction, shape = array.instruction, array.array_shape
    if shape is None or fault_of(instruction) or why_unbounded(array) is not None:
        return None
    forwarded = source_of(array)
    if forwarded is not None:
        return [forwarded]
    if isinstance(instruction.op, While):
        return _carried_integers(array)
    if not _is_evaluated(array):
        return None
    return [ArrayRef(operand, (), array.calls) for operand in instruction.operands]


def _carried_integers(array: ArrayRef) -> list[ArrayRef] | None:
    """Return the integers that a loop carries, for one of its results; None for other results."""
    from indexing.dataflow.loops.simulation import followed_leaves

    (before,), paths = array.instruction.operands, followed_leaves(array.instruction)
    return [ArrayRef(before, path, array.calls) for path in paths] if array.path in paths else None


def _is_evaluated(array: ArrayRef) -> bool:
    """Return True for an array whose kernel has the same bits as every implementation."""
    op, shape = array.instruction.op, array.array_shape
    if not isinstance(op, MappedOp) or shape is None or not 0 < shape.size <= MAX_ELEMENTS:
        return False
    types = {leaf.element_type for leaf in _shapes(array.instruction)}
    kinds = {ELEMENT_TYPES[name].kind for name in types}
    return kinds <= _KINDS and _is_computed_alike(array, op, types, "floating" not in kinds)


def _is_computed_alike(array: ArrayRef, op: MappedOp, types: set[str], is_integer: bool) -> bool:
    """Return True if all implementations of an op on these types compute the same bits."""
    called = _callee(array.instruction)
    if isinstance(op, Sort):
        return is_integer and _is_order(called, op.is_stable)
    if isinstance(op, TopK | TopKCall):
        return is_integer
    if array.path:
        return is_integer and isinstance(op, Reduce) and _is_choice(called)
    match element_of(array.instruction):
        case ConstantRule() | IotaRule() | CopyRule(has_padding=False, function=None):
            return True
        case ElementwiseRule(function=function) if function is not None:
            return is_integer or _is_rounded_alike(array, function, types)
        case ReductionRule() as rule:
            return is_integer and _is_reduced_alike(array.instruction, op, rule, called)
    return False


def _is_reduced_alike(
    instruction: Instruction, op: MappedOp, rule: ReductionRule, called: Computation | None
) -> bool:
    """Return True if a reduction or a scatter of integers has the same results in any order."""
    if rule.is_scatter and isinstance(op, Scatter):
        return is_fold(called) or _is_set_once(op, instruction, called)
    return not op.depends_on_order and (is_fold(called) or _is_choice(called))


def _is_choice(computation: Computation | None) -> bool:
    """Return True for a reducer that chooses between elements, in any order."""
    from indexing.dataflow.choices import is_choice

    return computation is not None and is_choice(computation, function_of(computation))


def _shapes(instruction: Instruction) -> list[Shape]:
    every = [instruction.shape, *[operand.shape for operand in instruction.operands]]
    return [shape for shape in every if isinstance(shape, Shape)]


def _is_rounded_alike(array: ArrayRef, function: ScalarFunction, types: set[str]) -> bool:
    """Return True if all implementations compute a function of floats with the same bits.

    Compilers combine and reorder roundings, so there must be only one; and they compute narrow
    types in wider ones.
    """
    if any(ELEMENT_TYPES[name].kind == "floating" for name in types - _EXACT_FLOATS):
        return False
    op = array.instruction.op
    if isinstance(op, ElementwiseOp) and op.is_exact:
        return True
    operands = [ArrayRef(operand, (), array.calls) for operand in array.instruction.operands]
    return function.call in ROUNDING and not any(map(_is_rounded, operands))


def _is_rounded(array: ArrayRef) -> bool:
    """Return True if an element is, or is chosen from, a rounded one."""
    seen, pending = set[ArrayRef](), [array]
    while pending:
        last = pending.pop()
        if last in seen:
            continue
        seen.add(last)
        rule = element_of(last.instruction)
        if isinstance(rule, ElementwiseRule) and rule.function and rule.function.call in ROUNDING:
            return True
        pending += _sources(last) or ()
    return False


def is_fold(computation: Computation | None) -> bool:
    """Return True for a combiner whose results are the same in any order."""
    return (
        computation is not None
        and computation.root.opcode in COMBINERS
        and len(computation.parameters) == 2
        and _applies_to_both(computation)
    )


def _is_set_once(op: Scatter, scatter: Instruction, computation: Computation | None) -> bool:
    """Return True for updates that replace elements, each at most once."""
    updates = scatter.operands[-1].shape
    if not isinstance(updates, Shape) or computation is None:
        return False
    counts = [n for k, n in enumerate(updates.dims) if k not in op.update_window_dims]
    is_once = op.unique_indices or prod(counts) == 1
    return is_once and computation.root in computation.parameters


def _is_order(computation: Computation | None, is_stable: bool) -> bool:
    """Return True for a comparator of elements that decides their order.

    Elements that tie are equal if nothing else is sorted with them, or keep their order.
    """
    root = computation.root.op if computation is not None else None
    if computation is None or not isinstance(root, Compare) or root.direction not in ("LT", "GT"):
        return False
    count = len(computation.parameters)
    firsts = range(0, count, 2) if is_stable or count == 2 else ()
    return any(_applies_to_both(computation, first) for first in firsts)


def _applies_to_both(computation: Computation, first: int = 0) -> bool:
    """Return True if the root is an op of parameters `first` and ``first + 1``."""
    pair = computation.parameters[first : first + 2]
    return len(pair) == 2 and sorted(
        operand.index for operand in computation.root.operands
    ) == sorted(parameter.index for parameter in pair)


def _callee(instruction: Instruction) -> Computation | None:
    called = instruction.called_computations
    return called[0] if len(called) == 1 else None


def _compute(
    array: ArrayRef, operands: list[np.ndarray[Any, Any] | None]
) -> np.ndarray[Any, Any] | None:
    if source_of(array) is not None:
        return operands[0]
    value = _compute_value(array.instruction, operands)
    is_place = isinstance(array.instruction.op, TopK | TopKCall) and array.path == (1,)
    if is_place and _are_repeated(operands[0], value[0]):
        return None  # any of equal elements may be the first
    if isinstance(value, tuple):
        value = value[array.path[0]]
    return value if isinstance(value, np.ndarray) else None


def _are_repeated(keys: np.ndarray[Any, Any] | None, chosen: np.ndarray[Any, Any]) -> bool:
    """Return True if a chosen element is in its row several times."""
    if keys is None:
        return True
    counts = (keys[..., None, :] == chosen[..., :, None]).sum(-1)
    return bool(np.any(counts > 1))


def _compute_value(instruction: Instruction, operands: list[Any]) -> Any:
    op, called = instruction.op, _callee(instruction)
    assert isinstance(op, MappedOp)
    try:
        with np.errstate(all="ignore"):
            return op.compute(
                operands,
                [operand.shape for operand in instruction.operands],
                None if called is None else function_of(called),
            )
    except HloError:  # an elided constant, {...}
        return None


def function_of(computation: Computation) -> Callable[..., Any]:
    """Return a called computation of scalars as a function of arrays."""
    if is_fold(computation):
        return COMBINERS[computation.root.opcode].function

    def apply(*arguments: Any) -> Any:
        values: dict[Instruction, Any] = dict(zip(computation.parameters, arguments, strict=True))
        for instruction in dependencies_of([computation.root]):
            if instruction not in values:
                operands = [values[operand] for operand in instruction.operands]
                is_tuple = instruction.opcode == "tuple"
                values[instruction] = (
                    tuple(operands) if is_tuple else _compute_value(instruction, operands)
                )
        return values[computation.root]

    return apply
