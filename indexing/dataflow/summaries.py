"""Summaries of computations, memoised, and shared by those that are alike.

The layers of a network call computations that differ only in the names of their instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache, partial
from typing import Protocol, TypeAlias

from hlo.modules.forms import InstructionForm
from hlo.modules.module import Computation, Instruction
from indexing.dataflow.alike import depends_on_calls
from indexing.dataflow.copies import origin_of_copy
from indexing.dataflow.scalars import scalar_value
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.map_set import MapSet
from indexing.ops.control import While
from indexing.ops.structured_ops import InputLeaf, MapsByLeaf, Summaries

Structure: TypeAlias = "tuple[InstructionForm | int, ...]"
"""The form of each instruction of a computation with the positions of its operands; the root."""


class Summarising(Protocol):
    """The summaries that the edges of instructions with called computations need."""

    def read_summary(self, computation: Computation, path: Path) -> MapsByLeaf:
        """Return the maps from a leaf of the root to the leaves of parameters."""

    def write_summary(self, computation: Computation, path: Path) -> MapsByLeaf:
        """Return the maps from leaves of parameters to a leaf of the root."""

    def loop_maps(self, loop: Instruction, path: Path, *, backward: bool) -> Mapping[Path, MapSet]:
        """Return the maps between a leaf of the result of a loop and the leaves of its operand."""


def summaries_of(
    walk: Summarising, *, backward: bool, restricts_branches: bool = False
) -> Summaries:
    """Return the interface of ops to the summaries of the computations that they call."""
    return Summaries(
        walk.read_summary if backward else walk.write_summary,
        backward,
        origin_of_copy,
        scalar_value,
        partial(walk.loop_maps, backward=backward),
        restricts_branches,
    )


def shared_summary(computation: Computation, reached: Mapping[ArrayRef, MapSet]) -> MapsByLeaf:
    """Return the map sets of parameters; equal summaries of a module are one object.

    Args:
        reached: the maps between a leaf of the root and arrays of the computation.
    """
    numbers = {parameter: number for number, parameter in enumerate(computation.parameters)}
    summary: MapsByLeaf = {
        _input_leaf(numbers[instruction], path): maps
        for (instruction, path, _), maps in reached.items()
        if instruction in numbers
    }
    known: dict[Hashable, MapsByLeaf] = computation.module.memo.setdefault(shared_summary, {})
    return known.setdefault((*summary, *summary.values()), summary)


def memoised_summary(
    computation: Computation,
    question: Hashable,
    summarise: Callable[[], MapsByLeaf],
    *,
    is_shared: bool,
) -> MapsByLeaf:
    """Return ``summarise()``, memoised for a computation and a question.

    Args:
        question: what the summary answers; `summarise` depends on it and the computation alone.
        is_shared: use the summary of a computation of the same structure again, if no part of it
            refers to an instruction, and if it does not follow from what calls its computation.
    """

    def make_summary() -> MapsByLeaf:
        structure = structure_of(computation) if is_shared else None
        if structure is None:
            return summarise()
        known: dict[Structure, MapsByLeaf]
        known = computation.module.memo.setdefault((memoised_summary, question), {})
        summary = known.get(structure)
        if summary is None:
            summary = summarise()
            if not depends_on_calls(computation) and _is_of_structure(summary):
                known[structure] = summary
        return summary

    return computation.memoised(question, make_summary)


def structure_of(computation: Computation) -> Structure | None:
    """Return what computations have in common that differ in names and metadata only.

    None for a computation with a loop, or with an instruction that was parsed on its own.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... f { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }
    ... g { q = f32[2] parameter(0)  ROOT r = f32[2] negate(q) }
    ... h { p = f32[2] parameter(0)  ROOT n = f32[2] sine(p) }
    ... ENTRY e { p = f32[2] parameter(0)  ROOT n = f32[2] fusion(p), kind=kLoop, calls=f }''')
    >>> f, g, h = [structure_of(module.computations[name]) for name in "fgh"]
    >>> f == g, f == h
    (True, False)
    """

    def describe() -> Structure | None:
        described: list[InstructionForm | int] = []
        for instruction in computation.instructions:
            form = instruction.form
            if form is None or (instruction.called_computations and _is_loop(instruction)):
                return None
            described.append(form)
            for operand in instruction.operands:  # as many as the form has
                described.append(operand.index)
        described.append(computation.root.index)
        return tuple(described)

    return computation.memoised(structure_of, describe)


def _is_loop(instruction: Instruction) -> bool:
    return isinstance(instruction.op, While)


def _is_of_structure(summary: MapsByLeaf) -> bool:
    """Return True if no part of a summary refers to an instruction."""
    return not any(
        maps.unknown is not None or maps.all_reasons or any(m.runtime for m in maps.maps)
        for maps in summary.values()
    )


@lru_cache(maxsize=1 << 12)
def _input_leaf(number: int, path: Path) -> InputLeaf:
    """Return the leaf of a parameter; equal leaves are one object."""
    return InputLeaf(number, path)
