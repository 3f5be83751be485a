"""Integers in options: digits or powers of ten, exactly, and an error with what to write."""

from __future__ import annotations

from importlib import import_module

import click
import pytest

from indexing import cli
from indexing.cli.group import COMMANDS
from indexing.cli.integers import IntegerRange

# fmt: off
INTEGERS = [
    ("0", 0), ("12", 12), ("+7", 7), ("500000000000", 5 * 10**11), ("500_000_000_000", 5 * 10**11),
    ("5e11", 5 * 10**11), ("5E11", 5 * 10**11), ("5e+11", 5 * 10**11), ("1.25e2", 125),
    ("120e-1", 12), ("9007199254740993e0", 2**53 + 1), ("1e23", 10**23), ("7.0", 7),
]
# fmt: on
OTHERS = ["5e-1", "1.5", "e11", "5*10^11", "", "x", "nan", "inf", "1e999999999", "0x10", "5 e11"]


@pytest.mark.parametrize(("text", "value"), INTEGERS)
def test_integers_are_read_exactly(text: str, value: int) -> None:
    assert IntegerRange(min=0).convert(text, None, None) == value


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_name_what_to_write(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.BadParameter, match="is not an integer: write digits"):
        IntegerRange(min=0).convert(text, None, None)
    assert cli.run(["run", "m.hlo", "--max-operations", text]) == 2
    assert "500_000_000_000 or 5e11" in " ".join(capsys.readouterr().err.split())


def test_the_range_is_checked() -> None:
    with pytest.raises(click.BadParameter, match="-1 is not in the range"):
        IntegerRange(min=0).convert("-1", None, None)


def test_every_integer_option_reads_them() -> None:
    commands = [import_module(f"indexing.cli.commands.{name}").command for name in COMMANDS]
    types = [p.type for command in commands for p in command.params]
    integers = [t for t in types if isinstance(t, click.types.IntParamType)]
    assert integers
    assert all(type(each) is IntegerRange for each in integers)
