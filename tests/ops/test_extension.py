"""The ops that `docs/adding_an_op.md` makes are proved like those of this project."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
import indexing
from hlo.ops.op import OPS, TARGETS
from indexing.execution import run
from tests.ops import test_ops as generic
from tests.ops.samples import Sample, parse_sample
from tests.ops.test_element import check_element

PAGE = Path(__file__).parents[2] / "docs" / "adding_an_op.md"
OPERANDS = "p = f32[7] parameter(0)"


@pytest.fixture(scope="module")
def made() -> Iterator[dict[str, Any]]:
    """The names that the page defines; its ops are forgotten afterwards."""
    before, targets = dict(OPS), dict(TARGETS)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        if ">>>" not in block:
            exec(block, names)
    yield names
    for registry, old in ((OPS, before), (TARGETS, targets)):
        registry.clear()
        registry.update(old)


@pytest.fixture(scope="module")
def samples(made: dict[str, Any]) -> list[Sample]:
    """The samples of both classes."""
    return [parse_sample(text) for name in ("Roll", "Stride") for text in made[name].samples]


def test_their_faces_prove_each_other(samples: list[Sample]) -> None:
    assert len(samples) == 5
    for sample in samples:
        assert hlo.verify(sample.instruction.module) == []
        assert sample.op.infer_shape(*sample.shapes) == sample.instruction.shape
        random = np.random.default_rng(7)
        (result,) = sample.run(sample.inputs(random))
        assert result.shape == sample.outputs[0].dims
        generic.check_reads(sample, random, 2)
        generic.check_inverse(sample, random, 2)


def test_their_elements_compute_what_their_kernels_compute(samples: list[Sample]) -> None:
    for sample in samples:
        check_element(sample, np.random.default_rng(3))


MOVED = """
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
  at = s32[1] slice(half), slice={[LAST:END]}
  start = s32[] reshape(at)
  d = f32[3] dynamic-slice(p, start), dynamic_slice_sizes={3}
  zero = f32[] constant(0)
  ROOT out = f32[] reduce(d, zero), dimensions={0}, to_apply=add
}"""


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("place", range(5))
def test_start_indices_fold_through_them_to_what_runs(place: int) -> None:
    """No runtime variable stays, and the program reads where the map says."""
    text = MOVED.replace("LAST", str(place)).replace("END", str(place + 1))
    module = hlo.parse(text)
    given = np.arange(7, dtype=np.float32) ** 2
    (result,) = run(module, [given])
    (read,) = indexing.to_parameters(module.entry.root).maps[0]
    assert not read.runtime
    start = min(max(int(((2 * place - 2) % 10) / 2), 0), 4)
    assert sorted(e for (e,) in _elements(read)) == [start, start + 1, start + 2]
    assert result == given[start : start + 3].sum()


def _elements(read: indexing.IndexingMap) -> Iterator[tuple[int, ...]]:
    for point in range(3):
        found = read.evaluate((), ranges=(point,))
        assert found is not None
        yield found


def test_their_attributes_print_as_they_are_read(samples: list[Sample]) -> None:
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
def test_an_entry_of_the_config_is_found(made: dict[str, Any], config: str, step: int) -> None:
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
            "`step` in backend_config of custom-call is not an integer",
        ),
        ("p", '{"step": [1]}', "[", "`step` in backend_config of custom-call is not an integer"),
        ("p", '"{}", extra=1', "1", "custom-call has no attribute `extra`"),
        ("q", "{step = 2}", None, "custom-call C1 does not hold: the operand is a vector"),
        ("b", "{step = 2}", None, "custom-call T does not hold: the element types"),
    ],
)
def test_a_wrong_call_of_a_target_is_an_error(
    operand: str, config: str, at: str | None, message: str
) -> None:
    root = _call(f"f32[4] custom-call({operand})", f"backend_config={config}")
    (error,) = hlo.verify(root.module)
    assert error.message.startswith(message)
    assert at is None or error.span.text.startswith(at.strip())


@pytest.mark.usefixtures("made")
def test_other_targets_stay_as_they_were() -> None:
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
