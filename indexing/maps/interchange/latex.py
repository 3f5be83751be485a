r"""Maps as LaTeX math: ``d_{0} \bmod 4``, ``\left\lfloor … \right\rfloor``.

The output needs no package beyond amsmath, so MathJax renders it as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from indexing.maps.indexing_map import IndexingMap
from indexing.maps.printing import require_exact_text, require_shallow
from simplifier.atoms import Atom, Floor, Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.mods import split
from simplifier.semiaffine import SemiAffine


def to_latex(indexing_map: IndexingMap) -> str:
    r"""Return the map as LaTeX for math mode, with the domain on a second line.

    Raises:
        ValueError: shared subexpressions make a text too long (`simplifier.text.MAX_TEXT`).

    >>> print(to_latex(IndexingMap.over((4,), lambda d: [d[0] // 2])))
    (d_{0}) \mapsto \left(\left\lfloor \frac{d_{0}}{2} \right\rfloor\right),
    \quad 0 \le d_{0} \le 3
    """
    require_exact_text(indexing_map)
    require_shallow(indexing_map)
    if indexing_map.is_known_empty:
        return r"\emptyset"
    head = f"({_names(indexing_map.dims)})"
    if indexing_map.ranges:
        head += f"[{_names(indexing_map.ranges)}]"
    if indexing_map.runtime:
        head += rf"\{{{_names(rt.variable for rt in indexing_map.runtime)}\}}"
    results = ", ".join(map(expr_latex, indexing_map.results))
    domain = [rf"{v.lower} \le {_variable_name(v)} \le {v.upper}" for v in indexing_map.variables]
    domain += map(_constraint, indexing_map.constraints)
    text = rf"{head} \mapsto \left({results}\right)"
    return f"{text},\n\\quad {_AND.join(domain)}" if domain else text


_AND: Final = r",\; "


def _constraint(constraint: Constraint) -> str:
    expr = expr_latex(constraint.expr)
    if constraint.lower == constraint.upper:
        return f"{expr} = {constraint.lower}"
    return rf"{constraint.lower} \le {expr} \le {constraint.upper}"


def expr_latex(expr: Expr) -> str:
    r"""Return an expression as LaTeX for math mode.

    >>> d0 = Variable("d0", 0, 99)
    >>> print(expr_latex(3 - d0 // 4 * 2 - d0 % 5))
    -2\,\left\lfloor \frac{d_{0}}{4} \right\rfloor - \left(d_{0} \bmod 5\right) + 3
    """
    mods, rest = split(expr)
    pieces = [(coefficient, _atom(atom)) for atom, coefficient in rest.terms]
    for mod in mods:
        inner = expr_latex(mod.dividend)
        inner = inner if mod.dividend.as_variable else rf"\left({inner}\right)"
        pieces.append((mod.coefficient, rf"\left({inner} \bmod {mod.modulus}\right)"))
    if rest.constant or not pieces:
        pieces.append((rest.constant, ""))
    return " ".join(_signed_term(c, t, first=k == 0) for k, (c, t) in enumerate(pieces))


def _atom(atom: Atom) -> str:
    match atom:
        case Variable():
            return _variable_name(atom)
        case Floor():
            return _floor(expr_latex(atom.numerator), str(atom.divisor))
        case SemiAffine():
            operands = [expr_latex(operand) for operand in atom.operands]
            match atom.operator:
                case "*":
                    pairs = zip(atom.operands, operands, strict=True)
                    return r" \cdot ".join([_factor(*pair) for pair in pairs])
                case "floordiv":
                    return _floor(*operands)
                case "min" | "max":
                    return rf"\{atom.operator}\left({', '.join(operands)}\right)"
    raise AssertionError(f"unexpected kind of atom: {atom}")


def _factor(expr: Expr, text: str) -> str:
    is_sum = len(expr.parts) > 1 or expr.constant
    return rf"\left({text}\right)" if is_sum else text


def _floor(numerator: str, denominator: str) -> str:
    return rf"\left\lfloor \frac{{{numerator}}}{{{denominator}}} \right\rfloor"


def _signed_term(coefficient: int, piece: str, first: bool) -> str:
    sign = "-" if coefficient < 0 else "" if first else "+"
    size = "" if abs(coefficient) == 1 and piece else str(abs(coefficient))
    body = rf"{size}\,{piece}" if size and piece else size or piece
    return f"{sign}{body}" if first else f"{sign} {body}"


def _variable_name(variable: Variable) -> str:
    r"""``d0`` as ``d_{0}``, ``th_x`` as ``\mathrm{th}_{x}``; other names upright and unchanged."""
    match = _INDEXED.fullmatch(variable.name)
    if match is None:
        escaped = "".join([_ESCAPES.get(letter, letter) for letter in variable.name])
        return rf"\mathrm{{{escaped}}}"
    letters, index = match.groups()
    base = letters if len(letters) == 1 else rf"\mathrm{{{letters}}}"
    return f"{base}_{{{index}}}" if index else base


_INDEXED: Final = re.compile(r"([A-Za-z]+)(?:_(?=[A-Za-z0-9]))?([A-Za-z0-9]*)", re.ASCII)
_ESCAPES: Final = {letter: rf"\{letter}" for letter in "#$%&_{}"} | {
    "\\": r"\backslash ",
    "^": r"\wedge ",
    "~": r"\sim ",
}


def _names(variables: Iterable[Variable]) -> str:
    return ", ".join(map(_variable_name, variables))
