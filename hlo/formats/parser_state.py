"""A module while it is read: its computations so far, and names that are still free."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count

from hlo.formats.faults import duplicate
from hlo.modules.bind import REGISTERED
from hlo.modules.module import Computation, Module
from hlo.text.source import Source, Span


class ParserState:
    """What has been read of a module.

    Attributes:
        computations: by name, callees before callers.
        result: the module that they belong to.
        started: the place where each asynchronous computation is started, by its name.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.computations: dict[str, Computation] = {}
        self.result = Module("", source, REGISTERED)
        self.started: dict[str, Span] = {}
        self._numbers: dict[str, tuple[int, bool]] = {}  # see `fresh_name`

    def new_computation(self, name: str, start: int) -> Computation:
        """An empty computation, whose name is at `start`.

        Raises:
            HloError: the name is taken.
        """
        if first := self.computations.get(name):
            span = self.source.span(start, start + len(name))
            raise duplicate("computation", span, first.span)
        return Computation(name, self.result, start)

    def fresh_name(self, name: str) -> str:
        """`name`, or the first of ``name.1``, .. that stands nowhere in the text.

        The text is searched for each name only if `name` itself is a part of it.
        """
        number, is_in_text = self._numbers.get(name) or (0, name in self.text)
        while is_in_text and _numbered(name, number) in self.text:
            number += 1
        self._numbers[name] = number + 1, is_in_text
        return _numbered(name, number)


def _numbered(name: str, number: int) -> str:
    return f"{name}.{number}" if number else name


def free_name(name: str, taken: Collection[str]) -> str:
    """`name`, or the first of ``name.1``, ``name.2`` .. that is not taken.

    >>> free_name("add", {"add", "add.1"})
    'add.2'
    """
    return next(free for i in count() if (free := _numbered(name, i)) not in taken)
