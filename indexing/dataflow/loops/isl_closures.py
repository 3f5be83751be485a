"""Closures of steps by isl, in one space for all arrays of a component.

A point of the space is the number of an array, the values of the symbols, the index of an element,
zeros, and the time.  Symbols are loop-invariant scalars; they do not change from step to step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from indexing.dataflow.loops.components import Component
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.relation import map_of_piece
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.exact.closures import Slots, closures_back_in_time
from simplifier.exact.encode import Relation
from simplifier.linear import Expr, as_expr, constant
from simplifier.unknown import Unknown

Key: TypeAlias = tuple[object, ...]
"""The source element and the clamp of a symbol, or its name."""


class IslClosures:
    """The closures of one component."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self.leaves = list(component.sizes)
        self.rank = max(map(len, component.sizes.values()))
        self.symbols: dict[Key, RuntimeVariable] = {}

    def closure_from(self, leaf: Path) -> tuple[dict[Path, list[IndexingMap]], bool] | None:
        """Return the maps from one array to each array, and True if they are exact.

        None if isl cannot represent the step, or exceeds its budget.
        """
        if not self._collect_symbols():
            return None
        stays, moves = self._relations()
        kept, sizes = len(self.symbols), self.component.sizes
        start, rank = self.leaves.index(leaf), kept + len(sizes[leaf])
        slots = [
            Slots(start, number, rank, kept + len(sizes[other]))
            for number, other in enumerate(self.leaves)
        ]
        closures = closures_back_in_time(list(map(self._box, self.leaves)), stays, moves, slots)
        if isinstance(closures, Unknown):
            return None
        is_exact = all(each.is_exact for each in closures)
        all_maps = [m for maps in self.component.steps.values() for m in maps]
        grade: Grade = "exact" if is_exact and all(m.grade == "exact" for m in all_maps) else "may"
        pieces = {
            y: [self._map_of_piece(piece, grade) for piece in each.pieces]
            for y, each in zip(self.leaves, closures, strict=True)
        }
        return pieces, is_exact

    # ------------------------------------------------------------ implementation

    def _relations(self) -> tuple[list[Relation], list[Relation]]:
        """Return the maps that change only the time, and the others, as relations."""
        stays: list[Relation] = []
        moves: list[Relation] = []
        for (x, y), maps in self.component.steps.items():
            for m in maps:
                (stays if x == y and _is_stay(m) else moves).append(self._embed_map(m, x, y))
        return stays, moves

    def _collect_symbols(self) -> bool:
        """Return False if a runtime variable differs between elements or iterations."""
        for maps in self.component.steps.values():
            for rt in [rt for m in maps for rt in m.runtime]:
                if not all(each.is_constant for each in rt.index):
                    return False
                known = self.symbols.setdefault(_key(rt), rt)
                lower = min(known.variable.lower, rt.variable.lower)
                upper = max(known.variable.upper, rt.variable.upper)
                variable = Variable(f"rt{len(self.symbols)}_", lower, upper)
                if known is not rt:
                    variable = variable.renamed(known.name)
                self.symbols[_key(rt)] = replace(known, variable=variable)
        return True

    def _box(self, leaf: Path) -> Relation:
        sizes = self.component.sizes[leaf]
        symbols = [rt.variable.renamed(f"y{k}") for k, rt in enumerate(self.symbols.values())]
        index = [Variable(f"e{k}", 0, size - 1) for k, size in enumerate(sizes)]
        time = Variable("t", 0, self.component.last)
        zeros = [constant(0)] * (self.rank - len(sizes))
        number = constant(self.leaves.index(leaf))
        free = (*symbols, *index)
        results = (number, *[v.as_expr() for v in free], *zeros, time.as_expr())
        return Relation((), (*free, time), results, ())

    def _embed_map(self, m: IndexingMap, source: Path, target: Path) -> Relation:
        """Return a map as a relation in the space of all arrays."""
        own = {_key(rt): rt.variable for rt in m.runtime}
        symbols = [
            own.get(key, rt.variable.renamed(f"y{k}"))
            for k, (key, rt) in enumerate(self.symbols.items())
        ]
        number = self.leaves.index(source)
        zeros = [Variable(f"z{k}", 0, 0) for k in range(self.rank - len(m.dims) + 1)]
        inputs = (Variable("leaf", number, number), *symbols, *m.dims[:-1], *zeros, m.dims[-1])
        padding = [constant(0)] * (self.rank - len(m.results) + 1)
        first: list[Expr] = [constant(self.leaves.index(target)), *map(as_expr, symbols)]
        results = (*first, *m.results[:-1], *padding, m.results[-1])
        return Relation(inputs, m.ranges, results, m.constraints)

    def _map_of_piece(self, piece: Relation, grade: Grade) -> IndexingMap:
        """Return a piece in the space of all arrays as a map; its symbols come last."""
        kept, rank = len(self.symbols), len(piece.inputs) - len(self.symbols)
        inputs = (*piece.inputs[kept:], *piece.inputs[:kept])
        names = [*[f"d{k}" for k in range(rank)], *[rt.name for rt in self.symbols.values()]]
        last = replace(piece, inputs=inputs, results=piece.results[kept:])
        return map_of_piece(last, grade, list(self.symbols.values()), names)


def _key(rt: RuntimeVariable) -> Key:
    return (rt.name,) if rt.array is None else (rt.array, rt.index, rt.clamp)


def _is_stay(m: IndexingMap) -> bool:
    """Return True if the map of a step changes only the time."""
    return list(m.results[:-1]) == [d.as_expr() for d in m.dims[:-1]] and not m.ranges
