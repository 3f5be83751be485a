"""Grades and kinds of the maps of each op, determined from the op's samples.

>>> import indexing.ops
>>> from hlo.ops.op import OPS
>>> print(map_kinds(OPS["transpose"], "output-to-input"))
exact: identity, permutation, affine
>>> print(map_kinds(OPS["dynamic-update-slice"], "output-to-input"))
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

MAP_KINDS: Final = {
    "nothing": "no element of any operand is read",
    "identity": "the element at the same index",
    "permutation": "a permutation of the dimensions",
    "affine": "an affine function of dimensions and range variables",
    "window": "affine, with a range variable added to a dimension",
    "quasi-affine": "with floordiv or mod in a result or a constraint",
    "everything": "every element, for every element of the other side",
    "pieces": "several maps for one operand, in some cases only with `exact`",
    "runtime": "with runtime variables",
    "unknown": "no map, and a reason",
}
"""Kinds of maps with their meaning, in the order in which they are listed."""


@dataclass(frozen=True, slots=True)
class MapKinds:
    """The grades and kinds of all maps in one direction, and the reasons of unknown maps."""

    grades: tuple[str, ...]
    kinds: tuple[str, ...]
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        kinds = ", ".join(self.kinds)
        return f"{' or '.join(self.grades)}: {kinds}" if self.grades else kinds


def map_kinds(cls: type[Op], direction: Direction) -> MapKinds:
    """Return the grades and kinds of the maps of an op's samples in one direction.

    Raises:
        HloError: a sample calls a computation that is not in `indexing.ops.samples`.
    """
    grades: set[str] = set()
    kinds: set[str] = set()
    reasons: dict[str, None] = {}
    for text in cls.samples:
        for answer in _answers(instruction_of(text), direction):
            for maps, unknown in zip(answer.maps, answer.unknown, strict=True):
                grades |= {each.grade for each in maps}
                kinds |= {kind_of(each) for each in maps}
                if len(maps) > 1:
                    kinds.add("pieces")
                if unknown is not None:
                    kinds.add("unknown")
                    reasons[unknown.reason] = None
    return MapKinds(
        tuple(sorted(grades)) if kinds else ("exact",),
        tuple([kind for kind in MAP_KINDS if kind in kinds]) or ("nothing",),
        tuple(reasons),
    )


def _answers(instruction: Instruction, direction: Direction) -> Iterator[Answer]:
    """Yield the answers for every output or every operand, with and without ``exact``."""
    from indexing import dataflow

    for exact in (False, True):
        if direction == "output-to-input":
            for output in range(len(leaves(instruction.shape))):
                yield dataflow.output_to_input(instruction, output, exact=exact)
        else:
            for number in range(len(instruction.operands)):
                yield dataflow.input_to_output(instruction, number, exact=exact)


def kind_of(indexing_map: IndexingMap) -> str:
    """Return the kind of a single map, one of `MAP_KINDS`.

    >>> from indexing.maps.text import parse_map
    >>> kind_of(parse_map("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 4]"))
    'permutation'
    >>> kind_of(parse_map("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 4]"))
    'window'
    """
    if indexing_map.runtime:
        return "runtime"
    exprs = [*indexing_map.results, *[c.expr for c in indexing_map.constraints]]
    if not all(isinstance(atom, Variable) for expr in exprs for atom, _ in expr.terms):
        return "quasi-affine"
    if (kind := _kind_of_copy(indexing_map)) is not None:
        return kind
    return (
        "window"
        if any(_slides(result, indexing_map) for result in indexing_map.results)
        else "affine"
    )


def _kind_of_copy(indexing_map: IndexingMap) -> str | None:
    """Return the kind of a map whose results are distinct variables, or None for other maps."""
    variables = [result.as_variable for result in indexing_map.results]
    if indexing_map.constraints or None in variables or len(set(variables)) < len(variables):
        return None
    if not indexing_map.ranges and tuple(variables) == indexing_map.dims:
        return "identity"
    if not indexing_map.ranges and set(variables) == set(indexing_map.dims):
        return "permutation"
    return "everything" if variables and set(variables) == set(indexing_map.ranges) else None


def _slides(result: Expr, indexing_map: IndexingMap) -> bool:
    """Return True if a result uses both a dimension and a range variable, like a window."""
    used = set(result.variables())
    return not used.isdisjoint(indexing_map.dims) and not used.isdisjoint(indexing_map.ranges)
