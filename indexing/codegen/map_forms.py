"""Faults in the form of maps, which make it impossible to evaluate them.

A map to an operand has a dimension for each dimension of the output, within its size; it leads only
to elements of the operand; and its runtime variables are elements of arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.maps.answers import Answer
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.constraints import Constraint
from simplifier.interval import contains
from simplifier.linear import Expr


def form_faults(answer: Answer) -> Iterator[str]:
    """Yield the faults in the form of the maps of an output-to-input answer.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] reverse(p), dimensions={0} }"
    >>> answer = indexing.output_to_input(hlo.parse(text).entry.root)
    >>> list(form_faults(answer))
    []
    >>> from dataclasses import replace
    >>> wrong = indexing.IndexingMap.over((4,), lambda d: [d[0] + 3])
    >>> print(*form_faults(replace(answer, maps=((wrong,),))))  # doctest: +NORMALIZE_WHITESPACE
    the map to p leads outside: d0 + 3 is not in [0, 3] everywhere in (d0) -> (d0 + 3),
    domain: d0 in [0, 3]
    """
    start = leaves(answer.instruction.shape)[answer.domain_id][1]
    assert isinstance(start, Shape)
    for operand, maps, paths in zip(answer.operands, answer.maps, answer.paths, strict=True):
        for indexing_map, path in zip(maps, paths, strict=True):
            end = ArrayRef(operand, path).array_shape
            if end is not None:
                fault = _fault(indexing_map, start, end)
                if fault:
                    yield f"the map to {operand.name} {fault} in {indexing_map}"


def _fault(m: IndexingMap, start: Shape, end: Shape) -> str:
    """Return the first fault of a map between arrays of these shapes; empty if it has none."""
    if len(m.dims) != start.rank:
        return f"has {len(m.dims)} dimensions, but the output {start} has {start.rank}"
    for v, size in zip(m.dims, start.dims, strict=True):
        if v.lower <= v.upper and not contains((0, size - 1), v.bounds):
            return f"has {v.name} in [{v.lower}, {v.upper}], but the size of the output is {size}"
    if len(m.results) != end.rank:
        return f"has {len(m.results)} results, but the operand {end} has {end.rank} dimensions"
    outside = _outside(m, m.results, end)
    if outside:
        return f"leads outside: {outside} everywhere"
    for rt in m.runtime:
        fault = _runtime_fault(m, rt)
        if fault:
            return f"has a runtime variable {rt.name} {fault}"
    return ""


def _runtime_fault(m: IndexingMap, rt: RuntimeVariable) -> str:
    """Return the fault of a runtime variable; empty if it is an element of an array."""
    if not isinstance(rt.array, ArrayRef) or not isinstance(rt.source, Instruction):
        return f"whose source is {rt.source_name}, not an instruction"
    source = rt.array.array_shape
    if source is None:
        return f"whose source {rt.source_name} is not an array"
    if len(rt.element) != source.rank:
        return f"at {list(map(str, rt.element))} of {rt.source_name}, which is {source}"
    outside = _outside(m, rt.element, source)
    return f"outside of its source {rt.source_name}: {outside} everywhere" if outside else ""


def _outside(m: IndexingMap, index: Sequence[Expr], shape: Shape) -> str:
    """Return the part of an index that is outside of a shape somewhere in the domain of a map.

    Empty if there is none, or if ISL cannot decide it within its budget.
    """
    for part, size in zip(index, shape.dims, strict=True):
        low, high = part.bounds
        for lower, upper in ((low, -1), (size, high)):
            if lower > upper:
                continue
            if m.with_constraints([Constraint(part, lower, upper)]).is_empty() is False:
                return f"{part} is not in [0, {size - 1}]"
    return ""
