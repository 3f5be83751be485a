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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.queries import output_to_input
from indexing.maps.answers import Path, Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.base import MappedOp
from indexing.tiling.merging import Read, Sizes, best_joins, groups, merged_map
from simplifier.substitute import Substitution

Maps: TypeAlias = tuple[IndexingMap, ...]


@dataclass(frozen=True, slots=True)
class _Array:
    """One array of the program: a leaf of an instruction's value, seen through these calls."""

    instruction: Instruction
    path: Path = ()
    calls: tuple[Instruction | str, ...] = ()
    is_result: bool = False


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
    _sides: Mapping[_Array, Side]

    def restored(self, output: int, operand: int) -> Maps:
        """The collapsed maps between the arrays as they are: equal to the original ones.

        To the collapsed result, through the collapsed map, and back from the collapsed operand.
        """
        there, back = self.outputs[output].to_collapsed, self.operands[operand].from_collapsed
        return tuple([there.then(self._placed(m)).then(back) for m in self.maps[output][operand]])

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
    outputs = _array_leaves(instruction)
    places = [(k, path) for k, o in enumerate(instruction.operands) for _, path in _array_leaves(o)]
    originals: list[tuple[Maps, ...]] = []
    for number, _ in outputs:
        maps = _maps(instruction, number, places)
        if isinstance(maps, Unknown):
            return maps
        originals.append(maps)
    results = [_Array(instruction, path, is_result=True) for _, path in outputs]
    operands = [_Array(instruction.operands[k], path) for k, path in places]
    pairs = [[(result, operand) for operand in operands] for result in results]
    alone = isinstance(instruction.op, MappedOp)
    reads = [
        [tuple([_read(m, *pair, alone) for m in maps]) for pair, maps in zip(*rows, strict=True)]
        for rows in zip(pairs, originals, strict=True)
    ]
    every = [read for row in reads for column in row for read in column]
    runtime = [rt for row in originals for maps in row for m in maps for rt in m.runtime]
    sources = [source for rt in runtime if (source := _source(rt))]
    arrays = [*results, *operands, *sources]
    shapes = {array: _shape(array) for array in arrays}
    sizes: Sizes = {array: shape.dims for array, shape in shapes.items()}
    joins = best_joins(sizes, [read for read in every if not read.map.is_known_empty])
    sides = {array: Side(s, groups(s.dims, array, joins)) for array, s in shapes.items()}
    return Collapse(
        instruction,
        tuple([sides[result] for result in results]),
        tuple([sides[operand] for operand in operands]),
        tuple(originals),
        tuple(
            [
                tuple([tuple([merged_map(r, sizes, joins) for r in column]) for column in row])
                for row in reads
            ]
        ),
        sides,
    )


def _array_leaves(instruction: Instruction) -> list[tuple[int, Path]]:
    """Number and path of each array in an instruction's value."""
    every = enumerate(leaves(instruction.shape))
    return [(n, path) for n, (path, leaf) in every if isinstance(leaf, Shape)]


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


def _read(m: IndexingMap, result: _Array, operand: _Array, alone: bool) -> Read:
    return Read(result, operand, m, tuple(map(_source, m.runtime)), result if alone else None)


def _source(rt: RuntimeVariable) -> _Array | None:
    """The array that a runtime variable is an element of, if its instruction is known."""
    if isinstance(rt.source, Instruction) and isinstance(rt.source.shape, Shape):
        return _Array(rt.source, (), rt.calls)
    return None


def _shape(array: _Array) -> Shape:
    shape = dict(leaves(array.instruction.shape))[array.path]
    assert isinstance(shape, Shape)
    return shape
