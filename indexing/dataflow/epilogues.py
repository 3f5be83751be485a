"""Parts of a computation: from a hero to the root of a fusion, and through several as if one.

A *hero* is the instruction of a fusion that decides how it is scheduled, such as a reduction or a
transpose; its *epilogue* is what is done with its result afterwards. Where the hero's element goes
is `epilogue`: the maps of the ways between the two, and of no others.

`grouped_through` is `indexing.grouped` for instructions that are not yet one fusion: a producer and
its consumer, each an instruction or itself a fusion. What they read of others is not looked into.

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
from warnings import warn

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


def epilogue(
    hero: Instruction,
    root: Instruction | None = None,
    *,
    output_id: int = 0,
    hero_output: int | None = None,
    **options: Unpack[OptionChoices],
) -> Answer:
    """For each output of `root`, which of its elements need an element of `hero`.

    All ways from the hero to the root count; where they are the same, which is what makes a hero,
    there is one map.

    Args:
        root: an instruction of the same computation; its root, if it is not given.
        output_id: which array of the hero, where its result is a tuple.
        hero_output: the old name of `output_id`.
        options: see `indexing.output_to_input`.
    Returns:
        ``maps[i]``: from elements of the hero to elements of output i of `root`; no map where the
        hero does not get there.
    Raises:
        HloError: an instruction on the way breaks a rule of its op.
        IndexError: there is no such output.
        ValueError: hero and root belong to different computations.
    """
    if hero_output is not None:
        warn("epilogue: hero_output is now called output_id", DeprecationWarning, stacklevel=2)
        output_id = hero_output
    root = hero.computation.root if root is None else root
    if root.computation is not hero.computation:
        raise ValueError(
            f"`{hero.name}` is an instruction of `{hero.computation.name}`, `{root.name}` one of "
            f"`{root.computation.name}`"
        )
    start = output_of(hero, output_id)
    walk, way = walk_of(**options), _between(hero, root)
    walk.prepare(way, backward=False)
    found: list[MapSet] = []
    for path, _ in leaves(root.shape):
        reached = walk.forward(ArrayRef(root, path), way)
        found.append(reached.get(start, MapSet()))
    maps = [deduplicate(lead.distinct) for lead in found]
    return Answer(
        hero,
        "input-to-output",
        output_id,
        (root,) * len(found),
        tuple(maps),
        tuple([(start.path,) * len(each) for each in maps]),
        tuple([lead.unknown for lead in found]),
    )


def _between(hero: Instruction, root: Instruction) -> list[Instruction]:
    """The hero, and what needs it up to `root`."""
    needs_hero = {hero: None}
    for instruction in hero.computation.instructions[hero.index + 1 : root.index + 1]:
        if not needs_hero.keys().isdisjoint(instruction.operands):
            needs_hero[instruction] = None
    return list(needs_hero)


def grouped_through(
    root: Instruction,
    instructions: Iterable[Instruction],
    output_id: int = 0,
    **options: Unpack[OptionChoices],
) -> Groups:
    """The maps from an output of `root` to `instructions` and to what these read from outside.

    A fusion or call among them is looked into: the answer has the instructions of its computation,
    except for parameters, in its place.

    Args:
        root: one of `instructions`, the last consumer.
        instructions: instructions of one computation, as if they were one fusion.
        options: see `indexing.output_to_input`.
    Returns:
        For each instruction its maps. Instructions of which nothing is known are not in it.
    Raises:
        HloError: an instruction breaks a rule of its op.
        IndexError: there is no such output.
        ValueError: `instructions` are not of one computation, or `root` is none of them.
    """
    within = {*instructions}
    if root not in within or any(i.computation is not root.computation for i in within):
        names = ", ".join(f"`{i.name}` of `{i.computation.name}`" for i in within)
        raise ValueError(f"`{root.name}` has to be one of several of one computation, not {names}")
    start, walk = output_of(root, output_id), walk_of(**options)
    walk.prepare(within, backward=True)
    groups: dict[ArrayRef, MapSet] = {}
    reached = walk.backward(start, within)
    inside_first = sorted(reached, key=lambda array: array.instruction not in within)
    for array in inside_first:
        here = reached[array]
        for inner, maps in _inside(walk, array, within):
            group = groups.setdefault(inner, walk.edges.maps(start, inner))
            unknown = first_unknown(maps.unknown, here.unknown)
            group.add_composed(here.maps, maps.maps, unknown)
    return Groups(
        {array: deduplicate(found.distinct) for array, found in groups.items() if found.maps}
    )


def _inside(
    walk: Walk, array: ArrayRef, within: Collection[Instruction]
) -> Iterator[tuple[ArrayRef, MapSet]]:
    """The array itself; for a fusion or a call `within`, the arrays that it consists of."""
    instruction, path, _ = array
    if instruction not in within or not isinstance(instruction.op, InlineOp):
        yield array, MapSet(walk.edges.identity(array))
        return
    called = instruction.called_computations[0]
    numbers = {parameter: k for k, parameter in enumerate(called.parameters)}
    for inner, maps in walk.backward(ArrayRef(called.root, path)).items():
        if inner.instruction not in numbers:
            placed = MapSet([in_caller(instruction, m, numbers) for m in maps.maps])
            placed.unknown = maps.unknown
            yield inner, placed
