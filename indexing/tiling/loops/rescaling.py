"""Rescaling: nests that may run while a statistic that they use is still changing.

A nest sums ``f(x, m)`` over its steps, where ``m`` is the result of another nest, such as the
maximum of a row.  If ``f(x, m) = g(x) * h(m)``, the sum for any value of ``m`` is ``h(m)`` times
one that does not depend on it: a partial sum for the old value becomes that for the new one by the
factor ``h(new) / h(old)``, and both nests can run in step.

Proof: ``sum_i g(x_i) h(m) = h(m) * sum_i g(x_i)``, over the reals.  ``exp(x - m) = exp(x) exp(-m)``
and ``x / m = x * (1 / m)`` have this form, and so have products and quotients of such factors.
Where a comparison, a selection, a maximum or another function reads both ``x`` and ``m``, or where
the product is converted to an integer, no such factors are known, and the nest waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from hlo.modules.module import Instruction
from hlo.shapes.element_type import ELEMENT_TYPES
from hlo.shapes.shape import Shape
from indexing.ops.dot import Dot
from indexing.ops.iota import Constant
from indexing.ops.reduce import Reduce
from indexing.tiling.computations.tile_graph import TileGraph, TileNode
from indexing.tiling.loops.nests import BlockNest, NestKey, used_map

Form: TypeAlias = Literal["constant", "free", "statistic", "shifted", "scaled"]
"""A number; a value without the statistic; a function of statistics alone; a free value plus or
minus a statistic; a free value times a function of statistics."""

_FACTORS: Final = ("free", "scaled")


def can_rescale(graph: TileGraph, statistic: BlockNest, user: BlockNest) -> bool:
    """Return True if partial results of `user` follow a change of the result of `statistic`.

    Args:
        graph: the tiles.
        statistic, user: nests; the second one needs the first.
    """
    if user.key is None:
        return False
    if statistic not in user.needs:
        return True  # its users in between decide
    return _Forms(graph, user).is_scaled


class _Forms:
    """The forms of the values that a nest reduces."""

    def __init__(self, graph: TileGraph, user: BlockNest) -> None:
        self._graph = graph
        self._statistics = {nest.key for nest in user.needs}
        self._known: dict[TileNode, Form | None] = {}
        self.is_scaled = all(map(self._is_scaled_sum, user.starts))

    def _is_scaled_sum(self, node: TileNode) -> bool:
        """Return True if an instruction sums values that are scaled by functions of statistics."""
        forms = [self.form(operand) for _, operand in node.operands]
        op = node.array.instruction.op
        if isinstance(op, Dot):
            return all(form in (*_FACTORS, "constant") for form in forms)
        if not isinstance(op, Reduce) or len(node.array.instruction.operands) != 2:
            return False
        (applied,) = node.array.instruction.called_computations
        is_sum = applied.root.opcode == "add" and {
            operand.opcode for operand in applied.root.operands
        } == {"parameter"}
        by_number = dict(zip([number for number, _ in node.operands], forms, strict=True))
        return is_sum and by_number.get(0) in _FACTORS and by_number.get(1) == "constant"

    def form(self, node: TileNode) -> Form | None:
        """Return the form of a value; None if it has no known one."""
        if node not in self._known:
            self._known[node] = self._form(node)
        return self._known[node]

    def _form(self, node: TileNode) -> Form | None:
        if node.map is None:
            return None
        array = node.array._replace(path=())
        if NestKey(array, used_map(node.map)) in self._statistics:
            return "statistic"
        op = array.instruction.op
        if isinstance(op, Constant):
            return "constant"
        if not node.operands:
            return "free"
        forms = [self.form(operand) for _, operand in node.operands]
        kinds = set(forms)
        if None in kinds:
            return None
        if kinds <= {"constant", "free"}:
            return "free" if "free" in kinds else "constant"
        if self._graph.loop_table.get(array):
            return None  # a sum inside of the nest
        if not all(map(_is_of_fractions, (array.instruction, *array.instruction.operands))):
            return None  # a conversion to integers, and their division, round
        if kinds <= {"constant", "statistic"}:
            return "statistic"
        return combine_forms(array.instruction.opcode, forms)


def _is_of_fractions(instruction: Instruction) -> bool:
    shape = instruction.shape
    if not isinstance(shape, Shape):
        return False
    return ELEMENT_TYPES[shape.element_type].kind in ("floating", "complex")


def combine_forms(opcode: str, forms: Sequence[Form | None]) -> Form | None:
    """Return the form of a function of values, not all of them free; None if none is known.

    >>> combine_forms("subtract", ["free", "statistic"]), combine_forms("exponential", ["shifted"])
    ('shifted', 'scaled')
    >>> combine_forms("maximum", ["free", "statistic"])
    >>> combine_forms("subtract", ["scaled", "free"])
    """
    kinds = set(forms)
    if len(forms) == 1:
        only = forms[0]
        if opcode in _MOVES:
            return only
        if opcode == "negate":
            return only
        return "scaled" if opcode == "exponential" and only == "shifted" else None
    if opcode in ("add", "subtract"):
        return "shifted" if kinds <= {"free", "constant", "statistic", "shifted"} else None
    if opcode == "multiply" and "shifted" in kinds:
        return "shifted" if kinds == {"shifted", "constant"} else None
    if opcode in ("multiply", "divide") and "shifted" not in kinds:
        return "scaled"
    return None


_MOVES: Final = ("broadcast", "convert", "copy", "transpose", "reshape", "bitcast")
"""Functions that keep each value, over the reals."""
