"""The faces of every op prove each other, over all samples of all ops."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hlo
from hlo.ops.op import OPS
from hlo.shapes.shape import Shape, dtype, leaves
from indexing import IndexingMap
from indexing.ops.base import RoutingOp
from indexing.ops.structured_ops import StructuredOp
from tests.ops.samples import (
    ALL,
    MAPPED,
    Array,
    Faces,
    Pair,
    Sample,
    parse_sample,
    poked,
    related,
)

FACES = Faces()
SEED = 20240229
PATIENCE = 2000  # changes to try until everything that is read has shown itself
CHOICES = 4  # of start indices
ELEMENTWISE = """
abs acos acosh asin asinh atan atanh bitcast-convert cbrt ceil convert copy cosine cosh
count-leading-zeros erf exponential exponential-minus-one floor imag is-finite log log-plus-one
logistic negate not popcnt real reduce-precision round-nearest-afz round-nearest-even rsqrt sign
sine sinh sqrt tan tanh add and atan2 compare complex divide maximum minimum mulhi multiply or
power remainder shift-left shift-right-arithmetic shift-right-logical stochastic-convert
subtract xor select clamp
"""
PARTITIONS = ("concatenate", "dynamic-update-slice", "pad")  # each output element is one input's


def seeded() -> np.random.Generator:
    return np.random.default_rng(SEED)


def is_array(shape: Any) -> bool:
    return isinstance(shape, Shape) and shape.size > 0


def maps(sample: Sample, operand: int, output: int, exact: bool) -> tuple[IndexingMap, ...]:
    found = sample.op.reads(sample.instruction.shape, sample.shapes, output, exact)[operand]
    assert isinstance(found, tuple), f"{sample.text}: {found}"
    return found


def questions(sample: Sample) -> Iterator[tuple[int, int, bool]]:
    """Every operand, output, and whether exact pieces are wanted."""
    for operand in range(len(sample.shapes)):
        for output in range(len(sample.outputs)):
            yield operand, output, False
            yield operand, output, True


def union(found: tuple[IndexingMap, ...], inputs: list[Array]) -> set[Pair]:
    return {pair for m in found for pair in related(m, inputs)}


# ---------------------------------------------------------------- text and shapes


@FACES.of(ALL)
def a_sample_breaks_no_rule(sample: Sample) -> None:
    assert hlo.verify(sample.instruction.module) == []


@FACES.of(ALL)
def attributes_print_as_they_are_read(sample: Sample) -> None:
    attributes = sample.op.attribute_text()
    again = parse_sample(f"{sample.head}{', ' if attributes else ''}{attributes}")
    assert again.op == sample.op


@FACES.of(ALL)
def the_inferred_shape_is_the_declared_one(sample: Sample) -> None:
    if not isinstance(sample.op, StructuredOp):
        assert sample.op.infer_shape(*sample.shapes).compatible(sample.instruction.shape)


@FACES.of(MAPPED)
def the_kernel_has_the_inferred_shape(sample: Sample) -> None:
    results = sample.run(sample.inputs(seeded()))
    wanted = [(shape.dims, dtype(shape.element_type)) for shape in sample.outputs]
    assert [(r.shape, r.dtype) for r in results] == wanted


# ---------------------------------------------------------------- maps


@FACES.of(MAPPED)
def maps_say_what_the_kernel_reads(sample: Sample) -> None:
    """An exact map has just the elements that move the output when poked; others have them too."""
    check_reads(sample, seeded(), CHOICES)


def check_reads(sample: Sample, random: np.random.Generator, choices: int) -> None:
    """`maps_say_what_the_kernel_reads`, for so many choices of start indices."""
    for operand, shape in enumerate(sample.shapes):
        if is_array(shape):
            is_index = operand in sample.index_operands
            for _ in range(1 if is_index else choices):
                _check_reads(sample, operand, sample.inputs(random), is_index, random)


def _check_reads(
    sample: Sample, operand: int, inputs: list[Array], is_index: bool, random: np.random.Generator
) -> None:
    """`poked` at random until all that is said to be read is seen, and nothing else ever is."""
    outputs = range(len(sample.outputs))
    said = {
        (output, exact): union(maps(sample, operand, output, exact), inputs)
        for output in outputs
        for exact in (False, True)
    }
    certain = {key: all(m.grade == "exact" for m in maps(sample, operand, *key)) for key in said}
    seen: list[set[Pair]] = [set() for _ in outputs]
    for _ in range(PATIENCE):
        for found, moved in zip(seen, poked(sample, inputs, operand, random), strict=True):
            found |= moved
        for (output, _exact), pairs in said.items():
            assert seen[output] <= pairs, "the kernel reads what no map says"
        if all(
            seen[output] == said[output, exact] for output, exact in said if certain[output, exact]
        ):
            return
        # other values; start indices stay as they are, unless it is these that are poked
        fresh = sample.inputs(random)
        inputs = [
            fresh[k] if is_index or k not in sample.index_operands else inputs[k]
            for k in range(len(inputs))
        ]
    for (output, exact), pairs in said.items():
        assert not certain[output, exact] or seen[output] == pairs, "a map says more than is read"


@FACES.of(MAPPED)
def input_to_output_is_the_inverse(sample: Sample) -> None:
    check_inverse(sample, seeded(), CHOICES)


def check_inverse(sample: Sample, random: np.random.Generator, choices: int) -> None:
    """`input_to_output_is_the_inverse`, for so many choices of start indices."""
    for _ in range(choices):
        inputs = sample.inputs(random)
        for operand, output, exact in questions(sample):
            forward = union(maps(sample, operand, output, exact), inputs)
            shape = sample.instruction.shape
            found = sample.op.writes(shape, sample.shapes, operand, exact)[output]
            backward = union(found, inputs)
            assert {(b, a) for a, b in backward} == forward
            grades = {m.grade for m in maps(sample, operand, output, exact)}
            assert {m.grade for m in found} == grades


def check_random(text: str, seed: int, inverses: int = 1, most: int = 150) -> None:
    """A random sample keeps its op's rules, and its maps are what its kernel reads.

    The inverse is checked for so many choices of start indices; samples of more than `most`
    elements are let pass.
    """
    sample = parse_sample(text)
    assert hlo.verify(sample.instruction.module) == []
    if sum(math.prod(s.dims) for s in (*sample.outputs, *sample.arrays)) > most:
        return
    random = np.random.default_rng(seed)
    check_reads(sample, random, choices=1)
    check_inverse(sample, random, choices=inverses)


@FACES.of(MAPPED)
def maps_stay_inside_their_tensors(sample: Sample) -> None:
    inputs = sample.inputs(seeded())
    for operand, output, exact in questions(sample):
        source = sample.shapes[operand]
        assert isinstance(source, Shape)
        for i, j in union(maps(sample, operand, output, exact), inputs):
            assert all(0 <= x < n for x, n in zip(i, sample.outputs[output].dims, strict=True))
            assert all(0 <= x < n for x, n in zip(j, source.dims, strict=True))


@FACES.of(MAPPED)
def pieces_of_an_operand_are_disjoint(sample: Sample) -> None:
    inputs = sample.inputs(seeded())
    for operand, output, exact in questions(sample):
        pieces = [related(m, inputs) for m in maps(sample, operand, output, exact)]
        assert sum(map(len, pieces)) == len(set().union(*pieces))


@FACES.of(PARTITIONS)
def exact_pieces_partition_the_output(sample: Sample) -> None:
    random = seeded()
    for _ in range(CHOICES):
        inputs = sample.inputs(random)
        covered = [
            i
            for operand in range(len(sample.shapes))
            if operand not in sample.index_operands
            for i, _ in union(maps(sample, operand, 0, True), inputs)
        ]
        assert sorted(covered) == list(np.ndindex(*sample.outputs[0].dims))


@FACES.of(MAPPED)
def simplified_maps_are_the_same_relation(sample: Sample) -> None:
    inputs = sample.inputs(seeded())
    for operand, output, exact in questions(sample):
        for m in maps(sample, operand, output, exact):
            assert related(m.simplify(), inputs) == related(m, inputs)


# ---------------------------------------------------------------- ops without maps


@FACES.of([opcode for opcode in ALL if issubclass(OPS[opcode], RoutingOp)])
def routes_say_where_the_kernel_puts_each_leaf(sample: Sample) -> None:

    def named(operand: int, path: tuple[int, ...], shape: Any) -> Any:
        if isinstance(shape, hlo.TupleShape):
            return tuple([named(operand, (*path, k), s) for k, s in enumerate(shape.elements)])
        return operand, path

    result = sample.op.kernel(*[named(n, (), s) for n, s in enumerate(sample.shapes)])
    for path, _ in leaves(sample.instruction.shape):
        leaf = result
        for step in path:
            leaf = leaf[step]
        assert sample.op.route(path) == leaf
        assert sample.op.route_back(*leaf) == path


# ---------------------------------------------------------------- all together


@pytest.mark.parametrize("opcode", FACES.opcodes)
def test_the_faces_of_an_op_agree(opcode: str) -> None:
    FACES.check(opcode)


def test_every_elementwise_opcode_is_known() -> None:
    opcodes = ELEMENTWISE.split()
    assert len(opcodes) == 59
    assert set(opcodes) <= set(OPS)
