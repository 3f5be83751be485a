"""The reads of a loop's results from its operand, in closed form.

The carried arrays are walked from a leaf of the result at the last time back to time 0: component
by component of arrays that depend on each other (`indexing.dataflow.loops.closures`).  The cost
depends on the body, not on the number of iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hlo.modules.module import Computation
from indexing.dataflow.edges import Edges
from indexing.dataflow.loops.closures import Closure, Component
from indexing.dataflow.loops.facts import TripCount
from indexing.dataflow.loops.iteration import Iteration
from indexing.dataflow.loops.steps import Reads, timed_reads
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.maps.reasons import Reason
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.space_pairs import SpacePair
from indexing.ops.structured_ops import MapsByArray
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact import Relation
from simplifier.exact.closures import coalesced
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown, first_unknown

COUNT: Final = "iterations"
"""The name of the symbol for a number of iterations that the program does not determine."""

NOT_CLOSED: Final = "the reads of all iterations have no closed form"

Summary = Callable[[Computation, Path], MapsByArray]
"""The maps from a leaf of a computation's root to the leaves of its parameters."""


class LoopReads:
    """The maps of one loop from its results to its operand.

    Args:
        edges: the edges of the walk, for spaces and identities.
        steps: summarises the body in one iteration, with exact maps.
        conditions: summarises the condition.
    """

    def __init__(
        self, iteration: Iteration, edges: Edges, steps: Summary, conditions: Summary
    ) -> None:
        self.iteration, self.edges = iteration, edges
        self.loop, self.last = iteration.loop, iteration.most
        self._summaries = steps, conditions
        self._steps: dict[Path, dict[Path, Reads]] = {}
        self._components: dict[frozenset[Path], Component] = {}
        self._closures: dict[Path, Closure] = {}

    def reads(self, output: Path) -> dict[Path, MapSet]:
        """Return the maps from a leaf of the result to each leaf of the operand."""
        identity = self.edges.identity(ArrayRef(self.loop, output))
        if not identity or self.last == 0 or output in self.iteration.facts.invariants:
            return {output: MapSet(identity)} if identity else {}
        (start,) = identity
        frontier = dict(self._control(start))
        self._at(frontier, output, output).extend(
            [_with_time(start, self._count())], None, self._count_reasons()
        )
        answers: dict[Path, MapSet] = {}
        for component in self._order(list(frontier)):
            entering = {x: self._coalesced(frontier[x]) for x in component if x in frontier}
            inside = self._inside(component, entering, output)
            for y, maps in inside.items():
                answers[y] = self._before_the_loop(y, maps, output)
                for z, reads in self._step(y).items():
                    if z not in component:
                        to = self._at(frontier, z, output)
                        unknown = maps.unknown or reads.unknown
                        reasons = (*maps.all_reasons, *reads.reasons)
                        to.add_composed(maps.effective, reads.maps, unknown, reasons)
        return {y: maps for y, maps in answers.items() if maps.maps or maps.unknown}

    # ------------------------------------------------------------ implementation

    def _step(self, leaf: Path) -> dict[Path, Reads]:
        if leaf not in self._steps:
            if leaf in self.iteration.facts.invariants:
                self._steps[leaf] = {}
            else:
                summary = self._summaries[0](self.iteration.body, leaf)
                self._steps[leaf] = timed_reads(self.iteration, summary, is_step=True)
        return self._steps[leaf]

    def _count(self) -> RuntimeVariable | int:
        count = self.iteration.facts.trip_count
        if not isinstance(count, TripCount):
            return RuntimeVariable(Variable(COUNT, 0, self.last))
        if count.number is not None:
            return count.number
        return RuntimeVariable(Variable(COUNT, count.lower, count.upper))

    def _count_reasons(self) -> tuple[Reason, ...]:
        """Return why the number of iterations is not known."""
        count = self.iteration.facts.trip_count
        if not isinstance(count, TripCount):
            return (Reason(count.reason, self.loop),)
        if count.number is None:
            return (Reason(f"the number of iterations is not known: {count}", self.loop),)
        return ()

    def _control(self, start: IndexingMap) -> Iterator[tuple[Path, MapSet]]:
        """Yield what the condition reads at any time, if it decides the number of iterations."""
        if isinstance(self._count(), int):
            return
        summary = self._summaries[1](self.iteration.condition, ())
        for path, reads in timed_reads(self.iteration, summary, is_step=False).items():
            maps = self._at({}, path, ())
            maps.add_unknown(reads.unknown)
            maps.add_reasons([*self._count_reasons(), *reads.reasons])
            for m in reads.maps:
                lead = IndexingMap.of(start.dims, start.results[: len(m.dims)])
                read, time = lead.then(m), Variable("time", 0, self.last)
                maps.add(
                    IndexingMap.of(
                        read.dims,
                        [*read.results, time],
                        ranges=[*read.ranges, time],
                        runtime=read.runtime,
                        constraints=read.constraints,
                        grade="may",
                    ).simplify()
                )
            yield path, maps

    def _at(self, frontier: dict[Path, MapSet], leaf: Path, output: Path) -> MapSet:
        if leaf not in frontier:
            spaces = self.edges.spaces(ArrayRef(self.loop, output), ArrayRef(self.loop, leaf))
            sizes = None if spaces.sizes is None else (*spaces.sizes, self.last + 1)
            options = Options(exact=True)
            frontier[leaf] = MapSet((), SpacePair(spaces.start, sizes), options)
        return frontier[leaf]

    def _sizes(self, leaf: Path) -> tuple[int, ...]:
        array = ArrayRef(self.loop, leaf)
        sizes = self.edges.spaces(array, array).sizes
        assert sizes is not None
        return sizes

    def _order(self, roots: Iterable[Path]) -> list[tuple[Path, ...]]:
        """Return the components of the leaves that `roots` depend on, users first."""
        return list(reversed(_components(roots, lambda leaf: list(self._step(leaf)))))

    def _inside(
        self, component: Sequence[Path], entering: Mapping[Path, MapSet], output: Path
    ) -> dict[Path, MapSet]:
        """Return the maps to the leaves of a component at all times at which they are needed."""
        if len(component) == 1 and component[0] not in self._step(component[0]):
            return dict(entering)
        inside: dict[Path, MapSet] = {}
        within = [reads for x in component for y, reads in self._step(x).items() if y in component]
        unknown = first_unknown(*[reads.unknown for reads in within])
        steps = tuple([reason for reads in within for reason in reads.reasons])
        for x, maps in entering.items():
            closure = self._closure(component, x)
            for y, closures in closure.maps.items():
                reasons = (*maps.all_reasons, *steps, *self._closure_reasons(closure))
                self._at(inside, y, output).add_composed(
                    maps.effective, closures, first_unknown(maps.unknown, unknown), reasons
                )
        return inside

    def _closure_reasons(self, closure: Closure) -> tuple[Reason, ...]:
        return () if closure.is_closed else (Reason(NOT_CLOSED, self.loop),)

    def _closure(self, component: Sequence[Path], leaf: Path) -> Closure:
        if leaf not in self._closures:
            key = frozenset(component)
            if key not in self._components:
                steps = {
                    (x, y): reads.maps
                    for x in component
                    for y, reads in self._step(x).items()
                    if y in key and reads.maps
                }
                sizes = {x: self._sizes(x) for x in component}
                self._components[key] = Component(sizes, steps, self.last)
            self._closures[leaf] = self._components[key].closure_from(leaf)
        return self._closures[leaf]

    def _coalesced(self, maps: MapSet) -> MapSet:
        """Return the same relation with fewer maps, if there are several exact ones."""
        exact = [m for m in maps.maps if m.grade == "exact" and not m.runtime]
        needs = len(exact) > 1 or any(_hidden(m) for m in exact)
        if not needs:
            return maps
        pieces = coalesced([Relation(m.dims, m.ranges, m.results, m.constraints) for m in exact])
        if isinstance(pieces, Unknown) or len(pieces) > len(exact):
            return maps
        fewer = [
            IndexingMap.of(
                piece.inputs, piece.results, ranges=piece.hidden, constraints=piece.constraints
            ).simplify()
            for piece in pieces
        ]
        rest = [m for m in maps.maps if m not in exact]
        return maps.like([*fewer, *rest])

    def _before_the_loop(self, leaf: Path, maps: MapSet, output: Path) -> MapSet:
        """Return the maps to a leaf of the operand, given those at all times."""
        spaces = self.edges.spaces(ArrayRef(self.loop, output), ArrayRef(self.loop, leaf))
        answer = MapSet((), spaces, self.edges.options)
        answer.add_unknown(maps.unknown)
        answer.add_reasons(maps.all_reasons)
        is_invariant = leaf in self.iteration.facts.invariants
        for m in maps.effective:
            time = m.results[-1]
            at = () if is_invariant else (Constraint(time, 0, 0),)
            m = replace(m, results=m.results[:-1], constraints=(*m.constraints, *at))
            if is_invariant:
                m = _named(m, time)
            m = self._for_any_count(self.edges.options.simplified(m))
            if not m.is_known_empty:
                answer.add(m)
        return answer

    def _for_any_count(self, m: IndexingMap) -> IndexingMap:
        """Return a map without the symbol of the number of iterations.

        A map that mentions it, or restricts its bounds, holds for some numbers only.
        """
        symbol = next((rt for rt in m.runtime if rt.array is None and rt.name == COUNT), None)
        if symbol is None:
            return m
        rest = tuple([rt for rt in m.runtime if rt is not symbol])
        exprs = [
            *m.results,
            *[c.expr for c in m.constraints],
            *[e for rt in rest for e in rt.index],
        ]
        is_mentioned = any(symbol.variable in expr.variables() for expr in exprs)
        if not is_mentioned and symbol == self._count():
            return replace(m, runtime=rest)
        ranges = (*m.ranges, symbol.variable)
        free = replace(m, runtime=rest, ranges=ranges, grade="may")
        return self.edges.options.simplified(free)


def _with_time(m: IndexingMap, count: RuntimeVariable | int) -> IndexingMap:
    """Return a map with the number of iterations as an additional result."""
    if isinstance(count, int):
        return replace(m, results=(*m.results, as_expr(count)))
    return replace(m, results=(*m.results, count.expr), runtime=(*m.runtime, count))


def _named(m: IndexingMap, time: Expr) -> IndexingMap:
    """Return a map in which the range variable of the iteration is called i0."""
    variable = time.as_variable
    if variable not in m.ranges or "i0" in {v.name for v in m.variables}:
        return m
    assert variable is not None
    new = variable.renamed("i0")
    results, constraints = m.substituted({variable: new.as_expr()})
    runtime = [rt.substituted(lambda e: _swapped(e, variable, new)) for rt in m.runtime]
    ranges = [new if v is variable else v for v in m.ranges]
    return IndexingMap.of(
        m.dims, results, ranges=ranges, runtime=runtime, constraints=constraints, grade=m.grade
    )


def _swapped(expr: Expr, old: Variable, new: Variable) -> Expr:
    from simplifier.substitute import Substitution

    return Substitution({old: new.as_expr()})(expr)


def _hidden(m: IndexingMap) -> bool:
    """Return True if a range variable is in no result."""
    used = {v for result in m.results for v in result.variables()}
    return any(v not in used for v in m.ranges)


def _components(
    roots: Iterable[Path], successors: Callable[[Path], Iterable[Path]]
) -> list[tuple[Path, ...]]:
    """Return the strongly connected components that are reached, successors first.

    Source: R. Tarjan, "Depth-first search and linear graph algorithms", 1972.
    """
    number: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    on_stack: set[Path] = set()
    components: list[tuple[Path, ...]] = []
    for root in roots:
        if root in number:
            continue
        work = [(root, iter(successors(root)))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            leaf, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[leaf])
                if low[leaf] == number[leaf]:
                    start = stack.index(leaf)
                    components.append(tuple(stack[start:]))
                    on_stack.difference_update(stack[start:])
                    del stack[start:]
            elif following not in number:
                number[following] = low[following] = len(number)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(successors(following))))
            elif following in on_stack:
                low[leaf] = min(low[leaf], number[following])
    return components
