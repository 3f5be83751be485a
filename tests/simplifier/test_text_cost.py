"""The printed text of an expression is not longer than the text that was parsed.

The cost of a text is counted here on Python's own syntax tree, independently of
`simplifier.text_cost`: divisions and mods, then variables and constants that are not factors.
"""

import ast
import pickle
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import IndexingMap, parse_map
from simplifier.atoms import Variable
from simplifier.linear import constant, from_atom
from simplifier.reading import parse_expr
from simplifier.text_cost import text_cost
from tests.oracles import boxes, fuzz, points, sampled, tree_expr, trees

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


def composition(random: Random, names: list[str], divisions: int, mixed: bool) -> str:
    """A sum divided this many times by unrelated constants.

    If `mixed`, quotients and remainders are multiplied by constants, and terms are added to them.
    """
    largest = random.choice([20, 400])
    text = " + ".join([_scale(random, name, largest) if mixed else name for name in names])
    for _ in range(divisions):
        inner = f"({text})" if " " in text else text
        text = f"{inner} {random.choice(['floordiv', 'mod'])} {random.randint(2, largest)}"
        kind = random.random()
        if mixed and kind < 0.15:
            text = _scale(random, f"({text})", largest)
        elif mixed and kind < 0.35:
            text += f" + {random.choice([*names, str(random.randint(1, largest))])}"
    return text


def _scale(random: Random, text: str, largest: int) -> str:
    factor = random.choice([1, random.randint(2, largest)])
    return f"{text} * {factor}" if factor > 1 else text


def longer_texts(
    random: Random, names: list[str], divisions: int, mixed: bool, count: int
) -> list[str]:
    """The compositions, of `count` random ones, whose printed texts are longer."""
    longer = []
    for _ in range(count):
        text = composition(random, names, divisions, mixed)
        box = {name: Variable(name, 0, 2 ** random.randint(3, 20)) for name in names}
        printed = str(parse_expr(text, box))
        if cost_of(printed) > cost_of(text):
            longer.append(f"{text} is printed as {printed}, {box}")
    return longer


KINDS = [
    (names, divisions, mixed)
    for names in (["d0"], ["d0", "d1"])
    for divisions in (1, 2, 3, 4)
    for mixed in (False, True)
]
"""Names, numbers of divisions, and whether the compositions are mixed."""

RARE = 0.005
"""The share of chains of several divisions whose texts may be longer: a known limit of
`docs/simplifier_quality.md`."""


@pytest.mark.parametrize("names, divisions, mixed", KINDS)
def test_a_text_is_not_longer_than_the_text_that_was_parsed(
    names: list[str], divisions: int, mixed: bool
) -> None:
    random = Random(f"{names} {divisions} {mixed}")
    longer = longer_texts(random, names, divisions, mixed, count=60)
    assert len(longer) <= (divisions > 1), "\n".join(longer)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_few_chains_of_divisions_have_longer_texts(seed: int) -> None:
    random = Random(seed)
    longer: list[str] = []
    for names, divisions, mixed in KINDS:
        of_kind = longer_texts(random, names, divisions, mixed, count=100)
        assert not of_kind or divisions > 1, "\n".join(of_kind)
        longer += of_kind
    assert len(longer) <= RARE * len(KINDS) * 100, "\n".join(longer)


def longer_maps(random: Random, names: list[str], divisions: int, mixed: bool) -> list[str]:
    """The map of a random composition, as read and simplified, if its text is longer."""
    text = composition(random, names, divisions, mixed)
    bounds = ", ".join([f"{name} in [0, {2 ** random.randint(3, 20)}]" for name in names])
    given = parse_map(f"({', '.join(names)}) -> ({text}), domain: {bounds}")
    longer = []
    for each in (given, given.simplify()):
        printed = str(each).partition(" -> (")[2].partition("), domain")[0]
        if cost_of(printed) > cost_of(text):
            longer.append(f"{text} is printed as {each}")
        again = parse_map(str(each))
        assert again.results == each.results
        assert str(again) == str(each)
    return longer


@pytest.mark.sampled
def test_no_map_is_longer_than_its_text() -> None:
    for seed in sampled(range(500)):
        random = Random(seed)
        longer = longer_maps(random, *random.choice(KINDS))
        assert not longer, longer


SPELLED = "(d0) -> ((((d0 * 7) mod 3 * 12) mod 20 + d0) mod 14), domain: d0 in [0, 1023]"


def test_a_map_with_given_texts_is_equal_only_to_one_with_the_same_texts() -> None:
    """Answers are memoised by map: a text must not appear in the answer for another map."""
    given = parse_map(SPELLED)
    plain = IndexingMap(given.dims, (), (), given.results)
    assert str(given) == str(given.simplify()) == SPELLED
    assert str(plain) != SPELLED
    assert given != plain != given
    assert given == parse_map(SPELLED) == pickle.loads(pickle.dumps(given))
    assert str(pickle.loads(pickle.dumps(given))) == SPELLED
    assert given.is_equal(plain) is True
    assert str(given.fix(d0=3)) == str(plain.fix(d0=3))


CHAINS = [
    "((d0 mod 374) mod 139) mod 67",  # of remainders, which the normal form releases one by one
    "(((d0 mod 374) mod 139) mod 67) mod 59",
    "((d0 mod 15) mod 14) mod 9",  # the normal form merges the quotient by 14 into that by 15
    "(((d0 * 15 + d1) floordiv 16) * 9) floordiv 8",  # of multiples of quotients
    "(((d0 * 107) floordiv 160) * 5) floordiv 6",  # which the normal form merges negated
    "((((d0 + d1) mod 64) floordiv 23) * 169) floordiv 254",
    "((d0 + (d0 mod 332) mod 326) mod 293) floordiv 136",  # whose inner terms recur
    "((d1 + ((d0 + d1 * 2) mod 18) mod 5) mod 10) mod 8",
    "(d0 + (((d0 floordiv 105) * 63) mod 382 + 243) floordiv 44) floordiv 9",  # with constants
]


@pytest.mark.parametrize("text", CHAINS)
def test_the_text_of_a_chain_is_as_cheap_as_the_chain(text: str) -> None:
    printed = str(parse_expr(text, BOX))
    assert cost_of(printed) <= cost_of(text)
    again = parse_expr(printed, BOX)
    assert again == parse_expr(text, BOX)
    assert str(again) == printed
    random = Random(text)
    for _ in range(200):
        point = {"d0": random.randint(0, 65535), "d1": random.randint(0, 999)}
        assert parse_expr(printed, point) == parse_expr(text, point), point


@pytest.mark.parametrize("text", CHAINS)
def test_the_text_does_not_depend_on_the_order_in_which_a_sum_was_built(text: str) -> None:
    expr = parse_expr(text, BOX)
    terms = [from_atom(atom) * count for atom, count in expr.terms]
    forwards, backwards = sum(terms, constant(0)), sum(reversed(terms), constant(0))
    assert forwards + expr.constant == expr
    assert str(forwards + expr.constant) == str(backwards + expr.constant) == str(expr)


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
