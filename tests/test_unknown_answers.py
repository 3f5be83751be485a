"""Reasons and repairs of `docs/unknown.md`: each row has its reason, a repair removes it."""

import re

import pytest

import hlo
import indexing
from tests.test_docs import ROOT

PAGE = (ROOT / "docs" / "unknown.md").read_text()
ROWS = [row.split("|")[1].strip() for row in re.findall(r"^\|.*\|$", PAGE, re.M)][2:]

SCATTER = """
last { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT r = f32[] copy(y) }
ENTRY e {
  p = f32[8] parameter(0)
  i = s32[3,1] parameter(1)
  u = f32[3] parameter(2)
  ROOT s = f32[8] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=false, to_apply=last
}"""
SORT = """
less { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT r = pred[] constant(false) }
ENTRY e { p = f32[8] parameter(0)  ROOT s = f32[8] sort(p), dimensions={0}, to_apply=less }"""
CONDITIONAL = """
left { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }
right { x = f32[4] parameter(0)  ROOT z = f32[4] reverse(x), dimensions={0} }
ENTRY e {
  n = s32[] parameter(0)
  p = f32[4] parameter(1)
  two = s32[] constant(2)
  which = s32[] and(n, two)
  ROOT c = f32[4] conditional(which, p, p), branch_computations={left, right}
}"""
EXCHANGE = """
ENTRY e {
  p = f32[4,6] parameter(0)
  ROOT a = f32[4,6] all-to-all(p), replica_groups={{0,1}}, dimensions={0}
}"""
UPDATE = """
ENTRY e {
  p = f32[8,8] parameter(0)
  u = f32[2,2] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[8,8] dynamic-update-slice(p, u, i, i)
}"""
WHOLE = """
ENTRY e {
  p = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT r = f32[8] dynamic-slice(p, i), dynamic_slice_sizes={8}
}"""
GROUPS = """
ENTRY e {
  rows = f32[6,4] parameter(0)
  weights = f32[3,4,5] parameter(1)
  sizes = s32[3] parameter(2)
  ROOT r = f32[6,5] ragged-dot(rows, weights, sizes), lhs_contracting_dims={1},
    rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
}"""
UNSIZED = "ENTRY e { p = f32[?] parameter(0)  ROOT r = f32[?] reverse(p), dimensions={0} }"
OWN = "ENTRY e { p = f32[8] parameter(0)  ROOT r = f32[8] my-new-op(p) }"
TARGET = (
    'ENTRY e { p = f32[8] parameter(0)  ROOT r = f32[8] custom-call(p), custom_call_target="mine" }'
)
TRITON = TARGET.replace("mine", "__gpu$xla.gpu.triton")
SHUFFLE = "ENTRY e { p = f32[8] parameter(0)  ROOT r = f32[8] shuffle(p) }"

# fmt: off
REASONS = {
    "no maps are defined for this opcode":             OWN,
    "no rule is registered for the target":            TARGET,
    "a Triton kernel computes pointers":               TRITON,
    "has a dimension of unknown size":                 UNSIZED,
    "has no published semantics":                      SHUFFLE,
    "included; `exact` leaves them out":               UPDATE,
    "a start index is clamped to 0":                   WHOLE,
    "an update may replace the element":               SCATTER,
    "only the element that is reduced last is needed": SCATTER,
    "the order of the elements depends on their values": SORT,
    "the executed branch depends on data":             CONDITIONAL,
    "the groups of rows depend on runtime values":     GROUPS,
    "depend on the device":                            EXCHANGE,
}
# fmt: on
OF_LOOPS = {
    "the loop's exit depends on data",
    "an index is not affine in the number of the iteration",
    "budget",
}
"""Rows whose reasons `tests/dataflow` tests, with loops and large programs."""
OF_KERNELS = {
    "a kernel is assumed to use all elements of the blocks that it loads",
    "the kernel is bytecode",
}
"""Rows whose reasons `tests/kernels` tests, with kernels of Mosaic."""


def reasons(answer: indexing.Answer) -> str:
    unknown = [str(each) for each in answer.unknown if each is not None]
    return "\n".join([*unknown, *[str(r) for of in answer.reasons for own in of for r in own]])


def answer_of(text: str) -> indexing.Answer:
    return indexing.output_to_input(hlo.parse(text).entry.root)


def test_each_row_is_tested() -> None:
    assert set(ROWS) == REASONS.keys() | OF_LOOPS | OF_KERNELS


@pytest.mark.parametrize("reason", REASONS)
def test_a_program_has_the_reason(reason: str) -> None:
    assert reason in reasons(answer_of(REASONS[reason]))


def test_repairs_remove_the_reason() -> None:
    sized = answer_of(UNSIZED.replace("?", "<=8"))
    unique = answer_of(SCATTER.replace("unique_indices=false", "unique_indices=true"))
    pieces = indexing.output_to_input(hlo.parse(UPDATE).entry.root, exact=True)
    branch = indexing.output_to_input(hlo.parse(CONDITIONAL).computations["left"].root)
    exchange = hlo.parse(EXCHANGE).entry.root
    devices = indexing.device_maps(exchange, num_replicas=2, num_partitions=1)
    known = GROUPS.replace("parameter(2)", "constant({2, 1, 3})")
    groups = indexing.to_parameters(hlo.parse(known).entry.root)
    assert reasons(sized) == reasons(pieces) == reasons(branch) == reasons(devices) == ""
    assert reasons(groups) == ""
    assert "reduced last" not in reasons(unique)


def test_an_unknown_has_no_truth_value() -> None:
    (unknown,) = answer_of(UNSIZED).unknown
    with pytest.raises(indexing.UndecidedError):
        bool(unknown)
