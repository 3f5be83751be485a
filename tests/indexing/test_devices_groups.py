"""Groups of devices: their forms in text, and the formulas that are found for them."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

from collections.abc import Sequence

import pytest

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
]

WRONG = [
    # text                                   column  says
    ("{{0,-1}}",                             5,      "no device has this number"),
    ("{{0},{}}",                             6,      "there are 0"),
    ("[2,3]<=[8]",                           8,      "these are 8 devices, the groups have 6"),
    ("[8]<=[8]",                             1,      "expected the number of groups and their size"),
    ("[2,4]<=[2,4]T(0)",                     14,     "no permutation of 2 dimensions"),
    ("[2,4]<=[2,4]T(0,0)",                   14,     "no permutation of 2 dimensions"),
    ("[2,0]<=[2,0]",                         4,      "expected a size from 1 to 1048576"),
    ("[2048,1024]<=[2097152]",               15,     "expected a size from 1 to 1048576"),
    ("[2048,1024]<=[2048,1024]",             14,     "more than 1048576 devices"),
    ("mesh['x'=8] {'y'}",                    14,     "the axes are x"),
    ("mesh['x'=8] {}",                       14,     "expected an axis of the mesh"),
    ("mesh['x'=2,'x'=4] {'x'}",              12,     "expected a new name in single quotes"),
    ("mesh['x'=4], device_ids=(0,1) {'x'}",  25,     "no permutation of the numbers of 4 devices"),
    ("mesh['x'=8] {'x':(1)8}",               14,     "no part of an axis of size 8"),
    ("mesh['x'=8] {'x':(3)2}",               14,     "no part of an axis of size 8"),
    ("mesh['x'=8] {'x','x':(1)2}",           18,     "it overlaps 'x'"),
    ("mesh['x'=6] {'x':(1)2,'x':(3)2}",      23,     "it and 'x':(1)2 are no parts of one axis"),
]
# fmt: on


@pytest.mark.parametrize("text, groups", FORMS, ids=[text for text, _ in FORMS])
def test_groups_have_several_forms(text: str, groups: tuple[tuple[int, ...], ...]) -> None:
    found = replica_groups.parse(text)
    assert found.lists() == groups
    assert replica_groups.parse(replica_groups.print(found)) == found


@pytest.mark.parametrize("text, column, says", WRONG, ids=[row[0] for row in WRONG])
def test_wrong_groups_are_pointed_at(text: str, column: int, says: str) -> None:
    with pytest.raises(HloError) as error:
        replica_groups.parse(text)
    assert (error.value.span.column, error.value.label) == (column, says)


def test_pairs_are_read_and_printed() -> None:
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
    ([(7, 6, 5), (4, 3, 2)],            1),              # backward
    ([(1, 2, 3, 0), (5, 6, 7, 4)],      1),              # rings
    ([(3,), (8,), (13,)],               1),              # some of the devices, 5 apart
    ([(0, 2), (8, 10)],                 1),
    ([(6,)],                            1),
    ([(0, 5), (4, 1)],                  2),              # nothing in common
    ([(0, 1, 3, 2)],                    4),              # two runs at either end
    ([(0, 1, 3, 2), (4, 5, 7, 6)],      4),              # the same two runs in every row
    ([(2, 4, 5, 7)],                    2),              # a formula, but none to read backward
    ([(0, 1), (2, 3, 4)],               2),              # two sizes
]
# fmt: on


def meant(rows: Sequence[tuple[int, ...]]) -> set[tuple[int, int, int, int]]:
    """Device and place, and for each of them device and place of every member of its row."""
    return {
        (start, q, end, p)
        for row in rows
        for q, start in enumerate(row)
        for p, end in enumerate(row)
    }


@pytest.mark.parametrize("rows, count", ROWS, ids=[str(rows) for rows, _ in ROWS])
def test_rows_are_formulas(rows: list[tuple[int, ...]], count: int) -> None:
    device = Variable("device", 0, max(max(row) for row in rows) + 2)
    told: list[tuple[int, int, int, int]] = []
    found = list(links([(row, row) for row in rows]))
    for link in found:
        row, place, constraints = link.start.position(device)
        for number in range(device.upper + 1):
            at = {device: number}
            if all(c.lower <= c.expr.value(at) <= c.upper for c in constraints):
                for p in range(link.end.first, link.end.first + link.end.width):
                    end = link.end.device(row.value(at), p).constant
                    told.append((number, place.value(at), end, p))
    assert len(told) == len(set(told))
    assert set(told) == meant(rows)
    assert len(found) == count


def test_what_is_no_formula_is_not_taken_for_one() -> None:
    assert strided_group([(0, 1, 3)]) is None
    assert strided_group([(0, 1), (3, 2)]) is None
    twice = strided_group([(4,), (4,)])
    assert twice is not None
    assert not twice.is_invertible
