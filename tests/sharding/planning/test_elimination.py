"""Choices of least cost against all choices, on random graphs."""

import random
from itertools import product

import numpy as np
import pytest

from indexing.sharding.planning import elimination
from indexing.sharding.planning.elimination import CostGraph


def random_graph(seed: int, density: float) -> CostGraph:
    rng = random.Random(seed)
    graph = CostGraph()
    sizes = [rng.choice([1, 2, 2, 3]) for _ in range(rng.randint(1, 7))]
    for size in sizes:
        graph.variable([rng.randint(0, 9) for _ in range(size)])
    for one in range(len(sizes)):
        for other in range(len(sizes)):
            if rng.random() < density:
                rows = [[rng.randint(0, 9) for _ in range(sizes[other])] for _ in range(sizes[one])]
                table = np.array(rows, np.float64)
                graph.pair(one, other, table)
    return graph


def least_cost(graph: CostGraph) -> float:
    ranges = [range(len(costs)) for costs in graph.costs]
    return min(graph.cost(labels) for labels in product(*ranges))


@pytest.mark.parametrize("density", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("seed", range(25))
def test_the_choice_has_the_least_cost_of_all(seed: int, density: float) -> None:
    graph = random_graph(seed, density)
    choice = graph.cheapest()
    assert choice.is_optimal
    assert choice.cost == graph.cost(choice.labels) == least_cost(graph)


def test_tables_beyond_the_limit_are_avoided_and_the_choice_is_not_called_optimal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elimination, "MAX_TABLE", 9)
    graphs = [random_graph(seed, 1.0) for seed in range(40)]
    choices = [graph.cheapest() for graph in graphs]
    costs = [least_cost(graph) for graph in graphs]
    assert all(choice.cost >= cost for choice, cost in zip(choices, costs, strict=True))
    assert all(
        choice.cost == cost
        for choice, cost in zip(choices, costs, strict=True)
        if choice.is_optimal
    )
    assert not all(choice.is_optimal for choice in choices)
    excess = [choice.cost - cost for choice, cost in zip(choices, costs, strict=True)]
    assert sum(excess) < 0.05 * sum(costs), excess
