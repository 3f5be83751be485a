"""Each law of `simplifier.laws`: it fires, a near miss keeps its meaning, and ISL proves it."""

import re
from collections.abc import Callable, Iterator
from functools import reduce
from importlib import import_module
from itertools import product
from typing import Any

import pytest

from indexing import IndexingMap, parse_map
from indexing.maps.certificate import prove_text
from indexing.maps.deduplicate import deduplicate
from indexing.maps.simplify import Rewrite
from simplifier import laws
from simplifier.laws_page import SECTIONS
from simplifier.trace import Applied, Law, record_laws
from tests.oracles import Pair, join_pairs, union
from tests.simplifier.law_cases import CASES, SEMI_AFFINE, Case

EVERY_CASE = [*CASES, *SEMI_AFFINE]

each_case = pytest.mark.parametrize("case", EVERY_CASE, ids=lambda case: case.law.name)


# ---------------------------------------------------------------- maps as texts

MAP = re.compile(
    r"\((?P<dims>[^)]*)\)(?:\[(?P<ranges>[^]]*)\])? -> \((?P<results>.*)\), domain: (?P<domain>.*)"
)
BOUNDED = re.compile(r"(?P<expr>.+?) in \[(?P<lower>-?\d+), (?P<upper>-?\d+)\](?:, )?")


def compile_expression(text: str, names: list[str]) -> Callable[..., Any]:
    """Python's function of an expression: its floor division and mod are those of maps."""
    body = text.replace("floordiv", "//").replace("mod", "%")
    function: Callable[..., Any] = eval(
        f"lambda {', '.join(names)}: {body}", {"__builtins__": {}, "min": min, "max": max}
    )
    return function


def pairs_of(text: str) -> set[Pair]:
    """The pairs of a union of maps, computed by Python from the text, without the simplifier."""
    return {
        pair
        for each in text.split(" | ")
        for pair in reduce(join_pairs, [set(written_pairs(one)) for one in each.split(" then ")])
    }


def written_pairs(text: str) -> Iterator[Pair]:
    match = MAP.fullmatch(text)
    assert match, text
    dims = [name for name in match["dims"].split(", ") if name]
    names = [*dims, *[name for name in (match["ranges"] or "").split(", ") if name]]
    bounds = [
        (m["expr"], int(m["lower"]), int(m["upper"])) for m in BOUNDED.finditer(match["domain"])
    ]
    box: dict[str, range] = {}
    for expr, lower, upper in bounds:
        if expr in names:
            box.setdefault(expr, range(lower, upper + 1))
    conditions = [(compile_expression(expr, names), lower, upper) for expr, lower, upper in bounds]
    results = compile_expression(f"({match['results']},)", names)
    for point in product(*[box[name] for name in names]):
        if all(lower <= value(*point) <= upper for value, lower, upper in conditions):
            yield point[: len(dims)], results(*point)


def image(relation: set[Pair], at: tuple[int, ...]) -> set[tuple[int, ...]]:
    return {y for x, y in relation if x == at}


def compose_text(text: str) -> IndexingMap:
    return reduce(IndexingMap.then, [parse_map(each) for each in text.split(" then ")])


def flatten_chain(text: str) -> str:
    """The text of one map for a chain of maps from d0 to one result, by textual substitution."""
    first, *others = text.split(" then ")
    space, result, domain = re.split(r" -> |, domain: ", first)
    for other in others:
        _, following, box = re.split(r" -> |, domain: ", other)
        domain += f", {box.replace('d0', result)}"
        result = f"({following[1:-1].replace('d0', result)})"
    return f"{space} -> {result}, domain: {domain}"


def simplify_text(text: str) -> tuple[set[Law], tuple[IndexingMap, ...]]:
    """The laws that were applied to read and simplify a union of maps, and the simplified maps."""
    steps: list[Rewrite | Applied] = []
    with record_laws() as applied:
        read = [compose_text(each) for each in text.split(" | ")]
        simple = deduplicate([each.simplify(trace=steps) for each in read])
    return {step.law for step in [*applied, *steps] if isinstance(step, Applied)}, simple


# ---------------------------------------------------------------- the table


def test_every_law_of_the_table_has_a_case() -> None:
    assert {str(case.law) for case in EVERY_CASE} == {str(law) for law in laws.TABLE}
    assert len(EVERY_CASE) == len(laws.TABLE)


def test_records_are_complete_and_names_are_distinct() -> None:
    assert len({law.name for law in laws.TABLE}) == len(laws.TABLE)
    assert SECTIONS.keys() <= set(laws.TABLE)
    for law in laws.TABLE:
        assert law.formula
        assert law.condition
        assert law.reason
        assert law.applied_in


@pytest.mark.parametrize("law", laws.TABLE, ids=str)
def test_the_code_that_applies_a_law_exists(law: Law) -> None:
    for path in law.applied_in:
        parts = path.split(".")
        depth = 3 if parts[0] == "indexing" else 2
        module = import_module(".".join(parts[:depth]))
        assert callable(reduce(getattr, parts[depth:], module))


@each_case
def test_a_law_fires(case: Case) -> None:
    fired, simple = simplify_text(case.hit)
    assert (str(case.law) in map(str, fired)) is not bool(case.law.observed)
    assert " | ".join(map(str, simple)) == case.after
    assert union(simple) == pairs_of(case.hit)


@each_case
def test_a_near_miss_keeps_its_meaning(case: Case) -> None:
    truth, wrong = pairs_of(case.near_miss), pairs_of(case.wrong)
    assert image(wrong, case.at) != image(truth, case.at)
    assert union(simplify_text(case.near_miss)[1]) == truth


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.law.name)
def test_isl_proves_a_law_for_a_table_of_divisors(case: Case) -> None:
    """ISL reads the original text."""
    for divisor in case.table:
        text = case.proof(divisor)
        fired, (simple,) = simplify_text(text)
        assert case.law in fired or case.law.observed, text
        for each in text.split(" | "):
            prove_text(flatten_chain(each), simple)


@pytest.mark.parametrize("case", SEMI_AFFINE, ids=lambda case: case.law.name)
def test_isl_proves_a_law_on_products_with_numbers_in_place_of_d1(case: Case) -> None:
    for divisor in case.table:
        text = case.proof(divisor)
        fired, (simple,) = simplify_text(text)
        assert case.law in fired, text
        for number in range(simple.dims[1].lower, simple.dims[1].upper + 1):
            simple_text = with_number(str(simple), number)
            prove_text(with_number(text, number), parse_map(simple_text))


def with_number(text: str, number: int) -> str:
    """The map with a number in place of d1 in its results."""
    space, results, domain = re.split(" -> |, domain: ", text)
    return f"{space} -> {results.replace('d1', str(number))}, domain: {domain}"
