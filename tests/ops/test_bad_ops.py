"""Invalid attributes and shapes give an `HloError` or an `Unknown`, and no other exception."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import hlo
from hlo.modules.instruction_checks import instruction_errors
from hlo.ops.op import OPS
from hlo.shapes.shape import leaves
from indexing.ops.base import MappedOp
from indexing.ops.elementwise import BinaryTableOp, UnaryTableOp
from tests.ops.samples import parse_sample
from tests.oracles import sampled

NUMBERS = ["-1", "0", "2", "9", "9000000000000000000"]
SHAPES = [
    "token[]",
    "(f32[2], s32[])",
    "f32[?,3]",
    "f32[<=4]",
    "pred[]",
    "f32[4294967296,4294967295]",
]
_NUMBER = re.compile(r"(?<=[\[{,=x_:])-?\d+")
_SHAPE = re.compile(r"\w+\[[^\]]*\](\{[^}]*\})?")


def mutants(text: str) -> Iterator[str]:
    """Variants of `text` with one number or one shape replaced."""
    for pattern, replacements in ((_NUMBER, NUMBERS), (_SHAPE, SHAPES)):
        for match in pattern.finditer(text):
            for replacement in replacements:
                yield text[: match.start()] + replacement + text[match.end() :]


def check(text: str) -> None:
    instruction = parse_sample(text).instruction
    instruction_errors(instruction.module)
    op = instruction.op
    if isinstance(op, MappedOp):
        shapes = tuple([operand.shape for operand in instruction.operands])
        for exact in (False, True):
            for number in range(len(leaves(instruction.shape))):
                assert len(op.reads(instruction.shape, shapes, number, exact)) == len(shapes)
            for number in range(len(shapes)):
                op.writes(instruction.shape, shapes, number, exact)


@pytest.mark.parametrize(
    "opcode",
    [o for o, cls in OPS.items() if not issubclass(cls, UnaryTableOp | BinaryTableOp)] + ["add"],
)
def test_invalid_instructions_give_an_error_or_unknown(opcode: str) -> None:
    for sample in OPS[opcode].samples:
        for text in sampled(mutants(sample), sample):
            try:
                check(text)
            except hlo.HloError:
                continue
            except Exception as error:
                raise AssertionError(f"{type(error).__name__}: {error}, for {text}") from error
