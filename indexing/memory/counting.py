"""How often an instruction reads each element of its operands.

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

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.answering import output_of
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.multiplicity import Multiplicity, multiplicity
from indexing.maps.options import Options

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def read_counts(
    instruction: Instruction,
    output_id: int = 0,
    values: Mapping[str, ArrayLike] | None = None,
) -> tuple[Multiplicity | Unknown, ...]:
    """How often an output reads the elements of each array of the operands.

    Through a fusion, every way to an element counts, and each for every point of its loops; two
    ways that are the same access are one, as a value that is there is not read again.

    Args:
        values: see `multiplicity`.
    Returns:
        One answer for each array of the operands: so for operand k, where all operands are arrays.
    Raises:
        HloError, IndexError: as `output_to_input`.
    """
    walk = Walk(LocalEdges(Options(keep_multiplicity=True)))
    start = output_of(instruction, output_id)
    walk.prepare([instruction], backward=True)
    ends = [
        (number, ArrayRef(operand, path))
        for number, operand in enumerate(instruction.operands)
        for path, leaf in leaves(operand.shape)
        if isinstance(leaf, Shape)
    ]
    found = {(number, end.path): walk.edges.maps(start, end) for number, end in ends}
    for edge in walk.reads(start, folds=True):
        maps = found.get((edge.operand, edge.operand_path))
        if maps is not None:
            maps.extend(map(walk.edges.options.finished, edge.maps), edge.unknown)
    return tuple(
        [
            multiplicity(maps.maps, values) if maps.unknown is None else maps.unknown
            for maps in found.values()
        ]
    )
