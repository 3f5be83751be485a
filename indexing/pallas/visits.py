"""Visits of output blocks: once, in consecutive steps, or apart; blocks that overlap.

Steps run in lexicographic order.  Between two visits of one block apart, another block is written
back: the result is undefined, unless the specification has ``RevisitMode.ANY``.

Source: JAX ``docs/pallas/tpu/details.rst``, "Grid iteration order"; ``RevisitMode``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from indexing.maps.map_copies import MapCopy, consistent_values, unequal
from indexing.pallas.block_maps import (
    PlacedOperand,
    at_least,
    at_most,
    before,
    equal,
    first_point,
)
from indexing.pallas.block_tables import BlockTable
from indexing.pallas.bounds import ArrayIndex, GridPoint
from indexing.pallas.enumerated import EnumeratedBlocks
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.unions import Clause
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

VisitsWord: TypeAlias = Literal["once", "consecutive", "apart", "overlap", "may"]


@dataclass(frozen=True, slots=True)
class VisitsVerdict:
    """The verdict about the visits of an output.

    Attributes:
        word: "once", "consecutive", "apart", "overlap", or "may".
        at: for "apart", two steps that write one block, with another block between them; for
            "overlap", two steps whose different blocks share an element.
        symbols: the smallest symbolic sizes for this answer.
        reason: why the answer is "may".
    """

    word: VisitsWord
    at: tuple[GridPoint, GridPoint] | None = None
    symbols: tuple[tuple[str, int], ...] = ()
    reason: str = ""


def visits_verdict(operand: PlacedOperand, table: BlockTable | Unknown) -> VisitsVerdict:
    """Return the verdict about the visits of an output; its table decides where isl does not."""
    shared = shared_block(operand)
    word: VisitsWord = "once"
    if isinstance(shared, Unknown):
        return _enumerate_visits(table, shared)
    if shared is not None:
        apart = _apart(operand)
        if isinstance(apart, Unknown):
            return _enumerate_visits(table, apart)
        if apart is not None:
            return _or_may(operand, apart)
        word = "consecutive"
    overlap = _overlap(operand)
    if isinstance(overlap, Unknown):
        return VisitsVerdict("may", reason=str(overlap))
    if overlap is not None:
        return _or_may(operand, overlap)
    if shared is not None and _depends_on_scalars(operand):
        return VisitsVerdict("may", reason="once or consecutive: it depends on scalars")
    return VisitsVerdict(word)


def _enumerate_visits(table: BlockTable | Unknown, reason: Unknown) -> VisitsVerdict:
    """Return the verdict from all blocks where isl does not decide."""
    blocks = EnumeratedBlocks.of(table)
    if isinstance(blocks, Unknown):
        return VisitsVerdict("may", reason=str(reason))
    apart = blocks.apart()
    if apart is not None:
        return VisitsVerdict("apart", apart)
    return VisitsVerdict("consecutive" if blocks.is_shared else "once")


def _depends_on_scalars(operand: PlacedOperand) -> bool:
    mentioned = {v for e in operand.starts.results for v in e.variables()}
    return not mentioned.isdisjoint(operand.scalars)


def _or_may(operand: PlacedOperand, verdict: VisitsVerdict) -> VisitsVerdict:
    """Return a verdict that holds for some scalars and dynamic grids, as "may" if there are any."""
    if _depends_on_scalars(operand) or operand.call.dynamic:
        reason = f"{verdict.word} for some scalars or grids"
        return VisitsVerdict("may", verdict.at, verdict.symbols, reason)
    return verdict


def shared_block(operand: PlacedOperand) -> tuple[GridPoint, GridPoint] | Unknown | None:
    """Return the first two steps that have the same block."""
    a, b = operand.copy("a."), operand.copy("b.")
    same = [equal(x, y) for x, y in zip(a.results, b.results, strict=True)]
    point = of_pair(operand, a, b, same, [before(a.dims, b.dims)])
    if point is None or isinstance(point, Unknown):
        return point
    return place(a, point), place(b, point)


def of_pair(
    operand: PlacedOperand,
    a: MapCopy,
    b: MapCopy,
    constraints: Sequence[Constraint],
    clauses: Sequence[Clause] = (),
) -> dict[Variable, int] | Unknown | None:
    """Return the first pair of two steps that satisfies constraints."""
    others = [v for c in (a, b) for v in c.variables if v not in c.dims]
    variables = dict.fromkeys((*operand.symbols, *a.dims, *b.dims, *others))
    every = dict.fromkeys((*a.constraints, *b.constraints, *constraints))
    values = consistent_values((*a.reads, *b.reads))
    kept = [clause for clause in values if not _is_constant(clause)]
    return first_point(tuple(variables), tuple(every), [*kept, *clauses])


def _is_constant(clause: Clause) -> bool:
    """True for the clause that a shared symbol has one value."""
    return any(all(c.is_true for c in way) for way in clause)


def place(copy: MapCopy, at: dict[Variable, int]) -> GridPoint:
    """Return the grid point of a copy."""
    return tuple([at[v] for v in copy.dims])


def symbol_values(operand: PlacedOperand, at: dict[Variable, int]) -> tuple[tuple[str, int], ...]:
    """Return the values of symbols."""
    return tuple([(v.name, at[v]) for v in operand.symbols])


def _apart(operand: PlacedOperand) -> VisitsVerdict | Unknown | None:
    """Return two steps with one block, between which a step has another block."""
    a, b = operand.copy("a."), operand.copy("b.")
    same = [equal(x, y) for x, y in zip(a.results, b.results, strict=True)]
    best: dict[Variable, int] | None = None
    for next_dims, constraints in successors(operand, a):
        after = Substitution(dict(zip(a.dims, next_dims, strict=True)))
        if operand.scalars:
            answer = _apart_with_scalars(operand, a, b, next_dims, constraints)
        else:
            changes = unequal(a.results, [after(e) for e in a.results])
            later = before(next_dims, b.dims)
            answer = of_pair(operand, a, b, [*same, *constraints], [later, changes])
        if isinstance(answer, Unknown):
            return answer
        if answer is not None and (best is None or _sizes(operand, answer) < _sizes(operand, best)):
            best = answer
        if best is not None and not operand.symbols:
            break
    return None if best is None else _first_visits(operand, a, b, best)


def _sizes(operand: PlacedOperand, at: dict[Variable, int]) -> list[int]:
    return [at[v] for v in operand.symbols]


def _apart_with_scalars(
    operand: PlacedOperand,
    a: MapCopy,
    b: MapCopy,
    next_dims: Sequence[Expr],
    constraints: Sequence[Constraint],
) -> dict[Variable, int] | Unknown | None:
    """The same where the step after `a` reads scalars of its own."""
    c = operand.copy("c.")
    same = [equal(x, y) for x, y in zip(a.results, b.results, strict=True)]
    follows = [equal(v, e) for v, e in zip(c.dims, next_dims, strict=True)]
    clauses = [
        *[k for k in consistent_values((*a.reads, *b.reads, *c.reads)) if not _is_constant(k)],
        before(c.dims, b.dims),
        unequal(a.results, c.results),
    ]
    others = [v for copy in (a, b, c) for v in copy.variables]
    variables = dict.fromkeys((*operand.symbols, *a.dims, *b.dims, *others))
    every = (*a.constraints, *b.constraints, *c.constraints, *same, *follows, *constraints)
    return first_point(tuple(variables), tuple(dict.fromkeys(every)), clauses)


def successors(
    operand: PlacedOperand, copy: MapCopy
) -> Iterator[tuple[list[Expr], list[Constraint]]]:
    """Yield the step after a step, by the dimension that advances; later ones start again.

    The last dimension comes first.
    """
    sizes = [each.size for each in operand.call.grid]
    for k in reversed(range(len(sizes))):
        next_dims = [
            *[v.as_expr() for v in copy.dims[:k]],
            copy.dims[k] + 1,
            *[as_expr(0)] * (len(sizes) - k - 1),
        ]
        last = [equal(v, n - 1) for v, n in zip(copy.dims, sizes, strict=True)][k + 1 :]
        yield next_dims, [at_most(copy.dims[k], sizes[k] - 2), *last]


def _first_visits(
    operand: PlacedOperand, a: MapCopy, b: MapCopy, at: dict[Variable, int]
) -> VisitsVerdict | Unknown:
    """Return the first step with the block of `a`, and a step with it after another block."""
    symbols = symbol_values(operand, at)
    visits = place(a, at), place(b, at)
    if not operand.scalars:
        block = [e.value(at) for e in a.results]
        start = operand.copy("x.")
        fixed = [Constraint(v.as_expr(), at[v], at[v]) for v in operand.symbols]
        same = [equal(x, as_expr(y)) for x, y in zip(start.results, block, strict=True)]
        variables = (*operand.symbols, *start.dims)
        first = first_point(variables, (*start.constraints, *fixed, *same))
        if isinstance(first, dict):
            visits = place(start, first), visits[1]
    return VisitsVerdict("apart", visits, symbols)


def _overlap(operand: PlacedOperand) -> VisitsVerdict | Unknown | None:
    """Return two steps whose different blocks share an element of the array."""
    if all(
        _is_aligned(each.size, e)
        for each, e in zip(operand.block, operand.starts.results, strict=True)
    ):
        return None
    a, b = operand.copy("a."), operand.copy("b.")
    clauses = [before(a.dims, b.dims), unequal(a.results, b.results)]
    point = of_pair(operand, a, b, blocks_meet(operand, a, operand, b), clauses)
    if point is None or isinstance(point, Unknown):
        return point
    return VisitsVerdict(
        "overlap", (place(a, point), place(b, point)), symbol_values(operand, point)
    )


def _is_aligned(size: int, start: Expr) -> bool:
    """True if starts differ by multiples of the size, so that blocks are equal or disjoint."""
    return all(c % size == 0 for _, c in start.terms)


def blocks_meet(
    first: PlacedOperand, a: MapCopy, second: PlacedOperand, b: MapCopy
) -> list[Constraint]:
    """Return that two blocks share an element of the array: intervals that meet in pairs."""
    constraints: list[Constraint] = []
    sides = zip(a.results, first.block, b.results, second.block, first.spec.sizes, strict=True)
    for x, own, y, other, size in sides:
        ends = x + own.size, y + other.size
        constraints += [at_least(ends[0], y + 1), at_least(ends[1], x + 1), at_least(size, 1)]
        constraints += [at_least(end, 1) for end in ends]
        constraints += [at_least(size, start + 1) for start in (x, y)]
    return constraints


def first_shared(a: MapCopy, b: MapCopy, at: dict[Variable, int]) -> ArrayIndex:
    """Return the first element of two blocks that share one."""
    pairs = zip(a.results, b.results, strict=True)
    return tuple([max(0, x.value(at), y.value(at)) for x, y in pairs])
