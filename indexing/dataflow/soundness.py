"""Soundness of the instructions that an analysis reaches: checked before it starts, once.

An analysis relies on the rules of ops, on the signatures of called computations and on valid
layouts.  `require_sound` checks them for the instructions that an analysis starts with and for
everything that the results of their called computations need.  Other instructions of the module
may be invalid.  Maps, loop nests and executions of sound instructions need no checks of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlo.modules.calls import signature_errors
from hlo.modules.checks import layout_fault, parameter_errors
from hlo.modules.forms import InstructionForm
from hlo.modules.instruction_checks import check_instruction
from hlo.modules.module import Computation, Instruction, Module
from hlo.ops.op import OPS, OPS_BY_TARGET
from hlo.text.source import HloError
from indexing.dataflow.needed import needed_by_root


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
    for instruction in instructions:
        if error := fault_of(instruction):
            raise error.with_traceback(None)


def require_sound_parameters(computation: Computation) -> None:
    """Raise the error of missing or duplicate parameter numbers of a computation, if any."""
    if error := _parameter_fault(computation):
        raise error.with_traceback(None)


def fault_of(instruction: Instruction) -> HloError | None:
    """Return the first error of an instruction and of what its called computations need.

    The result is memoised.
    """
    faults = _faults(instruction.computation.module)
    errors, computation = faults.errors, instruction.computation
    if computation not in faults.are_sound:
        faults.are_sound[computation] = _are_sound(computation, faults)
    if faults.are_sound[computation]:
        return None
    if instruction in errors:
        return errors[instruction]
    if instruction.called_computations:
        _check_called(instruction, faults)
    errors[instruction] = error = _fault(instruction, faults)
    return error


def faults_in(computation: Computation) -> Iterator[HloError]:
    """Yield the error of each invalid instruction of a computation; see `fault_of`."""
    sound = _faults(computation.module).sound_forms
    for instruction in computation.instructions:
        if instruction.form not in sound and (error := fault_of(instruction)):
            yield error


# ---------------------------------------------------------------- implementation


class _Faults:
    """Memoised errors of the instructions of a module.

    Attributes:
        are_sound: True if all instructions of a computation were of sound forms when one of them
            was first checked; their errors are not memoised.
        errors: the error of an instruction or of what the root of a computation needs, or None.
        sound_forms: the forms of sound instructions without callees.
    """

    __slots__ = ("are_sound", "errors", "sound_forms")

    def __init__(self) -> None:
        self.are_sound: dict[Computation, bool] = {}
        self.errors: dict[Instruction | Computation, HloError | None] = {}
        self.sound_forms: set[InstructionForm] = set()


def _faults(module: Module) -> _Faults:
    """Return the faults of `module`, for the ops that are registered now."""
    key = fault_of, len(OPS), len(OPS_BY_TARGET)
    faults: _Faults = module.memo.get(key) or module.memo.setdefault(key, _Faults())
    return faults


def _are_sound(computation: Computation, faults: _Faults) -> bool:
    """Return True if all instructions of a computation are known to be sound, by their forms."""
    return faults.sound_forms.issuperset([each.form for each in computation.instructions])


def _check_called(instruction: Instruction, faults: _Faults) -> None:
    """Memoise the errors of the computations that an instruction calls, callees first."""
    errors = faults.errors
    needed: dict[Computation, list[Instruction]] = {}
    pending = list(instruction.called_computations)
    while pending:
        computation = pending[-1]
        if computation in errors:
            pending.pop()
            continue
        if computation not in needed:
            is_sound = faults.are_sound.get(computation)
            needed[computation] = [] if is_sound else needed_by_root(computation)
        missing = [
            callee
            for each in needed[computation]
            if each.called_computations
            for callee in each.called_computations
            if callee not in errors
        ]
        if not missing:
            errors[computation] = _computation_fault(computation, needed[computation], faults)
        pending.extend(missing)


def _computation_fault(
    computation: Computation, needed: Iterable[Instruction], faults: _Faults
) -> HloError | None:
    """Return the first error of what the root of a computation needs, given its callees' errors."""
    errors = faults.errors
    for instruction in needed:
        if instruction not in errors:
            errors[instruction] = _fault(instruction, faults)
        if error := errors[instruction]:
            return error
    return _parameter_fault(computation)


def _parameter_fault(computation: Computation) -> HloError | None:
    return computation.memoised(_parameter_fault, lambda: next(parameter_errors(computation), None))


def _fault(instruction: Instruction, faults: _Faults) -> HloError | None:
    """Return the error of an instruction, given those of the computations that it calls."""
    form = instruction.form
    if form is None or instruction.called_computations:
        return _checked_fault(instruction, faults)
    if form in faults.sound_forms:
        return None
    error = _checked_fault(instruction, faults)
    if error is None:
        faults.sound_forms.add(form)
    return error


def _checked_fault(instruction: Instruction, faults: _Faults) -> HloError | None:
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
    errors = (faults.errors[called] for called in instruction.called_computations)
    return next((error for error in errors if error), None)
