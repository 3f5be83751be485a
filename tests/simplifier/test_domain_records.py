"""A record of the laws changes no answer, though some steps are only taken one by one for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplifier import trace
from simplifier.atoms import Variable
from simplifier.constraints import FALSE, Constraint
from simplifier.domain import tightened
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
    domain = tightened(box, constraints)
    with trace.recorded():
        assert tightened(box, constraints) == domain
    if domain.constraints == (FALSE,):
        assert coupled or not any(holds(constraints, point) for point in points(box))
    elif not coupled:
        inside = [point for point in points(box) if holds(constraints, point)]
        assert not domain.constraints
        assert len(inside) == len(list(points(domain.variables)))
        for before, now in zip(box, domain.variables, strict=True):
            assert {point[before] for point in inside} == {*range(now.lower, now.upper + 1)}
