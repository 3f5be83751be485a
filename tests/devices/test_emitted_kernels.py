"""Thread maps compared with kernels that XLA's emitters printed for an H100.

The programs were compiled by XLA of jaxlib 0.10.2 without a device; `data/kernels` has the HLO, the
launches, and the first stage of one kernel of each.
"""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path

import pytest

import hlo
from indexing import parse_map
from tests.devices.emitted_kernels import Kernel, agrees, kernel_of, kernels_in, schedules

DATA = Path(__file__).parent / "data" / "kernels"
# fmt: off
KERNELS = {
    # blocks, threads, the number of loops, elements of a vector
    "loop_slice_stride":  ((2, 1, 1),    (128, 1, 1), 1, 1),  # the last block is partial
    "loop_big":           ((1024, 1, 1), (128, 1, 1), 1, 4),
    "dus_inplace":        ((1, 1, 1),    (16, 1, 1),  1, 1),  # the threads compute the update
    "concat_3":           ((128, 1, 1),  (128, 1, 1), 3, 1),  # a loop for each operand
    "scatter_unique_set": ((1, 1, 1),    (64, 1, 1),  1, 1),  # more threads than updates
    "transpose_2d":       ((6, 1, 1),    (128, 1, 1), 2, 8),  # both sides of a shared tile
}
# fmt: on


def kernel(name: str) -> Kernel:
    read = kernel_of(
        hlo.load(DATA / f"{name}.hlo"),
        (DATA / f"{name}.mlir").read_text(),
        (DATA / f"{name}.thunks.txt").read_text(),
    )
    assert read is not None
    return read


@pytest.mark.parametrize("name", KERNELS)
def test_loops_follow_the_schedule_of_the_array_that_they_compute(name: str) -> None:
    own = kernel(name)
    blocks, threads, loops, vector = KERNELS[name]
    assert (own.blocks, own.threads, len(own.loops)) == (blocks, threads, loops)
    assert all(prod([v.size for v in each.ranges]) == vector for each in own.loops)
    assert agrees(own)


@pytest.mark.parametrize("name", ["loop_slice_stride", "dus_inplace", "scatter_unique_set"])
def test_each_thread_computes_the_same_elements(name: str) -> None:
    """Enumerate the threads: each element follows from the text of the kernel alone."""
    own = kernel(name)
    (loop,) = own.loops
    every = list(product(*map(range, (*own.threads, *own.blocks))))
    expected = [loop.evaluate(dims=thread, ranges=()) for thread in every]
    assert len(set(expected) - {None}) > 15
    assert any(
        [each.evaluate(dims=thread, ranges=(0, 0)) for thread in every] == expected
        for each in schedules(own, 1)
        if len(each.results) == len(loop.results)
    )


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - {"transpose_2d"}))
def test_another_launch_does_not_agree(name: str) -> None:
    own = kernel(name)
    x, _, _ = own.threads
    assert not agrees(own._replace(threads=(x // 2, 1, 1), blocks=(2 * own.blocks[0], 1, 1)))


def test_a_kernel_without_loops_does_not_agree() -> None:
    assert not agrees(kernel("transpose_2d")._replace(loops=()))


def test_a_kernel_needs_its_fusion_and_its_launch() -> None:
    log, launches = [(DATA / f"concat_3{end}").read_text() for end in (".mlir", ".thunks.txt")]
    module = hlo.load(DATA / "concat_3.hlo")
    assert kernel_of(module, log, "") is None
    assert kernel_of(hlo.load(DATA / "loop_big.hlo"), log, launches) is None


def test_folders_of_dumps_are_read(tmp_path: Path) -> None:
    text = {end: (DATA / f"concat_3{end}").read_text() for end in (".hlo", ".mlir", ".thunks.txt")}
    start = tmp_path / "module_1.jit_concat_3"
    Path(f"{start}.sm_9.0a_gpu_after_optimizations.txt").write_text(text[".hlo"])
    Path(f"{start}.thunk_sequence.txt").write_text(text[".thunks.txt"])
    later = "// -----// IR Dump Before CSEPass: cse ('func.func' operation: @other) //----- //\n"
    stages = "pipeline\n" + text[".mlir"] + later
    Path(f"{start}.input_concatenate_fusion.mlir-passes.log").write_text(stages)
    ((name, read),) = kernels_in(tmp_path)
    assert name == f"{tmp_path.name}/input_concatenate_fusion"
    assert read is not None
    assert agrees(read)
    assert read.loops[0].is_equal(parse_map(str(read.loops[0])))
