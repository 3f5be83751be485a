"""Coverage of outputs: whether each element is in the block of some step."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from indexing.pallas.block_maps import PlacedOperand, at_most
from indexing.pallas.block_tables import BlockTable
from indexing.pallas.calls import constant_sizes
from indexing.pallas.enumerated import EnumeratedBlocks
from simplifier import exact
from simplifier.atoms import Variable
from simplifier.exact import unions
from simplifier.linear import as_expr
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class CoverageVerdict:
    """The verdict about the coverage of an output.

    Attributes:
        covered: True, False, or "may": it depends on scalars or on a dynamic grid.
        hole: the first element that no step visits; `None` if it depends on scalars.
        symbols: the smallest symbolic sizes at which there is a hole.
        reason: why the answer is "may".
    """

    covered: bool | Literal["may"]
    hole: tuple[int, ...] | None = None
    symbols: tuple[tuple[str, int], ...] = ()
    reason: str = ""


def coverage_verdict(operand: PlacedOperand, table: BlockTable | Unknown) -> CoverageVerdict:
    """Return the verdict about the coverage of an output; its table decides where isl does not."""
    hole = _hole(operand, operand.symbols)
    if isinstance(hole, Unknown):
        blocks = EnumeratedBlocks.of(table)
        hole = hole if isinstance(blocks, Unknown) else blocks.hole()
    if isinstance(hole, Unknown):
        return CoverageVerdict("may", reason=str(hole))
    if hole is not None:
        count = len(operand.symbols)
        symbols = tuple(zip([v.name for v in operand.symbols], hole[:count], strict=True))
        dynamic = [v for v in symbols if v[0] in operand.call.dynamic]
        if not dynamic:
            return CoverageVerdict(False, hole[count:], symbols)
        return CoverageVerdict("may", hole[count:], symbols, "the grid is dynamic")
    if not operand.scalars:
        return CoverageVerdict(True)
    return _for_all_scalars(operand)


def _hole(operand: PlacedOperand, inputs: tuple[Variable, ...]) -> tuple[int, ...] | Unknown | None:
    """Return symbols and an element that no step visits, for any scalars."""
    array = [Variable(f"e{k}", 0, n.bounds[1] - 1) for k, n in enumerate(operand.spec.sizes)]
    inside = [at_most(e, n - 1) for e, n in zip(array, operand.spec.sizes, strict=True) if n.terms]
    every = exact.Relation(
        inputs,
        tuple(array),
        tuple([e.as_expr() for e in array]),
        (*operand.call.conditions, *inside),
    )
    return unions.only_first([every], [_visited_elements(operand, inputs)], is_first=True)


def _visited_elements(operand: PlacedOperand, inputs: tuple[Variable, ...]) -> exact.Relation:
    """The relation from symbols to the elements of all steps."""
    offsets, exprs, inside = operand.points(operand.starts.results, "s")
    hidden = (*[v for v in operand.variables if v not in inputs], *offsets)
    return exact.Relation(inputs, hidden, tuple(exprs), (*operand.starts.constraints, *inside))


def _for_all_scalars(operand: PlacedOperand) -> CoverageVerdict:
    """Some scalars cover the array; prove that all do, by the worst ones, or answer "may"."""
    if _has_too_few_steps(operand):
        return CoverageVerdict(False, reason="all blocks together have fewer elements")
    names = sorted({str(rt.source_name) for rt in operand.spec.runtime})
    surjective = _surjective(operand)
    if surjective is True:
        return CoverageVerdict(True)
    return CoverageVerdict(
        "may", surjective, reason=f"it depends on the values of {', '.join(names)}"
    )


def _has_too_few_steps(operand: PlacedOperand) -> bool:
    """True if the blocks of all steps have fewer elements than the array, wherever they are."""
    grid, sizes = operand.call.static_grid, constant_sizes(operand.spec.sizes)
    if grid is None or sizes is None:
        return False
    return prod(grid) * prod([each.size for each in operand.block]) < prod(sizes)


def _surjective(operand: PlacedOperand) -> tuple[int, ...] | Literal[True] | None:
    """Return True if all values of the scalars cover the array, or a hole for some values."""
    sizes = [as_expr(n) for n in operand.spec.sizes]
    if operand.symbols or not all(n.is_constant for n in sizes):
        return None
    answer = operand.stated_elements.is_surjective_onto([n.constant for n in sizes])
    if answer is True:
        return True
    if isinstance(answer, Unknown) or answer.witness is None:
        return None
    return answer.witness.results[0]
