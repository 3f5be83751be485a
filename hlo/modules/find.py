"""Search for instructions of a module: by name, opcode, metadata, and by what they read.

`hlo.modules.patterns` describes the patterns of names, opcodes and metadata.

>>> from hlo.formats.parser import parse
>>> module = parse('''ENTRY e {
...   wk = f32[4,4] parameter(0)  x = f32[4,4] parameter(1)
...   pair = (f32[4,4], f32[4,4]) tuple(wk, x)
...   w = f32[4,4] get-tuple-element(pair), index=0
...   y = f32[4,4] add(x, x)
...   ROOT d = f32[4,4] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
... }''')
>>> module.find("/^[wx]/"), module.readers("wk"), module.find(opcode="a*", reads="x")
((<parameter 'wk' of 'e'>, <parameter 'x' of 'e'>, <get-tuple-element 'w' of 'e'>), \
(<dot 'd' of 'e'>,), (<add 'y' of 'e'>,))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from hlo.modules.calls import callees_of
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.patterns import (
    Pattern,
    among,
    any_of,
    by_name,
    by_op_name,
    by_opcode,
    matching,
    name_pattern,
)
from hlo.ops.opcodes import OPCODES
from hlo.shapes.shape import AnyShape, TupleShape
from hlo.text.names import UnknownName

Path: TypeAlias = tuple[int, ...]

FORWARDING: Final = {"opt-barrier", "optimization-barrier", "domain", "add-dependency"}
"""Opcodes whose result is their operand 0."""

CALLING: Final = {"call", "while", "conditional"}
"""Opcodes that pass operands to computations, and return the results of these."""


# ---------------------------------------------------------------- search


def instructions_of(
    module: Module,
    name: str | None = None,
    *,
    opcode: str | None = None,
    reads: str | Instruction | None = None,
    op_name: str | None = None,
) -> tuple[Instruction, ...]:
    """Return the instructions that meet all conditions, in text order; see `Module.find`."""
    criteria = []
    if name is not None:
        pattern = name_pattern(name)
        _check_name(module, pattern)
        criteria.append(by_name(pattern))
    if opcode is not None:
        _check_opcode(module, opcode)
        criteria.append(by_opcode(Pattern(opcode)))
    if op_name is not None:
        criteria.append(by_op_name(Pattern(op_name)))
    if reads is not None:
        criteria.append(among(set(readers_of(module, reads))))
    return tuple(matching(module.computations.values(), criteria))


def _check_name(module: Module, pattern: Pattern) -> None:
    """Refuse the name, not the glob, of an instruction that the module does not have."""
    computations = module.computations.values()
    if pattern.is_name and not any(map(pattern.names_some_in, computations)):
        raise UnknownName(pattern.text, "instruction", known_names(module, pattern))


def _check_opcode(module: Module, opcode: str) -> None:
    """Refuse a word that is no opcode of HLO, nor of this module."""
    if Pattern(opcode).is_name and opcode not in OPCODES:
        own = {instruction.opcode for instruction in module.instructions}
        if opcode not in own:
            raise UnknownName(opcode, "opcode", sorted(OPCODES | own))


def instructions_named(module: Module, name: str) -> tuple[Instruction, ...]:
    """Return the instructions that a pattern names.

    A name that no instruction has may be the ``op_name`` of parameters: JAX writes the name of the
    argument there.

    Raises:
        UnknownName: there are none.
        ValueError: a regular expression is invalid.
    """
    pattern, computations = name_pattern(name), module.computations.values()
    instructions = matching(computations, [by_name(pattern)]) or matching(
        computations, [by_opcode(Pattern("parameter")), by_op_name(pattern)]
    )
    if not instructions:
        arguments = [parameter.source.op_name for parameter in module.entry.parameters]
        known = [*known_names(module, pattern), *filter(None, arguments)]
        raise UnknownName(name, "instruction", known)
    return tuple(instructions)


def known_names(module: Module, pattern: Pattern) -> Iterator[str]:
    """Yield the names of all instructions, in the form in which `pattern` names one.

    The form COMPUTATION/NAME, with another computation, suggests the instructions named NAME.
    """
    _, slash, last = pattern.text.rpartition("/")
    for computation in module.computations.values():
        if not slash:
            yield from computation.names
        elif last in computation.names:
            yield f"{computation.name}/{last}"


# ---------------------------------------------------------------- readers


def readers_of(module: Module, source: str | Instruction) -> tuple[Instruction, ...]:
    """Return the instructions that read the value of `source`; see `Module.readers`."""
    sources = instructions_named(module, source) if isinstance(source, str) else (source,)
    if isinstance(source, Instruction) and source.module is not module:
        raise ValueError(f"`{source.name}` is an instruction of another module")
    readers: set[Instruction] = set()
    pending: list[tuple[Instruction, Path]] = [(each, ()) for each in sources]
    reached = set(pending)
    while pending:
        value, path = pending.pop()
        for end in _uses(value, path):
            if isinstance(end, Instruction):
                readers.add(end)
            elif end not in reached:
                reached.add(end)
                pending.append(end)
    return tuple(matching(module.computations.values(), [among(readers)]))


def _uses(value: Instruction, path: Path) -> Iterator[Instruction | tuple[Instruction, Path]]:
    """Yield the readers of a value, and the instructions and paths that it is passed on to.

    Args:
        path: the part of the tuple `value` that is passed on; ``()`` is all of it.
    """
    for user in value.users:
        for number, operand in enumerate(user.operands):
            if operand is value:
                ends = _pass_on(user, number, path)
                yield from (user,) if ends is None else ends
    if value.is_root:
        for caller in _callers(value.module).get(value.computation, ()):
            yield caller, path
            if caller.opcode == "while":
                yield from _next_iteration(caller, path)


def _pass_on(
    user: Instruction, number: int, path: Path
) -> Iterable[tuple[Instruction, Path]] | None:
    """Return the values that are operand `number` of `user` unchanged; None if `user` reads it."""
    if user.opcode == "tuple":
        return [(user, (number, *path))]
    if user.opcode == "get-tuple-element":
        return [(user, path[1:])] if path[:1] in ((), (_index(user),)) else []
    if user.opcode in FORWARDING:
        return [(user, path)] if number == 0 else []
    if user.opcode == "while":
        return [(user, path), *_next_iteration(user, path)]
    if user.opcode == "call":
        return [end for c in user.called_computations for end in _parameter(c, number, path)]
    if user.opcode == "conditional" and number > 0:
        branches = user.called_computations[number - 1 : number]
        return [end for branch in branches for end in _parameter(branch, 0, path)]
    return None


def _index(element: Instruction) -> int | None:
    """Return the index of a ``get-tuple-element``; None if it is invalid."""
    index = element.attributes.get("index")
    return int(index.text) if index is not None and index.text.strip().isdecimal() else None


def _next_iteration(loop: Instruction, path: Path) -> Iterator[tuple[Instruction, Path]]:
    for computation in loop.called_computations:
        yield from _parameter(computation, 0, path)


def _parameter(
    computation: Computation, number: int, path: Path
) -> Iterator[tuple[Instruction, Path]]:
    """Yield a parameter with a path, if its shape has the path: others are of invalid calls."""
    if number < len(computation.parameters):
        parameter = computation.parameters[number]
        if parameter.declared_shape is not None and _has(parameter.declared_shape, path):
            yield parameter, path


def _has(shape: AnyShape, path: Path) -> bool:
    for index in path:
        if not isinstance(shape, TupleShape) or index >= len(shape.elements):
            return False
        shape = shape.elements[index]
    return True


def _callers(module: Module) -> dict[Computation, list[Instruction]]:
    """Return the instructions that return the result of each computation unchanged."""

    def find_callers() -> dict[Computation, list[Instruction]]:
        callers: dict[Computation, list[Instruction]] = {}
        calling = any_of([by_opcode(Pattern(opcode)) for opcode in sorted(CALLING)])
        for instruction in matching(module.computations.values(), [calling]):
            for attribute, called in callees_of(instruction).items():
                for each in called if attribute != "condition" else ():
                    callers.setdefault(each, []).append(instruction)
        return callers

    return module.memoised(_callers, find_callers)
