"""Models that are sharded by hand in the literature, as HLO texts, with their shardings.

Each model has the collectives that experts write: kind and axes of each, in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
MAX = "max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }"
PRODUCT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"

# Two blocks. Shoeybi et al., "Megatron-LM", 2019, section 3: columns of the first matrix, rows of
# the second one, a single all-reduce for each block.
MLP = f"""HloModule mlp
ENTRY e {{
  x = f32[32,64] parameter(0)
  a0 = f32[64,128] parameter(1)
  b0 = f32[128,64] parameter(2)
  a1 = f32[64,128] parameter(3)
  b1 = f32[128,64] parameter(4)
  c0 = f32[128] parameter(5)
  h0 = f32[32,128] dot(x, a0), {PRODUCT}
  c0b = f32[32,128] broadcast(c0), dimensions={{1}}
  s0 = f32[32,128] add(h0, c0b)
  t0 = f32[32,128] tanh(s0)
  y0 = f32[32,64] dot(t0, b0), {PRODUCT}
  r0 = f32[32,64] add(x, y0)
  h1 = f32[32,128] dot(r0, a1), {PRODUCT}
  t1 = f32[32,128] tanh(h1)
  y1 = f32[32,64] dot(t1, b1), {PRODUCT}
  ROOT r1 = f32[32,64] add(r0, y1)
}}
"""

# Heads are split; a single all-reduce after the projection of the output.
ATTENTION = f"""HloModule attention
{ADD}
{MAX}
ENTRY e {{
  x = f32[4,16,32] parameter(0)
  wq = f32[32,8,8] parameter(1)
  wk = f32[32,8,8] parameter(2)
  wv = f32[32,8,8] parameter(3)
  wo = f32[8,8,32] parameter(4)
  q = f32[4,16,8,8] dot(x, wq), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
  k = f32[4,16,8,8] dot(x, wk), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
  v = f32[4,16,8,8] dot(x, wv), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
  s = f32[4,8,16,16] dot(q, k), lhs_batch_dims={{0,2}}, rhs_batch_dims={{0,2}},
    lhs_contracting_dims={{3}}, rhs_contracting_dims={{3}}
  low = f32[] constant(-inf)
  m = f32[4,8,16] reduce(s, low), dimensions={{3}}, to_apply=max
  mb = f32[4,8,16,16] broadcast(m), dimensions={{0,1,2}}
  d = f32[4,8,16,16] subtract(s, mb)
  ex = f32[4,8,16,16] exponential(d)
  zero = f32[] constant(0)
  z = f32[4,8,16] reduce(ex, zero), dimensions={{3}}, to_apply=add
  zb = f32[4,8,16,16] broadcast(z), dimensions={{0,1,2}}
  p = f32[4,8,16,16] divide(ex, zb)
  o = f32[4,8,16,8] dot(p, v), lhs_batch_dims={{0,1}}, rhs_batch_dims={{0,2}},
    lhs_contracting_dims={{3}}, rhs_contracting_dims={{1}}
  ROOT y = f32[4,16,32] dot(o, wo), lhs_contracting_dims={{1,3}}, rhs_contracting_dims={{0,1}}
}}
"""

# Lepikhin et al., "GShard", 2020, section 3.2: groups of tokens and experts on the same devices;
# one all-to-all dispatches the tokens to the experts, one returns them.
MIXTURE = """HloModule mixture
ENTRY e {
  x = f32[8,16,32] parameter(0)
  mask = f32[8,16,8,4] parameter(1)
  w = f32[8,32,64] parameter(2)
  u = f32[8,64,32] parameter(3)
  d = f32[8,8,4,32] dot(mask, x), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={1}, rhs_contracting_dims={1}
  h = f32[8,8,4,64] dot(d, w), lhs_batch_dims={1}, rhs_batch_dims={0},
    lhs_contracting_dims={3}, rhs_contracting_dims={1}
  t = f32[8,8,4,64] tanh(h)
  y = f32[8,8,4,32] dot(t, u), lhs_batch_dims={0}, rhs_batch_dims={0},
    lhs_contracting_dims={3}, rhs_contracting_dims={1}
  ROOT c = f32[8,16,32] dot(mask, y), lhs_batch_dims={0}, rhs_batch_dims={1},
    lhs_contracting_dims={2,3}, rhs_contracting_dims={0,2}
}
"""

# A step of gradient descent on the sum of squares; experts sum the gradients of the weights.
TRAINING = f"""HloModule training
ENTRY e {{
  x = f32[64,32] parameter(0)
  target = f32[64,16] parameter(1)
  a = f32[32,48] parameter(2)
  b = f32[48,16] parameter(3)
  h = f32[64,48] dot(x, a), {PRODUCT}
  t = f32[64,48] tanh(h)
  y = f32[64,16] dot(t, b), {PRODUCT}
  dy = f32[64,16] subtract(y, target)
  db = f32[48,16] dot(t, dy), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  dt = f32[64,48] dot(dy, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  one = f32[] constant(1)
  ones = f32[64,48] broadcast(one), dimensions={{}}
  tt = f32[64,48] multiply(t, t)
  dtanh = f32[64,48] subtract(ones, tt)
  dh = f32[64,48] multiply(dt, dtanh)
  da = f32[32,48] dot(x, dh), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  rate = f32[] constant(0.0625)
  ra = f32[32,48] broadcast(rate), dimensions={{}}
  sa = f32[32,48] multiply(da, ra)
  na = f32[32,48] subtract(a, sa)
  rb = f32[48,16] broadcast(rate), dimensions={{}}
  sb = f32[48,16] multiply(db, rb)
  nb = f32[48,16] subtract(b, sb)
  ROOT out = (f32[32,48], f32[48,16]) tuple(na, nb)
}}
"""


class Model(NamedTuple):
    """A model, its shardings, and the collectives that experts write.

    Attributes:
        text: the program.
        mesh: its mesh.
        specs: the axes of each dimension of parameters.
        out_specs: the axes of each dimension of each result; None if they are free.
        collectives: kind and axes of each collective, in alphabetic order.
    """

    text: str
    mesh: Mapping[str, int]
    specs: Mapping[str, Any]
    out_specs: Any
    collectives: tuple[tuple[str, str], ...]


_WEIGHTS = {"wq": (None, "x"), "wk": (None, "x"), "wv": (None, "x"), "wo": ("x",)}
_COLUMNS, _ROWS = (None, "x"), ("x", None)
_BLOCKS = {"a0": _COLUMNS, "a1": _COLUMNS, "b0": _ROWS, "b1": _ROWS, "c0": ("x",)}
_BATCH = {"x": ("x",), "target": ("x",)}
_FSDP = {**_BATCH, "a": ("x", None), "b": ("x", None)}
_REDUCES, _SCATTERS = ("all-reduce", "x"), ("reduce-scatter", "x")

MODELS: dict[str, Model] = {
    "mlp": Model(MLP, {"x": 8}, _BLOCKS, None, (_REDUCES,) * 2),
    "mlp, data and tensor parallel": Model(
        MLP, {"y": 2, "x": 4}, {**_BLOCKS, "x": ("y",)}, None, (_REDUCES,) * 2
    ),
    "attention": Model(ATTENTION, {"x": 8}, _WEIGHTS, None, (_REDUCES,)),
    "attention, batch and heads": Model(
        ATTENTION, {"y": 2, "x": 4}, {**_WEIGHTS, "x": ("y",)}, None, (_REDUCES,)
    ),
    "mixture of experts": Model(
        MIXTURE,
        {"x": 8},
        {"x": ("x",), "mask": ("x",), "w": ("x",), "u": ("x",)},
        [("x",)],
        (("all-to-all", "x"),) * 2,
    ),
    "data parallel training": Model(TRAINING, {"x": 8}, _BATCH, None, (_REDUCES,) * 2),
    "fully sharded training": Model(
        TRAINING.replace("f32[64,", "f32[512,"),
        {"x": 8},
        _FSDP,
        None,
        (*(("all-gather", "x"),) * 2, *(_SCATTERS,) * 2),
    ),
}
