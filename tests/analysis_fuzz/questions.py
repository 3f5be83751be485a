"""Questions about mutants, and checks of their answers.

Every question about a parsed module has an answer, `Unknown`, or an `HloError`. If `hlo.verify`
accepts the module and it can be executed, execution confirms the answers: loop nests return what
the kernels return, and an output element changes only if the maps read the changed input element.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

import hlo
from hlo.shapes.shape import UNBOUNDED, Shape, leaves
from indexing.codegen import loop_nest
from indexing.codegen.differences import first_difference
from indexing.codegen.random_operands import random_values
from indexing.codegen.running import nests_of
from indexing.codegen.validation import is_checked, validate_instruction
from indexing.dataflow import (
    all_to_parameters,
    device_input_to_output,
    device_maps,
    device_maps_to_parameters,
    epilogue,
    grouped,
    grouped_through,
    input_to_output,
    output_to_input,
    to_parameters,
)
from indexing.execution import run
from indexing.execution.values import check_representable, parameter_leaves
from indexing.maps.answers import Answer, Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.multiplicity import multiplicity
from indexing.memory import read_counts
from indexing.tiling import collapse, gather_of
from indexing.views.formats import lines
from indexing.views.map_answers import answer
from indexing.views.map_query import Query
from indexing.views.map_tables import plain
from indexing.views.terminal import Terminal

MAX_ELEMENTS: Final = 3000
"""Limit on the elements of all arrays of a module that is executed."""

MAX_ITERATIONS: Final = 20
"""Limit on the iterations of a loop."""

MAX_LISTED: Final = 2000
"""Limit on the points of a map that are enumerated."""

Question: TypeAlias = "Callable[[], object]"


class WrongAnswerError(AssertionError):
    """An answer that execution contradicts."""


def ask(text: str, seed: int, count: int | None = None) -> dict[str, str]:
    """Ask questions about the module in `text`; return ``answer`` or an error code by question.

    Args:
        text: the module.
        seed: chooses the questions, and the inputs of executions.
        count: number of questions; None asks all of them.
    Raises:
        WrongAnswerError: execution contradicts an answer.
        Exception: every exception other than `HloError` is a bug.
    """
    try:
        module = hlo.parse(text, "mutant.hlo")
    except hlo.HloError as error:
        return {"parse": f"error[{error.code}]"}
    outcomes: dict[str, str] = {"parse": "answer"}
    errors = hlo.verify(module)
    outcomes["verify"] = f"error[{errors[0].code}]" if errors else "answer"
    questions = list(questions_about(module, seed, is_valid=not errors))
    if count is not None:
        chance = random.Random(seed)
        questions = chance.sample(questions, min(count, len(questions)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, question in questions:
            try:
                result = question()
                outcomes[name] = "unknown" if isinstance(result, Unknown) else "answer"
            except hlo.HloError as error:
                outcomes[name] = f"error[{error.code}]"
    return outcomes


def questions_about(
    module: hlo.Module, seed: int, *, is_valid: bool
) -> Iterator[tuple[str, Question]]:
    """Yield all questions about a module, with their names."""
    exact = bool(seed % 3 == 0)
    for instruction in module.instructions:
        yield from _about(instruction, exact)
    for computation in module.computations.values():
        yield "all_to_parameters", partial(_sweep, computation, exact)
        yield "nest of a computation", partial(_nest, computation)
    yield "run", lambda: _run(module, seed)
    yield "nests_of", lambda: _tile(module, seed)
    if is_valid:
        yield "validated", lambda: _validate(module, seed)
        yield "perturbed", lambda: _perturb(module, seed)


def _about(i: hlo.Instruction, exact: bool) -> Iterator[tuple[str, Question]]:
    try:
        outputs = range(len(leaves(i.shape)))
    except hlo.HloError:
        outputs = range(1)
    yield "output_to_input", lambda: [output_to_input(i, n, exact=exact) for n in outputs]
    yield (
        "input_to_output",
        lambda: [input_to_output(i, k, exact=exact) for k in range(len(i.operands))],
    )
    yield "to_parameters", lambda: [to_parameters(i, n, exact=exact) for n in outputs]
    yield "grouped", lambda: [grouped(i, n) for n in outputs]
    yield "grouped_through", lambda: [grouped_through(i, [i, *i.operands], n) for n in outputs]
    yield "epilogue", lambda: [epilogue(i, output_id=n) for n in outputs]
    yield "device_maps", lambda: [device_maps(i, n) for n in outputs]
    yield (
        "device_input_to_output",
        lambda: [device_input_to_output(i, k) for k in range(len(i.operands))],
    )
    yield "device_maps_to_parameters", lambda: [device_maps_to_parameters(i, n) for n in outputs]
    yield (
        "read_counts",
        lambda: [
            (counts.total, counts.distinct, counts.maximum)
            for n in outputs
            for counts in read_counts(i, n)
            if not isinstance(counts, Unknown)
        ],
    )
    yield (
        "multiplicity",
        lambda: [
            multiplicity([m for m, at in zip(maps, paths, strict=True) if at == paths[0]])
            for n in outputs
            for maps, paths in _maps_and_paths(output_to_input(i, n))
            if maps
        ],
    )
    yield "collapse", lambda: collapse(i)
    if i.opcode == "gather":
        yield "gather_of", lambda: gather_of(i)
    yield "nest of an instruction", lambda: [_nest(i, n) for n in outputs]
    query = Query(("output-to-input", "input-to-output"), exact=exact)
    yield (
        "report",
        lambda: [
            line
            for notation in ("text", "json")
            for table in answer(i, query, "mutant.hlo")
            for line in lines([table], notation)
        ],
    )
    terminal = Terminal(60, plain)
    yield (
        "terminal",
        lambda: [
            line
            for direction in query.directions
            for tables in [list(answer(i, replace(query, directions=(direction,)), "mutant.hlo"))]
            for line in (terminal.answer_lines(tables) if tables else ())
        ],
    )


def _maps_and_paths(result: Answer) -> Iterator[tuple[Sequence[IndexingMap], Sequence[object]]]:
    yield from zip(result.maps, result.paths, strict=True)


def _sweep(computation: hlo.Computation, exact: bool) -> object:
    return list(all_to_parameters(computation, exact=exact))


def _nest(target: hlo.Instruction | hlo.Computation, output_id: int = 0) -> object:
    nest = loop_nest(target, output_id)
    if not isinstance(nest, Unknown):
        assert nest.source
        assert nest.vectorized().source
    return nest


# ---------------------------------------------------------------- execution


def _devices(module: hlo.Module) -> int:
    return int(module.header("num_partitions", 1)) * int(module.header("replica_count", 1))


def _is_small(module: hlo.Module) -> bool:
    shapes = [leaf for i in module.instructions for _, leaf in leaves(i.shape)]
    dims = [leaf.dims for leaf in shapes if isinstance(leaf, Shape)]
    return all(UNBOUNDED not in each for each in dims) and sum(map(prod, dims)) <= MAX_ELEMENTS


def _inputs(module: hlo.Module, seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    for parameter in module.entry.parameters:
        check_representable(parameter)
    return [random_values(leaf.shape, random) for leaf in parameter_leaves(module.entry)]


def _run(module: hlo.Module, seed: int) -> object:
    if not _is_small(module) or _devices(module) > 8:
        return None
    inputs = _inputs(module, seed)
    return run(module, inputs, max_iterations=MAX_ITERATIONS, replicas=_devices(module))


def _tile(module: hlo.Module, seed: int) -> object:
    """Compare loop nests, tiles and kernels, on other inputs again if they differ.

    A division by a small sum amplifies the rounding of few inputs; wrong maps are wrong for most.
    """
    if not _is_small(module):
        return None
    try:
        return _tile_on(module, seed)
    except WrongAnswerError:
        return _tile_on(module, seed + 1)


def _tile_on(module: hlo.Module, seed: int) -> object:
    inputs = _inputs(module, seed)
    rank = next((s.rank for _, s in leaves(module.entry.root.shape) if isinstance(s, Shape)), 0)
    by_loops = nests_of(module)
    by_tiles = nests_of(module, (2,) * rank)
    if by_loops.by_result is None:
        return Unknown(by_loops.remarks[0], module.entry.root)
    expected = by_loops.run(inputs)
    for number, (loops, tiles) in enumerate(zip(expected, by_tiles.run(inputs), strict=True)):
        _compare("tiles", number, tiles, loops)
    if not hlo.verify(module):
        results = run(module, inputs, max_iterations=MAX_ITERATIONS)
        for number, (loops, kernels) in enumerate(zip(expected, results, strict=True)):
            _compare("loops", number, loops, kernels)
    return expected


def _compare(name: str, number: int, actual: Any, expected: Any) -> None:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        kinds = [f"{each.dtype}{list(each.shape)}" for each in (actual, expected)]
        raise WrongAnswerError(f"output {number}: {kinds[0]} by {name}, but {kinds[1]}")
    at = first_difference(actual, expected, 1e-3)
    if at is not None:
        message = f"output {number} at {list(at)}: {actual[at]} by {name}, but {expected[at]}"
        raise WrongAnswerError(message)


def _validate(module: hlo.Module, seed: int) -> object:
    for instruction in filter(is_checked, module.instructions):
        for finding in validate_instruction(instruction, seed, MAX_ELEMENTS).findings:
            if finding.status == "wrong":
                message = f"`{instruction.name}`: {finding.check}: {'; '.join(finding.details)}"
                raise WrongAnswerError(message)
    return None


def _perturb(module: hlo.Module, seed: int) -> object:
    """Perturb inputs: outputs may change only where the maps to parameters read the input."""
    shapes = [leaf for i in module.instructions for _, leaf in leaves(i.shape)]
    is_dynamic = any(isinstance(leaf, Shape) and leaf.is_dynamic for leaf in shapes)
    if not _is_small(module) or _devices(module) > 1 or is_dynamic:
        return None  # no map reads the size of a dynamic dimension
    entry, random = module.entry, np.random.default_rng(seed)
    inputs = _inputs(module, seed)
    before = run(module, inputs, max_iterations=MAX_ITERATIONS)
    parameters = {parameter: k for k, parameter in enumerate(entry.parameters)}
    arrays = [n for n, (_, s) in enumerate(leaves(entry.root.shape)) if isinstance(s, Shape)]
    answers = [to_parameters(entry.root, n) for n in arrays]
    for leaf, array in zip(parameter_leaves(entry), inputs, strict=True):
        for _ in range(min(3, array.size)):
            j = tuple([int(random.integers(n)) for n in array.shape])
            old = array[j].copy()
            array[j] = random_values(Shape(leaf.shape.element_type, ()), random)
            after = run(module, inputs, max_iterations=MAX_ITERATIONS)
            array[j] = old
            for result, old_array, new_array in zip(answers, before, after, strict=True):
                if old_array.shape == new_array.shape:
                    same = (old_array == new_array) | (
                        (old_array != old_array) & (new_array != new_array)
                    )
                    changed = [tuple(map(int, i)) for i in np.argwhere(~np.asarray(same))[:8]]
                    _check_read(result, parameters[leaf.parameter], leaf.path, j, changed)
    return answers


def _check_read(
    result: Answer, operand: int, path: Sequence[int], j: Sequence[int], changed: Sequence[Any]
) -> None:
    """Raise WrongAnswerError if an output element changed but no map reads the input element."""
    if result.unknown[operand] is not None:
        return
    pairs = zip(result.maps[operand], result.paths[operand], strict=True)
    maps = [m for m, at in pairs if tuple(at) == tuple(path)]
    for i in changed:
        if not any(_may_read(m, i, tuple(j)) for m in maps):
            name = f"{result.operands[operand].name}{list(path) or ''}"
            message = (
                f"output {result.domain_id} at {list(i)} depends on {name} at {list(j)}, "
                f"but the maps are {' and '.join(map(str, maps)) or 'none'}"
            )
            raise WrongAnswerError(message)


def _may_read(each: IndexingMap, i: tuple[int, ...], j: tuple[int, ...]) -> bool:
    """Return True if a map may relate element `i` to `j` for some value of its variables."""
    variables = [*each.ranges, *(rt.variable for rt in each.runtime)]
    if prod(v.upper - v.lower + 1 for v in variables) > MAX_LISTED:
        return True
    points = product(*[range(v.lower, v.upper + 1) for v in variables])
    count = len(each.ranges)
    return any(
        each.evaluate(i, point[:count], point[count:]) == j for point in islice(points, MAX_LISTED)
    )
