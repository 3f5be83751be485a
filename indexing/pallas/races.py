"""Races between steps of parallel dimensions, and hazards of inputs that alias outputs.

A block is written as a whole: on TPU all of it is written back, also where the kernel writes a part
of it.  On GPU, a block is a pointer: what several programs share is a race only if the kernel
writes it, which the blocks do not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from indexing.maps.map_copies import MapCopy, unequal
from indexing.pallas.block_maps import PlacedOperand, at_least, before, equal
from indexing.pallas.block_tables import BlockTable
from indexing.pallas.bounds import ArrayIndex, GridPoint
from indexing.pallas.calls import PIPELINED
from indexing.pallas.enumerated import EnumeratedBlocks
from indexing.pallas.visits import blocks_meet, first_shared, of_pair, place, symbol_values
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.unions import Clause
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

Meeting: TypeAlias = tuple[GridPoint, GridPoint, ArrayIndex]
"""Two steps, and an element of the blocks of both."""


@dataclass(frozen=True, slots=True)
class SharingVerdict:
    """The verdict about an element that two steps share.

    Attributes:
        word: True, False, or "may".
        at: the steps, and the element: of a race, two steps that write it; of a hazard, the step
            that writes it and the step that reads it.
        dimension: the number of the parallel dimension in which the steps of a race differ.
        symbols: the smallest symbolic sizes for this answer.
        reason: what the answer depends on.
    """

    word: bool | Literal["may"]
    at: Meeting | None = None
    dimension: int | None = None
    symbols: tuple[tuple[str, int], ...] = ()
    reason: str = ""


def race_verdict(operand: PlacedOperand, table: BlockTable | Unknown) -> SharingVerdict:
    """Return whether steps that differ in a parallel dimension write one element.

    The table of the operand decides where isl does not.
    """
    a, b = operand.copy("a."), operand.copy("b.")
    shared = blocks_meet(operand, a, operand, b)
    best: tuple[int, dict[Variable, int]] | None = None
    for k, dimension in enumerate(operand.call.grid):
        if not dimension.is_parallel:
            continue
        differ = at_least(b.dims[k], a.dims[k] + 1)
        point = of_pair(operand, a, b, [*shared, differ])
        if isinstance(point, Unknown):
            return _on_device(operand, _enumerated_race(table, point))
        if point is not None and (best is None or _key(point) < _key(best[1])):
            best = k, point
    if best is None:
        return SharingVerdict(False)
    k, at = best
    verdict = SharingVerdict(True, _meeting(a, b, at), k, symbol_values(operand, at))
    return _or_may([operand], _on_device(operand, verdict))


def _enumerated_race(table: BlockTable | Unknown, reason: Unknown) -> SharingVerdict:
    """Return the verdict from all blocks where isl does not decide."""
    blocks = EnumeratedBlocks.of(table)
    if isinstance(blocks, Unknown):
        return SharingVerdict("may", reason=str(reason))
    race = blocks.race()
    if race is None:
        return SharingVerdict(False)
    k, first, second, element = race
    return SharingVerdict(True, (first, second, element), k)


def _on_device(operand: PlacedOperand, verdict: SharingVerdict) -> SharingVerdict:
    """Return a race as "may" where blocks are pointers."""
    if verdict.word is True and not _is_copied(operand):
        return _as_may(verdict, "a race only if the kernel writes what the programs share")
    return verdict


def _is_copied(operand: PlacedOperand) -> bool:
    """True if a pipeline copies the blocks; otherwise they are pointers."""
    return operand.call.target == "tpu" and operand.spec.space in PIPELINED


def _key(at: dict[Variable, int]) -> list[int]:
    return list(at.values())


def _meeting(a: MapCopy, b: MapCopy, at: dict[Variable, int]) -> Meeting:
    return place(a, at), place(b, at), first_shared(a, b, at)


def _as_may(verdict: SharingVerdict, reason: str) -> SharingVerdict:
    return SharingVerdict("may", verdict.at, verdict.dimension, verdict.symbols, reason)


def _or_may(operands: list[PlacedOperand], verdict: SharingVerdict) -> SharingVerdict:
    """Return a verdict that holds for some scalars or grids, as "may" if there are any."""
    is_sure = not any(o.scalars for o in operands) and not operands[0].call.dynamic
    if verdict.word is True and not is_sure:
        return _as_may(verdict, "it happens for some scalars or grids")
    return verdict


def hazard_verdict(source: PlacedOperand, output: PlacedOperand) -> SharingVerdict:
    """Return whether an input that aliases an output is read after a step has written it.

    A block is read when it is copied in: at a step whose block differs from that of the step
    before.  In sequence, the write of an earlier step is a hazard, and that of a later one is not.
    Steps that differ in a parallel dimension have no order.
    """
    writer, reader = output.copy("a."), source.copy("b.")
    shared = blocks_meet(source, reader, output, writer)
    best: dict[Variable, int] | None = None
    for constraints, clauses in _ways(source, writer, reader):
        if any(c.is_false for c in constraints):
            continue
        point = of_pair(output, writer, reader, [*shared, *constraints], clauses)
        if isinstance(point, Unknown):
            return SharingVerdict("may", reason=str(point))
        if point is not None and (best is None or _key(point) < _key(best)):
            best = point
    if best is None:
        return SharingVerdict(False)
    verdict = SharingVerdict(
        True, _meeting(writer, reader, best), None, symbol_values(output, best)
    )
    if not (_is_copied(source) and _is_copied(output)):
        return _as_may(verdict, "a hazard only if the kernel writes and reads what they share")
    return _or_may([source, output], verdict)


def _ways(
    source: PlacedOperand, writer: MapCopy, reader: MapCopy
) -> list[tuple[list[Constraint], list[Clause]]]:
    """Return the ways in which a step can read what another one has written."""
    ways: list[tuple[list[Constraint], list[Clause]]] = []
    for k, dimension in enumerate(source.call.grid):
        if dimension.is_parallel:
            ways.append(([at_least(writer.dims[k], reader.dims[k] + 1)], []))
            ways.append(([at_least(reader.dims[k], writer.dims[k] + 1)], []))
    for constraints, changes in copies_in(source, reader):
        ways.append((constraints, [before(writer.dims, reader.dims), *changes]))
    return ways


def copies_in(operand: PlacedOperand, step: MapCopy) -> list[tuple[list[Constraint], list[Clause]]]:
    """Return when a step after the first one has another block than the step before.

    If the block depends on scalars, or if it is a pointer, every step counts.
    """
    if operand.scalars or not _is_copied(operand):
        return [([], [])]
    cases: list[tuple[list[Constraint], list[Clause]]] = []
    sizes = [each.size for each in operand.call.grid]
    for k in range(len(sizes)):
        previous = [
            *[v.as_expr() for v in step.dims[:k]],
            step.dims[k] - 1,
            *[n - 1 for n in sizes[k + 1 :]],
        ]
        swap = Substitution(dict(zip(step.dims, previous, strict=True)))
        changes = unequal(step.results, [swap(e) for e in step.results])
        starts_again = [equal(v, 0) for v in step.dims[k + 1 :]]
        if changes:
            cases.append(([at_least(step.dims[k], 1), *starts_again], [changes]))
    return cases
