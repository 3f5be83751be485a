"""Index maps as expressions: the jaxpr of an index map, evaluated on affine expressions.

The jaxpr is read by the attributes of its objects, without importing JAX.  A value is a list of
cases (`indexing.pallas.index_arithmetic`), a scalar array, or `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from hlo.shapes.element_type import NAMES_OF_DTYPES, range_of
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.integer_rules import Cases, comparison, selection
from indexing.pallas.calls import ScalarOperand
from indexing.pallas.index_arithmetic import RULES, combine_cases, is_always, join_cases
from simplifier.atoms import Variable
from simplifier.interval import Interval, contains
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

_UNCHANGED: Final = frozenset(
    ("copy", "copy_p", "squeeze", "reshape", "broadcast_in_dim", "stop_gradient", "multiple_of")
)
_CALLS: Final = frozenset(
    [
        *("jit", "pjit", "closed_call", "core_call", "remat", "checkpoint"),
        *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    ]
)
_FLOORS: Final[Mapping[str, Callable[[Expr, int], Expr]]] = {
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "mod": lambda a, b: a % b,
}
"""Functions of jax.numpy that divide with rounding down, which their jaxprs spell by cases."""


@dataclass(frozen=True, slots=True)
class _ScalarArray:
    """A reference to a scalar-prefetch operand."""

    number: int


_Value: TypeAlias = "Cases | _ScalarArray | Unknown"


@dataclass(slots=True)
class IndexMapReader:
    """The reader of the index maps of one call; it numbers the scalars that they read.

    Attributes:
        scalars: the scalar-prefetch operands.
        ranges: the values of each of them.
        symbolic: a function that makes an expression of a symbolic dimension of JAX.
        runtime: the scalars that were read, by array and index.
    """

    scalars: Sequence[ScalarOperand]
    ranges: Sequence[Interval]
    symbolic: Callable[[Any], Expr | Unknown]
    runtime: dict[tuple[str, tuple[Expr, ...]], RuntimeVariable] = field(default_factory=dict)

    def results(
        self, jaxpr: Any, consts: Sequence[Any], program_ids: Sequence[Expr], count: int
    ) -> tuple[tuple[Expr, ...] | Unknown, tuple[RuntimeVariable, ...]]:
        """Return the first `count` results of an index map, and the scalars that they need."""
        arguments: list[_Value] = [[(each, ())] for each in program_ids]
        arguments += [_ScalarArray(k) for k in range(len(self.scalars))]
        outputs = _Evaluation(self).outputs(jaxpr, consts, arguments)[:count]
        exprs: list[Expr] = []
        for value in outputs:
            if isinstance(value, Unknown):
                return value, ()
            if isinstance(value, _ScalarArray):
                return Unknown("the index map returns a reference"), ()
            exprs.append(join_cases(value))
        return tuple(exprs), self._needed_scalars(exprs)

    def read(self, number: int, index: tuple[Expr, ...]) -> Expr:
        """Return the element of a scalar-prefetch operand at an index."""
        name = self.scalars[number].name
        key = name, index
        if key not in self.runtime:
            variable = Variable(f"rt{len(self.runtime)}", *self.ranges[number])
            self.runtime[key] = RuntimeVariable(variable, name, index)
        return self.runtime[key].expr

    def _needed_scalars(self, exprs: Sequence[Expr]) -> tuple[RuntimeVariable, ...]:
        """The scalars in expressions and, recursively, in their indices."""
        by_variable = {rt.variable: rt for rt in self.runtime.values()}
        needed: dict[Variable, RuntimeVariable] = {}
        pending = list(exprs)
        while pending:
            for v in pending.pop().variables():
                if v in by_variable and v not in needed:
                    needed[v] = by_variable[v]
                    pending += by_variable[v].index
        return tuple([rt for rt in self.runtime.values() if rt.variable in needed])


class _Evaluation:
    """The evaluation of one jaxpr and of those that it calls."""

    def __init__(self, reader: IndexMapReader) -> None:
        self.reader = reader

    def outputs(
        self, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[_Value]
    ) -> list[_Value]:
        values: dict[Any, _Value] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            values[var] = _constant(const)
        values.update(zip(jaxpr.invars, arguments, strict=True))
        for eqn in jaxpr.eqns:
            operands = [self._atom(atom, values) for atom in eqn.invars]
            values.update(zip(eqn.outvars, self._equation(eqn, operands), strict=False))
        return [self._atom(atom, values) for atom in jaxpr.outvars]

    @staticmethod
    def _atom(atom: Any, values: Mapping[Any, _Value]) -> _Value:
        return _constant(atom.val) if hasattr(atom, "val") else values[atom]

    def _equation(self, eqn: Any, operands: list[_Value]) -> list[_Value]:
        name = eqn.primitive.name
        if name in _CALLS:
            return self._call(eqn, operands)
        if name == "get":
            return [self._get(eqn, operands)]
        if name == "dim_as_value":
            value = self.reader.symbolic(eqn.params["dim"])
            return [value if isinstance(value, Unknown) else [(value, ())]]
        if name == "cond":
            return self._cond(eqn, operands)
        result = self._function(name, eqn, operands)
        return [result] * len(eqn.outvars)

    def _function(self, name: str, eqn: Any, operands: list[_Value]) -> _Value:
        known: list[Cases] = []
        for value in operands:
            if isinstance(value, Unknown):
                return value
            if isinstance(value, _ScalarArray):
                return Unknown(f"the index map reads a whole scalar array with `{name}`")
            known.append(value)
        if any(v.aval.size != 1 for v in eqn.outvars):
            return Unknown(f"`{name}` in the index map has an array as its result")
        result = _apply_primitive(name, eqn, known)
        if isinstance(result, Unknown):
            return result
        return _within_type(name, result, _type_of(eqn.outvars[0].aval), self.reader)

    def _call(self, eqn: Any, operands: list[_Value]) -> list[_Value]:
        closed = next((eqn.params[k] for k in ("jaxpr", "call_jaxpr") if k in eqn.params), None)
        if closed is None:
            return [Unknown(f"`{eqn.primitive.name}` has no jaxpr")] * len(eqn.outvars)
        inner = getattr(closed, "jaxpr", closed)
        outputs = self.outputs(inner, getattr(closed, "consts", ()), operands)
        floor = _FLOORS.get(str(eqn.params.get("name")))
        if floor is not None and len(operands) == 2 and len(outputs) == 1:
            outputs[0] = _floor_division(floor, operands, outputs[0])
        return outputs

    def _cond(self, eqn: Any, operands: list[_Value]) -> list[_Value]:
        """Select among the branches, whose number is clamped."""
        branches = [self.outputs(b.jaxpr, b.consts, operands[1:]) for b in eqn.params["branches"]]
        chosen = operands[0]
        if not isinstance(chosen, list):
            return branches[0] if len(branches) == 1 else [_no_array(chosen)] * len(eqn.outvars)
        outputs: list[_Value] = list(branches[-1])
        for k in reversed(range(len(branches) - 1)):
            is_before = combine_cases(comparison("LE"), [chosen, [(as_expr(k), ())]])
            outputs = [_select(is_before, a, b) for a, b in zip(branches[k], outputs, strict=True)]
        return outputs

    def _get(self, eqn: Any, operands: list[_Value]) -> _Value:
        """Read an element of a scalar array; its index is one indexer of integers."""
        array = operands[0]
        if not isinstance(array, _ScalarArray):
            return _no_array(array)
        indexers = eqn.params["tree"].unflatten(range(1, len(operands)))
        if not indexers and self.reader.scalars[array.number].sizes == ():
            return [(self.reader.read(array.number, ()), ())]
        if len(indexers) != 1 or not hasattr(indexers[0], "indices"):
            return Unknown("the index map reads a scalar array in an unknown way")
        index: list[Expr] = []
        for place in indexers[0].indices:
            if not isinstance(place, int):
                return Unknown("the index map reads a slice of a scalar array")
            value = operands[place]
            if not isinstance(value, list):
                return _no_array(value)
            index.append(join_cases(value))
        return [(self.reader.read(array.number, tuple(index)), ())]


def _no_array(value: object) -> Unknown:
    return value if isinstance(value, Unknown) else Unknown("the index map uses a scalar array")


def _constant(value: Any) -> _Value:
    if getattr(value, "size", 1) != 1:
        return Unknown("the index map has an array as a constant")
    item = value.item() if hasattr(value, "item") else value
    if not isinstance(item, int | bool):
        return Unknown(f"the index map has the constant {item!r}, which is not an integer")
    return [(as_expr(int(item)), ())]


def _type_of(aval: Any) -> str:
    return NAMES_OF_DTYPES.get(str(aval.dtype), "")


def _apply_primitive(name: str, eqn: Any, operands: list[Cases]) -> Cases | Unknown:
    """Apply a primitive to integers."""
    if name in _UNCHANGED:
        return operands[0]
    result_type = _type_of(eqn.outvars[0].aval)
    if not result_type or range_of(result_type) is None:
        return Unknown(
            f"`{name}` in the index map has a result of type {eqn.outvars[0].aval.dtype}"
        )
    if name == "convert_element_type":
        if result_type != "pred":
            return operands[0]
        return combine_cases(comparison("NE"), [operands[0], [(as_expr(0), ())]])
    if name == "select_n" and len(operands) == 3:
        return combine_cases(selection, [operands[0], operands[2], operands[1]])
    if name == "integer_pow":
        power: int = eqn.params["y"]
        if power < 1:
            return Unknown("`integer_pow` in the index map has a power below 1")
        return combine_cases(lambda x: [(_power(x[0], power), ())], operands)
    make_rule = RULES.get(name)
    rule_or_none = make_rule(_type_of(eqn.invars[0].aval)) if make_rule else None
    if rule_or_none is None:
        return Unknown(f"`{name}` in the index map has no rule")
    result = combine_cases(rule_or_none, operands)
    return Unknown(f"`{name}` in the index map {result}") if isinstance(result, Unknown) else result


def _power(base: Expr, power: int) -> Expr:
    return base if power == 1 else _power(base, power - 1) * base


def _floor_division(
    floor: Callable[[Expr, int], Expr], operands: Sequence[_Value], output: _Value
) -> _Value:
    """Return a division that rounds down as one expression, if all cases have its value."""
    dividend, divisor = operands
    if not (isinstance(dividend, list) and isinstance(divisor, list) and isinstance(output, list)):
        return output
    if len(dividend) > 1 or len(divisor) > 1 or len(output) == 1 or not divisor[0][0].is_constant:
        return output
    by = divisor[0][0].constant
    if by < 1:
        return output
    candidate = floor(dividend[0][0], by)
    return [(candidate, ())] if is_always(output, candidate) else output


def _select(predicate: _Value, first: _Value, second: _Value) -> _Value:
    for value in (predicate, first, second):
        if not isinstance(value, list):
            return _no_array(value)
    return combine_cases(selection, [predicate, first, second])  # type: ignore[list-item]


def _within_type(name: str, cases: Cases, element_type: str, reader: IndexMapReader) -> _Value:
    """Reject a value that may leave the range of its type, unless a scalar makes it do so.

    The documentation states that index arithmetic on scalars is read without wrapping around.
    """
    limits = range_of(element_type)
    assert limits is not None or name in _UNCHANGED
    scalars = {rt.variable for rt in reader.runtime.values()}
    for value, _ in cases:
        if limits is None or contains(limits, value.bounds):
            continue
        if scalars.isdisjoint(value.variables()):
            return Unknown(f"`{name}` in the index map may overflow {element_type}")
    return cases
