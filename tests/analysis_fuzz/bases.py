"""The modules that are mutated: small modules of this folder, of other tests, samples of ops."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo.ops.op import OPS
from indexing.ops.samples import instruction_of
from tests.analysis_fuzz.rows import Program
from tests.hlo.fuzz import EXAMPLES, texts

HERE = Path(__file__).parent
LARGEST = 3000


@cache
def programs() -> tuple[Program, ...]:
    """Return the modules as rows."""
    own = hlo.parse_all((HERE / "modules.hlo").read_text())
    data = sorted((HERE.parent / "execution" / "data").glob("*.hlo"))
    real = [t for t in texts(sorted(EXAMPLES.glob("*.hlo"))) if len(t) <= LARGEST]
    samples = [
        instruction_of(text).module for opcode in sorted(OPS) for text in OPS[opcode].samples
    ]
    parsed = [*map(hlo.parse, [*(path.read_text() for path in data), *real])]
    modules = [*(own * 40), *(parsed * 4), *samples]
    return tuple([Program.of(module) for module in modules])
