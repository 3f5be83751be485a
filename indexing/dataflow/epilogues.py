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

from collections.abc import Iterable, Iterator

from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing.dataflow.walk import (
    backward,
    edges_back,
    edges_forward,
    known_starts,
    prepare,
    reads_summary,
    writes_summary,
)
from indexing.maps.answers import Answer, Path
from indexing.maps.arrays import ArrayRef
from indexing.maps.deduplicate import deduplicate
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.ops.access_edge import identity
from indexing.ops.structured_ops import InlineOp, in_caller
from simplifier.unknown import first_unknown

Groups = dict[Instruction, tuple[IndexingMap, ...]]


def epilogue(
    hero: Instruction,
    root: Instruction | None = None,
    *,
    hero_output: int = 0,
    exact: bool = False,
    simplify: bool = True,
) -> Answer:
    """For each output of `root`, which of its elements need an element of `hero`.

    All ways from the hero to the root count; where they are the same, which is what makes a hero,
    there is one map.

    Args:
        root: an instruction of the same computation; its root, if it is not given.
        hero_output: which array of the hero, where its result is a tuple.
        exact: see `indexing.output_to_input`.
    Returns:
        ``maps[i]``: from elements of the hero to elements of output i of `root`; no map where the
        hero does not get there.
    Raises:
        HloError: an instruction on the way breaks a rule of its op.
        IndexError: there is no such output.
        ValueError: hero and root belong to different computations.
    """
    root = hero.computation.root if root is None else root
    if root.computation is not hero.computation:
        raise ValueError(
            f"`{hero.name}` is an instruction of `{hero.computation.name}`, `{root.name}` one of "
            f"`{root.computation.name}`"
        )
    paths = [path for path, _ in leaves(hero.shape)]
    if not 0 <= hero_output < len(paths):
        raise IndexError(f"`{hero.name}` has {len(paths)} outputs, no number {hero_output}")
    options = Options(exact, simplify)
    way = _between(hero, root)
    prepare(way, options, writes_summary)
    found = [
        _followed(hero, paths[hero_output], ArrayRef(root, path), way, options)
        for path, _ in leaves(root.shape)
    ]
    maps = [deduplicate(lead.maps) for lead in found]
    return Answer(
        hero,
        "input-to-output",
        hero_output,
        (root,) * len(found),
        tuple(maps),
        tuple([(paths[hero_output],) * len(each) for each in maps]),
        tuple([lead.unknown for lead in found]),
    )


def _between(hero: Instruction, root: Instruction) -> list[Instruction]:
    """What `root` needs of that which needs `hero`, the last first; without the hero."""
    needs_hero = {hero}
    for instruction in hero.computation.instructions[hero.index + 1 : root.index + 1]:
        if not needs_hero.isdisjoint(instruction.operands):
            needs_hero.add(instruction)
    needs_hero.discard(hero)
    return sorted(needs_hero, key=lambda instruction: -instruction.index)


def _followed(
    hero: Instruction, path: Path, end: ArrayRef, way: list[Instruction], options: Options
) -> MapSet:
    """The maps from the leaf at `path` of the hero to `end`, along instructions of the way."""
    found: dict[ArrayRef, MapSet] = {end: MapSet(dict.fromkeys(identity(end)))}
    on_way = {hero, *way}
    for instruction in way:
        outputs = [at for at, _ in leaves(instruction.shape) if ArrayRef(instruction, at) in found]
        operands = [k for k, o in enumerate(instruction.operands) if o in on_way]
        steps = edges_forward(instruction, operands, outputs, options) if outputs else []
        for step in known_starts(steps):
            later = found[ArrayRef(instruction, step.output_path)]
            source = ArrayRef(instruction.operands[step.operand], step.operand_path)
            unknown = first_unknown(step.unknown, later.unknown)
            here = found.setdefault(source, MapSet())
            here.add_composed(step.maps, later.maps, unknown, options)
    return found.get(ArrayRef(hero, path), MapSet())


def grouped_through(
    root: Instruction,
    instructions: Iterable[Instruction],
    output_id: int = 0,
    *,
    exact: bool = False,
    simplify: bool = True,
) -> Groups:
    """The maps from an output of `root` to `instructions` and to what these read from outside.

    A fusion or call among them is looked into: the answer has the instructions of its computation,
    except for parameters, in its place.

    Args:
        root: one of `instructions`, the last consumer.
        instructions: instructions of one computation, as if they were one fusion.
    Returns:
        For each instruction its maps. Instructions of which nothing is known are not in it.
    Raises:
        HloError: an instruction breaks a rule of its op.
        IndexError: there is no such output.
        ValueError: `instructions` are not of one computation, or `root` is none of them.
    """
    within = sorted({*instructions}, key=lambda instruction: -instruction.index)
    if root not in within or any(i.computation is not root.computation for i in within):
        names = ", ".join(f"`{i.name}` of `{i.computation.name}`" for i in within)
        raise ValueError(f"`{root.name}` has to be one of several of one computation, not {names}")
    outputs = leaves(root.shape)
    if not 0 <= output_id < len(outputs):
        raise IndexError(f"`{root.name}` has {len(outputs)} outputs, no number {output_id}")
    options = Options(exact, simplify)
    prepare(within, options, reads_summary)
    start = ArrayRef(root, outputs[output_id][0])
    found: dict[ArrayRef, MapSet] = {start: MapSet(dict.fromkeys(identity(start)))}
    groups: dict[Instruction, MapSet] = {}
    for instruction in within:
        for path in [
            path for path, _ in leaves(instruction.shape) if ArrayRef(instruction, path) in found
        ]:
            here = found.pop(ArrayRef(instruction, path))
            for inner, maps in _inside(instruction, path, options):
                group = groups.setdefault(inner, MapSet())
                group.add_composed(
                    here.maps, maps.maps, first_unknown(maps.unknown, here.unknown), options
                )
            for step in known_starts(edges_back(instruction, path, options)):
                source = ArrayRef(instruction.operands[step.operand], step.operand_path)
                later = found.setdefault(source, MapSet())
                unknown = first_unknown(step.unknown, here.unknown)
                later.add_composed(here.maps, step.maps, unknown, options)
    for (outside, _, _), maps in found.items():
        group = groups.setdefault(outside, MapSet())
        for m in maps.maps:
            group.add(m)
    return {each: deduplicate(maps.maps) for each, maps in groups.items() if maps.maps}


def _inside(
    instruction: Instruction, path: Path, options: Options
) -> Iterator[tuple[Instruction, MapSet]]:
    """The instruction itself; for a fusion or a call those that it consists of."""
    if not isinstance(instruction.op, InlineOp):
        yield instruction, MapSet(dict.fromkeys(identity(ArrayRef(instruction, path))))
        return
    called = instruction.called_computations[0]
    numbers = {parameter: k for k, parameter in enumerate(called.parameters)}
    for (inner, _, _), maps in backward(ArrayRef(called.root, path), options).items():
        if inner not in numbers:
            placed = [in_caller(instruction, m, numbers) for m in maps.maps]
            yield inner, MapSet(dict.fromkeys(placed), maps.unknown)
