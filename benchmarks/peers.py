"""Systems that simplify index expressions, with a common interface.

A peer builds the maps of a `benchmarks.chains.Chain` with its own expressions, composes them, and
simplifies after each composition.  `available` yields the installed peers, and for each other peer
the reason why it is missing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from itertools import count
from typing import Any, Final

import numpy as np

from benchmarks.chains import Chain, Index, Step
from indexing import Constraint, IndexingMap
from simplifier import Floor, Variable, as_expr

_DIVISIONS: Final = re.compile(r"\b(?:floordiv|ceildiv|mod)\b")


class Peer:
    """A system to compare with."""

    name: str

    def renew(self) -> None:
        """Clear all caches: the next problem is solved cold."""

    def solve(self, chain: Chain) -> Any:
        """Construct, compose and simplify a chain."""
        raise NotImplementedError

    def nodes(self, solved: Any) -> int:
        """Return the number of remaining floor divisions and mods, counting shared parts again."""
        raise NotImplementedError


# ---------------------------------------------------------------- this project


class Ours(Peer):
    """`IndexingMap`, with domains and constraints, which most other systems lack."""

    name = "this project"
    _runs = count()

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Use new variable names, so that no cache entry matches."""
        self.prefix = f"d{next(self._runs)}_"

    def solve(self, chain: Chain) -> Any:
        return step_by_step(chain, self.prefix).results

    def nodes(self, solved: Any) -> int:
        return sum(len(_DIVISIONS.findall(str(as_expr(result)))) for result in solved)


class OurExpressions(Ours):
    """Expressions substituted into each other, without maps and domains."""

    name = "this project, expressions"

    def solve(self, chain: Chain) -> Any:
        return write_out(chain, self.prefix)[1]


def map_of(step: Step, prefix: str = "d") -> IndexingMap:
    """Return one step as a map, not simplified."""
    dims = [Variable(f"{prefix}{k}", *bounds) for k, bounds in enumerate(step.bounds)]
    conditions = [
        Constraint(as_expr(c.formula(dims, operator.floordiv)), c.lower, c.upper)
        for c in step.conditions
    ]
    return IndexingMap.of(dims, step.formula(dims, operator.floordiv), constraints=conditions)


def step_by_step(chain: Chain, prefix: str = "d") -> IndexingMap:
    """Compose from the consumer, and simplify after each step."""
    composed = map_of(chain.steps[0], prefix).simplify()
    for step in chain.steps[1:]:
        composed = composed.then(map_of(step, prefix)).simplify()
    return composed


def at_the_end(chain: Chain, prefix: str = "d") -> IndexingMap:
    """Compose without simplifying, and simplify once at the end."""
    composed = map_of(chain.steps[0], prefix)
    for step in chain.steps[1:]:
        composed = composed.then(map_of(step, prefix))
    return composed.simplify()


def from_the_right(chain: Chain, prefix: str = "d") -> IndexingMap:
    """Compose from the producer, and simplify after each step."""
    composed = map_of(chain.steps[-1], prefix).simplify()
    for step in chain.steps[-2::-1]:
        composed = map_of(step, prefix).then(composed).simplify()
    return composed


def substitute_at_once(chain: Chain, prefix: str = "d") -> IndexingMap:
    """Substitute all formulas into each other, without intermediate maps, and simplify once."""
    dims, results, conditions = write_out(chain, prefix)
    return IndexingMap.of(dims, results, constraints=conditions).simplify()


def write_out(
    chain: Chain, prefix: str = "d"
) -> tuple[list[Variable], Sequence[Any], list[Constraint]]:
    """Return the variables of the chain, and its results and conditions as expressions of them."""
    dims = [Variable(f"{prefix}{k}", *bounds) for k, bounds in enumerate(chain.bounds)]
    index: Sequence[Any] = dims
    conditions = []
    for step in chain.steps:
        for c in step.conditions:
            value = as_expr(c.formula(index, operator.floordiv))
            conditions.append(Constraint(value, c.lower, c.upper))
        index = step.formula(index, operator.floordiv)
    return dims, index, conditions


ORDERS: Final = {
    "step by step": step_by_step,
    "once at the end": at_the_end,
    "from the right": from_the_right,
    "substituted at once": substitute_at_once,
}


def holds_at(indexing_map: IndexingMap, chain: Chain, points: Sequence[np.ndarray]) -> bool:
    """Return True if a map has the chain's values at each of `points` of the chain's domain."""
    at = dict(zip(indexing_map.dims, points, strict=True))
    expected = chain.values(points)
    inside = [
        (values(c.expr, at) >= c.lower) & (values(c.expr, at) <= c.upper)
        for c in indexing_map.constraints
    ]
    inside += [(at[d] >= d.lower) & (at[d] <= d.upper) for d in indexing_map.dims]
    same = [values(r, at) == w for r, w in zip(indexing_map.results, expected, strict=True)]
    shape = np.shape(points[0])
    return all(np.all(np.broadcast_to(check, shape)) for check in [*inside, *same])


def values(expr: Any, at: dict[Variable, np.ndarray]) -> np.ndarray:
    """Evaluate `expr` at many points, with NumPy's floor division."""
    total = np.asarray(expr.constant)
    for atom, coefficient in expr.terms:
        if isinstance(atom, Variable):
            total = total + coefficient * at[atom]
        else:
            assert isinstance(atom, Floor), f"{atom} is not an affine atom"
            total = total + coefficient * (values(atom.numerator, at) // atom.divisor)
    return total


# ---------------------------------------------------------------- other systems


class Mlir(Peer):
    """MLIR's affine maps through jaxlib's bindings; they have no bounds and no domain."""

    name = "MLIR"

    def __init__(self) -> None:
        self.ir = import_module("jaxlib.mlir.ir")
        self.renew()

    def renew(self) -> None:
        self.context = self.ir.Context()

    def solve(self, chain: Chain) -> Any:
        expr, affine_map = self.ir.AffineExpr, self.ir.AffineMap
        rank = len(chain.bounds)
        composed: Any = None
        with self.context:
            for step in chain.steps:
                dims = [expr.get_dim(k) for k in range(len(step.bounds))]
                results = step.formula(dims, expr.get_floor_div)
                if composed is not None:
                    results = [result.compose(composed) for result in results]
                simple = [expr.simplify_affine_expr(result, rank, 0) for result in results]
                composed = affine_map.get(rank, 0, simple)
        return composed

    def nodes(self, solved: Any) -> int:
        return len(_DIVISIONS.findall(str(solved)))


class Isl(Peer):
    """isl's maps: exact relations with piecewise results, simplified on the domain."""

    name = "isl"

    def __init__(self) -> None:
        self.isl = import_module("islpy")
        self.renew()

    def renew(self) -> None:
        self.context = self.isl.Context()
        self.context.set_max_operations(5_000_000)

    def solve(self, chain: Chain) -> Any:
        composed: Any = None
        for k, step in enumerate(chain.steps):
            step_map = self._map(step, boxed=k == 0)
            composed = step_map if composed is None else composed.apply_range(step_map)
        return composed.coalesce().as_pw_multi_aff().coalesce().gist(composed.domain())

    def _map(self, step: Step, boxed: bool) -> Any:
        isl = self.isl
        kind, rank = isl.dim_type.set, len(step.bounds)
        space = isl.LocalSpace.from_space(isl.Space.set_alloc(self.context, 0, rank))
        zero = isl.Aff.zero_on_domain(space)
        dims = [isl.Aff.var_on_domain(space, kind, k) for k in range(rank)]
        limits = [(d, *bounds) for d, bounds in zip(dims, step.bounds, strict=True) if boxed]
        limits += [(c.formula(dims, operator.floordiv), c.lower, c.upper) for c in step.conditions]
        domain = isl.Set.universe(zero.get_domain_space())
        for value, lower, upper in limits:
            domain = domain & value.ge_set(zero + lower) & value.le_set(zero + upper)
        results = step.formula(dims, operator.floordiv)
        functions = isl.MultiAff.zero(isl.Space.alloc(self.context, 0, rank, len(results)))
        for k, result in enumerate(results):
            functions = functions.set_aff(k, result)
        return isl.Map.from_multi_aff(functions).intersect_domain(domain)

    def nodes(self, solved: Any) -> int:
        """Count all pieces; an exact division counts as a division."""
        affs: list[Any] = []
        solved.foreach_piece(
            lambda _, function: affs.extend(
                function.get_at(k) for k in range(function.dim(self.isl.dim_type.out))
            )
        )
        texts = [str(aff).split("->")[-1] for aff in affs]
        return sum(text.count(")/") + text.count(" mod ") for text in texts)


class Sympy(Peer):
    """sympy's ``floor`` and ``Mod`` of integer symbols, with their automatic simplification."""

    name = "sympy"

    def __init__(self) -> None:
        self.sympy = import_module("sympy")

    def renew(self) -> None:
        import_module("sympy.core.cache").clear_cache()

    def solve(self, chain: Chain) -> Sequence[Any]:
        sympy = self.sympy
        index: Index = [
            sympy.Symbol(f"d{k}", integer=True, nonnegative=True) for k in range(len(chain.bounds))
        ]
        for step in chain.steps:
            index = step.formula(index, lambda a, b: sympy.floor(a / b))
        return index

    def nodes(self, solved: Sequence[Any]) -> int:
        kinds = (self.sympy.floor, self.sympy.Mod)
        every = (node for e in solved for node in self.sympy.preorder_traversal(e))
        return sum(isinstance(node, kinds) for node in every)


class Tvm(Peer):
    """TVM's analyzer: the shorter of its two simplifications."""

    name = "TVM"

    def __init__(self) -> None:
        tvm = import_module("tvm")
        self.range, self.tir = tvm.ir.Range, import_module("tvm.tirx")
        self.analyzer = import_module("tvm.sym").Analyzer

    def solve(self, chain: Chain) -> Sequence[Any]:
        tir, analyzer = self.tir, self.analyzer()
        index: Any = [tir.Var(f"d{k}", "int64") for k in range(len(chain.bounds))]
        for d, (lower, upper) in zip(index, chain.bounds, strict=True):
            first, size = tir.IntImm("int64", lower), tir.IntImm("int64", upper - lower + 1)
            analyzer.bind(d, self.range.from_min_extent(first, size))
        with ExitStack() as scopes:
            for step in chain.steps:
                for c in step.conditions:
                    value = c.formula(index, tir.floordiv)
                    inside = tir.all(value >= c.lower, value <= c.upper)
                    scopes.enter_context(analyzer.constraint_scope(inside))
                index = [
                    min(analyzer.simplify(e), analyzer.canonical_simplify(e), key=self._tree)
                    for e in step.formula(index, tir.floordiv)
                ]
        return list(index)

    def nodes(self, solved: Sequence[Any]) -> int:
        return sum(map(self._tree, solved))

    def _tree(self, expr: Any) -> int:
        parts = [getattr(expr, name) for name in ("a", "b", "value") if hasattr(expr, name)]
        own = isinstance(expr, (self.tir.FloorDiv, self.tir.FloorMod))
        return own + sum(map(self._tree, parts))


class Tinygrad(Peer):
    """tinygrad's symbolic rewriting of bounded variables."""

    name = "tinygrad"

    def __init__(self) -> None:
        ops = import_module("tinygrad.uop.ops")
        self.variable, self.divisions = ops.UOp.variable, (ops.Ops.FLOORDIV, ops.Ops.FLOORMOD)

    def solve(self, chain: Chain) -> Sequence[Any]:
        index: Index = [self.variable(f"d{k}", *b) for k, b in enumerate(chain.bounds)]
        for step in chain.steps:
            index = [e.simplify() for e in step.formula(index, operator.floordiv)]
        return index

    def nodes(self, solved: Sequence[Any]) -> int:
        trees: dict[Any, int] = {}

        def tree(node: Any) -> int:
            if node not in trees:
                trees[node] = (node.op in self.divisions) + sum(map(tree, node.src))
            return trees[node]

        return sum(map(tree, solved))


PEERS: Final[tuple[Callable[[], Peer], ...]] = (Mlir, Isl, Sympy, Tvm, Tinygrad)


def available() -> Iterator[Peer | str]:
    """Yield each installed peer, and the reason for each missing peer."""
    for make in PEERS:
        try:
            yield make()
        except (ImportError, AttributeError) as error:
            yield f"{make.name} is missing: {error}"  # type: ignore[attr-defined]  # a class
