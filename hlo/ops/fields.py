"""How the class of an op declares where the values of its fields stand in an instruction's text."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast, overload

from hlo.ops.kinds import Kind

T = TypeVar("T")
D = TypeVar("D")


class Required:
    """The default of an attribute that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = Required()


@dataclass(frozen=True, slots=True)
class Field:
    """Where in an instruction's text the value of an op's field stands.

    Attributes:
        role: ``attribute`` (``name=value``), ``config`` (an entry of ``backend_config={..}``),
            ``contents`` (what is in the parentheses of a constant or a parameter), ``array`` (the
            declared result shape, an array) or ``shape`` (any).
        kind: reads and prints the value; None for the declared shape, which is read already.
        name: the attribute's name in text.
        default: the value where the text has none, or `REQUIRED`.
    """

    role: str
    kind: Kind[Any] | None
    name: str
    default: Any

    @property
    def is_required(self) -> bool:
        """Whether the text has to say it."""
        return isinstance(self.default, Required)


@overload
def attribute(kind: Kind[T], *, name: str = ...) -> T: ...
@overload
def attribute(kind: Kind[T], default: D, name: str = ...) -> T | D: ...
def attribute(kind: Kind[Any], default: Any = REQUIRED, name: str = "") -> Any:
    """A field read from the attribute `name`, by default the field's own name."""
    return _field("attribute", kind, default, name)


@overload
def configured(kind: Kind[T], *, name: str = ...) -> T: ...
@overload
def configured(kind: Kind[T], default: D, name: str = ...) -> T | D: ...
def configured(kind: Kind[Any], default: Any = REQUIRED, name: str = "") -> Any:
    """A field read from the entry `name` of ``backend_config``: an attribute of a custom call.

    The text may be JSON, ``{"axis": 1}``, or an MLIR dictionary, ``{axis = 1 : i64}``.
    """
    return _field("config", kind, default, name)


def contents(kind: Kind[T]) -> T:
    """A field read from the parentheses: the number of a parameter, the value of a constant."""
    return cast(T, _field("contents", kind, REQUIRED, ""))


def declared(default: Any = REQUIRED, any_shape: bool = False) -> Any:
    """A field that is the declared result shape; `default` where the text has none.

    It is an array's, unless `any_shape` says that it may be a tuple's or a token's too.
    """
    return _field("shape" if any_shape else "array", None, default, "")


def _field(role: str, kind: Kind[Any] | None, default: Any, name: str) -> Any:
    given = dataclasses.MISSING if isinstance(default, Required) else default
    return dataclasses.field(default=given, metadata={"hlo": Field(role, kind, name, default)})
