"""Samples with a size of 0, of `?` or with a bound: every query answers, or raises `HloError`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from hlo.ops.op import OPS
from hlo.shapes.shape import leaves
from hlo.text.source import HloError
from indexing import Unknown
from indexing.codegen.running import nests_of
from indexing.execution import random_inputs, run
from indexing.ops.samples import instruction_of, operands_end
from tests.checks import checks
from tests.ops.samples import ALL
from tests.oracles import sampled

SIZES = re.compile(r"(?<=[\[,])(?:<=)?\d+(?=[\],])")
CHANGES: dict[str, Callable[[str], str]] = {
    "zero": lambda size: "0",
    "unknown": lambda size: "?",
    "bound": lambda size: size if size.startswith("<") else f"<={size}",
}


def with_sizes(sample: str, change: Callable[[str], str]) -> Iterator[str]:
    """Yield a sample with one size changed, each in turn, and with all equal sizes changed."""
    end = operands_end(sample) + 1
    shapes, rest = sample[:end], sample[end:]
    sizes = list(SIZES.finditer(shapes))
    for size in sizes:
        yield shapes[: size.start()] + change(size[0]) + shapes[size.end() :] + rest
    for value in dict.fromkeys(size[0] for size in sizes):
        same = re.compile(rf"(?<=[\[,]){value}(?=[\],])")
        yield same.sub(change(value), shapes) + rest


def ask_everything(root: Instruction) -> None:
    """Ask all queries about the root of a module; they may only raise `HloError`."""
    for number in range(len(leaves(root.shape))):
        for query in (indexing.output_to_input, indexing.to_parameters, indexing.device_maps):
            with suppress(HloError):
                query(root, number)
        with suppress(HloError):
            nest = indexing.loop_nest(root.computation, number)
            if not isinstance(nest, Unknown):
                assert nest.source
                assert nest.vectorized().source
    for number in range(len(root.operands)):
        for query in (indexing.input_to_output, indexing.device_input_to_output):
            with suppress(HloError):
                query(root, number)


def execute(root: Instruction) -> None:
    """Run a valid module by kernels and by loop nests; both may only raise `HloError`."""
    with suppress(HloError):
        inputs = random_inputs(root.computation, 0)
        run(root.module, inputs)
        nests_of(root.module).run(inputs)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("opcode", ALL)
def test_samples_with_odd_sizes_have_answers_or_errors(opcode: str, change: str) -> None:
    with checks() as check:
        for changed in sampled(with_sizes(OPS[opcode].samples[0], CHANGES[change]), opcode):
            with check(changed), suppress(HloError):
                root = instruction_of(changed)
                errors = hlo.verify(root.module)
                ask_everything(root)
                if not errors:
                    execute(root)


def test_a_nest_of_an_array_of_unknown_size_is_unknown() -> None:
    for text in (
        "ENTRY e { p = f32[?,3] parameter(0)  ROOT r = f32[2,3] negate(p) }",
        "ENTRY e { p = f32[2,3] parameter(0)  ROOT r = f32[2,?] negate(p) }",
        "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) } "
        "ENTRY e { q = f32[2,3] parameter(0)  p = f32[2,?] reverse(q), dimensions={0} "
        "z = f32[] constant(0)  ROOT r = f32[2] reduce(p, z), dimensions={1}, to_apply=add }",
    ):
        nest = indexing.loop_nest(hlo.parse(text).entry)
        assert isinstance(nest, Unknown)
        assert "has a dimension of unknown size" in nest.reason


INDICES = {
    "iota": "i = s32[?] iota(), iota_dimension=0  j = s32[3] add(i, i)  x = s32[3,1] reshape(j)",
    "copy": "i = s32[?,1] iota(), iota_dimension=0  x = s32[3,1] copy(i)",
    "convert": "i = s64[?,1] iota(), iota_dimension=0  x = s32[3,1] convert(i)",
    "select": "c = pred[?,1] parameter(2)  i = s32[?,1] iota(), iota_dimension=0 "
    "x = s32[3,1] select(c, i, i)",
}


@pytest.mark.parametrize("source", INDICES)
def test_indices_of_unknown_size_do_not_fold(source: str) -> None:
    text = f"""
    add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }}
    ENTRY e {{
      p = f32[5] parameter(0)  u = f32[3] parameter(1)  {INDICES[source]}
      ROOT s = f32[5] scatter(p, x, u), update_window_dims={{}}, inserted_window_dims={{0}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
    }}"""
    module = hlo.parse(text)
    assert hlo.verify(module) == []
    answer = indexing.to_parameters(module.entry.root)
    assert answer.maps[0]
    assert answer.maps[1]


def test_a_dynamic_reshape_keeps_its_static_sizes() -> None:
    module = hlo.parse("""
    ENTRY e {
      p = f32[<=6] parameter(0)  n = s32[] parameter(1)  m = s32[] parameter(2)
      ROOT r = f32[2,<=3] dynamic-reshape(p, n, m)
    }""")
    (result,) = run(module, [np.arange(1, 7, dtype=np.float32), np.int32(0), np.int32(2)])
    assert result.tolist() == [[1, 2, 0], [3, 4, 0]]


@pytest.mark.parametrize("size", [-1, 0, 2])
def test_a_reshape_to_another_number_of_elements_names_the_sizes(size: int) -> None:
    module = hlo.parse("""ENTRY e { p = f32[6] parameter(0)
      n = s32[] parameter(1)  m = s32[] parameter(2)
      ROOT d = f32[2,<=3] dynamic-reshape(p, n, m) }""")
    elements = np.arange(6, dtype=np.float32)
    with pytest.raises(hlo.HloError, match=r"cannot reshape 6 elements to \[2, \d\]") as error:
        run(module, [elements, np.int32(2), np.int32(size)])
    assert "the product of the sizes, `n` and `m`" in str(error.value)
    (result,) = run(module, [elements, np.int32(2), np.int32(3)])
    assert result.tolist() == [[0, 1, 2], [3, 4, 5]]


SIZED = """
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
ENTRY e {{
  p = f32[2,3] parameter(0)  n = s32[] parameter(1)
  d = f32[2,<=3] set-dimension-size(p, n), dimensions={{1}}
  z = f32[] constant(0)
  ROOT root = {root}
}}"""


@pytest.mark.parametrize(
    "root",
    [
        "f32[2] reduce(d, z), dimensions={1}, to_apply=add",
        "s32[] get-dimension-size(d), dimensions={1}",
    ],
)
def test_a_runtime_size_is_read_by_what_uses_the_defined_elements(root: str) -> None:
    module = hlo.parse(SIZED.format(root=root))
    answer = indexing.to_parameters(module.entry.root)
    (read,) = answer.maps[1]
    assert read.grade == "may"
    assert read.evaluate((0,) * len(read.dims)) == ()
    p = np.ones((2, 3), np.float32)
    results = [run(module, [p, np.int32(n)])[0] for n in (1, 2)]
    assert not np.array_equal(*results)


def test_a_dynamic_reshape_reads_its_sizes() -> None:
    text = "f32[<=6,2] dynamic-reshape(f32[<=4,3] p, s32[] n, s32[] m)"
    answer = indexing.output_to_input(instruction_of(text))
    assert [m.grade for maps in answer.maps for m in maps] == ["exact", "may", "may"]
