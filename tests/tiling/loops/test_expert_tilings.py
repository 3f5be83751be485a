"""Published tilings beside those of the search: figures by formulas of dots."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo
from benchmarks.expert_tilings import EXPERTS, ExpertTiling, compare, main
from benchmarks.tiled_modules import programs
from benchmarks.tiling_problems import text_of

WIDTHS = {"f16": 2, "bf16": 2, "f32": 4, "f8e4m3fn": 1, "s8": 1}


def dot_of(expert: ExpertTiling) -> tuple[int, int, int, int, int]:
    """Return rows, contracted, columns, and the bytes of an element of operands and result."""
    _, element, sizes = expert.problem.split()
    m, k, n = [int(size) for size in sizes.split("x")]
    width = WIDTHS[element]
    return m, k, n, width, 2 if width == 1 else width


def test_each_tiling_has_a_source_and_a_valid_problem() -> None:
    assert len(EXPERTS) >= 20
    assert len({(each.problem, each.device, each.sizes) for each in EXPERTS}) == len(EXPERTS)
    for each in EXPERTS:
        assert each.source.startswith("https://github.com/")
        root = hlo.parse(text_of(each.problem)).entry.root
        assert isinstance(root.shape, hlo.Shape)
        pairs = zip(each.sizes, root.shape.dims, strict=True)
        assert all(0 < own <= size for own, size in pairs)


@pytest.mark.parametrize(
    "expert",
    [each for each in EXPERTS if each.problem.startswith("dot") and each.device[0] != "v"],
    ids=lambda each: f"{each.device} {each.problem} {each.sizes}",
)
def test_ratios_of_dots_on_gpus_are_those_of_their_formula(expert: ExpertTiling) -> None:
    m, k, n, width, out = dot_of(expert)

    def total_bytes(bm: int, bn: int, split: int) -> int:
        loads = width * k * (m * -(-n // bn) + n * -(-m // bm))
        return loads + m * n * out + (8 * split * m * n if split > 1 else 0)

    compared = compare(expert, top=3)
    first = compared.best[0]
    bm, bn = first.sizes
    rows, columns = expert.sizes
    ratio = total_bytes(rows, columns, 1) / total_bytes(bm, bn, first.split_k)
    assert compared.ratio == pytest.approx(ratio, rel=1e-12)
    assert compared.violations == ()
    assert compared.is_plausible == (ratio <= 1.5)


@pytest.mark.parametrize(
    "expert",
    [each for each in EXPERTS if each.device == "v6e" and each.problem.startswith("dot")],
    ids=lambda each: f"{each.problem} {each.sizes}",
)
def test_autotuned_blocks_of_a_tpu_move_each_element_once_as_the_best_do(
    expert: ExpertTiling,
) -> None:
    m, k, n, width, out = dot_of(expert)
    compared = compare(expert, top=3)
    assert compared.best[0].sequential_bytes() == width * (m * k + k * n) + out * m * n
    assert compared.ratio == 1
    assert compared.is_plausible


def test_steps_that_triton_pads_beyond_shared_memory_are_not_plausible() -> None:
    """176 keys of 128 features are padded to 256: 2 x (176 + 80) x 128 in each of two stages."""
    (expert,) = [e for e in EXPERTS if e.device == "H100" and e.steps.get("k") == 176]
    compared = compare(expert, top=3)
    (violation,) = compared.violations
    held = 2 * (128 * 128 + 2 * 2 * 256 * 128)
    assert violation == f"{held:,} bytes of shared memory: at most 232,448 allowed"
    assert compared.ratio <= 1.5
    assert not compared.is_plausible


def test_the_table_has_sums(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.expert_tilings.EXPERTS", EXPERTS[:2])
    assert main(["--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "1.33 of the bytes of [256, 128] [64], 2048 blocks: plausible" in lines[1]
    assert "1.66 of the bytes" in lines[2]
    assert lines[3:6] == [
        "2 tilings",
        "  legal: 2 (100%)",
        "  plausible, at most 1.5 of the bytes: 1 (50%)",
    ]


def test_programs_for_the_cost_model_are_lowered(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    own = {name: (function, arguments) for name, function, arguments in programs()}
    assert len(own) == 45
    from indexing.frontends.lowering import lower

    for name in ("softmax_f32_512x1024", "dot_s8_1024x1024x1024", "layer_norm_f32_130x640"):
        lowered = lower(*own[name], {}, "cuda")
        assert lowered.module().entry.parameters
