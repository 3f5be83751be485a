"""Triton kernels that are printed, executed by Triton's interpreter and compiled for a GPU."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hlo
import indexing
from indexing import LoopTiling, Unknown
from indexing.codegen.text import identifier
from indexing.codegen.tile_programs.stepped_runs import TOLERANCES, relative_difference
from tests.codegen.tile_programs.problems import (
    BLOCKED,
    OVERLAPPING,
    RECOMPUTED,
    ROOT,
    TileCase,
    case_of,
    redrawn,
)
from tests.codegen.tile_programs.triton_arrays import TritonRun
from tests.tiling.loops import hand_problems as hand

Array = NDArray[Any]


def run_of(case: TileCase, text: str = "") -> TritonRun:
    """Return the run of a case."""
    kernel = text or case.tiling.to_triton()
    assert isinstance(kernel, str), kernel
    name = identifier(case.tiling.instruction.name)
    return TritonRun(kernel, name, case.arguments(), np.zeros_like(case.wanted))


def execute(runs: Sequence[TritonRun], folder: Path, interpret: bool) -> list[Array | str]:
    """Execute runs in a process of their own."""
    pytest.importorskip("triton", reason="needs the extra triton")
    given, results = folder / "runs", folder / "results"
    given.write_bytes(pickle.dumps(list(runs)))
    environment = os.environ | {
        "TRITON_INTERPRET": "1" if interpret else "0",
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "tests.codegen.tile_programs.triton_runs"]
    subprocess.run([*command, str(given), str(results)], cwd=ROOT, env=environment, check=True)
    listed: list[Array | str] = pickle.loads(results.read_bytes())
    return listed


def faults(cases: Sequence[TileCase], results: Sequence[Array | str]) -> dict[str, object]:
    """Return the cases whose results are errors or differ."""
    wrong: dict[str, object] = {}
    for case, result in zip(cases, results, strict=True):
        if isinstance(result, str):
            wrong[case.name] = result
            continue
        difference = relative_difference(result, case.wanted)
        if difference > TOLERANCES.get(case.tiling.shape.element_type, 0.0):
            wrong[case.name] = difference, case.tiling
    return wrong


def test_kernels_compute_what_the_reference_computes(tmp_path: Path) -> None:
    cases = [case_of(name) for name in (*BLOCKED, *OVERLAPPING)]
    cases += [case_of(name, online=False) for name in RECOMPUTED]
    results = execute([run_of(case) for case in cases], tmp_path, interpret=True)
    assert not faults(cases, results)


def test_random_sizes_and_steps_compute_the_same(tmp_path: Path) -> None:
    cases = [redrawn(name, 1) for name in (*BLOCKED, *OVERLAPPING)]
    results = execute([run_of(case) for case in cases], tmp_path, interpret=True)
    assert not faults(cases, results)


def test_kernels_without_a_mask_or_with_other_strides_are_wrong(tmp_path: Path) -> None:
    case = case_of("dot")
    text = str(case.tiling.to_triton())
    changes = [("tid_2 * 3 + 3", "tid_2 * 3 + 4"), ("index_0 * 10", "index_0 * 9")]
    assert all(before in text for before, _ in changes)
    wrong = [run_of(case, text.replace(*change)) for change in changes]
    results = execute([run_of(case), *wrong], tmp_path, interpret=True)
    errors = [relative_difference(np.asarray(result), case.wanted) for result in results]
    assert [error > TOLERANCES["bf16"] for error in errors] == [False, True, True]


# fmt: off
COMPILED = [
    (hand.dot(512, 512, 512).text,             (128, 128),  {"k": 64}),
    (hand.dot_with_epilogue(200, 150, 100).text, (64, 64),  {"k": 32}),
    (hand.attention(2, 96, 160, 16, True).text, (1, 32, 16), {"k": 32}),
    (hand.softmax(24, 1000).text,              (4, 1000),   {"k": 250, "d1": 250}),
    (hand.convolution(1, 14, 16, 32, 3, 1).text, (1, 2, 14, 32), {"w0": 1, "w1": 1, "k": 16}),
]
# fmt: on


def test_kernels_are_compiled_for_a_gpu(tmp_path: Path) -> None:
    runs = []
    for text, sizes, steps in COMPILED:
        root = hlo.parse(text).entry.root
        tiling = indexing.tile(root, sizes, "parameters", loop_sizes=steps)
        assert isinstance(tiling, LoopTiling)
        kinds = [array.array_shape.element_type for array in tiling.arrays if array.array_shape]
        arrays = [np.zeros((), hlo.shapes.shape.dtype(kind)) for kind in kinds]
        out = np.zeros((), hlo.shapes.shape.dtype(tiling.shape.element_type))
        kernel = tiling.to_triton()
        assert isinstance(kernel, str), kernel
        runs.append(TritonRun(kernel, identifier(root.name), arrays, out))
    results = execute(runs, tmp_path, interpret=False)
    assert all(not isinstance(result, str) and result > 1000 for result in results), results


# fmt: off
REFUSED: list[tuple[str, tuple[int, ...], dict[str, int], str]] = [
    ("ENTRY e { x = s32[8] parameter(0)  y = s32[8] parameter(1)  ROOT d = s32[8] divide(x, y) }",
     (4,), {}, "`d` divides integers"),
    ("ENTRY e { x = f32[8] parameter(0)  ROOT d = f32[8] cbrt(x) }",
     (4,), {}, "the function numerics.cbrt of f32 has no text in Triton"),
    ("ENTRY e { x = f32[8,128]{1,0:T(8,128)} parameter(0) "
     "ROOT d = f32[8,128]{1,0:T(8,128)} negate(x) }",
     (4, 4), {}, "the layout of `x` has tiles"),
    ("ENTRY e { x = s8[2147483648] parameter(0)  ROOT n = s8[2147483648] negate(x) }",
     (64,), {}, "offsets exceed 32 bits"),
    ("ENTRY e { x = f32[2048,1024] parameter(0)  ROOT n = f32[2048,1024] negate(x) }",
     (2048, 1024), {}, "exceeds Triton's limit of 1,048,576"),
]
# fmt: on


@pytest.mark.parametrize(("text", "sizes", "steps", "reason"), REFUSED)
def test_kernels_that_are_not_printed_have_a_reason(
    text: str, sizes: tuple[int, ...], steps: dict[str, int], reason: str
) -> None:
    root = hlo.parse(text).entry.root
    tiling = indexing.tile(root, sizes, "parameters", loop_sizes=steps)
    assert isinstance(tiling, LoopTiling)
    kernel = tiling.to_triton()
    assert isinstance(kernel, Unknown)
    assert reason in kernel.reason, kernel.reason


def test_strides_are_those_of_the_layout() -> None:
    root = hlo.parse(
        "ENTRY e { x = f32[3,5]{0,1} parameter(0)  ROOT n = f32[3,5] negate(x) }"
    ).entry.root
    text = str(indexing.tile(root, (2, 4), loop_sizes={}).to_triton())
    assert "x_ptr + (index_0 + index_1 * 3)" in text
    assert "out_ptr + (index_0 * 5 + index_1)" in text.replace(
        "index_1 + index_0 * 5", "index_0 * 5 + index_1"
    )
