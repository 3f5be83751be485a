"""Whether called computations take what an op gives them, and give what it wants.

>>> import hlo, indexing
>>> module = hlo.parse('''
... first { a = f32[] parameter(0) ROOT b = f32[] negate(a) }
... ENTRY e {
...   p = f32[3] parameter(0)  z = f32[] constant(0)
...   ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=first
... }''')
>>> [error.message for error in hlo.verify(module)]
['`first` takes 1 parameter, but reduce gives its `to_apply` 2']
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hlo.modules.bind import agrees
from hlo.modules.module import Computation, Instruction
from hlo.ops.op import Op, Signature
from hlo.text.source import HloError, Span
from hlo.text.syntax import CALLING


def called_by(instruction: Instruction) -> dict[str, tuple[Computation, ...]]:
    """The computations that each attribute of an instruction names."""
    called = iter(instruction.called_computations)
    found: dict[str, tuple[Computation, ...]] = {}
    for name, text in instruction.attributes.items():
        if name in CALLING:
            inside = text.text.strip()[1:-1] if text.text.startswith("{") else text.text
            count = inside.count(",") + 1 if inside.strip() else 0
            found[name] = tuple(islice(called, count))
    return found


def signature_errors(instruction: Instruction, op: Op) -> Iterator[HloError]:
    """What is wrong with the computations that an otherwise right instruction calls."""
    if not op.signatures:
        return
    called = called_by(instruction)
    shapes = [operand.shape for operand in instruction.operands]
    for method, attributes in op.signatures.items():
        pairs = [(name, c) for name in attributes for c in called.get(name, ())]
        given = getattr(op, method)(*shapes)
        wanted = given if isinstance(given, list) else [given] * len(pairs)
        if len(pairs) != len(wanted):
            numbers = f"{len(wanted)} computations, but {len(pairs)} are given"
            label = f"{instruction.opcode} calls {numbers}"
            yield HloError(label, _span(instruction, attributes), "signature")
        for (name, computation), signature in zip(pairs, wanted, strict=False):
            if message := _difference(computation, signature, instruction.opcode, name):
                note = f"`{computation.name}` is defined at {computation.span.place()}"
                help = f"{instruction.opcode} calls {name} as {signature}"  # noqa: A001
                span = instruction.attributes[name].span
                yield HloError(message, span, "signature", "", [note], help)


def _span(instruction: Instruction, attributes: tuple[str, ...]) -> Span:
    texts = [instruction.attributes[n] for n in attributes if n in instruction.attributes]
    return texts[0].span if texts else instruction.span


def _difference(computation: Computation, wanted: Signature, opcode: str, attribute: str) -> str:
    """How a computation is not called as it wants to be; empty if it is."""
    name, parameters = computation.name, computation.parameters
    if len(parameters) != len(wanted.parameters):
        plural = "" if len(parameters) == 1 else "s"
        takes = f"`{name}` takes {len(parameters)} parameter{plural}"
        return f"{takes}, but {opcode} gives its `{attribute}` {len(wanted.parameters)}"
    for number, (parameter, shape) in enumerate(zip(parameters, wanted.parameters, strict=True)):
        if not agrees(parameter.shape, shape):
            said = f"parameter {number} of `{name}` is {parameter.shape}"
            return f"{said}, but {opcode} gives its `{attribute}` {shape}"
    result = computation.root.shape
    if wanted.result is not None and not agrees(result, wanted.result):
        return f"`{name}` gives {result}, but {opcode} wants {wanted.result} of its `{attribute}`"
    return ""
