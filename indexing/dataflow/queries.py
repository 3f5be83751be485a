"""The queries: which elements of its inputs does an output need, and which outputs need an input.

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
from typing import Unpack

from hlo.modules.module import Computation, Instruction
from indexing.dataflow import answering
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.walk import Walk
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.deduplicate import deduplicate
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import OptionChoices, Options
from indexing.ops.structured_ops import InlineOp


def walk_of(**options: Unpack[OptionChoices]) -> Walk:
    """The walk within one device that composes as the options say."""
    return Walk(LocalEdges(Options(**options)))


def output_to_input(
    instruction: Instruction, output_id: int = 0, **options: Unpack[OptionChoices]
) -> Answer:
    """For each operand, which of its elements an element of the output needs.

    A fusion's or call's maps are composed down to its operands.

    Args:
        instruction: what computes the output.
        output_id: which output, where the result is a tuple: its leaves are counted in order.
        options: ``exact``, ``simplify``, ``certify``; see `indexing.maps.options.Options`.
    Raises:
        HloError: the instruction, or one that it is composed of, breaks a rule of its op.
        IndexError: there is no such output.
        CertificateError: a simplification is not proved.
    """
    return answering.to_operands(walk_of(**options), instruction, output_id)


def input_to_output(
    instruction: Instruction, input_id: int = 0, **options: Unpack[OptionChoices]
) -> Answer:
    """For each output, which of its elements need an element of operand `input_id`.

    Args:
        instruction: what reads the operand.
        input_id: which operand; of a tuple-shaped one, ``paths`` says which leaf a map comes from.
        options: see `output_to_input`.
    Raises:
        HloError: the instruction, or one that it is composed of, breaks a rule of its op.
        IndexError: there is no such operand.
    """
    return answering.from_operand(walk_of(**options), instruction, input_id)


def to_parameters(
    instruction: Instruction, output_id: int = 0, **options: Unpack[OptionChoices]
) -> Answer:
    """`output_to_input`, composed through the whole computation to its parameters.

    ``answer.operands`` are the parameters, in order of their numbers.
    """
    return answering.to_parameters(walk_of(**options), instruction, output_id)


def all_to_parameters(
    computation: Computation, **options: Unpack[OptionChoices]
) -> Iterator[Answer]:
    """`to_parameters` for every output of every instruction of a computation, in text order.

    In one sweep: a chain of n instructions costs n steps, not n². The operands of an answer are the
    parameters that are needed, and no others. Maps may be written in another way than those of
    `to_parameters`; they relate the same elements.

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
        HloError: an instruction breaks a rule of its op.
    """
    return answering.all_to_parameters(walk_of(**options), computation)


class Groups(dict[Instruction, tuple[IndexingMap, ...]]):
    """For each instruction its maps; those of a leaf of a tuple are in `arrays`.

    Attributes:
        arrays: for each array its maps.
    """

    def __init__(self, arrays: dict[ArrayRef, tuple[IndexingMap, ...]]) -> None:
        groups: dict[Instruction, dict[IndexingMap, None]] = {}
        for array, maps in arrays.items():
            groups.setdefault(array.instruction, {}).update(dict.fromkeys(maps))
        super().__init__({each: tuple(maps) for each, maps in groups.items()})
        self.arrays = arrays


def grouped(
    instruction: Instruction, output_id: int = 0, **options: Unpack[OptionChoices]
) -> Groups:
    """The maps from an output to every instruction on the way to the parameters.

    For a fusion or a call, the way leads through the computation that it calls.  Instructions of
    which nothing is known are not in the answer; `to_parameters` says why.
    """
    walk = walk_of(**options)
    start = answering.output_of(instruction, output_id)
    if isinstance(instruction.op, InlineOp):
        start = start._replace(instruction=instruction.called_computations[0].root)
    walk.prepare(answering.up_to(start.instruction), backward=True)
    reached = walk.backward(start)
    return Groups(
        {array: deduplicate(found.distinct) for array, found in reached.items() if found.maps}
    )
