"""The reads of computations: maps composed down to the parameters.

The last instruction of a computation may be a reduction.  Reductions that other instructions read
are not split.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaf_number, leaves
from indexing.dataflow.constants import literal
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.queries import output_to_input, to_parameters
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.compose import compose
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.element import (
    CopyRule,
    ElementRule,
    ElementwiseRule,
    IotaRule,
    OpaqueRule,
    ReductionRule,
    declarations_of,
    element_of,
)
from indexing.sharding.rules.array_reads import ArrayRead, ResultReads, read_of, tight_maps
from indexing.sharding.rules.combiners import COMBINERS, combiner_of
from simplifier.unknown import first_unknown


def reads_of_computation(computation: Computation) -> list[ResultReads]:
    """Return the reads of each array of a computation's result; the operands are parameters."""
    root = computation.root
    paths = [path for path, _ in leaves(root.shape)]
    return [_reads_of_leaf(root, number, path) for number, path in enumerate(paths)]


def reads_of_operands(instruction: Instruction) -> list[ResultReads]:
    """Return the reads of each array of the result of an instruction without an element rule."""
    rule = element_of(instruction)
    return [
        _from_answer(output_to_input(instruction, number, masks=False), rule)
        for number, _ in enumerate(leaves(instruction.shape))
    ]


def _reads_of_leaf(root: Instruction, number: int, path: tuple[int, ...]) -> ResultReads:
    value = root
    while path and value.opcode == "tuple":
        value, path = value.operands[path[0]], path[1:]
    if not path:
        reads = _reads_of_reduction(value)
        if reads is not None:
            return reads
    others = [i for i in dependencies_of([value]) if not _is_pointwise(i)]
    rule: ElementRule = ElementwiseRule()
    if others:
        rule = OpaqueRule(f"`{others[-1].name}` is not computed element by element")
    return _from_answer(to_parameters(root, number, masks=False), rule)


def _is_pointwise(instruction: Instruction) -> bool:
    """Return True if each element is a function of the elements that the maps lead to."""
    declared = declarations_of(instruction)
    if declared.is_given or issubclass(declared, RoutingOp):
        return True
    match element_of(instruction):
        case CopyRule(parts=parts):
            return parts == 1
        case ElementwiseRule() | IotaRule():
            return True
        case _:
            return False


def _from_answer(answer: Answer, rule: ElementRule) -> ResultReads:
    first = _first_arrays(answer.operands)
    reads, unknown = [], []
    for operand, maps, paths, reason in zip(
        answer.operands, answer.maps, answer.paths, answer.unknown, strict=True
    ):
        if reason is not None:
            count = len(leaves(operand.shape))
            unknown += [(first[operand] + leaf, str(reason.reason)) for leaf in range(count)]
        for m, path in zip(maps, paths, strict=True):
            if not m.is_known_empty:
                array = first[operand] + leaf_number(operand.shape, path)
                reads.append(read_of(m, array, m.results))
    return ResultReads(rule, None, tuple(reads), tuple(unknown))


def _first_arrays(operands: tuple[Instruction, ...]) -> dict[Instruction, int]:
    """Return the number of the first array of each operand."""
    numbers: dict[Instruction, int] = {}
    count = 0
    for operand in operands:
        numbers.setdefault(operand, count)
        count += len(leaves(operand.shape))
    return numbers


# ---------------------------------------------------------------- the last reduction


def _reads_of_reduction(value: Instruction) -> ResultReads | None:
    """Return the reads of a reduction of pointwise functions of parameters, if `value` is one."""
    op, rule = value.op, element_of(value)
    if not isinstance(op, MappedOp) or not isinstance(rule, ReductionRule) or rule.is_scatter:
        return None
    if not all(map(_is_pointwise, dependencies_of(value.operands))):
        return None
    first = _first_arrays(value.computation.parameters)
    shapes = tuple([operand.shape for operand in value.operands])
    combiner, reads = combiner_of(value, rule, 0), list[ArrayRead]()
    for number, entry in enumerate(op.reads(value.shape, shapes)):
        answer = to_parameters(value.operands[number], masks=False)
        composed_maps = _composed_maps(entry, answer, first)
        if composed_maps is None:
            return None
        for array, m in composed_maps:
            reads.append(read_of(m, array, m.results, number in rule.values, steps=m.ranges))
    inits = [_init_arrays(value.operands[k], first, combiner) for k in rule.inits]
    arrays = tuple([array for those in inits for array in those or ()])
    own = ReductionRule(arrays, (), is_product=rule.is_product)
    return ResultReads(own, None if None in inits else combiner, tuple(reads), ())


def _composed_maps(
    entry: object, answer: Answer, first: dict[Instruction, int]
) -> list[tuple[int, IndexingMap]] | None:
    """Return the maps of an entry composed to parameters, each with the number of its array.

    The range variables are those of the entry.  None if the parameters' maps have others, or
    runtime variables.
    """
    if not isinstance(entry, tuple) or first_unknown(*answer.unknown) is not None:
        return None
    maps = []
    for array, to_parameter in _arrays(answer, first):
        if to_parameter.ranges or to_parameter.runtime:
            return None
        maps += [(array, each) for m in tight_maps(entry) for each in _tight(m, to_parameter)]
    return None if any(m.runtime for _, m in maps) else maps


def _tight(first: IndexingMap, second: IndexingMap) -> Iterator[IndexingMap]:
    yield from tight_maps((compose(first, second),))


def _arrays(answer: Answer, first: dict[Instruction, int]) -> Iterator[tuple[int, IndexingMap]]:
    """Yield the number of each array that is read, with each map to it."""
    for operand, maps, paths in zip(answer.operands, answer.maps, answer.paths, strict=True):
        for m, path in zip(maps, paths, strict=True):
            yield first[operand] + leaf_number(operand.shape, path), m


def _init_arrays(
    init: Instruction, first: dict[Instruction, int], combiner: str | None
) -> tuple[int, ...] | None:
    """Return the array of an initial value: () for a neutral constant, None for other values."""
    if init.opcode == "parameter":
        return (first[init],)
    value, shape = literal(ArrayRef(init)), init.shape
    if value is None or combiner is None or not isinstance(shape, Shape):
        return None
    neutral = COMBINERS[combiner].neutral(shape.element_type)
    return () if value[()] == neutral else None
