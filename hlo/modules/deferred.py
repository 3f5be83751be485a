"""Computations whose instructions are made on first use.

The parser checks the text of a computation and may leave its instructions for later: a question
about one instruction needs few computations of a large module. Readers of a module cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self

from hlo import methods


class DeferredBody:
    """The instructions of a computation that are not made yet.

    Attributes:
        count: the number of instructions.
        listed_names: their names in text order, one a line.

    Args:
        read_opcodes: returns the opcode of each instruction, in text order.
        make: calls `Deferrable.complete`.
        lock: held by the thread that calls `make`; shared by all bodies of a module.
    """

    __slots__ = ("_lock", "_make", "_names", "_read_opcodes", "count", "listed_names")

    def __init__(
        self,
        count: int,
        listed_names: str,
        read_opcodes: Callable[[], tuple[str, ...]],
        make: Callable[[], object],
        lock: AbstractContextManager[object],
    ) -> None:
        self.count = count
        self.listed_names = listed_names
        self._names: tuple[str, ...] = ()  # split on first use
        self._read_opcodes = read_opcodes
        self._make = make
        self._lock = lock

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each instruction, in text order."""
        if not self._names:
            self._names = tuple(self.listed_names.split("\n"))
        return self._names

    @property
    def opcodes(self) -> tuple[str, ...]:
        """The opcode of each instruction, in text order."""
        return self._read_opcodes()

    def has_name(self, name: str) -> bool:
        """Return True if an instruction has the name."""
        listed = self.listed_names
        return name in listed and name in self.names  # most lists do not need to be split

    def materialise(self, owner: Deferrable) -> None:
        """Make the instructions of `owner`, unless another thread has made them."""
        with self._lock:
            if owner.body is self:
                self._make()
                owner.body = None


class Deferrable:
    """The instructions and the root of a computation, which may be made on first use.

    Attributes:
        body: the deferred instructions; None if they are made.
    """

    __slots__ = ("_instructions", "_root", "body")

    def __init__(self) -> None:
        self.body: DeferredBody | None = None
        self._instructions: tuple[Any, ...] = ()
        self._root: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the module, and the name in it (`hlo.modules.stored`)."""
        stored: tuple[Any, ...] = methods.stored_computation(self)
        return stored

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def defer(self, body: DeferredBody) -> None:
        """Leave the instructions for later."""
        self.body = body

    def complete(self, instructions: tuple[Any, ...], root: Any) -> None:
        """Set the instructions, when they are made."""
        self._instructions = instructions
        self._root = root

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the instructions, in text order, without making them.

        >>> import hlo
        >>> hlo.parse("ENTRY e { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }").entry.names
        ('p', 'n')
        """
        body = self.body
        return tuple([i.name for i in self._instructions]) if body is None else body.names

    @property
    def opcodes(self) -> tuple[str, ...]:
        """The opcodes of the instructions, in text order, without making them.

        >>> import hlo
        >>> hlo.parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }").entry.opcodes
        ('parameter', 'negate')
        """
        body = self.body
        return tuple([i.opcode for i in self._instructions]) if body is None else body.opcodes

    def has_name(self, name: str) -> bool:
        """Return True if an instruction has the name, without making it.

        >>> import hlo
        >>> entry = hlo.parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }").entry
        >>> entry.has_name("n"), entry.has_name("negate")
        (True, False)
        """
        body = self.body
        return name in self.names if body is None else body.has_name(name)

    def __len__(self) -> int:
        body = self.body
        return len(self._instructions) if body is None else body.count
