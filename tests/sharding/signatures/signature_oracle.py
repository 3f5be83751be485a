"""Oracles for signatures: enumeration of maps, and execution on devices that lack elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

import indexing.ops  # noqa: F401 - registers the ops
from hlo.modules.module import Instruction
from hlo.ops.op import OPS
from hlo.shapes.shape import ELEMENT_TYPES, Shape, dtype
from indexing import SbpSignature
from indexing.execution import flattened, run
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.base import MappedOp
from indexing.ops.collective_bases import Collective
from indexing.ops.samples import instruction_of
from indexing.sharding.partial_values.laws import has_reduction
from indexing.sharding.rules.combiners import COMBINERS
from indexing.sharding.splits.states import ArrayState, parse_state
from indexing.sharding.splits.subjects import Subject, SubjectArray
from simplifier.atoms import Variable

MAX_POINTS = 60_000
Pairs = list[tuple[tuple[int, ...], tuple[int, ...]]]


def samples() -> list[str]:
    """The samples of all ops that devices execute independently."""
    texts: list[str] = []
    for cls in OPS.values():
        if not issubclass(cls, Collective):
            texts += getattr(cls, "samples", ())
    return list(dict.fromkeys(texts))


def subject_of(text: str) -> Subject:
    return Subject.of(instruction_of(text))


def pairs_of(m: IndexingMap) -> Pairs | None:
    """All points of a map with their results, for any runtime values; None for too many."""
    values = list(map(_values_of, m.variables))
    if prod(map(len, values)) > MAX_POINTS:
        return None
    counts = len(m.dims), len(m.ranges)
    pairs: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
    for point in product(*values):
        dims, ranges = point[: counts[0]], point[counts[0] : sum(counts)]
        results = m.evaluate(dims, ranges, point[sum(counts) :])
        if results is not None:
            pairs[dims, results] = None
    return list(pairs)


def _values_of(v: Variable) -> list[int]:
    """The values of a variable; of a whole type, such as the index of a branch, small and last."""
    if v.upper - v.lower < MAX_POINTS:
        return list(range(v.lower, v.upper + 1))
    return [v.lower, *range(max(v.lower, -2), 8), v.upper]


def shard(index: int, size: int, shards: int) -> int:
    return index // -(-size // shards)


# ---------------------------------------------------------------- execution


def executable(instruction: Instruction) -> bool:
    """True for an op with a kernel and without randomness, on arrays with elements."""
    if instruction.opcode in ("parameter", "set-dimension-size"):
        return False
    return isinstance(instruction.op, MappedOp) and not instruction.opcode.startswith("rng")


def draw_array(shape: Shape, random: np.random.Generator, extreme: bool = False) -> np.ndarray:
    kind = dtype(shape.element_type)
    if kind.kind == "b":
        return np.asarray(random.integers(0, 2, shape.dims), bool)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        low, high = (limits.min, limits.max) if extreme else (max(limits.min, -1), 6)
        return np.asarray(random.integers(low, high, shape.dims, dtype=kind, endpoint=True))
    values = np.asarray(random.integers(-8, 9, shape.dims)).astype(np.float64) / 2
    if kind.kind == "c":
        return (values + 1j * np.asarray(random.integers(-8, 9, shape.dims))).astype(kind)
    return values.astype(kind)


def operand_value(subject: Subject, array: SubjectArray, random: np.random.Generator) -> np.ndarray:
    """The value of a constant operand, or random values."""
    source = subject.sources[array.position]
    if source.opcode == "constant" and isinstance(source.op, MappedOp):
        return np.asarray(source.op.kernel())
    return draw_array(array.shape, random)


def execute(subject: Subject, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a sample, or of the computation that a fusion calls."""
    is_fusion = subject.root.opcode == "fusion"
    program = subject.root.called_computations[0] if is_fusion else subject.root.computation
    with np.errstate(all="ignore"):
        return list(flattened(run(program, arrays)))


def same(expected: np.ndarray, other: np.ndarray) -> np.ndarray:
    if expected.dtype.kind in "biu":
        return np.asarray(expected == other)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        values = expected.astype(wide)
        close = np.isclose(values, other.astype(wide), rtol=2e-2, atol=2e-2)
        return np.asarray(close | ~np.isfinite(values))


def state_of(text: str) -> ArrayState:
    state = parse_state(text)
    assert state is not None
    return state


def own(
    array: np.ndarray, dimension: int, number: int, shards: int, halo: tuple[int, int] = (0, 0)
) -> tuple[slice, ...]:
    """The slices of a shard with its halo."""
    size = -(-array.shape[dimension] // shards)
    slices = [slice(None)] * array.ndim
    begin, end = number * size - halo[0], (number + 1) * size + halo[1]
    slices[dimension] = slice(max(0, begin), max(0, end))
    return tuple(slices)


def first_fault(
    subject: Subject,
    operands: Sequence[str],
    results: Sequence[str],
    halos: Sequence[tuple[int, int]],
    shards: int,
    seed: int,
    draws: int = 3,
) -> str:
    """Execute a signature on devices whose operands lack what they do not have.

    Missing elements are arbitrary if results are split or whole.  If results are partial values,
    they are neutral elements: of the reduction for data, 0 for indices.
    """
    random = np.random.default_rng(seed)
    ins, outs = list(map(state_of, operands)), list(map(state_of, results))
    for draw in range(draws):
        whole: list[np.ndarray] = []
        devices: list[list[np.ndarray]] = [[] for _ in range(shards)]
        for array, state, halo in zip(subject.inputs, ins, halos, strict=True):
            value = operand_value(subject, array, random)
            if state.reduction:
                parts = [draw_array(array.shape, random, draw % 2 == 1) for _ in range(shards)]
                with np.errstate(all="ignore"):
                    value = COMBINERS[state.reduction].function.reduce(parts).astype(value.dtype)
            elif state.dimension is not None:
                reduction = next((each.reduction for each in outs if each.reduction), "")
                parts = []
                for number in range(shards):
                    part = draw_array(array.shape, random)
                    if reduction:
                        is_data = array.shape.element_type == subject.results[0].shape.element_type
                        part = np.zeros_like(part)
                        if is_data:
                            part[...] = COMBINERS[reduction].neutral(array.shape.element_type)
                    inside = own(value, state.dimension, number, shards, halo)
                    part[inside] = value[inside]
                    parts.append(part)
            else:
                parts = [value] * shards
            whole.append(value)
            for device, part in zip(devices, parts, strict=True):
                device.append(part)
        expected = execute(subject, whole)
        computed = [execute(subject, device) for device in devices]
        for k, state in enumerate(outs):
            each = [values[k] for values in computed]
            if state.reduction:
                with np.errstate(all="ignore"):
                    total = COMBINERS[state.reduction].function.reduce(each)
                if not same(expected[k], total.astype(expected[k].dtype)).all():
                    return f"result {k}: {expected[k]} is not {total}"
                continue
            for number, values in enumerate(each):
                at: tuple[slice, ...] = (slice(None),) * values.ndim
                if state.dimension is not None:
                    at = own(values, state.dimension, number, shards)
                if not same(expected[k][at], values[at]).all():
                    return f"result {k}, device {number}: {expected[k][at]} is not {values[at]}"
    return ""


def candidates(subject: Subject, reduction: str) -> Iterator[tuple[list[str], list[str]]]:
    """All signatures whose operands are whole or partial values, for partial results."""
    states = [
        ["B", f"P({reduction})"][
            : 1 + has_reduction(ELEMENT_TYPES[a.shape.element_type], reduction)
        ]
        for a in subject.inputs
    ]
    for operands in product(*states):
        yield list(operands), [f"P({reduction})"] * len(subject.results)


def is_separable(
    subject: Subject, operands: Sequence[str], results: Sequence[str], seed: int
) -> bool:
    """True if sums of partial values are functions of each device's data, added up.

    ``f(a, b) = g(a) + h(b)`` for all data a, b of two devices if and only if ``f(a, b) - f(a, b')
    - f(a', b) + f(a', b')`` is 0.
    """
    random = np.random.default_rng(seed)
    states = list(map(state_of, operands))

    def data() -> list[np.ndarray]:
        return [operand_value(subject, array, random) for array in subject.inputs]

    def combine(first: list[np.ndarray], second: list[np.ndarray]) -> list[np.ndarray]:
        arrays = []
        for a, b, both, state in zip(first, second, whole, states, strict=True):
            array = both
            if state.reduction:
                array = np.asarray(a + b, a.dtype)
            elif state.dimension is not None:
                array = a.copy()
                inside = own(array, state.dimension, 1, 2)
                array[inside] = b[inside]
            arrays.append(array)
        return arrays

    whole, a, b, a2, b2 = [data() for _ in range(5)]
    mixed = [execute(subject, combine(*pair)) for pair in ((a, b), (a, b2), (a2, b), (a2, b2))]
    for k, state in enumerate(map(state_of, results)):
        if state.reduction:
            ab, ab2, a2b, a2b2 = [values[k].astype(np.float64) for values in mixed]
            bound = 1e-3 * (1 + abs(ab) + abs(ab2) + abs(a2b) + abs(a2b2))
            if (abs(ab - ab2 - a2b + a2b2) > bound).any():
                return False
    return True


def differing_shards(subject: Subject, signature: SbpSignature) -> list[str]:
    """The maps that are not the same in each shard of equal size, by enumeration.

    Indices are those in the shards of split arrays; elements around a shard have negative ones.
    """
    n = signature.shards
    states = list(map(state_of, signature.operands))
    faults = []
    for r, text in enumerate(signature.results):
        j = state_of(text).dimension
        if j is None or n is None or subject.results[r].shape.dims[j] % n:
            continue
        size = subject.results[r].shape.dims[j] // n
        for k, (array, state) in enumerate(zip(subject.inputs, states, strict=True)):
            for m in subject.accesses(r, k).maps:
                pairs = pairs_of(m)
                if m.runtime or pairs is None:
                    continue
                shards: list[set[tuple[tuple[int, ...], tuple[int, ...]]]] = [
                    set() for _ in range(n)
                ]
                for d, e in pairs:
                    at, local, element = d[j] // size, list(d), list(e)
                    local[j] -= at * size
                    if state.dimension is not None:
                        of = -(-array.shape.dims[state.dimension] // n)
                        element[state.dimension] -= at * of
                    shards[at].add((tuple(local), tuple(element)))
                if any(each != shards[0] for each in shards):
                    faults.append(f"{signature}: {m}")
    return faults


def unequal_shards(subject: Subject, signature: SbpSignature, shards: int, seed: int) -> str:
    """Execute with equal data on all devices: equal functions have equal results."""
    random = np.random.default_rng(seed)
    arrays = []
    for array, text in zip(subject.inputs, signature.operands, strict=True):
        value, dimension = operand_value(subject, array, random), state_of(text).dimension
        if dimension is not None:
            size = value.shape[dimension] // shards
            block = value[own(value, dimension, 0, shards)]
            value = np.concatenate([block] * shards, axis=dimension)
            assert size == block.shape[dimension]
        arrays.append(value)
    for values, text in zip(execute(subject, arrays), signature.results, strict=True):
        dimension = state_of(text).dimension
        if dimension is not None:
            parts = [values[own(values, dimension, p, shards)] for p in range(shards)]
            if not all(same(parts[0], part).all() for part in parts):
                return f"{parts}"
    return ""
