"""Executions by XLA:CPU in a process of its own, which XLA may end.

The process reads a module with inputs and writes the results, both pickled, in a temporary folder.
"""

from __future__ import annotations

import pickle
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import hlo
from hlo.modules.module import Module
from indexing.execution import xla
from indexing.frontends.worker import run_worker

Array = NDArray[Any]

_REQUEST: Final = "request.pickle"
_RESULT: Final = "result.pickle"
_CHECK: Final = re.compile(r"Check failed: .*")


class ExecutionRequest(NamedTuple):
    """The text of a module, and an array for each parameter leaf."""

    text: str
    inputs: list[Array]


def run_elsewhere(
    module: Module, inputs: Sequence[Array], worker: str = __name__
) -> tuple[Array, ...]:
    """Return the results of a module for one device, tuples flattened in order.

    Args:
        inputs: one array per parameter leaf.
        worker: the module with the `main` of the process.
    Raises:
        RuntimeError: XLA rejects the module, or ends the process.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / _REQUEST).write_bytes(pickle.dumps(ExecutionRequest(str(module), list(inputs))))
        end = run_worker(worker, folder)
        result = folder / _RESULT
        if not result.exists():
            check = _CHECK.search(end)
            reason = check[0] if check else end.partition(";")[0]
            raise RuntimeError(f"XLA ended the process that executes: {reason}")
        answer: list[Array] | str = pickle.loads(result.read_bytes())
    if isinstance(answer, str):
        raise RuntimeError(answer)
    return tuple(answer)


def main(folder: str) -> None:
    """Answer the request in a folder: write the results, or an error as text."""
    request: ExecutionRequest = pickle.loads(Path(folder, _REQUEST).read_bytes())
    answer: list[Array] | str
    try:
        answer = [np.asarray(each) for each in xla.run(hlo.parse(request.text), request.inputs)]
    except Exception as error:  # XLA rejects the module
        answer = str(error) or repr(error)
    Path(folder, _RESULT).write_bytes(pickle.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
