"""Pallas kernels that are printed, executed by JAX's interpreter."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.shapes.shape import dtype
from indexing import LoopTiling, Unknown
from indexing.codegen.text import identifier
from indexing.codegen.tile_programs.stepped_runs import TOLERANCES, relative_difference
from indexing.frontends.compilation import environment
from tests.codegen.tile_programs.problems import (
    BLOCKED,
    FILES,
    OVERLAPPING,
    RECOMPUTED,
    ROOT,
    TileCase,
    case_of,
    file_cases,
    redrawn,
)
from tests.tiling.loops import hand_problems as hand


def interpret(text: str, name: str, arguments: list[Any]) -> np.ndarray[Any, Any]:
    """Return the result of the kernel of a file."""
    pytest.importorskip("jax", reason="needs the extra xla")
    scope: dict[str, Any] = {"__name__": "printed"}
    exec(compile(text, "<printed>", "exec"), scope)
    return np.asarray(scope[identifier(name)](*arguments, interpret=True))


def error_of(case: TileCase) -> float:
    """Return how many times the tolerance the result of a kernel differs."""
    text = case.tiling.to_pallas()
    assert isinstance(text, str), text
    result = interpret(text, case.tiling.instruction.name, case.arguments())
    assert result.dtype == case.wanted.dtype
    difference = relative_difference(result, case.wanted)
    kind = case.tiling.shape.element_type
    return difference / TOLERANCES[kind] if kind in TOLERANCES else difference


@pytest.mark.parametrize("name", BLOCKED)
def test_kernels_compute_what_the_reference_computes(name: str) -> None:
    assert error_of(case_of(name)) <= 1


@pytest.mark.parametrize("name", RECOMPUTED)
def test_phases_recompute_statistics(name: str) -> None:
    case = case_of(name, online=False)
    assert "step" in str(case.tiling.to_pallas())
    assert error_of(case) <= 1


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("name", [name for name in BLOCKED if "reshape" not in name])
def test_random_sizes_and_steps_compute_the_same(name: str, seed: int) -> None:
    case = redrawn(name, seed)
    assert error_of(case) <= 1, case.tiling


@pytest.mark.parametrize("file", FILES)
def test_instructions_of_files_compute_the_same(file: str) -> None:
    checked = 0
    for case in file_cases(file)[:12]:
        if isinstance(case.tiling.to_pallas(), str):
            assert error_of(case) <= 1, case.name
            checked += 1
    assert checked >= 2


def test_a_kernel_without_the_mask_of_the_last_step_is_wrong() -> None:
    case = case_of("dot")
    text = str(case.tiling.to_pallas())
    masked = "jnp.where((index_2 < 10), a, 0)"
    assert masked in text
    wrong = text.replace(masked, "a")
    result = interpret(wrong, "d", case.arguments())
    assert relative_difference(result, case.wanted) > TOLERANCES["bf16"]


# fmt: off
REFUSED = [
    # module                                   tile          steps              the reason
    (hand.stencil(9, 7).text,                  (4, 3),       {},
     "blocks of 4 elements of `x` start at tid_0 * 4 + 1"),
    (hand.pooling(9, 4, 3, 2).text,            (2, 3),       {"w": 2},          "not a box"),
    (hand.convolution(1, 6, 2, 3, 3, 1).text,  (1, 4, 5, 2), {"w0": 1, "w1": 1},
     "has no fixed size"),
    ("ENTRY e { x = f32[8] parameter(0)  ROOT s = f32[4] slice(x), slice={[0:8:2]} }",
     (2,), {}, "is read with stride 2"),
    ("ENTRY e { x = f32[8] parameter(0)  ROOT s = f32[8] reverse(x), dimensions={0} }",
     (3,), {}, "the index map is not a block index"),
    ("ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1) "
     "ROOT s = f32[8] concatenate(x, y), dimensions={0} }",
     (4,), {}, "is read outside of its elements"),
    ("ENTRY e { x = c64[8] parameter(0)  ROOT s = c64[8] negate(x) }",
     (4,), {}, "the element type c64"),
    (hand.attention(1, 8, 8, 8, True).text,    (1, 4, 8),    {"k": 4, "c": 4},
     "a loop within the iterations of another has 2 steps"),
]
# fmt: on


@pytest.mark.parametrize(("text", "sizes", "steps", "reason"), REFUSED)
def test_what_is_no_block_is_refused_with_the_reason(
    text: str, sizes: tuple[int, ...], steps: dict[str, int], reason: str
) -> None:
    root = hlo.parse(text).entry.root
    tiling = indexing.tile(root, sizes, "parameters", loop_sizes=steps)
    assert isinstance(tiling, LoopTiling)
    kernel = tiling.to_pallas()
    assert isinstance(kernel, Unknown)
    assert reason in kernel.reason, kernel.reason


@pytest.mark.parametrize("name", OVERLAPPING)
def test_overlapping_blocks_are_refused(name: str) -> None:
    assert isinstance(case_of(name).tiling.to_pallas(), Unknown)


def test_the_kernel_of_a_dot() -> None:
    root = hlo.parse(hand.dot(256, 512, 128).text).entry.root
    tiling = indexing.tile(root, (128, 256), loop_sizes={"k": 64})
    lines = [line.strip() for line in str(tiling.to_pallas()).splitlines()]
    for line in (
        "grid=(2, 2, 2),",
        "pl.BlockSpec((128, 64), lambda tid_0, tid_1, tid_2: (tid_0, tid_2)),",
        "pl.BlockSpec((64, 256), lambda tid_0, tid_1, tid_2: (tid_2, tid_1)),",
        "out_specs=pl.BlockSpec((128, 256), lambda tid_0, tid_1, tid_2: (tid_0, tid_1)),",
        "pltpu.VMEM((128, 256), jnp.float32),",
        'dimension_semantics=("parallel", "parallel", "arbitrary")',
        "@pl.when(tid_2 == 1)",
    ):
        assert line in lines, line
    assert not any("where" in line or "transpose" in line for line in lines)


def test_operands_with_one_name_have_different_arguments() -> None:
    root = hlo.parse(
        "ENTRY e { a.1 = f32[4] parameter(0)  a_1 = f32[4] parameter(1) "
        "ROOT kernel = f32[4] subtract(a.1, a_1) }"
    ).entry.root
    tiling = indexing.tile(root, (2,), loop_sizes={})
    arrays = [np.array([1, 2, 3, 4], np.float32), np.full(4, 4, np.float32)]
    result = _only_function(str(tiling.to_pallas()))(*arrays, interpret=True)
    assert np.asarray(result).tolist() == [-3, -2, -1, 0]


def _only_function(text: str) -> Any:
    pytest.importorskip("jax", reason="needs the extra xla")
    scope: dict[str, Any] = {}
    exec(text, scope)
    (name,) = [key for key in scope if key.startswith("kernel_")]
    return scope[name]


# fmt: off
COMPILED = [
    (hand.dot(1024, 1024, 1024).text,                (128, 256),      {"k": 128}),
    (hand.dot_with_epilogue(1000, 900, 700).text,    (128, 256),      {"k": 128}),
    (hand.batched_dot(4, 256, 256, 256).text,        (1, 128, 128),   {"k": 128}),
    (hand.row_sums(64, 1024).text,                   (64,),           {"k": 256}),
    (hand.softmax(64, 1024).text,                    (8, 1024),       {"k": 256, "d1": 256}),
    (hand.attention(2, 512, 1024, 128, True).text,   (1, 128, 128),   {"k": 256}),
]
# fmt: on


def test_kernels_are_compiled_for_a_tpu(tmp_path: Path) -> None:
    pytest.importorskip("libtpu", reason="needs the extra tpu")
    kernels = []
    for text, sizes, steps in COMPILED:
        root = hlo.parse(text).entry.root
        tiling = indexing.tile(root, sizes, "parameters", loop_sizes=steps)
        assert isinstance(tiling, LoopTiling)
        shapes = [array.array_shape for array in tiling.arrays]
        arrays = [(shape.dims, dtype(shape.element_type)) for shape in shapes if shape]
        kernels.append((str(tiling.to_pallas()), root.name, arrays))
    given, results = tmp_path / "kernels", tmp_path / "results"
    given.write_bytes(pickle.dumps(kernels))
    command = [sys.executable, "-m", "tests.codegen.tile_programs.tpu_compilation"]
    subprocess.run([*command, str(given), str(results)], cwd=ROOT, env=environment(""), check=True)
    assert pickle.loads(results.read_bytes()) == [True] * len(COMPILED)


@pytest.mark.parametrize(
    "m, n, k, sizes, step",
    [
        (8192, 8, 512, (4096, 8), 128),
        (64, 64, 32, (32, 64), 8),
        (2048, 2048, 512, (512, 512), 128),
    ],
)
def test_the_vmem_of_a_tiling_is_that_of_its_kernel(
    m: int, n: int, k: int, sizes: tuple[int, int], step: int
) -> None:
    """Narrow tiles of accumulators fill whole rows of 128 lanes, too."""
    jax = pytest.importorskip("jax", reason="needs the extra xla")
    root = hlo.parse(
        f"ENTRY e {{ a = f32[{m},{k}] parameter(0)  b = f32[{k},{n}] parameter(1)  ROOT kernel_d = "
        f"f32[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"
    ).entry.root
    tiling = indexing.tile(root, sizes, loop_sizes={"k": step})
    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((m, k), (k, n))]
    (call,) = indexing.pallas.check(_only_function(str(tiling.to_pallas())), *arguments).calls
    assert tiling.vmem_bytes == call.vmem_bytes
