"""The questions: which elements of its inputs does an output need, and which outputs need an input.

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

from collections.abc import Iterable

from hlo.module import Instruction
from hlo.shape import leaves
from indexing.access import Answer, Direction, Path, Unknown
from indexing.distinct import distinct
from indexing.graph import (
    backward,
    prepare,
    reads_summary,
    steps_back,
    steps_forward,
    writes_summary,
)
from indexing.leafwise import InlineOp
from indexing.map import IndexingMap
from indexing.steps import Maps, Options, Step


def output_to_input(
    instruction: Instruction,
    output_id: int = 0,
    *,
    exact: bool = False,
    simplify: bool = True,
    certify: bool = False,
) -> Answer:
    """For each operand, which of its elements an element of the output needs.

    A fusion's or call's maps are composed down to its operands.

    Args:
        instruction: what computes the output.
        output_id: which output, where the result is a tuple: its leaves are counted in order.
        exact: give a union of disjoint exact maps where a single "may" map is usual (the base of a
            dynamic-update-slice, the value of a pad).
        simplify: give the simplest maps, not those that composition makes.
        certify: prove every simplification with ISL.
    Raises:
        HloError: the instruction, or one that it is composed of, breaks a rule of its op.
        IndexError: there is no such output.
        CertificateError: a simplification is not proved.
    """
    options = Options(exact, simplify, certify)
    path = _output_path(instruction, output_id)
    prepare([instruction], options, reads_summary)
    steps = steps_back(instruction, path, options)
    found = [(step.operand, step.operand_path, step) for step in steps]
    return _answer(instruction, "output-to-input", output_id, instruction.operands, found, options)


def input_to_output(
    instruction: Instruction,
    input_id: int = 0,
    *,
    exact: bool = False,
    simplify: bool = True,
    certify: bool = False,
) -> Answer:
    """For each output, which of its elements need an element of operand `input_id`.

    Args:
        instruction: what reads the operand.
        input_id: which operand; of a tuple-shaped one, ``paths`` says which leaf a map comes from.
        exact: see `output_to_input`.
    Raises:
        HloError: the instruction, or one that it is composed of, breaks a rule of its op.
        IndexError: there is no such operand.
    """
    if not 0 <= input_id < len(instruction.operands):
        raise IndexError(
            f"`{instruction.name}` has {len(instruction.operands)} operands, no number {input_id}"
        )
    options = Options(exact, simplify, certify)
    prepare([instruction], options, writes_summary)
    outputs = {path: k for k, (path, _) in enumerate(leaves(instruction.shape))}
    steps = steps_forward(instruction, [input_id], outputs, options)
    found = [(outputs[step.output_path], step.operand_path, step) for step in steps]
    itself = (instruction,) * len(outputs)
    return _answer(instruction, "input-to-output", input_id, itself, found, options)


def to_parameters(
    instruction: Instruction,
    output_id: int = 0,
    *,
    exact: bool = False,
    simplify: bool = True,
    certify: bool = False,
) -> Answer:
    """`output_to_input`, composed through the whole computation to its parameters.

    ``answer.operands`` are the parameters, in order of their numbers.
    """
    options = Options(exact, simplify, certify)
    path = _output_path(instruction, output_id)
    parameters = instruction.computation.parameters
    number = {parameter: k for k, parameter in enumerate(parameters)}
    prepare(instruction.computation.instructions[: instruction.index + 1], options, reads_summary)
    reached = backward((instruction, path), options)
    found = [
        (number[source], at, Step(number[source], at, path, tuple(maps.maps), maps.unknown))
        for (source, at), maps in reached.items()
        if source in number
    ]
    return _answer(instruction, "output-to-input", output_id, parameters, found, options)


def grouped(
    instruction: Instruction,
    output_id: int = 0,
    *,
    exact: bool = False,
    simplify: bool = True,
    certify: bool = False,
) -> dict[Instruction, tuple[IndexingMap, ...]]:
    """The maps from an output to every instruction on the way to the parameters.

    For a fusion or a call, the way leads through the computation that it calls.  Instructions of
    which nothing is known are not in the answer; `to_parameters` says why.
    """
    options = Options(exact, simplify, certify)
    path = _output_path(instruction, output_id)
    root = instruction
    if isinstance(instruction.op, InlineOp):
        root = instruction.called_computations[0].root
    prepare(root.computation.instructions[: root.index + 1], options, reads_summary)
    groups: dict[Instruction, tuple[IndexingMap, ...]] = {}
    for (found, _), maps in backward((root, path), options).items():
        if maps.maps:
            groups[found] = (*groups.get(found, ()), *maps.maps)
    return groups


def _output_path(instruction: Instruction, output_id: int) -> Path:
    paths = [path for path, _ in leaves(instruction.shape)]
    if not 0 <= output_id < max(len(paths), 1):
        raise IndexError(f"`{instruction.name}` has {len(paths)} outputs, no number {output_id}")
    return paths[output_id] if paths else ()


def _answer(
    instruction: Instruction,
    direction: Direction,
    number: int,
    operands: tuple[Instruction, ...],
    found: Iterable[tuple[int, Path, Step]],
    options: Options,
) -> Answer:
    """Steps sorted by the operand or output that they lead to, without duplicates."""
    leads: list[dict[Path, Maps]] = [{} for _ in operands]
    for to, path, step in found:
        maps = leads[to].setdefault(path, Maps())
        maps.unknown = maps.unknown or step.unknown
        for each in step.maps:
            maps.add(options.finished(each))
    pairs = [
        [(m, path) for path, maps in lead.items() for m in distinct(maps.maps)] for lead in leads
    ]
    unknown: list[Unknown | None] = [
        next((maps.unknown for maps in lead.values() if maps.unknown), None) for lead in leads
    ]
    return Answer(
        instruction,
        direction,
        number,
        operands,
        tuple([tuple([m for m, _ in pair]) for pair in pairs]),
        tuple([tuple([path for _, path in pair]) for pair in pairs]),
        tuple(unknown),
    )
