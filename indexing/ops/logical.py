"""Programs without layouts: the same values from logical shapes alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, NamedTuple, TypeAlias

from hlo.modules.checks import layout_fault
from hlo.shapes.layout import COMBINE
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, Shape, TupleShape
from indexing.ops.bitcast import is_tiled, tiles_cancel

AddLine: TypeAlias = Callable[[str, str, Sequence[str]], str]
"""Adds an instruction to a program: its name, its text after the name, and the names of its
operands; returns the name that it gets."""


def without_layouts(shape: AnyShape) -> AnyShape:
    """Return a shape without its layouts.

    >>> from hlo.shapes.shape import parse_shape
    >>> print(without_layouts(parse_shape("(f32[2,3]{0,1}, token[])")))
    (f32[2,3], token[])
    """
    match shape:
        case TupleShape(elements):
            return TupleShape(tuple([without_layouts(element) for element in elements]))
        case Shape():
            return shape.with_layout(None)
        case _:
            return shape


def why_no_logical_bitcast(source: Shape, target: Shape) -> str:
    """Return why a bitcast has no program on logical shapes; "" if it has one."""
    for shape in (source, target):
        if fault := layout_fault(shape):
            return fault
        layout = shape.layout_or_default
        if layout.dim_level_types or layout.physical_shape:
            return f"{shape} is sparse"
        if layout.padded_dimensions or any(COMBINE in tile for tile in layout.tiles):
            return f"the layout of {shape} has padded or combined dimensions"
    bits = [
        (shape.element_bits, ELEMENT_TYPES[shape.element_type].bits) for shape in (source, target)
    ]
    if bits[0][0] * bits[1][1] != bits[1][0] * bits[0][1]:
        return f"elements of {source} or {target} are packed"
    if (is_tiled(source) or is_tiled(target)) and bits[0][0] != bits[1][0]:
        return f"elements of {source} and {target} differ in size, and lie in tiles"
    return ""


def write_bitcast(name: str, value: str, source: Shape, target: Shape, add: AddLine) -> str:
    """Add ops on logical shapes with the value of a bitcast; return the name of the last one.

    Without tiles, they are a transpose to the order in memory, a reshape, and a transpose back.
    A tile pads dimensions with zeros, splits them, and moves the inner parts to the end.

    >>> from hlo.shapes.shape import parse_shape
    >>> def show(name, line, operands):
    ...     print(name, "=", line)
    ...     return name
    >>> last = write_bitcast("b", "p", parse_shape("f32[2,3]{0,1}"), parse_shape("f32[6]"), show)
    b.physical = f32[3,2] transpose(%p), dimensions={1,0}
    b = f32[6] reshape(%b.physical)

    Args:
        value: the name of the operand, without ``%``.
        source, target: the shapes of the operand and of the result, which has such a program.
    """
    is_reordered = not (is_tiled(source) or is_tiled(target)) or tiles_cancel(source, target)
    chain = (_between_orders if is_reordered else _through_memory)(source, target)
    return chain.write(name, value, add)


class _Op(NamedTuple):
    """One op of a chain.

    Attributes:
        role: what the op does, unless it is the last one.
        shape: the shape of its result.
        opcode: the opcode.
        attributes: the text of its attributes, after the operands.
    """

    role: str
    shape: Shape
    opcode: str
    attributes: str = ""


@dataclass(slots=True)
class _OpChain:
    """Ops on logical shapes, each of which takes the result of the one before.

    Attributes:
        shape: the shape of the last result.
    """

    shape: Shape
    ops: list[_Op] = field(default_factory=list)

    @property
    def sizes(self) -> list[int]:
        """The dimensions of the last result."""
        return list(self.shape.dims)

    def transpose(self, role: str, order: Sequence[int]) -> None:
        """Add a transpose, unless the order is that of the dimensions."""
        if list(order) != sorted(order):
            dims = [self.shape.dims[k] for k in order]
            self._add(role, self.shape.with_dims(dims), "transpose", f"dimensions={_braces(order)}")

    def reshape(self, role: str, sizes: Sequence[int]) -> None:
        """Add a reshape, unless the sizes are the same."""
        if list(sizes) != self.sizes:
            self._add(role, self.shape.with_dims(sizes), "reshape")

    def convert_bits(self, element_type: str, sizes: Sequence[int]) -> None:
        """Add a bitcast-convert, unless the element type is the same."""
        if element_type != self.shape.element_type:
            self._add("bits", Shape(element_type, tuple(sizes)), "bitcast-convert")

    def resize(self, sizes: Sequence[int]) -> None:
        """Pad each dimension with zeros at its end, or drop elements there."""
        least = list(map(min, sizes, self.shape.dims))
        if least != self.sizes:
            limits = ", ".join([f"[0:{n}]" for n in least])
            self._add("kept", self.shape.with_dims(least), "slice", f"slice={{{limits}}}")
        if list(sizes) != least:
            pads = "x".join([f"0_{n - m}" for n, m in zip(sizes, least, strict=True)])
            self._add("padded", self.shape.with_dims(sizes), "pad", f"padding={pads}")

    def _add(self, role: str, shape: Shape, opcode: str, attributes: str = "") -> None:
        self.ops.append(_Op(role, shape, opcode, attributes))
        self.shape = shape

    def write(self, name: str, value: str, add: AddLine) -> str:
        """Add the ops to a program; return the name of the last one."""
        if not self.ops:
            return add(name, f"{self.shape} copy(%{value})", [value])
        roles = Counter[str]()
        for number, op in enumerate(self.ops, start=1):
            roles[op.role] += 1
            count = f".{roles[op.role]}" if roles[op.role] > 1 else ""
            own = name if number == len(self.ops) else f"{name}.{op.role}{count}"
            operands = [value]
            if op.opcode == "pad":
                zero = _ZEROS.get(ELEMENT_TYPES[op.shape.element_type].kind, "0")
                line = f"{op.shape.element_type}[] constant({zero})"
                operands.append(add(f"{name}.zero{count}", line, []))
            rest = f", {op.attributes}" if op.attributes else ""
            inside = ", ".join([f"%{each}" for each in operands])
            value = add(own, f"{op.shape} {op.opcode}({inside}){rest}", operands)
        return value


_ZEROS: Final = {"pred": "false", "complex": "(0, 0)"}
"""The text of 0, by the kind of element types."""


def _between_orders(source: Shape, target: Shape) -> _OpChain:
    """Return a bitcast between layouts without tiles, or with tiles that cancel."""
    chain = _OpChain(Shape(source.element_type, source.dims))
    order, back = _major_to_minor(source), _major_to_minor(target)
    result = [target.dims[k] for k in back]
    chain.transpose("physical", order)
    bits, other = (ELEMENT_TYPES[shape.element_type].bits for shape in (source, target))
    sizes = chain.sizes
    if other > bits:
        chain.reshape("parts", [prod(result), other // bits])
        sizes = [prod(result)]
    elif other < bits:
        sizes = [*sizes, bits // other]
    chain.convert_bits(target.element_type, sizes)
    chain.reshape("laid", result)
    chain.transpose("", [back.index(k) for k in range(target.rank)])
    return chain


def _through_memory(source: Shape, target: Shape) -> _OpChain:
    """Return a bitcast between any tiles: to the buffer, and back."""
    chain = _OpChain(Shape(source.element_type, source.dims))
    chain.transpose("physical", _major_to_minor(source))
    for tile in source.layout_or_default.tiles:
        tiling = TiledSizes.of(chain.sizes, tile)
        chain.reshape("extended", tiling.sizes)
        chain.resize(tiling.padded)
        chain.reshape("split", tiling.split)
        chain.transpose("tiled", tiling.order)
    chain.reshape("buffer", [chain.shape.size])
    chain.convert_bits(target.element_type, chain.sizes)
    stages: list[TiledSizes] = []
    sizes = [target.dims[k] for k in _major_to_minor(target)]
    inner = sizes
    for tile in target.layout_or_default.tiles:
        stages.append(TiledSizes.of(inner, tile))
        inner = stages[-1].tiled
    chain.resize([prod(inner)])
    chain.reshape("tiles", inner)
    for tiling in reversed(stages):
        chain.transpose("joined", [tiling.order.index(k) for k in range(len(tiling.order))])
        chain.reshape("whole", tiling.padded)
        chain.resize(tiling.sizes)
    chain.reshape("laid", sizes)
    back = _major_to_minor(target)
    chain.transpose("", [back.index(k) for k in range(target.rank)])
    return chain


class TiledSizes(NamedTuple):
    """Dimensions of which one tile splits the minor ones.

    >>> TiledSizes.of([3, 5], (2, 4))
    TiledSizes(sizes=[3, 5], padded=[4, 8], split=[2, 2, 2, 4], order=[0, 2, 1, 3])

    Attributes:
        sizes: the dimensions, at least as many as those of the tile.
        padded: multiples of the tile.
        split: the padded dimensions, each split by the tile as outer and inner part.
        order: the outer parts, then the inner ones.

    Source: XLA ``docs/tiled_layout.md``.
    """

    sizes: list[int]
    padded: list[int]
    split: list[int]
    order: list[int]

    @classmethod
    def of(cls, sizes: Sequence[int], tile: Sequence[int]) -> TiledSizes:
        """Return the dimensions `sizes` with a tile."""
        whole = [*[1] * (len(tile) - len(sizes)), *sizes]
        major = len(whole) - len(tile)
        counts = [-(-n // t) for n, t in zip(whole[major:], tile, strict=True)]
        pairs = list(zip(counts, tile, strict=True))
        padded = [*whole[:major], *[count * t for count, t in pairs]]
        split = [*whole[:major], *[n for pair in pairs for n in pair]]
        outer, inner = range(major, len(split), 2), range(major + 1, len(split), 2)
        return cls(whole, padded, split, [*range(major), *outer, *inner])

    @property
    def tiled(self) -> list[int]:
        """The split dimensions in their order."""
        return [self.split[k] for k in self.order]


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    return shape.layout_or_default.minor_to_major[::-1]


def _braces(numbers: Iterable[int]) -> str:
    return f"{{{','.join(map(str, numbers))}}}"
