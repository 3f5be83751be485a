"""Pictures read back from their SVG text, to compare them with answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def tree(svg: str) -> ElementTree.Element:
    """Return the elements; check that the text is well-formed and refers to nothing outside."""
    root = ElementTree.fromstring(svg)
    outside = re.sub(r'xmlns="http://www.w3.org/2000/svg"', "", svg)
    assert not re.search(r"https?:|href|url\((?!#)|@import|<script", outside)
    names = {element.get("id") for element in root.iter()}
    assert set(re.findall(r"url\(#([^)]*)\)", svg)) <= names
    return root


def cells(svg: str, panel: str) -> dict[str, str]:
    """Return the value of each index that the panels of one name show."""
    shown: dict[str, str] = {}
    for index, value in draw(svg, panel):
        assert index not in shown, f"{index} is drawn twice"
        shown[index] = value
    return shown


def draw(svg: str, panel: str) -> Iterator[tuple[str, str]]:
    """Yield index and value of everything that the panels of one name show, in order."""
    for group in tree(svg).iter(f"{SVG}g"):
        if group.get("data-panel") == panel:
            yield from mark(group)


def numbers(svg: str, panel: str) -> list[tuple[tuple[slice, ...], int]]:
    """Return index and value of each cell, with the index as slices."""
    return [(slices(index), int(value)) for index, value in cells(svg, panel).items()]


def total(svg: str, panel: str) -> int:
    """Return the sum of all values."""
    return sum(value for _, value in numbers(svg, panel))


def mark(group: ElementTree.Element) -> Iterator[tuple[str, str]]:
    """Yield the index and the value of each element that has them."""
    for element in group.iter():
        index = element.get("data-index")
        if index is not None:
            title = element.find(f"{SVG}title")
            assert title is not None, "every cell has a title"
            yield index, element.attrib["data-value"]


def slices(index: str) -> tuple[slice, ...]:
    """Return the part of an array that the text of an index describes."""
    parts = []
    for word in index.split(",") if index else []:
        first, _, end = word.partition(":")
        parts.append(slice(int(first), int(end) if end else int(first) + 1))
    return tuple(parts)


def texts(svg: str) -> str:
    """Return all drawn text."""
    return "\n".join(element.text or "" for element in tree(svg).iter(f"{SVG}text"))


def agrees(svg: str, panel: str, counts: Any) -> None:
    """Check each cell against an array with a number for each element."""
    shown = numbers(svg, panel)
    assert shown
    for index, value in shown:
        assert counts[index].sum() == value, index
