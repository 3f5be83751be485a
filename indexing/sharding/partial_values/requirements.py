"""Partial values: states of the inputs from which each device computes a part of a result.

The walk starts at a result that shall be partial and asks each instruction for the states of its
operands that make it so, until it reaches the inputs:

* a reduction whose range variables index a split dimension: each device reduces its own terms;
* a law of the scalar function, or a reduction of partial values, passes them on;
* a copy through a runtime index of an operand that is split along the indexed dimension: the
  device that has the element copies it, the others write the neutral element (*masked*).

A value that every device has once is no partial value of a sum, unless it is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Final, TypeAlias

from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape
from indexing.dataflow.needed import dependencies_of
from indexing.maps.arrays import Path
from indexing.ops.control import Conditional, While
from indexing.ops.element import ElementwiseRule, element_of
from indexing.ops.structured_ops import InlineOp
from indexing.sharding.partial_values.operand_states import OperandState, PartialRules
from indexing.sharding.partial_values.splat_values import is_neutral
from indexing.sharding.splits.split_choices import SplitChoices
from indexing.sharding.splits.states import BROADCAST, IDEMPOTENT, ArrayState, partial
from indexing.sharding.splits.subjects import Subject

MAX_ALTERNATIVES: Final = 64
"""Limit on the alternatives of one array."""
MAX_STEPS: Final = 20_000
"""Limit on the arrays and alternatives that are visited for one result."""

Key: TypeAlias = tuple[int, Path]
"""The number of an operand or parameter, and the leaf."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """States of the inputs that give an array a state.

    Attributes:
        states: the states by input; other inputs have no part in the array.
        words: the reasons, from the result to the inputs.
        shards, needs_place: as in `OperandStates`.
    """

    states: dict[Key, ArrayState] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    shards: int = 0
    needs_place: bool = False

    def join_requirements(self, other: Requirement) -> Requirement | None:
        """Return what both require; None if they need one input in different states."""
        shards = gcd(self.shards, other.shards)
        if shards == 1:
            return None
        states, needs_place = dict(self.states), self.needs_place or other.needs_place
        for key, state in other.states.items():
            own = states.setdefault(key, state)
            if own == state:
                continue
            reduction = own.reduction or state.reduction
            if reduction and not (reduction in IDEMPOTENT and BROADCAST in (own, state)):
                return None
            states[key] = BROADCAST
            needs_place = needs_place or not reduction
        words = tuple(dict.fromkeys((*self.words, *other.words)))
        return Requirement(states, words, shards, needs_place)


class PartialValues:
    """Searches for the states of inputs that make arrays partial.

    Attributes:
        shards: the number of shards; None for every number that divides the sizes.
        rules: the rules for one instruction, with the obstacles that were met.
    """

    def __init__(self, shards: int | None) -> None:
        self.shards = shards
        self.rules = PartialRules(shards)
        self._steps = 0
        self._memo: dict[object, list[Requirement]] = {}
        self._choices: dict[Instruction, SplitChoices] = {}

    def of_result(self, subject: Subject, path: Path, reduction: str) -> list[Requirement]:
        """Return the states of a subject's inputs that make a leaf of its result partial."""
        root = subject.root
        if subject.computation is not None:
            return self._of(root, path, partial(reduction), None)
        if _executes_computation(root):
            requirements = list(self._called_states(root, path, reduction))
        else:
            requirements = [
                Requirement(
                    {(k, p): state for k, p, state in each.needed},
                    *((each.words,), each.shards, each.needs_place),
                )
                for each in self.rules.operand_states(root, path, reduction)
            ]
        return [replace(each, states=_given_states(root, each.states)) for each in requirements]

    # ------------------------------------------------------------ the walk

    def _of(
        self, instruction: Instruction, path: Path, state: ArrayState, call: Instruction | None
    ) -> list[Requirement]:
        """Return the states of a computation's parameters that give an array a state.

        Args:
            call: the instruction that calls the computation, if there is one.
        """
        key = instruction, path, state, call
        if key not in self._memo:
            self._memo[key] = []  # a cycle has no alternatives
            requirements = list(self._computed_states(instruction, path, state, call))
            if len(requirements) > MAX_ALTERNATIVES or self._steps > MAX_STEPS:
                self.rules.note("budget", f"budget: more than {MAX_ALTERNATIVES} alternatives")
                requirements = requirements[:MAX_ALTERNATIVES]
            self._memo[key] = requirements
        return self._memo[key]

    def _computed_states(
        self, instruction: Instruction, path: Path, state: ArrayState, call: Instruction | None
    ) -> Iterator[Requirement]:
        self._steps += 1
        if instruction.opcode == "parameter":
            number = instruction.computation.parameters.index(instruction)
            source = call.operands[number] if call else instruction
            if state.reduction and is_neutral(source, path, state.reduction):
                state = BROADCAST
            yield Requirement({(number, path): state})
        elif state.dimension is not None:
            yield from self._split_states(instruction, path, state.dimension)
        elif state.is_broadcast:
            yield self._broadcast(instruction, path)
        else:
            is_any = False
            for requirement in self._partial(instruction, path, state.reduction, call):
                is_any = True
                yield requirement
            if not is_any and state.reduction in IDEMPOTENT:
                yield self._broadcast(instruction, path)

    def _subject(self, instruction: Instruction) -> SplitChoices:
        if instruction not in self._choices:
            self._choices[instruction] = SplitChoices(Subject.inside(instruction), self.shards)
        return self._choices[instruction]

    def _number(self, choices: SplitChoices, path: Path) -> int:
        return [array.path for array in choices.subject.results].index(path)

    def _split_states(
        self, instruction: Instruction, path: Path, dimension: int
    ) -> Iterator[Requirement]:
        """Yield the splits of parameters that contain what a split of an array needs."""
        choices = self._subject(instruction)
        number = self._number(choices, path)
        for choice in choices.choices(number, dimension):
            if not choice.halos:
                inputs = choices.subject.inputs
                states = {inputs[k].key: state for k, state in choice.states.items()}
                place = choices.needs_place(number, dimension, choice)
                words = f"`{instruction.name}` is split along dimension {dimension}"
                yield Requirement(states, (words,), choice.shards, place)

    def _broadcast(self, instruction: Instruction, path: Path) -> Requirement:
        """Return that every device has all that an array needs.

        Without tuples, every parameter that the array depends on counts as needed.
        """
        needed = set(dependencies_of([instruction]))
        if all(isinstance(each.shape, Shape) for each in needed):
            parameters = enumerate(instruction.computation.parameters)
            return Requirement({(n, ()): BROADCAST for n, each in parameters if each in needed})
        choices = self._subject(instruction)
        number = self._number(choices, path)
        states: dict[Key, ArrayState] = {}
        for k, array in enumerate(choices.subject.inputs):
            accesses = choices.subject.accesses(number, k)
            if accesses.maps or accesses.unknown is not None:
                states[array.key] = BROADCAST
        return Requirement(states)

    def _partial(
        self, instruction: Instruction, path: Path, reduction: str, call: Instruction | None
    ) -> Iterator[Requirement]:
        """Yield the states of parameters that make the result of an instruction partial."""
        if is_neutral(instruction, path, reduction):
            yield Requirement()
        elif _executes_computation(instruction):
            for inner in self._called_states(instruction, path, reduction):
                needed = [OperandState(*key, state) for key, state in inner.states.items()]
                yield from self._joined_states(instruction, needed, replace(inner, states={}), call)
        else:
            for each in self.rules.operand_states(instruction, path, reduction):
                own = Requirement({}, (each.words,), each.shards, each.needs_place)
                yield from self._joined_states(instruction, each.needed, own, call)

    def _called_states(
        self, instruction: Instruction, path: Path, reduction: str
    ) -> Iterator[Requirement]:
        """Yield the states of operands of an instruction that executes computations."""
        state, called = partial(reduction), instruction.called_computations
        match instruction.op:
            case While(condition=condition, body=body):
                computations = instruction.computation.module.computations
                start = Requirement({(0, path): state})
                tested = self._broadcast(computations[condition].root, ())
                required = start.join_requirements(tested)
                if required is not None and required.states[0, path] == state:
                    yield from self._kept_states(computations[body], required, frozenset())
            case Conditional():
                index = Requirement({(0, ()): BROADCAST})
                partials: list[Requirement] = [index]
                for number, branch in enumerate(called, 1):
                    inner = [
                        replace(each, states={(number, p): s for (_, p), s in each.states.items()})
                        for each in self._of(branch.root, path, state, None)
                    ]
                    pairs = [a.join_requirements(b) for a in partials for b in inner]
                    partials = [pair for pair in pairs if pair is not None][:MAX_ALTERNATIVES]
                yield from partials
            case _:
                yield from self._of(called[0].root, path, state, instruction)

    def _kept_states(
        self, body: Computation, required: Requirement, kept: frozenset[Key]
    ) -> Iterator[Requirement]:
        """Yield states of a loop's value that each iteration keeps.

        Args:
            required: states of some leaves.
            kept: the leaves of which the state after an iteration is already required.
        """
        self._steps += 1
        open_keys = [key for key in required.states if key not in kept]
        if not open_keys or self._steps > MAX_STEPS:
            yield from () if open_keys else (required,)
            return
        key = open_keys[0]
        for before in self._of(body.root, key[1], required.states[key], None):
            joined = required.join_requirements(before)
            if joined is not None and required.states.items() <= joined.states.items():
                yield from self._kept_states(body, joined, kept | {key})

    def _joined_states(
        self,
        instruction: Instruction,
        needed: Iterable[OperandState],
        own: Requirement,
        call: Instruction | None,
    ) -> Iterator[Requirement]:
        """Yield the states of parameters that give all operands the states they need."""
        partials = [own]
        for operand, path, state in needed:
            alternatives = self._of(instruction.operands[operand], path, state, call)
            self._steps += len(partials) * len(alternatives)
            if self._steps > MAX_STEPS:
                self.rules.note("budget", f"budget: more than {MAX_STEPS} steps")
                return
            pairs = [a.join_requirements(b) for a in partials for b in alternatives]
            partials = [pair for pair in pairs if pair is not None]
        yield from partials[: MAX_ALTERNATIVES + 1]


def _executes_computation(instruction: Instruction) -> bool:
    """Return True if the result is that of computations, applied to operands or their elements."""
    if isinstance(instruction.op, InlineOp | While | Conditional):
        return True
    match element_of(instruction):
        case ElementwiseRule(uses_computation=True):
            return True
    return False


def _given_states(root: Instruction, states: dict[Key, ArrayState]) -> dict[Key, ArrayState]:
    """Return the states of operands; constants are partial values of which they are neutral."""
    return {
        (k, path): BROADCAST
        if state.reduction and is_neutral(root.operands[k], path, state.reduction)
        else state
        for (k, path), state in states.items()
    }
