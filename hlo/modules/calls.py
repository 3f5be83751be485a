"""Checks of called computations against the signatures that an op declares.

>>> import hlo, indexing
>>> module = hlo.parse('''
... first { a = f32[] parameter(0) ROOT b = f32[] negate(a) }
... ENTRY e {
...   p = f32[3] parameter(0)  z = f32[] constant(0)
...   ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=first
... }''')
>>> [error.message for error in hlo.verify(module)]
['`first` has 1 parameter, but reduce passes 2 arguments to its `to_apply`']
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hlo.modules.instruction_checks import agrees
from hlo.modules.module import Computation, Instruction
from hlo.ops.op import Op, Signature
from hlo.text.source import HloError, Span
from hlo.text.syntax import CALLEE_ATTRIBUTES


def callees_of(instruction: Instruction) -> dict[str, tuple[Computation, ...]]:
    """Return the computations that each attribute of an instruction names."""
    called = iter(instruction.called_computations)
    callees: dict[str, tuple[Computation, ...]] = {}
    for name in instruction.form.attributes if instruction.form else instruction.attributes:
        if name in CALLEE_ATTRIBUTES:
            text = instruction.text_of(name) or ""
            inside = text.strip()[1:-1] if text.startswith("{") else text
            count = inside.count(",") + 1 if inside.strip() else 0
            callees[name] = tuple(islice(called, count))
    return callees


def signature_errors(instruction: Instruction, op: Op) -> Iterator[HloError]:
    """Yield an error for each mismatched computation that an otherwise valid instruction calls."""
    if not op.signatures:
        return
    called = callees_of(instruction)
    shapes = [operand.shape for operand in instruction.operands]
    for method, attributes in op.signatures.items():
        pairs = [(name, c) for name in attributes for c in called.get(name, ())]
        given = getattr(op, method)(*shapes)
        wanted = given if isinstance(given, list) else [given] * len(pairs)
        if len(pairs) != len(wanted):
            counts = f"{len(wanted)} computation{'s' * (len(wanted) != 1)}"
            given = f"{len(pairs)} {'is' if len(pairs) == 1 else 'are'} given"
            message = f"{instruction.opcode} calls {counts}, but {given}"
            yield HloError(message, _span(instruction, attributes), "signature")
        for number, ((name, computation), signature) in enumerate(zip(pairs, wanted, strict=False)):
            callee = f"branch {number}" if len(called[name]) > 1 else f"`{name}`"
            if message := _difference(computation, signature, instruction.opcode, callee):
                note = f"`{computation.name}` is defined at {computation.span.place()}"
                help = f"{callee} must have the signature {signature}"  # noqa: A001
                span = instruction.attributes[name].span
                yield HloError(message, span, "signature", "", [note], help)


def _span(instruction: Instruction, attributes: tuple[str, ...]) -> Span:
    texts = [instruction.attributes[n] for n in attributes if n in instruction.attributes]
    return texts[0].span if texts else instruction.span


def _difference(computation: Computation, wanted: Signature, opcode: str, callee: str) -> str:
    """Return the first difference of a computation from a signature; empty if there is none."""
    name, parameters = computation.name, computation.parameters
    if len(parameters) != len(wanted.parameters):
        plural = "s" * (len(parameters) != 1)
        count = len(wanted.parameters)
        arguments = f"{count} argument{'s' * (count != 1)}"
        return (
            f"`{name}` has {len(parameters)} parameter{plural}, "
            f"but {opcode} passes {arguments} to its {callee}"
        )
    for number, (parameter, shape) in enumerate(zip(parameters, wanted.parameters, strict=True)):
        if not agrees(parameter.shape, shape):
            declared = f"parameter {number} of `{name}` is {parameter.shape}"
            return f"{declared}, but {opcode} passes {shape} to its {callee}"
    result = computation.root.shape
    if wanted.result is not None and not agrees(result, wanted.result):
        returns = f"`{name}` returns {result}"
        return f"{returns}, but {opcode} requires {wanted.result} of its {callee}"
    return ""
