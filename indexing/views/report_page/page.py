"""`report`: a module, or two of them compared, as one HTML file for browsers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

from hlo.arguments import checked
from hlo.formats.files import load
from hlo.formats.reading import MAX_BYTES
from hlo.modules.module import Instruction, Module
from hlo.text.source import HloError
from indexing.equivalence.compare import equivalent
from indexing.equivalence.dumps import ModuleDumps, modules_in
from indexing.equivalence.passes import load_dump, validate_passes
from indexing.equivalence.verdicts import Level, Verdict
from indexing.kernels.dumps import has_kernels, kernels_beside
from indexing.kernels.kernel import Kernel
from indexing.maps.displayed import Displayed
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.roofline import Peak, peak_rates
from indexing.memory.movement.traffic_values import Traffic
from indexing.views.access_kinds import ACCESS_KINDS
from indexing.views.report_page.changes import KINDS_OF_CHANGES, changes_and_links
from indexing.views.report_page.chunks import chunks, json_text, pack_text
from indexing.views.report_page.detail_parts import DetailWorkers, module_details
from indexing.views.report_page.details import Details
from indexing.views.report_page.kernels_panel import dumped_kernels, kernels_panel
from indexing.views.report_page.memory_panel import memory_panel
from indexing.views.report_page.page_html import page_html
from indexing.views.report_page.structure import computations_in_order, numbers_of, structure
from indexing.views.traffic_tables import SPACE_COLUMNS, TRAFFIC_COLUMNS, TrafficTable
from indexing.views.verdict_tables import traffic_line, verdict_lines, verdict_record

Progress = Callable[[str, int, int], None]  # (subject, instructions done, all instructions)

DEFAULT_TILED: Final = 100
"""Number of instructions, by default, whose tiles a page has: those that move the most bytes."""
MAX_MAPPED: Final = 4096
"""Limit on the instructions of a module whose page has maps to parameters, and from operands to
outputs: there may be a million."""


@dataclass(frozen=True, slots=True, repr=False)
class ReportPage(Displayed):
    """An HTML page that opens without a network.

    Attributes:
        html: the text of the file; it refers to nothing outside of it.
        faults: the errors of dumps that are invalid or cannot be read, with their places.

    >>> import hlo, indexing
    >>> page = indexing.report(hlo.load("examples/layernorm.opt.hlo"), tiled=0)
    >>> page.html.startswith("<!DOCTYPE html>"), page.faults
    (True, ())
    """

    html: str
    faults: tuple[str, ...] = ()

    @checked
    def save(self, path: str | Path) -> None:
        """Write the page into a file.

        Raises:
            OSError: the file cannot be written.

        >>> import tempfile, hlo, indexing
        >>> from pathlib import Path
        >>> page = indexing.report(hlo.load("examples/layernorm.opt.hlo"), tiled=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page.save(Path(folder) / "page.html")
        ...     print([path.name for path in Path(folder).iterdir()])
        ['page.html']
        """
        Path(path).write_text(self.html, encoding="utf-8")

    def __str__(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<report of {len(self.html):,} characters>"


@checked
def report(
    module: Module,
    after: Module | None = None,
    *,
    peak: Peak | str | None = None,
    tiled: int = DEFAULT_TILED,
    level: Level = "values",
    progress: Progress | None = None,
) -> ReportPage:
    """Return a page with the graph of a module, and the maps, tiles and traffic of instructions.

    If XLA dumped kernels beside the file of the module, the page has their verdicts and sectors.

    Args:
        module: the module.
        after: a second module to compare with the first, such as the module after a pass.
        peak: the peak rates of a device, for roofline bounds: as text also ``4.8TB/s,67TF/s`` or
            ``H100``.
        tiled: number of instructions with tiles: those that move the most bytes.
        level: what is compared, as for `equivalent`.
        progress: called with the name of a file, the instructions done, and all instructions.
    Raises:
        HloError: an instruction is invalid.
        OSError: a kernel beside the file cannot be read.

    >>> import hlo
    >>> module = hlo.parse("ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }")
    >>> page = report(module)
    >>> page.html.startswith("<!DOCTYPE html>"), "http://" in page.html, len(page.html) < 2**18
    (True, False, True)
    """
    modules = (module,) if after is None else (module, after)
    return page_of_modules(modules, peak, tiled, level, progress=progress, workers=None)


def page_of_modules(
    modules: Sequence[Module],
    peak: Peak | str | None,
    tiled: int,
    level: Level,
    *,
    progress: Progress | None,
    workers: DetailWorkers | None,
) -> ReportPage:
    """Return the page of `report` about one module or two; `workers` make details."""
    page = _PageData(peak_rates(peak), tiled, progress, workers)
    module, *others = modules
    moved = page.add_module(module, kernels_beside(module.filename))
    for after in others:
        line = traffic_line(moved, page.add_module(after, kernels_beside(after.filename)))
        title = f"{module.filename} → {after.filename}"
        verdict = equivalent(module, after, level)
        page.add_comparison(title, module, after, verdict, [0, 1], [line])
        return ReportPage(page.html(title), tuple(page.faults))
    return ReportPage(page.html(module.filename), tuple(page.faults))


@checked
def report_passes(
    directory: str | PathLike[str],
    *,
    peak: Peak | str | None = None,
    tiled: int = DEFAULT_TILED,
    level: Level = "values",
    progress: Progress | None = None,
    max_bytes: int = MAX_BYTES,
) -> ReportPage:
    """Return a page with the changes of each pass of a dump folder, and the last modules.

    Args:
        directory: a folder of dumps, as for `passes`.
        peak, tiled, level, progress: as for `report`.
        max_bytes: limit on the size of a dump, as for `hlo.load`.
    Raises:
        FileNotFoundError: the folder has no dumps of passes.
        OSError: the folder, or one in it, cannot be read, or no dump.
        HloError: no dump is valid HLO.

    >>> page = report_passes("examples/passes/rms_slice", tiled=0)
    >>> page.html[:15]
    '<!DOCTYPE html>'
    """
    modules = modules_in(directory)
    return page_of_dumps(
        os.fspath(directory), modules, peak, tiled, level, progress=progress, max_bytes=max_bytes
    )


def page_of_dumps(
    folder: str,
    modules: Sequence[ModuleDumps],
    peak: Peak | str | None,
    tiled: int,
    level: Level,
    *,
    progress: Progress | None,
    max_bytes: int,
) -> ReportPage:
    """Return the page of `report_passes` about these modules of a folder."""
    page = _PageData(peak_rates(peak), tiled, progress)
    invalid: list[Exception] = []
    has_emitted = has_kernels(folder)
    for dumps in modules:
        number = len(page.modules)
        for result in validate_passes(dumps, level, max_bytes=max_bytes):
            subject = f"{result.module}: {result.pass_name}"
            if result.faults:
                page.faults.update(dict.fromkeys(result.faults))
                page.add_fault(subject, result.fault)
            elif result.verdict is not None:
                before = load(result.before.path, max_bytes)
                after = load(result.after.path, max_bytes)
                page.add_comparison(subject, before, after, result.verdict, [None, number])
        kernels, fault = dumped_kernels(dumps, max_bytes) if has_emitted else ((), "")
        page.faults.update(dict.fromkeys([fault] if fault else []))
        invalid += page.add_last_valid(dumps, kernels, max_bytes)
    if not page.modules:
        raise invalid[0]
    return ReportPage(page.html(folder), tuple(page.faults))


@dataclass(slots=True)
class _PageData:
    """The data of a page: modules and comparisons, as they are added.

    Attributes:
        faults: the errors of dumps, in order.
    """

    peak: Peak | None
    tiled: int
    progress: Progress | None
    workers: DetailWorkers | None = None
    modules: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    scripts: list[tuple[str, str]] = field(default_factory=list)
    faults: dict[str, None] = field(default_factory=dict)

    def add_module(self, module: Module, kernels: Sequence[Kernel] = ()) -> Traffic:
        """Add a module with the details of all instructions; return its traffic.

        Args:
            kernels: those that XLA dumped with the module.
        """
        number = len(self.modules)
        counted = traffic(module)
        table = TrafficTable(module.filename, counted, self.peak)
        summary, texts = _module_data(module, table, self.tiled, self.progress, self.workers)
        self.modules.append(summary)
        picture = counted.plot(self.peak).svg
        self.scripts.append((f"traffic-{number}", pack_text(json_text(picture))))
        numbers = numbers_of(module)
        panel = memory_panel(module, numbers)
        self.scripts.append((f"memory-{number}", pack_text(json_text(panel))))
        emitted, faults = kernels_panel(kernels, numbers)
        self.faults.update(dict.fromkeys(faults))
        summary["kernels"] = len(kernels)
        self.scripts.append((f"kernels-{number}", pack_text(json_text(emitted))))
        self.scripts += [(f"details-{number}-{k}", text) for k, text in enumerate(texts)]
        return counted

    def add_last_valid(
        self, dumps: ModuleDumps, kernels: Sequence[Kernel], max_bytes: int
    ) -> list[Exception]:
        """Add the last dump that is valid; return the errors of those after it."""
        errors: list[Exception] = []
        for dump in reversed(dumps.dumps):
            module = load_dump(dump, max_bytes)
            try:
                if isinstance(module, Module):
                    self.add_module(module, kernels)
                    break
            except HloError as error:  # of an instruction
                module = error
            errors.append(module)
        return errors

    def add_comparison(
        self,
        title: str,
        before: Module,
        after: Module,
        verdict: Verdict,
        numbers: list[int | None],
        lines: Sequence[str] = (),
    ) -> None:
        """Add a comparison of two modules, with further lines below the verdict.

        Args:
            numbers: the numbers of the modules in the page, None for a module that it lacks.
        """
        listed, links = changes_and_links(before, after)
        self.scripts.append((f"changes-{len(self.comparisons)}", pack_text(json_text(listed))))
        self.comparisons.append(
            {
                "title": title,
                "verdict": verdict_record(verdict)["verdict"],
                "lines": [*verdict_lines(verdict), *lines],
                "counts": {key: len(rows) for key, rows in listed.items()},
                "modules": numbers,
                "links": [] if None in numbers else links,
            }
        )

    def add_fault(self, title: str, fault: str) -> None:
        """Add a pair of dumps one of which is invalid."""
        nothing: dict[str, list[Any]] = {key: [] for key in KINDS_OF_CHANGES}
        self.scripts.append((f"changes-{len(self.comparisons)}", pack_text(json_text(nothing))))
        self.comparisons.append(
            {
                "title": title,
                "verdict": "unknown",
                "lines": ["invalid dump:", *fault.splitlines()],
                "counts": dict.fromkeys(nothing, 0),
                "modules": [None, None],
                "links": [],
            }
        )

    def html(self, title: str) -> str:
        """Return the text of the page."""
        data = {
            "modules": self.modules,
            "columns": TRAFFIC_COLUMNS,
            "kinds": ACCESS_KINDS,
            "comparisons": self.comparisons,
        }
        return page_html(title, [("structure", pack_text(json_text(data))), *self.scripts])


def _module_data(
    module: Module,
    table: TrafficTable,
    tiled: int,
    progress: Progress | None,
    workers: DetailWorkers | None,
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the structure of a module with its traffic, and the packed details."""
    numbers = numbers_of(module)
    ranked = table.ranked
    chosen = frozenset([each.instruction for each in ranked[:tiled]])
    details = Details(chosen, is_mapped=len(numbers) <= MAX_MAPPED)
    moved = {each.instruction: each for each in table.traffic.instructions}

    def each_detail() -> Iterator[dict[str, Any]]:
        made = module_details(module, details, workers)
        for (instruction, done), values in zip(numbers.items(), made, strict=True):
            if progress is not None:
                progress(module.filename, done, len(numbers))
            if instruction in moved and "fault" not in values:
                values["traffic"] = table.record(moved[instruction])
            yield values

    packed_chunks = chunks(each_detail())
    data = structure(module, computations_in_order(module))
    data["chunks"] = [first for first, _ in packed_chunks]
    data["traffic"] = [[numbers[each.instruction], *table.cells(each)[:-1]] for each in ranked]
    data["kinds"] = _kinds(details.kinds, numbers)
    data["totals"] = list(table.totals(spaces=False))
    data["space_columns"] = SPACE_COLUMNS
    data["spaces"] = [list(map(str, row)) for row in table.space_rows]
    data["tiled"] = [len(chosen), len(ranked)]
    return data, [text for _, text in packed_chunks]


def _kinds(kinds: dict[Instruction, list[str]], numbers: dict[Instruction, int]) -> dict[int, int]:
    """Return a set of bits for each instruction with maps: bit k is the kind k."""
    places = {kind: k for k, kind in enumerate(ACCESS_KINDS)}
    bits = {numbers[i]: sum(1 << places[kind] for kind in own) for i, own in kinds.items()}
    return {number: own for number, own in bits.items() if own}
