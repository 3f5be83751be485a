"""Answers assembled from a walk, for programs on one device or on several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final, NamedTuple, TypeAlias

from hlo.memo import Memo
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.compositions import Compositions
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import require_sound, require_sound_parameters
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer, Direction, Unknown
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.assumed_map import mark_assumptions
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.maps.over_approximation import is_within_limits
from indexing.maps.reasons import Reason
from indexing.maps.space_pairs import SpacePair
from indexing.ops.access_edge import AccessEdge
from simplifier.unknown import first_unknown


def to_operands(
    walk: Walk, instruction: Instruction, output_id: int, *, fold: bool = False
) -> Answer:
    """Return the maps from an output to each operand.

    Args:
        fold: replace runtime variables by their value if the program determines it.
    """
    answer = _to_operands(walk, instruction, output_id, fold)
    if not walk.edges.options.assume:
        return answer
    return _mark_assumptions(
        answer, _to_operands(walk.without_assumptions, instruction, output_id, fold), walk
    )


def _to_operands(walk: Walk, instruction: Instruction, output_id: int, fold: bool) -> Answer:
    path = _output_path(instruction, output_id)
    if instruction.called_computations:
        walk.prepare([instruction], backward=True)
    else:
        require_sound((instruction,))
    start, operands = ArrayRef(instruction, path), instruction.operands

    def edges() -> Iterator[_PlacedEdge]:
        for edge in walk.backward_edges(start, fold=fold):
            yield edge.operand, edge.operand_path, edge

    def spaces(edge: AccessEdge) -> SpacePair:
        end = ArrayRef(operands[edge.operand], edge.operand_path)
        return walk.edges.spaces(start, end)

    return _answer(
        *(walk, instruction, "output-to-input", output_id, operands, edges, spaces),
        is_of_op=not fold,
    )


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

    def edges() -> Iterator[_PlacedEdge]:
        for edge in walk.forward_edges(instruction, [input_id], outputs):
            yield outputs[edge.output_path], edge.operand_path, edge

    def spaces(edge: AccessEdge) -> SpacePair:
        start = ArrayRef(instruction.operands[input_id], edge.operand_path)
        return walk.edges.spaces(start, ArrayRef(instruction, edge.output_path))

    return _answer(walk, instruction, "input-to-output", input_id, targets, edges, spaces)


def to_parameters(walk: Walk, instruction: Instruction, output_id: int) -> Answer:
    """Return the maps from an output to each parameter of its computation."""
    return next(outputs_to_parameters(walk, instruction, [output_id]))


def outputs_to_parameters(
    walk: Walk, instruction: Instruction, output_ids: Sequence[int]
) -> Iterator[Answer]:
    """Yield the maps from each of several outputs to each parameter of the computation."""
    answers = _outputs_to_parameters(walk, instruction, output_ids)
    if not walk.edges.options.assume:
        return answers
    plain = _outputs_to_parameters(walk.without_assumptions, instruction, output_ids)
    return _mark_all_assumptions(answers, plain, walk)


def _outputs_to_parameters(
    walk: Walk, instruction: Instruction, output_ids: Sequence[int]
) -> Iterator[Answer]:
    starts = [output_of(instruction, number) for number in output_ids]
    require_sound_parameters(instruction.computation)
    walk.prepare(dependencies_of([instruction]), backward=True)
    parameters, entry_of = instruction.computation.parameters, _memoised_entries(walk)
    options, are_several = walk.edges.options, len(starts) > 1
    shared = Compositions(options, edges_first=False, keeps_steps=are_several)
    for start, number in zip(starts, output_ids, strict=True):
        reached = walk.to_only_parameter(start, shared)
        yield _parameter_answer(start, number, parameters, reached, entry_of, options)


def all_to_parameters(walk: Walk, computation: Computation) -> Iterator[Answer]:
    """Yield the maps to the parameters for every output of every instruction, in text order."""
    answers = _all_to_parameters(walk, computation)
    if not walk.edges.options.assume:
        return answers
    plain = _all_to_parameters(walk.without_assumptions, computation)
    return _mark_all_assumptions(answers, plain, walk)


def _all_to_parameters(walk: Walk, computation: Computation) -> Iterator[Answer]:
    require_sound_parameters(computation)
    walk.prepare(computation.instructions, backward=True)
    number = {parameter: k for k, parameter in enumerate(computation.parameters)}
    output, last = 0, None
    entry_of, options = _memoised_entries(walk), walk.edges.options
    for start, reached in walk.sweep(computation):
        instruction = start.instruction
        output, last = (output + 1 if instruction is last else 0), instruction
        needed = sorted({array.instruction for array in reached}, key=number.__getitem__)
        yield _parameter_answer(start, output, tuple(needed), reached, entry_of, options)


def _mark_all_assumptions(
    answers: Iterable[Answer], plain: Iterable[Answer], walk: Walk
) -> Iterator[Answer]:
    pairs = zip(answers, plain, strict=True)
    return (_mark_assumptions(answer, other, walk) for answer, other in pairs)


def _mark_assumptions(answer: Answer, plain: Answer, walk: Walk) -> Answer:
    """Return an answer whose maps need the assumptions of a walk where `plain` has others."""
    others: Iterable[Iterable[IndexingMap]] = plain.maps
    if plain.operands != answer.operands:  # those that are read
        known = dict(zip(plain.operands, plain.maps, strict=True))
        others = [known.get(operand, ()) for operand in answer.operands]
    names = tuple(walk.edges.options.assume)
    pairs = zip(answer.maps, others, strict=True)
    return replace(
        answer, maps=tuple([mark_assumptions(own, other, names) for own, other in pairs])
    )


def output_of(instruction: Instruction, output_id: int) -> ArrayRef:
    """Return the array of output number `output_id`.

    Raises:
        IndexError: `output_id` is out of range.
    """
    return ArrayRef(instruction, _output_path(instruction, output_id))


def _output_path(instruction: Instruction, output_id: int) -> Path:
    outputs = leaves(instruction.shape)
    if not 0 <= output_id < max(len(outputs), 1):
        raise IndexError(
            f"`{instruction.name}` has no output {output_id} (number of outputs: {len(outputs)})"
        )
    return outputs[output_id][0] if outputs else ()


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


def is_shared(walk: Walk, instruction: Instruction) -> bool:
    """Return True if the maps of an array to its operands are known to follow from its form.

    So they are those of each instruction of the same form.
    """
    if not instruction.operands:
        return True
    key = walk.edges.sharing_key(instruction, "output-to-input", 0)
    return key is not None and key in _SHARED


class _Entry(NamedTuple):
    """The entry of one operand or output in each field of `_Contents`."""

    maps: tuple[IndexingMap, ...] = ()
    paths: tuple[Path, ...] = ()
    unknown: Unknown | None = None
    reasons: tuple[tuple[Reason, ...], ...] = ()
    control: tuple[bool, ...] = ()


_UNREAD: Final = _Entry()


_PlacedEdge: TypeAlias = tuple[int, Path, AccessEdge]
"""An edge, after its position and path in the answer."""

_Spaces: TypeAlias = Callable[[AccessEdge], SpacePair]
"""The index spaces of the maps of an edge."""


def _parameter_answer(
    start: ArrayRef,
    output_id: int,
    parameters: tuple[Instruction, ...],
    reached: dict[ArrayRef, MapSet],
    entry_of: Callable[[Path, MapSet], _Entry],
    options: Options,
) -> Answer:
    """Return the answer for `parameters`, from the maps to all arrays that were reached."""
    entries: dict[Instruction, _Entry] = dict.fromkeys(parameters, _UNREAD)
    several: dict[Instruction, list[_Entry]] = {}
    for (parameter, path, _), maps in reached.items():
        if parameter not in entries:
            continue
        if path:
            several.setdefault(parameter, []).append(entry_of(path, maps))
        else:
            entries[parameter] = entry_of(path, maps)
    entries |= {
        parameter: _unite_entries(leaf_entries) for parameter, leaf_entries in several.items()
    }
    contents = _contents(entries.values())
    return Answer(start.instruction, "output-to-input", output_id, parameters, *contents, options)


def _memoised_entries(walk: Walk) -> Callable[[Path, MapSet], _Entry]:
    """Return the function that lists a map set for a leaf of a parameter.

    Many parameters have one map set: see `indexing.dataflow.compositions`.
    """
    return lru_cache(maxsize=1 << 12)(partial(_listed_entry, walk.edges.options))


def _listed_entry(options: Options, path: Path, maps: MapSet) -> _Entry:
    """Return the entry of a leaf at `path`, without maps that later ones subsume."""
    if len(maps.maps) < 2:
        return _leaf_entry(path, maps)
    several = MapSet((), maps.spaces, options)  # later maps may subsume earlier ones
    reasons, control = maps.reasons, maps.control
    several.extend(maps.effective, maps.unknown, reasons, control, options.simplify_map)
    several.coalesce(is_readable=True)
    return _leaf_entry(path, several)


def _answer(
    walk: Walk,
    instruction: Instruction,
    direction: Direction,
    number: int,
    operands: tuple[Instruction, ...],
    edges: Callable[[], Iterable[_PlacedEdge]],
    spaces: _Spaces,
    *,
    is_of_op: bool = True,
) -> Answer:
    """Return the answer with these edges; instructions with the same op and shapes share it.

    Args:
        is_of_op: False if the edges depend on the values of operands.
    """
    options = walk.edges.options
    if not operands:
        return Answer(instruction, direction, number, (), *_NOTHING, options)
    key = walk.edges.sharing_key(instruction, direction, number) if is_of_op else None
    contents = None if key is None else _SHARED.get(key)
    if contents is None:
        listed = [_UNREAD] * len(operands)
        for position, entry in _operand_entries(options, edges(), spaces):
            listed[position] = entry
        contents = _contents(listed)
        if key is not None and contents.is_of_shapes:
            _SHARED.keep(key, contents)
    return Answer(instruction, direction, number, operands, *contents, options)


def _operand_entries(
    options: Options, edges: Iterable[_PlacedEdge], spaces: _Spaces
) -> Iterator[tuple[int, _Entry]]:
    """Yield the position and the entry of each operand or output that edges reach.

    The entries have no duplicate maps.
    """
    by_position: dict[int, dict[Path, list[AccessEdge]]] = {}
    for position, path, edge in edges:
        by_position.setdefault(position, {}).setdefault(path, []).append(edge)
    for position, by_path in by_position.items():
        entries = [_edges_entry(options, path, each, spaces) for path, each in by_path.items()]
        yield position, _unite_entries(entries)


def _edges_entry(
    options: Options, path: Path, edges: Sequence[AccessEdge], spaces: _Spaces
) -> _Entry:
    """Return the entry of one leaf from the edges to it."""
    edge = edges[0]
    if len(edges) == 1 and len(edge.maps) == 1 and edge.is_exact:
        only = options.simplify_map(edge.maps[0])
        if is_within_limits(only):
            return _Entry((only,), (path,), None, ((),), (edge.maps[0] in edge.control,))
    maps = MapSet((), spaces(edge), options)
    for each in edges:
        maps.extend(each.maps, each.unknown, each.reasons, each.control, options.simplify_map)
    return _leaf_entry(path, maps)


def _leaf_entry(path: Path, maps: MapSet) -> _Entry:
    """Return the entry of an operand with one leaf, at `path`."""
    distinct = maps.distinct
    return _Entry(
        tuple([m for m, _ in distinct]),
        (path,) * len(distinct),
        maps.unknown,
        tuple([maps.reasons_of(m) for m, _ in distinct]),
        tuple([is_control for _, is_control in distinct]),
    )


def _contents(entries: Collection[_Entry]) -> _Contents:
    """Return the contents with these entries of each operand or output."""
    return _Contents(*zip(*entries, strict=True)) if entries else _NOTHING


def _unite_entries(leaf_entries: Sequence[_Entry]) -> _Entry:
    """Return the entry of an operand or output from those of its leaves."""
    if len(leaf_entries) == 1:
        return leaf_entries[0]
    return _Entry(
        tuple([m for each in leaf_entries for m in each.maps]),
        tuple([path for each in leaf_entries for path in each.paths]),
        first_unknown(*[each.unknown for each in leaf_entries]),
        tuple([reasons for each in leaf_entries for reasons in each.reasons]),
        tuple([is_control for each in leaf_entries for is_control in each.control]),
    )
