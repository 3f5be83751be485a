"""Signatures of the computations that an op calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from hlo.shapes.shape import AnyShape, Shape, TupleShape

Method = TypeVar("Method", bound=Callable[..., Any])

CALLS: Final = "__calls__"
"""The attribute of a method that `signature` marks."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameter shapes and the result shape of a called computation; None: any result.

    >>> import hlo
    >>> from hlo.ops.op import Signature
    >>> total, value = hlo.parse_shape("f32[]"), hlo.parse_shape("s32[]")
    >>> Signature.reducer([total], [value]) == Signature((total, value), total)
    True
    """

    parameters: tuple[AnyShape, ...]
    result: AnyShape | None = None

    @classmethod
    def reducer(cls, totals: Iterable[Shape], values: Iterable[Shape]) -> Signature:
        """Return the signature of a reducer: scalars of the totals and of the values to new totals.

        >>> print(Signature.reducer([Shape("f32", ())], [Shape("bf16", (2, 3))]))
        (f32[], bf16[]) -> f32[]
        """
        scalars = tuple([shape.with_dims(()) for shape in totals])
        added = tuple([shape.with_dims(()) for shape in values])
        return cls((*scalars, *added), scalars[0] if len(scalars) == 1 else TupleShape(scalars))

    def __str__(self) -> str:
        result = "" if self.result is None else f" -> {self.result}"
        return f"({', '.join(map(str, self.parameters))}){result}"


def signature(*attributes: str) -> Callable[[Method], Method]:
    """Mark a method that returns the signature of the computations named by `attributes`.

    The method takes the operand shapes. It may return a list with one signature for each
    computation. `hlo.verify` compares the computations with their signatures.

    >>> import indexing  # registers the ops
    >>> from hlo.ops.op import find_op
    >>> find_op("map").signatures
    {'applies': ('to_apply',)}
    """

    def mark(method: Method) -> Method:
        setattr(method, CALLS, attributes)
        return method

    return mark
