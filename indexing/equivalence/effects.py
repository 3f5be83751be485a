"""Side effects of two programs: the same ones, in the order of the text, on equal values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from hlo.modules.effects import has_own_effect
from hlo.modules.module import Computation, Instruction
from indexing.equivalence.values.engine import compare_values
from indexing.equivalence.values.formulas.numbering import (
    Leaves,
    NoFormula,
    Numbering,
    attributes_of,
    numbers_of,
)
from indexing.equivalence.values.matching.residuals import changed_attribute
from indexing.maps.answers import Unknown
from indexing.maps.arrays import ArrayRef, array_leaves
from indexing.ops.structured_ops import InlineOp
from indexing.programs.arrays import has_unique_values, is_unique


@dataclass(frozen=True, slots=True)
class SideEffect:
    """An instruction with a side effect, or one that calls a computation with side effects.

    Attributes:
        kind: what the effect is, apart from operands.
        operands: the value numbers of the operands.
        is_called: the instruction is in a called computation.
    """

    instruction: Instruction
    kind: Hashable
    operands: Hashable
    is_called: bool


def effect_difference(
    before: Computation, after: Computation, parameters: Mapping[int, int]
) -> Unknown | None:
    """Return why the side effects of two programs are not proved equal, or None.

    Args:
        parameters: the number of the parameter in `before`, for parameters of `after` with another
            number.

    >>> import hlo, indexing
    >>> text = '''ENTRY e { p = f32[2] parameter(0)  q = f32[2] parameter(1)
    ...   t = token[] after-all()  o = token[] outfeed(%s, t)  ROOT r = f32[2] add(p, q) }'''
    >>> one, other = (hlo.parse(text % name).entry for name in "pq")
    >>> effect_difference(one, one, {}) is None
    True
    >>> effect_difference(one, other, {}).reason
    'the operands of the side effect `o` are not proved equal'
    """
    if not has_unique_values(before) and not has_unique_values(after):
        return None
    numbering = Numbering()
    try:
        ours = _effects(numbering, before, numbering.arguments(before, {}))
        theirs = _effects(numbering, after, numbering.arguments(after, parameters))
    except NoFormula as error:
        return error.unknown
    if [each.kind for each in ours] != [each.kind for each in theirs]:
        return _first_difference(ours, theirs)
    changed = [one for one, other in zip(ours, theirs, strict=True)
               if one.operands != other.operands]  # fmt: skip
    if not changed or _have_equal_operands(ours, theirs, parameters):
        return None
    (first, *_) = changed
    reason = f"the operands of the side effect `{first.instruction.name}` are not proved equal"
    return Unknown(reason, first.instruction)


def _effects(
    numbering: Numbering,
    computation: Computation,
    inputs: Sequence[Leaves],
    is_called: bool = False,
) -> list[SideEffect]:
    """Return the effects of a computation with these arguments; calls are inlined."""
    roots = list(filter(is_unique, computation.instructions))
    values = numbering.values(computation, inputs, roots)
    effects: list[SideEffect] = []
    for instruction in roots:
        operands = [values[operand] for operand in instruction.operands]
        if isinstance(instruction.op, InlineOp):
            called = instruction.called_computations[0]
            effects += _effects(numbering, called, operands, is_called=True)
            continue
        inner = [
            tuple([(each.kind, each.operands) for each in _effects(numbering, c, arguments, True)])
            for c in instruction.called_computations
            for arguments in [numbering.arguments(c, {})]
        ]
        results = numbers_of(map(numbering.result, instruction.called_computations))
        attributes = attributes_of(instruction)
        kind = instruction.opcode, attributes, tuple(inner), results
        effects.append(SideEffect(instruction, kind, numbers_of(operands), is_called))
    return effects


def _have_equal_operands(
    ours: Sequence[SideEffect], theirs: Sequence[SideEffect], parameters: Mapping[int, int]
) -> bool:
    """Return True if all operands are proved equal, by laws that hold for every value."""
    if any(effect.is_called for effect in (*ours, *theirs)):
        return False
    refs = [
        [
            ArrayRef(operand, path)
            for effect in effects
            for operand in effect.instruction.operands
            for _, path, _ in array_leaves(operand.shape)
        ]
        for effects in (ours, theirs)
    ]
    if len(refs[0]) != len(refs[1]):
        return False
    return all(compare_values(*refs, exact_arithmetic=True, parameters=parameters))


def _first_difference(ours: Sequence[SideEffect], theirs: Sequence[SideEffect]) -> Unknown:
    """Return the first effect of one program that the other one does not have at its place."""
    counts = f"{len(ours)} before, {len(theirs)} after"
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=False) if a.kind != b.kind]
    if pairs:
        one, other = (effect.instruction for effect in pairs[0])
        values = dict(attributes_of(one)), dict(attributes_of(other))
        changed = changed_attribute(*values, one.op, other.op)
        if one.opcode != other.opcode or not changed:
            what = "has" if has_own_effect(one) else "calls a computation with"
            changed = f"{what} another side effect than {other.opcode} `{other.name}` after"
        else:
            changed = f"has {changed}"
        return Unknown(f"the side effects differ: {one.opcode} `{one.name}` {changed}", one)
    shorter, longer = sorted((ours, theirs), key=len)
    extra = longer[len(shorter)].instruction
    where = "before" if longer is ours else "after"
    return Unknown(f"the side effects differ: {counts}; `{extra.name}` is only {where}", extra)
