"""State of the parser: the computations parsed so far, and unused names."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import count

from hlo.formats.faults import duplicate
from hlo.modules.instruction_checks import REGISTERED
from hlo.modules.module import Computation, Module
from hlo.text.lexer import NAME, SPACE
from hlo.text.source import Source, Span

_HEAD = re.compile(rf"({NAME}){SPACE}[({{]", re.ASCII)


class ParserState:
    """The parsed part of a module.

    Attributes:
        computations: by name, callees before callers.
        result: the module under construction.
        started: for each computation that an asynchronous op starts, the start's location.
        made_names: names that `fresh_name` returned; the text cannot refer to them.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.computations: dict[str, Computation] = {}
        self.result = Module("", source, REGISTERED)
        self.started: dict[str, Span] = {}
        self.made_names: set[str] = set()
        self._defined_names: set[str] | None = None  # found when the first name is made
        self._numbers: dict[str, int] = {}  # see `fresh_name`

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
        """Return the first of `name`, ``name.1``, ``name.2``, .. of which there is no computation.

        Computations that follow in the text, and those that are not finished, count. All names
        before ``(`` or ``{`` may be those of computations.
        """
        if self._defined_names is None:
            self._defined_names = set(_HEAD.findall(self.text))
        number = self._numbers.get(name, 0)
        while (
            fresh := _numbered_name(name, number)
        ) in self._defined_names or fresh in self.made_names:
            number += 1
        self._numbers[name] = number + 1
        self.made_names.add(fresh)
        return fresh


def _numbered_name(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the first of `name`, ``name.1``, ``name.2``, .. that is not in `taken`.

    >>> free_name("add", {"add", "add.1"})
    'add.2'
    """
    return next(free for i in count() if (free := _numbered_name(name, i)) not in taken)
