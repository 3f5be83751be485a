"""The queries: maps from an output to its inputs, and from an input to the outputs.

>>> import hlo
>>> module = hlo.parse('''
... ENTRY e {
...   p = f32[2,3] parameter(0)
...   ROOT t = f32[3,2] transpose(p), dimensions={1,0}
... }''')
>>> print(output_to_input(module.entry.root).maps[0][0])
(d0, d1) -> (d1, d0), domain: d0 in [0, 2], d1 in [0, 1]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from operator import index
from typing import Unpack

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction
from indexing.dataflow import answering
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.assumed_map import mark_assumptions
from indexing.maps.assumptions import check_assumptions
from indexing.maps.deduplicate import deduplicate
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import OptionChoices, Options
from indexing.ops.structured_ops import InlineOp


def walk_of(**options: Unpack[OptionChoices]) -> Walk:
    """Return the walk within one device that composes maps with these options."""
    if "assume" in options:
        options["assume"] = check_assumptions(options["assume"])
    return _walk_of(**options)


@lru_cache(maxsize=8)
def _walk_of(**options: Unpack[OptionChoices]) -> Walk:
    return Walk(LocalEdges(Options(**options)))


@checked
def output_to_input(
    instruction: Instruction, output_id: int = 0, **options: Unpack[OptionChoices]
) -> Answer:
    """Return the maps from each element of an output to the elements of each operand that it needs.

    Through a fusion or call, maps are composed down to its operands.

    Args:
        instruction: the instruction that computes the output.
        output_id: number of the output: the leaves of a tuple are counted in order.
        options: ``exact``, ``simplify``, ``certify``, ``masks``: see
            `indexing.maps.options.Options`.
    Returns:
        ``maps[k]``: the maps to operand k, each with a dimension for each dimension of the output
        and a result for each dimension of the operand.  ``unknown[k]``: the reason if operand k
        may have other maps, or None.
    Raises:
        HloError: the instruction, or an instruction of a computation it calls, is invalid.
        IndexError: `output_id` is out of range.
        CertificateError: ``certify`` is given and a simplification is not proved.
    Source: XLA ``docs/indexing.md``, "Indexing Maps for Unfused Ops" and
    "Indexing Maps for Fusion".

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   p0 = f32[4,128,256] parameter(0)
    ...   p1 = f32[4,256,64] parameter(1)
    ...   ROOT dot = f32[4,128,64] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0},
    ...     lhs_contracting_dims={2}, rhs_contracting_dims={1}
    ... }''').entry
    >>> for operand, maps in zip(entry.root.operands, output_to_input(entry.root).maps):
    ...     print(operand.name, *maps)
    p0 (d0, d1, d2)[s0] -> (d0, d1, s0),
    domain: d0 in [0, 3], d1 in [0, 127], d2 in [0, 63], s0 in [0, 255]
    p1 (d0, d1, d2)[s0] -> (d0, s0, d2),
    domain: d0 in [0, 3], d1 in [0, 127], d2 in [0, 63], s0 in [0, 255]
    """
    return answering.to_operands(walk_of(**options), instruction, index(output_id))


@checked
def input_to_output(
    instruction: Instruction, input_id: int = 0, **options: Unpack[OptionChoices]
) -> Answer:
    """Return the maps from each element of an operand to the elements of each output that need it.

    Args:
        instruction: the instruction that reads the operand.
        input_id: number of the operand.  If it is a tuple, ``paths`` has the leaf of each map.
        options: see `output_to_input`.
    Returns:
        ``maps[k]``: the maps from the operand to output k.
    Raises:
        HloError: the instruction, or an instruction of a computation it calls, is invalid.
        IndexError: `input_id` is out of range.
        CertificateError: ``certify`` is given and a simplification is not proved.
    Source: XLA ``docs/indexing.md``, "Indexing Maps for Unfused Ops".

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p0 = f32[20] parameter(0)
    ...   ROOT bc0 = f32[10,20,30] broadcast(p0), dimensions={1}
    ... }''').entry.root
    >>> print(*input_to_output(root, 0).maps[0])
    (d0)[s0, s1] -> (s0, d0, s1), domain: d0 in [0, 19], s0 in [0, 9], s1 in [0, 29]
    """
    return answering.from_operand(walk_of(**options), instruction, index(input_id))


def element_reads(instruction: Instruction, output_id: int, *, exact: bool = False) -> Answer:
    """Return the maps of `output_to_input` to which the element rule of an op refers.

    The maps are not simplified, and include operands that a called computation ignores.
    """
    return answering.to_operands(_rule_walk(exact), instruction, output_id)


def element_writes(instruction: Instruction, input_id: int) -> Answer:
    """Return the maps of `input_to_output` to which the element rule of an op refers."""
    return answering.from_operand(_rule_walk(exact=False), instruction, input_id)


def _rule_walk(exact: bool) -> Walk:
    return Walk(LocalEdges(Options(exact=exact, simplify=False), every_operand=True))


@checked
def to_parameters(
    instruction: Instruction, output_id: int = 0, **options: Unpack[OptionChoices]
) -> Answer:
    """Return the maps from each element of an output to the parameters of its computation.

    The maps are those of `output_to_input`, composed down to the parameters.

    Returns:
        ``operands``: the parameters, in order of their numbers.  ``maps[k]``: the maps to
        parameter k; ``()`` if nothing of it is read.
    Raises:
        HloError: an instruction that the output depends on is invalid.
        IndexError: `output_id` is out of range.
        CertificateError: ``certify`` is given and a simplification is not proved.
    Source: XLA ``docs/indexing.md``, "Indexing Maps for Fusion".

    >>> import hlo
    >>> root = hlo.parse('''ENTRY e {
    ...   p0 = f32[1000,1000] parameter(0)
    ...   t = f32[1000,1000] transpose(p0), dimensions={1,0}
    ...   ROOT a0 = f32[1000,1000] add(p0, t)
    ... }''').entry.root
    >>> for each in to_parameters(root).maps[0]:
    ...     print(each)
    (d0, d1) -> (d0, d1), domain: d0 in [0, 999], d1 in [0, 999]
    (d0, d1) -> (d1, d0), domain: d0 in [0, 999], d1 in [0, 999]
    """
    return answering.to_parameters(walk_of(**options), instruction, index(output_id))


@checked
def all_to_parameters(
    computation: Computation, **options: Unpack[OptionChoices]
) -> Iterator[Answer]:
    """Yield the maps to the parameters for every output of every instruction, in text order.

    One sweep computes all answers: a chain of n instructions takes n compositions, not n².  An
    answer lists only the parameters that are read.  Its maps relate the same elements as those of
    `to_parameters`, but their text may differ.

    >>> import hlo
    >>> entry = hlo.parse('''ENTRY e {
    ...   p = f32[4] parameter(0)
    ...   q = f32[4] parameter(1)
    ...   n = f32[4] reverse(p), dimensions={0}
    ...   ROOT s = f32[4] subtract(n, q)
    ... }''').entry
    >>> for answer in all_to_parameters(entry):
    ...     print(answer.instruction.name, [p.name for p in answer.operands], *answer.maps[0])
    p ['p'] (d0) -> (d0), domain: d0 in [0, 3]
    q ['q'] (d0) -> (d0), domain: d0 in [0, 3]
    n ['p'] (d0) -> (-d0 + 3), domain: d0 in [0, 3]
    s ['p', 'q'] (d0) -> (-d0 + 3), domain: d0 in [0, 3]

    Raises:
        HloError: an instruction is invalid.
        CertificateError: ``certify`` is given and a simplification is not proved.
    Source: XLA ``docs/indexing.md``, "Indexing Maps for Fusion".
    """
    return answering.all_to_parameters(walk_of(**options), computation)


class Groups(dict[Instruction, tuple[IndexingMap, ...]], Displayed):
    """The maps to each instruction, over all leaves of its value.

    Attributes:
        arrays: the maps to each array; a leaf of a tuple is an array of its own.
    """

    def __init__(self, arrays: dict[ArrayRef, tuple[IndexingMap, ...]]) -> None:
        groups: dict[Instruction, dict[IndexingMap, None]] = {}
        for array, maps in arrays.items():
            groups.setdefault(array.instruction, {}).update(dict.fromkeys(maps))
        super().__init__({each: tuple(maps) for each, maps in groups.items()})
        self.arrays = arrays

    def __repr__(self) -> str:
        maps = sum(map(len, self.values()))
        return f"<groups of {len(self)} instructions: {maps} maps>"


@checked
def grouped(
    instruction: Instruction, output_id: int = 0, **options: Unpack[OptionChoices]
) -> Groups:
    """Return the maps from an output to every instruction that it depends on.

    For a fusion or call, these are the instructions of the computation that it calls; otherwise,
    those of its own computation.

    Returns:
        The maps to each instruction.  Instructions whose maps are all unknown are missing;
        `to_parameters` gives the reason.
    Raises:
        HloError: an instruction that the output depends on is invalid.
        IndexError: `output_id` is out of range.
        CertificateError: ``certify`` is given and a simplification is not proved.
    Source: XLA ``xla/hlo/analysis/indexing_analysis.h``, ``ComputeGroupedOutputToInputIndexing``.

    >>> import hlo
    >>> root = hlo.parse('''
    ... fused {
    ...   p = f32[32] parameter(0)
    ...   n = f32[32] negate(p)
    ...   ROOT r = f32[4,8] reshape(n)
    ... }
    ... ENTRY e {
    ...   x = f32[32] parameter(0)
    ...   ROOT f = f32[4,8] fusion(x), kind=kLoop, calls=fused
    ... }''').entry.root
    >>> for each, maps in grouped(root).items():
    ...     print(each.name, *maps)
    r (d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 7]
    n (d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]
    p (d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 7]
    """
    walk = walk_of(**options)
    groups = _groups(walk, instruction, index(output_id))
    names = tuple(walk.edges.options.assume)
    if names:
        plain = _groups(walk.without_assumptions, instruction, index(output_id))
        groups = {a: mark_assumptions(maps, plain.get(a, ()), names) for a, maps in groups.items()}
    return Groups(groups)


def _groups(
    walk: Walk, instruction: Instruction, output_id: int
) -> dict[ArrayRef, tuple[IndexingMap, ...]]:
    start = answering.output_of(instruction, output_id)
    walk.prepare([instruction], backward=True)
    if isinstance(instruction.op, InlineOp):
        start = start._replace(instruction=instruction.called_computations[0].root)
    walk.prepare(dependencies_of([start.instruction]), backward=True)
    reached = walk.backward(start)
    return {array: deduplicate(maps.effective) for array, maps in reached.items() if maps.maps}
