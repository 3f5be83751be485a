"""Maps as MLIR attributes: ``#xla.indexing_map<"…">``, ``affine_map<…>``, ``affine_set<…>``.

XLA's attribute contains the text of the map (`indexing.maps.text`).  Affine maps have no bounds
and no runtime variables: the reader takes the bounds as arguments, and both range and runtime
variables are symbols.

Sources: XLA ``xla/hlo/analysis/indexing_map_serialization.cc``; MLIR "Builtin Dialect",
AffineMapAttr and IntegerSetAttr, and "'affine' Dialect", "Polyhedral Structures" (grammar, and the
rounding of ``mod``, ``floordiv`` and ``ceildiv``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NoReturn, TypeAlias, assert_never

from hlo.arguments import checked
from hlo.text.source import HloError, Source
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.interchange.affine_text import (
    Heads,
    SizeOrBounds,
    VariableBounds,
    affine_map,
    affine_set,
)
from indexing.maps.printing import map_text, require_exact_text
from indexing.maps.runtime_variable import RuntimeVariable
from indexing.maps.text import parse_map
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr, from_atom
from simplifier.reading import TextError, Tokens
from simplifier.semiaffine import SemiAffine
from simplifier.shared import atoms_in_order
from simplifier.text import expr_text

MlirKind: TypeAlias = Literal["indexing_map", "affine_map", "affine_set"]
XlaDivision: TypeAlias = Literal["/", "floordiv"]
_CODE: Final = "mlir-syntax"


# ---------------------------------------------------------------- writing


@checked
def to_mlir(indexing_map: IndexingMap, kind: MlirKind = "indexing_map") -> str:
    """Return the map as the text of an MLIR attribute.

    Args:
        kind: "indexing_map" for XLA's attribute, which omits only the grade and the sources of
            runtime variables; "affine_map" for the results without domain; "affine_set" for the
            domain.
    Raises:
        ValueError: the kind is an affine one, and an expression is not semi-affine in MLIR; or
            shared subexpressions make a text too long (`simplifier.text.MAX_TEXT`).

    >>> half = IndexingMap.over((4, 7), lambda d: [d[1] // 2, d[0]])
    >>> print(to_mlir(half))
    #xla.indexing_map<"(d0, d1) -> (d1 floordiv 2, d0), domain: d0 in [0, 3], d1 in [0, 6]">
    >>> print(to_mlir(half, "affine_map"))
    affine_map<(d0, d1) -> (d1 floordiv 2, d0)>
    """
    match kind:
        case "indexing_map":
            return f'#xla.indexing_map<"{to_xla(indexing_map, division="floordiv")}">'
        case "affine_map":
            return to_affine_map(indexing_map)
        case "affine_set":
            return to_affine_set(indexing_map)
    assert_never(kind)


@checked
def to_xla(indexing_map: IndexingMap, division: XlaDivision = "/") -> str:
    """Return the map as XLA prints it, with names of variables that XLA accepts.

    The text omits the grade and the sources of runtime variables.

    Args:
        division: how XLA prints a floor division: ``/`` since 2026, ``floordiv`` before.
    Raises:
        ValueError: shared subexpressions make a text too long (`simplifier.text.MAX_TEXT`).

    >>> print(to_xla(IndexingMap.over((8,), lambda d: [d[0] // 2, d[0] % 2])))
    (d0) -> (d0 / 2, d0 mod 2), domain: d0 in [0, 7]
    """
    require_exact_text(indexing_map)
    text = _map_text(_rename_for_xla(indexing_map))
    return text if division == "floordiv" else text.replace(" floordiv ", " / ")


def _map_text(indexing_map: IndexingMap) -> str:
    """The text of the map with constant bounds: XLA reads no symbolic bounds."""
    head, _, domain = map_text(indexing_map).partition(", domain: ")
    bounds = [str(Constraint(_free(v), v.lower, v.upper)) for v in indexing_map.variables]
    bounds += map(str, indexing_map.constraints)
    return f"{head}, domain: {', '.join(bounds)}" if domain else head


def to_affine_map(indexing_map: IndexingMap) -> str:
    """Return the results as an ``affine_map``; range and runtime variables become symbols.

    Raises:
        ValueError: a result is not semi-affine in MLIR: it has a product of dimensions, a division
            by a dimension, a minimum or a maximum.

    >>> print(to_affine_map(IndexingMap.over((4, 7), lambda d: [d[1] // 2 + d[0] * 3])))
    affine_map<(d0, d1) -> (d0 * 3 + d1 floordiv 2)>
    """
    require_exact_text(indexing_map)
    plain = _number_variables(indexing_map)
    for result in plain.results:
        _require_semi_affine(result, plain)
    return f"affine_map<{_head(plain)} -> ({', '.join(map(expr_text, plain.results))})>"


def to_affine_set(indexing_map: IndexingMap) -> str:
    """Return the domain as an ``affine_set``; range and runtime variables become symbols.

    Raises:
        ValueError: a constraint is not semi-affine in MLIR; see `to_affine_map`.

    >>> print(to_affine_set(IndexingMap.over((4,), lambda d: [d[0] // 2])))
    affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>
    """
    require_exact_text(indexing_map)
    plain = _number_variables(indexing_map)
    for constraint in plain.constraints:
        _require_semi_affine(constraint.expr, plain)
    conditions = [text for v in plain.variables for text in _bounds(v)]
    conditions += [text for c in plain.constraints for text in _conditions(c)]
    return f"affine_set<{_head(plain)} : ({', '.join(conditions or ['0 == 0'])})>"


def _require_semi_affine(expr: Expr, indexing_map: IndexingMap) -> None:
    """Reject products with dimensions in both factors, and divisors with dimensions."""
    for atom in reversed(atoms_in_order([expr])):
        if isinstance(atom, SemiAffine):
            with_dims = [
                k for k, e in enumerate(atom.operands) if {*e.variables()} & {*indexing_map.dims}
            ]
            allowed = {"*": len(with_dims) < 2, "floordiv": 1 not in with_dims}
            if not allowed.get(atom.operator, False):
                raise ValueError(f"not representable in an affine map or set: {from_atom(atom)}")


def _bounds(variable: Variable) -> Iterator[str]:
    return _conditions(Constraint(_free(variable), variable.lower, variable.upper))


def _free(variable: Variable) -> Expr:
    """The variable as an expression, even if it has a single value and folds to a constant."""
    return Variable(variable.name, variable.lower, variable.lower + 1).as_expr()


def _conditions(constraint: Constraint) -> Iterator[str]:
    low, high = constraint.expr - constraint.lower, constraint.upper - constraint.expr
    if constraint.lower == constraint.upper:
        yield f"{expr_text(low)} == 0"
    else:
        yield f"{expr_text(low)} >= 0"
        yield f"{expr_text(high)} >= 0"


def _head(indexing_map: IndexingMap) -> str:
    symbols = [*indexing_map.ranges, *[rt.variable for rt in indexing_map.runtime]]
    head = f"({', '.join(v.name for v in indexing_map.dims)})"
    return f"{head}[{', '.join(v.name for v in symbols)}]" if symbols else head


def _number_variables(indexing_map: IndexingMap) -> IndexingMap:
    """The same map with variables ``d0, d1, …`` and ``s0, s1, …``, as MLIR prints them."""
    symbols = indexing_map.variables[len(indexing_map.dims) :]
    names = {v: f"d{k}" for k, v in enumerate(indexing_map.dims)}
    return _with_names(indexing_map, names | {v: f"s{k}" for k, v in enumerate(symbols)})


def _rename_for_xla(indexing_map: IndexingMap) -> IndexingMap:
    """The same map with variable names that XLA accepts."""
    taken = {v.name for v in indexing_map.variables}
    names = {v: v.name for v in indexing_map.variables}
    for v in indexing_map.variables:
        if not _NAME.fullmatch(v.name) or v.name in _WORDS:
            names[v] = next(name for k in range(len(taken) + 1) if (name := f"x{k}") not in taken)
            taken.add(names[v])
    return _with_names(indexing_map, names)


# Variable names in XLA's lexer, and its keywords.
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS: Final = frozenset(
    ["domain", "in", "true", "false", "mod", "floordiv", "floorDiv", "ceildiv"]
)


def _with_names(indexing_map: IndexingMap, names: dict[Variable, str]) -> IndexingMap:
    if all(v.name == name for v, name in names.items()):
        return indexing_map
    new = {v: v.renamed(name) for v, name in names.items()}
    results, constraints = indexing_map.substituted({v: new[v].as_expr() for v in new})
    return IndexingMap.of(
        [new[v] for v in indexing_map.dims],
        results,
        ranges=[new[v] for v in indexing_map.ranges],
        runtime=[RuntimeVariable(new[rt.variable]) for rt in indexing_map.runtime],
        constraints=constraints,
    )


# ---------------------------------------------------------------- reading


@checked
def from_mlir(
    given: object,
    *,
    dims: Sequence[SizeOrBounds] | None = None,
    symbols: Sequence[SizeOrBounds] | None = None,
    runtime: Sequence[SizeOrBounds] = (),
    filename: str = "<mlir>",
) -> IndexingMap:
    """Return the map of an MLIR attribute, given as text or as an object of ``jaxlib.mlir.ir``.

    * ``#xla.indexing_map<"…">`` (also in its older forms: ``#xla_gpu.``, without quotes, in several
      strings, with ``is_simplified: true``) becomes the map; its runtime variables have no source.
    * ``affine_map<(d0)[s0] -> (…)>`` needs `dims` and `symbols`. The last ``len(runtime)`` symbols
      become runtime variables, the others range variables.
    * ``affine_set<(d0)[s0] : (…)>`` becomes a map without results whose domain is the set. Its
      variables are bounded by conditions such as ``d0 - 1 >= 0``, by `dims` and `symbols`, or both.

    Args:
        dims, symbols, runtime: bounds of each variable: a size, or a pair of inclusive bounds.
        filename: the file name in error messages.
    Raises:
        HloError: the text is not such an attribute, or a variable has no bounds.
        ValueError: the number of bounds is not the number of variables; or bounds are given for an
            ``indexing_map``.

    >>> print(from_mlir("affine_map<(i)[s] -> (i * 8 + s, i mod 4)>", dims=(9,), symbols=(8,)))
    (i)[s] -> (i * 8 + s, i mod 4), domain: i in [0, 8], s in [0, 7]
    >>> print(from_mlir("affine_set<(d0) : (d0 - 1 >= 0, 9 - d0 >= 0, d0 mod 2 == 0)>"))
    (d0) -> (), domain: d0 in [1, 9], d0 mod 2 in [0, 0]
    """
    text = given if isinstance(given, str) else str(given)
    reader = _Reader(Source(text, filename))
    kind, start, end = reader.envelope()
    if kind == "indexing_map":
        if dims is not None or symbols is not None or runtime:
            raise ValueError(
                "dims, symbols and runtime do not apply to an indexing_map, which has bounds"
            )
        return reader.indexing_map(start, end)
    bounds = VariableBounds(dims, symbols, runtime)
    try:
        tokens = Tokens(reader.mask_outside(start, end))
        read = affine_map if kind == "affine_map" else affine_set
        parsed = read(tokens, Heads.read(tokens), bounds)
        if tokens.next.kind != "end":
            tokens.fail(f"expected the end of the attribute, found {tokens.next_text()}")
    except TextError as error:
        at = max(error.start, start)  # the end of a blank text is its start
        reader.fail(error.message, at, max(error.end, at + 1), error.hint)
    return parsed


# ---------------------------------------------------------------- attribute syntax

_ENVELOPE: Final = re.compile(
    r"\s*(?:#[\w.$-]+\s*=\s*)?"  # its alias in a module
    r"(?:#xla(?:_gpu)?\.(?P<xla>indexing_map)|(?P<mlir>affine_map|affine_set))\s*<",
    re.ASCII,
)
_SIMPLIFIED: Final = re.compile(r",?\s*is_simplified\s*:\s*(true|false)\s*\Z")
_STRING: Final = re.compile(r'\s*"(?P<text>(?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(r'\\(?:(?P<code>[0-9A-Fa-f]{2})|(?P<letter>["\\nt]))')
_SYMBOL: Final = re.compile(r"\bsymbol\s*\(\s*(?P<name>[A-Za-z_][\w.$]*)\s*\)", re.ASCII)


class _Reader:
    """The text of one attribute."""

    def __init__(self, source: Source) -> None:
        self.source, self.text = source, source.text

    def fail(self, message: str, start: int, end: int | None = None, hint: str = "") -> NoReturn:
        raise HloError(message, self.source.span(start, end), code=_CODE, help=hint)

    def envelope(self) -> tuple[MlirKind, int, int]:
        """The kind of the attribute, and the start and end of its contents."""
        match = _ENVELOPE.match(self.text)
        end = len(self.text.rstrip())
        if match is None:
            start = len(self.text) - len(self.text.lstrip())
            # `jaxlib.mlir.ir` prints bare maps and sets without the angle brackets.
            if self.text.startswith("(", start):
                return ("affine_map" if "->" in self.text else "affine_set"), start, end
            kinds = '#xla.indexing_map<"…">, affine_map<…> or affine_set<…>'
            self.fail(f"expected {kinds}", start, max(start + 1, min(end, start + 20)))
        if not self.text.endswith(">", match.end(), end):
            self.fail("expected `>` at the end of the attribute", end)
        kind: MlirKind = "affine_map" if match["mlir"] == "affine_map" else "affine_set"
        return ("indexing_map" if match["xla"] else kind), match.end(), end - 1

    def indexing_map(self, start: int, end: int) -> IndexingMap:
        """The map in XLA's attribute."""
        letters, places = self.unquote(start, end)
        inside = _SIMPLIFIED.sub("", letters)
        if inside.strip() == "UNDEFINED":
            self.fail("UNDEFINED: XLA could not compute this map", start, end)
        try:
            return parse_map(inside)
        except HloError as error:
            last = max(error.span.start, min(error.span.end, len(places)) - 1)
            span = self.source.span(places[error.span.start], places[last] + 1)
            raise HloError(error.message, span, _CODE, help=error.help) from None

    def unquote(self, start: int, end: int) -> tuple[str, list[int]]:
        """The characters of the contents, without string quotes, and the position of each."""
        at = self.after_space(start, end)
        if not self.text.startswith('"', at):
            return self.text[start:end], list(range(start, end + 1))
        letters: list[str] = []
        places: list[int] = []
        while at < end:
            match = _STRING.match(self.text, at, end)
            if match is None:
                self.fail("expected a string between '\"' and '\"'", at, end)
            at = match.start("text")
            while at < match.end("text"):
                escape = _ESCAPE.match(self.text, at)
                if escape is None and self.text[at] == "\\":
                    self.fail("expected two hexadecimal digits or one of '\"\\nt' after '\\'", at)
                letters.append(_letter(escape) if escape else self.text[at])
                places.append(at)
                at = escape.end() if escape else at + 1
            at = self.after_space(match.end(), end)
        return "".join(letters), [*places, end]

    def after_space(self, start: int, end: int) -> int:
        """The position of the first non-blank character at or after `start`."""
        return end - len(self.text[start:end].lstrip())

    def mask_outside(self, start: int, end: int) -> str:
        """The contents at their position, blanks before; ``symbol(s0)`` becomes ``s0``."""
        inside = _SYMBOL.sub(
            lambda m: m["name"].rjust(m.end("name") - m.start()).ljust(m.end() - m.start()),
            self.text[start:end],
        )
        return " " * start + inside


def _letter(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    return {"n": "\n", "t": "\t"}.get(escape["letter"], escape["letter"])
