"""Field specifiers of an op's class: where in the text of an instruction a field is read from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast, overload

from hlo.ops.kinds import Kind

T = TypeVar("T")
D = TypeVar("D")


class Required:
    """Marker of an attribute without a default."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = Required()


@dataclass(frozen=True, slots=True)
class Field:
    """The source of a field's value in the text of an instruction.

    Attributes:
        role: ``attribute`` (``name=value``), ``config`` (an entry of ``backend_config={..}``),
            ``contents`` (the parenthesised argument of a constant or a parameter), ``array`` (the
            declared result shape, an array) or ``shape`` (the declared result shape).
        kind: parses and prints the value; None for the declared shape, which is parsed already.
        name: the attribute's name in text.
        default: the value if the text omits the attribute, or `REQUIRED`.
        is_in_value: False for an attribute on which the value of an instruction does not depend,
            such as a hint to the compiler.

    >>> import indexing  # registers the ops
    >>> from hlo.ops.op import find_op
    >>> field = find_op("transpose").fields["dimensions"]
    >>> field.role, field.name, field.is_required
    ('attribute', 'dimensions', True)
    """

    role: str
    kind: Kind[Any] | None
    name: str
    default: Any
    is_in_value: bool = True

    @property
    def is_required(self) -> bool:
        """True if the text must contain the value."""
        return isinstance(self.default, Required)


@overload
def attribute(kind: Kind[T], *, name: str = ..., in_value: bool = ...) -> T: ...
@overload
def attribute(kind: Kind[T], default: D, name: str = ..., *, in_value: bool = ...) -> T | D: ...
def attribute(
    kind: Kind[Any], default: Any = REQUIRED, name: str = "", *, in_value: bool = True
) -> Any:
    """Declare a field that is read from the attribute `name`, by default the field's own name.

    With ``in_value=False``, the value of an instruction does not depend on the attribute.

    >>> from hlo.ops.attributes import integer
    >>> from hlo.ops.op import attribute
    >>> field = attribute(integer, default=0, name="axis").metadata["hlo"]
    >>> field.role, field.name, field.default
    ('attribute', 'axis', 0)
    """
    return _field("attribute", kind, default, name, in_value)


@overload
def configured(kind: Kind[T], *, name: str = ...) -> T: ...
@overload
def configured(kind: Kind[T], default: D, name: str = ...) -> T | D: ...
def configured(kind: Kind[Any], default: Any = REQUIRED, name: str = "") -> Any:
    """Declare a field that is read from the entry `name` of a custom call's ``backend_config``.

    The text may be JSON, ``{"axis": 1}``, or an MLIR dictionary, ``{axis = 1 : i64}``.

    >>> from hlo.ops.attributes import integer
    >>> from hlo.ops.op import configured
    >>> field = configured(integer, name="axis").metadata["hlo"]
    >>> field.role, field.name, field.is_required
    ('config', 'axis', True)
    """
    return _field("config", kind, default, name)


def contents(kind: Kind[T]) -> T:
    """Declare a field for the argument of an op: a parameter's number, a constant's value.

    >>> import indexing  # registers the ops
    >>> from hlo.ops.op import find_op
    >>> find_op("parameter").fields["number"].role
    'contents'
    """
    return cast(T, _field("contents", kind, REQUIRED, ""))


def declared(default: Any = REQUIRED, any_shape: bool = False) -> Any:
    """Declare a field for the declared result shape, with `default` if the text omits it.

    The shape must be an array, unless `any_shape` also permits tuples and tokens.

    >>> import indexing  # registers the ops
    >>> from hlo.ops.op import find_op
    >>> {name: field.role for name, field in find_op("iota").fields.items()}
    {'shape': 'array', 'iota_dimension': 'attribute'}
    """
    return _field("shape" if any_shape else "array", None, default, "")


def _field(
    role: str, kind: Kind[Any] | None, default: Any, name: str, in_value: bool = True
) -> Any:
    given = dataclasses.MISSING if isinstance(default, Required) else default
    field = Field(role, kind, name, default, in_value)
    return dataclasses.field(default=given, metadata={"hlo": field})
