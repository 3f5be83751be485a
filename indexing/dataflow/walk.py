"""Composes the maps of instructions through fusions, calls and whole computations.

Backward from an output, or forward from an input, each instruction on the way is visited once and
carries the set of all maps that lead to it, without duplicates; paths are never enumerated.  A
fused or called computation is summarised once, from each leaf of its result to its parameters (and
back), and the summary takes part like the maps of any op.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial

from hlo.modules.bind import check_instruction
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaves
from hlo.text.source import HloError
from indexing.dataflow.runtime import folded, forwarded_from
from indexing.maps.answers import Path, Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.ops.access_edge import AccessEdge, identity
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import StructuredOp, Summaries
from simplifier.unknown import first_unknown

# ---------------------------------------------------------------- one instruction


def edges_back(instruction: Instruction, path: Path, options: Options) -> list[AccessEdge]:
    """What the leaf at `path` of an instruction's result reads of each operand.

    Raises:
        HloError: the instruction breaks a rule of its op, so that it has no meaning.
    """
    op = _checked_op(instruction)
    if isinstance(op, RoutingOp):
        operand, operand_path = op.route(path)
        return [AccessEdge(operand, operand_path, path, identity(ArrayRef(instruction, path)))]
    if isinstance(op, StructuredOp):
        summaries = Summaries(
            partial(reads_summary, options=options), backward=True, forwarded_from=forwarded_from
        )
        return list(op.edges(instruction, path, summaries))
    operands = instruction.operands
    if not isinstance(op, MappedOp):
        return list(_unknown_steps(instruction, range(len(operands)), [path]))
    output = _leaf_number(instruction, path)
    found = op.reads(instruction.shape, tuple([o.shape for o in operands]), output, options.exact)
    return [_step(instruction, k, path, maps) for k, maps in enumerate(found)]


def edges_forward(
    instruction: Instruction,
    operands: Collection[int],
    outputs: Collection[Path],
    options: Options,
) -> list[AccessEdge]:
    """Which elements of the leaves at `outputs` need elements of `operands`, leaf by leaf of these.

    Raises:
        HloError: the instruction breaks a rule of its op, so that it has no meaning.
    """
    steps = _steps_forward(instruction, operands, outputs, options)
    return sorted(steps, key=lambda step: (step.operand, step.operand_path))


def _steps_forward(
    instruction: Instruction,
    operands: Collection[int],
    outputs: Collection[Path],
    options: Options,
) -> Iterator[AccessEdge]:
    op = _checked_op(instruction)
    if isinstance(op, RoutingOp):
        for operand in operands:
            for path, _ in leaves(instruction.operands[operand].shape):
                to = op.route_back(operand, path)
                if to is not None and to in outputs:
                    yield AccessEdge(operand, path, to, identity(ArrayRef(instruction, to)))
    elif isinstance(op, StructuredOp):
        summaries = Summaries(
            partial(writes_summary, options=options), backward=False, forwarded_from=forwarded_from
        )
        for output in outputs:
            for step in op.edges(instruction, output, summaries):
                if step.operand in operands:
                    yield step
    elif isinstance(op, MappedOp):
        shapes = tuple([o.shape for o in instruction.operands])
        every = [output for output, _ in leaves(instruction.shape)]
        for operand in operands:
            written = op.writes(instruction.shape, shapes, operand, options.exact)
            for output, maps in zip(every, written, strict=True):
                if output in outputs:
                    yield _step(instruction, operand, output, maps)
    else:
        yield from _unknown_steps(instruction, operands, outputs)


def fault_of(instruction: Instruction) -> HloError | None:
    """`hlo.modules.bind.check_instruction`; that nothing is wrong is remembered."""
    sound: set[Instruction] = instruction.module.memo.setdefault(fault_of, set())
    if instruction in sound:
        return None
    error = check_instruction(instruction)
    if error is None and instruction.op is not None:
        sound.add(instruction)
    return error


def _checked_op(instruction: Instruction) -> object:
    error = fault_of(instruction)
    if error is not None:
        raise error
    return instruction.op


def _leaf_number(instruction: Instruction, path: Path) -> int:
    if not path:
        return 0
    return next(k for k, (at, _) in enumerate(leaves(instruction.shape)) if at == path)


def _step(
    instruction: Instruction, operand: int, output: Path, maps: tuple[IndexingMap, ...] | Unknown
) -> AccessEdge:
    if isinstance(maps, Unknown):
        reason = f"{instruction.opcode} `{instruction.name}`: {maps.reason}"
        return AccessEdge(operand, (), output, (), Unknown(reason, instruction))
    placed = tuple([_placed(found, instruction) for found in maps])
    return AccessEdge(operand, (), output, placed)


def _placed(found: IndexingMap, instruction: Instruction) -> IndexingMap:
    """A map of an op as that of an instruction: runtime variables name their source."""
    if not found.runtime:
        return found
    operands = instruction.operands
    runtime = [
        replace(rt, array=ArrayRef(operands[rt.source])) if isinstance(rt.source, int) else rt
        for rt in found.runtime
    ]
    return replace(found, runtime=tuple(runtime))


def _unknown_steps(
    instruction: Instruction, operands: Iterable[int], outputs: Iterable[Path]
) -> Iterator[AccessEdge]:
    """An opcode that nobody has taught us: what it reads of its operands is not known."""
    reason = f"no maps are known for opcode {instruction.opcode}, of `{instruction.name}`"
    why = Unknown(reason, instruction)
    for output in outputs:
        for operand in operands:
            for path, shape in leaves(instruction.operands[operand].shape):
                if isinstance(shape, Shape):
                    yield AccessEdge(operand, path, output, (), why)


# ---------------------------------------------------------------- through called computations


def reads_summary(computation: Computation, path: Path, options: Options) -> dict[ArrayRef, MapSet]:
    """From the leaf at `path` of the root to every leaf of a parameter that it reads."""
    return _summary(backward, computation, path, options)


def writes_summary(
    computation: Computation, path: Path, options: Options
) -> dict[ArrayRef, MapSet]:
    """From every leaf of a parameter to the leaf at `path` of the root that needs it."""
    return _summary(forward, computation, path, options)


def _summary(
    walk: Callable[[ArrayRef, Options], dict[ArrayRef, MapSet]],
    computation: Computation,
    path: Path,
    options: Options,
) -> dict[ArrayRef, MapSet]:
    def summarised() -> dict[ArrayRef, MapSet]:
        reached = walk(ArrayRef(computation.root, path), options)
        return {n: maps for n, maps in reached.items() if n[0].opcode == "parameter"}

    return computation.module.remembered((walk, computation, path, options), summarised)


def prepare(
    instructions: Iterable[Instruction],
    options: Options,
    summary: Callable[[Computation, Path, Options], object],
) -> None:
    """Summarise what `instructions` call, the innermost first.

    Callees come before callers in `Module.computations`, so nesting of any depth needs no
    recursion.
    """
    pending = [c for i in instructions if _calls(i) for c in i.called_computations]
    wanted: dict[Computation, None] = {}
    while pending:
        computation = pending.pop()
        if computation not in wanted:
            wanted[computation] = None
            for inner in computation.instructions:
                if _calls(inner):
                    pending.extend(inner.called_computations)
    for computation in sorted(wanted, key=_position):
        for path, _ in leaves(computation.root.shape):
            summary(computation, path, options)


def _calls(instruction: Instruction) -> bool:
    return isinstance(instruction.op, StructuredOp)


def _position(computation: Computation) -> int:
    return list(computation.module.computations).index(computation.name)


# ---------------------------------------------------------------- through one computation


def backward(start: ArrayRef, options: Options) -> dict[ArrayRef, MapSet]:
    """From the elements of `start` to those of every array in its computation that it needs."""
    source = start.shape

    def steps(instruction: Instruction, path: Path) -> Iterator[AccessEdge]:
        return known_starts(edges_back(instruction, path, options))

    def join(here: MapSet, step: AccessEdge, to: ArrayRef, there: MapSet) -> None:
        target, unknown = to.shape, first_unknown(step.unknown, here.unknown)
        there.add_composed(here.maps, step.maps, unknown, options, target)
        there.widen(source, target, options)

    return walk_back(start, MapSet(dict.fromkeys(identity(start))), steps, join)


def walk_back(
    start: ArrayRef,
    itself: MapSet,
    steps: Callable[[Instruction, Path], Iterable[AccessEdge]],
    join: Callable[[MapSet, AccessEdge, ArrayRef, MapSet], None],
) -> dict[ArrayRef, MapSet]:
    """What `start`, whose maps are `itself`, needs of every array in its computation.

    `steps` are those of a leaf; ``join(here, step, to, there)`` adds to the maps `there`, which
    lead to `to`, those that lead `here` and on by `step`.
    """
    found = {start: itself}
    waiting = {start[0]: [start[1]]}
    for instruction in _up_from(start):
        for path in waiting.pop(instruction, ()):
            here = found[ArrayRef(instruction, path)]
            for step in steps(instruction, path):
                to = ArrayRef(instruction.operands[step.operand], step.operand_path)
                if to not in found:
                    found[to] = MapSet()
                    waiting.setdefault(to[0], []).append(to[1])
                join(here, step, to, found[to])
    return found


def forward(end: ArrayRef, options: Options) -> dict[ArrayRef, MapSet]:
    """From the elements of every array in its computation that `end` needs to those of `end`.

    The walk goes back from `end` all the same: so one walk answers for every parameter.
    """
    target = end.shape

    def steps(instruction: Instruction, outputs: list[Path]) -> Iterator[AccessEdge]:
        every = range(len(instruction.operands))
        return known_starts(edges_forward(instruction, every, outputs, options))

    def join(here: MapSet, step: AccessEdge, start: ArrayRef, later: MapSet) -> None:
        unknown = first_unknown(step.unknown, later.unknown)
        here.add_composed(step.maps, later.maps, unknown, options, target)
        here.widen(start.shape, target, options)

    return walk_forward(end, MapSet(dict.fromkeys(identity(end))), steps, join)


def walk_forward(
    end: ArrayRef,
    itself: MapSet,
    steps: Callable[[Instruction, list[Path]], Iterable[AccessEdge]],
    join: Callable[[MapSet, AccessEdge, ArrayRef, MapSet], None],
) -> dict[ArrayRef, MapSet]:
    """What every array in its computation means for `end`, whose maps are `itself`.

    `steps` are those of an instruction to some of its leaves; ``join(here, step, start, later)``
    adds to the maps `here`, which lead from `start`, those of `step` and `later` on.
    """
    found = {end: itself}
    waiting = {end[0]}
    for instruction in _up_from(end):
        if instruction not in waiting:
            continue
        outputs = [
            path for path, _ in leaves(instruction.shape) if ArrayRef(instruction, path) in found
        ]
        for step in steps(instruction, outputs):
            later = found[ArrayRef(instruction, step.output_path)]
            start = ArrayRef(instruction.operands[step.operand], step.operand_path)
            waiting.add(start[0])
            join(found.setdefault(start, MapSet()), step, start, later)
    return found


def known_starts(steps: Iterable[AccessEdge]) -> Iterator[AccessEdge]:
    """`steps` without the runtime variables whose value the program says."""
    for step in steps:
        if any(found.runtime for found in step.maps):
            maps = tuple([piece for found in step.maps for piece in folded(found)])
            yield replace(step, maps=maps)
        else:
            yield step


def _up_from(start: ArrayRef) -> Iterator[Instruction]:
    """The instructions of a computation in reverse, from that of `start`: users before operands."""
    instruction = start[0]
    return reversed(instruction.computation.instructions[: instruction.index + 1])


def sweep(
    computation: Computation, options: Options
) -> Iterator[tuple[ArrayRef, dict[ArrayRef, MapSet]]]:
    """For every array of a computation, in text order, the maps to the parameters that it needs.

    Each instruction adds one step to what its operands need: unlike a walk from every array, this
    takes as long as the answers are, and forgets them after their last use.
    """
    last_use = {o: i.index for i in computation.instructions for o in i.operands}
    known: dict[Instruction, dict[Path, dict[ArrayRef, MapSet]]] = {}
    for instruction in computation.instructions:
        known[instruction] = {}
        for path, _ in leaves(instruction.shape):
            reached = _one_step(instruction, path, known, options)
            known[instruction][path] = reached
            yield ArrayRef(instruction, path), reached
        for operand in (instruction, *instruction.operands):
            if last_use.get(operand, operand.index) == instruction.index:
                known.pop(operand, None)


def _one_step(
    instruction: Instruction,
    path: Path,
    known: dict[Instruction, dict[Path, dict[ArrayRef, MapSet]]],
    options: Options,
) -> dict[ArrayRef, MapSet]:
    """What a leaf of an instruction needs of each parameter; that is known of its operands."""
    here = ArrayRef(instruction, path)
    if instruction.opcode == "parameter":
        return _started(here)
    reached: dict[ArrayRef, MapSet] = {}
    source = here.shape
    for step in known_starts(edges_back(instruction, path, options)):
        operand = instruction.operands[step.operand]
        for parameter, later in known[operand][step.operand_path].items():
            maps = reached.setdefault(parameter, MapSet())
            unknown = first_unknown(step.unknown, later.unknown)
            maps.add_composed(step.maps, later.maps, unknown, options, parameter.shape)
            maps.widen(source, parameter.shape, options)
    return reached


def _started(start: ArrayRef) -> dict[ArrayRef, MapSet]:
    return {start: MapSet(dict.fromkeys(identity(start)))}
