"""Time of ``hlo-indexing bytes`` beside that of ``hlo-indexing maps --all``, in one run.

    python -m benchmarks.traffic [FILE]

Each command runs in a process of its own; the times are those of its processor.  The target is that
`bytes` takes no longer than `maps --all` on ``gpt2_small_train.opt.hlo`` (65,757 instructions).
Without FILE, the largest module of ``examples/`` is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.examples import largest_example

COMMANDS: Final = {"maps --all": ("maps", "--all"), "bytes": ("bytes",)}


def processor_time(command: tuple[str, ...], file: str) -> float:
    """Return the processor time of a command in seconds."""
    before = os.times()
    line = [sys.executable, "-m", "indexing.cli", *command, file, "--no-cache"]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - (before.children_user + before.children_system)
    )


def main(arguments: list[str]) -> None:
    """Print the time of each command."""
    for file in arguments or [str(largest_example())]:
        for name, command in COMMANDS.items():
            print(f"{Path(file).name}: {name:12} {processor_time(command, file):6.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
