"""Lowering: the values of the nests of a tiling, from the graph of its tiles and element rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo.modules.module import Computation
from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.codegen.tile_programs.online import Memo, followed_total
from indexing.codegen.tile_programs.program import (
    NotEmitted,
    StepPhase,
    StepTotal,
    TileProgram,
)
from indexing.codegen.tile_programs.tile_values import (
    Guards,
    TileApply,
    TileChoice,
    TileFold,
    TileIndex,
    TileLoad,
    TileScalar,
    TileTotal,
    TileValue,
    axes_of_exprs,
)
from indexing.ops.element import (
    ConstantRule,
    CopyRule,
    ElementRule,
    ElementwiseRule,
    IotaRule,
    OpaqueRule,
    ReductionRule,
    element_of,
)
from indexing.ops.functions import neutral
from indexing.programs.element import literal_of
from indexing.tiling.computations.tile_graph import TileGraph, TileNode
from indexing.tiling.loops.loop_model import loop_model
from indexing.tiling.loops.loop_tiling import LoopTiling
from indexing.tiling.loops.looped import tiling_of_model
from indexing.tiling.loops.nests import BlockNest, NestKey, used_map
from indexing.tiling.loops.phases import LoopPhase
from indexing.tiling.sizes.tile_sizes import dimension_of
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.substitute import Substitution
from simplifier.unknown import Unknown


def tile_program(tiling: LoopTiling) -> TileProgram:
    """Return the program of a tiling.

    Raises:
        NotEmitted: a step has no values of this form; the message names the instruction.
    """
    model = tiling.model
    if tiling.split_k > 1:
        raise NotEmitted("blocks that share a loop by split_k store partial results")
    plain = loop_model(model.instruction, model.to, model.output_id, masks=False)
    if isinstance(plain, Unknown):
        raise NotEmitted(plain.reason)
    steps = {loop.name: loop.step for loop in tiling.loops}
    unmasked = tiling_of_model(plain, tiling.sizes, steps, tiling.allows_online, 1)
    return _ProgramBuilder(unmasked).program()


class _ProgramBuilder:
    """The values of all phases."""

    def __init__(self, tiling: LoopTiling) -> None:
        self._tiling, self._model = tiling, tiling.model
        self._numbers = {nest.key: k for k, nest in enumerate(self._model.nests)}
        self._folds: dict[int, TileFold] = {}
        self._phase_of: dict[int, int] = {}
        self._known: dict[int, dict[tuple[object, ...], TileValue]] = {}

    def program(self) -> TileProgram:
        phases = tuple([self._phase(k, p) for k, p in enumerate(self._tiling.loop_phases)])
        return TileProgram(
            self._tiling,
            self._tiling.axes,
            self._model.rank,
            self._tiling.serial,
            phases,
            self._model.instruction.name,
        )

    def _phase(self, number: int, phase: LoopPhase) -> StepPhase:
        for axis in phase.all_loops:
            if axis not in phase.loops and self._tiling.axes[axis].count > 1:
                raise NotEmitted(
                    f"a loop within the iterations of another has "
                    f"{self._tiling.axes[axis].count} steps: give it one"
                )
        totals: list[StepTotal] = []
        result: TileValue | None = None
        memo: Memo = {}
        for nest in phase.nests:
            self._phase_of[id(nest)] = number
            values = _NestValues(self, phase, nest, number)
            if nest.key is None:
                (root,) = self._model.graph.roots
                result = values.value(root)
                continue
            fold = values.fold_of(nest)
            own = self._numbers[nest.key]
            self._folds[own] = fold
            known = {total.number: total for total in totals}
            totals.append(followed_total(own, fold, known, memo))
        return StepPhase(phase.loops, tuple(totals), result)

    def total(self, key: NestKey, phase: int) -> TileTotal:
        """Return the result of a nest, for use in a phase."""
        number = self._numbers[key]
        nest = self._model.nests[number]
        fold = self._folds[number]
        state = "running" if self._phase_of[id(nest)] == phase else "final"
        return TileTotal(number, state, fold.kind, fold.axes, fold.name)  # type: ignore[arg-type]

    def known(self, phase: int) -> dict[tuple[object, ...], TileValue]:
        """Return the values of a phase, which its nests share."""
        return self._known.setdefault(phase, {})

    @property
    def graph(self) -> TileGraph:
        return self._model.graph

    @property
    def sizes(self) -> tuple[int, ...]:
        return self._model.sizes

    def steps_of(self, axis: int) -> int:
        return self._tiling.axes[axis].count


class _NestValues:
    """The values that a nest computes in a step."""

    def __init__(
        self, program: _ProgramBuilder, phase: LoopPhase, nest: BlockNest, number: int
    ) -> None:
        self._program, self._number, self._nest = program, number, nest
        self._renamed = phase.renamed
        self._loops = set(nest.loops)
        self._known = program.known(number)

    # ------------------------------------------------------------ nodes

    def fold_of(self, nest: BlockNest) -> TileFold:
        """Return what a step of a nest adds to its result."""
        values = [self._fold(node) for node in nest.starts[:1]]
        return values[0]

    def value(self, node: TileNode) -> TileValue:
        """Return the value of a tile."""
        if node.map is None or node.map.ranges or node.map.runtime:
            raise NotEmitted(self._fault(node))
        array = node.array
        key = (array, *self._index(node), self._limits(node))
        if key not in self._known:
            self._known[key] = self._new(node)
        return self._known[key]

    def _fault(self, node: TileNode) -> str:
        name = node.array.instruction.name
        if node.map is None:
            assert node.unknown is not None
            return node.unknown.reason
        if node.map.runtime:
            return f"the index into `{name}` depends on runtime values"
        return f"a tile needs several elements of `{name}` at once, along no loop"

    def _new(self, node: TileNode) -> TileValue:
        graph, array = self._program.graph, node.array
        assert node.map is not None
        instruction = array.instruction
        if graph.loop_table.get(array._replace(path=())):
            return self._reduced_value(node)
        kind = _kind(node)
        index = self._index(node)
        rule = _rule_of(node)
        if isinstance(rule, ConstantRule):
            return self._constant(node, kind, index)
        if not node.operands and graph.is_input(array):
            return TileLoad(array, index, kind, axes_of_exprs(index))
        match rule:
            case IotaRule(dimension):
                return TileIndex(index[dimension], kind, axes_of_exprs([index[dimension]]))
            case ElementwiseRule(function=None) | ElementwiseRule(reads_nothing=True):
                raise NotEmitted(f"`{instruction.name}` applies a computation to its elements")
            case ElementwiseRule(function=function):
                assert function is not None
                arguments = [self._only(node, k) for k in range(len(instruction.operands))]
                return TileApply(function, tuple(arguments), kind, instruction.name)
            case CopyRule():
                return self._copy_value(node, rule, kind)
            case OpaqueRule(reason):
                raise NotEmitted(f"{instruction.opcode} `{instruction.name}`: {reason}")
            case ReductionRule():
                return self._fold(node)

    def _constant(self, node: TileNode, kind: str, index: tuple[Expr, ...]) -> TileValue:
        value = literal_of(node.array.instruction, node.array.path)
        if isinstance(value, Unknown):
            raise NotEmitted(value.reason)
        first = value.reshape(-1)[:1].reshape(())
        if value.size == 1 or np.all(value == first):
            return TileScalar(first, kind)
        if all(expr.is_constant for expr in index):
            return TileScalar(np.asarray(value[tuple([e.constant for e in index])]), kind)
        raise NotEmitted(f"the constant `{node.array.instruction.name}` has different elements")

    def _children(self, node: TileNode, operand: int) -> list[TileNode]:
        return [child for number, child in node.operands if number == operand]

    def _only(self, node: TileNode, operand: int) -> TileValue:
        """Return the only element of an operand that an element reads."""
        children = self._children(node, operand)
        if len(children) != 1 or self._guards(node, children[0]):
            name = node.array.instruction.operands[operand].name
            raise NotEmitted(f"`{node.array.instruction.name}` reads `{name}` in several pieces")
        return self.value(children[0])

    def _copy_value(self, node: TileNode, rule: CopyRule, kind: str) -> TileValue:
        name = node.array.instruction.name
        if rule.parts > 1 or rule.joins_parts:
            raise NotEmitted(f"`{name}` changes the number of bits of its elements")
        pieces = [child for k in rule.operands for child in self._children(node, k)]
        cases: list[tuple[Guards, TileValue]] = []
        otherwise: TileValue | None = None
        for child in pieces:
            guards, value = self._guards(node, child), self.value(child)
            if not guards or (child.map is not None and child.map.grade == "may"):
                otherwise = value
            else:
                cases.append((guards, value))
        if otherwise is None and rule.has_padding:
            otherwise = TileScalar(np.zeros((), dtype(kind)), kind)
        if otherwise is None and cases:
            otherwise = cases.pop()[1]
        return self._choice(cases, otherwise, rule, kind, name)

    @staticmethod
    def _choice(
        cases: Sequence[tuple[Guards, TileValue]],
        otherwise: TileValue | None,
        rule: CopyRule,
        kind: str,
        name: str,
    ) -> TileValue:
        """Return the value of the first case whose guards hold, after the function of a rule."""
        if otherwise is None:
            raise NotEmitted(f"no element of an operand is known for `{name}`")
        value = TileChoice(tuple(cases), otherwise, kind, name) if cases else otherwise
        return value if rule.function is None else TileApply(rule.function, (value,), kind, name)

    # ------------------------------------------------------------ reductions

    def _reduced_value(self, node: TileNode) -> TileValue:
        """Return the value of a reduction: of a nest before, or computed in each iteration."""
        assert node.map is not None
        key = NestKey(node.array._replace(path=()), used_map(node.map))
        own = [dimension_of(v) for _, v in self._program.graph.loop_table[key.array]]
        if not {dimension_of(d) for d in key.map.dims} & self._all_loops:
            return self._program.total(key, self._number)
        for axis in own:
            if self._program.steps_of(axis) > 1:
                raise NotEmitted(f"the loop of `{node.array.instruction.name}` has several steps")
        return self._fold(node)

    @property
    def _all_loops(self) -> set[int]:
        nested = {axis for read in self._nest.reads for axis in read.loops}
        return self._loops | nested

    def _fold(self, node: TileNode) -> TileFold:
        instruction = node.array.instruction
        rule = _rule_of(node)
        if not isinstance(rule, ReductionRule) or rule.is_scatter or len(rule.inits) > 1:
            raise NotEmitted(
                f"{instruction.opcode} `{instruction.name}` is not a fold of one value"
            )
        ufunc: np.ufunc = np.add
        if rule.uses_computation:
            ufunc = _ufunc(instruction.called_computations[0])
        guards: dict[Constraint, None] = {}
        terms: list[TileValue] = []
        for number in rule.values:
            children = self._children(node, number)
            child = children[0] if len(children) == 1 else None
            if child is None or child.map is None or child.map.ranges:
                raise NotEmitted(f"`{instruction.name}` reduces elements that no single map gives")
            guards.update(dict.fromkeys(self._guards(node, child)))
            terms.append(self.value(child))
        init = self._only(node, rule.inits[0]) if rule.inits else None
        if isinstance(init, TileScalar) and _is_neutral(init.value, ufunc):
            init = None
        loops = [dimension_of(v) for _, v in self._program.graph.loop_table[_bare(node)]]
        over = tuple(sorted([self._renamed.get(axis, axis) for axis in loops]))
        kind = _kind(node)
        total = _total_kind(kind, ufunc)
        name = instruction.name
        return TileFold(ufunc, tuple(terms), init, over, tuple(guards), total, kind, name)

    # ------------------------------------------------------------ domains

    def _limits(self, node: TileNode) -> frozenset[Constraint]:
        """Return the conditions under which a tile has elements."""
        assert node.map is not None
        swap = self._swap(node)
        limits = [c.with_expr(swap(c.expr)) for c in node.map.constraints if not c.is_true]
        for d in node.map.dims:
            if d.bounds != (0, self._program.sizes[dimension_of(d)] - 1):
                limits.append(Constraint(self._whole(d), *d.bounds))
        return frozenset(limits)

    def _swap(self, node: TileNode) -> Substitution:
        """Return the change to the whole axes of the phase: a map may have a part of an axis."""
        assert node.map is not None
        swap: dict[Variable, Expr] = {}
        for d in node.map.dims:
            swap[d] = self._whole(d)
        return Substitution(swap)

    def _whole(self, dimension: Variable) -> Expr:
        """Return the index along the whole axis of a dimension."""
        axis = self._renamed.get(dimension_of(dimension), dimension_of(dimension))
        return Variable(f"d{axis}", 0, self._program.sizes[axis] - 1).as_expr()

    def _index(self, node: TileNode) -> tuple[Expr, ...]:
        """Return the index of the elements of a tile."""
        assert node.map is not None
        return tuple(map(self._swap(node), node.map.results))

    def _guards(self, node: TileNode, child: TileNode) -> Guards:
        """Return the conditions of an operand's tile that its user does not have."""
        if child.map is None:
            raise NotEmitted(self._fault(child))
        before = self._limits(node)
        return tuple(sorted(self._limits(child) - before, key=str))


def _bare(node: TileNode) -> Any:
    return node.array._replace(path=())


def _kind(node: TileNode) -> str:
    shape = node.array.array_shape
    if shape is None:
        raise NotEmitted(f"`{node.array.instruction.name}` is not an array")
    return shape.element_type


def _rule_of(node: TileNode) -> ElementRule:
    if node.array.path:
        return OpaqueRule("it is a part of a tuple")
    return element_of(node.array.instruction)


def _ufunc(computation: Computation) -> np.ufunc:
    """Return the ufunc of a computation of two numbers."""
    root = computation.root
    rule = element_of(root)
    if isinstance(rule, ElementwiseRule) and rule.function is not None:
        ufunc: np.ufunc | None = rule.function.ufunc
        names = {operand.name for operand in root.operands}
        if ufunc is not None and names == {each.name for each in computation.parameters}:
            return ufunc
    raise NotEmitted(f"the computation `{computation.name}` is not a function of a reduction")


def _is_neutral(value: Any, ufunc: np.ufunc) -> bool:
    own = neutral(ufunc, value.dtype)
    return bool(value == own) or (ufunc is np.add and bool(value == 0))


def _total_kind(kind: str, ufunc: np.ufunc) -> str:
    """Return the element type in which a fold accumulates: sums of narrow floats use f32."""
    element = ELEMENT_TYPES[kind]
    is_narrow = element.kind == "floating" and element.bits < 32
    return "f32" if is_narrow and ufunc in (np.add, np.multiply) else kind
