"""Loop nests of maps: the Python and C sources compile, and visit the pairs of the map."""

import ctypes
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given

from indexing import IndexingMap, parse_map
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.semiaffine import quotient
from tests.maps.any_maps import Values, any_maps
from tests.oracles import Pair, fuzz

COMPILER = shutil.which("cc")


def values_of(m: IndexingMap) -> Iterator[Values]:
    """Values of the runtime variables, also outside their bounds."""
    return product(*[range(rt.variable.lower - 1, rt.variable.upper + 2) for rt in m.runtime])


def visit_points(m: IndexingMap, runtime: Values) -> list[Pair]:
    """The pairs by definition, in the order of the loops."""
    boxes = [range(v.lower, v.upper + 1) for v in (*m.dims, *m.ranges)]
    count = len(m.dims)
    pairs = []
    for at in product(*boxes):
        element = m.evaluate(at[:count], at[count:], runtime)
        if element is not None:
            pairs.append((at[:count], element))
    return pairs


@given(any_maps())
@fuzz(200)
def test_python_loops_visit_the_pairs_in_order(m: IndexingMap) -> None:
    nest = m.loop_nest()
    for runtime in values_of(m):
        assert list(nest(*runtime)) == visit_points(m, runtime)


def compile_library(sources: list[str], folder: Path) -> ctypes.CDLL:
    """The functions of C sources, each compiled as a file of its own, without warnings."""
    files = [folder / f"{k}.c" for k in range(len(sources))]
    for file, source in zip(files, sources, strict=True):
        file.write_text(source)
    assert COMPILER
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Wno-type-limits", "-Werror"]
    command = [COMPILER, *flags, "-o", str(folder / "maps.so"), *map(str, files)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(folder / "maps.so"))


VISIT = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p
)


def call_function(library: ctypes.CDLL, name: str, m: IndexingMap, runtime: Values) -> list[Pair]:
    pairs: list[Pair] = []

    def visit(point: object, element: object, data: object) -> None:
        at, to = tuple(point[: len(m.dims)]), tuple(element[: len(m.results)])  # type: ignore[index]
        pairs.append((at, to))

    getattr(library, name)(*map(ctypes.c_int64, runtime), VISIT(visit), None)
    return pairs


n, d0 = Variable("n", -2, 3), Variable("d0", -7, 9)
SOME: list[IndexingMap] = [
    parse_map(
        "(d0, d1)[s0] -> (d1, d0 * 2 - s0), domain: d0 in [-3, 4], d1 in [1, 2], s0 in [0, 2], "
        "d0 - s0 in [-1, 9], d0 mod 3 in [1, 1]"
    ),
    parse_map(
        "(d0){rt0} -> ((d0 * 7 + rt0) floordiv -3, (rt0 - d0) mod 5), "
        "domain: d0 in [-4, 4], rt0 in [0, 3]"
    ),
    parse_map("(for, data) -> (for floordiv 2 + data), domain: for in [0, 5], data in [-3, 3]"),
    parse_map("() -> (5)"),
    parse_map("(d0) -> (), domain: d0 in [0, 2]"),
    parse_map("(d0) -> (max(min(d0, 3), -d0, 1)), domain: d0 in [-5, 5]"),
    parse_map(f"(d0) -> (d0 * {1 << 55}), domain: d0 in [-50, 50]"),
    IndexingMap.of([d0, n], [quotient(d0.as_expr(), n.as_expr())]),  # no result for n = 0
    IndexingMap.empty((d0,), 2),
]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_c_loops_visit_the_pairs_in_order(tmp_path: Path) -> None:
    library = compile_library([m.to_c(f"visit_{k}") for k, m in enumerate(SOME)], tmp_path)
    for k, m in enumerate(SOME):
        for runtime in values_of(m):
            expected = visit_points(m, runtime)
            assert call_function(library, f"visit_{k}", m, runtime) == expected
            assert list(m.loop_nest()(*runtime)) == expected


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_random_c_loops_visit_the_pairs_in_order(tmp_path: Path) -> None:
    maps: list[IndexingMap] = []

    @given(any_maps())
    @fuzz(100)
    def collect(m: IndexingMap) -> None:
        maps.append(m)

    collect()
    library = compile_library([m.to_c(f"visit_{k}") for k, m in enumerate(maps)], tmp_path)
    for k, m in enumerate(maps):
        for runtime in values_of(m):
            assert call_function(library, f"visit_{k}", m, runtime) == visit_points(m, runtime)


def test_c_source_has_the_helpers_and_parentheses_that_it_needs() -> None:
    m = parse_map("(d0) -> (min(d0 + 1, 3) * 2 - 1), domain: d0 in [0, 9]")
    assert m.to_c().splitlines() == [
        "#include <stdint.h>",
        "",
        "static int64_t min(int64_t a, int64_t b) {",
        "    return a < b ? a : b;",
        "}",
        "",
        "void visit(void (*f)(const int64_t *point, const int64_t *element, void *data), "
        "void *data) {",
        "    for (int64_t d0 = 0; d0 <= 9; ++d0) {",
        "        const int64_t point[1] = {d0};",
        "        const int64_t element[1] = {min(d0 + 1, 3) * 2 - 1};",
        "        f(point, element, data);",
        "    }",
        "}",
    ]


def test_many_loops_are_one_product() -> None:
    """CPython compiles at most twenty nested loops."""
    m = IndexingMap.over((2,) * 25, lambda d: [sum(d, start=Expr({}, 0))])
    few = m.restrict(**{f"d{k}": slice(1, 2) for k in range(3, 25)})
    d0, d1 = few.dims[:2]
    bounded = few.with_constraints([Constraint(d0 + d1, 1, 1)])
    assert "product(" in bounded.to_python()
    assert Counter(bounded.loop_nest()()) == Counter(visit_points(bounded, ()))


@pytest.mark.parametrize("name", ["a b", "for", "1x", "x; import os", ""])
def test_a_function_needs_an_identifier(name: str) -> None:
    m = IndexingMap.identity((3,))
    for convert in (m.to_python, m.to_c):
        with pytest.raises(ValueError, match="must be an identifier of"):
            convert(name)


def test_c_refuses_numbers_beyond_64_bits() -> None:
    m = IndexingMap.over((9,), lambda d: [d[0] * (1 << 62)])
    with pytest.raises(ValueError, match="exceed 64 bits"):
        m.to_c()
    assert [element for _, element in m.loop_nest()()][-1] == (8 << 62,)
