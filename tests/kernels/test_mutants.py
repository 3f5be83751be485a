"""Proofs of kernels against the interpreter: a mutant with effect is never proved."""

from functools import cache
from pathlib import Path

import pytest

import indexing
from hlo.text.source import HloError
from indexing.kernels.dumps import kernels_of
from indexing.kernels.kernel import Kernel
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided
from tests.kernels.memory import NotExecutable
from tests.kernels.mutants import Effect, Judge, Mutant, mutants_of, with_text

DATA = Path(__file__).parent / "data"
FOLDERS = sorted(path.name for path in DATA.glob("*_*"))


@cache
def judge_of(folder: str) -> Judge:
    """Return the judge of the only kernel of a folder."""
    (kernel,) = kernels_of(DATA / folder)
    return Judge(kernel)


def check(folder: str, limit: int, seed: int) -> list[str]:
    """Return the verdicts on mutants that executions contradict."""
    judge = judge_of(folder)
    wrong: list[str] = []
    for mutant in mutants_of(judge.kernel.stages[0].text, limit, seed):
        kernel = with_text(judge.kernel, mutant.text)
        try:
            verdict = indexing.check_kernel(kernel)
            effect = judge.confirm(kernel, verdict)
        except (HloError, NotExecutable):
            continue  # no valid text, or one that is not executed: nothing is known about it
        is_false = verdict if effect.is_real else isinstance(verdict, KernelDiffers)
        if is_false:
            wrong.append(f"{mutant.kind}, {mutant.what}: {effect}, but {verdict}")
    return wrong


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f != "h100_mlp_gemm"])
def test_no_verdict_on_a_mutant_contradicts_its_executions(folder: str) -> None:
    assert check(folder, 6, 0) == []


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_no_verdict_on_more_mutants_contradicts_their_executions(folder: str) -> None:
    assert check(folder, 40, 7) == []


def change_text(folder: str, old: str, new: str) -> tuple[Kernel, Effect]:
    """Return a kernel whose text is changed in one place, and what executions show."""
    judge = judge_of(folder)
    text = judge.kernel.stages[0].text
    assert text.count(old) >= 1
    kernel = with_text(judge.kernel, text.replace(old, new, 1))
    return kernel, judge.effect_of(kernel)


WITH_EFFECT = [
    ("cpu_loop_gelu", "s1 in [0, 9]", "s1 in [0, 8]", "missing"),
    ("cpu_loop_gelu", "in (1, 1, 1)", "in (0, 1, 1)", "missing"),
    ("cpu_loop_dynamic_slice", "xla.range = [0 : index, 0 : index]",
     "xla.range = [0 : index, -1 : index]", "range"),
    ("cpu_loop_gelu", "s0 in [0, 5]", "s0 in [0, 6]", "bounds"),
    ("cpu_loop_gelu", "4.471500e-02", "4.475500e-02", "in place of"),
    ("cpu_loop_gelu", "xla.slice_index = 2", "xla.slice_index = 7", ""),
    ("h100_transpose_2d", "index = 32", "index = 6", "overflow"),
    ("h100_transpose_2d", "index = 32", "index = 9", "overflow"),
    ("h100_reduce_all", "index = 32", "index = 12", "overflow"),
    ("h100_reduce_row", ") to 16 combiner", ") to 8 combiner", "in place of"),
    ("h100_loop_slice_stride", "bl_x * 128 + th_x", "bl_x * 127 + th_x", ""),
]  # fmt: skip


@pytest.mark.parametrize("folder, old, new, words", WITH_EFFECT)
def test_a_changed_kernel_is_not_proved(folder: str, old: str, new: str, words: str) -> None:
    kernel, effect = change_text(folder, old, new)
    assert words in effect.witness
    assert not (effect.is_real and indexing.check_kernel(kernel))
    assert effect.is_real or not words


def test_a_promise_that_is_broken_changes_no_value() -> None:
    """The domain of `xla.apply_indexing` must not simplify the map of a kernel that leaves it."""
    kernel, effect = change_text("h100_reduce_all", "d3 in [0, 1]", "d3 in [0, 0]")
    assert not effect.is_real
    verdict = indexing.check_kernel(kernel)
    assert "xla.apply_indexing" in str(verdict)
    assert isinstance(verdict, KernelUndecided)


def test_a_selection_by_a_number_is_not_proved() -> None:
    kernel = judge_of("cpu_loop_dynamic_slice").kernel
    text = kernel.stages[0].text
    other = text.replace("arith.select %0, %2, %extracted_0", "arith.select %2, %2, %2", 1)
    assert other != text
    assert isinstance(indexing.check_kernel(with_text(kernel, other)), KernelUndecided)


def test_mutants_are_of_many_kinds_and_are_all_different() -> None:
    texts = [judge_of(folder).kernel.stages[0].text for folder in FOLDERS]
    every = [m for text in texts for m in mutants_of(text, 60)]
    kinds = {m.kind for m in every}
    assert {"map offset", "map results swapped", "map bound", "op", "predicate", "constant",
            "barrier dropped", "clamp dropped", "mask bound", "indices swapped", "commuted",
            "operands swapped", "tile stride", "shuffle", "sign", "width"} <= kinds  # fmt: skip
    assert not {m.text for m in every} & set(texts)


def only(folder: str, kind: str) -> list[Mutant]:
    """Return the mutants of one kind."""
    return [m for m in mutants_of(judge_of(folder).kernel.stages[0].text, 1000) if m.kind == kind]


@pytest.mark.parametrize("folder", ["h100_transpose_2d", "h100_reduce_row"])
def test_a_barrier_that_is_dropped_is_a_race(folder: str) -> None:
    judge = judge_of(folder)
    for mutant in only(folder, "barrier dropped"):
        kernel = with_text(judge.kernel, mutant.text)
        assert "race" in judge.effect_of(kernel).witness
        assert not indexing.check_kernel(kernel)


@pytest.mark.parametrize("folder", ["cpu_loop_gelu", "cpu_loop_int_div"])
def test_operands_that_commute_leave_the_meaning(folder: str) -> None:
    judge = judge_of(folder)
    for mutant in only(folder, "commuted"):
        kernel = with_text(judge.kernel, mutant.text)
        assert not judge.effect_of(kernel).is_real
        assert isinstance(indexing.check_kernel(kernel), KernelProved)
