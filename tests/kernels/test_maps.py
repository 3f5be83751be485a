"""Kernels of dumps: matched with their fusions, and what their points read and write as maps."""

import textwrap
from itertools import product
from pathlib import Path

import pytest

import indexing
from hlo.shapes.shape import Shape
from indexing.kernels.dumps import kernels_of
from indexing.kernels.kernel import Kernel
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap

DATA = Path(__file__).parent / "data"


def kernel_of(folder: str) -> Kernel:
    """Return the only kernel of a folder of dumps."""
    (kernel,) = kernels_of(DATA / folder)
    return kernel


def pairs_of(m: IndexingMap) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return the element of each point of a map, by evaluation."""
    boxes = [range(v.lower, v.upper + 1) for v in (*m.dims, *m.ranges)]
    results = {}
    for point in product(*boxes):
        at = m.evaluate(point[: len(m.dims)], point[len(m.dims) :])
        if at is not None:
            results[point] = at
    return results


KERNELS = [
    ("cpu_loop_gelu", "multiply_multiply_fusion", "loop", (1, 1, 1), (1, 1, 1)),
    ("cpu_loop_reverse_roll", "concatenate_subtract_fusion", "concatenate", (1, 1, 1), (1, 1, 1)),
    ("h100_transpose_2d", "input_transpose_fusion", "transpose", (6, 1, 1), (128, 1, 1)),
    ("h100_loop_slice_stride", "loop_slice_fusion", "loop", (2, 1, 1), (128, 1, 1)),
    ("cpu_loop_int_div", "add_select_fusion.1", "loop", (1, 1, 1), (1, 1, 1)),
]


@pytest.mark.parametrize("folder, name, kind, grid, threads", KERNELS)
def test_a_kernel_has_its_fusion_and_its_launch(
    folder: str, name: str, kind: str, grid: tuple[int, ...], threads: tuple[int, ...]
) -> None:
    kernel = kernel_of(folder)
    assert (kernel.name, kernel.kind) == (name, kind)
    assert kernel.fusion is not None
    assert kernel.fusion.name == name
    assert kernel.target == ("gpu" if folder.startswith("h100") else "cpu")
    assert (kernel.grid, kernel.threads) == (grid, threads)
    assert kernel.stage.startswith(("xla-simplify-arith", "canonicalize"))
    assert kernel.shared_bytes == (0 if kernel.target == "gpu" else None)


@pytest.mark.parametrize("folder", ["cpu_loop_gelu", "h100_transpose_2d", "h100_loop_slice_stride"])
def test_each_output_element_is_written_by_one_point(folder: str) -> None:
    kernel = kernel_of(folder)
    writes = kernel.writes
    assert not isinstance(writes, Unknown)
    ((m,),) = writes
    elements = list(pairs_of(m).values())
    assert kernel.fusion is not None
    shape = kernel.fusion.shape
    assert isinstance(shape, Shape)
    assert sorted(elements) == sorted(product(*map(range, shape.dims)))


def test_a_transpose_reads_what_it_writes_transposed() -> None:
    kernel = kernel_of("h100_transpose_2d")
    reads, writes = kernel.reads, kernel.writes
    assert not isinstance(reads, Unknown)
    assert not isinstance(writes, Unknown)
    ((read,),), ((write,),) = reads, writes
    by_block: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for point, element in pairs_of(read).items():
        by_block.setdefault(point[3:6], set()).add(element[::-1])
    for point, element in pairs_of(write).items():
        assert element in by_block[point[3:6]]


def test_the_parts_of_a_concatenation_are_disjoint() -> None:
    writes = kernel_of("cpu_loop_reverse_roll").writes
    assert not isinstance(writes, Unknown)
    ((first, second),) = writes
    one, other = (set(pairs_of(m).values()) for m in (first, second))
    assert not one & other
    assert len(one | other) == 9 * 14


def test_what_a_runtime_value_decides_is_a_runtime_variable() -> None:
    reads = kernel_of("cpu_loop_dynamic_slice").reads
    assert not isinstance(reads, Unknown)
    assert [bool(m.runtime) for maps in reads for m in maps].count(True) == 1


def test_a_kernel_without_its_module_has_no_fusion(tmp_path: Path) -> None:
    for file in (DATA / "cpu_loop_gelu").glob("*.log"):
        (tmp_path / file.name).write_text(file.read_text())
    (kernel,) = indexing.kernels(tmp_path)
    assert kernel.fusion is None
    assert isinstance(kernel.reads, Unknown)
    assert str(indexing.check_kernel(kernel)).startswith("undecided: no instruction of its name")


def test_a_kernel_in_the_body_of_a_loop_has_its_launch(tmp_path: Path) -> None:
    """The thunks of a loop's body are indented."""
    for file in (DATA / "h100_transpose_2d").iterdir():
        text = file.read_text()
        if file.name.endswith(".thunk_sequence.txt"):
            text = f"000: kWhile\n{textwrap.indent(text, ' ' * 4)}"
        (tmp_path / file.name).write_text(text)
    (kernel,) = kernels_of(tmp_path)
    assert kernel.launch is not None
    assert (kernel.launch.grid, kernel.launch.threads) == ((6, 1, 1), (128, 1, 1))
