"""Ops with maps and kernels: what `hlo.ops.op.Op` says of an op, and which elements it reads.

An op says how many operands it has by its base (`NullaryOp`, `UnaryOp`, `BinaryOp`, `TernaryOp`,
`VariadicOp`), and then writes three things about arrays that have at least one element:

* ``output_to_input(out, *operands)``: for each operand, the map from an element of the result to
  the elements of the operand that it needs;
* ``input_to_output(out, *operands)``: for each operand, the map from an element of it to the
  elements of the result that need it;
* ``kernel(*arrays)``: the result, with NumPy.

The second one may be left out: it is the inverse of the first one (`indexing.ops.inverse`).

A `UnaryOp` answers with the one map itself. An operand that is read in several ways has a tuple of
maps; one that is not read has ``()``; if no map can represent the access, it has `Unknown`. The
class attribute `map_options` names the keywords that both methods take: ``exact`` (return disjoint
exact pieces instead of one ``may`` map) and ``output_id`` (which array of a tuple result is meant).
A kernel takes the computations that the op's attributes name, as functions under these names; with
`kernel_takes_shapes` also the keyword ``operands``, their shapes with layouts.

Everyone else asks through `reads` and `writes`, which look the same for every op and are
remembered.

Ops that move no element have other bases: a `RoutingOp` says which operand a leaf of its result is;
those that run computations are in `indexing.ops.structured_ops`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from hlo.modules.bind import agrees
from hlo.ops.attributes import computation
from hlo.ops.op import Op
from hlo.shapes.shape import (
    UNBOUNDED,
    AnyShape,
    OpaqueShape,
    Shape,
    TupleShape,
    leaves,
)
from indexing.maps.answers import Unknown
from indexing.maps.arrays import Path as Path
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.map_set import every_element as every_element
from indexing.ops.element import CopyRule, ElementOp, ElementRule
from indexing.ops.inverse import inverses

if TYPE_CHECKING:
    from numpy.typing import NDArray


Array: TypeAlias = "NDArray[Any]"
Maps: TypeAlias = tuple[IndexingMap, ...]
Entry: TypeAlias = "IndexingMap | Maps | Unknown"
Entries: TypeAlias = "tuple[Entry, ...]"

_LIMIT: Final = 1 << 16
_ANSWERS: Final[dict[object, tuple[Maps | Unknown, ...]]] = {}


class MappedOp(ElementOp):
    """An op between arrays whose maps and kernel are known; subclass one of the bases by arity."""

    __slots__ = ()
    map_options: ClassVar[tuple[str, ...]] = ()
    kernel_takes_shapes: ClassVar[bool] = False

    @abstractmethod
    def output_to_input(self, *args: Any, **kwargs: Any) -> Any:
        """For each operand, the map from the result's elements to the operand's."""

    def input_to_output(self, *args: Any, **options: Any) -> Any:
        """For each operand, the maps from its elements to the result's: the inverses."""
        entries = self._entries(self.output_to_input(*args, **options))
        return tuple([inverses(e, s) for e, s in zip(entries, args[1:], strict=True)])

    @abstractmethod
    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        """The result (a tuple of arrays for a tuple) for these operands."""

    def compute(
        self,
        operands: Sequence[Any],
        shapes: Sequence[AnyShape],
        to_apply: Callable[..., Any] | None = None,
        **called: Callable[..., Any] | None,
    ) -> Any:
        """The kernel's result for arrays of these shapes, with called computations as functions."""
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
    ) -> tuple[Maps | Unknown, ...]:
        """For each operand, what leaf number `output_id` of the result reads of it.

        >>> import indexing.ops
        >>> from hlo.ops.op import OPS
        >>> add, shape = OPS["add"](), Shape("f32", (2, 3))
        >>> for maps in add.reads(shape, (shape, shape)):
        ...     print(*maps)
        (d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 2]
        (d0, d1) -> (d0, d1), domain: d0 in [0, 1], d1 in [0, 2]
        """
        return self._answer("output_to_input", out, operands, output_id, exact)

    def writes(
        self,
        out: AnyShape,
        operands: tuple[AnyShape, ...],
        input_id: int = 0,
        exact: bool = False,
    ) -> tuple[Maps | Unknown, ...]:
        """For each leaf of the result, which of its elements need elements of an operand."""
        outputs = range(len(leaves(out)))
        return tuple(
            [self._answer("input_to_output", out, operands, n, exact)[input_id] for n in outputs]
        )

    def _answer(
        self,
        direction: str,
        out: AnyShape,
        operands: tuple[AnyShape, ...],
        output_id: int,
        exact: bool,
    ) -> tuple[Maps | Unknown, ...]:
        key = self.opcode, self, direction, out, operands, output_id, exact
        known = _ANSWERS.get(key)
        if known is None:
            if len(_ANSWERS) >= _LIMIT:
                _ANSWERS.clear()
            known = _ANSWERS[key] = self._found(direction, out, operands, output_id, exact)
        return known

    def _found(
        self,
        direction: str,
        out: AnyShape,
        operands: tuple[AnyShape, ...],
        output_id: int,
        exact: bool,
    ) -> tuple[Maps | Unknown, ...]:
        """The answer of the op's own method; no map where there is no element to speak of."""
        if reason := self._misuse(out, operands):
            return (Unknown(reason),) * len(operands)
        leaf = leaves(out)[output_id][1]
        if not isinstance(leaf, Shape) or leaf.size == 0:
            return ((),) * len(operands)
        method = getattr(type(self), direction)
        options = {"exact": exact, "output_id": output_id}
        wanted = {name: options[name] for name in self.map_options}
        entries = self._entries(method(self, leaf, *operands, **wanted))
        return tuple(
            [
                _maps(entry) if isinstance(shape, Shape) and shape.size else ()
                for entry, shape in zip(entries, operands, strict=True)
            ]
        )

    def _misuse(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> str:
        """Why nothing can be said for such shapes; empty if something can."""
        for shape in operands:
            is_token = isinstance(shape, OpaqueShape) and not self.takes_arrays
            if not isinstance(shape, Shape) and not is_token:
                return f"an operand of {self.opcode} is {shape}, no array"
        for _, leaf in leaves(TupleShape((out, *operands))):
            if isinstance(leaf, Shape) and UNBOUNDED in leaf.dims:
                return f"{leaf} has a dimension of unknown size"
        if len(operands) < self.min_operands or (
            self.max_operands is not None and len(operands) > self.max_operands
        ):
            return f"{self.opcode} is given {len(operands)} operands"
        if broken := self.first_fault(operands):
            rule, fault = broken
            return f"{self.opcode} {rule.label} does not hold: {fault.label}"
        inferred = self.infer_shape(*operands)
        return "" if agrees(out, inferred) else f"{self.opcode} is {inferred}, not {out}"

    def _entries(self, answer: Any) -> Entries:
        """One entry per operand from what a method gives."""
        entries: Entries = answer
        return entries


def _maps(entry: Entry) -> Maps | Unknown:
    return (entry,) if isinstance(entry, IndexingMap) else entry


@cache
def _computations(cls: type[Op]) -> tuple[str, ...]:
    """The attributes that name a computation."""
    return tuple([name for name, field in cls.fields.items() if field.kind is computation])


# ---------------------------------------------------------------- bases by arity


class NullaryOp(MappedOp):
    """An op without operands: it reads nothing."""

    __slots__ = ()
    min_operands: ClassVar[int] = 0
    max_operands: ClassVar[int | None] = 0

    def output_to_input(self, out: Shape) -> tuple[()]:
        return ()


class UnaryOp(MappedOp):
    """An op with one operand; both directions are one entry."""

    __slots__ = ()
    min_operands: ClassVar[int] = 1
    max_operands: ClassVar[int | None] = 1

    def input_to_output(self, *args: Any, **options: Any) -> Any:
        (entry,) = MappedOp.input_to_output(self, *args, **options)
        return entry

    def _entries(self, answer: Any) -> Entries:
        return (answer,)


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


# ---------------------------------------------------------------- ops that move no element


class RoutingOp(ElementOp):
    """An op whose result consists of its operands' leaves, each as it is."""

    __slots__ = ()
    takes_arrays: ClassVar[bool] = False

    @abstractmethod
    def route(self, path: Path) -> tuple[int, Path]:
        """The operand, and the path in it, that is the result's leaf at `path`."""

    @abstractmethod
    def route_back(self, operand: int, path: Path) -> Path | None:
        """Where in the result the leaf at `path` of an operand is; None if it is left out."""

    @abstractmethod
    def kernel(self, *args: Any) -> Any:
        """The result for these operands; tuples of arrays for tuples."""

    def element(self, out: AnyShape, *operands: AnyShape) -> ElementRule:
        return CopyRule(tuple(range(len(operands))), is_view=True)


# ---------------------------------------------------------------- maps that many ops need


def placed(rank: int, places: Iterable[tuple[int, Any]]) -> list[Any]:
    """A list of `rank` values, each at its place.

    >>> placed(2, [(1, "a"), (0, "b")])
    ['b', 'a']
    """
    found: dict[int, Any] = dict(places)
    return [found[k] for k in range(rank)]
