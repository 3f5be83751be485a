"""LaTeX of maps: a small parser reads it back, and the values are compared."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import IndexingMap, parse_map
from indexing.maps.interchange import expr_latex
from simplifier.atoms import Variable
from simplifier.semiaffine import maximum, minimum
from tests.maps.any_maps import any_maps
from tests.oracles import boxes, fuzz, points, tree_expr, trees

D0, TH = Variable("d0", 0, 99), Variable("th_x", -4, 31)

# fmt: off
WRITTEN = [
    # expression                         LaTeX
    (D0 * -2 + 3,                        r"-2\,d_{0} + 3"),
    (-D0,                                r"-d_{0}"),
    (D0 - TH,                            r"d_{0} - \mathrm{th}_{x}"),
    (D0 // 4,                            r"\left\lfloor \frac{d_{0}}{4} \right\rfloor"),
    (D0 // 4 * -3 - 7,                   r"-3\,\left\lfloor \frac{d_{0}}{4} \right\rfloor - 7"),
    (D0 % 5,                             r"\left(d_{0} \bmod 5\right)"),
    ((D0 + TH) % 5 * 2,                  r"2\,\left(\left(d_{0} + \mathrm{th}_{x}\right) \bmod 5\right)"),
    (-(D0 % 5),                          r"-\left(d_{0} \bmod 5\right)"),
    (D0 * 0 - 3,                         r"-3"),
    (D0 * 0,                             r"0"),
    (D0 * TH * -2,                       r"-2\,d_{0} \cdot \mathrm{th}_{x}"),
    (D0 // Variable("n", 1, 9),          r"\left\lfloor \frac{d_{0}}{n} \right\rfloor"),
    (minimum(D0, TH, 7),                 r"\min\left(d_{0}, \mathrm{th}_{x}, 7\right)"),
    (maximum(D0, TH) * 3,                r"3\,\max\left(d_{0}, \mathrm{th}_{x}\right)"),
]

NAMES = [
    ("d0",          "d_{0}"),
    ("i",           "i"),
    ("rt12",        r"\mathrm{rt}_{12}"),
    ("bl_x",        r"\mathrm{bl}_{x}"),
    ("d_",          r"\mathrm{d\_}"),
    ("a_b_c",       r"\mathrm{a\_b\_c}"),
    ("other.rt0",   r"\mathrm{other.rt0}"),
    ("50%_$&#{}",   r"\mathrm{50\%\_\$\&\#\{\}}"),
    ("a\\b^c~",     r"\mathrm{a\backslash b\wedge c\sim }"),
]

MAPS = [
    ("KNOWN EMPTY",                                                   r"\emptyset"),
    ("() -> ()",                                                      r"() \mapsto \left(\right)"),
    ("(d0)[s0]{rt0} -> (d0 + rt0, s0), domain: d0 in [-1, 3], s0 in [0, 1], rt0 in [0, 4], d0 + s0 in [1, 2], d0 - rt0 in [0, 0]",
     "(d_{0})[s_{0}]\\{\\mathrm{rt}_{0}\\} \\mapsto \\left(d_{0} + \\mathrm{rt}_{0}, s_{0}\\right),\n"
     r"\quad -1 \le d_{0} \le 3,\; 0 \le s_{0} \le 1,\; 0 \le \mathrm{rt}_{0} \le 4,\; 1 \le d_{0} + s_{0} \le 2,\; d_{0} - \mathrm{rt}_{0} = 0"),
]
# fmt: on


@pytest.mark.parametrize("expr, latex", WRITTEN, ids=[row[1] for row in WRITTEN])
def test_expressions_print_as_latex(expr: Any, latex: str) -> None:
    assert expr_latex(expr) == latex


@pytest.mark.parametrize("name, latex", NAMES, ids=[row[0] for row in NAMES])
def test_names_become_subscripts_or_are_escaped(name: str, latex: str) -> None:
    assert expr_latex(Variable(name, 0, 1).as_expr()) == latex


@pytest.mark.parametrize("text, latex", MAPS, ids=["empty", "nothing", "everything"])
def test_maps_print_as_latex(text: str, latex: str) -> None:
    indexing_map = parse_map(text)
    assert indexing_map.to_latex() == latex


def test_an_empty_domain_is_the_empty_set() -> None:
    assert parse_map("(d0) -> (d0), domain: d0 in [3, 2]").to_latex() == r"\emptyset"


# ---------------------------------------------------------------- read back

WORDS = [
    (r"\\left\\lfloor \\frac", "floor"),  # floor{…}{…} is made a division below
    (r" \\right\\rfloor", ""),
    (r"\\left|\\right", ""),
    (r"\\bmod", "%"),
    (r"\\,|\\cdot", "*"),
    (r"\\mathrm\{(\w+)\}", r"\1"),
    (r"([A-Za-z]+)_\{(\w+)\}", r"\1\2"),
]


def python(latex: str) -> str:
    """The LaTeX expression as Python source."""
    for pattern, replacement in WORDS:
        latex = re.sub(pattern, replacement, latex)
    while (innermost := re.sub(r"floor\{([^{}]*)\}\{([^{}]*)\}", r"((\1)//(\2))", latex)) != latex:
        latex = innermost
    return latex


@given(st.data(), boxes())
@fuzz(150)
def test_latex_expressions_evaluate_to_the_same_values(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=6)), box)
    code = compile(python(expr_latex(expr)), "<latex>", "eval")
    for point in [*points(box)][:30]:
        values = {v.name: value for v, value in point.items()}
        assert eval(code, {"__builtins__": {}}, values) == expr.value(point)


@given(any_maps())
@fuzz(150)
def test_latex_domains_have_the_same_points(indexing_map: IndexingMap) -> None:
    text = indexing_map.to_latex()
    if indexing_map.is_known_empty:
        assert text == r"\emptyset"
        return
    domain = text.partition("\\quad ")[2].replace(r" \le ", " <= ").replace(" = ", " == ")
    codes = [compile(python(part), "<latex>", "eval") for part in domain.split(r",\; ") if part]
    for point in [*points(indexing_map.variables)][:40]:
        values = {v.name: value for v, value in point.items()}
        inside = all(eval(code, {"__builtins__": {}}, values) for code in codes)
        assert inside == all(
            c.lower <= c.expr.value(point) <= c.upper for c in indexing_map.constraints
        )
