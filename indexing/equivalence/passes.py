"""`passes`: each pass of a dump folder validated, by comparing the modules before and after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from time import perf_counter

from hlo.arguments import checked
from hlo.formats.files import load
from hlo.modules.module import Module
from hlo.text.source import HloError
from indexing.equivalence.compare import compared, is_structurally_equal
from indexing.equivalence.dumps import Dump, ModuleDumps, modules_in
from indexing.equivalence.values.engine import ValueComparison
from indexing.equivalence.verdicts import Level, Undecided, Verdict


@dataclass(frozen=True, slots=True)
class PassResult:
    """The comparison of a module before and after a pass.

    Attributes:
        module: the name of the module, with the subfolder of its dumps.
        before, after: the dumps.
        verdict: the result; None if both are equal up to names, order and metadata.
        seconds: the time of the comparison.
        fault: the error in the text of a dump, with its place; "" for valid dumps.
    """

    module: str
    before: Dump
    after: Dump
    verdict: Verdict | None
    seconds: float = 0.0
    fault: str = ""

    @property
    def pass_name(self) -> str:
        """The pass."""
        return self.after.pass_name


@checked
def passes(
    directory: str | PathLike[str], level: Level = "values", *, exact_arithmetic: bool = False
) -> tuple[PassResult, ...]:
    """Compare the modules before and after each pass of a dump folder.

    Args:
        directory: a folder written by ``--xla_dump_to``, with ``--xla_dump_hlo_as_text`` and
            ``--xla_dump_hlo_pass_re=.*``; its subfolders are read as well.
        level, exact_arithmetic: as for `equivalent`.
    Returns:
        A result for each pair of neighbouring dumps, by module, in the order of the passes.  A
        pair with a dump that is no valid HLO is undecided; the next dump is compared with the last
        valid one.
    Raises:
        FileNotFoundError: the folder has no dumps of passes.
    """
    modules = modules_in(Path(directory))
    return tuple([each for m in modules for each in validated(m, level, exact_arithmetic)])


def validated(
    module: ModuleDumps, level: Level, exact_arithmetic: bool = False
) -> Iterator[PassResult]:
    """Yield the results of the passes of one module."""
    formulas = ValueComparison(exact_arithmetic=exact_arithmetic)
    dump, before = _valid_before(module)
    for following in module.dumps[module.first :]:
        after = _loaded(following)
        if isinstance(before, HloError):
            yield _unread(module, dump, following, before)
            dump, before = following, after
        elif isinstance(after, HloError):
            yield _unread(module, dump, following, after)
        else:
            start = perf_counter()
            verdict = _verdict(before, after, level, formulas)
            yield PassResult(module.name, dump, following, verdict, perf_counter() - start)
            dump, before = following, before if verdict is None else after


def _valid_before(module: ModuleDumps) -> tuple[Dump, Module | HloError]:
    """Return the last valid dump before the first that is compared, or the first of all."""
    for dump in module.dumps[module.first - 1 : 0 : -1]:
        before = _loaded(dump)
        if not isinstance(before, HloError):
            return dump, before
    return module.dumps[0], _loaded(module.dumps[0])


def _unread(module: ModuleDumps, dump: Dump, following: Dump, error: HloError) -> PassResult:
    verdict = Undecided(f"a dump is invalid: {error.message}")
    return PassResult(module.name, dump, following, verdict, fault=str(error))


def _loaded(dump: Dump) -> Module | HloError:
    """Return the module of a dump, or the error in its text."""
    try:
        return load(dump.path)
    except HloError as error:
        return error


def _verdict(
    before: Module, after: Module, level: Level, formulas: ValueComparison
) -> Verdict | None:
    """Return the verdict on a pair; None if it is equal up to names, order and metadata."""
    if is_structurally_equal(before, after):
        return None
    try:
        verdict = compared(before, after, level, formulas, {})
    except HloError as error:
        return Undecided(error.message)
    if isinstance(verdict, Undecided):
        return replace(verdict, instruction=None)  # which would keep the modules alive
    return verdict
