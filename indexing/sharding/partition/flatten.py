"""Programs without calls, fusions, bitcasts and layouts.

Shardings propagate through instructions, and the local program is made of them. Only loops,
conditionals and the functions that ops apply to elements remain computations.

`programs.arrays.ProgramArrays` inlines calls as well, but for values: there, equal calls have one
result, and only instructions that a result depends on are visited. Here each call is executed and
paid for, so equal calls and instructions with effects remain, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hlo.arguments import checked
from hlo.formats.parser import parse
from hlo.formats.parser_state import free_name
from hlo.modules.effects import has_own_effect
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.recursion import Recursive, run_recursive
from hlo.shapes.shape import Shape
from hlo.text.source import HloError
from hlo.text.syntax import attributes_text
from indexing.ops.element import declarations_of
from indexing.ops.logical import why_no_logical_bitcast, without_layouts, write_bitcast
from indexing.ops.structure import ForwardingOp
from indexing.ops.structured_ops import InlineOp

MAX_FLATTENED: Final = 1 << 20
"""Limit on the instructions of a flattened program: calls may repeat a computation."""

_HEADERS: Final = ("frontend_attributes", "num_partitions", "replica_count")
_DROPPED: Final = ("control-predecessors",)


@checked
def flatten(computation: Computation) -> Module:
    """Return a module whose entry is `computation` without calls, fusions, bitcasts and layouts.

    The bodies of calls, fusions and asynchronous computations are inlined. A bitcast becomes
    transposes and reshapes, a get-tuple-element of a tuple the element, and a custom call that
    annotates a value this value. Instructions that neither the result nor an effect depends on are
    omitted. Bodies of loops and branches are flattened, functions that ops apply to elements remain
    as they are.

    Raises:
        HloError: the flattened program has more than `MAX_FLATTENED` instructions, or a bitcast
            cannot be written without layouts.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... twice { x = f32[3] parameter(0)  ROOT y = f32[3] add(x, x) }
    ... ENTRY e { p = f32[3] parameter(0)  f = f32[3] fusion(p), kind=kLoop, calls=twice
    ...   ROOT g = f32[3] fusion(f), kind=kLoop, calls=twice }''')
    >>> print(flatten(module.entry))
    HloModule module_e
    <BLANKLINE>
    ENTRY %e {
      %p = f32[3] parameter(0)
      %y = f32[3] add(%p, %p)
      ROOT %y.1 = f32[3] add(%y, %y)
    }
    <BLANKLINE>
    """
    return flatten_with_names(computation)[0]


def flatten_with_names(computation: Computation) -> tuple[Module, dict[str, str]]:
    """Return the module of `flatten`, and the names in it of the values of the computation.

    The value of a call has the name of an instruction of its body, for example.

    Raises:
        HloError: as `flatten`.

    >>> import hlo, indexing
    >>> module = hlo.parse('''
    ... twice { x = f32[3] parameter(0)  ROOT y = f32[3] add(x, x) }
    ... ENTRY e { p = f32[3] parameter(0)  f = f32[3] fusion(p), kind=kLoop, calls=twice
    ...   ROOT g = f32[3] fusion(f), kind=kLoop, calls=twice }''')
    >>> flatten_with_names(module.entry)[1]
    {'p': 'p', 'f': 'y', 'g': 'y.1'}
    """
    module = computation.module
    inliner = _Inliner()
    texts = inliner.texts(computation)
    headers = {k: module.attributes[k] for k in _HEADERS if k in module.attributes}
    head = f"HloModule {module.name}{attributes_text(headers)}"
    flat = parse("\n\n".join([head, *texts]) + "\n", module.filename)
    return flat, {each.name: name for each, name in inliner.names[computation].items()}


@dataclass(slots=True)
class _FlatBody:
    """The text of a computation under construction.

    Attributes:
        lines: the text of each instruction by its name, without the name.
        operands: the names of the operands of each instruction.
        kept: the names of parameters and of instructions with effects.
        elements: the names of the elements of each tuple.
    """

    lines: dict[str, str] = field(default_factory=dict)
    operands: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    elements: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, name: str, line: str, operands: Sequence[str], is_kept: bool = False) -> str:
        name = free_name(name, self.lines)
        self.lines[name] = line
        self.operands[name] = tuple(operands)
        if is_kept:
            self.kept.append(name)
        return name

    def text(self, computation: Computation, root: str) -> str:
        needed = dict.fromkeys([root, *self.kept])
        pending = list(needed)
        while pending:
            for name in self.operands[pending.pop()]:
                if name not in needed:
                    needed[name] = None
                    pending.append(name)
        lines = [
            f"  {'ROOT ' if name == root else ''}%{name} = {line}"
            for name, line in self.lines.items()
            if name in needed
        ]
        return "\n".join([f"%{computation.name} {{", *lines, "}"])


class _Inliner:
    """Flattens the computations of a program.

    Attributes:
        flat: the text of each flattened computation.
        names: the names of the values of each flattened computation.
        applied: the computations that remain as they are.
        count: the number of instructions made.
    """

    def __init__(self) -> None:
        self.flat: dict[Computation, str] = {}
        self.names: dict[Computation, dict[Instruction, str]] = {}
        self.applied: dict[Computation, None] = {}
        self.count = 0

    def texts(self, entry: Computation) -> list[str]:
        """Return the texts of all computations, callees first."""
        waiting = [entry]
        while waiting:
            computation = waiting.pop()
            if computation not in self.flat:
                self.flat[computation] = run_recursive(
                    self._flatten_computation(computation, waiting)
                )
        for computation in list(self.applied):
            self._add_applied(computation)
        order = entry.module.computations.values()
        before = [each for each in order if each is not entry]
        texts = [self.flat[each] if each in self.flat else str(each) for each in before
                 if each in self.flat or each in self.applied]  # fmt: skip
        return [*texts, f"ENTRY {self.flat[entry]}"]

    def _add_applied(self, computation: Computation) -> None:
        """Add the computations that a computation which remains calls."""
        waiting = [computation]
        while waiting:
            for instruction in waiting.pop().instructions:
                for called in instruction.called_computations:
                    if called not in self.applied:
                        self.applied[called] = None
                        waiting.append(called)

    def _flatten_computation(
        self, computation: Computation, waiting: list[Computation]
    ) -> Recursive[str]:
        body = _FlatBody()
        names = self.names[computation] = {}
        for parameter in computation.parameters:
            line = _line(parameter, {})
            names[parameter] = body.add(parameter.name, line, (), is_kept=True)
        root = yield self._inline_computation(computation, names, body, waiting)
        return body.text(computation, root)

    def _inline_computation(
        self,
        computation: Computation,
        names: dict[Instruction, str],
        body: _FlatBody,
        waiting: list[Computation],
    ) -> Recursive[str]:
        """Add the instructions of a computation and return the name of its result."""
        for instruction in computation.instructions:
            if instruction in names:
                continue
            operands = [names[operand] for operand in instruction.operands]
            if isinstance(instruction.op, InlineOp) or instruction.opcode == "async-start":
                called = instruction.called_computations[0]
                given = dict(zip(called.parameters, operands, strict=True))
                names[instruction] = yield self._inline_computation(called, given, body, waiting)
                continue
            forwarded = _forwarded_name(instruction, operands, body)
            names[instruction] = forwarded or self._add(instruction, names, body, waiting)
        return names[computation.root]

    def _add(
        self,
        instruction: Instruction,
        names: Mapping[Instruction, str],
        body: _FlatBody,
        waiting: list[Computation],
    ) -> str:
        self.count += 1
        if self.count > MAX_FLATTENED:
            message = f"the flattened program has more than {MAX_FLATTENED} instructions"
            raise HloError(message, instruction.span, "budget", "calls repeat computations")
        for called in instruction.called_computations:
            if declarations_of(instruction).is_control_flow:
                waiting.append(called)
            else:
                self.applied[called] = None
        operands = [names[operand] for operand in instruction.operands]
        if instruction.opcode == "bitcast":
            return _bitcast(instruction, operands[0], body)
        line, is_kept = _line(instruction, names), _is_kept(instruction)
        name = body.add(instruction.name, line, operands, is_kept)
        if instruction.opcode == "tuple":
            body.elements[name] = tuple(operands)
        return name


def _forwarded_name(
    instruction: Instruction, operands: Sequence[str], body: _FlatBody
) -> str | None:
    """Return the name of the value that an instruction forwards, if it only does that."""
    match instruction.opcode:
        case "async-update" | "async-done" | "copy-done":
            return operands[0]
        case "custom-call" if isinstance(instruction.op, ForwardingOp):
            return operands[0]
        case "get-tuple-element" if operands[0] in body.elements:
            return body.elements[operands[0]][int(instruction.attributes["index"].normal)]
    return None


def _is_kept(instruction: Instruction) -> bool:
    """Return True if an instruction has an effect; computations of branches may have one."""
    return declarations_of(instruction).is_control_flow or has_own_effect(instruction)


def _bitcast(instruction: Instruction, value: str, body: _FlatBody) -> str:
    """Add the instructions that replace a bitcast and return the name of the last one."""
    source, target = instruction.operands[0].shape, instruction.shape
    assert isinstance(source, Shape)
    assert isinstance(target, Shape)
    if reason := why_no_logical_bitcast(source, target):
        message = f"bitcast `{instruction.name}` cannot be written without layouts"
        raise HloError(message, instruction.span, "partition", reason)
    return write_bitcast(instruction.name, value, source, target, body.add)


def _line(instruction: Instruction, names: Mapping[Instruction, str]) -> str:
    """Return the text of an instruction with other names of operands, without its name."""
    opcode, attributes = instruction.opcode, instruction.attributes
    keeps_layout = "operand_layout_constraints" in attributes
    shape = instruction.shape if keeps_layout else without_layouts(instruction.shape)
    if opcode == "copy-start":
        opcode, attributes = "copy", {}
        shape = without_layouts(instruction.operands[0].shape)
    literal = instruction.literal
    inside = ", ".join([f"%{names[operand]}" for operand in instruction.operands])
    written = inside if literal is None else literal.printed
    kept = {name: text for name, text in attributes.items() if name not in _DROPPED}
    return f"{shape} {opcode}({written}){attributes_text(kept)}"
