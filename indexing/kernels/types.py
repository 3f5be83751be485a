"""Types of MLIR, from their text.

>>> tensor = read_type("tensor<7x2x16xf32, dense<[0, 2, 1]> : tensor<3xi64>>")
>>> tensor.kind, tensor.dims, tensor.element, tensor.layout
('tensor', (7, 2, 16), 'f32', (0, 2, 1))
>>> read_type("memref<64x48xi8, #xtile.layout<[0, 1]>>").layout, read_type("index").kind
((0, 1), 'scalar')
"""

from __future__ import annotations

import re
from functools import lru_cache

from indexing.kernels.ir import MlirType

_SHAPED = re.compile(r"(tensor|memref|vector)<((?:(?:\d+|\?|\[\d+\])x)*)(.*)>", re.DOTALL)
_SCALAR = re.compile(r"index|i\d+|[su]i\d+|b?f\d+\w*|tf32|complex<\w+>")
_LAYOUTS = (
    re.compile(r"dense<\[([\d, ]*)\]> : tensor<\d+xi64>"),
    re.compile(r"#xtile\.layout<\[([\d, ]*)\]>"),
)

UNKNOWN_TYPE = MlirType("other", "?", text="?")


@lru_cache(4096)
def read_type(text: str) -> MlirType:
    """Return the type that a text states; of kind ``other`` if it has no elements."""
    if _SCALAR.fullmatch(text):
        return MlirType("scalar", text, text=text)
    if shaped := _SHAPED.fullmatch(text):
        kind, sizes, rest = shaped.groups()
        element, _, encoding = _split_element(rest)
        dims = tuple([-1 if s in "?" else int(s.strip("[]")) for s in sizes.split("x")[:-1]])
        return MlirType(kind, element, dims, _layout(encoding), text)
    return MlirType("other", text, text=text)


def _split_element(text: str) -> tuple[str, str, str]:
    """Return the element type, the comma, and the encoding after it."""
    depth = 0
    for at, character in enumerate(text):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and not depth:
            return text[:at], ",", text[at + 1 :].strip()
    return text, "", ""


def _layout(encoding: str) -> tuple[int, ...] | None:
    for pattern in _LAYOUTS:
        if matched := pattern.match(encoding):
            return tuple([int(d) for d in matched[1].split(",") if d.strip()])
    return None
