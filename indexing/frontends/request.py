"""Requests to a process that compiles, and its results: files in one folder."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from indexing.frontends.lowering import LoweredFunction

_REQUEST: Final = "request.pickle"
_RESULT: Final = "result.pickle"


class RequestedLayout(NamedTuple):
    """The layout of an argument or a result of a function.

    Attributes:
        is_result: it is the layout of a result.
        number: of the argument or of the result, from 0; pytrees are flat.
        layout: the order of dimensions, such as ``{0,1}``; XLA chooses the tiles.
    """

    is_result: bool
    number: int
    layout: str


@dataclass(frozen=True, slots=True)
class CompilationRequest:
    """A module to lower or to compile.

    Attributes:
        function: the name of a function, as `named_functions.load_function` reads it; "" if
            `lowering` is given.
        shapes: the shapes of its arguments, as `named_functions.arguments` reads them.
        lowering: a module of StableHLO.
        target: the text of a `Target`; "" for JAX's default device, which can only be lowered for.
        stage: what is asked, as `compilation.compile_for` reads it; ``lowered`` or ``optimized`` of
            a process.
        layouts: of arguments and results, in place of those of the program.
    """

    function: str
    shapes: str
    lowering: LoweredFunction | None
    target: str
    stage: str
    layouts: tuple[RequestedLayout, ...] = ()

    def save(self, folder: str | Path) -> None:
        """Write the request into a folder."""
        Path(folder, _REQUEST).write_bytes(pickle.dumps(self))

    @classmethod
    def load(cls, folder: str | Path) -> CompilationRequest:
        """Return the request in a folder."""
        request = pickle.loads(Path(folder, _REQUEST).read_bytes())
        assert isinstance(request, cls)
        return request


@dataclass(frozen=True, slots=True)
class CompilationResult:
    """The answer to a request.

    Attributes:
        name: the name of the function.
        text: the module of HLO; "" after an error.
        sources: the files of the program, with their digests.
        error: why there is no module; "" if there is one.
    """

    name: str
    text: str
    sources: dict[str, str]
    error: str = ""

    def save(self, folder: str | Path) -> None:
        """Write the result into a folder."""
        Path(folder, _RESULT).write_bytes(pickle.dumps(self))

    @classmethod
    def take(cls, folder: str | Path) -> CompilationResult | None:
        """Return and remove the result in a folder; None if the process ended without one."""
        path = Path(folder, _RESULT)
        if not path.exists():
            return None
        result = pickle.loads(path.read_bytes())
        assert isinstance(result, cls)
        for name in (_REQUEST, _RESULT):
            Path(folder, name).unlink()
        return result
