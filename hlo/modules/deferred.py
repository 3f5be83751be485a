"""Computations whose instructions are made on first use.

The parser checks the text of a computation and may leave its instructions for later: a question
about one instruction needs few computations of a large module. Readers of a module cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any


class DeferredBody:
    """The instructions of a computation that are not made yet.

    Attributes:
        names: the name of each instruction, in text order.
        opcodes: the opcode of each instruction.

    Args:
        make: sets `Deferrable.instructions` and `Deferrable.root`.
        lock: held by the thread that calls `make`; shared by all bodies of a module.
    """

    __slots__ = ("_lock", "_make", "names", "opcodes")

    def __init__(
        self,
        names: tuple[str, ...],
        opcodes: tuple[str, ...],
        make: Callable[[], object],
        lock: AbstractContextManager[object],
    ) -> None:
        self.names = names
        self.opcodes = opcodes
        self._make = make
        self._lock = lock

    def materialise(self, owner: Deferrable) -> None:
        """Make the instructions of `owner`, unless another thread has made them."""
        with self._lock:
            if owner.body is self:
                self._make()
                owner.body = None


class Deferrable:
    """The slots ``instructions`` and ``root`` of a computation, which may be filled on first use.

    Attributes:
        body: the deferred instructions; None if they are made.
    """

    __slots__ = ("body", "instructions", "root")

    instructions: Any
    root: Any

    def __init__(self) -> None:
        self.body: DeferredBody | None = None

    def defer(self, body: DeferredBody) -> None:
        """Empty the slots until they are used."""
        self.body = body
        del self.instructions, self.root

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Make the instructions; Python calls this method for slots that are not filled."""
            if name not in ("instructions", "root"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if (body := self.body) is not None:
                body.materialise(self)
            return object.__getattribute__(self, name)
