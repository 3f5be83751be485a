"""`Options`: options for the composition and simplification of maps."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from indexing import methods
from indexing.maps.explanation import composition, is_explaining, simplification
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.simplify import compose_and_simplify, simplify_map


class OptionChoices(TypedDict, total=False):
    """The options of a query as keywords; see `Options`."""

    exact: bool
    simplify: bool
    certify: bool
    masks: bool
    assume: Sequence[str]


@dataclass(frozen=True, slots=True)
class Options:
    """Options for the composition of maps.

    Attributes:
        exact: return a disjoint union of exact maps instead of one over-approximation (the base of
            a dynamic-update-slice, the padding value of a pad).
        simplify: simplify composed maps.
        certify: prove every simplification with ISL; raise `CertificateError` if a proof fails.
        masks: leave out elements that a mask makes unneeded.  A program that computes every element
            of a mask may load them.
        runtime_masks: leave out elements under masks of runtime values, too.
        in_loop: keep the maps of one iteration apart: the loop joins those of all iterations.
        keep_multiplicity: keep the number of times that each element is reached, also under masks.
        assume: names of assumptions (`indexing.maps.assumptions`): leave out elements that are not
            needed under them.  Maps that need them have the names as `assumptions`.
    """

    exact: bool = False
    simplify: bool = True
    certify: bool = False
    masks: bool = True
    runtime_masks: bool = True
    in_loop: bool = False
    keep_multiplicity: bool = False
    assume: Sequence[str] = ()

    def __reduce__(self) -> tuple[type[Options], tuple[object, ...]]:
        """Pickle as a call: no state can be set in a frozen dataclass that is compiled."""
        return Options, (
            *(self.exact, self.simplify, self.certify, self.masks, self.runtime_masks),
            *(self.in_loop, self.keep_multiplicity, self.assume),
        )

    @property
    def sharing_key(self) -> Hashable | None:
        """Options of which equal ones give equal maps; None if maps are proved or traced.

        Proofs and steps are recorded where they are made.
        """
        if self.certify or is_explaining():
            return None
        return self.exact, self.simplify, self.keep_multiplicity

    @property
    def inside_loops(self) -> Options:
        """The options for the body of a loop."""
        return Options(
            exact=True,
            masks=self.follows_masks,
            runtime_masks=self.runtime_masks,
            in_loop=True,
        )

    @property
    def follows_masks(self) -> bool:
        """True if elements that a mask makes unneeded are left out."""
        return self.masks and not self.keep_multiplicity

    @property
    def follows_runtime_masks(self) -> bool:
        """True if elements that a mask of runtime values makes unneeded are left out."""
        return self.follows_masks and self.runtime_masks

    def compose_maps(self, first: IndexingMap, second: IndexingMap) -> IndexingMap:
        """Return ``x -> second(first(x))``, simplified according to the options."""
        if self.keep_multiplicity or not self.simplify:
            return self.simplify_map(first.then(second))
        if is_explaining():
            simple = composition(first, second)
            return methods.certify_map(first.then(second), simple) if self.certify else simple
        if self.certify:
            return self.simplify_map(first.then(second))
        return compose_and_simplify(first, second)

    def simplify_map(self, indexing_map: IndexingMap) -> IndexingMap:
        """Return `indexing_map`, simplified according to the options."""
        if not self.simplify:
            return indexing_map
        if is_explaining() and not self.keep_multiplicity:
            simple = simplification(indexing_map)
        else:
            simple = simplify_map(indexing_map, self.keep_multiplicity)
        return methods.certify_map(indexing_map, simple) if self.certify else simple
