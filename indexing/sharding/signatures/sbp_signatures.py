"""SBP signatures: the states of operands and results in which devices execute an instruction.

Source: OneFlow, "SBP" and "Global view" documentation; the signatures are derived from maps and
element rules, not from tables of ops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd
from typing import Final, NamedTuple

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES
from hlo.shardings.sharding import REDUCTIONS
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.sharding.partial_values.laws import has_reduction
from indexing.sharding.partial_values.requirements import PartialValues, Requirement
from indexing.sharding.splits.containment import NO_HALO
from indexing.sharding.splits.split_choices import SplitChoice, SplitChoices
from indexing.sharding.splits.states import (
    BROADCAST,
    IDEMPOTENT,
    ArrayState,
    partial,
    split,
)
from indexing.sharding.splits.subjects import Subject

MAX_SINGLE: Final = 8
"""Limit on the inputs that are partial values of an idempotent reduction one by one."""


class ProofStep(NamedTuple):
    """A step of a proof: a claim, and the maps that it follows from."""

    text: str
    maps: tuple[IndexingMap, ...] = ()


@dataclass(frozen=True, slots=True)
class SbpSignature:
    """States of operands and results in which devices along one mesh axis compute the results.

    Attributes:
        operands: the state of each array of the operands: ``S(i)``, ``B`` or ``P(sum)``.
        results: the state of each array of the result.
        halo: for each operand, the numbers of elements below and above the own shard that a device
            needs from its neighbours.
        needs_place: the devices' functions of their shards differ: a device must know its number.
            False is proved.
        shards: the number of shards if one was given; otherwise the signature holds for each number
            of shards that divides this one. None for any number: nothing is split.
        proof: why it holds.

    >>> print(SbpSignature(("S(0)", "B"), ("S(0)",)))
    S(0), B -> S(0)
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]
    halo: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    needs_place: bool = field(default=False, compare=False)
    shards: int | None = field(default=None, compare=False)
    proof: tuple[ProofStep, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return f"{', '.join(self.operands)} -> {', '.join(self.results)}".lstrip()


class SbpSignatures(tuple[SbpSignature, ...]):
    """Signatures, and why others may be missing.

    Attributes:
        undecided: the obstacles; ``()`` if the list is complete.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[6,4] parameter(0)  ROOT r = f32[6,4] reverse(p), dimensions={1} }"
    >>> signatures = indexing.sbp(hlo.parse(text).entry.root)
    >>> [str(signature) for signature in signatures[:3]], signatures.undecided
    (['B -> B', 'S(0) -> S(0)', 'P(sum) -> P(sum)'], ())
    """

    undecided: tuple[Unknown, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))


@dataclass(frozen=True, slots=True)
class Option:
    """A state of one result, and states of the inputs that give it.

    Attributes:
        result: the number of the result.
        state: its state.
        inputs: the states of the inputs that have a part in it, by number.
        halos: the halos of split inputs, by number.
        shards: the numbers of shards are the divisors of this one; 0 for any number.
        needs_place: as in `SbpSignature`.
        proof: why the states give it.
    """

    result: int
    state: ArrayState
    inputs: dict[int, ArrayState]
    halos: dict[int, tuple[int, int]]
    shards: int
    needs_place: bool
    proof: tuple[ProofStep, ...]


class SignatureSearch:
    """Searches for the signatures of a subject.

    Attributes:
        subject: the subject.
        shards: the number of shards; None for every number that divides the sizes.
    """

    def __init__(self, subject: Subject, shards: int | None) -> None:
        self.subject, self.shards = subject, shards
        self.choices = SplitChoices(subject, shards)
        self.partials = PartialValues(shards)
        self._options: dict[int, list[Option]] = {}

    def signatures(self) -> SbpSignatures:
        """Return the signatures in which all splits and partial values belong together."""
        obstacle = self.subject.obstacle()
        every: dict[SbpSignature, None] = {}
        if obstacle is None:
            every[self._broadcast()] = None
            for result in range(len(self.subject.results)):
                for option in self.options(result):
                    signature = self._complete_signature(option)
                    if signature is not None:
                        every.setdefault(signature)
        answer = SbpSignatures(every)
        undecided = (*self._unknown_accesses(), *self.partials.rules.obstacles.values())
        answer.undecided = undecided if obstacle is None else (obstacle,)
        return answer

    def _unknown_accesses(self) -> Iterator[Unknown]:
        for result in range(len(self.subject.results)):
            for source in range(len(self.subject.inputs)):
                unknown = self.subject.accesses(result, source).unknown
                if unknown is not None:
                    yield unknown

    def _broadcast(self) -> SbpSignature:
        inputs, results = len(self.subject.inputs), len(self.subject.results)
        proof = (ProofStep("every device executes the whole instruction"),)
        return SbpSignature(("B",) * inputs, ("B",) * results, (NO_HALO,) * inputs, proof=proof)

    # ------------------------------------------------------------ one result

    def options(self, result: int) -> list[Option]:
        """Return the states of one result other than B, with the states of the inputs."""
        if result not in self._options:
            self._options[result] = [*self._splits(result), *self._partials(result)]
        return self._options[result]

    def _splits(self, result: int) -> Iterator[Option]:
        for dimension in range(self.subject.results[result].shape.rank):
            for choice in self.choices.choices(result, dimension):
                place = self.choices.needs_place(result, dimension, choice)
                if place and choice.states and all(s.is_broadcast for s in choice.states.values()):
                    continue  # each device takes its part of a result that all can compute
                proof = self.split_proof(result, dimension, choice)
                yield Option(
                    *(result, split(dimension), choice.states, choice.halos),
                    *(choice.shards, place, proof),
                )

    def split_proof(
        self, result: int, dimension: int, choice: SplitChoice
    ) -> tuple[ProofStep, ...]:
        """Return why shards of a result need only the chosen shards of the inputs."""
        steps = []
        for source, state in choice.states.items():
            below, above = choice.halos.get(source, NO_HALO)
            which = f"a shard of result {result} along dimension {dimension} needs"
            if state.is_broadcast:
                text = f"{which} elements of operand {source} from several shards"
            elif (below, above) == NO_HALO:
                text = f"{which} only the same shard of operand {source}: {state}"
            else:
                around = f"{below} elements below and {above} above"
                text = f"{which} the same shard of operand {source}, {around}: {state}"
            steps.append(ProofStep(text, self.subject.accesses(result, source).maps))
        return tuple(steps)

    def _partials(self, result: int) -> Iterator[Option]:
        array = self.subject.results[result]
        for reduction in REDUCTIONS:
            if not has_reduction(ELEMENT_TYPES[array.shape.element_type], reduction):
                continue
            for required in self.partials.of_result(self.subject, array.path, reduction):
                option = self.option_of(result, reduction, required)
                for inputs in _variants(option.inputs):
                    if any(not state.is_broadcast for state in inputs.values()):
                        yield Option(
                            *(result, option.state, inputs, {}, option.shards),
                            *(option.needs_place, option.proof),
                        )

    def option_of(self, result: int, reduction: str, required: Requirement) -> Option:
        """Return the option for a requirement of partial values."""
        number = {each.key: k for k, each in enumerate(self.subject.inputs)}
        inputs = {number[key]: state for key, state in required.states.items()}
        proof = tuple([ProofStep(words) for words in required.words])
        shards = required.shards
        return Option(result, partial(reduction), inputs, {}, shards, required.needs_place, proof)

    # ------------------------------------------------------------ all results

    def _complete_signature(self, seed: Option) -> SbpSignature | None:
        """Return the signature with states of the other results that fit the inputs' states."""
        chosen, inputs = {seed.result: seed}, dict(seed.inputs)
        changed = True
        while changed:
            changed = False
            for result in range(len(self.subject.results)):
                if result in chosen or not self._reads_divided(result, inputs):
                    continue
                fitting = [o for o in self.options(result) if _fits(o, inputs)]
                if not fitting:
                    return None
                chosen[result] = fitting[0]
                inputs |= fitting[0].inputs
                changed = True
        return self._signature(chosen, inputs)

    def _reads_divided(self, result: int, inputs: dict[int, ArrayState]) -> bool:
        divided = [source for source, state in inputs.items() if not state.is_broadcast]
        return any(self.is_read(result, source) for source in divided)

    def is_read(self, result: int, source: int) -> bool:
        """Return False if a result is known to read nothing of an input."""
        accesses = self.subject.accesses(result, source)
        return bool(accesses.maps) or accesses.unknown is not None

    def _signature(
        self, chosen: dict[int, Option], inputs: dict[int, ArrayState]
    ) -> SbpSignature | None:
        shards = gcd(*[option.shards for option in chosen.values()])
        if shards == 1:
            return None
        halos: dict[int, tuple[int, int]] = {}
        for option in chosen.values():
            for source, (below, above) in option.halos.items():
                old = halos.get(source, NO_HALO)
                halos[source] = max(old[0], below), max(old[1], above)
        every = range(len(self.subject.inputs))
        results = [
            str(chosen[k].state if k in chosen else BROADCAST)
            for k in range(len(self.subject.results))
        ]
        return SbpSignature(
            tuple([str(inputs.get(k, BROADCAST)) for k in every]),
            tuple(results),
            tuple([halos.get(k, NO_HALO) for k in every]),
            any(option.needs_place for option in chosen.values()),
            shards or None,
            tuple([step for option in chosen.values() for step in option.proof]),
        )


def _fits(option: Option, inputs: dict[int, ArrayState]) -> bool:
    return all(inputs.get(source, state) == state for source, state in option.inputs.items())


def _variants(inputs: dict[int, ArrayState]) -> Iterator[dict[int, ArrayState]]:
    """Yield the states, and those with values on every device for partial values they stand for."""
    yield inputs
    replaceable = [k for k, state in inputs.items() if state.reduction in IDEMPOTENT]
    if any(state.dimension is not None for state in inputs.values()) and replaceable:
        yield inputs | dict.fromkeys(replaceable, BROADCAST)
    elif 1 < len(replaceable) <= MAX_SINGLE:
        for kept in replaceable:
            yield inputs | {k: BROADCAST for k in replaceable if k != kept}


@checked
def sbp(instruction: Instruction | Computation, shards: int | None = None) -> SbpSignatures:
    """Return the signatures of an instruction or computation along one mesh axis.

    A *signature* gives each array of the operands and of the result a state: ``S(i)``, split along
    dimension i into contiguous shards; ``B``, the whole array on every device; ``P(sum)``, partial
    values of which the sum is the array (also ``max``, ``min``, ``prod``, ``and``, ``or``).  It
    holds if each device can compute its part of the results from its parts of the operands.

    Signatures that follow from others are not listed: an operand that is split, or that has partial
    values of a reduction such as ``max``, may also be ``B``; and splits that do not belong together
    may be combined.  `check_signature` accepts them.  Operands may have any values, except
    constants.

    Args:
        instruction: an instruction with its operands, or a computation with its parameters.
        shards: the number of shards, of ``ceil(size / shards)`` elements each, except the last; by
            default, a signature holds for every number of shards that divides the sizes.
    Returns:
        The signatures, with the attribute ``undecided``: why others may be missing.
    Raises:
        HloError: the instruction is invalid.
        ValueError: `shards` is less than 2.
    Source: OneFlow, "SBP"; Shardy ``docs/sharding_representation.md``.

    >>> import hlo, indexing
    >>> text = '''ENTRY e { p = f32[4,6] parameter(0)  q = f32[6,8] parameter(1)
    ...   ROOT d = f32[4,8] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }'''
    >>> print(indexing.sbp(hlo.parse(text).entry.root))
    B, B -> B
    S(0), B -> S(0)
    B, S(1) -> S(1)
    P(sum), B -> P(sum)
    B, P(sum) -> P(sum)
    S(1), S(0) -> P(sum)
    """
    if shards is not None and shards < 2:
        raise ValueError(f"sbp: `shards` must be at least 2, not {shards}")
    return SignatureSearch(Subject.of(instruction), shards).signatures()
