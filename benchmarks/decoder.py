"""HLO text of a decoder that generates tokens in a loop, with caches updated in place.

    python -m benchmarks.decoder [LAYERS] > decoder.hlo

Each iteration reads the token at an index that the loop counts, updates one row of the cache of
keys and of values in each layer, attends to the whole cache, and writes the next token.  Keras
lowers ``generate`` of a model such as Gemma to such a loop: every array depends on every other one.
The loop may end early, when all tokens are end tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final

LAYERS: Final = 26
LENGTH: Final = 100
VOCABULARY, HIDDEN, HEADS, SIZE, WIDE = 256, 48, 4, 12, 96

X: Final = f"f32[1,{HIDDEN}]"
ROW: Final = f"f32[1,{HEADS},{SIZE}]"
HALF: Final = f"f32[1,{HEADS},{SIZE // 2}]"
CACHE: Final = f"f32[{LENGTH},{HEADS},{SIZE}]"
SCORES: Final = f"f32[{HEADS},{LENGTH}]"
TOKENS: Final = f"s32[{LENGTH}]"

WEIGHTS: Final = {
    "scale": f"f32[{HIDDEN}]",
    "query": f"f32[{HIDDEN},{HEADS},{SIZE}]",
    "key": f"f32[{HIDDEN},{HEADS},{SIZE}]",
    "value": f"f32[{HIDDEN},{HEADS},{SIZE}]",
    "out": f"f32[{HEADS},{SIZE},{HIDDEN}]",
    "norm": f"f32[{HIDDEN}]",
    "up": f"f32[{HIDDEN},{WIDE}]",
    "down": f"f32[{WIDE},{HIDDEN}]",
}
"""The shapes of the weights of one layer."""

HEAD: Final = """HloModule decoder
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
and { a = pred[] parameter(0)  b = pred[] parameter(1)  ROOT m = pred[] and(a, b) }
first { a = f32[] parameter(0)  i = s32[] parameter(1)  b = f32[] parameter(2)
  j = s32[] parameter(3)  larger = pred[] compare(a, b), direction=GE
  m = f32[] select(larger, a, b)  k = s32[] select(larger, i, j)
  ROOT t = (f32[], s32[]) tuple(m, k) }"""


def decoder(layers: int = LAYERS) -> str:
    """Return the text of a decoder.

    >>> import hlo
    >>> module = hlo.parse(decoder(2))
    >>> [each.name for each in module.instructions if each.opcode == "while"]
    ['loop']
    """
    cache = f"f32[{layers},2,{LENGTH},{HEADS},{SIZE}]"
    weights = {f"{name}{k}": shape for k in range(layers) for name, shape in WEIGHTS.items()}
    table = f"f32[{VOCABULARY},{HIDDEN}]"
    carried = {"i": "s32[]", "at": "s32[]", "tokens": TOKENS, "cache": cache, "table": table}
    carried |= weights
    state = f"({', '.join(carried.values())})"
    opened = [f"s = {state} parameter(0)"] + [
        f"{name} = {shape} get-tuple-element(s), index={k}"
        for k, (name, shape) in enumerate(carried.items())
    ]
    forwarded = ", ".join(["i_next", "at_next", "tokens_next", "cache_next", "table", *weights])
    body = [*opened, *_iteration(layers, cache), f"ROOT t = {state} tuple({forwarded})"]
    entry = [
        f"{name} = {shape} parameter({k})"
        for k, (name, shape) in enumerate(
            {"at": "s32[]", "tokens": TOKENS, "table": table, **weights}.items()
        )
    ]
    entry += [
        "i = s32[] constant(0)",
        "nothing = f32[] constant(0)",
        f"cache = {cache} broadcast(nothing), dimensions={{}}",
        f"start = {state} tuple(i, at, tokens, cache, table, {', '.join(weights)})",
        f"loop = {state} while(start), condition=more, body=next",
        f"ROOT generated = {TOKENS} get-tuple-element(loop), index=2",
    ]
    more = [
        *opened[:4],
        f"end = s32[] constant({LENGTH - 1})",
        "is_before_end = pred[] compare(i, end), direction=LT",
        "end_token = s32[] constant(1)",
        f"end_tokens = {TOKENS} broadcast(end_token), dimensions={{}}",
        f"is_end = pred[{LENGTH}] compare(tokens, end_tokens), direction=EQ",
        "true = pred[] constant(true)",
        "is_done = pred[] reduce(is_end, true), dimensions={0}, to_apply=and",
        "goes_on = pred[] not(is_done)",
        "ROOT both = pred[] and(is_before_end, goes_on)",
    ]
    parts = [_computation("more", more), _computation("next", body)]
    return "\n".join([HEAD, *parts, "ENTRY " + _computation("main", entry)]) + "\n"


def _computation(name: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{name} {{", *[f"  {line}" for line in lines], "}"])


def _iteration(layers: int, cache: str) -> Iterator[str]:
    """Yield the instructions of one iteration after those that unpack the carried tuple."""
    yield from (
        "zero = s32[] constant(0)",
        "one = s32[] constant(1)",
        f"length = s32[] constant({LENGTH})",
        "none = f32[] constant(0)",
        "least = f32[] constant(-inf)",
        f"lowest = {SCORES} broadcast(least), dimensions={{}}",
        f"size = f32[] constant({HIDDEN})",
        "i_next = s32[] add(i, one)",
        "at_next = s32[] add(at, one)",
        "is_negative = pred[] compare(at, zero), direction=LT",
        "from_end = s32[] add(at, length)",
        "position = s32[] select(is_negative, from_end, at)",
        "token = s32[1] dynamic-slice(tokens, position), dynamic_slice_sizes={1}",
        f"x0 = {X} gather(table, token), offset_dims={{1}}, collapsed_slice_dims={{0}}, "
        f"start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{HIDDEN}}}",
        f"places = s32[{LENGTH}] iota(), iota_dimension=0",
        f"here = s32[{LENGTH}] broadcast(at), dimensions={{}}",
        f"is_visible = pred[{LENGTH}] compare(places, here), direction=LE",
        f"mask = pred[{HEADS},{LENGTH}] broadcast(is_visible), dimensions={{1}}",
    )
    for k in range(layers):
        yield from _layer(k)
    rows = ", ".join([f"updated{k}" for k in range(layers)])
    logits = f"f32[{VOCABULARY}]"
    yield from (
        f"cache_next = {cache} concatenate({rows}), dimensions={{0}}",
        f"logits = f32[1,{VOCABULARY}] dot(x{layers}, table), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={1}",
        f"scores = {logits} reshape(logits)",
        f"numbers = s32[{VOCABULARY}] iota(), iota_dimension=0",
        "best = (f32[], s32[]) reduce(scores, numbers, least, zero), dimensions={0}, "
        "to_apply=first",
        "best_token = s32[] get-tuple-element(best), index=1",
        "next_token = s32[1] reshape(best_token)",
        f"tokens_next = {TOKENS} dynamic-update-slice(tokens, next_token, at_next)",
    )


def _layer(k: int) -> Iterator[str]:
    """Yield the instructions of layer k, from ``x{k}`` to ``x{k + 1}`` and ``updated{k}``."""
    yield from _normalise(f"x{k}", f"scale{k}", f"n{k}")
    contracted = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    for name in ("query", "key", "value"):
        yield f"{name}_row{k} = {ROW} dot(n{k}, {name}{k}), {contracted}"
    for name in ("query", "key"):
        row, halves = f"{name}_row{k}", (f"0:{SIZE // 2}", f"{SIZE // 2}:{SIZE}")
        for part, half in zip("ab", halves, strict=True):
            yield f"{row}{part} = {HALF} slice({row}), slice={{[0:1], [0:{HEADS}], [{half}]}}"
        yield f"{row}c = {HALF} negate({row}b)"
        yield f"{row}d = {ROW} concatenate({row}c, {row}a), dimensions={{2}}"
        yield f"{row}e = {ROW} add({row}, {row}d)"
    layer = f"f32[1,2,{LENGTH},{HEADS},{SIZE}]"
    whole = f"[0:{LENGTH}], [0:{HEADS}], [0:{SIZE}]"
    yield f"old{k} = {layer} slice(cache), slice={{[{k}:{k + 1}], [0:2], {whole}}}"
    for number, (name, row) in enumerate((("keys", "key_row{}e"), ("values", "value_row{}"))):
        one = f"f32[1,1,{LENGTH},{HEADS},{SIZE}]"
        rows = f"[0:1], [{number}:{number + 1}], {whole}"
        yield f"{name}_a{k} = {one} slice(old{k}), slice={{{rows}}}"
        yield f"{name}_b{k} = {CACHE} reshape({name}_a{k})"
        update = f"{name}_b{k}, {row.format(k)}, position, zero, zero"
        yield f"{name}{k} = {CACHE} dynamic-update-slice({update})"
        yield f"{name}_c{k} = {one} reshape({name}{k})"
    yield f"updated{k} = {layer} concatenate(keys_c{k}, values_c{k}), dimensions={{1}}"
    yield (
        f"all_scores{k} = f32[{HEADS},1,{LENGTH}] dot(query_row{k}e, keys{k}), "
        "lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={2}"
    )
    yield f"raw{k} = {SCORES} reshape(all_scores{k})"
    yield f"masked{k} = {SCORES} select(mask, raw{k}, lowest)"
    yield f"largest{k} = f32[{HEADS}] reduce(masked{k}, least), dimensions={{1}}, to_apply=max"
    yield f"shift{k} = {SCORES} broadcast(largest{k}), dimensions={{0}}"
    yield f"shifted{k} = {SCORES} subtract(masked{k}, shift{k})"
    yield f"powers{k} = {SCORES} exponential(shifted{k})"
    yield f"total{k} = f32[{HEADS}] reduce(powers{k}, none), dimensions={{1}}, to_apply=add"
    yield f"totals{k} = {SCORES} broadcast(total{k}), dimensions={{0}}"
    yield f"shares{k} = {SCORES} divide(powers{k}, totals{k})"
    yield (
        f"mixed{k} = f32[{HEADS},{SIZE}] dot(shares{k}, values{k}), lhs_batch_dims={{0}}, "
        "rhs_batch_dims={1}, lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    yield f"row{k} = {ROW} reshape(mixed{k})"
    yield (
        f"attended{k} = {X} dot(row{k}, out{k}), lhs_contracting_dims={{1,2}}, "
        "rhs_contracting_dims={0,1}"
    )
    yield f"y{k} = {X} add(x{k}, attended{k})"
    yield from _normalise(f"y{k}", f"norm{k}", f"m{k}")
    yield f"wide{k} = f32[1,{WIDE}] dot(m{k}, up{k}), {contracted}"
    yield f"gate{k} = f32[1,{WIDE}] tanh(wide{k})"
    yield f"gated{k} = f32[1,{WIDE}] multiply(gate{k}, wide{k})"
    yield f"z{k} = {X} dot(gated{k}, down{k}), {contracted}"
    yield f"x{k + 1} = {X} add(y{k}, z{k})"


def _normalise(x: str, scale: str, result: str) -> Iterator[str]:
    """Yield the instructions of ``result = x / sqrt(mean(x²)) * scale``."""
    yield f"{result}a = {X} multiply({x}, {x})"
    yield f"{result}b = f32[1] reduce({result}a, none), dimensions={{1}}, to_apply=add"
    yield f"{result}c = f32[1] broadcast(size), dimensions={{}}"
    yield f"{result}d = f32[1] divide({result}b, {result}c)"
    yield f"{result}e = f32[1] rsqrt({result}d)"
    yield f"{result}f = {X} broadcast({result}e), dimensions={{0}}"
    yield f"{result}g = {X} multiply({x}, {result}f)"
    yield f"{result}h = {X} broadcast({scale}), dimensions={{1}}"
    yield f"{result} = {X} multiply({result}g, {result}h)"


def main(arguments: list[str]) -> None:
    """Print the text."""
    print(decoder(*[int(number) for number in arguments]), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
