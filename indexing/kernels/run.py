"""One execution of a kernel on symbolic points, with the formulas of its instruction."""

from __future__ import annotations

import math
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
from indexing.kernels.accesses import KernelBuffer
from indexing.kernels.attributes import element_name
from indexing.kernels.control import HANDLERS, merge
from indexing.kernels.domains import NotHandled
from indexing.kernels.index_ops import of_index
from indexing.kernels.ir import MlirFunction, MlirModule, MlirType, RawAttribute
from indexing.kernels.lanes import LANE_HANDLERS
from indexing.kernels.memory_ops import MEMORY_HANDLERS
from indexing.kernels.scalars import with_sign
from indexing.kernels.shared_tiles import tile_element
from indexing.kernels.symbolic import Execution, Held
from indexing.kernels.tiled_ops import TILE_HANDLERS
from indexing.kernels.vector_ops import VECTOR_HANDLERS
from indexing.maps.indexing_map import dims
from simplifier.linear import Expr, as_expr

_TILES: Final = re.compile(r"tile_count : (\d+)")
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
            raise NotHandled("an output that is not an array")
        return cls(elements, frame, tuple(arrays), tuple(outputs), tuple(written))

    def read(self, number: int, index: Sequence[Expr]) -> Formula:
        """Return an element of an operand, by its index, or by its place in memory."""
        shape, table = self.inputs[number], self.elements.table
        index = logical_index(shape, index)
        head = "parameter", number, ()
        return table.read(table.array("symbol", head, shape.element_type, shape.dims), index)

    def element(self, output: int, index: Sequence[Expr]) -> Formula:
        """Return the formula of an element of an output, by its index or place in memory."""
        array, index = self.outputs[output], logical_index(self.shapes[output], index)
        assert array.shape is not None
        body = self.elements.body(array, self.frame)
        values = dict(zip(dims(array.shape), index, strict=True))
        return self.elements.algebra.rewriting(values)(body)


@dataclass(frozen=True, slots=True)
class KernelRun:
    """The accesses of a kernel at each of its points.

    Attributes:
        arguments: the buffers of the entry's arguments.
        results: the buffer that each result of the entry is.
    """

    program: Program
    execution: Execution
    arguments: tuple[KernelBuffer, ...]
    results: tuple[KernelBuffer, ...]


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is launched, from the thunk sequence.

    Attributes:
        grid: the blocks in each dimension.
        threads: the threads of a block in each dimension.
        shared_bytes: the bytes of dynamic shared memory; those of static tiles do not count.

    >>> import indexing
    >>> (kernel,) = indexing.kernels("examples/kernels/transpose_2d")
    >>> kernel.launch.grid, kernel.launch.threads, kernel.launch.shared_bytes
    ((6, 1, 1), (128, 1, 1), 0)
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
    if entry is None:
        raise NotHandled("a module that marks no entry")
    is_tiled = entry.op_name == "xtile.entry_func"
    arguments = _buffers(entry, is_tiled)
    _check_types(arguments, program)

    def read_argument(buffer: KernelBuffer, index: tuple[Expr, ...]) -> Formula:
        if buffer.number < len(program.inputs):
            return program.read(buffer.number, index)
        alias = [b for b in arguments[: len(program.inputs)] if b.memory == buffer.memory]
        if not alias:
            raise NotHandled("an element of an output is read")
        return program.read(alias[0].number, index)

    handlers = {**HANDLERS, **MEMORY_HANDLERS, **TILE_HANDLERS, **LANE_HANDLERS, **VECTOR_HANDLERS}
    execution = Execution(
        module, program.elements.algebra, read_argument, tile_element, index_width(module),
        handlers, merge, of_index, () if launch is None else launch.threads,
        () if launch is None else launch.grid,
    )  # fmt: skip
    if is_tiled:
        execution.run(entry, [*arguments, _program_id(execution, entry, launch)])
        results: list[Held] = list(arguments[len(program.inputs) :])
    else:
        results = execution.run(entry, [*arguments, *_blocks(execution, entry)])
    buffers = [held for held in results if isinstance(held, KernelBuffer)]
    if len(buffers) != len(program.outputs):
        raise NotHandled(f"{len(buffers)} buffers for {len(program.outputs)} outputs")
    for number, (buffer, shape) in enumerate(zip(buffers, program.shapes, strict=True)):
        if not fits_shape(buffer.type, shape):
            raise NotHandled(f"result {number} is {buffer.type}, the output {shape}")
    return KernelRun(program, execution, arguments, tuple(buffers))


def tile_count(entry: MlirFunction, launch: Launch | None) -> int:
    """Return the number of tiles that a tiled kernel computes.

    Raises:
        NotHandled: neither the text nor a launch states it.
    """
    matched = _TILES.search(str(entry.attributes.get("xtile.tiling_info", "")))
    if matched is not None:
        return int(matched[1])
    if launch is None:
        raise NotHandled("a tiled kernel without the number of its tiles")
    return math.prod(launch.grid)


def _program_id(execution: Execution, entry: MlirFunction, launch: Launch | None) -> Expr:
    """Return the number of the tile that a program computes, which stands for the block."""
    if entry.attributes.get("num_opaque_args", 0):
        raise NotHandled("a tiled kernel with opaque arguments")
    return execution.point("bl", "x", tile_count(entry, launch))


def _blocks(execution: Execution, entry: MlirFunction) -> list[Held]:
    """Return the position of the block, where the entry has it as its last arguments."""
    given = zip(entry.arguments, entry.argument_attributes, strict=True)
    indices = [attributes for value, attributes in given if value.type.element == "index"]
    positions: list[Held] = []
    for dimension, attributes in zip("xyz", indices, strict=False):
        place = "xyz".index(dimension)
        known = execution.launched_blocks[place : place + 1]
        low, high = (0, known[0] - 1) if known else attributes.get("xla.range", (None, 0))
        if low != 0:
            raise NotHandled("a position of the block without `xla.range`")
        positions.append(execution.point("bl", dimension, high + 1))
    return positions


def _buffers(entry: MlirFunction, is_tiled: bool) -> tuple[KernelBuffer, ...]:
    given = list(zip(entry.arguments, entry.argument_attributes, strict=True))
    if is_tiled:
        if not given or given[-1][0].type.element != "index":
            raise NotHandled("a tiled kernel without the number of its program")
        given = given[:-1]
    while given and given[-1][0].type.element == "index":
        given = given[:-1]  # the position of the block
    return tuple(
        [
            KernelBuffer(
                number,
                value.type,
                attributes.get("xla.slice_index", ("argument", number)),
                attributes.get("llvm.align", 1),
            )
            for number, (value, attributes) in enumerate(given)
        ]
    )


def index_width(module: MlirModule) -> int:
    """Return the bits of an index.

    Raises:
        NotHandled: the module does not state it.
    """
    spec = module.attributes.get("dlti.dl_spec")
    matched = _WIDTH.search(spec.text) if isinstance(spec, RawAttribute) else None
    if matched is None and (module.entry is None or module.entry.op_name == "func.func"):
        raise NotHandled("a module without the width of indices")
    return 32 if matched is None else int(matched[1])


def _check_types(arguments: Sequence[KernelBuffer], program: Program) -> None:
    """Check that arguments have the shapes, layouts and types of operands and outputs."""
    shapes = [*program.inputs, *program.shapes]
    if len(shapes) != len(arguments):
        raise NotHandled(f"{len(arguments)} arguments for {len(shapes)} operands and outputs")
    for buffer, shape in zip(arguments, shapes, strict=True):
        if not fits_shape(buffer.type, shape):
            raise NotHandled(f"argument {buffer.number} is {buffer.type}, the array {shape}")


def fits_shape(held: MlirType, shape: Shape) -> bool:
    """Return True if a tensor has the sizes, the layout and the width of a shape.

    A tensor of rank 1 may be the memory of an array, whatever its layout is.
    """
    element = element_name(held.element)
    name = "s8" if shape.element_type == "pred" else with_sign(shape.element_type, "s")
    if element != name:
        return False
    if held.rank == 1 != shape.rank:
        return held.dims == (shape.size,)
    return held.dims == shape.dims and held.layout == shape.layout_or_default.minor_to_major


def logical_index(shape: Shape, index: Sequence[Expr]) -> tuple[Expr, ...]:
    """Return the index of an element, given that or the number of its place in memory.

    >>> from simplifier import Variable
    >>> [str(e) for e in logical_index(Shape("f32", (4, 8)), [Variable("i", 0, 31).as_expr()])]
    ['i floordiv 8', 'i mod 8']
    """
    if len(index) == shape.rank:
        return tuple(index)
    (number,) = index
    places = [as_expr(0)] * shape.rank
    for dimension in shape.layout_or_default.minor_to_major:
        size = shape.dims[dimension]
        places[dimension] = number % size if size > 1 else as_expr(0)
        number = number // size if size > 1 else number
    return tuple(places)
