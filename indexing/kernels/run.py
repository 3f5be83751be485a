"""One execution of a kernel on symbolic points, with the formulas of its instruction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, leaves
from indexing.equivalence.values.formulas.applications import Frame
from indexing.equivalence.values.formulas.elements import Elements
from indexing.equivalence.values.formulas.numbering import NumberedArray, Numbering
from indexing.equivalence.values.terms.terms import Formula
from indexing.kernels.attributes import element_name
from indexing.kernels.control import HANDLERS, merge
from indexing.kernels.domains import NotHandled
from indexing.kernels.ir import MlirFunction, MlirModule, MlirType, RawAttribute
from indexing.kernels.scalars import with_sign
from indexing.kernels.shared_tiles import tile_element
from indexing.kernels.symbolic import Buffer, Execution
from indexing.maps.indexing_map import dims
from simplifier.linear import Expr

_WIDTH: Final = re.compile(r"index = (\d+)")


@dataclass(frozen=True, slots=True)
class Program:
    """The formulas of an instruction: an element of each output, over its dimensions.

    Attributes:
        inputs: the shape of each operand.
        outputs: the array of each output leaf.
        shapes: its shape.
    """

    elements: Elements
    frame: Frame
    inputs: tuple[Shape, ...]
    outputs: tuple[NumberedArray, ...]
    shapes: tuple[Shape, ...]

    @classmethod
    def of(cls, fusion: Instruction) -> Program:
        """Return the formulas of a fusion.

        Raises:
            NotHandled: the instruction is no fusion of arrays.
        """
        if not fusion.called_computations:
            raise NotHandled(f"`{fusion.opcode}` outside of a fusion")
        computation = fusion.called_computations[0]
        shapes = [operand.shape for operand in fusion.operands]
        arrays = [shape for shape in shapes if isinstance(shape, Shape)]
        if len(arrays) != len(shapes):
            raise NotHandled("an operand that is a tuple")
        numbering = Numbering()
        outputs = numbering.outputs(computation)
        elements = Elements(numbering)
        frame = Frame(elements.symbols(outputs, "parameter"))
        written = [shape for _, shape in leaves(fusion.shape) if isinstance(shape, Shape)]
        if [a.shape.dims for a in outputs if a.shape is not None] != [s.dims for s in written]:
            raise NotHandled("an output that is no array")
        return cls(elements, frame, tuple(arrays), tuple(outputs), tuple(written))

    def read(self, number: int, index: Sequence[Expr]) -> Formula:
        """Return an element of an operand."""
        shape, table = self.inputs[number], self.elements.table
        head = "parameter", number, ()
        return table.read(table.array("symbol", head, shape.element_type, shape.dims), index)

    def element(self, output: int, index: Sequence[Expr]) -> Formula:
        """Return the formula of an element of an output."""
        array = self.outputs[output]
        assert array.shape is not None
        body = self.elements.body(array, self.frame)
        values = dict(zip(dims(array.shape), index, strict=True))
        return self.elements.algebra.rewriting(values)(body)


@dataclass(frozen=True, slots=True)
class KernelRun:
    """What a kernel does at each of its points.

    Attributes:
        arguments: the buffers of the entry's arguments.
        results: the buffer that each result of the entry is.
    """

    program: Program
    execution: Execution
    arguments: tuple[Buffer, ...]
    results: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is launched, from the thunk sequence.

    Attributes:
        grid: the blocks in each dimension.
        threads: the threads of a block in each dimension.
        shared_bytes: the bytes of dynamic shared memory; those of static tiles do not count.
    """

    grid: tuple[int, ...]
    threads: tuple[int, ...]
    shared_bytes: int


def run_kernel(module: MlirModule, program: Program, launch: Launch | None) -> KernelRun:
    """Execute a kernel.

    Args:
        launch: the launch; by default, the one that the text states.
    Raises:
        NotHandled: the kernel has an op or a form that is not covered.
    """
    entry = module.entry
    if entry is None or entry.op_name != "func.func":
        raise NotHandled("a kernel of tiles")
    arguments = _buffers(entry)
    _check_types(arguments, program)

    def read_argument(buffer: Buffer, index: tuple[Expr, ...]) -> Formula:
        if buffer.number < len(program.inputs):
            return program.read(buffer.number, index)
        alias = [b for b in arguments[: len(program.inputs)] if b.memory == buffer.memory]
        if not alias:
            raise NotHandled("an element of an output is read")
        return program.read(alias[0].number, index)

    execution = Execution(
        module, program.elements.algebra, read_argument, tile_element, _index_width(module),
        HANDLERS, merge, () if launch is None else launch.threads,
        () if launch is None else launch.grid,
    )  # fmt: skip
    results = execution.run(entry, list(arguments))
    buffers = [held for held in results if isinstance(held, Buffer)]
    if len(buffers) != len(program.outputs):
        raise NotHandled(f"{len(buffers)} buffers for {len(program.outputs)} outputs")
    return KernelRun(program, execution, arguments, tuple(buffers))


def _buffers(entry: MlirFunction) -> tuple[Buffer, ...]:
    given = zip(entry.arguments, entry.argument_attributes, strict=True)
    return tuple(
        [
            Buffer(number, value.type, attributes.get("xla.slice_index", ("argument", number)))
            for number, (value, attributes) in enumerate(given)
        ]
    )


def _index_width(module: MlirModule) -> int:
    spec = module.attributes.get("dlti.dl_spec")
    matched = _WIDTH.search(spec.text) if isinstance(spec, RawAttribute) else None
    if matched is None:
        raise NotHandled("a module without the width of indices")
    return int(matched[1])


def _check_types(arguments: Sequence[Buffer], program: Program) -> None:
    """Check that arguments have the shapes, layouts and types of operands and outputs."""
    shapes = [*program.inputs, *program.shapes]
    if len(shapes) != len(arguments):
        raise NotHandled(f"{len(arguments)} arguments for {len(shapes)} operands and outputs")
    for buffer, shape in zip(arguments, shapes, strict=True):
        if not fits_shape(buffer.type, shape):
            raise NotHandled(f"argument {buffer.number} is {buffer.type}, the array {shape}")


def fits_shape(held: MlirType, shape: Shape) -> bool:
    """Return True if a tensor has the sizes, the layout and the width of a shape."""
    element = element_name(held.element)
    name = "s8" if shape.element_type == "pred" else with_sign(shape.element_type, "s")
    layout = shape.layout
    order = None if layout is None else layout.minor_to_major
    known = tuple(reversed(range(shape.rank))) if order is None else tuple(order)
    return element == name and held.dims == shape.dims and held.layout == known
