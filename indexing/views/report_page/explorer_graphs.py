"""Graphs of modules for AI Edge Model Explorer: ``report --format model-explorer``.

A file is one collection of graphs: one for each computation, and of two modules one that shows both
ENTRY computations with links between the instructions that correspond.  Nodes have the shape, the
bytes, the grades and the maps of an instruction; edge overlays show over-approximated and unknown
accesses, and the links.

Source: Model Explorer ``graph_builder.py``, and "API guide" of its wiki.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.patterns import op_name_of
from hlo.shapes.shape import leaves
from indexing.drawing.style import LIGHT
from indexing.equivalence.linking import How
from indexing.equivalence.verdicts import Verdict
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.roofline import Peak
from indexing.views.report_page.changes import page_correspondence
from indexing.views.report_page.details import Details
from indexing.views.report_page.structure import computations_in_order
from indexing.views.traffic_tables import SPACE_COLUMNS, TRAFFIC_COLUMNS, TrafficTable
from indexing.views.verdict_tables import verdict_lines

GRADES: Final = ("exact", "may", "unknown")
GRADE_COLOURS: Final = {"may": "#b35900", "unknown": "#b42318"}
LINK_COLOURS: Final[Mapping[How, str]] = {
    "value": "#1a7f37",
    "op_name": "#8250df",
    "name": "#0550ae",
    "movement": "#6e7781",
    "user": "#afb8c1",
}
"""The colours of the links between corresponding instructions, by how they were found."""


def explorer_collection(
    module: Module,
    after: Module | None = None,
    verdict: Verdict | None = None,
    peak: Peak | None = None,
) -> dict[str, Any]:
    """Return the graphs of a module, or of two, as a value for JSON.

    Args:
        module: the module, or the first of two.
        after: the second module.
        verdict: the verdict of their comparison.
        peak: the peak rates of a device, for roofline bounds.
    Raises:
        HloError: an instruction is invalid.

    >>> import hlo
    >>> module = hlo.parse("ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }", "m")
    >>> (graph,) = explorer_collection(module)["graphs"]
    >>> graph["id"], [node["id"] for node in graph["nodes"]]
    ('e', ['p', 'r'])
    >>> graph["nodes"][1]["incomingEdges"]
    [{'sourceNodeId': 'p', 'sourceNodeOutputId': '0', 'targetNodeInputId': '0'}]
    """
    if after is None:
        return {"label": module.filename, "graphs": _ModuleGraphs(module, peak).graphs()}
    sides = _ModuleGraphs(module, peak, "before: "), _ModuleGraphs(after, peak, "after: ")
    lines = [] if verdict is None else list(verdict_lines(verdict))
    return {
        "label": f"{module.filename} → {after.filename}",
        "graphs": [_both_entries(*sides, lines), *sides[0].graphs(), *sides[1].graphs()],
    }


class _ModuleGraphs:
    """The graphs of one module.

    Attributes:
        prefix: the start of the names of its graphs.
    """

    def __init__(self, module: Module, peak: Peak | None, prefix: str = "") -> None:
        self.module, self.prefix = module, prefix
        counted = traffic(module)
        self.table = TrafficTable(module.filename, counted, peak)
        self._traffic = {each.instruction: each for each in counted.instructions}
        self._details = Details(frozenset(), is_mapped=False)
        self._most = max(
            [_number(self.table.cells(each)[0]) for each in self.table.ranked[:1]], default=0
        )

    def graphs(self) -> list[dict[str, Any]]:
        """Return a graph for each computation, ENTRY first."""
        return [self._graph(computation) for computation in computations_in_order(self.module)]

    def nodes(
        self, computation: Computation, prefix: str = "", scope: str = ""
    ) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        """Return the nodes of a computation, and its edges that are not exact.

        Args:
            prefix: the start of the identifiers of nodes.
            scope: the outermost group.
        """
        nodes, edges = [], list[dict[str, str]]()
        for instruction in computation.instructions:
            rows = self._rows(instruction)
            nodes.append(self._node(instruction, rows, prefix, scope))
            for row in rows:
                if row["grade"] in GRADE_COLOURS and row["operand"] < len(instruction.operands):
                    source = instruction.operands[row["operand"]].name
                    ends = {
                        "sourceNodeId": prefix + source,
                        "targetNodeId": prefix + instruction.name,
                    }
                    edges.append(ends | {"label": row["grade"]})
        return nodes, edges

    def _graph(self, computation: Computation) -> dict[str, Any]:
        nodes, edges = self.nodes(computation)
        overlays = [
            _overlay(f"{grade} maps", colour, [e for e in edges if e["label"] == grade])
            for grade, colour in GRADE_COLOURS.items()
        ]
        attributes = {"file": self.module.filename, "module": self.module.name}
        if computation.is_entry:
            attributes |= self._totals()
        graph = {
            "id": f"{self.prefix}{computation.name}",
            "nodes": nodes,
            "groupNodeAttributes": {"": attributes},
        }
        return graph | _tasks("accesses", overlays)

    def _totals(self) -> dict[str, str]:
        """Return the figures of all instructions by their names."""
        total = self.table.traffic.total
        names = ("bytes", "read", "needed", "written", "requested", "flops", "transcendentals")
        totals = {name: str(getattr(total, name)) for name in names}
        for memory, *cells in self.table.space_rows:
            figures = zip(SPACE_COLUMNS[1:], cells, strict=True)
            totals[str(memory)] = ", ".join([f"{cell} {name}" for name, cell in figures])
        if self.table.peak is not None:
            totals["time"] = [*self.table.totals(spaces=False)][-1]
        return totals

    def _rows(self, instruction: Instruction) -> list[dict[str, Any]]:
        """Return the maps of all outputs to the operands, as ``maps --explain`` prints them."""
        details = self._details.of(instruction)
        if "fault" in details:
            return [{"operand": 0, "grade": "unknown", "text": details["fault"], "name": ""}]
        tables = details.get("maps", ())
        return [row | {"output": table[0]} for table in tables for row in table[3]]

    def _node(
        self, instruction: Instruction, rows: Sequence[dict[str, Any]], prefix: str, scope: str
    ) -> dict[str, Any]:
        shapes = [shape for _, shape in leaves(instruction.shape)]
        node: dict[str, Any] = {
            "id": prefix + instruction.name,
            "label": instruction.name,
            "namespace": "/".join([*([scope] if scope else []), *_group_of(instruction)]),
            "attrs": _attributes(self._attributes(instruction, rows)),
            "incomingEdges": [
                {
                    "sourceNodeId": prefix + operand.name,
                    "sourceNodeOutputId": "0",
                    "targetNodeInputId": str(k),
                }
                for k, operand in enumerate(instruction.operands)
            ],
            "inputsMetadata": [
                {"id": str(k), "attrs": _attributes(_input(k, operand, rows))}
                for k, operand in enumerate(instruction.operands)
            ],
            "outputsMetadata": [
                {"id": str(k), "attrs": _attributes([("shape", str(shape))])}
                for k, shape in enumerate(shapes)
            ],
        }
        if instruction.called_computations and not prefix:
            called = [f"{self.prefix}{c.name}" for c in instruction.called_computations]
            node["subgraphIds"] = called
        shade = self._shade(instruction)
        return node | ({"style": {"backgroundColor": shade}} if shade else {})

    def _attributes(
        self, instruction: Instruction, rows: Sequence[dict[str, Any]]
    ) -> Iterator[tuple[str, str]]:
        yield "opcode", instruction.opcode
        yield "shape", str(instruction.shape)
        if rows:
            yield (
                "grade",
                max(
                    [row["grade"] for row in rows if row["grade"] in GRADES],
                    key=GRADES.index,
                    default="exact",
                ),
            )
        own = self._traffic.get(instruction)
        if own is not None:
            yield from zip(TRAFFIC_COLUMNS[:-1], self.table.cells(own)[:-1], strict=True)
        if source := instruction.source:
            yield "op_name", source.op_name
            yield "source", "" if source.frame is None else str(source.frame)

    def _shade(self, instruction: Instruction) -> str:
        """Return the colour of the bytes that an instruction moves: a factor of 4 a shade."""
        own = self._traffic.get(instruction)
        moved = 0 if own is None else _number(self.table.cells(own)[0])
        if moved <= 0:
            return ""
        steps = 0
        while steps < 3 and moved * 4 ** (steps + 1) <= self._most:
            steps += 1
        return LIGHT.heat[3 - steps]  # darker ones hide the black label


def _both_entries(
    before: _ModuleGraphs, after: _ModuleGraphs, lines: Sequence[str]
) -> dict[str, Any]:
    """Return a graph with both ENTRY computations, and the links between their instructions."""
    nodes = []
    for side, name in ((before, "before"), (after, "after")):
        own, _ = side.nodes(side.module.entry, f"{name}:", name)
        nodes += own
    matched = page_correspondence(before.module, after.module)
    overlays = []
    for how, colour in LINK_COLOURS.items():
        links = [
            {"sourceNodeId": f"before:{own.before.name}", "targetNodeId": f"after:{own.after.name}"}
            for own in matched.links
            if own.how == how and own.before.computation.is_entry and own.after.computation.is_entry
        ]
        overlays.append(_overlay(f"correspond by {how}", colour, links))
    attributes = {f"verdict {k}": line for k, line in enumerate(lines)}
    graph = {"id": "before and after", "nodes": nodes, "groupNodeAttributes": {"": attributes}}
    return graph | _tasks("correspondence", overlays)


def _tasks(name: str, overlays: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the edge overlays of a graph; those without edges are left out."""
    drawn = [overlay for overlay in overlays if overlay["edges"]]
    if not drawn:
        return {}
    data = {"type": "edge_overlays", "name": name, "overlays": drawn}
    return {
        "tasksData": {
            "edgeOverlaysDataListLeftPane": [data],
            "edgeOverlaysDataListRightPane": [data],
        }
    }


def _overlay(name: str, colour: str, edges: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "name": name,
        "edgeColor": colour,
        "edges": edges,
        "showEdgesConnectedToSelectedNodeOnly": len(edges) > 200,
    }


def _input(
    number: int, operand: Instruction, rows: Sequence[dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Yield the name and shape of an operand, and the maps to it."""
    yield "__tensor_tag", operand.name
    yield "shape", str(operand.shape)
    own = [row for row in rows if row["operand"] == number]
    for k, row in enumerate(own):
        where = "map" if len(own) == 1 else f"map {k}"
        yield where, row["text"] if row["grade"] != "may" else f"may: {row['text']}"
        for line in [*row.get("runtime", ()), *row.get("notes", ())]:
            yield f"{where}, note", line


def _attributes(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs if value]


def _group_of(instruction: Instruction) -> list[str]:
    """Return the groups around an instruction, as in the page; arguments and results have none."""
    op_name = op_name_of(instruction)
    is_interface = instruction.is_root or instruction.opcode == "parameter"
    return scopes_of(op_name) if op_name or is_interface else ["no op_name"]


def scopes_of(op_name: str) -> list[str]:
    """Return the scopes of an ``op_name``: its parts between slashes outside of parentheses.

    >>> scopes_of("jit(f)/jvp(a/b)/mul"), scopes_of("")
    (['jit(f)', 'jvp(a/b)'], [])
    """
    parts, depth = [""], 0
    for character in op_name.partition(";")[0]:
        depth = max(0, depth + (character in "([{") - (character in ")]}"))
        if character == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts[:-1] if part]


def _number(cell: str) -> int:
    """Return the number in a cell such as "<= 1,024"; 0 if it is unknown."""
    digits = cell.removeprefix("<= ").replace(",", "")
    return int(digits) if digits.isdecimal() else 0
