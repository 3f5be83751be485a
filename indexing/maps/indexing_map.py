"""`IndexingMap`: the elements of one tensor that an element of another tensor needs.

``(d0, d1)[s0]{rt0} -> (d0 + rt0, d1 * 2 + s0), domain: d0 in [0, 9], …, d0 + s0 in [0, 20]``

* *dimensions* ``d0, d1, …`` index the tensor or grid (``bl_x``, ``th_x``, …) of the domain;
* *range variables* ``s0, …`` take every value in their bounds, so one element needs many;
* *runtime variables* ``rt0, …`` have one value each, an element of an instruction's value that is
  known only at run time (`RuntimeVariable`);
* all bounds are inclusive; ``floordiv`` rounds down, and ``mod`` has a result in ``[0, modulus)``.

A map relates each point of its domain to the tuple of results.  Maps are immutable.

Source: XLA ``docs/indexing.md``, "Indexing map" and "Implementation"; MLIR Affine dialect,
"Affine Expressions", for ``floordiv`` and ``mod``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Final

import indexing.methods as methods
from hlo.arguments import brief_text, check_call, checked_on_failure, wrong_argument
from indexing.maps.map_fields import Grade as Grade
from indexing.maps.map_fields import MapFields, check_fields, set_fields
from indexing.maps.map_queries import Difference as Difference
from indexing.maps.map_queries import MapQueries
from indexing.maps.map_selection import MapSelection
from indexing.maps.notations import Notations
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.spaces import Extents as Extents
from indexing.maps.spaces import dims as dims
from indexing.maps.spaces import ranges as range_variables
from indexing.maps.spaces import ranges as ranges
from indexing.maps.spaces import sizes_of
from indexing.maps.symbolic import bounded_variables
from indexing.maps.transformations import Transformations
from simplifier.atoms import Variable
from simplifier.constraints import FALSE, substitute_all
from simplifier.constraints import Constraint as Constraint
from simplifier.interval import Interval, intersect
from simplifier.linear import Affine, Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.trace import Applied

DEVICE: Final = "device"
"""The name of the dimension that numbers devices, before those of an array."""

_INTEGER, _VARIABLE, _EXPR = frozenset({int}), frozenset({Variable}), frozenset({Expr})


class IndexingMap(Notations, MapQueries, MapSelection, Transformations, MapFields):
    """A relation between the points of a domain and tuples of results.

    Attributes:
        dims, ranges, runtime: the variables; their bounds are the box of the domain.
        results: one expression for each dimension of the target tensor.
        constraints: further conditions ``expression in [lower, upper]`` on the points of the box.
        grade: "exact": precisely the needed elements; "may": a superset of the needed elements.

    The operator ``==`` compares structure, `is_equal` compares relations.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: two variables have the same name, or an expression has a variable that is not a
            variable of the map.
    Source: XLA ``docs/indexing.md``, "Indexing map"; isl manual, "Sets and Relations".

    >>> every_other = IndexingMap.over((10,), lambda d: [d[0] * 2])
    >>> print(every_other)
    (d0) -> (d0 * 2), domain: d0 in [0, 9]
    """

    __slots__ = ()
    assumptions: ClassVar[tuple[str, ...]] = ()
    """Names of the assumptions that the map needs: `indexing.maps.assumed_map`."""
    given_texts: ClassVar[Mapping[Expr, str]] = MappingProxyType({})
    """Texts of expressions that are not those of the normal form: `indexing.maps.spelled`."""

    def __init__(
        self,
        dims: tuple[Variable, ...],
        ranges: tuple[Variable, ...],
        runtime: tuple[RuntimeVariable, ...],
        results: tuple[Expr, ...],
        constraints: tuple[Constraint, ...] = (),
        grade: Grade = "exact",
    ) -> None:
        try:
            set_fields(self, dims, ranges, runtime, results, constraints, grade)
            check_fields(self)
        except (AttributeError, TypeError, ValueError):  # the last one: arrays have no truth value
            given = dims, ranges, runtime, results, constraints
            check_call(IndexingMap.__init__, self, *given, grade)
            for name, value in zip(IndexingMap.__match_args__, given, strict=False):
                if not isinstance(value, tuple):
                    raise wrong_argument("IndexingMap", name, tuple, value) from None
            raise

    def __reduce__(self) -> tuple[type[IndexingMap], tuple[object, ...]]:
        """Pickle without the hash: hashes differ between processes."""
        key = self.dims, self.ranges, self.runtime, self.results, self.constraints, self.grade
        return IndexingMap, key

    # ------------------------------------------------------------ construction

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
        """Return the map with these variables; results may be expressions, variables or integers.

        >>> d0, s0 = Variable("d0", 0, 3), Variable("s0", 0, 1)
        >>> print(IndexingMap.of([d0], [d0 * 2 + s0, 0], ranges=[s0]))
        (d0)[s0] -> (d0 * 2 + s0, 0), domain: d0 in [0, 3], s0 in [0, 1]
        """
        try:
            exprs = tuple([r if type(r) is Expr else as_expr(r) for r in results])
            return cls(tuple(dims), tuple(ranges), tuple(runtime), exprs, tuple(constraints), grade)
        except (AttributeError, TypeError, ValueError):
            named = {"ranges": ranges, "runtime": runtime, "constraints": constraints}
            check_call(cls.of, dims, results, **named, grade=grade)
            raise

    @classmethod
    @checked_on_failure
    def over(
        cls,
        extents: Extents | Sequence[Affine],
        results: Callable[..., Iterable[Affine]],
        ranges: Sequence[int] | None = None,
    ) -> IndexingMap:
        """Return the map from the elements of a tensor to ``results(d)``, or ``results(d, s)``.

        Args:
            extents: the shape of the tensor, or its sizes, which may be symbolic expressions
                (`indexing.maps.symbolic`).
            results: a function from the dimensions ``d``, and the range variables ``s`` if `ranges`
                is given, to the results.
            ranges: the sizes of the range variables.
        Raises:
            ValueError: a symbol has the name of a dimension.

        >>> print(IndexingMap.over((3, 7), lambda d: [d[1], 6 - d[1]]))
        (d0, d1) -> (d1, -d1 + 6), domain: d0 in [0, 2], d1 in [0, 6]
        >>> print(IndexingMap.over((8,), lambda d, s: [d[0] * 4 + s[0]], ranges=(4,)))
        (d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 7], s0 in [0, 3]
        """
        variables, constraints, symbols = bounded_variables("d", sizes_of(extents))
        sizes = [RuntimeVariable(symbol) for symbol in symbols]
        own = () if ranges is None else range_variables(*ranges)
        exprs = results(variables) if ranges is None else results(variables, own)
        return cls.of(variables, exprs, ranges=own, runtime=sizes, constraints=constraints)

    @classmethod
    @checked_on_failure
    def identity(cls, extents: Extents | Sequence[Affine]) -> IndexingMap:
        """Return the map from each element of a tensor to itself.

        >>> print(IndexingMap.identity((3, 7)))
        (d0, d1) -> (d0, d1), domain: d0 in [0, 2], d1 in [0, 6]
        """
        return cls.over(extents, lambda d: d)

    @classmethod
    @checked_on_failure
    def empty(cls, dims: Iterable[Variable] = (), rank: int = 0) -> IndexingMap:
        """Return the empty relation from `dims` to `rank` results; it prints as ``KNOWN EMPTY``.

        >>> print(IndexingMap.empty(dims((3,)), rank=2))
        KNOWN EMPTY
        """
        return cls.of(dims, [0] * rank, constraints=(FALSE,))

    # ------------------------------------------------------------ inspection

    @property
    def result_bounds(self) -> tuple[Interval, ...]:
        """Intervals that contain the results on the domain, both ends included.

        After composition and `simplify` they may be tighter than the bounds of the expressions.

        >>> window = IndexingMap.over((10,), lambda d: [d[0] // 2 * 3 - d[0]])
        >>> reverse = IndexingMap.over((4,), lambda d: [3 - d[0]])
        >>> window.result_bounds, window.then(reverse).result_bounds
        (((-9, 12),), ((0, 3),))
        """
        own = tuple([result.bounds for result in self.results])
        if self._last is None:
            return own
        pairs = zip(own, self._last.results, strict=True)
        return tuple([intersect(bounds, last.bounds) for bounds, last in pairs])

    @property
    def is_known_empty(self) -> bool:
        """True if interval bounds show that the domain is empty; `is_empty` decides exactly.

        >>> from indexing import parse_map
        >>> far = parse_map("(d0) -> (d0), domain: d0 in [0, 9], d0 * 2 in [30, 40]")
        >>> domain = "d0 in [0, 9], d0 mod 2 in [0, 0], d0 mod 4 in [1, 1]"  # even and odd
        >>> odd = parse_map(f"(d0) -> (d0), domain: {domain}")
        >>> far.is_known_empty, odd.is_known_empty, odd.is_empty()
        (True, False, True)
        """
        empty = [v.lower > v.upper for v in self.variables]
        return True in empty or True in [c.is_false for c in self.constraints]

    def __str__(self) -> str:
        return methods.map_text(self)

    def __repr__(self) -> str:
        return f"<map {brief_text(str(self))}>"

    def pretty(self) -> str:
        """Return the text of the map with one variable per line, as in XLA's documentation.

        >>> print(IndexingMap.identity((3,)).pretty())
        (d0) -> (d0),
          domain:
          d0 in [0, 2]
        """
        return methods.pretty_text(self)

    # ------------------------------------------------------------ evaluation

    def evaluate(
        self, dims: Sequence[int] = (), ranges: Sequence[int] = (), runtime: Sequence[int] = ()
    ) -> tuple[int, ...] | None:
        """Return the results at one point; `None` if the point is outside the domain.

        Calling the map, ``m(…)``, also accepts arrays.

        Raises:
            TypeError: a value is not an integer.
            ValueError: the number of values is not the number of variables, for some kind.

        >>> m = IndexingMap.over((10,), lambda d: [d[0] * 2])
        >>> m.evaluate([4]), m.evaluate([10])
        ((8,), None)
        """
        try:
            values = (*dims, *ranges, *runtime)
        except TypeError:  # a single integer
            values = methods.point_integers("evaluate", self, dims, ranges, runtime)
        if not _INTEGER.issuperset(map(type, values)):
            values = methods.point_integers("evaluate", self, dims, ranges, runtime)
        given = len(dims), len(ranges), len(runtime)
        expected = len(self.dims), len(self.ranges), len(self.runtime)
        if given != expected:
            raise ValueError(
                f"the map has {expected[0]} dimensions, {expected[1]} range variables and "
                f"{expected[2]} runtime variables; got {given[0]}, {given[1]} and {given[2]} values"
            )
        if any(not v.lower <= x <= v.upper for v, x in zip(self.variables, values, strict=True)):
            return None
        point = dict(zip(self.variables, values, strict=True))
        try:
            if any(not c.lower <= c.expr.value(point) <= c.upper for c in self.constraints):
                return None
            return tuple([result.value(point) for result in self.results])
        except ZeroDivisionError:  # division by an expression: no result at this point
            return None

    # ------------------------------------------------------------ transformation

    def then(self, second: IndexingMap) -> IndexingMap:
        """Return the composition ``x -> second(self(x))``.

        For output-to-input maps: ``consumer.then(producer)``.

        Raises:
            ValueError: the number of results of `self` is not the number of dimensions of `second`.
        Source: XLA ``docs/indexing.md``, "Indexing Maps for Fusion".

        >>> half = IndexingMap.over((8,), lambda d: [d[0] // 2])
        >>> print(IndexingMap.over((4,), lambda d: [d[0] * 2 + 1]).then(half))
        (d0) -> (d0), domain: d0 in [0, 3]
        """
        if not isinstance(second, IndexingMap):
            raise wrong_argument("then", "second", IndexingMap, second)
        return methods.compose(self, second)

    def simplify(
        self,
        certify: bool = False,
        trace: list[methods.Rewrite | Applied] | None = None,
        keep_multiplicity: bool = False,
    ) -> IndexingMap:
        """Return the same relation in its simplest form.

        Bounds are tightened, results and constraints simplified.  Range and runtime variables on
        which nothing depends are dropped, except symbolic sizes.  Range variables determined by a
        constraint are eliminated; the others are numbered in order of first use.

        Args:
            certify: prove with ISL that the result equals the original.
            trace: a list to append the effective steps to: laws applied to expressions, and
                rewrites of the whole map, each with ``law``, ``before`` and ``after``.
            keep_multiplicity: keep the number of range variable values for which each point reaches
                each of its results.
        Raises:
            CertificateError: with `certify`, the maps differ, or the proof exceeds its budget.
        Source: XLA ``docs/indexing.md``, "Indexing Map Simplifier".

        >>> from indexing.maps.text import parse_map
        >>> text = "(d0)[s0, s1] -> (s0 mod 8), domain: d0 in [0, 9], s0 in [0, 7], s1 in [0, 3]"
        >>> print(parse_map(text).simplify(certify=True))
        (d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 7]
        """
        if trace is None and certify is False and keep_multiplicity is False:
            return methods.simplify_map(self, False)
        if trace is not None:
            if not isinstance(trace, list):
                raise wrong_argument("simplify", "trace", list | None, trace)
            trace.extend(methods.trace_steps(self, keep_multiplicity))
        for name, flag in (("certify", certify), ("keep_multiplicity", keep_multiplicity)):
            if flag is not True and flag is not False:
                raise wrong_argument("simplify", name, bool, flag)
        simple = methods.simplify_map(self, keep_multiplicity)
        return methods.certify_map(self, simple) if certify else simple

    @checked_on_failure
    def with_constraints(self, constraints: Iterable[Constraint]) -> IndexingMap:
        """Return the map restricted to the points that satisfy `constraints`.

        >>> m = IndexingMap.identity((9,))
        >>> print(m.with_constraints([Constraint(m.dims[0] % 2, 0, 0)]))
        (d0) -> (d0), domain: d0 in [0, 8], d0 mod 2 in [0, 0]
        """
        return replace(self, constraints=(*self.constraints, *constraints))

    @checked_on_failure
    def substituted(self, values: Mapping[Variable, Affine]) -> tuple[list[Expr], list[Constraint]]:
        """Return the results and constraints with variables replaced by expressions or integers.

        If a divisor becomes 0, the relation has no points: the only constraint is false.

        >>> m = IndexingMap.over((9,), lambda d: [d[0] // 2])
        >>> m.substituted({m.dims[0]: 5})
        ([Expr('2')], [])
        """
        if not _VARIABLE.issuperset(map(type, values)):
            raise wrong_argument("substituted", "values", Mapping[Variable, Affine], values)
        if not _EXPR.issuperset(map(type, values.values())):
            values = {v: as_expr(value) for v, value in values.items()}
        swap = Substitution(values)  # type: ignore[arg-type]  # expressions now
        return substitute_all(self.results, self.constraints, swap)


def has_device(indexing_map: IndexingMap) -> bool:
    """Return True if the first dimension numbers devices, as in maps between devices."""
    return bool(indexing_map.dims) and indexing_map.dims[0].name == DEVICE
