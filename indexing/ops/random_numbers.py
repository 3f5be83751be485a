"""Random number generation: rng, rng-bit-generator and rng-get-and-update-state.

Source: XLA ``docs/operation_semantics.md``, "RngNormal", "RngUniform" and "RngBitGenerator".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from hlo.ops.attributes import enum, integer
from hlo.ops.op import HOLDS, Fault, Shape, attribute, constraint, declared, op
from hlo.ops.unify import PartialShape, may_be_same_dims, with_rank
from hlo.shapes.shape import ELEMENT_TYPES, UNBOUNDED, AnyShape, TupleShape, dtype, leaves
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import Array, BinaryOp, NullaryOp, UnaryOp, every_element
from indexing.ops.element import NO_WORK, ElementRule, OpaqueRule, Work, element_count
from indexing.ops.random_bits import philox, three_fry
from simplifier.unknown import Unknown


@op(
    "rng",
    samples=[
        "f32[3,5] rng(f32[] low, f32[] high), distribution=rng_uniform",
        "f32[2,3] rng(f32[] mean, f32[] deviation), distribution=rng_normal",
        "s32[4] rng(s32[] low, s32[] high), distribution=rng_uniform",
        "f32[] rng(f32[] low, f32[] high), distribution=rng_uniform",
        "f32[0,3] rng(f32[] low, f32[] high), distribution=rng_uniform",
    ],
)
class Rng(BinaryOp):
    """Random numbers in ``[left, right)``, or with mean `left` and standard deviation `right`.

    The numbers differ from run to run of a program; the kernel is deterministic.
    """

    rule: ClassVar[ElementRule] = OpaqueRule("random numbers have no per-element rule")
    has_effect: ClassVar[bool] = True
    shape: Shape = declared()
    distribution: str = attribute(enum("rng_uniform", "rng_normal"))

    def unify_operands(self, *operands: PartialShape) -> Sequence[PartialShape]:
        return [with_rank(operand, 0) for operand in operands]

    @constraint("C1", "both parameters must be scalars of the result's element type")
    def has_parameters(self, left: Shape, right: Shape) -> Fault:
        for number, shape in enumerate((left, right)):
            if shape.rank or shape.element_type != self.shape.element_type:
                return Fault(f"operand {number} is {shape}, the result {self.shape}", number)
        return HOLDS

    def infer_shape(self, left: Shape, right: Shape) -> Shape:
        return self.shape.with_layout(None)

    def output_to_input(
        self, out: Shape, left: Shape, right: Shape
    ) -> tuple[IndexingMap, IndexingMap]:
        parameter = IndexingMap.over(out, lambda i: [])
        return parameter, parameter

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return Work(transcendentals=element_count(out))

    def kernel(self, left: Array, right: Array) -> Array:
        return self.draw(np.random.default_rng(0), left, right)

    def draw(self, random: np.random.Generator, left: Array, right: Array) -> Array:
        """Return the result with random numbers from `random`."""
        kind = dtype(self.shape.element_type)
        with np.errstate(all="ignore"):
            if self.distribution == "rng_normal":
                values = random.standard_normal(self.shape.dims) * right + left
            else:
                share = random.random(self.shape.dims)
                values = left + share * (right.astype(np.float64) - left)
                if ELEMENT_TYPES[self.shape.element_type].kind != "floating":
                    values = np.floor(values)
            return np.asarray(values).astype(kind)


@op(
    "rng-bit-generator",
    samples=[
        "(u64[2], u32[3,5]) rng-bit-generator(u64[2] state), algorithm=rng_three_fry",
        "(u64[2], u32[]) rng-bit-generator(u64[2] state), algorithm=rng_three_fry",
        "(u64[3], u64[3]) rng-bit-generator(u64[3] state), algorithm=rng_philox",
        "(u64[2], u8[7]) rng-bit-generator(u64[2] state), algorithm=rng_default",
        "u16[3,2] rng-bit-generator(u64[2] state), algorithm=rng_three_fry",
    ],
)
class RngBitGenerator(UnaryOp):
    """``(next state, random bits)`` computed from the state, or only the bits for an array result.

    The backend chooses the algorithm of ``rng_default``; the kernel uses Philox, as XLA on CPU.
    """

    obstacle: ClassVar[str] = "the algorithm may not use all elements of the state for a number"
    rule: ClassVar[ElementRule] = OpaqueRule("random numbers have no per-element rule")
    shape: AnyShape = declared(any_shape=True)
    algorithm: str = attribute(enum("rng_default", "rng_three_fry", "rng_philox"))

    @constraint("C1", "the state must be u64[2], or u64[3] for Philox; rng_default accepts any")
    def has_state(self, operand: Shape) -> Fault:
        longest = 2 if self.algorithm == "rng_three_fry" else 3
        is_state = operand.element_type == "u64" and operand.rank == 1
        lengths = (UNBOUNDED, *range(2, longest + 1))
        if self.algorithm == "rng_default" or (is_state and operand.dims[0] in lengths):
            return HOLDS
        return Fault(f"the state is {operand}", 0)

    @constraint("C2", "the result must be (state, integer array) or an integer array")
    def has_result(self, operand: Shape) -> Fault:
        match self.shape:
            case Shape() as bits:
                state = operand
            case TupleShape((Shape() as state, Shape() as bits)):
                pass
            case _:
                return Fault(f"the result is {self.shape}")
        is_integer = ELEMENT_TYPES[bits.element_type].kind in ("integral", "unsigned")
        if state.compatible(operand) and is_integer:
            return HOLDS
        return Fault(f"the result is {self.shape}")

    def infer_shape(self, operand: Shape) -> AnyShape:
        return self.shape

    def output_to_input(self, out: Shape, operand: Shape) -> IndexingMap:
        return every_element(out, operand).with_grade("may")

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        sizes = [leaf.size for _, leaf in leaves(out) if isinstance(leaf, Shape)]
        return Work(transcendentals=sum(sizes))

    def kernel(self, operand: Array) -> Any:
        if operand.dtype != np.uint64 or operand.shape not in ((2,), (3,)):
            given = f"{operand.dtype}{list(operand.shape)}"
            raise ValueError(f"the kernel requires a state u64[2] or u64[3], not {given}")
        generate = three_fry if self.algorithm == "rng_three_fry" else philox
        shape = leaves(self.shape)[-1][1]
        assert isinstance(shape, Shape)  # C2 holds
        state, bits = generate(operand, shape.dims, dtype(shape.element_type))
        return (state, bits) if isinstance(self.shape, TupleShape) else bits


@op(
    "rng-get-and-update-state",
    samples=["u64[2] rng-get-and-update-state(), delta=3"],
)
class RngGetAndUpdateState(NullaryOp):
    """The state of the program's random number generator, which is then advanced by `delta`."""

    rule: ClassVar[ElementRule] = OpaqueRule("random numbers have no per-element rule")
    has_effect: ClassVar[bool] = True
    shape: Shape = declared()
    delta: int = attribute(integer)

    @constraint("C1", "the result must be u64[2]")
    def has_state(self) -> Fault:
        if self.shape.element_type == "u64" and may_be_same_dims(self.shape.dims, (2,)):
            return HOLDS
        return Fault(f"the result is {self.shape}")

    def infer_shape(self) -> Shape:
        return Shape("u64", (2,))

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        return NO_WORK

    def kernel(self) -> Any:
        raise TypeError("rng-get-and-update-state has no kernel: its value is state of the runtime")
