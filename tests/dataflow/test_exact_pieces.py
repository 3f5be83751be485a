"""Exact maps of an op replace its `may` map where maps are composed through a program."""

from __future__ import annotations

import numpy as np
import pytest

import hlo
import indexing
from tests.ops.samples import Array, related

SIZE = 5


def factor(matrix: Array, lower: bool) -> Array:
    """The triangular factor, of one triangle of a matrix: by columns, from its definition."""
    a = matrix if lower else matrix.T
    result = np.zeros_like(a)
    for j in range(SIZE):
        for i in range(j, SIZE):
            rest = a[i, j] - sum([result[i, k] * result[j, k] for k in range(j)])
            result[i, j] = np.sqrt(rest) if i == j else rest / result[j, j]
    return result if lower else result.T


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("is_fused", [True, False])
def test_a_factor_reads_the_elements_that_change_it(lower: bool, is_fused: bool) -> None:
    body = f"""
      p = f64[{SIZE},{SIZE}] parameter(0)
      c = f64[{SIZE},{SIZE}] cholesky(p), lower={str(lower).lower()}
      ROOT t = f64[{SIZE},{SIZE}] transpose(c), dimensions={{1,0}}"""
    whole = f"f {{ {body} }}\nENTRY e {{ q = f64[{SIZE},{SIZE}] parameter(0)\n"
    fused = f"{whole} ROOT r = f64[{SIZE},{SIZE}] fusion(q), kind=kCustom, calls=f }}"
    root = hlo.parse(fused if is_fused else f"ENTRY e {{ {body} }}").entry.root
    query = indexing.output_to_input if is_fused else indexing.to_parameters
    (maps,) = query(root).maps
    assert {m.grade for m in maps} == {"exact"}
    listed = [pair for m in maps for pair in related(m, [])]
    random = np.random.default_rng(0)
    half = random.normal(size=(SIZE, SIZE))
    matrix = half @ half.T + SIZE * np.eye(SIZE)
    before, changes = factor(matrix, lower).T, set()
    for place in np.ndindex(matrix.shape):
        changed = matrix.copy()
        changed[place] += 0.01
        moved = np.argwhere(before != factor(changed, lower).T)
        changes |= {(tuple(map(int, index)), place) for index in moved}
    assert len(listed) == len(set(listed))  # the pieces are disjoint
    assert set(listed) == changes


def test_the_map_of_one_instruction_stays_one_map() -> None:
    entry = hlo.parse("ENTRY e { p = f64[5,5] parameter(0)  ROOT c = f64[5,5] cholesky(p) }").entry
    (maps,) = indexing.output_to_input(entry.root).maps
    assert [m.grade for m in maps] == ["may"]
