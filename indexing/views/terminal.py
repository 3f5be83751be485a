"""Answers as `hlo-indexing maps` prints them on a terminal: aligned, wrapped and coloured.

Outputs with equal answers are printed together.  Bounds of dimensions that are those of the array
are printed once; a map adds its other bounds and constraints.  A map that another map of the same
array contains is counted, not printed.

    COMPUTATION: NAME = SHAPE OPCODE, output-to-input
      domain: d0 in [0, 9], d1 in [0, 19]
      operand 0 p     f32[20,10]  (d0, d1) -> (d1, d0)
      operand 1 start s32[]       nothing is read
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from hlo.shapes.shape import UNBOUNDED, Shape
from indexing.maps.assumed_map import assuming_text
from indexing.maps.containment import containers
from indexing.maps.explanation import is_explaining
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.printing import KNOWN_EMPTY, domain_texts, result_texts, variables_text
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.views.map_tables import (
    CONTROL,
    MapRow,
    MapTable,
    Paint,
    path_text,
    reason_text,
    runtime_parts,
    shape_text,
    source_lines,
)
from indexing.views.wrapping import Colouring, Paragraph, Unit, label_bodies, wrap_units

MAX_PADDING: Final = 24
"""Maximum number of characters before arrows that are aligned."""

MAX_SHAPES: Final = 4
"""Maximum number of shapes of outputs that a line lists."""


class Block(NamedTuple):
    """The text for one output.

    Attributes:
        table: the output, and the arrays in its rows.
        bodies: the paragraphs below the name of each array.
        domain: bounds that all paragraphs share.
    """

    table: MapTable
    bodies: Sequence[Sequence[Paragraph]]
    domain: tuple[str, ...] = ()

    @property
    def key(self) -> object:
        """Equal for outputs of one instruction with equal sizes and equal texts."""
        shape = self.table.shape
        arrays = [(rows[0].operand, rows[0].path) for rows in by_array(self.table.rows)]
        texts = tuple([tuple([part.texts for part in body]) for body in self.bodies])
        sizes = shape.dims if isinstance(shape, Shape) else shape
        return sizes, self.domain, tuple(arrays), texts


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal on which answers are printed.

    Attributes:
        width: the number of its columns.
        paint: marks a text with a style.
        names_file: print the name of the file with each instruction.
    """

    width: int
    paint: Paint
    names_file: bool = True

    def answer_lines(self, tables: Sequence[MapTable]) -> Iterator[str]:
        """Yield the answers for the outputs of one instruction in one direction."""
        return self.lines([self._block(table) for table in tables])

    def lines(self, blocks: Sequence[Block], *heading: str) -> Iterator[str]:
        """Yield the blocks of the outputs of one instruction, equal ones together.

        Args:
            blocks: one for each output.
            heading: added to the first line.
        """
        yield from self.heading(blocks[0].table, *heading)
        groups: dict[object, list[Block]] = {}
        for block in blocks:
            groups.setdefault(block.key, []).append(block)
        is_common = len({group[0].domain for group in groups.values()}) == 1
        if is_common:
            yield from self._domain_lines(blocks[0].domain, 2)
        for group in groups.values():
            table, bodies, domain = group[0]
            indent = 2 if table.outputs == 1 else 4
            if table.outputs > 1:
                outputs = _outputs_text([block.table for block in group])
                yield from self._indent_lines([Unit(outputs)], 2)
                if not is_common:
                    yield from self._domain_lines(domain, indent)
            yield from self.operands(table, bodies, indent)

    def _block(self, table: MapTable) -> Block:
        """Return the maps of one output."""
        domain, padding = _domain(table), _padding(row.map for row in table.rows)
        bodies = [self._maps(rows, domain, padding) for rows in by_array(table.rows)]
        return Block(table, bodies, domain)

    def heading(self, table: MapTable, *rest: str) -> Iterator[str]:
        """Yield the place, shape, opcode and direction of an instruction, and then `rest`."""
        what = f"{shape_text(table.shape)} {table.opcode},"
        if table.outputs > 1:
            what = f"{table.opcode} with {table.outputs} outputs,"
        place = [f"{table.file}:"] if self.names_file else []
        units = [
            *map(Unit, [*place, f"{table.computation}:"]),
            Unit(table.instruction, self._style("name")),
            *map(Unit, ["=", what, f"{table.direction}{',' if rest else ''}", *rest]),
        ]
        for line in wrap_units(units, self.width):
            yield line.text
        for text in source_lines(table):
            yield from self._indent_lines([*map(Unit, text.split())], 2)

    def operands(
        self, table: MapTable, bodies: Sequence[Sequence[Paragraph]], indent: int = 2
    ) -> Iterator[str]:
        """Yield the name of each array of `table`, with its lines in `bodies`."""
        labels = [self._label(group[0], table.role) for group in by_array(table.rows)]
        for line in label_bodies(labels, bodies, self.width - indent):
            yield " " * indent + line
        if not labels:
            yield " " * indent + "no operands"

    def unknown(self, reason: str) -> Paragraph:
        """Return the reason why maps are missing."""
        return Paragraph([self.mark("unknown"), *map(Unit, reason.split())])

    def mark(self, style: str) -> Unit:
        """Return the mark of a `may` map, or of an unknown."""
        return Unit(f"{style}:", self._style(style))

    def sources(self, runtime: Iterable[RuntimeVariable]) -> list[list[Unit]]:
        """Return notes with the sources of runtime variables."""
        return [list(self._source(variable)) for variable in runtime]

    def _source(self, variable: RuntimeVariable) -> Iterator[Unit]:
        path, element, iterations, formula, clamp = runtime_parts(variable)
        comma = "," if clamp else ""
        element += "" if iterations or formula else comma
        yield Unit(f"{variable.name} =", self._words({variable.name: "runtime"}))
        yield Unit(path + element, lambda text: self._before(element, text))
        if iterations:
            yield Unit(iterations + ("" if formula else comma))
        if formula:
            yield Unit(f"= {formula}{comma}")
        if clamp:
            yield Unit(clamp)

    def _label(self, row: MapRow, role: str) -> list[Unit]:
        """Return the number, the name and the shape of an operand or parameter."""
        suffix = path_text(row.path)
        if row.parameter is not None and role == "operand":
            suffix += f" (parameter {row.parameter})"
        return [
            Unit(f"{role} {row.operand}"),
            Unit(row.name + suffix, lambda text: self._before(suffix, text)),
            Unit(shape_text(row.shape)),
        ]

    def _maps(self, rows: Sequence[MapRow], domain: Sequence[str], padding: int) -> list[Paragraph]:
        """Return a paragraph for each map to one array, without the bounds in `domain`."""
        inside = [None] * len(rows) if is_explaining() else _containers(rows)
        omitted = Counter(inside)
        paragraphs = []
        for number, row in enumerate(rows):
            if row.unknown is not None:
                paragraphs.append(self.unknown(row.unknown))
            elif row.map is None:
                paragraphs.append(Paragraph([Unit("nothing is read")]))
            elif inside[number] is None:
                notes = self.sources(row.map.runtime)
                if count := omitted[number]:
                    which = "map, which is" if count == 1 else "maps, which are"
                    notes.append([Unit(f"contains {count} {which} not printed")])
                if row.control:
                    notes.append([*map(Unit, CONTROL.split())])
                steps = list(row.steps) or (["already simplified"] if is_explaining() else [])
                steps[:0] = map(reason_text, row.reasons if is_explaining() else ())
                notes += [[*map(Unit, step.split())] for step in steps]
                paragraphs.append(Paragraph(self._map(row.map, domain, padding), notes))
        return paragraphs

    def _map(self, m: IndexingMap, domain: Sequence[str], padding: int) -> list[Unit]:
        """Return the parts of the text of a map."""
        grade = [] if m.grade == "exact" else [self.mark(m.grade)]
        if m.is_known_empty:
            return [*grade, Unit(KNOWN_EMPTY)]
        kinds = {
            "dimension": m.dims,
            "range": m.ranges,
            "runtime": [rt.variable for rt in m.runtime],
        }
        coloured = self._words({v.name: kind for kind, each in kinds.items() for v in each})
        bounds = [text for text in domain_texts(m) if text not in domain]
        variables, results = variables_text(m), result_texts(m)
        end = "," if bounds else ""
        aligned = variables.ljust(padding - sum(len(unit.text) + 1 for unit in grade))
        head = f"{aligned} -> ({', '.join(results)}){end}"
        pieces = [f"{result}," for result in results[:-1]] + [f"{''.join(results[-1:])}){end}"]
        parts = f"{variables} ->", f"({pieces[0]}", *pieces[1:]
        ends = [f"{bound}," for bound in bounds[:-1]] + bounds[-1:]
        units = [*grade, Unit(head, coloured, parts), *[Unit(text, coloured) for text in ends]]
        return [*units, Unit(assuming_text(m.assumptions).strip())] if m.assumptions else units

    def _domain_lines(self, bounds: Sequence[str], indent: int) -> Iterator[str]:
        """Yield the lines of the bounds of dimensions; none without any."""
        if bounds:
            coloured = self._words({text.split()[0]: "dimension" for text in bounds})
            texts = [*[f"{text}," for text in bounds[:-1]], bounds[-1]]
            units = [Unit("domain:"), *[Unit(text, coloured) for text in texts]]
            yield from self._indent_lines(units, indent)

    def _indent_lines(self, units: Sequence[Unit], indent: int) -> Iterator[str]:
        for line in wrap_units(units, self.width - indent):
            yield " " * indent + line.text

    def _style(self, style: str) -> Colouring:
        return lambda text: self.paint(text, style)

    def _before(self, suffix: str, text: str) -> str:
        """Paint a name, but not its suffix."""
        name = text.removesuffix(suffix)
        return self.paint(name, "name") + text[len(name) :]

    def _words(self, styles: Mapping[str, str]) -> Colouring:
        """Return a function that paints each word that has a style."""

        def paint_word(word: re.Match[str]) -> str:
            style = styles.get(word[0])
            return word[0] if style is None else self.paint(word[0], style)

        return lambda text: re.sub(r"[^\W\d]\w*", paint_word, text)


def by_array(rows: Sequence[MapRow]) -> list[list[MapRow]]:
    """Return the rows of each array together: of an operand, or of a leaf of an operand."""
    return [list(group) for _, group in groupby(rows, lambda row: (row.operand, row.path))]


def _containers(rows: Sequence[MapRow]) -> list[int | None]:
    """Return for each row the position of a row whose map contains its map, or None.

    Elements that decide only control do not contain data.
    """
    every = _containers_among(rows, range(len(rows)))
    data = [k for k, row in enumerate(rows) if not row.control]
    if len(data) < len(rows):
        among_data = _containers_among(rows, data)
        every = [every[k] if row.control else among_data[k] for k, row in enumerate(rows)]
    return every


def _containers_among(rows: Sequence[MapRow], numbers: Iterable[int]) -> list[int | None]:
    """Return for each row the number of a row, one of `numbers`, that contains its map, or None."""
    inside: list[int | None] = [None] * len(rows)
    maps = [(k, m) for k, m in [(k, rows[k].map) for k in numbers] if m is not None]
    for (k, _), whole in zip(maps, containers([m for _, m in maps]), strict=True):
        inside[k] = None if whole is None else maps[whole][0]
    return inside


def _outputs_text(tables: Sequence[MapTable]) -> str:
    """Return the numbers and the distinct shapes of the outputs of `tables`."""
    spans: list[list[int]] = []
    for table in tables:
        if spans and table.output == spans[-1][1] + 1:
            spans[-1][1] += 1
        else:
            spans.append([table.output, table.output])
    numbers = [str(low) if low == high else f"{low}–{high}" for low, high in spans]
    shapes = list(dict.fromkeys([shape_text(table.shape) for table in tables]))
    more = [f"… {len(shapes) - MAX_SHAPES} more"] if len(shapes) > MAX_SHAPES else []
    noun = "outputs" if len(tables) > 1 else "output"
    return f"{noun} {', '.join(numbers)} {', '.join([*shapes[:MAX_SHAPES], *more])}"


def _domain(table: MapTable) -> tuple[str, ...]:
    """Return the bounds of the dimensions of the array that all maps start from.

    From inputs to outputs, there are none unless all operands but scalars have the same sizes.
    """
    rows = [row for row in table.rows if row.map is not None]
    forward = table.direction == "input-to-output"
    shapes = [row.shape for row in rows] if forward else [table.shape] if rows else []
    sizes = {shape.dims for shape in shapes if isinstance(shape, Shape) and shape.dims}
    dims = sizes.pop() if len(sizes) == 1 else ()
    return tuple([f"d{k} in [0, {n - 1}]" for k, n in enumerate(dims) if n != UNBOUNDED])


def _padding(maps: Iterable[IndexingMap | None]) -> int:
    """Return the width at which the arrows of maps are aligned."""
    grades = {"exact": "", "may": "may: "}
    widths = [len(grades[m.grade] + variables_text(m)) for m in maps if m is not None]
    return max([width for width in widths if width <= MAX_PADDING], default=0)
