"""Collapse of an instruction: the smallest shapes with equivalent maps.

Adjacent dimensions are merged if every map uses them only as the digits of one number.  An
elementwise op becomes one-dimensional, a transpose of ``[2,3,4]`` to ``[3,4,2]`` a transpose of
``[2,12]``, and a gather a gather of ``[outer, processed, inner]``.  The maps alone decide, so any
op can be collapsed.

Dimensions are merged if, in terms of the merged index,

* no expression becomes longer: none extracts a digit of the merged index again;
* each merged index of an operand has unit stride in one dimension or range variable i, such as
  ``±i + c`` or ``i floordiv k``.

A merge includes the merges it requires in the operands and the output.  A dimension of size 1 can
be merged with any neighbour.

>>> import hlo, indexing
>>> root = hlo.parse('''ENTRY e {
...   p = f32[4,2,3,2,6] parameter(0)
...   i = s32[5] parameter(1)
...   ROOT g = f32[4,2,5,2,6] gather(p, i), offset_dims={0,1,3,4}, collapsed_slice_dims={2},
...     start_index_map={2}, index_vector_dim=1, slice_sizes={4,2,1,2,6}
... }''').entry.root
>>> collapsed = collapse(root)
>>> print(*[array.collapsed for array in (*collapsed.outputs, *collapsed.operands)])
f32[8,5,12] f32[8,3,12] s32[5]
>>> print(collapsed.maps[0][0][0])
(d0, d1, d2){rt0} -> (d0, rt0, d2),
domain: d0 in [0, 7], d1 in [0, 4], d2 in [0, 11], rt0 in [0, 2]
>>> print(collapsed.operands[0].to_collapsed)
(d0, d1, d2, d3, d4) -> (d0 * 2 + d1, d2, d3 * 6 + d4),
domain: d0 in [0, 3], d1 in [0, 1], d2 in [0, 2], d3 in [0, 1], d4 in [0, 5]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from hlo.arguments import brief_text, checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import AnyShape, Shape
from indexing.dataflow.queries import output_to_input
from indexing.maps.answers import Path, Unknown
from indexing.maps.arrays import ArrayRef, array_leaves, leaf_at
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp
from indexing.tiling.accesses import ArrayAccess, ArrayKey, Joins, SizesByArray, groups
from indexing.tiling.merging import best_joins, merged_map
from simplifier.substitute import Substitution

MapTuple: TypeAlias = tuple[IndexingMap, ...]


@dataclass(frozen=True, slots=True)
class CollapsedArray:
    """One array of an instruction and its collapsed form.

    Attributes:
        shape: the original shape.
        groups: the dimensions of `shape` merged into each collapsed dimension, in order.
    """

    shape: Shape
    groups: tuple[tuple[int, ...], ...]

    @property
    def collapsed(self) -> Shape:
        """The shape with merged dimensions, without a layout."""
        return self.shape.with_dims(prod(self.shape.dims[k] for k in g) for g in self.groups)

    @property
    def to_collapsed(self) -> IndexingMap:
        """The map from each element to the same element of the collapsed array."""
        d, sizes = dims(self.shape), self.shape.dims
        digits = [[d[k] * prod(sizes[k + 1 : g[-1] + 1]) for k in g] for g in self.groups]
        return IndexingMap.of(d, [sum(parts[1:], parts[0]) for parts in digits])

    @property
    def from_collapsed(self) -> IndexingMap:
        """The map from each element of the collapsed array to the same element of the array."""
        d, sizes = dims(self.collapsed), self.shape.dims
        digits = [
            d[n] // max(1, prod(sizes[k + 1 : g[-1] + 1])) % max(1, sizes[k])
            for n, g in enumerate(self.groups)
            for k in g
        ]
        return IndexingMap.of(d, digits)


@dataclass(frozen=True, slots=True, repr=False)
class Collapse(Displayed):
    """The collapsed shapes and maps of an instruction; the result of `collapse`.

    Attributes:
        instruction: the collapsed instruction.
        outputs: each array of the result.
        operands: each array of the operands: entry k is operand k if all operands are arrays.
        originals: ``originals[i][k]`` are the maps from output i to ``operands[k]``.
        maps: the same maps between the collapsed arrays.  Their runtime variables are elements of
            the collapsed sources.

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p = f32[2,3,4] parameter(0)
    ...   ROOT t = f32[3,4,2] transpose(p), dimensions={1,2,0}
    ... }''').entry.root
    >>> collapsed = collapse(root)
    >>> print(collapsed.outputs[0].collapsed, collapsed.operands[0].collapsed)
    f32[12,2] f32[2,12]
    """

    instruction: Instruction
    outputs: tuple[CollapsedArray, ...]
    operands: tuple[CollapsedArray, ...]
    originals: tuple[tuple[MapTuple, ...], ...]
    maps: tuple[tuple[MapTuple, ...], ...]
    _arrays: Mapping[ArrayKey, CollapsedArray]

    def __repr__(self) -> str:
        arrays = [
            ", ".join([str(a.collapsed) for a in each]) for each in (self.operands, self.outputs)
        ]
        return f"<collapse of {self.instruction.name!r}: {brief_text(' -> '.join(arrays))}>"

    @checked
    def restored(self, output_id: int, operand: int) -> MapTuple:
        """Return the collapsed maps between the original arrays; they equal `originals`.

        Each is the composition of ``to_collapsed`` of the output, the collapsed map, and
        ``from_collapsed`` of the operand.

        Args:
            output_id: number of the output in `outputs`.
            operand: number of the operand in `operands`.
        Raises:
            IndexError: there is no such output or operand.

        >>> import hlo
        >>> root = hlo.parse('''ENTRY e {
        ...   p = f32[2,3,4] parameter(0)
        ...   ROOT t = f32[3,4,2] transpose(p), dimensions={1,2,0}
        ... }''').entry.root
        >>> (restored,) = collapse(root).restored(0, 0)
        >>> print(restored.simplify())
        (d0, d1, d2) -> (d2, d0, d1), domain: d0 in [0, 2], d1 in [0, 3], d2 in [0, 1]
        """
        to, back = self.outputs[output_id].to_collapsed, self.operands[operand].from_collapsed
        maps = self.maps[output_id][operand]
        return tuple([to.then(self._with_original_sources(m)).then(back) for m in maps])

    def _with_original_sources(self, collapsed: IndexingMap) -> IndexingMap:
        """Return a collapsed map whose runtime variables are elements of the original sources."""
        return replace(collapsed, runtime=tuple(map(self._at_source, collapsed.runtime)))

    def _at_source(self, rt: RuntimeVariable) -> RuntimeVariable:
        source = _source(rt)
        if source is None:
            return rt
        back = self._arrays[source].from_collapsed
        swap = Substitution(dict(zip(back.dims, rt.index, strict=True)))
        return replace(rt, index=tuple(map(swap, back.results)))


@checked
def collapse(instruction: Instruction) -> Collapse | Unknown:
    """Collapse the arrays of an instruction to the smallest shapes with equivalent maps.

    All arrays of the result and of the operands are collapsed, and arrays inside a fusion that
    are sources of runtime variables.  Maps of grade "may" are collapsed like exact maps.

    Args:
        instruction: the instruction; a fusion or call is collapsed as a whole.
    Returns:
        The collapsed shapes and maps, or `Unknown` if the maps of the instruction are unknown.
    Raises:
        HloError: the instruction is invalid.

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p = f32[2,3,4] parameter(0)
    ...   ROOT t = f32[3,4,2] transpose(p), dimensions={1,2,0}
    ... }''').entry.root
    >>> collapsed = collapse(root)
    >>> print(collapsed.operands[0].collapsed, *collapsed.maps[0][0])
    f32[2,12] (d0, d1) -> (d1, d0), domain: d0 in [0, 11], d1 in [0, 1]
    """
    outputs = list(array_leaves(instruction.shape))
    shapes_of_operands = [operand.shape for operand in instruction.operands]
    inputs = [(k, path) for k, s in enumerate(shapes_of_operands) for _, path, _ in array_leaves(s)]
    originals = _originals(instruction, [number for number, _, _ in outputs], inputs)
    if isinstance(originals, Unknown):
        return originals
    results = [path for _, path, _ in outputs]
    operands = [ArrayRef(instruction.operands[k], path) for k, path in inputs]
    is_single_op = isinstance(instruction.op, MappedOp)
    rows = [
        list(_accesses(path, operands, row, is_single_op))
        for path, row in zip(results, originals, strict=True)
    ]
    accesses = [access for row in rows for column in row for access in column]
    shapes = _shapes(instruction, results, operands, accesses)
    sizes = {array: shape.dims for array, shape in shapes.items()}
    joins = best_joins(sizes, accesses)
    arrays = {array: CollapsedArray(s, groups(s.dims, array, joins)) for array, s in shapes.items()}
    return Collapse(
        instruction,
        tuple(map(arrays.__getitem__, results)),
        tuple(map(arrays.__getitem__, operands)),
        originals,
        tuple([_merge_columns(row, sizes, joins) for row in rows]),
        arrays,
    )


def _shapes(
    instruction: Instruction,
    results: Iterable[Path],
    operands: Iterable[ArrayRef],
    accesses: Iterable[ArrayAccess],
) -> dict[ArrayKey, Shape]:
    """Return the shape of each array: results by their paths, operands, and runtime sources."""
    shapes: dict[ArrayKey, AnyShape] = {path: leaf_at(instruction.shape, path) for path in results}
    sources = [source for access in accesses for source in access.sources]
    shapes |= {a: a.shape for a in (*operands, *sources) if isinstance(a, ArrayRef)}
    return {array: shape for array, shape in shapes.items() if isinstance(shape, Shape)}


def _merge_columns(
    row: Iterable[Iterable[ArrayAccess]], sizes: SizesByArray, joins: Joins
) -> tuple[MapTuple, ...]:
    return tuple([tuple([merged_map(a, sizes, joins) for a in column]) for column in row])


def _originals(
    instruction: Instruction, outputs: Iterable[int], inputs: Sequence[tuple[int, Path]]
) -> tuple[tuple[MapTuple, ...], ...] | Unknown:
    """Return the maps from each output to each input, given by operand number and path."""
    rows: list[tuple[MapTuple, ...]] = []
    for number in outputs:
        row = _maps(instruction, number, inputs)
        if isinstance(row, Unknown):
            return row
        rows.append(row)
    return tuple(rows)


def _maps(
    instruction: Instruction, number: int, inputs: Sequence[tuple[int, Path]]
) -> tuple[MapTuple, ...] | Unknown:
    """Return the maps from one output to each input, given by operand number and path.

    The maps of a single op that have range variables are not simplified: the names of the range
    variables identify loops.
    """
    is_single_op = isinstance(instruction.op, MappedOp)
    answer = output_to_input(instruction, number, simplify=not is_single_op, masks=False)
    for unknown in answer.unknown:
        if unknown is not None:
            return unknown
    maps_of: dict[tuple[int, Path], MapTuple] = dict.fromkeys(inputs, ())
    for k, (maps, paths) in enumerate(zip(answer.maps, answer.paths, strict=True)):
        for m, path in zip(maps, paths, strict=True):
            if is_single_op and m.ranges:
                named = replace(m, constraints=tuple([c for c in m.constraints if not c.is_true]))
            else:
                named = m.simplify() if is_single_op else m
            maps_of[k, path] += (named,)
    return tuple(maps_of.values())


def _accesses(
    output: Path, operands: Sequence[ArrayRef], row: Sequence[MapTuple], is_single_op: bool
) -> Iterator[list[ArrayAccess]]:
    """Yield the accesses of one output, for each operand."""
    for operand, maps in zip(operands, row, strict=True):
        loop = output if is_single_op else None
        yield [ArrayAccess(output, operand, m, tuple(map(_source, m.runtime)), loop) for m in maps]


def _source(rt: RuntimeVariable) -> ArrayRef | None:
    """Return the source array of a runtime variable if it is in the program, or `None`."""
    array = rt.array
    return array if isinstance(array, ArrayRef) and array.array_shape is not None else None
