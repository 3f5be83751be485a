"""The axes of an instruction, and the reads that relate them.

An axis is a dimension of an operand or of a result, or a range variable over which a result is
reduced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from hlo.shapes.shape import OpaqueShape, Shape
from indexing.sharding.rules.array_reads import ArrayRead, ResultReads
from indexing.sharding.rules.digits import DigitLink, IndexDigit, links_of
from simplifier.atoms import Variable
from simplifier.linear import Expr

Roots: TypeAlias = dict[Variable, tuple[int, int]]


class AxisName(NamedTuple):
    """The name of an axis: of an operand, of a result, or of the steps of a result's reduction."""

    space: Literal["operand", "result", "steps"]
    array: int
    name: int | str

    def __str__(self) -> str:
        return f"{self.space} {self.array} dimension {self.name}"


class AxisRead(NamedTuple):
    """The index of a read along one axis of an operand.

    Attributes:
        expr: the index.
        read: the read of the array.
        roots: for each variable of which digits may be factors, its axis and the size of the axis.
        result: the result that needs the elements.
    """

    expr: Expr
    read: ArrayRead
    roots: Roots
    result: ResultReads


class Axes:
    """The axes of an instruction, numbered.

    Attributes:
        names: the name of each axis.
        sizes: the size of each axis.
        operands: the axes of each array of the operands.
        outputs: the axes of each array of the result.
        shapes: the shapes of the arrays of the operands.
        results: the reads of each array of the result.
        unknown: the arrays of the operands of which some maps are unknown.
        dynamic: the axes whose size is known only at run time.
        reads: for each axis of an operand, the indices at which it is read.
    """

    def __init__(
        self,
        operands: Sequence[Shape | OpaqueShape],
        outputs: Sequence[Shape | OpaqueShape],
        results: Sequence[ResultReads],
    ) -> None:
        self.shapes, self.results = operands, results
        self.names: list[AxisName] = []
        self.sizes: list[int] = []
        self.dynamic: set[int] = set()
        self._steps: dict[AxisName, int] = {}
        self.operands = [self._array("operand", k, shape) for k, shape in enumerate(operands)]
        self.outputs = [self._array("result", k, shape) for k, shape in enumerate(outputs)]
        self.unknown = {operand for result in results for operand, _ in result.unknown}
        self._located = [
            (number, read, self._roots(number, read))
            for number, result in enumerate(results)
            for read in result.reads
        ]
        self.reads: dict[int, list[AxisRead]] = defaultdict(list)
        for number, read, roots in self._located:
            for axis, expr in zip(self.operands[read.operand], read.indices, strict=True):
                self.reads[axis].append(AxisRead(expr, read, roots, results[number]))

    def _array(
        self, space: Literal["operand", "result"], number: int, shape: Shape | OpaqueShape
    ) -> list[int]:
        if not isinstance(shape, Shape):
            return []
        axes = [self._new(AxisName(space, number, k), n) for k, n in enumerate(shape.dims)]
        if shape.is_dynamic:
            pairs = zip(axes, shape.dynamic, strict=True)
            self.dynamic |= {axis for axis, is_dynamic in pairs if is_dynamic}
        return axes

    def _new(self, name: AxisName, size: int) -> int:
        self.names.append(name)
        self.sizes.append(size)
        return len(self.names) - 1

    def _roots(self, number: int, read: ArrayRead) -> Roots:
        """Return the axis of each variable of a read whose digits may be factors."""
        axes = dict(zip(read.dims, self.outputs[number], strict=True))
        for step in read.steps:
            if self.results[number].has_all_steps(step):
                name = AxisName("steps", number, step.name)
                if name not in self._steps:
                    self._steps[name] = self._new(name, step.upper + 1)
                axes[step] = self._steps[name]
        return {variable: (axis, self.sizes[axis]) for variable, axis in axes.items()}

    def dims_behind(self, axis: int) -> set[int]:
        """Return the dimensions of results on which the index along an operand's axis depends."""
        return {
            each.roots[v][0]
            for each in self.reads.get(axis, ())
            for v in each.expr.variables()
            if v in each.roots and self.names[each.roots[v][0]].space == "result"
        }

    def is_constrained(self, axis: int) -> bool:
        """Return True if a result's dimension decides whether an operand is read."""
        return any(
            v in read.constrained or v.upper - v.lower + 1 < self.sizes[axis]
            for _, read, roots in self._located
            for v, (root, _) in roots.items()
            if root == axis
        )

    # ------------------------------------------------------------ links

    def links(self) -> Iterator[DigitLink]:
        """Yield the links of digits that hold in all reads of an operand."""
        links: dict[int, list[list[DigitLink]]] = defaultdict(list)
        for _, read, roots in self._located:
            for axis, those in self._links_of_read(read, roots):
                links[axis].append(those)
        for operand in self.unknown:
            for axis in self.operands[operand]:
                links[axis].append([])
        for each in links.values():
            yield from self._agreed_links(each)
        yield from self._links_of_unread()

    def _links_of_read(
        self, read: ArrayRead, roots: Roots
    ) -> Iterator[tuple[int, list[DigitLink]]]:
        """Yield each axis of the array that is read, and its links: a root in one axis only."""
        used: set[tuple[int, int]] = set()
        total = {
            v
            for v, (_, size) in roots.items()
            if v.lower == 0 and v.upper == size - 1 and v not in read.constrained
        }
        axes = self.operands[read.operand]
        for axis, expr in zip(reversed(axes), reversed(read.indices), strict=True):
            if self.sizes[axis] > 1:
                links = [
                    link
                    for link in links_of(expr, axis, self.sizes[axis], roots, total)
                    if link.root[:2] not in used
                    and not self.dynamic & {link.root.axis, link.operand.axis}
                ]
                used |= {link.root[:2] for link in links}
                yield axis, links

    def _links_of_unread(self) -> Iterator[DigitLink]:
        """Yield links of operands that are not read: there, every link holds."""
        for number, axes in enumerate(self.operands):
            is_unread = number not in self.unknown and not any(axis in self.reads for axis in axes)
            if is_unread and self.outputs and len(axes) == len(self.outputs[0]):
                for axis, root in zip(axes, self.outputs[0], strict=True):
                    size = self.sizes[axis]
                    if size == self.sizes[root] > 1 and not self.dynamic & {axis, root}:
                        yield DigitLink(IndexDigit(axis, 1, size), IndexDigit(root, 1, size))

    def _agreed_links(self, lists: Sequence[list[DigitLink]]) -> list[DigitLink]:
        """Return the links of an operand's axis if all its reads have the same digits.

        Reads for one result must also have equal roots.
        """
        if len({tuple([link.operand for link in each]) for each in lists}) != 1:
            return []
        roots: dict[tuple[IndexDigit, int], IndexDigit] = {}
        for each in lists:
            for link in each:
                key = link.operand, self.names[link.root.axis].array
                if roots.setdefault(key, link.root) != link.root:
                    return []
        return list(dict.fromkeys(link for each in lists for link in each))
