"""Modules, computations and instructions, with names resolved to objects.

These are what the parser makes and everything else reads. Instructions are compared by identity,
modules by structure. They are not changed after they are made; what takes work (users, ops,
inferred shapes) is found when first asked for. What an opcode means is not known here: whoever
makes a module passes in how instructions are interpreted (`Semantics`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from hlo.modules.header import value_of
from hlo.ops.op import Op
from hlo.shapes.shape import AnyShape
from hlo.text.source import HloError, Source, Span
from hlo.text.syntax import AttributeText, attributes_text

Result = TypeVar("Result")

_UNKNOWN: Any = object()  # not asked for yet
_NOTHING: Mapping[str, AttributeText] = MappingProxyType({})


class Semantics(NamedTuple):
    """How instructions are interpreted (`hlo.modules.bind.REGISTERED`).

    Attributes:
        bind: the op of an instruction; None when its opcode is not registered.
        infer: the shape of an instruction that declares none, whose operands have one.
    """

    bind: Callable[[Instruction], Op | None]
    infer: Callable[[Instruction], AnyShape]


class Instruction:
    """One instruction: what it is called, what it computes, and from what.

    Attributes:
        name: without ``%``.
        opcode: as in the text, known to us or not.
        operands: the instructions it reads, which come earlier in the same computation.
        called_computations: those that its attributes name, in the order of the text.
        attributes: what follows the operands, as text by name; computations are given by name
            there.
        literal: what stands between the parentheses when that is no list of operands: the number of
            a parameter or the value of a constant; else None.
        declared_shape: the result shape that the text gives, or None.
        computation: where it belongs.
        index: its position in that computation.
    """

    __slots__ = (
        "_op",
        "_shape",
        "_users",
        "attributes",
        "called_computations",
        "computation",
        "declared_shape",
        "end",
        "index",
        "literal",
        "name",
        "opcode",
        "operands",
        "start",
    )

    def __init__(
        self,
        name: str,
        opcode: str,
        shape: AnyShape | None,
        *,
        computation: Computation,
        index: int,
        start: int,
        end: int,
        operands: tuple[Instruction, ...] = (),
        literal: AttributeText | None = None,
        attributes: Mapping[str, AttributeText] = _NOTHING,
        called_computations: tuple[Computation, ...] = (),
    ) -> None:
        self.name = name
        self.opcode = opcode
        self.declared_shape = shape
        self.operands = operands
        self.literal = literal
        self.attributes = attributes
        self.called_computations = called_computations
        self.computation = computation
        self.index = index
        self.start = start
        self.end = end
        self._shape = shape
        self._users: tuple[Instruction, ...] | None = None
        self._op: Op | None = None

    @property
    def shape(self) -> AnyShape:
        """The result shape; inferred from the op and its operands where the text gives none.

        Raises:
            HloError: the text gives no shape and it cannot be inferred.
        """
        if self._shape is None:
            self._infer_shape()
        assert self._shape is not None
        return self._shape

    def _infer_shape(self) -> None:
        """Infer this shape after those it follows from, deepest first: a chain may be long."""
        infer = self.module.semantics.infer
        waiting, seen = [self], {self}
        while waiting:
            last = waiting[-1]
            sources = (*last.operands, *(called.root for called in last.called_computations))
            missing = [i for i in sources if i._shape is None and i not in seen]
            if missing:
                seen.update(missing)
                waiting.extend(missing)
                continue
            waiting.pop()
            try:
                last._shape = infer(last)
            except HloError:
                if last is self:  # that another shape is not known may not matter
                    raise

    @property
    def users(self) -> tuple[Instruction, ...]:
        """The instructions that read this one, each once, in text order."""
        if self._users is None:
            self.computation._find_users()
        assert self._users is not None
        return self._users

    @property
    def op(self) -> Op | None:
        """The op with its typed attributes; None when the opcode is not registered.

        Raises:
            HloError: an attribute of a registered op is wrong or missing.
        """
        if self._op is None:  # not asked for yet, or by nobody registered until now
            self._op = self.module.semantics.bind(self)
        return self._op

    @property
    def is_root(self) -> bool:
        """Says that it is the result of its computation."""
        return self.computation.root is self

    @property
    def module(self) -> Module:
        """The module it belongs to."""
        return self.computation.module

    @property
    def span(self) -> Span:
        """Where it stands, from its name to the end of its attributes."""
        return Span(self.module.source, self.start, self.end)

    def __str__(self) -> str:
        shape = "" if self.declared_shape is None else f"{_shape_text(self.declared_shape)} "
        if self.literal is not None:
            inside = self.literal.printed
        else:
            inside = ", ".join([f"%{operand.name}" for operand in self.operands])
        return f"%{self.name} = {shape}{self.opcode}({inside}){attributes_text(self.attributes)}"

    def __repr__(self) -> str:
        return f"<{self.opcode} {self.name!r} of {self.computation.name!r}>"


class Computation:
    """A function of its parameters: instructions in text order, the last or the ``ROOT`` one being
    the result.

    Attributes:
        name: without ``%``.
        instructions: in text order, so that operands come before their users.
        root: the result.
        attributes: what follows the closing brace, as text by name.
        module: where it belongs.
    """

    __slots__ = (
        "_parameters",
        "attributes",
        "end",
        "instructions",
        "module",
        "name",
        "root",
        "start",
    )

    def __init__(self, name: str, module: Module, start: int) -> None:
        self.name = name
        self.module = module
        self.start = start
        self.end = start
        self._parameters: tuple[Instruction, ...] | None = None
        self.instructions: tuple[Instruction, ...] = ()
        self.root: Instruction = _UNKNOWN
        self.attributes: Mapping[str, AttributeText] = _NOTHING

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters in the order of their numbers."""
        if self._parameters is None:
            found = [i for i in self.instructions if i.opcode == "parameter" and i.literal]
            self._parameters = tuple(sorted(found, key=_parameter_number))
        return self._parameters

    @property
    def span(self) -> Span:
        """Where it stands, from its name to its closing brace."""
        return Span(self.module.source, self.start, self.end)

    @property
    def is_entry(self) -> bool:
        """Says that the module starts here."""
        return self.module.entry is self

    def __getitem__(self, name: str) -> Instruction:
        """The instruction called `name`."""
        for instruction in self.instructions:
            if instruction.name == name:
                return instruction
        raise KeyError(name)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __len__(self) -> int:
        return len(self.instructions)

    def _find_users(self) -> None:
        users: dict[Instruction, dict[Instruction, None]] = {i: {} for i in self.instructions}
        for instruction in self.instructions:
            for operand in instruction.operands:
                users[operand][instruction] = None
        for instruction, found in users.items():
            instruction._users = tuple(found)

    def __str__(self) -> str:
        lines = [f"  {'ROOT ' if i is self.root else ''}{i}" for i in self.instructions]
        first = f"{'ENTRY ' if self.is_entry else ''}%{self.name} {{"
        return "\n".join([first, *lines, f"}}{attributes_text(self.attributes)}"])

    def __repr__(self) -> str:
        return f"<computation {self.name!r}, {len(self.instructions)} instructions>"


def _parameter_number(instruction: Instruction) -> int:
    text = instruction.literal.text.strip() if instruction.literal else ""
    if not (text.isdecimal() and len(text) < 10):
        span = instruction.literal.span if instruction.literal else instruction.span
        raise HloError("a parameter has a number: parameter(0)", span, "attribute", "no number")
    return int(text)


class Module:
    """A whole program: computations, of which `entry` is where it starts.

    Its text parses back to an equal module.

    Attributes:
        name: what the header calls it.
        attributes: the rest of the header, as text by name.
        tables: ``FileNames``, ``FunctionNames``, ``FileLocations`` and ``StackFrames``: lines by
            their numbers.
        computations: by name, in text order: those that are called come before those that call.
        entry: the computation that runs.
        source: the text that it was read from.
        semantics: how its instructions are interpreted.
        memo: results that others remember for as long as the module lives.
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "computations",
        "entry",
        "memo",
        "name",
        "semantics",
        "source",
        "tables",
    )

    def __init__(self, name: str, source: Source, semantics: Semantics) -> None:
        self.name = name
        self.source = source
        self.semantics = semantics
        self.attributes: Mapping[str, AttributeText] = _NOTHING
        self.tables: Mapping[str, Mapping[int, AttributeText]] = MappingProxyType({})
        self.computations: Mapping[str, Computation] = MappingProxyType({})
        self.entry: Computation = _UNKNOWN
        self.memo: dict[Any, Any] = {}

    def remembered(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """What `make` gave when `key` was first asked for: it is kept in `memo`."""
        if key not in self.memo:
            self.memo[key] = make()
        found: Result = self.memo[key]
        return found

    @property
    def filename(self) -> str:
        """The name of the file that the text came from."""
        return self.source.filename

    def header(self, name: str, default: Any = None) -> Any:
        """Return the header's entry for a key (`hlo.modules.header`), or `default` without one.

        >>> from hlo.formats.parser import parse
        >>> parse("HloModule m, is_scheduled=true ENTRY e { p = f32[] parameter(0) }").header(
        ...     "is_scheduled"
        ... )
        True
        """
        text = self.attributes.get(name)
        return default if text is None else value_of(name, text)

    @property
    def instructions(self) -> Iterator[Instruction]:
        """Every instruction of every computation, in text order."""
        for computation in self.computations.values():
            yield from computation.instructions

    def __eq__(self, other: object) -> bool:
        """Says that both have the same header and the same computations, instruction by
        instruction.

        White space, comments, ``%``, signatures and operand shapes do not count, names and layouts
        do.
        """
        if not isinstance(other, Module):
            return NotImplemented
        if self is other:
            return True
        mine, theirs = self.computations, other.computations
        return (
            (self.name, self.entry.name, list(mine)) == (other.name, other.entry.name, list(theirs))
            and self.attributes == other.attributes
            and self.tables == other.tables
            and all(_same_computation(mine[name], theirs[name]) for name in mine)
        )

    __hash__ = object.__hash__

    def __str__(self) -> str:
        header = f"HloModule {self.name}{attributes_text(self.attributes)}"
        tables = [
            "\n".join([name, *(f"{number} {text.printed}" for number, text in lines.items())])
            for name, lines in self.tables.items()
        ]
        return "\n\n".join([header, *tables, *map(str, self.computations.values())]) + "\n"

    def __repr__(self) -> str:
        count = sum(map(len, self.computations.values()))
        computations = len(self.computations)
        return f"<module {self.name!r}, {computations} computations, {count} instructions>"


_shape_text = lru_cache(maxsize=1 << 12)(str)  # a module has few different shapes


def _same_computation(first: Computation, second: Computation) -> bool:
    return (
        len(first.instructions) == len(second.instructions)
        and first.root.index == second.root.index
        and first.attributes == second.attributes
        and all(map(_same_instruction, first.instructions, second.instructions))
    )


def _same_instruction(first: Instruction, second: Instruction) -> bool:
    return (
        (first.name, first.opcode) == (second.name, second.opcode)
        and first.declared_shape == second.declared_shape
        and [o.index for o in first.operands] == [o.index for o in second.operands]
        and [c.name for c in first.called_computations]
        == [c.name for c in second.called_computations]
        and first.literal == second.literal
        and first.attributes == second.attributes
    )
