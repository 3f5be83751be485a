"""The opcodes of HLO, by their names in text.

The parser needs them only to recognise asynchronous short forms: ``negate-start`` is an
asynchronous ``negate`` (`hlo.formats.asynchronous`), and ``my-start`` is an op of a user.

Source: XLA ``xla/hlo/ir/hlo_opcode.h``.
"""

from typing import Final

_ELEMENTWISE = """
abs acos acosh add and asin asinh atan atan2 atanh bitcast-convert cbrt ceil clamp compare complex
convert copy cosh cosine count-leading-zeros divide erf exponential exponential-minus-one floor
imag is-finite log log-plus-one logistic maximum minimum mulhi multiply negate not or popcnt power
real reduce-precision remainder round-nearest-afz round-nearest-even rsqrt select shift-left
shift-right-arithmetic shift-right-logical sign sine sinh sqrt stochastic-convert subtract tan
tanh xor
"""
_ASYNCHRONOUS = """
all-gather-done all-gather-start all-reduce-done all-reduce-start async-done async-start
async-update collective-permute-done collective-permute-start copy-done copy-start recv-done
send-done
"""
_OTHERS = """
add-dependency after-all all-gather all-reduce all-to-all batch-norm-grad batch-norm-inference
batch-norm-training bitcast broadcast call cholesky collective-broadcast collective-permute
collective-reduce concatenate conditional constant convolution custom-call domain dot
dynamic-reshape dynamic-slice dynamic-update-slice fft fusion gather get-dimension-size
get-tuple-element infeed iota map opt-barrier optimization-barrier outfeed pad parameter
partition-id ragged-all-to-all ragged-dot recv reduce reduce-scatter reduce-window replica-id
reshape reverse rng rng-bit-generator rng-get-and-update-state scaled-dot scan scatter
select-and-scatter send set-dimension-size shuffle slice sort topk transpose triangular-solve
tuple while
"""

ELEMENTWISE: Final = frozenset(_ELEMENTWISE.split())
ASYNCHRONOUS: Final = frozenset(_ASYNCHRONOUS.split())
"""Opcodes that end in ``-start``, ``-update`` or ``-done`` and are not short forms."""

OPCODES: Final = ELEMENTWISE | ASYNCHRONOUS | frozenset(_OTHERS.split())
