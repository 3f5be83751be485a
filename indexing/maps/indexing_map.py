"""`IndexingMap`: which elements of one tensor an element of another needs, as a symbolic relation.

``(d0, d1)[s0]{rt0} -> (d0 + rt0, d1 * 2 + s0), domain: d0 in [0, 9], …, d0 + s0 in [0, 20]``

* *dimensions* ``d0, d1, …`` index the tensor we come from (or a grid: ``bl_x``, ``th_x``, …);
* *range variables* ``s0, …`` run over their whole range: one element needs many;
* *runtime variables* ``rt0, …`` have one value that only the running program knows: an element of
  an instruction's value (`RuntimeVariable`);
* all bounds are inclusive; ``floordiv`` rounds down, ``mod`` has a result in ``[0, modulus)``.

A point of the domain is related to the tuple of results.  Maps are values: every method gives a new
one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from operator import index
from typing import Literal, TypeAlias

import indexing.methods as methods
from hlo.shapes.shape import Shape
from indexing.maps.notations import Notations
from indexing.maps.questions import Questions
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.symbolic import bounded
from simplifier.atoms import Variable, mentioned
from simplifier.constraints import FALSE
from simplifier.constraints import Constraint as Constraint
from simplifier.interval import Interval, intersected
from simplifier.linear import Affine, Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.trace import Applied

Grade: TypeAlias = Literal["exact", "may"]
Extents: TypeAlias = "Sequence[int] | Shape"


def dims(extents: Extents) -> tuple[Variable, ...]:
    """``d0, d1, …``, one for each dimension of a tensor, each in ``[0, size − 1]``.

    >>> dims((2, 5))
    (Variable('d0', 0, 1), Variable('d1', 0, 4))
    """
    return _numbered("d", [index(size) for size in _sizes(extents)])  # type: ignore[arg-type]


def ranges(*sizes: int) -> tuple[Variable, ...]:
    """``s0, s1, …``, each in ``[0, size − 1]``."""
    return _numbered("s", sizes)


def _numbered(prefix: str, sizes: Iterable[int]) -> tuple[Variable, ...]:
    return tuple([Variable(f"{prefix}{k}", 0, size - 1) for k, size in enumerate(sizes)])


def _sizes(extents: Extents | Sequence[Affine]) -> tuple[Affine, ...]:
    return tuple(extents) if isinstance(extents, Sequence) else extents.dims


@dataclass(frozen=True, slots=True)
class Difference:
    """The falsy answer of `IndexingMap.is_equal`: a point that only one of the two maps relates."""

    witness: dict[str, int]
    results: tuple[int, ...]
    only_in: Literal["first", "second"]

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, eq=False)
class IndexingMap(Notations, Questions):
    """A relation between points of a domain and tuples of results; see the module's notation.

    Attributes:
        dims, ranges, runtime: the variables, whose bounds are the box of the domain.
        results: one expression for each dimension of the tensor that is read.
        constraints: what the points of the box satisfy besides.
        grade: "exact": precisely the elements needed; "may": no fewer than those needed.

    Equality ``==`` is structural, `is_equal` is semantic.

    >>> every_other = IndexingMap.over((10,), lambda d: [d[0] * 2])
    >>> print(every_other)
    (d0) -> (d0 * 2), domain: d0 in [0, 9]
    """

    dims: tuple[Variable, ...]
    ranges: tuple[Variable, ...]
    runtime: tuple[RuntimeVariable, ...]
    results: tuple[Expr, ...]
    constraints: tuple[Constraint, ...] = ()
    grade: Grade = "exact"
    _hash: int = field(default=0, init=False, repr=False)
    # the last map of the composition that made this one: both have the same results
    _last: IndexingMap | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        names = [v.name for v in self.variables]
        if len(set(names)) != len(names):
            raise ValueError(f"the variables of a map have different names, not {names}")

    def __hash__(self) -> int:
        if not self._hash:
            key = self.dims, self.ranges, self.runtime, self.results, self.constraints, self.grade
            object.__setattr__(self, "_hash", hash(key))
        return self._hash

    def __reduce__(self) -> tuple[type[IndexingMap], tuple[object, ...]]:
        """Made anew where it is loaded: hashes differ from process to process."""
        key = self.dims, self.ranges, self.runtime, self.results, self.constraints, self.grade
        return IndexingMap, key

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, IndexingMap):
            return NotImplemented
        return (
            self.dims == other.dims
            and self.results == other.results
            and self.ranges == other.ranges
            and self.runtime == other.runtime
            and self.constraints == other.constraints
            and self.grade == other.grade
        )

    # ------------------------------------------------------------ making

    @classmethod
    def of(
        cls,
        dims: Iterable[Variable],
        results: Iterable[Affine],
        *,
        ranges: Iterable[Variable] = (),
        runtime: Iterable[RuntimeVariable] = (),
        constraints: Iterable[Constraint] = (),
        grade: Grade = "exact",
    ) -> IndexingMap:
        """A map over these variables, with results that may be variables and numbers too.

        Raises:
            ValueError: an expression has a variable that is none of these.
        """
        made = cls(
            tuple(dims),
            tuple(ranges),
            tuple(runtime),
            tuple([as_expr(result) for result in results]),
            tuple(constraints),
            grade,
        )
        exprs = [*made.results, *[c.expr for c in made.constraints]]
        exprs += [expr for rt in made.runtime for expr in rt.index]
        strange = mentioned(exprs).difference(made.variables)
        if strange:
            named = sorted(map(repr, strange))
            raise ValueError(f"{named[0]} is none of the variables {made.variables}")
        return made

    @classmethod
    def over(
        cls,
        extents: Extents | Sequence[Affine],
        results: Callable[[tuple[Variable, ...]], Iterable[Affine]],
    ) -> IndexingMap:
        """The map from the elements of a tensor to ``results(d)``.

        Sizes may be expressions of symbols; see `indexing.maps.symbolic`.

        >>> print(IndexingMap.over((3, 7), lambda d: [d[1], 6 - d[1]]))
        (d0, d1) -> (d1, -d1 + 6), domain: d0 in [0, 2], d1 in [0, 6]
        """
        variables, constraints, symbols = bounded("d", _sizes(extents))
        sizes = [RuntimeVariable(symbol) for symbol in symbols]
        return cls.of(variables, results(variables), runtime=sizes, constraints=constraints)

    @classmethod
    def identity(cls, extents: Extents | Sequence[Affine]) -> IndexingMap:
        """Each element of a tensor to itself."""
        return cls.over(extents, lambda d: d)

    @classmethod
    def empty(cls, dims: Iterable[Variable] = (), rank: int = 0) -> IndexingMap:
        """The map to `rank` results that relates nothing; it prints as ``KNOWN EMPTY``."""
        return cls.of(dims, [0] * rank, constraints=(FALSE,))

    # ------------------------------------------------------------ looking

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Dimensions, range variables and runtime variables, in this order."""
        return (*self.dims, *self.ranges, *[rt.variable for rt in self.runtime])

    @property
    def result_bounds(self) -> tuple[Interval, ...]:
        """Intervals that contain the results on the domain.

        Composition and `simplify` keep bounds that the expressions of the results do not imply.

        >>> window = IndexingMap.over((10,), lambda d: [d[0] // 2 * 3 - d[0]])
        >>> reverse = IndexingMap.over((4,), lambda d: [3 - d[0]])
        >>> window.result_bounds, window.then(reverse).result_bounds
        (((-9, 12),), ((0, 3),))
        """
        own = tuple([result.bounds for result in self.results])
        if self._last is None:
            return own
        return tuple(
            [intersected(a, r.bounds) for a, r in zip(own, self._last.results, strict=True)]
        )

    @property
    def reach(self) -> tuple[Interval, ...]:
        """Deprecated name of `result_bounds`."""
        message = "IndexingMap.reach is deprecated: use IndexingMap.result_bounds"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.result_bounds

    @property
    def is_known_empty(self) -> bool:
        """No point is in the domain, as intervals alone show; `is_empty` decides exactly."""
        return any(v.is_empty for v in self.variables) or any(c.is_false for c in self.constraints)

    @property
    def is_identity(self) -> bool:
        """Each point of the box of dimensions is related to itself, and to nothing else."""
        return (
            not self.ranges
            and not self.runtime
            and not self.constraints
            and self.grade == "exact"
            and len(self.results) == len(self.dims)
            and all(r == d.as_expr() for r, d in zip(self.results, self.dims, strict=True))
        )

    def source_map(self, runtime: RuntimeVariable) -> IndexingMap:
        """Which element of ``runtime.source`` the runtime variable is.

        The dimensions of the answer are those of this map, and the range variables and other
        runtime variables that the element depends on.
        """
        mentioned = {v for expr in runtime.index for v in expr.variables()}
        others = [v for v in self.variables if v in self.dims or v in mentioned]
        return IndexingMap.of(others, runtime.index)

    def __str__(self) -> str:
        return methods.map_text(self)

    def pretty(self) -> str:
        """The map with one variable a line, as XLA's documents print it."""
        return methods.pretty_text(self)

    # ------------------------------------------------------------ evaluating

    def evaluate(
        self, dims: Sequence[int] = (), ranges: Sequence[int] = (), runtime: Sequence[int] = ()
    ) -> tuple[int, ...] | None:
        """The results at one point, or `None` where the point is outside the domain.

        Raises:
            ValueError: as many values as variables are needed, of each kind.

        >>> m = IndexingMap.over((10,), lambda d: [d[0] * 2])
        >>> m.evaluate([4]), m.evaluate([10])
        ((8,), None)
        """
        values = (*dims, *ranges, *runtime)
        given = len(dims), len(ranges), len(runtime)
        wanted = len(self.dims), len(self.ranges), len(self.runtime)
        if given != wanted:
            raise ValueError(
                f"the map has {wanted[0]} dimensions, {wanted[1]} range variables and {wanted[2]} "
                f"runtime variables; given were {given[0]}, {given[1]} and {given[2]} values"
            )
        if any(not v.lower <= x <= v.upper for v, x in zip(self.variables, values, strict=True)):
            return None
        point = dict(zip(self.variables, values, strict=True))
        try:
            if any(not c.lower <= c.expr.value(point) <= c.upper for c in self.constraints):
                return None
            return tuple([result.value(point) for result in self.results])
        except ZeroDivisionError:  # by an expression: the map says nothing there
            return None

    def points(
        self, runtime: Sequence[int] = ()
    ) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Every related pair ``(dims, results)``, by enumeration; for small maps and tests."""
        boxes = [range(v.lower, v.upper + 1) for v in (*self.dims, *self.ranges)]
        count = len(self.dims)
        for values in product(*boxes):
            results = self.evaluate(values[:count], values[count:], runtime)
            if results is not None:
                yield values[:count], results

    # ------------------------------------------------------------ changing

    def then(self, second: IndexingMap) -> IndexingMap:
        """``x -> second(first(x))``, where `self` is first.

        With output-to-input maps: ``consumer.then(producer)``.

        Raises:
            ValueError: `self` has not one result for each dimension of `second`.

        >>> half = IndexingMap.over((8,), lambda d: [d[0] // 2])
        >>> print(IndexingMap.over((4,), lambda d: [d[0] * 2 + 1]).then(half))
        (d0) -> (d0), domain: d0 in [0, 3]
        """
        return methods.composed(self, second)

    def simplify(
        self,
        certify: bool = False,
        trace: list[methods.Rewrite | Applied] | None = None,
        keep_multiplicity: bool = False,
    ) -> IndexingMap:
        """The same relation in its simplest form.

        Tighter bounds, simpler results and fewer constraints; range variables and runtime variables
        that nothing depends on are dropped, but no symbolic sizes; range variables that a
        constraint determines are solved for, the others are numbered in order of their first use.

        Args:
            certify: prove with ISL that the result equals the original.
            trace: a list to which the steps are added that change something: laws of expressions,
                and what follows for the whole map, each with ``law``, ``before`` and ``after``.
            keep_multiplicity: each point reaches its results as often as before, for as many values
                of the range variables: those stay that nothing but this depends on.
        Raises:
            CertificateError: it does not (with a witness point), or the proof was beyond its
            budget.
        """
        if trace is not None:
            trace.extend(methods.traced(self, keep_multiplicity))
        simple = methods.simplified(self, keep_multiplicity)
        return methods.certified(self, simple) if certify else simple

    def with_grade(self, grade: Grade) -> IndexingMap:
        """The same relation with another grade."""
        return self if grade == self.grade else replace(self, grade=grade)

    def with_constraints(self, constraints: Iterable[Constraint]) -> IndexingMap:
        """The points that also satisfy `constraints`."""
        return replace(self, constraints=(*self.constraints, *constraints))

    def substituted(self, values: dict[Variable, Expr]) -> tuple[list[Expr], list[Constraint]]:
        """Results and constraints with variables replaced."""
        swap = Substitution(values)
        constraints = [c.mapped(swap) for c in self.constraints]
        return [swap(result) for result in self.results], constraints

    def ranges_to_dims(self) -> IndexingMap:
        """Range variables become further dimensions: a loop nest over everything that is read.

        >>> reads = IndexingMap.of(dims((4,)), ranges(3), ranges=ranges(3))
        >>> print(reads.ranges_to_dims())
        (d0, s0) -> (s0), domain: d0 in [0, 3], s0 in [0, 2]
        """
        return replace(self, dims=(*self.dims, *self.ranges), ranges=())

    def remove_unused(self) -> IndexingMap:
        """The same relation without the range and runtime variables on which nothing depends.

        Symbolic sizes stay: what constraints said of them may be in their bounds.
        An empty domain stays empty: variables whose own constraints have no solution are not
        dropped silently, they make the whole map ``KNOWN EMPTY``.
        """
        return methods.without_unused(self)

    def rescale(self) -> IndexingMap:
        """A range variable of which only every k-th value is allowed becomes ``k·s + r``.

        That is part of `simplify`, of which this is another name.

        >>> from indexing.maps.text import parse_map
        >>> print(parse_map("()[s0] -> (s0), domain: s0 in [0, 7], s0 mod 4 in [1, 1]").rescale())
        ()[s0] -> (s0 * 4 + 1), domain: s0 in [0, 1]
        """
        return self.simplify()
