"""Kinds of accesses, by which the command ``maps`` selects instructions.

>>> from indexing.maps.text import parse_map
>>> sorted(kinds_of_map(parse_map("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 4]")))
['transposing']
>>> sorted(kinds_of_map(parse_map("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 3], s0 in [0, 4]")))
['reducing', 'windowed']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

from indexing.maps.memoised import memoised_maps

if TYPE_CHECKING:
    from indexing.maps.answers import Answer
    from indexing.maps.indexing_map import IndexingMap
    from indexing.views.map_tables import MapRow
    from simplifier.atoms import Variable
    from simplifier.linear import Expr

ACCESS_KINDS: Final = {
    "transposing": "two dimensions are used in the opposite order",
    "windowed": "a result adds a range variable to a dimension",
    "broadcasting": "a dimension is unused: several elements need the same one",
    "reducing": "a range variable is used: an element needs several",
    "runtime": "with runtime variables",
    "may": "an over-approximation",
    "unknown": "no map, and a reason",
}
"""Kinds of accesses with their meaning."""


def kinds_of(rows: Iterable[MapRow]) -> set[str]:
    """Return the kinds of all maps of an instruction, as printed."""
    kinds: set[str] = set()
    for row in rows:
        if row.unknown is not None:
            kinds.add("unknown")
        elif row.map is not None:
            kinds |= kinds_of_map(row.map)
    return kinds


def kinds_of_answer(answer: Answer) -> set[str]:
    """Return the kinds of all maps of an answer.

    >>> import hlo, indexing
    >>> root = hlo.parse('''ENTRY e { p = f32[2,3] parameter(0)
    ...   ROOT t = f32[3,2] transpose(p), dimensions={1,0} }''').entry.root
    >>> kinds_of_answer(indexing.output_to_input(root))
    {'transposing'}
    """
    kinds = {"unknown"} if any(each is not None for each in answer.unknown) else set()
    return kinds.union(*[kinds_of_map(m) for maps in answer.maps for m in maps])


@memoised_maps(1 << 12)
def kinds_of_map(m: IndexingMap) -> frozenset[str]:
    """Return the kinds of a map, of which it may have several or none."""
    if m.is_known_empty:
        return frozenset({"may"} if m.grade == "may" else ())
    used = [set(result.variables()) for result in m.results]
    ranges = {s for s in m.ranges if s.lower < s.upper}
    kinds = {
        "transposing": _transposes(m, used),
        "windowed": any(names & set(m.dims) and names & ranges for names in used),
        "broadcasting": any(d.lower < d.upper for d in set(m.dims) - _read_variables(m)),
        "reducing": any(names & ranges for names in used),
        "runtime": bool(m.runtime),
        "may": m.grade == "may",
    }
    return frozenset(kind for kind, holds in kinds.items() if holds)


def _transposes(m: IndexingMap, used: Sequence[set[Variable]]) -> bool:
    """Return True if two dimensions are used in the opposite order.

    That is: all dimensions of a result follow all those of a later result; or a dimension follows
    one of a later result, and neither has a part in other results; or they are digits of one
    result, the later dimension being the more significant digit.
    """
    places = [[k for k, d in enumerate(m.dims) if d in names] for names in used]
    if any(min(a) > max(b) for a, b in combinations(filter(None, places), 2)):
        return True
    uses = Counter([k for own in places for k in own])
    single = [[k for k in own if uses[k] == 1] for own in places]
    if any(max(a) > min(b) for a, b in combinations(filter(None, single), 2)):
        return True
    return any(_has_digits_in_opposite_order(m.dims, result) for result in m.results)


def _has_digits_in_opposite_order(dims: Sequence[Variable], result: Expr) -> bool:
    """Return True for ``d0 + d1 * n``, where `d0` is less than `n`."""
    own = [(d, abs(c)) for d in dims if (c := result.parts.get(d, 0)) and d.lower < d.upper]
    return any(
        high >= low * (d.upper - d.lower + 1) for (d, low), (_, high) in combinations(own, 2)
    )


def _read_variables(m: IndexingMap) -> set[Variable]:
    """Return the variables in results, constraints and indices of runtime variables."""
    exprs = [
        *m.results,
        *[c.expr for c in m.constraints],
        *[i for rt in m.runtime for i in rt.index],
    ]
    return {v for expr in exprs for v in expr.variables()}
