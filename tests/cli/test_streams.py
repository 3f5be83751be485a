"""Closed streams, full disks and interrupts: a message and a status, never a traceback."""
# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = f"'{sys.executable}' -m indexing.cli"
NEGATE = "ENTRY e { c = s32[3] constant({1,2,3})  ROOT n = s32[3] negate(c) }"
FULL = "error[io]: standard output: No space left on device\n"
NO_OUTPUT = "error[io]: standard output is closed\n"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")


def shell(text: str, folder: Path) -> tuple[int, str, str]:
    """Status, output and errors of a shell command in which `hlo` is the command."""
    (folder / "m.hlo").write_text(NEGATE)
    done = subprocess.run(
        ["/bin/sh", "-c", f'hlo() {{ {COMMAND} "$@"; }}; {text}'],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return done.returncode, done.stdout, done.stderr


# fmt: off
CLOSED = [
    # command                                  status  output  errors
    ("hlo check m.hlo >&-",                    1,      "",     NO_OUTPUT),
    ("hlo --help >&-",                         1,      "",     NO_OUTPUT),
    ("hlo check m.hlo >&- 2>&- <&-",           1,      "",     ""),
    ("hlo check m.hlo 2>&-",                   0,      "m.hlo: ok, 2 instructions\n", ""),
    ("hlo check missing.hlo 2>&-",             1,      "",     ""),
    ("hlo check m.hlo <&-",                    0,      "m.hlo: ok, 2 instructions\n", ""),
    ("hlo check - <&-",                        1,      "",     "error[io]: -: standard input is closed\n"),
    ("hlo maps - --jobs 2 <&-",                1,      "",     "error[io]: -: standard input is closed\n"),
    ("hlo simplify <&-",                       1,      "",     "error[io]: hlo-indexing: standard input is closed\n"),
    ("printf '\\n(d0\\377)' | hlo simplify",   1,      "",     "error[encoding]: the file is not text: invalid UTF-8 at byte 3\n"),
]
ON_FULL_DISK = [
    ("hlo check m.hlo m.hlo >/dev/full",       1,      "",     FULL),
    ("hlo check m.hlo missing >/dev/full",     1,      "",     FULL),
    ("hlo maps m.hlo --jobs 2 >/dev/full",     1,      "",     FULL),
    ("hlo ops >/dev/full",                     1,      "",     FULL),
    ("hlo --help >/dev/full",                  1,      "",     FULL),
    ("hlo run m.hlo --output - >/dev/full",    1,      "",     "error[io]: -: No space left on device\n"),
    ("hlo check missing 2>/dev/full",          1,      "",     ""),
    ("hlo --no-such-option 2>/dev/full",       2,      "",     ""),
]
# fmt: on


@pytest.mark.parametrize("text, status, output, errors", CLOSED, ids=lambda value: str(value)[:40])
def test_a_closed_stream_is_an_error_where_it_is_needed(
    text: str, status: int, output: str, errors: str, tmp_path: Path
) -> None:
    actual = shell(text, tmp_path)
    assert actual[:2] == (status, output)
    assert actual[2].startswith(errors)
    assert bool(actual[2]) == bool(errors)


@needs_full
@pytest.mark.parametrize("text, status, output, errors", ON_FULL_DISK, ids=lambda v: str(v)[:40])
def test_a_full_disk_is_reported_once(
    text: str, status: int, output: str, errors: str, tmp_path: Path
) -> None:
    assert shell(text, tmp_path) == (status, output, errors)


def test_an_error_on_standard_input_has_its_line(tmp_path: Path) -> None:
    text = (
        "printf '\\357\\273\\277(d0) -> (d0), domain: d0 in [0, 3]\\n\\n(d0\\377)' | hlo simplify"
    )
    status, output, errors = shell(text, tmp_path)
    assert (status, output) == (1, "(d0) -> (d0), domain: d0 in [0, 3]\n")
    assert "--> <stdin>:3:4" in errors


INTERRUPTED = """\
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            print("importing", file=sys.__stdout__, flush=True)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from indexing.cli import main
main(["maps", "m.hlo", "--all", "--verify"])
"""
IMPORTED = ["gc", "click", "hlo.text.source", "indexing.cli.group", "indexing.cli.commands.maps"]
IMPORTED += ["hlo.formats.files", "numpy", "numpy._core", "indexing.ops.scan", "simplifier"]
IMPORTED += ["simplifier.linear", "islpy", "islpy._isl"]


LOADED = """\
import sys
started = set(sys.modules)
from indexing.cli import main
print(*sorted(set(sys.modules) - started))
"""


@pytest.mark.parametrize(("given", "used"), [(None, "1"), ("3", "3")])
def test_a_command_uses_one_thread_for_products_unless_told(given: str | None, used: str) -> None:
    """Threads that wait for each other need processors: 30 times those of the product itself."""
    name = "OPENBLAS_NUM_THREADS"
    variables = {key: value for key, value in ENVIRONMENT.items() if key != name}
    code = f"""
import atexit, os, sys
from indexing.cli import main
atexit.register(lambda: sys.stderr.write(os.environ["{name}"]))
main(["--version"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=variables if given is None else {**variables, name: given},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, used)


def test_interrupts_are_handled_before_other_modules_are_imported() -> None:
    """From the first line of the console script to `main`, nothing else can be interrupted."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    own = {"hlo", "hlo.public_names", "hlo.repairs", "indexing", "indexing.cli"}
    assert set(done.stdout.split()) - {"__future__"} == own


@pytest.mark.parametrize("module", IMPORTED)
def test_an_interrupt_during_an_import_prints_no_traceback(module: str, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(NEGATE)
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "interrupted\n")
    assert done.stdout == "importing\n"


BLOCKED = """\
import atexit, os, signal, sys
from indexing import cli
from indexing.views import map_answers
def answer(*_):
    sys.stdout.write("x")  # waits in the buffer
    raise KeyboardInterrupt
map_answers.answer = answer
atexit.register(print, "the interpreter ends", file=sys.stderr)
cli.main(["maps", "m.hlo"])
"""


def test_an_interrupted_command_waits_neither_for_a_reader_nor_for_the_interpreter(
    tmp_path: Path,
) -> None:
    (tmp_path / "m.hlo").write_text(NEGATE)
    read, write = os.pipe()  # nobody reads
    with os.fdopen(read), os.fdopen(write, "w") as full:
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write, b"x" * 4096)
        os.set_blocking(write, True)
        done = subprocess.run(
            [sys.executable, "-c", BLOCKED],
            cwd=tmp_path,
            env={**ENVIRONMENT, "PYTHONUNBUFFERED": ""},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
