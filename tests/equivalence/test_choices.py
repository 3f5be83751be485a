"""Terms that are equal in each case of the choices in them, such as joined arrays.

Programs join arrays in several ways; some are broken by a padding or an order.  NumPy or the
interpreter executes both, on special values too, and nothing is proved that is not so.
"""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np
import pytest

import hlo
from hlo.shapes.shape import Shape, dtype
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.execution import run
from tests.oracles import scale

LOWEST: Final = {"f32": "-inf", "bf16": "-inf", "s32": "-2147483648", "u8": "0"}
HIGHEST: Final = {"f32": "inf", "bf16": "inf", "s32": "2147483647", "u8": "255"}


def join(element_type: str, sizes: list[int]) -> str:
    """Return the concatenation of parameters of these sizes."""
    head = parameters(element_type, sizes)
    names = ", ".join(f"p{k}" for k in range(len(sizes)))
    total = sum(sizes)
    return f"{head}  ROOT r = {element_type}[{total}] concatenate({names}), dimensions={{0}} }}"


def parameters(element_type: str, sizes: list[int]) -> str:
    lines = [f"p{k} = {element_type}[{n}] parameter({k})" for k, n in enumerate(sizes)]
    return "ENTRY e { " + "  ".join(lines)


def pad(
    element_type: str, sizes: list[int], combine: str, fill: str, starts: list[int], total: int
) -> str:
    """Return the parameters, each padded with `fill` to start at a place, combined."""
    text = parameters(element_type, sizes) + f"  f = {element_type}[] constant({fill})\n"
    whole = f"{element_type}[{total}]"
    for k, (n, start) in enumerate(zip(sizes, starts, strict=True)):
        text += f"  w{k} = {whole} pad(p{k}, f), padding={start}_{total - start - n}\n"
    name = "w0"
    for k in range(1, len(sizes)):
        text += f"  c{k} = {whole} {combine}({name}, w{k})\n"
        name = f"c{k}"
    return f"{text}  ROOT r = {whole} copy({name}) }}"


def select(element_type: str, sizes: list[int], starts: list[int], total: int) -> str:
    """Return the parameters, each padded, chosen by comparisons of an iota with the starts."""
    text = parameters(element_type, sizes) + f"  f = {element_type}[] constant(1)\n"
    whole = f"{element_type}[{total}]"
    text += f"  i = s32[{total}] iota(), iota_dimension=0\n"
    for k, (n, start) in enumerate(zip(sizes, starts, strict=True)):
        text += f"  w{k} = {whole} pad(p{k}, f), padding={start}_{total - start - n}\n"
    name = "w0"
    for k in range(1, len(sizes)):
        text += (
            f"  s{k} = s32[] constant({starts[k]})  b{k} = s32[{total}] broadcast(s{k}), "
            f"dimensions={{}}  m{k} = pred[{total}] compare(i, b{k}), direction=GE\n"
            f"  c{k} = {whole} select(m{k}, w{k}, {name})\n"
        )
        name = f"c{k}"
    return f"{text}  ROOT r = {whole} copy({name}) }}"


def results(module: hlo.Module, seed: int) -> Any:
    """Return the bytes of the result for random and special values; all NaN are one."""
    chance = np.random.default_rng(seed)
    given = []
    for parameter in module.entry.parameters:
        shape = parameter.shape
        assert isinstance(shape, Shape)
        if shape.element_type in ("s32", "u8"):
            given.append(chance.integers(0, 200, shape.dims).astype(dtype(shape.element_type)))
        else:
            values = chance.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -3.0], shape.dims)
            given.append(values.astype(dtype(shape.element_type)))
    with np.errstate(all="ignore"):
        (result,) = run(module, given)
    flat = np.asarray(result)
    return np.where(flat != flat, np.ones_like(flat) * 77, flat).tobytes()


@pytest.mark.parametrize("element_type", LOWEST)
def test_a_concatenation_is_a_maximum_of_padded_arrays(element_type: str) -> None:
    sizes = [3, 4, 2]
    before = hlo.parse(join(element_type, sizes))
    for combine, fill in (("maximum", LOWEST), ("minimum", HIGHEST)):
        after = hlo.parse(
            pad(element_type, sizes, combine, fill[element_type], [0, 3, 7], sum(sizes))
        )
        assert all(results(before, seed) == results(after, seed) for seed in range(5))
        verdict = equivalent(before, after, exact_arithmetic=True)
        assert isinstance(verdict, Proved), verdict


@pytest.mark.parametrize(
    ("combine", "fill", "starts"),
    [
        ("maximum", "0", [0, 3]),
        ("maximum", "-3.4e38", [0, 3]),
        ("maximum", "-inf", [4, 0]),
        ("maximum", "-inf", [0, 2]),
        ("minimum", "-inf", [0, 3]),
        ("add", "0", [0, 3]),
    ],
)
def test_other_paddings_are_not_proved(combine: str, fill: str, starts: list[int]) -> None:
    before = hlo.parse(join("f32", [3, 4]))
    after = hlo.parse(pad("f32", [3, 4], combine, fill, starts, 7))
    assert any(results(before, seed) != results(after, seed) for seed in range(9))
    assert not isinstance(equivalent(before, after, exact_arithmetic=True), Proved)


@pytest.mark.parametrize("seed", range(scale(60)))
def test_nothing_is_proved_that_joins_arrays_otherwise(seed: int) -> None:
    chance = random.Random(seed)
    element_type = chance.choice(["f32", "s32"])
    sizes = [chance.randint(1, 4) for _ in range(chance.randint(2, 4))]
    total = sum(sizes)
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    if chance.random() < 0.6:
        k = chance.randrange(len(sizes))
        starts[k] = chance.randint(0, total - sizes[k])
    texts = [
        pad(element_type, sizes, "maximum", LOWEST[element_type], starts, total),
        pad(element_type, sizes, "minimum", HIGHEST[element_type], starts, total),
        select(element_type, sizes, starts, total),
        join(element_type, sizes),
    ]
    before, after = map(hlo.parse, chance.sample(texts, 2))
    is_same = all(results(before, seed) == results(after, seed) for seed in range(6))
    verdict = equivalent(before, after, exact_arithmetic=True)
    assert is_same or not isinstance(verdict, Proved), f"{before}\n{after}\n{verdict}"
    assert not is_same or not isinstance(verdict, Differs), f"{before}\n{after}\n{verdict}"


def test_sums_over_parts_are_equal_in_each_case() -> None:
    """A choice in the value of a reduction whose ranges correspond."""
    text = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ENTRY e { p = f32[3,5] parameter(0)  q = f32[4,5] parameter(1)  z = f32[] constant(0)
      i = f32[] constant(%s)  %s  ROOT r = f32[7] reduce(w, z), dimensions={1}, to_apply=add }"""
    before = text % ("-inf", "w = f32[7,5] concatenate(p, q), dimensions={0}")
    pads = """a = f32[7,5] pad(p, i), padding=0_4x0_0  b = f32[7,5] pad(q, i), padding=%s
      w = f32[7,5] maximum(a, b)"""
    after, other = (text % ("-inf", pads % place) for place in ("3_0x0_0", "2_1x0_0"))
    assert isinstance(equivalent(hlo.parse(before), hlo.parse(after)), Proved)
    assert isinstance(equivalent(hlo.parse(before), hlo.parse(other)), Differs)
