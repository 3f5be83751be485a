"""Formulas of loops and conditionals.

A loop is compared by coinduction.  Carried leaves that are assumed equal are one symbol, and a
leaf that is assumed invariant is its initial value; an assumption that the body does not preserve
is given up, until the rest is preserved.  Only carried leaves on which the result or the condition
depends remain, in the order of their first occurrence.  Loops that do not terminate have no
result, so both programs may leave them out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.equivalence.values.formulas.applications import Bodies, Frame
from indexing.equivalence.values.formulas.element_algebra import own_index
from indexing.equivalence.values.formulas.first_iterations import FirstValues
from indexing.equivalence.values.formulas.numbering import Leaves, NumberedArray, needed_arrays
from indexing.equivalence.values.formulas.overwritten import overwritten_leaves
from indexing.equivalence.values.laws.symbols import Renaming, symbols_in
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.arrays import Path
from indexing.ops.control import BRANCHES, Conditional, While, callees

MAX_UNROLLED: Final = 1
"""Loops of at most this many iterations are unrolled."""
MAX_EXPANDED: Final = 32
"""The same for programs that are not proved otherwise."""
MAX_ROUNDS: Final = 12
"""Limit on the rounds in which assumptions are given up; then none is made."""


def controlled_formula(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return the formula of a leaf of a loop or a conditional; None for other ops."""
    instruction = array.instruction
    if instruction is None or array.shape is None:
        return None
    if isinstance(instruction.op, Conditional):
        return _chosen_branch(bodies, array, instruction, frame)
    if not isinstance(instruction.op, While):
        return None
    inside = {leaf.shape is None for leaf in array.operands[0].values()}
    if True in inside:
        return None
    loop = _Loop.of(bodies, array, instruction, frame)
    return loop.result(array.path)


def _chosen_branch(
    bodies: Bodies, array: NumberedArray, instruction: Instruction, frame: Frame
) -> Formula | None:
    """Return the element of a conditional: a selection among the elements of its branches."""
    branches = callees(instruction, *BRANCHES)
    (selector,) = array.operands[0].values()
    terms = []
    for branch, argument in zip(branches, array.operands[1:], strict=True):
        inner = Frame(_argument(bodies, argument, frame), level=frame.level)
        terms.append(bodies.body(bodies.numbering.result(branch)[array.path], inner))
    value = bodies.body(selector, frame)
    algebra = bodies.algebra
    element_type = terms[0].type
    if value.type == "pred":
        return algebra.apply("select", (), element_type, [value, *terms])
    result = terms[-1]
    attributes = ("direction", "EQ"), ("type", "")
    for number in reversed(range(len(terms) - 1)):
        place = algebra.table.constant(number, value.type)
        is_chosen = algebra.apply("compare", attributes, "pred", [value, place])
        result = algebra.apply("select", (), element_type, [is_chosen, terms[number], result])
    return result


def _argument(bodies: Bodies, argument: Leaves, frame: Frame) -> dict[tuple[int, Path], Formula]:
    return {(0, path): bodies.body(leaf, frame) for path, leaf in argument.items()}


@dataclass(slots=True)
class _Loop:
    """A loop with the initial values of its carried leaves.

    Attributes:
        first: the first iteration.
    """

    bodies: Bodies
    inits: dict[Path, Formula]
    first: Frame
    shapes: dict[Path, Shape]
    condition: NumberedArray
    results: Leaves
    level: int
    unrolled: Mapping[Path, Formula] | None = None
    preserved: tuple[Mapping[Path, Formula], Mapping[Path, Formula], Formula] | None = None

    @classmethod
    def of(
        cls, bodies: Bodies, array: NumberedArray, instruction: Instruction, frame: Frame
    ) -> _Loop:
        """Return the loop of which an array is a leaf; it is analysed once."""
        condition, body = callees(instruction, "condition", "body")
        (carried,) = array.operands
        (truth,) = bodies.numbering.result(condition).values()
        results = bodies.numbering.result(body)
        numbers = [leaf.number for leaf in (*carried.values(), truth, *results.values())]
        known = frame.loops.get(tuple(numbers))
        if known is not None:
            assert isinstance(known, cls)
            return known
        shapes = {path: leaf.shape for path, leaf in carried.items() if leaf.shape is not None}
        inits = {path: bodies.body(leaf, frame) for path, leaf in carried.items()}
        first = Frame({(0, path): term for path, term in inits.items()}, level=frame.level + 1)
        loop = cls(bodies, inits, first, shapes, truth, results, frame.level)
        frame.loops[tuple(numbers)] = loop
        return loop

    def result(self, path: Path) -> Formula:
        """Return the formula of the leaf after the loop."""
        if self.unrolled is None:
            self.unrolled = self._unrolled_leaves()
        if self.unrolled:
            return self.unrolled[path]
        if self.preserved is None:
            self.preserved = self._preserved_leaves()
        state, after, truth = self.preserved
        if state[path] is self.inits[path]:
            return state[path]
        return self._closed_leaf(path, state, after, truth)

    def _unrolled_leaves(self) -> Mapping[Path, Formula]:
        """Return the leaves after a loop of few iterations; {} for other loops."""
        count = self._iterations(MAX_EXPANDED if self.bodies.expands else MAX_UNROLLED)
        values: Mapping[Path, Formula] = self.inits if count is not None else {}
        for number in range(count or 0):
            values = self._after(self._frame(values) if number else self.first)
        return values

    def _iterations(self, limit: int) -> int | None:
        """Return the number of iterations, if it is constant and at most `limit`."""
        deciding = self._deciding()
        values: Mapping[Path, Formula] = {path: self.inits[path] for path in deciding}
        for number in range(limit + 1):
            frame = self._frame(values) if number else self.first
            truth = self.bodies.body(self.condition, frame)
            if truth.kind != "constant":
                return None
            if not truth.value:
                return number
            values = {path: self.bodies.body(self.results[path], frame) for path in deciding}
        return None

    def _deciding(self) -> list[Path]:
        """Return the carried leaves on which the condition depends, in any iteration."""
        deciding: list[Path] = []
        pending = [self.condition]
        while pending:
            for array in needed_arrays([pending.pop()]):
                if array.argument is not None and array.argument[1] not in deciding:
                    deciding.append(array.argument[1])
                    pending.append(self.results[array.argument[1]])
        return deciding

    def _frame(self, values: Mapping[Path, Formula]) -> Frame:
        return Frame({(0, path): term for path, term in values.items()}, level=self.level + 1)

    def _after(self, frame: Frame) -> dict[Path, Formula]:
        return {path: self.bodies.body(leaf, frame) for path, leaf in self.results.items()}

    def _symbol(self, path: Path) -> Formula:
        shape, init = self.shapes[path], self.inits[path]
        head = "loop", self.level, init.key, path
        table = self.bodies.table
        return table.read(table.array("symbol", head, init.type, shape.dims), own_index(shape))

    # ------------------------------------------------------------ assumptions

    def _preserved_leaves(self) -> tuple[dict[Path, Formula], dict[Path, Formula], Formula]:
        """Return values of the carried leaves that one iteration preserves, with their successors.

        The value of a leaf is its initial value, if that is invariant, or the symbol of the first
        leaf that is always equal.  The last part is the condition.
        """
        for _ in range(MAX_ROUNDS):
            state, after, truth = self._assumed_leaves()
            symbols = {path: term for path, term in state.items() if term is self._symbol(path)}
            first = FirstValues(self.bodies.algebra, symbols, self.inits, after, truth)
            if all(self.inits[path] is value for path, value in first.inits.items()):
                break
            self.inits |= first.inits
            self.first = self._frame(self.inits)
        else:
            return self._assumed_leaves()
        if not first.inits:
            return state, after, truth
        kept = {path: first.without_selections(term) for path, term in after.items()}
        return state, kept, first.without_selections(truth)

    def _assumed_leaves(self) -> tuple[dict[Path, Formula], dict[Path, Formula], Formula]:
        """Return what `_preserved_leaves` does, as the body computes it."""
        state = dict(self.inits)
        for count in range(MAX_ROUNDS + 1):
            if count == MAX_ROUNDS:
                state = {path: self._symbol(path) for path in self.inits}
            frame = self._frame(state) if count else self.first
            after = self._after(frame)
            following = self._weaken_assumptions(state, after)
            if following == state or count == MAX_ROUNDS:
                break
            state = following
        return state, after, self.bodies.body(self.condition, frame)

    def _weaken_assumptions(
        self, state: Mapping[Path, Formula], after: Mapping[Path, Formula]
    ) -> dict[Path, Formula]:
        """Return the assumptions without those that one iteration does not preserve."""
        following: dict[Path, Formula] = {}
        classes: dict[object, Path] = {}
        for path, value in state.items():
            if value is self.inits[path] and after[path] is value:
                following[path] = value
                continue
            was_init = value is self.inits[path]
            before = self.inits[path] if was_init else value
            key = was_init, before.number, after[path].number, self.shapes[path].dims
            first = classes.setdefault(key, path)
            following[path] = self._symbol(first)
        return following

    # ------------------------------------------------------------ canonical form

    def _closed_leaf(
        self,
        result: Path,
        state: Mapping[Path, Formula],
        after: Mapping[Path, Formula],
        truth: Formula,
    ) -> Formula:
        """Return the leaf after the loop, as an element of a closed array."""
        table = self.bodies.table
        own = {_array(self._symbol(path)): path for path in state}
        order: dict[Path, None] = {}
        for roots in ([truth], [state[result]]):
            order.update({own[symbol]: None for symbol in symbols_in(roots) if symbol in own})
            _complete(order, after, own)
        names = {}
        for number, path in enumerate(order):
            symbol = _array(self._symbol(path))
            head = "carried", self.level, number, ()
            names[symbol] = table.array("symbol", head, symbol.type, symbol.dims)
        renamed = Renaming(self.bodies.algebra, names)
        place = list(order).index(own[_array(state[result])])
        sizes = tuple([self.shapes[path].dims for path in order])
        inits = self._significant_inits(order, after, truth)
        terms = [truth, *inits, *[after[p] for p in order]]
        shape = self.shapes[result]
        array = table.array("opaque", ("loop", self.level, place, sizes), state[result].type,
                            shape.dims, [renamed(term) for term in terms])  # fmt: skip
        return table.read(array, own_index(shape))

    def _significant_inits(
        self, order: Iterable[Path], after: Mapping[Path, Formula], truth: Formula
    ) -> list[Formula]:
        """Return the initial values of leaves; 0 for those of which every element is written."""
        table = self.bodies.table
        symbols = {path: self._symbol(path) for path in order}
        written = overwritten_leaves(table, symbols, self.inits, after, truth)
        return [
            table.constant(0, self.inits[p].type) if p in written else self.inits[p]
            for p in symbols
        ]


def _array(term: Formula) -> Formula:
    assert term.array is not None
    return term.array


def _complete(
    order: dict[Path, None], after: Mapping[Path, Formula], own: Mapping[Formula, Path]
) -> None:
    """Add the carried leaves on which the successors of those in `order` depend."""
    done = 0
    while done < len(order):
        path = list(order)[done]
        done += 1
        order.update({own[s]: None for s in symbols_in([after[path]]) if s in own})
