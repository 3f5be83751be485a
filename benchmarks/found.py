"""Write `docs/found.md`: programs on which XLA:CPU differs from the published semantics.

    python -m benchmarks.found [FILE]

executes each program of `benchmarks.found_cases` by the interpreter and by XLA:CPU, in a process of
its own, and compares the modules before and after each pass.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import hlo
from benchmarks.found_cases import CASES, Case
from indexing import equivalent, passes
from indexing.equivalence import Differs, Proved
from indexing.equivalence.dumps import modules_in
from indexing.equivalence.triage import BEFORE_PASSES, last_pass
from indexing.execution import run
from indexing.execution.xla_process import Failure, XlaProcess

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "examples" / "found"
PAGE: Final = ROOT / "docs" / "found.md"

HEAD: Final = """\
# Faults of XLA

On XLA:CPU, each program below has no result, or one that differs from the published semantics.
`python -m benchmarks.found` executes it by XLA and by the interpreter of this toolkit, compares the
modules before and after each pass as [`hlo-indexing passes`](equivalence.md#passes) does, and
writes this page. The values of the semantics are derived by hand. All programs are in
[examples/found](../examples/found).

"""

OPEN: Final = """\
## Not specified

`passes` reports these differences, too, since executions show them. The semantics allow both
values.

"""

OUTSIDE: Final = """\
## Limits

* HLO has no trace of faults of emitters and libraries. Where all changes by passes are proved, only
  executions show the difference. As of August 2026, `--xla_dump_emitter_re=.*` also dumps the
  kernels that XLA emits; [Kernels](kernels.md) compares them with HLO, and has
  [a fault](kernels.md#example-a-read-out-of-bounds) of one for an H100.
* [openxla/xla#49119](https://github.com/openxla/xla/issues/49119), in an emitter on GPU, is not in
  the kernels that jaxlib 0.10.2 dumps of its program for an H100, as of 2026-11-29:
  [Kernels](kernels.md#example-exchanged-start-indices) reproduces the fault by hand.
  [openxla/xla#49122](https://github.com/openxla/xla/issues/49122), in the partitioner, needs other
  devices. `tests/equivalence/test_known_faults.py` has both as pairs of programs.
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The place and the values of a difference.

    Attributes:
        place: the pass with the difference, or the part of the compiler.
        witness: the verdict on the pass, or "".
        ours, theirs: the value of the element by the semantics and by XLA.
        is_failure: True if XLA returns no result.
    """

    place: str
    witness: str
    ours: str
    theirs: str
    is_failure: bool = False

    def differs(self, case: Case) -> bool:
        """Return True if XLA has another value than the semantics, or none."""
        return self.is_failure or (
            case.value is not None and self.theirs != number_text(case.value)
        )


def number_text(value: Any) -> str:
    """Return a number as text; -0 is 0."""
    number = float(value) + 0.0
    return f"{number:.0f}" if number.is_integer() else f"{number:g}"


def interpret(case: Case) -> str:
    """Return the value of the element by the interpreter, or that any value is right.

    Raises:
        RuntimeError: it is not the value of the semantics.
    """
    module = hlo.load(FOLDER / f"{case.name}.hlo")
    ours = number_text(run(module, list(case.inputs))[0][case.element])
    if case.value is None:
        return "any value"
    if ours != number_text(case.value):
        raise RuntimeError(f"{case.name}: {ours} by the interpreter, {case.value} expected")
    return ours


def outcome(case: Case, process: XlaProcess, folder: Path) -> Outcome:
    """Execute and compare a program."""
    ours = interpret(case)
    module = hlo.load(FOLDER / f"{case.name}.hlo")
    results = process.run(str(module), case.inputs, folder)
    if isinstance(results, Failure):
        word = f"the process ends: {results.reason}" if results.is_end else "no executable"
        return Outcome(last_pass(folder), "", ours, word, is_failure=True)
    place, witness = place_of(module, folder)
    return Outcome(place, witness, ours, number_text(results[0][case.element]))


def place_of(module: hlo.Module, folder: Path) -> tuple[str, str]:
    """Return the first pass that changes values, with its witness, or the part after all passes.

    Args:
        module: the program that was compiled.
        folder: the dumps of its passes.
    """
    (dumps,) = modules_in(folder)
    first = equivalent(module, hlo.load(dumps.dumps[0].path))
    if isinstance(first, Differs):
        return BEFORE_PASSES, str(first)
    results = [each for each in passes(folder) if each.verdict is not None]
    for each in results:
        if isinstance(each.verdict, Differs):
            return f"pass `{each.pass_name}`", str(each.verdict)
    undecided = [each.pass_name for each in results if not isinstance(each.verdict, Proved)]
    proved = f"{len(results) - len(undecided)} of {len(results)} changes by passes are proved"
    proved += "" if isinstance(first, Proved) else "; the first dump is undecided"
    return f"emitter or library: {proved}", ""


def section(case: Case, result: Outcome) -> str:
    """Return the text of a program in the page."""
    text = (FOLDER / f"{case.name}.hlo").read_text().rstrip()
    at = f"result[{', '.join(map(str, case.element))}]" if case.element else "result"
    lines = [
        f"### {case.title}",
        "",
        f"[{case.name}.hlo](../examples/found/{case.name}.hlo)"
        + (f", reported as {' and '.join(map(_link, case.reports))}" if case.reports else ""),
        "",
        f"```hlo\n{text}\n```",
        "",
        f"| element | {'interpreter' if case.is_open else 'semantics'} | XLA:CPU | where |",
        "|---|---|---|---|",
        f"| `{at}` | {result.ours} | {result.theirs} | {result.place} |",
        "",
    ]
    if result.witness:
        lines += [f"[Verdict](glossary.md#verdict): *{result.witness}*.", ""]
    lines += [f"{case.semantics} {case.why}", "", ""]
    return "\n".join(lines)


def _link(report: str) -> str:
    repository, number = report.split("#")
    return f"[{report}](https://github.com/{repository}/issues/{number})"


def body(outcomes: dict[Case, Outcome]) -> str:
    """Return the page without its line of versions.

    Programs on which XLA agrees with the semantics are left out.
    """
    different = {case: each for case, each in outcomes.items() if each.differs(case)}
    faults = starmap(section, [item for item in different.items() if not item[0].is_open])
    unspecified = starmap(section, [item for item in different.items() if item[0].is_open])
    return "".join(["## Faults\n\n", *faults, OPEN, *unspecified, OUTSIDE])


def measure() -> dict[Case, Outcome]:
    """Return the outcomes of all programs."""
    with TemporaryDirectory() as folder, XlaProcess() as process:
        return {case: outcome(case, process, Path(folder, case.name)) for case in CASES}


def main() -> None:
    """Write the page."""
    today = datetime.now(UTC).date().isoformat()
    line = f"jaxlib {version('jaxlib')}, {today}.\n\n"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    path.write_text(HEAD + line + body(measure()))


if __name__ == "__main__":
    main()
