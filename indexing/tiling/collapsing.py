"""Collapse: the smallest shapes between which an instruction reads in the same way.

Adjacent dimensions are one if every map uses them only as the digits of one number: an elementwise
op is one-dimensional, a transpose of ``[2,3,4]`` to ``[3,4,2]`` is one of ``[2,12]``, and a gather
is one of ``[outer, processed, inner]``. It is found from the maps alone, for any op.

Dimensions are merged where, written with the merged index,

* no expression becomes longer: none takes a digit of that index out again;
* what is merged in an array that is read is again one index, such as ``±i + c`` or ``i floordiv
  k``: it depends on one dimension or range variable i, and counts one by one.

Each merge takes along the others that it needs, those of an operand with those of the result. A
dimension of size 1 has no digit, and goes with any neighbour.

>>> import hlo, indexing
>>> root = hlo.parse('''ENTRY e {
...   p = f32[4,2,3,2,6] parameter(0)
...   i = s32[5] parameter(1)
...   ROOT g = f32[4,2,5,2,6] gather(p, i), offset_dims={0,1,3,4}, collapsed_slice_dims={2},
...     start_index_map={2}, index_vector_dim=1, slice_sizes={4,2,1,2,6}
... }''').entry.root
>>> found = collapse(root)
>>> print(found.outputs[0].collapsed, *[side.collapsed for side in found.operands])
f32[8,5,12] f32[8,3,12] s32[5]
>>> print(found.maps[0][0][0])
(d0, d1, d2){rt0} -> (d0, rt0, d2),
domain: d0 in [0, 7], d1 in [0, 4], d2 in [0, 11], rt0 in [0, 2]
>>> print(found.operands[0].to_collapsed)
(d0, d1, d2, d3, d4) -> (d0 * 2 + d1, d2, d3 * 6 + d4),
domain: d0 in [0, 3], d1 in [0, 1], d2 in [0, 2], d3 in [0, 1], d4 in [0, 5]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.dataflow.queries import output_to_input
from indexing.maps.answers import Path, Unknown
from indexing.maps.arrays import ArrayRef, leaf_at
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp
from indexing.tiling.drafts import Array, Joins, Read, Sizes, groups
from indexing.tiling.merging import best_joins, merged_map
from simplifier.substitute import Substitution

Maps: TypeAlias = tuple[IndexingMap, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One array of an instruction, and its collapsed form.

    Attributes:
        shape: the array as it is.
        groups: the dimensions of `shape` that each collapsed dimension has in it, in order.
    """

    shape: Shape
    groups: tuple[tuple[int, ...], ...]

    @property
    def collapsed(self) -> Shape:
        """The array with its merged dimensions, without a layout."""
        return self.shape.with_dims(prod(self.shape.dims[k] for k in g) for g in self.groups)

    @property
    def to_collapsed(self) -> IndexingMap:
        """From each element to the same one of the collapsed array."""
        d, sizes = dims(self.shape), self.shape.dims
        digits = [[d[k] * prod(sizes[k + 1 : g[-1] + 1]) for k in g] for g in self.groups]
        return IndexingMap.of(d, [sum(parts[1:], parts[0]) for parts in digits])

    @property
    def from_collapsed(self) -> IndexingMap:
        """From each element of the collapsed array to the same one of the array."""
        d, sizes = dims(self.collapsed), self.shape.dims
        digits = [
            d[n] // max(1, prod(sizes[k + 1 : g[-1] + 1])) % max(1, sizes[k])
            for n, g in enumerate(self.groups)
            for k in g
        ]
        return IndexingMap.of(d, digits)


@dataclass(frozen=True, slots=True)
class Collapse:
    """What `collapse` finds.

    Attributes:
        instruction: whose shapes these are.
        outputs: each array of the result.
        operands: each array of the operands; so operand k, where all operands are arrays.
        originals: for each output, for each of `operands`, the maps between them.
        maps: the same maps between the collapsed arrays. Their runtime variables are elements of
            the collapsed source.
    """

    instruction: Instruction
    outputs: tuple[Side, ...]
    operands: tuple[Side, ...]
    originals: tuple[tuple[Maps, ...], ...]
    maps: tuple[tuple[Maps, ...], ...]
    _sides: Mapping[Array, Side]

    def restored(self, output_id: int, operand: int) -> Maps:
        """The collapsed maps between the arrays as they are: equal to the original ones.

        To the collapsed result, through the collapsed map, and back from the collapsed operand.
        """
        there, back = self.outputs[output_id].to_collapsed, self.operands[operand].from_collapsed
        return tuple(
            [there.then(self._placed(m)).then(back) for m in self.maps[output_id][operand]]
        )

    def _placed(self, collapsed: IndexingMap) -> IndexingMap:
        """A collapsed map whose runtime variables are elements of the sources as they are."""
        return replace(collapsed, runtime=tuple(map(self._at_source, collapsed.runtime)))

    def _at_source(self, rt: RuntimeVariable) -> RuntimeVariable:
        source = _source(rt)
        if source is None:
            return rt
        back = self._sides[source].from_collapsed
        swap = Substitution(dict(zip(back.dims, rt.index, strict=True)))
        return replace(rt, index=tuple(map(swap, back.results)))


def collapse(instruction: Instruction) -> Collapse | Unknown:
    """The smallest shapes between which an instruction has the same maps; see the module.

    Everything that can be merged is: each array of the result, each one of the operands, and each
    one inside of a fusion that a runtime variable is an element of. Maps with the grade "may" are
    collapsed like others: what is said is how the maps relate elements.

    Returns:
        The collapsed shapes and maps; or why the maps of the instruction are not known.
    Raises:
        HloError: the instruction breaks a rule of its op.

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p = f32[2,3,4] parameter(0)
    ...   ROOT t = f32[3,4,2] transpose(p), dimensions={1,2,0}
    ... }''').entry.root
    >>> found = collapse(root)
    >>> print(found.operands[0].collapsed, *found.maps[0][0])
    f32[2,12] (d0, d1) -> (d1, d0), domain: d0 in [0, 11], d1 in [0, 1]
    """
    outputs = list(_array_leaves(instruction))
    places = [(k, path) for k, o in enumerate(instruction.operands) for _, path in _array_leaves(o)]
    originals = _originals(instruction, [number for number, _ in outputs], places)
    if isinstance(originals, Unknown):
        return originals
    results = [path for _, path in outputs]
    operands = [ArrayRef(instruction.operands[k], path) for k, path in places]
    alone = isinstance(instruction.op, MappedOp)
    rows = [
        list(_reads(path, operands, row, alone))
        for path, row in zip(results, originals, strict=True)
    ]
    reads = [read for row in rows for column in row for read in column]
    shapes = _shapes(instruction, results, operands, reads)
    sizes = {array: shape.dims for array, shape in shapes.items()}
    joins = best_joins(sizes, reads)
    sides = {array: Side(s, groups(s.dims, array, joins)) for array, s in shapes.items()}
    return Collapse(
        instruction,
        tuple(map(sides.__getitem__, results)),
        tuple(map(sides.__getitem__, operands)),
        originals,
        tuple([_merged(row, sizes, joins) for row in rows]),
        sides,
    )


def _shapes(
    instruction: Instruction,
    results: Iterable[Path],
    operands: Iterable[ArrayRef],
    reads: Iterable[Read],
) -> dict[Array, Shape]:
    """The shape of each array: of results by their paths, of operands and sources."""
    shapes: dict[Array, AnyShape] = {path: leaf_at(instruction.shape, path) for path in results}
    sources = [source for read in reads for source in read.sources]
    shapes |= {a: a.shape for a in (*operands, *sources) if isinstance(a, ArrayRef)}
    return {array: shape for array, shape in shapes.items() if isinstance(shape, Shape)}


def _merged(row: Iterable[Iterable[Read]], sizes: Sizes, joins: Joins) -> tuple[Maps, ...]:
    return tuple([tuple([merged_map(read, sizes, joins) for read in column]) for column in row])


def _array_leaves(instruction: Instruction) -> Iterator[tuple[int, Path]]:
    """Number and path of each array in an instruction's value."""
    for number, (path, leaf) in enumerate(leaves(instruction.shape)):
        if isinstance(leaf, Shape):
            yield number, path


def _originals(
    instruction: Instruction, outputs: Iterable[int], places: Sequence[tuple[int, Path]]
) -> tuple[tuple[Maps, ...], ...] | Unknown:
    """What each output reads of each place in the operands."""
    rows: list[tuple[Maps, ...]] = []
    for number in outputs:
        row = _maps(instruction, number, places)
        if isinstance(row, Unknown):
            return row
        rows.append(row)
    return tuple(rows)


def _maps(
    instruction: Instruction, number: int, places: Sequence[tuple[int, Path]]
) -> tuple[Maps, ...] | Unknown:
    """What an output reads of each place in the operands.

    The maps of an op are not simplified if they have range variables, which then keep the names of
    the loops that they are.
    """
    alone = isinstance(instruction.op, MappedOp)
    answer = output_to_input(instruction, number, simplify=not alone)
    for unknown in answer.unknown:
        if unknown is not None:
            return unknown
    found: dict[tuple[int, Path], Maps] = dict.fromkeys(places, ())
    for k, (maps, paths) in enumerate(zip(answer.maps, answer.paths, strict=True)):
        for m, path in zip(maps, paths, strict=True):
            if alone and m.ranges:
                named = replace(m, constraints=tuple([c for c in m.constraints if not c.is_true]))
            else:
                named = m.simplify() if alone else m
            found[k, path] += (named,)
    return tuple(found.values())


def _reads(
    output: Path, operands: Sequence[ArrayRef], row: Sequence[Maps], alone: bool
) -> Iterator[list[Read]]:
    """The maps of one output, with the arrays that they are about."""
    for operand, maps in zip(operands, row, strict=True):
        loop = output if alone else None
        yield [Read(output, operand, m, tuple(map(_source, m.runtime)), loop) for m in maps]


def _source(rt: RuntimeVariable) -> ArrayRef | None:
    """The array that a runtime variable is an element of, if it is an array of the program."""
    array = rt.array
    return array if isinstance(array, ArrayRef) and array.array_shape is not None else None
