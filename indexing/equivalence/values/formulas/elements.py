"""The formula of one element of an array, over the dimensions ``d0, d1, …`` of the array.

Movement changes the indices of the reads.  Elementwise ops apply functions.  Reductions, dots and
convolutions are folds over range variables, closed in a canonical form (`closed_terms`).  Ops
without an element rule are opaque: equal ops of equal operands are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hlo.modules.calls import callees_of
from hlo.modules.module import Computation, Module
from hlo.shapes.shape import Shape
from indexing.equivalence.values.folds.narrowed_reads import ReadingAlgebra
from indexing.equivalence.values.formulas.applications import Frame
from indexing.equivalence.values.formulas.bits import reinterpret
from indexing.equivalence.values.formulas.definitions import defined_formula
from indexing.equivalence.values.formulas.element_algebra import Step, own_index
from indexing.equivalence.values.formulas.expansions import called_element, expanded_element
from indexing.equivalence.values.formulas.loops import controlled_formula
from indexing.equivalence.values.formulas.numbering import (
    NoFormula,
    NumberedArray,
    Numbering,
    attributes_of,
    exchange_of_one,
    needed_arrays,
)
from indexing.equivalence.values.formulas.single_updates import updated_element
from indexing.equivalence.values.formulas.sorts import sorted_element
from indexing.equivalence.values.laws.algebra import FormulaAlgebra
from indexing.equivalence.values.terms.terms import (
    NO_VARIABLES,
    Formula,
    FormulaTable,
    UnboundVariable,
)
from indexing.maps.answers import Unknown
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import dims
from indexing.ops.combiners import COMBINERS
from indexing.ops.element import element_of
from indexing.programs.arrays import is_unique
from simplifier.linear import Expr

DEFINITIONS: Final = (
    controlled_formula,
    defined_formula,
    updated_element,
    sorted_element,
    reinterpret,
    expanded_element,
    called_element,
)
"""Formulas of ops that are not made from their maps."""
MAX_TERMS: Final = 1 << 18
"""Limit on the terms of the formulas of one comparison; those that comparing makes do not count."""
MAX_EXPANDED_TERMS: Final = 1 << 15
"""The same limit if ops are replaced by their definitions."""
MAX_TERM_DEPTH: Final = 400
"""Limit on the depth of a formula; a deeper one is closed, and read as an array."""
MAX_COPIED_TERMS: Final = 1 << 14
"""Limit on the terms of one comparison before formulas are closed instead of copied."""
MAX_COPIED_DEPTH: Final = 8
"""Limit on the depth of formulas that are copied if formulas are closed instead."""


@dataclass(slots=True)
class Elements:
    """Formulas of elements of numbered arrays.

    Attributes:
        functions: the results of computations, over symbols for their arguments.
        trusted: the uses of definitions that are not exact, by name.
        expands: ops are replaced by their definitions, and loops by their iterations.
        rounds_factors: factors of products of default precision are rounded to bf16.
        has_wide_factors: a product of default precision has factors that this would change.
        shares: a deep formula is closed where it is read at another index, instead of copied.
        limit: the limit on the terms.
        modules: those of the programs before and after; None if one is not known.
        origins: the numbers of the arrays from which each opaque array is made, by its own number.
    """

    numbering: Numbering
    table: FormulaTable
    algebra: FormulaAlgebra
    functions: dict[Computation, tuple[Formula, ...]]
    trusted: Counter[str]
    expands: bool
    rounds_factors: bool
    has_wide_factors: bool
    shares: bool
    limit: int
    modules: tuple[Module | None, Module | None]
    origins: dict[int, list[int]]
    _is_making: bool
    _known: int  # the terms of the table when the last formula was made
    _others: int  # those of them that comparisons made, which do not count against the limit

    def __init__(
        self,
        numbering: Numbering,
        *,
        expands: bool = False,
        shares: bool = False,
        rounds_factors: bool = False,
    ) -> None:
        self.numbering = numbering
        self.table = FormulaTable()
        self.algebra = ReadingAlgebra(self.table)
        self.functions = {}
        self.trusted = Counter()
        self.origins = {}
        self.modules = None, None
        self.has_wide_factors = False
        self.expands, self.shares, self.rounds_factors = expands, shares, rounds_factors
        self.limit = MAX_EXPANDED_TERMS if expands else MAX_TERMS
        self._is_making, self._known, self._others = False, 0, 0

    def is_after(self, array: NumberedArray) -> bool:
        """Return True if the program after, or a program that is not known, computes an array."""
        return self._is_in(self.modules[1], array)

    def is_in_both(self, array: NumberedArray) -> bool:
        """Return True if both programs compute an array, or programs that are not known."""
        return all(self._is_in(module, array) for module in self.modules)

    def _is_in(self, module: Module | None, array: NumberedArray) -> bool:
        if module is None:
            return True
        return self.numbering.instruction_in(module, [array.number]) is not None

    def body(self, array: NumberedArray, frame: Frame) -> Formula:
        """Return the formula of an element of an array.

        Raises:
            NoFormula: a budget is exceeded.
        """
        if array.number in frame.bodies:
            return frame.bodies[array.number]
        is_outermost, self._is_making = not self._is_making, True
        if is_outermost:
            self._others += len(self.table) - self._known
        try:
            for each in needed_arrays([array], frame.bodies):
                frame.bodies[each.number] = self._limit_depth(each, self._body(each, frame))
                if len(self.table) - self._others > self.limit:
                    reason = f"budget: the formulas have more than {self.limit} terms"
                    raise NoFormula(Unknown(reason, each.instruction))
        finally:
            if is_outermost:
                self._is_making, self._known = False, len(self.table)
        return frame.bodies[array.number]

    def _limit_depth(self, array: NumberedArray, body: Formula) -> Formula:
        """Return a formula, or the element of an array of its values if it is deep."""
        if array.shape is None or not self._is_closable(body, MAX_TERM_DEPTH):
            return body
        return self._closed_element(body, array.shape, own_index(array.shape))

    def _is_closable(self, body: Formula, depth: int) -> bool:
        """Return True for a deeper formula whose variables are dimensions of its array."""
        return body.depth > depth and not body.free & self.table.unbound

    def _closed_element(self, body: Formula, shape: Shape, index: Sequence[Expr]) -> Formula:
        """Return the element at an index of the array of a formula's values."""
        let = self.table.array("let", ("let", shape.dims), body.type, shape.dims, [body])
        return self.table.read(let, index)

    def at(self, array: NumberedArray, frame: Frame, index: Sequence[Expr]) -> Formula:
        """Return the formula of the element at an index."""
        body = self.body(array, frame)
        assert array.shape is not None
        pairs = zip(dims(array.shape), index, strict=True)
        values = {v: e for v, e in pairs if v.as_expr() != e}
        if not values:
            return body
        if self.shares and self._is_closable(body, MAX_COPIED_DEPTH):
            return self._closed_element(body, array.shape, index)
        return self.algebra.rewriting(values)(body)

    # ------------------------------------------------------------ rules

    def _body(self, array: NumberedArray, frame: Frame) -> Formula:
        if array.argument is not None:
            return frame.arguments[array.argument]
        if array.view is not None:
            return self.at(array.only, frame, array.view)
        instruction, shape = array.instruction, array.shape
        assert instruction is not None
        if shape is None or _is_dynamic(array):
            name = "token" if shape is None else shape.element_type
            sizes = () if shape is None else shape.dims
            opaque = self.table.array("opaque", ("unknown", array.number), name, sizes)
            return self.table.read(opaque, () if shape is None else own_index(shape))
        if 0 in shape.dims:
            return self.table.constant(0, shape.element_type)
        if is_unique(instruction):
            return self._opaque(array, frame)
        body = self._defined_formula(array, frame)
        if body is not None:
            return body
        made = self._step(array, frame).element(element_of(instruction, array.leaf))
        return self._opaque(array, frame) if isinstance(made, Unknown) else made

    def _defined_formula(self, array: NumberedArray, frame: Frame) -> Formula | None:
        """Return the formula of an op that is not made from its maps; None for other ops."""
        for definition in DEFINITIONS:
            body = definition(self, array, frame)
            if body is not None:
                return body
        return None

    def _step(self, array: NumberedArray, frame: Frame) -> Step:
        assert array.instruction is not None
        assert array.shape is not None
        leaves = [list(tree.values()) for tree in array.operands]
        return Step(
            self.algebra,
            array.instruction,
            array.leaf,
            array.shape,
            array.path,
            read=lambda number, index: self.at(leaves[number][0], frame, index),
            function=self.function,
            combiner=self.combiner,
            applied=self.apply_computation,
            note_wide_factors=self._note_wide_factors,
            rounds_factors=self.rounds_factors,
        )

    def _note_wide_factors(self) -> None:
        self.has_wide_factors = True

    def combiner(self, computation: Computation) -> str:
        """Return the opcode of a computation that applies a known op to its two parameters."""
        results = list(self.numbering.result(computation).values())
        if len(results) != 1 or results[0].instruction is None:
            return ""
        operands = [leaf.argument for tree in results[0].operands for leaf in tree.values()]
        is_pair = sorted(operands, key=str) == [(0, ()), (1, ())]
        opcode = results[0].instruction.opcode
        return opcode if is_pair and opcode in COMBINERS else ""

    def apply_computation(
        self, computation: Computation, arguments: Sequence[Formula]
    ) -> Formula | Unknown:
        """Return the result of a computation of scalars; unknown if it has other arrays.

        The arguments depend on the index of an array that calls the computation.  Therefore, the
        result is also unknown if the computation has an op that is known by its operands only.
        """
        results = list(self.numbering.result(computation).values())
        arrays = list(needed_arrays(results))
        if len(results) != 1 or any(a.shape is None or a.shape.dims for a in arrays):
            return Unknown(f"`{computation.name}` has arrays", computation.root)
        frame = Frame({(k, ()): term for k, term in enumerate(arguments)})
        table, outer = self.table, self.table.unbound
        table.unbound = outer.union(*[term.free for term in arguments])
        try:
            return self.body(results[0], frame)
        except UnboundVariable:
            reason = f"`{computation.name}` has an op that is known by its operands only"
            return Unknown(reason, computation.root)
        finally:
            table.unbound = outer

    # ------------------------------------------------------------ opaque ops

    def _opaque(self, array: NumberedArray, frame: Frame) -> Formula:
        """Return an element of an op that is known by its name and operands only."""
        instruction, shape = array.instruction, array.shape
        assert instruction is not None
        assert shape is not None
        arguments: list[Formula] = []
        sizes: list[object] = []
        opcode, attributes = instruction.opcode, attributes_of(instruction)
        path, operands = array.path, array.operands
        single = exchange_of_one(instruction, path)
        if single is not None:
            opcode, attributes, number = single
            path, operands = (), (operands[number],)
        for tree in operands:
            for inside, leaf in tree.items():
                arguments.append(self.body(leaf, frame))
                sizes.append((inside, None if leaf.shape is None else leaf.shape.dims))
        for name, computations in sorted(callees_of(instruction).items()):
            for computation in computations:
                terms = self.function(computation)
                sizes.append((name if instruction.op is None else "", len(terms)))
                arguments += terms
        own: object = ()
        if is_unique(instruction) or instruction.literal is not None:
            own = array.number
        head = (opcode, attributes, path, tuple(sizes), own)
        opaque = self.table.array("opaque", head, shape.element_type, shape.dims, arguments)
        self.origins.setdefault(opaque.number, []).append(array.number)
        return self.table.read(opaque, own_index(shape))

    def function(self, computation: Computation) -> tuple[Formula, ...]:
        """Return the formulas of the results of a computation, over symbols for its arguments."""
        if computation not in self.functions:
            result = self.numbering.result(computation)
            frame = Frame(self.symbols(result.values(), "argument"))
            outer, self.table.unbound = self.table.unbound, NO_VARIABLES
            try:
                terms = tuple([self.body(x, frame) for x in result.values()])
            finally:
                self.table.unbound = outer
            self.functions[computation] = terms
        return self.functions[computation]

    def symbols(self, results: Iterable[NumberedArray], *name: object) -> dict[
        tuple[int, Path], Formula
    ]:  # fmt: skip
        """Return symbols for the arguments on which arrays of a computation depend."""
        made = {}
        for array in needed_arrays(list(results)):
            if array.argument is not None:
                made[array.argument] = self.symbol(array, *name)
        return made

    def symbol(self, array: NumberedArray, *name: object) -> Formula:
        """Return the element of a symbol for an argument."""
        head = (*name, *(array.argument or ()))
        if array.shape is None:
            return self.table.read(self.table.array("symbol", head, "token", ()), ())
        shape = array.shape
        symbol = self.table.array("symbol", head, shape.element_type, shape.dims)
        return self.table.read(symbol, own_index(shape))


def _is_dynamic(array: NumberedArray) -> bool:
    """Return True if an array or one of its operands has a dynamic shape."""
    operands = [leaf.shape for tree in array.operands for leaf in tree.values()]
    return any(shape is not None and shape.is_dynamic for shape in (array.shape, *operands))
