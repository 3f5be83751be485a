"""Construction of local programs as text: one computation that every device executes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hlo.formats.parser import parse
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import ELEMENT_TYPES, AnyShape, Shape, TupleShape, dtype
from hlo.shardings.mesh import Axis, Mesh
from indexing.sharding.rules.combiners import COMBINERS

INDEX: Final = Shape("s32", ())


@dataclass(frozen=True, slots=True)
class LocalValue:
    """An instruction of a local program.

    Attributes:
        name: the name of the instruction.
        shape: its shape on one device.
    """

    name: str
    shape: AnyShape

    @property
    def array(self) -> Shape:
        """The shape of an array."""
        assert isinstance(self.shape, Shape)
        return self.shape


@dataclass(frozen=True, slots=True)
class ShardCollective:
    """A collective of a local program.

    Attributes:
        name: the name of the instruction of the local program.
        kind: its opcode.
        axes: the mesh axes along which devices exchange values; () of a permutation.
        groups: the groups of devices; for a collective-permute, pairs of source and target.
        shape: the shape of the operand on one device.
        bytes_sent: bytes that each device sends in one execution (`moves.bytes_sent`).
        instruction: the instruction of the global program that needs the collective.
        reason: why it is needed.
    """

    name: str
    kind: str
    axes: tuple[Axis, ...]
    groups: tuple[tuple[int, ...], ...]
    shape: Shape
    bytes_sent: int
    instruction: Instruction | None
    reason: str


@dataclass(slots=True)
class LocalProgram:
    """A module under construction.

    Attributes:
        name: name of the module.
        mesh: the mesh.
        texts: the text of each computation by name.
        collectives: the collectives, in the order of their channels.
    """

    name: str
    mesh: Mesh
    texts: dict[str, str] = field(default_factory=dict)
    collectives: list[ShardCollective] = field(default_factory=list)

    def __post_init__(self) -> None:
        if sorted(self.mesh.devices) != list(range(self.mesh.size)):
            numbers = f"0 to {self.mesh.size - 1}"
            raise ValueError(f"the devices must be numbered {numbers}, not {self.mesh.devices}")

    def module(self, entry: str) -> Module:
        """Return the module with a computation as its entry."""
        head = f"HloModule {self.name}, num_partitions={self.mesh.size}"
        others = [text for name, text in self.texts.items() if name != entry]
        return parse("\n\n".join([head, *others, f"ENTRY {self.texts[entry]}"]) + "\n", self.name)

    def reducer(self, reduction: str, element_type: str) -> str:
        """Return the name of the computation that combines two elements."""
        opcode = COMBINERS[reduction].opcode
        name, scalar = f"{opcode}.{element_type}.partial", f"{element_type}[]"
        lines = [f"a = {scalar} parameter(0)", f"b = {scalar} parameter(1)"]
        lines.append(f"ROOT r = {scalar} {opcode}(a, b)")
        self.texts.setdefault(name, "\n".join([f"%{name} {{", *(f"  {x}" for x in lines), "}"]))
        return name


class LocalBody:
    """A computation of a local program under construction.

    Attributes:
        program: the program.
        name: the name of the computation.
        instruction: the instruction of the global program that the next instructions serve.
        reason: why the next collectives are needed.
    """

    def __init__(self, program: LocalProgram, name: str) -> None:
        self.program = program
        self.name = name
        self.instruction: Instruction | None = None
        self.reason = ""
        self._lines: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._memo: dict[object, LocalValue] = {}

    @property
    def mesh(self) -> Mesh:
        """The mesh of the program."""
        return self.program.mesh

    def add(
        self,
        opcode: str,
        shape: AnyShape,
        operands: Iterable[LocalValue] = (),
        attributes: str = "",
        *,
        name: str = "",
        literal: str = "",
    ) -> LocalValue:
        """Add an instruction.

        Args:
            attributes: their text.
            name: the name, made unique; by default, the opcode.
            literal: the text between the parentheses, instead of the operands.
        """
        inside = literal or ", ".join([f"%{operand.name}" for operand in operands])
        rest = f", {attributes}" if attributes else ""
        name = self._fresh(name or opcode)
        self._lines[name] = f"{shape} {opcode}({inside}){rest}"
        return LocalValue(name, shape)

    def finish(self, root: LocalValue, sharding: str = "") -> None:
        """Add the computation to the program.

        Args:
            sharding: the attribute of the root; that of a parameter stays.
        """
        if sharding and ", sharding=" not in self._lines[root.name]:
            self._lines[root.name] += f", {sharding}"
        lines = [f"  {'ROOT ' if name == root.name else ''}%{name} = {line}"
                 for name, line in self._lines.items()]  # fmt: skip
        self.program.texts[self.name] = "\n".join([f"%{self.name} {{", *lines, "}"])

    def _fresh(self, name: str) -> str:
        made = name
        while made in self._lines:
            self._numbers[name] = self._numbers.get(name, 0) + 1
            made = f"{name}.{self._numbers[name]}"
        return made

    # ------------------------------------------------------------ constants

    def constant(self, shape: Shape, literal: str) -> LocalValue:
        """Return a constant."""
        key = shape, literal
        if key not in self._memo:
            self._memo[key] = self.add("constant", shape, literal=literal)
        return self._memo[key]

    def scalar(self, shape: Shape, literal: str) -> LocalValue:
        """Return a scalar constant; equal values have equal constants."""
        kind = ELEMENT_TYPES[shape.element_type].kind
        with suppress(ValueError):
            if kind == "floating":
                literal = repr(float(literal))
            elif kind in ("integral", "unsigned"):
                literal = str(int(literal))
        return self.constant(shape, literal)

    def index(self, value: int) -> LocalValue:
        """Return a scalar index."""
        return self.constant(INDEX, str(value))

    def zero(self, element_type: str) -> LocalValue:
        """Return a scalar zero."""
        return self.constant(
            Shape(element_type, ()), _scalar(np.zeros((), dtype(element_type))[()])
        )

    def neutral(self, reduction: str, element_type: str) -> LocalValue:
        """Return the neutral element of a reduction."""
        value = COMBINERS[reduction].neutral(element_type)
        if value is None:
            raise ValueError(f"{element_type} has no neutral element of a {reduction}")
        return self.constant(Shape(element_type, ()), _scalar(value))

    # ------------------------------------------------------------ values of devices

    def of_device(self, numbers: Sequence[int]) -> LocalValue:
        """Return a scalar index, given for each device."""
        if len(set(numbers)) == 1:
            return self.index(numbers[0])
        key = "of_device", tuple(numbers)
        if key not in self._memo:
            count = len(numbers)
            table = self.constant(Shape("s32", (count,)), f"{{{','.join(map(str, numbers))}}}")
            place = self._partition()
            one = self.add("dynamic-slice", Shape("s32", (1,)), (table, place),
                           "dynamic_slice_sizes={1}")  # fmt: skip
            self._memo[key] = self.add("reshape", INDEX, (one,))
        return self._memo[key]

    def _partition(self) -> LocalValue:
        if "partition" not in self._memo:
            self._memo["partition"] = self.add("partition-id", Shape("u32", ()))
        return self._memo["partition"]

    def number(self, axes: Sequence[Axis], times: int = 1) -> LocalValue:
        """Return the number of the device along axes, times an integer."""
        numbers = self.mesh.numbers_by_device(axes)
        return self.of_device([numbers[d] * times for d in range(self.mesh.size)])

    def by_number(self, axes: Sequence[Axis], values: Sequence[int]) -> LocalValue:
        """Return a scalar index, given for each number of a device along axes."""
        numbers = self.mesh.numbers_by_device(axes)
        return self.of_device([values[numbers[d]] for d in range(self.mesh.size)])

    # ------------------------------------------------------------ ops on arrays

    def scalar_op(self, opcode: str, *operands: LocalValue, attributes: str = "") -> LocalValue:
        """Return the value of an elementwise op on arrays of one shape, of the first one's type."""
        shape = operands[0].array
        if opcode == "compare":
            shape = Shape("pred", shape.dims)
        return self.add(opcode, shape, operands, attributes)

    def broadcast(self, scalar: LocalValue, dims: Sequence[int]) -> LocalValue:
        """Return an array with copies of a scalar."""
        if not dims:
            return scalar
        shape = Shape(scalar.array.element_type, tuple(dims))
        return self.add("broadcast", shape, (scalar,), "dimensions={}")

    def iota(self, dims: Sequence[int], dim: int) -> LocalValue:
        """Return the positions along one dimension."""
        return self.add("iota", Shape("s32", tuple(dims)), (), f"iota_dimension={dim}")

    def pad(
        self, value: LocalValue, dim: int, low: int, high: int, fill: LocalValue | None = None
    ) -> LocalValue:
        """Return an array with more elements in one dimension, of value `fill`, zero by default."""
        shape = value.array
        if not low and not high:
            return value
        edges = [f"{low}_{high}" if k == dim else "0_0" for k in range(shape.rank)]
        dims = _with_size(shape.dims, dim, shape.dims[dim] + low + high)
        fill = fill or self.zero(shape.element_type)
        target = Shape(shape.element_type, dims)
        return self.add("pad", target, (value, fill), f"padding={'x'.join(edges)}")

    def cut(self, value: LocalValue, dim: int, start: int, limit: int) -> LocalValue:
        """Return the elements of one dimension from `start` to `limit`."""
        shape = value.array
        if (start, limit) == (0, shape.dims[dim]):
            return value
        ranges = [f"[{start}:{limit}]" if k == dim else f"[0:{n}]"
                  for k, n in enumerate(shape.dims)]  # fmt: skip
        target = Shape(shape.element_type, _with_size(shape.dims, dim, limit - start))
        return self.add("slice", target, (value,), f"slice={{{','.join(ranges)}}}")

    def window(self, value: LocalValue, dim: int, start: LocalValue, size: int) -> LocalValue:
        """Return `size` elements of one dimension from a start that depends on the device."""
        shape = value.array
        starts = [start if k == dim else self.index(0) for k in range(shape.rank)]
        dims = _with_size(shape.dims, dim, size)
        sizes = f"dynamic_slice_sizes={{{','.join(map(str, dims))}}}"
        target = Shape(shape.element_type, dims)
        return self.add("dynamic-slice", target, (value, *starts), sizes)

    def reshape(self, value: LocalValue, dims: Sequence[int]) -> LocalValue:
        """Return an array with other sizes of dimensions."""
        target = Shape(value.array.element_type, tuple(dims))
        return value if target == value.shape else self.add("reshape", target, (value,))

    def tuple_of(self, elements: Sequence[LocalValue], name: str = "") -> LocalValue:
        """Return a tuple."""
        shape = TupleShape(tuple([element.shape for element in elements]))
        return self.add("tuple", shape, elements, name=name)

    def collective(
        self,
        kind: str,
        operand: LocalValue,
        shape: Shape,
        attributes: str,
        *,
        axes: tuple[Axis, ...],
        groups: tuple[tuple[int, ...], ...],
        sent: int,
    ) -> LocalValue:
        """Add a collective with a channel, and record it."""
        channel = f"channel_id={len(self.program.collectives) + 1}"
        value = self.add(kind, shape, (operand,), f"{channel}, {attributes}")
        made_for = self.instruction, self.reason
        record = ShardCollective(value.name, kind, axes, groups, operand.array, sent, *made_for)
        self.program.collectives.append(record)
        return value


def _with_size(dims: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    return tuple(size if k == dim else n for k, n in enumerate(dims))


def _scalar(value: Any) -> str:
    """Return the text of a scalar of NumPy."""
    plain = np.asarray(value).tolist()
    match plain:
        case bool():
            return str(plain).lower()
        case complex():
            return f"({plain.real!r}, {plain.imag!r})"
        case int():
            return str(plain)
        case _:
            return repr(float(plain))
