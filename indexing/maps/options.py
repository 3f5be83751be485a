"""`Options`: how maps are composed and simplified on the way through a program."""

from __future__ import annotations

from dataclasses import dataclass

from indexing.maps.certificate import certified
from indexing.maps.explanation import composition, is_explaining, simplification
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.simplify import composed_and_simplified


@dataclass(frozen=True, slots=True)
class Options:
    """How maps are composed.

    Attributes:
        exact: disjoint exact pieces where one "may" map is usual.
        simplify: simplify each map.
        certify: prove each simplification with ISL.
        keep_multiplicity: reach each element as often as the maps themselves do.
    """

    exact: bool = False
    simplify: bool = True
    certify: bool = False
    keep_multiplicity: bool = False

    def composed(self, first: IndexingMap, second: IndexingMap) -> IndexingMap:
        """``x -> second(first(x))``, simplified as these options say."""
        if self.keep_multiplicity:
            return self.finished(first.then(second))
        if self.simplify and is_explaining():
            simple = composition(first, second)
            return certified(first.then(second), simple) if self.certify else simple
        if self.simplify and not self.certify:
            return composed_and_simplified(first, second)
        return self.finished(first.then(second))

    def finished(self, found: IndexingMap) -> IndexingMap:
        """`found`, simplified as these options say."""
        if not self.simplify:
            return found
        if is_explaining() and not self.keep_multiplicity:
            simple = simplification(found)
            return certified(found, simple) if self.certify else simple
        return found.simplify(self.certify, keep_multiplicity=self.keep_multiplicity)
