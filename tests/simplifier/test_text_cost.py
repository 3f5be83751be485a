"""The printed text of an expression is not longer than the text that was parsed.

The cost of a text is counted here on Python's own syntax tree, independently of
`simplifier.text_cost`: divisions and mods, then variables and constants that are not factors.
"""

import ast
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import parse_map
from simplifier.atoms import Variable
from simplifier.reading import parse_expr
from simplifier.text_cost import text_cost
from tests.checks import checks
from tests.oracles import boxes, fuzz, points, tree_expr, trees

BOX = {"d0": Variable("d0", 0, 65535), "d1": Variable("d1", 0, 999)}
SMALL = {"d0": Variable("d0", 0, 299), "d1": Variable("d1", 0, 9)}


def cost_of(text: str) -> tuple[int, int]:
    """Number of divisions and mods, and number of variables and addends, of a text."""
    tree = ast.parse(text.replace("floordiv", "//").replace("mod", "%"), mode="eval").body
    divisions = [isinstance(node, (ast.FloorDiv, ast.Mod)) for node in ast.walk(tree)]
    return sum(divisions), _leaves(tree)


def _leaves(node: ast.expr) -> int:
    match node:
        case ast.Constant():
            return 1
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _leaves(left) + _leaves(right)
        case ast.BinOp(left=inner) | ast.UnaryOp(operand=inner):
            return _leaves(inner)
        case _:
            return 1


def chain(random: Random, dividend: str, length: int) -> str:
    """`dividend` divided `length` times by unrelated constants."""
    for _ in range(length):
        inner = f"({dividend})" if " " in dividend else dividend
        upper = random.choice([40, 400])
        dividend = f"{inner} {random.choice(['floordiv', 'mod'])} {random.randint(2, upper)}"
    return dividend


def _compositions(random: Random) -> dict[str, str]:
    k, m = random.randint(2, 400), random.randint(2, 40)
    return {
        "two divisions of a variable": chain(random, "d0", 2),
        "two divisions of a sum": chain(random, "d0 + d1", 2),
        "two divisions of a weighted sum": chain(random, f"d0 * {k} + d1", 2),
        "one division of a weighted sum": chain(random, f"d0 * {k} + d1 * {m}", 1),
        "one division with a constant": chain(random, f"d0 * {k} + d1 + {m}", 1),
        "a division plus a variable": chain(random, f"{chain(random, 'd0', 1)} + d1", 1),
    }


@pytest.mark.parametrize("seed", range(60))
def test_a_text_is_not_longer_than_the_text_that_was_parsed(seed: int) -> None:
    random = Random(seed)
    with checks() as check:
        for kind, text in _compositions(random).items():
            for box in (BOX, SMALL):
                printed = str(parse_expr(text, box))
                with check(f"{kind}: {text}"):
                    assert cost_of(printed) <= cost_of(text), printed
                    assert str(parse_expr(printed, box)) == printed


# fmt: off
SHORTEST = [
    "(d0 mod 255) floordiv 16",
    "(d0 mod 100) floordiv 16",
    "(d0 mod 255) mod 16",
    "(d0 mod 17) floordiv 16",
    "((d0 * 7 + d1 * 2) mod 100) floordiv 16",
    "(d1 + d0 mod 100) floordiv 16",
    "(d0 * 17 + d1) floordiv 16",
    "d0 + (d0 + d1) mod 255",
    "(d0 + 6) floordiv 5",
    "((d0 * 17 + d1 * 2 + 17) floordiv 16) mod 5",
]
# fmt: on


@pytest.mark.parametrize("text", SHORTEST)
def test_a_shortest_text_stays_as_it_is(text: str) -> None:
    domain = "domain: d0 in [0, 65535], d1 in [0, 999]"
    simple = parse_map(f"(d0, d1) -> ({text}), {domain}").simplify(certify=True)
    assert str(simple) == f"(d0, d1) -> ({text}), {domain}"
    assert simple.simplify() == simple


def test_equal_values_keep_equal_expressions() -> None:
    d0 = BOX["d0"].as_expr()
    assert d0 % 100 // 16 + d0 // 100 * 6 == (d0 - d0 // 100 * 4) // 16
    assert str((d0 - d0 // 100 * 4) // 16) == "(d0 - (d0 floordiv 100) * 4) floordiv 16"


@given(st.data(), boxes())
@fuzz(200)
def test_a_text_has_the_values_of_its_expression(
    data: st.DataObject, box: tuple[Variable, ...]
) -> None:
    expr = tree_expr(data.draw(trees(len(box), leaves=12)), box)
    printed = parse_expr(str(expr), {variable.name: variable for variable in box})
    for point in points(box):
        assert printed.value(point) == expr.value(point), (str(expr), point)


@given(st.data(), boxes())
@fuzz(100)
def test_both_costs_of_a_text_agree(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    text = str(tree_expr(data.draw(trees(len(box), leaves=12)), box))
    cost = text_cost(text)
    assert (cost.divisions, cost.terms) == cost_of(text)
