"""`triage`: modules on which compilations diverge, sorted by what differs and by its cause.

A case is a pair of modules, such as the results of two optimisation levels; a folder of dumps of
passes; or a single module, which XLA:CPU compiles, with dumps, and executes.  Each is proved or
executed, and a difference is reduced to the fewest instructions that still show it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal, TypeAlias

import numpy as np

from hlo.arguments import checked
from hlo.formats.files import load, load_all
from hlo.formats.reading import MAX_BYTES
from hlo.modules.module import Module
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from indexing.equivalence.compare import equivalent
from indexing.equivalence.draws import Draw
from indexing.equivalence.dumps import ModuleDumps, modules_in
from indexing.equivalence.evidence import far_apart
from indexing.equivalence.pairing import pair_of
from indexing.equivalence.passes import load_dump, validate_passes
from indexing.equivalence.reduction import Reproducer, smallest_part, smallest_program
from indexing.equivalence.runs import Runs, Unspecified, ValueGap
from indexing.equivalence.verdicts import Differs, ElementIndex, Proved, Undecided, Verdict
from indexing.execution import xla
from indexing.execution.program import run
from indexing.execution.xla_process import STDERR, Array, Failure, XlaProcess
from indexing.maps.answers import Unknown
from indexing.ops.unspecified import record_unspecified

TriageClass: TypeAlias = Literal[
    "wrong element",
    "NaN, infinity or undefined value",
    "rounding",
    "law of real numbers",
    "no result",
    "undecided",
    "no difference",
]
"""What differs."""

CLASSES: Final[tuple[TriageClass, ...]] = (
    "wrong element",
    "no result",
    "NaN, infinity or undefined value",
    "rounding",
    "law of real numbers",
    "undecided",
    "no difference",
)
"""All classes, the ones that need most attention first."""

MAX_ATTEMPTS: Final = 80
"""Limit on the programs that are executed to reduce one case."""
EDGE_SHARES: Final = (0.1, 0.5, 0.9)
"""Shares of edge values in the inputs on which NaN and infinities are looked for."""

BEFORE_PASSES: Final = "conversion from StableHLO, before the first pass"
"""The place of a fault that no dump of a pass precedes."""

_SUFFIXES: Final = (".hlo", ".txt", ".mlir", ".pb")
_PAIR: Final = re.compile(r"^(.*)\.(pre|before|a)$")
_AFTER: Final = {"pre": "opt", "before": "after", "a": "b"}


@dataclass(frozen=True, slots=True)
class TriagedCase:
    """One case with its class.

    Attributes:
        name: the file or folder, relative to the folder of all cases.
        kind: the class.
        cause: the pass, the laws, or the shape of the formula.
        detail: the witness, or the obstacle.
        smallest: HLO text of the smallest module, or pair, that still shows the difference; "".
        count: the number of its instructions without parameters; 0 without one.

    >>> import indexing
    >>> (group, _) = indexing.triage("examples/passes")
    >>> group.cases[0].name, group.cases[0].kind
    ('rms_pad/module_0002.rms_pad', 'wrong element')
    """

    name: str
    kind: TriageClass
    cause: str
    detail: str
    smallest: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class TriageGroup:
    """The cases of one class and one cause.

    Attributes:
        kind, cause: the class and the cause.
        cases: the cases, the one with the smallest module first.

    >>> import indexing
    >>> group = indexing.triage("examples/passes")[0]
    >>> group.kind, group.cause, len(group.cases)
    ('wrong element', 'pass `algsimp`', 1)
    """

    kind: TriageClass
    cause: str
    cases: tuple[TriagedCase, ...]


@checked
def triage(folder: str | Path, *, max_bytes: int = MAX_BYTES) -> tuple[TriageGroup, ...]:
    """Return the cases of a folder, grouped by what differs and by its cause.

    Args:
        folder: has pairs ``NAME.pre.hlo`` and ``NAME.opt.hlo`` (or ``before`` and ``after``, ``a``
            and ``b``), files of two modules separated by ``// -----``, single modules, and folders
            of dumps of passes.
        max_bytes: limit on the size of a file, as for `hlo.load`.
    Raises:
        FileNotFoundError: the folder has no cases.
        OSError: the folder cannot be read.

    >>> import indexing
    >>> for group in indexing.triage("examples/passes"):
    ...     print(group.kind, "-", group.cause, "-", [case.name for case in group.cases])
    wrong element - pass `algsimp` - ['rms_pad/module_0002.rms_pad']
    law of real numbers - pass `algsimp`: x / y = x * (1 / y) - ['rms_slice/module_0006.rms_slice']
    """
    return group_cases(triaged_cases(Path(folder), max_bytes))


def group_cases(cases: Iterator[TriagedCase] | Sequence[TriagedCase]) -> tuple[TriageGroup, ...]:
    """Return cases grouped by class and cause, the largest group of a class first.

    >>> cases = [TriagedCase(n, "rounding", "pass `a`", "", "", k) for n, k in (("x", 5), ("y", 2))]
    >>> [[case.name for case in group.cases] for group in group_cases(cases)]
    [['y', 'x']]
    """
    by_cause: dict[tuple[TriageClass, str], list[TriagedCase]] = {}
    for case in cases:
        by_cause.setdefault((case.kind, case.cause), []).append(case)
    groups = [
        TriageGroup(kind, cause, tuple(sorted(own, key=lambda c: (not c.count, c.count, c.name))))
        for (kind, cause), own in by_cause.items()
    ]
    groups.sort(key=lambda each: (CLASSES.index(each.kind), -len(each.cases), each.cause))
    return tuple(groups)


def triaged_cases(folder: Path, max_bytes: int = MAX_BYTES) -> Iterator[TriagedCase]:
    """Yield the cases of a folder, by name.

    Raises:
        FileNotFoundError: the folder has no cases.
    """
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix in _SUFFIXES)
    dumped = {m.dumps[0].path.parent for m in _dumps_in(folder)}
    count = 0
    with XlaProcess() as process:
        for module in _dumps_in(folder):
            count += 1
            yield _of_passes(module, max_bytes)
        for path in files:
            if path.parent in dumped or _is_second(path):
                continue
            count += 1
            name = path.relative_to(folder).as_posix()
            try:
                yield _of_file(path, name, process, max_bytes)
            except HloError as error:
                yield TriagedCase(name, "undecided", "invalid HLO", error.message)
    if not count:
        raise FileNotFoundError(f"{folder} has no modules, pairs of modules or dumps of passes")


def _dumps_in(folder: Path) -> tuple[ModuleDumps, ...]:
    try:
        return tuple(modules_in(folder))
    except FileNotFoundError:
        return ()


def _stem(path: Path) -> str:
    return path.name.removesuffix(path.suffix)


def _is_second(path: Path) -> bool:
    """Return True for the second file of a pair."""
    return any(
        _stem(path).endswith(f".{after}")
        and path.with_name(_stem(path).removesuffix(after) + before + path.suffix).exists()
        for before, after in _AFTER.items()
    )


def _of_file(path: Path, name: str, process: XlaProcess, max_bytes: int) -> TriagedCase:
    """Return the case in a file: a pair, or a module."""
    match = _PAIR.match(_stem(path))
    if match is not None:
        second = path.with_name(f"{match[1]}.{_AFTER[match[2]]}{path.suffix}")
        if second.exists():
            return of_pair(name, load(path, max_bytes), load(second, max_bytes))
    modules = list(load_all(path, max_bytes))
    if len(modules) == 2:
        return of_pair(name, modules[0], modules[1])
    return of_module(name, modules[0], process)


# ---------------------------------------------------------------- pairs


def of_pair(name: str, before: Module, after: Module) -> TriagedCase:
    """Return the case of two modules that should compute the same.

    >>> from hlo.formats.parser import parse
    >>> text = "ENTRY e { p = f32[5] parameter(0)  a = f32[5] abs(p)  ROOT r = f32[5] %s(a) }"
    >>> case = of_pair("x", parse(text % "negate"), parse(text % "sine"))
    >>> case.kind, case.cause, case.count
    ('wrong element', 'negate became sine', 2)
    """
    return _judge_pair(name, before, after, equivalent(before, after), "")


def _judge_pair(
    name: str, before: Module, after: Module, verdict: Verdict, pass_name: str
) -> TriagedCase:
    """Return the case of a pair with a verdict."""
    where = f"pass `{pass_name}`" if pass_name else ""
    match verdict:
        case Differs(by_rounding=by_rounding):
            part = smallest_part(before, after)
            kind: TriageClass = "rounding" if by_rounding else "wrong element"
            cause = where or _changed_opcodes(part)
            return TriagedCase(name, kind, cause, str(verdict), part.text, part.count)
        case Proved(laws=laws) if not laws:
            return TriagedCase(name, "no difference", where, str(verdict))
    names = ", ".join(sorted(verdict.laws))
    kind, cause, detail = "law of real numbers", names, str(verdict)
    if isinstance(verdict, Undecided):
        kind = "undecided"
        cause = where or re.sub(r"`[^`]*`|\d+", "_", verdict.reason.partition(" (")[0])
    elif where:
        cause = f"{where}: {names}"
    edge = _edge_gap(before, after)
    if edge:
        kind, detail = "NaN, infinity or undefined value", edge
    return TriagedCase(name, kind, cause, detail)


def _changed_opcodes(part: Reproducer) -> str:
    """Return the opcodes that only one part has, as the shape of a fault."""
    sides = [
        sorted({i.opcode for i in module.entry if i.opcode != "parameter"})
        for module in (part.before, part.after)
    ]
    own = [[o for o in side if o not in sides[1 - k]] for k, side in enumerate(sides)]
    before, after = (" and ".join(a or b) or "nothing" for a, b in zip(own, sides, strict=True))
    return f"{before} became {after}" if before != after else f"another {before}"


def _edge_gap(before: Module, after: Module) -> str:
    """Return a difference that only edge values of the types show; "" if none is seen."""
    pair = pair_of(before, after)
    runs = None if isinstance(pair, Unknown) else Runs(pair, exact=True)
    if runs is None or runs.obstacle is not None:
        return ""
    for seed, share in enumerate(EDGE_SHARES):
        gap = runs.gap_on(runs.edge_inputs(seed, share))
        if isinstance(gap, Unspecified):
            return gap.reason
        if isinstance(gap, ValueGap) and not np.isfinite([gap.before, gap.after]).all():
            return f"output {gap.output} at {list(gap.element)}: {gap.before} and {gap.after}"
    return ""


def _of_passes(module: ModuleDumps, max_bytes: int) -> TriagedCase:
    """Return the case of dumps of passes: the first pair that differs, else that is undecided."""
    worst: TriagedCase | None = None
    for result in validate_passes(module, "values", max_bytes=max_bytes):
        if result.verdict is None:
            continue
        pair = [load_dump(dump, max_bytes) for dump in (result.before, result.after)]
        before, after = pair
        if not isinstance(before, Module) or not isinstance(after, Module):
            continue
        case = TriagedCase(module.name, "no difference", "", str(result.verdict))
        if not isinstance(result.verdict, Proved) or result.verdict.laws:
            case = _judge_pair(module.name, before, after, result.verdict, result.pass_name)
        if worst is None or CLASSES.index(case.kind) < CLASSES.index(worst.kind):
            worst = case
    return worst or TriagedCase(module.name, "no difference", "", "no pass changed the module")


# ---------------------------------------------------------------- modules


def of_module(name: str, module: Module, process: XlaProcess) -> TriagedCase:
    """Return the case of a module: XLA:CPU against the reference kernels, and its passes.

    Args:
        process: executes modules by XLA.
    """
    if not xla.is_available():
        return TriagedCase(name, "undecided", "XLA is not installed", "install jax and jaxlib")
    with TemporaryDirectory() as folder:
        judge = _Judge(process, Path(folder))
        case = judge.case(name, module)
        if case.kind not in ("wrong element", "no result"):
            return case
        part = smallest_program(module, lambda m: judge.case(name, m).kind == case.kind,
                                MAX_ATTEMPTS)  # fmt: skip
        smaller = judge.case(name, part)
    count = sum(i.opcode != "parameter" for i in part.entry)
    return replace(smaller, smallest=f"{part}\n", count=count)


def last_pass(dumps: Path) -> str:
    """Return the place at which a compilation ended, by its dumps."""
    known = _dumps_in(dumps)
    return f"after the dump of pass `{known[0].dumps[-1].pass_name}`" if known else BEFORE_PASSES


def _lost_number(ours: Array, theirs: Array) -> ElementIndex | None:
    """Return the index of a finite number that is NaN by XLA."""
    if ours.dtype.kind != "f":
        return None
    indices = np.argwhere(np.isfinite(ours) & np.isnan(theirs))
    return tuple(map(int, indices[0])) if len(indices) else None


@dataclass(slots=True)
class _Judge:
    """Executions of modules by XLA and by the reference kernels."""

    process: XlaProcess
    folder: Path
    runs: int = 0

    def case(self, name: str, module: Module) -> TriagedCase:
        """Return the case of a module, which is not reduced."""
        shapes = [p.shape for p in module.entry.parameters]
        if not all(isinstance(shape, Shape) for shape in shapes):
            return TriagedCase(name, "undecided", "parameters are tuples", "")
        random = np.random.default_rng(1)
        inputs = [Draw(whole=True).array(s, random) for s in shapes if isinstance(s, Shape)]
        try:
            with np.errstate(all="ignore"), record_unspecified() as unspecified:
                expected = run(module, inputs, max_iterations=1000)
        except HloError as error:
            return TriagedCase(name, "undecided", "not executed", error.message)
        if unspecified:
            reason = ", ".join(sorted(unspecified))
            return TriagedCase(name, "NaN, infinity or undefined value", "not specified", reason)
        self.runs += 1  # XLA dumps a text that it compiles again only to another folder
        dumps = self.folder / str(self.runs)
        results = self.process.run(str(module), inputs, dumps)
        if isinstance(results, Failure):
            return self._failed_case(name, results, dumps)
        place, witness = self._changed_pass(module, dumps)
        for number, (ours, theirs) in enumerate(zip(expected, results, strict=True)):
            at = far_apart(ours, theirs)
            at = _lost_number(ours, theirs) if at is None else at
            if at is not None:
                detail = f"output {number} at {list(at)}: {ours[at]} expected, {theirs[at]} by XLA"
                return TriagedCase(name, "wrong element", place, witness or detail)
        if witness:
            return TriagedCase(name, "wrong element", place, witness)
        return TriagedCase(name, "no difference", "", "XLA computes the same")

    def _failed_case(self, name: str, failure: Failure, dumps: Path) -> TriagedCase:
        if not failure.is_end and "INTERNAL" not in failure.reason:
            return TriagedCase(name, "undecided", "XLA rejects the module", failure.reason)
        log = dumps / STDERR
        errors = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
        detail = next((line for line in errors if re.match(r"[EF]\d{4}", line)), failure.reason)
        return TriagedCase(name, "no result", last_pass(dumps), detail)

    def _changed_pass(self, module: Module, dumps: Path) -> tuple[str, str]:
        """Return the first pass that changes values, with its witness, or the part after all."""
        for known in _dumps_in(dumps):
            start = load_dump(known.dumps[0], MAX_BYTES)
            first = equivalent(module, start) if isinstance(start, Module) else None
            if isinstance(first, Differs):
                return BEFORE_PASSES, str(first)
            for result in validate_passes(known, "values"):
                if isinstance(result.verdict, Differs):
                    return f"pass `{result.pass_name}`", str(result.verdict)
        return "emitter or library", ""
