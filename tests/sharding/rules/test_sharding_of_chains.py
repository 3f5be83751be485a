"""Sharding rules of chains of instructions hold by brute force.

The instructions are linear: a reduction of the last one is the sum of its partial results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import hlo
from indexing.execution import run
from indexing.sharding import sharding_rule
from tests.ops.samples import Sample
from tests.ops.strategies import Draw, array, factors, ints
from tests.oracles import fuzz
from tests.sharding.rules.sharding_checks import broken_factors

MAX_ELEMENTS = 72


class Chain(Sample):
    """A fusion of several instructions."""

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        results: tuple[Any, ...] = run(self.instruction.module, inputs)
        return results


@st.composite
def chains(draw: Draw) -> str:
    """A module whose root is a fusion of up to four linear instructions of one parameter."""
    first = dims = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3))
    lines = ["zero = f32[] constant(0)", f"v0 = {array(dims)} parameter(0)"]
    for number in range(1, 1 + draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(KINDS))
        dims, text = link(draw, kind, dims, f"v{number - 1}")
        lines.append(f"v{number} = {array(dims)} {text}")
    body = "\n  ".join([*lines[:-1], f"ROOT {lines[-1]}"])
    return (
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
        f"fused {{\n  {body}\n}}\n"
        f"ENTRY e {{ p = {array(first)} parameter(0) "
        f"ROOT f = {array(dims)} fusion(p), kind=kLoop, calls=fused }}"
    )


KINDS = ["transpose", "reshape", "reverse", "slice", "pad", "broadcast", "add", "reduce"]


def link(draw: Draw, kind: str, dims: list[int], value: str) -> tuple[list[int], str]:
    """Return the sizes and the text of an instruction of `value`."""
    some = [k for k in range(len(dims)) if draw(st.booleans())]
    match kind:
        case "transpose":
            order = draw(st.permutations(range(len(dims))))
            return [dims[k] for k in order], f"transpose({value}), dimensions={{{ints(order)}}}"
        case "reshape":
            return factors(draw, prod(dims)), f"reshape({value})"
        case "reverse":
            return dims, f"reverse({value}), dimensions={{{ints(some)}}}"
        case "slice":
            cuts = [(int(k in some and n > 1), n) for k, n in enumerate(dims)]
            text = ", ".join(f"[{low}:{high}]" for low, high in cuts)
            return [high - low for low, high in cuts], f"slice({value}), slice={{{text}}}"
        case "pad" if dims and prod(dims) < MAX_ELEMENTS // 2:
            low = [int(k in some) for k in range(len(dims))]
            edges = "x".join(f"{n}_{n}" for n in low)
            sizes = [n + 2 * m for n, m in zip(dims, low, strict=True)]
            return sizes, f"pad({value}, zero), padding={edges}"
        case "broadcast" if prod(dims) * 2 <= MAX_ELEMENTS:
            place = draw(st.integers(0, len(dims)))
            kept = [k + (k >= place) for k in range(len(dims))]
            sizes = [*dims[:place], 2, *dims[place:]]
            return sizes, f"broadcast({value}), dimensions={{{ints(kept)}}}"
        case "reduce":
            kept = [n for k, n in enumerate(dims) if k not in some]
            return kept, f"reduce({value}, zero), dimensions={{{ints(some)}}}, to_apply=add"
        case _:
            return dims, f"add({value}, {value})"


def test_factors_of_chains_hold() -> None:
    kinds = Counter[str]()

    @fuzz(200)
    @given(chains())
    def check(text: str) -> None:
        sample = Chain(text, hlo.parse(text).entry.root)
        rule = sharding_rule(sample.instruction)
        kinds.update(factor.kind for factor in rule.factors if factor.size > 1)
        assert not broken_factors(sample, rule)

    check()
    assert min(kinds[kind] for kind in ("pass_through", "reduction", "need_replication")) > 0
