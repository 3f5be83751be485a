"""Groups of known sizes and sorts by known keys: exactly what executions of the kernels need."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from tests.dataflow.test_scatters import grades, judge

GROUPS = """
ENTRY e {{
  x = f32[{left}] parameter(0)  w = f32[{right}] parameter(1)  g = s32[{groups}] {sizes}
  ROOT r = f32[{out}] ragged-dot(x, w, g), {dims}
}}"""
FREE = {
    "left": "5,2",
    "right": "3,2,2",
    "out": "5,2",
    "groups": "3",
    "dims": "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
    "rhs_group_dims={0}",
}
CONTRACTING = {
    "left": "2,5",
    "right": "5,2",
    "out": "3,2,2",
    "groups": "3",
    "dims": "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
}
BATCHES = {
    "left": "2,3,2",
    "right": "2,2,2,1",
    "out": "2,3,1",
    "groups": "2,2",
    "dims": "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, "
    "rhs_contracting_dims={2}, lhs_ragged_dims={1}, rhs_group_dims={0}",
}
BATCHES_CONTRACTING = {
    "left": "2,3,2",
    "right": "2,3,2",
    "out": "2,2,2,2",
    "groups": "2,2",
    "dims": "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
    "rhs_contracting_dims={1}, lhs_ragged_dims={1}",
}
CASES = [
    *[(FREE, sizes) for sizes in ("{2, 2, 1}", "{0, 3, 0}", "{0, 0, 0}", "{5, 0, 0}", "{2, 9, 0}")],
    *[(CONTRACTING, sizes) for sizes in ("{2, 2, 1}", "{0, 3, 1}", "{1, 9, 0}")],
    *[(BATCHES, sizes) for sizes in ("{{1, 2}, {2, 1}}", "{{0, 1}, {3, 0}}")],
    *[(BATCHES_CONTRACTING, sizes) for sizes in ("{{1, 2}, {2, 1}}", "{{0, 1}, {3, 0}}")],
]


@pytest.mark.parametrize(("program", "sizes"), CASES)
def test_groups_of_known_sizes(program: dict[str, str], sizes: str) -> None:
    module = hlo.parse(GROUPS.format(**program, sizes=f"constant({sizes})"))
    answer = judge(module)
    assert not any(grades(answer, k) - {"exact"} for k in (0, 1))


def test_given_sizes_of_groups() -> None:
    given = hlo.parse(GROUPS.format(**FREE, sizes="parameter(2)")).entry.root
    known = hlo.parse(GROUPS.format(**FREE, sizes="constant({2, 2, 1})")).entry.root
    of_known = indexing.to_parameters(known)
    for row in range(5):
        regions = indexing.to_parameters(given).at(row, 0, g=[2, 2, 1])
        for k in (0, 1):
            assert str(regions[k]) == str(of_known.at(row, 0)[k])


def test_sizes_that_are_not_known_or_negative() -> None:
    for sizes in ("parameter(2)", "constant({2, -1, 3})"):
        answer = indexing.to_parameters(hlo.parse(GROUPS.format(**FREE, sizes=sizes)).entry.root)
        assert grades(answer, 0) == grades(answer, 1) == {"may"}


SORTS = """
compare { a = TYPE[] parameter(0)  b = TYPE[] parameter(1)
  c = f32[] parameter(2)  d = f32[] parameter(3)  ROOT r = pred[] compare(a, b), direction=GT }
values { a = TYPE[] parameter(0)  b = TYPE[] parameter(1)
  c = f32[] parameter(2)  d = f32[] parameter(3)  ROOT r = pred[] compare(c, d), direction=GT }
ENTRY e { k = TYPE[DIMS] KEYS  x = f32[DIMS] parameter(0)
  s = (TYPE[DIMS], f32[DIMS]) sort(k, x), dimensions={1}, is_stable=STABLE, to_apply=compare
  ROOT r = f32[DIMS] get-tuple-element(s), index=1 }"""


WHOLE = "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 3]"
"""Every element of a row can come to every place."""


def sort_of(
    keys: str,
    *,
    stable: bool = True,
    kind: str = "s32",
    dims: str = "2,4",
    comparator: str = "compare",
) -> hlo.Module:
    """Return a program that sorts values by keys."""
    text = SORTS.replace("to_apply=compare", f"to_apply={comparator}")
    text = text.replace("KEYS", keys).replace("STABLE", str(stable).lower())
    return hlo.parse(text.replace("TYPE", kind).replace("DIMS", dims))


@pytest.mark.parametrize("kind", ["s32", "u8", "f32"])
@pytest.mark.parametrize(
    ("keys", "stable"),
    [
        ("{{3, 1, 2, 0}, {5, 9, 1, 7}}", False),
        ("{{3, 1, 3, 0}, {5, 5, 5, 5}}", True),
        ("{{0, 1, 2, 3}, {0, 1, 2, 3}}", False),
    ],
)
def test_sorts_by_known_keys_permute(keys: str, stable: bool, kind: str) -> None:
    module = sort_of(f"constant({keys})", stable=stable, kind=kind)
    assert grades(judge(module), 0) == {"exact"}


@pytest.mark.parametrize(
    ("keys", "stable", "comparator"),
    [
        ("constant({{3, 1, 3, 0}, {5, 9, 1, 7}})", False, "compare"),
        ("parameter(1)", True, "compare"),
        ("constant({{3, 1, 2, 0}, {5, 9, 1, 7}})", True, "values"),
    ],
)
def test_several_orders_are_possible(keys: str, stable: bool, comparator: str) -> None:
    root = sort_of(keys, stable=stable, comparator=comparator).entry.root
    assert WHOLE in map(str, indexing.to_parameters(root).maps[0])


def test_a_comparator_that_is_no_order() -> None:
    text = str(sort_of("constant({{3, 1, 3, 0}, {5, 9, 1, 7}})")).replace("GT", "GE")
    assert WHOLE in map(str, indexing.to_parameters(hlo.parse(text).entry.root).maps[0])


def test_given_keys() -> None:
    root = sort_of("parameter(1)", dims="1,4").entry.root
    keys = np.array([[3, 9, 3, 5]])
    regions = [indexing.to_parameters(root).at(0, k, k=keys)[0] for k in range(4)]
    assert [str(region) for region in regions] == ["[0, 1]", "[0, 3]", "[0, 0]", "[0, 2]"]
