"""A signal ends a command although a kernel runs; a test waits for events, not for a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.notebooks import ROOT

STATUSES: Final = {
    signal.SIGINT: 130,
    signal.SIGTERM: 128 + signal.SIGTERM,
    signal.SIGHUP: 128 + signal.SIGHUP,
}
LONGER_THAN_A_TEST: Final = 600
"""Seconds after which a process that no signal ends fails the test."""

KERNEL: Final = """
import hashlib, indexing.cli
from indexing.cli import signals
signals.PATIENCE = {patience}
def run(arguments):
    with signals.ending_on_signals():
        print("started", flush=True)
        hashlib.pbkdf2_hmac("sha512", b"", b"", 2**31 - 1)  # one call, of many minutes
indexing.cli.run = run
indexing.cli.main()
"""

COMMAND: Final = """
import sys, indexing.cli
from indexing.execution import interpreter
run_mapped = interpreter._run_mapped
def announced(machine, instruction, operands):
    if instruction.opcode in ("reduce", "convolution"):
        print("started", flush=True)
    return run_mapped(machine, instruction, operands)
interpreter._run_mapped = announced
indexing.cli.main()
"""


@contextmanager
def start(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start Python in a process of its own, which prints "started"."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", STATUSES)
def test_a_signal_ends_a_command_within_a_call_of_a_library(number: signal.Signals) -> None:
    with start(KERNEL.format(patience=0.1)) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=LONGER_THAN_A_TEST)
        assert process.returncode == STATUSES[number]
        assert errors == ("interrupted\n" if number == signal.SIGINT else "")


def test_a_second_signal_ends_a_command_at_once() -> None:
    """The main thread would have an hour to respond to the first one."""
    with start(KERNEL.format(patience=3600)) as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LONGER_THAN_A_TEST)
        assert process.returncode in (STATUSES[signal.SIGINT], STATUSES[signal.SIGTERM])


HUGE: Final = {
    "reduce": """add { a = T[] parameter(0)  b = T[] parameter(1)  ROOT s = T[] add(a, b) }
      ENTRY e { p = T[] parameter(0)  z = T[] constant(0)
      b = T[1000000,1000000] broadcast(p), dimensions={}
      ROOT r = T[] reduce(b, z), dimensions={0,1}, to_apply=add }""",
    "convolution": """ENTRY e { x = T[32,64,64,64] parameter(0)  w = T[64,64,32,32] parameter(1)
      ROOT c = T[32,64,33,33] convolution(x, w), window={size=32x32},
      dim_labels=bf01_oi01->bf01 }""",
}


@pytest.mark.parametrize("element_type", ["f32", "bf16"])
@pytest.mark.parametrize("name", HUGE)
def test_a_signal_ends_a_run_with_a_raised_limit(
    name: str, element_type: str, tmp_path: Path
) -> None:
    """NumPy converts bf16 without releasing the interpreter."""
    path = tmp_path / "m.hlo"
    path.write_text(HUGE[name].replace("T[", f"{element_type}["))
    with start(COMMAND, "run", str(path), "--max-operations", str(10**16)) as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONGER_THAN_A_TEST)
        assert (process.returncode, errors) == (130, "interrupted\n")
