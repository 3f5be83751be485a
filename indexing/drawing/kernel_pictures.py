"""Pictures of kernels: the threads that write each element, and the sectors that warps touch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from indexing.devices.gpus import gpu
from indexing.drawing.drawing import Backend, as_drawing
from indexing.drawing.figures import Figure
from indexing.drawing.style import Theme
from indexing.drawing.thread_pictures import threads_figure
from indexing.drawing.warp_pictures import arrays_figure
from indexing.kernels.kernel import Kernel
from indexing.kernels.kernel_access import KernelAccesses
from indexing.maps.indexing_map import IndexingMap
from indexing.memory.warps.thread_loads import THREAD_DIMS
from simplifier.atoms import Variable
from simplifier.unknown import Unknown


def plot_kernel(kernel: Kernel, output: int, backend: Backend, theme: Theme) -> Any:
    """Return a picture of the threads that write an output; see `Kernel.plot`."""
    return as_drawing(kernel_figure(kernel, output), backend, theme)


def kernel_figure(kernel: Kernel, output: int = 0) -> Figure:
    """Return the threads that write each element of an output.

    Raises:
        IndexError: the kernel has no such output.
    """
    run = kernel.run
    title = f"kernel {kernel.name}"
    if isinstance(run, Unknown):
        return Figure(title, (), (f"unknown: {run.reason}",))
    shapes = run.program.shapes
    if not 0 <= output < len(shapes):
        raise IndexError(f"output {output} of {kernel.name}: it has {len(shapes)}")
    writes = kernel.writes
    assert not isinstance(writes, Unknown)
    schedules = [_with_thread(m) for m in writes[output]]
    name = kernel.name if len(shapes) == 1 else f"{kernel.name}, output {output}, "
    try:
        return threads_figure(schedules, shapes[output].dims, gpu("H100"), f"{name} ")
    except ValueError as error:  # runtime variables, or too many points
        return Figure(title, (), (f"not drawn: {error}",))


def _with_thread(writes: IndexingMap) -> IndexingMap:
    """Return a map with a dimension of the thread; a tiled kernel states the block alone."""
    if any(v.name in THREAD_DIMS for v in writes.dims):
        return writes
    return replace(writes, dims=(Variable(THREAD_DIMS[0], 0, 0), *writes.dims))


def plot_kernel_accesses(accesses: KernelAccesses, backend: Backend, theme: Theme) -> Any:
    """Return a picture of the loads and stores of a kernel; see `KernelAccesses.plot`."""
    return as_drawing(kernel_accesses_figure(accesses), backend, theme)


def kernel_accesses_figure(accesses: KernelAccesses) -> Figure:
    """Return the lanes of a worst warp of each array, and its sectors."""
    roles = {"operand": "load of operand", "output": "store of output"}
    every = [(f"{roles[each.role]} {each.number}", each.access) for each in accesses.arrays]
    return arrays_figure(every, f"memory accesses of kernel {accesses.name}")
