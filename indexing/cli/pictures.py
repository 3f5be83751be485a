"""Pictures of the commands: ``--format svg`` prints the figures of all answers as one SVG file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from indexing.cli.progress import Bar
from indexing.cli.reporter import Reporter

if TYPE_CHECKING:
    from hlo.modules.module import Instruction, Module
    from hlo.shapes.shape import AnyShape
    from indexing.cli.printing import Request
    from indexing.drawing.figures import Figure
    from indexing.maps.answers import Answer, Direction
    from indexing.memory.buffers.profile import MemoryProfile
    from indexing.memory.movement.roofline import Peak
    from indexing.views.map_query import Query
    from simplifier.unknown import Unknown

MAX_FIGURES = 16
"""Limit on the figures of one file."""


def print_figures(reporter: Reporter, figures: Sequence[Figure]) -> None:
    """Print figures below each other as one SVG file; nothing without a figure."""
    from indexing.drawing.svg_text import svg_text

    if len(figures) > MAX_FIGURES:
        reporter.note(
            f"note: {MAX_FIGURES} of {len(figures)} pictures are drawn: -i selects instructions"
        )
    if figures:
        reporter.print_document(svg_text(figures[:MAX_FIGURES]))


def draw_traffic(reporter: Reporter, files: Sequence[str], peak: Peak | None, limit: int) -> None:
    """Print the bytes that the instructions of each module move, as pictures."""
    from indexing.cli.printing import reported_valid
    from indexing.drawing.traffic_pictures import traffic_figure
    from indexing.memory.movement.analysis import traffic

    import_module("indexing.ops")  # registers the ops
    figures: list[Figure] = []
    with reporter.bar as bar:
        for module in reporter.modules(files):
            with reporter.reporting(module.filename):
                if reported_valid(module, reporter):
                    counted = traffic(module, partial(bar.update, module.filename))
                    figures.append(traffic_figure(counted, peak, None, limit))
    print_figures(reporter, figures)


def draw_memory(
    reporter: Reporter,
    files: Sequence[str],
    limit: int | None,
    at_peak: bool,
    profile_of: Callable[[Module], MemoryProfile | Unknown],
) -> None:
    """Print the lives of the buffers of each module, or of those at the peak, as pictures."""
    from indexing.cli.printing import reported_valid
    from indexing.drawing.memory_pictures import memory_figure
    from simplifier.unknown import Unknown

    import_module("indexing.ops")  # registers the ops
    figures: list[Figure] = []
    for module in reporter.modules(files):
        with reporter.reporting(module.filename):
            if reported_valid(module, reporter):
                profile = profile_of(module)
                if isinstance(profile, Unknown):
                    reporter.note(f"{module.filename}: unknown: {profile}")
                else:
                    figures.append(memory_figure(profile, limit, at_peak))
    print_figures(reporter, figures)


def draw_maps(reporter: Reporter, files: Sequence[str], request: Request) -> None:
    """Print what the requested point of each selected instruction needs, as pictures."""
    with reporter.bar as bar:
        figures = list(_drawn_maps(reporter, files, request, bar))
    print_figures(reporter, figures)


def _drawn_maps(
    reporter: Reporter, files: Sequence[str], request: Request, bar: Bar
) -> Iterator[Figure]:
    from indexing.cli.printing import faults
    from indexing.cli.selected import note_given, note_matches, place_of, report_lack

    import_module("indexing.ops")  # registers the ops
    done = 0
    selection = request.selection
    for module in reporter.modules(files, lazy=selection.is_partial):
        computations = list(module.computations.values())
        if not selection.is_partial:
            with reporter.reporting(module.filename):
                for error in faults(computations):
                    reporter.hlo_error(error)
        for instruction in selection.instructions(module, computations):
            bar.update(f"{module.filename}: {instruction.computation.name}", done)
            done += 1
            place = place_of(instruction)
            reporter.has_answer = True
            with reporter.reporting(place):
                if not report_lack(reporter, instruction, request.query):
                    yield from _figures_at(reporter, instruction, request, place)
        note_matches(reporter, module, selection.conditions, request.is_one_file)
        note_given(reporter, module, request.selection, request.conditions)


def _figures_at(
    reporter: Reporter, instruction: Instruction, request: Request, place: str
) -> Iterator[Figure]:
    """Yield a figure for each answer about an instruction; report points outside of an array."""
    from indexing.drawing.region_pictures import AnswerPicture, start_of
    from indexing.views.map_answers import given_values, is_decided_by, with_given_values
    from indexing.views.regions import PointError, check_point

    assert request.point is not None
    query = request.query
    values = given_values(instruction.computation, query.values)
    for direction in query.directions:
        for answer in _answers(instruction, query, direction):
            name, shape = start_of(answer)
            try:
                check_point(request.point, shape, f"`{name}`")
            except PointError as error:
                reporter.error(f"error[at]: {place}: {error}")
                continue
            operands = frozenset(_drawn_numbers(answer, query))
            reporter.counts["--set"] += is_decided_by(query.values, answer)
            reporter.counts["--assume"] += any(m.assumptions for own in answer.maps for m in own)
            valued = with_given_values(answer, query.values)
            yield AnswerPicture(valued, request.point, values, operands).figure()


def _drawn_numbers(answer: Answer, query: Query) -> Iterator[int]:
    """Yield the numbers of the requested operands, or outputs."""
    parameters = answer.instruction.computation.parameters
    number = {parameter: k for k, parameter in enumerate(parameters)} if query.to_parameters else {}
    for k, operand in enumerate(answer.operands):
        if answer.direction == "input-to-output":
            is_drawn = query.output_id in (None, k)
        else:
            is_drawn = query.reads(number.get(operand, k), operand)
        if is_drawn:
            yield k


def _answers(instruction: Instruction, query: Query, direction: Direction) -> Iterator[Answer]:
    """Yield the requested answers: one for each output, or for each operand."""
    from hlo.shapes.shape import leaves
    from indexing.dataflow.queries import input_to_output, output_to_input, to_parameters

    if direction == "input-to-output":
        for k, operand in enumerate(instruction.operands):
            if query.reads(k, operand) and _is_array(operand.shape):
                yield input_to_output(instruction, k, **query.options)
        return
    outputs = range(len(leaves(instruction.shape)))
    for number in outputs if query.output_id is None else [query.output_id]:
        if query.to_parameters:
            yield to_parameters(instruction, number, **query.options)
        else:
            yield output_to_input(instruction, number, **query.options)


def _is_array(shape: AnyShape) -> bool:
    from hlo.shapes.shape import Shape

    return isinstance(shape, Shape)
