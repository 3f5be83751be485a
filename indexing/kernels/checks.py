"""`check_kernel`: whether a kernel computes its instruction, with a proof or a witness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from hlo.arguments import checked
from hlo.modules.module import Instruction
from indexing.equivalence.values.formulas.numbering import NoFormula
from indexing.equivalence.values.laws.roundings import EXCESS
from indexing.kernels.domains import NotHandled
from indexing.kernels.ir import MlirModule
from indexing.kernels.kernel import NO_FUSION, Kernel
from indexing.kernels.proofs import Proof
from indexing.kernels.run import KernelRun, Launch, Program, run_kernel
from indexing.kernels.sections import KernelStage
from indexing.kernels.verdicts import (
    KernelDiffers,
    KernelProved,
    KernelUndecided,
    KernelVerdict,
)
from indexing.kernels.witnesses import DRAWS, executed_fault

LAST_WITH_TENSORS: Final = "xla-lower-tensors"
FEW_DRAWS: Final = 2
"""The draws of operands on which later stages and other roundings are executed."""


@checked
def check_kernel(
    kernel: Kernel, fusion: Instruction | None = None, *, stage: int = 0
) -> KernelVerdict:
    """Compare a stage of a kernel with the instruction that it computes.

    Proved are: each output element is written once, with the value of the instruction's formula, or
    is left as the operand in the same memory; accesses are in bounds; no index wraps; the domains
    that the text asserts hold.

    Args:
        fusion: the instruction; by default, the kernel's own, and those that run the same kernel by
            the sequence of thunks.
        stage: the number of the stage in `kernel.stages`; by default, the first one.
    Returns:
        `KernelProved`, the only truthy verdict; `KernelDiffers`, with a point; or
        `KernelUndecided`, with the reason.
    Raises:
        HloError: the text of the kernel or the instruction is invalid.

    >>> import indexing
    >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
    >>> print(check_kernel(kernel))
    proved at level values
    """
    if fusion is not None:
        return _check_stage(kernel, fusion, stage)
    if kernel.fusion is None:
        return KernelUndecided(NO_FUSION)
    verdict = _check_stage(kernel, kernel.fusion, stage)
    for other in kernel.shared_by:
        if verdict and other.evidence == "thunks":
            verdict = _check_stage(kernel, other.instruction, stage)
    return verdict


def _check_stage(kernel: Kernel, fusion: Instruction, stage: int) -> KernelVerdict:
    """Return the verdict by a proof; if it does not decide, by executions."""
    module = kernel.stages[stage].read() if stage else kernel.module
    launch = _launch(kernel, stage)
    verdict = _prove(kernel, module, fusion, launch)
    if isinstance(verdict, KernelProved) and EXCESS in verdict.premises:
        fault = executed_fault(module, fusion, launch, draws=FEW_DRAWS, is_strict=True)
        return (
            verdict if fault is None else KernelUndecided(f"a value is not rounded: {fault.what}")
        )
    if not isinstance(verdict, KernelUndecided):
        return verdict
    fault = executed_fault(module, fusion, launch, draws=FEW_DRAWS if stage else DRAWS)
    return verdict if fault is None else fault


def _prove(
    kernel: Kernel, module: MlirModule, fusion: Instruction, launch: Launch | None
) -> KernelVerdict:
    """Return the verdict of the proof, by formulas alone."""
    try:
        run = run_kernel(module, Program.of(fusion), launch)
        _check_launch(kernel, run)
        return Proof(run).verdict()
    except NotHandled as error:
        return KernelUndecided(str(error), fusion)
    except NoFormula as error:
        return KernelUndecided(error.unknown.reason, fusion)


@dataclass(frozen=True, slots=True)
class StageFault:
    """The first stage of a kernel that differs from the instruction.

    Attributes:
        number: the number of the stage in `kernel.stages`.
        after: the pass that ran before it, whose result it is; empty for the emitter's own text.
            Pipelines nest: a pass that runs others may have changed the text after the last one.
    """

    number: int
    after: str
    verdict: KernelDiffers

    def __str__(self) -> str:
        maker = f"the result of {self.after}" if self.after else "the text of the emitter"
        return f"stage {self.number}, {maker}, {self.verdict}"


def first_fault(
    stages: Iterable[tuple[KernelStage, KernelVerdict]],
) -> StageFault | None:
    """Return the first stage that differs, by the verdicts of `check_stages`; None if none does.

    The stages before it are equal to the instruction or undecided.
    """
    after = ""
    for number, (stage, verdict) in enumerate(stages):
        if isinstance(verdict, KernelDiffers):
            return StageFault(number, after, verdict)
        after = stage.before
    return None


@checked
def check_stages(kernel: Kernel) -> Iterator[tuple[KernelStage, KernelVerdict]]:
    """Yield the stages of a kernel up to the last one with tensors, with their verdicts.

    A stage is compared with the instruction: two stages that are proved are equal, and the first
    one that differs is the result of the pass before it (`first_fault`).  A stage whose text is
    that of the one before has the same verdict.

    Raises:
        HloError: the text of a stage is invalid.

    >>> import indexing
    >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
    >>> [stage.before for stage, verdict in check_stages(kernel) if not verdict]
    []
    """
    text, verdict = "", None
    for number, stage in enumerate(kernel.stages):
        if verdict is None or stage.text != text:
            text, verdict = stage.text, check_kernel(kernel, stage=number)
        yield stage, verdict
        if stage.before == LAST_WITH_TENSORS:
            return


def _launch(kernel: Kernel, stage: int) -> Launch | None:
    """Return the launch of a stage; a later one may state it only in the first one."""
    if kernel.launch is not None or not stage:
        return kernel.launch
    grid, threads = kernel.grid, kernel.threads
    if isinstance(grid, tuple) and isinstance(threads, tuple):
        return Launch(grid, threads, 0)
    return None


def _check_launch(kernel: Kernel, run: KernelRun) -> None:
    """Check that a launch has the threads of `scf.forall` and no dimension that the text lacks."""
    entry = run.execution.module.entry
    if kernel.launch is None or entry is None or entry.op_name == "xtile.entry_func":
        return
    execution = run.execution
    for name, sizes, variables in (
        ("threads", kernel.launch.threads, execution.threads),
        ("blocks", kernel.launch.grid, execution.blocks),
    ):
        for dimension, size in zip("xyz", sizes, strict=False):
            stated = variables[dimension].upper + 1 if dimension in variables else 1
            if stated != size:
                raise NotHandled(
                    f"the launch has {size} {name} in {dimension}, the text states {stated}"
                )
