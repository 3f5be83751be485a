"""Element rules: the value of one element of an op's result, given the operand elements it reads.

An op's maps are the *index* part: which elements are read, and under which constraints. Its element
rule is the scalar part: which operands contain the data, and the function of the elements that the
maps lead to. Loop nests, folded runtime variables, pointwise execution and memory estimates are
derived from both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from hlo.modules.bind import registered_class, why_unsupported
from hlo.ops.op import Op
from hlo.shapes.shape import AnyShape, Shape, leaves, unbounded_leaf
from indexing.maps.arrays import Path
from simplifier.unknown import Unknown

if TYPE_CHECKING:
    import numpy as np

    from hlo.modules.module import Instruction
    from indexing.maps.arrays import Path
    from indexing.ops.functions import ScalarFunction


@dataclass(frozen=True, slots=True)
class ConstantRule:
    """The element is given in the program's text.

    >>> import hlo, indexing
    >>> from indexing.ops.element import element_of
    >>> element_of(hlo.parse("ENTRY e { ROOT c = f32[2] constant({3, 5}) }").entry.root)
    ConstantRule()
    """


@dataclass(frozen=True, slots=True)
class IotaRule:
    """The element is its own index along `dimension`.

    >>> import hlo, indexing
    >>> from indexing.ops.element import element_of
    >>> element_of(hlo.parse("ENTRY e { ROOT i = s32[2,3] iota(), iota_dimension=1 }").entry.root)
    IotaRule(dimension=1)
    """

    dimension: int


@dataclass(frozen=True, slots=True)
class ElementwiseRule:
    """The element is ``function(operand elements)``.

    Attributes:
        function: the function; None if it is a computation.
        uses_computation: the function is the first computation that the instruction calls.
        reads_nothing: the result does not depend on the operand's values.

    >>> import numpy as np
    >>> from indexing.ops.element import ElementwiseRule
    >>> from indexing.ops.functions import ScalarFunction
    >>> ElementwiseRule(ScalarFunction.of(np.exp)).uses_computation
    False
    """

    function: ScalarFunction | None = None
    uses_computation: bool = False
    reads_nothing: bool = False


@dataclass(frozen=True, slots=True)
class CopyRule:
    """The element is the operand element that the maps lead to, after `function` if one is given.

    Attributes:
        operands: operands that contain the data; each index is in the domain of one map of one of
            them.
        function: takes the element; with `parts`, also the number of the part; with
            `joins_parts`, the elements along the range variable, in order.
        has_padding: elements outside every map's domain are padding: undefined in HLO, 0 here.
        parts: number of result elements that share the bits of one operand element.
        joins_parts: one result element has the bits of several operand elements.
        is_view: the result needs no buffer of its own.

    >>> from indexing.ops.element import CopyRule
    >>> CopyRule(operands=(0, 1)).operands  # as of `pad`: an element of the array, or the padding
    (0, 1)
    """

    operands: tuple[int, ...] = (0,)
    function: ScalarFunction | None = None
    has_padding: bool = False
    parts: int = 1
    joins_parts: bool = False
    is_view: bool = False


@dataclass(frozen=True, slots=True)
class ReductionRule:
    """The element is a reduction over the range variables of the maps.

    Attributes:
        inits: operands with the initial values; () for zero.
        values: operands that are reduced; if `is_product`, they are multiplied first.
        uses_computation: the first computation that the instruction calls reduces; otherwise the
            reduction is a sum.
        is_windowed: an operand element may contribute to several results.
        is_scatter: a runtime variable decides to which result a value contributes.
        always_steps: each result has at least one step.
        accumulator_dtype: the type in which a sum of products is accumulated.

    >>> from indexing.ops.element import ReductionRule
    >>> ReductionRule(inits=(), values=(0, 1), is_product=True).values  # as of `dot`
    (0, 1)
    """

    inits: tuple[int, ...]
    values: tuple[int, ...]
    uses_computation: bool = False
    is_product: bool = False
    is_windowed: bool = False
    is_scatter: bool = False
    always_steps: bool = False
    accumulator_dtype: np.dtype[Any] | None = None


@dataclass(frozen=True, slots=True)
class OpaqueRule:
    """There is no per-element rule, for the given reason.

    The reason is a clause that follows the opcode and the name of an instruction in a message:
    ``no loop nest for sort `r`: <reason>``.

    >>> from indexing.ops.element import OpaqueRule
    >>> OpaqueRule("the order of its elements depends on values").reason
    'the order of its elements depends on values'
    """

    reason: str


ElementRule: TypeAlias = (
    ConstantRule | IotaRule | ElementwiseRule | CopyRule | ReductionRule | OpaqueRule
)


class Work(NamedTuple):
    """Numbers of operations: `flops` of any element type, and `transcendentals` besides.

    >>> Work(2, 1).plus(Work(flops=3)).times(10)
    Work(flops=50, transcendentals=10)
    """

    flops: int = 0
    transcendentals: int = 0

    def plus(self, other: Work) -> Work:
        """Return the sum of both works."""
        return Work(self.flops + other.flops, self.transcendentals + other.transcendentals)

    def times(self, count: int) -> Work:
        """Return the work of `count` executions."""
        return Work(self.flops * count, self.transcendentals * count)


class DecidedRead(NamedTuple):
    """An operand that an element needs only where an integer of another operand has some value.

    Attributes:
        operand: the number of the operand that is needed.
        decider: the number of the operand that decides.
        value: its value.
        needs_value: True if the element is needed where the decider has this value; False if it is
            needed where the decider has another one.

    >>> import indexing
    >>> from hlo.ops.op import find_op
    >>> find_op("select")().decided_reads(None)[0]  # `on_true`, where the predicate is 1
    DecidedRead(operand=1, decider=0, value=1, needs_value=True)
    """

    operand: int
    decider: int
    value: int
    needs_value: bool


NO_WORK: Final = Work()
NO_DECLARED_WORK: Final = Unknown("no number of operations is declared for this op")


def element_count(shape: AnyShape) -> int:
    """Return the number of elements of the first array of a shape; 0 if it has none."""
    arrays = [leaf for _, leaf in leaves(shape) if isinstance(leaf, Shape)]
    return arrays[0].size if arrays else 0


def bounded_count(shape: AnyShape) -> int:
    """Return the number of elements of the first array of a shape; 0 if it is unknown."""
    return element_count(shape) if unbounded_leaf(shape) is None else 0


NOT_A_REDUCTION: Final = OpaqueRule(
    "an element of the result is not a reduction of operand elements"
)
ShardReduction: TypeAlias = Literal["none", "partial", "masked"]
NO_RULE: Final = "no per-element rule is declared for this op"


class ElementOp(Op):
    """An op that declares the element rule of its result.

    Its constraints and `infer_shape` must accept dimensions of unknown size; otherwise the class
    sets ``takes_partial = False``.

    Class attributes:
        rule: the element rule, if it is the same for all attributes and shapes.
        work_of_element: the work for one element of an elementwise op.
        counts_reads: True if the maps have one point for each read of an operand.
        is_view: True if the result shares the memory of operands.
        moves_bytes: False if neither the instruction itself nor a view reads or writes memory.
        written: the elements of a tuple result that the instruction writes; None for all.
        joins_operands: True if the result is the memory of the operands: nothing is written.
        is_splittable: True if the instruction can work on shards, along factors of its sharding
            rule.
        accumulates: True if floating-point results depend on an order that HLO leaves open.
        depends_on_order: True if exact results depend on an order that HLO leaves open.
        is_given: True for a value that is given, not computed.
        computes_slices: True if it computes all slices alike, along dimensions that it keeps.
        passes_leaves: True if it only passes on the arrays of tuples: it has no sharding factors.
        is_control_flow: True if the devices that execute the instruction execute its computations.
        has_local_form: False for an exchange with other devices or the host.
        creates_dimensions: True if shards of dimensions that no operand has are computed alike.
        reduces_shards: what shards along a reduced factor compute: nothing that can be combined,
            partial results, or partial results of which all but one are masked.
        linear_operands: without an element rule, the operands in which it is linear over the reals.
    """

    __slots__ = ()
    counts_reads: ClassVar[bool] = False
    is_view: ClassVar[bool] = False
    moves_bytes: ClassVar[bool] = True
    written: ClassVar[tuple[int, ...] | None] = None
    joins_operands: ClassVar[bool] = False
    is_splittable: ClassVar[bool] = False
    computes_slices: ClassVar[bool] = False
    passes_leaves: ClassVar[bool] = False
    is_control_flow: ClassVar[bool] = False
    has_local_form: ClassVar[bool] = True
    creates_dimensions: ClassVar[bool] = False
    reduces_shards: ClassVar[ShardReduction] = "none"
    linear_operands: ClassVar[tuple[int, ...]] = ()
    accumulates: ClassVar[bool] = False
    depends_on_order: ClassVar[bool] = False
    is_given: ClassVar[bool] = False
    takes_partial: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = OpaqueRule(NO_RULE)
    work_of_element: ClassVar[Work] = Work(flops=1)

    def forwarded_leaf(self, path: Path) -> tuple[int, Path] | None:
        """Operand number and path of the leaf that the result's leaf at `path` is, unchanged.

        None if the leaf is another value, or if the op does not say.
        """
        return None

    def shared_leaf(self, path: Path) -> tuple[int, Path] | None:
        """Operand number and path of the leaf in whose memory the result's leaf at `path` is.

        None if the leaf has memory of its own.
        """
        return None

    def element(self, out: Any, *operands: Any) -> ElementRule:
        """Return the rule for the elements of `out`, one array of the result.

        Args:
            out: shape of that array.
            operands: shapes of the operands.
        """
        return self.rule

    @classmethod
    def is_value(cls, instruction: Instruction, path: Path) -> bool:
        """Return False for a leaf of the result that is memory in which the instruction works.

        Its contents are undefined, so it reads nothing.
        """
        return True

    def decided_reads(self, out: Shape) -> tuple[DecidedRead, ...]:
        """Return the operands that an element needs only for some values of other operands."""
        return ()

    def work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        """Return the number of operations that compute the result, by XLA's conventions.

        The default follows from the element rule: nothing for copies, one operation or one
        application of the called computation for each element of an elementwise op.

        Args:
            out: shape of the result, which may be a tuple.
            operands: shapes of the operands.
            applied: the work of one application of each computation that the instruction calls.

        Source: XLA ``xla/service/hlo_cost_analysis.cc``.
        """
        arrays = [shape for _, shape in leaves(out)]
        match self.element(arrays[0] if arrays else out, *operands):
            case ConstantRule() | IotaRule() | CopyRule():
                return NO_WORK
            case ElementwiseRule(uses_computation=uses_computation):
                each = applied[0] if uses_computation else self.work_of_element
                return each.times(element_count(out))
            case _:
                return NO_DECLARED_WORK

    def loop_work(
        self, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
    ) -> Work | Unknown:
        """Return the operations of a loop that computes each element of the result by itself.

        They are those of `work`, unless `work` computes equal elements once.
        """
        return self.work(out, operands, applied)

    def applications(self, out: AnyShape, operands: tuple[AnyShape, ...]) -> int:
        """Return how many times the kernel applies each of its computations to single elements.

        Windows and updates are assumed to be within bounds; sizes that are unknown count as 0.

        Args:
            out: shape of the result, which may be a tuple.
            operands: shapes of the operands.
        """
        return 0


def no_work(
    op: ElementOp, out: AnyShape, operands: tuple[AnyShape, ...], applied: tuple[Work, ...]
) -> Work | Unknown:
    """Return the work of an op without arithmetic, for ops without an element rule."""
    return NO_WORK


def declarations_of(instruction: Instruction) -> type[ElementOp]:
    """Return the class that declares facts of an instruction; `ElementOp` if it has no such op."""
    cls = registered_class(instruction)
    return cls if cls is not None and issubclass(cls, ElementOp) else ElementOp


def shared_leaf(instruction: Instruction, path: Path) -> tuple[int, Path] | None:
    """Return the operand number and path of the leaf that shares memory with a leaf of the result.

    >>> import hlo, indexing.ops
    >>> entry = hlo.parse("ENTRY e { p = s8[] parameter(0) ROOT r = (s8[]) tuple(p) }").entry
    >>> shared_leaf(entry.root, (0,))
    (0, ())
    """
    op = instruction.op
    return op.shared_leaf(path) if isinstance(op, ElementOp) else None


def element_of(instruction: Instruction, output_id: int = 0) -> ElementRule:
    """Return the element rule of one array of an instruction's result.

    Args:
        output_id: number of the array among the leaves of the result.

    >>> import hlo, indexing.ops
    >>> root = hlo.parse("ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] copy(p) }").entry.root
    >>> element_of(root).is_view
    True
    """
    op = instruction.op
    if not isinstance(op, ElementOp):
        return OpaqueRule(_why_opaque(instruction))
    if isinstance(instruction.shape, Shape) and not output_id:
        return op.element(instruction.shape, *[operand.shape for operand in instruction.operands])
    arrays: list[AnyShape] = [shape for _, shape in leaves(instruction.shape)]
    out = arrays[output_id] if arrays else instruction.shape
    shapes = instruction.module.memoised(  # n outputs of a variadic reduce ask for 2n shapes each
        (element_of, instruction), lambda: [operand.shape for operand in instruction.operands]
    )
    return op.element(out, *shapes)


def _why_opaque(instruction: Instruction) -> str:
    if instruction.op is not None:
        return NO_RULE
    return why_unsupported(instruction) or "the opcode is not registered"
