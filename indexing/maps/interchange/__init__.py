"""Conversions of maps to and from other notations: MLIR, isl, SymPy, LaTeX and JSON.

| notation                                   | writes                  | reads        |
|--------------------------------------------|-------------------------|--------------|
| ``#xla.indexing_map``, ``affine_map``, ``affine_set`` | `to_mlir`    | `from_mlir`  |
| text as XLA prints it                      | `to_xla`                | `indexing.parse_map` |
| isl sets, maps and functions               | `to_isl`                | `from_isl`   |
| SymPy expressions                          | `to_sympy`              | `from_sympy` |
| JSON                                       | `to_json`               | `from_json`  |
| LaTeX                                      | `to_latex`              |              |

All are methods of `indexing.IndexingMap` as well.  SymPy and isl are imported on first use.
"""

from indexing.maps.interchange.isl import from_isl, to_isl
from indexing.maps.interchange.json import JSON_VERSION, from_json, to_json
from indexing.maps.interchange.latex import expr_latex, to_latex
from indexing.maps.interchange.mlir import from_mlir, to_affine_map, to_affine_set, to_mlir, to_xla
from indexing.maps.interchange.sympy import SympyMap, from_sympy, to_sympy

__all__ = [
    "JSON_VERSION",
    "SympyMap",
    "expr_latex",
    "from_isl",
    "from_json",
    "from_mlir",
    "from_sympy",
    "to_affine_map",
    "to_affine_set",
    "to_isl",
    "to_json",
    "to_latex",
    "to_mlir",
    "to_sympy",
    "to_xla",
]
