"""What the analysis answers for an op, found out by asking it about the op's samples.

>>> import indexing.ops
>>> from hlo.ops.op import OPS
>>> print(coverage(OPS["transpose"], "output-to-input"))
exact: identity, permutation, affine
>>> print(coverage(OPS["dynamic-update-slice"], "output-to-input"))
exact or may: identity, affine, everything, pieces, runtime
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hlo.modules.module import Instruction
from hlo.ops.op import Op
from hlo.shapes.shape import leaves
from indexing.maps.answers import Answer, Direction
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.samples import instruction_of
from simplifier.atoms import Variable
from simplifier.linear import Expr

KINDS: Final = {
    "nothing": "no element of any operand is read",
    "identity": "each element is the one at its own place",
    "permutation": "the dimensions in another order",
    "affine": "sums of multiples of dimensions and range variables",
    "window": "affine, a range variable added to a dimension",
    "quasi-affine": "with floordiv or mod, in a result or in a constraint",
    "everything": "each element of the one side with all of the other",
    "pieces": "several maps for one operand, some of them only where exact ones are asked for",
    "runtime": "with runtime variables",
    "unknown": "no map, and a reason",
}
"""Kinds of maps, in the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The grades and the kinds of all maps in one direction, and reasons where there are none."""

    grades: tuple[str, ...]
    kinds: tuple[str, ...]
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        kinds = ", ".join(self.kinds)
        return f"{' or '.join(self.grades)}: {kinds}" if self.grades else kinds


def coverage(cls: type[Op], direction: Direction) -> Coverage:
    """What is answered for the samples of an op.

    Raises:
        HloError: a sample calls a computation that is not in `indexing.ops.samples`.
    """
    grades: set[str] = set()
    kinds: set[str] = set()
    reasons: dict[str, None] = {}
    for text in cls.samples:
        for answer in _answers(instruction_of(text), direction):
            for maps, unknown in zip(answer.maps, answer.unknown, strict=True):
                grades |= {found.grade for found in maps}
                kinds |= {kind_of(found) for found in maps}
                if len(maps) > 1:
                    kinds.add("pieces")
                if unknown is not None:
                    kinds.add("unknown")
                    reasons[unknown.reason] = None
    return Coverage(
        tuple(sorted(grades)) if kinds else ("exact",),
        tuple([kind for kind in KINDS if kind in kinds]) or ("nothing",),
        tuple(reasons),
    )


def _answers(instruction: Instruction, direction: Direction) -> Iterator[Answer]:
    """Compact and exact answers for every output, or for every operand."""
    from indexing import dataflow

    for exact in (False, True):
        if direction == "output-to-input":
            for output in range(len(leaves(instruction.shape))):
                yield dataflow.output_to_input(instruction, output, exact=exact)
        else:
            for number in range(len(instruction.operands)):
                yield dataflow.input_to_output(instruction, number, exact=exact)


def kind_of(found: IndexingMap) -> str:
    """Which of `KINDS` a map is, as far as that is seen in one map.

    >>> from indexing.maps.text import parse_map
    >>> kind_of(parse_map("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 4]"))
    'permutation'
    >>> kind_of(parse_map("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 4]"))
    'window'
    """
    if found.runtime:
        return "runtime"
    exprs = [*found.results, *[c.expr for c in found.constraints]]
    if not all(isinstance(atom, Variable) for expr in exprs for atom, _ in expr.terms):
        return "quasi-affine"
    if (kind := _kind_of_copy(found)) is not None:
        return kind
    return "window" if any(_slides(result, found) for result in found.results) else "affine"


def _kind_of_copy(found: IndexingMap) -> str | None:
    """The kind of a map each of whose results is a variable of its own."""
    places = [result.as_variable for result in found.results]
    if found.constraints or None in places or len(set(places)) < len(places):
        return None
    if not found.ranges and tuple(places) == found.dims:
        return "identity"
    if not found.ranges and set(places) == set(found.dims):
        return "permutation"
    return "everything" if places and set(places) == set(found.ranges) else None


def _slides(result: Expr, found: IndexingMap) -> bool:
    """A range variable moves along a dimension."""
    inside = set(result.variables())
    return not inside.isdisjoint(found.dims) and not inside.isdisjoint(found.ranges)
