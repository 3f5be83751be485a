"""Formulas of elements on devices, over ``device`` and the dimensions ``d0, d1, …``.

The device is one more index.  A collective reads its operand at another device, or folds it over
the devices of the group; ``partition-id`` is the index itself.  In a global program, only manual
regions depend on the device: their arguments are read at the global index of each device's shard,
and their results on the device that holds a global element.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from hlo.modules.calls import callees_of
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.device_queries import device_maps
from indexing.devices.devices import Devices
from indexing.equivalence.partitioned.distribution import Distribution, formula_of
from indexing.equivalence.partitioned.regions import (
    border_of,
    crosses_border,
    enters_region,
    holder_of,
)
from indexing.equivalence.values.folds.fold_ranges import Fold
from indexing.equivalence.values.folds.folds import fold_formula
from indexing.equivalence.values.folds.narrowed_reads import ReadingAlgebra
from indexing.equivalence.values.folds.neutral_elements import neutral_value
from indexing.equivalence.values.formulas.applications import Frame
from indexing.equivalence.values.formulas.element_algebra import own_index
from indexing.equivalence.values.formulas.elements import Elements
from indexing.equivalence.values.formulas.numbering import (
    NoFormula,
    NumberedArray,
    Numbering,
    attributes_of,
)
from indexing.equivalence.values.matching.sorted_rows import BOUND_DEVICE, ON_EACH_DEVICE
from indexing.equivalence.values.terms.functions import is_integral
from indexing.equivalence.values.terms.terms import ARRAYS, Formula, FormulaTable, Kind
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.collective_bases import Collective, ReducingCollective
from indexing.ops.devices import DeviceId
from indexing.ops.sort import Sort
from indexing.programs.arrays import is_unique
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import first_unknown

MAX_DEVICES: Final = 1 << 10
"""Limit on the number of devices for which values are computed one by one."""


class DeviceTable(FormulaTable):
    """A table of terms in which no array depends on a free ``device``.

    An array that another device reads must have the device as a dimension.
    """

    def __init__(self, device: Variable) -> None:
        super().__init__()
        self.device = device

    def make(
        self,
        kind: Kind,
        head: Hashable,
        element_type: str,
        arguments: Sequence[Formula] = (),
        index: Sequence[Expr] = (),
        array: Formula | None = None,
        dims: tuple[int, ...] = (),
    ) -> Formula:
        term = super().make(kind, head, element_type, arguments, index, array, dims)
        if kind in ARRAYS and any(self.device in each.free for each in term.children):
            name = head[0] if isinstance(head, tuple) else kind
            reason = f"the values of a {name} depend on the device, which its formula does not have"
            raise NoFormula(Unknown(reason))
        return term


class DeviceElements(Elements):
    """Formulas of elements of numbered arrays on devices.

    Attributes:
        devices: the devices.
        device: the index variable.
        bound: the same as a dimension of arrays.
        programs: the frames of both entry computations; in others, such as the body of a loop, the
            arguments stand for values of one device only.
    """

    __slots__ = ("bound", "device", "devices", "programs")

    def __init__(
        self, numbering: Numbering, devices: Devices, *, rounds_factors: bool = False
    ) -> None:
        super().__init__(numbering, rounds_factors=rounds_factors)
        self.devices = devices
        self.device = devices.variable
        self.bound = Variable(BOUND_DEVICE, 0, devices.count - 1)
        self.table = DeviceTable(self.device)
        self.algebra = ReadingAlgebra(self.table)
        self.programs: list[Frame] = []

    # ------------------------------------------------------------ arguments

    def shard(self, array: Formula, given: Distribution, own: tuple[object, ...]) -> Formula:
        """Return the element of a global array that a device holds; padding has any value."""
        local = dims(given.local_dims)
        at = self.global_index(given)
        value = self.table.read(array, at)
        guards = self.inside(given)
        if not guards:
            return value
        sizes = self.devices.count, *given.local_dims
        padding = self.table.array("symbol", ("padding of parameter", *own), array.type, sizes)
        index = self.device.as_expr(), *[v.as_expr() if v.upper else as_expr(0) for v in local]
        return self.algebra.where(guards, value, self.table.read(padding, index))

    def global_index(self, given: Distribution) -> tuple[Expr, ...]:
        """Return the global index of the element ``d0, d1, …`` on ``device``."""
        own = [v.as_expr() if v.upper else as_expr(0) for v in dims(given.local_dims)]
        return tuple([i + self.by_device(given.offsets(k)) for k, i in enumerate(own)])

    def inside(self, given: Distribution) -> list[Constraint]:
        """Return the conditions under which an element on a device is no padding."""
        at = zip(self.global_index(given), given.dims, strict=True)
        bounds = [Constraint(i, 0, size - 1) for i, size in at]
        return [c for c in bounds if not c.is_true]

    def by_device(self, values: Sequence[int]) -> Expr:
        """Return a value of each device as an index expression."""
        expr = formula_of(values, self.device.as_expr())
        if expr is not None:
            return expr
        table = self.algebra.table_element(
            np.array(values, np.int32), "s32", (self.device.as_expr(),)
        )
        return self.algebra.index_of(table, (min(values), max(values)))

    # ------------------------------------------------------------ rules

    def _body(self, array: NumberedArray, frame: Frame) -> Formula:
        instruction, shape = array.instruction, array.shape
        if array.argument is not None or array.view is not None:
            return super()._body(array, frame)
        assert instruction is not None
        if shape is None or shape.is_dynamic:
            raise NoFormula(Unknown(f"`{instruction.name}` is a token or dynamic", instruction))
        if isinstance(instruction.op, DeviceId):
            number = as_expr(instruction.op.of_device(self.devices, self.device.as_expr()))  # type: ignore[arg-type]
            return self.table.index(number, shape.element_type)
        crosses = crosses_border(instruction)
        is_collective = isinstance(instruction.op, Collective)
        if (crosses or is_collective) and not any(frame is each for each in self.programs):
            reason = f"`{instruction.name}` exchanges values of devices in a loop or branch"
            raise NoFormula(Unknown(reason, instruction))
        if isinstance(instruction.op, Collective):
            return self._exchanged_formula(array, instruction, instruction.op, frame)
        if crosses:
            return self._crossing(array, instruction, frame)
        return self._as_index(super()._body(array, frame))

    def _as_index(self, body: Formula) -> Formula:
        """Return an integer that depends on the device only as a formula of the device."""
        if body.kind in ("constant", "index") or body.free != {self.device}:
            return body
        if not is_integral(body.type) or self.devices.count > MAX_DEVICES:
            return body
        values = [
            self.algebra.rewriting({self.device: as_expr(k)})(body)
            for k in range(self.devices.count)
        ]
        if any(value.kind != "constant" for value in values):
            return body
        numbers = np.array([value.value for value in values])
        expr = formula_of([int(n) for n in numbers], self.device.as_expr())
        if expr is not None:  # its values are of the type, whatever its bounds are
            return self.table.index(expr, body.type)
        return self.algebra.table_element(numbers, body.type, (self.device.as_expr(),))

    # ------------------------------------------------------------ collectives

    def _exchanged_formula(
        self, array: NumberedArray, instruction: Instruction, op: Collective, frame: Frame
    ) -> Formula:
        """Return the formula of a collective."""
        assert array.shape is not None
        answer = device_maps(instruction, array.leaf)
        unknown = first_unknown(*answer.unknown)
        if unknown is not None:
            raise NoFormula(unknown)
        reduces = isinstance(op, ReducingCollective)
        cases: list[tuple[list[Constraint], Formula]] = []
        for number, maps in enumerate(answer.maps):
            for indexing_map in maps:
                if (
                    indexing_map.grade != "exact"
                    or indexing_map.runtime
                    or (indexing_map.ranges and not reduces)
                ):
                    reason = f"`{instruction.name}`: {instruction.opcode} has no element formula"
                    raise NoFormula(Unknown(reason, instruction))
                operand = next(iter(array.operands[number].values()))
                cases.append(self._received_element(array.shape, operand, indexing_map, frame))
        if reduces:
            return self._reduced_formula(array, instruction, answer.maps, cases)
        zero = self.table.constant(0, array.shape.element_type)
        body = zero if op.fills_with_zeros or not cases else cases.pop()[1]
        for guards, value in cases:
            body = self.algebra.where(guards, value, body)
        return body

    def _received_element(
        self, shape: Shape, operand: NumberedArray, indexing_map: IndexingMap, frame: Frame
    ) -> tuple[list[Constraint], Formula]:
        """Return the element of an operand that a map leads to, and the conditions for it."""
        own = (self.device.as_expr(), *own_index(shape))
        values = dict(zip(indexing_map.dims, own, strict=True))
        swap = Substitution(values)
        source, *index = map(swap, indexing_map.results)
        guards = [c.with_expr(swap(c.expr)) for c in indexing_map.constraints]
        for v in indexing_map.dims:
            bounds = Constraint(values[v], *v.bounds)
            guards += [] if bounds.is_true else [bounds]
        return [c for c in guards if not c.is_true], self.on(operand, frame, source, index)

    def on(
        self, array: NumberedArray, frame: Frame, device: Expr, index: Sequence[Expr]
    ) -> Formula:
        """Return the formula of an element on another device."""
        body = self.body(array, frame)
        assert array.shape is not None
        values = dict(zip(dims(array.shape), index, strict=True)) | {self.device: device}
        return self.algebra.rewriting(values)(body)

    def _reduced_formula(
        self,
        array: NumberedArray,
        instruction: Instruction,
        maps: Sequence[Sequence[IndexingMap]],
        cases: Sequence[tuple[list[Constraint], Formula]],
    ) -> Formula:
        """Return the fold of the values of all devices of a group."""
        assert array.shape is not None
        combiner = self.combiner(instruction.called_computations[0])
        kind = array.shape.element_type
        neutral = neutral_value(self.algebra, combiner, kind) if combiner else None
        if neutral is None:
            reason = f"`{instruction.name}` combines the values of devices by another computation"
            raise NoFormula(Unknown(f"{reason} than one op", instruction))
        total: Formula | None = None
        pieces = [each for of_operand in maps for each in of_operand]
        for indexing_map, (guards, value) in zip(pieces, cases, strict=True):
            ranges = tuple([v for v in indexing_map.ranges if v.upper > v.lower])
            single = {v: as_expr(v.lower) for v in indexing_map.ranges if v not in ranges}
            value = self.algebra.rewriting(single)(value) if single else value
            fold = Fold(combiner, (), 0, kind, (neutral,), (value,), ranges, tuple(guards))
            part = fold_formula(self.algebra, fold)
            total = part if total is None else self.algebra.apply(combiner, (), kind, [total, part])
        assert total is not None
        return total

    # ------------------------------------------------------------ manual regions

    def _crossing(self, array: NumberedArray, instruction: Instruction, frame: Frame) -> Formula:
        """Return an element that enters or leaves a manual region."""
        number = array.path[0] if array.path else 0
        (operand,) = array.operands[number].values()
        assert array.shape is not None
        given = border_of(instruction, array.path, self.devices)
        if isinstance(given, Unknown):
            raise NoFormula(given)
        if enters_region(instruction):
            return self.at(operand, frame, self.global_index(given))
        shard, holders, local = holder_of(given, own_index(array.shape))
        holder = formula_of(holders, shard)
        if holder is None:
            table = self.algebra.table_element(np.array(holders, np.int32), "s32", (shard,))
            holder = self.algebra.index_of(table, (0, self.devices.count - 1))
        return self.on(operand, frame, holder, local)

    # ------------------------------------------------------------ opaque ops

    def _defined_formula(self, array: NumberedArray, frame: Frame) -> Formula | None:
        """Return the formula of a defined op; sorts are compared row by row (`sorted_rows`)."""
        assert array.instruction is not None
        is_sort = isinstance(array.instruction.op, Sort)
        return None if is_sort else super()._defined_formula(array, frame)

    def _limit_depth(self, array: NumberedArray, body: Formula) -> Formula:
        return body if self.device in body.free else super()._limit_depth(array, body)

    def _opaque(self, array: NumberedArray, frame: Frame) -> Formula:
        """Return an element of an op that is known by its name and operands only."""
        instruction = array.instruction
        assert instruction is not None
        leaves = [(path, leaf) for tree in array.operands for path, leaf in tree.items()]
        bodies = [self.body(leaf, frame) for _, leaf in leaves]
        if not is_unique(instruction) and not any(self.device in body.free for body in bodies):
            return super()._opaque(array, frame)
        sizes = tuple([(path, leaf.shape and leaf.shape.dims) for path, leaf in leaves])
        called = sorted(callees_of(instruction).items())
        terms = [t for _, callees in called for each in callees for t in self.function(each)]
        names = tuple([name for name, _ in called])
        return self._on_each_device(array, (sizes, names), [*bodies, *terms])

    def _on_each_device(
        self, array: NumberedArray, key: tuple[object, ...], arguments: Sequence[Formula]
    ) -> Formula:
        """Return an element of an opaque op whose first dimension is the device."""
        instruction, shape = array.instruction, array.shape
        assert instruction is not None
        assert shape is not None
        own = array.number if is_unique(instruction) or instruction.literal is not None else ()
        head = (ON_EACH_DEVICE, instruction.opcode, attributes_of(instruction), array.path)
        bind = self.algebra.rewriting({self.device: self.bound.as_expr()})
        opaque = self.table.array(
            "opaque", (*head, *key, own), shape.element_type,
            (self.devices.count, *shape.dims), list(map(bind, arguments)),
        )  # fmt: skip
        return self.table.read(opaque, (self.device.as_expr(), *own_index(shape)))
