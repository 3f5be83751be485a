"""What is demanded of each array of a program, and how it is made: the plan of a loop nest.

See `indexing.codegen.build` for when an array gets a stage of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from hlo.modules.bind import check_instruction
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import dtype, leaves
from hlo.text.source import HloError
from indexing.codegen.functions import identifier
from indexing.codegen.nest import Array, Buffer, Function, Place, Read, Scalar
from indexing.codegen.partition import check_partition
from indexing.codegen.plans import (
    CasePlan,
    FoldPlan,
    Index,
    Key,
    NotSaid,
    PlacingPlan,
    Plan,
    StagePlan,
    Wanted,
)
from indexing.codegen.rules import Computes, Counts, Folds, Moves, Rule, Says, rule_of
from indexing.codegen.values import Value, literal
from indexing.dataflow.queries import input_to_output, output_to_input
from indexing.maps.answers import Answer, Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.interval import contains
from simplifier.linear import Expr, as_expr
from simplifier.substitute import Substitution

# So many different indices at which an array is computed anew; beyond, it gets a buffer.
MOST_COPIES = 4


class Demands:
    """What is demanded of each array, and the plans that follow from it."""

    def __init__(
        self, inputs: Sequence[Value], function: Callable[[Computation], Function]
    ) -> None:
        self.function = function
        self.names: set[str] = {"out"}
        self.inputs = {value: self._input(value) for value in inputs}
        self.constants: dict[Value, Buffer] = {}
        self.stages: list[StagePlan] = []
        self.staged: dict[object, StagePlan] = {}  # by group
        self.demands: dict[Value, dict[Key, None]] = {}
        self.waiting: list[tuple[int, Value]] = []
        self.plans: dict[Key, Plan] = {}

    def _input(self, value: Value) -> Buffer:
        kind = dtype(value.shape.element_type)
        return Buffer(self._name(value), value.shape.dims, kind, "input")

    def _name(self, value: Value) -> str:
        """A name for the buffer of an array."""
        name = stem = identifier(value.instruction.name)
        number = 1
        while name in self.names:
            number += 1
            name = f"{stem}_{number}"
        self.names.add(name)
        return name

    # ------------------------------------------------------------ the whole

    def fill(self, result: Value, output: Buffer) -> None:
        """Plan the stages that fill `output`."""
        self._stage_of(result, output)
        self.follow()

    def follow(self) -> None:
        """Plan all that is demanded, and what that demands."""
        while self.waiting:
            _, value = heapq.heappop(self.waiting)
            self._visit(value)

    # ------------------------------------------------------------ demands

    def demand(self, stage: StagePlan, value: Value, index: Iterable[Expr]) -> Key:
        key = stage, value, tuple(index)
        wanted = self.demands.get(value)
        if wanted is None:
            wanted = self.demands[value] = {}
            heapq.heappush(self.waiting, (-value.number, value))
        wanted[key] = None
        return key

    def _visit(self, value: Value) -> None:
        """Say how each demanded element of an array is made; all demands are known by now."""
        keys = list(self.demands[value])
        if value.is_input:
            self._read(keys, self.inputs[value])
            return
        if value.group in self.staged:
            stage = self.staged[value.group]
            self._read(keys, self._buffer(stage, value))
            return
        rule = self._rule(value)
        if isinstance(rule, Says) and value.shape.rank:
            if value not in self.constants:
                self.constants[value] = self._constant(value)
            self._read(keys, self.constants[value])
        elif self._needs_stage(keys, rule):
            stage = self._stage_of(value, self._new_buffer(value))
            self._read(keys, stage.buffers[value.leaf])
        else:
            for key in keys:
                self.plans[key] = self._plan(key, rule)

    def _rule(self, value: Value) -> Rule:
        found = rule_of(value)
        if isinstance(found, Unknown):
            raise NotSaid(found)
        error = check_instruction(value.instruction)
        if error is not None:
            raise error
        return found

    def _needs_stage(self, keys: list[Key], rule: Rule) -> bool:
        if isinstance(rule, Folds):
            return True
        if isinstance(rule, Says | Counts):
            return False
        if len(keys) > MOST_COPIES:
            return True
        stages = {stage for stage, _, _ in keys}
        is_cheap = isinstance(rule, Moves) and len(rule.data) == 1
        return not is_cheap and (len(stages) > 1 or any(stage.is_windowed for stage in stages))

    def _read(self, keys: Iterable[Key], buffer: Buffer) -> None:
        for key in keys:
            stage, _, index = key
            plan = Plan(runtime=self._mentioned(stage, index))
            plan.made = Read(buffer, index)
            self.plans[key] = plan

    def _mentioned(self, stage: StagePlan, exprs: Iterable[Expr]) -> tuple[Wanted, ...]:
        """The runtime variables of a stage that expressions depend on."""
        if not stage.runtime:
            return ()
        found = {v for expr in exprs for v in expr.variables()}
        return tuple([w for w in stage.runtime.values() if w.variable in found])

    def _new_buffer(self, value: Value) -> Buffer:
        return Buffer(self._name(value), value.shape.dims, dtype(value.shape.element_type), "stage")

    def _buffer(self, stage: StagePlan, value: Value) -> Buffer:
        if value.leaf not in stage.buffers:
            stage.buffers[value.leaf] = self._new_buffer(value)
        return stage.buffers[value.leaf]

    def _constant(self, value: Value) -> Buffer:
        array = _literal(value)
        return Buffer(self._name(value), value.shape.dims, array.dtype, "constant", array)

    def _stage_of(self, value: Value, buffer: Buffer) -> StagePlan:
        """A new stage that fills an array."""
        stage = StagePlan(value.number, {value.leaf: buffer}, dims(value.shape))
        self.stages.append(stage)
        rule: Rule | None = None if value.is_input else self._rule(value)
        index = tuple([d.as_expr() for d in stage.dims])
        if isinstance(rule, Folds):
            self.staged[value.group] = stage
            stage.body = self._fold(stage, value, rule, index)
            return stage
        key = stage, value, index
        if rule is None:
            self._read([key], self.inputs[value])
        elif isinstance(rule, Says) and value.shape.rank:
            self.constants[value] = self._constant(value)
            self._read([key], self.constants[value])
        else:
            self.staged[value.group] = stage
            self.plans[key] = self._plan(key, rule)
        stage.body = key
        return stage

    # ------------------------------------------------------------ how an element is made

    def _plan(self, key: Key, rule: Rule) -> Plan:
        stage, value, index = key
        kind = dtype(value.shape.element_type)
        match rule:
            case Says():
                return Plan(made=Scalar(_literal(value)))
            case Counts(dimension):
                plan = Plan(runtime=self._mentioned(stage, [index[dimension]]))
                plan.made = Place(index[dimension], kind)
                return plan
            case Computes():
                return self._computed(key, rule)
            case Moves():
                return self._moved(key, rule)
            case Folds():
                raise AssertionError("a fold has a stage of its own")

    def _computed(self, key: Key, rule: Computes) -> Plan:
        stage, value, index = key
        if rule.reads_nothing:
            return Plan(made=Scalar(np.zeros((), dtype(value.shape.element_type))))
        answer = reads(value)
        keys = []
        for operand, maps in zip(value.operands, answer.maps, strict=True):
            assert isinstance(operand, Value)
            (found,) = maps
            results, _, _ = self._placed(stage, value, found, index, ())
            keys.append(self.demand(stage, operand, results))
        if rule.applied is not None:
            return Plan(tuple(keys), self.function(rule.applied))
        return Plan(tuple(keys), rule.function)

    def _moved(self, key: Key, rule: Moves) -> Plan:
        stage, value, index = key
        answer = reads(value)
        cases: list[CasePlan] = []
        otherwise: Key | None = None
        rest: tuple[Constraint, ...] = ()
        boxes: list[IndexingMap] = []
        for number in rule.data:
            operand = value.operands[number]
            assert isinstance(operand, Value)
            for found in answer.maps[number]:
                if rule.joins:
                    return self._joined(stage, value, operand, found, index, rule)
                if found.ranges:
                    reason = f"an element of `{value.instruction.name}` is several elements"
                    raise NotSaid(Unknown(reason, value.instruction))
                boxes.append(found)
                results, guards, runtime = self._placed(stage, value, found, index, ())
                if any(guard.is_false for guard in guards):
                    continue
                wanted = self.demand(stage, operand, results)
                if found.grade == "may":
                    otherwise = wanted
                else:
                    cases.append(CasePlan(guards, wanted, runtime))
        certain = next((k for k, case in enumerate(cases) if not case.guards), None)
        if certain is not None:
            otherwise = cases[certain].key
            cases = cases[:certain]
        if otherwise is None and rule.has_padding:
            zero = Plan(made=Scalar(np.zeros((), dtype(value.shape.element_type))))
            otherwise = stage, value, (as_expr(0),) * (value.shape.rank + 2)  # of no element
            self.plans[otherwise] = zero
        elif otherwise is None:
            if not boxes:
                reason = f"`{value.instruction.name}` has elements that nothing is read for"
                raise NotSaid(Unknown(reason, value.instruction))
            check_partition(value, boxes)
            last = cases.pop()
            otherwise, rest = last.key, last.guards
        if rule.parts > 1:
            return self._part(key, otherwise, rule)
        return Plan((otherwise,), rule.function, tuple(cases), rest=rest)

    def _joined(
        self,
        stage: StagePlan,
        value: Value,
        operand: Value,
        found: IndexingMap,
        index: Index,
        rule: Moves,
    ) -> Plan:
        """An element of the bits of all elements along the range."""
        (s,) = found.ranges
        keys = []
        for number in range(s.upper + 1):
            results, guards, _ = self._placed(stage, value, found, index, ())
            assert not guards
            swap = Substitution({s: as_expr(number)})
            keys.append(self.demand(stage, operand, map(swap, results)))
        return Plan(tuple(keys), rule.function)

    def _part(self, key: Key, whole: Key, rule: Moves) -> Plan:
        """Some of the bits of an element: those at the place in memory, counted in parts."""
        stage, value, index = key
        position = as_expr(0)
        for k in value.shape.layout_or_default.minor_to_major[::-1]:
            position = position * value.shape.dims[k] + index[k]
        number = position % rule.parts
        place = stage, value, (number,) * (value.shape.rank + 1)  # the index of no element
        plan = Plan(runtime=self._mentioned(stage, [number]))
        plan.made = Place(number, np.dtype(np.int64))
        self.plans[place] = plan
        return Plan((whole, place), rule.function)

    def _placed(
        self,
        stage: StagePlan,
        value: Value,
        found: IndexingMap,
        index: Index,
        ranges: tuple[Variable, ...],
        dims: tuple[int, ...] | None = None,
    ) -> tuple[list[Expr], tuple[Constraint, ...], tuple[Wanted, ...]]:
        """A map from the elements of `value` (or of an array with sizes `dims`) at an index.

        Where it leads, when, and what must be known for that.
        """
        sizes = value.shape.dims if dims is None else dims
        if (
            found.is_identity
            and not ranges
            and all(v.upper + 1 == n for v, n in zip(found.dims, sizes, strict=True))
        ):
            return list(index), (), ()
        values = dict(zip(found.dims, index, strict=True))
        conditions = []
        used: list[Wanted] = []
        for rt in found.runtime:
            if rt.is_fixed:
                continue
            wanted = self._runtime(stage, value, rt, values)
            used.append(wanted)
            values[rt.variable] = wanted.variable.as_expr()
            if not contains(rt.variable.bounds, wanted.clamp):
                conditions.append(Constraint(wanted.variable.as_expr(), *rt.variable.bounds))
        uncertain = tuple([c for c in found.constraints if not c.is_true])
        results, constraints = replace(found, constraints=uncertain).substituted(values)
        for v, at, size in zip(found.dims, index, sizes, strict=True):
            if v.bounds != (0, size - 1):
                conditions.append(Constraint(at, *v.bounds))
        guards = [c for c in (*conditions, *constraints) if not c.is_true]
        runtime = self._mentioned(stage, [c.expr for c in guards])
        return results, tuple(guards), runtime

    def _runtime(
        self, stage: StagePlan, value: Value, rt: RuntimeVariable, values: dict[Variable, Expr]
    ) -> Wanted:
        assert isinstance(rt.source, Instruction)
        assert rt.clamp is not None
        index = tuple(map(Substitution(values), rt.index))
        source = value.operand(rt.source)
        key = source, index, rt.clamp
        if key not in stage.runtime:
            variable = Variable(f"rt{len(stage.runtime)}", *rt.clamp)
            stage.runtime[key] = Wanted(variable, self.demand(stage, source, index), rt.clamp)
        return stage.runtime[key]

    # ------------------------------------------------------------ folds

    def _fold(self, stage: StagePlan, value: Value, rule: Folds, index: Index) -> FoldPlan:
        answer = reads(value, exact=True)
        stage.is_windowed = rule.is_windowed or rule.is_product
        inits = []
        for number in rule.inits:
            operand = value.operands[number]
            assert isinstance(operand, Value)
            (found,) = answer.maps[number]
            results, _, _ = self._placed(stage, value, found, index, ())
            inits.append(self.demand(stage, operand, results))
        keys: list[Key] = []
        ranges: tuple[Variable, ...] = ()
        guards: dict[Constraint, None] = {}
        runtime: dict[Wanted, None] = {}
        for number in rule.values:
            operand = value.operands[number]
            assert isinstance(operand, Value)
            if not answer.maps[number]:  # nothing is there to be folded
                return FoldPlan(value, rule, inits, [], (), (), ())
            (found,) = answer.maps[number]
            assert not ranges or ranges == found.ranges, "operands are folded in step"
            ranges = found.ranges
            results, conditions, used = self._placed(stage, value, found, index, ranges)
            keys.append(self.demand(stage, operand, results))
            guards.update(dict.fromkeys(conditions))
            runtime.update(dict.fromkeys(used))
        placing = self._placing(stage, value, rule) if rule.is_placed else None
        return FoldPlan(value, rule, inits, keys, ranges, tuple(guards), tuple(runtime), placing)

    def _placing(self, stage: StagePlan, value: Value, rule: Folds) -> PlacingPlan:
        """Where each of the values goes, as `input_to_output` says."""
        instruction = value.instruction
        answer = input_to_output(instruction, rule.values[0], simplify=False)
        (found,) = answer.maps[value.leaf]
        deciding = {v for rt in found.runtime for e in rt.index for v in e.variables()}
        fresh = {v: v.renamed(v.name.replace("d", "u")) for v in found.dims}
        index = tuple([fresh[v].as_expr() for v in found.dims])
        keys = []
        for number in rule.values:
            operand = value.operands[number]
            assert isinstance(operand, Value)
            keys.append(self.demand(stage, operand, index))
        source = value.operands[rule.values[0]]
        assert isinstance(source, Value)
        results, guards, _ = self._placed(stage, value, found, index, (), source.shape.dims)
        runtime = self._mentioned(stage, [*results, *[guard.expr for guard in guards]])
        first = [fresh[v] for v in found.dims if v in deciding]
        dims = (*first, *[fresh[v] for v in found.dims if v not in deciding])
        return PlacingPlan(dims, keys, tuple(results), guards, runtime)

    def unread(self, value: Value, leaf: int) -> Buffer:
        """The buffer of a total that nobody reads."""
        shape = leaves(value.instruction.shape)[leaf][1]
        kind = dtype(shape.element_type)  # type: ignore[union-attr]  # totals are arrays
        return Buffer(self._name(value), value.shape.dims, kind, "stage")


def _literal(value: Value) -> Array:
    """The array that a constant says, if the text has its values."""
    try:
        return literal(value)
    except HloError as error:
        if error.code != "elided":
            raise
        reason = f"the values of constant `{value.instruction.name}` are not in the text"
        raise NotSaid(Unknown(reason, value.instruction)) from error


def reads(value: Value, exact: bool = False) -> Answer:
    """The maps of the instruction that an array comes from, as `output_to_input` gives them.

    Not simplified: range variables of different operands go in step by their names.
    """
    return output_to_input(value.instruction, value.leaf, exact=exact, simplify=False)
