"""Search for faults of XLA:CPU: random programs through every pass, and executed.

    python -m benchmarks.hunt FOLDER [--count N] [--seconds S] [--seed S]

Each program is compiled by XLA in a process of its own and executed by XLA and by the interpreter.
It is a finding if the results differ, if the modules before and after a pass differ, or if XLA
returns no result. A finding is reduced to the smallest program with the same finding; faults of
`docs/found.md` are counted and written to ``FOLDER/FAULT/NAME.hlo``, others are printed and written
to ``FOLDER/NAME.hlo``, with the unreduced program.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

import numpy as np

import hlo
from benchmarks.found import last_pass, place_of
from benchmarks.found_cases import CASES, Case
from benchmarks.hunt_programs import programs
from hlo.modules.module import Module
from hlo.shapes.shape import Shape
from indexing.equivalence.draws import Draw
from indexing.equivalence.evidence import far_apart
from indexing.equivalence.reduction import smallest_program
from indexing.equivalence.verdicts import ElementIndex
from indexing.execution import run
from indexing.execution.xla_process import STDERR, Array, Failure, XlaProcess
from indexing.ops.unspecified import record_unspecified

BATCH: Final = 40
MAX_ATTEMPTS: Final = 60
"""Limit on the programs that are executed to reduce one finding."""

_MOVEMENT: Final = frozenset(
    [
        *("parameter", "constant", "broadcast", "reshape", "bitcast", "copy", "tuple"),
        *("get-tuple-element", "transpose", "slice", "iota", "pad"),
    ]
)


@dataclass(frozen=True, slots=True)
class Finding:
    """A program on which XLA is wrong or has no result.

    Attributes:
        place: the pass, or the part of the compiler, without numbers.
        kind: "numbers", "passes", or the reason why there is no result.
        detail: the witness, or both values.
    """

    place: str
    kind: str
    detail: str

    @property
    def is_failure(self) -> bool:
        """True if XLA returned no result."""
        return self.kind not in ("numbers", "passes")

    def is_like(self, other: Finding | None) -> bool:
        """Return True for another program with the same fault, as far as can be told.

        Whether a wrong pass changes the outputs depends on the inputs of the execution.
        """
        if other is None or self.place != other.place:
            return False
        return self.kind == other.kind or not (self.is_failure or other.is_failure)


class Hunt:
    """Executions of programs by XLA and by the interpreter."""

    def __init__(self, process: XlaProcess, folder: Path) -> None:
        self.process, self.folder, self.count = process, folder, 0

    def finding(self, text: str) -> Finding | None:
        """Return what is wrong with a program, if it is."""
        try:
            module = hlo.parse(text)
            if hlo.verify(module):
                return None
            inputs = inputs_of(module)
            with np.errstate(all="ignore"), record_unspecified() as unspecified:
                expected = run(module, inputs, max_iterations=1000)
        except hlo.HloError:
            return None
        if unspecified:
            return None
        shutil.rmtree(self.folder / str(self.count), ignore_errors=True)
        self.count += 1  # XLA dumps a text that it compiles again only to another folder
        dumps = self.folder / str(self.count)
        results = self.process.run(str(module), inputs, dumps)
        if isinstance(results, Failure) and not (results.is_end or "INTERNAL" in results.reason):
            return None  # XLA does not support the program
        if isinstance(results, Failure):
            kind = results.reason if results.is_end else "INTERNAL"
            return Finding(last_pass(dumps), kind, message(dumps) or results.reason)
        place, witness = place_of(module, dumps)
        place = place.partition(":")[0]
        for number, (ours, theirs) in enumerate(zip(expected, results, strict=True)):
            at = far_apart(ours, theirs)
            at = lost(ours, theirs) if at is None else at
            if at is not None:
                values = f"{ours[at]} by the interpreter, {theirs[at]} by XLA"
                return Finding(place, "numbers", witness or f"output {number} at {at}: {values}")
        return Finding(place, "passes", witness) if witness else None


def inputs_of(module: Module) -> list[Any]:
    """Return inputs: small whole numbers."""
    random = np.random.default_rng(1)
    shapes = [p.shape for p in module.entry.parameters]
    return [Draw(whole=True).array(each, random) for each in shapes if isinstance(each, Shape)]


def lost(ours: Array, theirs: Array) -> ElementIndex | None:
    """Return the index of a number that is NaN by XLA."""
    if ours.dtype.kind != "f":
        return None
    indices = np.argwhere(np.isfinite(ours) & np.isnan(theirs))
    return tuple(map(int, indices[0])) if len(indices) else None


def message(folder: Path) -> str:
    """Return XLA's first line about an error."""
    path = folder / STDERR
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    errors = [line for line in lines if re.match(r"[EF]\d{4}", line)]
    return re.sub(r"^\S+ \S+ +\d+ ", "", errors[0])[:300] if errors else ""


def reduced(hunt: Hunt, text: str, finding: Finding) -> str:
    """Return the smallest part of a program with the same finding."""
    part = smallest_program(
        hlo.parse(text), lambda module: finding.is_like(hunt.finding(str(module))), MAX_ATTEMPTS
    )
    return str(part)


def known(text: str, finding: Finding) -> Case | None:
    """Return the fault of `docs/found.md` that a reduced program shows."""
    module = hlo.parse(text)
    opcodes = {i.opcode for i in module.entry} - _MOVEMENT
    for case in CASES:
        is_like = case.fails == finding.is_failure and finding.place.startswith(case.place)
        if is_like and opcodes and opcodes <= case.opcodes:
            return case
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
    with TemporaryDirectory() as folder, XlaProcess() as process:
        hunt = Hunt(process, Path(folder))
        for name, text in named_programs(given.seed):
            if tried == given.count or perf_counter() - start > given.seconds:
                break
            tried += 1
            finding = hunt.finding(text)
            if finding is None:
                continue
            part = reduced(hunt, text, finding)
            case = known(part, finding)
            counts[f"known: {case.name}" if case else f"{finding.kind}, {finding.place}"] += 1
            line = f"{name}: {finding.kind}, {finding.place}: {finding.detail}"
            path = given.folder / (case.name if case else ".") / f"{name}.hlo"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"// {line}\n{part}\n\n// -----\n\n{text}\n")
            if case is None:
                print(line, flush=True)
    for kind, count in counts.most_common():
        print(f"{count:6}  {kind}")
    print(f"{tried} programs in {perf_counter() - start:.0f} s, {counts.total()} findings")


if __name__ == "__main__":
    main()
