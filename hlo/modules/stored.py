"""Pickles of modules, and of values that refer to one: a module is stored as its text.

An unpickled value refers to the unpickled module, of which one pickle has a single one. Modules are
immutable, so a copy of a module is the module itself.

>>> import pickle
>>> from hlo.formats.parser import parse
>>> module = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
>>> again, root = pickle.loads(pickle.dumps((module, module.entry.root)))
>>> again == module, root is again.entry.root
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hlo import methods
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import AnyShape

Stored: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments, as `object.__reduce__` returns them."""


def stored_module(module: object) -> Stored:
    """Return the text of a module, and the shapes that `infer_shapes` has added to it."""
    assert isinstance(module, Module)
    shapes: tuple[AnyShape | None, ...] | None = None
    if module.has_inferred_shapes:
        shapes = tuple([instruction.declared_shape for instruction in module.instructions])
    return methods.restored_module, (module.source, shapes)


def stored_computation(computation: object) -> Stored:
    """Return the module of a computation and its name."""
    assert isinstance(computation, Computation)
    return _computation, (computation.module, computation.name)


def stored_instruction(instruction: object) -> Stored:
    """Return the computation of an instruction and its position there."""
    assert isinstance(instruction, Instruction)
    return _instruction, (instruction.computation, instruction.index)


def _computation(module: Module, name: str) -> Computation:
    return module.computations[name]


def _instruction(computation: Computation, index: int) -> Instruction:
    return computation.instructions[index]
