"""Binding of an instruction's text to a typed op: attributes, literal and declared shape.

Ops are looked up in the registry `hlo.ops.op.OPS`; an unregistered opcode has the op None. Ops are
memoised by text, since a module has few distinct ops.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, KeysView
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from hlo.memo import Memo
from hlo.modules.forms import Values
from hlo.modules.module import Instruction
from hlo.ops.attributes import Kind, computation
from hlo.ops.common_attributes import COMMON_ATTRIBUTES, CONFIG
from hlo.ops.config import find_entry, read_entry
from hlo.ops.op import CUSTOM_CALL, Field, O, Op, find_op, known_attributes
from hlo.shapes.shape import AnyShape, Shape
from hlo.text.names import nearest
from hlo.text.source import HloError
from hlo.text.syntax import CALLEE_ATTRIBUTES

_LITERAL: Final = "(literal)"
_SHAPE: Final = "(shape)"
_SOURCES: Final = {"config": CONFIG, "contents": _LITERAL}
_MAX_LITERAL: Final = 32  # characters of a literal by which ops are memoised
_SIMILARITY: Final = 0.85  # of names of which one may be the other misspelt, as in `difflib`
_MAX_SAMPLE: Final = 100  # characters of a sample in a repair
_READ: Final = Memo[Hashable, Any](1 << 12)


def bind_op(instruction: Instruction) -> Op | None:
    """Return the typed op of an instruction; None if its opcode is not registered.

    Raises:
        HloError: an attribute is missing or invalid.
    """
    form = instruction.form
    if form is None:
        return read_op(instruction, instruction.shape)
    op = form.op
    if type(op) is not op_class(instruction):  # not bound yet, or to an earlier registration
        form.op = op = read_op(instruction, form.shape)
    return op


def op_class(instruction: Instruction) -> type[Op] | None:
    """Return the class of an instruction's op; for a custom call, of its target if registered.

    If the class does not support the instruction (`Op.why_unsupported`): that of any custom call,
    or None.
    """
    cls = registered_class(instruction)
    if cls is None or not cls.why_unsupported(instruction):
        return cls
    return find_op(CUSTOM_CALL) if cls.target else None


def why_unsupported(instruction: Instruction) -> str:
    """Return why an instruction with a registered opcode has no op; "" for all others."""
    cls = registered_class(instruction)
    return cls.why_unsupported(instruction) if cls and not cls.target else ""


def registered_class(instruction: Instruction) -> type[Op] | None:
    """Return the class of the opcode or target, also of an instruction that it does not support.

    The class may name another one that describes the instruction (`Op.opcode_of`).
    """
    if instruction.opcode != CUSTOM_CALL:
        cls = find_op(instruction.opcode)
        if cls is None or not cls.acts_as_others:
            return cls
        other = cls.opcode_of(instruction)
        return find_op(other) if other else cls
    target = instruction.text_of("custom_call_target")
    return find_op(CUSTOM_CALL, target.strip('"') if target else "")


def default_shape(instruction: Instruction) -> AnyShape | None:
    """Return the default of an omitted result shape (`Op.default_shape`); None without one."""
    cls = op_class(instruction)
    return cls.default_shape(instruction) if cls else None


def read_op(instruction: Instruction, shape: AnyShape | None) -> Op | None:
    """Return the op of an instruction for a given declared shape, as `bind_op`."""
    cls = op_class(instruction)
    return None if cls is None else read_as(cls, instruction, shape)


def read_as(cls: type[O], instruction: Instruction, shape: AnyShape | None) -> O:
    """Return the op of a given class with the attributes of an instruction, as `bind_op`."""
    parts: list[Hashable] = [cls]
    for source in _sources(cls):
        if source is _SHAPE:
            parts.append(shape)
        elif source is not _LITERAL:
            parts.append(instruction.text_of(source))
        else:
            literal = instruction.literal_text
            if literal is None or len(literal) > _MAX_LITERAL:  # rarely equal to others
                return _read_op(instruction, cls, shape)
            parts.append(literal)
    key = tuple(parts)
    op: O = _READ.get(key) or _READ.keep(key, _read_op(instruction, cls, shape))
    return op


@cache
def _sources(cls: type[Op]) -> tuple[str, ...]:
    """Return where the text of each field is: an attribute, `_LITERAL` or `_SHAPE`."""
    return tuple(
        [
            _SHAPE if field.kind is None else _SOURCES.get(field.role, field.name)
            for field in cls.fields.values()
        ]
    )


# ---------------------------------------------------------------- one field


def _read_op(instruction: Instruction, cls: type[O], shape: AnyShape | None) -> O:
    if not cls.fields:
        return cls()
    values = instruction.values
    fields = {
        name: _value(instruction, values, field, shape)
        for name, field in cls.fields.items()
        if field.is_required or _is_given(instruction, values, field, shape)
    }
    return cls(**fields)


def _is_given(
    instruction: Instruction, values: Values, field: Field, shape: AnyShape | None
) -> bool:
    match field.role:
        case "attribute":
            return instruction.text_of(field.name) is not None
        case "config":
            config = values[1].get(CONFIG)
            return config is not None and find_entry(config.span, field.name) is not None
        case "contents":
            return instruction.literal_text is not None
        case _:
            return shape is not None


def _value(instruction: Instruction, values: Values, field: Field, shape: AnyShape | None) -> Any:
    opcode = instruction.opcode
    if field.kind is None:
        if isinstance(shape, Shape) or (shape is not None and field.role == "shape"):
            return shape
        if shape is not None:
            message = f"{opcode} returns an array, but `{instruction.name}` is declared {shape}"
            raise HloError(message, instruction.span, "shape")
        message = f"the shape of `{instruction.name}` cannot be inferred from its operands"
        help = f"write the result shape before {opcode}"  # noqa: A001 - the word of `HloError`
        raise HloError(message, instruction.span, "shape", help=help)
    if field.role == "config":
        return _entry(instruction, values, field)
    is_attribute = field.role == "attribute"
    literal, attributes = values
    text = attributes.get(field.name) if is_attribute else literal
    owner = f"`{field.name}` of {opcode}" if is_attribute else f"the argument of {opcode}(..)"
    if text is None:
        message = f"{owner} is missing: expected {field.kind.name}"
        help = _repair(instruction, field, field.kind)  # noqa: A001
        raise HloError(message, instruction.span, "attribute", help=help)
    return field.kind.parse(text.span, owner)


def _repair(instruction: Instruction, field: Field, kind: Kind[Any]) -> str:
    """Return the repair of a missing attribute or argument."""
    if field.role != "attribute":
        return f"add it, for example {kind.example}"
    if kind is computation:
        return f"add {field.name}=NAME with the name of a computation"
    cls = op_class(instruction)
    for sample in cls.samples if cls and kind.example.startswith("{") else ():
        if f" {field.name}=" in sample and len(sample) <= _MAX_SAMPLE:
            return f"add it, as in {sample}"
    return f"add it, for example {field.name}={kind.example}"


def _entry(instruction: Instruction, values: Values, field: Field) -> Any:
    """Return the value of an entry of ``backend_config``."""
    assert field.kind is not None
    config = values[1].get(CONFIG)
    owner = f"`{field.name}` in {CONFIG} of {instruction.opcode}"
    if config is None or find_entry(config.span, field.name) is None:
        span = instruction.span if config is None else config.span
        help = f"add it, for example {CONFIG}={{{field.name} = {field.kind.example}}}"  # noqa: A001
        message = f"{owner} is missing: expected {field.kind.name}"
        raise HloError(message, span, "attribute", help=help)
    return read_entry(config.span, field.name, field.kind, owner)


def unknown_attributes(instruction: Instruction) -> Iterator[HloError]:
    """Yield an error for each attribute that neither the op nor every instruction has."""
    cls = op_class(instruction)
    given = _given_attributes(instruction)
    known = known_attributes(cls) if cls else given
    for name in given:
        if name not in known:
            help = nearest(name, sorted(known)) or "remove the attribute"  # noqa: A001
            yield _no_attribute(instruction, name, help)


def misleading_attribute(instruction: Instruction) -> HloError | None:
    """Return the error for an unknown attribute that must not be ignored.

    A newer XLA may define other unknown attributes.  These two kinds change the meaning of the
    instruction: a name close to that of a missing attribute, whose default would take the place of
    the value; and a second callee, which the op would take for its own.
    """
    given = _given_attributes(instruction)
    cls = op_class(instruction) if given else None
    if cls is None or given <= known_attributes(cls):
        return None
    known = known_attributes(cls)
    callees = sorted(known & CALLEE_ATTRIBUTES)
    lacking = {_stem(name): name for name in sorted(known.difference(COMMON_ATTRIBUTES, given))}
    for name in given:
        if name in known:
            continue
        if near := get_close_matches(_stem(name), lacking, 1, cutoff=_SIMILARITY):
            return _no_attribute(instruction, name, f"did you mean `{lacking[near[0]]}`?")
        if callees and name in CALLEE_ATTRIBUTES:
            help = f"it names its computations in {' and '.join(callees)}"  # noqa: A001
            return _no_attribute(instruction, name, help)
    return None


def _given_attributes(instruction: Instruction) -> KeysView[str]:
    """Return the names of the attributes; with a form, without metadata, which is always known."""
    form = instruction.form
    return instruction.attributes.keys() if form is None else form.attributes.keys()


def _stem(name: str) -> str:
    """Return the name of an attribute without the differences that misspelt names often have.

    >>> _stem("iota_dimension") == _stem("iota_dims"), _stem("slices"), _stem("Replica-Groups")
    (True, 'slice', 'replica_group')
    """
    return re.sub("dimension", "dim", name.lower().replace("-", "_")).removesuffix("s")


def _no_attribute(instruction: Instruction, name: str, help: str) -> HloError:  # noqa: A002
    message = f"{instruction.opcode} has no attribute `{name}`"
    return HloError(message, instruction.attributes[name].span, "attribute", help=help)
