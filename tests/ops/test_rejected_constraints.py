"""Every constraint of every op rejects a program and points at the fault (`rejected.txt`)."""

from __future__ import annotations

import pytest

import hlo
from tests.checks import checks
from tests.ops.rejected import Row, rows, rules
from tests.ops.samples import parse_sample

ROWS = rows()


@pytest.mark.parametrize("opcode", dict.fromkeys(row.opcode for row in ROWS))
def test_each_constraint_of_an_op_rejects_a_program_and_points_at_the_fault(opcode: str) -> None:
    with checks() as check:
        for row in ROWS:
            if row.opcode == opcode:
                with check(row.rule):
                    check_row(row)


def check_row(row: Row) -> None:
    instruction = parse_sample(row.text).instruction
    (error,) = hlo.verify(instruction.module)
    assert error.code == "op-constraint"
    assert error.message.startswith(f"{instruction.opcode} {row.rule}: ")
    assert (error.span.line, error.span.column) == (instruction.span.line, row.column)
    assert error.label


def test_every_constraint_has_a_row() -> None:
    """To add a row, run ``python -m tests.ops.rejected`` or write it by hand."""
    missing = rules().keys() - {(row.opcode, row.rule) for row in ROWS}
    assert not missing


def test_every_row_has_a_constraint() -> None:
    assert not {(row.opcode, row.rule) for row in ROWS} - rules().keys()
