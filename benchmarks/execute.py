"""Time and memory of loop nests executed as NumPy programs.

    python -m benchmarks.execute [FILE...]

Everything is measured in one process, on one thread, relative to a baseline of the same run:

* single ops on 2^20 elements, relative to hand-written NumPy calls;
* the time to build the nest of a fusion of 50 instructions;
* the peak memory of a fused computation in tiles, whose result would take 16 GB;
* the entry computation of each FILE (by default the largest of ``examples/``) as one nest and in
  the interpreter, relative to XLA on one thread. Without jax, ratios are omitted.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import hlo
import indexing
from benchmarks.examples import largest_example
from hlo.modules.module import Instruction, Module
from hlo.ops.op import OPS
from hlo.shapes.shape import Shape, dtype
from indexing.codegen.nest import LoopNest
from indexing.execution import random_inputs, run, xla
from indexing.ops.elementwise import BinaryTableOp, UnaryTableOp

Array: TypeAlias = NDArray[Any]

SIDE = 1024
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",  # read when NumPy is loaded
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",  # read when JAX starts
}
SLOW = 0.05  # seconds; slower actions are measured less often

REGIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
larger { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
"""

S = f"{SIDE},{SIDE}"


def _windowed_max(p: Array, z: Array) -> Array:
    rows = np.maximum(p[::2], p[1::2])
    return np.maximum(np.maximum(rows[:, ::2], rows[:, 1::2]), z)


def _convolve(p: Array, q: Array) -> Array:
    wide = np.pad(p, ((0, 0), (1, 1), (1, 1), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (1, 2))
    return np.tensordot(view, q, ([3, 4, 5], [2, 0, 1]))


def _update(p: Array, u: Array, i: Array, j: Array) -> Array:
    out = p.copy()
    out[int(i) : int(i) + 512, int(j) : int(j) + 512] = u
    return out


def _scatter(p: Array, i: Array, u: Array) -> Array:
    out = p.copy()
    np.add.at(out, i[:, 0], u)
    return out


# fmt: off
BY_HAND: list[tuple[str, Callable[..., Any]]] = [
    # instruction                                                            NumPy by hand
    (f"f32[{S}] select(pred[{S}] c, f32[{S}] p, f32[{S}] q)",                np.where),
    (f"f32[{S}] clamp(f32[] l, f32[{S}] p, f32[] h)",                        lambda l, p, h: np.minimum(np.maximum(p, l), h)),  # noqa: E501, E741
    (f"pred[{S}] compare(f32[{S}] p, f32[{S}] q), direction=LT",             np.less),
    (f"bf16[{S}] convert(f32[{S}] p)",                                       lambda p: p.astype(dtype("bf16"))),  # noqa: E501
    (f"f32[{S}] transpose(f32[{S}] p), dimensions={{1,0}}",                  lambda p: p.T.copy()),
    (f"f32[512,2048] reshape(f32[{S}] p)",                                   lambda p: p.reshape(512, 2048).copy()),  # noqa: E501
    (f"f32[{S}] broadcast(f32[{SIDE}] p), dimensions={{1}}",                 lambda p: np.broadcast_to(p, (SIDE, SIDE)).copy()),  # noqa: E501
    (f"f32[{S}] reverse(f32[{S}] p), dimensions={{0,1}}",                    lambda p: p[::-1, ::-1].copy()),  # noqa: E501
    (f"f32[1024,1024] slice(f32[2048,{SIDE}] p), slice={{[0:2048:2],[0:1024]}}", lambda p: p[::2].copy()),  # noqa: E501
    (f"f32[{S}] concatenate(f32[512,{SIDE}] p, f32[512,{SIDE}] q), dimensions={{0}}", lambda p, q: np.concatenate([p, q])),  # noqa: E501
    (f"f32[1026,1028] pad(f32[{S}] p, f32[] v), padding=1_1x2_2",            lambda p, v: np.pad(p, ((1, 1), (2, 2)), constant_values=v)),  # noqa: E501
    (f"f32[{SIDE}] reduce(f32[{S}] p, f32[] z), dimensions={{1}}, to_apply=add", lambda p, z: np.add.reduce(p, 1) + z),  # noqa: E501
    (f"f32[{SIDE}] reduce(f32[{S}] p, f32[] z), dimensions={{0}}, to_apply=larger", lambda p, z: np.maximum(np.maximum.reduce(p, 0), z)),  # noqa: E501
    (f"f32[{S}] dot(f32[{SIDE},256] p, f32[256,{SIDE}] q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", np.matmul),  # noqa: E501
    (f"f32[512,512] reduce-window(f32[{S}] p, f32[] z), window={{size=2x2 stride=2x2}}, to_apply=larger", _windowed_max),  # noqa: E501
    ("f32[1,128,128,64] convolution(f32[1,128,128,64] p, f32[3,3,64,64] q), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f", _convolve),  # noqa: E501
    (f"f32[1024,512] dynamic-slice(f32[2048,{SIDE}] p, s32[] i, s32[] j), dynamic_slice_sizes={{1024,512}}", lambda p, i, j: p[int(i):int(i) + 1024, int(j):int(j) + 512].copy()),  # noqa: E501
    (f"f32[{S}] dynamic-update-slice(f32[{S}] p, f32[512,512] u, s32[] i, s32[] j)", _update),
    (f"f32[{S}] gather(f32[4096,{SIDE}] p, s32[{SIDE},1] i), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{SIDE}}}", lambda p, i: p.take(i[:, 0], 0)),  # noqa: E501
    (f"f32[{S}] scatter(f32[{S}] p, s32[256,1] i, f32[256,{SIDE}] u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add", _scatter),  # noqa: E501
]
# fmt: on


def elementwise() -> list[tuple[str, Callable[..., Any]]]:
    """Return every elementwise op that is a single NumPy function, with that function."""
    ops: list[tuple[str, Callable[..., Any]]] = []
    for opcode, cls in OPS.items():
        if not issubclass(cls, UnaryTableOp | BinaryTableOp) or not isinstance(
            cls.row.function, np.ufunc
        ):
            continue
        if "floating" in cls.row.takes and cls.row.result_type("f32") in ("f32", "pred"):
            operands = "xy" if issubclass(cls, BinaryTableOp) else "x"
            listed = ", ".join(f"f32[{S}] {name}" for name in operands)
            text = f"{cls.row.result_type('f32')}[{S}] {opcode}({listed})"
            ops.append((text, cls.row.function))
    return ops


def instruction_of(text: str) -> Instruction:
    """Parse an instruction whose operands are parameters with the given shapes."""
    head, _, rest = text.partition("(")
    inside, _, attributes = rest.partition(")")
    lines = []
    for number, operand in enumerate(inside.split(", ")):
        shape, _, name = operand.rpartition(" ")
        lines.append(f"{name} = {shape} parameter({number})")
    lines.append(f"ROOT out = {head}({inside}){attributes}")
    return hlo.parse(f"{REGIONS} ENTRY e {{ {' '.join(lines)} }}").entry.root


def nest_of(instruction: Instruction) -> LoopNest:
    nest = indexing.loop_nest(instruction)
    assert isinstance(nest, LoopNest), nest
    return nest


def best(action: Callable[[], Any]) -> float:
    """Return the shortest of several times."""
    times: list[float] = []
    action()
    while len(times) < 3 or (len(times) < 9 and sum(times) < SLOW * 9):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def operands(instruction: Instruction) -> list[Array]:
    """Return random operands: positive numbers, and indices in bounds."""
    random = np.random.default_rng(0)
    arrays = []
    for operand in instruction.operands:
        assert isinstance(operand.shape, Shape)
        kind, dims = dtype(operand.shape.element_type), operand.shape.dims
        if kind.kind in "iub":
            high = 2 if kind.kind == "b" else 64
            arrays.append(np.asarray(random.integers(0, high, dims)).astype(kind))
        else:
            arrays.append(np.asarray(random.uniform(0.1, 0.9, dims)).astype(kind))
    return arrays


def own_copy(array: Array) -> Array:
    """Return the array, or a copy of a view, so that both sides allocate their result."""
    return array if array.flags.owndata else array.copy()


def single_ops() -> None:
    """Measure each op relative to hand-written NumPy."""
    ratios = []
    print(f"single ops on {SIDE * SIDE} elements: NumPy program / written by hand")
    for text, by_hand in [*elementwise(), *BY_HAND]:
        instruction = instruction_of(text)
        inputs = operands(instruction)
        program = nest_of(instruction).vectorized()
        with np.errstate(all="ignore"):
            ours, theirs = program.run(*inputs), by_hand(*inputs)
            assert np.allclose(
                ours.astype(np.float32), theirs.astype(np.float32), 1e-3, 1e-3, equal_nan=True
            ), text
            mine = best(lambda p=program, x=inputs: own_copy(p.run(*x)))  # type: ignore[misc]
            hand = best(lambda f=by_hand, x=inputs: own_copy(np.asarray(f(*x))))  # type: ignore[misc]
        ratios.append(mine / hand)
        print(f"  {instruction.opcode:24} {mine * 1e3:9.3f} ms {mine / hand:8.2f}")
    print(f"  median {statistics.median(ratios):.2f}, worst {max(ratios):.2f} of {len(ratios)}")


def fusion_text(count: int) -> str:
    """Return a fusion of `count` instructions that sum, broadcast, subtract and transpose rows."""
    lines = ["x0 = f32[64,128] parameter(0)", "z = f32[] constant(0)"]
    k = 0
    while len(lines) < count - 5:
        lines.append(f"s{k} = f32[64] reduce(x{k}, z), dimensions={{1}}, to_apply=add")
        lines.append(f"b{k} = f32[64,128] broadcast(s{k}), dimensions={{0}}")
        lines.append(f"m{k} = f32[64,128] subtract(x{k}, b{k})")
        lines.append(f"t{k} = f32[128,64] transpose(m{k}), dimensions={{1,0}}")
        lines.append(f"r{k} = f32[64,128] reshape(t{k})")
        lines.append(f"x{k + 1} = f32[64,128] tanh(r{k})")
        k += 1
    while len(lines) < count:
        lines.append(f"x{k + 1} = f32[64,128] negate(x{k})")
        k += 1
    body = " ".join(lines)
    return (
        f"{REGIONS} fused {{ {body} }} ENTRY e {{ p = f32[64,128] parameter(0) "
        "ROOT f = f32[64,128] fusion(p), kind=kLoop, calls=fused }"
    )


def building() -> None:
    """Measure how fast the nest of a fusion is built, from maps to both sources."""
    count, times, all_times = 50, [], []
    for _ in range(7):
        root = hlo.parse(fusion_text(count)).entry.root
        assert len(root.called_computations[0].instructions) == count
        start = time.perf_counter()
        nest = nest_of(root)
        times.append(time.perf_counter() - start)
        assert nest.source
        assert nest.vectorized().source
        all_times.append(time.perf_counter() - start)
    print(f"nest of a fusion of {count} instructions")
    print(f"  first {times[0] * 1e3:.1f} ms, best {min(times) * 1e3:.1f} ms")
    print(f"  with both sources: best {min(all_times) * 1e3:.1f} ms")


def measure_tiles(side: int = 1 << 16, tile: int = 1 << 10) -> None:
    """Measure a result of 16 GB, computed tile by tile."""
    text = (
        f"ENTRY e {{ p = f32[{side}] parameter(0) q = f32[{side}] parameter(1)"
        f" a = f32[{side},{side}] broadcast(p), dimensions={{0}}"
        f" b = f32[{side},{side}] broadcast(q), dimensions={{1}}"
        f" m = f32[{side},{side}] multiply(a, b) ROOT r = f32[{side},{side}] add(m, m) }}"
    )
    nest = indexing.loop_nest(hlo.parse(text).entry)
    assert isinstance(nest, LoopNest)
    program = nest.vectorized()
    p = np.ones(side, np.float32)
    total, count = 0.0, 0
    tracemalloc.start()
    start = time.perf_counter()
    for _, block in program.tiles((tile, tile), p, p):
        total += float(block[0, 0]) * block.size
        count += 1
    seconds = time.perf_counter() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 2.0 * side * side
    size = side * side * 4
    print(f"fused f32[{side},{side}] ({size / 2**30:.0f} GB) in {count} tiles of {tile} x {tile}")
    print(f"  {seconds:.1f} s, {size / seconds / 2**30:.1f} GB/s, peak {peak / 2**20:.1f} MB, "
          f"of which a tile is {tile * tile * 4 / 2**20:.1f} MB")  # fmt: skip


def whole_module(path: Path) -> None:
    """Measure an entry computation as one nest and in the interpreter, relative to XLA."""
    module = hlo.load(path)
    inputs = random_inputs(module.entry, 0)
    print(path.name)
    baseline = best(_on_xla(module, inputs)) if xla.is_available() else None

    def report(name: str, seconds: float) -> None:
        ratio = f"{seconds / baseline:8.2f} x XLA" if baseline else ""
        print(f"  {name:12} {seconds * 1e3:9.2f} ms {ratio}")

    if baseline:
        report("XLA", baseline)
    nest = indexing.loop_nest(module.entry)
    if isinstance(nest, LoopNest):
        program = nest.vectorized()
        report("loop nest", best(lambda: program.run(*inputs)))
    else:
        print(f"  loop nest    {nest.reason}")
    report("interpreter", best(lambda: run(module, inputs)))


def _on_xla(module: Module, inputs: Sequence[Array]) -> Callable[[], Any]:
    """Return a call of the module compiled by XLA, with inputs already on its device."""
    jax = import_module("jax")
    executable = xla.compile_text(xla.plain_text(module))
    placed = [jax.device_put(array) for array in inputs]
    return lambda: [np.asarray(out) for out in executable.execute(placed)]


def main(arguments: list[str]) -> None:
    """Run all measurements, with the given modules or the largest example."""
    if not os.environ.items() >= ONE_THREAD.items():
        command = [sys.executable, "-m", "benchmarks.execute", *arguments]
        subprocess.run(command, env=os.environ | ONE_THREAD, check=True)
        return
    import_module("indexing.ops")  # registers the ops
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(
            0, {min(os.sched_getaffinity(0))}
        )  # one processor for all measurements
    single_ops()
    building()
    measure_tiles()
    for argument in arguments or [str(largest_example())]:
        whole_module(Path(argument))


if __name__ == "__main__":
    main(sys.argv[1:])
