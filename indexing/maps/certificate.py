"""A simplified map against the text that was given: proved without a law of ours.

`IndexingMap.simplify` with ``certify`` proves that simplifying changed nothing; but laws are
applied when a map is read, too.  Here the text goes to isl as it is written.

>>> text = "(d0) -> ((d0 * 4 + 3) floordiv 4 + d0 mod 1), domain: d0 in [0, 9]"
>>> from indexing.maps.text import parse_map
>>> proved_as_written(text, parse_map(text).simplify())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from indexing.maps.equality import difference
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.text import parse_map, variable_names
from simplifier import exact
from simplifier.exact.written import Piece, Verbatim, Written
from simplifier.reading import TextError, Tokens, read_expr
from simplifier.unknown import Unknown


class CertificateError(AssertionError):
    """A simplified map is not proved equal to its original; the message has both and a witness."""


def certified(original: IndexingMap, simple: IndexingMap) -> IndexingMap:
    """`simple`, proved with ISL to be the same relation as `original`.

    Raises:
        CertificateError: with a witness where the two differ, or because of the budget.
    """
    found = difference(original, simple)
    if isinstance(found, Unknown):
        raise CertificateError(f"{simple}\nis not proved equal to\n{original}\n{found}")
    if found is not None:
        raise CertificateError(f"{simple}\nis not equal to\n{original}\n{found}")
    _proofs["needless" if simple == original else "proved"] += 1
    return simple


_proofs: Final = Counter[str]()


def proofs() -> Counter[str]:
    """How many simplified maps were ``proved`` equal in this process, and for how many that was
    ``needless``, because they were simple already."""
    return _proofs.copy()


def proved_as_written(text: str, simple: IndexingMap) -> None:
    """Proves that `simple` is the relation that `text` says.

    Raises:
        CertificateError: it is not, with a witness; or that is beyond isl or its budget.
        HloError: `text` is no map.
    """
    read = parse_map(text)
    if text.split() == ["KNOWN", "EMPTY"]:
        return
    try:
        said = _written(Tokens(text))
    except TextError as error:
        raise CertificateError(f"{text}\nis not proved to be\n{simple}\n{error.message}") from None
    kept = {rt.name: rt.variable for rt in simple.runtime}
    inputs = *simple.dims, *[kept.get(rt.name, rt.variable) for rt in read.runtime]
    meant = exact.Relation(inputs, simple.ranges, simple.results, simple.constraints)
    found = exact.difference(said, meant)
    if isinstance(found, Unknown):
        raise CertificateError(f"{text}\nis not proved to be\n{simple}\n{found}")
    if found is not None:
        only = "text" if found.in_first else "map"
        at = f"{found.point} -> {found.results}, which only the {only} has"
        raise CertificateError(f"{text}\nis not\n{simple}\n{at}")


def _written(tokens: Tokens) -> Written:
    """The text of a map, whose grammar `parse_map` has checked, as isl's text."""
    dims = variable_names(tokens, "(", ")", required=True)
    ranges = variable_names(tokens, "[", "]")
    runtime = variable_names(tokens, "{", "}")
    names = {token.text: f"x{k}" for k, token in enumerate((*dims, *runtime, *ranges))}
    algebra = Verbatim(names)
    tokens.expect("->", "after the variables")
    tokens.expect("(", "in front of the results")
    results = list(_separated(tokens, algebra, ")"))
    conditions = ["1 = 1"]
    tokens.took(",")
    if tokens.took("domain"):
        tokens.expect(":", "after 'domain'")
        while tokens.next.kind != "end":
            bounded = read_expr(tokens, algebra)
            tokens.expect("in", "after an expression of the domain")
            tokens.expect("[", "after 'in'")
            lower, upper = _separated(tokens, algebra, "]")
            conditions.append(f"{lower.text} <= {bounded.text} <= {upper.text}")
            tokens.took(",")
    inputs = [names[token.text] for token in (*dims, *runtime)]
    outputs = [f"o{k}" for k in range(len(results))]
    conditions += [f"{o} = {r.text}" for o, r in zip(outputs, results, strict=True)]
    condition = " and ".join(conditions)
    if ranges:
        condition = f"exists ({', '.join(names[t.text] for t in ranges)} : {condition})"
    text = f"{{ [{', '.join(inputs)}] -> [{', '.join(outputs)}] : {condition} }}"
    return Written(text, len(inputs), len(results))


def _separated(tokens: Tokens, algebra: Verbatim, closing: str) -> Iterator[Piece]:
    """Expressions with commas between them, up to `closing`."""
    while not tokens.took(closing):
        yield read_expr(tokens, algebra)
        tokens.took(",")
