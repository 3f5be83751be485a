"""The calls of Pallas in what JAX traces; the only module of this room that imports JAX.

``jax.make_jaxpr`` traces the function, and nothing is executed.  Every jaxpr within the trace is
searched: those of jit, scan, while, cond and custom derivatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from hlo.shapes.element_type import NAMES_OF_DTYPES, range_of
from indexing.frontends.lowering import load_jax
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.pallas import symbolic_dimensions
from indexing.pallas.calls import (
    BlockSpecification,
    GridDimension,
    KernelCall,
    ScalarOperand,
)
from indexing.pallas.index_maps import IndexMapReader
from indexing.pallas.jax_objects import (
    argument_names,
    array_of,
    block_of,
    element_type_of,
    scratch_of,
    semantics_of,
    source_of,
    space_of,
)
from indexing.pallas.value_ranges import MAX_SIZE, GivenValues, ValueRange, values_of
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import Interval, intersect
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

_WITHOUT_BLOCKS: Final = frozenset(("core_map", "mpmd_map", "pallas_call_mesh"))


@dataclass(frozen=True, slots=True)
class ArgumentName:
    """The name of an argument of the traced function."""

    name: str


KnownValue: TypeAlias = "str | np.ndarray[Any, Any] | ArgumentName"
"""A value that is known before the program runs: a symbolic size as text, integers, or a name."""

_DYNAMIC: Final = "grid"  # begins the name of the variable of a dynamic dimension of a grid


@dataclass(slots=True)
class TracedCalls:
    """The calls of a function: kernels with blocks, and primitives of Pallas without blocks."""

    calls: list[KernelCall] = field(default_factory=list)
    without_blocks: list[str] = field(default_factory=list)


def traced_calls(
    function: Any, args: Sequence[Any], ranges: Mapping[str | int, ValueRange]
) -> TracedCalls:
    """Trace a function, and return its calls of Pallas in program order.

    Args:
        ranges: values of scalar-prefetch operands and of symbolic sizes, by name.
    Raises:
        ImportError: jax is not installed.
        ValueError: a name in `ranges` is that of no scalar and of no size.
    """
    for name in ranges:
        values_of(ranges, name)
    jax = load_jax("pallas.check")
    closed = jax.make_jaxpr(function)(*args)
    traced = TracedCalls()
    used: set[str | int] = set()
    names = argument_names(closed)
    named = zip(closed.jaxpr.invars, map(ArgumentName, names), strict=False)
    known = _constants(closed.jaxpr, closed.consts) | dict(named)
    for _, eqn in _equations(closed.jaxpr, known):
        if eqn.primitive.name in _WITHOUT_BLOCKS:
            traced.without_blocks.append(eqn.primitive.name)
        elif eqn.primitive.name == "pallas_call":
            reader = _CallReader(eqn, known, ranges)
            traced.calls.append(reader.call())
            used |= reader.used
    unused = [name for name in ranges if name not in used]
    if unused and traced.calls:
        raise ValueError(
            f"ranges: no Pallas call has a scalar operand or a size called {unused[0]!r}: "
            f"{_known_names(traced.calls)}"
        )
    return traced


def _known_names(calls: Sequence[KernelCall]) -> str:
    names = [s.name for call in calls for s in call.scalars]
    names += [s.name for call in calls for s in call.symbols]
    listed = ", ".join(dict.fromkeys(names))
    return f"the names are {listed}" if listed else "it has none"


def _equations(jaxpr: Any, known: dict[Any, KnownValue]) -> Iterator[tuple[Any, Any]]:
    """Yield the equations of a jaxpr and of those within it, in order, without kernels' bodies.

    `known` gets the values of variables: of symbolic sizes, of constants, of arguments of calls.
    """
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dim_as_value":
            known[eqn.outvars[0]] = str(eqn.params["dim"])
        yield jaxpr, eqn
        if eqn.primitive.name == "pallas_call":
            continue
        for name, inner, consts in _inner_jaxprs(eqn):
            known.update(_constants(inner, consts))
            values = [known_value(a, known) for a in _arguments(eqn, name, len(inner.invars))]
            values += [None] * (len(inner.invars) - len(values))
            for inside, value in zip(inner.invars, values, strict=True):
                known.pop(inside, None)  # the value in another call of the jaxpr
                if value is not None:
                    known[inside] = value
            yield from _equations(inner, known)


def _inner_jaxprs(eqn: Any) -> Iterator[tuple[str, Any, Sequence[Any]]]:
    for name, parameter in eqn.params.items():
        for each in parameter if isinstance(parameter, list | tuple) else (parameter,):
            inner = getattr(each, "jaxpr", each)
            if hasattr(inner, "eqns"):
                yield name, inner, getattr(each, "consts", ())


def _arguments(eqn: Any, name: str, count: int) -> Sequence[Any]:
    """Return the operands that are the first arguments of a jaxpr in each of its calls."""
    params: Any = eqn.params
    operands: Sequence[Any] = eqn.invars
    match eqn.primitive.name:
        case "scan":
            return operands[: params["num_consts"]]
        case "while" if name == "cond_jaxpr":
            return operands[: params["cond_nconsts"]]
        case "while":
            first = params["cond_nconsts"]
            return operands[first : first + params["body_nconsts"]]
        case "cond":
            return operands[1:]
    return operands if len(operands) == count else ()


def _constants(jaxpr: Any, consts: Sequence[Any]) -> dict[Any, KnownValue]:
    """Return the values of the integer constants of a jaxpr."""
    pairs = zip(jaxpr.constvars, consts, strict=False)
    return {var: np.asarray(value) for var, value in pairs if is_integer_array(value)}


def known_value(atom: Any, known: Mapping[Any, KnownValue]) -> KnownValue | None:
    """Return the value of a variable or literal if it is known before the program runs."""
    if hasattr(atom, "val"):
        return np.asarray(atom.val) if is_integer_array(atom.val) else None
    return known.get(atom)


def is_integer_array(value: Any) -> bool:
    """Return True for an array of integers, or for an integer."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind in ("i", "u") or (isinstance(value, int) and not isinstance(value, bool))


class _CallReader:
    """The reader of one ``pallas_call``."""

    def __init__(
        self, eqn: Any, known: Mapping[Any, KnownValue], ranges: Mapping[str | int, ValueRange]
    ) -> None:
        self.eqn, self.known, self.ranges = eqn, known, ranges
        self.mapping: Any = eqn.params["grid_mapping"]
        self.symbols: dict[str, Variable] = {}
        self.dynamic: list[str] = []
        self.conditions: list[Constraint] = []
        self.used: set[str | int] = set()

    def call(self) -> KernelCall:
        mapping = self.mapping
        names = self._names()
        scalars = self._scalars(names[len(mapping.grid) :])
        target, semantics = semantics_of(self.eqn.params["compiler_params"], mapping)
        sizes = self._grid_sizes()
        grid = tuple(
            GridDimension(name, size, word, k in mapping.vmapped_dims)
            for k, (name, size, word) in enumerate(zip(names, sizes, semantics, strict=False))
        )
        program_ids = [
            Variable(f"d{k}", 0, each.size.bounds[1] - 1).as_expr() for k, each in enumerate(grid)
        ]
        reader = IndexMapReader(
            scalars, [self._scalar_range(k) for k in range(len(scalars))], self.symbolic
        )
        inputs = mapping.num_inputs
        operands = tuple(
            self._operand(block, k >= inputs, reader, program_ids)
            for k, block in enumerate(mapping.block_mappings)
        )
        skipped = mapping.num_index_operands
        aliases = [(i - skipped, inputs + o) for i, o in self.eqn.params["input_output_aliases"]]
        return KernelCall(
            self._kernel_name(),
            target,
            grid,
            tuple([RuntimeVariable(v) for v in self.symbols.values()]),
            frozenset(self.dynamic),
            tuple(self.conditions),
            operands,
            tuple([(i, o) for i, o in aliases if i >= 0]),
            scalars,
            tuple([scratch_of(aval) for aval in mapping.scratch_avals]),
            getattr(self.eqn.params["compiler_params"], "vmem_limit_bytes", None),
        )

    def _kernel_name(self) -> str:
        name = self.eqn.params.get("name")
        info = getattr(getattr(self.eqn.params["jaxpr"], "debug_info", None), "func_name", None)
        return str(name or info or "kernel")

    # ------------------------------------------------------------ sizes

    def symbolic(self, size: Any) -> Expr | Unknown:
        """Return a dimension of JAX as an expression, and note its symbols."""
        if isinstance(size, int) or not hasattr(size, "scope"):
            return as_expr(int(size))
        return self._from_text(str(size), size.scope)

    def _from_text(self, text: str, scope: Any) -> Expr | Unknown:
        conditions = [c.debug_str for c in getattr(scope, "_explicit_constraints", ())]
        for name in symbolic_dimensions.names_in(text):
            if name not in self.symbols:
                self._add_symbol(name, conditions)
        return symbolic_dimensions.dimension(text, self.symbols)

    def _add_symbol(self, name: str, conditions: Sequence[str]) -> None:
        given = self._given_range(name)
        bounds = (1, MAX_SIZE) if given is None else given.bounds
        self.symbols[name] = Variable(name, *bounds)
        if given is not None and given.step > 1:
            self.conditions.append(given.constraint(self.symbols[name].as_expr()))
        for text in conditions:
            names = symbolic_dimensions.names_in(text)
            if name in names and all(each in self.symbols for each in names):
                condition = symbolic_dimensions.condition(text, self.symbols)
                if isinstance(condition, Constraint) and not condition.is_true:
                    self.conditions.append(condition)

    def _given_range(self, *names: str | int) -> GivenValues | None:
        """Return the range that the user gives under one of these names."""
        for name in names:
            if name in self.ranges:
                self.used.add(name)
                return values_of(self.ranges, name)
        return None

    def _grid_sizes(self) -> list[Expr]:
        operands = iter(self.eqn.invars)
        sizes: list[Expr] = []
        for k, size in enumerate(self.mapping.grid):
            if isinstance(size, int):
                sizes.append(as_expr(size))
                continue
            value = known_value(next(operands), self.known)
            expr = self._known_size(value)
            sizes.append(self._dynamic_size(k, value) if isinstance(expr, Unknown) else expr)
        return sizes

    def _known_size(self, value: KnownValue | None) -> Expr | Unknown:
        if value is None:
            return Unknown("the size is computed at run time")
        if isinstance(value, ArgumentName):
            return Unknown(f"the size is the argument {value.name}")
        if not isinstance(value, str):
            return as_expr(int(value))
        scopes = [d.scope for d in self._dimensions() if hasattr(d, "scope")]
        return self._from_text(value, scopes[0] if scopes else None)

    def _dimensions(self) -> Iterator[Any]:
        for block in self.mapping.block_mappings:
            yield from array_of(block).shape

    def _dynamic_size(self, number: int, value: KnownValue | None) -> Expr:
        name = f"{_DYNAMIC}{number}"
        given = self._given_range(name, *([value.name] if isinstance(value, ArgumentName) else []))
        bounds = (0, MAX_SIZE) if given is None else given.bounds
        self.symbols[name] = Variable(name, *bounds)
        self.dynamic.append(name)
        return self.symbols[name].as_expr()

    # ------------------------------------------------------------ names and scalars

    def _names(self) -> list[str]:
        """The names of program ids and scalars in index maps; ``i0``, ``s0``, ... without any."""
        count = len(self.mapping.grid)
        names = [self._names_at(k) for k in range(count + self.mapping.num_index_operands)]
        own: list[str] = []
        for k, known in enumerate(names):
            default = f"i{k}" if k < count else f"s{k - count}"
            own.append(next((name for name in known if name not in own), default))
        return own

    def _names_at(self, place: int) -> list[str]:
        """The names that index maps and the kernel have for a program id or a scalar."""
        mapping = self.mapping
        count = len(mapping.grid)
        own = [k for k in range(count) if k not in mapping.vmapped_dims]
        places = [*own, *range(count, count + mapping.num_index_operands)]
        lists = [argument_names(block.index_map_jaxpr) for block in mapping.block_mappings]
        names = [each[places.index(place)] for each in lists if len(each) == len(places)
                 if place in places]  # fmt: skip
        if place >= count:
            names += argument_names(self.eqn.params["jaxpr"])[place - count :][:1]
        return [name for name in dict.fromkeys(names) if name and not name.startswith("_")]

    def _scalars(self, names: Sequence[str]) -> tuple[ScalarOperand, ...]:
        avals = self.mapping.index_map_avals[len(self.mapping.grid) :]
        return tuple(
            ScalarOperand(name, tuple([_exact(self.symbolic(n)) for n in aval.shape]))
            for name, aval in zip(names, avals, strict=True)
        )

    def _scalar_range(self, number: int) -> Interval:
        """The values of a scalar operand: those that are given, or those of a constant."""
        count = len(self.mapping.grid)
        aval = self.mapping.index_map_avals[count + number]
        limits = range_of(NAMES_OF_DTYPES.get(str(aval.dtype), "s32")) or (-MAX_SIZE - 1, MAX_SIZE)
        dynamic = sum(not isinstance(size, int) for size in self.mapping.grid)
        constant = known_value(self.eqn.invars[dynamic + number], self.known)
        if isinstance(constant, np.ndarray) and constant.size:
            limits = int(constant.min()), int(constant.max())
        names: list[str | int] = [*self._names_at(count + number), f"s{number}", number]
        names += [f"args[{number}]"]
        names += [constant.name] if isinstance(constant, ArgumentName) else []
        given = self._given_range(*names)
        return limits if given is None else intersect(limits, given.bounds)

    # ------------------------------------------------------------ operands

    def _operand(
        self, block: Any, is_output: bool, reader: IndexMapReader, program_ids: Sequence[Expr]
    ) -> BlockSpecification:
        array = array_of(block)
        jaxpr = block.index_map_jaxpr
        dimensions = block_of(block.block_shape)
        index, runtime = reader.results(
            getattr(jaxpr, "jaxpr", jaxpr),
            getattr(jaxpr, "consts", ()),
            program_ids,
            len(block.block_shape),
        )
        mode = block.pipeline_mode
        revisit = getattr(getattr(mode, "revisit", None), "name", "")
        element_type, bits = element_type_of(array.dtype)
        return BlockSpecification(
            str(block.origin),
            source_of(jaxpr),
            is_output,
            tuple([_exact(self.symbolic(n)) for n in array.shape]),
            element_type,
            bits,
            dimensions,
            index,
            runtime,
            space_of(getattr(block, "transformed_block_aval", None) or block.block_aval),
            getattr(mode, "buffer_count", None),
            revisit == "ANY",
            bool(block.has_trivial_window()),
        )


def _exact(size: Expr | Unknown) -> Expr:
    if isinstance(size, Unknown):
        raise ValueError(f"{size}; expected sums, products, floordiv, mod, min or max of symbols")
    return size
