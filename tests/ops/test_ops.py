"""Shapes, maps, kernels and routes of every op agree on all its samples."""

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
    CLASSES,
    MAPPED,
    MAPPED_TARGETS,
    TARGETS,
    Array,
    Pair,
    Sample,
    SampleChecks,
    parse_sample,
    poke,
    related_pairs,
)

CHECKS = SampleChecks()
EVERY, WITH_MAPS = [*ALL, *TARGETS], [*MAPPED, *MAPPED_TARGETS]
SEED = 20240229
MAX_ROUNDS = 2000  # perturbation rounds until every dependency must have appeared
CHOICES = 4  # of start indices
ELEMENTWISE = """
abs acos acosh asin asinh atan atanh bitcast-convert cbrt ceil convert copy cosine cosh
count-leading-zeros erf exponential exponential-minus-one floor imag is-finite log log-plus-one
logistic negate not popcnt real reduce-precision round-nearest-afz round-nearest-even rsqrt sign
sine sinh sqrt tan tanh add and atan2 compare complex divide maximum minimum mulhi multiply or
power remainder shift-left shift-right-arithmetic shift-right-logical stochastic-convert
subtract xor select clamp
"""
PARTITIONS = (
    "concatenate",
    "dynamic-update-slice",
    "pad",
)  # each output element is an element of one input


def seeded_generator() -> np.random.Generator:
    return np.random.default_rng(SEED)


def is_array(shape: Any) -> bool:
    return isinstance(shape, Shape) and shape.size > 0


def maps(sample: Sample, operand: int, output: int, exact: bool) -> tuple[IndexingMap, ...]:
    reads = sample.op.reads(sample.instruction.shape, sample.shapes, output, exact)[operand]
    assert isinstance(reads, tuple), f"{sample.text}: {reads}"
    return reads


def queries(sample: Sample) -> Iterator[tuple[int, int, bool]]:
    """All combinations of operand, output and the option ``exact``."""
    for operand in range(len(sample.shapes)):
        for output in range(len(sample.outputs)):
            yield operand, output, False
            yield operand, output, True


def union(index_maps: tuple[IndexingMap, ...], inputs: list[Array]) -> set[Pair]:
    return {pair for m in index_maps for pair in related_pairs(m, inputs)}


# ---------------------------------------------------------------- text and shapes


@CHECKS.of(EVERY)
def a_sample_is_valid(sample: Sample) -> None:
    assert hlo.verify(sample.instruction.module) == []


@CHECKS.of(EVERY)
def printed_attributes_parse_to_the_same_op(sample: Sample) -> None:
    attributes = sample.op.attribute_text()
    again = parse_sample(f"{sample.head}{', ' if attributes else ''}{attributes}")
    assert again.op == sample.op


@CHECKS.of(EVERY)
def the_inferred_shape_is_the_declared_one(sample: Sample) -> None:
    if not isinstance(sample.op, StructuredOp):
        assert sample.op.infer_shape(*sample.shapes).compatible(sample.instruction.shape)


@CHECKS.of(WITH_MAPS)
def the_kernel_has_the_inferred_shape(sample: Sample) -> None:
    results = sample.run(sample.inputs(seeded_generator()))
    wanted = [(shape.dims, dtype(shape.element_type)) for shape in sample.outputs]
    assert [(r.shape, r.dtype) for r in results] == wanted


# ---------------------------------------------------------------- maps


@CHECKS.of(WITH_MAPS)
def maps_are_the_dependencies_of_the_kernel(sample: Sample) -> None:
    """Exact maps equal the dependencies seen by perturbation; other maps contain them."""
    check_reads(sample, seeded_generator(), CHOICES)


def check_reads(sample: Sample, random: np.random.Generator, choices: int) -> None:
    """`maps_are_the_dependencies_of_the_kernel`, for `choices` choices of start indices."""
    for operand, shape in enumerate(sample.shapes):
        if is_array(shape):
            is_index = operand in sample.index_operands
            for _ in range(1 if is_index else choices):
                _check_reads(sample, operand, sample.inputs(random), is_index, random)


def _check_reads(
    sample: Sample, operand: int, inputs: list[Array], is_index: bool, random: np.random.Generator
) -> None:
    """Perturb random inputs until all dependencies of exact maps are seen, and no others."""
    outputs = range(len(sample.outputs))
    mapped = {
        (output, exact): union(maps(sample, operand, output, exact), inputs)
        for output in outputs
        for exact in (False, True)
    }
    is_exact = {key: all(m.grade == "exact" for m in maps(sample, operand, *key)) for key in mapped}
    seen: list[set[Pair]] = [set() for _ in outputs]
    for _ in range(MAX_ROUNDS):
        for pairs, changed in zip(seen, poke(sample, inputs, operand, random), strict=True):
            pairs |= changed
        for (output, _exact), pairs in mapped.items():
            assert seen[output] <= pairs, "the kernel has a dependency that no map contains"
        if all(seen[key[0]] == pairs for key, pairs in mapped.items() if is_exact[key]):
            return
        # new values; start indices are kept, unless they are perturbed themselves
        fresh = sample.inputs(random)
        inputs = [
            fresh[k] if is_index or k not in sample.index_operands else inputs[k]
            for k in range(len(inputs))
        ]
    for key, pairs in mapped.items():
        assert not is_exact[key] or seen[key[0]] == pairs, "an exact map has too many dependencies"


@CHECKS.of(WITH_MAPS)
def input_to_output_is_the_inverse(sample: Sample) -> None:
    check_inverse(sample, seeded_generator(), CHOICES)


def check_inverse(sample: Sample, random: np.random.Generator, choices: int) -> None:
    """`input_to_output_is_the_inverse`, for `choices` choices of start indices."""
    for _ in range(choices):
        inputs = sample.inputs(random)
        for operand, output, exact in queries(sample):
            forward = union(maps(sample, operand, output, exact), inputs)
            shape = sample.instruction.shape
            writes = sample.op.writes(shape, sample.shapes, operand, exact)[output]
            backward = union(writes, inputs)
            assert {(b, a) for a, b in backward} == forward
            grades = {m.grade for m in maps(sample, operand, output, exact)}
            if forward:  # a map without points is exact once it is known to be empty
                assert {m.grade for m in writes} == grades


def check_random(text: str, seed: int, inverses: int = 1, max_elements: int = 150) -> None:
    """Check that a random sample is valid and its maps are the dependencies of its kernel.

    Args:
        text: the sample.
        seed: of the inputs.
        inverses: number of choices of start indices for the check of the inverse.
        max_elements: the maps of a larger sample are not checked.
    """
    sample = parse_sample(text)
    assert hlo.verify(sample.instruction.module) == []
    if sum(math.prod(s.dims) for s in (*sample.outputs, *sample.arrays)) > max_elements:
        return
    random = np.random.default_rng(seed)
    check_reads(sample, random, choices=1)
    check_inverse(sample, random, choices=inverses)


@CHECKS.of(WITH_MAPS)
def maps_are_within_the_bounds_of_their_arrays(sample: Sample) -> None:
    inputs = sample.inputs(seeded_generator())
    for operand, output, exact in queries(sample):
        source = sample.shapes[operand]
        assert isinstance(source, Shape)
        for i, j in union(maps(sample, operand, output, exact), inputs):
            assert all(0 <= x < n for x, n in zip(i, sample.outputs[output].dims, strict=True))
            assert all(0 <= x < n for x, n in zip(j, source.dims, strict=True))


@CHECKS.of(WITH_MAPS)
def pieces_of_an_operand_are_disjoint(sample: Sample) -> None:
    inputs = sample.inputs(seeded_generator())
    for operand, output, exact in queries(sample):
        pieces = [related_pairs(m, inputs) for m in maps(sample, operand, output, exact)]
        assert sum(map(len, pieces)) == len(set().union(*pieces))


@CHECKS.of(PARTITIONS)
def exact_pieces_partition_the_output(sample: Sample) -> None:
    random = seeded_generator()
    for _ in range(CHOICES):
        inputs = sample.inputs(random)
        covered = [
            i
            for operand in range(len(sample.shapes))
            if operand not in sample.index_operands
            for i, _ in union(maps(sample, operand, 0, True), inputs)
        ]
        assert sorted(covered) == list(np.ndindex(*sample.outputs[0].dims))


@CHECKS.of(WITH_MAPS)
def simplified_maps_are_the_same_relation(sample: Sample) -> None:
    inputs = sample.inputs(seeded_generator())
    for operand, output, exact in queries(sample):
        for m in maps(sample, operand, output, exact):
            assert related_pairs(m.simplify(), inputs) == related_pairs(m, inputs)


# ---------------------------------------------------------------- ops without maps


@CHECKS.of([name for name in EVERY if issubclass(CLASSES[name], RoutingOp)])
def routes_agree_with_the_kernel(sample: Sample) -> None:

    def name_value(operand: int, path: tuple[int, ...], shape: Any) -> Any:
        if isinstance(shape, hlo.TupleShape):
            return tuple([name_value(operand, (*path, k), s) for k, s in enumerate(shape.elements)])
        return operand, path

    result = sample.op.kernel(*[name_value(n, (), s) for n, s in enumerate(sample.shapes)])
    for path, _ in leaves(sample.instruction.shape):
        leaf = result
        for step in path:
            leaf = leaf[step]
        assert sample.op.route(path) == leaf
        assert sample.op.route_back(*leaf) == path


# ---------------------------------------------------------------- all checks


@pytest.mark.parametrize("opcode", CHECKS.opcodes)
def test_an_op_passes_all_checks_on_its_samples(opcode: str) -> None:
    CHECKS.check(opcode)


def test_every_elementwise_opcode_is_registered() -> None:
    opcodes = ELEMENTWISE.split()
    assert len(opcodes) == 59
    assert set(opcodes) <= set(OPS)
