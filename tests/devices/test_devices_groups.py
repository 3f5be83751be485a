"""Replica groups: parsing of their text forms, and formulas of device numbers."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

from collections.abc import Sequence

import pytest

import hlo
import indexing
from hlo import HloError
from indexing.devices.groups import replica_groups, source_target_pairs
from indexing.devices.strided_groups import links, strided_group
from simplifier.atoms import Variable

# ---------------------------------------------------------------- text

# fmt: off
FORMS = [
    # text                                             groups
    ("{}",                                             ()),
    ("{{0,1},{2,3}}",                                  ((0, 1), (2, 3))),
    ("{ {2, 1} , {0} }",                               ((2, 1), (0,))),
    ("[2,4]<=[8]",                                     ((0, 1, 2, 3), (4, 5, 6, 7))),
    ("[4,2]<=[2,4]T(1,0)",                             ((0, 4), (1, 5), (2, 6), (3, 7))),
    ("[2,3]<=[3,2]T(1,0)",                             ((0, 2, 4), (1, 3, 5))),
    ("[1,8]<=[2,2,2]T(2,1,0)",                         ((0, 4, 2, 6, 1, 5, 3, 7),)),
    ("[2,3]<=[2,3]T(0,1)",                             ((0, 1, 2), (3, 4, 5))),
    ("mesh['x'=4] {'x'}",                              ((0, 1, 2, 3),)),
    ("mesh['x'=2,'y'=3]{'y'}",                         ((0, 1, 2), (3, 4, 5))),
    ("mesh['x'=2,'y'=3] {'x'}",                        ((0, 3), (1, 4), (2, 5))),
    ("mesh['x'=2,'y'=3] {'y','x'}",                    ((0, 3, 1, 4, 2, 5),)),
    ("mesh['x'=2,'y'=1] {'y'}",                        ((0,), (1,))),
    ("mesh['x'=2,'y'=2] {0}",                          ((0, 2), (1, 3))),
    ("mesh['x'=8] {'x':(1)2}",                         ((0, 4), (1, 5), (2, 6), (3, 7))),
    ("mesh['x'=8] {'x':(4)2}",                         ((0, 1), (2, 3), (4, 5), (6, 7))),
    ("mesh['x'=8] {'x':(4)2,'x':(1)2}",                ((0, 4, 1, 5), (2, 6, 3, 7))),
    ("mesh['x'=12] {'x':(2)2}",                        ((0, 3), (1, 4), (2, 5), (6, 9), (7, 10), (8, 11))),
    ("mesh['x'=2,'y'=2], device_ids=(3,1,2,0) {'y'}",  ((3, 1), (2, 0))),
    ("mesh['x'=2,'y'=3], device_ids=([3,2]T(1,0)) {'y'}", ((0, 2, 4), (1, 3, 5))),
    ("mesh['x'=2,'y'=3], device_ids=([6]) {'x'}",      ((0, 3), (1, 4), (2, 5))),
]

INVALID = [
    # text                                   column  label
    ("{{0,-1}}",                             5,      "a device ID must not be negative"),
    ("{{0},{}}",                             6,      "the list has 0"),
    ("[2,3]<=[8]",                           8,      "[2,3] has 6 elements, but <=[8] has 8"),
    ("[8]<=[8]",                             1,      "expected [number of groups,devices per group]"),
    ("[2,4]<=[2,4]T(0)",                     14,     "expected a permutation of 2 dimensions"),
    ("[2,4]<=[2,4]T(0,0)",                   14,     "expected a permutation of 2 dimensions"),
    ("[2,0]<=[2,0]",                         4,      "expected a size from 1 to 1048576"),
    ("[2048,1024]<=[2097152]",               15,     "expected a size from 1 to 1048576"),
    ("[2048,1024]<=[2048,1024]",             14,     "more than 1048576 devices"),
    ("mesh['x'=8] {'y'}",                    14,     "the mesh has no axis `y`: its axes are x=8"),
    ("mesh['x'=8] {}",                       14,     "expected an axis of the mesh"),
    ("mesh['x'=2,'x'=4] {'x'}",              12,     "axis `x` is named twice"),
    ("mesh['x'=4], device_ids=(0,1) {'x'}",  25,     "2 devices for a mesh of 4: x=4"),
    ("mesh['x'=2], device_ids=(0,2) {'x'}",  25,     "expected a permutation of the device IDs 0 to 1"),
    ("mesh['x'=4], device_ids=([2,2]T(0,0)) {'x'}", 32, "expected a permutation of 2 dimensions"),
    ("mesh['x'=4], device_ids=([2,3]) {'x'}", 25,    "6 devices for a mesh of 4"),
    ("mesh['x'=8] {'x':(1)8}",               14,     "x:(1)8 is the whole axis x=8"),
    ("mesh['x'=8] {'x':(3)2}",               14,     "the sub-axis x:(3)2 does not divide x=8: 8 is not a multiple of 6"),
    ("mesh['x'=8] {'x','x':(1)2}",           18,     "the sub-axes x and x:(1)2 overlap"),
    ("mesh['x'=6] {'x':(1)2,'x':(3)2}",      23,     "the sub-axes x:(1)2 and x:(3)2 do not divide each other"),
]
# fmt: on


@pytest.mark.parametrize("text, groups", FORMS, ids=[text for text, _ in FORMS])
def test_each_form_denotes_lists_and_survives_printing(
    text: str, groups: tuple[tuple[int, ...], ...]
) -> None:
    parsed = replica_groups.parse(text)
    assert parsed.lists() == groups
    assert replica_groups.parse(replica_groups.print(parsed)) == parsed


@pytest.mark.parametrize("text, column, label", INVALID, ids=[row[0] for row in INVALID])
def test_invalid_groups_raise_at_their_column(text: str, column: int, label: str) -> None:
    with pytest.raises(HloError) as error:
        replica_groups.parse(text)
    assert (error.value.span.column, error.value.label) == (column, label)


def test_source_target_pairs_are_parsed_and_printed() -> None:
    pairs = source_target_pairs.parse("{ {0,1}, {2 , 0} }")
    assert pairs == ((0, 1), (2, 0))
    assert source_target_pairs.print(pairs) == "{{0,1},{2,0}}"
    with pytest.raises(HloError, match="expected `}`"):
        source_target_pairs.parse("{{0,1,2}}")


# ---------------------------------------------------------------- formulas of rows

# fmt: off
ROWS = [
    # groups                            formulas
    ([(0, 1), (2, 3)],                  1),
    ([(2, 3), (0, 1)],                  1),
    ([(0, 4), (1, 5), (2, 6), (3, 7)],  1),
    ([(0, 4, 2, 6, 1, 5, 3, 7)],        1),
    ([(7, 6, 5), (4, 3, 2)],            1),              # reversed
    ([(1, 2, 3, 0), (5, 6, 7, 4)],      1),              # rings
    ([(3,), (8,), (13,)],               1),              # a subset of the devices, with stride 5
    ([(0, 2), (8, 10)],                 1),
    ([(6,)],                            1),
    ([(0, 5), (4, 1)],                  2),              # no common formula
    ([(0, 1, 3, 2)],                    4),              # two runs at each end
    ([(0, 1, 3, 2), (4, 5, 7, 6)],      4),              # the same two runs in every row
    ([(2, 4, 5, 7)],                    2),              # a formula without inverse
    ([(0, 1), (2, 3, 4)],               2),              # two sizes
]
# fmt: on


def members(rows: Sequence[tuple[int, ...]]) -> set[tuple[int, int, int, int]]:
    """Device and position of each member, with device and position of every member of its row."""
    return {
        (start, q, end, p)
        for row in rows
        for q, start in enumerate(row)
        for p, end in enumerate(row)
    }


@pytest.mark.parametrize("rows, count", ROWS, ids=[str(rows) for rows, _ in ROWS])
def test_links_relate_each_pair_of_a_row_once(rows: list[tuple[int, ...]], count: int) -> None:
    device = Variable("device", 0, max(max(row) for row in rows) + 2)
    related: list[tuple[int, int, int, int]] = []
    formulas = list(links([(row, row) for row in rows]))
    for link in formulas:
        row, position, constraints = link.start.locate(device)
        for number in range(device.upper + 1):
            at = {device: number}
            if all(c.lower <= c.expr.value(at) <= c.upper for c in constraints):
                for p in range(link.end.first, link.end.first + link.end.width):
                    end = link.end.device(row.value(at), p).constant
                    related.append((number, position.value(at), end, p))
    assert len(related) == len(set(related))
    assert set(related) == members(rows)
    assert len(formulas) == count


def test_irregular_rows_have_no_formula_and_repeated_devices_no_inverse() -> None:
    assert strided_group([(0, 1, 3)]) is None
    assert strided_group([(0, 1), (3, 2)]) is None
    twice = strided_group([(4,), (4,)])
    assert twice is not None
    assert not twice.is_invertible


def test_the_devices_of_a_mesh_are_part_of_the_groups() -> None:
    groups = "mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}"
    module = hlo.parse(
        f"""HloModule m, num_partitions=8
        add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
        ENTRY e {{ p = f32[4] parameter(0)  ROOT r = f32[4] all-reduce(p), channel_id=1,
          replica_groups={groups}, use_global_device_ids=true, to_apply=add }}"""
    )
    (m,) = indexing.device_maps(module.entry.root).maps[0]
    assert m.at(5, 0).elements().tolist() == [[device, 0] for device in (4, 5, 6, 7)]
