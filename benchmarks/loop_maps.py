"""Precision of the maps of programs with loops, by output and parameter.

    python -m benchmarks.loop_maps [-v] [FILE...]

A pair of an output and a parameter has no map, exact maps, `may` maps that relate a proper subset
of all pairs of elements, or `may` maps that relate everything.  The last column counts the pairs of
the last kind for which an execution needs less: each element of the parameter is changed to several
values, for several arguments, and some element of the output never changes.  With ``-v``, these
pairs are listed.  Without FILE, the programs of `benchmarks.jax_loops` are measured.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

import hlo
import indexing
from hlo import Computation, Module, Shape
from hlo.shapes.shape import AnyShape, leaves
from indexing import IndexingMap
from tests.dataflow.influence import MAX_POINTS, Mask, Pokes, mask_of

FOLDER: Final = Path(__file__).parent.parent / "tests" / "dataflow" / "data" / "loops" / "jax"
KINDS: Final = ("none", "exact", "subset", "everything", "unknown")
MAX_ELEMENTS: Final = 300
"""Limit on the elements of all parameters; no element of larger programs is changed."""
EXECUTIONS: Final = 2
VALUES: Final = 3


def is_everything(maps: Sequence[IndexingMap], output: Shape, parameter: Shape) -> bool:
    """Return True if maps relate all elements of two arrays."""
    if any(_has_all(each, parameter) for each in maps):
        return True
    points = [prod([v.upper - v.lower + 1 for v in (*m.dims, *m.ranges)]) for m in maps]
    if max(points, default=0) > MAX_POINTS or output.size * parameter.size > MAX_POINTS:
        return False
    spaces = output.dims, parameter.dims
    mask = np.zeros((output.size, parameter.size), bool)
    for each in maps:
        mask |= mask_of(each, spaces, None, widened=True)
    return bool(maps) and bool(mask.all())


def _has_all(each: IndexingMap, parameter: Shape) -> bool:
    """Return True if the text of a map shows that it relates everything."""
    own = [result.as_variable for result in each.results]
    free = [v for v in own if v is not None and v in each.ranges]
    return (
        not each.constraints
        and len(set(free)) == len(own)
        and all(v.bounds == (0, n - 1) for v, n in zip(free, parameter.dims, strict=True))
    )


def kinds(module: Module) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield each pair of an output and a parameter, both arrays, and the kind of its maps."""
    root = module.entry.root
    for number, (_, output) in enumerate(leaves(root.shape)):
        answer = indexing.to_parameters(root, number)
        for k, parameter in enumerate(answer.operands):
            if isinstance(output, Shape) and isinstance(parameter.shape, Shape):
                maps = answer.maps[k]
                if answer.unknown[k] is not None:
                    kind = "unknown"
                elif all(each.grade == "exact" for each in maps):
                    kind = "exact" if maps else "none"
                elif is_everything(maps, output, parameter.shape):
                    kind = "everything"
                else:
                    kind = "subset"
                yield (number, k), kind


def observe(main: Computation) -> dict[tuple[int, int], Mask] | None:
    """Return the dependencies that executions have, or None if the program is too large for it."""
    shapes: list[AnyShape] = [shape for _, shape in leaves(main.root.shape)]
    shapes += [parameter.shape for parameter in main.parameters]
    sizes = [each.size if isinstance(each, Shape) else MAX_ELEMENTS + 1 for each in shapes]
    if sum(sizes) > MAX_ELEMENTS:
        return None
    masks: dict[tuple[int, int], Mask] = {}
    for seed in range(EXECUTIONS):
        pokes = Pokes.of(main, seed)
        for place in pokes.places():
            pokes.poke(*place, values=VALUES)
        masks = {pair: mask | masks.get(pair, False) for pair, mask in pokes.seen.items()}
    return masks


def main(arguments: list[str]) -> None:
    """Print a line for each file, and the sum."""
    is_verbose = "-v" in arguments
    files = [each for each in arguments if each != "-v"]
    print(f"{'program':38} pairs " + " ".join(KINDS) + "  not needed")
    total: Counter[str] = Counter()
    for file in files or sorted(map(str, FOLDER.glob("*.hlo"))):
        module = hlo.load(file)
        by_pair = dict(kinds(module))
        counts = Counter(by_pair.values())
        coarse = [pair for pair, kind in by_pair.items() if kind == "everything"]
        masks = observe(module.entry) if coarse else {}
        lacking = [] if masks is None else [pair for pair in coarse if not masks[pair].all()]
        counts["not needed"], counts["pairs"] = len(lacking), len(by_pair)
        total += counts
        print(_line(Path(file).stem, counts, masks is None), flush=True)
        if is_verbose and masks is not None:
            for output, parameter in lacking:
                name, mask = module.entry.parameters[parameter].name, masks[output, parameter]
                print(f"  output {output} needs {mask.sum()} of {mask.size} pairs of {name}")
    print(_line("sum", total, False))


def _line(name: str, counts: Counter[str], is_large: bool) -> str:
    columns = [f"{counts[kind]:{len(kind)}}" for kind in KINDS]
    needless = "-" if is_large else counts["not needed"]
    return f"{name[:38]:38} {counts['pairs']:5} {' '.join(columns)} {needless:11}"


if __name__ == "__main__":
    main(sys.argv[1:])
