"""`traffic`: the bytes that the instructions of a program move, and the operations that they do.

>>> import hlo
>>> module = hlo.parse('''
... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
... softmax {
...   p = f32[512,911] parameter(0)
...   z = f32[] constant(0)
...   e = f32[512,911] exponential(p)
...   s = f32[512] reduce(e, z), dimensions={1}, to_apply=add
...   b = f32[512,911] broadcast(s), dimensions={0}
...   ROOT d = f32[512,911] divide(e, b)
... }
... ENTRY e { p = f32[512,911] parameter(0)
...   ROOT f = f32[512,911] fusion(p), kind=kLoop, calls=softmax }''')
>>> (row,) = traffic(module).rows
>>> row.distinct == row.written == 512 * 911 * 4, row.requested == 912 * row.distinct
(True, True)
>>> {instruction.name: str(factor) for instruction, factor in row.recompute.items()}
{'e': '912', 's': '911', 'b': '1', 'd': '1'}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape, leaf_shape, unbounded_leaf
from indexing.dataflow.valued_maps import integer_parameters, with_parameter_names
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import Grade
from indexing.memory.executions import (
    Executions,
    executions,
    executions_by,
    executions_from,
)
from indexing.memory.movement.amounts import Amount
from indexing.memory.movement.loop_evaluations import (
    Evaluations,
    LoopEvaluations,
    evaluations,
    is_whole,
)
from indexing.memory.movement.needed_reads import NeededReads, needed_reads
from indexing.memory.movement.operand_traffic import OperandTraffic
from indexing.memory.movement.part_padding import padding_of_results
from indexing.memory.movement.point_counts import Counter
from indexing.memory.movement.traffic_values import InstructionTraffic, Traffic
from indexing.memory.movement.writes import Update, is_view, moves_bytes, updates_of, writes_of
from indexing.ops.element import Work, declarations_of
from indexing.ops.structured_ops import InlineOp
from indexing.ops.work import loop_work_of, work_of
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

IMMEDIATE: int = 8
"""Constants in fusions with at most as many elements are part of the code; XLA's limit."""
_ONCE: Final = Fraction(1)


@checked
def traffic(
    target: Module | Computation | Instruction,
    progress: Callable[[int, int], None] | None = None,
    values: Mapping[str, ArrayLike] | None = None,
) -> Traffic:
    """Return the bytes that instructions read and write, and their operations.

    Instructions are those of ENTRY, or of the computation, and of the computations that `while`,
    `call` and `conditional` execute.  A fusion is one instruction.  Parameters, constants, tuples
    and bitcasts move nothing.

    Args:
        target: a module, a computation, or an instruction such as a fusion or a loop.
        progress: called with the number of instructions done, and with the number of all.
        values: of integer parameters of ENTRY, of the computation, or of that of the instruction,
            by name: they decide which elements its instructions need.
    Raises:
        HloError: an instruction is invalid.
        ValueError: a value is not that of an integer parameter, or does not fit it.
    Source: XLA ``xla/service/hlo_cost_analysis.h``, for the counted operations.

    >>> import hlo, indexing
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[8,16] parameter(0)
    ...   q = f32[16,4] parameter(1)
    ...   ROOT dot = f32[8,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''')
    >>> (row,) = indexing.traffic(dot).rows[:1]
    >>> print(row)
    <dot `dot` reads `p` f32[8,16]: 512 bytes distinct, 2,048 bytes requested>
    """
    counter = Counter()
    named = _named_computation(target)
    values = with_parameter_names(named, values or {})
    if not values.keys() <= (known := integer_parameters(named).keys()):
        raise ValueError(f"`{named.name}` has the integer parameters {[*known]}, got {[*values]}")
    if isinstance(target, Instruction) and moves_bytes(target):
        once = instruction_traffic(target, Executions(1, 1), counter, values)
        return Traffic(target, (once,))
    times = _executions(target)
    moving = [i for c in times for i in c.instructions if moves_bytes(i)]
    counted = []
    for done, instruction in enumerate(moving):
        if progress is not None:
            progress(done, len(moving))
        own = instruction.computation
        given = values if own is named else {}
        counted.append(instruction_traffic(instruction, times[own], counter, given))
    return Traffic(target, tuple(counted))


def _named_computation(target: Module | Computation | Instruction) -> Computation:
    """Return the computation whose parameters may have values."""
    if isinstance(target, Computation):
        return target
    return target.entry if isinstance(target, Module) else target.computation


def _executions(
    target: Module | Computation | Instruction,
) -> Mapping[Computation, Executions]:
    """Return the executions of the computations of a target, in text order."""
    match target:
        case Module():
            module, times = target, executions(target)
        case Computation():
            module, times = target.module, executions_from(target)
        case Instruction():
            module, times = target.module, executions_by(target)
    return {c: times[c] for c in module.computations.values() if c in times}


def instruction_traffic(
    instruction: Instruction,
    times: Executions,
    counter: Counter,
    values: Mapping[str, ArrayLike] = MappingProxyType({}),
) -> InstructionTraffic:
    """Return the traffic of one instruction, for values of parameters of its computation."""
    loop = evaluations(instruction)
    updates = updates_of(instruction)
    needed = needed_reads(instruction, values)
    operands = [*_operands(loop, needed, updates, counter), *_constants(loop, counter)]
    work = work_of(instruction)
    evaluated, recompute, grade = _evaluate_loop(loop, counter)
    return InstructionTraffic(
        instruction,
        times,
        tuple(operands),
        writes_of(instruction, updates),
        tuple([update.instruction for update in updates if update.is_in_place]),
        work,
        evaluated,
        recompute,
        grade,
    )


def _operands(
    loop: LoopEvaluations, needed: NeededReads, updates: tuple[Update, ...], counter: Counter
) -> Iterator[OperandTraffic]:
    bases = {(update.operand, update.base): update for update in updates}
    is_one_whole = is_whole(loop.instruction)
    for (number, array), each in loop.operands.items():
        shape = leaf_shape(array.instruction.shape, array.path)
        assert isinstance(shape, Shape)
        if unbounded_leaf(shape):
            continue
        elements = _elements(each, shape, counter)
        reads = elements if is_one_whole and each.unknown is None else _reads(each, counter)
        update = bases.get((number, array))
        if update is None:
            padding = _padding(each, shape, elements)
        else:
            kept = 0 if update.is_in_place else shape.size - update.elements
            elements = reads = Amount(kept)
            padding = padding_of_results((), shape, elements)
        needed_elements = needed.elements((number, array), elements, counter)
        yield OperandTraffic(
            array.instruction,
            number,
            array.path,
            shape,
            elements,
            reads,
            padding,
            each.unknown,
            needed_elements,
        )


def _constants(loop: LoopEvaluations, counter: Counter) -> Iterator[OperandTraffic]:
    """Yield the reads of constants in a fusion that are too large for its code."""
    for array, each in loop.inner.items():
        shape = array.instruction.shape
        if array.instruction.opcode != "constant" or not isinstance(shape, Shape):
            continue
        if shape.size > IMMEDIATE:
            elements, reads = _elements(each, shape, counter), _reads(each, counter)
            padding = _padding(each, shape, elements)
            known = array.instruction, None, array.path, shape
            yield OperandTraffic(*known, elements, reads, padding, each.unknown)


def _elements(each: Evaluations, shape: Shape, counter: Counter) -> Amount:
    if each.unknown is not None:
        return Amount(shape.size, "may")
    return counter.results(each.maps, shape)


def _padding(each: Evaluations, shape: Shape, elements: Amount) -> Amount:
    return padding_of_results(() if each.unknown is not None else each.maps, shape, elements)


def _reads(each: Evaluations, counter: Counter) -> Amount | Unknown:
    return counter.points(each.maps) if each.uncounted is None else each.uncounted


# ---------------------------------------------------------------- recomputation


def _evaluate_loop(
    loop: LoopEvaluations, counter: Counter
) -> tuple[Work | Unknown, dict[Instruction, Fraction | Unknown], Grade]:
    """Return the work of the loop of an instruction, and the recompute factors in a fusion."""
    if not isinstance(loop.instruction.op, InlineOp):
        return loop_work_of(loop.instruction), {}, "exact"
    factors: dict[Instruction, Fraction | Unknown] = {}
    amounts: list[Amount | Unknown] = []
    for array, each in loop.inner.items():
        inner = array.instruction
        if inner.opcode == "bitcast" or not (is_view(inner) or declarations_of(inner).is_given):
            factors[inner] = larger(factors.get(inner), _factor(array, each, counter))
            amounts.append(_reads(each, counter))
    work = loop_work_of(loop.instruction)
    evaluated = work if isinstance(work, Unknown) else sum_of_works(factors)
    return evaluated, factors, grade_of(amounts)


def grade_of(amounts: Iterable[Amount | Unknown]) -> Grade:
    """Return "may" if one of the known amounts is an upper bound."""
    return "may" if any(isinstance(a, Amount) and a.grade == "may" for a in amounts) else "exact"


def larger(first: Fraction | Unknown | None, second: Fraction | Unknown) -> Fraction | Unknown:
    """Return the larger of two factors; the first that is unknown."""
    if first is None or isinstance(second, Unknown):
        return second
    return first if isinstance(first, Unknown) else max(first, second)


def _factor(array: ArrayRef, each: Evaluations, counter: Counter) -> Fraction | Unknown:
    shape = leaf_shape(array.instruction.shape, array.path)
    if not isinstance(shape, Shape) or unbounded_leaf(shape):
        return Unknown(f"`{array.instruction.name}` has no known number of elements")
    reads = _reads(each, counter)
    if isinstance(reads, Unknown):
        return reads
    size = shape.size
    return Fraction(reads.number, size) if size and reads.number != size else _ONCE


def sum_of_works(factors: Mapping[Instruction, Fraction | Unknown]) -> Work | Unknown:
    """Return the work of the loop of a fusion from the recompute factors of its instructions."""
    flops: Fraction | int = 0
    transcendentals: Fraction | int = 0
    for inner, factor in factors.items():
        work = loop_work_of(inner)
        if isinstance(work, Unknown):
            return work
        if work == Work():
            continue
        if isinstance(factor, Unknown):
            return factor
        times = factor.numerator if factor.denominator == 1 else factor  # integers add faster
        flops += work.flops * times
        transcendentals += work.transcendentals * times
    return Work(ceil(flops), ceil(transcendentals))
