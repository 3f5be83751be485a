"""A decoder that generates tokens in a loop: each array depends on every other one.

Its maps are bounded by a budget of composed pairs (`compositions.MAX_PAIRS`).
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path as File
from typing import Final

import pytest

import hlo
import indexing
from benchmarks.decoder import decoder
from hlo import Instruction, Module
from hlo.shapes.shape import leaves
from indexing import Answer
from indexing.dataflow import compositions
from indexing.maps.answers import Path, Unknown
from indexing.maps.options import Options
from tests.growth.programs import PROGRAMS
from tests.growth.work import calls_of

for _family in ("chains", "wide"):
    import_module(f"tests.growth.{_family}")

DATA = File(__file__).parent.parent / "dataflow" / "data" / "loops" / "jax"


def loop_of(module: Module) -> Instruction:
    return next(each for each in module.entry if each.opcode == "while")


def test_compositions_of_a_decoder_do_not_grow_with_its_layers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each layer reads all layers before it, so that the pairs of layers are quadratic."""
    calls = calls_of(monkeypatch, Options, "compose_maps")
    counts = []
    for layers in (4, 8, 16):
        calls.clear()
        indexing.output_to_input(loop_of(hlo.parse(decoder(layers))))
        counts.append(len(calls))
    # equal layers share their compositions, with the masks of runtime values and without them
    assert counts[1] - counts[0] < 50 * 4
    assert counts[2] - counts[1] < 50 * 8


def test_budget_is_named() -> None:
    answer = indexing.output_to_input(loop_of(hlo.parse(decoder(4))), 2)
    reasons = {str(each) for listed in answer.reasons for of_map in listed for each in of_map}
    assert "budget: more than 1024 pairs of maps to compose in one walk" in reasons
    assert not any(answer.unknown)
    assert {m.grade for maps in answer.maps for m in maps} == {"may"}


# ---------------------------------------------------------------- no element is lost

Reads = dict[tuple[int, Path], set[tuple[int, ...]]]
"""The elements of each leaf of each operand."""

LOOPS: Final = ["cached_decoding", "decoding_at_position", "edit_distance", "lstm", "nested_scan"]
LOOPS_TOO: Final = ["delay_line", "matrix_power", "runge_kutta", "scan_with_condition"]


def elements(answer: Answer, share: float) -> Reads:
    """Return the elements that one element needs, at this share of each dimension."""
    _, shape = leaves(answer.instruction.shape)[answer.domain_id]
    assert isinstance(shape, hlo.Shape)
    point = [int(share * size) for size in shape.dims]
    read: Reads = {}
    for number, (maps, paths) in enumerate(zip(answer.maps, answer.paths, strict=True)):
        for m, path in zip(maps, paths, strict=True):
            if all(v.lower <= k <= v.upper for k, v in zip(point, m.dims, strict=True)):
                region = m.at(*point).elements()
                assert not isinstance(region, Unknown)
                here = read.setdefault((number, path), set())
                here.update(tuple([int(k) for k in each]) for each in region)
    return read


def answers(name: str) -> list[Reads]:
    """Return what elements of a loop and of the root need, of the operands and parameters."""
    module = hlo.load(DATA / f"{name}.lowered.hlo")
    loop, root = loop_of(module), module.entry.root
    queries = [(indexing.output_to_input, loop), (indexing.to_parameters, root)]
    return [
        elements(query(instruction, k), share)
        for query, instruction in queries
        for k in range(len(leaves(instruction.shape)))
        for share in (0, 0.5, 0.99)
    ]


@pytest.mark.parametrize("name", LOOPS)
def test_no_element_is_lost_beyond_the_budget(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    within = answers(name)
    monkeypatch.setattr(compositions, "MAX_PAIRS", -1)
    beyond = answers(name)
    assert len(within) == len(beyond)
    for small, large in zip(within, beyond, strict=True):
        assert all(read <= large.get(leaf, set()) for leaf, read in small.items())
    assert any(small != large for small, large in zip(within, beyond, strict=True))


@pytest.mark.parametrize("program", ["reshapes_and_reverses", "updates_at_own_starts", "layers"])
def test_sweeps_lose_no_element_beyond_the_budget(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swept() -> list[Reads]:
        entry = hlo.parse(PROGRAMS[program](6)).entry
        return [elements(each, 0.5) for each in indexing.all_to_parameters(entry)]

    within = swept()
    monkeypatch.setattr(compositions, "MAX_PAIRS", -1)
    for small, large in zip(within, swept(), strict=True):
        assert all(read <= large.get(leaf, set()) for leaf, read in small.items())
