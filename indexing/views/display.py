"""Answers as HTML for notebooks: a table with a row for each map, in LaTeX notation."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from hlo.shapes.shape import leaves
from indexing.maps.arrays import leaf_at
from indexing.views.report import runtime_text, shape_text

if TYPE_CHECKING:
    from indexing.maps.answers import Answer
    from indexing.maps.indexing_map import IndexingMap


def answer_html(answer: Answer) -> str:
    """Return an HTML table of `answer`: number, name, shape, map and grade for each operand."""
    role = "output" if answer.direction == "input-to-output" else "operand"
    titles = ("", role, "shape", "map", "grade")
    head = "".join(f"<th style='text-align:left'>{title}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>"
        for row in _rows(answer)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _rows(answer: Answer) -> Iterator[tuple[str, ...]]:
    forward = answer.direction == "input-to-output"
    for number, operand in enumerate(answer.operands):
        prefix = str(number), f"<code>{escape(operand.name)}</code>"
        operand_shape = leaves(operand.shape)[number][1] if forward else operand.shape
        unknown, maps = answer.unknown[number], answer.maps[number]
        for each, path in zip(maps, answer.paths[number], strict=True):
            shape = operand_shape if forward else leaf_at(operand_shape, path)
            yield *prefix, escape(shape_text(shape)), map_html(each), each.grade
        if unknown is not None:
            yield *prefix, escape(shape_text(operand_shape)), escape(unknown.reason), "unknown"
        elif not maps:
            yield *prefix, escape(shape_text(operand_shape)), "<i>nothing is read</i>", "exact"


def map_html(indexing_map: IndexingMap) -> str:
    """Return a map as a formula, with a line for each runtime variable."""
    lines = [f"$\\displaystyle {indexing_map.to_latex()}$"]
    lines += [f"<small>{escape(runtime_text(v))}</small>" for v in indexing_map.runtime]
    return "<br>".join(lines)
