"""Fusions that run the kernel of another one."""

import shutil
from pathlib import Path

import pytest

import indexing
from indexing.kernels.dumps import kernels_of
from indexing.kernels.verdicts import KernelDiffers, KernelProved
from indexing.views.kernel_tables import checked_kernel, kernel_lines, kernel_record
from tests.cli.running import validator

DATA = Path(__file__).parent / "data" / "h100_loop_shared"


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)
    return tmp_path


def change(dump: Path, suffix: str, old: str, new: str) -> None:
    (file,) = dump.glob(f"*{suffix}")
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_the_sequence_of_thunks_has_the_kernel_of_each_fusion(dump: Path) -> None:
    (kernel,) = kernels_of(dump)
    assert kernel.fusion is not None
    assert kernel.fusion.name == "loop_add_fusion.1"
    (other,) = kernel.shared_by
    assert (other.instruction.name, other.evidence) == ("loop_add_fusion", "thunks")
    assert isinstance(indexing.check_kernel(kernel), KernelProved)
    result = checked_kernel(kernel)
    lines = list(kernel_lines([result]))
    place = lines.index("loop_add_fusion_1")
    assert lines[place + 1] == "    also computes loop_add_fusion, by its thunk"
    record = kernel_record(result)
    validator("kernels").validate(record)
    assert record["shared_by"] == [{"fusion": "loop_add_fusion", "evidence": "thunks"}]


def test_identical_fusions_share_a_kernel_without_metadata(dump: Path) -> None:
    (metadata,) = dump.glob("*.thunk_metadata.txt")
    metadata.unlink()
    (kernel,) = kernels_of(dump)
    (other,) = kernel.shared_by
    assert (other.instruction.name, other.evidence) == ("loop_add_fusion", "computation")


@pytest.mark.parametrize("has_metadata", [True, False])
def test_a_fusion_that_is_not_identical_runs_the_kernel_only_by_the_thunks(
    dump: Path, has_metadata: bool
) -> None:
    """Then the kernel is compared with it, too, and differs."""
    change(dump, "gpu_after_optimizations.txt", "cosine(%param_0.11)", "sine(%param_0.11)")
    if not has_metadata:
        (metadata,) = dump.glob("*.thunk_metadata.txt")
        metadata.unlink()
    (kernel,) = kernels_of(dump)
    assert len(kernel.shared_by) == has_metadata
    verdict = indexing.check_kernel(kernel)
    assert isinstance(verdict, KernelDiffers if has_metadata else KernelProved)
