"""Choices of one label for each variable with the least sum of costs.

The costs are those of single variables and of pairs.  Variables are eliminated in an order in which
their tables stay small: the table of the neighbours holds, for each of their labels, the least cost
of the eliminated variable.  That is exact.  Where a table would be too large, a variable is fixed
first; the choice is then improved in further rounds, in which other variables are fixed.

Source: R. Dechter, "Bucket elimination: a unifying framework for reasoning", 1999.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Table: TypeAlias = NDArray[np.float64]

MAX_TABLE: Final = 1 << 16
"""Limit on the entries of a table."""

MAX_ROUNDS: Final = 4
"""Limit on the rounds that improve a choice which is not exact."""


class Choice(NamedTuple):
    """A label of each variable.

    Attributes:
        labels: the number of the label of each variable.
        cost: the sum of the costs.
        is_optimal: no other choice costs less.
    """

    labels: tuple[int, ...]
    cost: float
    is_optimal: bool


@dataclass(slots=True)
class CostGraph:
    """Variables, the cost of each of their labels, and the costs of pairs of labels.

    >>> graph = CostGraph()
    >>> a, b = graph.variable([0, 1]), graph.variable([5, 0])
    >>> graph.pair(a, b, np.array([[0.0, 9.0], [9.0, 0.0]]))
    >>> graph.cheapest()
    Choice(labels=(1, 1), cost=1.0, is_optimal=True)
    """

    costs: list[Table] = field(default_factory=list)
    pairs: dict[tuple[int, int], Table] = field(default_factory=dict)

    def variable(self, costs: Sequence[float]) -> int:
        """Add a variable with the costs of its labels, and return its number."""
        self.costs.append(np.array(costs, np.float64))
        return len(self.costs) - 1

    def pair(self, one: int, other: int, costs: Table) -> None:
        """Add costs of pairs: ``costs[k, l]`` of label k of one variable and l of the other."""
        if one == other:
            self.costs[one] = self.costs[one] + np.diagonal(costs)
            return
        if len(self.costs[other]) == 1:
            self.costs[one] = self.costs[one] + costs[:, 0]
            return
        if len(self.costs[one]) == 1:
            self.costs[other] = self.costs[other] + costs[0]
            return
        key, table = ((one, other), costs) if one < other else ((other, one), costs.T)
        before = self.pairs.get(key)
        self.pairs[key] = table if before is None else before + table

    def cost(self, labels: Sequence[int]) -> float:
        """Return the cost of a choice."""
        single = sum(float(costs[label]) for costs, label in zip(self.costs, labels, strict=True))
        return single + sum(float(t[labels[a], labels[b]]) for (a, b), t in self.pairs.items())

    def cheapest(self) -> Choice:
        """Return a choice of least cost, or a good one if tables would be too large."""
        labels, fixed = _eliminate(self, self._local(), ())
        if not fixed:
            return Choice(labels, self.cost(labels), is_optimal=True)
        for _ in range(MAX_ROUNDS):
            better, others = _eliminate(self, labels, fixed)
            is_better = self.cost(better) < self.cost(labels)
            if is_better:
                labels = better
            if not is_better and set(others) <= set(fixed):
                break
            fixed = others
        return Choice(labels, self.cost(labels), is_optimal=False)

    def _local(self) -> tuple[int, ...]:
        """Return the label of each variable that is cheapest if its neighbours follow."""
        totals = [costs.copy() for costs in self.costs]
        for (a, b), table in self.pairs.items():
            totals[a] += (table + self.costs[b]).min(axis=1)
            totals[b] += (table + self.costs[a][:, None]).min(axis=0)
        return tuple([int(total.argmin()) for total in totals])


class _CostTable(NamedTuple):
    variables: tuple[int, ...]
    table: Table


def _eliminate(
    graph: CostGraph, labels: Sequence[int], free: Iterable[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the cheapest choice in which some variables keep their labels, and these variables.

    Args:
        labels: the labels that fixed variables keep.
        free: variables that are fixed last.
    """
    elimination = _Elimination(graph, labels, frozenset(free))
    return elimination.choice(), tuple(elimination.fixed)


class _Elimination:
    def __init__(self, graph: CostGraph, labels: Sequence[int], last: frozenset[int]) -> None:
        self.sizes = [len(costs) for costs in graph.costs]
        self.labels = list(labels)
        self.last = last
        self.fixed: list[int] = []
        self.factors: dict[int, dict[int, _CostTable]] = defaultdict(dict)
        self.count = 0
        self.known: dict[int, int] = {}
        self.order: list[tuple[int, tuple[int, ...], Table]] = []
        for number, costs in enumerate(graph.costs):
            self._add(_CostTable((number,), costs))
        for pair, table in graph.pairs.items():
            self._add(_CostTable(pair, table))

    def _add(self, factor: _CostTable) -> None:
        self.count += 1
        for variable in factor.variables:
            self.factors[variable][self.count] = factor

    def _remove(self, variable: int) -> list[_CostTable]:
        factors = self.factors.pop(variable)
        for number, factor in factors.items():
            for other in factor.variables:
                if other != variable:
                    del self.factors[other][number]
        return list(factors.values())

    def _neighbours(self, variable: int) -> tuple[int, ...]:
        names = {v for factor in self.factors[variable].values() for v in factor.variables}
        return tuple(sorted(names - {variable}))

    def _entries(self, variable: int) -> int:
        """Return the entries of the table that the elimination of a variable needs."""
        entries = self.sizes[variable]
        for neighbour in self._neighbours(variable):
            entries *= self.sizes[neighbour]
        return entries

    def choice(self) -> tuple[int, ...]:
        waiting: dict[int, int] = {v: self._entries(v) for v in range(len(self.sizes))}
        queue: dict[int, dict[int, None]] = defaultdict(dict)  # variables by the size of the table
        for variable, entries in waiting.items():
            queue[entries][variable] = None
        while waiting:
            entries = min(size for size, variables in queue.items() if variables)
            variable = next(iter(queue[entries]))
            if entries > MAX_TABLE:
                variable = self._most_connected_variable(waiting)
            touched = self._neighbours(variable)
            del queue[waiting.pop(variable)][variable]
            if entries > MAX_TABLE:
                self._fix(variable)
            else:
                self._eliminate(variable, touched)
            for other in touched:
                del queue[waiting[other]][other]
                waiting[other] = self._entries(other)
                queue[waiting[other]][other] = None
            if not queue[entries]:
                del queue[entries]
        for variable, others, table in reversed(self.order):
            index = tuple([self.known[other] for other in others])
            self.known[variable] = int(table[index].argmin())
        return tuple([self.known[variable] for variable in range(len(self.sizes))])

    def _most_connected_variable(self, waiting: Mapping[int, int]) -> int:
        """Return the variable to fix: with the most neighbours, and not fixed before."""
        return max(
            (v for v in waiting if self.sizes[v] > 1),
            key=lambda v: (v not in self.last, len(self._neighbours(v)), -v),
        )

    def _fix(self, variable: int) -> None:
        label = self.labels[variable]
        self.fixed.append(variable)
        self.known[variable] = label
        for factor in self._remove(variable):
            axis = factor.variables.index(variable)
            rest = tuple([v for v in factor.variables if v != variable])
            if rest:
                self._add(_CostTable(rest, np.take(factor.table, label, axis=axis)))

    def _eliminate(self, variable: int, others: tuple[int, ...]) -> None:
        scope = (*others, variable)
        table = np.zeros([self.sizes[v] for v in scope])
        for factor in self._remove(variable):
            order = sorted(
                range(len(factor.variables)), key=lambda k: scope.index(factor.variables[k])
            )
            shape = [self.sizes[v] if v in factor.variables else 1 for v in scope]
            table += factor.table.transpose(order).reshape(shape)
        self.order.append((variable, others, table))
        if others:
            self._add(_CostTable(others, table.min(axis=-1)))
