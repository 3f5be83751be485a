"""Ops with maps between a leaf of the result and each leaf of the operands.

Ops that call computations (call, fusion, while, conditional, async, scan) compose their maps from
summaries of the called computations.  Ops that exchange values with other devices or with the host
have the same interface and no kernel.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.maps.answers import Path
from indexing.maps.arrays import ArrayRef
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.map_set import MapSet
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.access_edge import AccessEdge
from indexing.ops.base import every_element
from indexing.ops.element import ElementOp, ElementwiseRule, element_of
from indexing.ops.needed_operands import ParameterGrades


class InputLeaf(NamedTuple):
    """A leaf of a parameter: the number of the parameter, and the path of the leaf."""

    number: int
    path: Path


MapsByLeaf: TypeAlias = Mapping[InputLeaf, MapSet]
"""A summary of a computation: the maps between a leaf of its root and leaves of its parameters."""


@dataclass(frozen=True, slots=True)
class Summaries:
    """Summaries of computations: maps between the leaves of a root and of the parameters.

    Attributes:
        of: maps between a leaf of a computation's root and every leaf of a parameter.
        backward: True for output-to-input maps, False for input-to-output maps.
        forwarded_from: the array that tuples and calls forward unchanged to a given array.
        scalar_value: the value of an integer scalar if the program determines it, else None.
        loop: maps between a leaf of the result of a ``while`` and every leaf of its operand.
        restricts_branches: True if the maps of a branch are restricted afterwards to where it is
            executed; else they are `may`.
    """

    of: Callable[[Computation, Path], MapsByLeaf]
    backward: bool
    forwarded_from: Callable[[ArrayRef], ArrayRef]
    scalar_value: Callable[[ArrayRef], int | None]
    loop: Callable[[Instruction, Path], Mapping[Path, MapSet]]
    restricts_branches: bool = False

    def parameters_read(self, computation: Computation, output_id: int) -> ParameterGrades:
        """Return the parameters that a leaf of a computation's root depends on.

        Args:
            output_id: the number of the leaf.
        """
        path, _ = leaves(computation.root.shape)[output_id]
        grades: dict[int, Grade] = {}
        for (number, _), map_set in self.of(computation, path).items():
            is_certain = any(m.grade == "exact" for m in map_set.maps)
            if is_certain or map_set.maps or map_set.unknown is not None:
                grades[number] = "exact" if is_certain else grades.get(number, "may")
        return grades

    def everything(self, result: AnyShape, operand: AnyShape) -> tuple[IndexingMap, ...]:
        """Return the map that relates every element of both arrays, graded "may"."""
        ends = (result, operand) if self.backward else (operand, result)
        match ends:
            case Shape() as start, Shape() as end:
                return (every_element(start, end).with_grade("may"),)
        return ()


class StructuredOp(ElementOp):
    """An op on values that may be tuples, with maps that depend on more than shapes."""

    __slots__ = ()
    takes_arrays: ClassVar[bool] = False

    @abstractmethod
    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        """Yield the edges between the leaf at `output` of the result and leaves of the operands.

        The maps have the direction of `summaries`.
        """

    def argument(self, instruction: Instruction, parameter: Instruction) -> Instruction | None:
        """Return the operand that a parameter of a called computation is, or None.

        A carried value of a loop is no operand after the first iteration.
        """
        return None


MAX_APPLIED_DEPTH: Final = 50
"""Maximum number of computations that apply each other through kernels or generated functions."""


def applied_depth(computation: Computation) -> int:
    """Return how deep computations apply each other, other than by structured ops.

    Kernels and generated functions call such computations as Python functions, whose depth is
    limited.

    >>> import hlo
    >>> module = hlo.parse('''
    ... inner { a = f32[] parameter(0) ROOT b = f32[] negate(a) }
    ... outer { c = f32[] parameter(0) ROOT d = f32[] map(c), dimensions={}, to_apply=inner }
    ... ENTRY e { p = f32[3] parameter(0) ROOT m = f32[3] map(p), dimensions={0}, to_apply=outer }
    ... ''')
    >>> applied_depth(module.computations["outer"]), applied_depth(module.entry)
    (1, 2)
    """

    def depth(outer: Computation) -> int:
        return max(
            [
                applied_depth(called) + (not isinstance(i.op, StructuredOp))
                for i in outer.instructions
                for called in i.called_computations
            ],
            default=0,
        )

    return bottom_up(computation, applied_depth, depth)


class InlineOp(StructuredOp):
    """An op whose result is that of the computation it calls, applied to its operands."""

    __slots__ = ()
    runs_called: ClassVar[bool] = True

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        """Raise TypeError: `infer` of `instruction_checks` takes the shape from the called root."""
        raise TypeError(f"the shape of {self.opcode} is that of the called computation's root")

    def argument(self, instruction: Instruction, parameter: Instruction) -> Instruction | None:
        return instruction.operands[parameter_numbers(parameter.computation)[parameter]]

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        called = instruction.called_computations[0]
        operands = range(len(instruction.operands))
        return call_edges(instruction, operands, called, summaries.of(called, output), output)


def parameter_numbers(computation: Computation) -> Mapping[Instruction, int]:
    """Return the number of each parameter of a computation."""
    return computation.memoised(
        parameter_numbers,
        lambda: {parameter: number for number, parameter in enumerate(computation.parameters)},
    )


def call_edges(
    instruction: Instruction,
    operands: range,
    called: Computation,
    summary: MapsByLeaf,
    output: Path,
) -> Iterator[AccessEdge]:
    """Yield the edges of an instruction that calls `called` with the operands numbered `operands`.

    `summary` has the maps of the leaf at `output` of the called computation.
    """
    for (number, path), maps in summary.items():
        edge = AccessEdge(
            operands[number],
            path,
            output,
            tuple(maps.maps),
            maps.unknown,
            maps.reasons,
            maps.control,
        )
        if any(m.runtime for m in edge.maps):
            edge = edge.change_maps(lambda m: [in_caller(instruction, operands, called, m)])
        yield edge


def in_caller(
    instruction: Instruction, operands: range, called: Computation, index_map: IndexingMap
) -> IndexingMap:
    """Translate a map of a called computation to the caller: operands replace parameters.

    Only runtime variables change.  `operands` are the numbers of the operands that are passed.
    """
    if not index_map.runtime:
        return index_map

    def translate(rt: RuntimeVariable) -> RuntimeVariable:
        array = rt.array
        if not isinstance(array, ArrayRef):
            return rt
        number = None if array.calls else parameter_numbers(called).get(array.instruction)
        if number is None:  # a value that is computed by `instruction`
            return replace(rt, array=array._replace(calls=(instruction, *array.calls)))
        return replace(rt, array=ArrayRef(instruction.operands[operands[number]], array.path))

    runtime = tuple([translate(rt) for rt in index_map.runtime if not rt.is_fixed])
    return replace(index_map, runtime=runtime)


def single_ufunc(computation: Computation) -> Any:
    """Return the NumPy ufunc that a computation of two scalars applies, or None.

    >>> import hlo
    >>> text = "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(b, a) }"
    >>> single_ufunc(hlo.parse("HloModule m " + text.replace("f {", "ENTRY f {")).entry)
    <ufunc 'add'>
    """
    root = computation.root
    while isinstance(root.op, InlineOp) and root.operands == root.computation.parameters:
        root = root.called_computations[0].root
    parameters = root.computation.parameters
    if len(parameters) != 2 or set(root.operands) != set(parameters):
        return None
    match element_of(root):
        case ElementwiseRule(function=function) if function:
            return function.ufunc
    return None
