"""Names in messages: similar names, and the error for a name that is not defined.

>>> table = ByName("computation", {"main": 1, "fused_computation": 2})
>>> table["fused"]
Traceback (most recent call last):
...
hlo.text.names.UnknownName: no computation named `fused`; did you mean `fused_computation`?
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NoReturn, TypeVar

Value = TypeVar("Value")


class UnknownName(KeyError):
    """A name that nothing has; the text suggests similar names.

    Attributes:
        name: the name.
        kind: the noun for what it should name, such as "instruction".
        known: the defined names.
    """

    def __init__(self, name: object, kind: str = "instruction", known: Iterable[str] = ()) -> None:
        super().__init__(name, kind, tuple(known))

    @property
    def name(self) -> object:
        """The name."""
        return self.args[0]

    def __str__(self) -> str:
        name, kind, known = self.args
        question = did_you_mean(similar(str(name), known))
        return f"no {kind} named `{name}`" + (f"; {question}" if question else "")


class ByName(dict[str, Value]):
    """A dictionary by name, whose `KeyError` suggests similar names.

    Attributes:
        kind: the noun for its values.
    """

    def __init__(self, kind: str, values: Iterable[tuple[str, Value]] | dict[str, Value]) -> None:
        super().__init__(values)
        self.kind = kind

    def __missing__(self, name: object) -> NoReturn:
        raise UnknownName(name, self.kind, self)


def counted_noun(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun in singular or plural.

    >>> counted_noun(1, "error"), counted_noun(1024, "error"), counted_noun(2, "copy", "copies")
    ('1 error', '1,024 errors', '2 copies')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


_NUMBER = re.compile(r"[.\d]+$")
_SHORT, _SHORT_CUTOFF = 4, 0.6
"""Length of a short name, two letters of which may be swapped, and the least similarity to it."""


def similar(name: str, names: Iterable[str], limit: int = 3, cutoff: float = 0.7) -> list[str]:
    """Return the most similar of `names`: those that begin with `name`, contain it, or resemble it.

    Args:
        limit: the maximum number of names.
        cutoff: the least similarity, of `difflib.get_close_matches`.

    >>> similar("conv", ["cosine", "convert", "convolution", "reduce-convert"])
    ['convert', 'convolution']
    >>> similar("wk", ["wq.1", "params_wk.1"]), similar("transposse", ["transpose", "copy"])
    (['params_wk.1'], ['transpose'])
    >>> similar("dto", ["add.1", "dot.7", "ShardToFull"])
    ['dot.7']
    """
    lower = name.lower()
    by_lower = {each.lower(): each for each in dict.fromkeys(names)}
    close = [text for text in by_lower if text.startswith(lower)] if lower else []
    if not close and len(lower) > 1:
        inside = re.compile(rf"(?<![a-z0-9]){re.escape(lower)}")
        close = [text for text in by_lower if inside.search(text)]
    if not close and "/" in lower:  # the same name in another computation
        close = [text for text in by_lower if text.endswith(lower[lower.rindex("/") :])]
    close = close or get_close_matches(lower, by_lower, limit, cutoff)
    if not close and len(lower) <= _SHORT:
        cutoff = min(cutoff, _SHORT_CUTOFF)
        close = get_close_matches(lower, by_lower, limit, cutoff)
    if not close:  # such as `dto` and `dot.7`
        stems = {_NUMBER.sub("", text): text for text in reversed(by_lower)}
        close = [stems[stem] for stem in get_close_matches(lower, stems, limit, cutoff)]
    if not close and len(lower) > 1:
        close = [text for text in by_lower if lower in text]
    return [by_lower[text] for text in close[:limit]]


def did_you_mean(names: Sequence[str]) -> str:
    """Return a question with these names; empty if there are none.

    >>> did_you_mean(["convert", "copy"])
    'did you mean `convert` or `copy`?'
    """
    listed = " or ".join(f"`{each}`" for each in names)
    return f"did you mean {listed}?" if names else ""


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a question with the most similar of `names`; empty if none is similar.

    >>> nearest("dimension", ["dimensions", "slice"])
    'did you mean `dimensions`?'
    """
    return did_you_mean(similar(name, names, 1, cutoff=0.6))
