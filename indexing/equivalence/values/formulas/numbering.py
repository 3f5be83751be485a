"""Value numbers of arrays: calls inlined, tuples routed, equal computations numbered once.

Both programs share one `Numbering`.  Arrays with equal numbers have equal values, whatever the
parameters are.

>>> import hlo, indexing.ops
>>> module = hlo.parse('''
... double { x = f32[3] parameter(0)  ROOT y = f32[3] add(x, x) }
... ENTRY e { p = f32[3] parameter(0)  f = f32[3] fusion(p), kind=kLoop, calls=double
...   a = f32[3] add(p, p)  ROOT t = (f32[3], f32[3]) tuple(f, a) }''')
>>> f, a = Numbering().outputs(module.entry)
>>> f is a
True
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, TypeAlias

from hlo.modules.calls import callees_of
from hlo.modules.effects import has_own_effect, value_attributes
from hlo.modules.module import Computation, Instruction, Module
from hlo.modules.recursion import Recursive
from hlo.shapes.shape import AnyShape, Shape, leaves
from indexing.dataflow.queries import element_reads
from indexing.maps.answers import Unknown
from indexing.maps.arrays import Path
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.ops.base import RoutingOp
from indexing.ops.collective_bases import Collective, OwnAttributes
from indexing.ops.control import BRANCHES, AsyncStart, Conditional, While, callees
from indexing.ops.element import CopyRule, ElementOp, ElementwiseRule, element_of
from indexing.ops.structured_ops import InlineOp
from indexing.ops.targets.regions import Border
from indexing.programs.arrays import ProgramArrays, is_unique
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution
from simplifier.unknown import first_unknown

MAX_INLINED: Final = 1 << 17
"""Limit on the instructions that are numbered, calls inlined."""


class NoFormula(Exception):
    """A program is beyond the comparison of values.

    Attributes:
        unknown: the reason.
    """

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.reason)
        self.unknown = unknown


@dataclass(frozen=True, slots=True, eq=False)
class NumberedArray:
    """An array of a program; arrays of equal value share one.

    Attributes:
        number: larger than the numbers of its operands.
        shape: its shape; None for a token.
        instruction: one of the instructions that compute it; None for an argument.
        leaf: the number of the leaf of the instruction's value.
        path: the same as a path.
        operands: the leaves of each operand, by path.
        view: the index of the element of the only operand, if the array only moves elements; over
            the dimensions ``d0, d1, …``.
        argument: the number and path of a parameter of the computation, or None.
    """

    number: int
    shape: Shape | None
    instruction: Instruction | None
    leaf: int
    path: Path
    operands: tuple[Leaves, ...]
    view: tuple[Expr, ...] | None = None
    argument: tuple[int, Path] | None = None

    @property
    def only(self) -> NumberedArray:
        """The array of the only operand."""
        ((array,),) = [list(tree.values()) for tree in self.operands]
        return array


Leaves: TypeAlias = Mapping[Path, NumberedArray]


class Numbering(ProgramArrays[NumberedArray]):
    """Value numbers of the arrays of several programs.

    Attributes:
        instructions: the number of instructions so far, calls inlined.
    """

    def __init__(self) -> None:
        super().__init__()
        self.arrays: dict[Hashable, NumberedArray] = {}
        self.results: dict[Computation, Leaves] = {}
        self._instructions_of: dict[tuple[Module, int], Instruction] = {}
        self._effects: dict[tuple[int, Hashable], int] = {}
        self._count = 0
        self.instructions = 0

    def outputs(self, computation: Computation) -> list[NumberedArray]:
        """Return the leaves of a computation's result."""
        return list(self.result(computation).values())

    def result(self, computation: Computation) -> Leaves:
        """Return the result of a computation as a function of its arguments."""
        if computation not in self.results:
            inputs = self.arguments(computation, {})
            self.results[computation] = self.inline(computation, inputs)
        return self.results[computation]

    def arguments(self, computation: Computation, numbers: Mapping[int, int]) -> list[Leaves]:
        """Return the arguments of a computation; some parameters have other `numbers`."""
        parameters = enumerate(computation.parameters)
        return [self._argument(numbers.get(k, k), each.shape) for k, each in parameters]

    def _argument(self, number: int, shape: AnyShape) -> Leaves:
        arrays = {}
        for path, leaf in leaves(shape):
            array_shape = leaf if isinstance(leaf, Shape) else None
            key = "argument", number, path, _shape_key(array_shape)
            arrays[path] = self._add(key, array_shape, argument=(number, path))
        return arrays

    def enter(self, computation: Computation, values: Mapping[Instruction, Leaves]) -> None:
        """Count the instructions of a computation, and compare the types of its arguments."""
        self.instructions += len(computation)
        if self.instructions > MAX_INLINED:
            reason = f"budget: more than {MAX_INLINED} instructions, calls inlined"
            raise NoFormula(Unknown(reason, computation.root))
        for parameter, value in values.items():
            _require_equal_types(parameter, value)

    def apply_to(self, instruction: Instruction, operands: tuple[Leaves, ...]) -> Recursive[Leaves]:
        """Return the value of an instruction applied to these operands."""
        _require_equal_states(instruction)
        value: Leaves
        if isinstance(instruction.op, AsyncStart) and not is_unique(instruction):
            value = yield self._start_value(instruction, operands)
        else:
            value = yield from super().apply_to(instruction, operands)
        is_forwarded = isinstance(instruction.op, InlineOp | RoutingOp)
        for path, leaf in leaves(instruction.shape) if is_forwarded else ():
            given = value[path].shape if path in value else None
            if isinstance(leaf, Shape) and given and leaf.element_type != given.element_type:
                reason = f"`{instruction.name}` is {leaf}, but its value is {given}"
                raise NoFormula(Unknown(reason, instruction))
        return value

    def _start_value(
        self, instruction: Instruction, operands: tuple[Leaves, ...]
    ) -> Recursive[Leaves]:
        """Return the value of an `async-start`: operands, and the result of its computation."""
        called = instruction.called_computations[0]
        values: Mapping[Instruction, Leaves] = yield self.values_of(called, operands, [called.root])
        started = {(1, *path): array for path, array in values[called.root].items()}
        for number, operand in enumerate(operands):
            started |= {(0, number, *path): array for path, array in operand.items()}
        own = self.compute_value(instruction, operands)
        given = {
            path: started[path]
            for path, shape in leaves(instruction.shape)
            if path in started and isinstance(shape, Shape) and _has_type(started[path], shape)
        }
        return {**own, **given}

    def compute_value(self, instruction: Instruction, operands: tuple[Leaves, ...]) -> Leaves:
        """Return the value of an instruction; equal ones have one."""
        key = self._key(instruction, operands)
        result = {}
        for leaf, (path, shape) in enumerate(leaves(instruction.shape)):
            array_shape = shape if isinstance(shape, Shape) else None
            forwarded = _forward_value(instruction, path, operands)
            if forwarded is not None and _has_type(forwarded, array_shape):
                result[path] = forwarded
                continue
            own = self._exchanged_key(instruction, path, operands) or (*key, leaf)
            result[path] = self._view(instruction, array_shape, operands) or self._add(
                (*own, _shape_key(array_shape)),
                array_shape, instruction, leaf, path, operands,
            )  # fmt: skip
            self._instructions_of.setdefault((instruction.module, result[path].number), instruction)
        return result

    def instruction_in(self, module: Module, numbers: Iterable[int]) -> Instruction | None:
        """Return the first instruction of a module whose value has one of these numbers."""
        known = [self._instructions_of.get((module, number)) for number in numbers]
        return next(filter(None, known), None)

    def _exchanged_key(
        self, instruction: Instruction, path: Path, operands: tuple[Leaves, ...]
    ) -> tuple[Hashable, ...] | None:
        """Return the key of the collective of one array that has a leaf as its result, if any."""
        single = exchange_of_one(instruction, path)
        if single is None:
            return None
        opcode, attributes, number = single
        numbers = numbers_of([operands[number]])
        return opcode, attributes, numbers, self._called_key(instruction)

    def _called_key(self, instruction: Instruction) -> tuple[Hashable, ...]:
        called = []
        for name, computations in sorted(callees_of(instruction).items()):
            results = numbers_of(map(self.result, computations))
            called.append((name if instruction.op is None else "", *results))
        return tuple(called)

    def _key(self, instruction: Instruction, operands: tuple[Leaves, ...]) -> tuple[Hashable, ...]:
        numbers = list(numbers_of(operands))
        if is_commutative(instruction):
            numbers.sort()
        called, literal = self._called_key(instruction), literal_key(instruction)
        key = instruction.opcode, attributes_of(instruction), tuple(numbers), called, literal
        if is_unique(instruction):
            program = id(instruction.module)
            turn = self._effects.get((program, key), 0)
            self._effects[program, key] = turn + 1
            return (*key, turn)
        return key

    # ------------------------------------------------------------ views

    def _view(
        self, instruction: Instruction, shape: Shape | None, operands: tuple[Leaves, ...]
    ) -> NumberedArray | None:
        """Return the array of an instruction that only moves elements of one array."""
        moved = self._movement(instruction, shape) if len(operands) == 1 else None
        if moved is None or shape is None:
            return None
        (base,) = operands[0].values()
        d = dims(shape)
        own = [v.as_expr() if v.upper else as_expr(0) for v in d]
        index = tuple(map(Substitution(dict(zip(moved.dims, own, strict=True))), moved.results))
        while base.view is not None:
            assert base.shape is not None
            swap = Substitution(dict(zip(dims(base.shape), index, strict=True)))
            index, base = tuple(map(swap, base.view)), base.only
        if base.shape is not None and base.shape.dims == shape.dims and index == tuple(own):
            return base
        key = "view", base.number, shape.dims, index
        return self._add(key, shape, instruction, 0, (), ({(): base},), view=index)

    def _movement(self, instruction: Instruction, shape: Shape | None) -> IndexingMap | None:
        """Return the map of an instruction that only moves elements, if it is one map."""
        operand = instruction.operands[0].shape
        if shape is None or not isinstance(operand, Shape):
            return None
        if operand.is_dynamic or shape.is_dynamic or operand.element_type != shape.element_type:
            return None
        rule = element_of(instruction)
        if not isinstance(rule, CopyRule) or rule != CopyRule(rule.operands, is_view=rule.is_view):
            return None
        answer = element_reads(instruction, 0)
        (maps,) = answer.maps
        if first_unknown(*answer.unknown) is not None or len(maps) != 1:
            return None
        is_whole = [v.bounds for v in maps[0].dims] == [(0, size - 1) for size in shape.dims]
        return maps[0] if is_whole and _is_plain(maps[0]) else None

    def _add(
        self,
        key: Hashable,
        shape: Shape | None,
        instruction: Instruction | None = None,
        leaf: int = 0,
        path: Path = (),
        operands: tuple[Leaves, ...] = (),
        **more: Any,
    ) -> NumberedArray:
        known = self.arrays.get(key)
        if known is None:
            self._count += 1
            known = NumberedArray(self._count, shape, instruction, leaf, path, operands, **more)
            self.arrays[key] = known
        return known


def _has_type(array: NumberedArray, shape: Shape | None) -> bool:
    return bool(shape and array.shape and array.shape.element_type == shape.element_type)


def _forward_value(
    instruction: Instruction, path: Path, operands: tuple[Leaves, ...]
) -> NumberedArray | None:
    """Return the array of an operand that a leaf of a result is, such as that of a copy-start."""
    op = instruction.op
    if not isinstance(op, ElementOp) or has_own_effect(instruction):
        return None
    leaf = op.forwarded_leaf(path)
    return None if leaf is None else operands[leaf[0]].get(leaf[1])


def exchange_of_one(instruction: Instruction, path: Path) -> tuple[str, OwnAttributes, int] | None:
    """Return opcode, attributes and operand of the collective of one array that a leaf is, if any.

    A combined or an asynchronous collective is the same as one for each array.
    """
    op = instruction.op
    return op.of_one_array(instruction, path) if isinstance(op, Collective | Border) else None


def attributes_of(instruction: Instruction) -> tuple[tuple[str, Hashable], ...]:
    """Return the attributes of an instruction that are part of its value, sorted by name."""
    return tuple(sorted(value_attributes(instruction).items(), key=itemgetter(0)))


def is_commutative(instruction: Instruction) -> bool:
    """Return True if the operands of an elementwise instruction can be exchanged."""
    if len(instruction.operands) != 2 or not isinstance(instruction.op, ElementOp):
        return False
    rule = element_of(instruction)
    return isinstance(rule, ElementwiseRule) and bool(rule.function and rule.function.commutes)


def _is_plain(indexing_map: IndexingMap) -> bool:
    """Return True for an exact map without further variables and constraints."""
    others = indexing_map.ranges or indexing_map.runtime or indexing_map.constraints
    return not others and indexing_map.grade == "exact"


def literal_key(instruction: Instruction) -> Hashable:
    """Return a key of an instruction's literal; an elided one is equal to no other."""
    if instruction.literal is None:
        return None
    text = instruction.literal.printed
    return (id(instruction), text) if "..." in text else "".join(text.split())


def _shape_key(shape: Shape | None) -> Hashable:
    if shape is None:
        return None
    return shape.element_type, shape.dims, shape.is_dynamic


def numbers_of(values: Iterable[Leaves]) -> tuple[tuple[tuple[Path, int], ...], ...]:
    """Return the numbers of the arrays of some values, with their paths."""
    return tuple([tuple([(p, array.number) for p, array in v.items()]) for v in values])


def _require_equal_types(parameter: Instruction, value: Leaves) -> None:
    for path, leaf in leaves(parameter.shape):
        given = value[path].shape
        if isinstance(leaf, Shape) and _shape_key(leaf) != _shape_key(given):
            reason = f"`{parameter.name}` is {leaf}, but the argument is {given}"
            raise NoFormula(Unknown(reason, parameter))


def _require_equal_states(instruction: Instruction) -> None:
    """Raise `NoFormula` if a loop or a conditional passes on a value as one of another type."""
    pairs: list[tuple[AnyShape, AnyShape]] = []
    called, operands = instruction.called_computations, instruction.operands
    if isinstance(instruction.op, While):
        _, body = callees(instruction, "condition", "body")
        shapes = [operands[0].shape, body.root.shape, *[c.parameters[0].shape for c in called]]
        pairs = [(instruction.shape, shape) for shape in shapes]
    elif isinstance(instruction.op, Conditional):
        branches = callees(instruction, *BRANCHES)
        pairs = [(instruction.shape, branch.root.shape) for branch in branches]
        taken = zip(branches, operands[1:], strict=True)
        pairs += [(branch.parameters[0].shape, operand.shape) for branch, operand in taken]
    for declared, given in pairs:
        if _types(declared) != _types(given):
            reason = f"`{instruction.name}` passes on {given} as {declared}"
            raise NoFormula(Unknown(reason, instruction))


def _types(shape: AnyShape) -> list[str]:
    return [leaf.element_type for _, leaf in leaves(shape) if isinstance(leaf, Shape)]


def needed_arrays(
    roots: Sequence[NumberedArray], known: Container[int] = ()
) -> Iterator[NumberedArray]:
    """Yield the arrays that the roots depend on, operands first, without those that are known."""
    visited: dict[int, NumberedArray] = {}
    pending = list(roots)
    while pending:
        array = pending.pop()
        if array.number not in visited and array.number not in known:
            visited[array.number] = array
            pending += [leaf for tree in array.operands for leaf in tree.values()]
    return (visited[number] for number in sorted(visited))
