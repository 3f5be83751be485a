"""Worked examples of kernels with known faults."""

from __future__ import annotations

from tests.pallas.kernels import Kernel, Operand

MATVEC = Kernel(
    "matvec",
    (3, 5),
    (
        Operand((24, 640), (8, 128), lambda i, k: (i, k)),
        Operand((1, 640), (1, 128), lambda i, k: (0, k)),
    ),
    (Operand((24, 1), (8, 1), lambda i, k: (i, 0)),),
    ("parallel", "arbitrary"),
)
K_OUTERMOST = Kernel(
    "k_outermost",
    (5, 3),
    (
        Operand((24, 640), (8, 128), lambda k, i: (i, k)),
        Operand((1, 640), (1, 128), lambda k, i: (0, k)),
    ),
    (Operand((24, 1), (8, 1), lambda k, i: (i, 0)),),
    ("arbitrary", "parallel"),
)


def ragged_kernel(after: int) -> Kernel:
    return Kernel(
        "ragged",
        (4,),
        (Operand((50, 128), ((20, 2, after), (128,)), lambda i: (16 * i, 0)),),
        (Operand((50, 128), (16, 128), lambda i: (i, 0)),),
    )


PAGES = Kernel(
    "pages",
    (4, 2),
    (Operand((160, 128), (8, 128), lambda i, j, s: (2 * s[i] + j, 0)),),
    (Operand((64, 128), (8, 128), lambda i, j, s: (2 * i + j, 0)),),
    scalars=((4,),),
)
RACE = Kernel(
    "race",
    (2, 4, 3),
    (Operand((2, 32, 384), (None, 8, 128), lambda b, j, k: (b, j, k), "bfloat16"),),
    (Operand((32, 128), (8, 128), lambda b, j, k: (j, 0)),),
    ("parallel", "arbitrary", "arbitrary"),
)


def transpose(is_aliased: bool) -> Kernel:
    return Kernel(
        "transpose",
        (2, 2),
        (Operand((256, 256), (128, 128), lambda i, j: (j, i)),),
        (Operand((256, 256), (128, 128), lambda i, j: (i, j)),),
        aliases=((0, 0),) if is_aliased else (),
    )
