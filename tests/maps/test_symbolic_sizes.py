"""Maps with symbolic sizes, compared with the maps of many concrete sizes."""

import pickle
from collections.abc import Sequence
from math import prod

import pytest

from indexing import IndexingMap, parse_map
from simplifier import Expr, Variable, as_expr, constant, variable
from simplifier.linear import Affine
from simplifier.substitute import Substitution
from tests.oracles import relation

n, m = variable("n", 1, 1024), variable("m", 1, 64)
N, M = Variable("n", 1, 1024), Variable("m", 1, 64)


def strides(shape: Sequence[Affine]) -> list[Affine]:
    reversed_strides: list[Affine] = [1]
    for size in reversed(shape[1:]):
        last = reversed_strides[-1]
        reversed_strides.append(last * size if isinstance(last, int) else size * last)
    return reversed_strides[::-1]


def reshape(out: Sequence[Affine], operand: Sequence[Affine]) -> IndexingMap:
    """Output to operand of a reshape, row-major; only the first size may be a symbol."""

    def at(d: tuple[Variable, ...]) -> list[Expr]:
        flat = sum([v * s for v, s in zip(d, strides(out), strict=True)], constant(0))
        steps = strides(operand)
        places = [flat // steps[0]]
        places += [flat // s % k for s, k in zip(steps[1:], operand[1:], strict=True)]
        return places

    return IndexingMap.over(out, at)


def instance(symbolic: IndexingMap, **sizes: int) -> IndexingMap:
    """The map for given sizes, built by substitution."""
    swap = {rt.variable: constant(sizes[rt.name]) for rt in symbolic.runtime}
    results, constraints = symbolic.substituted(swap)
    return IndexingMap.of(symbolic.dims, results, ranges=symbolic.ranges, constraints=constraints)


# fmt: off
RESHAPES = [
    # operand            output
    ([n, 8, 16],         [n * 2, 64]),
    ([n, 8, 16],         [n * 128]),
    ([n * 2, 64],        [n, 8, 16]),
    ([n * 6],            [n * 2, 3]),
    ([n * 6, 5],         [n * 3, 10]),
    ([n + 1, 4],         [n * 4 + 4]),
    ([n * 4 + 8, 3],     [n + 2, 12]),
]
# fmt: on


@pytest.mark.parametrize("operand, out", RESHAPES)
def test_a_reshape_and_back_is_the_identity(operand: list[Affine], out: list[Affine]) -> None:
    there, back = reshape(out, operand), reshape(operand, out)
    assert there.then(back).simplify(certify=True) == IndexingMap.identity(out).simplify()
    assert back.then(there).simplify(certify=True) == IndexingMap.identity(operand).simplify()


@pytest.mark.parametrize("operand, out", RESHAPES)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_symbolic_map_is_the_map_of_each_size(
    operand: list[Affine], out: list[Affine], size: int
) -> None:
    symbolic = reshape(out, operand)
    known = Substitution({N: constant(size), M: constant(2)})
    extents = [[known(as_expr(e)).constant for e in shape] for shape in (out, operand)]
    plain = reshape(*extents)
    assert relation(symbolic, runtime=[size]) == relation(plain)
    assert relation(symbolic.simplify(), runtime=[size]) == relation(plain)
    assert len(relation(plain)) == prod(extents[0])


def test_the_text_has_symbolic_bounds() -> None:
    indexing_map = IndexingMap.over((n * 2, 64, m + 3), lambda d: [d[1], d[0], d[2]])
    assert str(indexing_map) == (
        "(d0, d1, d2){m, n} -> (d1, d0, d2), domain: d0 in [0, n * 2 - 1], d1 in [0, 63], "
        "d2 in [0, m + 2], m in [1, 64], n in [1, 1024]"
    )
    assert parse_map(str(indexing_map)) == indexing_map
    assert parse_map(indexing_map.pretty()) == indexing_map
    assert parse_map(str(indexing_map.simplify())) == indexing_map.simplify()
    assert IndexingMap.from_json(indexing_map.to_json()) == indexing_map
    assert pickle.loads(pickle.dumps(indexing_map)) == indexing_map


def test_one_name_is_one_value_in_every_map() -> None:
    half = IndexingMap.over((n * 2,), lambda d: [d[0] // 2])
    shift = parse_map("(d0){n} -> (d0 + n), domain: d0 in [0, n - 1], n in [1, 1024]")
    both = half.then(shift).simplify(certify=True)
    assert str(both) == (
        "(d0){n} -> (n + d0 floordiv 2), domain: d0 in [0, n * 2 - 1], n in [1, 1024]"
    )
    assert both.evaluate([7], runtime=[4]) == (7,)
    assert both.evaluate([8], runtime=[4]) is None


def test_numbered_runtime_variables_are_not_sizes() -> None:
    one = parse_map("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 5]")
    two = parse_map("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 8], rt0 in [0, 5]")
    assert [rt.name for rt in one.then(two).runtime] == ["rt0", "rt1"]
    named = parse_map("(d0){n} -> (d0 + n), domain: d0 in [0, 3], n in [0, 5]")
    assert [rt.name for rt in one.then(named).runtime] == ["rt0", "n"]


def test_different_bounds_of_one_symbol_are_both_kept() -> None:
    first = parse_map("(d0){n} -> (d0), domain: d0 in [0, n - 1], n in [1, 9]")
    second = parse_map("(d0){n} -> (d0), domain: d0 in [0, n - 1], n in [4, 20]")
    both = first.then(second)
    for size in range(1, 10):
        pairs = relation(both, runtime=[size])
        assert pairs == ({((k,), (k,)) for k in range(size)} if size >= 4 else set())
        assert relation(both.simplify(certify=True), runtime=[max(4, size)])


def test_symbolic_sizes_become_isl_parameters() -> None:
    indexing_map = IndexingMap.over((n * 2,), lambda d: [d[0] // 2])
    assert "[n] -> {" in str(indexing_map.to_isl())
    swapped = IndexingMap.over((n * 2,), lambda d: [(d[0] + 1) // 2])
    difference = indexing_map.is_equal(swapped)
    assert not difference
    assert "n" in difference.witness  # type: ignore[union-attr]


def test_products_with_symbolic_sizes_are_semi_affine() -> None:
    transposed = IndexingMap.over((n * 4,), lambda d: [d[0] // n, d[0] % n])
    assert not transposed.results[0].is_affine
    for size in (1, 2, 5):
        assert relation(transposed, runtime=[size]) == {
            ((k,), divmod(k, size)) for k in range(4 * size)
        }
    assert parse_map(str(transposed)) == transposed


def test_a_symbol_must_not_have_the_name_of_a_dimension() -> None:
    d0 = variable("d0", 1, 9)
    with pytest.raises(ValueError, match="d0 is the name of a dimension"):
        IndexingMap.over((d0, 3), lambda d: d)
