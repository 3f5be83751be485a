"""Modules of dots, attentions, convolutions and softmaxes by their sizes, for `expert_tilings`."""

from __future__ import annotations

from typing import Final

_REDUCERS: Final = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] maximum(a, b) }
"""


def text_of(problem: str) -> str:
    """Return the module of a problem.

    >>> print(text_of("dot bf16 64x32x48").splitlines()[-1].strip())
    ROOT d = bf16[64,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
    """
    kind, *words = problem.split()
    n = [int(size) for size in words[-1].split("x")]
    if kind == "dot":
        return _dot_text(words[0], *n)
    if kind == "attention":
        return _attention_text(*n)
    if kind == "convolution":
        return _convolution_text(*n)
    return _softmax_text(*n)


def _dot_text(element: str, m: int, k: int, n: int) -> str:
    """Return a dot; one of 8 bits has a result of bf16, which its fusion converts."""
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    arguments = f"a = {element}[{m},{k}] parameter(0)\n  b = {element}[{k},{n}] parameter(1)"
    if element in ("s8", "f8e4m3fn"):
        total = "s32" if element == "s8" else "f32"
        return f"""body {{
  {arguments}
  d = {total}[{m},{n}] dot(a, b), {dims}
  ROOT c = bf16[{m},{n}] convert(d) }}
ENTRY e {{
  {arguments}
  ROOT f = bf16[{m},{n}] fusion(a, b), kind=kLoop, calls=body }}"""
    return f"""ENTRY e {{
  {arguments}
  ROOT d = {element}[{m},{n}] dot(a, b), {dims} }}"""


def _attention_text(heads: int, length: int, features: int) -> str:
    """Return an attention in bf16 of as many queries as keys."""
    shape, rows = f"{heads},{length},{features}", f"{heads},{length}"
    scores = f"f32[{rows},{length}]"
    arguments = "\n  ".join([f"{a} = bf16[{shape}] parameter({k})" for k, a in enumerate("qkv")])
    return f"""{_REDUCERS}
body {{
  {arguments}
  x = {scores} dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
{_softmax_lines(rows, scores)}
  w = bf16[{rows},{length}] convert(p)
  ROOT o = bf16[{shape}] dot(w, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}} }}
ENTRY e {{
  {arguments}
  ROOT f = bf16[{shape}] fusion(q, k, v), kind=kLoop, calls=body }}"""


def _softmax_text(m: int, n: int) -> str:
    """Return a softmax of rows of f32."""
    return f"""{_REDUCERS}
body {{
  x = f32[{m},{n}] parameter(0)
{_softmax_lines(str(m), f"f32[{m},{n}]")}
  ROOT c = f32[{m},{n}] copy(p) }}
ENTRY e {{
  x = f32[{m},{n}] parameter(0)
  ROOT f = f32[{m},{n}] fusion(x), kind=kLoop, calls=body }}"""


def _softmax_lines(rows: str, scores: str) -> str:
    """Return the lines from `x` to its softmax `p` along the last dimension."""
    kept = ",".join([str(k) for k in range(rows.count(",") + 1)])
    last = rows.count(",") + 1
    return f"""  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[{rows}] reduce(x, low), dimensions={{{last}}}, to_apply=max
  tops = {scores} broadcast(top), dimensions={{{kept}}}
  y = {scores} subtract(x, tops)
  e = {scores} exponential(y)
  total = f32[{rows}] reduce(e, zero), dimensions={{{last}}}, to_apply=add
  totals = {scores} broadcast(total), dimensions={{{kept}}}
  p = {scores} divide(e, totals)"""


def _convolution_text(batch: int, rows: int, columns: int, features: int, outputs: int) -> str:
    """Return a convolution of f16 with windows of 3 x 3, padded by 1."""
    return f"""ENTRY e {{
  x = f16[{batch},{rows},{columns},{features}] parameter(0)
  w = f16[3,3,{features},{outputs}] parameter(1)
  ROOT c = f16[{batch},{rows},{columns},{outputs}] convolution(x, w),
    window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f }}"""
