"""Certificates: ISL proves that a simplified map is equal to its original.

`certify_map` compares two maps.  The parser applies simplification laws as well, so
`prove_text` compares a map with the text it was parsed from, translated to isl verbatim.

>>> text = "(d0) -> ((d0 * 4 + 3) floordiv 4 + d0 mod 1), domain: d0 in [0, 9]"
>>> from indexing.maps.text import parse_map
>>> prove_text(text, parse_map(text).simplify())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from indexing.maps.equality import difference
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.text import parse_map, variable_names
from simplifier import exact
from simplifier.exact.verbatim import IslTerm, IslText, Verbatim
from simplifier.reading import TextError, Tokens, read_expr
from simplifier.unknown import Unknown


class CertificateError(AssertionError):
    """A simplified map is not proved equal to its original.

    The message shows both maps, and a witness or the exhausted budget.

    >>> from indexing.maps.text import parse_map
    >>> original = parse_map("(d0) -> (d0 * 2), domain: d0 in [0, 9]")
    >>> try:
    ...     certify_map(original, parse_map("(d0) -> (d0 * 3), domain: d0 in [0, 9]"))
    ... except CertificateError as error:
    ...     print(str(error).splitlines()[1])
    is not equal to
    """


def certify_map(original: IndexingMap, simple: IndexingMap) -> IndexingMap:
    """Return `simple` if ISL proves it equal to `original` as a relation.

    Raises:
        CertificateError: the two differ, or the proof exceeds its budget outside of
            `record_undecided`.
    """
    gap = None if simple == original else difference(original, simple)
    if isinstance(gap, Unknown):
        obstacles = _undecided.get()
        if obstacles is not None:
            obstacles[simple] = gap.reason.rpartition(": ")[2]
            _proofs["undecided"] += 1
            return simple
        raise CertificateError(f"{simple}\nis not proved equal to\n{original}\n{gap}")
    if gap is not None:
        raise CertificateError(f"{simple}\nis not equal to\n{original}\n{gap}")
    _proofs["unchanged" if simple == original else "proved"] += 1
    return simple


_undecided: Final = ContextVar[dict[IndexingMap, str] | None]("_undecided", default=None)


@contextmanager
def record_undecided() -> Iterator[dict[IndexingMap, str]]:
    """Record the maps that isl cannot decide inside the block, and do not raise an error for them.

    Yields:
        the simplified maps, each with the obstacle.
    """
    obstacles: dict[IndexingMap, str] = {}
    token = _undecided.set(obstacles)
    try:
        yield obstacles
    finally:
        _undecided.reset(token)


_proofs: Final = Counter[str]()


def proofs() -> Counter[str]:
    """Number of maps of this process that were ``proved`` equal to their simplified form.

    Maps that `simplify` did not change are counted as ``unchanged``, and those that isl cannot
    decide inside a block of `record_undecided` as ``undecided``.
    """
    return _proofs.copy()


def prove_text(text: str, simple: IndexingMap) -> None:
    """Prove that `simple` is the relation written in `text`.

    Raises:
        CertificateError: the relations differ, or isl or its budget cannot decide.
        HloError: `text` is not a map.
    """
    read = parse_map(text)
    if text.split() in (["KNOWN", "EMPTY"], str(simple).split()):
        return
    try:
        isl_text = _isl_text(Tokens(text))
    except TextError as error:
        raise CertificateError(f"{text}\nis not proved to be\n{simple}\n{error.message}") from None
    kept = {rt.name: rt.variable for rt in simple.runtime}
    inputs = *simple.dims, *[kept.get(rt.name, rt.variable) for rt in read.runtime]
    relation = exact.Relation(inputs, simple.ranges, simple.results, simple.constraints)
    gap = exact.difference(isl_text, relation)
    if isinstance(gap, Unknown):
        raise CertificateError(f"{text}\nis not proved to be\n{simple}\n{gap}")
    if gap is not None:
        only = "text" if gap.in_first else "map"
        pair = f"{gap.point} -> {gap.results} is only in the {only}"
        raise CertificateError(f"{text}\nis not\n{simple}\n{pair}")


def _isl_text(tokens: Tokens) -> IslText:
    """The text of a map in isl notation; `parse_map` has checked its grammar."""
    dims = variable_names(tokens, "(", ")", required=True)
    ranges = variable_names(tokens, "[", "]")
    runtime = variable_names(tokens, "{", "}")
    names = {token.text: f"x{k}" for k, token in enumerate((*dims, *runtime, *ranges))}
    algebra = Verbatim(names)
    tokens.expect("->", "after the variables")
    tokens.expect("(", "before the results")
    results = list(_read_separated(tokens, algebra, ")"))
    conditions = ["1 = 1"]
    tokens.accept(",")
    if tokens.accept("domain"):
        tokens.expect(":", "after 'domain'")
        while tokens.next.kind != "end":
            bounded = read_expr(tokens, algebra)
            tokens.expect("in", "after an expression of the domain")
            tokens.expect("[", "after 'in'")
            lower, upper = _read_separated(tokens, algebra, "]")
            conditions.append(f"{lower.text} <= {bounded.text} <= {upper.text}")
            tokens.accept(",")
    inputs = [names[token.text] for token in (*dims, *runtime)]
    outputs = [f"o{k}" for k in range(len(results))]
    conditions += [f"{o} = {r.text}" for o, r in zip(outputs, results, strict=True)]
    condition = " and ".join(conditions)
    if ranges:
        condition = f"exists ({', '.join(names[t.text] for t in ranges)} : {condition})"
    text = f"{{ [{', '.join(inputs)}] -> [{', '.join(outputs)}] : {condition} }}"
    return IslText(text, len(inputs), len(results))


def _read_separated(tokens: Tokens, algebra: Verbatim, closing: str) -> Iterator[IslTerm]:
    """Comma-separated expressions up to `closing`."""
    while not tokens.accept(closing):
        yield read_expr(tokens, algebra)
        tokens.accept(",")
