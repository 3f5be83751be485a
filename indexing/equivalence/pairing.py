"""`Pair`: two programs with corresponding parameters and outputs.

Parameters correspond by number, unless a mapping is given; the leaves of both results correspond in
order, so a result ``(x)`` corresponds to a result ``x``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, Path, array_leaves

Program: TypeAlias = Module | Computation | Instruction

Leaf: TypeAlias = tuple[Instruction, Path]
"""A leaf of a parameter."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the programs.

    Attributes:
        root: the instruction with the outputs.
        outputs: the output number of each array of the result, for the queries on `root`.
        inputs: the leaves of the parameters, in the order of the other program's.
    """

    root: Instruction
    outputs: tuple[int, ...]
    inputs: tuple[Leaf, ...]

    @property
    def computation(self) -> Computation:
        """The computation of the root."""
        return self.root.computation

    @property
    def arrays(self) -> list[ArrayRef]:
        """The output arrays."""
        paths = [path for path, _ in leaves(self.root.shape)]
        return [ArrayRef(self.root, paths[number]) for number in self.outputs]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two programs, before and after, with corresponding outputs and parameter leaves."""

    before: Side
    after: Side


@dataclass(frozen=True, slots=True)
class OtherOutputs(Unknown):
    """The reason why two programs do not correspond: an output has another shape, or is missing.

    Attributes:
        output: the number of the first such output.
    """

    output: int = 0


def pair_of(
    before: Program, after: Program, parameters: Mapping[int, int] | None = None
) -> Pair | Unknown:
    """Return the programs with their correspondence, or the reason why they have none.

    Args:
        parameters: for each parameter number of `before`, the number of `after`.
    """
    roots = root_of(before), root_of(after)
    results = [list(array_leaves(root.shape)) for root in roots]
    fault = _mismatch("output", *[[leaf for *_, leaf in leaves] for leaves in results])
    matched = _matched_parameters(roots[0].computation, roots[1].computation, parameters or {})
    if fault is not None or isinstance(matched, Unknown):
        return fault if fault is not None else matched  # type: ignore[return-value]
    inputs = [_inputs(parameters) for parameters in matched]
    fault = _mismatch("parameter", *[[shape for _, shape in leaves] for leaves in inputs])
    if fault is not None:
        return fault
    before_side, after_side = (
        Side(root, tuple([n for n, *_ in out]), tuple([leaf for leaf, _ in into]))
        for root, out, into in zip(roots, results, inputs, strict=True)
    )
    return Pair(before_side, after_side)


def _matched_parameters(
    before: Computation, after: Computation, parameters: Mapping[int, int]
) -> tuple[list[Instruction], list[Instruction]] | Unknown:
    """Return the corresponding parameters, in the order of the program before."""
    own, other = before.parameters, after.parameters
    numbers = [parameters.get(k, k) for k in range(len(own))]
    if sorted(numbers) != list(range(len(other))):
        counts = f"{len(own)} before, {len(other)} after"
        given = ", ".join(f"{k} to {number}" for k, number in enumerate(numbers))
        return Unknown(
            f"the parameters do not correspond one to one: {counts}"
            + (f"; {given}" if parameters else "")
        )
    return list(own), [other[k] for k in numbers]


def _inputs(parameters: Iterable[Instruction]) -> list[tuple[Leaf, Shape]]:
    """Return the leaves of parameters, with their shapes."""
    return [((p, path), leaf) for p in parameters for _, path, leaf in array_leaves(p.shape)]


def root_of(program: Program) -> Instruction:
    """Return the instruction whose value is the result of a program."""
    if isinstance(program, Module):
        return program.entry.root
    return program.root if isinstance(program, Computation) else program


def _mismatch(word: str, before: list[Shape], after: list[Shape]) -> Unknown | None:
    if len(before) != len(after):
        counts = f"{len(before)} {word} arrays before, {len(after)} after"
        reason = f"the programs do not correspond: {counts}"
        both = min(len(before), len(after))
        return OtherOutputs(reason, output=both) if word == "output" else Unknown(reason)
    for number, (one, other) in enumerate(zip(before, after, strict=True)):
        if _plain(one) != _plain(other):
            reason = f"{word} {number} is {_shape_text(one)} before and {_shape_text(other)} after"
            return OtherOutputs(reason, output=number) if word == "output" else Unknown(reason)
    return None


def _plain(shape: Shape) -> object:
    return shape.element_type, shape.dims, shape.dynamic


def _shape_text(shape: AnyShape) -> str:
    return str(shape.with_layout(None)) if isinstance(shape, Shape) else str(shape)
