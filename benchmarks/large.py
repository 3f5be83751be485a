"""Time and peak memory of the commands on modules of up to 400,000 instructions.

    python -m benchmarks.large FOLDER [FILE] [--command NAME]...

Two modules are written into FOLDER, each in a quarter, in half and in full size: `calls` has copies
of the module in FILE, an optimised training step for example, whose ENTRY computations a new ENTRY
calls; `straight` is one ENTRY computation.  Each command runs in a process of its own; times are
those of its processor.  Linear growth doubles time and memory from column to column.  The target is
less than 2 GiB for 400,000 instructions in 50 MB of text.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import hlo

SIZE: Final = 400_000
PARTS: Final = (4, 2, 1)  # divisors of SIZE
COMMANDS: Final = {
    "check": ("check",),
    "summary": ("summary",),
    "bytes": ("bytes",),
    "maps": ("maps", "--all", "--format", "json"),
    "maps -i": ("maps", "-i", "tail", "--format", "json"),
    "validate": ("validate", "--no-xla", "--max-elements", "64"),
}
LARGEST: Final = max(
    Path(__file__).parent.parent.glob("examples/*.hlo"), key=lambda path: path.stat().st_size
)
STEPS: Final = (
    ("f32[64,96]{1,0}", "negate(%{0})", "neg"),
    ("f32[96,64]{1,0}", "transpose(%{0}), dimensions={{1,0}}", "transpose"),
    ("f32[96,64]{1,0}", "add(%{0}, %{0})", "add"),
    ("f32[6144]{0}", "reshape(%{0})", "reshape"),
    ("f32[6144]{0}", "multiply(%{0}, %{0})", "mul"),
    ("f32[2,3072]{1,0}", "reshape(%{0})", "split"),
    ("f32[2,3072]{1,0}", "exponential(%{0})", "exp"),
    ("f32[64,96]{1,0}", "reshape(%{0})", "join"),
)
"""Shape, right side and operation of the instructions of `straight`, in turn."""


class Cost(NamedTuple):
    """Processor time in seconds, peak memory in MiB, and the exit status of a command."""

    seconds: float
    mebibytes: float
    status: int


def straight(count: int) -> Iterator[str]:
    """Yield the lines of a module with one computation of `count` instructions."""
    yield "HloModule straight\n\nENTRY %main (x: f32[64,96]) -> f32[64,96] {\n"
    yield "  %x = f32[64,96]{1,0} parameter(0)\n"
    before = "x"
    for number in range(count - 2):
        shape, right, operation = STEPS[number % len(STEPS)]
        name = f"{operation}.{number}"
        source = f'metadata={{op_name="jit(step)/block_{number // 64}/{operation}" source_line=7}}'
        yield f"  %{name} = {shape} {right.format(before)}, {source}\n"
        before = name
    yield f"  ROOT %tail = f32[64,96]{{1,0}} reshape(%{before})\n}}\n"


def calls(path: Path, count: int) -> Iterator[str]:
    """Yield the text of a module that calls copies of another, `count` instructions in all."""
    text = path.read_text()
    module = hlo.parse(text)
    parameters, root = module.entry.parameters, module.entry.root
    body = text[re.search(r"^(?:ENTRY )?%", text, re.MULTILINE).start() :]  # type: ignore[union-attr]
    copies = count // sum(map(len, module.computations.values()))
    yield "HloModule calls\n\n"
    for copy in range(copies):
        renamed = re.sub(r"%([\w.-]+)", rf"%\1.r{copy}", body)
        yield renamed.replace("ENTRY ", "") + "\n\n"
    yield "ENTRY %main {\n"
    for number, parameter in enumerate(parameters):
        yield f"  %p.{number} = {parameter.shape} parameter({number})\n"
    operands = ", ".join(f"%p.{number}" for number in range(len(parameters)))
    for copy in range(copies):
        callee = f"%{module.entry.name}.r{copy}"
        yield f"  %c.{copy} = {root.shape} call({operands}), to_apply={callee}\n"
    results = ", ".join(f"%c.{copy}" for copy in range(copies))
    yield f"  ROOT %tail = ({', '.join([str(root.shape)] * copies)}) tuple({results})\n}}\n"


def write(kind: str, source: Path, count: int, path: Path) -> None:
    """Write a module."""
    path.write_text("".join(straight(count) if kind == "straight" else calls(source, count)))


def cost(command: tuple[str, ...], file: Path) -> Cost:
    """Run a command, and return what it needs."""
    line = [sys.executable, "-m", "indexing.cli", *command, str(file), "--quiet", "--no-cache"]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    return Cost(seconds, usage.ru_maxrss / 1024, process.returncode)


def main(arguments: list[str]) -> None:
    """Write the modules, and print a line for each command and module."""
    names = [arguments.pop(k + 1) for k, word in enumerate(arguments) if word == "--command"]
    folder, *files = [word for word in arguments if word != "--command"]
    source = Path(files[0]) if files else LARGEST
    Path(folder).mkdir(parents=True, exist_ok=True)
    for kind in ("calls", "straight"):
        paths = []
        for part in PARTS:
            paths.append(path := Path(folder, f"{kind}{part}.hlo"))
            if not path.exists():  # another process, as the peak memory of a child includes ours
                task = kind, source, SIZE // part, path
                writer = multiprocessing.Process(target=write, args=task)
                writer.start()
                writer.join()
        sizes = ", ".join(f"{path.stat().st_size / 1e6:.1f} MB" for path in paths)
        print(f"{kind}: {sizes}", flush=True)
        for name in names or COMMANDS:
            costs = [cost(COMMANDS[name], path) for path in paths]
            cells = [f"{c.seconds:7.1f} s {c.mebibytes:6.0f} MiB" for c in costs]
            failed = " failed" if any(c.status for c in costs) else ""
            print(f"  {name:10}" + "".join(cells) + failed, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
