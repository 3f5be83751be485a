"""Answers as HTML for notebooks: a table with one row a map, the maps as formulas."""

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
    """`answer` as an HTML table: number, name and shape of each operand, and how it is accessed."""
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
        place = str(number), f"<code>{escape(operand.name)}</code>"
        whole = leaves(operand.shape)[number][1] if forward else operand.shape
        unknown, maps = answer.unknown[number], answer.maps[number]
        for found, path in zip(maps, answer.paths[number], strict=True):
            shape = whole if forward else leaf_at(whole, path)
            yield *place, escape(shape_text(shape)), map_html(found), found.grade
        if unknown is not None:
            yield *place, escape(shape_text(whole)), escape(unknown.reason), "unknown"
        elif not maps:
            yield *place, escape(shape_text(whole)), "<i>nothing is read</i>", "exact"


def map_html(found: IndexingMap) -> str:
    """`found` as a formula, with a line for each runtime variable."""
    lines = [f"$\\displaystyle {found.to_latex()}$"]
    lines += [f"<small>{escape(runtime_text(v))}</small>" for v in found.runtime]
    return "<br>".join(lines)
