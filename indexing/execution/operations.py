"""The element operations that an execution takes, counted before it starts.

An instruction takes the operations of `indexing.ops.work`, and at least one for each element that
it writes; where elements of the result are not copies or functions of single elements, at least one
for each element that it reads.  Arrays that are never stored count, too: a reduction of a broadcast
scalar adds as many elements as one of a stored array.  Views take no operations.
`indexing.traffic` counts the arithmetic operations alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hlo.modules.find import CALLING
from hlo.modules.module import Computation, Instruction
from hlo.modules.recursion import bottom_up
from hlo.shapes.shape import AnyShape, Shape, leaves, unbounded_leaf
from indexing.execution.effects import needed_instructions
from indexing.execution.values import ExecutionError
from indexing.memory.executions import executions_from
from indexing.ops.base import RoutingOp
from indexing.ops.collective_bases import Collective
from indexing.ops.control import AsyncStart
from indexing.ops.element import (
    ConstantRule,
    CopyRule,
    ElementOp,
    ElementwiseRule,
    IotaRule,
    declarations_of,
    element_of,
)
from indexing.ops.scan import Scan
from indexing.ops.structured_ops import InlineOp
from indexing.ops.work import work_of
from simplifier.unknown import Unknown

MAX_OPERATIONS: Final = 500_000_000_000
"""Default limit on the element operations of an execution: beyond it, they run for minutes."""

DEVICE_OPERATIONS: Final = 1_000_000
"""What the thread of one of several devices costs, in element operations: about as much time."""


def operations_of(instruction: Instruction, devices: int = 1) -> int:
    """Return the element operations of one instruction, without those of its loop, branch or call.

    Args:
        devices: the number of devices that execute it; each reads the operands of all others in a
            collective.

    >>> import hlo, indexing.ops
    >>> module = hlo.parse('''
    ... add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ... ENTRY e { p = f32[] parameter(0)  b = f32[1000,1000] broadcast(p), dimensions={}
    ...   ROOT r = f32[] reduce(b, p), dimensions={0,1}, to_apply=add }''')
    >>> [operations_of(module.entry[name]) for name in "br"]
    [0, 1000002]
    """
    op = instruction.op
    is_given = declarations_of(instruction).is_given
    if is_given or instruction.opcode in CALLING or isinstance(op, RoutingOp):
        return 0
    if isinstance(op, InlineOp | AsyncStart):
        return sum(map(inline_operations, instruction.called_computations))
    written = _elements(instruction.shape)
    read = sum([_elements(operand.shape) for operand in instruction.operands])
    if isinstance(op, Scan):
        step = sum(map(inline_operations, instruction.called_computations))
        return written + read + op.steps(instruction.operands[0].shape) * step
    if not isinstance(op, ElementOp):
        return written + read
    if isinstance(op, Collective):
        return written + read * devices
    match element_of(instruction):
        case CopyRule() as rule:
            return 0 if rule.is_view else written
        case ConstantRule() | IotaRule() | ElementwiseRule():
            touched = written
        case _:
            touched = written + read
    work = work_of(instruction)
    return touched if isinstance(work, Unknown) else max(touched, sum(work))


def _elements(shape: AnyShape) -> int:
    """Return the number of elements of all arrays whose size is known."""
    arrays = [leaf for _, leaf in leaves(shape) if isinstance(leaf, Shape)]
    return sum([array.size for array in arrays if unbounded_leaf(array) is None])


def inline_operations(computation: Computation) -> int:
    """Return the element operations of one execution, without those of loops and branches.

    Fusions and calls count as the instructions that they execute.
    """
    return bottom_up(computation, inline_operations, _sum_of_operations, _all_inlined_computations)


def _sum_of_operations(computation: Computation) -> int:
    calls = [i for i in needed_instructions(computation) if i.opcode in CALLING]
    called = [inlined for call in calls for inlined in _inlined_computations(call)]
    return sum(map(inline_operations, called)) + sum(
        map(operations_of, needed_instructions(computation))
    )


def _inlined_computations(instruction: Instruction) -> tuple[Computation, ...]:
    """Return the computations that an instruction executes once."""
    is_inlined = isinstance(instruction.op, InlineOp | AsyncStart)
    return tuple(instruction.called_computations) if is_inlined else ()


def _all_inlined_computations(computation: Computation) -> list[Computation]:
    return [
        called
        for instruction in needed_instructions(computation)
        for called in _inlined_computations(instruction)
    ]


def element_operations(computation: Computation, devices: int = 1) -> int:
    """Return the element operations that an execution takes at least.

    Loops of a known number of iterations count, and the shortest number of other loops; branches
    of conditionals do not.

    Args:
        devices: the number of devices that execute the computation.
    """
    overhead = DEVICE_OPERATIONS if devices > 1 else 0
    total = computation.memoised(
        (element_operations, devices), lambda: sum(map(_sum, _rows(computation, devices)))
    )
    return (overhead + total) * devices


def _sum(row: tuple[Instruction, int, int]) -> int:
    return row[1] * row[2]


def _rows(computation: Computation, devices: int) -> Iterator[tuple[Instruction, int, int]]:
    """Yield each executed instruction, its operations, and its executions at least."""
    for executed, times in executions_from(computation).items():
        if times.lower:
            for instruction in needed_instructions(executed):
                yield instruction, operations_of(instruction, devices), times.lower


def check_operations(computation: Computation, limit: int, devices: int = 1) -> None:
    """Check that an execution takes at most `limit` element operations.

    Raises:
        ExecutionError: it takes more; the error points at the instruction that takes most of them.
    """
    required = element_operations(computation, devices)
    if required <= limit:
        return
    largest = max(_rows(computation, devices), key=_sum, default=(computation.root, 0, 0))
    instruction, label = largest[0], f"`{largest[0].name}` takes {_sum(largest):,} of them"
    if devices > 1:
        label += f", on each of {devices:,} devices"
        if _sum(largest) < DEVICE_OPERATIONS:
            label = f"{devices:,} devices, each of which counts as {DEVICE_OPERATIONS:,}"
    raise excess(instruction, required, limit, label)


def excess(instruction: Instruction, required: int, limit: int, label: str) -> ExecutionError:
    """Return the error that an execution takes more operations than the limit."""
    message = f"the execution takes {required:,} element operations, more than {limit:,}"
    help = f"raise the limit with --max-operations {required}"  # noqa: A001 - the word of `HloError`
    note = (
        "an instruction takes the operations that `bytes` counts, or the elements that it reads "
        "and writes if these are more"
    )
    return ExecutionError(message, instruction.span, "execution", label, [note], help)


class Meter:
    """Counts the element operations of loops and branches while they are executed.

    Attributes:
        limit: the maximum of all devices.
        devices: the number of devices, which are assumed to execute the same.
        count: the operations so far.
    """

    def __init__(self, limit: int, devices: int = 1) -> None:
        self.limit, self.devices, self.count = limit, devices, 0

    def add(self, instruction: Instruction, *executed: Computation) -> None:
        """Count one execution of computations that a loop or conditional executes.

        Raises:
            ExecutionError: the operations exceed the limit.
        """
        self.count += sum(map(inline_operations, executed)) * self.devices
        if self.count > self.limit:
            label = f"`{instruction.name}` executes `{executed[0].name}` again"
            raise excess(instruction, self.count, self.limit, label)
