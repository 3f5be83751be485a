"""What walks through a program carry: arrays, sets of maps that lead to them, and single steps."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

from hlo.module import Instruction
from hlo.shape import AnyShape, Shape, leaves
from indexing.access import Path, Unknown
from indexing.map import IndexingMap
from indexing.op import every_element
from indexing.simplify import composed_and_simplified

Node: TypeAlias = tuple[Instruction, Path]
"""One array of the program: an instruction's result, or a leaf of a tuple."""

# So many different maps to one array: the program reads it all over.  One map that reads
# everything, with the grade "may", takes their place.
MOST_MAPS = 256


@dataclass(frozen=True, slots=True)
class Options:
    """How maps are composed.

    Attributes:
        exact: disjoint exact pieces where one "may" map is usual.
        simplify: simplify each map.
        certify: prove each simplification with ISL.
    """

    exact: bool = False
    simplify: bool = True
    certify: bool = False

    def composed(self, first: IndexingMap, second: IndexingMap) -> IndexingMap:
        """``x -> second(first(x))``, simplified as these options say."""
        if self.simplify and not self.certify:
            return composed_and_simplified(first, second)
        return self.finished(first.then(second))

    def finished(self, found: IndexingMap) -> IndexingMap:
        """`found`, simplified as these options say."""
        return found.simplify(certify=self.certify) if self.simplify else found


@dataclass(slots=True)
class Maps:
    """The different maps that lead to one array, and why there may be others."""

    maps: dict[IndexingMap, None] = field(default_factory=dict)
    unknown: Unknown | None = None

    def add(self, found: IndexingMap) -> None:
        """Add a map, unless the same relation is there; the better grade stays.

        An empty relation stays only as long as it is the only one: then it says that an access was
        found, and that it reads nothing.
        """
        if self.maps:
            if found in self.maps or found.is_known_empty:
                return
            if next(iter(self.maps)).is_known_empty:
                self.maps.clear()
            for other in self.maps:
                if other.grade != found.grade and other.with_grade(found.grade) == found:
                    if found.grade == "exact":
                        del self.maps[other]
                        break
                    return
        self.maps[found] = None

    def add_composed(
        self,
        firsts: Collection[IndexingMap],
        seconds: Collection[IndexingMap],
        unknown: Unknown | None,
        options: Options,
    ) -> None:
        """Add each first map followed by each second one, and why there may be others."""
        self.unknown = self.unknown or unknown
        for first in firsts:
            for second in seconds:
                self.add(options.composed(first, second))

    def widen(self, source: object, target: object) -> None:
        """Where there are too many maps, put one in their place that needs all of `target`."""
        if len(self.maps) > MOST_MAPS and isinstance(source, Shape) and isinstance(target, Shape):
            self.maps = {every_element(source, target).with_grade("may"): None}


@dataclass(frozen=True, slots=True)
class Step:
    """How one instruction connects one array that it reads with one array that it writes.

    Attributes:
        operand, operand_path: the array that is read: a leaf of this operand.
        output_path: the leaf of the result that is written.
        maps: from output to operand where steps go backward, from operand to output where forward.
        unknown: why the maps cannot be said.
    """

    operand: int
    operand_path: Path
    output_path: Path
    maps: tuple[IndexingMap, ...] = ()
    unknown: Unknown | None = None


def leaf_shape(node: Node) -> AnyShape:
    """The shape of one array of the program."""
    instruction, path = node
    return dict(leaves(instruction.shape))[path] if path else instruction.shape


def identity(node: Node) -> tuple[IndexingMap, ...]:
    """Each element to itself; no map for a leaf without elements, such as a token."""
    shape = leaf_shape(node)
    return (IndexingMap.identity(shape),) if isinstance(shape, Shape) else ()
