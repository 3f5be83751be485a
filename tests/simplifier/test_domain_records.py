"""A record of the laws changes no answer, though some steps are only taken one by one for it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplifier import laws, trace
from simplifier.atoms import Variable
from simplifier.constraints import FALSE, Constraint
from simplifier.domain import tighten
from simplifier.refine import refine, tightened_exactly
from tests.oracles import boxes, constraint_lists, fuzz, holds, points


@st.composite
def bounds_of_variables(draw: st.DrawFn, box: tuple[Variable, ...]) -> list[Constraint]:
    """Constraints on multiples of single variables, some of them unsatisfiable."""
    small = st.integers(-12, 12)
    bounded = []
    for _ in range(draw(st.integers(0, 4))):
        factor = draw(st.integers(-3, 3).filter(bool))
        lower = draw(small)
        expr = draw(st.sampled_from(box)) * factor + draw(small)
        bounded.append(Constraint(expr, lower, lower + draw(st.integers(-1, 20))))
    return bounded


@pytest.mark.parametrize("coupled", [False, True])
@fuzz(200)
@given(st.data(), boxes(empty=True))
def test_a_record_does_not_change_a_domain(
    coupled: bool, data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    constraints = data.draw(bounds_of_variables(box))
    if coupled:
        constraints += data.draw(constraint_lists(box))
    domain = tighten(box, constraints)
    with trace.record_laws():
        assert tighten(box, constraints) == domain
    if domain.constraints == (FALSE,):
        assert coupled or not any(holds(constraints, point) for point in points(box))
    elif not coupled:
        inside = [point for point in points(box) if holds(constraints, point)]
        assert not domain.constraints
        assert len(inside) == len(list(points(domain.variables)))
        for before, now in zip(box, domain.variables, strict=True):
            assert {point[before] for point in inside} == {*range(now.lower, now.upper + 1)}


@fuzz(400)
@given(st.data(), boxes(empty=True))
def test_a_record_does_not_change_an_exact_domain(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    constraints = data.draw(constraint_lists(box, max_count=4))
    domain = tightened_exactly(box, constraints)
    with trace.record_laws():
        assert tightened_exactly(box, constraints) == domain


@fuzz(200)
@given(st.data(), boxes())
def test_records_of_a_refined_domain_are_true(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    domain = tighten(box, data.draw(constraint_lists(box, max_count=4)))
    with trace.record_laws() as applied:
        refine(domain.variables, domain.constraints, ())
    for record in [r for r in applied if r.law in (laws.REFINE_BOUNDS, laws.DROP_IMPLIED)]:
        for point in points(domain.variables):
            before, after = is_true(record.before, point), is_true(record.after, point)
            assert before <= after, record
            assert before == after or record.law is laws.REFINE_BOUNDS, record


def is_true(conjunction: str, point: Mapping[Variable, int]) -> bool:
    """Evaluate a text like ``d0 + d1 in [0, 4] and d0 mod 2 in [1, 1]``."""
    named = {v.name: value for v, value in point.items()}
    for each in conjunction.split(" and ") if conjunction != "true" else ():
        expr, bounds = each.rsplit(" in ", 1)
        value = eval(
            expr.replace("floordiv", "//").replace("mod", "%"), {"__builtins__": {}}, named
        )
        lower, upper = eval(bounds, {"__builtins__": {}})
        if not lower <= value <= upper:
            return False
    return True
