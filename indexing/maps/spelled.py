"""Maps that print expressions as they were given, if their normal forms have no texts as short.

A normal form has one text, which a search makes short.  The search is limited: of some chains of
three and more divisions it finds no text as short as the one from which a map was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from indexing.maps.indexing_map import IndexingMap
from simplifier.linear import Expr
from simplifier.text_cost import text_cost

if TYPE_CHECKING:
    from indexing.methods import Rewrite
    from simplifier.trace import Applied

MIN_DIVISIONS: Final = 2
"""The texts of fewer divisions are as short as any."""


class SpelledMap(IndexingMap):
    """A map with texts of its own for some expressions.

    Attributes:
        given_texts: the texts, each of which parses to its expression.
    """

    __slots__ = ("given_texts",)
    given_texts: Mapping[Expr, str]  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        """Return True for a map of the same structure with the same text."""
        equal = IndexingMap.__eq__(self, other)
        return equal and isinstance(other, SpelledMap) and self.given_texts == other.given_texts

    __hash__ = IndexingMap.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        cls, fields = IndexingMap.__reduce__(self)
        return _restore_map, (cls, fields, self.given_texts)

    def simplify(
        self,
        certify: bool = False,
        trace: list[Rewrite | Applied] | None = None,
        keep_multiplicity: bool = False,
    ) -> IndexingMap:
        simple = IndexingMap.simplify(self, certify, trace, keep_multiplicity)
        return spelled_map(simple, self.given_texts)


def _restore_map(
    cls: type[IndexingMap], fields: tuple[Any, ...], texts: Mapping[Expr, str]
) -> IndexingMap:
    """Return the pickled map."""
    return spelled_map(cls(*fields), texts)


def spelled_map(m: IndexingMap, texts: Mapping[Expr, str]) -> IndexingMap:
    """Return a map that prints its expressions by those of the texts that are cheaper.

    >>> from simplifier.linear import variable
    >>> d0 = variable("d0", 0, 99)
    >>> m = IndexingMap.over((100,), lambda d: [d[0] % 15 % 14])
    >>> spelled_map(m, {m.results[0]: "d0 mod 15 mod 14"}) is m
    True
    """
    expressions = dict.fromkeys([*m.results, *[c.expr for c in m.constraints]])
    cheaper = {
        e: text
        for e in expressions
        if (text := texts.get(e)) is not None and text_cost(text)[:2] < text_cost(str(e))[:2]
    }
    if not cheaper:
        return m
    made = SpelledMap(m.dims, m.ranges, m.runtime, m.results, m.constraints, m.grade)
    object.__setattr__(made, "given_texts", cheaper)
    return made
