"""The image of a map without dimensions as disjoint boxes.

Results that share no variable are independent: the image is the product of the images of its
parts.  The image of a sum of independent terms is found from its coefficients; other parts are
enumerated, or beyond the budget of enumeration counted by ISL.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import gcd, prod
from typing import Final, NamedTuple

import numpy as np

from indexing.maps.independence import connected_variables
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.regions.box_unions import join_boxes
from indexing.maps.regions.boxes import (
    MAX_BOXES,
    Box,
    Progression,
    TooManyBoxes,
    boxes_of_elements,
    progression,
    progressions_of,
)
from indexing.maps.relation import image
from simplifier import exact
from simplifier.atoms import Variable, point_count
from simplifier.constraints import Constraint
from simplifier.exact.elements import distinct_results
from simplifier.linear import Expr
from simplifier.unknown import Unknown

_MAX_PIECES: Final = 64
"""Maximum number of isl's pieces of one image to convert to boxes."""


def image_boxes(m: IndexingMap) -> list[Box] | None:
    """Return the image of a map without dimensions as disjoint boxes, in order of offsets.

    Runtime variables take all values in their bounds.  `None` if the image needs more than
    `MAX_BOXES` boxes, or exceeds the budgets of enumeration and ISL.

    >>> from indexing.maps.text import parse_map
    >>> text = "()[s0, s1] -> (s0 * 4 + s1, s1), domain: s0 in [0, 2], s1 in [0, 1]"
    >>> print(*image_boxes(parse_map(text)))
    [0:9:4, 0] [1:10:4, 1]
    """
    try:
        return _image_boxes(m)
    except TooManyBoxes:
        return None


def _image_boxes(m: IndexingMap) -> list[Box] | None:
    if m.is_known_empty:
        return []
    factors: list[tuple[tuple[int, ...], list[Box]]] = []
    for part in _parts(m):
        boxes = part.boxes()
        if boxes is None or not boxes:
            return boxes
        factors.append((part.places, boxes))
    return product_boxes(factors)


def product_boxes(factors: Sequence[tuple[Sequence[int], Sequence[Box]]]) -> list[Box] | None:
    """Return a product of sets as disjoint boxes in order of offsets; `None` beyond `MAX_BOXES`.

    Args:
        factors: of each set the dimensions of the product, and disjoint boxes.

    >>> column, rows = Box((5,), (1,), (1,)), Box((0,), (4,), (2,))
    >>> print(*product_boxes([([1], [column]), ([0], [rows])]))
    [0:7:2, 5]
    """
    if prod([len(boxes) for _, boxes in factors]) > MAX_BOXES:
        return None
    places = [place for part, _ in factors for place in part]
    order = sorted(range(len(places)), key=places.__getitem__)
    combined: list[Box] = []
    for chosen in product(*[boxes for _, boxes in factors]):
        progressions = [p for box in chosen for p in box.progressions]
        combined.append(Box.of([progressions[k] for k in order]))
    return join_boxes(combined)


class _Factor(NamedTuple):
    """Results that share variables, with these variables and their constraints."""

    places: tuple[int, ...]
    variables: tuple[Variable, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Constraint, ...]

    def boxes(self) -> list[Box] | None:
        """The image as disjoint boxes; without places, the box of rank 0, or none if empty."""
        if not self.places:
            empty = exact.is_empty(self.variables, self.constraints)
            return None if isinstance(empty, Unknown) else [] if empty else [Box((), (), ())]
        if len(self.places) == 1 and not self.constraints:
            line = _sums(self.results[0])
            if line is not None:
                return [Box.of([p]) for p in line]
        relation = exact.Relation((), self.variables, self.results, self.constraints)
        elements = distinct_results(relation)
        if elements is not None:
            return boxes_of_elements(elements)
        hull = _counted_hull(relation, exact.BUDGET)
        return self._pieces() if hull is None else [hull]

    def _pieces(self) -> list[Box] | None:
        """The boxes of ISL's disjoint pieces of the image, if each of them is a box."""
        own = IndexingMap.of((), self.results, ranges=self.variables, constraints=self.constraints)
        pieces = image(own)
        if isinstance(pieces, Unknown) or not 1 < len(pieces) <= _MAX_PIECES:
            return None
        boxes: list[Box] = []
        for piece in pieces:
            own_boxes = image_boxes(piece)
            if own_boxes is None:
                return None
            boxes += own_boxes
        return join_boxes(boxes)


def image_box(relation: exact.Relation, max_points: int, budget: int) -> Box | None:
    """Return all results of an affine relation as one box; `None` if they are not known to be one.

    Args:
        max_points: maximum number of points to enumerate; more are counted by ISL.
        budget: isl operations for each query.

    >>> s0 = Variable("s0", 0, 11)
    >>> print(image_box(exact.Relation((), (s0,), (s0 // 4, s0 % 4), ()), 99, 20_000))
    [0:3, 0:4]
    """
    if len(relation.results) == 1 and not relation.constraints:
        line = _sums(relation.results[0])
        if line is not None:
            return Box.of(line) if len(line) == 1 else None
    points = point_count((*relation.inputs, *relation.hidden))
    if points > max_points:
        return _counted_hull(relation, budget)
    elements = distinct_results(relation)
    if elements is None or not len(elements):
        return None
    sides = [sorted(set(column)) for column in elements.T.tolist()]
    if prod(map(len, sides)) != len(elements):
        return None
    lines = [progressions_of(np.array(side)) for side in sides]
    return Box.of([line[0] for line in lines]) if all(len(line) == 1 for line in lines) else None


def _counted_hull(relation: exact.Relation, budget: int) -> Box | None:
    """The smallest box with the strides of the coefficients, if ISL counts all its elements."""
    constraints = relation.constraints
    if not all(e.is_affine for e in (*relation.results, *[c.expr for c in constraints])):
        return None
    variables = (*relation.inputs, *relation.hidden)
    sides: list[Progression] = []
    for result in relation.results:
        bounds = exact.bounds(variables, constraints, result, budget)
        if bounds is None or isinstance(bounds, Unknown):
            return None
        low, high = bounds
        stride = gcd(*result.parts.values()) or 1
        sides.append(progression(low, (high - low) // stride + 1, stride))
    hull = Box.of(sides)
    if hull.count() > point_count(variables):
        return None
    count = exact.count(relation, budget)
    return hull if not isinstance(count, Unknown) and count == hull.count() else None


def _parts(m: IndexingMap) -> list[_Factor]:
    """The independent parts of the results and constraints; constant ones are one part."""
    results = [set(result.variables()) for result in m.results]
    conditions = [set(c.expr.variables()) for c in m.constraints]
    groups = connected_variables(m.variables, (*results, *conditions))
    parts = [_part(m, group, results, conditions) for group in (*groups, set[Variable]())]
    return [part for part in parts if part.places or part.constraints]


def _part(
    m: IndexingMap,
    group: set[Variable],
    results: Sequence[set[Variable]],
    conditions: Sequence[set[Variable]],
) -> _Factor:
    """The results and constraints on variables of the group; for an empty group, the constants."""

    def is_own(used: set[Variable]) -> bool:
        return used <= group and bool(used) == bool(group)

    places = [k for k, used in enumerate(results) if is_own(used)]
    constraints = [c for c, used in zip(m.constraints, conditions, strict=True) if is_own(used)]
    return _Factor(
        tuple(places),
        tuple([v for v in m.variables if v in group]),
        tuple([m.results[k] for k in places]),
        tuple(constraints),
    )


def _sums(result: Expr) -> list[Progression] | None:
    """The values of a sum of independent variables as disjoint progressions.

    `None` if other terms occur, or the sums of several progressions may coincide.

    The sums of ``a·i`` with ``i < n`` and ``b·j`` with ``j < m`` are a progression with stride
    `a` if a divides b, and ``b <= a·n``: each value of j continues the values before.  If ``b``
    exceeds the largest sum of the smaller terms, the values of j are disjoint.
    """
    if not all(isinstance(atom, Variable) for atom in result.parts):
        return None
    bounds = [(atom.bounds, c) for atom, c in result.parts.items()]
    steps = sorted([(abs(c), high - low + 1) for (low, high), c in bounds if high > low])
    offset = result.constant + sum(min(low * c, high * c) for (low, high), c in bounds)
    current = Progression(offset, 1, 1)
    for k, (step, count) in enumerate(steps):
        if current.size == 1:
            current = Progression(offset, count, step)
        elif step % current.stride == 0 and step <= current.stride * current.size:
            size = current.size + step // current.stride * (count - 1)
            current = Progression(offset, size, current.stride)
        else:
            return _repeat_progression(current, steps[k:])
    return [current]


def _repeat_progression(
    first: Progression, steps: Sequence[tuple[int, int]]
) -> list[Progression] | None:
    """The progression repeated at all sums of `steps`; `None` if repetitions may overlap."""
    line, extent = [first], first.last - first.offset
    for step, count in steps:
        if step <= extent or len(line) * count > MAX_BOXES:
            return None
        line = [
            Progression(p.offset + step * j, p.size, p.stride) for j in range(count) for p in line
        ]
        extent += step * (count - 1)
    return line
