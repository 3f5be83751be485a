"""States of the operands of one instruction that make its result partial values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from hlo.modules.module import Instruction
from hlo.shapes.shape import ELEMENT_TYPES, Shape
from hlo.shardings.sharding import REDUCTIONS
from indexing.dataflow.queries import element_reads
from indexing.maps.answers import Answer, Unknown
from indexing.maps.arrays import Path, array_leaves, leaf_at
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import RoutingOp
from indexing.ops.element import (
    CopyRule,
    ElementwiseRule,
    ReductionRule,
    declarations_of,
    element_of,
)
from indexing.sharding.partial_values.laws import conversion_laws, has_reduction, laws, scaling_laws
from indexing.sharding.partial_values.splat_values import splat_value
from indexing.sharding.partial_values.split_terms import SplitTerms, returns_update, split_terms
from indexing.sharding.rules.combiners import combiner_of
from indexing.sharding.splits.states import BROADCAST, ArrayState, partial, split


class OperandState(NamedTuple):
    """The state in which an instruction needs a leaf of an operand."""

    operand: int
    path: Path
    state: ArrayState


@dataclass(frozen=True, slots=True)
class OperandStates:
    """States of an instruction's operands that make its result partial.

    Attributes:
        needed: the states; operands that are not listed have no part in the result.
        words: the reason.
        shards: the numbers of shards are the divisors of this one; 0 for any number.
        needs_place: a device must know the number of its shard.
    """

    needed: tuple[OperandState, ...]
    words: str
    shards: int = 0
    needs_place: bool = False


class PartialRules:
    """The states that make results partial, by element rules.

    Attributes:
        shards: the number of shards; None for every number that divides the sizes.
        obstacles: why states may be missing, one for each instruction without a rule.
    """

    def __init__(self, shards: int | None) -> None:
        self.shards = shards
        self.obstacles: dict[str, Unknown] = {}

    def operand_states(
        self, instruction: Instruction, path: Path, reduction: str
    ) -> Iterator[OperandStates]:
        """Yield states of the operands of an instruction that make its result partial."""
        shape = leaf_at(instruction.shape, path)
        if not isinstance(shape, Shape):
            return
        if not has_reduction(ELEMENT_TYPES[shape.element_type], reduction):
            return
        if isinstance(instruction.op, RoutingOp):
            operand, inner = instruction.op.route(path)
            state = OperandState(operand, inner, partial(reduction))
            yield OperandStates((state,), f"`{instruction.name}` forwards its operand")
            return
        output_id = next(n for n, p, _ in array_leaves(instruction.shape) if p == path)
        match element_of(instruction, output_id):
            case ElementwiseRule(reads_nothing=True):
                return
            case ElementwiseRule() as rule:
                yield from self._elementwise(instruction, rule, reduction)
            case CopyRule() as rule:
                yield from self._copied_splits(instruction, rule, output_id, reduction)
            case ReductionRule() as rule:
                yield from self._reduced_splits(instruction, rule, output_id, reduction)
            case _ if instruction.operands:
                yield from self._opaque(instruction, reduction)

    def _elementwise(
        self, instruction: Instruction, rule: ElementwiseRule, reduction: str
    ) -> Iterator[OperandStates]:
        operands = instruction.operands
        shapes = [instruction.shape, *[operand.shape for operand in operands]]
        arrays = [shape for shape in shapes if isinstance(shape, Shape)]
        if rule.function is None or len(arrays) < len(shapes):
            self.note(instruction.name, "no law is known", instruction)
            return
        result, *types = [ELEMENT_TYPES[shape.element_type] for shape in arrays]
        factors = [splat_value(operand) for operand in operands]
        scaled = scaling_laws(rule.function, reduction, factors, types)
        for arguments in (*laws(rule.function, reduction, types, result), *scaled):
            words = f"`{instruction.name}`: {instruction.opcode} maps {_state_list(arguments)} to "
            yield OperandStates(
                tuple([OperandState(k, (), _state(each)) for k, each in enumerate(arguments)]),
                words + f"P({reduction})",
            )

    def _copied_splits(
        self, instruction: Instruction, rule: CopyRule, output_id: int, reduction: str
    ) -> Iterator[OperandStates]:
        if rule.function is not None or rule.parts != 1 or rule.joins_parts:
            self.note(instruction.name, "it changes the bits of elements", instruction)
            return
        reads = element_reads(instruction, output_id)
        needed = _index_operands(instruction, reads, rule.operands)
        data = [k for k in rule.operands if reads.maps[k] or reads.unknown[k] is not None]
        copied = [OperandState(k, (), partial(reduction)) for k in data]
        words = f"`{instruction.name}` copies elements"
        yield OperandStates((*copied, *needed), words)
        can_mask = reduction == "sum" or (reduction == "or" and _is_pred(instruction))
        if can_mask and len(data) == 1 and not rule.has_padding:
            yield from self._masked_splits(instruction, data[0], reads.maps[data[0]], needed)

    def _masked_splits(
        self,
        instruction: Instruction,
        operand: int,
        maps: tuple[IndexingMap, ...],
        needed: tuple[OperandState, ...],
    ) -> Iterator[OperandStates]:
        """Yield the splits of an operand along dimensions that a runtime variable indexes."""
        shape = instruction.operands[operand].shape
        runtime = {rt.variable for m in maps for rt in m.runtime}
        for g, size in enumerate(shape.dims if isinstance(shape, Shape) else ()):
            if size > 1 and maps and all(runtime & set(m.results[g].variables()) for m in maps):
                words = f"`{instruction.name}` copies elements of the own shard and else writes 0"
                own = OperandState(operand, (), split(g))
                yield OperandStates((own, *needed), words, self.shards or size, True)

    def _reduced_splits(
        self, instruction: Instruction, rule: ReductionRule, output_id: int, reduction: str
    ) -> Iterator[OperandStates]:
        combined = combiner_of(instruction, rule, output_id)
        if combined in REDUCTIONS and not rule.is_product and len(rule.values) > 1:
            own = (rule.inits[output_id],), (rule.values[output_id],)
            rule = replace(rule, inits=own[0], values=own[1])
        reads = element_reads(instruction, output_id)
        state = partial(reduction)
        indices = _index_operands(instruction, reads, (*rule.values, *rule.inits))
        inits = tuple([OperandState(k, (), state) for k in rule.inits if _is_read(reads, k)])
        if returns_update(instruction, rule):
            values = [OperandState(k, (), state) for k in rule.values if _is_read(reads, k)]
            words = f"`{instruction.name}` copies elements"
            yield OperandStates((*values, *inits, *indices), words)
        elif combined not in REDUCTIONS:
            self.note(instruction.name, "its computation is not a known reduction", instruction)
        elif combined == reduction:
            yield from _pass_on(instruction, rule, (*inits, *indices), reduction)
            yield from self._term_splits(instruction, rule, reads, inits, indices)

    def _term_splits(
        self,
        instruction: Instruction,
        rule: ReductionRule,
        reads: Answer,
        inits: tuple[OperandState, ...],
        indices: tuple[OperandState, ...],
    ) -> Iterator[OperandStates]:
        """Yield the splits of operands with which each device reduces its own terms."""
        for terms in split_terms(instruction, rule, reads, self.shards):
            match terms:
                case SplitTerms(states, shards, place, text):
                    values = [OperandState(k, (), each) for k, each in states.items()]
                    rest = [each for each in indices if each.operand not in states]
                    yield OperandStates((*values, *inits, *rest), text, shards, place)
                case Unknown(reason):
                    self.note(instruction.name, reason, instruction)

    def _opaque(self, instruction: Instruction, reduction: str) -> Iterator[OperandStates]:
        linear = declarations_of(instruction).linear_operands
        if not linear or any(map(_is_integer, (instruction, *instruction.operands[:2]))):
            self.note(instruction.name, "it has no element rule", instruction)
        elif reduction == "sum":
            every = range(len(instruction.operands))
            for chosen in linear:
                states = [
                    OperandState(k, (), partial("sum") if k == chosen else BROADCAST) for k in every
                ]
                words = f"`{instruction.name}`: {instruction.opcode} is linear in operand {chosen}"
                yield OperandStates(tuple(states), words)

    def note(self, key: str, reason: str, instruction: Instruction | None = None) -> None:
        if instruction is not None:
            reason = f"{instruction.opcode} `{instruction.name}`: {reason}"
        self.obstacles.setdefault(key, Unknown(reason, instruction))


def _state(reduction: str) -> ArrayState:
    return partial(reduction) if reduction else BROADCAST


def _state_list(arguments: tuple[str, ...]) -> str:
    return ", ".join(str(_state(each)) for each in arguments)


def _is_read(reads: Answer, operand: int) -> bool:
    return bool(reads.maps[operand]) or reads.unknown[operand] is not None


def _index_operands(
    instruction: Instruction, reads: Answer, data: tuple[int, ...]
) -> tuple[OperandState, ...]:
    """The operands that are read and decide where elements are: every device needs them."""
    return tuple(
        [
            OperandState(k, path, BROADCAST)
            for k, operand in enumerate(instruction.operands)
            for _, path, _ in array_leaves(operand.shape)
            if k not in data and _is_read(reads, k)
        ]
    )


def _is_integer(instruction: Instruction) -> bool:
    shape = instruction.shape
    kind = ELEMENT_TYPES[shape.element_type].kind if isinstance(shape, Shape) else ""
    return kind in ("integral", "unsigned", "pred")


def _is_pred(instruction: Instruction) -> bool:
    return isinstance(instruction.shape, Shape) and instruction.shape.element_type == "pred"


def _converts(instruction: Instruction, operand: int, reduction: str) -> bool:
    """Return True if a conversion of an operand to the result's type keeps partial values.

    A sum of s8 that is accumulated as s32 does not: the sum of partial values wraps around first.
    """
    source, result = instruction.operands[operand].shape, instruction.shape
    if not isinstance(source, Shape) or not isinstance(result, Shape):
        return False
    types = ELEMENT_TYPES[source.element_type], ELEMENT_TYPES[result.element_type]
    return (reduction,) in conversion_laws(reduction, *types)


def _pass_on(
    instruction: Instruction,
    rule: ReductionRule,
    others: tuple[OperandState, ...],
    reduction: str,
) -> Iterator[OperandStates]:
    """Yield the states in which a reduction reduces partial values of the same reduction."""
    words = f"`{instruction.name}` is a {reduction} of its operands' elements"
    for partials in [(k,) for k in rule.values] if rule.is_product else [rule.values]:
        if all(_converts(instruction, k, reduction) for k in partials):
            values = [
                OperandState(k, (), partial(reduction) if k in partials else BROADCAST)
                for k in rule.values
            ]
            yield OperandStates((*values, *others), words)
