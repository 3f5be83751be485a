"""Work of instructions: floating-point operations and transcendental functions.

An op declares its work beside its element rule (`indexing.ops.element.ElementOp.work`).  The
conventions are those of XLA's ``HloCostAnalysis``: an elementwise function is one operation for
each element, of whatever type; a transcendental function is counted separately; a multiplication
with an addition is two operations.  Other than XLA, windows over the same elements are reduced once
(`indexing.ops.windows.window_applications`).  A loop over the elements of the result reduces them
each (`loop_work_of`).

Source: XLA ``xla/service/hlo_cost_analysis.cc``.

>>> import hlo, indexing.ops
>>> root = hlo.parse('''ENTRY e {
...   p = f32[128,256] parameter(0)  q = f32[256,128] parameter(1)
...   ROOT d = f32[128,128] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
... }''').entry.root
>>> work_of(root)
Work(flops=8388608, transcendentals=0)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

from hlo.modules.bind import why_unsupported
from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.shapes.shape import unbounded_leaf
from indexing.ops.element import NO_WORK, ElementOp, Work
from indexing.ops.structured_ops import InlineOp
from simplifier.unknown import Unknown

_NO_ARITHMETIC = frozenset({"parameter", "after-all", "partition-id", "replica-id"})


def work_of(instruction: Instruction) -> Work | Unknown:
    """Return the work of one instruction that computes every value of its result once.

    A fusion or call does the work of the instructions of its computation.  `Unknown` if the op
    declares no work, or an array has a dimension of unknown size.
    """
    return _work(instruction, computation_work, in_loop=False)


def loop_work_of(instruction: Instruction) -> Work | Unknown:
    """Return the work of a loop that computes each element of a result by itself.

    >>> import hlo, indexing.ops
    >>> root = hlo.parse('''add { a = f32[] parameter(0)  b = f32[] parameter(1)
    ...   ROOT c = f32[] add(a, b) }
    ... ENTRY e { p = f32[4] parameter(0)  z = f32[] constant(0)  ROOT r = f32[4]
    ...   reduce-window(p, z), window={size=7 pad=3_3}, to_apply=add }''').entry.root
    >>> work_of(root).flops, loop_work_of(root).flops  # one sum of four elements, and four of them
    (3, 12)
    """
    return _work(instruction, _computation_loop_work, in_loop=True)


def _work(
    instruction: Instruction,
    of_computation: Callable[[Computation], Work | Unknown],
    in_loop: bool,
) -> Work | Unknown:
    """Return the work of an instruction, memoised; instructions of one form share it."""
    form = instruction.form
    is_of_form = form is not None and not instruction.called_computations
    key: Hashable = form if is_of_form else instruction
    known: dict[Hashable, Work | Unknown]
    known = instruction.module.memo.setdefault((_work, in_loop), {})
    work = known.get(key)
    if work is None:
        work = _compute_work(instruction, of_computation, in_loop)
        if not is_of_form or isinstance(work, Work):  # a reason refers to the instruction
            known[key] = work
    return work


def _compute_work(
    instruction: Instruction,
    of_computation: Callable[[Computation], Work | Unknown],
    in_loop: bool,
) -> Work | Unknown:
    op = instruction.op
    if isinstance(op, InlineOp):
        return of_computation(instruction.called_computations[0])
    if instruction.opcode in _NO_ARITHMETIC:
        return NO_WORK
    if not isinstance(op, ElementOp):
        return _unknown(instruction, why_unsupported(instruction) or "the opcode is not registered")
    shapes = tuple([operand.shape for operand in instruction.operands])
    if leaf := unbounded_leaf(instruction.shape, *shapes):
        return _unknown(instruction, f"{leaf} has a dimension of unknown size")
    applied: list[Work] = []
    for called in instruction.called_computations:
        work = of_computation(called)
        if isinstance(work, Unknown):
            return work
        applied.append(work)
    count = op.loop_work if in_loop else op.work
    work = count(instruction.shape, shapes, tuple(applied))
    return _unknown(instruction, work.reason) if isinstance(work, Unknown) else work


def _unknown(instruction: Instruction, reason: str) -> Unknown:
    return Unknown(f"{instruction.opcode} `{instruction.name}`: {reason}", instruction)


def computation_work(computation: Computation) -> Work | Unknown:
    """Return the work of all instructions of a computation, each executed once."""
    return bottom_up(computation, computation_work, partial(_sum_of_works, work_of))


def _computation_loop_work(computation: Computation) -> Work | Unknown:
    return bottom_up(computation, _computation_loop_work, partial(_sum_of_works, loop_work_of))


def _sum_of_works(
    of_instruction: Callable[[Instruction], Work | Unknown], computation: Computation
) -> Work | Unknown:
    total = NO_WORK
    for instruction in computation.instructions:
        work = of_instruction(instruction)
        if isinstance(work, Unknown):
            return work
        total = total.plus(work)
    return total
