"""Values and side effects of instructions, by the declarations of their ops.

An opcode that is not registered may do anything: its value may depend on each of its attributes,
and it may have side effects.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.ops.common_attributes import COMMON_ATTRIBUTES, CONFIG
from hlo.text.syntax import CALLEE_ATTRIBUTES


def value_attributes(instruction: Instruction) -> Mapping[str, Hashable]:
    """Return the attributes on which the value of an instruction depends (`Op.value_attributes`).

    >>> import hlo, indexing
    >>> fusion = hlo.parse('''f { x = f32[2] parameter(0)  ROOT y = f32[2] abs(x) }
    ... ENTRY e { p = f32[2] parameter(0)
    ...   ROOT r = f32[2] fusion(p), kind=kLoop, calls=f, backend_config={} }''').entry.root
    >>> call = hlo.parse('''ENTRY e { p = f32[2] parameter(0)  ROOT r = f32[2] custom-call(p),
    ...   custom_call_target="f", backend_config={uplo = 76 : ui8} }''').entry.root
    >>> value_attributes(fusion), value_attributes(call)["backend_config"]
    ({}, '{uplo=76:ui8}')
    """
    op = instruction.op
    if op is not None:
        return op.value_attributes(instruction)
    ignored = COMMON_ATTRIBUTES - {CONFIG} | CALLEE_ATTRIBUTES
    texts = instruction.attributes.items()
    return {name: text.normal for name, text in texts if name not in ignored}


def has_own_effect(instruction: Instruction) -> bool:
    """Return True if an instruction has a side effect besides those of computations it calls.

    >>> import hlo, indexing
    >>> text = '''ENTRY e { ROOT r = f32[] custom-call(), custom_call_target="f",
    ...   custom_call_has_side_effect=%s }'''
    >>> [has_own_effect(hlo.parse(text % flag).entry.root) for flag in ("true", "false")]
    [True, False]
    """
    op = instruction.op
    return op is None or op.has_side_effect(instruction)


def has_effect(instruction: Instruction) -> bool:
    """Return True if an instruction, or one in a computation that it calls, has a side effect."""
    return has_own_effect(instruction) or any(map(has_effects, instruction.called_computations))


def has_effects(computation: Computation) -> bool:
    """Return True if an instruction of the computation has a side effect."""
    return bottom_up(computation, has_effects, lambda c: any(map(has_effect, c.instructions)))
