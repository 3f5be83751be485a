"""Level ``values`` of a global program and its partition: formulas over device and local index.

An element of an output on a device is compared with the element of the global output at its global
index.  Parameters of the partition are read at their global indices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType

from hlo.shapes.shape import leaves
from indexing.dataflow.needed import dependencies_of
from indexing.dataflow.soundness import require_sound
from indexing.equivalence.pairing import Side
from indexing.equivalence.partitioned.device_elements import DeviceElements
from indexing.equivalence.partitioned.distribution import Distribution
from indexing.equivalence.partitioned.pairing import PartitionedPair
from indexing.equivalence.values.formulas.applications import Arguments, Frame
from indexing.equivalence.values.formulas.numbering import NoFormula, NumberedArray, Numbering
from indexing.equivalence.values.laws.normalising import Normalising, RealAlgebra
from indexing.equivalence.values.matching.case_matching import CaseMatching
from indexing.equivalence.values.results import (
    EqualFormulas,
    Residual,
    Roundings,
    ValueResult,
    judged_roundings,
)
from indexing.equivalence.values.terms.terms import Formula
from indexing.maps.indexing_map import dims


def compare_formulas(pair: PartitionedPair, exact_arithmetic: bool) -> list[ValueResult]:
    """Compare the formulas of each output leaf.

    Raises:
        HloError: a program is invalid.
    """
    results = _compare_formulas(pair, exact_arithmetic, "kept")
    if exact_arithmetic:
        return results

    def compare(roundings: Roundings, numbers: Sequence[int]) -> list[ValueResult]:
        others = _compare_formulas(pair, False, roundings)
        return [others[k] for k in numbers]

    return judged_roundings(results, compare)


def _compare_formulas(
    pair: PartitionedPair, exact_arithmetic: bool, roundings: Roundings
) -> list[ValueResult]:
    numbering, keeps = Numbering(), roundings != "dropped"
    rounds_factors = roundings == "added to factors"
    elements = DeviceElements(numbering, pair.devices, rounds_factors=rounds_factors)
    algebra = RealAlgebra(
        elements.algebra, exact_arithmetic=exact_arithmetic, keeps_roundings=keeps
    )
    normal = Normalising(algebra)
    try:
        outputs = [_outputs(numbering, side) for side in (pair.before, pair.after)]
        arguments = _arguments(elements, pair)
    except NoFormula as error:
        return [Residual("", "", None, error.unknown.reason)] * len(pair.outputs)
    frames = [Frame(each) for each in arguments]
    elements.programs += frames
    results: list[ValueResult] = []
    for ours, theirs, given in zip(*outputs, pair.outputs, strict=True):
        try:
            before, after = elements.body(ours, frames[0]), elements.body(theirs, frames[1])
            results.append(_compare_elements(elements, before, after, given, normal, keeps))
        except NoFormula as error:
            results.append(Residual("", "", None, error.unknown.reason))
    return results


def _outputs(numbering: Numbering, side: Side) -> list[NumberedArray]:
    """Return the output arrays of a program."""
    require_sound(dependencies_of([side.root]))
    inputs = numbering.arguments(side.computation, {})
    values = numbering.values(side.computation, inputs, [side.root])[side.root]
    paths = [path for path, _ in leaves(side.root.shape)]
    return [values[paths[number]] for number in side.outputs]


def _arguments(elements: DeviceElements, pair: PartitionedPair) -> tuple[Arguments, Arguments]:
    """Return the elements of the parameters of both programs."""
    table = elements.table
    ours, theirs = {}, {}
    leaves_of = zip(pair.before.inputs, pair.after.inputs, pair.inputs, strict=True)
    for (parameter, path), (local, local_path), given in leaves_of:
        number = pair.before.computation.parameters.index(parameter)
        element_type = dict(leaves(parameter.shape))[path].element_type  # type: ignore[union-attr]
        symbol = table.array("symbol", ("parameter", number, path), element_type, given.dims)
        own = [v.as_expr() if v.upper else v.as_expr() * 0 for v in dims(given.dims)]
        ours[number, path] = table.read(symbol, own)
        local_number = pair.after.computation.parameters.index(local)
        theirs[local_number, local_path] = elements.shard(symbol, given, (number, path))
    return ours, theirs


def _compare_elements(
    elements: DeviceElements,
    before: Formula,
    after: Formula,
    given: Distribution,
    normal: Normalising,
    drops_roundings: bool,
) -> ValueResult:
    """Compare the element of a global output with the element that a device holds.

    Args:
        drops_roundings: the program after may lack roundings that `normal` keeps.
    """
    algebra = elements.algebra
    values = dict(zip(dims(given.dims), elements.global_index(given), strict=True))
    before = algebra.rewriting({v: e for v, e in values.items() if v.as_expr() != e})(before)
    domain = tuple(elements.inside(given))
    if before is after or CaseMatching(algebra).equal(before, after, domain):
        return EqualFormulas(MappingProxyType(dict(elements.trusted)))
    matching = CaseMatching(normal.algebra, drops_roundings=drops_roundings)
    ours, theirs = normal(before), normal(after)
    normal.algebra.uses.clear()
    if matching.equal(ours, theirs, domain):
        laws = normal.uses(before, after) + elements.trusted + Counter(set(normal.algebra.uses))
        return EqualFormulas(MappingProxyType(dict(sorted(laws.items()))))
    if matching.pair is None:
        return Residual(str(ours), str(theirs), None, "the formulas differ")
    pair = matching.pair
    return Residual(str(pair[0]), str(pair[1]), None, "the formulas differ in a part")
