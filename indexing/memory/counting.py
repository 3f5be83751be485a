"""Read counts: the number of times an instruction reads each element of its operands.

>>> import hlo, indexing
>>> root = hlo.parse('''
... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
... ENTRY e {
...   p = f32[5,1000] parameter(0)
...   z = f32[] parameter(1)
...   ROOT w = f32[4,1000] reduce-window(p, z), window={size=2x1}, to_apply=add
... }''').entry.root
>>> window, init = read_counts(root)
>>> window.total, window.distinct, window.maximum, window.histogram()
(8000, 5000, 2, {1: 2000, 2: 3000})
>>> init.total, init.distinct, init.at(())
(4000, 1, 4000)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.answering import output_of
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.given_values import check_names
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.multiplicity import Multiplicity, multiplicity
from indexing.maps.options import Options
from simplifier.unknown import first_unknown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@checked
def read_counts(
    instruction: Instruction,
    output_id: int = 0,
    values: Mapping[str, ArrayLike] | None = None,
) -> tuple[Multiplicity | Unknown, ...]:
    """Return the number of reads of each element, for each array of the operands.

    Through a fusion, every path to an element counts once for each point of its loops, as if each
    element recomputed the values inside of the fusion that it needs; so a chain of windows counts
    many reads.  Two paths with equal maps count once: a value already read is not read again.

    Args:
        instruction: the instruction that computes the output.
        output_id: number of the output: the leaves of a tuple are counted in order.
        values: values of runtime variables by name, see `indexing.multiplicity`.
    Returns:
        The counts for each array of the operands, in order: entry k is for operand k if all
        operands are arrays.  `Unknown` with a reason if the maps or values are not known.
    Raises:
        HloError: the instruction, or an instruction of a computation it calls, is invalid.
        IndexError: `output_id` is out of range.
        TypeError, ValueError: a value has the name of no runtime variable and of no source, or not
            the shape of its source.
    Source: XLA ``docs/indexing.md``, "Operand Utilization".

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p0 = f32[20] parameter(0)
    ...   ROOT bc0 = f32[10,20,30] broadcast(p0), dimensions={1}
    ... }''').entry.root
    >>> (counts,) = read_counts(root)
    >>> counts.total, counts.distinct, counts.at((7,))
    (6000, 20, 300)
    """
    map_sets = _map_sets(instruction, output_id)
    if values:
        own = [m for maps in map_sets for m in maps.maps]
        check_names(own, values, [operand.name for operand in instruction.operands])
    return tuple(
        [
            maps if isinstance(maps, Unknown) else multiplicity(maps, values)
            for maps in map(_counted_maps, map_sets)
        ]
    )


def counted_maps(
    instruction: Instruction, output_id: int = 0
) -> tuple[tuple[IndexingMap, ...] | Unknown, ...]:
    """Return the maps of which `read_counts` returns the multiplicity."""
    return tuple(map(_counted_maps, _map_sets(instruction, output_id)))


def _counted_maps(maps: MapSet) -> tuple[IndexingMap, ...] | Unknown:
    unknown = first_unknown(maps.unknown, maps.uncounted)
    return tuple(maps.maps) if unknown is None else unknown


def _map_sets(instruction: Instruction, output_id: int) -> list[MapSet]:
    """Return the maps to each array of the operands, with multiplicity."""
    walk = Walk(LocalEdges(Options(keep_multiplicity=True)))
    start = output_of(instruction, output_id)
    walk.prepare([instruction], backward=True)
    ends = [
        (number, ArrayRef(operand, path))
        for number, operand in enumerate(instruction.operands)
        for path, leaf in leaves(operand.shape)
        if isinstance(leaf, Shape)
    ]
    map_sets = {(number, end.path): walk.edges.empty_map_set(start, end) for number, end in ends}
    for edge in walk.backward_edges(start, fold=True):
        maps = map_sets.get((edge.operand, edge.operand_path))
        if maps is not None:
            simpler = map(walk.edges.options.simplify_map, edge.maps)
            maps.extend(simpler, edge.unknown, edge.reasons)
    return list(map_sets.values())
