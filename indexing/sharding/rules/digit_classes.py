"""Classes of equal digits: the common refinement of the dimensions of an instruction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from indexing.sharding.rules.digits import DigitLink, IndexDigit


class DigitClasses:
    """Dimensions, each divided into digits, and the classes of digits that links make equal.

    Attributes:
        digits: for each dimension, its digits, minor to major; ``()`` for size 0 and 1.
        linked: the digits that are in a link.

    >>> whole = DigitLink(IndexDigit(0, 1, 8), IndexDigit(1, 1, 8))
    >>> major = DigitLink(IndexDigit(2, 1, 4), IndexDigit(1, 2, 4))
    >>> classes = DigitClasses([8, 8, 4], [whole, major])
    >>> classes.digits[0], classes.of(IndexDigit(2, 1, 4)) == classes.of(IndexDigit(0, 2, 4))
    ((IndexDigit(dim=0, stride=1, size=2), IndexDigit(dim=0, stride=2, size=4)), True)
    """

    def __init__(self, sizes: Sequence[int], links: Iterable[DigitLink]) -> None:
        """Divide the dimensions; a link whose cuts do not divide earlier ones is left out."""
        kept: list[DigitLink] = []
        cuts = [{1, size} for size in sizes]
        for link in links:
            refined = _refine_cuts(cuts, [*kept, link])
            if refined is not None:
                cuts = refined
                kept.append(link)
        self.links = kept
        self.digits = [
            tuple([IndexDigit(dim, low, high // low) for low, high in _steps(values)])
            for dim, values in enumerate(cuts)
        ]
        self._parent: dict[IndexDigit, IndexDigit] = {
            d: d for digits in self.digits for d in digits
        }
        self.linked: set[IndexDigit] = set()
        for link in kept:
            pairs = zip(self.inside(link.operand), self.inside(link.root), strict=True)
            for operand, root in pairs:
                self.linked |= {operand, root}
                self._parent[self.of(operand)] = self.of(root)

    def inside(self, digit: IndexDigit) -> list[IndexDigit]:
        """Return the digits of the dimension of which `digit` consists."""
        low, high = digit.stride, digit.stride * digit.size
        return [d for d in self.digits[digit.dim] if low <= d.stride < high]

    def members(self, digit: IndexDigit) -> list[IndexDigit]:
        """Return the digits of the class of a digit that is in a link."""
        first = self.of(digit)
        return [d for d in sorted(self.linked) if self.of(d) == first]

    def of(self, digit: IndexDigit) -> IndexDigit:
        """Return the representative of the class of a digit."""
        while self._parent[digit] != digit:
            digit = self._parent[digit]
        return digit


def _steps(cuts: set[int]) -> list[tuple[int, int]]:
    """Return the pairs of consecutive cuts."""
    ordered = sorted(cuts - {0})
    return list(pairwise(ordered))


def _refine_cuts(cuts: Sequence[set[int]], links: Sequence[DigitLink]) -> list[set[int]] | None:
    """Return the cuts that the links carry to other dimensions; None if some do not divide."""
    refined = [set(values) for values in cuts]
    for link in links:
        for digit in link:
            refined[digit.dim] |= {digit.stride, digit.stride * digit.size}
    pending = True
    while pending:
        pending = False
        for link in links:
            for here, there in (link, link[::-1]):
                low, high = here.stride, here.stride * here.size
                inner = [cut for cut in refined[here.dim] if low < cut < high]
                if any(cut % low for cut in inner):
                    return None
                carried = {cut // low * there.stride for cut in inner}
                pending |= not carried <= refined[there.dim]
                refined[there.dim] |= carried
    divides = all(high % low == 0 for values in refined for low, high in _steps(values))
    return refined if divides else None
