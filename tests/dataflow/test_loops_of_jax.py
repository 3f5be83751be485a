"""Maps of JAX programs with loops, before and after optimisation, against executions.

`python -m benchmarks.jax_loops` writes the programs.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

import hlo
from hlo import Instruction
from hlo.shapes.shape import leaf_shape, leaves
from indexing.maps.arrays import ArrayRef, Path
from indexing.ops.access_edge import AccessEdge, identity
from indexing.ops.control import While
from indexing.ops.structured_ops import Summaries
from tests.dataflow.influence import Pokes
from tests.dataflow.loop_judge import disagreements, miss, unroll
from tests.oracles import scale

FOLDER = pathlib.Path(__file__).parent / "data" / "loops" / "jax"
LOWERED = sorted(path.name for path in FOLDER.glob("*.lowered.hlo"))
OPTIMIZED = sorted(path.name for path in FOLDER.glob("*.optimized.hlo"))
LONG = {"lstm_gradient.lowered.hlo", "decoding_at_position.lowered.hlo"}
FILES = [
    pytest.param(name, marks=pytest.mark.slow if name in LONG or name not in LOWERED[::2] else [])
    for name in (*LOWERED, *OPTIMIZED)
]
"""The programs; half of the lowered ones and all optimised ones are left to the slow tests."""


def test_there_is_an_optimised_program_for_each_lowered_one() -> None:
    stems = [{name.split(".")[0] for name in names} for names in (LOWERED, OPTIMIZED)]
    assert stems[0] == stems[1]
    assert len(stems[0]) >= 40


@pytest.mark.parametrize("name", FILES)
def test_maps_have_every_dependency_of_an_execution(name: str) -> None:
    module = hlo.load(str(FOLDER / name))
    pokes = Pokes.of(module.entry, seed=len(name))
    pokes.poke_some(scale(30))
    assert pokes.results is not None
    assert any(mask.any() for mask in pokes.seen.values())
    assert not list(miss(module, pokes))


@pytest.mark.parametrize("name", FILES)
def test_maps_of_a_loop_are_those_of_the_unrolled_loop(name: str) -> None:
    module = hlo.load(str(FOLDER / name))
    without = unroll(module)
    arguments = Pokes.of(module.entry, seed=len(name)).arguments
    assert not list(disagreements(module, without, arguments))


# ---------------------------------------------------------------- the judge


def forward(
    self: While, instruction: Instruction, output: Path, summaries: Summaries
) -> Iterator[AccessEdge]:
    """Yield wrong edges: each element of the result is that of the operand."""
    yield AccessEdge(0, output, output, identity(ArrayRef(instruction, output)))


def exact_everything(
    self: While, instruction: Instruction, output: Path, summaries: Summaries
) -> Iterator[AccessEdge]:
    """Yield wrong edges: each element of the result needs all elements of the operand."""
    shape = leaf_shape(instruction.shape, output)
    for path, leaf in leaves(instruction.shape):
        maps = tuple([m.with_grade("exact") for m in summaries.everything(shape, leaf)])
        yield AccessEdge(0, path, output, maps)


@pytest.mark.parametrize("name", ["cumsum", "update_elements", "delay_line", "map_rows"])
def test_maps_that_lack_an_element_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(While, "edges", forward)
    module = hlo.load(str(FOLDER / f"{name}.lowered.hlo"))
    pokes = Pokes.of(module.entry, seed=0)
    pokes.poke_some(10)
    assert " depends on " in "".join(miss(module, pokes))
    assert "the loop's maps lack" in "".join(disagreements(module, unroll(module)))


@pytest.mark.parametrize("name", ["cumsum", "update_elements", "delay_line", "map_rows"])
def test_exact_maps_with_other_elements_are_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(While, "edges", exact_everything)
    module = hlo.load(str(FOLDER / f"{name}.lowered.hlo"))
    assert "no iteration reads" in "".join(disagreements(module, unroll(module)))
