"""The ops of `docs/adding_an_op.md` pass the same checks as the ops of this project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.ops.op import OPS, OPS_BY_TARGET
from indexing.execution import run
from tests.ops import test_ops as generic
from tests.ops.samples import Sample, parse_sample
from tests.ops.test_element import check_element

PAGE = Path(__file__).parents[2] / "docs" / "adding_an_op.md"
OPERANDS = "p = f32[7] parameter(0)"


@pytest.fixture(scope="module")
def made() -> Iterator[dict[str, Any]]:
    """The names that the page defines; its ops are unregistered afterwards."""
    before, targets = dict(OPS), dict(OPS_BY_TARGET)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        if ">>>" not in block:
            exec(block, names)
    yield names
    for registry, old in ((OPS, before), (OPS_BY_TARGET, targets)):
        registry.clear()
        registry.update(old)


@pytest.fixture(scope="module")
def samples(made: dict[str, Any]) -> list[Sample]:
    """The samples of both classes."""
    return [parse_sample(text) for name in ("Roll", "Stride") for text in made[name].samples]


def test_their_shapes_maps_and_kernels_agree(samples: list[Sample]) -> None:
    assert len(samples) == 5
    for sample in samples:
        assert hlo.verify(sample.instruction.module) == []
        assert sample.op.infer_shape(*sample.shapes) == sample.instruction.shape
        random = np.random.default_rng(7)
        (result,) = sample.run(sample.inputs(random))
        assert result.shape == sample.outputs[0].dims
        generic.check_reads(sample, random, 2)
        generic.check_inverse(sample, random, 2)


def test_their_element_rules_compute_the_results_of_their_kernels(samples: list[Sample]) -> None:
    for sample in samples:
        check_element(sample, np.random.default_rng(3))


FOLDED = """
HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[7] parameter(0)
  i = s32[10] iota(), iota_dimension=0
  r = s32[10] acme-roll(i), dimension=0, shift=2
  s = s32[5] custom-call(r), custom_call_target="acme.stride", backend_config={step = 2}
  two = s32[] constant(2)
  twos = s32[5] broadcast(two), dimensions={}
  half = s32[5] divide(s, twos)
  at = s32[1] slice(half), slice={[FIRST:END]}
  start = s32[] reshape(at)
  d = f32[3] dynamic-slice(p, start), dynamic_slice_sizes={3}
  zero = f32[] constant(0)
  ROOT out = f32[] reduce(d, zero), dimensions={0}, to_apply=add
}"""


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("start_index", range(5))
def test_start_indices_fold_through_them_to_the_executed_slice(start_index: int) -> None:
    """No runtime variable remains, and the program reads the elements of the map."""
    text = FOLDED.replace("FIRST", str(start_index)).replace("END", str(start_index + 1))
    module = hlo.parse(text)
    argument = np.arange(7, dtype=np.float32) ** 2
    (result,) = run(module, [argument])
    (read,) = indexing.to_parameters(module.entry.root).maps[0]
    assert not read.runtime
    start = min(max(int(((2 * start_index - 2) % 10) / 2), 0), 4)
    assert sorted(e for (e,) in _elements(read)) == [start, start + 1, start + 2]
    assert result == argument[start : start + 3].sum()


def _elements(read: indexing.IndexingMap) -> Iterator[tuple[int, ...]]:
    for point in range(3):
        element = read.evaluate((), ranges=(point,))
        assert element is not None
        yield element


def test_their_attributes_are_printed_as_they_are_parsed(samples: list[Sample]) -> None:
    for sample in samples:
        assert parse_sample(f"{sample.head}, {sample.op.attribute_text()}").op == sample.op


@pytest.mark.parametrize(
    "config, step",
    [
        ("{step = 3 : i64}", 3),
        ('{"step": 3}', 3),
        (r'"{\"step\": 3}"', 3),
        ('{other = "x, step = 4", step = 3}', 3),
        ("{}", 2),
    ],
)
def test_a_configured_attribute_is_parsed_from_the_backend_config(
    made: dict[str, Any], config: str, step: int
) -> None:
    size = -(-7 // step)
    root = _call(f"f32[{size}] custom-call(p)", f"backend_config={config}")
    assert root.op == made["Stride"](step=step)
    assert hlo.verify(root.module) == []
    (m,) = indexing.output_to_input(root).maps[0]
    assert [m.evaluate((i,)) for i in range(size)] == [(i * step,) for i in range(size)]


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    "operand, config, at, message",
    [
        (
            "p",
            "{step = 0 : i64}",
            "0 ",
            "`step` in backend_config of custom-call must be an integer",
        ),
        ("p", '{"step": [1]}', "[", "`step` in backend_config of custom-call must be an integer"),
        ("p", '"{}", extra=1', "1", "custom-call has no attribute `extra`"),
        ("q", "{step = 2}", None, "custom-call C1: the operand must be a vector"),
        ("b", "{step = 2}", None, "custom-call T: the element types"),
    ],
)
def test_an_invalid_call_of_a_target_is_an_error(
    operand: str, config: str, at: str | None, message: str
) -> None:
    root = _call(f"f32[4] custom-call({operand})", f"backend_config={config}")
    (error,) = hlo.verify(root.module)
    assert error.message.startswith(message)
    assert at is None or error.span.text.startswith(at.strip())


@pytest.mark.usefixtures("made")
def test_calls_of_other_targets_are_plain_custom_calls() -> None:
    root = hlo.parse(
        f'ENTRY e {{ {OPERANDS} ROOT r = f32[9] custom-call(p), custom_call_target="x" }}'
    )
    assert type(root.entry.root.op) is OPS["custom-call"]


def _call(call: str, attributes: str) -> hlo.Instruction:
    more = "q = f32[2,2] parameter(1) b = pred[7] parameter(2)"
    target = 'custom_call_target="acme.stride"'
    return hlo.parse(
        f"ENTRY e {{ {OPERANDS} {more} ROOT r = {call}, {target}, {attributes} }}"
    ).entry.root
