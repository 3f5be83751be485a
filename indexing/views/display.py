"""Values as HTML for notebooks: text in a monospace font, and tables with one line for each map.

All text is escaped: names in programs are arbitrary.  Formulas are shown on request, by
``IPython.display.Math(m.to_latex())``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from hlo.html import MAX_LINES, preformatted_html
from indexing.codegen.map_loops import MapLoopNest
from indexing.codegen.nest import LoopNest
from indexing.dataflow.queries import Groups
from indexing.maps.answers import Answer
from indexing.maps.multiplicity import Multiplicity
from indexing.sharding.planning.plan import Plan
from indexing.sharding.planning.search import BestShardings
from indexing.tiling.collapsing import Collapse, CollapsedArray
from indexing.tiling.search.candidates import BestTilings
from indexing.tiling.search.xla_ranks import RankComparison
from indexing.tiling.sets.tiling import Tiling
from indexing.views.answer_tables import tables_of
from indexing.views.best_tilings import (
    COMPARED_COLUMNS,
    RANKED_COLUMNS,
    best_head,
    best_notes,
    compared_row,
    comparison_head,
    ranked_row,
)
from indexing.views.map_tables import MapTable, map_line, path_text, runtime_text, shape_text
from indexing.views.plans import (
    PLAN_COLUMNS,
    SHARDINGS_COLUMNS,
    plan_head,
    plan_notes,
    plan_rows,
    shardings_head,
    shardings_notes,
    shardings_rows,
)
from indexing.views.tilings import COLUMNS, head, operand_rows

if TYPE_CHECKING:
    from indexing.maps.indexing_map import IndexingMap

_CELL: Final = "white-space: pre; text-align: left; vertical-align: top; font-family: monospace"


def html_of(value: object) -> str:
    """Return a value as HTML.

    >>> from indexing import IndexingMap
    >>> print(html_of(IndexingMap.over((3,), lambda d: [d[0] // 2])).partition(">")[2])
    (d0) -&gt; (d0 floordiv 2), domain: d0 in [0, 2]</pre>
    """
    match value:
        case Answer():
            return "".join(map(_answer_table, tables_of(value)))
        case Groups():
            rows = [
                (i.name, shape_text(i.shape), _map_text(m))
                for i, maps in value.items()
                for m in maps
            ]
            return _table(("instruction", "shape", "map"), rows)
        case Multiplicity():
            counts = {name: getattr(value, name) for name in ("total", "distinct", "maximum")}
            return _table(("reads", ""), [(k, str(v)) for k, v in counts.items()])
        case Collapse():
            return _table(("array", "shape", "collapsed"), _collapsed_rows(value))
        case Tiling():
            return _table(COLUMNS, operand_rows(value), head(value))
        case BestTilings():
            title = "; ".join([best_head(value), *best_notes(value)])
            return _table(RANKED_COLUMNS, map(ranked_row, value), title)
        case RankComparison():
            return _table(COMPARED_COLUMNS, map(compared_row, value.rows), comparison_head(value))
        case Plan():
            title = "; ".join([plan_head(value), *plan_notes(value)])
            return _table(PLAN_COLUMNS, plan_rows(value), title)
        case BestShardings():
            title = "; ".join([shardings_head(value), *shardings_notes(value)])
            return _table(SHARDINGS_COLUMNS, shardings_rows(value), title)
        case LoopNest() | MapLoopNest():
            return preformatted_html(value.source)
        case _:
            return preformatted_html(str(value))


def _answer_table(table: MapTable) -> str:
    output = f", output {table.output}" if table.outputs > 1 else ""
    title = f"{table.instruction} = {shape_text(table.shape)} {table.opcode}, {table.direction}"
    rows = []
    for row in table.rows:
        text, grade = "nothing is read", "exact"
        if row.unknown is not None:
            text, grade = row.unknown, "unknown"
        elif row.map is not None:
            text, grade = _map_text(row.map), row.map.grade
        operand = f"{row.name}{path_text(row.path)}"
        rows.append((str(row.operand), operand, shape_text(row.shape), text, grade))
    return _table(("", "operand", "shape", "map", "grade"), rows, title + output)


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


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table; rows beyond `MAX_LINES` are counted."""
    listed = list(rows)
    hidden = len(listed) - MAX_LINES
    head = "".join(f'<th style="text-align: left">{escape(title)}</th>' for title in titles)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in listed[:MAX_LINES])
    if hidden > 0:
        body += f"<tr>{_cell(f'… {hidden} more')}</tr>"
    line = f'<div style="{_CELL}">{escape(caption)}</div>' if caption else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x: auto">{line}{table}</div>'


def _cell(text: str) -> str:
    return f'<td style="{_CELL}">{escape(text)}</td>'
