"""Products of padded arrays, as passes for GPUs write them, against the products themselves."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import numpy as np
import pytest

import hlo
from hlo.modules.module import Module
from hlo.shapes.shape import dtype
from indexing import equivalent
from indexing.equivalence import Proved
from indexing.execution import run

TURNS: Final = 60


def padded_product(chance: Random, kind: str, faulty: bool) -> tuple[str, str]:
    """A dot, and a slice of a dot of padded operands; a faulty one has a number that is wrong."""
    sizes = {name: chance.randint(2, 4) for name in "mkn"}
    low = {name: chance.choice([0, 0, 1, 2]) for name in "mkn"}
    high = {name: chance.choice([0, 1, 3]) for name in "mkn"}
    wide = {name: low[name] + sizes[name] + high[name] for name in "mkn"}
    start, number, contracted = dict(low), 0, dict(low)
    if faulty:
        name = chance.choice("mkn")
        wide[name] += 1
        if name == "k":
            number = chance.choice([0, 1])
            contracted["k"] += 1 - number  # of the right operand
        else:
            start[name] += chance.choice([1, -1]) if start[name] else 1
    pads = {name: (low[name], wide[name] - low[name] - sizes[name]) for name in "mkn"}
    right = dict(pads)
    right["k"] = (contracted["k"], wide["k"] - contracted["k"] - sizes["k"])
    m, k, n = (sizes[name] for name in "mkn")
    wm, wk, wn = (wide[name] for name in "mkn")
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    inputs = f"p = {kind}[{m},{k}] parameter(0)  q = {kind}[{k},{n}] parameter(1)  "
    before = f"ENTRY e {{ {inputs}ROOT d = {kind}[{m},{n}] dot(p, q), {dims} }}"
    after = (
        f"ENTRY e {{ {inputs}z = {kind}[] constant({number})  "
        f"pp = {kind}[{wm},{wk}] pad(p, z), padding={_pads(pads['m'], pads['k'])}  "
        f"qq = {kind}[{wk},{wn}] pad(q, z), padding={_pads(right['k'], pads['n'])}  "
        f"d = {kind}[{wm},{wn}] dot(pp, qq), {dims}  ROOT r = {kind}[{m},{n}] slice(d), "
        f"slice={{[{start['m']}:{start['m'] + m}], [{start['n']}:{start['n'] + n}]}} }}"
    )
    return before, after


def _pads(*each: tuple[int, int]) -> str:
    return "x".join([f"{low}_{high}" for low, high in each])


def agree(before: Module, after: Module, seed: int) -> bool:
    """True if both programs compute the same for random integers."""
    chance = np.random.default_rng(seed)
    shapes: list[Any] = [p.shape for p in before.entry.parameters]
    given = [chance.integers(1, 50, s.dims).astype(dtype(s.element_type)) for s in shapes]
    (ours,), (theirs,) = run(before, given), run(after, given)
    return bool(np.array_equal(ours, theirs))


@pytest.mark.parametrize("kind", ["f32", "s32"])
def test_products_of_padded_operands_are_proved_if_they_are_equal(kind: str) -> None:
    chance, counts = Random(7), {True: 0, False: 0}
    for turn in range(TURNS):
        pair = padded_product(chance, kind, faulty=turn % 2 > 0)
        before, after = map(hlo.parse, pair)
        is_equal = agree(before, after, turn)
        verdict = equivalent(before, after)
        assert isinstance(verdict, Proved) == is_equal, (pair, verdict)
        assert not isinstance(verdict, Proved) or not verdict.laws
        counts[is_equal] += 1
    assert min(counts.values()) > TURNS // 4, counts


INPUTS: Final = "p = f32[2,9,3] parameter(0)  k = f32[3,3,4] parameter(1)  "
LABELS: Final = "dim_labels=b0f_0io->b0f"


@pytest.mark.parametrize(("interior", "size", "pad"), [(1, 5, 0), (1, 5, 1), (2, 7, 0)])
def test_a_kernel_with_zeros_between_its_elements_is_dilated(
    interior: int, size: int, pad: int
) -> None:
    out = f"ROOT c = f32[2,{5 + 2 * pad},4] convolution"
    before = hlo.parse(
        f"ENTRY e {{ {INPUTS}{out}(p, k), window={{size=3 pad={pad}_{pad} rhs_dilate=2}}, "
        f"{LABELS} }}"
    )
    after = hlo.parse(
        f"ENTRY e {{ {INPUTS}z = f32[] constant(0)  "
        f"w = f32[{size},3,4] pad(k, z), padding=0_0_{interior}x0_0x0_0  "
        f"{out}(p, w), window={{size={size} pad={pad}_{pad + size - 5}}}, {LABELS} }}"
    )
    is_equal = interior == 1
    assert agree(before, after, 3) == is_equal
    assert isinstance(equivalent(before, after), Proved) == is_equal
