"""Expressions are values: equality does not depend on order, process or table."""

import copy
import gc
import os
import pickle
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

from indexing import IndexingMap, parse_map
from simplifier import Expr, Variable, as_expr, constant, variable
from simplifier import divmod as laws
from simplifier.atoms import _FLOORS
from simplifier.bounds import UNCONSTRAINED
from simplifier.linear import _VARIABLES
from simplifier.mods import split

ROOT = Path(__file__).parent.parent.parent

x, y, z = variable("x", 0, 99), variable("y", -9, 99), variable("z", 3, 3)
EXPRS = [
    constant(-3),
    x,
    x * -2 + y + 5,
    (x * 3 + y) // 7 - x // 2,
    (x % 12) // 5 * 4 + (y // 3) % 4,
    ((x * 2 + y) // 5 * 3 + x) // 4,
    z + x,
]

PROGRAM = """
import sys
from indexing import parse_map
lines = sys.stdin.read().splitlines()
import random
order = list(range(len(lines)))
random.Random(int(sys.argv[1])).shuffle(order)
shown = {k: str(parse_map(lines[k]).simplify()) for k in order}
print("\\n".join(shown[k] for k in range(len(lines))))
"""

MAPS = [
    "(d0, d1)[s0, s1] -> ((d0 * 7 + d1 + s1) floordiv 5, (s0 + d1) mod 3), "
    "domain: d0 in [0, 9], d1 in [0, 6], s0 in [0, 3], s1 in [0, 4], "
    "d0 + s1 in [0, 9], s0 mod 2 in [0, 0]",
    "(d0, d1, d2) -> (d2 * 15 + d1 * 5 + d0, (d0 + d1 * 4 + d2 * 12) floordiv 6), "
    "domain: d0 in [0, 3], d1 in [0, 2], d2 in [0, 8]",
    "(d0){a, b} -> (b + d0, a - d0), domain: d0 in [0, 3], a in [0, 5], b in [0, 7]",
    "(d0)[s0, s1, s2] -> (s2, s0, s1), "
    "domain: d0 in [0, 3], s0 in [0, 5], s1 in [0, 5], s2 in [0, 5], s0 + s1 in [2, 5]",
]


@pytest.mark.parametrize("expr", EXPRS, ids=str)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_a_copy_is_equal(expr: Expr, again: object) -> None:
    assert callable(again)
    other = again(expr)
    assert other == expr
    assert hash(other) == hash(expr)
    assert str(other) == str(expr)
    assert other - expr == constant(0)


def test_variables_with_one_name_and_bounds_are_one_object() -> None:
    assert Variable("d0", 0, 9) is Variable("d0", 0, 9)
    assert Variable("d0", 0, 9) is pickle.loads(pickle.dumps(Variable("d0", 0, 9)))
    assert Variable("d0", 0, 9) is not Variable("d0", 0, 8)


def test_unreferenced_atoms_are_removed() -> None:
    kept = variable("kept", 0, 99) // 7
    dropped = [(variable(f"dropped{k}", 0, 99) + 3) // 7 // 5 for k in range(50)]
    del dropped
    _purge()
    assert ("kept", 0, 99) in _VARIABLES.objects
    assert not [k for k in range(50) if (f"dropped{k}", 0, 99) in _VARIABLES.objects]
    assert variable("kept", 0, 99) // 7 == kept


def test_variables_are_freed_without_the_collector() -> None:
    gc.disable()
    try:
        d = Variable("freed", 0, 99)
        exprs = [d.expr, d * 3 + 1, (d * 3 + 1) // 4 + d, d % 4]
        assert [split(expr) for expr in exprs]  # memoised
        del d, exprs
        _purge()
        assert ("freed", 0, 99) not in _VARIABLES.objects
    finally:
        gc.enable()


def _purge() -> None:
    """Remove unused atoms: floors before the variables to which they refer."""
    UNCONSTRAINED.forget_divisions()
    _FLOORS.purge()
    _VARIABLES.purge()


def test_the_memo_of_divisions_is_bounded() -> None:
    def build() -> list[Expr]:
        return [(x * 3 + y) // 7 - x // 2, x % 12 // 5, (x // 4 + y * 2) // 3]

    before = build()
    for k in range(laws._MAX_FLOORS + 1):
        assert (x + k * 100) // 100 == constant(k)
    assert len(UNCONSTRAINED.floors) <= laws._MAX_FLOORS
    assert len(UNCONSTRAINED.remainders) <= laws._MAX_FLOORS
    for old, new in zip(before, build(), strict=True):
        assert old == new
        assert hash(old) == hash(new)
        assert old - new == constant(0)
        assert (old + new) // 2 == old


def test_like_terms_are_one_term_in_any_order() -> None:
    parts = [x * 3, y // 4, -x, x % 5, as_expr(7), (x + y) // 3]
    sums = {sum(order, constant(0)) for order in permutations(parts)}
    assert len(sums) == 1
    assert len({str(each) for each in sums}) == 1


def test_numbers_in_names_are_sorted_numerically() -> None:
    names = [Variable(f"d{k}", 0, 9) for k in (10, 9, 2, 1, 0, 100)]
    assert str(sum((v.as_expr() for v in names), constant(0))) == "d0 + d1 + d2 + d9 + d10 + d100"


def simplified_in_a_process(seed: int, order: int) -> str:
    """Maps simplified in a process with another hash seed, in another order."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(order)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
        input="\n".join(MAPS),
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


def test_the_text_is_the_same_in_every_process() -> None:
    here = "\n".join(str(parse_map(text).simplify()) for text in MAPS)
    assert {simplified_in_a_process(seed, order) for seed, order in ((1, 1), (2, 2), (77, 3))} == {
        here
    }


@pytest.mark.parametrize("text", MAPS)
def test_a_map_that_was_pickled_in_another_process_is_equal_here(text: str) -> None:
    script = (
        "import pickle, sys; from indexing import parse_map; "
        "sys.stdout.buffer.write(pickle.dumps(parse_map(sys.stdin.read())))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "5", "PYTHONPATH": str(ROOT)},
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    loaded = pickle.loads(run.stdout)
    assert isinstance(loaded, IndexingMap)
    assert loaded == parse_map(text)
    assert len({loaded, parse_map(text)}) == 1
