"""Maps through parts of a computation: the epilogue of a fusion hero, and unfused producers.

The *hero* of a fusion is the instruction that determines its schedule, such as a reduction or a
transpose.  Its *epilogue* is the computation from its result to the root.  `epilogue` composes the
maps of all paths between the two.

`grouped_through` is `indexing.grouped` for a producer and its consumer that are not fused yet.
Each may be a single instruction or a fusion.  Their other operands are not followed further.

Source: XLA ``docs/indexing.md`` and the notes on ``ComputeEpilogueInputToOutputIndexing`` and
``ComputeGroupedOutputToInputIndexing`` in ``xla/hlo/analysis/indexing_analysis.h``.

>>> import hlo, indexing
>>> entry = hlo.parse('''ENTRY e {
...   p = f32[8,6] parameter(0)
...   b = f32[6] parameter(1)
...   t = f32[6,8] transpose(p), dimensions={1,0}
...   c = f32[6,8] broadcast(b), dimensions={0}
...   s = f32[6,8] add(t, c)
...   ROOT r = f32[48] reshape(s)
... }''').entry
>>> print(*epilogue(entry["t"]).maps[0])
(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 5], d1 in [0, 7]
>>> for each, maps in grouped_through(entry["s"], [entry["t"], entry["s"]]).items():
...     print(each.name, *maps)
s (d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 7]
t (d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 7]
c (d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 7]
p (d0, d1) -> (d1, d0), domain: d0 in [0, 5], d1 in [0, 7]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Unpack

from hlo.arguments import checked
from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.answering import output_of
from indexing.dataflow.queries import Groups, walk_of
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.deduplicate import deduplicate
from indexing.maps.map_set import MapSet
from indexing.maps.options import OptionChoices
from indexing.ops.structured_ops import InlineOp, in_caller
from simplifier.unknown import first_unknown


@checked
def epilogue(
    hero: Instruction,
    root: Instruction | None = None,
    *,
    output_id: int = 0,
    **options: Unpack[OptionChoices],
) -> Answer:
    """Return the maps from elements of `hero` to the elements of each output of `root`.

    All paths from the hero to the root count.  Equal maps of several paths are one map.

    Args:
        hero: the instruction whose result the maps start from.
        root: an instruction of the same computation; the root of the computation by default.
        output_id: number of the hero's output: the leaves of a tuple are counted in order.
        options: see `indexing.output_to_input`.
    Returns:
        ``maps[k]``: the maps to output k of `root`; ``()`` if it does not depend on the hero.
    Raises:
        HloError: an instruction between the hero and the root is invalid.
        IndexError: `output_id` is out of range.
        ValueError: `hero` and `root` belong to different computations.
    Source: XLA ``xla/hlo/analysis/indexing_analysis.h``, ``ComputeEpilogueInputToOutputIndexing``.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[4,6] parameter(0)
    ...   t = f32[6,4] transpose(p), dimensions={1,0}
    ...   n = f32[6,4] negate(t)
    ...   ROOT r = f32[24] reshape(n)
    ... }''').entry
    >>> print(*epilogue(entry["t"]).maps[0])
    (d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 5], d1 in [0, 3]
    """
    root = hero.computation.root if root is None else root
    if root.computation is not hero.computation:
        raise ValueError(
            f"hero and root must belong to one computation: `{hero.name}` belongs to "
            f"`{hero.computation.name}`, `{root.name}` to `{root.computation.name}`"
        )
    start = output_of(hero, output_id)
    walk, within = walk_of(**options), _between(hero, root)
    walk.prepare(within, backward=False)
    map_sets: list[MapSet] = []
    outputs = leaves(root.shape)
    for path, _ in outputs:
        reached = walk.forward(ArrayRef(root, path), within)
        map_sets.append(reached.get(start, MapSet()))
    distinct = [map_set.distinct for map_set in map_sets]
    maps = [tuple([m for m, _ in each]) for each in distinct]
    return Answer(
        hero,
        "output-to-root",
        output_id,
        (root,) * len(map_sets),
        tuple(maps),
        tuple([(path,) * len(each) for (path, _), each in zip(outputs, maps, strict=True)]),
        tuple([map_set.unknown for map_set in map_sets]),
        tuple([tuple(map(each.reasons_of, ms)) for each, ms in zip(map_sets, maps, strict=True)]),
        tuple([tuple([is_control for _, is_control in each]) for each in distinct]),
        walk.edges.options,
    )


def _between(hero: Instruction, root: Instruction) -> list[Instruction]:
    """Return the hero and the instructions up to `root` that depend on it."""
    needs_hero = {hero: None}
    for instruction in hero.computation.instructions[hero.index + 1 : root.index + 1]:
        if not needs_hero.keys().isdisjoint(instruction.operands):
            needs_hero[instruction] = None
    return list(needs_hero)


@checked
def grouped_through(
    root: Instruction,
    instructions: Iterable[Instruction],
    output_id: int = 0,
    **options: Unpack[OptionChoices],
) -> Groups:
    """Return the maps from an output of `root` to `instructions` and to their outside operands.

    A fusion or call among `instructions` is replaced by the instructions of its computation, except
    parameters.

    Args:
        root: the last consumer, one of `instructions`.
        instructions: instructions of one computation, treated as one fusion.
        output_id: number of the output of `root`: the leaves of a tuple are counted in order.
        options: see `indexing.output_to_input`.
    Returns:
        The maps to each instruction.  Instructions whose maps are all unknown are missing.
    Raises:
        HloError: an instruction is invalid.
        IndexError: `output_id` is out of range.
        ValueError: `instructions` belong to several computations, or do not contain `root`.
    Source: XLA ``xla/hlo/analysis/indexing_analysis.h``, ``ComputeGroupedOutputToInputIndexing``.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[4,6] parameter(0)
    ...   producer = f32[6,4] transpose(p), dimensions={1,0}
    ...   ROOT consumer = f32[24] reshape(producer)
    ... }''').entry
    >>> for each, maps in grouped_through(entry.root, [entry["producer"], entry.root]).items():
    ...     print(each.name, *maps)
    consumer (d0) -> (d0), domain: d0 in [0, 23]
    producer (d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 23]
    p (d0) -> (d0 mod 4, d0 floordiv 4), domain: d0 in [0, 23]
    """
    within = dict.fromkeys(instructions)
    if root not in within or any(i.computation is not root.computation for i in within):
        names = ", ".join(f"`{i.name}` of `{i.computation.name}`" for i in within)
        raise ValueError(
            f"instructions must contain the root `{root.name}` and belong to its computation "
            f"`{root.computation.name}`: {names}"
        )
    start, walk = output_of(root, output_id), walk_of(**options)
    walk.prepare(within, backward=True)
    groups: dict[ArrayRef, MapSet] = {}
    reached = walk.backward(start, within)
    inside_first = sorted(reached, key=lambda array: array.instruction not in within)
    for array in inside_first:
        here = reached[array]
        for inner, maps in _inside(walk, array, within):
            group = groups.setdefault(inner, walk.edges.empty_map_set(start, inner))
            unknown = first_unknown(maps.unknown, here.unknown)
            group.add_composed(here.maps, maps.maps, unknown)
    return Groups(
        {array: deduplicate(maps.effective) for array, maps in groups.items() if maps.maps}
    )


def _inside(
    walk: Walk, array: ArrayRef, within: Collection[Instruction]
) -> Iterator[tuple[ArrayRef, MapSet]]:
    """Yield the array itself, or for a fusion or call `within` the arrays of its computation."""
    instruction, path, _ = array
    if instruction not in within or not isinstance(instruction.op, InlineOp):
        yield array, MapSet(walk.edges.identity(array))
        return
    called = instruction.called_computations[0]
    operands = range(len(instruction.operands))
    for inner, maps in walk.backward(ArrayRef(called.root, path)).items():
        if inner.instruction.opcode != "parameter":
            placed = MapSet([in_caller(instruction, operands, called, m) for m in maps.maps])
            placed.unknown = maps.unknown
            yield inner, placed
