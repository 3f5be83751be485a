"""Copies explained: what they change, and whether they can go.

Of the stored modules, each copy of a value that is called not needed is removed from the text: no
array is then written while another in its memory is still read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import pytest

import hlo
import indexing
from hlo import Module
from indexing import ArrayCopy
from indexing.memory.buffers.values import Lives, Value, lives_of
from indexing.ops.control import While

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    [
        *(Path(__file__).parent / "data" / "buffers").glob("*.hlo"),
        *(ROOT / "examples").glob("*.opt.hlo"),
    ]
)


def copy_in(text: str) -> ArrayCopy:
    """Return the only copy of a module."""
    (copy,) = indexing.copies(hlo.parse(text))
    return copy


def clashes(module: Module) -> set[tuple[str, str]]:
    """Return the pairs of arrays in one memory of which one is written while the other is read."""
    lives = lives_of(module)
    assert isinstance(lives, Lives)
    held: dict[Value, list[Value]] = defaultdict(list)
    for value in lives.values:
        if not isinstance(value.array.instruction.op, While):  # the last state
            held[value.buffer].append(value)
    return {
        (first.array.instruction.name, second.array.instruction.name)
        for values in held.values()
        for first, second in combinations(sorted(values, key=lambda value: value.first), 2)
        if first.first < second.first <= first.last
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_copies_that_are_not_needed_can_be_removed(path: Path) -> None:
    text = path.read_text()
    module = hlo.parse(text)
    before = clashes(module)
    for copy in indexing.copies(module):
        name, source = copy.instruction.name, copy.instruction.operands[0].name
        if copy.kind == "value" and copy.needed is False and not copy.instruction.is_root:
            uses = re.compile(rf"(?<![\w.%-])%?{re.escape(name)}(?![\w.-])(?! = )")
            assert clashes(hlo.parse(uses.sub(f"%{source}", text))) <= before, copy


def test_some_copies_are_explained() -> None:
    kinds = [copy.kind for path in MODULES for copy in indexing.copies(hlo.load(path))]
    assert {"layout", "space", "value"} <= set(kinds)


FUSED = """HloModule m, is_scheduled=true
f {{ p = f32[64,32]{{0,1}} parameter(0)  ROOT n = f32[64,32]{{0,1}} negate(p) }}
less {{ a = f32[] parameter(0)  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }}
ENTRY e {{ x = f32[64,32]{{1,0}} parameter(0)  c = f32[64,32]{{0,1}} copy(x)
  ROOT r = f32[64,32]{{0,1}} {reader} }}"""


@pytest.mark.parametrize(
    ("reader", "needed"),
    [
        ("fusion(c), kind=kLoop, calls=f", False),
        ("fusion(c), kind=kCustom, calls=f", None),
        ("sort(c), dimensions={0}, to_apply=less", None),
    ],
)
def test_layouts(reader: str, needed: bool | None) -> None:
    copy = copy_in(FUSED.format(reader=reader))
    assert (copy.kind, copy.bytes, copy.needed) == ("layout", 2 * 4 * 64 * 32, needed)
    assert copy.written_by == "parameter `x` of ENTRY"


def test_the_layout_of_a_result_needs_its_copy() -> None:
    copy = copy_in("ENTRY e { x = f32[64,32]{1,0} parameter(0)  ROOT c = f32[64,32]{0,1} copy(x) }")
    assert (copy.needed, copy.read_by) == (True, "the result of ENTRY")


def test_a_copy_to_another_memory() -> None:
    copy = copy_in("""ENTRY e { x = f32[8,128]{1,0:T(8,128)} parameter(0)
        c = f32[8,128]{1,0:T(8,128)S(1)} copy(x)
        ROOT n = f32[8,128]{1,0:T(8,128)} negate(c) }""")
    assert (copy.kind, copy.needed, copy.why) == ("space", None, "XLA places it in VMEM")


VALUE = """HloModule m, is_scheduled=true
ENTRY e {{ x = f32[64] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
  n = f32[64] negate(x)  c = f32[64] copy(n)
  d = f32[64] dynamic-update-slice(c, u, i)
  ROOT r = f32[64] add(d, {other}) }}"""


def test_a_value_that_is_overwritten_needs_its_copy() -> None:
    needed = copy_in(VALUE.format(other="n"))
    assert (needed.kind, needed.needed) == ("value", True)
    assert "`d` would be written into its memory while `n` is still read" in needed.why
    assert copy_in(VALUE.format(other="d")).needed is False


def test_what_is_given_must_not_be_written() -> None:
    copied = "n = f32[64] negate(x)  c = f32[64] copy(n)"
    text = VALUE.format(other="d").replace(copied, "c = f32[64] copy(x)")
    given = copy_in(text)
    assert (given.needed, "an argument or a constant" in given.why) == (True, True)
    alias = "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }"
    donated = copy_in(text.replace("is_scheduled=true", alias))
    assert donated.needed is None
    assert "which it reads" in donated.why


def test_fusions_of_copies_move_elements() -> None:
    copy = copy_in("""HloModule m, is_scheduled=true
        f { p = f32[64,32] parameter(0)  t = f32[32,64] transpose(p), dimensions={1,0}
          z = f32[] constant(0)  ROOT q = f32[40,64] pad(t, z), padding=0_8x0_0 }
        g { p = f32[40,64] parameter(0)  ROOT n = f32[40,64] negate(p) }
        ENTRY e { x = f32[64,32] parameter(0)  c = f32[40,64] fusion(x), kind=kLoop, calls=f
          ROOT r = f32[40,64] fusion(c), kind=kLoop, calls=g }""")
    assert (copy.kind, copy.needed) == ("movement", False)


def test_a_fusion_with_several_results_reads_a_copy() -> None:
    copy = copy_in("""HloModule m, is_scheduled=true
        f { p = f32[64] parameter(0)  n = f32[64] negate(p)  a = f32[64] abs(p)
          ROOT t = (f32[64], f32[64]) tuple(n, a) }
        ENTRY e { x = f32[64] parameter(0)  n = f32[64] negate(x)  c = f32[64] copy(n)
          ROOT r = (f32[64], f32[64]) fusion(c), kind=kLoop, calls=f }""")
    assert (copy.kind, copy.needed) == ("value", False)


ROLLED = """
  roll { p = f32[9]{0} parameter(0)  a = f32[6]{0} slice(p), slice={[3:9]}
    b = f32[3]{0} slice(p), slice={[0:3]}
    ROOT c = f32[9]{0} concatenate(a, b), dimensions={0} }
  loop { q = f32[9]{0} parameter(0)  ROOT n = f32[9]{0} negate(q) }
"""


@pytest.mark.parametrize("given", ["x", "n"])
def test_a_movement_by_several_maps_has_no_proposal(given: str) -> None:
    copy = copy_in(f"""HloModule m, is_scheduled=true {ROLLED}
    ENTRY e {{ x = f32[9]{{0}} parameter(0)
      n = f32[9]{{0}} fusion(x), kind=kLoop, calls=loop
      r = f32[9]{{0}} fusion({given}), kind=kLoop, calls=roll
      ROOT t = (f32[9]{{0}}, f32[9]{{0}}) tuple(r, n) }}""")
    assert copy.kind == "movement"
    assert copy.needed is True  # the result
    assert copy.proposal.reason == f"fusion `r` reads `{given}` by several maps"


# fmt: off
DEMANDS = [
    # what is between the copy `c` and the operation that wants its layout
    ("ROOT r = f32[] custom-call(c), custom_call_target=\"k\"",        "custom-call `r`"),
    ("b = f32[2048]{0} bitcast(c)  ROOT r = f32[] custom-call(b), custom_call_target=\"k\"",
     "custom-call `r`"),
    ("ROOT r = f32[32] fusion(c), kind=kInput, calls=sums",            "reduce `s` in fusion `r`"),
    ("ROOT r = f32[32] fusion(c), kind=kInput, calls=outer",           "reduce `s` in fusion `r`"),
    ("n = f32[64,32]{0,1} fusion(c), kind=kCustom, calls=half  "
     "ROOT r = f32[] custom-call(n), custom_call_target=\"k\"",        "custom-call `r`"),
    ("v = f32[64,32]{1,0} copy(c)  w = f32[] custom-call(c), custom_call_target=\"k\"  "
     "ROOT t = (f32[64,32]{1,0}, f32[]) tuple(v, w)",                  "custom-call `w`"),
]
# fmt: on


@pytest.mark.parametrize(("body", "demand"), DEMANDS)
def test_copies_name_the_operation_that_wants_their_layout(body: str, demand: str) -> None:
    module = hlo.parse(f"""HloModule m, is_scheduled=true
    add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }}
    sums {{ p = f32[64,32]{{0,1}} parameter(0)  z = f32[] constant(0)
      m = f32[64,32]{{0,1}} negate(p)
      ROOT s = f32[32] reduce(m, z), dimensions={{0}}, to_apply=add }}
    outer {{ p = f32[64,32]{{0,1}} parameter(0)
      ROOT o = f32[32] fusion(p), kind=kInput, calls=sums }}
    half {{ p = f32[64,32]{{0,1}} parameter(0)  ROOT m = f32[64,32]{{0,1}} negate(p) }}
    ENTRY e {{ x = f32[64,32]{{1,0}} parameter(0)  c = f32[64,32]{{0,1}} copy(x)  {body} }}""")
    (copy,) = [each for each in indexing.copies(module) if each.instruction.name == "c"]
    assert (copy.needed, copy.why) == (None, f"{demand} may want this layout")


def test_a_layout_that_elementwise_operations_pass_on_is_that_of_the_result() -> None:
    copy = copy_in("""HloModule m, is_scheduled=true
    half { p = f32[64,32]{0,1} parameter(0)  ROOT m = f32[64,32]{0,1} negate(p) }
    ENTRY e { x = f32[64,32]{1,0} parameter(0)  c = f32[64,32]{0,1} copy(x)
      ROOT n = f32[64,32]{0,1} fusion(c), kind=kCustom, calls=half }""")
    assert copy.why == "the result of ENTRY, which fusion `n` computes, has this layout"
    assert copy.needed is None
