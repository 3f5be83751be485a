"""The outputs of a program, as the comparison of formulas reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlo.modules.module import Computation, Module
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import require_sound
from indexing.equivalence.values.formulas.expansions import has_definitions
from indexing.equivalence.values.formulas.numbering import NumberedArray, Numbering
from indexing.equivalence.values.laws.exact import NARROW
from indexing.maps.arrays import ArrayRef, array_leaves


def references(program: Computation | Sequence[ArrayRef]) -> Sequence[ArrayRef]:
    """Return the output arrays of a program."""
    if not isinstance(program, Computation):
        return program
    return [ArrayRef(program.root, path) for _, path, _ in array_leaves(program.root.shape)]


def has_narrow(*programs: Sequence[ArrayRef]) -> bool:
    """Return True if a module has floats that are narrower than f32."""
    modules = {ref.instruction.module for program in programs for ref in program}
    return any(
        leaf.element_type in NARROW
        for module in modules
        for i in module.instructions
        for *_, leaf in array_leaves(i.shape)
    )


def module_of(program: Computation | Sequence[ArrayRef]) -> Module | None:
    """Return the module of a program; None if it has no outputs."""
    if isinstance(program, Computation):
        return program.module
    return program[0].instruction.module if program else None


def may_expand(*programs: Computation | Sequence[ArrayRef]) -> bool:
    """Return True if a program has ops that are defined by others."""
    roots = [
        [program.root] if isinstance(program, Computation) else [r.instruction for r in program]
        for program in programs
    ]
    return any(map(has_definitions, roots))


def numbered_outputs(
    numbering: Numbering,
    program: Computation | Sequence[ArrayRef],
    parameters: Mapping[int, int],
) -> list[NumberedArray]:
    """Return the arrays of a program's outputs; tokens are left out.

    Args:
        parameters: other numbers of parameters.
    """
    program = references(program)
    if not program:
        return []
    roots = [ref.instruction for ref in program]
    require_sound(dependencies_of(roots))
    computation = roots[0].computation
    inputs = numbering.arguments(computation, parameters)
    values = numbering.values(computation, inputs, roots)
    return [values[ref.instruction][ref.path] for ref in program]
