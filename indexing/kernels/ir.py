"""MLIR as a tree of ops: what the reader makes of the text of a kernel.

A `MlirModule` has functions, a `MlirFunction` has a `MlirRegion`, a region has blocks (most have
one `MlirBlock`), a block has `MlirOp` objects.  An op refers to the `MlirValue` objects that it
uses; a value is the result of an op or the argument of a block, and is compared by identity.

>>> from indexing.kernels.reader import read_module
>>> module = read_module('''
... module {
...   func.func @twice(%a: tensor<4xf32>, %i: index) -> f32 {
...     %x = tensor.extract %a[%i] : tensor<4xf32>
...     %y = arith.addf %x, %x : f32
...     return %y : f32
...   }
... }''')
>>> extract, add, end = module.function("twice").ops
>>> extract.name, [value.name for value in extract.group("indices")], str(extract.result.type)
('tensor.extract', ['i'], 'f32')
>>> add.operands[0] is extract.result
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hlo.text.source import Source, Span


@dataclass(frozen=True, slots=True)
class MlirType:
    """A type.

    Attributes:
        kind: ``scalar``, ``tensor``, ``memref``, ``vector`` or ``other``.
        element: the element type, such as ``f32``, ``i8``, ``index`` or ``complex<f32>``; of a
            scalar, itself.  Integers are signless: their sign is a matter of the ops.
        dims: the sizes; -1 for sizes that are not static.
        minor_to_major: the dimensions in the order of memory, the fastest first, if the type
            states them; else the last dimension is the fastest.
        text: the type as it is written.
    """

    kind: str
    element: str
    dims: tuple[int, ...] = ()
    minor_to_major: tuple[int, ...] | None = None
    text: str = field(default="", compare=False)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def is_shaped(self) -> bool:
        """True for tensors, memrefs and vectors."""
        return self.kind in ("tensor", "memref", "vector")

    @property
    def layout(self) -> tuple[int, ...]:
        """The dimensions in the order of memory, the fastest first."""
        if self.minor_to_major is not None:
            return self.minor_to_major
        return tuple(reversed(range(self.rank)))

    def scalar(self) -> MlirType:
        """Return the type of an element."""
        return MlirType("scalar", self.element, text=self.element)

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False, slots=True)
class MlirValue:
    """A value: the result of an op or an argument of a block.  Compared by identity.

    Attributes:
        name: the name without ``%``; results of one op with one name are ``0#0``, ``0#1``.
        type: the type; of kind ``other`` where an unknown op does not show it.
    """

    name: str
    type: MlirType

    def __repr__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True, eq=False, slots=True)
class MlirBlock:
    """A list of ops, the last of which is the terminator.

    Attributes:
        label: the name after ``^``; empty for a block that has none.
        groups: the arguments by role; those of an ``xla.loop`` are ``symbols``, ``results`` and
            ``carried``.
    """

    arguments: tuple[MlirValue, ...]
    ops: tuple[MlirOp, ...]
    label: str = ""
    groups: Mapping[str, tuple[MlirValue, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class MlirRegion:
    """The blocks of a region."""

    blocks: tuple[MlirBlock, ...]

    @property
    def block(self) -> MlirBlock:
        """The first block; the only one before control flow is lowered."""
        return self.blocks[0]


@dataclass(frozen=True, eq=False, slots=True)
class MlirOp:
    """An operation.

    Attributes:
        name: the name with its dialect, such as ``tensor.extract``.
        span: the text, from the results to the end of the first line.
        results: the values that it defines.
        operands: the values that it uses, in the order of the text.
        groups: the operands by role, such as ``indices``; `indexing.kernels.forms` lists the
            roles of each op.
        attributes: integers, strings, tuples, dictionaries, `IndexingMap`, arrays of NumPy (the
            value of a constant), or `RawAttribute` where the reader knows no better.
        regions: the regions.
        is_known: False for an op whose syntax the reader does not know: its operands and regions
            are read, but not their roles.
    """

    name: str
    span: Span
    results: tuple[MlirValue, ...]
    operands: tuple[MlirValue, ...]
    groups: Mapping[str, tuple[MlirValue, ...]]
    attributes: Mapping[str, Any]
    regions: tuple[MlirRegion, ...] = ()
    is_known: bool = True

    def group(self, role: str) -> tuple[MlirValue, ...]:
        """Return the operands of a role; none if it has none."""
        return self.groups.get(role, ())

    def operand(self, role: str) -> MlirValue:
        """Return the only operand of a role."""
        (value,) = self.groups[role]
        return value

    @property
    def result(self) -> MlirValue:
        """The only result."""
        (value,) = self.results
        return value

    def __repr__(self) -> str:
        return f"MlirOp({self.name!r}, line {self.span.line})"


@dataclass(frozen=True, slots=True)
class RawAttribute:
    """An attribute as text, of a kind that the reader does not interpret."""

    text: str


@dataclass(frozen=True, eq=False, slots=True)
class MlirFunction:
    """A function of a kernel's module.

    Attributes:
        op_name: ``func.func``, ``xtile.entry_func``, ``llvm.func``, or as in the text.
        argument_attributes: for each argument its attributes, such as ``xla.range``.
        body: None for a declaration.
    """

    name: str
    op_name: str
    span: Span
    arguments: tuple[MlirValue, ...]
    argument_attributes: tuple[Mapping[str, Any], ...]
    result_types: tuple[MlirType, ...]
    attributes: Mapping[str, Any]
    body: MlirRegion | None

    @property
    def ops(self) -> tuple[MlirOp, ...]:
        """The ops of the first block; none for a declaration."""
        return self.body.block.ops if self.body is not None else ()

    @property
    def is_entry(self) -> bool:
        """True for the function that the kernel runs."""
        return "xla.entry" in self.attributes or self.op_name == "xtile.entry_func"


@dataclass(frozen=True, eq=False, slots=True)
class MlirModule:
    """A module of MLIR: one stage of a kernel.

    Attributes:
        name: the symbol after ``module``; may be empty.
        functions: the functions by name, in the order of the text.
        others: the ops of the module that are no functions, such as ``llvm.mlir.global``.
    """

    source: Source
    name: str
    attributes: Mapping[str, Any]
    functions: Mapping[str, MlirFunction]
    others: tuple[MlirOp, ...] = ()

    def function(self, name: str) -> MlirFunction:
        """Return the function of this name."""
        return self.functions[name]

    @property
    def entry(self) -> MlirFunction | None:
        """The function that the kernel runs; None if the module marks none."""
        return next((f for f in self.functions.values() if f.is_entry), None)

    def walk(self) -> Iterator[MlirOp]:
        """Yield all ops, an op before the ops of its regions."""
        pending: list[MlirOp] = [*reversed(self.others)]
        for function in reversed(list(self.functions.values())):
            pending += reversed(_ops_of(function.body))
        while pending:
            op = pending.pop()
            yield op
            for region in reversed(op.regions):
                pending += reversed(_ops_of(region))


def _ops_of(region: MlirRegion | None) -> list[MlirOp]:
    return [op for block in region.blocks for op in block.ops] if region is not None else []
