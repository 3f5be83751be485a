"""The dimensions of an instruction, and the reads that relate them.

A range variable over which a result is reduced counts as a dimension, too: one of its steps.
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


class DimensionName(NamedTuple):
    """Where a dimension is: in an operand, in a result, or in the steps of a result's reduction."""

    space: Literal["operand", "result", "steps"]
    array: int
    name: int | str

    def __str__(self) -> str:
        return f"{self.space} {self.array} dimension {self.name}"


class DimensionRead(NamedTuple):
    """The index of a read along one dimension of an operand.

    Attributes:
        expr: the index.
        read: the read of the array.
        roots: for each variable of which digits may be factors, its dimension and that one's size.
        result: the result that needs the elements.
    """

    expr: Expr
    read: ArrayRead
    roots: Roots
    result: ResultReads


class Dimensions:
    """The dimensions of an instruction, numbered.

    Attributes:
        names: the name of each dimension.
        sizes: the size of each dimension.
        operands: the dimensions of each array of the operands.
        outputs: the dimensions of each array of the result.
        shapes: the shapes of the arrays of the operands.
        results: the reads of each array of the result.
        unknown: the arrays of the operands of which some maps are unknown.
        dynamic: the dimensions whose size is known only at run time.
        reads: for each dimension of an operand, the indices at which it is read.
    """

    def __init__(
        self,
        operands: Sequence[Shape | OpaqueShape],
        outputs: Sequence[Shape | OpaqueShape],
        results: Sequence[ResultReads],
    ) -> None:
        self.shapes, self.results = operands, results
        self.names: list[DimensionName] = []
        self.sizes: list[int] = []
        self.dynamic: set[int] = set()
        self._steps: dict[DimensionName, int] = {}
        self.operands = [self._array("operand", k, shape) for k, shape in enumerate(operands)]
        self.outputs = [self._array("result", k, shape) for k, shape in enumerate(outputs)]
        self.unknown = {operand for result in results for operand, _ in result.unknown}
        self._located = [
            (number, read, self._roots(number, read))
            for number, result in enumerate(results)
            for read in result.reads
        ]
        self.reads: dict[int, list[DimensionRead]] = defaultdict(list)
        for number, read, roots in self._located:
            for dim, expr in zip(self.operands[read.operand], read.indices, strict=True):
                self.reads[dim].append(DimensionRead(expr, read, roots, results[number]))

    def _array(
        self, space: Literal["operand", "result"], number: int, shape: Shape | OpaqueShape
    ) -> list[int]:
        if not isinstance(shape, Shape):
            return []
        dims = [self._new(DimensionName(space, number, k), n) for k, n in enumerate(shape.dims)]
        if shape.is_dynamic:
            pairs = zip(dims, shape.dynamic, strict=True)
            self.dynamic |= {dim for dim, is_dynamic in pairs if is_dynamic}
        return dims

    def _new(self, name: DimensionName, size: int) -> int:
        self.names.append(name)
        self.sizes.append(size)
        return len(self.names) - 1

    def _roots(self, number: int, read: ArrayRead) -> Roots:
        """Return the dimension of each variable of a read whose digits may be factors."""
        dims = dict(zip(read.dims, self.outputs[number], strict=True))
        for step in read.steps:
            if self.results[number].has_all_steps(step):
                name = DimensionName("steps", number, step.name)
                if name not in self._steps:
                    self._steps[name] = self._new(name, step.upper + 1)
                dims[step] = self._steps[name]
        return {variable: (dim, self.sizes[dim]) for variable, dim in dims.items()}

    def dims_behind(self, dim: int) -> set[int]:
        """Return the results' dimensions on which the index along an operand's one depends."""
        return {
            each.roots[v][0]
            for each in self.reads.get(dim, ())
            for v in each.expr.variables()
            if v in each.roots and self.names[each.roots[v][0]].space == "result"
        }

    def is_constrained(self, dim: int) -> bool:
        """Return True if a result's dimension decides whether an operand is read."""
        return any(
            v in read.constrained or v.size < self.sizes[dim]
            for _, read, roots in self._located
            for v, (root, _) in roots.items()
            if root == dim
        )

    # ------------------------------------------------------------ links

    def links(self) -> Iterator[DigitLink]:
        """Yield the links of digits that hold in all reads of an operand."""
        links: dict[int, list[list[DigitLink]]] = defaultdict(list)
        for _, read, roots in self._located:
            for dim, those in self._links_of_read(read, roots):
                links[dim].append(those)
        for operand in self.unknown:
            for dim in self.operands[operand]:
                links[dim].append([])
        for each in links.values():
            yield from self._agreed_links(each)
        yield from self._links_of_unread()

    def _links_of_read(
        self, read: ArrayRead, roots: Roots
    ) -> Iterator[tuple[int, list[DigitLink]]]:
        """Yield each dimension of the array that is read, and its links; a root is in one only."""
        used: set[tuple[int, int]] = set()
        total = {
            v
            for v, (_, size) in roots.items()
            if v.lower == 0 and v.upper == size - 1 and v not in read.constrained
        }
        dims = self.operands[read.operand]
        for dim, expr in zip(reversed(dims), reversed(read.indices), strict=True):
            if self.sizes[dim] > 1:
                links = [
                    link
                    for link in links_of(expr, dim, self.sizes[dim], roots, total)
                    if link.root[:2] not in used
                    and not self.dynamic & {link.root.dim, link.operand.dim}
                ]
                used |= {link.root[:2] for link in links}
                yield dim, links

    def _links_of_unread(self) -> Iterator[DigitLink]:
        """Yield links of operands that are not read: there, every link holds."""
        for number, dims in enumerate(self.operands):
            is_unread = number not in self.unknown and not any(dim in self.reads for dim in dims)
            if is_unread and self.outputs and len(dims) == len(self.outputs[0]):
                for dim, root in zip(dims, self.outputs[0], strict=True):
                    size = self.sizes[dim]
                    if size == self.sizes[root] > 1 and not self.dynamic & {dim, root}:
                        yield DigitLink(IndexDigit(dim, 1, size), IndexDigit(root, 1, size))

    def _agreed_links(self, lists: Sequence[list[DigitLink]]) -> list[DigitLink]:
        """Return the links of an operand's dimension if all its reads have the same digits.

        Reads for one result must also have equal roots.
        """
        if len({tuple([link.operand for link in each]) for each in lists}) != 1:
            return []
        roots: dict[tuple[IndexDigit, int], IndexDigit] = {}
        for each in lists:
            for link in each:
                key = link.operand, self.names[link.root.dim].array
                if roots.setdefault(key, link.root) != link.root:
                    return []
        return list(dict.fromkeys(link for each in lists for link in each))
