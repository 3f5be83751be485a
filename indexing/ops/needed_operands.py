"""The operands that a result needs of an instruction that applies a computation to elements.

`map`, `reduce`, `scatter`, `sort` and similar ops apply a computation to elements of their
operands.  An operand is not read if the computation ignores the parameter that receives its
elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hlo.modules.module import Computation
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.ops.element import ElementRule, ElementwiseRule, ReductionRule

ParameterGrades: TypeAlias = Mapping[int, Grade]
"""The parameters that a result of a computation depends on, by number; ``may`` if uncertain."""

ParametersRead: TypeAlias = Callable[[Computation, int], ParameterGrades]
"""The parameters that a leaf of a computation's root, given by number, depends on."""


@dataclass(frozen=True, slots=True)
class NeededOperands:
    """The operands that one result needs.

    Attributes:
        grades: the best possible grade of the maps to each needed operand.
        only_last: operands of which only the element that is reduced last is needed.
        certain: operands of which all elements are needed for some values, also where the op
            alone does not tell: its maps are `may`.

    >>> from indexing.ops.needed_operands import NeededOperands
    >>> needed = NeededOperands({0: "exact", 1: "may"})
    >>> needed.obstacle(1, reads_several=False)
    'the applied computation may ignore operand 1'
    """

    grades: ParameterGrades
    only_last: frozenset[int] = frozenset()
    certain: frozenset[int] = frozenset()

    def obstacle(self, operand: int, *, reads_several: bool) -> str:
        """Return why maps of a needed operand are `may`; empty if they keep their grade.

        Args:
            reads_several: an element of the result may read several elements of the operand.
        """
        if self.grades[operand] == "may":
            return f"the applied computation may ignore operand {operand}"
        if operand in self.only_last and reads_several:
            return "only the element that is reduced last is needed, and the order is undefined"
        return ""


def reads_several(maps: tuple[IndexingMap, ...] | Unknown) -> bool:
    """Return True if output-to-input maps may lead from one element to several elements."""
    if isinstance(maps, Unknown) or not maps:
        return False
    return len(maps) > 1 or any(s.lower < s.upper for s in maps[0].ranges)


def needed_by_rule(
    rule: ElementRule,
    operands: int,
    output_id: int,
    parameters_read: Callable[[int], ParameterGrades],
) -> NeededOperands | None:
    """Return the operands that a result needs of an op with this element rule; None for all.

    Args:
        operands: the number of operands of the instruction.
        output_id: the number of the result.
        parameters_read: the parameters that each result of the applied computation depends on.
    """
    match rule:
        case ElementwiseRule(uses_computation=True):
            return NeededOperands(parameters_read(0))
        case ReductionRule(uses_computation=True):
            needed = needed_by_reduction(rule, output_id, parameters_read)
            return _with_indices(rule, operands, needed) if rule.is_scatter else needed
    return None


def needed_by_reduction(
    rule: ReductionRule,
    output_id: int,
    parameters_read: Callable[[int], ParameterGrades],
) -> NeededOperands:
    """Return the operands that one total of a reduction needs.

    Step t of a reduction by f is ``totals = f(totals, values[t])``.  A total needs the operands
    that f reads for it in the last step, and those that f reads for these totals in earlier steps.

    Args:
        rule: the reduction, with an initial value for each total.
        output_id: the number of the total.
        parameters_read: the parameters of f that each result of f depends on: totals, then values.
    """
    count, direct = len(rule.inits), parameters_read(output_id)
    is_accumulated = direct.get(output_id) == "exact"
    read = dict.fromkeys(direct if rule.always_steps else [output_id, *direct])
    pending = list(read)
    while pending:
        n = pending.pop()
        later = parameters_read(n) if n < count else ()
        pending += [each for each in later if each not in read]
        read.update(dict.fromkeys(later))
    grades: dict[int, Grade] = {}
    for n in read:
        if n >= count:
            grades[rule.values[n - count]] = direct.get(n, "may")
        else:
            is_certain = n == output_id or (rule.always_steps and direct.get(n) == "exact")
            grades[rule.inits[n]] = "exact" if is_accumulated and is_certain else "may"
    return NeededOperands(grades, frozenset(() if is_accumulated else rule.values))


def _with_indices(rule: ReductionRule, operands: int, needed: NeededOperands) -> NeededOperands:
    """Add the scatter indices, which decide where values are reduced."""
    reads_values = any(needed.grades.get(n) == "exact" for n in rule.values)
    indices = [n for n in range(operands) if n not in rule.inits and n not in rule.values]
    grade: Grade = "exact" if reads_values else "may"
    return NeededOperands({**dict.fromkeys(indices, grade), **needed.grades}, needed.only_last)
