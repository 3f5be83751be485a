"""One op: the formula of an element of its result, from the formulas of its operands' elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from indexing.codegen.element_types import TYPE_NAMES
from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula
from indexing.equivalence.values.formulas.numbering import attributes_of
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.laws.exact import is_call
from indexing.equivalence.values.laws.integers import fits
from indexing.equivalence.values.laws.roundings import narrow_type
from indexing.equivalence.values.terms.functions import Attributes, is_float, is_integral
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.answers import Unknown
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import dims
from indexing.ops.element import CopyRule, ElementRule, ElementwiseRule, ReductionRule
from indexing.programs.element import Guards, element, literal_of
from simplifier.atoms import Variable
from simplifier.interval import Interval
from simplifier.linear import Expr, as_expr

FLOAT_COMBINERS: Final = ("add", "multiply", "maximum", "minimum")


def own_index(shape: Shape) -> tuple[Expr, ...]:
    """Return the index of an element: ``d0, d1, …``, and 0 in dimensions of size 1."""
    return tuple([v.as_expr() if v.upper else as_expr(0) for v in dims(shape)])


@dataclass(frozen=True, slots=True)
class Step:
    """One op with its operands.

    Attributes:
        leaf: the number of the result, of this shape.
        path: the same as a path.
        read: returns the formula of an element of an operand.
        function: returns the results of a computation over symbols for its arguments.
        combiner: returns the opcode of a computation that applies one op to both parameters.
        applied: returns the result of a computation of scalars, applied to terms.
        note_wide_factors: records a product of default precision whose factors are not of bf16.
        rounds_factors: these factors are rounded to bf16.
    """

    algebra: FormulaAlgebra
    instruction: Instruction
    leaf: int
    shape: Shape
    path: Path
    read: Callable[[int, Sequence[Expr]], Formula]
    function: Callable[[Computation], tuple[Formula, ...]]
    combiner: Callable[[Computation], str]
    applied: Callable[[Computation, Sequence[Formula]], Formula | Unknown]
    note_wide_factors: Callable[[], None]
    rounds_factors: bool = False

    @property
    def keeps_unit_ranges(self) -> bool:
        """False: a range variable with one value is that value."""
        return False

    def element(self, rule: ElementRule) -> Formula | Unknown:
        """Return the formula of an element by the element rule of the op."""
        return element(self, rule, own_index(self.shape), self)

    def _unknown(self, reason: str) -> Unknown:
        name = self.instruction.name
        return Unknown(f"an element of `{name}` {reason}", self.instruction)

    # ------------------------------------------------------------ values

    def constant(self) -> Formula | Unknown:
        """Return the element of a constant."""
        data = literal_of(self.instruction, self.path)
        if isinstance(data, Unknown):
            return data
        shape, table = self.shape, self.algebra.table
        place = own_index(shape)
        if data.dtype == object:
            assert self.instruction.literal is not None
            text = "".join(self.instruction.literal.printed.split())
            head = "constant", text, self.path
            opaque = table.array("opaque", head, shape.element_type, shape.dims)
            return table.read(opaque, place)
        if _is_multiple_of_iota(data, shape.element_type):
            return table.index(place[0] * int(data[1]), shape.element_type)
        return self.algebra.table_element(data, shape.element_type, place)

    def iota(self, value: Expr) -> Formula | Unknown:
        """Return the formula of an index, if the types of the array and of XLA contain it."""
        element_type, table = self.shape.element_type, self.algebra.table
        if is_integral(element_type) and fits(value, element_type):
            return table.index(value, element_type)
        if is_float(element_type) and fits(value, "s32"):
            return self._convert_term(table.index(value, "s32"), element_type)
        return self._unknown(f"is an index that {element_type} does not contain")

    def zero(self) -> Formula:
        """Return 0, of the type of the array."""
        return self.algebra.table.constant(0, self.shape.element_type)

    def padding(self, operand: int) -> Unknown:
        """Return that the bits of padding have no formula."""
        return self._unknown("may be padding")

    def runtime(self, operand: int, index: tuple[Expr, ...], clamp: Interval) -> Expr:
        """Return an integer element of an operand as an index, clamped."""
        return self.algebra.index_of(self.read(operand, index), clamp)

    def apply(self, rule: ElementwiseRule, arguments: Sequence[Formula]) -> Formula | Unknown:
        """Return the formula of an elementwise op."""
        if rule.function is None:
            return self.applied(self.instruction.called_computations[0], arguments)
        op = self.instruction.op
        assert op is not None  # it has a rule
        opcode, attributes = op.opcode, attributes_of(self.instruction)
        element_type = self.shape.element_type
        self.algebra.functions[opcode, attributes, element_type] = rule.function
        return self.algebra.apply(opcode, attributes, element_type, arguments)

    def choose(
        self, rule: CopyRule, cases: Sequence[tuple[Guards, Formula]], otherwise: Formula,
        rest: Guards,
    ) -> Formula | Unknown:  # fmt: skip
        """Return the formula of a copied element, with the type of the result.

        A compiler that propagates bf16 leaves copies of parts in another type: each is a `convert`.
        """
        if rule.function is None:
            otherwise = self._rounded_copy(otherwise)
            cases = [(guards, self._rounded_copy(term)) for guards, term in cases]
        if any(term.type != otherwise.type for _, term in cases):
            return self._unknown("is copied from arrays of several types")
        for guards, term in reversed(cases):
            otherwise = self.algebra.where(guards, term, otherwise)
        element_type = self.shape.element_type
        widths = ELEMENT_TYPES[otherwise.type].bits, ELEMENT_TYPES[element_type].bits
        if widths[0] != widths[1] or (rule.function is None and otherwise.type != element_type):
            return self._unknown(f"of {element_type} is copied from {otherwise.type}")
        if rule.function is None:
            return otherwise
        key = "bitcast-convert", (), element_type
        self.algebra.functions[key] = rule.function
        return self.algebra.apply(*key, [otherwise])

    def _rounded_copy(self, term: Formula) -> Formula:
        """Return a float in the type of the result, if that is a float too."""
        element_type = self.shape.element_type
        is_rounded = term.type != element_type and is_float(term.type) and is_float(element_type)
        return self._convert_term(term, element_type) if is_rounded else term

    def join(self, rule: CopyRule, parts: Sequence[Formula]) -> Unknown:
        """Return that the bits of parts have no formula; `bits` defines some."""
        return self._unknown("joins the bits of elements")

    # ------------------------------------------------------------ reductions

    def reduce(
        self, rule: ReductionRule, inits: tuple[Formula, ...], values: tuple[Formula, ...],
        ranges: tuple[Variable, ...], guards: Guards,
    ) -> Formula | Unknown:  # fmt: skip
        """Return the formula of a reduction."""
        if not values:
            return inits[self.leaf] if inits else self.zero()
        ranges = tuple([v for v in ranges if v.lower < v.upper])
        return self._fold(rule, inits, values, ranges, guards)

    def _fold(
        self, rule: ReductionRule, inits: tuple[Formula, ...], values: tuple[Formula, ...],
        ranges: tuple[Variable, ...], guards: Guards,
    ) -> Formula | Unknown:  # fmt: skip
        element_type = self.shape.element_type
        combiner = "add"
        functions: tuple[Formula, ...] = ()
        if rule.uses_computation:
            combiner, functions = self._combiner(len(values))
        if not combiner and any(t.type != values[k].type for k, t in enumerate(inits)):
            return self._unknown("has initial values of other types")
        total = self._total_type(rule, combiner)
        if total != element_type or rule.is_product:
            values = tuple([self._convert_term(term, total) for term in values])
            inits = tuple([self._convert_term(term, total) for term in inits])
        if rule.is_product:
            factors = self._rounded_factors(values, total)
            values = (self.algebra.apply("multiply", (), total, factors),)
        inits = inits or (self.algebra.table.constant(0, total),)
        if combiner and {values[0].type, inits[0].type} != {total}:
            return self._unknown(f"combines other types than {total}")
        fold = Fold(combiner, functions, self.leaf if not combiner else 0, total, inits, values,
                    ranges, guards)  # fmt: skip
        return self._convert_term(fold_formula(self.algebra, fold), element_type)

    def _rounded_factors(self, values: tuple[Formula, ...], total: str) -> tuple[Formula, ...]:
        """Return the factors of a product as the unit reads them that multiplies by default."""
        if total != "f32" or not has_default_precision(self.instruction):
            return values
        if self.rounds_factors:
            return tuple(map(self._rounded_factor, values))
        if not all(map(self._is_of_bf16, values)):
            self.note_wide_factors()
        return values

    def _rounded_factor(self, value: Formula) -> Formula:
        return self._convert_term(self._convert_term(value, "bf16"), "f32")

    def _is_of_bf16(self, value: Formula) -> bool:
        """Return True if the rounding of a factor to bf16 is the factor itself.

        The maximum of two bf16, for example, is a bf16.
        """
        if is_call(value, "convert") and value.arguments[0].type == "bf16":
            return True
        return narrow_type(value) == "bf16" and self._rounded_factor(value) is value

    def _combiner(self, count: int) -> tuple[str, tuple[Formula, ...]]:
        """Return the known combiner of a reduction, or the results of any other one."""
        called = self.instruction.called_computations[0]
        combiner = self.combiner(called) if count == 1 else ""
        return combiner, () if combiner else self.function(called)

    def _total_type(self, rule: ReductionRule, combiner: str) -> str:
        """Return the type in which values are combined.

        Narrow floats are summed in f32.  Their extrema are the same in f32, too.
        """
        if rule.accumulator_dtype is not None:
            return TYPE_NAMES.get(rule.accumulator_dtype, self.shape.element_type)
        element_type = self.shape.element_type
        is_narrow = is_float(element_type) and ELEMENT_TYPES[element_type].bits < 32
        if is_narrow and combiner in FLOAT_COMBINERS and not rule.is_scatter:
            return "f32"
        return element_type

    def _convert_term(self, term: Formula, element_type: str) -> Formula:
        if term.type == element_type:
            return term
        attributes: Attributes = ()
        return self.algebra.apply("convert", attributes, element_type, [term])


def has_default_precision(instruction: Instruction) -> bool:
    """Return True for a product whose precision the compiler chooses.

    Source: XLA ``xla/xla_data.proto``, ``PrecisionConfig``: the default is the fastest calculation.
    """
    precision = getattr(instruction.op, "operand_precision", None)
    if precision is None or getattr(instruction.op, "algorithm", "") not in ("", "dot_unset"):
        return False
    return all(each == "default" for each in precision)


def _is_multiple_of_iota(data: Any, element_type: str) -> bool:
    """Return True for integers ``0, c, 2 * c, …``, which XLA replaces by a product of an iota."""
    if data.ndim != 1 or data.size < 2 or not is_integral(element_type):
        return False
    numbers = [int(value) for value in data]
    return numbers == [k * numbers[1] for k in range(len(numbers))]
