"""Instructions that a command selects: by name, opcode and metadata, by what they read, in order.

Patterns are names, globs and regular expressions between slashes (`hlo.modules.patterns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from hlo.modules.find import instructions_named, known_names, readers_of
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.patterns import (
    Criterion,
    Pattern,
    among,
    any_of,
    by_name,
    by_op_name,
    by_opcode,
    full_name,
    matching,
    name_pattern,
    op_name_of,
)
from hlo.shapes.shape import Shape, leaves
from hlo.text.names import UnknownName, did_you_mean, similar

Order: TypeAlias = Literal["name", "bytes", "elements"]
"""An order of instructions: by name, or the largest result first."""


class Condition(NamedTuple):
    """One pattern of a selection, or the name of a parameter with a value, with its option."""

    option: Literal["--instruction", "--opcode", "--reads", "--op-name", "--set"]
    text: str

    @property
    def message(self) -> str:
        """The error if no instruction meets the condition."""
        if self.option == "--set":
            return f"no selected instruction has an integer parameter named `{self.text}`"
        if self.option in ("--opcode", "--op-name"):
            return f"no instruction has the {self.option[2:].replace('-', '_')} `{self.text}`"
        is_name = name_pattern(self.text).is_name
        return f"no instruction {'named' if is_name else 'has a name like'} `{self.text}`"

    def is_met(self, module: Module) -> bool:
        """Return True if an instruction of `module` meets the condition."""
        computations = module.computations.values()
        if self.option == "--opcode":
            return any(map(by_opcode(Pattern(self.text)).may_hold_in, computations))
        if self.option == "--op-name":
            return bool(matching(computations, [by_op_name(Pattern(self.text))]))
        if self.option == "--instruction":
            return any(map(name_pattern(self.text).names_some_in, computations))
        try:
            return bool(instructions_named(module, self.text))
        except UnknownName:
            return False

    def question(self, module: Module) -> str:
        """Return a question with the names in `module` that are similar; empty without any."""
        if self.option == "--opcode":
            known: Iterator[str] = (o for c in module.computations.values() for o in c.opcodes)
        elif self.option == "--op-name":
            known = filter(None, map(op_name_of, module.instructions))
        else:
            return suggestion(self.text, module)
        return did_you_mean(similar(_literal(self.text), known))


def suggestion(name: str, module: Module) -> str:
    """Return a question with names in `module` similar to `name`; empty without any."""
    if name in module.computations:
        return f"`{name}` is a computation: use {name}/NAME"
    pattern = name_pattern(name)
    known = list(known_names(module, pattern))
    if "/" not in pattern.text or not pattern.is_name:
        known = [name for each in module.computations.values() for name in each.names]
    elif known:  # such as CALL/NAME, of a runtime variable
        return did_you_mean(known[:3])
    else:
        known = [f"{c.name}/{name}" for c in module.computations.values() for name in c.names]
    if close := did_you_mean(similar(_literal(pattern.text), known)):
        return close
    has_opcode = any(name in each.opcodes for each in module.computations.values())
    return f"`{name}` is an opcode: use --opcode {name}" if has_opcode else ""


def _literal(pattern: str) -> str:
    """Return a pattern without wildcards."""
    return pattern.strip("/^$").replace("*", "").replace("?", "")


@dataclass(frozen=True, slots=True)
class Selection:
    """Instructions: those with one of the names or opcodes, which meet the other conditions.

    Attributes:
        names: patterns of NAME or COMPUTATION/NAME.
        opcodes: patterns of opcodes.
        reads: names of values; an instruction must read one of them (`Module.readers`).
        op_names: patterns of the ``op_name`` in the metadata.
        kinds: kinds of maps, of which an instruction must have one (`views.access_kinds`).
        everything: True if every instruction is requested.
        order: the order of the instructions of a module; None is text order.
        limit: the maximum number of instructions of a module; None is no limit.
    """

    names: tuple[str, ...] = ()
    opcodes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    op_names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    everything: bool = False
    order: Order | None = None
    limit: int | None = None

    @property
    def selects_root(self) -> bool:
        """True if nothing is selected explicitly: the root of ENTRY is the default."""
        return not (self.everything or self.kinds or self.conditions)

    @property
    def is_by_name(self) -> bool:
        """True if each instruction is selected by its name, or as the root."""
        others = self.everything or self.kinds or self.opcodes or self.reads or self.op_names
        return not others and all(name_pattern(name).is_name for name in self.names)

    @property
    def is_partial(self) -> bool:
        """True if conditions select the instructions: only what their answers need is checked."""
        return bool(self.conditions)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All patterns, without duplicates."""
        every = [
            *[Condition("--instruction", text) for text in self.names],
            *[Condition("--opcode", text) for text in self.opcodes],
            *[Condition("--reads", text) for text in self.reads],
            *[Condition("--op-name", text) for text in self.op_names],
        ]
        return tuple(dict.fromkeys(every))

    @property
    def text(self) -> str:
        """The options of the selection."""
        kinds = [f"--kind {kind}" for kind in self.kinds]
        return " ".join([*[f"{c.option} {c.text}" for c in self.conditions], *kinds])

    def instructions(
        self, module: Module, computations: Sequence[Computation]
    ) -> list[Instruction]:
        """Return the selected instructions of `computations`, in order, without the limit."""
        if self.selects_root:
            return [module.entry.root] if module.entry in computations else []
        selected = matching(computations, self._criteria(module))
        if self.order == "name":
            return sorted(selected, key=lambda i: (i.name, full_name(i)))
        if self.order is not None:
            return sorted(selected, key=size_in(self.order), reverse=True)
        return selected

    def _criteria(self, module: Module) -> list[Criterion]:
        """Return the conditions: one of the names or opcodes, and one of each other option."""
        names = [by_name(name_pattern(text)) for text in self.names]
        opcodes = [by_opcode(Pattern(text)) for text in self.opcodes]
        op_names = [by_op_name(Pattern(text)) for text in self.op_names]
        criteria = [any_of(each) for each in ([*names, *opcodes], op_names) if each]
        if self.reads:
            criteria.append(among({i for text in self.reads for i in _readers(module, text)}))
        return criteria


def _readers(module: Module, text: str) -> tuple[Instruction, ...]:
    """Return the readers of the named values; none if nothing has the name."""

    def find_readers() -> tuple[Instruction, ...]:
        try:
            return readers_of(module, text)
        except UnknownName:
            return ()

    return module.memoised((_readers, text), find_readers)


def size_in(unit: Literal["bytes", "elements"]) -> Callable[[Instruction], float]:
    """Return a function that returns the size of a result; unbounded dimensions are infinite."""

    def size(instruction: Instruction) -> float:
        arrays = [leaf for _, leaf in leaves(instruction.shape) if isinstance(leaf, Shape)]
        try:
            return sum(a.bytes if unit == "bytes" else a.size for a in arrays)
        except ValueError:
            return float("inf")

    return size
