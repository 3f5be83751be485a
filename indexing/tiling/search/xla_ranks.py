"""Comparison of XLA's order of candidate tilings with the order by the bytes of their tiles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import indexing.methods as methods
from hlo.arguments import checked
from hlo.modules.module import Instruction
from indexing.maps.displayed import Displayed
from indexing.tiling.search.candidates import one_tile
from indexing.tiling.search.measures import Objective, RankedTiling, SingleElements, measure_tiling
from indexing.tiling.search.xla_candidates import XlaCandidate, XlaCandidates
from indexing.tiling.sets.tiling import Target, Tiling
from simplifier.unknown import Unknown


@dataclass(frozen=True, slots=True)
class ComparedTiling:
    """A candidate of XLA with its rank by the bytes of its tiles.

    Attributes:
        candidate: the tiling and the estimates of XLA; its `number` is the rank by XLA, from 0.
        ranked: the figures of its tiles, or the reason why they are unknown.
        value: the objective, the smaller the better; `None` if unknown.
        rank: the number of candidates with a smaller value; `None` if unknown.
    """

    candidate: XlaCandidate
    ranked: RankedTiling | Unknown
    value: int | None
    rank: int | None


@dataclass(frozen=True, slots=True, repr=False)
class RankComparison(Displayed):
    """XLA's candidates for one fusion, in its order, with the order by bytes.

    Attributes:
        instruction: the instruction whose output is tiled.
        objective: the figure of the second order.
        rows: the candidates.
        disagreements: pairs of candidates, as numbers: XLA estimates a shorter time for the first,
            and the objective is better for the second.

    >>> import hlo, indexing
    >>> from indexing import XlaCandidate, XlaCandidates
    >>> dot = hlo.parse('''ENTRY e {
    ...   p = f32[8,4] parameter(0)
    ...   q = f32[4,8] parameter(1)
    ...   ROOT dot = f32[8,8] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''').entry.root
    >>> a = XlaCandidate(0, ((2, 8),), (), 1024, 640, 256, 1e-6, 1e-6, 1e-6, 2e-6)
    >>> b = XlaCandidate(1, ((4, 4),), (), 1024, 512, 256, 1e-6, 1e-6, 1e-6, 3e-6)
    >>> ranks = indexing.compare_candidates(dot, XlaCandidates("dot =", (a, b)))
    >>> ranks.disagreements, [row.rank for row in ranks.rows]
    (((0, 1),), [1, 0])
    """

    instruction: Instruction
    objective: Objective
    rows: tuple[ComparedTiling, ...]
    disagreements: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return methods.comparison_text(self)

    def __repr__(self) -> str:
        return f"<comparison of {len(self.rows)} candidates for {self.instruction.name!r}>"


@checked
def compare_candidates(
    instruction: Instruction,
    dump: XlaCandidates,
    objective: Objective = "bytes",
    to: Target = "operands",
    output_id: int = 0,
) -> RankComparison | Unknown:
    """Return XLA's candidates with their rank by the bytes of their tiles.

    XLA's rank is the order of its estimated run time.  Its ``bytes_read`` counts every tile of an
    operand in full, also at the edge, while `RankedTiling.loaded` counts the elements needed.

    Args:
        instruction: the fusion of the dump.
        dump: one of the results of `parse_candidates`.
        objective: the figure to rank by, see `best_tilings`.
        to, output_id: as for `best_tilings`; `output_id` also selects XLA's tile sizes.
    Returns:
        The comparison; `Unknown` if the maps of the instruction are unknown.
    Raises:
        HloError: the instruction, or one that it depends on, is invalid.
        IndexError: `output_id` is out of range.
        ValueError: a candidate has no tile sizes for the output, or not one for each dimension.

    >>> import hlo
    >>> from indexing.tiling.search.xla_candidates import XlaCandidate
    >>> text = '''ENTRY e { p = f32[8,4] parameter(0)  q = f32[4,8] parameter(1)
    ...   ROOT dot = f32[8,8] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }'''
    >>> a = XlaCandidate(0, ((2, 8),), (), 1024, 640, 256, 1e-6, 1e-6, 1e-6, 2e-6)
    >>> b = XlaCandidate(1, ((4, 4),), (), 1024, 512, 256, 1e-6, 1e-6, 1e-6, 3e-6)
    >>> print(compare_candidates(hlo.parse(text).entry.root, XlaCandidates("dot =", (a, b))))
    candidates of XLA for `dot`: 1 of 1 pairs are in another order by bytes
    XLA  sizes  time  XLA read  loaded  requested  bytes  rank
    #0   [2,8]   2us       640     640        640    896     1
    #1   [4,4]   3us       512     512        512    768     0
    #0 before #1 by XLA: 2us < 3us; after it by bytes: 896 > 768
    """
    whole = one_tile(instruction, to, output_id)
    if isinstance(whole, Unknown):
        return whole
    single = SingleElements(whole)
    figures = [
        measure_tiling(whole.with_sizes(_sizes(candidate, whole, output_id)), single)
        for candidate in dump.candidates
    ]
    values = [None if isinstance(own, Unknown) else own.value(objective) for own in figures]
    known = [value for value in values if value is not None]
    rows = tuple(
        [
            ComparedTiling(
                candidate,
                ranked,
                value,
                None if value is None else sum(other < value for other in known),
            )
            for candidate, ranked, value in zip(dump.candidates, figures, values, strict=True)
        ]
    )
    return RankComparison(instruction, objective, rows, _disagreements(rows))


def _sizes(candidate: XlaCandidate, whole: Tiling, output_id: int) -> tuple[int, ...]:
    tiles = candidate.output_tiles
    if output_id >= len(tiles):
        raise ValueError(
            f"candidate #{candidate.number} has tile sizes for {len(tiles)} outputs, none for "
            f"output {output_id}"
        )
    sizes = tiles[output_id]
    if len(sizes) != whole.shape.rank or min(sizes, default=1) < 1:
        raise ValueError(
            f"candidate #{candidate.number} has the tile sizes {list(sizes)}, but "
            f"`{whole.instruction.name}` is {whole.shape}: expected {whole.shape.rank} positive "
            "sizes; is the dump of another fusion?"
        )
    return sizes


def _disagreements(rows: tuple[ComparedTiling, ...]) -> tuple[tuple[int, int], ...]:
    pairs = []
    for a, b in combinations(range(len(rows)), 2):
        first, second = rows[a], rows[b]
        if first.candidate.exec_time > second.candidate.exec_time:
            a, b, first, second = b, a, second, first
        if first.value is None or second.value is None:
            continue
        if first.candidate.exec_time < second.candidate.exec_time and first.value > second.value:
            pairs.append((a, b))
    return tuple(pairs)
