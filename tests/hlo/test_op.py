"""The op framework: classes with `@op`, incomplete classes, and ops of users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

import hlo
from hlo.ops.attributes import int_list, integer
from hlo.ops.op import (
    HOLDS,
    OPS,
    Fault,
    Op,
    attribute,
    constraint,
    dimensions_fault,
    op,
    permutation_fault,
)
from hlo.shapes.shape import Shape


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    """Remove the ops that a test registers."""
    before = dict(OPS)
    yield
    OPS.clear()
    OPS.update(before)


def flip() -> type[Any]:
    @op("example-flip", samples=["f32[2,3] example-flip(f32[2,3] p), dimensions={1}"])
    class Flip(Op):
        """Reverses the order of the elements."""

        min_operands = max_operands = 1
        dimensions: tuple[int, ...] = attribute(int_list)
        times: int = attribute(integer, default=1, name="how_often")

        @constraint("C1", "dimensions are different dimensions of the operand")
        def names_dimensions(self, operand: Shape) -> Fault:
            return dimensions_fault(self.dimensions, operand.rank)

        def infer_shape(self, operand: Shape) -> Shape:
            return operand

    return Flip


def test_an_op_is_a_frozen_value() -> None:
    cls = flip()
    value = cls(dimensions=(1,))
    assert value == cls(dimensions=(1,), times=1)
    assert value != cls(dimensions=(0,))
    assert hash(value) == hash(cls(dimensions=(1,)))
    with pytest.raises(FrozenInstanceError):
        value.times = 2
    with pytest.raises((AttributeError, TypeError)):
        value.other = 2
    assert not hasattr(value, "__dict__")


def test_defaults_are_not_printed_and_names_in_text_are_used() -> None:
    cls = flip()
    assert cls(dimensions=(1, 0)).attribute_text() == "dimensions={1,0}"
    assert cls(dimensions=(), times=3).attribute_text() == "dimensions={}, how_often=3"


def test_a_user_registers_an_op_outside_the_package() -> None:
    body = "p = f32[2,3] parameter(0) ROOT r = f32[2,3] example-flip(p), dimensions={5}"
    assert hlo.parse(f"ENTRY e {{ {body} }}").entry.root.op is None
    cls = flip()
    root = hlo.parse(f"ENTRY e {{ {body} }}").entry.root
    assert root.op == cls(dimensions=(5,))
    (error,) = [e for e in hlo.verify(root.module) if e.code == "op-constraint"]
    assert (error.span.text, error.label) == ("{5}", "5 is not in [0, 1]")


def test_constraints_are_inherited_and_overridden() -> None:
    base = flip()

    class Loose(base):  # type: ignore[misc, valid-type]  # the base is made in a function
        """Takes any dimension."""

        @constraint("C1", "anything goes")
        def names_dimensions(self, operand: Shape) -> Fault:
            return HOLDS

        @constraint("C2", "the operand has a dimension")
        def has_rank(self, operand: Shape) -> Fault:
            return HOLDS if operand.rank else Fault("it is a scalar")

    made = op("example-loose", samples=["f32[] example-loose(f32[] p), dimensions={}"])(Loose)
    assert [rule.sentence for rule in made.constraints] == [
        "anything goes",
        "the operand has a dimension",
    ]
    assert made(dimensions=(7,)).first_fault([Shape("f32", (2,))]) is None
    assert made(dimensions=()).first_fault([Shape("f32", ())])[1].label == "it is a scalar"


def test_an_incomplete_op_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"'half' \(Half\) lacks infer_shape, a docstring, samples"):

        @op("half", samples=[])
        class Half(Op):
            pass

    assert "half" not in OPS


def test_a_field_without_a_kind_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"lacks attribute\(\.\.\).* for field axis"):

        @op("bare", samples=["f32[] bare()"])
        class Bare(Op):
            """Has a field without a kind."""

            axis: int

            def infer_shape(self) -> Shape:
                return Shape("f32", ())


def test_an_opcode_has_one_op_but_its_class_may_be_redefined() -> None:
    flip()
    flip()  # the same class, defined again
    with pytest.raises(TypeError, match="'example-flip' is registered already"):

        @op("example-flip", samples=["f32[] example-flip()"])
        class Another(Op):
            """Another op of the same opcode."""

            def infer_shape(self) -> Shape:
                return Shape("f32", ())


# fmt: off
PERMUTATIONS = [
    # values      size  label                                                  suggestion
    ((),          0,    "",                                                    ""),
    ((1, 0),      2,    "",                                                    ""),
    ((2, 0, 0),   3,    "0 appears twice, 1 is missing",                       "{2,0,1}"),
    ((1, 1, 1),   3,    "1 appears three times, 0, 2 are missing",             "{1,0,2}"),
    ((0, 3),      2,    "3 is not in [0, 1], 1 is missing",                      "{0,1}"),
    ((-1, 0),     2,    "-1 is not in [0, 1], 1 is missing",                        "{1,0}"),
    ((0,),        2,    "1 is missing",                                        "{0,1}"),
    ((0, 1, 2),   2,    "2 is not in [0, 1]",                                    "{0,1}"),
]
# fmt: on


@pytest.mark.parametrize("values, size, label, suggestion", PERMUTATIONS)
def test_permutation_faults_have_a_label_and_a_repair(
    values: tuple[int, ...], size: int, label: str, suggestion: str
) -> None:
    fault = permutation_fault(values, size)
    assert fault.label == label
    assert bool(fault) == bool(label)
    assert fault.help.endswith(suggestion)
