"""Maps of blocks: from the grid to the first element of a block, and to all of its elements.

>>> from indexing.pallas.calls import BlockDimension, GridDimension
>>> from simplifier.linear import as_expr, variable
>>> i = variable("d0", 0, 3)
>>> rows = BlockDimension("element", 20, (2, 2))
>>> array = (as_expr(50),), "f32", 32
>>> spec = BlockSpecification("args[0]", "", False, *array, (rows,), (i * 16,), (), "vmem")
>>> grid = (GridDimension("i", as_expr(4)),)
>>> placed = PlacedOperand.of(KernelCall("k", "tpu", grid, (), frozenset(), (), (spec,)), spec)
>>> print(placed.starts)
(d0) -> (d0 * 16 - 2), domain: d0 in [0, 3]
>>> print(placed.elements)
(d0)[s0] -> (d0 * 16 + s0 - 2), domain: d0 in [0, 3], s0 in [0, 19], d0 * 16 + s0 in [2, 51]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_copies import MapCopy, consistent_values
from indexing.pallas.calls import BlockDimension, BlockSpecification, KernelCall
from simplifier.atoms import Variable
from simplifier.constraints import Constraint, normalise
from simplifier.exact import unions
from simplifier.exact.unions import Clause
from simplifier.linear import Affine, Expr, as_expr
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class PlacedOperand:
    """An operand whose index map is an expression.

    Attributes:
        call: the call.
        spec: the specification of its blocks.
        block: the dimensions of a block.
        starts: the map from the grid to the first element of a block, inside the array or not.
    """

    call: KernelCall
    spec: BlockSpecification
    block: tuple[BlockDimension, ...]
    starts: IndexingMap

    @classmethod
    def of(cls, call: KernelCall, spec: BlockSpecification) -> PlacedOperand | Unknown:
        """Return the operand of a call; `Unknown` if its blocks have no formula."""
        if isinstance(spec.block, Unknown):
            return spec.block
        if isinstance(spec.index, Unknown):
            return spec.index
        grid = tuple([Variable(f"d{k}", 0, g.size.bounds[1] - 1) for k, g in enumerate(call.grid)])
        within = [
            at_most(v, g.size - 1) for v, g in zip(grid, call.grid, strict=True) if g.size.terms
        ]
        starts = IndexingMap.of(
            grid,
            [b.start(index) for b, index in zip(spec.block, spec.index, strict=True)],
            runtime=(*spec.runtime, *call.symbols),
            constraints=_needed_constraints((*within, *call.conditions)),
        )
        return cls(call, spec, spec.block, starts)

    @property
    def symbols(self) -> tuple[Variable, ...]:
        """The variables of symbolic sizes and of dynamic grids."""
        return tuple([rt.variable for rt in self.call.symbols])

    @property
    def scalars(self) -> tuple[Variable, ...]:
        """The variables of scalars that the index map reads."""
        return tuple([rt.variable for rt in self.spec.runtime])

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables in the order of witnesses: symbols, the grid, scalars."""
        return *self.symbols, *self.starts.dims, *self.scalars

    @property
    def clauses(self) -> list[Clause]:
        """Conditions on scalars: an element has one value."""
        return list(consistent_values(self.copy("").reads))

    @property
    def elements(self) -> IndexingMap:
        """The map from the grid to the elements of the array that are in its block."""
        return self.stated_elements.simplify()

    @property
    def stated_elements(self) -> IndexingMap:
        """The same map, in which the scalars keep their bounds."""
        offsets, exprs, inside = self.points(self.starts.results, "s")
        return replace(
            self.starts,
            ranges=offsets,
            results=tuple(exprs),
            constraints=(*self.starts.constraints, *inside),
        )

    def points(
        self, starts: Sequence[Expr], prefix: str
    ) -> tuple[tuple[Variable, ...], list[Expr], tuple[Constraint, ...]]:
        """Return offsets in a block, the elements at them, and that these are in the array."""
        offsets: list[Variable] = []
        exprs: list[Expr] = []
        for start, each in zip(starts, self.block, strict=True):
            if each.size == 1:
                exprs.append(start)
                continue
            offsets.append(Variable(f"{prefix}{len(offsets)}", 0, each.size - 1))
            exprs.append(start + offsets[-1])
        return tuple(offsets), exprs, _needed_constraints(self.inside(exprs))

    def inside(self, exprs: Sequence[Expr]) -> list[Constraint]:
        """Return the constraints that an element is in the array."""
        pairs = list(zip(exprs, self.spec.sizes, strict=True))
        return [c for e, n in pairs for c in (at_least(e, 0), at_most(e, n - 1))]

    def copy(self, prefix: str) -> MapCopy:
        """Return a copy of `starts` for another grid point; symbols have one value."""
        return MapCopy.of(self.starts, prefix, self.symbols)

    def first(
        self, constraints: Sequence[Constraint], clauses: Sequence[Clause] = ()
    ) -> dict[Variable, int] | Unknown | None:
        """Return the first point of the grid, with scalars, that satisfies constraints."""
        every = (*self.starts.constraints, *constraints)
        return first_point(self.variables, every, (*self.clauses, *clauses))


def first_point(
    variables: Sequence[Variable], constraints: Sequence[Constraint], clauses: Sequence[Clause] = ()
) -> dict[Variable, int] | Unknown | None:
    """Return the first point of a box that satisfies all constraints and clauses.

    >>> x = Variable("x", 0, 9)
    >>> first_point((x,), [Constraint(x * 2, 5, 9)])
    {Variable('x', 0, 9): 3}
    """
    if any(c.is_false for c in constraints):
        return None
    needed = [c for c in constraints if not c.is_true]
    possible = [[way for way in clause if not any(c.is_false for c in way)] for clause in clauses]
    if not all(possible):
        return None
    point = unions.point(variables, needed, possible, is_first=True)
    if point is None or isinstance(point, Unknown):
        return point
    return dict(zip(variables, point, strict=True))


def at_least(expr: Affine, low: Affine) -> Constraint:
    """The constraint ``expr >= low``.

    >>> print(at_least(Variable("x", 0, 9), 3))
    x - 3 in [0, 6]
    """
    gap = as_expr(expr) - as_expr(low)
    return Constraint(gap, 0, max(gap.bounds[1], 0))


def at_most(expr: Affine, high: Affine) -> Constraint:
    """The constraint ``expr <= high``."""
    return at_least(high, expr)


def equal(a: Affine, b: Affine) -> Constraint:
    """The constraint ``a == b``."""
    return Constraint(as_expr(a) - as_expr(b), 0, 0)


def before(a: Sequence[Affine], b: Sequence[Affine]) -> Clause:
    """The condition that point `a` comes before point `b` in lexicographic order.

    >>> x, y = Variable("x", 0, 3), Variable("y", 0, 3)
    >>> [[str(c) for c in way] for way in before([x], [y])]
    [['-x + y - 1 in [0, 2]']]
    """
    return [
        [*[equal(x, y) for x, y in zip(a[:k], b[:k], strict=True)], at_least(b[k], a[k] + 1)]
        for k in range(len(a))
    ]


def _needed_constraints(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Normalise constraints, without those that always hold."""
    simple = [normalise(c) for c in constraints]
    return tuple(dict.fromkeys([c for c in simple if c is not None]))
