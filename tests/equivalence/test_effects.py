"""Side effects: one method of the op, which every analysis reads; values that are drawn anew."""

from __future__ import annotations

import re
from typing import Final

import pytest

import hlo
from hlo.modules.effects import has_effects, has_own_effect
from hlo.modules.module import Module
from indexing import equivalent, shard
from indexing.codegen.running import nests_of
from indexing.dataflow.loops.unroll import unroll
from indexing.equivalence import Proved
from indexing.execution.effects import needed_instructions
from indexing.maps.answers import Unknown
from indexing.programs.arrays import is_unique
from indexing.sharding.partition.flatten import flatten

UNUSED: Final = """HloModule m, num_partitions=2
ENTRY e { p = f32[4] parameter(0)
  u = f32[4] custom-call(p), custom_call_target="%s"%s  ROOT r = f32[4] negate(p) }"""

# fmt: off
FLAGS = [
    # target               attributes                                                   has effect
    ("f",                  "",                                                          False),
    ("f",                  ", custom_call_has_side_effect=true",                        True),
    ("f",                  ", custom_call_has_side_effect=false",                       False),
    ("f",                  ', metadata={op_name="custom_call_has_side_effect=true"}',   False),
    ("f",                  ', backend_config="custom_call_has_side_effect=true"',       False),
    ("custom_call_has_side_effect=true", "",                                            False),
    ("Sharding",           ", custom_call_has_side_effect=true",                        False),
]
# fmt: on


@pytest.mark.parametrize("target, attributes, has_effect", FLAGS)
def test_every_analysis_reads_the_method_of_the_op(
    target: str, attributes: str, has_effect: bool
) -> None:
    module = hlo.parse(UNUSED % (target, attributes))
    call = module.entry["u"]
    assert has_own_effect(call) is has_effect
    assert has_effects(module.entry) is has_effect
    assert is_unique(call) is has_effect
    assert (call in needed_instructions(module.entry)) is has_effect
    assert ("u" in [i.name for i in flatten(module.entry).instructions]) is has_effect
    assert is_divided(module) is not has_effect
    assert ("side effects" in str(nests_of(module).remarks)) is has_effect


def is_divided(module: Module) -> bool:
    """Return True if the program can be divided; an unused call without effects is omitted."""
    try:
        shard(module, "x=2", {"p": "x"})
    except hlo.HloError as error:
        return "side effects" not in str(error)
    return True


def test_an_effect_in_metadata_does_not_stop_a_used_call() -> None:
    text = UNUSED.replace("negate(p)", "negate(u)")
    marked = hlo.parse(text % ("f", ', metadata={op_name="custom_call_has_side_effect=true"}'))
    assert is_divided(marked)


def test_an_effect_in_the_condition_of_a_loop_is_not_unrolled() -> None:
    text = """c { x = (s32[], f32[3]) parameter(0)  i = s32[] get-tuple-element(x), index=0
      u = f32[] custom-call(i), custom_call_target="log"%s
      n = s32[] constant(3)  ROOT l = pred[] compare(i, n), direction=LT }
    b { x = (s32[], f32[3]) parameter(0)  i = s32[] get-tuple-element(x), index=0
      o = s32[] constant(1)  j = s32[] add(i, o)  v = f32[3] get-tuple-element(x), index=1
      ROOT r = (s32[], f32[3]) tuple(j, v) }
    ENTRY e { z = s32[] constant(0)  p = f32[3] parameter(0)  t = (s32[], f32[3]) tuple(z, p)
      ROOT w = (s32[], f32[3]) while(t), condition=c, body=b }"""
    plain = hlo.parse(text % "")
    assert isinstance(unroll(plain.entry.root), Module)
    effect = hlo.parse(text % ", custom_call_has_side_effect=true")
    unrolled = unroll(effect.entry.root)
    assert isinstance(unrolled, Unknown)
    assert "side effects" in unrolled.reason


# ---------------------------------------------------------------- values that are drawn anew

CALLED: Final = """
draw { x = f32[] parameter(0)  o = f32[] constant(1)
  ROOT r = f32[] %s }
next { x = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(x), index=0
  o = s32[] constant(1)  j = s32[] add(i, o)  v = f32[] get-tuple-element(x), index=1
  n = f32[] call(v), to_apply=draw  ROOT r = (s32[], f32[]) tuple(j, n) }
less { x = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(x), index=0
  n = s32[] constant(3)  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY e { q = f32[] parameter(0)  p = pred[] parameter(1)  z = s32[] constant(0)
  t = (s32[], f32[]) tuple(z, q)  x = f32[1] reshape(q)
  %s  ROOT s = %s subtract(a, %s) }"""
DRAWS: Final = (
    "rng(x, o), distribution=rng_uniform",
    'custom-call(x), custom_call_target="f", custom_call_has_side_effect=true',
    "new-op(x)",
)

# fmt: off
PLACES = [
    ("f32[]",  "%s = f32[] call(q), to_apply=draw"),
    ("f32[]",  "%s = f32[] fusion(q), kind=kLoop, calls=draw"),
    ("f32[1]", "%s = f32[1] map(x), dimensions={0}, to_apply=draw"),
    ("f32[]",  "%s = f32[] conditional(p, q, q), true_computation=draw, false_computation=draw"),
    ("f32[]",  "w%s = (s32[], f32[]) while(t), condition=less, body=next  "
               "%s = f32[] get-tuple-element(w%s), index=1"),
]
# fmt: on


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("shape, place", PLACES)
def test_two_applications_of_a_computation_with_effects_are_not_equal(
    draw: str, shape: str, place: str
) -> None:
    lines = [place.replace("%s", name) for name in "ab"]
    twice = hlo.parse(CALLED % (draw, "\n  ".join(lines), shape, "b"))
    once = hlo.parse(CALLED % (draw, lines[0], shape, "a"))
    assert not isinstance(equivalent(twice, once), Proved)
    same = hlo.parse(CALLED % (draw, "\n  ".join([*lines, "n = f32[] negate(q)"]), shape, "b"))
    assert isinstance(equivalent(twice, same), Proved)


# ---------------------------------------------------------------- effects without a use

UNREAD: Final = """HloModule m
%s
ENTRY e { p = f32[3] parameter(0)  q = f32[3] parameter(1)  t = token[] after-all()
  %s  ROOT r = f32[3] add(p, q) }"""
LOOP: Final = """c { x = (s32[], f32[3]) parameter(0)  i = s32[] get-tuple-element(x), index=0
  n = s32[] constant(3)  ROOT l = pred[] compare(i, n), direction=LT }
b { x = (s32[], f32[3]) parameter(0)  i = s32[] get-tuple-element(x), index=0
  k = s32[] constant(1)  j = s32[] add(i, k)  v = f32[3] get-tuple-element(x), index=1
  w = f32[3] negate(v)  t = token[] after-all()  %s  ROOT r = (s32[], f32[3]) tuple(j, v) }"""
CALL: Final = 'u = f32[] custom-call(p), custom_call_target="f", custom_call_has_side_effect=%s%s'
CONFIG: Final = ', backend_config="%s"'
METADATA: Final = ', metadata={op_name="x"}'
WHILE: Final = """z = s32[] constant(0)  s = (s32[], f32[3]) tuple(z, p)
  w = (s32[], f32[3]) while(s), condition=c, body=b"""

# fmt: off
EFFECTS = [
    # computations, effects before               computations, effects after             are equal
    ("", "o = token[] outfeed(p, t)",            "", "o = token[] outfeed(p, t)",            True),
    ("", "o = token[] outfeed(p, t)",            "", "o = token[] outfeed(q, t)",            False),
    ("", "o = token[] outfeed(p, t)",            "", "",                                     False),
    ("", "a = f32[3] add(p, q) o = token[] outfeed(a, t)",
     "", "a = f32[3] add(q, p) o = token[] outfeed(a, t)",                                   True),
    ("", "a = f32[3] add(p, q) o = token[] outfeed(a, t)",
     "", "a = f32[3] subtract(p, q) o = token[] outfeed(a, t)",                              False),
    ("", "n = f32[3] negate(p) m = f32[3] negate(n) o = token[] outfeed(m, t)",
     "", "o = token[] outfeed(p, t)",                                                        True),
    ("", CALL % ("true", ""),                    "", "",                                     False),
    ("", CALL % ("false", ""),                   "", "",                                     True),
    ("", CALL % ("true", CONFIG % "a"),          "", CALL % ("true", CONFIG % "b"),          False),
    ("", CALL % ("true", ""),                    "", CALL % ("true", METADATA),              True),
    ("", "a = f32[3] all-reduce(p), to_apply=add", "", "",                                   True),
    (LOOP % "o = token[] outfeed(v, t)", WHILE,  LOOP % "o = token[] outfeed(w, t)", WHILE,  False),
    (LOOP % "o = token[] outfeed(v, t)", WHILE,  LOOP % "", WHILE,                           False),
    (LOOP % "o = token[] outfeed(v, t)", WHILE,  LOOP % "o = token[] outfeed(v, t)", WHILE,  True),
    (LOOP % "o = token[] outfeed(v, t)", WHILE,  "", "",                                     False),
    (LOOP % "", WHILE,                           "", "",                                     True),
    ("f { a = f32[3] parameter(0)  t = token[] after-all()  ROOT o = token[] outfeed(a, t) }",
     "o = token[] call(p), to_apply=f",          "", "o = token[] outfeed(p, t)",            True),
    ("f { a = f32[3] parameter(0)  t = token[] after-all()  ROOT o = token[] outfeed(a, t) }",
     "o = token[] call(p), to_apply=f",          "", "o = token[] outfeed(q, t)",            False),
]
# fmt: on
SUM: Final = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"


@pytest.mark.parametrize("called, effect, called_after, effect_after, are_equal", EFFECTS)
def test_programs_with_equal_results_and_other_effects_are_not_proved(
    called: str, effect: str, called_after: str, effect_after: str, are_equal: bool
) -> None:
    before = hlo.parse(UNREAD % (SUM + called, effect))
    after = hlo.parse(UNREAD % (SUM + called_after, effect_after))
    for pair in ((before, after), (after, before)):
        verdict = equivalent(*pair)
        assert isinstance(verdict, Proved) is are_equal, verdict
        assert are_equal or re.search("side effect|backend_config", str(verdict))
        assert isinstance(equivalent(*pair, level="reads"), Proved)
