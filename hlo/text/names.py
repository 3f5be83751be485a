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
    searches = (_beginning, _containing_word, _in_other_computations, _resembling, _containing)
    for search in searches:
        if lower and (close := search(lower, by_lower, limit, cutoff)):
            return [by_lower[text] for text in close[:limit]]
    return []


def _beginning(name: str, known: Iterable[str], *_: float) -> list[str]:
    return [text for text in known if text.startswith(name)]


def _containing_word(name: str, known: Iterable[str], *_: float) -> list[str]:
    inside = re.compile(rf"(?<![a-z0-9]){re.escape(name)}")
    return [text for text in known if inside.search(text)] if len(name) > 1 else []


def _in_other_computations(name: str, known: Iterable[str], *_: float) -> list[str]:
    if "/" not in name:
        return []
    return [text for text in known if text.endswith(name[name.rindex("/") :])]


def _resembling(name: str, known: Iterable[str], limit: int, cutoff: float) -> list[str]:
    """Return names that resemble a name, also without numbers at their ends (`dto`, `dot.7`)."""
    known, place = list(known), name.rfind("/")
    if place >= 0:  # names of one computation resemble each other already
        within = [text for text in known if text.startswith(name[: place + 1])]
        known = within or [text for text in known if "/" not in text]
    cutoffs = [cutoff, min(cutoff, _SHORT_CUTOFF)] if len(name) <= _SHORT else [cutoff]
    for least in cutoffs:
        if close := get_close_matches(name, known, limit, least):
            return close
    stems = {_NUMBER.sub("", text): text for text in reversed(known)}
    return [stems[stem] for stem in get_close_matches(name, stems, limit, cutoffs[-1])]


def _containing(name: str, known: Iterable[str], *_: float) -> list[str]:
    return [text for text in known if name in text] if len(name) > 1 else []


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
