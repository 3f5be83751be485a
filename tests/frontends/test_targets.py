"""Targets of compilations, and the descriptions of GPUs that XLA reads."""

from __future__ import annotations

import re
from typing import Final

import pytest

from indexing.devices.gpus import GPUS, PROCESSORS
from indexing.frontends.targets import TOPOLOGIES, Target

TEXTS: Final = [
    *("cpu", "cpu:8", "gpu:H100", "gpu:A100:4", "gpu:MI300"),
    *("tpu:v5e:2x2", "tpu:v5p:4x4x8", "tpu:v6e:16x16"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_target_prints_as_it_is_written(text: str) -> None:
    assert str(Target.parse(text)) == text


@pytest.mark.parametrize("generation", TOPOLOGIES)
def test_a_generation_without_a_topology_has_that_of_one_host(generation: str) -> None:
    target = Target.parse(f"tpu:{generation}")
    assert target == Target.parse(f"tpu:{generation}:{TOPOLOGIES[generation]}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a target: expected one such as tpu:v5e:2x2"),
        ("tpu", "is not a target"),
        ("cuda:H100", "is not a target"),
        ("cpu:8:8", "is not a target"),
        ("cpu:0", "'0' in 'cpu:0' is not a number of devices"),
        ("gpu:H100:x", "'x' in 'gpu:H100:x' is not a number of devices"),
        ("gpu:h100", "unknown GPU 'h100' in 'gpu:h100': expected one of V100.*did you mean `H100`"),
        ("tpu:v9:2x2", "unknown generation of TPUs 'v9'.*expected one of v2, v3"),
        ("tpu:v5e:4", "'4' in 'tpu:v5e:4' is not a topology.*such as tpu:v5e:2x2"),
        ("tpu:v5e:0x2", "is not a topology"),
    ],
)
def test_an_error_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Target.parse(text)


@pytest.mark.parametrize("model", GPUS)
def test_a_description_has_every_figure_of_the_model(model: str) -> None:
    text = Target.parse(f"gpu:{model}").configuration
    fields = dict(re.findall(r"(\w+): ([\d.]+)$", text, re.MULTILINE))
    gpu, processor = GPUS[model], PROCESSORS[model]
    assert int(fields["shared_memory_per_block_optin"]) == gpu.shared_memory_per_block
    assert int(fields["shared_memory_per_block"]) == processor.shared_memory_per_block
    assert int(fields["core_count"]) == processor.core_count
    assert int(fields["memory_bandwidth"]) == processor.memory_bandwidth
    assert float(fields["clock_rate_ghz"]) * 1000 == processor.clock_rate_mhz
    assert ('platform_name: "ROCM"' in text) == (gpu.threads_per_warp == 64)


def test_an_architecture_with_a_letter_has_accelerated_features() -> None:
    assert "major: 9 minor: 0 feature_extension: ACC" in Target.parse("gpu:H100").configuration
    assert "major: 8 minor: 6 feature_extension: NONE" in Target.parse("gpu:A6000").configuration
    assert 'gcn_arch_name: "gfx942' in Target.parse("gpu:MI300").configuration
    assert Target.parse("tpu:v4").configuration == Target.parse("cpu").configuration == ""
