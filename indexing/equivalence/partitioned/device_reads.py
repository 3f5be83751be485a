"""Level ``reads`` of a global program and its partition: elements by their global indices.

For each device and each element that it holds of an output, the union of its reads, composed
through collectives to elements of parameters on devices, is compared with the reads of the global
output element.  Both are relations from (device, local index) to the global index of a parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from indexing.dataflow.device_queries import device_maps_to_parameters
from indexing.dataflow.queries import walk_of
from indexing.equivalence.pairing import Side
from indexing.equivalence.partitioned.distribution import Distribution, global_maps
from indexing.equivalence.partitioned.pairing import PartitionedPair
from indexing.equivalence.partitioned.regions import global_reads
from indexing.equivalence.reads import Comparison, Gap, Maps, are_exact, compared_maps
from indexing.execution.mesh import has_regions
from indexing.maps.answers import Answer, Unknown
from indexing.maps.indexing_map import IndexingMap, dims
from simplifier.atoms import Variable


def compare_device_reads(pair: PartitionedPair) -> Comparison:
    """Compare the reads of every output and parameter, on every device."""
    gaps: list[Gap] = []
    reasons: list[Unknown] = []
    approximate = exact = 0
    for output, given in enumerate(pair.outputs):
        starts = global_maps(given, pair.devices.variable)
        if has_regions(pair.before.root.module):  # the maps start on devices
            own = pair.devices.variable.as_expr()
            starts = [replace(m, results=(own, *m.results)) for m in starts]
        answers = (
            global_reads(
                pair.before.root, pair.before.outputs[output], pair.devices, walk_of(exact=True)
            ),
            device_maps_to_parameters(pair.after.root, pair.after.outputs[output], exact=True),
        )
        before, after = (
            _by_input(side, answer)
            for side, answer in zip((pair.before, pair.after), answers, strict=True)
        )
        for number, at in enumerate(pair.inputs):
            ours, theirs = before[number], after[number]
            if not isinstance(ours, Unknown):
                ours = tuple([m for g in starts for m in _compose_reads(g, ours)])
            if not isinstance(theirs, Unknown):
                theirs = tuple(_globally(theirs, given, at, pair.devices.variable))
            answer = _compare_reads(ours, theirs, output, number)
            if isinstance(answer, Unknown):
                reasons.append(answer)
            elif answer is not None:
                gaps.append(answer)
            else:
                is_exact = are_exact((ours, theirs))
                exact, approximate = exact + is_exact, approximate + (not is_exact)
    return Comparison(tuple(gaps), tuple(reasons), approximate, exact)


def _by_input(side: Side, answer: Answer) -> list[Maps | Unknown]:
    """Return the maps to each parameter leaf of a program."""
    reads: list[Maps | Unknown] = []
    for parameter, path in side.inputs:
        maps: Maps | Unknown = ()
        for k, operand in enumerate(answer.operands):
            unknown = answer.unknown[k]
            if operand is parameter and unknown is not None:
                maps = unknown
            elif operand is parameter:
                pairs = zip(answer.maps[k], answer.paths[k], strict=True)
                maps = tuple([m for m, own in pairs if own == path])
        reads.append(maps)
    return reads


def _compare_reads(
    before: Maps | Unknown, after: Maps | Unknown, output: int, number: int
) -> Gap | Unknown | None:
    for word, maps in (("before", before), ("after", after)):
        if not isinstance(maps, Unknown) and any(m.runtime for m in maps):
            where = f"output {output}, parameter {number}, {word}"
            return Unknown(f"{where}: reads at runtime indices are not compared by global index")
    return compared_maps(before, after, output, number)


# ---------------------------------------------------------------- maps


def _compose_reads(to_global: IndexingMap, reads: Sequence[IndexingMap]) -> list[IndexingMap]:
    return [m for m in [to_global.then(r).simplify() for r in reads] if not m.is_known_empty]


def _globally(
    reads: Sequence[IndexingMap], given: Distribution, at: Distribution, device: Variable
) -> Iterator[IndexingMap]:
    """Yield the maps of a device's program with the global indices of the parameter's elements.

    Elements of the output that are padding are left out, and so are reads of padding.
    """
    own = global_maps(given, device)
    identity = (device, *dims(given.local_dims))
    ends = global_maps(at, device)
    for read in reads:
        for kept in own:
            inside = IndexingMap.of(identity, identity, constraints=kept.constraints)
            for end in ends:
                m = inside.then(read).then(end).simplify()
                if not m.is_known_empty:
                    yield m
