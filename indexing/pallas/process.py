"""Checks in a process of its own: JAX starts threads, and commands may fork worker processes.

The process reads a request and writes a report, both pickled, in a temporary folder.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from indexing.frontends.named_functions import (
    SymbolicShape,
    arguments,
    load_function,
    shape_trees,
)
from indexing.frontends.worker import error_text, run_worker
from indexing.pallas.checking import check
from indexing.pallas.report import PallasReport
from indexing.pallas.symbolic_dimensions import names_in
from indexing.pallas.value_ranges import ValueRange, size_conditions

_REQUEST: Final = "request.pickle"
_RESULT: Final = "result.pickle"


class TracingError(Exception):
    """The function cannot be traced or checked; the message has the reason."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The question of a command: a function, its arguments as text, and the options of `check`."""

    function: str
    shapes: str
    ranges: Mapping[str | int, ValueRange]
    chip: str | None = None
    vmem_limit: int | None = None


def check_elsewhere(request: CheckRequest) -> PallasReport:
    """Return the report about a function that another process traces.

    Raises:
        TracingError: the function cannot be loaded or traced.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / _REQUEST).write_bytes(pickle.dumps(request))
        end = run_worker("indexing.pallas.process", folder)
        result = folder / _RESULT
        if not result.exists():
            raise TracingError(f"the process that traces ended {end}")
        answer = pickle.loads(result.read_bytes())
    if isinstance(answer, str):
        raise TracingError(answer)
    assert isinstance(answer, PallasReport)
    return answer


def main(folder: str) -> None:
    """Answer the request in a folder: write the report, or an error as text."""
    request: CheckRequest = pickle.loads(Path(folder, _REQUEST).read_bytes())
    answer: PallasReport | str
    try:
        answer = _answer(request)
    except ImportError as error:
        answer = str(error)
    except Exception as error:  # whatever the program raises
        answer = error_text(error)
    Path(folder, _RESULT).write_bytes(pickle.dumps(answer))


def _answer(request: CheckRequest) -> PallasReport:
    shapes = _leaves(shape_trees(request.shapes, is_symbolic=True))
    sizes = [size for each in shapes if isinstance(each, SymbolicShape) for size in each.sizes]
    names = dict.fromkeys(name for size in sizes for name in names_in(size))
    conditions = size_conditions(request.ranges, list(names))
    function = load_function(request.function)
    args = arguments(request.shapes, is_symbolic=True, constraints=conditions)
    return check(
        function, *args, ranges=request.ranges, chip=request.chip, vmem_limit=request.vmem_limit
    )


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [leaf for each in tree for leaf in _leaves(each)] if isinstance(tree, list) else [tree]


if __name__ == "__main__":
    main(sys.argv[1])
