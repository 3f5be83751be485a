"""Comparison of the element formulas of two programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from hlo.modules.module import Computation
from indexing.dataflow.needed import needed_by
from indexing.dataflow.soundness import require_sound
from indexing.equivalence.values.elements import Elements
from indexing.equivalence.values.frames import Frame
from indexing.equivalence.values.matching import Difference, Matching
from indexing.equivalence.values.normalising import Normalising, RealAlgebra
from indexing.equivalence.values.numbering import NoFormula, NumberedArray, Numbering
from indexing.maps.arrays import ArrayRef, array_leaves

_NO_LAWS: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EqualFormulas:
    """A proof that an output has the same formula in both programs.

    Attributes:
        laws: the number of uses of each law that is not exact, by name.
        is_structural: the arrays have the same value number; no formula was needed.
    """

    laws: Mapping[str, int] = field(default_factory=lambda: _NO_LAWS)
    is_structural: bool = False

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Residual:
    """The part of an output's formulas that is not proved equal.

    Attributes:
        before, after: the smallest pair of subterms that differ, as text.
        difference: the part in which they differ.
        reason: the obstacle, if the formulas are not known.
    """

    before: str
    after: str
    difference: Difference | None
    reason: str

    def __bool__(self) -> bool:
        return False


ValueResult: TypeAlias = EqualFormulas | Residual


def compare_values(
    before: Computation | Sequence[ArrayRef],
    after: Computation | Sequence[ArrayRef],
    *,
    exact_arithmetic: bool = False,
    parameters: Mapping[int, int] | None = None,
) -> list[ValueResult]:
    """Compare the element formulas of two programs, output leaf by output leaf.

    Args:
        before, after: computations, or arrays of one computation each.
        exact_arithmetic: use only laws that are valid for every value of the type.
        parameters: the number of the parameter in `before`, for parameters of `after` with another
            number.
    Raises:
        HloError: a program is invalid.
        ValueError: the programs have a different number of outputs.

    >>> import hlo, indexing.ops
    >>> one = hlo.parse('''ENTRY e { p = f32[2,3] parameter(0)  n = f32[2,3] negate(p)
    ...   ROOT t = f32[3,2] transpose(n), dimensions={1,0} }''')
    >>> two = hlo.parse('''ENTRY e { p = f32[2,3] parameter(0)
    ...   t = f32[3,2] transpose(p), dimensions={1,0}  ROOT n = f32[3,2] negate(t) }''')
    >>> list(map(bool, compare_values(one.entry, two.entry)))
    [True]
    """
    numbering = Numbering()
    try:
        ours = _outputs(numbering, before, {})
        theirs = _outputs(numbering, after, parameters or {})
    except NoFormula as error:
        return [Residual("", "", None, error.unknown.reason)]
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} outputs before, {len(theirs)} after: expected equal numbers")
    if all(a is b for a, b in zip(ours, theirs, strict=True)):
        return [EqualFormulas(is_structural=True)] * len(ours)
    elements = Elements(numbering)
    frame = Frame(elements.symbols([*ours, *theirs], "parameter"))
    normal = Normalising(RealAlgebra(elements.algebra, exact_arithmetic=exact_arithmetic))
    return [_compared(elements, frame, a, b, normal) for a, b in zip(ours, theirs, strict=True)]


def _compared(
    elements: Elements,
    frame: Frame,
    before: NumberedArray,
    after: NumberedArray,
    normal: Normalising,
) -> ValueResult:
    if before is after:
        return EqualFormulas(is_structural=True)
    if before.shape is None or after.shape is None:
        return Residual("", "", None, "tokens are made by different instructions")
    if before.shape.dims != after.shape.dims:
        return Residual(str(before.shape), str(after.shape), None, "the shapes differ")
    try:
        ours, theirs = elements.body(before, frame), elements.body(after, frame)
    except NoFormula as error:
        return Residual("", "", None, error.unknown.reason)
    trusted = elements.trusted
    if Matching(elements.algebra).equal(ours, theirs):
        return EqualFormulas(MappingProxyType(dict(trusted)))
    matching = Matching(normal.algebra, allows_rounding=normal.algebra.reassociates)
    simple, other = normal(ours), normal(theirs)
    if matching.equal(simple, other):
        laws = normal.uses(ours, theirs) + matching.laws(simple, other) + trusted
        return EqualFormulas(MappingProxyType(dict(sorted(laws.items()))))
    pair = matching.residual(simple, other)
    reason = f"the formulas differ in a part: {pair.difference}"
    return Residual(str(pair.before), str(pair.after), pair.difference, reason)


def _outputs(
    numbering: Numbering,
    program: Computation | Sequence[ArrayRef],
    parameters: Mapping[int, int],
) -> list[NumberedArray]:
    """Return the arrays of a program's outputs; tokens are left out.

    Args:
        parameters: other numbers of parameters.
    """
    if isinstance(program, Computation):
        program = [ArrayRef(program.root, path) for _, path, _ in array_leaves(program.root.shape)]
    if not program:
        return []
    roots = [ref.instruction for ref in program]
    require_sound(needed_by(roots))
    computation = roots[0].computation
    inputs = [
        numbering.argument(parameters.get(number, number), parameter.shape)
        for number, parameter in enumerate(computation.parameters)
    ]
    values = numbering.values(computation, inputs, roots)
    return [values[ref.instruction][ref.path] for ref in program]
