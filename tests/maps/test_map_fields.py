"""The fields of maps: read-only, checked where they come from elsewhere, and part of the value."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest

from indexing import Constraint, IndexingMap
from indexing.maps.spaces import dims
from simplifier import Variable, as_expr

DIMS = dims((4, 5))
MAP = IndexingMap.of(DIMS, [DIMS[0] * 5 + DIMS[1]], constraints=[Constraint(DIMS[0] % 2, 0, 0)])


@pytest.mark.parametrize("field", [field.name for field in fields(MAP)])
def test_fields_are_read_only(field: str) -> None:
    value = getattr(MAP, field)
    with pytest.raises(FrozenInstanceError):
        setattr(MAP, field, ())
    with pytest.raises(FrozenInstanceError):
        delattr(MAP, field)
    assert getattr(MAP, field) is value


def test_there_are_no_other_attributes() -> None:
    with pytest.raises((AttributeError, TypeError)):
        setattr(MAP, "note", "")  # noqa: B010  # not an attribute, for type checkers either
    assert not hasattr(MAP, "__dict__")


@pytest.mark.parametrize("duplicate", [copy, deepcopy, replace])
def test_copies_are_equal(duplicate: Any) -> None:
    again = duplicate(MAP)
    assert (again, hash(again)) == (MAP, hash(MAP))
    assert type(again) is IndexingMap


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("dims", dims((4, 6))),
        ("ranges", (Variable("s0", 0, 2),)),
        ("results", (as_expr(0),)),
        ("constraints", ()),
        ("grade", "may"),
    ],
)
def test_each_field_is_part_of_the_value(field: str, other: Any) -> None:
    box = replace(MAP, constraints=(), results=(as_expr(DIMS[0]),))
    values = {name: getattr(box, name) for name in IndexingMap.__match_args__}
    if field == "dims":
        values["results"] = (as_expr(other[0]),)
    if field == "constraints":
        box = replace(box, constraints=MAP.constraints)
    assert IndexingMap(**values | {field: other}) != box
    assert box != 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((3, (), (), ()), "`dims` must be a sequence of variables, not 3"),
        ((list(DIMS), (), (), ()), r"`dims` must be a tuple, not \[Variable"),
        ((DIMS, (), (), (3,)), r"`results` must be a sequence of expressions, not \(3,\)"),
        ((DIMS, (), (), (), (), "most"), "`grade` must be 'exact' or 'may', not 'most'"),
        ((DIMS, DIMS, (), ()), "need distinct names"),
        ((DIMS[:1], (), (), (as_expr(DIMS[1]),)), "is not one of the map's variables"),
    ],
)
def test_wrong_fields_are_refused(values: tuple[Any, ...], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        IndexingMap(*values)
