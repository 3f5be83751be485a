"""`Kernel`: the text of a kernel at its stages, its instruction, and what it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import indexing.methods as methods
from hlo.arguments import checked
from hlo.modules.module import Instruction
from indexing.devices.gpus import Gpu, gpu
from indexing.equivalence.values.formulas.numbering import NoFormula
from indexing.kernels.accesses import KernelAccess
from indexing.kernels.domains import NotHandled
from indexing.kernels.ir import MlirModule
from indexing.kernels.kernel_access import KernelAccesses, accesses_of
from indexing.kernels.run import KernelRun, Launch, Program, run_kernel
from indexing.kernels.sections import KernelStage
from indexing.kernels.sharing import SharingFusion
from indexing.maps.answers import Unknown
from indexing.maps.displayed import Displayed
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.memory.warps.warp_classes import MAX_POINTS
from simplifier.atoms import Variable

NO_FUSION: Final = (
    "no instruction of its name in the dumps: --xla_dump_hlo_as_text writes the module"
)
_CPU_KINDS: Final = {
    "loop_fusion_kernel_emitter": "loop",
    "concatenate_fusion_kernel_emitter": "concatenate",
    "dynamic_update_slice_kernel_emitter": "in-place-dus",
    "cpu_scatter_fusion": "scatter",
    "tiled_emitter": "tiled",
}


@dataclass(frozen=True, eq=False)
class Kernel(Displayed):
    """A kernel of a dump, printed as its launch and the maps of its arrays.

    Attributes:
        name: the name of its entry.
        fusion: the instruction that it computes; None if the dump has no module, or none with it.
        stages: the texts before each pass, the first of which is analysed.
        launch: the launch that the thunk sequence states, if there is one.
        path: the file.
        shared_by: the other fusions of the module that run it.

    >>> import indexing
    >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
    >>> kernel.name, kernel.fusion.name, kernel.grid, kernel.threads
    ('input_transpose_fusion', 'input_transpose_fusion', (6, 1, 1), (128, 1, 1))
    >>> kernel.kind, kernel.target, kernel.stage, kernel.shared_bytes  # a static tile of 32 x 33
    ('transpose', 'gpu', 'xla-simplify-arith', 0)
    """

    name: str
    fusion: Instruction | None
    stages: tuple[KernelStage, ...] = field(repr=False)
    launch: Launch | None
    path: str
    shared_by: tuple[SharingFusion, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "run"}  # an execution has functions

    @property
    def stage(self) -> str:
        """The pass that runs after the text; empty for a file with one module."""
        return self.stages[0].before

    @cached_property
    def module(self) -> MlirModule:
        """The module of the first stage.

        Raises:
            HloError: the text is invalid, with the place.

        >>> import indexing
        >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
        >>> kernel.module.entry.name, len(kernel.module.functions)
        ('input_transpose_fusion', 3)
        """
        return self.stages[0].read()

    @cached_property
    def kind(self) -> str:
        """The emitter: ``loop``, ``concatenate``, ``transpose``, ``reduction``, ``tiled``, …"""
        region = str(self.module.attributes.get("xla.cpu_memory_region_name", ""))
        for emitter, kind in _CPU_KINDS.items():
            if f"xla_cpu_emitter__{emitter}" in region:
                return kind
        entry = self.module.entry
        if entry is not None and entry.op_name == "xtile.entry_func":
            return "triton"
        names = {op.name for op in self.module.walk()}
        if "xla_gpu.shuffle_reduce" in names:
            return "reduction"
        if "xla.atomic_rmw" in names:
            return "scatter"
        return "transpose" if "xla_gpu.allocate_shared" in names else self._kind_by_name()

    def _kind_by_name(self) -> str:
        for word, kind in (
            ("scatter", "scatter"), ("concatenate", "concatenate"),
            ("dynamic_update_slice", "in-place-dus"),
        ):  # fmt: skip
            if word in self.name:
                return kind
        return "loop"

    @property
    def target(self) -> str:
        """``cpu`` or ``gpu``."""
        entry = self.module.entry
        backend = str(entry.attributes.get("xla.backend_kind", "")) if entry is not None else ""
        if "gpu" in backend or self.path.endswith(".ttir.txt"):
            return "gpu"
        return "cpu"

    @cached_property
    def run(self) -> KernelRun | Unknown:
        """The first stage executed on symbolic points; unknown with the op that is not covered.

        Raises:
            HloError: the text is invalid, with the place.

        >>> import indexing
        >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
        >>> [buffer.type.text for buffer in kernel.run.arguments]  # the operand and the output
        ['tensor<64x96xf32>', 'tensor<96x64xf32>']
        """
        if self.fusion is None:
            return Unknown(NO_FUSION)
        try:
            return run_kernel(self.module, Program.of(self.fusion), self.launch)
        except NotHandled as error:
            return Unknown(str(error), self.fusion)
        except NoFormula as error:
            return Unknown(error.unknown.reason, self.fusion)

    @property
    def grid(self) -> tuple[int, ...] | Unknown:
        """The number of blocks in each dimension: of the launch, else as the text states it."""
        if self.launch is not None:
            return self.launch.grid
        return self.run if isinstance(self.run, Unknown) else _sizes(self.run.execution.blocks)

    @property
    def threads(self) -> tuple[int, ...] | Unknown:
        """The number of threads of a block in each dimension."""
        if self.launch is not None:
            return self.launch.threads
        return self.run if isinstance(self.run, Unknown) else _sizes(self.run.execution.threads)

    @property
    def reads(self) -> tuple[tuple[IndexingMap, ...], ...] | Unknown:
        """For each operand, the elements that each point reads.

        The dimensions of a map are those of the thread and of the block, its range variables the
        loops around the read, its runtime variables values that decide the element.

        >>> import indexing
        >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
        >>> ((read,),) = kernel.reads  # of f32[64,96]: each block reads rows of 32 elements
        >>> print(*read.results, sep=", ")
        i0 * 4 + (bl_x floordiv 3) * 32 + th_x floordiv 32, th_x mod 32 + (bl_x mod 3) * 32
        """
        if isinstance(self.run, Unknown):
            return self.run
        operands = self.run.arguments[: len(self.run.program.inputs)]
        every = [(a, map_of(self.run, a)) for a in self.run.execution.accesses if a.value is None]
        return tuple([
            tuple(dict.fromkeys([m for a, m in every if a.buffer is buffer])) for buffer in operands
        ])  # fmt: skip

    @property
    def writes(self) -> tuple[tuple[IndexingMap, ...], ...] | Unknown:
        """For each output, the elements that each point writes; maps as those of `reads`.

        >>> import indexing
        >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
        >>> ((write,),) = kernel.writes  # of f32[96,64]: and writes rows of 32 elements
        >>> print(*write.results, sep=", ")
        i2 * 4 + th_x floordiv 32 + (bl_x mod 3) * 32, (bl_x floordiv 3) * 32 + th_x mod 32
        """
        if isinstance(self.run, Unknown):
            return self.run
        every = [(a, map_of(self.run, a)) for a in self.run.execution.accesses
                 if a.value is not None]  # fmt: skip
        return tuple([
            tuple([m for a, m in every if a.buffer.memory == buffer.memory])
            for buffer in self.run.results
        ])  # fmt: skip

    @checked
    def access(
        self, device: str | Gpu = "H100", *, budget: int = MAX_POINTS
    ) -> KernelAccesses | Unknown:
        """Return the sectors of memory that all warps touch, by the thread maps of the kernel.

        Args:
            device: a GPU, or the name of a model in `indexing.devices.gpus.GPUS`.
            budget: the number of points, lanes of warps, to enumerate where an access is not
                periodic.
        Returns:
            The loads of each operand and the stores of each output; `Unknown` for a kernel of a
            CPU, for one of Triton, whose text does not state which lane loads which element of a
            tile, and for one whose `run` is unknown.
        Raises:
            HloError: the text is invalid, with the place.
            ValueError: an unknown GPU.

        >>> import indexing
        >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
        >>> accesses = kernel.access()
        >>> accesses.loaded.touched, accesses.loaded.ideal, accesses.stored.efficiency
        (768, 768, 1.0)
        """
        model = gpu(device)
        if self.target != "gpu":
            return Unknown("a CPU has no warps: its threads share no sectors")
        if self.kind == "triton":
            return Unknown("Triton assigns tiles to threads in passes after this text")
        if isinstance(self.run, Unknown):
            return self.run
        assert self.fusion is not None
        return accesses_of(self.name, self.run, self.fusion, model, budget)

    def __str__(self) -> str:
        return methods.kernel_text(self)

    @checked
    def plot(
        self, output: int = 0, backend: methods.Backend = "svg", theme: methods.Theme = "auto"
    ) -> Any:
        """Return a picture of the blocks and threads that write the elements of an output.

        Args:
            output: the number of the output leaf.
            backend, theme: as in `Answer.plot`.
        Returns:
            A `Drawing`; without a grid, it has the reason.
        Raises:
            HloError: the text is invalid, with the place.
            ImportError: matplotlib is not installed.
            IndexError: the kernel has no such output.

        >>> import indexing
        >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
        >>> kernel.plot()
        <drawing of 'threads of input_transpose_fusion [96, 64]: 128 in each of 6 blocks'>
        """
        return methods.plot_kernel(self, output, backend, theme)

    @property
    def shared_bytes(self) -> int | None:
        """The bytes of dynamic shared memory; None without a thunk sequence."""
        return None if self.launch is None else self.launch.shared_bytes


def map_of(run: KernelRun, access: KernelAccess) -> IndexingMap:
    """Return the map of an access, from threads and blocks to elements."""
    execution = run.execution
    points = [
        table[dimension]
        for table in (execution.threads, execution.blocks)
        for dimension in "xyz"
        if dimension in table
    ]
    exprs = [*access.index, *[c.expr for c in access.guards]]
    held = execution.algebra.table.runtime
    values = sorted({v for e in exprs for v in e.variables() if v in held}, key=lambda v: v.name)
    return IndexingMap.of(
        points, access.index, ranges=access.variables,
        runtime=[RuntimeVariable(v) for v in values], constraints=access.guards,
        grade="exact" if access.is_certain else "may",
    )  # fmt: skip


def _sizes(variables: dict[str, Variable]) -> tuple[int, ...]:
    return tuple([variables[k].upper + 1 if k in variables else 1 for k in "xyz"])
