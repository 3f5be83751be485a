"""Propagation of the shardings of models: the collectives are those that experts write."""

from typing import Any

import pytest

import hlo
from hlo.shapes.shape import Shape, leaves
from hlo.shardings.mesh import Mesh
from indexing.sharding.partition.flatten import flatten
from indexing.sharding.planning import propagation
from indexing.sharding.planning.array_splits import ArraySplit
from indexing.sharding.planning.propagation import GivenSplits, Propagated, propagate
from tests.sharding.planning.models import MODELS, Model
from tests.sharding.planning.moved_arrays import moved_arrays


def split_of(spec: Any, shape: Any) -> ArraySplit:
    assert isinstance(shape, Shape)
    dims = [() if each is None else (each,) for each in spec]
    return ArraySplit((*dims, *((),) * (shape.rank - len(dims))))


def of_model(model: Model) -> Propagated:
    module = flatten(hlo.parse(model.text).entry)
    given = {
        (parameter, 0): split_of(model.specs[parameter.name], parameter.shape)
        for parameter in module.entry.parameters
        if parameter.name in model.specs
    }
    shapes = [shape for _, shape in leaves(module.entry.root.shape)]
    results = tuple(map(split_of, model.out_specs or (), shapes))
    return propagate(module, Mesh.of(model.mesh), GivenSplits(given, results))


@pytest.mark.parametrize("name", MODELS)
def test_models_move_the_arrays_that_experts_move(name: str) -> None:
    result = of_model(MODELS[name])
    moves = [move for array in moved_arrays(result.assignment) for move in array.moves]
    sent = [(move.kind, "".join(map(str, move.axes))) for move in moves if move.kind != "slice"]
    assert sorted(sent) == sorted(MODELS[name].collectives)
    assert result.is_cheapest


def test_a_choice_among_some_splits_is_not_called_cheapest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propagation, "MAX_SPLITS", 2)
    assert not of_model(MODELS["mlp"]).is_cheapest
