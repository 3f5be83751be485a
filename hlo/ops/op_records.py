"""Records of ops, and the changes of an op that break compatibility with existing modules.

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
['a constraint may be relaxed, not tightened: `axes` is now at least 1']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hlo.ops.op import Field, Op
from hlo.ops.operand_types import CLASSES, REPEATED, split_type

if TYPE_CHECKING:
    from hlo.ops.attributes import Kind

Described = Mapping[str, Any]
"""The record of an op, or a part of it, in the form of JSON."""

TIGHTER = "a constraint may be relaxed, not tightened"


def describe(cls: type[Op]) -> dict[str, Any]:
    """Return the record of an op: operand counts and types, attributes, constraints, samples."""
    attributes = [f for f in cls.fields.values() if f.role in ("attribute", "config") and f.kind]
    return {
        "operands": [cls.min_operands, cls.max_operands],
        "types": list(cls.types),
        "attributes": {field.name: _field_record(field, field.kind) for field in attributes},
        "constraints": {rule.label: rule.sentence for rule in cls.constraints},
        "samples": list(cls.samples),
    }


def _field_record(field: Field, kind: Kind[Any] | None) -> dict[str, Any]:
    assert kind is not None
    described: dict[str, Any] = {"kind": _base(kind.name)}
    if kind.limits:
        described["limits"] = {
            name: list(value) if isinstance(value, tuple) else value for name, value in kind.limits
        }
    if not field.is_required:
        described["default"] = _default(field.default, kind)
    return described


def _default(value: object, kind: Kind[Any]) -> str:
    """Return a default as HLO text; ``none`` if an omitted attribute has no value."""
    return "none" if value is None else kind.print(value) or '""'


def _base(name: str) -> str:
    """Return the name of a kind without its limits."""
    return "one of" if name.startswith("one of ") else name.partition(", ")[0]


def breaks(before: Described, after: Described) -> list[str]:
    """Return the compatibility rules that a change of an op violates, each with the change.

    Attributes stay, with their kind and default. New attributes have a default. Limits, operand
    counts, operand types and constraints may be relaxed, not tightened.
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
    (old_min, old_max), (new_min, new_max) = before, after
    if (new_min or 0) > (old_min or 0):
        yield f"{TIGHTER}: min_operands was {old_min}, is {new_min}"
    if new_max is not None and (old_max is None or new_max < old_max):
        yield f"{TIGHTER}: max_operands was {old_max or 'unlimited'}, is {new_max}"


def _type_breaks(before: list[str], after: list[str]) -> Iterator[str]:
    if after and not before:
        yield f"{TIGHTER}: operand types were unlimited, are {', '.join(after)}"
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        if old == new or REPEATED in (old, new):
            continue
        (variable, was), (now_variable, now) = split_type(old), split_type(new)
        if not _kinds(was) <= _kinds(now) or (now_variable and now_variable != variable):
            yield f"{TIGHTER}: operand {number} was {old}, is {new}"


def _kinds(name: str) -> frozenset[str]:
    return CLASSES.get(name, frozenset({name}))


def _attribute_breaks(before: Described, after: Described) -> Iterator[str]:
    for name, new in after.items():
        if name not in before and "default" not in new:
            yield f"a new attribute must have a default: `{name}` has none"
    for name, old in before.items():
        if name not in after:
            yield f"an attribute must not be removed: `{name}`"
            continue
        new = after[name]
        if old["kind"] != new["kind"]:
            yield f"an attribute must keep its kind: `{name}` was {old['kind']}, is {new['kind']}"
        if "default" in old and old["default"] != new.get("default"):
            now = new.get("default", "missing")
            yield f"an attribute must keep its default: `{name}` was {old['default']}, is {now}"
        yield from _limit_breaks(name, old.get("limits", {}), new.get("limits", {}))


def _limit_breaks(name: str, before: Described, after: Described) -> Iterator[str]:
    for limit, value in after.items():
        old = before.get(limit)
        match limit:
            case "one of":
                lost = [choice for choice in old or [] if choice not in value]
                if old is None or lost:
                    yield f"{TIGHTER}: `{name}` may no longer be {', '.join(lost) or 'any value'}"
            case "at least" if old is None or value > old:
                yield f"{TIGHTER}: `{name}` is now at least {value}"
            case "at most" if old is None or value < old:
                yield f"{TIGHTER}: `{name}` is now at most {value}"
