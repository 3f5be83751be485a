"""Base classes of ops with maps and kernels, by number of operands.

A subclass of `NullaryOp`, `UnaryOp`, `BinaryOp`, `TernaryOp` or `VariadicOp` defines three methods.
The first two are called only for arrays that have at least one element:

* ``output_to_input(out, *operands)``: for each operand, the map from an element of the result to
  the elements of the operand that it needs;
* ``input_to_output(out, *operands)``: for each operand, the map from an element of the operand to
  the elements of the result that need it. The default is the inverse of ``output_to_input``
  (`indexing.ops.inverse`);
* ``kernel(*arrays)``: the result, computed with NumPy.

The entry of an operand is one map, or a tuple of maps if the operand is read in several ways. The
entry is ``()`` for an operand that is not read, and `Unknown` if no map can represent the access. A
`UnaryOp` returns the entry itself.

The class attribute `map_options` lists the keywords that both map methods accept: ``exact`` (return
disjoint exact pieces instead of one ``may`` map) and ``output_id`` (the array of a tuple result). A
kernel gets the computations that the op's attributes name, as functions under the attributes'
names. With `kernel_takes_shapes`, it also gets the keyword ``operands``: the shapes of the operands
with their layouts.

Callers use `reads` and `writes`. Both have the same form for every op and are memoised.

Ops that only forward values have other bases. A `RoutingOp` maps each leaf of its result to a leaf
of an operand. Ops that call computations are in `indexing.ops.structured_ops`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from hlo.memo import Memo
from hlo.modules.instruction_checks import agrees
from hlo.ops.attributes import computation
from hlo.ops.op import Op
from hlo.shapes.shape import (
    AnyShape,
    OpaqueShape,
    Shape,
    first_equal_leaves,
    leaves,
    unbounded_leaf,
)
from indexing.maps.answers import Unknown
from indexing.maps.arrays import Path as Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.over_approximation import every_element as every_element
from indexing.ops.element import CopyRule, ElementOp, ElementRule, element_of
from indexing.ops.inverse import inverses
from indexing.ops.needed_operands import NeededOperands, ParametersRead, needed_by_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hlo.modules.module import Instruction

Array: TypeAlias = "NDArray[Any]"
Maps: TypeAlias = tuple[IndexingMap, ...]
OperandMaps: TypeAlias = "IndexingMap | Maps | Unknown"
Entries: TypeAlias = "tuple[OperandMaps, ...]"

_MAPS: Final = Memo[Hashable, dict[int, "tuple[Maps | Unknown, ...]"]](1 << 12)
"""The maps of an op between shapes, by the number of the leaf of the result."""


class MappedOp(ElementOp):
    """An op on arrays with maps and a kernel; subclass one of the bases by number of operands.

    Class attributes:
        obstacle: why maps of the op have the grade "may"; empty if none has it.
        values_decide_reads: known values of some operands decide which elements of others are
            read; see `indexing.dataflow.known_reads`.
    """

    __slots__ = ()
    obstacle: ClassVar[str] = ""
    values_decide_reads: ClassVar[bool] = False
    map_options: ClassVar[tuple[str, ...]] = ()
    kernel_takes_shapes: ClassVar[bool] = False

    @abstractmethod
    def output_to_input(self, *args: Any, **kwargs: Any) -> Any:
        """For each operand, the map from the result's elements to the operand's elements.

        Called with the shape of the result (one leaf of a tuple), the shapes of the operands, and
        the keywords in `map_options`.
        """

    def input_to_output(self, *args: Any, **options: Any) -> Any:
        """For each operand, the maps from its elements to the result's elements.

        The default inverts the maps of `output_to_input`.
        """
        entries = self._entries(self.output_to_input(*args, **options))
        inverted: dict[object, Maps | Unknown] = {}
        pairs = list(zip(entries, args[1:], strict=True))
        for entry, shape in pairs:
            if (entry, shape) not in inverted:
                inverted[entry, shape] = inverses(entry, shape)
        return tuple([inverted[pair] for pair in pairs])

    def why_may(self, operand: int) -> str:
        """Return why maps of one operand, given by number, have the grade "may"."""
        return self.obstacle

    @abstractmethod
    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        """The result for these operands; a tuple of arrays if the result is a tuple."""

    def valid_operands(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return `operands`, with other values where these violate a precondition of the kernel."""
        return operands

    def compute(
        self,
        operands: Sequence[Any],
        shapes: Sequence[AnyShape],
        to_apply: Callable[..., Any] | None = None,
        **called: Callable[..., Any] | None,
    ) -> Any:
        """Run the kernel.

        Args:
            operands: arrays.
            shapes: shapes of the operands, with layouts.
            to_apply, called: the called computations as functions, by attribute name.
        """
        called["to_apply"] = to_apply
        options: dict[str, Any] = {name: called.get(name) for name in _computations(type(self))}
        if self.kernel_takes_shapes:
            options["operands"] = tuple(shapes)
        return self.kernel(*operands, **options)

    def reads(
        self,
        out: AnyShape,
        operands: tuple[AnyShape, ...],
        output_id: int = 0,
        exact: bool = False,
        of_rule: bool = False,
    ) -> tuple[Maps | Unknown, ...]:
        """For each operand, the maps from leaf `output_id` of the result to the operand.

        An operand that is not read or has no elements gets ``()``. `Unknown` gives the reason if
        no map can represent the access, or if the shapes break a constraint of the op.

        Args:
            out: shape of the result.
            operands: shapes of the operands.
            exact: return disjoint exact pieces instead of one ``may`` map, if the op has them.
            of_rule: return the maps to which the element rule refers, if these are others.

        >>> import indexing.ops
        >>> from hlo.ops.op import OPS
        >>> add, shape = OPS["add"](), Shape("f32", (2, 3))
        >>> for maps in add.reads(shape, (shape, shape)):
        ...     print(*maps)
        (d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 2]
        (d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 2]
        """
        if not operands:
            return ()
        options = exact, of_rule
        (maps,) = self._memoised_maps("output_to_input", out, operands, [output_id], *options)
        return maps

    def writes(
        self,
        out: AnyShape,
        operands: tuple[AnyShape, ...],
        input_id: int = 0,
        exact: bool = False,
    ) -> tuple[Maps | Unknown, ...]:
        """For each leaf of the result, the maps from operand `input_id` to the leaf.

        Args and results are as in `reads`.

        >>> import indexing.ops
        >>> from hlo.ops.op import OPS
        >>> (maps,) = OPS["negate"]().writes(Shape("f32", (3,)), (Shape("f32", (3,)),))
        >>> print(*maps)
        (d0) -> (d0), domain: d0 in [0, 2]
        """
        written = self.writes_to(out, operands, range(len(leaves(out))), exact)
        return tuple([maps[input_id] for maps in written])

    def writes_to(
        self,
        out: AnyShape,
        operands: tuple[AnyShape, ...],
        output_ids: Iterable[int],
        exact: bool = False,
    ) -> list[tuple[Maps | Unknown, ...]]:
        """For each of these leaves of the result, the maps from each operand to the leaf."""
        return self._memoised_maps("input_to_output", out, operands, output_ids, exact)

    def needed_operands(
        self, instruction: Instruction, output_id: int, parameters_read: ParametersRead
    ) -> NeededOperands | None:
        """Return the operands that a result needs of an instruction that calls a computation.

        By default, they follow from the element rule.

        Args:
            parameters_read: the parameters that a leaf of a called computation's root depends on.
        Returns:
            None if the result needs every operand that its maps read.
        """
        called = partial(parameters_read, instruction.called_computations[0])
        rule = element_of(instruction, output_id)
        return needed_by_rule(rule, len(instruction.operands), output_id, called)

    def _memoised_maps(
        self,
        direction: str,
        out: AnyShape,
        operands: tuple[AnyShape, ...],
        output_ids: Iterable[int],
        exact: bool,
        of_rule: bool = False,
    ) -> list[tuple[Maps | Unknown, ...]]:
        """Return the maps of some leaves of the result, for each leaf those of all operands."""
        of_rule = of_rule and "of_rule" in self.map_options
        key = self.opcode, self, direction, out, operands, exact, of_rule
        by_leaf = _MAPS.get(key)
        if by_leaf is None:
            by_leaf = _MAPS.keep(key, {})
        if "output_id" not in self.map_options:  # equal leaves have equal maps
            first = first_equal_leaves(out)
            output_ids = [first[number] for number in output_ids]
        missing = [number for number in output_ids if number not in by_leaf]
        if missing:
            options = {"exact": exact, "of_rule": of_rule}
            by_leaf.update(self._compute_maps(direction, out, operands, missing, options))
        return [by_leaf[number] for number in output_ids]

    def _compute_maps(
        self,
        direction: str,
        out: AnyShape,
        operands: tuple[AnyShape, ...],
        output_ids: Iterable[int],
        options: Mapping[str, bool],
    ) -> Iterator[tuple[int, tuple[Maps | Unknown, ...]]]:
        """Yield the maps of the op's own method; no map from or to an array without elements."""
        reason, out_leaves = self._obstacle(out, operands), leaves(out)
        for output_id in dict.fromkeys(output_ids):
            leaf = out_leaves[output_id][1]
            if reason:
                yield output_id, (Unknown(reason),) * len(operands)
            elif not isinstance(leaf, Shape) or leaf.size == 0:
                yield output_id, ((),) * len(operands)
            else:
                yield output_id, self._maps_of(direction, leaf, operands, output_id, options)

    def _maps_of(
        self,
        direction: str,
        leaf: Shape,
        operands: tuple[AnyShape, ...],
        output_id: int,
        options: Mapping[str, bool],
    ) -> tuple[Maps | Unknown, ...]:
        method = getattr(type(self), direction)
        every: dict[str, int] = {**options, "output_id": output_id}
        accepted = {name: every[name] for name in self.map_options}
        entries = self._entries(method(self, leaf, *operands, **accepted))
        return tuple(
            [
                _maps(entry) if isinstance(shape, Shape) and shape.size else ()
                for entry, shape in zip(entries, operands, strict=True)
            ]
        )

    def _obstacle(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> str:
        """Return why the op has no maps for these shapes; empty if it has maps."""
        for number, shape in enumerate(operands):
            is_token = isinstance(shape, OpaqueShape) and not self.takes_arrays
            if not isinstance(shape, Shape) and not is_token:
                return f"operand {number} of {self.opcode} must be an array, not {shape}"
        if leaf := unbounded_leaf(out, *operands):
            return f"{leaf} has a dimension of unknown size"
        if len(operands) < self.min_operands or (
            self.max_operands is not None and len(operands) > self.max_operands
        ):
            return f"wrong number of operands for {self.opcode}: {len(operands)}"
        if broken := self.first_fault(operands):
            rule, fault = broken
            return f"{self.opcode} {rule.label}: {rule.sentence}: {fault.label}"
        inferred = self.infer_shape(*operands)
        if agrees(out, inferred):
            return ""
        return f"the shape of {self.opcode} must be {inferred}, not {out}"

    def _entries(self, returned: Any) -> Entries:
        """Return one entry for each operand from the return value of a map method."""
        entries: Entries = returned
        return entries


def _maps(entry: OperandMaps) -> Maps | Unknown:
    return (entry,) if isinstance(entry, IndexingMap) else entry


@cache
def _computations(cls: type[Op]) -> tuple[str, ...]:
    """Names of the attributes that refer to a computation."""
    return tuple([name for name, field in cls.fields.items() if field.kind is computation])


# ---------------------------------------------------------------- bases by arity


class NullaryOp(MappedOp):
    """An op without operands, and so without maps."""

    __slots__ = ()
    counts_reads: ClassVar[bool] = True
    min_operands: ClassVar[int] = 0
    max_operands: ClassVar[int | None] = 0

    def output_to_input(self, out: Shape) -> tuple[()]:
        return ()


class UnaryOp(MappedOp):
    """An op with one operand; both map methods return its entry itself."""

    __slots__ = ()
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1

    def input_to_output(self, *args: Any, **options: Any) -> Any:
        (entry,) = MappedOp.input_to_output(self, *args, **options)
        return entry

    def _entries(self, returned: Any) -> Entries:
        return (returned,)


class BinaryOp(MappedOp):
    """An op with two operands."""

    __slots__ = ()
    min_operands: ClassVar[int] = 2
    max_operands: ClassVar[int | None] = 2


class TernaryOp(MappedOp):
    """An op with three operands."""

    __slots__ = ()
    min_operands: ClassVar[int] = 3
    max_operands: ClassVar[int | None] = 3


class VariadicOp(MappedOp):
    """An op with any number of operands, `min_operands` or more."""

    __slots__ = ()
    min_operands: ClassVar[int] = 1


# ---------------------------------------------------------------- ops that forward values


class RoutingOp(ElementOp):
    """An op whose result consists of unchanged leaves of its operands."""

    __slots__ = ()
    is_view: ClassVar[bool] = True
    counts_reads: ClassVar[bool] = True
    takes_arrays: ClassVar[bool] = False

    @abstractmethod
    def route(self, path: Path) -> tuple[int, Path]:
        """Return the operand and the path in it that the result's leaf at `path` is."""

    def forwarded_leaf(self, path: Path) -> tuple[int, Path] | None:
        return self.route(path)

    def shared_leaf(self, path: Path) -> tuple[int, Path] | None:
        return self.route(path) if self.is_view else None

    @abstractmethod
    def route_back(self, operand: int, path: Path) -> Path | None:
        """Return the path in the result of an operand's leaf; None if the result omits the leaf."""

    @abstractmethod
    def kernel(self, *args: Any) -> Any:
        """The result for these operands; tuples of arrays for tuples."""

    def element(self, out: AnyShape, *operands: AnyShape) -> ElementRule:
        return CopyRule(tuple(range(len(operands))), is_view=True)
