"""The effect of fusing a producer into a consumer, against the traffic of the fused program."""

from __future__ import annotations

from fractions import Fraction

import pytest

import hlo
from hlo import Instruction
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.fusing import FusionEffect, fuse
from simplifier.unknown import Unknown, require_known

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"

# fmt: off
FUSED = [
    # parameters, producer, consumer; operands of the fusion; bytes saved, evaluations, flops added
    ("p = f32[6,10] parameter(0)", "x = f32[6,10] exponential(p)",
     "y = f32[6,10] negate(x)", 480, 1, 0),
    # each row of the sum is evaluated for each column
    ("p = f32[6,10] parameter(0)  z = f32[] parameter(1)",
     "x = f32[6] reduce(p, z), dimensions={1}, to_apply=add",
     "y = f32[6,4] broadcast(x), dimensions={0}", 48, 4, 3 * 54),
    # only a part is needed
    ("p = f32[60] parameter(0)", "x = f32[60] negate(p)",
     "y = f32[10] slice(x), slice={[5:15]}", 480 + 40 - 40 + 0, Fraction(1, 6), 10 - 60),
    # the consumer reads the producer twice, and an operand of the producer
    ("p = f32[9] parameter(0)", "x = f32[9] negate(p)",
     "y = f32[9] multiply(x, p)", 3 * 36, 1, 0),
    ("p = f32[9] parameter(0)  i = s32[] parameter(1)", "x = f32[9] negate(p)",
     "y = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3}", None, Fraction(1, 3), 3 - 9),
]
# fmt: on


@pytest.mark.parametrize(
    ("parameters", "producer", "consumer", "saved", "recompute", "flops"), FUSED
)
def test_the_effect_is_the_difference_to_the_fused_program(
    parameters: str,
    producer: str,
    consumer: str,
    saved: int | None,
    recompute: Fraction | int,
    flops: int,
) -> None:
    entry = hlo.parse(f"{ADD}ENTRY e {{ {parameters}  {producer}  ROOT {consumer} }}").entry
    effect = fuse(entry["x"], entry["y"])
    names = [p.name for p in entry.parameters]
    module = hlo.parse(
        f"{ADD}fused {{ {parameters}  {producer}  ROOT {consumer} }}\n"
        f"ENTRY e {{ {parameters}  ROOT f = {entry.root.shape} fusion({', '.join(names)}), "
        "kind=kLoop, calls=fused }"
    )
    (apart,) = traffic(module).instructions
    before, after = traffic(entry), apart
    assert effect.after == after.bytes
    assert (
        effect.recompute
        == recompute
        == require_known(after.recompute[module.computations["fused"]["x"]])
    )
    moved = require_known(before["x"].bytes).number + require_known(before["y"].bytes).number
    assert require_known(effect.saved) == moved - require_known(after.bytes).number
    if saved is not None:
        assert effect.saved == saved
    works = [require_known(each.evaluated).flops for each in (after, before["x"], before["y"])]
    assert effect.flops_added == flops == works[0] - works[1] - works[2]
    assert not effect.is_kept
    assert effect.reasons == ()


def test_a_producer_with_other_readers_is_kept() -> None:
    entry = hlo.parse("""ENTRY e {
      p = f32[9] parameter(0)  x = f32[9] negate(p)  y = f32[9] exponential(x)
      b = f32[3,3] bitcast(x)  w = f32[3,3] negate(b)
      ROOT t = (f32[9], f32[3,3], f32[9]) tuple(y, w, x) }""").entry
    effect = fuse(entry["x"], entry["y"])
    assert effect.is_kept
    assert effect.reasons == ("`w` and `t` read the producer, which is still computed",)
    assert effect.saved == 0  # the fusion reads p in place of x
    assert effect.flops_added == 9


def test_views_between_producer_and_consumer_are_followed() -> None:
    entry = hlo.parse("""
    two { p = f32[9] parameter(0)  n = f32[9] negate(p)  e = f32[9] add(n, n)
      ROOT t = (f32[9], f32[9]) tuple(n, e) }
    ENTRY e { p = f32[9] parameter(0)
      x = (f32[9], f32[9]) fusion(p), kind=kLoop, calls=two
      g = f32[9] get-tuple-element(x), index=1  h = f32[9] get-tuple-element(x), index=0
      b = f32[3,3] bitcast(g)  c = f32[3,3] bitcast(h)
      ROOT y = f32[2,3,3] broadcast(b), dimensions={1,2} }""").entry
    effect = fuse(entry["x"], entry["y"])
    assert (require_known(effect.recompute), require_known(effect.flops_added)) == (
        Fraction(2),
        2 * 18 - 18,
    )
    assert effect.saved == 36 + 72 + 36 + 72 - (36 + 72)


def effect_of(text: str) -> FusionEffect:
    entry = hlo.parse(text).entry
    return fuse(entry["x"], entry["y"])


def test_an_op_computed_as_a_whole_has_no_recompute_factor() -> None:
    effect = effect_of("""
    less { a = f32[] parameter(0)  b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=LT }
    ENTRY e { p = f32[9] parameter(0)  x = f32[9] negate(p)
      ROOT y = f32[9] sort(x), dimensions={0}, to_apply=less }""")
    assert isinstance(effect.recompute, Unknown)
    assert effect.reasons == ("sort `y` has no per-element rule",)
    assert isinstance(effect.flops_added, Unknown)
    assert "adds unknown flops; the producer is evaluated unknown times" in str(effect)


def test_an_update_of_a_fused_base_is_not_in_place() -> None:
    effect = effect_of("""ENTRY e { p = f32[90] parameter(0)  u = f32[2] parameter(1)
      i = s32[] parameter(2)  x = f32[90] negate(p)
      ROOT y = f32[90] dynamic-update-slice(x, u, i) }""")
    assert effect.consumer.written == 8
    assert effect.written == 360
    assert effect.reasons == ("the update `y` is no longer in place",)


def test_upper_bounds_are_not_subtracted() -> None:
    effect = effect_of("""ENTRY e { p = f32[9] parameter(0)  z = f32[] parameter(1)
      x = f32[9] negate(p)  ROOT y = f32[13] pad(x, z), padding=2_2 }""")
    assert isinstance(effect.saved, Unknown)
    assert "upper bounds" in effect.saved.reason
    assert f"the bytes saved are unknown: {effect.saved.reason}" in str(effect)


def test_repeated_transcendentals_are_named() -> None:
    effect = effect_of("""ENTRY e { p = f32[9] parameter(0)  x = f32[9] tanh(p)
      ROOT y = f32[4,9] broadcast(x), dimensions={1} }""")
    assert effect.flops_added == 0
    assert "adds 0 flops and 27 transcendentals; the producer is evaluated 4 times" in str(effect)


def test_few_of_many_readers_are_named() -> None:
    effect = effect_of("""ENTRY e { p = f32[9] parameter(0)  x = f32[9] negate(p)
      a = f32[9] negate(x)  b = f32[9] negate(x)  c = f32[9] negate(x)  d = f32[9] negate(x)
      ROOT y = f32[9] negate(x) }""")
    assert effect.reasons == (
        "`a`, `b`, `c` and 1 more read the producer, which is still computed",
    )


def test_instructions_that_cannot_be_fused_are_refused() -> None:
    entry = hlo.parse("""ENTRY e { p = f32[9] parameter(0)  x = f32[9] negate(p)
      w = f32[9] exponential(x)  ROOT y = f32[9] add(w, p) }""").entry

    def refuse(producer: Instruction, consumer: Instruction, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            fuse(producer, consumer)

    refuse(entry["x"], entry["y"], "`y` does not read `x`, except through other instructions")
    refuse(entry["y"], entry["x"], "`x` does not read `y`")
    refuse(entry["x"], entry["x"], "`x` does not read `x`")
    refuse(entry["p"], entry["x"], "parameter `p` computes no array: it cannot be fused")


def test_an_overwritten_producer_is_evaluated_at_most_once() -> None:
    """The start of the update does not matter: 7 of 9 elements of the base are needed."""
    text = """ENTRY e { p = f32[9] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
      n = f32[9] negate(p)  ROOT d = f32[9] dynamic-update-slice(n, u, i) }"""
    entry = hlo.parse(text).entry
    effect = fuse(entry["n"], entry["d"])
    assert effect.evaluated_grade == "may"
    assert require_known(effect.recompute) >= Fraction(7, 9)
    assert require_known(effect.flops_added) >= 7 - 9
    assert "adds at most" in str(effect)
    assert "evaluated at most once" in str(effect)


def test_operations_of_a_producer_that_are_an_upper_bound_are_not_subtracted() -> None:
    text = """f { p = f32[9] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
        n = f32[9] negate(p)  ROOT d = f32[9] dynamic-update-slice(n, u, i) }
      ENTRY e { p = f32[9] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
        f = f32[9] fusion(p, u, i), kind=kLoop, calls=f  ROOT a = f32[9] negate(f) }"""
    entry = hlo.parse(text).entry
    effect = fuse(entry["f"], entry["a"])
    assert effect.producer.evaluated_grade == "may"
    assert isinstance(effect.work_added, Unknown)
    assert "upper bound" in effect.work_added.reason
