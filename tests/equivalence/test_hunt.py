"""The search for faults of XLA: its programs are valid, and it recognises known faults."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
from benchmarks.found import FOLDER
from benchmarks.hunt import Finding, Hunt, known, reduced
from benchmarks.hunt_programs import programs
from indexing.execution import xla
from indexing.execution.xla_process import XlaProcess

NEEDS_XLA = pytest.mark.skipif(not xla.is_available(), reason="needs jaxlib (extra xla)")


def test_random_programs_are_valid() -> None:
    modules = [hlo.parse(text) for _, text in programs(seed=1, count=12)]
    assert not [fault for module in modules for fault in hlo.verify(module)]
    assert len({i.opcode for module in modules for i in module.instructions}) > 15


def test_a_finding_is_known_by_its_place_and_ops() -> None:
    text = (FOLDER / "nested_dynamic_slices.hlo").read_text()
    case = known(text, Finding("pass `algsimp`", "numbers", ""))
    assert case is not None
    assert case.name == "nested_dynamic_slices"
    assert known(text, Finding("pass `fusion`", "numbers", "")) is None
    assert known(text, Finding("pass `algsimp`", "SIGABRT", "")) is None
    other = text.replace(
        "dynamic-slice(outer, j), dynamic_slice_sizes={1}", "slice(outer), slice={[0:1]}"
    )
    more = other.replace("ROOT r = s32[1] ", "q = s32[1] ").rstrip()[:-1]
    more += "  ROOT r = s32[1] negate(q)\n}"
    assert known(more, Finding("pass `algsimp`", "numbers", "")) is None


def test_findings_are_alike_if_place_and_failure_are() -> None:
    one = Finding("pass `algsimp`", "numbers", "")
    assert one.is_like(Finding("pass `algsimp`", "passes", "other"))
    assert not one.is_like(Finding("pass `dce`", "numbers", ""))
    assert not one.is_like(Finding("pass `algsimp`", "SIGABRT", ""))
    assert not one.is_like(None)


@pytest.mark.slow
@NEEDS_XLA
@pytest.mark.parametrize(
    "name", ["cropping_pad_window", "nested_dynamic_updates", "scatter_into_scalar"]
)
def test_a_known_fault_is_found_and_reduced(name: str, tmp_path: Path) -> None:
    text = (FOLDER / f"{name}.hlo").read_text()
    root = hlo.parse(text).entry.root
    head, _, line = text.rstrip().removesuffix("}").rpartition("ROOT ")
    longer = f"{head}{line}\n  ROOT more = {root.shape} negate({root.name})\n}}"
    with XlaProcess() as process:
        hunt = Hunt(process, tmp_path)
        finding = hunt.finding(longer)
        assert finding is not None
        part = reduced(hunt, longer, finding)
    assert "negate" not in part
    case = known(part, finding)
    assert case is not None
    assert case.name == name
