"""Every op that this package knows, one family a module; importing this registers them all."""

from indexing.ops import (
    bitcast,
    broadcast,
    concatenate,
    control,
    dot,
    dynamic,
    elementwise,
    gather,
    iota,
    pad,
    reduce,
    reduce_window,
    reshape,
    slicing,
    structure,
    transpose,
)

__all__ = [
    "bitcast",
    "broadcast",
    "concatenate",
    "control",
    "dot",
    "dynamic",
    "elementwise",
    "gather",
    "iota",
    "pad",
    "reduce",
    "reduce_window",
    "reshape",
    "slicing",
    "structure",
    "transpose",
]
