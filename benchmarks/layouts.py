"""Layouts that spare copies: how many of the proposals remove the copy when compiled again.

    python -m benchmarks.layouts [--target tpu:v5e:2x2] [--corpus] [--reversed] [NAME...]

compiles the programs of `layout_programs`, or with ``--corpus`` those of `pass_programs` and
`pass_models`, and again with the layouts of arguments and results that their copies propose.  It
prints a row for each program with copies: how many there are, how many propose a layout of an
argument or a result, how many of these are removed, the bytes that the copies move, and the peak of
the device's main memory, before and after.  Then follow the copies that were not removed, and the
reasons why there is no proposal, counted.  With ``--reversed``, all arguments have their dimensions
in the opposite order at first, so that more layouts conflict.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from hlo.formats.files import load
from hlo.shapes.shape import Shape
from indexing.frontends.compilation import CompilationError, compile_for
from indexing.frontends.layout_trials import LayoutTrial, trial_of
from indexing.frontends.lowering import lower
from indexing.frontends.request import CompilationRequest, RequestedLayout
from indexing.frontends.targets import Target
from indexing.memory.buffers.array_copies import ArrayCopy, copies
from indexing.views.tables import align_columns
from simplifier.unknown import Unknown

COLUMNS: Final = (
    *("program", "copies", "proposals", "removed"),
    *("bytes", "after", "HBM peak", "after"),
)


def trial(function: Any, arguments: Any, target: str, reverse: bool) -> LayoutTrial:
    """Compile a program, and again with the layouts that its copies propose."""
    lowering = replace(lower(function, arguments, {}, Target.parse(target).platform), lowered=None)
    request = CompilationRequest("", "", lowering, target, "optimized")
    if reverse:
        shapes = [parameter.shape for parameter in lowering.module().entry.parameters]
        layouts = [
            RequestedLayout(False, number, "{" + ",".join(map(str, range(shape.rank))) + "}")
            for number, shape in enumerate(shapes)
            if isinstance(shape, Shape) and shape.rank > 1
        ]
        request = replace(request, layouts=tuple(layouts))
    return trial_of(load(compile_for(request).path), request)


def between_layouts(of_trial: LayoutTrial) -> list[ArrayCopy]:
    """Return the copies that change the layout, before."""
    return [copy for copy in copies(of_trial.before) if copy.kind in ("layout", "movement")]


def programs(corpus: bool) -> dict[str, tuple[Any, Any]]:
    """Return the functions and the types of their arguments, by name."""
    if not corpus:
        from benchmarks.layout_programs import PROGRAMS

        return PROGRAMS
    from benchmarks import pass_models  # noqa: F401 - registers its programs
    from benchmarks.pass_programs import PROGRAMS as OTHERS

    return OTHERS


def rows(trials: dict[str, LayoutTrial]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of the table, with a sum."""
    totals = [0] * 5
    for name, each in trials.items():
        own = between_layouts(each)
        numbers = [
            *(len(own), len(each.tried), sum(tried.removed for tried in each.tried)),
            *(each.moved_before, each.moved_after),
        ]
        totals = [a + b for a, b in zip(totals, numbers, strict=True)]
        peaks = [
            side[0].stored_bytes if 0 in side else 0
            for side in (each.peaks_before, each.peaks_after)
        ]
        if own:
            yield (name, *(f"{number:,}" for number in [*numbers, *peaks]))
    yield ("sum", *(f"{number:,}" for number in totals), "", "")


def main() -> None:
    """Print the table for a target."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", default="tpu:v5e:2x2")
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("--reversed", action="store_true")
    options = parser.parse_args()
    trials: dict[str, LayoutTrial] = {}
    for name, (function, arguments) in programs(options.corpus).items():
        if not options.names or name in options.names:
            try:
                trials[name] = trial(function, arguments, options.target, options.reversed)
            except CompilationError as error:
                print(f"{name}: {str(error).splitlines()[0][:150]}")
    for line in align_columns([COLUMNS, *rows(trials)], right=range(1, 8)):
        print(line)
    for name, each in trials.items():
        for tried in each.tried:
            if not tried.removed:
                print(f"not removed: {name}: {tried.copy.instruction.name}: {tried.copy.proposal}")
    reasons = Counter(
        re.sub(r"`[^`]*`|\d+", "…", copy.proposal.reason)
        for each in trials.values()
        for copy in between_layouts(each)
        if isinstance(copy.proposal, Unknown)
    )
    for reason, count in reasons.most_common():
        print(f"{count:4}  no proposal: {reason}")


if __name__ == "__main__":
    main()
