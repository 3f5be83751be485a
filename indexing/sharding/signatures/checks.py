"""The decision about one signature: valid, refused with an element that breaks it, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from hlo.arguments import checked
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import ELEMENT_TYPES
from indexing.maps.answers import Unknown
from indexing.maps.indexing_map import IndexingMap
from indexing.sharding.partial_values.laws import has_reduction
from indexing.sharding.signatures.counterexamples import NotComputableError, counterexample
from indexing.sharding.signatures.sbp_signatures import (
    Option,
    ProofStep,
    SbpSignature,
    SignatureSearch,
)
from indexing.sharding.splits.containment import NO_HALO, Breach, Contained
from indexing.sharding.splits.split_choices import SplitChoice
from indexing.sharding.splits.states import BROADCAST, IDEMPOTENT, ArrayState, parse_state
from indexing.sharding.splits.subjects import Subject, SubjectArray
from simplifier.exact import unions
from simplifier.unknown import first_unknown


@dataclass(frozen=True, slots=True)
class Refused:
    """A signature that does not hold; its truth value is False.

    Attributes:
        reason: why it does not hold.
        result: the number of a result, and the index of an element of it that breaks.
        operand: the number of an operand, and the index of an element that this one needs; None if
            the values decide.
        shards: the shard that needs the element, and the shard that has it; None for partial
            values.
        map: the map that relates both elements.

    >>> import hlo, indexing
    >>> text = "ENTRY e { p = f32[4,6] parameter(0)  ROOT r = f32[24] reshape(p) }"
    >>> print(indexing.check_signature(hlo.parse(text).entry.root, ["S(1)"], ["S(0)"], shards=2))
    shard 1 of result 0 has element [12], which needs element [2, 0] of operand 0 in shard 0
    """

    reason: str
    result: tuple[int, tuple[int, ...]]
    operand: tuple[int, tuple[int, ...]] | None = None
    shards: tuple[int, int] | None = None
    map: IndexingMap | None = None

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.reason


@checked
def check_signature(
    instruction: Instruction | Computation,
    operands: Sequence[str],
    results: Sequence[str],
    shards: int | None = None,
) -> SbpSignature | Refused | Unknown:
    """Decide whether one signature of an instruction or computation holds.

    Operands may also have more than a signature of `sbp` requires: ``B`` in place of a split, and
    in place of partial values of a reduction such as ``max``.

    Args:
        instruction: an instruction with its operands, or a computation with its parameters.
        operands: the state of each array of the operands.
        results: the state of each array of the result.
        shards: the number of shards; by default, every number that divides the sizes.
    Returns:
        The signature if it holds; `Refused`, which is false, with an element that breaks it; or
        `Unknown` with the reason.
    Raises:
        HloError: the instruction is invalid.
        ValueError: a state is not of the form ``S(0)``, ``B`` or ``P(sum)``, or does not exist for
            its array; there is not one state for each array; or `shards` is less than 2.

    >>> import hlo, indexing
    >>> text = '''ENTRY e { p = f32[4] parameter(0)  five = f32[] constant(5)
    ...   ROOT r = f32[6] pad(p, five), padding=1_1 }'''
    >>> pad = hlo.parse(text).entry.root
    >>> print(indexing.check_signature(pad, ["P(sum)", "B"], ["P(sum)"], shards=2))
    element [0] of result 0 is 5.0, but the devices' values combine to 10.0
    """
    if shards is not None and shards < 2:
        raise ValueError(f"check_signature: `shards` must be at least 2, not {shards}")
    subject = Subject.of(instruction)
    inputs = _states("operands", "operand", operands, subject.inputs)
    outputs = _states("results", "result", results, subject.results)
    return _Check(subject, inputs, outputs, shards).decide()


def _states(
    name: str, noun: str, texts: Sequence[str], arrays: Sequence[SubjectArray]
) -> list[ArrayState]:
    if len(texts) != len(arrays):
        raise ValueError(
            f"check_signature: `{name}` needs {len(arrays)} states, one for each array, "
            f"not {len(texts)}"
        )
    states = []
    for number, (text, array) in enumerate(zip(texts, arrays, strict=True)):
        state = parse_state(text)
        if state is None:
            raise ValueError(
                f"check_signature: `{name}` must be states such as S(0), B or P(sum), not {text!r}"
            )
        if state.dimension is not None and state.dimension >= array.shape.rank:
            raise ValueError(
                f"check_signature: `{name}`: {noun} {number} is {array.shape} and has no "
                f"dimension {state.dimension}"
            )
        kind = ELEMENT_TYPES[array.shape.element_type]
        if state.reduction and not has_reduction(kind, state.reduction):
            raise ValueError(
                f"check_signature: `{name}`: {noun} {number} is {array.shape}, whose elements "
                f"have no partial values {text}"
            )
        states.append(state)
    return states


class _Check:
    """The decision about one signature."""

    def __init__(
        self,
        subject: Subject,
        inputs: list[ArrayState],
        outputs: list[ArrayState],
        shards: int | None,
    ) -> None:
        self.subject, self.inputs, self.outputs, self.given = subject, inputs, outputs, shards
        self.search = SignatureSearch(subject, shards)
        self.halos: dict[int, tuple[int, int]] = {}
        self.proof: list[ProofStep] = []
        self.needs_place = False

    def decide(self) -> SbpSignature | Refused | Unknown:
        """Return the signature, a refusal, or why neither is known."""
        if (obstacle := self.subject.obstacle()) is not None:
            return obstacle
        shards = self._common()
        if shards == 1:
            sizes = ", ".join(map(str, self._sizes()))
            return Unknown(f"no number of shards divides the sizes {sizes}: give `shards`")
        undecided: Unknown | None = None
        for result, state in enumerate(self.outputs):
            verdict = (
                self._partial(result, state) if state.reduction else self._whole(result, state)
            )
            if isinstance(verdict, Refused):
                return verdict
            undecided = first_unknown(undecided, verdict)
        if undecided is not None:
            return undecided
        return SbpSignature(
            tuple(map(str, self.inputs)),
            tuple(map(str, self.outputs)),
            tuple([self.halos.get(k, NO_HALO) for k in range(len(self.inputs))]),
            self.needs_place,
            shards or None,
            tuple(self.proof),
        )

    def _sizes(self) -> list[int]:
        states = [*self.inputs, *self.outputs]
        arrays = [*self.subject.inputs, *self.subject.results]
        return [
            array.shape.dims[state.dimension]
            for array, state in zip(arrays, states, strict=True)
            if state.dimension is not None
        ]

    def _common(self) -> int:
        """The largest number of shards; 0 if nothing is split, 1 if there is none."""
        sizes = self._sizes()
        if not sizes:
            return self.given or 0
        return self.given or max(1, gcd(*sizes))

    # ------------------------------------------------------------ split and whole results

    def _whole(self, result: int, state: ArrayState) -> Refused | Unknown | None:
        """Decide about a result that is split, or whole on every device."""
        undecided: Unknown | None = None
        halos: dict[int, tuple[int, int]] = {}
        shards = self._common()
        for source, given in enumerate(self.inputs):
            if given.reduction:
                verdict = self._needs_values(result, source)
            elif given.dimension is not None:
                contained = self.search.choices.decide(
                    result, state.dimension, source, given.dimension, shards
                )
                verdict = self._refusal(result, source, contained)
                if isinstance(contained, Contained):
                    halos[source] = contained.halo
                    self.proof.append(ProofStep(f"operand {source} is {given}", contained.maps))
            else:
                continue
            if isinstance(verdict, Refused):
                return verdict
            undecided = first_unknown(undecided, verdict)
        if undecided is None and state.dimension is not None:
            read = [k for k in range(len(self.inputs)) if self.search.is_read(result, k)]
            choice = SplitChoice({k: self.inputs[k] for k in read}, halos, shards)
            self.needs_place |= self.search.choices.needs_place(result, state.dimension, choice)
        for source, halo in halos.items():
            old = self.halos.get(source, NO_HALO)
            self.halos[source] = max(old[0], halo[0]), max(old[1], halo[1])
        return undecided

    def _refusal(
        self, result: int, source: int, contained: Contained | Breach | Unknown
    ) -> Refused | Unknown | None:
        match contained:
            case Contained():
                return None
            case Unknown():
                return contained
            case Breach(element, needed, shard, owner, m, runtime):
                values = "".join([f" if {name} is {value}" for name, value in runtime])
                is_split = self.outputs[result].dimension is not None
                who = (
                    f"shard {shard} of result {result} has"
                    if is_split
                    else (f"device {shard} needs result {result} with")
                )
                return Refused(
                    f"{who} element {list(element)}, which needs element {list(needed)} of "
                    f"operand {source} in shard {owner}{values}",
                    *((result, element), (source, needed), (shard, owner), m),
                )

    def _needs_values(self, result: int, source: int) -> Refused | Unknown | None:
        """Refuse partial values of an operand that a result without partial values reads."""
        accesses = self.subject.accesses(result, source)
        undecided = accesses.unknown
        for m in accesses.maps:
            at = unions.point(m.variables, m.constraints)
            if isinstance(at, Unknown):
                undecided = at
            elif at is not None and m.grade == "exact" and not m.runtime:
                point = dict(zip(m.variables, at, strict=True))
                element = tuple([point[v] for v in m.dims])
                needed = tuple([int(expr.value(point)) for expr in m.results])
                return Refused(
                    f"element {list(element)} of result {result} needs element {list(needed)} of "
                    f"operand {source}, of which devices have only partial values",
                    *((result, element), (source, needed), None, m),
                )
            elif at is not None:
                undecided = Unknown(f"the elements of operand {source} that are read are not known")
        return undecided

    # ------------------------------------------------------------ partial results

    def _partial(self, result: int, state: ArrayState) -> Refused | Unknown | None:
        """Decide about a result of which devices compute partial values."""
        if not self.subject.results[result].shape.size:
            self.proof.append(ProofStep(f"result {result} has no elements"))
            return None
        search = self.search
        path = self.subject.results[result].path
        for required in search.partials.of_result(self.subject, path, state.reduction):
            option = search.option_of(result, state.reduction, required)
            if self._satisfies(option):
                self.proof += option.proof
                self.needs_place |= option.needs_place or any(
                    wanted.dimension is not None and self.inputs[k].is_broadcast
                    for k, wanted in option.inputs.items()
                )
                return None
        if all(self.inputs[k].is_broadcast for k in range(len(self.inputs))):
            if state.reduction in IDEMPOTENT:
                self.proof.append(ProofStep("every device has the values themselves"))
                return None
        return self._refute_partial(result)

    def _satisfies(self, option: Option) -> bool:
        """Return True if the operands have what an option requires, or more.

        A whole operand may replace a split one if another operand is split: it divides the terms.
        """
        divided = [k for k, wanted in option.inputs.items() if wanted.dimension is not None]
        if divided and all(self.inputs[k].is_broadcast for k in divided):
            return False
        for source, wanted in option.inputs.items():
            given = self.inputs[source]
            is_more = given.is_broadcast and (
                wanted.dimension is not None or wanted.reduction in IDEMPOTENT
            )
            if given != wanted and not is_more:
                return False
        common = self._common()
        return (
            not common
            or not option.shards
            or self.given is not None
            or (option.shards % common == 0)
        )

    def _refute_partial(self, result: int) -> Refused | Unknown:
        """Refuse partial values if random values, or a missing element, show a difference."""
        outputs = [state if k == result else BROADCAST for k, state in enumerate(self.outputs)]
        random = np.random.default_rng(0)
        try:
            difference = counterexample(self.subject, self.inputs, outputs, self.given or 2, random)
        except NotComputableError:
            difference = None
        if difference is not None:
            return Refused(
                f"element {list(difference.element)} of result {result} is {difference.expected}, "
                f"but the devices' values combine to {difference.combined}",
                (result, difference.element),
            )
        obstacles = self.search.partials.rules.obstacles.values()
        missing = next(iter(obstacles)) if obstacles else self._missing(result)
        if missing is not None:
            return missing
        return Unknown(f"no law makes result {result} {self.outputs[result]}")

    def _missing(self, result: int) -> Refused | Unknown | None:
        """Refuse a split of an operand whose elements are neither terms nor read by an index."""
        if any(state.reduction for state in self.inputs):
            return None
        shards = self._common()
        for source, given in enumerate(self.inputs):
            if given.dimension is None:
                continue
            contained = self.search.choices.decide(result, None, source, given.dimension, shards)
            if isinstance(contained, Breach):
                return self._refusal(result, source, contained)
        return None
