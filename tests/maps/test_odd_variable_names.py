"""A map computes the same in every notation, whatever the names of its variables."""

from __future__ import annotations

import keyword
from typing import Any, Final

import pytest

import indexing
from indexing import IndexingMap
from indexing.maps.regions.selection import rename_variables

PYTHON: Final = [
    *keyword.kwlist,
    *keyword.softkwlist,
    "range",
    "product",
    "print",
    "self",
    "__doc__",
]
ISL: Final = [
    *("mod", "floor", "floord", "ceil", "ceild", "exists", "implies", "min", "max", "infty"),
    *("infinity", "NaN", "nan", "rat", "int", "true", "false", "Mod", "EXISTS", "Min"),
]
SYMPY: Final = [
    *("I", "E", "S", "N", "Q", "O", "C", "pi", "oo", "zoo", "nan", "Lambda", "Mod", "floor"),
    *("Piecewise", "Symbol", "Add", "gamma", "beta"),
]
MLIR: Final = ["affine_map", "ceildiv", "floordiv", "symbol", "index", "step", "memref", "domain"]
C_WORDS: Final = ["while", "register", "f", "data", "point", "element", "int64_t", "static"]
OTHERS: Final = ["_", "__", "a.b", "a_b", "a-b", "x'", "1", "é", "Ω", "d1", "x0", "pairs", "visit"]
NAMES: Final = list(dict.fromkeys([*PYTHON, *ISL, *SYMPY, *MLIR, *C_WORDS, *OTHERS]))

MAP: Final = IndexingMap.over((8, 6), lambda d: [d[0] // 3 + d[1], (5 * d[0] + d[1]) % 4])
PAIRS: Final = {(i, j): MAP.evaluate([i, j]) for i in range(8) for j in range(6)}


def name_map(first: str, second: str) -> IndexingMap:
    return rename_variables(MAP, {MAP.dims[0]: first, MAP.dims[1]: second})


def check_equal(other: Any) -> None:
    assert {at: other.evaluate(list(at)) for at in PAIRS} == PAIRS


@pytest.mark.parametrize("name", NAMES)
def test_every_notation_keeps_the_map(name: str) -> None:
    for m in (
        name_map(name, "d1x"),
        name_map("a_b", name) if name != "a_b" else name_map("a.b", name),
    ):
        check_equal(IndexingMap.from_mlir(m.to_mlir()))
        check_equal(IndexingMap.from_isl(m.to_isl()))
        check_equal(IndexingMap.from_sympy(m.to_sympy()))
        check_equal(IndexingMap.from_isl(str(m.to_isl())))
        assert m.to_latex()
        assert "floordiv(" in m.to_c()
        scope: dict[str, Any] = {}
        exec(m.to_python(), scope)
        assert dict(scope["pairs"]()) == {at: tuple(PAIRS[at] or ()) for at in PAIRS}


def test_a_name_that_the_text_of_a_map_accepts_is_read_back() -> None:
    for name in NAMES:
        if name.replace(".", "_").isidentifier() and name.isascii():
            check_equal(indexing.parse_map(str(name_map(name, "y"))))
