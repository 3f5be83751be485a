"""`passes`: each pass of a dump folder validated, by comparing the modules before and after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from time import perf_counter

from hlo.arguments import checked
from hlo.formats.files import load
from hlo.formats.folders import fault_of
from hlo.formats.reading import MAX_BYTES
from hlo.modules.checks import verify
from hlo.modules.module import Module
from hlo.text.source import HloError
from indexing.equivalence.compare import compare_programs, is_structurally_equal
from indexing.equivalence.dumps import Dump, ModuleDumps, missing_between, modules_in
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
        faults: the errors of dumps that are invalid or cannot be read, with their places.
        skipped: the dumps between both, which are invalid or cannot be read.

    >>> import indexing
    >>> wrong, *others = indexing.passes("examples/passes/rms_pad")
    >>> wrong.pass_name, wrong.verdict.word, wrong.verdict.element
    ('algsimp', 'differs', (0, 0))
    >>> [each.verdict.word for each in others]
    ['equal to the last bit', 'equal to the last bit']
    >>> wrong.missing, wrong.fault  # no dumps of passes 0 to 5, and no invalid one
    (((0, 5),), '')
    """

    module: str
    before: Dump
    after: Dump
    verdict: Verdict | None
    seconds: float = 0.0
    faults: tuple[str, ...] = ()
    skipped: tuple[Dump, ...] = ()

    @property
    def fault(self) -> str:
        """The errors as one text; "" for valid dumps."""
        return "\n".join(self.faults)

    @property
    def pass_name(self) -> str:
        """The pass; the last one, if dumps between both are skipped or missing."""
        return self.after.pass_name

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """The first and the last number of each run of dumps that are missing between both."""
        return missing_between((self.before, *self.skipped, self.after))


@checked
def passes(
    directory: str | PathLike[str],
    level: Level = "values",
    *,
    exact_arithmetic: bool = False,
    max_bytes: int = MAX_BYTES,
) -> tuple[PassResult, ...]:
    """Compare the modules before and after each pass of a dump folder.

    Args:
        directory: a folder written by ``--xla_dump_to``, with ``--xla_dump_hlo_as_text`` and
            ``--xla_dump_hlo_pass_re=.*``; its subfolders are read as well.
        level, exact_arithmetic: as for `equivalent`.
        max_bytes: limit on the size of a dump, as for `hlo.load`.
    Returns:
        A result for each pair of neighbouring dumps, by module, in the order of the passes.  A
        pair with a dump that is no valid HLO, or that cannot be read, is undecided; the next dump
        is compared with the last valid one.
    Raises:
        FileNotFoundError: the folder has no dumps of passes.
        OSError: the folder, or one in it, cannot be read.

    >>> import indexing
    >>> for each in indexing.passes("examples/passes/rms_slice"):
    ...     print(each.pass_name, "-", each.verdict.word)
    algsimp - equal over the reals
    fusion - equal to the last bit
    fusion-wrapper - equal to the last bit
    """
    options = (level, exact_arithmetic, max_bytes)
    return tuple([each for m in modules_in(directory) for each in validate_passes(m, *options)])


def validate_passes(
    module: ModuleDumps,
    level: Level,
    exact_arithmetic: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Iterator[PassResult]:
    """Yield the results of the passes of one module."""
    formulas = ValueComparison(exact_arithmetic=exact_arithmetic)
    dump, before = _valid_before(module, max_bytes)
    for position, following in enumerate(module.dumps[module.first :], module.first):
        after = load_dump(following, max_bytes)
        skipped = module.dumps[module.dumps.index(dump) + 1 : position]
        if isinstance(before, Exception) or isinstance(after, Exception):
            errors = [each for each in (before, after) if isinstance(each, Exception)]
            yield replace(_unread(module, dump, following, errors), skipped=skipped)
            if isinstance(before, Exception):
                dump, before = following, after
            continue
        start = perf_counter()
        verdict = _verdict(before, after, level, formulas)
        if isinstance(verdict, HloError):
            faults = tuple([str(error) for each in (before, after) for error in verify(each)])
            result = Undecided(verdict.message)
            yield PassResult(module.name, dump, following, result, 0.0, faults, skipped)
        else:
            seconds = perf_counter() - start
            yield PassResult(module.name, dump, following, verdict, seconds, (), skipped)
        dump, before = following, before if verdict is None else after


def _valid_before(module: ModuleDumps, max_bytes: int) -> tuple[Dump, Module | Exception]:
    """Return the last valid dump before the first that is compared, or else the last one."""
    last = module.dumps[module.first - 1]
    fault = load_dump(last, max_bytes)
    if isinstance(fault, Exception):
        for dump in module.dumps[: module.first - 1][::-1]:
            before = load_dump(dump, max_bytes)
            if not isinstance(before, Exception):
                return dump, before
    return last, fault


def _unread(
    module: ModuleDumps, dump: Dump, following: Dump, errors: Sequence[Exception]
) -> PassResult:
    """Return the result of a pair with dumps that are invalid or cannot be read."""
    verdict = Undecided(f"a dump is invalid: {_reason(errors[0])}")
    texts = [str(e) if isinstance(e, HloError) else f"error[io]: {_reason(e)}" for e in errors]
    return PassResult(module.name, dump, following, verdict, faults=tuple(texts))


def _reason(error: Exception) -> str:
    """Return an error on one line, with the file that cannot be read."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return error.message if isinstance(error, HloError) else str(error)


def load_dump(dump: Dump, max_bytes: int) -> Module | HloError | OSError:
    """Return the module of a dump, or the error in its text, or of reading it."""
    if (fault := fault_of(dump.path)) is not None:
        return fault
    try:
        return load(dump.path, max_bytes)
    except HloError as error:
        return error
    except OSError as error:
        return OSError(error.errno, error.strerror, str(dump.path))


def _verdict(
    before: Module, after: Module, level: Level, formulas: ValueComparison
) -> Verdict | HloError | None:
    """Return the verdict on a pair; None if it is equal up to names, order and metadata.

    The error of an instruction that is invalid is returned in place of a verdict.
    """
    try:
        if is_structurally_equal(before, after):
            return None
        verdict = compare_programs(before, after, level, formulas, {})
    except HloError as error:
        return error
    if isinstance(verdict, Undecided):
        return replace(verdict, instruction=None)  # which would keep the modules alive
    return verdict
