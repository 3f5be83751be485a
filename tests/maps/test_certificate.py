"""Certificates: isl compares maps with the text they were parsed from, without our laws."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexing import CertificateError, IndexingMap, parse_map
from indexing.maps.certificate import prove_text
from simplifier import Variable
from tests.oracles import Tree, boxes, fuzz, tree_text, trees

# fmt: off
PROVED = [
    "(d0) -> (-d0 floordiv -3, d0 ceildiv 3 - d0 ceildiv -5), domain: d0 in [-9, 9]",
    "(d0) -> ((2 + 2) * d0 mod (3 - 1), d0 * (7 - 7)), domain: d0 in [0, 9]",
    "(d0){n} -> (min(d0, n * 2) + n, max(d0 - 4, -n)), domain: d0 in [0, n - 1], n in [1, 9]",
    "(d0){rt0, rt1} -> (d0 + rt1), domain: d0 in [0, 9], rt0 in [0, 3], rt1 in [0, 3]",
    "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 3], d0 + s0 in [2, 3], d0 mod 4 in [1, 1]",
    "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [3, 2]",
    "() -> ()",
    "KNOWN EMPTY",
]

WRONG = [
    # text, different map
    ("(d0) -> (d0 floordiv 4), domain: d0 in [-9, 9]",
     "(d0) -> (d0 ceildiv 4), domain: d0 in [-9, 9]"),
    ("(d0) -> (-d0 mod 5), domain: d0 in [0, 9]",
     "(d0) -> (-(d0 mod 5)), domain: d0 in [0, 9]"),
    ("(d0) -> (d0), domain: d0 in [0, 9], d0 mod 2 in [1, 1]",
     "(d0) -> (d0), domain: d0 in [0, 9]"),
    ("(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 3]",
     "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 2]"),
    ("(d0){n} -> (n), domain: d0 in [0, 9], n in [0, 3]",
     "(d0){n} -> (n), domain: d0 in [0, 9], n in [0, 2]"),
]
# fmt: on


@pytest.mark.parametrize("text", PROVED)
def test_a_map_is_proved_equal_to_its_text(text: str) -> None:
    prove_text(text, parse_map(text).simplify())


@pytest.mark.parametrize("text, other", WRONG)
def test_a_different_map_is_rejected_with_a_witness(text: str, other: str) -> None:
    with pytest.raises(CertificateError, match=r"is only in the (text|map)") as caught:
        prove_text(text, parse_map(other))
    point, results, side = re.search(  # type: ignore[union-attr]
        r"\((.*?),?\) -> \((.*?),?\) is only in the (text|map)", str(caught.value)
    ).groups()
    maps = {"text": parse_map(text), "map": parse_map(other)}
    at, expected = ([int(x) for x in part.split(",")] for part in (point, results))
    for name, m in maps.items():
        dims, runtime = at[: len(m.dims)], at[len(m.dims) :]
        pairs = {pair for pair in m.points(runtime) if list(pair[0]) == dims}
        assert (any(list(r) == expected for _, r in pairs)) == (name == side)


NON_AFFINE = [
    "(d0) -> (d0 * d0), domain: d0 in [0, 9]",
    "(d0) -> (8 floordiv d0), domain: d0 in [1, 9]",
]


@pytest.mark.parametrize("text", NON_AFFINE)
def test_non_affine_maps_are_not_proved(text: str) -> None:
    changed = text.replace("),", " + 1 - 1),")
    with pytest.raises(CertificateError, match="is not proved to be"):
        prove_text(changed, parse_map(changed).simplify())


@pytest.mark.parametrize("text", NON_AFFINE)
def test_a_map_that_prints_as_its_text_needs_no_proof(text: str) -> None:
    prove_text(text, parse_map(text).simplify())


@given(st.data(), boxes())
@fuzz(120)
def test_random_texts_are_proved(data: st.DataObject, box: tuple[Variable, ...]) -> None:
    names = [v.name for v in box]
    tree: Tree = data.draw(trees(len(box)))
    condition: Tree = data.draw(trees(len(box), leaves=4))
    domain = ", ".join(f"{v.name} in [{v.lower}, {v.upper}]" for v in box)
    text = (
        f"({', '.join(names)}) -> ({tree_text(tree, names)}), domain: {domain}, "
        f"{tree_text(condition, names)} in [-3, 4]"
    )
    simple = parse_map(text).simplify()
    prove_text(text, simple)
    shifted = IndexingMap.of(
        simple.dims, [simple.results[0] + 1], ranges=simple.ranges, constraints=simple.constraints
    )
    if not simple.is_empty():
        with pytest.raises(CertificateError):
            prove_text(text, shifted)
