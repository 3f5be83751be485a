"""Checks of the maps of programs with loops, against executions and against unrolled loops.

Two laws, for each output and parameter of a program:

* an element that changes an element of the output is in the maps;
* what exact maps relate in the unrolled program is in the maps of the loop, and the reverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

import indexing
from hlo import Instruction, Module
from hlo.shapes.shape import leaves
from indexing import IndexingMap
from indexing.maps.answers import Answer
from indexing.maps.arrays import Path, array_leaves
from tests.dataflow.influence import Array, Mask, Pokes, array_shapes, mask_of, read
from tests.dataflow.programs import Run

EXACT = ("exact",)


def answers(module: Module, exact: bool = False, masks: bool = True) -> list[Answer]:
    """Return the maps from each output of a program to its parameters."""
    root = module.entry.root
    return [
        indexing.to_parameters(root, output, exact=exact, masks=masks)
        for output in range(len(leaves(root.shape)))
    ]


def unroll(module: Module) -> Module:
    """Return the module with all counted loops unrolled, nested ones too."""
    while True:
        loops = module.find(opcode="while")
        after = next(
            (each for each in map(indexing.unroll, loops) if isinstance(each, Module)), None
        )
        if after is None:
            return module
        module = after


def run_of(module: Module, arguments: Sequence[Array]) -> Run:
    """Return the values of all instructions."""
    with np.errstate(all="ignore"):
        return Run(module.entry, *arguments)


def miss(module: Module, pokes: Pokes, exact: bool = False) -> Iterator[str]:
    """Yield each output and parameter whose maps lack a dependency that an execution has."""
    if pokes.results is None:
        return
    at = run_of(module, pokes.arguments)
    for answer in answers(module, exact):
        for number, parameter in enumerate(module.entry.parameters):
            seen = pokes.seen[answer.domain_id, number]
            if not np.all(seen <= read(answer, number, at=at)):
                lacking = _pairs(module, seen & ~read(answer, number, at=at), answer, number)
                yield f"output {answer.domain_id} depends on {parameter.name}: {lacking}"


def disagreements(
    loop: Module,
    without: Module,
    arguments: Sequence[Array] | None = None,
    constant: str = "",
) -> Iterator[str]:
    """Yield each difference between the maps of a program and of the same program unrolled.

    Args:
        loop, without: the programs; their parameters are the same.
        arguments: values of the parameters; by default, exact maps with runtime variables are not
            compared.
        constant: the name of the parameter that is a constant in the second program.
    """
    runs = [None if arguments is None else run_of(each, arguments) for each in (loop, without)]
    for own, other in zip(
        answers(loop, masks=False), answers(without, exact=True, masks=False), strict=True
    ):
        for number, parameter in enumerate(loop.entry.parameters):
            if parameter.name == constant:
                continue
            name = f"output {own.domain_id} and {parameter.name}"
            lacking = read(other, number, EXACT, runs[1]) & ~read(own, number, at=runs[0])
            if lacking.any():
                yield f"{name}: the loop's maps lack {_pairs(loop, lacking, own, number)}"
            wrong = read(own, number, EXACT, runs[0]) & ~read(other, number, at=runs[1])
            if wrong.any():
                yield f"{name}: no iteration reads {_pairs(loop, wrong, own, number)}"


def not_inverse(loop: Instruction) -> Iterator[str]:
    """Yield each pair of leaves whose maps from the operand lack pairs of those to the operand.

    Exact maps of one direction must be in the maps of the other.  Maps with runtime variables are
    not compared.
    """
    forth = indexing.input_to_output(loop, 0)
    for output, path, shape in array_leaves(loop.shape):
        back = indexing.output_to_input(loop, output)
        for _, source, operand in array_leaves(loop.shape):
            backward = _maps_at(back, 0, source)
            forward = _maps_at(forth, output, source)
            if any(each.runtime for each in (*backward, *forward)):
                continue
            spaces = shape.dims, operand.dims
            masks = [
                _mask(backward, spaces, EXACT),
                _mask(forward, spaces[::-1]).T,
                _mask(forward, spaces[::-1], EXACT).T,
                _mask(backward, spaces),
            ]
            if (masks[0] & ~masks[1]).any() or (masks[2] & ~masks[3]).any():
                yield f"{loop.name}: leaf {path} from {source}: {backward} and {forward}"


def _maps_at(answer: Answer, number: int, path: Path) -> list[IndexingMap]:
    pairs = zip(answer.maps[number], answer.paths[number], strict=True)
    return [each for each, at in pairs if at == path]


def _mask(
    maps: Sequence[IndexingMap],
    spaces: tuple[tuple[int, ...], tuple[int, ...]],
    grades: Sequence[str] = ("exact", "may"),
) -> Mask:
    mask = np.zeros((prod(spaces[0]), prod(spaces[1])), bool)
    for each in maps:
        if each.grade in grades:
            mask |= mask_of(each, spaces, None, widened=True)
    return mask


def _pairs(module: Module, mask: Mask, answer: Answer, number: int) -> str:
    """Return the first pairs of a mask, and the maps."""
    outputs, parameters = array_shapes(module.entry)
    sizes = outputs[answer.domain_id].dims, parameters[number].dims
    listed = [
        " from ".join(
            str([int(k) for k in np.unravel_index(position, size or (1,))[: len(size)]])
            for position, size in zip(pair, sizes, strict=True)
        )
        for pair in np.argwhere(mask)[:4]
    ]
    maps = "\n    ".join([f"{each.grade}: {each}" for each in answer.maps[number]])
    return f"{'; '.join(listed)} of {mask.sum()}; maps:\n    {maps or 'none'}"
