"""The call that a Mosaic kernel's module describes, in the records of `indexing.pallas.calls`.

The first function of a module is the body.  Its arguments are the program ids, the scalar-prefetch
operands, the inputs, the outputs and the scratch buffers.  Its attributes have the grid, and for
each input and output the function from the grid to its block.

Source: JAX ``jax/_src/pallas/mosaic/lowering.py``, ``lower_jaxpr_to_pipelined_module``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final, Literal

from hlo.shapes.element_type import ELEMENT_TYPES
from hlo.shapes.shape import Shape
from indexing.kernels.ir import MlirFunction, MlirModule, RawAttribute
from indexing.kernels.mosaic.body import Held, NotReadError
from indexing.kernels.mosaic.body_ops import new_execution
from indexing.kernels.mosaic.views import MemoryView
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.ops.integer_rules import Cases
from indexing.pallas.calls import (
    BlockDimension,
    BlockSpecification,
    GridDimension,
    KernelCall,
    ScalarOperand,
)
from indexing.pallas.index_arithmetic import join_cases
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.domain import narrow
from simplifier.linear import Expr, as_expr
from simplifier.unknown import Unknown

MAX_SIZE: Final = 1 << 31
"""The largest size of a dimension of a grid, less than which each program id is."""
MAX_CASES: Final = 8
"""Limit on the cases of the index of a block."""

_MARKS: Final = frozenset(("window_params", "iteration_bounds", "scalar_prefetch"))
_INTEGERS: Final = re.compile(r"-?\d+")
_SCALAR_RANGE: Final = (-(1 << 31), (1 << 31) - 1)


@dataclass(frozen=True, slots=True)
class IndexCase:
    """The index of a block at the steps of the grid where conditions hold."""

    index: tuple[Expr, ...]
    conditions: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class CompiledCall:
    """A kernel with its blocks, and the number of the first argument of each kind.

    Attributes:
        call: the grid and the blocks; operands without a window have the whole array as a block.
            The size of a dimension that is computed at run time is the largest one.
        cases: for each operand of `call`, the index of its block by cases.
        body: the module.
        dynamic_count: the number of sizes of the grid that are computed at run time: the first
            operands of the custom call.
        program_ids: the program ids; 0 in dimensions of size 1.
        grid: the variables of the grid.
        has_window: for each operand of `call`, whether the pipeline moves its blocks.
        reads_scalars: for each scalar-prefetch operand, whether a block depends on it.
    """

    call: KernelCall
    cases: tuple[tuple[IndexCase, ...] | Unknown, ...]
    body: MlirModule
    dynamic_count: int
    program_ids: tuple[Expr, ...]
    grid: tuple[Variable, ...]
    has_window: tuple[bool, ...]
    reads_scalars: tuple[bool, ...]

    @property
    def first_operand(self) -> int:
        """The number of the body's argument that is the first input."""
        return len(self.program_ids) + len(self.reads_scalars)

    def arguments(self) -> list[Held]:
        """Return the arguments of the body."""
        function = main_function(self.body)
        ids: list[Held] = [[(each, ())] for each in self.program_ids]
        rest = list(enumerate(function.arguments))[len(ids) :]
        return [*ids, *[MemoryView.of_argument(k, v.type) for k, v in rest]]


def main_function(module: MlirModule) -> MlirFunction:
    """Return the body of a kernel.

    Raises:
        NotReadError: the module has no function, or the kernel is that of a SparseCore.
    """
    functions = list(module.functions.values())
    if not functions:
        raise NotReadError("the module of the kernel has no function")
    marked = [each for each in functions if not _MARKS.isdisjoint(each.attributes)]
    main = marked[0] if marked else functions[0]
    core = str(getattr(main.attributes.get("tpu.core_type"), "text", "tc"))
    if not core.endswith("tc>") and core != "tc":
        raise NotReadError(f"several cores of the type {core} run the kernel")
    return main


def compiled_call(
    module: MlirModule, operands: Sequence[Shape], outputs: Sequence[Shape]
) -> CompiledCall:
    """Return the call of a kernel on arrays.

    Args:
        operands, outputs: the shapes of the operands and of the results of the custom call.
    Raises:
        NotReadError: the module and the custom call do not fit, or the grid is not static.
    """
    return _CompiledReader(module, operands, outputs).call()


class _CompiledReader:
    """The reader of one module."""

    def __init__(
        self, module: MlirModule, operands: Sequence[Shape], outputs: Sequence[Shape]
    ) -> None:
        self.module, self.function = module, main_function(module)
        self.attributes: Mapping[str, Any] = self.function.attributes
        sizes: tuple[int, ...] = tuple(self.attributes.get("iteration_bounds", ()))
        self.dynamic_count = sum(size < 0 for size in sizes)
        self.sizes = [size if size >= 0 else MAX_SIZE for size in sizes]
        self.arrays = (*operands, *outputs)[self.dynamic_count :]
        self.output_count = len(outputs)
        self.scalar_count = int(self.attributes.get("scalar_prefetch", 0))
        self.runtime: dict[tuple[int, tuple[Expr, ...]], RuntimeVariable] = {}

    def call(self) -> CompiledCall:
        if 0 in self.sizes:
            raise NotReadError("the grid has no steps")
        variables = [Variable(f"d{k}", 0, size - 1) for k, size in enumerate(self.sizes)]
        ids = tuple([v.as_expr() if v.upper else as_expr(0) for v in variables])
        windows = self._windows(len(ids))
        operands = [self._operand(k, each, ids) for k, each in enumerate(windows)]
        read = {number for number, _ in self.runtime}
        call = KernelCall(
            str(self.attributes.get("sym_name", "")), "tpu", self._grid(), (), frozenset(), (),
            tuple([spec for spec, _ in operands]), scalars=tuple([
                ScalarOperand(f"s{k}", tuple(map(as_expr, self.arrays[k].dims)))
                for k in range(self.scalar_count)
            ]),
        )  # fmt: skip
        return CompiledCall(
            call=call,
            cases=tuple([cases for _, cases in operands]),
            body=self.module,
            dynamic_count=self.dynamic_count,
            program_ids=ids,
            grid=tuple(variables),
            has_window=tuple(["transform_indices" in each for each in windows]),
            reads_scalars=tuple([k in read for k in range(self.scalar_count)]),
        )

    def _windows(self, rank: int) -> list[Mapping[str, Any]]:
        """Return the parameters of the blocks of all inputs and outputs."""
        count = len(self.arrays) - self.scalar_count
        scratch = int(self.attributes.get("scratch_operands", 0))
        stated = self.attributes.get("window_params")
        windows = list(stated) if stated is not None else [{}] * count
        arguments = len(self.function.arguments)
        if count < self.output_count or len(windows) != count:
            raise NotReadError(
                f"the kernel has {len(windows)} inputs and outputs, the custom call {count}"
            )
        if arguments != rank + len(self.arrays) + scratch:
            raise NotReadError(f"the kernel has {arguments} arguments, which do not fit the call")
        return windows

    def _grid(self) -> tuple[GridDimension, ...]:
        stated = [str(each) for each in self.attributes.get("dimension_semantics", ())]
        if any("core_parallel" in each for each in stated):
            raise NotReadError("several cores run steps of the grid that share memory")
        semantics: list[Literal["parallel", "arbitrary"]] = [
            "parallel" if "parallel" in each else "arbitrary" for each in stated
        ]
        semantics += ["arbitrary"] * (len(self.sizes) - len(semantics))
        return tuple([
            GridDimension(f"d{k}", as_expr(size), word)
            for k, (size, word) in enumerate(zip(self.sizes, semantics, strict=True))
        ])  # fmt: skip

    def _operand(
        self, number: int, window: Mapping[str, Any], ids: tuple[Expr, ...]
    ) -> tuple[BlockSpecification, tuple[IndexCase, ...] | Unknown]:
        """Return the blocks of an input or output, and their index by cases."""
        array = self.arrays[self.scalar_count + number]
        is_output = number >= len(self.arrays) - self.scalar_count - self.output_count
        held = self.function.arguments[len(ids) + self.scalar_count + number].type
        has_window = "transform_indices" in window
        cases: tuple[IndexCase, ...] | Unknown = (IndexCase((as_expr(0),) * array.rank, ()),)
        block = tuple([BlockDimension("element", size) for size in array.dims])
        index: tuple[Expr, ...] | Unknown = (as_expr(0),) * array.rank
        if has_window:
            block = _block(window)
            results = self._index(str(window["transform_indices"]), ids)
            cases = results if isinstance(results, Unknown) else self._cases(results)
            index = (
                results if isinstance(results, Unknown) else tuple([join_cases(r) for r in results])
            )
        sizes = [each.size for each in block]
        if held.kind != "memref" or list(held.dims) != sizes or array.rank != len(sizes):
            raise NotReadError(f"{array} has no blocks of type {held}")
        if not isinstance(index, Unknown) and len(index) != array.rank:
            raise NotReadError(f"a block of {array} has {len(index)} indices")
        spec = BlockSpecification(
            f"operand {number}", "", is_output, tuple(map(as_expr, array.dims)),
            array.element_type, ELEMENT_TYPES[array.element_type].bits, block, index,
            () if isinstance(index, Unknown) else self._needed_scalars(index),
            "vmem" if has_window else "none",
        )  # fmt: skip
        return spec, cases

    def _index(self, name: str, ids: tuple[Expr, ...]) -> list[Cases] | Unknown:
        """Return the results of a function from the grid to the index of a block."""
        function = self.module.functions.get(name)
        if function is None:
            raise NotReadError(f"the module has no function @{name}")
        count = len(ids)
        scalars = list(enumerate(function.arguments))[count:]
        arguments: list[Held] = [[(each, ())] for each in ids]
        arguments += [MemoryView.of_argument(k - count, v.type) for k, v in scalars]
        execution = new_execution(self.module, self._scalar)
        results: list[Cases] = []
        for held in execution.function(name, arguments):
            if isinstance(held, Unknown | MemoryView):
                reason = held.reason if isinstance(held, Unknown) else "it is a memref"
                return Unknown(f"the block of @{name} has no formula: {reason}")
            results.append(held)
        return results

    def _cases(self, results: Sequence[Cases]) -> tuple[IndexCase, ...]:
        """Return an index by cases that exclude each other; by one with minima if they are many.

        The scalars that it reads are within their arrays.
        """
        if prod(map(len, results)) > MAX_CASES:
            results = [[(join_cases(r), ())] for r in results]
        cases: list[IndexCase] = []
        for chosen in product(*results):
            index = tuple([value for value, _ in chosen])
            where = [c for _, conditions in chosen for c in conditions]
            read = self._needed_scalars([*index, *[c.expr for c in where]])
            conditions = tuple(dict.fromkeys((*where, *self._within(read))))
            if not narrow((), conditions).is_known_empty:
                cases.append(IndexCase(index, conditions))
        return tuple(cases)

    def _within(self, read: Sequence[RuntimeVariable]) -> Iterator[Constraint]:
        """Yield the constraints that scalars are elements of their arrays."""
        for rt in read:
            assert isinstance(rt.source, int)
            array = self.arrays[rt.source - self.dynamic_count]
            for expr, size in zip(rt.index, array.dims, strict=True):
                yield Constraint(expr, 0, size - 1)

    def _scalar(self, number: int, index: tuple[Expr, ...]) -> Cases | Unknown:
        """Return an element of a scalar-prefetch operand."""
        if number >= self.scalar_count:
            return Unknown("it reads no scalar-prefetch operand")
        key = number, index
        if key not in self.runtime:
            variable = Variable(f"rt{len(self.runtime)}", *_SCALAR_RANGE)
            self.runtime[key] = RuntimeVariable(variable, self.dynamic_count + number, index)
        return [(self.runtime[key].expr, ())]

    def _needed_scalars(self, index: Sequence[Expr]) -> tuple[RuntimeVariable, ...]:
        """Return the scalars in expressions and, recursively, in their indices."""
        needed = {v for e in index for v in e.variables()}
        kept: list[RuntimeVariable] = []
        for rt in reversed(self.runtime.values()):
            if rt.variable in needed:
                kept.append(rt)
                needed |= {v for e in rt.index for v in e.variables()}
        return tuple(reversed(kept))


def _block(window: Mapping[str, Any]) -> tuple[BlockDimension, ...]:
    """Return the dimensions of a block: they count blocks, or elements of the padded array."""
    sizes = [int(size) for size in window["window_bounds"]]
    kind = window.get("window_kind")
    if kind is None:
        return tuple([BlockDimension("blocked", size) for size in sizes])
    text = kind.text if isinstance(kind, RawAttribute) else str(kind)
    padding = [int(n) for n in _INTEGERS.findall(text)]
    if "element_window" not in text or len(padding) != 2 * len(sizes):
        raise NotReadError(f"a block of the kind {text} has no place")
    low, high = padding[: len(sizes)], padding[len(sizes) :]
    return tuple([
        BlockDimension("element", size, pair)
        for size, pair in zip(sizes, zip(low, high, strict=True), strict=True)
    ])  # fmt: skip
