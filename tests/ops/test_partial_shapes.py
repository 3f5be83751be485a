"""The samples of every op with less known of their operands: what follows is never wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from hlo.modules.bind import agrees, infer_known
from hlo.ops.op import OPS, Op
from hlo.ops.unify import Dim, PartialShape, Unranked, array, dims_of, merge
from hlo.shapes.shape import AnyShape, Shape, TupleShape, leaves
from hlo.text.source import HloError
from tests.ops.samples import ALL, Faces, Sample

FACES = Faces()


def altered(
    shape: AnyShape, change: Callable[[Shape], Iterable[PartialShape]]
) -> Iterator[PartialShape]:
    """An operand of which one array is changed in every way."""
    match shape:
        case Shape():
            yield from change(shape)
        case TupleShape(elements):
            for k, element in enumerate(elements):
                for found in altered(element, change):
                    if not isinstance(found, Unranked):
                        yield TupleShape((*elements[:k], found, *elements[k + 1 :]))


def each_size(size: Callable[[int], Dim]) -> Callable[[Shape], Iterator[PartialShape]]:
    """Changes each size of an array for itself, and then all of them."""

    def change(shape: Shape) -> Iterator[PartialShape]:
        for places in [*[{k} for k in range(shape.rank)], set(range(shape.rank))]:
            sizes = [size(n) if k in places else Dim(n) for k, n in enumerate(shape.dims)]
            yield array(shape.element_type, sizes).with_layout(shape.layout)

    return change


unknown_sizes = each_size(lambda size: Dim(-1, True))
bounds = each_size(lambda size: Dim(size, True))


def unranked(shape: Shape) -> Iterator[PartialShape]:
    """Nothing is known but the type, or not even this."""
    yield from (Unranked(shape.element_type), Unranked())


def one_altered(
    sample: Sample, change: Callable[[Shape], Iterable[PartialShape]]
) -> list[list[PartialShape]]:
    """The operands of a sample, one of which is changed in every way; and all of them, the last."""
    found: list[list[PartialShape]] = []
    for number, shape in enumerate(sample.shapes):
        for new in altered(shape, change):
            found.append([*sample.shapes[:number], new, *sample.shapes[number + 1 :]])
    every = [[*altered(shape, change)] for shape in sample.shapes]
    found.append([ways[-1] if ways else s for ways, s in zip(every, sample.shapes, strict=True)])
    return found


def what_follows(sample: Sample, operands: list[PartialShape]) -> PartialShape:
    called = sample.instruction.called_computations
    root = called[0].root.shape if called else None
    return infer_known(sample.instruction, tuple(operands), root)


@FACES.of(ALL)
def less_known_operands_never_contradict_the_sample(sample: Sample) -> None:
    changes = unknown_sizes, bounds, unranked
    for operands in [each for change in changes for each in one_altered(sample, change)]:
        found = what_follows(sample, operands)
        if not isinstance(found, Unranked):
            assert agrees(sample.instruction.shape, found), (list(map(str, operands)), str(found))
        elif found.element_type:
            assert isinstance(sample.instruction.shape, Shape)
            assert found.element_type == sample.instruction.shape.element_type


@FACES.of(ALL)
def what_is_unknown_for_an_unknown_size_is_a_bound_for_a_bound(sample: Sample) -> None:
    ways = zip(one_altered(sample, unknown_sizes), one_altered(sample, bounds), strict=True)
    for operands, bounded in ways:
        found, limited = what_follows(sample, operands), what_follows(sample, bounded)
        if isinstance(found, Unranked) or isinstance(limited, Unranked):
            assert not sample.op.takes_partial
            continue
        for (_, one), (_, other) in zip(leaves(found), leaves(limited), strict=True):
            if isinstance(one, Shape) and isinstance(other, Shape):
                flags = other.dynamic or (False,) * other.rank
                open_ones = [k for k, n in enumerate(one.dims) if n == -1]
                assert all(flags[k] for k in open_ones), (list(map(str, bounded)), str(other))


@FACES.of([opcode for opcode in ALL if "shape" in OPS[opcode].fields])
def less_known_results_never_contradict_the_sample(sample: Sample) -> None:
    for shape in altered(sample.instruction.shape, unknown_sizes):
        op = replace(sample.op, shape=shape)
        assert op.first_fault(sample.shapes) is None, str(shape)
        found = op.infer_shape(*sample.shapes)
        assert agrees(sample.instruction.shape, found), (str(shape), str(found))


def is_made_of_operands(op: type[Op]) -> bool:
    return not op.runs_called and not ("shape" in op.fields and op.fields["shape"].is_required)


@FACES.of([opcode for opcode in ALL if is_made_of_operands(OPS[opcode])])
def what_follows_is_so_for_every_size(sample: Sample) -> None:
    """Whatever sizes are put for the unknown ones, if the op takes such operands at all."""
    for operands in [*one_altered(sample, unknown_sizes), *one_altered(sample, bounds)]:
        found = what_follows(sample, operands)
        for size in (0, 1, 2, 3, 4, 6, 9):
            full = [filled(operand, size) for operand in operands]
            if sample.op.first_fault(full) is None:
                merge(sample.op.infer_shape(*full), found)  # they do not contradict each other


@FACES.of(ALL)
def operands_that_are_wrong_are_an_error_in_the_text(sample: Sample) -> None:
    random = Random(sample.text)
    for _ in range(50):
        operands = [replaced(shape, random) for shape in sample.shapes]
        with suppress(HloError):
            what_follows(sample, operands)


@pytest.mark.parametrize("opcode", FACES.opcodes)
def test_less_known_operands_are_never_wrong(opcode: str) -> None:
    FACES.check(opcode)


def replaced(shape: AnyShape, random: Random) -> PartialShape:
    """Something like an operand: sizes, rank or type may be others, or unknown."""
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


def filled(shape: PartialShape, size: int) -> AnyShape:
    """The shape with a size for each unknown one, and for each bound that allows it."""
    match shape:
        case Shape():
            sizes = [
                size if not d.is_known else min(size, d.size) if d.dynamic else d.size
                for d in dims_of(shape)
            ]
            return shape.with_dims(sizes)
        case TupleShape(elements):
            return TupleShape(tuple([filled(element, size) for element in elements]))
    assert not isinstance(shape, Unranked)
    return shape
