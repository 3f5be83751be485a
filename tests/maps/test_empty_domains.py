"""Relations of maps whose domain may have no integer points, although it has rational points."""

from random import Random

import pytest

from indexing import IndexingMap, parse_map
from simplifier.unknown import require_known
from tests.checks import checks
from tests.oracles import invert_pairs, relation, union

FOUND = [
    "(d0)[s0] -> (s0 mod 2), domain: d0 in [0, 5], s0 in [0, 1], d0 * 3 + s0 * 2 in [4, 5], "
    "d0 * 6 + s0 * 4 in [7, 8]",
    "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 * 2 + d1 * 4 in [3, 3]",
    "(d0) -> (d0), domain: d0 in [0, 9], d0 mod 4 in [5, 5]",
    "(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 * 6 - d1 * 10 in [1, 1]",
]


def random_map(random: Random) -> str:
    names = ["d0", "d1", "s0"][random.randint(0, 1) :]
    dims = [name for name in names if name[0] == "d"]

    def expression() -> str:
        some = [name for name in names if random.random() < 0.8] or names[:1]
        text = " + ".join(f"{name} * {random.choice([1, 2, 3, 4, 6])}" for name in some)
        if random.random() < 0.4:
            return f"({text}) {random.choice(['mod', 'floordiv'])} {random.choice([2, 3, 4, 6])}"
        return text

    bounds = [f"{name} in [0, {random.randint(1, 6)}]" for name in names]
    for _ in range(random.randint(1, 2)):
        lower = random.randint(0, 9)
        bounds.append(f"{expression()} in [{lower}, {lower + random.randint(0, 1)}]")
    return f"({', '.join(dims)})[s0] -> ({expression()}), domain: {', '.join(bounds)}"


def _agrees(m: IndexingMap) -> None:
    pairs = relation(m)
    assert m.is_empty() is (not pairs)
    assert union(require_known(m.inverse())) == invert_pairs(pairs)
    assert m.count_image() == len({y for _, y in pairs})
    simple = m.simplify(certify=True)
    assert relation(simple) == pairs
    assert m.is_equal(simple)
    everything = m.at(*[slice(None)] * len(m.dims))
    assert everything.count() == len({y for _, y in pairs})


@pytest.mark.parametrize("text", FOUND)
def test_a_domain_without_integer_points_is_empty(text: str) -> None:
    m = parse_map(text)
    assert not relation(m)
    _agrees(m)
    assert m.inverse() == ()


def test_operations_agree_with_enumeration() -> None:
    with checks() as check:
        for seed in range(150):
            text = random_map(Random(seed))
            with check(text):
                _agrees(parse_map(text))
