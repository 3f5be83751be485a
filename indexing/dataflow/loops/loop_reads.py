"""The reads of a loop's results from its operand, in closed form.

The value of a carried array at time t, after t iterations, reads elements of the operand: those of
the arrays that iteration ``t - 1`` reads, at time ``t - 1``.  Components of arrays that depend on
each other are closed over all iterations (`indexing.dataflow.loops.closures`), innermost reads
first.  The result of the loop is the value at the last time.  The cost depends on the body, not on
the number of iterations.

A map ``(d, t) -> (e, k)`` reads element e of an array of the operand in iteration ``k``; k is 0 for
reads that are the same in all iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final

from hlo.modules.module import Computation
from indexing.dataflow.edges import Edges
from indexing.dataflow.loops.changes import changing_elements
from indexing.dataflow.loops.closures import Closure, closure_from
from indexing.dataflow.loops.components import Component, strongly_connected
from indexing.dataflow.loops.endings import Ending
from indexing.dataflow.loops.iteration import Iteration
from indexing.dataflow.loops.powers import Pair
from indexing.dataflow.loops.sharing import Sharing
from indexing.dataflow.loops.steps import Reads, timed_reads
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.deduplicate import BUDGET
from indexing.maps.equality import is_contained
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.options import Options
from indexing.maps.products import drop_covered
from indexing.maps.reasons import Reason
from indexing.maps.relation import as_relation, map_of_piece
from indexing.maps.space_pairs import SpacePair
from indexing.ops.structured_ops import MapsByLeaf
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.exact.unions import fewer_pieces
from simplifier.linear import as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown, first_unknown

NOT_CLOSED: Final = "the reads of all iterations have no closed form"
MAX_COALESCED: Final = 12
"""Limit on maps between two arrays that are coalesced."""

Summary = Callable[[Computation, Path], MapsByLeaf]
"""The maps from a leaf of a computation's root to the leaves of its parameters."""


class LoopReads:
    """The maps of one loop from its results to its operand.

    Args:
        edges: the edges of the walk, for spaces and identities.
        steps: summarises the body in one iteration, with exact maps.
        unmasked: summarises the body, or the condition, without masks of runtime values.
    """

    def __init__(
        self,
        iteration: Iteration,
        edges: Edges,
        steps: Summary,
        unmasked: Summary,
    ) -> None:
        self.iteration, self.edges = iteration, edges
        self.loop, self.last = iteration.loop, iteration.most
        self.counts = edges.options.keep_multiplicity
        self.ending = Ending(iteration, edges.options)
        self._summaries = steps, unmasked
        self._sharing = Sharing()
        self._steps: dict[Path, dict[Path, Reads]] = {}
        self._components: dict[Path, tuple[Path, ...]] = {}
        self._closing: dict[tuple[Path, ...], dict[Pair, Reads]] = {}
        self._leaving: dict[Path, dict[Path, MapSet]] = {}
        self._at_times: dict[Path, dict[Path, MapSet]] = {}

    def reads(self, output: Path) -> dict[Path, MapSet]:
        """Return the maps from a leaf of the result to each leaf of the operand."""
        array = ArrayRef(self.loop, output)
        identity = self.edges.identity(array)
        if not identity or self.last == 0 or output in self.iteration.facts.invariants:
            return {output: MapSet(identity)} if identity else {}
        (start,) = identity
        answers: dict[Path, MapSet] = {}
        for leaf, maps in self._at_time(output).items():
            self._answer(answers, array, leaf, maps, start)
        if not isinstance(self.ending.count, int):
            for leaf, maps in self._control(output, start).items():
                self._answer(answers, array, leaf, maps, None)
            answers = {
                leaf: self._sharing.of(maps, "repeated control", _without_repeated_control)
                for leaf, maps in answers.items()
            }
        return {
            leaf: maps for leaf, maps in answers.items() if maps.maps or maps.unknown is not None
        }

    def _control(self, output: Path, start: IndexingMap) -> dict[Path, MapSet]:
        """Return the reads of the condition that decide how often the result is changed."""
        answers: dict[Path, MapSet] = {}
        summary = self._summaries[1](self.iteration.condition, ())
        for leaf, reads in timed_reads(self.iteration, summary, is_step=False).items():
            anywhere = [
                first.then(_with_time(m, self.last)).with_grade("may").simplify()
                for m in reads.maps
                for first in self._decisive_times(output, start, len(m.dims))
            ]
            reasons = (*self.ending.reasons, *reads.reasons)
            read = Reads(anywhere, reads.unknown, reasons)
            for operand, maps in self._at_time(leaf).items():
                to = self._timed_set(answers, ArrayRef(self.loop, ()), operand, start.dims)
                answers[operand] = self._sharing.compose_reads(to, read, maps, only_control=True)
        return answers

    def _decisive_times(self, output: Path, start: IndexingMap, kept: int) -> Iterator[IndexingMap]:
        """Yield maps from the result to the times when the condition decides on its value.

        The value of an element at time t is its final value unless the loop changes it later.  The
        condition decides whether iteration ``t - 1`` is executed at all times before t.

        Args:
            kept: the number of dimensions of the condition, which are results before the time.
        """
        time = Variable("time", 0, self.last)
        lead = start.results[:kept]
        changes = changing_elements(self.iteration, output) if not kept else None
        if changes is None:
            yield IndexingMap.of(start.dims, [*lead, time], ranges=[time])
            return
        for m in changes:
            *dims, old = m.dims
            after = old.renamed("after")
            swap = Substitution({old: after.as_expr()})
            _, constraints = m.substituted({old: after.as_expr()})
            within = Constraint(after - 1 - time, 0, self.last)
            first = IndexingMap.of(
                dims,
                [*lead, time],
                ranges=[*m.ranges, after, time],
                runtime=[rt.substituted(swap) for rt in m.runtime],
                constraints=[*constraints, within],
            )
            yield first.simplify()

    # ------------------------------------------------------------ arrays at any time

    def _at_time(self, leaf: Path) -> dict[Path, MapSet]:
        """Return the maps ``(d, t) -> (e, k)`` from a carried array at any time to the operand."""
        if leaf not in self._components:
            for component in strongly_connected([leaf], lambda x: list(self._step(x))):
                if component[0] not in self._components:
                    self._components.update(dict.fromkeys(component, component))
                    self._close(component)
        if leaf not in self._at_times:
            self._at_times[leaf] = self._closed_reads(leaf)
        return self._at_times[leaf]

    def _step(self, leaf: Path) -> dict[Path, Reads]:
        if leaf not in self._steps:
            is_array = self.edges.identity(ArrayRef(self.loop, leaf))
            if leaf in self.iteration.facts.invariants or not is_array:
                self._steps[leaf] = {}
            else:
                self._steps[leaf] = self._timed_reads(leaf)
        return self._steps[leaf]

    def _timed_reads(self, leaf: Path, masked: bool = True) -> dict[Path, Reads]:
        summary = self._summaries[0 if masked else 1](self.iteration.body, leaf)
        return timed_reads(self.iteration, summary, is_step=True)

    def _close(self, component: tuple[Path, ...]) -> None:
        """Collect the reads of one iteration that leave a component, and the step within it."""
        inside = {
            (x, y): reads for x in component for y, reads in self._step(x).items() if y in component
        }
        if any(reads.maps for reads in inside.values()):
            self._closing[component] = inside
        for x in component:
            leaving: dict[Path, MapSet] = {}
            if x not in self.iteration.facts.invariants:
                self._read_before_the_loop(leaving, x)
            for z, reads in self._step(x).items():
                if z not in component:
                    self._leave(leaving, x, reads, self._at_time(z))
            self._leaving[x] = self._tidy_sets(leaving)

    def _read_before_the_loop(self, leaving: dict[Path, MapSet], leaf: Path) -> None:
        for m in self.edges.identity(ArrayRef(self.loop, leaf)):
            first = Variable(f"d{len(m.dims)}", 0, 0)
            zero = as_expr(0)
            to = self._timed_set(leaving, ArrayRef(self.loop, leaf), leaf)
            to.add(replace(m, dims=(*m.dims, first), results=(*m.results, zero)))

    def _leave(
        self, leaving: dict[Path, MapSet], leaf: Path, reads: Reads, after: dict[Path, MapSet]
    ) -> None:
        for operand, maps in after.items():
            to = self._timed_set(leaving, ArrayRef(self.loop, leaf), operand)
            leaving[operand] = self._sharing.compose_reads(to, reads, maps)

    def _closed_reads(self, leaf: Path) -> dict[Path, MapSet]:
        """Return the reads of an array at any time, from those that leave its component."""
        array, component = ArrayRef(self.loop, leaf), self._components[leaf]
        if self._is_forwarded(leaf):
            answers: dict[Path, MapSet] = {}
            for m in self.edges.identity(array):
                time = Variable(f"d{len(m.dims)}", 0, self.last)
                k = time.as_expr() if leaf in self.iteration.facts.invariants else as_expr(0)
                to = self._timed_set(answers, array, leaf)
                to.add(replace(m, dims=(*m.dims, time), results=(*m.results, k)))
            return answers
        if component not in self._closing:
            return self._leaving[leaf]
        closure, inside = self._closure_from(component, leaf)
        unknown = first_unknown(*[reads.unknown for reads in inside])
        reasons = tuple([reason for reads in inside for reason in reads.reasons])
        if not closure.is_closed:
            reasons += (Reason(NOT_CLOSED, self.loop),)
        answers = {}
        for y, closures in closure.maps.items():
            within = Reads(list(closures), unknown, reasons)
            for operand, maps in self._leaving[y].items():
                to = self._timed_set(answers, array, operand)
                answers[operand] = self._sharing.compose_reads(to, within, maps)
        return self._tidy_sets(answers)

    def _is_forwarded(self, leaf: Path) -> bool:
        """Return True if an array has its own elements of the operand at all times."""
        if leaf in self.iteration.facts.invariants:
            return True
        step = self._step(leaf)
        if list(step) != [leaf] or len(step[leaf].maps) != 1 or step[leaf].unknown is not None:
            return False
        (m,) = step[leaf].maps
        *dims, time = m.dims
        *bounds, times = [(0, size - 1) for size in self._timed_sizes(leaf)]
        return (
            not m.constraints
            and m.grade == "exact"
            and m.results == (*[d.as_expr() for d in dims], time - 1)
            and [d.bounds for d in m.dims] == [*bounds, (1, times[1])]
        )

    def _closure_from(
        self, component: tuple[Path, ...], leaf: Path
    ) -> tuple[Closure, Collection[Reads]]:
        """Return the closure from a leaf of a component, and the reads within it.

        It has masks of runtime values only if they have a closed form.
        """
        inside = self._closing[component]
        closure = closure_from(self._component(component, inside), leaf)
        is_free = closure.is_closed and not any(reads.varying for reads in inside.values())
        if not is_free and self.edges.options.follows_runtime_masks:
            steps = {x: self._timed_reads(x, masked=False) for x in component}
            unmasked = {
                (x, y): steps[x].get(y, reads) if reads.maps else reads
                for (x, y), reads in inside.items()
            }
            if any(reads.maps != inside[pair].maps for pair, reads in unmasked.items()):
                closure = closure_from(self._component(component, unmasked), leaf)
                if not any(reads.varying for reads in inside.values()):
                    closure = closure.without_exactness()  # the iteration decides the masks
                inside = unmasked
        return closure, [reads.for_any_values(self.iteration) for reads in inside.values()]

    def _component(self, component: tuple[Path, ...], inside: Mapping[Pair, Reads]) -> Component:
        sizes = {x: self._timed_sizes(x)[:-1] for x in component}
        steps = {
            pair: reads.for_any_values(self.iteration).maps
            for pair, reads in inside.items()
            if reads.maps
        }
        return Component(sizes, steps, self.last)

    # ------------------------------------------------------------ sets of maps

    def _timed_sizes(self, leaf: Path) -> tuple[int, ...]:
        array = ArrayRef(self.loop, leaf)
        sizes = self.edges.sizes(array)
        assert sizes is not None
        return (*sizes, self.last + 1)

    def _timed_set(
        self,
        sets: dict[Path, MapSet],
        start: ArrayRef,
        leaf: Path,
        dims: tuple[Variable, ...] | None = None,
    ) -> MapSet:
        """Return the set of `sets` for a leaf of the operand, whose maps have a time."""
        if leaf not in sets:
            if dims is None:
                sizes = self._timed_sizes(start.path)
                outer = self.edges.dims(start)
                assert outer is not None
                dims = (*outer, Variable(f"d{len(outer)}", 0, sizes[-1] - 1))
            pair = SpacePair(dims, self._timed_sizes(leaf))
            sets[leaf] = MapSet((), pair, Options(exact=True, keep_multiplicity=self.counts))
        return sets[leaf]

    def _tidy_sets(self, sets: dict[Path, MapSet]) -> dict[Path, MapSet]:
        """Return the same relations in fewer maps, with times only where they index the read.

        If reads are counted, each iteration that reads an element counts.
        """
        if self.counts:
            return sets
        return {leaf: self._sharing.of(maps, "tidy", _tidy) for leaf, maps in sets.items()}

    def _answer(
        self,
        answers: dict[Path, MapSet],
        array: ArrayRef,
        leaf: Path,
        maps: MapSet,
        start: IndexingMap | None,
    ) -> None:
        """Add the maps from the result to a leaf of the operand, given those at any time.

        Args:
            start: the identity of the result; None if `maps` start at the result already.
        """
        if leaf not in answers:
            spaces = self.edges.spaces(array, ArrayRef(self.loop, leaf))
            answers[leaf] = MapSet((), spaces, self.edges.options)
        answers[leaf] = self._sharing.change_copy(
            answers[leaf], (maps.state, start), lambda total: self._extend(total, maps, start)
        )

    def _extend(self, total: MapSet, maps: MapSet, start: IndexingMap | None) -> None:
        """Add the maps at the end of the loop, given those at any time; see `_answer`."""
        total.add_unknown(maps.unknown)
        total.add_reasons(maps.all_reasons)
        ending = self.ending
        for is_control, group in maps.by_control:
            finals = [
                final
                for m in group
                for final in (ending.final(m) if start is None else ending.at_the_end(m, start))
                if not final.is_known_empty
            ]
            if not self.counts:
                finals = drop_covered(finals)
            total.extend(finals, control=finals if is_control else ())
        if any(m.grade == "may" for m in total.maps):
            total.add_reasons(ending.reasons)


def _with_time(m: IndexingMap, last: int) -> IndexingMap:
    """Return the reads of the condition at a time, the last dimension and result."""
    time = Variable(f"d{len(m.dims)}", 0, last)
    return replace(m, dims=(*m.dims, time), results=(*m.results, time.as_expr()))


def _without_repeated_control(maps: MapSet) -> MapSet:
    """Return maps without those of control that a map of data is proved to contain."""
    data = [m for m in maps.maps if m not in maps.control]
    repeated = {
        m
        for m in maps.control
        if any(is_contained(m, whole, budget=BUDGET) is True for whole in data)
    }
    return maps.like([m for m in maps.maps if m not in repeated]) if repeated else maps


def _tidy(maps: MapSet) -> MapSet:
    tidied = maps.like(())
    for is_control, group in maps.by_control:
        settled = _coalesce_maps(drop_covered(map(_without_idle_time, group)))
        tidied.extend(settled, control=settled if is_control else ())
    return tidied


def _without_idle_time(m: IndexingMap) -> IndexingMap:
    """Return a map with time 0 if its element does not depend on the time of the read."""
    *element, time = m.results
    used = {v for result in element for v in result.variables()}
    used |= {v for rt in m.runtime for expr in rt.index for v in expr.variables()}
    if time.is_constant or not used.isdisjoint(time.variables()):
        return m
    return replace(m, results=(*element, as_expr(0))).simplify()


def _coalesce_maps(maps: list[IndexingMap]) -> list[IndexingMap]:
    """Return the same relation; exact maps as fewer maps if isl can."""
    exact = [m for m in maps if m.grade == "exact" and not m.runtime]
    if not 1 < len(exact) <= MAX_COALESCED:
        return maps
    pieces = fewer_pieces(tuple(map(as_relation, exact)))
    if pieces is None or isinstance(pieces, Unknown):
        return maps
    fewer = [map_of_piece(piece, "exact") for piece in pieces]
    return [*fewer, *[m for m in maps if m not in exact]]
