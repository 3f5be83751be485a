"""Odd uses of the command: random options with odd values, and files of wrong JSON or arrays.

``python -m tests.cli.odd_uses --seed SEED --count COUNT`` prints each use that ends in an internal
error, an exception, an unknown status or not at all.
"""

# ruff: noqa: E501 - values of a table fill lines

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from indexing import cli
from indexing.cli import group
from indexing.cli.journal import VERSION
from indexing.cli.paths import InputPath, OutputPath
from indexing.cli.reporter import Reporter

MODULE: Final = """HloModule m
ENTRY e { p = f32[3,5] parameter(0)  q = f32[3,5] negate(p)
  ROOT t = f32[5,3] transpose(q), dimensions={1,0} }
"""
DUMP: Final = "dumps/module_0001.m.000{}.pipeline.after_{}.before_c.txt"
MAX_SECONDS: Final = 10
STATUSES: Final = (0, 1, 2, 3)
USAGE: Final = 2

# fmt: off
NUMBERS: Final = [
    "0", "1", "2", "7", "-1", "-0", "00", "+3", "1.5", "1e3", "nan", "inf", "0x10", "1_000", " 4 ",
    "\u0663", "\uff11\uff12", "\u00b2", str(2**31), str(2**63), str(2**64), "9" * 18, "9" * 40,
    "9" * 5000, "-" + "9" * 5000,
]
TEXTS: Final = [
    "", " ", "-", "--", "\0", "t\0", "\ud800", "\udcff", "\u00e9", "\U0001f600", "\n", "t\n", "\x1b[31m",
    "\u202e", "[", "]", "[]", "{", "}", "(", ")", "[::1", "*", "?", "[a", "/", "//", "/[/", "/(/", "/*/",
    "/t/", "/(?P<a>/", "/a{99999999999}/", "%", "%t", "\\", "\\d", ",", ",,", "=", "=,=", "0=", "=0",
    "1=1=1", "0=0", "0=9", ":", "::", ":::", "...", "...,...", "1:0", "0:1:0", "t", "p", "e/t", "e/",
    "/e/t", "x" * 5000, "~", "@x", "$HOME", "None", "null", "true", "'", '"', "`",
]
SPECIAL: Final = [
    "H100", "xla:H100", "xla:", ":H100", "tiles=0", "tiles=", "=1", "working-set=1KiB", "elements=-1",
    "1KiB", "1 KiB", "1kib", "1PiB", "0B", "9" * 18 + "T", "1TB/s", "1TB/s,1TF/s", "1e400TB/s", "0TF/s",
    "9" * 400 + "TB/s", "-1TB/s", "x=2", "x=0", "x=-1", "x=1,x=1", "x", "x=" + "9" * 30, "x=2,y=",
    "p=x", "p=x,x", "p=_,x", "p0=_,x", "p0=(x", "p0=", "p9=x", "any", "_", "_,_", "row", "column,row",
    "grouped:0", "grouped:" + "9" * 30, "grouped:", "morton", "snake", "1,1", "2,2", "3,5", "0,0",
    "1,1,1", "1,-1", "1," + "9" * 30, "local:0", "local:", "local:-1", "local:" + "9" * 5000, "tcp://",
    "tcp://[::1", "tcp://[::1:80", "tcp://:80", "tcp://a b:1", "tls://[", "udp://h:1", "tcp://h:" + "9" * 40,
    "(d0) -> (d0)", "(d0) -> (d0), domain: d0 in [0, 9]", "(d0) -> (d0 mod 0)", "() -> ()", "(d0", "d0 ->",
    "affine_map<(d0) -> (d0)>", "#map", "(d0) -> (" + "(" * 3000, "(d0) -> (" + "9" * 5000 + ")",
    "(d0) -> (d0 floordiv 0), domain: d0 in [0, 9]", "(d0) -> (d0), domain: d0 in [9, 0]",
]
FILES: Final = [
    "m.hlo", "other.hlo", "dumps", "dumps/", ".", "missing.hlo", "missing/x", "m.hlo/", "m.hlo/x",
    "/dev/null", "/dev/zero", "fifo", "loop", "dangling", "empty.hlo", "binary.pb", "m.mlir", "short.gz",
    "short.xz", "in.npz", "odd.npz", "journal", "odd.journal", "new", "\u00e9.hlo", "n" * 300, "a\nb",
    "/dev/stdin", "/dev/stdout", "-",
]
JSON: Final[list[Any]] = [
    None, True, False, 0, 1, -1, 1.5, 10**30, "", "x", [], [1], ["x"], {}, {"x": 1}, {"error[io]": "1"},
    {"x": None}, [[]], "\ud800", float("nan"), float("inf"),
]
# fmt: on
BASES: Final = {
    "maps": ["m.hlo"],
    "summary": ["m.hlo"],
    "bytes": ["m.hlo"],
    "memory": ["m.hlo"],
    "ls": ["m.hlo"],
    "source": ["m.py", "m.hlo"],
    "check": ["m.hlo"],
    "tile": ["m.hlo"],
    "access": ["m.hlo"],
    "shard": ["m.hlo"],
    "run": ["m.hlo"],
    "validate": ["m.hlo", "--no-xla"],
    "diff": ["m.hlo", "other.hlo"],
    "passes": ["dumps"],
    "kernels": ["dumps"],
    "report": ["m.hlo"],
    "simplify": ["(d0) -> (d0), domain: d0 in [0, 9]"],
    "compose": ["() -> (7)", "(d0) -> (d0), domain: d0 in [0, 9]"],
    "ops": ["dot"],
    "explain": ["syntax"],
}
NOT_STARTED: Final = ("local:1", "local:2")
"""Values that start processes of Dask, which have tests of their own."""


class HangError(Exception):
    """A use of the command that does not end."""


def parameters(name: str) -> Sequence[click.Parameter]:
    """Return the parameters of a command, with the common ones."""
    context = group.cli.make_context("hlo-indexing", [name], obj=Reporter())
    command = group.cli.get_command(context, name)
    assert command is not None
    return command.params


def write_files(draw: random.Random) -> None:
    """Write the files of a use into the current folder; two of them are odd."""
    for name in ("m.hlo", "\u00e9.hlo"):
        Path(name).write_text(MODULE, "utf-8")
    Path("other.hlo").write_text(MODULE.replace("negate", "abs"))
    Path("dumps").mkdir(exist_ok=True)
    for number, name in ((1, "a"), (2, "b")):
        Path(DUMP.format(number, name)).write_text(
            MODULE.replace("negate", ("negate", "abs")[number - 1])
        )
    Path("empty.hlo").touch()
    for name in ("binary.pb", "short.gz", "short.xz", "m.mlir"):
        Path(name).write_bytes(bytes([10, 200, 31, 139, 8, 0]))
    for name, target in (("loop", "loop"), ("dangling", "nowhere")):
        if not Path(name).is_symlink():
            Path(name).symlink_to(target)
    if not Path("fifo").exists():
        os.mkfifo("fifo")
    np.savez("in.npz", in0=np.zeros((3, 5), np.float32))
    Path("odd.npz").write_bytes(odd_archive(draw))
    Path("odd.journal").write_bytes(odd_journal(draw))


def odd_journal(draw: random.Random) -> bytes:
    """Return a journal some of whose values have wrong types, or that is cut off."""
    head: Any = {"journal": VERSION, "question": {"version": "1", "command": "check"}}
    outcome: Any = {"file": "m.hlo", "sha256": "0" * 64, "failed": False}
    outcome |= {"counts": {"instructions": 2}, "matched": [], "has_answer": False, "end": None}
    for record in (head, outcome):
        for _ in range(draw.randrange(3)):
            record[draw.choice([*record, "other"])] = draw.choice(JSON)
    lines = [draw.choice([record, record, record, draw.choice(JSON)]) for record in (head, outcome)]
    text = "".join(f"{json.dumps(each)}\n" for each in lines)
    if draw.random() < 0.3:
        text = text[: draw.randrange(len(text))] + draw.choice(
            ["", "\n", "[" * 100_000 + "\n", "9" * 5000 + "\n"]
        )
    return text.encode("utf-8", "surrogatepass")


def odd_archive(draw: random.Random) -> bytes:
    """Return an .npz file with odd members, or bytes that are none."""
    stream = io.BytesIO()
    member = io.BytesIO()
    arrays: list[Any] = [np.zeros((3, 5), np.float32), np.zeros(3), np.array("t"), np.array(True)]
    np.save(member, draw.choice(arrays))
    data = bytearray(member.getvalue())
    for _ in range(draw.randrange(4)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    with zipfile.ZipFile(stream, "w") as archive:
        for name in draw.choices(
            ["in0.npy", "in0", "\u00e9.npy", "x", "out0.npy", "p.npy"], k=draw.randrange(3)
        ):
            with warnings.catch_warnings(action="ignore"):  # of two members of one name
                archive.writestr(name, bytes(data))
    whole = stream.getvalue()
    return whole if draw.random() < 0.8 else whole[: draw.randrange(len(whole) + 1)]


def odd_value(draw: random.Random, parameter: click.Parameter) -> str:
    """Return a value of an option or argument, which suits its type or not."""
    kinds = [NUMBERS, TEXTS, SPECIAL, FILES]
    if isinstance(parameter.type, InputPath | OutputPath):
        kinds += [FILES] * 6
    elif isinstance(parameter.type, click.IntRange | click.types.IntParamType):
        kinds += [NUMBERS] * 6
    else:
        kinds += [SPECIAL] * 4
    if isinstance(parameter.type, click.Choice) and draw.random() < 0.7:
        return draw.choice(list(map(str, parameter.type.choices)))
    return draw.choice([each for each in draw.choice(kinds) if each not in NOT_STARTED])


def odd_use(draw: random.Random) -> list[str]:
    """Return the words of a use."""
    name = draw.choice(list(BASES))
    words = list(BASES[name])
    every = parameters(name)
    for k, word in enumerate(words):
        if draw.random() < 0.15 and not word.startswith("--"):
            words[k] = odd_value(draw, every[0])
    for _ in range(draw.choice([1, 1, 1, 2, 2, 3, 5])):
        option = draw.choice([each for each in every if isinstance(each, click.Option)])
        spelling = draw.choice(option.opts)
        if option.is_flag:
            words.append(spelling)
        elif draw.random() < 0.5 and spelling.startswith("--"):
            words.append(f"{spelling}={odd_value(draw, option)}")
        else:
            words += [spelling, odd_value(draw, option)]
    draw.shuffle(words) if draw.random() < 0.05 else None
    return [name, *words]


def fault_of(words: Sequence[str]) -> str:
    """Run a use in the current folder; return what is wrong with its end, or "" if nothing."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    given = io.TextIOWrapper(io.BytesIO(MODULE.encode()), "utf-8")
    streams = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = given, out, err

    def hangs(number: int, frame: object) -> None:
        raise HangError(f"no end after {MAX_SECONDS} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(MAX_SECONDS)
    try:
        status = cli.run(words)
    except BaseException as error:
        return f"raises {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        sys.stdin, sys.stdout, sys.stderr = streams
    err.flush()
    errors = err.buffer.getvalue().decode(errors="replace")
    if "Traceback" in errors or "error[internal]" in errors:
        return errors[-2000:]
    if status not in STATUSES:
        return f"status {status}"
    if status == USAGE and not errors.strip():
        return "a usage error without a message"
    if (
        status == 1
        and not errors.strip()
        and words[0] not in ("diff", "passes", "kernels", "validate", "check")
    ):
        return "an error without a message"
    return ""


def faults(seed: int, count: int) -> Iterator[tuple[int, list[str], str]]:
    """Yield the number, the words and the fault of each faulty use."""
    home = os.getcwd()
    for number in range(seed, seed + count):
        draw = random.Random(number)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                write_files(draw)
                words = odd_use(draw)
                if fault := fault_of(words):
                    yield number, words, fault
            finally:
                os.chdir(home)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9)
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    number = 0
    for seed, words, fault in faults(given.seed, given.count):
        number += 1
        print(f"seed {seed}: {[word[:80] for word in words]}\n{fault}\n", flush=True)
    print(f"{given.count} uses from seed {given.seed}: {number} faults")


if __name__ == "__main__":
    main()
