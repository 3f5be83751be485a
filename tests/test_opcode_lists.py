"""Facts of an op stand in its class: no other module has a list of opcodes without a reason."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import indexing.ops  # noqa: F401 - registers the ops
from hlo.ops.op import OPS
from tests.test_layers import ROOT

WITH_OPS: Final = ("hlo/ops", "indexing/ops")
WORDS: Final = "words that are opcodes by chance"
LAWS: Final = "a law rewrites these functions by name"
SHAPES: Final = "the instruction that is made, or its printed form"
CALLS: Final = "the ways in which an instruction runs computations"

ALLOWED: Final[dict[str, tuple[int, str]]] = {
    "hlo/modules/find.py": (2, CALLS),
    "hlo/shardings/sharding.py": (1, WORDS),
    "hlo/text/syntax.py": (1, "attributes that name computations"),
    "indexing/cli/printing.py": (1, "instructions that a help does not list"),
    "indexing/codegen/text.py": (1, WORDS),
    "indexing/codegen/tile_programs/pallas_functions.py": (
        2,
        "functions of NumPy that JAX has under the same names",
    ),
    "indexing/codegen/whole_modules.py": (1, "bits that XLA draws otherwise"),
    "indexing/dataflow/loops/conditions.py": (1, LAWS),
    "indexing/drawing/region_pictures.py": (1, CALLS),
    "indexing/equivalence/sources.py": (2, LAWS),
    "indexing/equivalence/values/laws/algebra.py": (1, LAWS),
    "indexing/equivalence/values/formulas/definitions.py": (1, LAWS),
    "indexing/equivalence/values/folds/known_combiners.py": (1, LAWS),
    "indexing/equivalence/values/folds/packed_predicates.py": (1, LAWS),
    "indexing/equivalence/values/laws/conversions.py": (2, LAWS),
    "indexing/equivalence/values/laws/exact.py": (2, LAWS),
    "indexing/equivalence/values/formulas/expansions.py": (3, LAWS),
    "indexing/equivalence/values/terms/functions.py": (
        4,
        "libraries round them differently",
    ),
    "indexing/equivalence/values/laws/integers.py": (5, LAWS),
    "indexing/equivalence/values/laws_page.py": (6, WORDS),
    "indexing/equivalence/values/matching/matching.py": (1, LAWS),
    "indexing/equivalence/values/terms/supports.py": (1, "laws exchange these functions"),
    "indexing/equivalence/values/laws/orders.py": (2, LAWS),
    "indexing/equivalence/values/laws/reals.py": (2, LAWS),
    "indexing/equivalence/values/laws/roundings.py": (1, LAWS),
    "indexing/equivalence/values/formulas/element_algebra.py": (1, LAWS),
    "indexing/kernels/control.py": (1, "functions of predicates that bytes have, too"),
    "indexing/kernels/accumulation.py": (1, "functions that combine values in any order"),
    "indexing/kernels/guarded_ops.py": (2, LAWS),
    "indexing/kernels/kernel.py": (2, "emitters that have the names of opcodes"),
    "indexing/kernels/lane_ops.py": (1, "functions of HLO that ops of MLIR on bits are"),
    "indexing/kernels/random_values.py": (1, LAWS),
    "indexing/kernels/scalars.py": (3, "ops of MLIR and the functions of HLO that they are"),
    "indexing/kernels/tiled_ops.py": (1, LAWS),
    "indexing/pallas/index_arithmetic.py": (1, "functions of integers, with their bounds"),
    "indexing/pallas/index_maps.py": (1, SHAPES),
    "indexing/sharding/partial_values/laws.py": (6, LAWS),
    "indexing/sharding/partition/flatten.py": (1, CALLS),
    "indexing/sharding/partition/local_ops.py": (1, "the local instructions of the partitioner"),
    "indexing/sharding/partition/moves.py": (2, SHAPES),
    "indexing/sharding/planning/liveness.py": (1, CALLS),
    "indexing/sharding/planning/partial_operands.py": (2, LAWS),
    "indexing/tiling/loops/rescaling.py": (3, LAWS),
    "indexing/views/records.py": (1, WORDS),
    "indexing/views/sharding_tables.py": (1, "instructions without a row"),
    "simplifier/__init__.py": (1, WORDS),
    "simplifier/division.py": (1, WORDS),
    "simplifier/exact/encode.py": (1, WORDS),
}
"""The number of lists in each module, and the reason."""


def opcode_lists(path: Path) -> Iterator[list[str]]:
    """Yield the opcodes of each display and pattern that has two of them or more."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Set(elts=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                values: list[ast.expr | None] = [*parts]
            case ast.Dict(keys=keys):
                values = keys
            case ast.MatchOr(patterns=patterns):
                values = [p.value for p in patterns if isinstance(p, ast.MatchValue)]
            case _:
                continue
        texts = [v.value for v in values if isinstance(v, ast.Constant)]
        if len(opcodes := [t for t in texts if isinstance(t, str) and t in OPS]) > 1:
            yield opcodes


def test_lists_of_opcodes_have_a_reason() -> None:
    """To repair: declare the fact in the classes of the ops, or give the reason here."""
    lists: Counter[str] = Counter()
    for package in ("hlo", "indexing", "simplifier"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(WITH_OPS):
                lists[name] += len(list(opcode_lists(path)))
    assert dict(+lists) == {name: count for name, (count, _) in ALLOWED.items()}
