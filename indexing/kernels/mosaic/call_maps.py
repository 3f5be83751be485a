"""The maps of a custom call of Mosaic: from an element of a result to what its kernel may read.

An element is written at the steps of the grid whose block has it.  There, the kernel may use what
it loads at these steps, and what it has kept of earlier ones (`indexing.kernels.mosaic.carried`).
So a map is composed of three: result to steps, steps to steps, steps to elements of an operand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Final, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.kernels.mosaic.bodies import read_body
from indexing.kernels.mosaic.body import BodyAccess, CertainStore, NotReadError
from indexing.kernels.mosaic.body_ops import new_execution
from indexing.kernels.mosaic.carried import earlier_steps, first_carried
from indexing.kernels.mosaic.compiled_call import CompiledCall, compiled_call, main_function
from indexing.kernels.mosaic.placed_parts import WHOLE, Part, PlacedPart, placed_part
from indexing.kernels.mosaic.views import contains_box
from indexing.maps.answers import Path
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.over_approximation import every_element
from indexing.maps.properties import is_surjective_onto
from indexing.pallas.block_maps import PlacedOperand
from indexing.pallas.races import hazard_verdict
from simplifier.domain import narrow
from simplifier.linear import as_expr
from simplifier.unknown import Unknown

MAX_PARTS: Final = 8
"""Limit on the parts of a block that a body loads or stores; beyond it, they are the block."""

_ALIAS: Final = re.compile(r"\{([\d,\s]*)\}:\s*\((\d+),\s*\{\s*\}")

Maps: TypeAlias = tuple[IndexingMap, ...]
Alias: TypeAlias = tuple[int, int]
"""An output, and the operand in whose buffer it is."""


def mosaic_maps(instruction: Instruction, body: str, output: Path, operand: int) -> Maps | Unknown:
    """Return the maps from a result of a ``tpu_custom_call`` to an operand, of the grade "may".

    Args:
        body: the entry ``custom_call_config.body`` of its configuration.
        output: the path of the result.
    """
    arrays = [each.shape for each in instruction.operands]
    results = leaves(instruction.shape)
    operands = tuple([shape for shape in arrays if isinstance(shape, Shape)])
    outputs = tuple([shape for _, shape in results if isinstance(shape, Shape)])
    if len(operands) != len(arrays) or len(outputs) != len(results):
        return Unknown("an operand or a result of the custom call is not an array")
    paths = [path for path, _ in results]
    text = getattr(instruction.op, "output_to_operand_aliasing", "")
    pairs = [(_path(out), int(source)) for out, source in _ALIAS.findall(text)]
    aliases = frozenset([(paths.index(out), source) for out, source in pairs if out in paths])
    reads = kernel_reads(body, operands, outputs, aliases)
    if isinstance(reads, Unknown):
        return reads
    maps = reads.maps(paths.index(output), operand)
    return maps if isinstance(maps, Unknown) else tuple([_of_call(m, instruction) for m in maps])


def _path(text: str) -> Path:
    return tuple([int(number) for number in text.split(",") if number.strip()])


def _of_call(index_map: IndexingMap, instruction: Instruction) -> IndexingMap:
    """Return a map with the operands of a custom call as the sources of its runtime variables."""
    runtime = [
        replace(rt, array=ArrayRef(instruction.operands[rt.source]))
        if isinstance(rt.source, int)
        else rt
        for rt in index_map.runtime
    ]  # fmt: skip
    return replace(index_map, runtime=tuple(runtime)) if runtime else index_map


@lru_cache(maxsize=512)
def kernel_reads(
    body: str, operands: tuple[Shape, ...], outputs: tuple[Shape, ...], aliases: frozenset[Alias]
) -> KernelReads | Unknown:
    """Return what a kernel reads; `Unknown` with the obstacle if its text does not have it.

    Args:
        operands, outputs: the shapes of the arrays of the custom call.
        aliases: its outputs in buffers of operands.
    """
    module = read_body(body)
    if isinstance(module, Unknown):
        return module
    try:
        call = compiled_call(module, operands, outputs)
        execution = new_execution(module)
        execution.function(main_function(module).name, call.arguments())
    except NotReadError as error:
        return Unknown(str(error))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # jaxlib verifies only some of the attributes and types of a module
        return Unknown(f"the module is not a valid kernel of Mosaic: {error}")
    first = first_carried(execution.accesses, execution.stores, call.grid)
    reads = KernelReads(
        call, tuple(execution.accesses), execution.stores, first, operands, outputs, aliases
    )
    return replace(reads, first=0) if reads.reads_what_is_written else reads


@dataclass(frozen=True, slots=True)
class KernelReads:
    """A kernel with the loads and stores of a step of its grid.

    Attributes:
        accesses: the loads and stores of the body.
        stored: for each buffer, the stores that have been executed at the end of a step.
        first: the first dimension of the grid along which values are carried.
        operands, outputs: the shapes of the arrays of the custom call.
        aliases: its outputs in buffers of operands.
    """

    compiled: CompiledCall
    accesses: tuple[BodyAccess, ...]
    stored: Mapping[int, Sequence[CertainStore]]
    first: int
    operands: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    aliases: frozenset[Alias]

    @property
    def reads_what_is_written(self) -> bool:
        """True unless no step reads of an operand what another has written into its buffer."""
        call = self.compiled.call
        for output, operand in self.aliases:
            place = operand - self._scalar_count
            if place < 0 or not self._accesses(place, is_store=False):
                continue
            source = PlacedOperand.of(call, call.operands[place])
            target = PlacedOperand.of(call, call.operands[self._place(output)])
            if isinstance(source, Unknown) or isinstance(target, Unknown):
                return True
            if hazard_verdict(source, target).word is not False:
                return True
        return False

    def maps(self, output: int, operand: int) -> Maps | Unknown:
        """Return the maps from an output to an operand, all of the grade "may"."""
        scalars = self._scalar_count
        if operand < scalars:
            return self._scalar_maps(output, operand)
        written = self._written_parts(output)
        if isinstance(written, Unknown):
            return written
        steps = [part.steps(self.outputs[output]) for part in written]
        places = [operand - scalars]
        places += [self._place(out) for out, source in sorted(self.aliases) if source == operand]
        carried = earlier_steps(self.compiled.grid, self.first)
        maps: list[IndexingMap] = []
        for place in places:
            parts = self._parts(place, self._accesses(place, is_store=False))
            if isinstance(parts, Unknown):
                return parts
            elements = [part.elements for part in parts]
            maps += [
                step.then(carried).then(read).simplify() for step in steps for read in elements
            ]
        if (output, operand) in self.aliases and not self._is_written(output):
            maps.append(IndexingMap.identity(self.outputs[output].dims))
        return tuple(dict.fromkeys([m.with_grade("may") for m in maps if not m.is_known_empty]))

    @property
    def _scalar_count(self) -> int:
        """The number of operands before the inputs: sizes of the grid, and scalars."""
        return self.compiled.dynamic_count + len(self.compiled.reads_scalars)

    def _scalar_maps(self, output: int, operand: int) -> Maps:
        """Return the maps to a size of the grid, or to all scalars of an operand that is read."""
        number = operand - self.compiled.dynamic_count
        buffer = len(self.compiled.program_ids) + number
        is_loaded = any(a.buffer == buffer for a in self.accesses)
        if number >= 0 and not is_loaded and not self.compiled.reads_scalars[number]:
            return ()
        every = every_element(self.outputs[output], self.operands[operand])
        return (every.with_grade("may"),)

    def _place(self, output: int) -> int:
        """The number of an output among the inputs and outputs of the kernel."""
        return len(self.operands) - self._scalar_count + output

    def _accesses(self, place: int, *, is_store: bool) -> list[BodyAccess]:
        buffer = self.compiled.first_operand + place
        return [a for a in self.accesses if a.buffer == buffer and a.is_store == is_store]

    def _parts(self, place: int, accesses: Iterable[BodyAccess]) -> list[PlacedPart] | Unknown:
        """Return the parts of an array that a step accesses."""
        parts = list(dict.fromkeys([(a.box, a.conditions) for a in accesses]))
        if len(parts) > MAX_PARTS or any(self._is_whole(place, part) for part in parts):
            parts = [WHOLE]
        return self._place_parts(place, parts)

    def _place_parts(self, place: int, parts: Sequence[Part]) -> list[PlacedPart] | Unknown:
        """Return parts of the blocks of an operand, for each case of their index."""
        call, cases = self.compiled.call, self.compiled.cases[place]
        if isinstance(cases, Unknown):
            return cases
        placed: list[PlacedPart] = []
        for case, (box, conditions) in product(cases, parts):
            spec = replace(call.operands[place], index=case.index)
            both = tuple(dict.fromkeys((*case.conditions, *conditions)))
            if not narrow((), both).is_known_empty:
                part = placed_part(call, spec, (box, both))
                if isinstance(part, Unknown):
                    return part
                placed.append(part)
        return placed

    def _written_parts(self, output: int) -> list[PlacedPart] | Unknown:
        """Return the parts of an output that a step writes: the block, if there is a pipeline."""
        place = self._place(output)
        if not self.compiled.has_window[place]:
            return self._parts(place, self._accesses(place, is_store=True))
        return self._place_parts(place, [WHOLE])

    def _is_written(self, output: int) -> bool:
        """True if each element of an output is in a block that each step stores as a whole."""
        place = self._place(output)
        stores = self.stored.get(self.compiled.first_operand + place, ())
        if self.compiled.dynamic_count or not self.compiled.has_window[place]:
            return False
        if not any(self._is_whole(place, (store.box, store.conditions)) for store in stores):
            return False
        blocks = self._place_parts(place, [WHOLE])
        if isinstance(blocks, Unknown):
            return False
        return is_surjective_onto([b.elements for b in blocks], self.outputs[output]) is True

    def _is_whole(self, place: int, part: Part) -> bool:
        """True if a part is all of a block, at all steps."""
        block, (box, conditions) = self.compiled.call.operands[place].block, part
        if conditions or isinstance(block, Unknown):
            return False
        return box is None or contains_box(box, tuple([(as_expr(0), d.size) for d in block]))
