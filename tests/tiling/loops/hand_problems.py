"""Families of problems for the enumeration of tilings with loops, written by hand."""

from __future__ import annotations

from tests.tiling.loops.loop_oracle import HandArray, HandPhase, HandRead, Problem

REDUCERS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
"""


def _fuse(arguments: str, result: str, body: str) -> str:
    """Return a module whose entry is one fusion with this body; arguments such as `a: f32[2]`."""
    pairs = [each.split(": ") for each in arguments.split("; ")]
    inner = "\n".join([f"{n} = {t} parameter({k})" for k, (n, t) in enumerate(pairs)])
    names = ", ".join([name for name, _ in pairs])
    return (
        f"{REDUCERS}\nbody {{\n{inner}\n{body}\n}}\nENTRY e {{\n{inner}\n"
        f"ROOT f = {result} fusion({names}), kind=kLoop, calls=body }}"
    )


def dot(m: int, n: int, k: int, kind: str = "bf16", width: int = 2) -> Problem:
    """Return ``out[i, j] = sum_k a[i, k] b[k, j]``."""
    return Problem(
        f"ENTRY e {{ a = {kind}[{m},{k}] parameter(0)  b = {kind}[{k},{n}] parameter(1) "
        f"ROOT d = {kind}[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={0} }",
        {"i": m, "j": n},
        {"k": k},
        {"a": HandArray((m, k), width), "b": HandArray((k, n), width)},
        (
            HandPhase(
                ("k",),
                (
                    HandRead("a", "i k", lambda i, k: (i, k)),
                    HandRead("b", "k j", lambda k, j: (k, j)),
                ),
            ),
        ),
        width,
    )


def dot_with_epilogue(m: int, n: int, k: int) -> Problem:
    """Return a dot plus a bias of each column plus a residual of each element."""
    plain = dot(m, n, k)
    t = f"bf16[{m},{n}]"
    text = _fuse(
        f"a: bf16[{m},{k}]; b: bf16[{k},{n}]; bias: bf16[{n}]; res: {t}",
        t,
        f"d = {t} dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
        f"wide = {t} broadcast(bias), dimensions={{1}}\nx = {t} add(d, wide)\n"
        f"ROOT y = {t} add(x, res)",
    )
    epilogue = HandPhase(
        (),
        (HandRead("bias", "j", lambda j: (j,)), HandRead("res", "i j", lambda i, j: (i, j))),
    )
    arrays = plain.arrays | {"bias": HandArray((n,), 2), "res": HandArray((m, n), 2)}
    return Problem(text, plain.dims, plain.loops, arrays, (*plain.phases, epilogue), 2)


def batched_dot(batch: int, m: int, n: int, k: int) -> Problem:
    """Return a batched dot whose left operand is transposed and scaled by row."""
    text = _fuse(
        f"a: f32[{batch},{k},{m}]; b: f32[{batch},{k},{n}]; s: f32[{m}]",
        f"f32[{batch},{m},{n}]",
        f"t = f32[{batch},{m},{k}] transpose(a), dimensions={{0,2,1}}\n"
        f"w = f32[{batch},{m},{k}] broadcast(s), dimensions={{1}}\n"
        f"l = f32[{batch},{m},{k}] multiply(t, w)\n"
        f"ROOT d = f32[{batch},{m},{n}] dot(l, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    )
    reads = (
        HandRead("a", "g k i", lambda g, k, i: (g, k, i)),
        HandRead("s", "i", lambda i: (i,)),
        HandRead("b", "g k j", lambda g, k, j: (g, k, j)),
    )
    arrays = {
        "a": HandArray((batch, k, m), 4),
        "b": HandArray((batch, k, n), 4),
        "s": HandArray((m,), 4),
    }
    return Problem(
        text, {"g": batch, "i": m, "j": n}, {"k": k}, arrays, (HandPhase(("k",), reads),), 4
    )


def two_dots(m: int, n: int, k: int) -> Problem:
    """Return ``a b + a c``: two independent loops of equal extent, which share a phase."""
    t = f"f32[{m},{n}]"
    lines = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = _fuse(
        f"a: f32[{m},{k}]; b: f32[{k},{n}]; c: f32[{k},{n}]",
        t,
        f"x = {t} dot(a, b), {lines}\ny = {t} dot(a, c), {lines}\nROOT z = {t} add(x, y)",
    )
    reads = (
        HandRead("a", "i k", lambda i, k: (i, k)),
        HandRead("b", "k j", lambda k, j: (k, j)),
        HandRead("c", "k j", lambda k, j: (k, j)),
    )
    arrays = {
        "a": HandArray((m, k), 4),
        "b": HandArray((k, n), 4),
        "c": HandArray((k, n), 4),
    }
    return Problem(text, {"i": m, "j": n}, {"k": k}, arrays, (HandPhase(("k",), reads),), 4)


def row_sums(m: int, n: int) -> Problem:
    """Return the row sums of ``x``, each times ``w``."""
    text = _fuse(
        f"x: f32[{m},{n}]; w: f32[{m}]",
        f"f32[{m}]",
        f"zero = f32[] constant(0)\nr = f32[{m}] reduce(x, zero), dimensions={{1}}, to_apply=add\n"
        f"ROOT y = f32[{m}] multiply(r, w)",
    )
    phases = (
        HandPhase(("k",), (HandRead("x", "i k", lambda i, k: (i, k)),)),
        HandPhase((), (HandRead("w", "i", lambda i: (i,)),)),
    )
    arrays = {"x": HandArray((m, n), 4), "w": HandArray((m,), 4)}
    return Problem(text, {"i": m}, {"k": n}, arrays, phases, 4)


def softmax_body(m: int, n: int) -> str:
    """Return the lines of a softmax of the rows of ``x``."""
    t = f"f32[{m},{n}]"
    return f"""low = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[{m}] reduce(x, low), dimensions={{1}}, to_apply=max
  tops = {t} broadcast(top), dimensions={{0}}
  y = {t} subtract(x, tops)
  e = {t} exponential(y)
  total = f32[{m}] reduce(e, zero), dimensions={{1}}, to_apply=add
  totals = {t} broadcast(total), dimensions={{0}}
  ROOT p = {t} divide(e, totals)"""


def softmax(m: int, n: int) -> Problem:
    """Return a softmax of rows: a maximum, a sum, and the result."""
    text = _fuse(f"x: f32[{m},{n}]", f"f32[{m},{n}]", softmax_body(m, n))
    one = (HandRead("x", "i k", lambda i, k: (i, k)),)
    phases = (
        HandPhase(("k",), one),
        HandPhase(("k",), one),
        HandPhase((), (HandRead("x", "i j", lambda i, j: (i, j)),)),
    )
    return Problem(text, {"i": m, "j": n}, {"k": n}, {"x": HandArray((m, n), 4)}, phases, 4)


def attention(heads: int, queries: int, keys: int, d: int, online: bool) -> Problem:
    """Return an attention in bf16, by phases: maximum, sum, product, or one online phase."""
    h, s = f"{heads},{queries}", f"bf16[{heads},{queries},{keys}]"
    text = _fuse(
        f"q: bf16[{h},{d}]; k: bf16[{heads},{keys},{d}]; v: bf16[{heads},{keys},{d}]",
        f"bf16[{h},{d}]",
        f"""x = f32[{h},{keys}] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
     lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[{h}] reduce(x, low), dimensions={{2}}, to_apply=max
  tops = f32[{h},{keys}] broadcast(top), dimensions={{0,1}}
  y = f32[{h},{keys}] subtract(x, tops)
  e = f32[{h},{keys}] exponential(y)
  total = f32[{h}] reduce(e, zero), dimensions={{2}}, to_apply=add
  totals = f32[{h},{keys}] broadcast(total), dimensions={{0,1}}
  p = f32[{h},{keys}] divide(e, totals)
  w = {s} convert(p)
  ROOT o = bf16[{h},{d}] dot(w, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
     lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}""",
    )
    scores = (
        HandRead("q", "g i c", lambda g, i, c: (g, i, c), (("c", d),)),
        HandRead("k", "g k c", lambda g, k, c: (g, k, c), (("c", d),)),
    )
    product = HandRead("v", "g k j", lambda g, k, j: (g, k, j))
    last = HandPhase(("k",), (*scores, product))
    statistics = () if online else (HandPhase(("k",), scores), HandPhase(("k",), scores))
    arrays = {
        "q": HandArray((heads, queries, d), 2),
        "k": HandArray((heads, keys, d), 2),
        "v": HandArray((heads, keys, d), 2),
    }
    return Problem(
        text,
        {"g": heads, "i": queries, "j": d},
        {"k": keys},
        arrays,
        (*statistics, last),
        2,
    )


def convolution(
    batch: int, size: int, features: int, outputs: int, window: int, pad: int, stride: int = 1
) -> Problem:
    """Return a convolution of images of ``size x size`` in f16.

    Kernel elements over padding are multiplied by 0, so a point reads them, too; XLA:CPU omits the
    products for arrays of at most two elements.
    """
    out = (size + 2 * pad - window) // stride + 1
    text = (
        f"ENTRY e {{ x = f16[{batch},{size},{size},{features}] parameter(0)  "
        f"w = f16[{window},{window},{features},{outputs}] parameter(1)  "
        f"ROOT c = f16[{batch},{out},{out},{outputs}] convolution(x, w), "
        f"window={{size={window}x{window} stride={stride}x{stride} "
        f"pad={pad}_{pad}x{pad}_{pad}}}, dim_labels=b01f_01io->b01f }}"
    )

    def image(b: int, y: int, x: int, s: int, t: int, c: int) -> tuple[int, ...] | None:
        row, column = y * stride + s - pad, x * stride + t - pad
        return (b, row, column, c) if 0 <= row < size and 0 <= column < size else None

    counts = batch * size**2 * features, window**2 * features * outputs, batch * out**2 * outputs
    multiplies = min(counts) > 2

    def kernel(y: int, x: int, s: int, t: int, c: int, o: int) -> tuple[int, ...] | None:
        is_read = multiplies or image(0, y, x, s, t, c) is not None
        return (s, t, c, o) if is_read else None

    reads = (
        HandRead("x", "b y x s t c", image),
        HandRead("w", "y x s t c o", kernel),
    )
    arrays = {
        "x": HandArray((batch, size, size, features), 2),
        "w": HandArray((window, window, features, outputs), 2),
    }
    return Problem(
        text,
        {"b": batch, "y": out, "x": out, "o": outputs},
        {"s": window, "t": window, "c": features},
        arrays,
        (HandPhase(("s", "t", "c"), reads),),
        2,
    )


def pooling(m: int, n: int, window: int, stride: int) -> Problem:
    """Return the sums of windows along the first dimension, padded below by one."""
    out = (m + 1 - window) // stride + 1
    text = (
        f"{REDUCERS}\nENTRY e {{ x = f32[{m},{n}] parameter(0)  z = f32[] constant(0)  "
        f"ROOT r = f32[{out},{n}] reduce-window(x, z), window={{size={window}x1 "
        f"stride={stride}x1 pad=1_0x0_0}}, to_apply=add }}"
    )

    def element(i: int, s: int, j: int) -> tuple[int, ...] | None:
        row = i * stride + s - 1
        return (row, j) if 0 <= row < m else None

    phases = (HandPhase(("s",), (HandRead("x", "i s j", element),)),)
    return Problem(text, {"i": out, "j": n}, {"s": window}, {"x": HandArray((m, n), 4)}, phases, 4)


def stencil(m: int, n: int) -> Problem:
    """Return the sum of an element and its four neighbours, without the border."""
    t = f"f32[{m - 2},{n - 2}]"
    offsets = [(1, 1), (0, 1), (2, 1), (1, 0), (1, 2)]
    lines = [
        f"s{k} = {t} slice(x), slice={{[{a}:{a + m - 2}],[{b}:{b + n - 2}]}}"
        for k, (a, b) in enumerate(offsets)
    ]
    sums = f"a = {t} add(s0, s1)\nb = {t} add(a, s2)\nc = {t} add(b, s3)\nROOT d = {t} add(c, s4)"
    text = _fuse(f"x: f32[{m},{n}]", t, "\n".join([*lines, sums]))
    reads = tuple(HandRead("x", "i j", lambda i, j, a=a, b=b: (i + a, j + b)) for a, b in offsets)
    return Problem(
        text,
        {"i": m - 2, "j": n - 2},
        {},
        {"x": HandArray((m, n), 4)},
        (HandPhase((), reads),),
        4,
    )


def causal_sums(n: int) -> Problem:
    """Return the sums of the elements at and below the diagonal of ``x``, by row."""
    t = f"f32[{n},{n}]"
    text = _fuse(
        f"x: {t}",
        f"f32[{n}]",
        f"""i = s32[{n},{n}] iota(), iota_dimension=0
  j = s32[{n},{n}] iota(), iota_dimension=1
  below = pred[{n},{n}] compare(j, i), direction=LE
  zero = f32[] constant(0)
  zeros = {t} broadcast(zero), dimensions={{}}
  masked = {t} select(below, x, zeros)
  ROOT sums = f32[{n}] reduce(masked, zero), dimensions={{1}}, to_apply=add""",
    )
    read = HandRead("x", "i k", lambda i, k: (i, k) if k <= i else None)
    return Problem(
        text,
        {"i": n},
        {"k": n},
        {"x": HandArray((n, n), 4)},
        (HandPhase(("k",), (read,)),),
        4,
        masks=True,
    )


def reshaped_dot(m: int, n: int, outer: int, inner: int) -> Problem:
    """Return a dot whose contraction of ``outer x inner`` is a reshape of two dimensions."""
    k = outer * inner
    text = _fuse(
        f"a: f32[{m},{outer},{inner}]; b: f32[{k},{n}]",
        f"f32[{m},{n}]",
        f"r = f32[{m},{k}] reshape(a)\nROOT d = f32[{m},{n}] dot(r, b), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    reads = (
        HandRead("a", "i k", lambda i, k: (i, k // inner, k % inner)),
        HandRead("b", "k j", lambda k, j: (k, j)),
    )
    arrays = {"a": HandArray((m, outer, inner), 4), "b": HandArray((k, n), 4)}
    return Problem(text, {"i": m, "j": n}, {"k": k}, arrays, (HandPhase(("k",), reads),), 4)
