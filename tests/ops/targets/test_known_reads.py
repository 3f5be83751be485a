"""Custom calls whose reads are known, and whose values are not or are those of the operand."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from indexing.execution import random_inputs, run
from tests.ops.samples import parse_sample, related_pairs


def test_a_value_stays_the_same_in_a_pinned_buffer() -> None:
    module = hlo.parse("""ENTRY e {
      p = f32[4] parameter(0)
      b = b(f32[4]) custom-call(p), custom_call_target="Pin",
        output_to_operand_aliasing={{}: (0, {})}
      ROOT u = f32[4] custom-call(b), custom_call_target="Unpin",
        output_to_operand_aliasing={{}: (0, {})}
    }""")
    assert hlo.verify(module) == []
    ((read,),) = indexing.to_parameters(module.entry.root).maps
    assert read.is_identity
    (inputs,) = random_inputs(module.entry, 0)
    assert (run(module, [inputs]) == inputs).all()


def test_candidates_of_an_approximate_choice_are_along_one_dimension() -> None:
    text = (
        "(f32[2,3,7], s32[2,3,7]) custom-call(f32[2,9,7] p, s32[2,9,7] q, f32[] r, s32[] s), "
        'custom_call_target="PartialReduce", backend_config={"log2_reduction": 2, "reduction_dim": 1, "to_apply_type": "comparator"}'
    )
    for output in (0, 1):
        answer = indexing.output_to_input(parse_sample(text).instruction, output)
        reads = [str(m).partition(", domain")[0] for (m,) in answer.maps]
        assert reads == ["(d0, d1, d2)[s0] -> (d0, s0, d2)"] * 2 + ["(d0, d1, d2) -> ()"] * 2
        assert {m.grade for maps in answer.maps for m in maps} == {"may"}
    other = text.replace('"reduction_dim": 1', '"reduction_dim": 2')
    (read,) = indexing.output_to_input(parse_sample(other).instruction).maps[0]
    assert len(read.ranges) == 3


REGION = r"""HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=3]>}}
body { a = s32[2,5] parameter(0)  b = s32[4] parameter(1)  c = s32[2,5] negate(a)
  ROOT t = (s32[2,5], s32[4]) tuple(c, b) }
ENTRY e {
  p = s32[4,5] parameter(0)  q = s32[4] parameter(1)
  l = (s32[2,5], s32[4]) custom-call(p, q), custom_call_target="xla.sdy.GlobalToLocalShape",
    frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>, <@mesh, [{}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\", \"y\"}>"}
  l0 = s32[2,5] get-tuple-element(l), index=0  l1 = s32[4] get-tuple-element(l), index=1
  c = (s32[2,5], s32[4]) call(l0, l1), to_apply=body
  c0 = s32[2,5] get-tuple-element(c), index=0  c1 = s32[4] get-tuple-element(c), index=1
  ROOT g = (s32[4,5], s32[4]) custom-call(c0, c1), custom_call_target="xla.sdy.LocalToGlobalShape",
    frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"x\", \"y\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>, <@mesh, [{}]>]>"}
}"""


def test_a_manual_region_reads_its_operands_one_by_one() -> None:
    """Every read that an execution on six devices shows is one of the maps."""
    module = hlo.parse(REGION)
    local = module.entry["l"]
    ((first,), second) = indexing.output_to_input(local).maps
    assert str(first) == (
        "(d0, d1)[s0] -> (d0 + s0 * 2, d1), domain: d0 in [0, 1], d1 in [0, 4], s0 in [0, 1]"
    )
    assert (first.grade, second) == ("may", ())
    (none, (same,)) = indexing.output_to_input(local, 1).maps
    assert (none, same.is_identity, same.grade) == ((), True, "exact")
    inputs = [np.arange(20, dtype=np.int32).reshape(4, 5), np.arange(4, dtype=np.int32)]
    before = run(module, inputs)
    reads = [indexing.to_parameters(module.entry.root, output).maps for output in (0, 1)]
    for operand, array in enumerate(inputs):
        for place in np.ndindex(array.shape):
            changed = [each.copy() for each in inputs]
            changed[operand][place] += 100
            for output, (old, new) in enumerate(zip(before, run(module, changed), strict=True)):
                pairs = {p for m in reads[output][operand] for p in related_pairs(m, [])}
                assert {(tuple(map(int, i)), place) for i in np.argwhere(old != new)} <= pairs
        assert any(reads[output][operand] == () for output in (0, 1))


LEAVING = r"""HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=3]>}}
ENTRY e {
  p = s32[4,5] parameter(0)
  l = s32[4,5] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape",
    frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\", \"y\"}>"}
  c = s32[4,5] reverse(l), dimensions={1}
  ROOT g = s32[GLOBAL] custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape",
    frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"x\", \"y\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [DIMS]>]>"}
}"""


@pytest.mark.parametrize(
    ("size", "dims", "read"),
    [
        ("8,5", r"{\"x\"}, {}", "(d0 mod 4, -d1 + 4)"),
        ("12,10", r"{\"y\"}, {\"x\"}", "(d0 mod 4, -(d1 mod 5) + 4)"),
        ("24,5", r"{\"x\",\"y\"}, {}", "(d0 mod 4, -d1 + 4)"),
        ("4,5", "{}, {}", "(d0, -d1 + 4)"),
    ],
)
def test_an_array_that_leaves_a_region_has_the_elements_of_its_parts(
    size: str, dims: str, read: str
) -> None:
    """Poke each element of a replicated argument, on six devices."""
    module = hlo.parse(LEAVING.replace("GLOBAL", size).replace("DIMS", dims))
    (m,) = indexing.to_parameters(module.entry.root).maps[0]
    (alone,) = indexing.output_to_input(module.entry.root).maps[0]
    assert (m.grade, alone.grade) == ("exact", "exact")
    assert str(m).startswith(f"(d0, d1) -> {read}, domain")
    whole = np.arange(20, dtype=np.int32).reshape(4, 5)
    (before,) = run(module, [whole])
    for place in np.ndindex(4, 5):
        changed = whole.copy()
        changed[place] += 100
        (after,) = run(module, [changed])
        moved = {tuple(map(int, i)) for i in np.argwhere(before != after)}
        assert moved == {i for i, j in related_pairs(m, []) if j == place}
        assert moved


@pytest.mark.parametrize(
    ("size", "dims"),
    [
        ("7,5", r"{\"x\"}, {}"),  # the last part is padded
        ("8,5", r"{\"y\"}, {}"),  # of three parts
        ("8,5", r"{}, {}"),
        ("8,5", r"{\"x\"}, {}]>, <@mesh, [{}"),  # shardings of two arrays
    ],
)
def test_parts_that_do_not_divide_an_array_may_be_in_any_place(size: str, dims: str) -> None:
    module = hlo.parse(LEAVING.replace("GLOBAL", size).replace("DIMS", dims))
    (m,) = indexing.output_to_input(module.entry.root).maps[0]
    assert (m.grade, str(m.results[0]), m.ranges[0].upper) == ("may", "s0", 3)


def test_a_border_with_other_numbers_of_arrays_may_read_all() -> None:
    text = '(f32[2], f32[2]) custom-call(f32[4] p), custom_call_target="xla.sdy.GlobalToLocalShape"'
    answer = indexing.output_to_input(parse_sample(text).instruction, 1)
    assert [m.grade for maps in answer.maps for m in maps] == ["may"]
