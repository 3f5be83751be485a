"""Shape inference from partial operand shapes is sound on the samples of every op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from hlo.modules.instruction_checks import agrees, infer_partial
from hlo.ops.op import OPS, Op
from hlo.ops.unify import Dim, PartialShape, Unranked, array, dims_of, merge
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaves
from hlo.text.source import HloError
from tests.ops.samples import ALL, Sample, SampleChecks
from tests.oracles import sampled, scale

CHECKS = SampleChecks()


def alter(
    shape: AnyShape, change: Callable[[Shape], Iterable[PartialShape]]
) -> Iterator[PartialShape]:
    """Yield `shape` with one array changed by `change`, for each array and each change."""
    match shape:
        case Shape():
            yield from change(shape)
        case TupleShape(elements):
            for k, element in enumerate(elements):
                for other in alter(element, change):
                    if not isinstance(other, Unranked):
                        yield TupleShape((*elements[:k], other, *elements[k + 1 :]))


def each_size(size: Callable[[int], Dim]) -> Callable[[Shape], Iterator[PartialShape]]:
    """Return a change of each single size of an array, and of all sizes."""

    def change(shape: Shape) -> Iterator[PartialShape]:
        for places in [*[{k} for k in range(shape.rank)], set(range(shape.rank))]:
            sizes = [size(n) if k in places else Dim(n) for k, n in enumerate(shape.dims)]
            yield array(shape.element_type, sizes).with_layout(shape.layout)

    return change


unknown_sizes = each_size(lambda size: Dim(-1, True))
bounds = each_size(lambda size: Dim(size, True))


def without_rank(shape: Shape) -> Iterator[PartialShape]:
    """Yield a shape of unknown rank, with and without element type."""
    yield from (Unranked(shape.element_type), Unranked())


def one_altered(
    sample: Sample, change: Callable[[Shape], Iterable[PartialShape]]
) -> list[list[PartialShape]]:
    """Operand lists with one operand changed in each way; in the last list all are changed."""
    lists: list[list[PartialShape]] = []
    for number, shape in enumerate(sample.shapes):
        for new in alter(shape, change):
            lists.append([*sample.shapes[:number], new, *sample.shapes[number + 1 :]])
    every = [[*alter(shape, change)] for shape in sample.shapes]
    lists.append([ways[-1] if ways else s for ways, s in zip(every, sample.shapes, strict=True)])
    return lists


def infer(sample: Sample, operands: list[PartialShape]) -> PartialShape:
    called = sample.instruction.called_computations
    root = called[0].root.shape if called else None
    return infer_partial(sample.instruction, tuple(operands), root)


@CHECKS.of(ALL)
def partial_operands_never_contradict_the_sample(sample: Sample) -> None:
    changes = unknown_sizes, bounds, without_rank
    every = [each for change in changes for each in one_altered(sample, change)]
    for operands in sampled(every, sample.text):
        shape = infer(sample, operands)
        if not isinstance(shape, Unranked):
            assert agrees(sample.instruction.shape, shape), (list(map(str, operands)), str(shape))
        elif shape.element_type:
            assert isinstance(sample.instruction.shape, Shape)
            assert shape.element_type == sample.instruction.shape.element_type


@CHECKS.of(ALL)
def a_result_size_is_bounded_if_it_is_unknown_for_unknown_operand_sizes(sample: Sample) -> None:
    ways = zip(one_altered(sample, unknown_sizes), one_altered(sample, bounds), strict=True)
    for operands, bounded in sampled(ways, sample.text):
        unbounded, limited = infer(sample, operands), infer(sample, bounded)
        if isinstance(unbounded, Unranked) or isinstance(limited, Unranked):
            assert not sample.op.takes_partial
            continue
        for (_, one), (_, other) in zip(leaves(unbounded), leaves(limited), strict=True):
            if isinstance(one, Shape) and isinstance(other, Shape):
                flags = other.dynamic or (False,) * other.rank
                open_ones = [k for k, n in enumerate(one.dims) if n == -1]
                assert all(flags[k] for k in open_ones), (list(map(str, bounded)), str(other))


@CHECKS.of([opcode for opcode in ALL if "shape" in OPS[opcode].fields])
def partial_results_never_contradict_the_sample(sample: Sample) -> None:
    for shape in alter(sample.instruction.shape, unknown_sizes):
        op = replace(sample.op, shape=shape)
        assert op.first_fault(sample.shapes) is None, str(shape)
        result = op.infer_shape(*sample.shapes)
        assert agrees(sample.instruction.shape, result), (str(shape), str(result))


def is_inferred_from_operands(op: type[Op]) -> bool:
    return not op.runs_called and not ("shape" in op.fields and op.fields["shape"].is_required)


@CHECKS.of([opcode for opcode in ALL if is_inferred_from_operands(OPS[opcode])])
def inferred_shapes_agree_with_every_choice_of_sizes(sample: Sample) -> None:
    """Every valid choice of the unknown sizes infers a shape that agrees."""
    every = [*one_altered(sample, unknown_sizes), *one_altered(sample, bounds)]
    for operands in sampled(every, sample.text):
        shape = infer(sample, operands)
        for size in (0, 1, 2, 3, 4, 6, 9):
            full = [fill(operand, size) for operand in operands]
            if sample.op.first_fault(full) is None:
                merge(sample.op.infer_shape(*full), shape)  # raises on a contradiction


@CHECKS.of(ALL)
def invalid_operands_raise_nothing_but_hlo_errors(sample: Sample) -> None:
    random = Random(sample.text)
    for _ in range(scale(50)):
        operands = [vary_shape(shape, random) for shape in sample.shapes]
        with suppress(HloError):
            infer(sample, operands)


@pytest.mark.sampled
@pytest.mark.parametrize("opcode", CHECKS.opcodes)
def test_inference_from_partial_shapes_is_sound(opcode: str) -> None:
    CHECKS.check(opcode)


def vary_shape(shape: AnyShape, random: Random) -> PartialShape:
    """A random variation of a shape: sizes, rank or type may be different or unknown."""
    if not isinstance(shape, Shape):
        return random.choice([shape, shape, Unranked()])
    element_type = random.choice([shape.element_type] * 4 + ["s32", "f32", "pred"])
    if random.random() < 0.15:
        return random.choice([Unranked(), Unranked(element_type)])
    rank = random.choice([shape.rank] * 3 + [random.randint(0, 4)])
    return array(
        element_type,
        [
            random.choice([Dim(-1, True), Dim(-1, True), Dim(n), Dim(n), Dim(n, True), Dim(n + 1)])
            for n in [*shape.dims, 1, 2, 3, 4][:rank]
        ],
    )


def fill(shape: PartialShape, size: int) -> AnyShape:
    """`shape` with `size` for each unknown size, and for each bounded size that allows it."""
    match shape:
        case Shape():
            sizes = [
                size if not d.is_known else min(size, d.size) if d.dynamic else d.size
                for d in dims_of(shape)
            ]
            return shape.with_dims(sizes)
        case TupleShape(elements):
            return TupleShape(tuple([fill(element, size) for element in elements]))
    assert not isinstance(shape, Unranked)
    return shape
