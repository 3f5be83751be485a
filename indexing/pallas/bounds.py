"""Bounds of blocks: inside the array, padded, or out of it.

A block is legal if an element of it is in the array; an ``Element`` block must be in the padded
array.  What depends on scalars is "may", with the condition.

Source: JAX ``docs/pallas/grid_blockspec.md``, "BlockSpec, a.k.a. how to chunk up inputs".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from indexing.maps.runtime_variable import source_text
from indexing.pallas.block_maps import PlacedOperand, at_least, at_most
from simplifier import exact, maximum
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import unions
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

BoundsWord: TypeAlias = Literal["inside", "padded", "out", "may"]
GridPoint: TypeAlias = tuple[int, ...]
ArrayIndex: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundsVerdict:
    """The verdict about the bounds of the blocks of an operand.

    Attributes:
        word: "inside", "padded", "out", or "may": out for some scalars or grids.
        at: for "out" and "may", the first grid point whose block is out, and the first of its
            elements that is out.
        overhang: for each dimension, the largest number of elements of a block outside the array.
        condition: for "may", what the scalars must satisfy.
        symbols: the symbolic sizes at which the block is out, the smallest ones.
        scalars: the values of scalars at which it is out, by element.
        reason: why the answer is "may", if it is not known.
    """

    word: BoundsWord
    at: tuple[GridPoint, ArrayIndex] | None = None
    overhang: tuple[int, ...] = ()
    condition: str = ""
    symbols: tuple[tuple[str, int], ...] = ()
    scalars: tuple[tuple[str, int], ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule ``value >= 0`` on one dimension; `element` is the first element that breaks it."""

    dimension: int
    value: Expr
    element: Expr

    @property
    def holds(self) -> Constraint:
        return at_least(self.value, 0)

    @property
    def fails(self) -> Constraint:
        return at_most(self.value, -1)


def bounds_verdict(operand: PlacedOperand) -> BoundsVerdict:
    """Return the verdict about the bounds of an operand."""
    rules = [rule for k in range(len(operand.block)) for rule in _rules(operand, k)]
    broken: list[tuple[_Rule, dict[Variable, int]]] = []
    for rule in rules:
        point = operand.first([rule.fails])
        if isinstance(point, Unknown):
            return BoundsVerdict("may", reason=str(point))
        if point is not None:
            broken.append((rule, point))
    if not broken:
        return _legal(operand)
    rule, at = min(broken, key=lambda each: [each[1][v] for v in operand.variables])
    word = _word(operand, rules, at)
    conditions = dict.fromkeys(_condition_text(operand, r.dimension) for r, _ in broken)
    step, element = _place(operand, rule, at)
    return BoundsVerdict(
        word,
        (step, element),
        condition=" and ".join(conditions) if word == "may" else "",
        symbols=tuple([(v.name, at[v]) for v in operand.symbols]),
        scalars=tuple(
            [
                (source_text(rt, [e.value(at) for e in rt.index]), at[rt.variable])
                for rt in operand.spec.runtime
            ]
        ),
    )


def _place(
    operand: PlacedOperand, rule: _Rule, at: dict[Variable, int]
) -> tuple[GridPoint, ArrayIndex]:
    """Return the grid point, and the first element of its block that breaks the rule."""
    step = tuple([at[v] for v in operand.starts.dims])
    element = tuple(
        [
            (rule.element if k == rule.dimension else start).value(at)
            for k, start in enumerate(operand.starts.results)
        ]
    )
    return step, element


def _rules(operand: PlacedOperand, k: int) -> list[_Rule]:
    """The rules for one dimension."""
    each, start, size = operand.block[k], operand.starts.results[k], operand.spec.sizes[k]
    if each.kind == "element":
        low, high = each.padding
        end = size + high
        first_out = maximum(start, end)
        return [
            _Rule(k, start + low, start),
            _Rule(k, end - start - each.size, first_out),
        ]
    return [_Rule(k, start, start), _Rule(k, size - 1 - start, start)]


def _word(operand: PlacedOperand, rules: list[_Rule], at: dict[Variable, int]) -> BoundsWord:
    """Return "out" if some grid point is out for all scalars and grids, else "may"."""
    dynamic = [v for v in operand.symbols if v.name in operand.call.dynamic]
    if any(at[v] > max(v.lower, 1) for v in dynamic):
        return "may"
    if not operand.scalars:
        return "out"
    inputs = (*operand.symbols, *operand.starts.dims)
    constraints = operand.starts.constraints
    legal = (*constraints, *[rule.holds for rule in rules if not rule.holds.is_true])
    every = exact.Relation(inputs, operand.scalars, (), constraints)
    point = unions.only_first([every], [exact.Relation(inputs, operand.scalars, (), legal)])
    return "may" if point is None or isinstance(point, Unknown) else "out"


def _legal(operand: PlacedOperand) -> BoundsVerdict:
    """Return "inside", or "padded" with the largest overhang in each dimension."""
    overhang: list[int] = []
    variables, constraints = operand.variables, operand.starts.constraints
    for start, each, size in zip(
        operand.starts.results, operand.block, operand.spec.sizes, strict=True
    ):
        most = 0
        for outside in (-start, start + each.size - size):
            if outside.bounds[1] <= 0:
                continue
            values = exact.bounds(variables, constraints, outside)
            if isinstance(values, Unknown):
                return BoundsVerdict("may", reason=str(values))
            most = max(most, values[1] if values is not None else 0)
        overhang.append(most)
    return BoundsVerdict("padded" if any(overhang) else "inside", overhang=tuple(overhang))


def _condition_text(operand: PlacedOperand, k: int) -> str:
    """Return the condition under which one dimension of the block is legal, in source names."""
    each, size = operand.block[k], operand.spec.sizes[k]
    assert not isinstance(operand.spec.index, Unknown)
    index = operand.spec.index[k]
    if each.kind == "element":
        low, last = as_expr(0), size + sum(each.padding) - each.size
    else:
        low, last = as_expr(0), (size - 1) // each.size
    return f"{low} <= {source_named(operand, index)} <= {source_named(operand, last)}"


def source_named(operand: PlacedOperand, expr: Expr) -> str:
    """Return an expression as text, with the names that the index map has in its source."""
    grid = zip(operand.starts.dims, operand.call.grid, strict=True)
    values = {v: Variable(g.name, *v.bounds).as_expr() for v, g in grid}
    for rt in operand.spec.runtime:
        if rt.variable not in expr.variables():
            continue
        index = [source_named(operand, i) for i in rt.index]
        values[rt.variable] = Variable(source_text(rt, index), *rt.variable.bounds).as_expr()
    return str(Substitution(values)(expr))
