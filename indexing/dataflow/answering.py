"""Answers assembled from a walk, for programs on one device or on several."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from hlo.memo import Memo
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.needed import needed_by
from indexing.dataflow.soundness import require_sound_parameters
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer, Direction, Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge
from simplifier.unknown import first_unknown


def to_operands(walk: Walk, instruction: Instruction, output_id: int) -> Answer:
    """Return the maps from an output to each operand."""
    start = output_of(instruction, output_id)
    walk.prepare([instruction], backward=True)
    operands = instruction.operands

    def entries() -> Iterator[_Entry]:
        for edge in walk.backward_edges(start):
            end = ArrayRef(operands[edge.operand], edge.operand_path)
            yield _Entry(edge.operand, end.path, start, end, edge)

    return _answer(walk, instruction, "output-to-input", output_id, operands, entries)


def from_operand(walk: Walk, instruction: Instruction, input_id: int) -> Answer:
    """Return the maps from an operand to each output."""
    count = len(instruction.operands)
    if not 0 <= input_id < count:
        raise IndexError(
            f"`{instruction.name}` has no operand {input_id} (number of operands: {count})"
        )
    walk.prepare([instruction], backward=False)
    outputs = {path: k for k, (path, _) in enumerate(leaves(instruction.shape))}
    targets = (instruction,) * len(outputs)

    def entries() -> Iterator[_Entry]:
        for edge in walk.forward_edges(instruction, [input_id], outputs):
            start = ArrayRef(instruction.operands[input_id], edge.operand_path)
            end, position = ArrayRef(instruction, edge.output_path), outputs[edge.output_path]
            yield _Entry(position, start.path, start, end, edge)

    return _answer(walk, instruction, "input-to-output", input_id, targets, entries)


def to_parameters(walk: Walk, instruction: Instruction, output_id: int) -> Answer:
    """Return the maps from an output to each parameter of its computation."""
    start = output_of(instruction, output_id)
    require_sound_parameters(instruction.computation)
    walk.prepare(needed_by([instruction]), backward=True)
    parameters = instruction.computation.parameters
    return _parameter_answer(walk, start, output_id, parameters, walk.to_only_parameter(start))


def all_to_parameters(walk: Walk, computation: Computation) -> Iterator[Answer]:
    """Yield the maps to the parameters for every output of every instruction, in text order."""
    require_sound_parameters(computation)
    walk.prepare(computation.instructions, backward=True)
    number = {parameter: k for k, parameter in enumerate(computation.parameters)}
    output, last = 0, None
    for start, reached in walk.sweep(computation):
        instruction = start.instruction
        output, last = (output + 1 if instruction is last else 0), instruction
        needed = sorted({array.instruction for array in reached}, key=number.__getitem__)
        yield _parameter_answer(walk, start, output, tuple(needed), reached)


def output_of(instruction: Instruction, output_id: int) -> ArrayRef:
    """Return the array of output number `output_id`.

    Raises:
        IndexError: `output_id` is out of range.
    """
    outputs = leaves(instruction.shape)
    if not 0 <= output_id < max(len(outputs), 1):
        raise IndexError(
            f"`{instruction.name}` has no output {output_id} (number of outputs: {len(outputs)})"
        )
    return ArrayRef(instruction, outputs[output_id][0] if outputs else ())


class _Contents(NamedTuple):
    """The fields of an answer that have an entry for each operand or output; see `Answer`."""

    maps: tuple[tuple[IndexingMap, ...], ...] = ()
    paths: tuple[tuple[Path, ...], ...] = ()
    unknown: tuple[Unknown | None, ...] = ()
    reasons: tuple[tuple[tuple[Reason, ...], ...], ...] = ()
    control: tuple[tuple[bool, ...], ...] = ()

    @property
    def is_of_shapes(self) -> bool:
        """True if no entry refers to an instruction: they follow from an op and its shapes."""
        return (
            all(reason is None for reason in self.unknown)
            and not any(any(reasons) for reasons in self.reasons)
            and not any(m.runtime for maps in self.maps for m in maps)
        )


_NOTHING: Final = _Contents()
_SHARED: Final = Memo[Hashable, _Contents](1 << 12)
"""The contents of answers that follow from an op and its shapes; see `Edges.sharing_key`."""


class _Entry(NamedTuple):
    """An edge from one array to another, with its position and path in the answer."""

    position: int
    path: Path
    start: ArrayRef
    end: ArrayRef
    edge: AccessEdge


def _parameter_answer(
    walk: Walk,
    start: ArrayRef,
    output_id: int,
    parameters: tuple[Instruction, ...],
    reached: dict[ArrayRef, MapSet],
) -> Answer:
    """Return the answer for `parameters`, from the maps to all arrays that were reached."""
    position = {parameter: k for k, parameter in enumerate(parameters)}
    map_sets: dict[int, dict[Path, MapSet]] = {}
    for end, maps in reached.items():
        if end.instruction in position:
            if len(maps.maps) > 1:  # later maps may subsume earlier ones
                several = walk.edges.empty_map_set(start, end)
                simplified = walk.edges.options.simplified
                several.extend(maps.effective, maps.unknown, maps.reasons, maps.control, simplified)
                maps = several
            map_sets.setdefault(position[end.instruction], {})[end.path] = maps
    contents = _contents(len(parameters), map_sets)
    return Answer(start.instruction, "output-to-input", output_id, parameters, *contents)


def _answer(
    walk: Walk,
    instruction: Instruction,
    direction: Direction,
    number: int,
    operands: tuple[Instruction, ...],
    entries: Callable[[], Iterable[_Entry]],
) -> Answer:
    """Return the answer with these entries; instructions with the same op and shapes share it."""
    if not operands:
        return Answer(instruction, direction, number, (), *_NOTHING)
    key = walk.edges.sharing_key(instruction, direction, number)
    contents = None if key is None else _SHARED.get(key)
    if contents is None:
        contents = _contents(len(operands), _map_sets(walk, entries()))
        if key is not None and contents.is_of_shapes:
            _SHARED.keep(key, contents)
    return Answer(instruction, direction, number, operands, *contents)


def _map_sets(walk: Walk, entries: Iterable[_Entry]) -> dict[int, dict[Path, MapSet]]:
    """Return the maps of entries by position and path, without duplicates."""
    edges, simplified = walk.edges, walk.edges.options.simplified
    map_sets: dict[int, dict[Path, MapSet]] = {}
    for entry in entries:
        by_path = map_sets.setdefault(entry.position, {})
        if entry.path not in by_path:
            by_path[entry.path] = edges.empty_map_set(entry.start, entry.end)
        edge = entry.edge
        by_path[entry.path].extend(edge.maps, edge.unknown, edge.reasons, edge.control, simplified)
    return map_sets


def _contents(count: int, map_sets: Mapping[int, Mapping[Path, MapSet]]) -> _Contents:
    """Return the contents for `count` operands or outputs, whose maps are keyed by position."""
    maps: list[tuple[IndexingMap, ...]] = [()] * count
    paths: list[tuple[Path, ...]] = [()] * count
    reasons: list[tuple[tuple[Reason, ...], ...]] = [()] * count
    control: list[tuple[bool, ...]] = [()] * count
    unknown: list[Unknown | None] = [None] * count
    for position, sets in map_sets.items():
        entries = [(*each, path) for path, maps_ in sets.items() for each in maps_.distinct]
        maps[position] = tuple([m for m, _, _ in entries])
        paths[position] = tuple([path for _, _, path in entries])
        reasons[position] = tuple([sets[path].reasons_of(m) for m, _, path in entries])
        control[position] = tuple([is_control for _, is_control, _ in entries])
        unknown[position] = first_unknown(*[each.unknown for each in sets.values()])
    every = tuple(maps), tuple(paths), tuple(unknown), tuple(reasons), tuple(control)
    return _Contents(*every)
