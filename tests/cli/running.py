"""The command run in this process, and its JSON validated by the packaged schemas."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import jsonschema
import pytest

from indexing import cli
from indexing.views.records import SCHEMAS

Run: TypeAlias = Callable[[str], tuple[int, str, str]]
"""Runs a command line; returns the exit status, the output and the errors."""


def runner(capsys: pytest.CaptureFixture[str], *words: str) -> Run:
    """Return a function that runs `words` and the words of a line."""

    def ran(line: str) -> tuple[int, str, str]:
        status = cli.run([*words, *shlex.split(line)])
        captured = capsys.readouterr()
        assert "error[internal]" not in captured.err, captured.err
        return status, captured.out, captured.err

    return ran


@cache
def validator(name: str) -> Any:
    schema = json.loads(SCHEMAS[name].read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def valid_records(run: Run, schema: str, line: str) -> list[dict[str, Any]]:
    """Return the records that a line prints as JSON, all of which are valid."""
    status, out, _ = run(f"{line} --format json")
    assert status == 0
    valid = validator(schema)
    records = [json.loads(line, parse_constant=pytest.fail) for line in out.splitlines()]
    for record in records:
        valid.validate(record)
    return records
