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

from collections.abc import Iterable, Iterator

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.dataflow.walk import (
    backward,
    edges_back,
    edges_forward,
    prepare,
    reads_summary,
    sweep,
    writes_summary,
)
from indexing.maps.answers import Answer, Direction, Path, Unknown
from indexing.maps.arrays import ArrayRef
from indexing.maps.deduplicate import deduplicate
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.ops.access_edge import AccessEdge
from indexing.ops.structured_ops import InlineOp
from simplifier.unknown import first_unknown


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
    path = output_path(instruction, output_id)
    prepare([instruction], options, reads_summary)
    steps = edges_back(instruction, path, options)
    found = [(step.operand, step.operand_path, step) for step in steps]
    operands = instruction.operands
    return answer_of(instruction, "output-to-input", output_id, operands, found, options)


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
    steps = edges_forward(instruction, [input_id], outputs, options)
    found = [(outputs[step.output_path], step.operand_path, step) for step in steps]
    itself = (instruction,) * len(outputs)
    return answer_of(instruction, "input-to-output", input_id, itself, found, options)


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
    path = output_path(instruction, output_id)
    parameters = instruction.computation.parameters
    number = {parameter: k for k, parameter in enumerate(parameters)}
    prepare(instruction.computation.instructions[: instruction.index + 1], options, reads_summary)
    reached = backward(ArrayRef(instruction, path), options)
    found = [
        (number[source], at, AccessEdge(number[source], at, path, tuple(maps.maps), maps.unknown))
        for (source, at, _), maps in reached.items()
        if source in number
    ]
    return answer_of(instruction, "output-to-input", output_id, parameters, found, options)


def all_to_parameters(
    computation: Computation,
    *,
    exact: bool = False,
    simplify: bool = True,
    certify: bool = False,
) -> Iterator[Answer]:
    """`to_parameters` for every output of every instruction of a computation, in text order.

    In one sweep: a chain of n instructions costs n steps, not n². The operands of an answer are the
    parameters that are needed, and no others. MapSet may be written in another way than those of
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
    options = Options(exact, simplify, certify)
    prepare(computation.instructions, options, reads_summary)
    number = {parameter: k for k, parameter in enumerate(computation.parameters)}
    output, last = 0, None
    for (instruction, path, _), reached in sweep(computation, options):
        output, last = (output + 1 if instruction is last else 0), instruction
        needed = sorted({source for source, _, _ in reached}, key=number.__getitem__)
        place = {parameter: k for k, parameter in enumerate(needed)}
        found = [
            (place[source], at, AccessEdge(place[source], at, path, tuple(maps.maps), maps.unknown))
            for (source, at, _), maps in reached.items()
        ]
        yield answer_of(instruction, "output-to-input", output, tuple(needed), found, options)


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
    path = output_path(instruction, output_id)
    root = instruction
    if isinstance(instruction.op, InlineOp):
        root = instruction.called_computations[0].root
    prepare(root.computation.instructions[: root.index + 1], options, reads_summary)
    groups: dict[Instruction, tuple[IndexingMap, ...]] = {}
    for (found, _, _), maps in backward(ArrayRef(root, path), options).items():
        if maps.maps:
            groups[found] = (*groups.get(found, ()), *maps.maps)
    return groups


def output_path(instruction: Instruction, output_id: int) -> Path:
    """Which leaf of the result output number `output_id` is.

    Raises:
        IndexError: there is no such output.
    """
    if output_id == 0 and isinstance(instruction.shape, Shape):
        return ()
    paths = [path for path, _ in leaves(instruction.shape)]
    if not 0 <= output_id < max(len(paths), 1):
        raise IndexError(f"`{instruction.name}` has {len(paths)} outputs, no number {output_id}")
    return paths[output_id] if paths else ()


def answer_of(
    instruction: Instruction,
    direction: Direction,
    number: int,
    operands: tuple[Instruction, ...],
    found: Iterable[tuple[int, Path, AccessEdge]],
    options: Options,
) -> Answer:
    """Steps sorted by the operand or output that they lead to, without duplicates."""
    leads: dict[int, dict[Path, MapSet]] = {}
    for to, path, step in found:
        maps = leads.setdefault(to, {}).setdefault(path, MapSet())
        maps.note(step.unknown)
        for each in step.maps:
            maps.add(options.finished(each))
    count = len(operands)
    every_map: list[tuple[IndexingMap, ...]] = [()] * count
    every_path: list[tuple[Path, ...]] = [()] * count
    unknown: list[Unknown | None] = [None] * count
    for to, lead in leads.items():
        pairs = [(m, path) for path, maps in lead.items() for m in deduplicate(maps.maps)]
        every_map[to] = tuple([m for m, _ in pairs])
        every_path[to] = tuple([path for _, path in pairs])
        unknown[to] = first_unknown(*[maps.unknown for maps in lead.values()])
    return Answer(
        instruction,
        direction,
        number,
        operands,
        tuple(every_map),
        tuple(every_path),
        tuple(unknown),
    )
