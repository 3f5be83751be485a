"""Methods of `Module` that other modules implement: `hlo.modules.find`, `hlo.modules.stored`."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from hlo import methods
from hlo.arguments import checked


class ModuleSearch:
    """Methods of `Module` that find instructions and store the module."""

    __slots__ = ()

    def __getitem__(self, name: object) -> NoReturn:
        """Raise `TypeError`: computations and instructions may have the same names."""
        if isinstance(name, str) and "/" in name:
            computation, _, inner = name.partition("/")
            raise TypeError(
                f"a module has no items; write module.computations[{computation!r}][{inner!r}]"
            )
        raise TypeError(
            f"a module has no items; write module.entry[{name!r}] for an instruction of ENTRY, "
            f"module.computations[{name!r}] for a computation"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text of the module (`hlo.modules.stored`)."""
        stored: tuple[Any, ...] = methods.stored_module(self)
        return stored

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @checked
    def find(
        self,
        name: str | None = None,
        *,
        opcode: str | None = None,
        reads: str | methods.Instruction | None = None,
        op_name: str | None = None,
    ) -> tuple[methods.Instruction, ...]:
        """Return the instructions that meet all given conditions, in text order.

        Args:
            name: NAME or COMPUTATION/NAME, a glob of it such as ``conv*``, or a ``/regex/``.
            opcode, op_name: patterns of the opcode and of the metadata's ``op_name``.
            reads: an instruction, or its name, that the instructions read: see `readers`.
        Raises:
            KeyError: no instruction has the name `name` or `reads`, or HLO has no such opcode.
                Globs and regular expressions may match nothing.
            ValueError: a pattern is invalid.

        >>> from hlo.formats.parser import parse
        >>> module = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
        >>> module.find("n*", reads="p"), module.find("q*")
        ((<negate 'n' of 'e'>,), ())
        """
        return methods.instructions_of(
            self._itself(), name, opcode=opcode, reads=reads, op_name=op_name
        )

    @checked
    def readers(self, source: str | methods.Instruction) -> tuple[methods.Instruction, ...]:
        """Return the instructions with the value of `source`, or a part of it, as an operand.

        ``tuple``, ``get-tuple-element``, ``opt-barrier``, ``domain``, ``add-dependency``, ``call``,
        ``while`` and ``conditional`` pass values on unchanged: their users, and the instructions of
        the computations that they call, are readers instead.  A loop passes its operand on to its
        result as well, since it may have no iteration.  A fusion is a reader itself.

        Args:
            source: an instruction, its name (or pattern), or the ``op_name`` of a parameter.
        Raises:
            KeyError: no instruction is named `source`.

        >>> import hlo
        >>> module = hlo.load("examples/attention.opt.hlo")
        >>> [reader.name for reader in module.readers("bitcast")]
        ['ynn_fusion.7', 'ynn_fusion.6', 'ynn_fusion.5']
        """
        return methods.readers_of(self._itself(), source)

    def _itself(self) -> methods.Module:
        assert isinstance(self, methods.Module), "only modules have these methods"
        return self
