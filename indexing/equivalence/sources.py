"""Names of runtime values: equal names and equal indices are equal values, in both programs.

A runtime variable is an element of an array that the program computes.  Its name is the formula of
that element over the parameters of the program: calls, fusions and tuples are seen through, moved
elements are followed to where they come from, and integer sums are normalised.  Two programs share
one `Sources`.

An array is named on its own, at any place of a program.  `programs.arrays.ProgramArrays` starts at
the arguments of a computation instead, which arrays inside loops and conditionals do not have.

>>> import hlo, indexing
>>> text = '''ENTRY e { p = f32[9] parameter(0)  i = s32[] parameter(1)  two = s32[] constant(2)
...   j = s32[] %s  ROOT s = f32[5] dynamic-slice(p, j), dynamic_slice_sizes={5} }'''
>>> table, named = Sources(), []
>>> for start in ("add(i, two)", "add(two, i)", "subtract(i, two)"):
...     (read,) = indexing.to_parameters(hlo.parse(text % start).entry.root).maps[0]
...     named.append(table.name_source(read.runtime[0]).source_name)
>>> named[0] == named[1], named[0] == named[2]
(True, False)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape, leaves
from indexing.dataflow.constants import element_at
from indexing.dataflow.copies import source_of
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.runtime import copied_elements
from indexing.equivalence.values.engine import compare_values
from indexing.equivalence.values.formulas.numbering import (
    attributes_of,
    is_commutative,
    literal_key,
)
from indexing.maps.arrays import ArrayName, ArrayRef
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.element import ElementwiseRule, element_of
from indexing.ops.integer_rules import wrap_integer
from indexing.programs.arrays import is_unique
from simplifier.linear import Expr

MAX_DEPTH: Final = 60
"""Limit on nested elementwise formulas; below it, an array is named as a whole."""

MAX_COMPARED: Final = 16
"""Limit on the pairs of sources whose formulas are compared."""

MAX_READS: Final = 32
"""Limit on the array elements in a formula."""

_SUMS: Final = frozenset(["add", "subtract", "negate"])

Index = tuple[Expr, ...]


class Element(NamedTuple):
    """The name of the formula of one element, and the indices at which it reads arrays."""

    name: int
    at: Index


class _LinearForm(NamedTuple):
    """A sum in one type: multiples of elements, and a constant."""

    kind: str
    parts: list[tuple[Element, int]]
    constant: int


class Sources:
    """Names of formulas, for all programs that are compared."""

    def __init__(self) -> None:
        self._names: dict[Hashable, int] = {}
        self._arrays: dict[ArrayRef, int] = {}
        self._computations: dict[Computation, int] = {}
        self._integers: dict[int, int] = {}
        self._sums: dict[Element, _LinearForm] = {}
        self._shared: dict[ArrayRef, int] = {}
        self._tried: set[tuple[ArrayRef, ArrayRef]] = set()

    def name_source(self, rt: RuntimeVariable) -> RuntimeVariable:
        """Return the runtime variable with the name of its formula as its source."""
        if not isinstance(rt.array, ArrayRef):
            return rt
        if rt.array in self._shared:
            return replace(rt, array=ArrayName(f"shared {self._shared[rt.array]}"))
        element = self.element(rt.array, tuple(rt.element))
        array = ArrayName(f"value {element.name}", (), (), len(rt.iterations))
        return replace(rt, array=array, index=(*rt.iterations, *element.at))

    def learn(self, before: Iterable[IndexingMap], after: Iterable[IndexingMap]) -> bool:
        """Compare the formulas of sources with different names; return True if some are equal.

        Args:
            before, after: maps of both programs, with their own sources.
        """
        learned = False
        for one, other in product(_sources_of(before), _sources_of(after)):
            if (one, other) in self._tried or len(self._tried) >= MAX_COMPARED:
                continue
            self._tried.add((one, other))
            if self._shared.get(one) in (None, self._shared.get(other)) and _equal(one, other):
                self._shared[other] = self._shared.setdefault(one, len(self._shared))
                learned = True
        return learned

    # ------------------------------------------------------------ elements

    def element(self, array: ArrayRef, index: Index, depth: int = 0) -> Element:
        """Return the name of the formula of an element of an array."""
        *_, (array, moved) = [(array, index), *copied_elements(array, index)]
        index = tuple(moved)
        constant = element_at(array, index)
        if constant is not None:
            return self._integer(constant[0].results[0].constant)
        instruction = array.instruction
        rule = element_of(instruction) if instruction.op is not None else None
        if isinstance(rule, ElementwiseRule) and rule.function and depth < MAX_DEPTH:
            formula = self._elementwise(array, index, depth)
            if len(formula.at) <= MAX_READS:
                return formula
        return Element(self._number_of("element", self.array(array)), index)

    def _elementwise(self, array: ArrayRef, index: Index, depth: int) -> Element:
        instruction = array.instruction
        operands = [
            self.element(
                ArrayRef(operand, (), array.calls),
                index if operand.shape.dims else (),  # type: ignore[union-attr]
                depth + 1,
            )
            for operand in instruction.operands
        ]
        shape = instruction.shape
        assert isinstance(shape, Shape)
        kind = shape.element_type
        if instruction.opcode in _SUMS and ELEMENT_TYPES[kind].kind in ("integral", "unsigned"):
            return self._sum(instruction.opcode, kind, operands)
        if is_commutative(instruction):
            operands.sort(key=lambda each: (each.name, str(each.at)))
        types = tuple([str(o.shape.element_type) for o in instruction.operands])  # type: ignore[union-attr]
        name = self._number_of(
            instruction.opcode,
            kind,
            types,
            attributes_of(instruction),
            tuple([(each.name, len(each.at)) for each in operands]),
        )
        return Element(name, tuple([i for each in operands for i in each.at]))

    def _sum(self, opcode: str, kind: str, operands: Sequence[Element]) -> Element:
        """Return a sum modulo ``2^bits``: multiples of elements, and a constant."""
        bits = ELEMENT_TYPES[kind].bits
        factors: dict[Element, int] = {}
        constant = 0
        for position, operand in enumerate(operands):
            sign = -1 if opcode == "negate" or (opcode == "subtract" and position) else 1
            parts, offset = self._parts(operand, kind)
            constant += sign * offset
            for part, factor in parts:
                factors[part] = factors.get(part, 0) + sign * factor
        kept = sorted(
            [(part, factor % (1 << bits)) for part, factor in factors.items() if factor],
            key=lambda each: (each[0].name, each[1], str(each[0].at)),
        )
        if not kept:
            return self._integer(wrap_integer(constant, kind))
        return self._named_sum(_LinearForm(kind, kept, constant % (1 << bits)))

    def _named_sum(self, total: _LinearForm) -> Element:
        if total.constant == 0 and [factor for _, factor in total.parts] == [1]:
            return total.parts[0][0]
        key = tuple([(part.name, len(part.at), factor) for part, factor in total.parts])
        index = tuple([i for part, _ in total.parts for i in part.at])
        element = Element(self._number_of("sum", total.kind, key, total.constant), index)
        self._sums[element] = total
        return element

    def _parts(self, element: Element, kind: str) -> tuple[list[tuple[Element, int]], int]:
        inner = self._sums.get(element)
        if inner is not None and inner.kind == kind:
            return inner.parts, inner.constant
        constant = self._integers.get(element.name)
        return ([], constant) if constant is not None else ([(element, 1)], 0)

    def _integer(self, value: int) -> Element:
        name = self._number_of("integer", value)
        self._integers[name] = value
        return Element(name, ())

    # ------------------------------------------------------------ arrays

    def array(self, array: ArrayRef) -> int:
        """Return the name of a whole array."""
        while (source := source_of(array)) is not None:
            array = source
        if array not in self._arrays:
            # operands first: no deep recursion
            for instruction in dependencies_of([array.instruction]):
                for path, _ in leaves(instruction.shape):
                    each = ArrayRef(instruction, path, array.calls)
                    if each not in self._arrays and source_of(each) is None:
                        self._arrays[each] = self._array(each)
        return self._arrays[array]

    def _array(self, array: ArrayRef) -> int:
        instruction, path, calls = array
        shape = array.array_shape
        kind = (shape.element_type, shape.dims, shape.dynamic) if shape else str(array.shape)
        if instruction.opcode == "parameter":
            number = instruction.computation.parameters.index(instruction)
            around = self._around(instruction.computation, calls) if calls else None
            return self._number_of("parameter", number, path, kind, around)
        if instruction.opcode in ("bitcast", "reshape", "copy") and _is_row_major(instruction):
            (operand,) = instruction.operands
            inside = self.array(ArrayRef(operand, (), calls))
            source = operand.shape
            assert isinstance(source, Shape)
            assert shape is not None
            same = (source.dims, source.element_type) == (shape.dims, shape.element_type)
            return inside if same else self._number_of("reshape", kind, inside)
        if is_unique(instruction):
            return self._number_of("effect", id(instruction), path, kind, calls)
        return self._number_of("array", self._value(instruction, calls), path, kind)

    def _around(self, called: Computation, calls: Sequence[Instruction]) -> Hashable:
        """Return the name of the loop or conditional around a computation, and its place there."""
        *outer, call = calls
        return self._value(call, tuple(outer)), call.called_computations.index(called)

    def _value(self, instruction: Instruction, calls: tuple[Instruction, ...]) -> int:
        operands = [
            tuple([self.array(ArrayRef(operand, path, calls)) for path, _ in leaves(operand.shape)])
            for operand in instruction.operands
        ]
        if is_commutative(instruction):
            operands.sort()
        called = [self._computation(each) for each in instruction.called_computations]
        return self._number_of(
            instruction.opcode,
            attributes_of(instruction),
            literal_key(instruction),
            tuple(operands),
            tuple(called),
        )

    def _computation(self, computation: Computation) -> int:
        if computation not in self._computations:
            root = computation.root
            outputs = [self.array(ArrayRef(root, path)) for path, _ in leaves(root.shape)]
            self._computations[computation] = self._number_of("computation", tuple(outputs))
        return self._computations[computation]

    def _number_of(self, *key: Hashable) -> int:
        return self._names.setdefault(key, len(self._names))


def _sources_of(maps: Iterable[IndexingMap]) -> list[ArrayRef]:
    """Return the sources of runtime variables that are in the computation of the maps."""
    arrays = dict.fromkeys([rt.array for m in maps for rt in m.runtime])
    return [array for array in arrays if isinstance(array, ArrayRef) and not array.calls]


def _equal(one: ArrayRef, other: ArrayRef) -> bool:
    """Return True if two arrays are proved equal without a law that is not exact."""
    if one.array_shape is None or other.array_shape is None:
        return False
    shapes = [(s.element_type, s.dims) for s in (one.array_shape, other.array_shape)]
    if shapes[0] != shapes[1]:
        return False
    return all(compare_values([one], [other], exact_arithmetic=True))


def _is_row_major(instruction: Instruction) -> bool:
    """Return True for a reshape of elements in row-major order."""
    shapes = [instruction.shape, *[operand.shape for operand in instruction.operands]]
    if instruction.opcode == "copy":
        return all(isinstance(shape, Shape) for shape in shapes)
    types = {shape.element_type for shape in shapes if isinstance(shape, Shape)}
    return len(types) == 1 and (
        instruction.opcode == "reshape" or all(map(_has_default_layout, shapes))
    )


def _has_default_layout(shape: object) -> bool:
    if not isinstance(shape, Shape):
        return False
    layout = shape.layout
    return layout is None or tuple(layout.minor_to_major) == tuple(range(shape.rank))[::-1]
