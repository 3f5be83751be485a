"""Layouts that make copies superfluous, checked on the bytes of arrays in memory.

If an argument has the proposed layout, its memory holds what the memory of the copy holds; so it is
for a result and the source of its copy.
"""

from __future__ import annotations

import random
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pytest

import hlo
import indexing
from hlo.shapes.layout import Layout
from hlo.shapes.memory import to_physical
from indexing import ArrayCopy, LayoutProposal, Unknown
from indexing.execution import run
from indexing.maps.arrays import ArrayRef
from indexing.memory.buffers.layout_orders import order_of

Array: TypeAlias = npt.NDArray[np.float32]
Physical: TypeAlias = tuple[Array, Layout]


def copy_in(text: str, name: str = "c") -> ArrayCopy:
    """Return the copy of a module that has this name."""
    (copy,) = [c for c in indexing.copies(hlo.parse(text)) if c.instruction.name == name]
    return copy


def reason(copy: ArrayCopy) -> str:
    assert isinstance(copy.proposal, Unknown)
    return copy.proposal.reason


def order(rank: int, seed: random.Random) -> Layout:
    return Layout(tuple(seed.sample(range(rank), rank)))


def text_of(sizes: tuple[int, ...], layout: Layout | None = None) -> str:
    return f"f32[{','.join(map(str, sizes))}]{layout or ''}"


def chain(seed: random.Random, sizes: tuple[int, ...]) -> tuple[list[str], str, tuple[int, ...]]:
    """Return transposes, reshapes and slices of `a0`, the last name, and its sizes."""
    lines: list[str] = []
    for number in range(seed.randrange(4)):
        kind = seed.choice(["transpose", "reshape", "slice"])
        given = sizes
        if kind == "transpose":
            places = seed.sample(range(len(sizes)), len(sizes))
            sizes = tuple(given[place] for place in places)
            attributes = f", dimensions={{{','.join(map(str, places))}}}"
        elif kind == "reshape":
            merged = seed.randrange(len(sizes))
            if len(sizes) > 1 and seed.random() < 0.5 and merged:
                sizes = (*sizes[: merged - 1], prod(sizes[merged - 1 : merged + 1]))
                sizes += given[merged + 1 :]
            else:
                sizes = (*given[:merged], 1, *given[merged:])
            attributes = ""
        else:
            sizes = tuple(n - (n > 2 and seed.random() < 0.3) for n in given)
            attributes = f", slice={{{','.join(f'[0:{n}]' for n in sizes)}}}"
        lines.append(f"a{number + 1} = {text_of(sizes)} {kind}(a{number}){attributes}")
    return lines, f"a{len(lines)}", sizes


def bytes_agree(whole: Physical, part: Physical) -> bool:
    """Return True if the elements of a part have the order that they have in the whole."""
    (array, layout), (elements, other) = whole, part
    kept = set(elements.ravel().tolist())
    expected = [value for value in to_physical(array, layout).tolist() if value in kept]
    return bool(expected == to_physical(elements, other).tolist())


def execute(text: str, argument: Array) -> Array:
    (value,) = run(hlo.parse(text), [argument])
    return np.asarray(value)


END = 'custom_call_target="opaque"'


def test_arguments_in_the_proposed_layout_have_the_bytes_of_the_copies() -> None:
    proposed = 0
    for number in range(120):
        seed = random.Random(number)
        sizes = tuple(seed.sample([2, 3, 4, 5], seed.randrange(2, 4)))
        lines, last, ends = chain(seed, sizes)
        wanted = order(len(ends), seed)
        given = f"a0 = {text_of(sizes, order(len(sizes), seed))} parameter(0)"
        copy = f"c = {text_of(ends, wanted)} copy({last})"
        start = "\n".join(["ENTRY e {", given, *lines])
        answer = copy_in(f"{start}\n{copy}\nROOT r = f32[] custom-call(c), {END} }}")
        if isinstance(answer.proposal, LayoutProposal):
            proposed += 1
            (change,) = answer.proposal.changes
            assert (change.place, change.number) == ("argument", 0)
            argument = np.arange(prod(sizes), dtype=np.float32).reshape(sizes)
            elements = execute(f"{start}\nROOT {copy} }}", argument)
            whole = argument, change.layout
            assert bytes_agree(whole, (elements, wanted)), f"seed {number}"
    assert proposed > 40


def test_results_in_the_proposed_layout_have_the_bytes_of_what_is_copied() -> None:
    proposed = 0
    for number in range(120):
        seed = random.Random(number)
        sizes = tuple(seed.sample([2, 3, 4, 5], seed.randrange(2, 4)))
        lines, last, ends = chain(seed, sizes)
        given, other = order(len(sizes), seed), order(len(sizes), seed)
        source = f"s = {text_of(sizes, given)}"
        way = "\n".join([f"a0 = {text_of(sizes, other)} copy(s)", *lines])
        root = f"ROOT t = (f32[], {text_of(ends)}) tuple(q, {last}) }}"
        start = f"ENTRY e {{ q = f32[] parameter(0)\n{source} custom-call(), {END}\n"
        copies = indexing.copies(hlo.parse(f"{start}{way}\n{root}"))
        answer = next(c for c in copies if c.instruction.name == "a0")
        if isinstance(answer.proposal, LayoutProposal) and not answer.proposal.is_inside:
            proposed += 1
            (change,) = answer.proposal.changes
            assert (change.place, change.number) == ("result", 1)
            array = np.arange(prod(sizes), dtype=np.float32).reshape(sizes)
            text = (
                f"ENTRY e {{ {source} parameter(0)\n{way}\nROOT z = {text_of(ends)} copy({last}) }}"
            )
            result = execute(text, array)
            whole = array, given
            assert bytes_agree(whole, (result, change.layout)), f"seed {number}"
    assert proposed > 40


TILED = """HloModule m, is_scheduled=true
ENTRY e {{ x = f32[1000,64]{{0,1:T(8,128)}} parameter(0)
  {way}
  ROOT r = f32[] custom-call(c), custom_call_target="opaque" }}"""


ROWS = "f32[1000,64]{1,0:T(8,128)}"
COLUMNS = "f32[1000,64]{0,1:T(8,128)}"
CALL = 'custom_call_target="other"'
PROPOSED = "argument 0, `x`: {1,0} in place of {0,1}"

# fmt: off
WAYS = [
    # between the argument and the copy                       the proposal, or the reason
    ([f"c = {ROWS} copy(x)"],                                 PROPOSED),
    (["b = f32[64,1000]{1,0:T(8,128)} bitcast(x)",
      "c = f32[64,1000]{0,1:T(8,128)} copy(b)"],              PROPOSED),
    (["m = f32[1000,64]{0,1:T(8,128)S(1)} copy(x)",
      "c = f32[1000,64]{1,0:T(8,128)S(1)} copy(m)"],          PROPOSED),
    (["b = f32[1000,4,16]{0,2,1:T(8,128)} bitcast(x)",
      "c = f32[1000,4,16]{2,1,0:T(4,128)} copy(b)"],          "splits or merges dimensions"),
    (["c = f32[1000,64]{0,1:T(4,128)} copy(x)"],              "only the tiles differ"),
    ([f"m = {COLUMNS} copy(x)", f"c = {COLUMNS} copy(m)"],    "does not change the layout"),
    ([f"n = {COLUMNS} negate(x)", f"c = {ROWS} copy(n)"],     "negate `n` chooses the layout"),
    ([f"o = {ROWS} copy(x)", f"c = {COLUMNS} copy(o)"],       "copy `o` changes the layout before"),
    ([f"c = {ROWS} copy(x)", f"s = {COLUMNS} negate(x)"],     PROPOSED),
    ([f"c = {ROWS} copy(x)",
      f"s = {COLUMNS} custom-call(x), {CALL}"],               "`s` reads argument 0, `x`"),
]
# fmt: on


@pytest.mark.parametrize("way, expected", WAYS)
def test_arrays_in_tiles(way: list[str], expected: str) -> None:
    copied = copy_in(TILED.format(way="\n".join(way)))
    if expected == PROPOSED:
        assert str(copied.proposal) == PROPOSED
    else:
        assert expected in reason(copied)


def test_the_larger_copy_decides() -> None:
    text = """ENTRY e { x = f32[9,7,5]{2,1,0} parameter(0)
      small = f32[3,7,5]{2,1,0} slice(x), slice={[0:3],[0:7],[0:5]}
      c = f32[3,7,5]{0,1,2} copy(small)  d = f32[9,7,5]{1,2,0} copy(x)
      ROOT r = f32[] custom-call(c, d), custom_call_target="opaque" }"""
    assert str(copy_in(text, "d").proposal) == "argument 0, `x`: {1,2,0} in place of {2,1,0}"
    assert "but {1,2,0} spares the larger copy `d`" in reason(copy_in(text, "c"))


def test_the_result_in_the_memory_of_an_argument_has_its_layout() -> None:
    text = """HloModule m, is_scheduled=true, input_output_alias={ {1}: (0, {}, may-alias) }
    ENTRY e { x = f32[9,7]{1,0} parameter(0)  c = f32[9,7]{0,1} copy(x)
      u = f32[9,7]{0,1} custom-call(c), custom_call_target="opaque"
      d = f32[9,7]{1,0} copy(u)  z = f32[] constant(0)
      ROOT t = (f32[], f32[9,7]{1,0}) tuple(z, d) }"""
    ends = {"argument 0, `x`: {0,1} in place of {1,0}", "result 1: {0,1} in place of {1,0}"}
    for name in ("c", "d"):
        assert set(str(copy_in(text, name).proposal).split("; ")) == ends


def test_a_copy_in_a_loop_of_what_the_loop_does_not_change() -> None:
    text = """HloModule m, is_scheduled=true
    test { s = (s32[], f32[4,9,7]{2,1,0}, f32[]) parameter(0)
      i = s32[] get-tuple-element(s), index=0  n = s32[] constant(4)
      ROOT r = pred[] compare(i, n), direction=LT }
    step { s = (s32[], f32[4,9,7]{2,1,0}, f32[]) parameter(0)
      i = s32[] get-tuple-element(s), index=0  w = f32[4,9,7]{2,1,0} get-tuple-element(s), index=1
      z = s32[] constant(0)
      l = f32[1,9,7]{2,1,0} dynamic-slice(w, i, z, z), dynamic_slice_sizes={1,9,7}
      c = f32[1,9,7]{1,2,0} copy(l)
      f = f32[] custom-call(c), custom_call_target="opaque"
      one = s32[] constant(1)  j = s32[] add(i, one)
      ROOT t = (s32[], f32[4,9,7]{2,1,0}, f32[]) tuple(j, w, f) }
    ENTRY e { ws = f32[4,9,7]{2,1,0} parameter(0)  z = s32[] constant(0)  f = f32[] constant(0)
      t = (s32[], f32[4,9,7]{2,1,0}, f32[]) tuple(z, ws, f)
      ROOT w = (s32[], f32[4,9,7]{2,1,0}, f32[]) while(t), condition=test, body=step }"""
    assert str(copy_in(text).proposal) == "argument 0, `ws`: {1,2,0} in place of {2,1,0}"


LOOPS = """HloModule m, is_scheduled=true
f {{ p = f32[9,7]{{0,1}} parameter(0)  ROOT n = f32[9,7]{{0,1}} negate(p) }}
g {{ p = f32[9,7]{{0,1}} parameter(0)  ROOT n = f32[9,7]{reads} exponential(p) }}
ENTRY e {{ x = f32[9,7]{{0,1}} parameter(0)
  o = f32[9,7]{{0,1}} custom-call(x), custom_call_target="opaque"
  {body} }}"""


def test_a_loop_reads_or_writes_the_other_layout() -> None:
    reads = LOOPS.format(
        reads="{0,1}",
        body="""c = f32[9,7]{1,0} copy(o)
        ROOT r = f32[9,7]{0,1} fusion(c), kind=kLoop, calls=f""",
    )
    copied = copy_in(reads)
    assert copied.needed is False
    assert str(copied.proposal) == "fusion `r` reads {0,1} in place of {1,0}"
    writes = LOOPS.format(
        reads="{0,1}",
        body="""y = f32[9,7]{0,1} fusion(o), kind=kLoop, calls=g
        ROOT c = f32[9,7]{1,0} copy(y)""",
    )
    copied = copy_in(
        writes.replace("ROOT c", "c").replace(
            "copy(y)", 'copy(y) ROOT r = f32[] custom-call(c), custom_call_target="opaque"'
        )
    )
    assert (copied.needed, copied.why) == (False, "fusion `y` is a loop that can write this layout")
    assert str(copied.proposal) == "fusion `y` writes {1,0} in place of {0,1}"
    assert copied.proposal.is_inside
    twice = 'copy(y) ROOT r = f32[] custom-call(c, y), custom_call_target="opaque"'
    assert copy_in(writes.replace("ROOT c", "c").replace("copy(y)", twice)).needed is None


def test_dimensions_whose_positions_interleave_have_no_order() -> None:
    source = hlo.parse("ENTRY e { ROOT x = f32[8] parameter(0) }").entry.root
    read = indexing.IndexingMap.over((3, 2), lambda d: [d[0] * 2 + d[1] * 3])
    assert isinstance(order_of(read, ArrayRef(source)), Unknown)


SCATTER = """HloModule m, is_scheduled=true{alias}
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
f {{ t = f32[9,7]{{1,0}} parameter(0)  i = s32[3,1] parameter(1)  u = f32[3,7]{{1,0}} parameter(2)
  ROOT s = f32[9,7]{{1,0}} scatter(t, i, u), to_apply=add, update_window_dims={{1}},
    inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1 }}
ENTRY e {{ t = f32[9,7]{{0,1}} parameter(0)  i = s32[3,1] parameter(1)
  u = f32[3,7]{{0,1}} parameter(2)
  c = f32[9,7]{{1,0}} copy(t)  d = f32[3,7]{{1,0}} copy(u)
  ROOT r = f32[9,7]{{1,0}} fusion(c, i, d), kind=kCustom, calls=f }}"""


def test_what_is_overwritten_is_copied_in_any_layout() -> None:
    kept = SCATTER.format(alias="")
    assert "fusion `r` is written over the copy of `t`" in reason(copy_in(kept))
    assert str(copy_in(kept, "d").proposal) == "argument 2, `u`: {1,0} in place of {0,1}"
    given = SCATTER.format(alias=", input_output_alias={ {}: (0, {}, may-alias) }")
    assert "argument 0, `t`: {1,0}" in str(copy_in(given).proposal)


def test_a_result_that_is_an_argument_is_copied_in_any_layout() -> None:
    text = "ENTRY e { x = f32[9,7]{1,0} parameter(0)  ROOT c = f32[9,7]{0,1} copy(x) }"
    assert "the result is argument `x`" in reason(copy_in(text))
