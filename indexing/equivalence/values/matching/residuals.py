"""Words for the smallest pair of subterms that is not proved equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.ops.op import Op
from indexing.equivalence.values.laws.algebra import COMMUTATIVE
from indexing.equivalence.values.matching.likeness import attributes_in
from indexing.equivalence.values.matching.matching import MAX_COMPARED, MAX_NESTED, UnequalTerms
from indexing.equivalence.values.terms.terms import Formula, text_of

MAX_VALUE: Final = 60
"""Limit on the characters of an attribute's value in a reason."""

_NAMES: Final = {
    "constant": "a constant",
    "index": "a value of indices",
    "choose": "a choice by an index",
    "symbol": "a parameter",
    "table": "a constant array",
    "let": "an array",
}


Sources: TypeAlias = tuple[Instruction | None, Instruction | None]
"""The instructions that compute two opaque arrays, if they are known."""


def reason_of(pair: UnequalTerms, sources: Sources = (None, None)) -> str:
    """Return the difference of two subterms in words, with the instructions of opaque arrays.

    >>> import hlo, indexing
    >>> text = '''ENTRY e { p = f32[4] parameter(0)
    ...   ROOT r = f32[4] custom-call(p), custom_call_target="%s" }'''
    >>> print(indexing.equivalent(hlo.parse(text % "f"), hlo.parse(text % "g")))
    undecided: the formulas differ: `custom-call` has custom_call_target f before, g after \
(`r` before, `r` after)
    """
    before, after = pair.before, pair.after
    if pair.difference == "budget":
        limits = f"{MAX_COMPARED} pairs of terms are compared, or {MAX_NESTED} of them nested"
        return f"budget: more than {limits}"
    difference = _difference(pair, before, after, sources)
    return f"the formulas differ: {difference}{_instructions(sources)}"


def _instructions(sources: Sources) -> str:
    """Return the names of the instructions as text."""
    sides = zip(sources, ("before", "after"), strict=True)
    names = [f"`{each.name}` {side}" for each, side in sides if each is not None]
    return f" ({', '.join(names)})" if names else ""


def _difference(pair: UnequalTerms, before: Formula, after: Formula, sources: Sources) -> str:
    names = _kind_of_term(before), _kind_of_term(after)
    if before.type != after.type:
        return f"{names[0]} of type {before.type} before, {names[1]} of type {after.type} after"
    if names[0] != names[1]:
        return f"{names[0]} before, {names[1]} after"
    match pair.difference:
        case "constant":
            return f"{before} before, {after} after"
        case "index":
            return f"{names[0]} is read at indices that are not proved equal"
        case "array" if _sizes(before) != _sizes(after):
            sizes = _sizes(before), _sizes(after)
            return f"{names[0]} has the sizes {sizes[0]} before, {sizes[1]} after"
    counts = len(_parts(before)), len(_parts(after))
    if counts[0] != counts[1]:
        return f"{names[0]} of {counts[0]} operands before, of {counts[1]} after"
    if _array(before).kind == "fold":
        return f"{names[0]} has other ranges or conditions after"
    return f"{names[0]} {_other_attribute(before, after, sources)}"


def _other_attribute(before: Formula, after: Formula, sources: Sources) -> str:
    """Return the first attribute in which the heads of two functions or arrays differ."""
    ops = [None if each is None else each.op for each in sources]
    changed = changed_attribute(attributes_in(before), attributes_in(after), *ops)
    if changed:
        return f"has {changed}"
    if _array(before).kind != "opaque" or _array(before).head[-1] == _array(after).head[-1]:
        return "has other sizes or computations after"
    is_constant = _array(before).head[0] == "constant"
    return "has values that are not known" if is_constant else "may have another value each time"


def changed_attribute(
    before: Mapping[str, object],
    after: Mapping[str, object],
    op_before: Op | None = None,
    op_after: Op | None = None,
) -> str:
    """Return the first attribute that differs, with both values; an empty text if none does.

    Args:
        op_before, op_after: the ops of the attributes, which print their values.

    >>> changed_attribute({"index": 1}, {"index": 2, "kind": "a"})
    'index 1 before, 2 after'
    """
    for name in sorted({**before, **after}):
        if before.get(name) != after.get(name):
            sides = ((before, op_before), (after, op_after))
            texts = [_value_text(each.get(name, ""), name, op) or "none" for each, op in sides]
            one, other = _around_the_difference(*texts)
            return f"{name} {one} before, {other} after"
    return ""


def _value_text(value: object, name: str, op: Op | None) -> str:
    """Return the value of an attribute as in HLO text."""
    if op is None or isinstance(value, str):
        return str(value)
    return op.value_text(name, value)


def _around_the_difference(before: str, after: str) -> Iterator[str]:
    """Yield the parts of two long texts around their first difference.

    >>> [len(text) for text in _around_the_difference("a" * 99 + "b", "a" * 99 + "c")]
    [32, 32]
    """
    pairs = enumerate(zip(before, after, strict=False))
    first = next((k for k, (one, other) in pairs if one != other), min(len(before), len(after)))
    start = max(0, first - MAX_VALUE // 2)
    for text in (before, after):
        if len(text) <= MAX_VALUE:
            yield text
        else:
            end = start + MAX_VALUE
            yield f"{'…' * (start > 0)}{text[start:end]}{'…' * (end < len(text))}"


def texts_of(pair: UnequalTerms) -> tuple[str, str]:
    """Return both subterms as text; operands that a commutative function shares are left out."""
    before, after = pair.before, pair.after
    texts = str(before), str(after)
    if before.kind == after.kind == "apply" and before.head == after.head:
        return texts
    if before.kind == after.kind == "apply" and before.head[0] == after.head[0] != "sum":
        opcode = before.head[0]
        shared = [term for term in before.arguments if term in after.arguments]
        if opcode in COMMUTATIVE and shared:
            own = [
                [text_of(term) for term in each.arguments if term not in shared] + ["…"]
                for each in (before, after)
            ]
            return f"{opcode}({', '.join(own[0])})", f"{opcode}({', '.join(own[1])})"
    return texts


def _array(term: Formula) -> Formula:
    return term.array if term.array is not None else term


def _kind_of_term(term: Formula) -> str:
    array = _array(term)
    match array.kind:
        case "apply":
            return f"`{array.head[0]}`"
        case "fold":
            combiner = array.head[0].removeprefix("reduce").strip()
            return f"a reduction by `{combiner}`" if combiner else "a reduction"
        case "opaque":
            return f"`{array.head[0]}`"
        case "symbol":
            return text_of(array)
    return _NAMES[array.kind]


def _sizes(term: Formula) -> list[int]:
    return list(_array(term).dims)


def _parts(term: Formula) -> tuple[Formula, ...]:
    return _array(term).arguments
