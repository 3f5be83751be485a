"""Sectors of kernels: the engine of `access` on thread maps, against addresses of executions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hlo
from hlo.shapes.shape import Shape, leaves
from hlo.text.source import Source
from indexing.drawing.kernel_pictures import kernel_accesses_figure, kernel_figure
from indexing.kernels.dumps import kernels_of
from indexing.kernels.kernel import Kernel
from indexing.kernels.kernel_access import KernelAccesses, KernelArray, SectorCount
from indexing.kernels.sections import stages
from indexing.maps.answers import Unknown
from indexing.memory.warps.access import MemoryAccess
from tests.kernels.interpreter import Interpreter
from tests.kernels.memory import Array, Lanes, Memory
from tests.kernels.reference import operands_of

DATA = Path(__file__).parent / "data"
EXAMPLES = Path(__file__).parents[2] / "examples" / "kernels"
WARP, SECTOR, VECTOR = 32, 32, 16
Addresses = dict[tuple[int, int], int]
"""The position of an element by block and thread: one instruction of all warps."""


def execute(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Any]:
    """Return the instructions that access each argument, in order, by the interpreter."""
    every: dict[tuple[str, str], list[Addresses]] = {}
    places = Memory.places

    def record(memory: Memory, index: Any, lanes: Lanes, what: str) -> tuple[Array, Array]:
        row, flat = places(memory, index, lanes, what)
        if not memory.is_shared:
            who = zip(lanes.block.tolist(), lanes.thread.tolist(), strict=True)
            addresses = dict(zip(who, flat.tolist(), strict=True))
            every.setdefault((memory.name, what), []).append(addresses)
        return row, flat

    monkeypatch.setattr(Memory, "places", record)
    assert kernel.fusion is not None
    operands = operands_of(kernel.fusion, 0)
    Interpreter(kernel.module, False).run(operands, None, None)
    return every


def instructions(calls: list[Addresses], size: int) -> Iterator[tuple[Addresses, int]]:
    """Yield each load or store once, with its bytes; adjacent elements of a loop are a vector."""
    seen: list[Addresses] = []
    for each in calls:
        if not any(each.items() <= other.items() for other in seen):  # it is in a register
            seen.append(each)
    while seen:
        width = VECTOR // size
        while width > 1 and not is_vector(seen[:width], width):
            width //= 2
        yield seen[0], width * size
        seen = seen[max(1, width) :]


def is_vector(calls: list[Addresses], width: int) -> bool:
    first = calls[0]
    return (
        len(calls) == width
        and all(flat % width == 0 for flat in first.values())
        and all(
            other == {lane: flat + k for lane, flat in first.items()}
            for k, other in enumerate(calls)
        )
    )


def count(calls: list[Addresses], size: int) -> tuple[int, int, set[int]]:
    """Return the sectors, the ideal sectors and the bytes of a lane, warp by warp."""
    sectors = ideal = 0
    widths = set()
    for addresses, width in instructions(calls, size):
        widths.add(width)
        touched: dict[tuple[int, int], set[int]] = {}
        for (block, thread), flat in addresses.items():
            warp = touched.setdefault((block, thread // WARP), set())
            warp.update(range(flat * size, flat * size + width))
        sectors += sum(len({byte // SECTOR for byte in warp}) for warp in touched.values())
        ideal += sum(-(-len(warp) // SECTOR) for warp in touched.values())
    return sectors, ideal, widths


def accesses(kernel: Kernel) -> KernelAccesses:
    answer = kernel.access()
    assert isinstance(answer, KernelAccesses)
    return answer


def require_access(each: KernelArray) -> MemoryAccess:
    assert isinstance(each.access, MemoryAccess), each
    return each.access


KERNELS = [
    *[DATA / name for name in ("h100_loop_int_div", "h100_loop_slice_stride", "h100_reduce_all")],
    *[DATA / name for name in ("h100_reduce_row", "h100_transpose_2d")],
    *[EXAMPLES / name for name in ("transpose_2d", "softmax")],
]


@pytest.mark.parametrize("folder", KERNELS, ids=lambda path: path.name)
def test_sectors_are_those_of_the_addresses_of_an_execution(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kernel in kernels_of(folder):
        with monkeypatch.context() as patch:
            check(kernel, patch)


def check(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the sectors of all arrays with those that an execution touches."""
    assert kernel.fusion is not None
    every = execute(kernel, monkeypatch)
    entry = kernel.module.entry
    assert entry is not None
    names = [f"%{argument.name}" for argument in entry.arguments]
    shapes: dict[str, list[Any]] = {
        "operand": [operand.shape for operand in kernel.fusion.operands],
        "output": [shape for _, shape in leaves(kernel.fusion.shape)],
    }
    loaded = SectorCount(0, 0, True)
    answer = accesses(kernel)
    for name, each in zip(names, answer.arrays, strict=False):
        access = require_access(each)
        what = "write" if each.role == "output" else "read"
        element = shapes[each.role][each.number]
        assert isinstance(element, Shape)
        assert element.layout_or_default.minor_to_major == tuple(range(element.rank))[::-1]
        sectors, ideal, widths = count(every.get((name, what), []), element.element_bits // 8)
        assert (access.sectors, access.ideal_sectors, access.grade) == (sectors, ideal, "exact")
        assert {load.bytes_per_lane for load in access.instructions} == widths
        if each.role == "operand":
            loaded = SectorCount(loaded.touched + sectors, loaded.ideal + ideal, True)
    assert answer.loaded == loaded


def test_elements_of_an_innermost_loop_are_one_vector() -> None:
    """XLA's log of this kernel has `vector.transfer_read` of `vector<2xf32>` as its only reads."""
    kernel = kernels_of(DATA / "h100_reduce_row")[0]
    (load, store) = [require_access(each) for each in accesses(kernel).arrays]
    assert {each.bytes_per_lane for each in load.instructions} == {8}
    assert {each.bytes_per_lane for each in store.instructions} == {4}


def test_a_strided_slice_loads_more_sectors_than_it_needs() -> None:
    kernel = kernels_of(DATA / "h100_loop_slice_stride")[0]
    loaded = accesses(kernel).loaded
    assert isinstance(loaded, SectorCount)
    assert (loaded.touched, loaded.ideal) == (135, 23)
    assert loaded.efficiency == pytest.approx(23 / 135)
    assert SectorCount(0, 0, True).efficiency == 1


REASONS = [
    ("cpu_loop_gelu", "a CPU has no warps"),
    ("h100_softmax", "Triton assigns tiles to threads"),
]


@pytest.mark.parametrize("folder, reason", REASONS)
def test_a_kernel_without_a_schedule_of_warps_has_the_reason(folder: str, reason: str) -> None:
    answer = kernels_of(DATA / folder)[0].access()
    assert isinstance(answer, Unknown)
    assert answer.reason.startswith(reason)


def kernel_of(body: str) -> Kernel:
    """Return a kernel of a warp that reads rows of an array by an index array."""
    text = f"""
module attributes {{dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}} {{
  func.func @f(%arg0: tensor<8x32xf32> {{xla.slice_index = 0 : index}}, %arg1: tensor<3xi32> {{xla.slice_index = 1 : index}}, %arg2: tensor<32xf32> {{xla.slice_index = 2 : index}}) -> tensor<32xf32> attributes {{xla.backend_kind = #xla.backend_kind<gpu>, xla.entry}} {{
{body}
  }}
}}
"""  # noqa: E501 - as XLA prints it
    module = hlo.parse("""
HloModule m
fused { p = f32[8,32] parameter(0)  i = s32[3] parameter(1)
  r = f32[1,32] slice(p), slice={[0:1], [0:32]}  ROOT o = f32[32] reshape(r) }
ENTRY e { p = f32[8,32] parameter(0)  i = s32[3] parameter(1)
  ROOT f = f32[32] fusion(p, i), kind=kLoop, calls=fused }
""")
    return Kernel("f", module.entry.root, tuple(stages(Source(text, "rows"))), None, "rows")


def test_rows_that_runtime_values_select_are_counted_apart() -> None:
    """Each of 6 rows of 8 floats is a sector; what the scatter overwrites is not loaded."""
    kernel = kernels_of(EXAMPLES / "scatter_unique_set")[0]
    overwritten, updates, indices, rows = [require_access(each) for each in accesses(kernel).arrays]
    assert overwritten.sectors == 0
    assert (updates.sectors, updates.grade) == (6, "may")
    assert (indices.sectors, indices.grade) == (2, "exact")
    assert (rows.sectors, rows.best.sectors, rows.grade) == (6, 2, "may")


def test_a_loop_of_addresses_in_an_array_is_executed() -> None:
    """An address that is an element of an index array depends on the loop over the array."""
    kernel = kernel_of(
        """
    %th = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant 0.000000e+00 : f32
    %sum = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %zero) -> (f32) {
      %n = tensor.extract %arg1[%i] : tensor<3xi32>
      %m = arith.index_cast %n : i32 to index
      %lo = arith.maxsi %m, %c0 : index
      %c7 = arith.constant 7 : index
      %k = arith.minsi %lo, %c7 : index
      %x = tensor.extract %arg0[%k, %th] : tensor<8x32xf32>
      %next = arith.addf %acc, %x : f32
      scf.yield %next : f32
    }
    %r = tensor.insert %sum into %arg2[%th] : tensor<32xf32>
    return %r : tensor<32xf32>"""
    )
    load, indices, _ = [require_access(each) for each in accesses(kernel).arrays]
    assert (load.transactions.warps, load.sectors, load.best.sectors) == (3, 12, 12)
    assert indices.transactions.warps == 3


def test_an_unknown_gpu_is_an_error() -> None:
    kernel = kernels_of(EXAMPLES / "transpose_2d")[0]
    with pytest.raises(ValueError, match="H1000"):
        kernel.access("H1000")


def test_a_kernel_prints_and_plots_its_maps() -> None:
    kernel = kernels_of(EXAMPLES / "transpose_2d")[0]
    text = str(kernel)
    assert text.splitlines()[0] == (
        "kernel input_transpose_fusion: transpose, 6 blocks of 128 threads"
    )
    writes = kernel.writes
    assert not isinstance(writes, Unknown)
    assert str(writes[0][0]) in text
    assert "<table>" in kernel._repr_html_()
    figure = kernel_figure(kernel)
    assert figure.title == "threads of input_transpose_fusion [96, 64]: 128 in each of 6 blocks"
    assert kernel.plot().svg.startswith("<svg")
    with pytest.raises(IndexError, match="output 1"):
        kernel.plot(1)


def test_the_picture_of_a_kernel_has_its_loads_and_its_store() -> None:
    kernel = kernels_of(EXAMPLES / "transpose_2d")[0]
    figure = kernel_accesses_figure(accesses(kernel))
    titles = [panel.title for panel in figure.panels]
    assert titles[0].startswith("load of operand 0, x_0_.1: 4 sectors")
    assert any(title.startswith("store of output 0") for title in titles)
    assert accesses(kernel).plot().svg.startswith("<svg")


PICTURES = [
    ("cpu_reduce_row_small", "threads of multiply_reduce_fusion"),
    ("h100_softmax", "threads of triton_softmax_2"),
]


@pytest.mark.parametrize("folder, title", PICTURES)
def test_kernels_without_threads_of_their_own_are_drawn_by_blocks(folder: str, title: str) -> None:
    assert kernel_figure(kernels_of(DATA / folder)[0]).title.startswith(title)


def test_a_kernel_that_has_no_maps_is_printed_and_drawn_with_the_reason(tmp_path: Path) -> None:
    for file in (DATA / "cpu_loop_gelu").glob("*.log"):
        (tmp_path / file.name).write_text(file.read_text())
    (kernel,) = kernels_of(tmp_path)
    assert "unknown: no instruction of its name" in str(kernel)
    assert kernel_figure(kernel).notes[0].startswith("unknown: no instruction of its name")
    assert isinstance(kernel.reads, Unknown)
