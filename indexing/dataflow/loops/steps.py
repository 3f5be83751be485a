"""One iteration of a loop as maps from each carried array to the carried arrays before it.

The maps ``(d, t) -> (e, t - 1)`` have the time as the last dimension and the last result: the
number of iterations that were executed before.  The step from time t to ``t - 1`` is iteration
``t - 1``.  A value that the body computes from carried arrays is a runtime variable, which is read
in that iteration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from indexing.dataflow.loops.iteration import ENDLESS, NUMBER, Iteration
from indexing.dataflow.runtime import copied_elements
from indexing.dataflow.values import wrapping_source
from indexing.maps.arrays import ArrayRef, Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.reasons import Reason
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.structured_ops import MapsByLeaf
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, constant
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown, first_unknown


@dataclass(slots=True)
class Reads:
    """The reads of a carried array from another one in one iteration.

    Attributes:
        maps: maps with time, for a step; without, for a condition.
        unknown: the reason if maps may be missing.
        reasons: why maps have the grade "may".
        control: those of `maps` whose elements decide only control.
        varying: the runtime variables that have another value in each iteration.
    """

    maps: list[IndexingMap] = field(default_factory=list)
    unknown: Unknown | None = None
    reasons: tuple[Reason, ...] = ()
    control: set[IndexingMap] = field(default_factory=set)
    varying: tuple[Reason, ...] = ()

    def for_any_values(self, iteration: Iteration) -> Reads:
        """Return the same reads with maps for all values of the runtime variables that vary."""
        if not self.varying:
            return self
        reads = Reads([], self.unknown, (*self.reasons, *self.varying))
        for m in self.maps:
            reads.add([for_any_values(m, iteration)], is_control=m in self.control)
        return reads

    def add(self, maps: Sequence[IndexingMap], *, is_control: bool) -> None:
        """Add maps; a map decides only control if all equal maps do."""
        if is_control:
            self.control.update([each for each in maps if each not in self.maps])
        else:
            self.control.difference_update(maps)
        self.maps += maps


def timed_reads(iteration: Iteration, summary: MapsByLeaf, *, is_step: bool) -> dict[Path, Reads]:
    """Return what a leaf reads of each leaf of the parameter.

    Runtime variables that vary may have any value in a condition, whose iteration is not known, and
    in a loop without a limit on its iterations, of which all maps are over-approximated.

    Args:
        summary: the maps from a leaf of the body's or the condition's root to the parameter.
        is_step: add the time as a dimension and as a result.
    """
    reads: dict[Path, Reads] = {}
    for (_, path), maps in summary.items():
        here = reads.setdefault(path, Reads())
        here.unknown = first_unknown(here.unknown, maps.unknown)
        here.reasons += maps.reasons
        for m in maps.maps:
            settled = (
                timed_maps(m, iteration)
                if is_step
                else [_settle_runtime(m, iteration, constant(0))]
            )
            here.add(list(settled), is_control=m in maps.control)
            here.varying += tuple(_obstacles(m, iteration))
    if is_step and iteration.most < ENDLESS:
        return reads
    return {leaf: each.for_any_values(iteration) for leaf, each in reads.items()}


def _obstacles(m: IndexingMap, iteration: Iteration) -> Iterator[Reason]:
    """Yield the runtime variables whose values in each iteration are not known."""
    for rt in m.runtime:
        if not rt.is_fixed and isinstance(rt.array, ArrayRef) and _outside(rt, iteration) is None:
            source = wrapping_source(rt.array, iteration, iteration.may_wrap)
            text = "an index is not affine in the number of the iteration"
            if source is not None and source.array_shape is not None:
                text = f"an index may wrap around in {source.array_shape.element_type}"
            if source is None or source.instruction is iteration.parameter:
                source = rt.array
            name = source.instruction.name
            yield Reason(f"{text}: `{name}`", iteration.loop)


def timed_maps(m: IndexingMap, iteration: Iteration) -> Iterator[IndexingMap]:
    """Yield a map of the body with the time as last dimension and result, without empty maps."""
    time = Variable(f"d{len(m.dims)}", 1, iteration.most)
    numbers = [rt for rt in m.runtime if rt.array is None and rt.name == NUMBER]
    values = {rt.variable: time - 1 for rt in numbers}
    within = [Constraint(time - 1, *rt.variable.bounds) for rt in numbers]
    results, constraints = m.substituted(values)
    swap = Substitution(values)
    runtime = [rt.substituted(swap) for rt in m.runtime if rt not in numbers]
    timed = IndexingMap.of(
        [*m.dims, time],
        [*results, time - 1],
        ranges=m.ranges,
        runtime=runtime,
        constraints=[*within, *constraints],
        grade=m.grade,
    )
    settled = _settle_runtime(timed, iteration, time - 1)
    if not settled.is_known_empty:
        yield settled


def _settle_runtime(m: IndexingMap, iteration: Iteration, number: Expr) -> IndexingMap:
    """Return a map whose runtime variables are values outside of the loop or of one iteration.

    Args:
        number: the iteration.
    """
    fixed: dict[Variable, Expr] = {}
    runtime: list[RuntimeVariable] = []
    for rt in m.runtime:
        if rt.clamp is not None and rt.is_fixed:
            fixed[rt.variable] = constant(rt.clamp[0])
        else:
            runtime.append(_outside(rt, iteration) or _inside(rt, iteration, number))
    results, constraints = m.substituted(fixed)
    swap = Substitution(fixed)
    return IndexingMap.of(
        m.dims,
        results,
        ranges=m.ranges,
        runtime=[rt.substituted(swap) for rt in runtime],
        constraints=constraints,
        grade=m.grade,
    ).simplify()


def _inside(rt: RuntimeVariable, iteration: Iteration, number: Expr) -> RuntimeVariable:
    """Return a value that the body computes, as that of one iteration."""
    assert isinstance(rt.array, ArrayRef)
    array = rt.array._replace(calls=(iteration.loop, *rt.array.calls))
    return RuntimeVariable(rt.variable, array, (number, *rt.index), rt.clamp)


def for_any_values(m: IndexingMap, iteration: Iteration) -> IndexingMap:
    """Return a map in which values that the body computes have any value in their bounds."""
    free = [rt for rt in m.runtime if rt.calls[:1] == (iteration.loop,)]
    if not free:
        return m
    ranges = [*m.ranges, *_rename_taken([rt.variable for rt in free], m.variables)]
    new = ranges[len(m.ranges) :]
    values = {rt.variable: v.as_expr() for rt, v in zip(free, new, strict=True)}
    swap = Substitution(values)
    results, constraints = m.substituted(values)
    return IndexingMap.of(
        m.dims,
        results,
        ranges=ranges,
        runtime=[rt.substituted(swap) for rt in m.runtime if rt not in free],
        constraints=constraints,
        grade="may",
    ).simplify()


def _outside(rt: RuntimeVariable, iteration: Iteration) -> RuntimeVariable | None:
    """Return a runtime variable with its source outside of the loop; None if there is none."""
    if rt.array is None:
        return iteration.source(rt) or rt
    if not isinstance(rt.array, ArrayRef) or rt.iterations:
        return None
    *_, (array, index) = [(rt.array, rt.index), *copied_elements(rt.array, rt.index)]
    if array.instruction is not iteration.parameter or array.calls:
        return None
    if array.path not in iteration.facts.invariants:
        return None
    source = iteration.outside(array.path)
    if source.path and iteration.loop.computation.is_entry:  # an element of a tuple has no name
        return None
    return RuntimeVariable(rt.variable, source, tuple(index), rt.clamp)


def _rename_taken(variables: Iterable[Variable], taken: Iterable[Variable]) -> Iterator[Variable]:
    """Yield variables with names that are not taken."""
    names = {v.name for v in taken}
    for k, variable in enumerate(variables):
        name = f"any{k}"
        while name in names:
            name += "_"
        names.add(name)
        yield variable.renamed(name)
