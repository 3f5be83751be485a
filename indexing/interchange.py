"""Maps in other notations: MLIR, LaTeX and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from indexing.map import IndexingMap, RuntimeVariable
from simplifier.linear import Expr, Floor, Variable
from simplifier.mods import split
from simplifier.substitute import Substitution
from simplifier.text import expr_text, parse_expr


def to_mlir(shown: IndexingMap) -> str:
    """The map as an attribute of XLA's MLIR dialect: ``#xla.indexing_map<"(d0)[s0] -> …">``.

    MLIR's own affine maps have no runtime variables and no bounds; this attribute has both.

    Source: XLA ``xla/hlo/analysis/indexing_map_serialization.h``.

    >>> print(to_mlir(IndexingMap.over((4, 7), lambda d: [d[1] // 2, d[0]])))
    #xla.indexing_map<"(d0, d1) -> (d1 floordiv 2, d0), domain: d0 in [0, 3], d1 in [0, 6]">
    """
    return f'#xla.indexing_map<"{shown}">'


def to_affine_map(shown: IndexingMap) -> str:
    """The results alone as an MLIR ``affine_map``; range and runtime variables are its symbols.

    >>> print(to_affine_map(IndexingMap.over((4, 7), lambda d: [d[1] // 2 + d[0] * 3])))
    affine_map<(d0, d1) -> (d0 * 3 + d1 floordiv 2)>
    """
    symbols = (*shown.ranges, *[rt.variable for rt in shown.runtime])
    names = {v: f"d{k}" for k, v in enumerate(shown.dims)}
    names |= {v: f"s{k}" for k, v in enumerate(symbols)}
    swap = Substitution({v: v.renamed(name).as_expr() for v, name in names.items()})
    head = f"({', '.join(names[v] for v in shown.dims)})"
    if symbols:
        head += f"[{', '.join(names[v] for v in symbols)}]"
    return f"affine_map<{head} -> ({', '.join(expr_text(swap(r)) for r in shown.results)})>"


JSON_VERSION = 1


def to_json(shown: IndexingMap) -> str:
    """The map as a JSON object: its text, its grade, and what its runtime variables are.

    Sources are instructions' names in JSON, and stay names when it is read.

    >>> print(to_json(IndexingMap.over((4,), lambda d: [d[0] // 2])))
    {"version": 1, "map": "(d0) -> (d0 floordiv 2), domain: d0 in [0, 3]", "grade": "exact",
    "runtime": []}
    """
    record = {
        "version": JSON_VERSION,
        "map": str(shown),
        "grade": shown.grade,
        "runtime": [
            {
                "name": rt.name,
                "source": rt.source_name,
                "calls": rt.call_names,
                "index": [str(expr) for expr in rt.index],
                "clamp": rt.clamp,
            }
            for rt in shown.runtime
        ],
    }
    return json.dumps(record)


def from_json(text: str) -> IndexingMap:
    """The map that `to_json` wrote.

    Raises:
        ValueError: `text` is no JSON, of another version, or lacks something.
        HloError: the text of the map in it is no map.

    >>> shown = IndexingMap.over((4,), lambda d: [d[0] // 2])
    >>> from_json(to_json(shown)) == shown
    True
    """
    from indexing.text import parse_map

    record = json.loads(text)
    if not isinstance(record, dict) or record.get("version") != JSON_VERSION:
        raise ValueError(f"expected a map as JSON of version {JSON_VERSION}, not {text[:80]!r}")
    lacking = {"map", "grade", "runtime"} - record.keys()
    if lacking or record["grade"] not in ("exact", "may"):
        raise ValueError(f"the JSON of a map lacks {', '.join(sorted(lacking)) or 'a grade'}")
    found = parse_map(record["map"])
    names = {v.name: v for v in found.variables}
    known = {entry["name"]: entry for entry in record["runtime"]}
    runtime = [_with_source(rt, known.get(rt.name), names) for rt in found.runtime]
    return replace(found, runtime=tuple(runtime), grade=record["grade"])


def _with_source(rt: RuntimeVariable, entry: Any, names: dict[str, Variable]) -> RuntimeVariable:
    if entry is None:
        return rt
    return RuntimeVariable(
        rt.variable,
        entry["source"],
        tuple([parse_expr(text, names) for text in entry["index"]]),
        None if entry["clamp"] is None else (entry["clamp"][0], entry["clamp"][1]),
        tuple(entry["calls"]),
    )


def to_latex(shown: IndexingMap) -> str:
    r"""The map in LaTeX's mathematics mode; floors as brackets, the domain below the arrow's line.

    >>> print(to_latex(IndexingMap.over((4,), lambda d: [d[0] // 2])))
    (d_{0}) \mapsto \left(\left\lfloor \frac{d_{0}}{2} \right\rfloor\right),
    \quad 0 \le d_{0} \le 3
    """
    if shown.is_known_empty:
        return r"\emptyset"
    head = f"({_names(shown.dims)})"
    if shown.ranges:
        head += f"[{_names(shown.ranges)}]"
    if shown.runtime:
        head += rf"\{{{_names(rt.variable for rt in shown.runtime)}\}}"
    results = ", ".join(map(expr_latex, shown.results))
    domain = [rf"{v.lower} \le {_name(v)} \le {v.upper}" for v in shown.variables]
    domain += [rf"{c.lower} \le {expr_latex(c.expr)} \le {c.upper}" for c in shown.constraints]
    text = rf"{head} \mapsto \left({results}\right)"
    return f"{text},\n\\quad {',; '.join(domain)}".replace(",; ", r",\; ") if domain else text


def expr_latex(expr: Expr) -> str:
    """One expression in LaTeX."""
    mods, rest = split(expr)
    pieces: list[tuple[int, str]] = []
    for atom, coefficient in rest.terms:
        if isinstance(atom, Floor):
            inner = expr_latex(atom.numerator)
            text = rf"\left\lfloor \frac{{{inner}}}{{{atom.divisor}}} \right\rfloor"
        else:
            text = _name(atom)
        pieces.append((coefficient, text))
    for coefficient, dividend, modulus in mods:
        inner = expr_latex(dividend)
        inner = inner if dividend.as_variable else rf"\left({inner}\right)"
        pieces.append((coefficient, rf"\left({inner} \bmod {modulus}\right)"))
    if rest.constant or not pieces:
        pieces.append((rest.constant, ""))
    return " ".join(_signed(c, t, first=k == 0) for k, (c, t) in enumerate(pieces))


def _signed(coefficient: int, piece: str, first: bool) -> str:
    sign = "-" if coefficient < 0 else "" if first else "+"
    size = "" if abs(coefficient) == 1 and piece else str(abs(coefficient))
    body = rf"{size}\,{piece}" if size and piece else size or piece
    return f"{sign}{body}" if first else f"{sign} {body}"


def _name(variable: Variable) -> str:
    r"""``d0`` as ``d_{0}``, ``th_x`` as ``\mathrm{th}_{x}``."""
    match = re.fullmatch(r"([A-Za-z]+)_?(\w*)", variable.name)
    if match is None:
        escaped = variable.name.replace("_", r"\_")
        return rf"\mathrm{{{escaped}}}"
    letters, index = match.groups()
    base = letters if len(letters) == 1 else rf"\mathrm{{{letters}}}"
    return f"{base}_{{{index}}}" if index else base


def _names(variables: Iterable[Variable]) -> str:
    return ", ".join(map(_name, variables))
