"""Ops: one class for each opcode, with its attributes, constraints and shape function.

An op is a frozen value. Its attributes are typed fields, its rules are labelled constraints, and
`infer_shape` is its shape function. ``@op`` makes the class a dataclass, checks that it is
complete, and registers it in `OPS`; it has an example.

A subclass may add more (`indexing.ops.base` adds maps and kernels). `hlo` registers no ops.
"""

from __future__ import annotations

import dataclasses
import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Final, TypeVar, cast, dataclass_transform

from hlo.ops.common_attributes import COMMON_ATTRIBUTES, CONFIG, CUSTOM_CALL_ATTRIBUTES, SIDE_EFFECT
from hlo.ops.config import config_text
from hlo.ops.fields import REQUIRED, Field, attribute, configured, contents, declared
from hlo.ops.operand_types import types_fault, types_sentence
from hlo.ops.protocols import InstructionLike
from hlo.ops.rules import (
    HOLDS,
    MARK,
    Fault,
    OpConstraint,
    constraint,
    count_fault,
    dimensions_fault,
    disjoint_fault,
    mismatch_fault,
    permutation_fault,
)
from hlo.ops.signatures import CALLS, Signature, signature
from hlo.ops.unify import PartialShape, Unranked
from hlo.shapes.shape import AnyShape, Shape
from hlo.text.syntax import CALLEE_ATTRIBUTES

O = TypeVar("O", bound="Op")  # noqa: E741 - an op


OPS: Final[dict[str, type[Op]]] = {}
"""Every registered op by its opcode."""

OPS_BY_TARGET: Final[dict[str, type[Op]]] = {}
"""Every registered op of a custom call by its target; other targets have the op of custom-call."""

CUSTOM_CALL: Final = "custom-call"

DECLARING: Final = ["indexing.ops"]
"""Modules that register ops: imported on the first lookup, if their package is imported."""


_LEGAL: Final = OpConstraint("C0", "the result must have a legal shape", "infer_shape")


# ---------------------------------------------------------------- ops


class OpType(ABCMeta):
    """The type of op classes: an op is an instance of what its class inherits, and nothing else.

    `ABCMeta` also asks all subclasses, and stores the answer of each in weak references.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class Op(metaclass=OpType):
    """An opcode with its attributes, independent of operands.

    Class attributes:
        opcode, samples, fields, constraints: set by ``@op``.
        min_operands, max_operands: limits of the operand count; `max_operands` is None if there
            is no upper limit.
        takes_arrays: True if every operand must be an array, not a tuple or a token.
        runs_called: True if the op passes its operands to its called computation and returns the
            computation's result.
        types: the element type of each operand: a name such as ``pred``, a class such as
            ``integer``, or a variable such as ``T`` or ``T: floating``, which denotes one type in
            all its occurrences; a final ``..`` repeats the last entry. Empty if constraints check
            the types.
        takes_partial: True if constraints and `infer_shape` support unknown sizes.
        has_effect: True if the op has side effects, and runs even if its result is unused.
        acts_as_others: True if some instructions are described by the op of another opcode.
        keeps_layout: True if operands and results of one rank have one layout in a fusion.

    >>> import indexing  # registers the ops
    >>> from hlo.ops.op import find_op
    >>> transpose = find_op("transpose")(dimensions=(1, 0))
    >>> transpose.opcode, transpose.attribute_text(), transpose.infer_shape(Shape("f32", (2, 3)))
    ('transpose', 'dimensions={1,0}', <shape f32[3,2]>)
    >>> [each.label for each in transpose.first_fault([Shape("f32", (2, 3, 5))])]
    ['C2', '2 is missing']
    """

    __slots__ = ()

    opcode: ClassVar[str]
    samples: ClassVar[tuple[str, ...]]
    fields: ClassVar[dict[str, Field]]
    constraints: ClassVar[tuple[OpConstraint, ...]]
    signatures: ClassVar[dict[str, tuple[str, ...]]] = {}
    target: ClassVar[str] = ""
    min_operands: ClassVar[int] = 0
    max_operands: ClassVar[int | None] = None
    takes_arrays: ClassVar[bool] = True
    runs_called: ClassVar[bool] = False
    types: ClassVar[tuple[str, ...]] = ()
    takes_partial: ClassVar[bool] = False
    has_effect: ClassVar[bool] = False
    acts_as_others: ClassVar[bool] = False
    keeps_layout: ClassVar[bool] = False

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        """Return the operand shapes, each refined by the others (`hlo.ops.unify`) and by the op.

        Raises:
            Conflict: the shapes contradict each other.
        """
        return operands

    def infer_unranked(self, *operands: PartialShape) -> PartialShape:
        """Return the partial result shape if the rank of an operand is unknown."""
        return Unranked()

    @classmethod
    def default_shape(cls, instruction: InstructionLike) -> AnyShape | None:
        """Return the result shape to assume if the text omits it.

        An override derives the shape from the called computations or the operands. The default,
        None, requires a result shape in the text.
        """
        return None

    @abstractmethod
    def infer_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result shape for the operands' shapes, one argument each.

        The base has variadic parameters to let every op name its operands.
        """

    def first_fault(self, operands: Sequence[Any]) -> tuple[OpConstraint, Fault] | None:
        """Return the first violated constraint for operands of these shapes, and its fault."""
        if self.types and (fault := types_fault(self.types, operands)):
            return OpConstraint("T", types_sentence(self.types), "types"), fault
        for rule in self.constraints:
            fault = getattr(self, rule.method)(*operands)
            if fault:
                return rule, fault
        try:
            self.infer_shape(*operands)
        except ValueError as error:  # from the constructor of `Shape`
            return _LEGAL, Fault(str(error))
        return None

    @classmethod
    def why_unsupported(cls, instruction: InstructionLike) -> str:
        """Return why the op does not describe an instruction, which is then Unknown; else ""."""
        return ""

    @classmethod
    def opcode_of(cls, instruction: InstructionLike) -> str:
        """Return the opcode whose op describes an instruction; "" for that of this class.

        It is asked only if `acts_as_others`.
        """
        return ""

    def value_attributes(self, instruction: InstructionLike) -> dict[str, Hashable]:
        """Return the attributes of an instruction of this op on which its value depends.

        These are the fields, except those that are declared with ``in_value=False``, and the
        attributes that the op does not declare.  Operands, called computations, the literal and
        shapes are no attributes; an op whose value depends on layouts adds them.
        """
        known = known_attributes(type(self))
        texts = instruction.attributes
        values: dict[str, Hashable] = {
            name: texts[name].normal
            for name in texts
            if name not in known and name not in CALLEE_ATTRIBUTES
        }
        for name, field in self.fields.items():
            is_attribute = field.role in ("attribute", "config")
            if is_attribute and field.is_in_value and field.name not in CALLEE_ATTRIBUTES:
                values[name] = getattr(self, name)
        return values

    def value_text(self, name: str, value: Any) -> str:
        """Return one of the `value_attributes` as HLO text; "" if it is omitted."""
        kind = self.fields[name].kind if name in self.fields else None
        return str(value or "") if kind is None or value is None else kind.print(value)

    def has_side_effect(self, instruction: InstructionLike) -> bool:
        """Return True if an instruction of this op runs even if its result is unused."""
        if self.opcode != CUSTOM_CALL:
            return self.has_effect
        text = instruction.attributes.get(SIDE_EFFECT)
        return self.has_effect or (text is not None and text.normal == "true")

    def attribute_text(self) -> str:
        """Return the attributes as HLO text, without those that have their default value."""
        texts = {"attribute": dict[str, str](), "config": dict[str, str]()}
        if self.target:
            texts["attribute"]["custom_call_target"] = f'"{self.target}"'
        for name, field in self.fields.items():
            if (
                field.role in texts
                and field.kind
                and (value := getattr(self, name)) != field.default
            ):
                texts[field.role][field.name] = field.kind.print(value)
        if texts["config"]:
            texts["attribute"][CONFIG] = config_text(texts["config"])
        return ", ".join([f"{name}={text}" for name, text in texts["attribute"].items()])


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(attribute, configured, contents, declared),
)
def op(opcode: str, *, samples: Sequence[str], target: str = "") -> Callable[[type[O]], type[O]]:
    """Return a decorator that registers a class as the op of `opcode`.

    The decorator makes the class a frozen dataclass and checks that it is complete.

    Args:
        opcode: as in HLO text.
        samples: instructions with the shape of every operand, such as
            ``f32[3,2] transpose(f32[2,3] p), dimensions={1,0}``. Tests use them, so they should be
            small and irregular: primes, different sizes, rank 0, size 1, size 0.
        target: for a custom call, its target.
    Raises:
        TypeError: the class is incomplete, or the opcode is registered already.

    >>> from hlo.ops.attributes import int_list
    >>> @op("example-flip", samples=["f32[2,3] example-flip(f32[2,3] p), dimensions={1}"])
    ... class Flip(Op):
    ...     '''Reverses the order of the elements along `dimensions`.'''
    ...     min_operands = max_operands = 1
    ...     dimensions: tuple[int, ...] = attribute(int_list)
    ...
    ...     @constraint("C1", "dimensions must be dimensions of the operand")
    ...     def in_range(self, operand: Shape) -> Fault:
    ...         bad = [d for d in self.dimensions if d >= operand.rank]
    ...         return Fault(f"{bad[0]} >= rank {operand.rank}", at="dimensions") if bad else HOLDS
    ...
    ...     def infer_shape(self, operand: Shape) -> Shape:
    ...         return operand
    >>> flip = OPS.pop("example-flip")(dimensions=(1,))
    >>> flip, flip.attribute_text()
    (Flip(dimensions=(1,)), 'dimensions={1}')
    >>> flip.first_fault([Shape("f32", (2,))])[1].label
    '1 >= rank 1'
    """

    def register(cls: type[O]) -> type[O]:
        made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        named = f"target {target!r}" if target else f"op {opcode!r}"
        if target and opcode != CUSTOM_CALL:
            raise TypeError(f"{named}: only {CUSTOM_CALL} has targets, not {opcode}")
        if lacks := _lacks(made, samples):
            raise TypeError(f"{named} ({cls.__name__}) lacks {', '.join(lacks)}")
        registry, name = (OPS_BY_TARGET, target) if target else (OPS, opcode)
        taken = registry.get(name)
        if taken and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"{named} is registered already, by {taken.__qualname__}")
        made.opcode, made.samples, made.target = opcode, tuple(samples), target
        made.fields = {
            field.name: _named_field(field.metadata["hlo"], field.name)
            for field in dataclasses.fields(cast(Any, made))
            if "hlo" in field.metadata
        }
        made.constraints = _constraints(made)
        made.signatures = {
            name: called
            for base in reversed(made.__mro__)
            for name, member in vars(base).items()
            if (called := getattr(member, CALLS, None)) is not None
        }
        registry[name] = made
        return made

    return register


def custom_call(target: str, *, samples: Sequence[str]) -> Callable[[type[O]], type[O]]:
    """Return `op` for the custom calls of one target; samples may omit ``custom_call_target``.

    Source: XLA ``docs/custom_call.md``.

    >>> import indexing  # registers the ops
    >>> find_op("custom-call", "TopK").target
    'TopK'
    """
    return op(CUSTOM_CALL, samples=samples, target=target)


def _declare() -> None:
    """Import the modules of `DECLARING` whose packages are imported.

    `hlo` does not import them on its own: without ``import indexing``, no op is registered.
    """
    for name in DECLARING:
        if name not in sys.modules and name.rpartition(".")[0] in sys.modules:
            import_module(name)


def find_op(opcode: str, target: str = "") -> type[Op] | None:
    """Return the op class of an opcode; for a custom call, the class of its target.

    None if not registered.

    >>> import indexing  # registers the ops
    >>> from hlo.ops.op import find_op
    >>> find_op("transpose").__name__, find_op("custom-call", "TopK").__name__, find_op("nothing")
    ('Transpose', 'TopKCall', None)
    """
    if opcode not in OPS:
        _declare()
    return (OPS_BY_TARGET.get(target) if opcode == CUSTOM_CALL else None) or OPS.get(opcode)


def _lacks(cls: type[Op], samples: Sequence[str]) -> list[str]:
    """Return the missing members of a class, as words for an error."""
    unknown = [field.name for field in dataclasses.fields(cast(Any, cls)) if not field.metadata]
    return [
        *(sorted(getattr(cls, "__abstractmethods__", ()))),
        *(["a docstring"] if not semantics(cls) and sys.flags.optimize < 2 else []),
        *(["samples"] if not samples else []),
        *(f"attribute(..), contents(..) or declared() for field {name}" for name in unknown),
    ]


def semantics(cls: type[Op]) -> str:
    """Return the first line of the docstring of an op; empty under ``python -OO``, which drops it.

    `dataclass` generates a docstring where there is none, the signature.
    """
    line = (cls.__doc__ or "").strip().partition("\n")[0]
    return "" if line.startswith(f"{cls.__name__}(") else line


@cache
def known_attributes(cls: type[Op]) -> frozenset[str]:
    """Return the names of the attributes that an instruction of an op may have."""
    names = [field.name for field in cls.fields.values() if field.role == "attribute"]
    return COMMON_ATTRIBUTES.union(names, CUSTOM_CALL_ATTRIBUTES if cls.target else ())


def _named_field(field: Field, name: str) -> Field:
    return dataclasses.replace(field, name=field.name or name)


def _constraints(cls: type[Op]) -> tuple[OpConstraint, ...]:
    """Return the constraints of a class and its bases in definition order, after overriding."""
    rules: dict[str, OpConstraint] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            rule = getattr(member, MARK, None)
            if rule is not None:
                rules[name] = rule
            else:
                rules.pop(name, None)
    return tuple(rules.values())


__all__ = [
    "HOLDS",
    "OPS",
    "OPS_BY_TARGET",
    "REQUIRED",
    "Fault",
    "Field",
    "Op",
    "OpConstraint",
    "Shape",
    "Signature",
    "attribute",
    "configured",
    "constraint",
    "contents",
    "count_fault",
    "custom_call",
    "declared",
    "dimensions_fault",
    "disjoint_fault",
    "find_op",
    "mismatch_fault",
    "op",
    "permutation_fault",
    "signature",
]
