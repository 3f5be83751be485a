"""The search for faults of XLA: its programs are valid, and it recognises known faults."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
from benchmarks.found import FOLDER
from benchmarks.hunt import find_known, finding
from benchmarks.hunt_programs import programs
from indexing.equivalence.triage import BEFORE_PASSES, TriageClass, TriagedCase, last_pass
from indexing.execution import xla
from indexing.execution.xla_process import XlaProcess

NEEDS_XLA = pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")


def test_random_programs_are_valid() -> None:
    modules = [hlo.parse(text) for _, text in programs(seed=1, count=12)]
    assert not [fault for module in modules for fault in hlo.verify(module)]
    assert len({i.opcode for module in modules for i in module.instructions}) > 15


def test_a_finding_is_known_by_its_place_and_ops() -> None:
    text = (FOLDER / "nested_dynamic_slices.hlo").read_text()

    def name_of(kind: TriageClass, cause: str, text: str) -> str | None:
        fault = find_known(TriagedCase("x", kind, cause, "", text))
        return None if fault is None else fault.name

    assert name_of("wrong element", "pass `algsimp`", text) == "nested_dynamic_slices"
    assert name_of("wrong element", "pass `fusion`", text) is None
    assert name_of("no result", "pass `algsimp`", text) is None
    other = text.replace(
        "dynamic-slice(outer, j), dynamic_slice_sizes={1}", "slice(outer), slice={[0:1]}"
    )
    more = other.replace("ROOT r = s32[1] ", "q = s32[1] ").rstrip()[:-1]
    more += "  ROOT r = s32[1] negate(q)\n}"
    assert name_of("wrong element", "pass `algsimp`", more) is None


def test_a_compilation_without_dumps_ends_before_the_passes(tmp_path: Path) -> None:
    assert last_pass(tmp_path) == BEFORE_PASSES
    text = "ENTRY e { ROOT p = f32[] parameter(0) }"
    for number, pair in enumerate(("after_dce.before_cse", "after_cse.before_fusion")):
        (tmp_path / f"module_0001.m.{number:04}.simplification.{pair}.txt").write_text(text)
    assert last_pass(tmp_path) == "after the dump of pass `cse`"


@pytest.mark.slow
@NEEDS_XLA
@pytest.mark.parametrize(
    "name", ["cropping_pad_window", "nested_dynamic_updates", "scatter_into_scalar"]
)
def test_a_known_fault_is_found_and_reduced(name: str) -> None:
    text = (FOLDER / f"{name}.hlo").read_text()
    root = hlo.parse(text).entry.root
    head, _, line = text.rstrip().removesuffix("}").rpartition("ROOT ")
    longer = f"{head}{line}\n  ROOT more = {root.shape} negate({root.name})\n}}"
    with XlaProcess() as process:
        case = finding(name, longer, process)
    assert case is not None
    assert "negate" not in case.smallest
    fault = find_known(case)
    assert fault is not None
    assert fault.name == name
