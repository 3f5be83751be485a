"""Answers from a walk: for programs on one device and, with other edges, on several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer, Direction, Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.deduplicate import deduplicate
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from simplifier.unknown import first_unknown


def to_operands(walk: Walk, instruction: Instruction, output_id: int) -> Answer:
    """For each operand, which of its elements an element of the output needs."""
    start = output_of(instruction, output_id)
    walk.prepare([instruction], backward=True)
    operands = instruction.operands
    found = []
    for edge in walk.reads(start):
        end = ArrayRef(operands[edge.operand], edge.operand_path)
        found.append(_Lead(edge.operand, end.path, start, end, edge.maps, edge.unknown))
    return _answer(walk, instruction, "output-to-input", output_id, operands, found)


def from_operand(walk: Walk, instruction: Instruction, input_id: int) -> Answer:
    """For each output, which of its elements need an element of an operand."""
    count = len(instruction.operands)
    if not 0 <= input_id < count:
        raise IndexError(f"`{instruction.name}` has {count} operands, no number {input_id}")
    walk.prepare([instruction], backward=False)
    outputs = {path: k for k, (path, _) in enumerate(leaves(instruction.shape))}
    found = []
    for edge in walk.writes(instruction, [input_id], outputs):
        start = ArrayRef(instruction.operands[input_id], edge.operand_path)
        end, place = ArrayRef(instruction, edge.output_path), outputs[edge.output_path]
        found.append(_Lead(place, start.path, start, end, edge.maps, edge.unknown))
    itself = (instruction,) * len(outputs)
    return _answer(walk, instruction, "input-to-output", input_id, itself, found)


def to_parameters(walk: Walk, instruction: Instruction, output_id: int) -> Answer:
    """For each parameter of the computation, which of its elements an output needs."""
    start = output_of(instruction, output_id)
    walk.prepare(up_to(instruction), backward=True)
    parameters = instruction.computation.parameters
    return _to(walk, start, output_id, parameters, walk.backward(start))


def all_to_parameters(walk: Walk, computation: Computation) -> Iterator[Answer]:
    """`to_parameters` for every output of every instruction, in text order."""
    walk.prepare(computation.instructions, backward=True)
    number = {parameter: k for k, parameter in enumerate(computation.parameters)}
    output, last = 0, None
    for start, reached in walk.sweep(computation):
        instruction = start.instruction
        output, last = (output + 1 if instruction is last else 0), instruction
        needed = sorted({array.instruction for array in reached}, key=number.__getitem__)
        yield _to(walk, start, output, tuple(needed), reached)


def output_of(instruction: Instruction, output_id: int) -> ArrayRef:
    """The array that output number `output_id` is.

    Raises:
        IndexError: there is no such output.
    """
    paths = [path for path, _ in leaves(instruction.shape)]
    if not 0 <= output_id < max(len(paths), 1):
        raise IndexError(f"`{instruction.name}` has {len(paths)} outputs, no number {output_id}")
    return ArrayRef(instruction, paths[output_id] if paths else ())


def up_to(instruction: Instruction) -> Sequence[Instruction]:
    """The instructions of a computation, up to one of them."""
    return instruction.computation.instructions[: instruction.index + 1]


class _Lead(NamedTuple):
    """Maps from one array to another; `place` and `path` tell where they are in the answer."""

    place: int
    path: Path
    start: ArrayRef
    end: ArrayRef
    maps: Iterable[IndexingMap]
    unknown: Unknown | None


def _to(
    walk: Walk,
    start: ArrayRef,
    output_id: int,
    parameters: tuple[Instruction, ...],
    reached: dict[ArrayRef, MapSet],
) -> Answer:
    """The answer that is about `parameters`, of all arrays that were reached."""
    place = {parameter: k for k, parameter in enumerate(parameters)}
    leads: dict[int, dict[Path, MapSet]] = {}
    for end, maps in reached.items():
        if end.instruction in place:
            if len(maps.maps) > 1:  # those added last may absorb others
                several = walk.edges.maps(start, end)
                several.extend(map(walk.edges.options.finished, maps.distinct), maps.unknown)
                maps = several
            leads.setdefault(place[end.instruction], {})[end.path] = maps
    return _assembled(start.instruction, "output-to-input", output_id, parameters, leads)


def _answer(
    walk: Walk,
    instruction: Instruction,
    direction: Direction,
    number: int,
    operands: tuple[Instruction, ...],
    found: Iterable[_Lead],
) -> Answer:
    """Leads sorted by the operand or output that they belong to, without duplicates."""
    edges, finished = walk.edges, walk.edges.options.finished
    leads: dict[int, dict[Path, MapSet]] = {}
    for lead in found:
        at = leads.setdefault(lead.place, {})
        if lead.path not in at:
            at[lead.path] = edges.maps(lead.start, lead.end)
        at[lead.path].extend(map(finished, lead.maps), lead.unknown)
    return _assembled(instruction, direction, number, operands, leads)


def _assembled(
    instruction: Instruction,
    direction: Direction,
    number: int,
    operands: tuple[Instruction, ...],
    leads: Mapping[int, Mapping[Path, MapSet]],
) -> Answer:
    """The answer with these maps, by the place of the operand or output and by the leaf."""
    maps: list[tuple[IndexingMap, ...]] = [()] * len(operands)
    paths: list[tuple[Path, ...]] = [()] * len(operands)
    unknown: list[Unknown | None] = [None] * len(operands)
    for place, sets in leads.items():
        pairs = [(m, path) for path, each in sets.items() for m in deduplicate(each.distinct)]
        maps[place] = tuple([m for m, _ in pairs])
        paths[place] = tuple([path for _, path in pairs])
        unknown[place] = first_unknown(*[each.unknown for each in sets.values()])
    return Answer(
        instruction, direction, number, operands, tuple(maps), tuple(paths), tuple(unknown)
    )
