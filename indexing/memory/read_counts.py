"""How often an instruction reads each element of its operands.

>>> import hlo, indexing
>>> root = hlo.parse('''
... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
... ENTRY e {
...   p = f32[5,1000] parameter(0)
...   z = f32[] parameter(1)
...   ROOT w = f32[4,1000] reduce-window(p, z), window={size=2x1}, to_apply=add
... }''').entry.root
>>> window, init = reads(root)
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
from indexing.dataflow.walk import edges_back, known_starts, prepare, reads_summary
from indexing.maps.answers import Path, Unknown
from indexing.maps.map_set import MapSet
from indexing.maps.multiplicity import Multiplicity, multiplicity
from indexing.maps.options import Options

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def reads(
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
    options = Options(keep_multiplicity=True)
    outputs = leaves(instruction.shape)
    if not 0 <= output_id < len(outputs):
        raise IndexError(f"`{instruction.name}` has {len(outputs)} outputs, no number {output_id}")
    path = outputs[output_id][0]
    prepare([instruction], options, reads_summary)
    found: dict[tuple[int, Path], MapSet] = {
        (k, at): MapSet()
        for k, operand in enumerate(instruction.operands)
        for at, leaf in leaves(operand.shape)
        if isinstance(leaf, Shape)
    }
    for step in known_starts(edges_back(instruction, path, options)):
        if (step.operand, step.operand_path) in found:
            maps = found[step.operand, step.operand_path]
            maps.note(step.unknown)
            for m in step.maps:
                maps.add(options.finished(m))
    return tuple(
        [
            multiplicity(maps.maps, values) if maps.unknown is None else maps.unknown
            for maps in found.values()
        ]
    )
