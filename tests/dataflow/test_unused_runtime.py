"""No simplified answer has a runtime variable that occurs in no result and constrains nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from hlo.shapes.shape import leaves
from indexing import IndexingMap, RuntimeVariable
from indexing.dataflow import (
    device_input_to_output,
    device_maps,
    device_maps_to_parameters,
    epilogue,
)
from indexing.maps.answers import Answer
from indexing.maps.options import OptionChoices
from indexing.ops.samples import COMPUTATIONS, instruction_of, operands, operands_start
from simplifier.atoms import Variable
from tests.ops.samples import ALL, MAPPED, Sample, SampleChecks
from tests.oracles import sampled

CHECKS = SampleChecks()
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))
OPTIONS: tuple[OptionChoices, ...] = ({}, {"exact": True})

# fmt: off
FILLED = [  # windows that fill a dimension, and the number of starts that are not clamped to 0
    ("f32[8] dynamic-update-slice(f32[8] p, f32[8] u, s32[] i)", 0),
    ("f32[8,6] dynamic-update-slice(f32[8,6] p, f32[8,2] u, s32[] i, s32[] j)", 1),
    ("f32[8,2] dynamic-slice(f32[8,6] p, s32[] i, s32[] j), dynamic_slice_sizes={8,2}", 1),
    ("f32[8,6] dynamic-slice(f32[8,6] p, s32[] i, s32[] j), dynamic_slice_sizes={8,6}", 0),
    ("f32[5,8,2] gather(f32[8,6] p, s32[5,2] i), offset_dims={1,2}, collapsed_slice_dims={}, "
     "start_index_map={0,1}, index_vector_dim=1, slice_sizes={8,2}", 1),
]
# fmt: on


def idle(m: IndexingMap) -> list[str]:
    """Return the runtime variables of a map on whose values nothing depends.

    XLA's maps of one op keep a start that is clamped to one value; so do ours, if the program does
    not give it as a constant.  Bounds narrower than the clamp exclude values of the source: these
    variables are needed.
    """
    needed = {v for e in (*m.results, *[c.expr for c in m.constraints]) for v in e.variables()}
    needed |= {rt.variable for rt in m.runtime if rt.clamp not in (None, rt.variable.bounds)}
    for _ in m.runtime:
        for rt in m.runtime:
            if rt.variable in needed:
                needed |= {v for e in rt.index for v in e.variables()}
    return [
        f"{rt.name} of {m}"
        for rt in m.runtime
        if rt.variable not in needed and not (rt.is_fixed and not rt.is_constant)
    ]


def require_needed(answers: Iterable[Answer]) -> None:
    require_needed_maps(m for answer in answers for maps in answer.maps for m in maps)


def require_needed_maps(maps: Iterable[IndexingMap]) -> None:
    assert [text for m in maps for text in idle(m)] == []


def answers(instruction: Instruction) -> Iterator[Answer]:
    """Yield the answers of all queries about one instruction."""
    outputs = range(len(leaves(instruction.shape)))
    inputs = range(len(instruction.operands))
    for options in OPTIONS:
        for k in outputs:
            yield indexing.output_to_input(instruction, k, **options)
            yield indexing.to_parameters(instruction, k, **options)
            yield device_maps(instruction, k, **options)
            yield device_maps_to_parameters(instruction, k, **options)
        for k in inputs:
            yield indexing.input_to_output(instruction, k, **options)
            yield device_input_to_output(instruction, k, **options)


def fuse(text: str) -> Instruction:
    """Return a fusion of an op with copies of its operands and of its result."""
    shape = text[: text.index(text[: operands_start(text)].rpartition(" ")[2]) - 1]
    given = list(operands(text))
    words = set(re.findall(r"\w+", text))
    lines = [c for c in re.split(r"(?<=})\n", COMPUTATIONS.strip()) if c.split()[0] in words]
    lines.append("fused {")
    for k, (each, name) in enumerate(given):
        lines.append(f"{name}_ = {each} parameter({k})  {name} = {each} copy({name}_)")
    lines += [f"inner = {text}", f"ROOT copied = {shape} copy(inner) }}", "ENTRY e {"]
    lines += [f"{name} = {each} parameter({k})" for k, (each, name) in enumerate(given)]
    names = ", ".join(name for _, name in given)
    lines.append(f"ROOT outer = {shape} fusion({names}), kind=kLoop, calls=fused }}")
    return hlo.parse("\n".join(lines)).entry.root


def with_constant_starts(text: str) -> Instruction:
    """Return the instruction with constants in place of its integer operands."""
    entry = str(instruction_of(text).module)
    text = re.sub(r"(s32\[[\d,]*\]) parameter\(\d+\)", r"\1 constant(0)", entry)
    return hlo.parse(text).entry.root


@CHECKS.of(ALL)
def answers_about_an_op(sample: Sample) -> None:
    require_needed(answers(sample.instruction))


@CHECKS.of(MAPPED)
def answers_about_a_fusion_of_copies(sample: Sample) -> None:
    root = fuse(sample.text)
    require_needed(answers(root))
    require_needed_maps(m for _, maps in indexing.grouped(root).items() for m in maps)


@pytest.mark.parametrize("opcode", ALL)
def test_no_answer_about_a_sample_has_an_idle_runtime_variable(opcode: str) -> None:
    CHECKS.check(opcode)


@pytest.mark.parametrize(("text", "count"), FILLED)
def test_starts_of_windows_that_fill_a_dimension_are_no_variables(text: str, count: int) -> None:
    """Through a fusion, and if they are constants; otherwise the maps of the op name them."""
    operand = int("update" in text)
    (through,) = indexing.to_parameters(fuse(text)).maps[operand]
    assert len(through.runtime) == count
    require_needed(answers(fuse(text)))
    (read,) = indexing.output_to_input(with_constant_starts(text)).maps[operand]
    assert all(not rt.is_fixed for rt in read.runtime)
    require_needed(answers(with_constant_starts(text)))
    (own,) = indexing.output_to_input(instruction_of(text)).maps[operand]
    assert sum(not rt.is_fixed for rt in own.runtime) == count
    assert len(own.runtime) == len(own.results)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_answer_about_an_example_has_an_idle_runtime_variable(path: Path) -> None:
    roots = [computation.root for computation in hlo.load(path).computations.values()]
    for instruction in sampled(roots, path.name):
        require_needed(answers(instruction))
        for options in OPTIONS:
            groups = indexing.grouped(instruction, **options)
            require_needed_maps(m for _, maps in groups.items() for m in maps)
            require_needed([epilogue(instruction, **options)])


FIXED = RuntimeVariable(Variable("rt0", 0, 0), "i", (), (0, 0))
D = Variable("d0", 0, 7)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_composition_with_an_identity_has_no_fixed_runtime_variable(
    order: tuple[int, int],
) -> None:
    """As every other composition: no map is returned as it is if it has one."""
    identity = IndexingMap.of([D], [D.as_expr()])
    fixed = IndexingMap.of([D], [7 - D.as_expr()], runtime=[FIXED])
    pair = identity, fixed
    composite = pair[order[0]].then(pair[order[1]])
    assert composite == IndexingMap.of([D], [7 - D.as_expr()])


def test_a_value_that_decides_whether_an_element_is_read_is_kept() -> None:
    """A scatter drops an update whose index is out of bounds, here any index but zero."""
    text = """f32[1,4] scatter(f32[1,4] p, s32[3,1] i, f32[3,4] u), to_apply=add,
      update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
      index_vector_dim=1"""
    (read,) = indexing.output_to_input(instruction_of(text)).maps[2]
    (rt,) = read.runtime
    assert rt.variable.bounds == (0, 0)
    assert not idle(read)
