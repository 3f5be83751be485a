"""Best tilings, and their comparison with XLA's candidates, as text and as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from indexing.tiling.search.candidates import BestTilings
from indexing.tiling.search.measures import RankedTiling
from indexing.tiling.search.xla_ranks import ComparedTiling, RankComparison
from simplifier.unknown import Unknown

RANKED_COLUMNS = ("sizes", "tiles", "bytes", "requested", "reuse", "working set")
"""The columns of `ranked_row`."""

COMPARED_COLUMNS = ("XLA", "sizes", "time", "XLA read", "loaded", "requested", "bytes", "rank")
"""The columns of `compared_row`."""


def best_tilings_text(best: BestTilings) -> str:
    """Return the table of the best tilings, and the notes."""
    rows = list(map(ranked_row, best.ranked))
    table = align_columns([RANKED_COLUMNS, *rows]) if rows else ["none"]
    return "\n".join([best_head(best), *table, *best_notes(best)])


def best_head(best: BestTilings) -> str:
    """Return the title of the table of the best tilings."""
    return f"best tilings of `{best.instruction.name}` {best.shape} by {best.objective}"


def best_notes(best: BestTilings) -> Iterator[str]:
    """Yield the effort of the search, the refused tilings, and what is not known."""
    yield f"{best.built:,} of {best.candidates:,} tilings built"
    yield from map(str, best.refused)
    if best.incomplete:
        yield f"better tilings may exist: {best.incomplete}"


def ranked_row(ranked: RankedTiling) -> tuple[str, ...]:
    """Return the values of `RANKED_COLUMNS` for one tiling."""
    most = "<= " if ranked.grade == "may" else ""
    reuse = ranked.reuse
    if isinstance(reuse, Unknown):
        reuse_text = "unknown"
    elif reuse.denominator == 1:
        reuse_text = str(reuse)
    else:
        reuse_text = f"{float(reuse):.2f}"
    return (
        _sizes_text(ranked.sizes),
        f"{ranked.memory.tiles:,}",
        f"{most}{ranked.bytes:,}",
        f"{most}{ranked.requested:,}",
        reuse_text,
        f"{most}{ranked.memory.working_set:,}",
    )


def comparison_text(comparison: RankComparison) -> str:
    """Return the table of XLA's candidates, and the pairs in another order."""
    table = align_columns([COMPARED_COLUMNS, *map(compared_row, comparison.rows)])
    return "\n".join([comparison_head(comparison), *table, *comparison_notes(comparison)])


def comparison_head(comparison: RankComparison) -> str:
    """Return the title of the table of XLA's candidates."""
    count = len(comparison.rows)
    return (
        f"candidates of XLA for `{comparison.instruction.name}`: {len(comparison.disagreements)} "
        f"of {count * (count - 1) // 2} pairs are in another order by {comparison.objective}"
    )


def comparison_notes(comparison: RankComparison) -> Iterator[str]:
    """Yield the pairs of candidates that the two orders disagree on, with both figures."""
    for first, second in comparison.disagreements:
        a, b = comparison.rows[first], comparison.rows[second]
        yield (
            f"#{first} before #{second} by XLA: {_time(a)} < {_time(b)}; "
            f"after it by {comparison.objective}: {a.value:,} > {b.value:,}"
        )


def compared_row(row: ComparedTiling) -> tuple[str, ...]:
    """Return the values of `COMPARED_COLUMNS` for one candidate."""
    candidate, ranked = row.candidate, row.ranked
    if isinstance(ranked, Unknown):
        sizes = ";".join(map(_sizes_text, candidate.output_tiles))
        figures = ["unknown"] * 3
    else:
        sizes = _sizes_text(ranked.sizes)
        figures = [f"{n:,}" for n in (ranked.loaded, ranked.requested, ranked.bytes)]
    rank = "unknown" if row.rank is None else str(row.rank)
    read = f"{candidate.bytes_read:,}"
    return f"#{candidate.number}", sizes, _time(row), read, *figures, rank


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the first column is left-aligned, the others right-aligned.

    >>> align_columns([("a", "n"), ("bcd", "12")])
    ['a     n', 'bcd  12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def _sizes_text(sizes: Sequence[int]) -> str:
    return f"[{','.join(map(str, sizes))}]"


def _time(row: ComparedTiling) -> str:
    return f"{row.candidate.exec_time * 1e6:.6g}us"
