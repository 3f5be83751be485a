"""What an op promises to the modules that use it, and which changes break such a promise.

>>> from hlo.ops.attributes import at_least, int_list
>>> from hlo.ops.op import Op, attribute, op, OPS
>>> def fold(**more):
...     @op("example-fold", samples=["f32[2] example-fold(f32[2] p), axes={0}"])
...     class Fold(Op):
...         '''Folds dimensions.'''
...         min_operands, max_operands = more.get("operands", (1, 1))
...         axes: tuple[int, ...] = attribute(more.get("kind", int_list))
...         def infer_shape(self, operand):
...             return operand
...     return describe(OPS.pop("example-fold"))
>>> breaks(fold(), fold(operands=(1, None)))
[]
>>> breaks(fold(), fold(kind=at_least(int_list, 1)))
['a constraint may be loosened, not tightened: `axes` is now at least 1']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hlo.ops.op import Field, Op
from hlo.ops.operand_types import CLASSES, REPEATED, split_type

if TYPE_CHECKING:
    from hlo.ops.attributes import Kind

Described = Mapping[str, Any]
"""A signature as JSON has it."""

TIGHTER = "a constraint may be loosened, not tightened"


def describe(cls: type[Op]) -> dict[str, Any]:
    """The signature of an op: operands, attributes with defaults and limits, rules, samples."""
    attributes = [f for f in cls.fields.values() if f.role in ("attribute", "config") and f.kind]
    return {
        "operands": [cls.min_operands, cls.max_operands],
        "types": list(cls.types),
        "attributes": {field.name: _described(field, field.kind) for field in attributes},
        "constraints": {rule.label: rule.sentence for rule in cls.constraints},
        "samples": list(cls.samples),
    }


def _described(field: Field, kind: Kind[Any] | None) -> dict[str, Any]:
    assert kind is not None
    found: dict[str, Any] = {"kind": _base(kind.name)}
    if kind.limits:
        found["limits"] = {
            name: list(value) if isinstance(value, tuple) else value for name, value in kind.limits
        }
    if not field.is_required:
        found["default"] = repr(field.default)
    return found


def _base(name: str) -> str:
    """What a kind is called without its limits."""
    return "one of" if name.startswith("one of ") else name.partition(", ")[0]


def breaks(before: Described, after: Described) -> list[str]:
    """The rules that a change of an op breaks, each with what has changed; none if it is harmless.

    The rules: attributes stay, with their kind and default; new ones have a default; limits,
    operand counts, operand types and constraints may be loosened, not tightened.
    """
    return [
        *_operand_breaks(before["operands"], after["operands"]),
        *_type_breaks(before["types"], after["types"]),
        *_attribute_breaks(before["attributes"], after["attributes"]),
        *(
            f"{TIGHTER}: {label} is new ({sentence})"
            for label, sentence in after["constraints"].items()
            if label not in before["constraints"]
        ),
    ]


def _operand_breaks(before: list[int | None], after: list[int | None]) -> Iterator[str]:
    (least, most), (now_least, now_most) = before, after
    if (now_least or 0) > (least or 0):
        yield f"{TIGHTER}: at least {now_least} operands are needed now, {least} before"
    if now_most is not None and (most is None or now_most < most):
        yield f"{TIGHTER}: at most {now_most} operands are taken now, {most or 'any number'} before"


def _type_breaks(before: list[str], after: list[str]) -> Iterator[str]:
    if after and not before:
        yield f"{TIGHTER}: the operands have to be {', '.join(after)} now"
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        if old == new or REPEATED in (old, new):
            continue
        (variable, was), (now_variable, now) = split_type(old), split_type(new)
        if not _kinds(was) <= _kinds(now) or (now_variable and now_variable != variable):
            yield f"{TIGHTER}: operand {number} was {old}, and is {new} now"


def _kinds(name: str) -> frozenset[str]:
    return CLASSES.get(name, frozenset({name}))


def _attribute_breaks(before: Described, after: Described) -> Iterator[str]:
    for name, new in after.items():
        if name not in before and "default" not in new:
            yield f"a new attribute needs a default: `{name}` has none"
    for name, old in before.items():
        if name not in after:
            yield f"an attribute stays: `{name}` is gone"
            continue
        new = after[name]
        if old["kind"] != new["kind"]:
            yield f"an attribute keeps its kind: `{name}` was {old['kind']}, is {new['kind']}"
        if "default" in old and old["default"] != new.get("default"):
            now = new.get("default", "missing")
            yield f"a default stays what it is: `{name}` was {old['default']}, is {now}"
        yield from _limit_breaks(name, old.get("limits", {}), new.get("limits", {}))


def _limit_breaks(name: str, before: Described, after: Described) -> Iterator[str]:
    for limit, value in after.items():
        old = before.get(limit)
        match limit:
            case "one of":
                lost = [choice for choice in old or [] if choice not in value]
                if old is None or lost:
                    yield f"{TIGHTER}: `{name}` may no longer be {', '.join(lost) or 'anything'}"
            case "at least" if old is None or value > old:
                yield f"{TIGHTER}: `{name}` is now at least {value}"
            case "at most" if old is None or value < old:
                yield f"{TIGHTER}: `{name}` is now at most {value}"
