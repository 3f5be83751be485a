"""`benchmarks.kernel_mutants`: classes of mutants and what is printed of them."""

from pathlib import Path

import pytest

from benchmarks import kernel_figures, kernel_mutants
from benchmarks.kernel_mutants import Judged
from indexing.kernels.dumps import kernels_of
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided, KernelVerdict
from tests.kernels.mutants import Mutant

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    "has_effect, verdict, word, is_wrong",
    [
        (True, KernelDiffers("a fault"), "told", False),
        (True, KernelUndecided("a reason"), "undecided", False),
        (True, KernelProved(), "proved", True),
        (False, KernelDiffers("a fault"), "told", True),
        (False, KernelProved(), "proved", False),
        (None, KernelProved(), "proved", False),
    ],
)
def test_a_verdict_is_wrong_if_executions_contradict_it(
    has_effect: bool | None, verdict: KernelVerdict, word: str, is_wrong: bool
) -> None:
    (kernel,) = kernels_of(DATA / "cpu_loop_gelu")
    judged = Judged(kernel, Mutant("op", "a change", ""), has_effect, verdict, 0.1)
    assert (judged.word, judged.is_wrong) == (word, is_wrong)


def test_the_table_counts_each_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(DATA / "cpu_loop_gelu"), "--mutants", "10", "--seed", "3"]
    assert kernel_mutants.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    (total,) = [line.split()[1:] for line in lines if line.startswith("all ")]
    (others,) = [line.split()[0] for line in lines if line.endswith("mutants are not executed")]
    assert sum(map(int, [*total, others])) == 10
    assert int(total[0]) > 0
    assert kernel_mutants.main(arguments) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("all ")] == [
        line for line in lines if line.startswith("all ")
    ]


def test_the_figures_of_a_kernel_and_its_stages(capsys: pytest.CaptureFixture[str]) -> None:
    assert kernel_figures.main([str(DATA / "h100_transpose_2d"), "--stages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 kernels: 1 proved; 100.0% proved"
    assert lines[-1] == "all stages of 0 of 0 kernels are proved; stages: "
    examples = Path(__file__).parents[2] / "examples" / "kernels"
    assert kernel_figures.main([str(examples / "rotated_update_starts")]) == 0
    assert "1 kernels: 1 differs; 0.0% proved" in capsys.readouterr().out
    assert kernel_figures.main([str(examples / "scatter_unique_set"), "--stages"]) == 0
    assert "stage 1 differs" in capsys.readouterr().out
