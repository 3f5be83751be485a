"""State of the parser: the computations parsed so far, and unused names."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

from hlo.formats.faults import duplicate
from hlo.modules.instruction_checks import REGISTERED
from hlo.modules.module import Computation, Module
from hlo.text.source import Source, Span


class ParserState:
    """The parsed part of a module.

    Attributes:
        computations: by name, callees before callers.
        result: the module under construction.
        started: for each computation that an asynchronous op starts, the start's location.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.computations: dict[str, Computation] = {}
        self.result = Module("", source, REGISTERED)
        self.started: dict[str, Span] = {}
        self._numbers: dict[str, tuple[int, bool]] = {}  # see `fresh_name`

    def new_computation(self, name: str, start: int) -> Computation:
        """Return an empty computation, whose name is at `start`.

        Raises:
            HloError: another computation has the name.
        """
        if first := self.computations.get(name):
            span = self.source.span(start, start + len(name))
            raise duplicate("computation", span, first.span)
        return Computation(name, self.result, start)

    def fresh_name(self, name: str) -> str:
        """Return the first of `name`, ``name.1``, ``name.2``, .. that does not occur in the text.

        The text is searched for numbered names only if it contains `name`.
        """
        number, is_in_text = self._numbers.get(name) or (0, name in self.text)
        while is_in_text and _numbered(name, number) in self.text:
            number += 1
        self._numbers[name] = number + 1, is_in_text
        return _numbered(name, number)


def _numbered(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the first of `name`, ``name.1``, ``name.2``, .. that is not in `taken`.

    >>> free_name("add", {"add", "add.1"})
    'add.2'
    """
    return next(free for i in count() if (free := _numbered(name, i)) not in taken)
