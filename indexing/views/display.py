"""Values as HTML for notebooks: text in a monospace font, and tables with one line for each map.

All text is escaped: names in programs are arbitrary.  Formulas are shown on request, by
``IPython.display.Math(m.to_latex())``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from hlo.html import panel_html, preformatted_html, styled_html
from indexing.codegen.map_loops import MapLoopNest
from indexing.codegen.nest import LoopNest
from indexing.dataflow.queries import Groups
from indexing.equivalence.correspondence import Correspondence
from indexing.equivalence.verdicts import Differs, Proved, Undecided
from indexing.kernels.kernel import Kernel
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided
from indexing.maps.answers import Answer
from indexing.maps.multiplicity import Multiplicity
from indexing.maps.properties import Verdict
from indexing.memory.buffers.profile import MemoryProfile
from indexing.memory.movement.traffic_values import Traffic
from indexing.memory.warps.access import Accesses
from indexing.pallas.report import CallReport, PallasReport
from indexing.sharding.planning.plan import Plan
from indexing.sharding.planning.search import BestShardings
from indexing.tiling.collapsing import Collapse, CollapsedArray
from indexing.tiling.loops.loop_search import BestLoopTilings
from indexing.tiling.search.candidates import BestTilings
from indexing.tiling.search.xla_ranks import RankComparison
from indexing.tiling.sets.tiling import Tiling
from indexing.views.access_tables import accesses_table
from indexing.views.answer_tables import tables_of
from indexing.views.kernel_tables import kernel_table
from indexing.views.loop_tables import best_loop_tilings_table
from indexing.views.map_tables import (
    MapTable,
    map_line,
    path_text,
    reason_text,
    row_text,
    runtime_text,
    shape_text,
)
from indexing.views.memory_tables import peak_table
from indexing.views.pallas_tables import call_tables
from indexing.views.plans import plan_table, shardings_table
from indexing.views.tables import Table
from indexing.views.tilings import best_tilings_table, comparison_table, tiling_table
from indexing.views.traffic_tables import traffic_table
from indexing.views.verdict_tables import verdict_lines

if TYPE_CHECKING:
    from indexing.maps.indexing_map import IndexingMap


def html_of(value: object) -> str:
    """Return a value as HTML.

    >>> from indexing import IndexingMap
    >>> print(html_of(IndexingMap.over((3,), lambda d: [d[0] // 2])).partition(">")[2])
    (d0) -&gt; (d0 floordiv 2), domain: d0 in [0, 2]</pre>
    """
    if (table := _TABLES.get(type(value))) is not None:
        return table(value).html()
    if isinstance(value, Proved | Differs | Undecided | Verdict):
        return _verdict_html(value)
    if isinstance(value, KernelProved | KernelDiffers | KernelUndecided):
        return _kernel_verdict_html(value)
    match value:
        case Answer():
            return "".join(map(_answer_table, tables_of(value)))
        case CallReport() | PallasReport():
            return "".join([table.html() for table in call_tables(value)])
        case LoopNest() | MapLoopNest():
            return preformatted_html(value.source)
        case _:
            return preformatted_html(str(value))


def _links_table(pairs: Correspondence) -> Table:
    links = [(link.before.name, link.after.name, link.how) for link in pairs.links]
    notes = [
        f"{word}: {', '.join([each.name for each in rest])}"
        for word, rest in (("removed", pairs.removed), ("added", pairs.added))
        if rest
    ]
    return Table(repr(pairs)[1:-1], ("before", "after", "by"), links, notes)


def _groups_table(groups: Groups) -> Table:
    rows = [(i.name, shape_text(i.shape), _map_text(m)) for i, maps in groups.items() for m in maps]
    return Table("", ("instruction", "shape", "map"), rows)


def _reads_table(reads: Multiplicity) -> Table:
    rows = [(name, str(getattr(reads, name))) for name in ("total", "distinct", "maximum")]
    return Table("", ("reads", ""), rows)


def _collapsed_table(collapse: Collapse) -> Table:
    return Table("", ("array", "shape", "collapsed"), list(_collapsed_rows(collapse)))


_TABLES: Final[dict[type, Callable[[Any], Table]]] = {
    Correspondence: _links_table,
    Groups: _groups_table,
    Multiplicity: _reads_table,
    Collapse: _collapsed_table,
    Tiling: tiling_table,
    BestTilings: best_tilings_table,
    BestLoopTilings: best_loop_tilings_table,
    RankComparison: comparison_table,
    Plan: plan_table,
    BestShardings: shardings_table,
    MemoryProfile: peak_table,
    Kernel: kernel_table,
    Traffic: traffic_table,
    Accesses: accesses_table,
}
"""The function that makes the table of values of a class."""


def _verdict_html(verdict: Proved | Differs | Undecided | Verdict) -> str:
    """Return a verdict: the outcome first, and laws or a witness below."""
    if isinstance(verdict, Verdict):
        meta = "" if verdict.grade == "exact" else "the maps over-approximate the program"
        word = str(verdict.holds).lower()
        return styled_html(panel_html(verdict.reason, grade=word, meta=meta))
    word = {Proved: "proved", Differs: "differs", Undecided: "undecided"}[type(verdict)]
    first, *others = verdict_lines(verdict)
    body = preformatted_html("\n".join(others)) if others else ""
    return styled_html(panel_html(first.removeprefix(f"{word}: "), body, grade=word))


def _kernel_verdict_html(verdict: KernelProved | KernelDiffers | KernelUndecided) -> str:
    word, _, rest = str(verdict).partition(" ")
    return styled_html(panel_html(rest, grade=word.rstrip(":")))


def _answer_table(table: MapTable) -> str:
    output = f", output {table.output}" if table.outputs > 1 else ""
    title = f"{table.instruction} = {shape_text(table.shape)} {table.opcode}, {table.direction}"
    rows = []
    for row in table.rows:
        grade, text = row_text(row)
        text = text if row.map is None else _map_text(row.map)
        operand = f"{row.name}{path_text(row.path)}"
        grade = "exact" if grade == "nothing" else grade
        rows.append((grade, str(row.operand), operand, shape_text(row.shape), text))
    notes = list(dict.fromkeys([reason_text(why) for row in table.rows for why in row.reasons]))
    columns = ("grade", "", table.role, "shape", "map")
    return Table(title + output, columns, rows, notes, wrapped=[4]).html()


def _map_text(m: IndexingMap) -> str:
    """The text of a map, with a line for each runtime variable."""
    return "\n".join([map_line(m), *[f"  {runtime_text(v)}" for v in m.runtime]])


def _collapsed_rows(collapse: Collapse) -> Iterator[tuple[str, str, str]]:
    arrays: list[tuple[str, Sequence[CollapsedArray]]] = [
        ("output", collapse.outputs),
        ("operand", collapse.operands),
    ]
    for role, listed in arrays:
        for k, array in enumerate(listed):
            yield f"{role} {k}", shape_text(array.shape), shape_text(array.collapsed)
