"""The slowest pairs of a command and a module, over files of HLO.

    python -m benchmarks.slowest [--limit SECONDS] [--above SECONDS] [--command NAME]... FILE...

The commands are those of `COMMANDS`, each in a process of its own; a command that needs more than
`--limit` seconds of a processor is ended, and marked so; pairs without an answer always have a row.
Commands with ``-i`` ask about the last fusion of the ENTRY computation, else about its root.
``diff`` compares ``NAME.pre.hlo`` with ``NAME.opt.hlo`` beside it.  Times include the start of
Python and its imports: the last column is the time beyond that of ``--help``.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import hlo
from benchmarks.environment import cached_bytecode

COMMANDS: Final = {
    "ls": ("ls",),
    "check": ("check",),
    "summary": ("summary",),
    "bytes": ("bytes",),
    "memory": ("memory",),
    "memory --copies": ("memory", "--copies"),
    "access -i": ("access", "-i", "{name}"),
    "maps --all": ("maps", "--all"),
    "maps --all --to parameters": ("maps", "--all", "--to", "parameters"),
    "maps -i --to parameters": ("maps", "-i", "{name}", "--to", "parameters"),
    "report": ("report", "-o", "-"),
    "diff": ("diff",),
    "tile": ("tile", "-i", "{name}"),
    "run": ("run", "--elided", "random"),
    "validate": ("validate",),
    "shard": ("shard", "--mesh", "device=8"),
}
"""The words of each command, with the name of an instruction."""
ROWS: Final = 10
"""Pairs that are printed without `--above`."""
ANSWERS: Final = (0, 3)
"""The statuses of a command that answers; ``diff`` may be undecided."""


class Cost(NamedTuple):
    """Seconds of the processor, and the status; it is negative if the command was ended."""

    seconds: float
    status: int

    @property
    def note(self) -> str:
        """Text after the name of the file, empty if the command gave an answer."""
        if self.status < 0:
            return ", ended at the limit"
        return "" if self.status in ANSWERS else f", status {self.status}"


def asked_about(file: Path) -> str:
    """Return the name of the last fusion of the ENTRY computation, or of its root."""
    entry = hlo.load(str(file)).entry
    fusions = [each.name for each in entry.instructions if each.opcode == "fusion"]
    return fusions[-1] if fusions else entry.root.name


def cost(words: Sequence[str], limit: int, variables: Mapping[str, str]) -> Cost:
    """Run a command, and return what it needs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "indexing.cli", *words, "--no-cache"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=variables,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)),
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(usage.ru_utime + usage.ru_stime, process.returncode)


def costs(
    files: Sequence[Path], names: Sequence[str], limit: int, variables: Mapping[str, str]
) -> Iterator[tuple[str, Path, Cost]]:
    """Yield the cost of each command and file."""
    for file in files:
        instruction = asked_about(file)
        for name in names:
            others = [file]
            if name == "diff":
                optimised = file.with_name(file.name.replace(".pre.", ".opt."))
                if optimised == file or not optimised.exists():
                    continue
                others = [file, optimised]
            words = [word.format(name=instruction) for word in COMMANDS[name]]
            yield name, file, cost([words[0], *map(str, others), *words[1:]], limit, variables)


def main() -> None:
    """Print the slowest pairs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slowest")
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--above", type=float, help="print all pairs above these seconds")
    parser.add_argument("--command", action="append", choices=[*COMMANDS])
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    names = options.command or [*COMMANDS]
    with cached_bytecode() as variables:
        start = min(cost(["--help"], options.limit, variables).seconds for _ in range(3))
        measured = list(costs(options.files, names, options.limit, variables))
    measured.sort(key=lambda row: -row[2].seconds)
    if options.above is not None:
        rows = [row for row in measured if row[2].seconds > options.above]
    else:
        rows = measured[:ROWS]
    failed = [row for row in measured if row[2].note and row not in rows]
    print(f"{len(measured)} pairs of a command and a module")
    print(f"{'seconds':>8} {'beyond':>7}  command, file")
    for name, file, spent in [*rows, *failed]:
        seconds = f"{spent.seconds:8.2f} {spent.seconds - start:7.2f}"
        print(f"{seconds}  {name}, {file.name}{spent.note}")


if __name__ == "__main__":
    main()
