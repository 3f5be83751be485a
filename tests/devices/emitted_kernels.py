"""Thread maps compared with those in kernels that XLA's emitters print, by meaning.

``python -m tests.devices.emitted_kernels FOLDER...`` compares the kernels of folders that XLA wrote
for a GPU with ``--xla_dump_hlo_as_text --xla_dump_emitter_re=.*``, one program in each folder.

A loop over elements has the map of its threads in the first stage of a kernel:
``xla.loop (…)[…] -> (…) in #map``.  It should be the schedule of the array that the loop computes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Final, NamedTuple

import islpy as isl

import hlo
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, leaves
from indexing import IndexingMap, input_to_output, parse_map, thread_map
from indexing.devices.grid import tile_map

_STAGE: Final = "// -----// IR Dump Before"
_KERNEL: Final = re.compile(r"operation: @(\S+)\)")
_MAP: Final = re.compile(
    r'^(#\w+) = #xla\.indexing_map<"(\((?:th_x, th_y, th_z, bl_x, bl_y, bl_z|d0(?:, d[1-5]){5})\)'
    r'[^"]*)">',
    re.MULTILINE,
)
_LOOP: Final = re.compile(r"= xla\.loop \([^)]*\)\[[^\]]*\] -> \([^)]*\) in (#\w+)")
_LAUNCH: Final = re.compile(r"(\S+) grid: \[([\d, ]+)\] threads: \[([\d, ]+)\]")


class Kernel(NamedTuple):
    """The first stage of a kernel.

    Attributes:
        fusion: the fusion that it computes.
        blocks, threads: its launch.
        loops: the map of the threads of each loop over elements, in order.
    """

    fusion: Instruction
    blocks: tuple[int, ...]
    threads: tuple[int, ...]
    loops: tuple[IndexingMap, ...]


def kernel_of(module: Module, log: str, launches: str) -> Kernel | None:
    """Return the kernel of the first stage of a log; None if no fusion or launch has its name.

    Args:
        log: the text of ``*.mlir-passes.log``, or its first stage.
        launches: the text of ``*.thunk_sequence.txt``.
    """
    first = log.split(_STAGE)[1]
    name = _KERNEL.search(first)
    assert name is not None
    fusions = [i for i in module.instructions if re.sub(r"[.\-]", "_", i.name) == name[1]]
    launch = {each[0]: each[1:] for each in _LAUNCH.findall(launches)}.get(name[1])
    if launch is None or not fusions:
        return None
    blocks, threads = [tuple(map(int, counts.split(","))) for counts in launch]
    maps = {alias: parse_map(text) for alias, text in _MAP.findall(first)}
    loops = tuple([maps[alias] for alias in _LOOP.findall(first) if alias in maps])
    return Kernel(fusions[0], blocks, threads, loops)


def schedule_of(shape: Shape, kernel: Kernel, unroll: int) -> IndexingMap:
    """Return the thread map of an array for the launch of a kernel."""
    schedule: IndexingMap = thread_map(
        shape, threads=kernel.threads, blocks=kernel.blocks, unroll=unroll
    )
    return schedule


def schedules(kernel: Kernel, unroll: int) -> Iterator[IndexingMap]:
    """Yield the schedule of each array that the loops of a kernel may compute."""

    def schedule(shape: object) -> IndexingMap:
        assert isinstance(shape, Shape)
        return schedule_of(shape, kernel, unroll)

    computation = kernel.fusion.called_computations[0]
    yield schedule(leaves(kernel.fusion.shape)[0][1])
    for inner in computation.instructions:
        if inner.opcode == "dynamic-update-slice":
            yield schedule(inner.operands[1].shape)
        elif inner.opcode == "scatter":
            yield schedule(inner.operands[2].shape)
        elif inner.opcode == "concatenate":
            # each thread computes the elements of all operands at its index of the largest one
            shapes = [each.shape for each in inner.operands if isinstance(each.shape, Shape)]
            largest = schedule(max(shapes, key=lambda shape: shape.size))
            for number in range(len(inner.operands)):
                (within,) = input_to_output(inner, number).maps[0]
                together: IndexingMap = largest.then(within)
                yield together
        elif inner.opcode == "transpose":
            yield from tile_schedules(inner, prod(kernel.threads))


def tile_schedules(transpose: Instruction, threads: int) -> Iterator[IndexingMap]:
    """Yield the schedules of both sides of a transpose through a shared tile of 32 by 32."""
    (operand,), result = [each.shape for each in transpose.operands], transpose.shape
    assert isinstance(operand, Shape)
    assert isinstance(result, Shape)
    dimensions = attribute_of(transpose, "dimensions")
    last = operand.rank - 1
    tile = [32 if last in (k, dimensions.index(k)) else 1 for k in range(operand.rank)]
    yield tile_map(operand, tile, threads=threads)
    order = [dimensions.index(k) for k in range(operand.rank)]
    yield tile_map(result, [tile[k] for k in dimensions], threads=threads, order=order)


def attribute_of(instruction: Instruction, name: str) -> tuple[int, ...]:
    """Return an attribute that is a list of integers."""
    value: tuple[int, ...] = getattr(instruction.op, name)
    return value


def agrees(kernel: Kernel) -> bool:
    """Return True if there are loops, and the threads of each follow one of the schedules."""
    return bool(kernel.loops) and all(
        any(
            len(own.results) == len(loop.results)
            and isl.Map(str(own.to_isl())).is_equal(isl.Map(str(loop.to_isl())))
            for own in schedules(kernel, prod([v.size for v in loop.ranges]))
        )
        for loop in kernel.loops
    )


def kernels_in(folder: Path) -> Iterator[tuple[str, Kernel | None]]:
    """Yield each kernel of a folder with its name."""
    (program,) = folder.glob("*gpu_after_optimizations.txt")
    (launches,) = folder.glob("*thunk_sequence.txt")
    module = hlo.load(program)
    for log in sorted(folder.glob("*.mlir-passes.log")):
        name = f"{folder.name}/{log.name.removesuffix('.mlir-passes.log').rpartition('.')[2]}"
        yield name, kernel_of(module, log.read_text(), launches.read_text())


def main(folders: list[str]) -> None:
    """Print whether the threads of each kernel agree."""
    outcomes = []
    for name, kernel in [each for folder in folders for each in kernels_in(Path(folder))]:
        outcomes.append("unknown" if kernel is None else "agrees" if agrees(kernel) else "differs")
        print(f"{outcomes[-1]}: {name}")
    print(", ".join(f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes))))


if __name__ == "__main__":
    main(sys.argv[1:])
