"""Chains of reads: from an element of an output to the elements of parameters.

>>> import hlo, indexing.ops
>>> entry = hlo.parse('''ENTRY e { p = f32[4,3] parameter(0)
...   t = f32[3,4] transpose(p), dimensions={1,0}  ROOT n = f32[3,4] negate(t) }''').entry
>>> from indexing.equivalence.pairing import pair_of
>>> side = pair_of(entry, entry).before
>>> reads = ElementReads.of(side, 0, (2, 1))
>>> print(reads.elements(side.inputs[0]), *reads.chain(side.inputs[0], (1, 2)), sep=" <- ")
((1, 2),) <- n[2,1] <- t[2,1] <- p[1,2]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.codegen.images import OperandValues, images
from indexing.dataflow.queries import output_to_input
from indexing.equivalence.pairing import Leaf, Side
from indexing.equivalence.verdicts import ElementIndex
from indexing.execution.values import Value, flattened
from indexing.maps.answers import Path
from simplifier.unknown import first_unknown

MAX_VISITED: Final = 2_000
"""Limit on the elements that are visited."""

MAX_READS: Final = 64
"""Limit on the elements of a map that are followed."""


class _Element(NamedTuple):
    instruction: Instruction
    path: Path
    at: ElementIndex

    def __str__(self) -> str:
        path = "".join(f".{k}" for k in self.path)
        return f"{self.instruction.name}{path}[{','.join(map(str, self.at))}]"


@dataclass(frozen=True, slots=True)
class ElementReads:
    """The elements that an output element depends on, up to `MAX_VISITED` of them.

    Attributes:
        came_from: for each element, the element that reads it; None for the output.
        is_complete: all reads are followed: no limit is exceeded, and no map is unknown.
    """

    came_from: dict[_Element, _Element | None]
    is_complete: bool = True

    @classmethod
    def of(
        cls,
        side: Side,
        output: int,
        element: ElementIndex,
        values: Mapping[Instruction, Value] | None = None,
    ) -> ElementReads:
        """Follow the reads of an output element.

        Args:
            output: number of the output leaf, by position.
            values: the value of each instruction in an execution; without them, maps with runtime
                variables are not followed.
        """
        number = side.outputs[output]
        paths = [path for path, _ in leaves(side.root.shape)]
        start = _Element(side.root, paths[number] if paths else (), element)
        came_from: dict[_Element, _Element | None] = {start: None}
        waiting = [start]
        is_complete = True
        for current in waiting:  # grows
            if len(came_from) >= MAX_VISITED:
                is_complete = False
                break
            for read in _reads(current, values or {}):
                if read is None:
                    is_complete = False
                elif read not in came_from:
                    came_from[read] = current
                    waiting.append(read)
        return cls(came_from, is_complete)

    def elements(self, leaf: Leaf) -> tuple[ElementIndex, ...]:
        """Return the elements of a parameter leaf that are read, sorted."""
        return tuple(sorted(each.at for each in self.came_from if each[:2] == leaf))

    def chain(self, leaf: Leaf, target: ElementIndex | None = None) -> tuple[str, ...]:
        """Return ``instruction[index]``, from the output to an element of a parameter leaf.

        Args:
            target: the element; None, or an element that is not read, for the nearest one.
        """
        ends = [each for each in self.came_from if each[:2] == leaf]
        end = next((each for each in ends if each.at == target), ends[0] if ends else None)
        chain: list[str] = []
        while end is not None:
            chain.append(str(end))
            end = self.came_from[end]
        return tuple(chain[::-1])


def _reads(element: _Element, values: Mapping[Instruction, Value]) -> Iterator[_Element | None]:
    """Yield the operand elements that an element reads; None in place of those left out."""
    instruction, path, at = element
    paths = [each for each, _ in leaves(instruction.shape)]
    answer = output_to_input(instruction, paths.index(path) if path else 0)
    if first_unknown(*answer.unknown) is not None:
        yield None
    known = OperandValues(
        instruction, [flattened(values.get(operand, ())) for operand in instruction.operands]
    )
    for k, operand in enumerate(instruction.operands):
        for m, operand_path in zip(answer.maps[k], answer.paths[k], strict=True):
            elements = images(known, m, at) if values or not m.runtime else None
            if elements is None or len(elements) > MAX_READS:
                yield None
            for j in sorted(elements or ())[:MAX_READS]:
                yield _Element(operand, operand_path, j)
