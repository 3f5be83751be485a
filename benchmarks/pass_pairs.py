"""Copy the smallest pair of dumps of each pass, as test data.

    python -m benchmarks.pass_dumps FOLDER
    python -m benchmarks.pass_pairs FOLDER

writes ``tests/equivalence/data/PASS.hlo``: the modules before and after, separated by a line
``// -----``, without metadata, tables of source locations and backend configurations.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import hlo
from benchmarks.equivalence import changed_pairs

DATA: Final = Path(__file__).parent.parent / "tests" / "equivalence" / "data"

PASSES: Final = (
    *("algsimp", "all_to_all_decomposer", "batch-dot-simplification", "batchnorm_expander"),
    *("batched_gather_scatter_normalizer", "call-inliner", "cholesky_expander", "copy-insertion"),
    *("comparison-expander", "constant_folding", "convolution-canonicalization", "cse", "dce"),
    *("dot-library-rewriter", "dot_decomposer", "dynamic-dimension-simplifier", "fusion"),
    *("fusion-wrapper", "gather_expander", "gather_simplifier", "layout-assignment"),
    *("reshape-decomposer", "reshape-mover", "rng-bit-generator-expander", "scatter_expander"),
    *("scatter_simplifier", "select_and_scatter_expander", "shardy-xla", "simplify-while-loops"),
    *("small-while-loop-hoisting", "topk-decomposer", "topk-rewriter", "transpose-folding"),
    *("tree_reduction_rewriter", "triangular_solve_expander", "tuple-simplifier"),
    *("while-loop-invariant-code-motion", "float-normalization-bf16", "all-reduce-promotion"),
)
MAX_CHARACTERS: Final = 12_000

_METADATA: Final = re.compile(
    r", (metadata|frontend_attributes|sharding)=\{[^{}]*(\{[^{}]*\}[^{}]*)*\}"
)
_CONFIG: Final = re.compile(r", backend_config=\{.*")
_TABLES: Final = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(.+\n)*\n?", re.M
)


def plain(text: str) -> str:
    """Return HLO text without the parts that have no meaning for values."""
    lines = []
    for line in _TABLES.sub("", text).splitlines():
        kept = line if "custom-call" in line else _CONFIG.sub("", line)
        lines.append(_METADATA.sub("", kept))
    return re.sub(r"\n{2,}", "\n\n", "\n".join(lines)).strip() + "\n"


def main() -> None:
    """Write the smallest pair of each pass."""
    smallest: dict[str, str] = {}
    for name, _, before, after in changed_pairs(Path(sys.argv[1]), []):
        if name in PASSES:
            text = f"{plain(str(before))}\n// -----\n\n{plain(str(after))}"
            if len(text) < len(smallest.get(name, " " * MAX_CHARACTERS)):
                smallest[name] = text
    DATA.mkdir(exist_ok=True)
    for name, text in sorted(smallest.items()):
        hlo.parse_all(text)
        (DATA / f"{name}.hlo").write_text(text)
    print("missing:", *sorted(set(PASSES) - set(smallest)))


if __name__ == "__main__":
    main()
