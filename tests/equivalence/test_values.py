"""Element formulas: pairs of programs that compute the same, and near misses that do not."""

import pytest

import hlo
from indexing import equivalent
from indexing.equivalence.values.engine import compare_values
from indexing.equivalence.values.results import EqualFormulas, Residual

ADD = "add.f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
EXTREMA = """
max.f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
min.f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] minimum(a, b) }
or.w { a = u16[] parameter(0)  b = u16[] parameter(1)  ROOT c = u16[] or(a, b) }
add.bf { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] add(a, b) }
add.s { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }
max.bf { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] maximum(a, b) }
"""
X = "x = f32[4,6] parameter(0)"
XY = f"{X}  y = f32[6,5] parameter(1)"
BLOCKS = """x = s32[6] parameter(0)  z = s32[] constant(0)  m = s32[2,3] reshape(x)
  w = s32[2,3] reduce-window(m, z), window={{size=1x3 pad=0_0x2_0}}, to_apply=add.s
  t = s32[2] reduce(m, z), dimensions={{1}}, to_apply=add.s
  e = s32[2] reduce-window(t, z), window={{size=2 pad={padding}}}, to_apply=add.s
  b = s32[2,3] broadcast(e), dimensions={{0}}  s = s32[2,3] add(w, b)
  ROOT r = s32[6] reshape(s)"""
BYTES = """x = u32[3] parameter(0)  b = u32[3,4] broadcast(x), dimensions={{0}}
  i = u32[3,4] iota(), iota_dimension=1  c = u32[] constant({place})
  e = u32[3,4] broadcast(c), dimensions={{}}  n = u32[3,4] multiply(i, e)
  s = u32[3,4] shift-right-logical(b, n)  m = u32[] constant(255)
  o = u32[3,4] broadcast(m), dimensions={{}}  a = u32[3,4] and(s, o)
  ROOT r = u8[3,4] convert(a)"""
WORD = """x = u8[3,2] parameter(0)  w = u16[3,2] convert(x)  i = u16[3,2] iota(), iota_dimension=1
  c = u16[] constant({place})  e = u16[3,2] broadcast(c), dimensions={{}}
  n = u16[3,2] multiply(i, e)  s = u16[3,2] shift-left(w, n)  z = u16[] constant(0)
  ROOT r = u16[3] reduce(s, z), dimensions={{1}}, to_apply=or.w"""
WHOLE = """x = f32[4,2] parameter(0)
  ROOT r = f32[4,2] all-to-all(x), replica_groups={{0,1}}, dimensions={0}"""
PARTS = """x = f32[4,2] parameter(0)  a = f32[2,2] slice(x), slice={{[0:2], [0:2]}}
  b = f32[2,2] slice(x), slice={{[2:4], [0:2]}}
  t = (f32[2,2], f32[2,2]) all-to-all(a, b), replica_groups={{{{0,1}}}}
  g = f32[2,2] get-tuple-element(t), index=0  h = f32[2,2] get-tuple-element(t), index=1
  ROOT r = f32[4,2] concatenate({order}), dimensions={{0}}"""
PROMOTED = """x = bf16[4] parameter(0)  w = f32[4] convert(x)
  s = f32[4] all-reduce(w), replica_groups={{{{0,1}}}}, to_apply={combiner}
  ROOT r = bf16[4] convert(s)"""

# fmt: off
EQUAL = {
    "fusions are inlined": (
        f"{X}  ROOT r = f32[4,6] negate(x)",
        f"{X}  ROOT r = f32[4,6] fusion(x), kind=kLoop, calls=negated"),
    "a transpose of an elementwise op": (
        f"{X}  n = f32[4,6] negate(x)  ROOT r = f32[6,4] transpose(n), dimensions={{1,0}}",
        f"{X}  t = f32[6,4] transpose(x), dimensions={{1,0}}  ROOT r = f32[6,4] negate(t)"),
    "a reshape is a bitcast": (
        f"{X}  ROOT r = f32[2,2,6] reshape(x)",
        f"{X}  ROOT r = f32[2,2,6] bitcast(x)"),
    "a slice of a concatenation": (
        f"{X}  c = f32[8,6] concatenate(x, x), dimensions={{0}}  "
        "ROOT r = f32[3,6] slice(c), slice={[5:8],[0:6]}",
        f"{X}  ROOT r = f32[3,6] slice(x), slice={{[1:4],[0:6]}}"),
    "a concatenation with a constant is a pad": (
        f"{X}  z = f32[] constant(0)  b = f32[4,2] broadcast(z), dimensions={{}}  "
        "ROOT r = f32[4,8] concatenate(b, x), dimensions={1}",
        f"{X}  z = f32[] constant(0)  ROOT r = f32[4,8] pad(x, z), padding=0_0x2_0"),
    "a dot of transposed operands": (
        f"{XY}  ROOT r = f32[4,5] dot(x, y), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={0}",
        f"{XY}  t = f32[5,6] transpose(y), dimensions={{1,0}}  d = f32[5,4] dot(t, x), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}  "
        "ROOT r = f32[4,5] transpose(d), dimensions={1,0}"),
    "a dot is a sum of products": (
        f"{XY}  ROOT r = f32[4,5] dot(x, y), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={0}",
        f"{XY}  a = f32[4,6,5] broadcast(x), dimensions={{0,1}}  "
        "b = f32[4,6,5] broadcast(y), dimensions={1,2}  m = f32[4,6,5] multiply(a, b)  "
        "z = f32[] constant(0)  ROOT r = f32[4,5] reduce(m, z), dimensions={1}, to_apply=add.f"),
    "a reduction of a reshaped array": (
        f"{X}  f = f32[24] reshape(x)  z = f32[] constant(0)  "
        "ROOT r = f32[] reduce(f, z), dimensions={0}, to_apply=add.f",
        f"{X}  z = f32[] constant(0)  "
        "ROOT r = f32[] reduce(x, z), dimensions={1,0}, to_apply=add.f"),
    "constants in the arithmetic of the type": (
        "x = u8[3] parameter(0)  a = u8[] constant(200)  b = u8[] constant(100)  "
        "s = u8[] add(a, b)  t = u8[3] broadcast(s), dimensions={}  ROOT r = u8[3] and(x, t)",
        "x = u8[3] parameter(0)  s = u8[] constant(44)  t = u8[3] broadcast(s), dimensions={}  "
        "ROOT r = u8[3] and(t, x)"),
    "sums of integers wrap around": (
        "x = u32[3] parameter(0)  c = u32[3] constant({7,7,7})  a = u32[3] add(x, c)  "
        "d = u32[3] constant({4294967295,4294967295,4294967295})  ROOT r = u32[3] add(a, d)",
        "x = u32[3] parameter(0)  c = u32[3] constant({6,6,6})  ROOT r = u32[3] add(x, c)"),
    "a mask of indices": (
        f"{X}  i = s32[4,6] iota(), iota_dimension=1  k = s32[] constant(3)  "
        "b = s32[4,6] broadcast(k), dimensions={}  p = pred[4,6] compare(i, b), direction=LT  "
        "z = f32[] constant(0)  w = f32[4,6] broadcast(z), dimensions={}  "
        "ROOT r = f32[4,6] select(p, x, w)",
        f"{X}  s = f32[4,3] slice(x), slice={{[0:4],[0:3]}}  z = f32[] constant(0)  "
        "ROOT r = f32[4,6] pad(s, z), padding=0_0x0_3"),
    "a fold over a padded window": (
        "x = f32[5] parameter(0)  z = f32[] constant(0)  p = f32[7] pad(x, z), padding=2_0  "
        "ROOT r = f32[5] reduce-window(p, z), window={size=3}, to_apply=add.f",
        "x = f32[5] parameter(0)  z = f32[] constant(0)  "
        "ROOT r = f32[5] reduce-window(x, z), window={size=3 pad=2_0}, to_apply=add.f"),
    "a maximum of constants": (
        "x = f32[3] parameter(0)  c = f32[4] constant({2,-1,7,3})  z = f32[] constant(-inf)  "
        "m = f32[] reduce(c, z), dimensions={0}, to_apply=max.f  "
        "b = f32[3] broadcast(m), dimensions={}  ROOT r = f32[3] multiply(x, b)",
        "x = f32[3] parameter(0)  m = f32[] constant(7)  "
        "b = f32[3] broadcast(m), dimensions={}  ROOT r = f32[3] multiply(x, b)"),
    "a maximum in another type": (
        "x = bf16[4] parameter(0)  z = bf16[] constant(-inf)  "
        "ROOT r = bf16[] reduce(x, z), dimensions={0}, to_apply=max.bf",
        "x = bf16[4] parameter(0)  w = f32[4] convert(x)  z = f32[] constant(-inf)  "
        "m = f32[] reduce(w, z), dimensions={0}, to_apply=max.f  ROOT r = bf16[] convert(m)"),
    "constants of complex numbers": (
        "x = c64[3] parameter(0)  r = f32[] constant(2)  i = f32[] constant(-1)  "
        "c = c64[] complex(r, i)  b = c64[3] broadcast(c), dimensions={}  "
        "ROOT m = c64[3] multiply(x, b)",
        "x = c64[3] parameter(0)  c = c64[] constant((2,-1))  "
        "b = c64[3] broadcast(c), dimensions={}  ROOT m = c64[3] multiply(x, b)"),
    "a selection by the complement": (
        f"{X}  y = f32[4,6] parameter(1)  p = pred[4,6] compare(x, y), direction=NE  "
        "ROOT r = f32[4,6] select(p, x, y)",
        f"{X}  y = f32[4,6] parameter(1)  p = pred[4,6] compare(x, y), direction=EQ  "
        "ROOT r = f32[4,6] select(p, y, x)"),
    "a cumulative sum by blocks": (
        "x = s32[6] parameter(0)  z = s32[] constant(0)  "
        "ROOT r = s32[6] reduce-window(x, z), window={size=6 pad=5_0}, to_apply=add.s",
        f"{BLOCKS.format(padding='2_-1')}"),
    "constants with one step": (
        "x = f32[4] parameter(0)  z = f32[] constant(0)  o = f32[1] constant({1})  "
        "p = f32[4] pad(o, z), padding=0_3  ROOT r = f32[4] multiply(x, p)",
        "x = f32[4] parameter(0)  p = f32[4] constant({1,0,0,0})  "
        "ROOT r = f32[4] multiply(x, p)"),
    "bytes of a word": (
        "x = u32[3] parameter(0)  ROOT r = u8[3,4] bitcast-convert(x)", BYTES.format(place=8)),
    "a word of bytes": (
        "x = u8[3,2] parameter(0)  ROOT r = u16[3] bitcast-convert(x)", WORD.format(place=8)),
    "an all-to-all by parts": (WHOLE, PARTS.format(order="g, h")),
    "a sum among devices in another type": (
        "x = bf16[4] parameter(0)  ROOT r = bf16[4] all-reduce(x), replica_groups={{0,1}}, "
        "to_apply=add.bf", PROMOTED.format(combiner="add.f")),
    "the sign of a mask of constants": (
        "x = f32[4] parameter(0)  c = f32[2] constant({-0.5,-0.5})  z = f32[] constant(-0)  "
        "m = f32[4] pad(c, z), padding=1_1  ROOT r = f32[4] multiply(x, m)",
        "x = f32[4] parameter(0)  c = f32[2] constant({0.5,0.5})  z = f32[] constant(0)  "
        "m = f32[4] pad(c, z), padding=1_1  t = f32[4] multiply(x, m)  ROOT r = f32[4] negate(t)"),
    "clamp is a minimum of a maximum": (
        f"{X}  a = f32[] constant(-1)  b = f32[] constant(2)  ROOT r = f32[4,6] clamp(a, x, b)",
        f"{X}  a = f32[] constant(-1)  b = f32[] constant(2)  "
        "lo = f32[4,6] broadcast(a), dimensions={}  hi = f32[4,6] broadcast(b), dimensions={}  "
        "m = f32[4,6] maximum(lo, x)  ROOT r = f32[4,6] minimum(hi, m)"),
    "clamped starts are added": (
        f"{X}  i = s32[] parameter(1)  j = s32[] parameter(2)  z = s32[] constant(0)  "
        "a = f32[4,5] dynamic-slice(x, z, i), dynamic_slice_sizes={4,5}  "
        "ROOT r = f32[4,2] dynamic-slice(a, z, j), dynamic_slice_sizes={4,2}",
        f"{X}  i = s32[] parameter(1)  j = s32[] parameter(2)  z = s32[] constant(0)  "
        "one = s32[] constant(1)  three = s32[] constant(3)  k = s32[] clamp(z, i, one)  "
        "high = s32[] minimum(j, three)  low = s32[] maximum(high, z)  s = s32[] add(k, low)  "
        "ROOT r = f32[4,2] dynamic-slice(x, z, s), dynamic_slice_sizes={4,2}"),
    "a start reached through a bitcast": (
        f"{X}  s = s32[1] parameter(1)  i = s32[] reshape(s)  z = s32[] constant(0)  "
        "ROOT r = f32[2,6] dynamic-slice(x, i, z), dynamic_slice_sizes={2,6}",
        f"{X}  s = s32[1] parameter(1)  i = s32[] bitcast(s)  z = s32[] constant(0)  "
        "ROOT r = f32[2,6] dynamic-slice(x, i, z), dynamic_slice_sizes={2,6}"),
}
DIFFERENT = {
    "the sign of the zeros beside a mask": (
        "x = f32[4] parameter(0)  c = f32[2] constant({-0.5,-0.5})  z = f32[] constant(0)  "
        "m = f32[4] pad(c, z), padding=1_1  ROOT r = f32[4] multiply(x, m)",
        "x = f32[4] parameter(0)  c = f32[2] constant({0.5,0.5})  z = f32[] constant(0)  "
        "m = f32[4] pad(c, z), padding=1_1  t = f32[4] multiply(x, m)  ROOT r = f32[4] negate(t)"),
    "an all-to-all by parts in another order": (WHOLE, PARTS.format(order="h, g")),
    "a maximum among devices in another type": (
        "x = bf16[4] parameter(0)  ROOT r = bf16[4] all-reduce(x), replica_groups={{0,1}}, "
        "to_apply=add.bf", PROMOTED.format(combiner="max.f")),
    "a manual region of devices in another order": (
        "x = f32[8] parameter(0)  c = f32[8] copy(x), sharding={devices=[8]<=[8]}  "
        'ROOT r = f32[1] custom-call(c), custom_call_target="SPMDFullToShardShape", '
        "sharding={manual}",
        "x = f32[8] parameter(0)  c = f32[8] copy(x), sharding={devices=[8]<=[2,4]T(1,0)}  "
        'ROOT r = f32[1] custom-call(c), custom_call_target="SPMDFullToShardShape", '
        "sharding={manual}"),
    "bytes that overlap": (
        "x = u32[3] parameter(0)  ROOT r = u8[3,4] bitcast-convert(x)", BYTES.format(place=7)),
    "a word of bytes that overlap": (
        "x = u8[3,2] parameter(0)  ROOT r = u16[3] bitcast-convert(x)", WORD.format(place=7)),
    "a cumulative sum with its own block twice": (
        "x = s32[6] parameter(0)  z = s32[] constant(0)  "
        "ROOT r = s32[6] reduce-window(x, z), window={size=6 pad=5_0}, to_apply=add.s",
        f"{BLOCKS.format(padding='1_0')}"),
    "zeros of another sign": (
        "x = f32[3] parameter(0)  c = f32[3] constant({0,-0,1})  ROOT r = f32[3] divide(x, c)",
        "x = f32[3] parameter(0)  c = f32[3] constant({0,0,1})  ROOT r = f32[3] divide(x, c)"),
    "a selection by the opposite order of floats": (
        f"{X}  y = f32[4,6] parameter(1)  p = pred[4,6] compare(x, y), direction=LE  "
        "ROOT r = f32[4,6] select(p, x, y)",
        f"{X}  y = f32[4,6] parameter(1)  p = pred[4,6] compare(y, x), direction=LT  "
        "ROOT r = f32[4,6] select(p, y, x)"),
    "a window padded by another value": (
        "x = f32[5] parameter(0)  z = f32[] constant(0)  o = f32[] constant(1)  "
        "p = f32[7] pad(x, o), padding=2_0  "
        "ROOT r = f32[5] reduce-window(p, z), window={size=3}, to_apply=add.f",
        "x = f32[5] parameter(0)  z = f32[] constant(0)  "
        "ROOT r = f32[5] reduce-window(x, z), window={size=3 pad=2_0}, to_apply=add.f"),
    "a window padded at the other end": (
        "x = f32[5] parameter(0)  z = f32[] constant(0)  p = f32[7] pad(x, z), padding=0_2  "
        "ROOT r = f32[5] reduce-window(p, z), window={size=3}, to_apply=add.f",
        "x = f32[5] parameter(0)  z = f32[] constant(0)  "
        "ROOT r = f32[5] reduce-window(x, z), window={size=3 pad=2_0}, to_apply=add.f"),
    "a minimum of constants": (
        "x = f32[3] parameter(0)  c = f32[4] constant({2,-1,7,3})  z = f32[] constant(inf)  "
        "m = f32[] reduce(c, z), dimensions={0}, to_apply=min.f  "
        "b = f32[3] broadcast(m), dimensions={}  ROOT r = f32[3] multiply(x, b)",
        "x = f32[3] parameter(0)  m = f32[] constant(7)  "
        "b = f32[3] broadcast(m), dimensions={}  ROOT r = f32[3] multiply(x, b)"),
    "another permutation": (
        "x = f32[3,3,3] parameter(0)  ROOT r = f32[3,3,3] transpose(x), dimensions={1,2,0}",
        "x = f32[3,3,3] parameter(0)  ROOT r = f32[3,3,3] transpose(x), dimensions={2,0,1}"),
    "swapped operands of a difference": (
        f"{X}  y = f32[4,6] parameter(1)  ROOT r = f32[4,6] subtract(x, y)",
        f"{X}  y = f32[4,6] parameter(1)  ROOT r = f32[4,6] subtract(y, x)"),
    "another slice": (
        f"{X}  ROOT r = f32[3,6] slice(x), slice={{[0:3],[0:6]}}",
        f"{X}  ROOT r = f32[3,6] slice(x), slice={{[1:4],[0:6]}}"),
    "another reduced dimension": (
        "x = f32[4,4] parameter(0)  z = f32[] constant(0)  "
        "ROOT r = f32[4] reduce(x, z), dimensions={0}, to_apply=add.f",
        "x = f32[4,4] parameter(0)  z = f32[] constant(0)  "
        "ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=add.f"),
    "a clamp that is dropped": (
        "x = f32[9] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)  "
        "a = f32[6] dynamic-slice(x, i), dynamic_slice_sizes={6}  "
        "ROOT r = f32[2] dynamic-slice(a, j), dynamic_slice_sizes={2}",
        "x = f32[9] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)  "
        "k = s32[] add(i, j)  ROOT r = f32[2] dynamic-slice(x, k), dynamic_slice_sizes={2}"),
    "starts with another clamp": (
        "x = f32[9] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)  "
        "a = f32[6] dynamic-slice(x, i), dynamic_slice_sizes={6}  "
        "ROOT r = f32[2] dynamic-slice(a, j), dynamic_slice_sizes={2}",
        "x = f32[9] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)  "
        "z = s32[] constant(0)  three = s32[] constant(3)  k = s32[] clamp(z, i, three)  "
        "l = s32[] clamp(z, j, three)  s = s32[] add(k, l)  "
        "ROOT r = f32[2] dynamic-slice(x, s), dynamic_slice_sizes={2}"),
    "another constant": (
        f"{X}  c = f32[] constant(2)  b = f32[4,6] broadcast(c), dimensions={{}}  "
        "ROOT r = f32[4,6] multiply(x, b)",
        f"{X}  c = f32[] constant(2.0000002)  b = f32[4,6] broadcast(c), dimensions={{}}  "
        "ROOT r = f32[4,6] multiply(x, b)"),
    "narrowed before it is widened": (
        "x = s32[3] parameter(0)  a = s8[3] convert(x)  ROOT r = s32[3] convert(a)",
        "x = s32[3] parameter(0)  ROOT r = s32[3] copy(x)"),
    "a sum that is added twice to a carry": (
        f"{X}  z = f32[] constant(1)  ROOT r = f32[6] reduce(x, z), dimensions={{0}}, "
        "to_apply=add.f",
        f"{X}  z = f32[] constant(0)  ROOT r = f32[6] reduce(x, z), dimensions={{0}}, "
        "to_apply=add.f"),
}
# fmt: on


def program(body: str) -> hlo.Module:
    negated = "negated { q = f32[4,6] parameter(0)  ROOT n = f32[4,6] negate(q) }"
    return hlo.parse(f"HloModule m\n{ADD}\n{EXTREMA}\n{negated}\nENTRY e {{ {body} }}")


@pytest.mark.parametrize("name", EQUAL)
def test_equal_formulas_are_proved(name: str) -> None:
    before, after = map(program, EQUAL[name])
    for one, two in ((before, after), (after, before)):
        (result,) = compare_values(one.entry, two.entry, exact_arithmetic=True)
        assert isinstance(result, EqualFormulas), result


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_formulas_are_not_proved(name: str) -> None:
    before, after = map(program, DIFFERENT[name])
    for one, two in ((before, after), (after, before)):
        (result,) = compare_values(one.entry, two.entry)
        assert isinstance(result, Residual)
        assert result.reason


def test_nested_operands_that_differ_are_compared_once() -> None:
    """Each sum has four operands to pair; comparing them anew at each depth never ends."""
    depth = 180
    lines = ["x0 = f32[] parameter(0)"]
    for k in range(depth):
        lines.append(f"a{k} = f32[] sine(x{k})  b{k} = f32[] cosine(x{k})")
        lines.append(f"x{k + 1} = f32[] maximum(a{k}, b{k})")
    body = "  ".join(lines)
    before = program(f"{body}  ROOT r = f32[] negate(x{depth})")
    after = program(f"{body.replace('sine(x0)', 'tan(x0)', 1)}  ROOT r = f32[] negate(x{depth})")
    (result,) = compare_values(before.entry, after.entry)
    assert isinstance(result, Residual)
    assert "tan" in result.after


def test_the_text_of_a_reduction_has_the_bounds_of_its_conditions() -> None:
    text = """x = f32[5] parameter(0)  z = f32[] constant(0)
      w = f32[5] reduce-window(x, z), window={size=2 pad=1_0}, to_apply=add.f
      ROOT r = f32[5] %s(w)"""
    before, after = (program(text % opcode) for opcode in ("negate", "abs"))
    (result,) = compare_values(before.entry, after.entry)
    assert isinstance(result, Residual)
    assert "where d0 + s0 in [1, 5])" in result.before


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ("replica_groups={{0,1}}", "replica_groups={{0,1}}, channel_id=1", False),
        ("replica_groups={{0,1}}", "replica_groups=[1,2]<=[2]", True),
        ("replica_groups={{0,1}}", "replica_groups={}", True),
        (
            "replica_groups={{0,1}}, channel_id=1",
            "replica_groups={{0,1,2,3}}, channel_id=2, use_global_device_ids=true",
            True,
        ),
    ],
)
def test_groups_of_collectives_are_compared_by_their_devices(
    one: str, other: str, is_equal: bool
) -> None:
    text = """HloModule m, replica_count=2, num_partitions=2
      add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
      ENTRY e { p = f32[3] parameter(0)  ROOT r = f32[3] all-reduce(p), to_apply=add, %s }"""
    assert bool(equivalent(hlo.parse(text % one), hlo.parse(text % other))) == is_equal


def test_a_copy_between_memories_keeps_values() -> None:
    """As XLA:TPU copies an array into its vector memory, before a fusion reads it."""
    plain = "ENTRY e { p = f32[4,8] parameter(0)  ROOT n = f32[4,8] negate(p) }"
    copied = """ENTRY e {
      p = f32[4,8]{1,0} parameter(0)
      s = (f32[4,8]{1,0:S(1)}, f32[4,8]{1,0}, u32[]) copy-start(p)
      d = f32[4,8]{1,0:S(1)} copy-done(s)
      ROOT n = f32[4,8]{1,0} negate(d)
    }"""
    assert equivalent(hlo.parse(plain), hlo.parse(copied))
    narrowed = copied.replace("f32[4,8]{1,0:S(1)}", "bf16[4,8]{1,0:S(1)}").replace(
        "ROOT n = f32", "c = f32[4,8]{1,0} convert(d)  ROOT n = f32"
    )
    verdict = equivalent(hlo.parse(plain), hlo.parse(narrowed.replace("negate(d)", "negate(c)")))
    assert not verdict


def test_the_text_of_a_conversion_has_its_type() -> None:
    text = """p = s32[3] parameter(0)  n = u8[3] convert(p)  w = f32[3] convert(n)
      ROOT r = f32[3] %s(w)"""
    before, after = (program(text % opcode) for opcode in ("tan", "tanh"))
    (result,) = compare_values(before.entry, after.entry)
    assert isinstance(result, Residual)
    assert result.after == "tanh(convert f32(convert u8(parameter 0[d0])))"
