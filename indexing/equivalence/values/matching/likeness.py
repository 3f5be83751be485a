"""Which operands of two terms face each other in a comparison: those that are most alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import product
from typing import Final

from indexing.equivalence.values.terms.terms import Formula

MAX_PAIRED: Final = 6
"""Limit on the operands of a commutative function that are compared in all pairs."""
MAX_QUICKLY_PAIRED: Final = 32
"""The same limit for comparisons that end at once for most unequal terms."""


def by_likeness(
    ours: Sequence[Formula], theirs: Sequence[Formula]
) -> tuple[list[Formula], list[Formula]]:
    """Return both lists in an order in which terms of one kind and function face each other."""
    waiting, paired, alone = list(theirs), [], []
    for a in ours:
        like = next((b for b in waiting if (a.kind, a.head) == (b.kind, b.head)), None)
        if like is None:
            alone.append(a)
        else:
            waiting.remove(like)
            paired.append((a, like))
    return [a for a, _ in paired] + alone, [b for _, b in paired] + waiting


def most_alike(
    ours: Sequence[Formula], theirs: Sequence[Formula]
) -> tuple[list[Formula], list[Formula]]:
    """Return both lists in an order in which the terms that are most alike face each other."""
    if len(ours) == len(theirs) == 1:
        return list(ours), list(theirs)
    places = list(product(range(len(ours)), range(len(theirs))))
    places.sort(key=lambda at: _likeness(ours[at[0]], theirs[at[1]]), reverse=True)
    chosen: dict[int, int] = {}
    for k, m in places:
        if k not in chosen and m not in chosen.values():
            chosen[k] = m
    return [ours[k] for k in chosen], [theirs[m] for m in chosen.values()]


def _likeness(before: Formula, after: Formula) -> tuple[int, ...]:
    """Return how much two terms have in common; a larger tuple is more."""
    one, other = (t if t.array is None else t.array for t in (before, after))
    opcodes = [t.head[0] if isinstance(t.head, tuple) and t.head else t.head for t in (one, other)]
    return (
        before.kind == after.kind and before.type == after.type and one.kind == other.kind,
        opcodes[0] == opcodes[1],
        one.head == other.head,
        sum(a is b for a, b in zip(one.arguments, other.arguments, strict=False)),
        len(attributes_in(before).items() & attributes_in(after).items()),
        before.index == after.index,
    )


def attributes_in(term: Formula) -> dict[str, Hashable]:
    """Return the attributes of a function or an opaque array: they follow the opcode."""
    array = term if term.array is None else term.array
    if array.kind not in ("apply", "opaque") or array.head[0] == "sum":
        return {}
    given = next((part for part in array.head if isinstance(part, tuple)), ())
    pairs = [each for each in given if isinstance(each, tuple) and len(each) == 2]
    is_named = len(pairs) == len(given) and all(isinstance(name, str) for name, _ in pairs)
    return dict(pairs) if is_named else {}


def facing(before: Formula, after: Formula) -> list[tuple[Formula, Formula]]:
    """Return the pairs of subterms of one kind and function that a comparison may descend to."""
    if before.kind != after.kind or before.type != after.type:
        return []
    parts = [
        term.children + (term.array.children if term.array is not None else ())
        for term in (before, after)
    ]
    if max(map(len, parts)) > MAX_PAIRED:
        pairs = list(zip(*parts, strict=False))
    else:
        pairs = list(product(*parts))
    return [(a, b) for a, b in pairs if a is not b and (a.kind, a.head) == (b.kind, b.head)]
