"""Soundness of the instructions that an analysis reaches: checked before it starts, once.

An analysis relies on the rules of ops, on the signatures of called computations and on valid
layouts.  `require_sound` checks them for the instructions that an analysis starts with and for
everything that the results of their called computations need.  Other instructions of the module
may be invalid.  Maps, loop nests and executions of sound instructions need no checks of their own.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlo.modules.calls import signature_errors
from hlo.modules.checks import layout_fault, parameter_errors
from hlo.modules.instruction_checks import check_instruction
from hlo.modules.module import Computation, Instruction, Module
from hlo.ops.op import OPS, OPS_BY_TARGET
from hlo.text.source import HloError
from indexing.dataflow.needed import needed_by


def require_sound(instructions: Iterable[Instruction]) -> None:
    """Raise the first error of instructions and of what their called computations need.

    Raises:
        HloError: an instruction is invalid, or an instruction of a computation that it calls.

    >>> import hlo, indexing.ops
    >>> entry = hlo.parse('''
    ... f { p = f32[2] parameter(0)  unused = f32[3] negate(p)  ROOT n = f32[2] negate(p) }
    ... g { p = f32[2] parameter(0)  ROOT n = f32[3] negate(p) }
    ... ENTRY e {
    ...   p = f32[2] parameter(0)
    ...   a = f32[2] fusion(p), kind=kLoop, calls=f
    ...   b = f32[3] fusion(p), kind=kLoop, calls=g
    ... }''').entry
    >>> require_sound([entry["a"]])
    >>> require_sound([entry["b"]])
    Traceback (most recent call last):
        ...
    hlo.text.source.HloError: error[shape]: `n` is declared f32[3], but its inferred shape is f32[2]
     --> <string>:3:35
    ...
    """
    memo: _Memo = {}
    module: Module | None = None
    for instruction in instructions:
        if instruction.computation.module is not module:
            module = instruction.module
            memo = _memo(module)
        error = memo[instruction] if instruction in memo else _memoised_fault(instruction, memo)
        if error is not None:
            raise error.with_traceback(None)


def require_sound_parameters(computation: Computation) -> None:
    """Raise the error of missing or duplicate parameter numbers of a computation, if any."""
    if error := _parameter_fault(computation):
        raise error.with_traceback(None)


def fault_of(instruction: Instruction) -> HloError | None:
    """Return the first error of an instruction and of what its called computations need.

    The result is memoised.
    """
    memo = _memo(instruction.module)
    return memo[instruction] if instruction in memo else _memoised_fault(instruction, memo)


# ---------------------------------------------------------------- implementation


_Memo = dict[Instruction | Computation, HloError | None]


def _memo(module: Module) -> _Memo:
    """Return the faults of `module`, for the ops that are registered now."""
    memo: _Memo = module.memo.setdefault((fault_of, len(OPS), len(OPS_BY_TARGET)), {})
    return memo


def _memoised_fault(instruction: Instruction, memo: _Memo) -> HloError | None:
    """Memoise and return the error of an instruction and of the computations that it calls."""
    if instruction.called_computations:
        for called in _innermost_first(instruction.called_computations, memo):
            memo[called] = _computation_fault(called, memo)
    memo[instruction] = error = _fault(instruction, memo)
    return error


def _innermost_first(called: Iterable[Computation], memo: _Memo) -> list[Computation]:
    """Return `called` and the computations that they call, callees first, without memoised ones."""
    order: dict[Computation, None] = {}
    pending = list(called)
    while pending:
        computation = pending[-1]
        if computation in order or computation in memo:
            pending.pop()
            continue
        missing = [
            inner
            for instruction in _needed(computation)
            for inner in instruction.called_computations
            if inner not in order and inner not in memo
        ]
        if not missing:
            order[computation] = None
        pending.extend(missing)
    return list(order)


def _needed(computation: Computation) -> list[Instruction]:
    """Return the parameters of a computation, and what its root needs."""
    parameters = [i for i in computation.instructions if i.opcode == "parameter"]
    return needed_by([*parameters, computation.root])


def _computation_fault(computation: Computation, memo: _Memo) -> HloError | None:
    """Return the first error of what the root of a computation needs."""
    for instruction in _needed(computation):
        if instruction not in memo:
            memo[instruction] = _fault(instruction, memo)
        if error := memo[instruction]:
            return error
    return _parameter_fault(computation)


def _parameter_fault(computation: Computation) -> HloError | None:
    return computation.module.memoised(
        (_parameter_fault, computation), lambda: next(parameter_errors(computation), None)
    )


def _fault(instruction: Instruction, memo: _Memo) -> HloError | None:
    """Return the error of an instruction, given those of the computations that it calls."""
    if error := check_instruction(instruction):
        return error
    try:
        op = instruction.op
        for each in (instruction, *instruction.operands):
            if fault := layout_fault(each.shape):
                message = f"the layout of `{each.name}` is invalid: {fault}"
                return HloError(message, each.span, "layout")
        if op is None or not instruction.called_computations:
            return None
        if error := next(signature_errors(instruction, op), None):
            return error
    except HloError as error:  # a missing shape of an operand cannot be inferred
        return error
    errors = (memo[called] for called in instruction.called_computations)
    return next((error for error in errors if error), None)
