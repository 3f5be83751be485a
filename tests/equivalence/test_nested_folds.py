"""Reductions of functions of reductions, with dimensions of equal sizes exchanged.

The programs of one template differ in their permutations only, so that different folds have the
same ranges.  NumPy computes them; a proof that programs with different values are equal is false.
"""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any, Final

import numpy as np
import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from tests.oracles import scale

COMBINERS: Final = {"add": (np.add, "0"), "maximum": (np.maximum, "-inf")}
FUNCTIONS: Final = {"cosine": np.cos, "tanh": np.tanh, "negate": np.negative}
HEAD: Final = "".join(
    f"{name} {{ x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] {name}(x, y) }}\n"
    for name in COMBINERS
)


def draw(template: random.Random, free: random.Random, given: Any) -> tuple[str, Any]:
    """Return a program as text, and its value for `given`; `free` draws the permutations."""
    lines: list[str] = []
    value, name = given, "p"

    def add(text: str, result: Any) -> tuple[str, Any]:
        lines.append(f"v{len(lines)} = f32[{','.join(map(str, result.shape))}] {text}")
        return f"v{len(lines) - 1}", result

    while value.ndim:
        order = free.sample(range(value.ndim), value.ndim)
        moved = f"transpose({name}), dimensions={{{','.join(map(str, order))}}}"
        name, value = add(moved, value.transpose(order))
        if template.random() < 0.4:
            merged = [value.shape[0] * value.shape[1], *value.shape[2:]] if value.ndim > 1 else []
            sizes = [n for size in merged or value.shape for n in ([2, 2] if size == 4 else [size])]
            name, value = add(f"reshape({name})", value.reshape(sizes))
        combiner = template.choice(list(COMBINERS))
        axes = tuple(range(value.ndim))[-1 - (template.random() < 0.3) :]
        combine, first = COMBINERS[combiner]
        init, _ = add(f"constant({first})", np.zeros(()))
        along = f"dimensions={{{','.join(map(str, axes))}}}, to_apply={combiner}"
        name, value = add(f"reduce({name}, {init}), {along}", combine.reduce(value, axis=axes))
        function = template.choice(list(FUNCTIONS))
        name, value = add(f"{function}({name})", np.asarray(FUNCTIONS[function](value)))
    parameter = f"p = f32[{','.join(map(str, given.shape))}] parameter(0)"
    body = "\n  ".join([parameter, *lines[:-1], f"ROOT {lines[-1]}"])
    return f"{HEAD}ENTRY e {{\n  {body}\n}}\n", value


@pytest.mark.parametrize("seed", range(scale(80)))
def test_no_exchange_of_dimensions_is_proved_that_changes_values(seed: int) -> None:
    sizes = random.Random(seed).choice([(2, 2, 2), (3, 3), (2, 4, 2), (2, 2, 2, 2), (4, 4)])
    given = np.random.default_rng(seed).normal(size=sizes)
    made = [draw(random.Random(seed), random.Random(f"{seed} {k}"), given) for k in range(3)]
    for (one, ours), (other, theirs) in combinations(made, 2):
        verdict = equivalent(hlo.parse(one), hlo.parse(other))
        is_same = np.allclose(ours, theirs, rtol=1e-9)
        assert is_same or not isinstance(verdict, Proved), f"{one}\n{other}\n{verdict}"


ROWS: Final = """ENTRY e {{ p = f32[5,5] parameter(0)  z = f32[] constant(0)
  r = f32[5] reduce(p, z), dimensions={{{}}}, to_apply={}  e = f32[5] {}(r)
  ROOT s = f32[] reduce(e, z), dimensions={{0}}, to_apply={} }}"""


@pytest.mark.parametrize(
    ("inner", "function", "outer"),
    [("add", "cosine", "add"), ("maximum", "tanh", "add"), ("add", "tanh", "maximum")],
)
def test_sums_of_functions_of_rows_are_not_those_of_columns(
    inner: str, function: str, outer: str
) -> None:
    rows, columns = (ROWS.format(k, inner, function, outer) for k in (1, 0))
    assert isinstance(equivalent(hlo.parse(HEAD + rows), hlo.parse(HEAD + columns)), Differs)
    moved = columns.replace(
        "r = f32[5] reduce(p,",
        "t = f32[5,5] transpose(p), dimensions={1,0}  r = f32[5] reduce(t,",
    )
    assert isinstance(equivalent(hlo.parse(HEAD + rows), hlo.parse(HEAD + moved)), Proved)
