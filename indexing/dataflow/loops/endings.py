"""The end of a loop: the time of its result, which is the number of iterations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Final

from hlo.modules.module import Instruction
from indexing.dataflow.loops.facts import TripCount
from indexing.dataflow.loops.iteration import Iteration
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.options import Options
from indexing.maps.reasons import Reason
from indexing.maps.relation import map_of_piece
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.shared_runtime import share_runtime
from indexing.maps.spaces import is_iteration
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import Relation
from simplifier.exact.unions import coalesce
from simplifier.linear import Expr, as_expr, from_atom
from simplifier.semiaffine import SemiAffine, maximum
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown

COUNT: Final = "iterations"
"""The name of the symbol for a number of iterations that the program does not determine."""

MAX_PIECES: Final = 4
"""Limit on the parts of a map without its idle range variables."""


class Ending:
    """The number of iterations of a loop, and maps from its result.

    Attributes:
        count: the number of iterations, or a symbol for it.
        reasons: why the number is not known.
    """

    def __init__(self, iteration: Iteration, options: Options) -> None:
        self.iteration, self.options = iteration, options
        count = iteration.facts.trip_count
        self.count: RuntimeVariable | int
        self.reasons: tuple[Reason, ...] = ()
        if not isinstance(count, TripCount):
            self.count = RuntimeVariable(Variable(COUNT, 0, iteration.most))
            self.reasons = (Reason(count.reason, iteration.loop),)
        elif count.number is None:
            self.count = RuntimeVariable(Variable(COUNT, count.lower, count.upper))
            text = f"the number of iterations is not known: {count}"
            if count.obstacle:
                text = f"{count.obstacle}; the number of iterations is in {count}"
            self.reasons = (Reason(text, iteration.loop),)
        else:
            self.count = count.number

    def at_the_end(self, m: IndexingMap, start: IndexingMap) -> list[IndexingMap]:
        """Return the maps from the result, given a map from the array at any time.

        Args:
            start: the identity of the result.
        """
        count = self.count
        if isinstance(count, int):
            return self.final(replace(start, results=(*start.results, as_expr(count))).then(m))
        end = replace(start, results=(*start.results, count.expr), runtime=(count,))
        symbolic = self.final(end.then(m))
        if all(_is_independent(each, count) for each in symbolic):
            return [_without_symbol(each) for each in symbolic]
        with_formula = self._with_formula(m, start)
        if with_formula:
            return with_formula
        return [final for each in symbolic for final in self._for_some_count(each)]

    def final(self, m: IndexingMap) -> list[IndexingMap]:
        """Return a map without the time of the read; symbols become values outside of the loop."""
        m = _with_iterations(m, self.iteration.loop)
        runtime = tuple([self.iteration.source(rt) or rt for rt in m.runtime])
        (m,), _ = share_runtime([replace(m, results=m.results[:-1], runtime=runtime)])
        m = self.options.simplify_map(m)
        return [m] if self.options.keep_multiplicity else _project_ranges(m)

    # ------------------------------------------------------------ implementation

    def _with_formula(self, m: IndexingMap, start: IndexingMap) -> list[IndexingMap]:
        """Return the maps from the time of a formula; none if they do not stay short.

        Simplification drops runtime variables that only a condition on themselves mentions.
        """
        count = self.iteration.facts.trip_count
        if not isinstance(count, TripCount) or count.iterations is None:
            return []
        formula = self.iteration.outside_formula(count.iterations, count.runtime)
        if formula is None:
            return []
        number, runtime = formula
        sources = [(rt.array, rt.index) for rt in map(self.iteration.source, runtime) if rt]
        finals: list[IndexingMap] = []
        for time, condition in _cases(number, self.iteration.most):
            end = replace(
                start,
                results=(*start.results, time),
                runtime=tuple(runtime),
                constraints=(*start.constraints, condition),
            )
            for final in [] if condition.is_false else self.final(end.then(m)):
                if _has_idle_range(final):
                    return []
                kept = {(rt.array, rt.index) for rt in final.runtime}
                is_kept = condition.is_true or kept.issuperset(sources)
                finals.append(final if is_kept else final.with_grade("may"))
        return finals

    def _for_some_count(self, m: IndexingMap) -> list[IndexingMap]:
        """Return a map in which the symbol of the number of iterations has any value."""
        symbol = _symbol(m)
        if symbol is None:
            return [m]
        rest = tuple([rt for rt in m.runtime if rt is not symbol])
        free = replace(m, runtime=rest, ranges=(*m.ranges, symbol.variable), grade="may")
        return _project_ranges(self.options.simplify_map(free))


def _symbol(m: IndexingMap) -> RuntimeVariable | None:
    return next((rt for rt in m.runtime if rt.array is None and rt.name == COUNT), None)


def _is_independent(m: IndexingMap, count: RuntimeVariable) -> bool:
    """Return True if a map is the same for all numbers of iterations."""
    symbol = _symbol(m)
    if symbol is None or m.is_known_empty:
        return True
    exprs = [*m.results, *[c.expr for c in m.constraints]]
    exprs += [expr for rt in m.runtime for expr in rt.index]
    return symbol == count and not any(symbol.variable in expr.variables() for expr in exprs)


def _without_symbol(m: IndexingMap) -> IndexingMap:
    symbol = _symbol(m)
    return replace(m, runtime=tuple([rt for rt in m.runtime if rt is not symbol]))


def _cases(number: Expr, last: int) -> Iterator[tuple[Expr, Constraint]]:
    """Yield a number of iterations by cases: ``max(n, 0)`` is n where n is positive, or 0."""
    atom = next(iter(number.parts), None)
    if isinstance(atom, SemiAffine) and atom.operator == "max" and number == from_atom(atom):
        *others, least = atom.operands
        inner = others[0] if len(others) == 1 else maximum(*others)
        if least == as_expr(0):
            yield inner, Constraint(inner, 1, last)
            yield least, Constraint(inner, min(inner.bounds[0], 0), 0)
            return
    yield number, Constraint(number, 0, last)


def _project_ranges(m: IndexingMap) -> list[IndexingMap]:
    """Return a map without range variables that are in no result, if isl can do without them."""
    if not _has_idle_range(m) or any(rt.index for rt in m.runtime):
        return [m]
    inputs = (*m.dims, *[rt.variable for rt in m.runtime])
    pieces = coalesce([Relation(inputs, m.ranges, m.results, m.constraints)])
    if isinstance(pieces, Unknown) or len(pieces) > MAX_PIECES:
        return [m]
    names = [variable.name for variable in inputs]
    projected = [map_of_piece(piece, m.grade, m.runtime, names) for piece in pieces]
    return [m] if any(map(_has_idle_range, projected)) else projected


def _has_idle_range(m: IndexingMap) -> bool:
    """Return True if a range variable is in no result, or has more values than any result."""
    used = {v for result in m.results for v in result.variables()}
    most = max([high - low for low, high in [result.bounds for result in m.results]], default=0)
    return any(v not in used or v.upper - v.lower > most for v in m.ranges)


def _with_iterations(m: IndexingMap, loop: Instruction) -> IndexingMap:
    """Return a map in which the range variables of iterations of the loop are called i0, i1, …

    They are that of the read, and those in which runtime variables are read.
    """
    if not any(map(is_iteration, m.ranges)):
        m = _with_iteration(m, m.results[-1])
    for k, rt in enumerate(m.runtime):
        if rt.calls[:1] == (loop,):
            m = _with_iteration(m, m.runtime[k].iterations[0])
    return m


def _with_iteration(m: IndexingMap, number: Expr) -> IndexingMap:
    """Return a map with the range variable of an iteration, if there is one, named as such."""
    if len(number.terms) != 1:
        return m
    ((variable, factor),) = number.terms
    if variable not in m.ranges or abs(factor) != 1:
        return m
    assert isinstance(variable, Variable)
    if is_iteration(variable):
        return m
    taken = {v.name for v in m.ranges}
    name = next(name for name in (f"i{k}" for k in count()) if name not in taken)
    iteration = Variable(name, *number.bounds)
    value = (iteration - number.constant) * factor  # number = factor · variable + constant
    swap = Substitution({variable: value})
    results, constraints = m.substituted({variable: value})
    return IndexingMap.of(
        m.dims,
        results,
        ranges=[iteration if v is variable else v for v in m.ranges],
        runtime=[rt.substituted(swap) for rt in m.runtime],
        constraints=constraints,
        grade=m.grade,
    )
