"""`Options`: how maps are composed and simplified on the way through a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from indexing.maps.certificate import certified
from indexing.maps.explanation import composition, is_explaining, simplification
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.simplify import composed_and_simplified


class OptionChoices(TypedDict, total=False):
    """The options of a query as keywords; see `Options`."""

    exact: bool
    simplify: bool
    certify: bool


@dataclass(frozen=True, slots=True)
class Options:
    """How maps are composed.

    Attributes:
        exact: return a disjoint union of exact maps instead of one over-approximation (the base of
            a dynamic-update-slice, the padding value of a pad).
        simplify: return the simplest maps, not those that composition makes.
        certify: prove every simplification with ISL; `CertificateError` where that fails.
        keep_multiplicity: reach each element as often as the maps themselves do.
    """

    exact: bool = False
    simplify: bool = True
    certify: bool = False
    keep_multiplicity: bool = False

    def composed(self, first: IndexingMap, second: IndexingMap) -> IndexingMap:
        """``x -> second(first(x))``, simplified as these options say."""
        if self.keep_multiplicity or not self.simplify:
            return self.finished(first.then(second))
        if is_explaining():
            simple = composition(first, second)
            return certified(first.then(second), simple) if self.certify else simple
        if self.certify:
            return self.finished(first.then(second))
        return composed_and_simplified(first, second)

    def finished(self, found: IndexingMap) -> IndexingMap:
        """`found`, simplified as these options say."""
        if not self.simplify:
            return found
        if is_explaining() and not self.keep_multiplicity:
            simple = simplification(found)
            return certified(found, simple) if self.certify else simple
        return found.simplify(self.certify, keep_multiplicity=self.keep_multiplicity)
