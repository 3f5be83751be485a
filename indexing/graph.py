"""Composes the maps of instructions through fusions, calls and whole computations.

Backward from an output, or forward from an input, each instruction on the way is visited once and
carries the set of all maps that lead to it, without duplicates; paths are never enumerated.  A
fused or called computation is summarised once, from each leaf of its result to its parameters (and
back), and the summary takes part like the maps of any op.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from hlo.bind import check_instruction
from hlo.module import Computation, Instruction
from hlo.shape import Shape, leaves
from indexing.access import Path, Unknown
from indexing.map import IndexingMap
from indexing.op import InlineOp, MappedOp, RoutingOp, every_element
from indexing.simplify import composed_and_simplified

Node: TypeAlias = tuple[Instruction, Path]
"""One array of the program: an instruction's result, or a leaf of a tuple."""

# So many different maps to one array: the program reads it all over.  One map that reads
# everything, with the grade "may", takes their place.
MOST_MAPS = 256


@dataclass(frozen=True, slots=True)
class Options:
    """How maps are composed.

    Attributes:
        exact: disjoint exact pieces where one "may" map is usual.
        simplify: simplify each map.
        certify: prove each simplification with ISL.
    """

    exact: bool = False
    simplify: bool = True
    certify: bool = False

    def composed(self, first: IndexingMap, second: IndexingMap) -> IndexingMap:
        """``x -> second(first(x))``, simplified as these options say."""
        if self.simplify and not self.certify:
            return composed_and_simplified(first, second)
        return self.finished(first.then(second))

    def finished(self, found: IndexingMap) -> IndexingMap:
        """`found`, simplified as these options say."""
        return found.simplify(certify=self.certify) if self.simplify else found


@dataclass(slots=True)
class Maps:
    """The different maps that lead to one array, and why there may be others."""

    maps: dict[IndexingMap, None] = field(default_factory=dict)
    unknown: Unknown | None = None

    def add(self, found: IndexingMap) -> None:
        """Add a map, unless the same relation is there; the better grade stays.

        An empty relation stays only as long as it is the only one: then it says that an access was
        found, and that it reads nothing.
        """
        if self.maps:
            if found in self.maps or found.is_known_empty:
                return
            if next(iter(self.maps)).is_known_empty:
                self.maps.clear()
            for other in self.maps:
                if other.grade != found.grade and other.with_grade(found.grade) == found:
                    if found.grade == "exact":
                        del self.maps[other]
                        break
                    return
        self.maps[found] = None

    def add_composed(
        self,
        firsts: Collection[IndexingMap],
        seconds: Collection[IndexingMap],
        unknown: Unknown | None,
        options: Options,
    ) -> None:
        """Add each first map followed by each second one, and why there may be others."""
        self.unknown = self.unknown or unknown
        for first in firsts:
            for second in seconds:
                self.add(options.composed(first, second))

    def widen(self, source: object, target: object) -> None:
        """Where there are too many maps, put one in their place that needs all of `target`."""
        if len(self.maps) > MOST_MAPS and isinstance(source, Shape) and isinstance(target, Shape):
            self.maps = {every_element(source, target).with_grade("may"): None}


@dataclass(frozen=True, slots=True)
class Step:
    """How one instruction connects one array that it reads with one array that it writes.

    Attributes:
        operand, operand_path: the array that is read: a leaf of this operand.
        output_path: the leaf of the result that is written.
        maps: from output to operand where steps go backward, from operand to output where forward.
        unknown: why the maps cannot be said.
    """

    operand: int
    operand_path: Path
    output_path: Path
    maps: tuple[IndexingMap, ...] = ()
    unknown: Unknown | None = None


# ---------------------------------------------------------------- one instruction


def steps_back(instruction: Instruction, path: Path, options: Options) -> list[Step]:
    """What the leaf at `path` of an instruction's result reads of each operand.

    Raises:
        HloError: the instruction breaks a rule of its op, so that it has no meaning.
    """
    op = _checked_op(instruction)
    if isinstance(op, RoutingOp):
        operand, operand_path = op.route(path)
        same = _identity(instruction, path)
        return [Step(operand, operand_path, path, same)]
    if isinstance(op, InlineOp):
        return list(
            _through_call(instruction, reads_summary(_called(instruction), path, options), path)
        )
    operands = instruction.operands
    if not isinstance(op, MappedOp):
        return list(_unknown_steps(instruction, range(len(operands)), [path]))
    output = _leaf_number(instruction, path)
    found = op.reads(instruction.shape, tuple([o.shape for o in operands]), output, options.exact)
    return [_step(instruction, k, path, maps) for k, maps in enumerate(found)]


def steps_forward(
    instruction: Instruction, operand: int, path: Path, options: Options
) -> list[Step]:
    """Which elements of each leaf of the result need the leaf at `path` of an operand.

    Raises:
        HloError: the instruction breaks a rule of its op, so that it has no meaning.
    """
    op = _checked_op(instruction)
    if isinstance(op, RoutingOp):
        to = op.route_back(operand, path)
        return [] if to is None else [Step(operand, path, to, _identity(instruction, to))]
    outputs = [output for output, _ in leaves(instruction.shape)]
    if isinstance(op, InlineOp):
        called = _called(instruction)
        start = called.parameters[operand], path
        reached = [(output, writes_summary(called, output, options)) for output in outputs]
        return [
            Step(operand, path, output, *_moved(instruction, found[start]))
            for output, found in reached
            if start in found
        ]
    if not isinstance(op, MappedOp):
        return list(_unknown_steps(instruction, [operand], outputs))
    shapes = tuple([o.shape for o in instruction.operands])
    written = op.writes(instruction.shape, shapes, operand, options.exact)
    return [
        _step(instruction, operand, output, maps)
        for output, maps in zip(outputs, written, strict=True)
    ]


def _checked_op(instruction: Instruction) -> object:
    error = check_instruction(instruction)
    if error is not None:
        raise error
    return instruction.op


def _called(instruction: Instruction) -> Computation:
    return instruction.called_computations[0]


def _leaf_number(instruction: Instruction, path: Path) -> int:
    return next(k for k, (at, _) in enumerate(leaves(instruction.shape)) if at == path)


def leaf_shape(node: Node) -> object:
    """The shape of one array of the program."""
    instruction, path = node
    if not path:
        return instruction.shape
    return dict(leaves(instruction.shape))[path]


def _identity(instruction: Instruction, path: Path) -> tuple[IndexingMap, ...]:
    """Each element to itself; no map for a leaf without elements, such as a token."""
    shape = leaf_shape((instruction, path))
    return (IndexingMap.identity(shape),) if isinstance(shape, Shape) else ()


def _step(
    instruction: Instruction, operand: int, output: Path, maps: tuple[IndexingMap, ...] | Unknown
) -> Step:
    if isinstance(maps, Unknown):
        reason = f"{instruction.opcode} `{instruction.name}`: {maps.reason}"
        return Step(operand, (), output, (), Unknown(reason, instruction))
    placed = tuple([_placed(found, instruction) for found in maps])
    return Step(operand, (), output, placed)


def _placed(found: IndexingMap, instruction: Instruction) -> IndexingMap:
    """A map of an op as that of an instruction: runtime variables name their source."""
    if not found.runtime:
        return found
    operands = instruction.operands
    runtime = [
        replace(rt, source=operands[rt.source]) if isinstance(rt.source, int) else rt
        for rt in found.runtime
    ]
    return replace(found, runtime=tuple(runtime))


def _unknown_steps(
    instruction: Instruction, operands: Iterable[int], outputs: Iterable[Path]
) -> Iterator[Step]:
    """An opcode that nobody has taught us: what it reads of its operands is not known."""
    reason = f"no maps are known for opcode {instruction.opcode}, of `{instruction.name}`"
    why = Unknown(reason, instruction)
    for output in outputs:
        for operand in operands:
            for path, shape in leaves(instruction.operands[operand].shape):
                if isinstance(shape, Shape):
                    yield Step(operand, path, output, (), why)


# ---------------------------------------------------------------- through called computations


def reads_summary(computation: Computation, path: Path, options: Options) -> dict[Node, Maps]:
    """From the leaf at `path` of the root to every leaf of a parameter that it reads."""
    return _summary(backward, computation, path, options)


def writes_summary(computation: Computation, path: Path, options: Options) -> dict[Node, Maps]:
    """From every leaf of a parameter to the leaf at `path` of the root that needs it."""
    return _summary(forward, computation, path, options)


def _summary(
    walk: Callable[[Node, Options], dict[Node, Maps]],
    computation: Computation,
    path: Path,
    options: Options,
) -> dict[Node, Maps]:
    memo = computation.module.memo
    key = walk, computation, path, options
    if key not in memo:
        reached = walk((computation.root, path), options)
        memo[key] = {n: maps for n, maps in reached.items() if n[0].opcode == "parameter"}
    found: dict[Node, Maps] = memo[key]
    return found


def _through_call(
    instruction: Instruction, found: dict[Node, Maps], output: Path
) -> Iterator[Step]:
    number = {p: k for k, p in enumerate(_called(instruction).parameters)}
    for (parameter, path), maps in found.items():
        yield Step(number[parameter], path, output, *_moved(instruction, maps))


def _moved(instruction: Instruction, found: Maps) -> tuple[tuple[IndexingMap, ...], Unknown | None]:
    """Maps of a called computation as the caller sees them: its operands are the parameters."""
    operand = dict(zip(_called(instruction).parameters, instruction.operands, strict=True))
    return tuple([_with_operands(m, operand) for m in found.maps]), found.unknown


def _with_operands(found: IndexingMap, operand: dict[Instruction, Instruction]) -> IndexingMap:
    if not any(rt.source in operand or rt.is_fixed for rt in found.runtime):
        return found
    runtime = [
        replace(rt, source=operand[rt.source])
        if isinstance(rt.source, Instruction) and rt.source in operand
        else rt
        for rt in found.runtime
        if not rt.is_fixed
    ]
    return replace(found, runtime=tuple(runtime))


def prepare(
    instructions: Iterable[Instruction],
    options: Options,
    summary: Callable[[Computation, Path, Options], object],
) -> None:
    """Summarise what `instructions` call, the innermost first.

    Callees come before callers in `Module.computations`, so nesting of any depth needs no
    recursion.
    """
    pending = [c for i in instructions if _is_inlined(i) for c in i.called_computations]
    wanted: dict[Computation, None] = {}
    while pending:
        computation = pending.pop()
        if computation not in wanted:
            wanted[computation] = None
            for inner in computation.instructions:
                if _is_inlined(inner):
                    pending.extend(inner.called_computations)
    for computation in sorted(wanted, key=_position):
        for path, _ in leaves(computation.root.shape):
            summary(computation, path, options)


def _is_inlined(instruction: Instruction) -> bool:
    return isinstance(instruction.op, InlineOp)


def _position(computation: Computation) -> int:
    return list(computation.module.computations).index(computation.name)


# ---------------------------------------------------------------- through one computation


def backward(start: Node, options: Options) -> dict[Node, Maps]:
    """From the elements of `start` to those of every array in its computation that it needs."""
    found = _started(start)
    source = leaf_shape(start)
    waiting = {start[0]: [start[1]]}
    for instruction in _up_from(start):
        for path in waiting.pop(instruction, ()):
            here = found[instruction, path]
            for step in steps_back(instruction, path, options):
                to = instruction.operands[step.operand], step.operand_path
                if to not in found:
                    found[to] = Maps()
                    waiting.setdefault(to[0], []).append(to[1])
                unknown = step.unknown or here.unknown
                found[to].add_composed(here.maps, step.maps, unknown, options)
                found[to].widen(source, leaf_shape(to))
    return found


def forward(end: Node, options: Options) -> dict[Node, Maps]:
    """From the elements of every array in its computation that `end` needs to those of `end`.

    The walk goes back from `end` all the same: so one walk answers for every parameter.
    """
    found = _started(end)
    target = leaf_shape(end)
    waiting = {end[0]}
    for instruction in _up_from(end):
        if instruction not in waiting:
            continue
        for number, operand in enumerate(instruction.operands):
            for path, source in leaves(operand.shape):
                for step in steps_forward(instruction, number, path, options):
                    later = found.get((instruction, step.output_path))
                    if later is None:
                        continue
                    waiting.add(operand)
                    here = found.setdefault((operand, path), Maps())
                    unknown = step.unknown or later.unknown
                    here.add_composed(step.maps, later.maps, unknown, options)
                    here.widen(source, target)
    return found


def _up_from(start: Node) -> Iterator[Instruction]:
    """The instructions of a computation in reverse, from that of `start`: users before operands."""
    instruction = start[0]
    return reversed(instruction.computation.instructions[: instruction.index + 1])


def _started(start: Node) -> dict[Node, Maps]:
    shape = leaf_shape(start)
    begin = {IndexingMap.identity(shape): None} if isinstance(shape, Shape) else {}
    return {start: Maps(begin)}
