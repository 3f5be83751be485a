"""Counts of refusals, unknown and `may` answers about a folder of modules; the slowest commands.

    python -m benchmarks.targets FOLDER [--commands]

The modules are texts of XLA, so an error of ``check`` is a false one.  The maps are those of all
outputs of all instructions, and those from the roots of the ENTRY computations to the parameters.
Maps to scalars, such as start indices and padding values, are counted separately.  A map with
several causes counts for each.  With --commands, each command runs on each module in a process of
its own; times are those of its processor.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import hlo
import indexing
from benchmarks.large import COMMANDS, cost
from hlo.shapes.shape import leaves
from indexing.maps.reasons import Reason

TIMED: Final = {**COMMANDS, "maps --to": ("maps", "--to", "parameters")}
EDGES, PARAMETERS = "maps of instructions", "maps to parameters"
TARGETS: Final = {
    "texts refused": "0",
    "errors of check": "0",
    "unknown": "0",
    EDGES: "`may` for less than 1 %, without scalars",
    PARAMETERS: "`may` for less than 5 %",
}


class Precision:
    """Counts of the answers about modules.

    Attributes:
        counts: numbers of maps, by question and grade, and of failures, by their kind.
        causes: numbers of `may` maps by question and cause.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.causes: Counter[tuple[str, str]] = Counter()

    def add(self, text: str) -> None:
        """Count the answers about the module of a text."""
        try:
            module = hlo.parse(text)
        except hlo.HloError:
            self.counts["texts refused"] += 1
            return
        faults = hlo.verify(module)
        self.counts["errors of check"] += len(faults)
        if faults:
            return
        for instruction in module.instructions:
            for output in range(len(leaves(instruction.shape))):
                self._count(EDGES, indexing.output_to_input(instruction, output_id=output))
        for output in range(len(leaves(module.entry.root.shape))):
            self._count(PARAMETERS, indexing.to_parameters(module.entry.root, output_id=output))

    def _count(self, question: str, answer: indexing.Answer) -> None:
        self.counts["unknown"] += sum(reason is not None for reason in answer.unknown)
        for maps, reasons in zip(answer.maps, answer.reasons, strict=True):
            for m, why in zip(maps, reasons, strict=True):
                self.counts[question] += 1
                if m.grade == "may":
                    is_scalar = question == EDGES and not m.results
                    self.counts[f"{question}: may{' to scalars' * is_scalar}"] += 1
                    if not is_scalar:
                        self.causes.update({(question, cause(reason)) for reason in why})

    def lines(self) -> Iterator[str]:
        """Yield a line for each target, followed by the causes of `may` maps."""
        for name, target in TARGETS.items():
            yield f"{self.counts[name]:6} {name}, target: {target}"
            total, may = self.counts[name], self.counts[f"{name}: may"]
            if may:
                yield f"{may:6}   `may`: {may / total:.1%}"
            if scalars := self.counts[f"{name}: may to scalars"]:
                yield f"{scalars:6}   `may` to scalars"
            for (question, text), count in self.causes.most_common():
                if question == name:
                    yield f"{count:6}     {text}"


def cause(reason: Reason) -> str:
    """Return a reason with the opcode or target of its instruction, without names."""
    source, text = reason.instruction, re.sub(r": `[^`]*`$", "", reason.text)
    if source is None:
        return text
    return f"{source.text_of('custom_call_target') or source.opcode}: {text}"


def main(arguments: list[str]) -> None:
    """Print the counts, and the slowest module of each command."""
    options = {"--commands"}.intersection(arguments)
    (folder,) = [word for word in arguments if word not in options]
    paths = sorted(Path(folder).rglob("*.hlo"))
    precision = Precision()
    for path in paths:
        precision.add(path.read_text())
    print(f"{len(paths):6} modules", *precision.lines(), sep="\n", flush=True)
    for name, command in TIMED.items() if options else ():
        seconds, path = max((cost(command, path).seconds, path) for path in paths)
        print(f"{seconds:6.1f} s {name}: {path.name}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
