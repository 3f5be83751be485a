"""Search for faults of XLA:CPU: random programs, judged and reduced as `triage` does it.

    python -m benchmarks.hunt FOLDER [--count N] [--seconds S] [--seed S]

Each program is compiled by XLA in a process of its own and executed by XLA and by the interpreter.
It is a finding if the results differ, if the modules before and after a pass differ, or if XLA
returns no result.  A finding is reduced to the smallest program with the same class; faults of
`docs/found.md` are counted and written to ``FOLDER/FAULT/NAME.hlo``, others are printed and written
to ``FOLDER/NAME.hlo``, with the unreduced program.  ``hlo-indexing triage FOLDER`` groups them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Final

import hlo
from benchmarks.found_cases import CASES, Case
from benchmarks.hunt_programs import programs
from indexing.equivalence.triage import TriagedCase, of_module
from indexing.execution.xla_process import XlaProcess

BATCH: Final = 40

_MOVEMENT: Final = frozenset(
    [
        *("parameter", "constant", "broadcast", "reshape", "bitcast", "copy", "tuple"),
        *("get-tuple-element", "transpose", "slice", "iota", "pad"),
    ]
)


def finding(name: str, text: str, process: XlaProcess) -> TriagedCase | None:
    """Return the case of a program on which XLA is wrong or has no result; None for others."""
    module = hlo.parse(text)
    if hlo.verify(module):
        return None
    case = of_module(name, module, process)
    return case if case.kind in ("wrong element", "no result") else None


def find_known(case: TriagedCase) -> Case | None:
    """Return the fault of `docs/found.md` that a reduced program shows."""
    opcodes = {i.opcode for i in hlo.parse(case.smallest).entry} - _MOVEMENT
    for fault in CASES:
        is_like = fault.fails == (case.kind == "no result") and case.cause.startswith(fault.place)
        if is_like and opcodes and opcodes <= fault.opcodes:
            return fault
    return None


def named_programs(seed: int) -> Iterator[tuple[str, str]]:
    """Yield random programs without end."""
    while True:
        yield from programs(seed, BATCH)
        seed += 1


def main() -> None:
    """Search, and print a line for each finding that is not known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=1 << 30)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    tried, start = 0, perf_counter()
    with XlaProcess() as process:
        for name, text in named_programs(given.seed):
            if tried == given.count or perf_counter() - start > given.seconds:
                break
            tried += 1
            case = finding(name, text, process)
            if case is None:
                continue
            fault = find_known(case)
            counts[f"known: {fault.name}" if fault else f"{case.kind}, {case.cause}"] += 1
            line = f"{name}: {case.kind}, {case.cause}: {case.detail}"
            path = given.folder / (fault.name if fault else ".") / f"{name}.hlo"
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                f"// {line}\n{case.smallest}\n// {text.replace(chr(10), chr(10) + '// ')}\n"
            )
            if fault is None:
                print(line, flush=True)
    for kind, count in counts.most_common():
        print(f"{count:6}  {kind}")
    print(f"{tried} programs in {perf_counter() - start:.0f} s, {counts.total()} findings")


if __name__ == "__main__":
    main()
