"""Counts by isl and by barvinok, whose package is installed in an environment of its own.

    python -m benchmarks.barvinok [WHEELS]

islpy-barvinok replaces islpy and is under the GPL. It is installed into a temporary folder, which a
new process puts before the installed packages: from the folder WHEELS if it is given, else from the
package index. Both processes count the same sets with the same budgets of operations. The counts
must agree; where isl has none, the table shows its reason. Then the tests of counts run with
barvinok.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from indexing import parse_map
from simplifier import exact
from simplifier.exact.cardinality import HAS_BARVINOK
from simplifier.unknown import Unknown

ROOT: Final = Path(__file__).parent.parent

MAPS: Final = {
    "triangle": "(d0, d1) -> (d0, d1), domain: d0 in [0, 2999], d1 in [0, 2999], "
    "d0 + d1 in [0, 2999]",
    "large triangle": "(d0, d1) -> (d0, d1), domain: d0 in [0, 999999], d1 in [0, 999999], "
    "d0 * 2 + d1 * 3 in [0, 1000000]",
    "tetrahedron": "(d0, d1, d2) -> (d0, d1, d2), domain: d0 in [0, 9999], d1 in [0, 9999], "
    "d2 in [0, 9999], d0 + d1 + d2 in [0, 9999]",
    "residues": "(d0, d1) -> (d0, d1), domain: d0 in [0, 99999], d1 in [0, 99999], "
    "(d0 + d1) mod 7 in [0, 3], d0 - d1 in [0, 50000]",
    "far windows": "(d0)[s0] -> (d0 * 1007 + s0 * 995), domain: d0 in [0, 99999], s0 in [0, 99999]",
    "band": "(d0, d1) -> (d0 + d1, d0 - d1), domain: d0 in [0, 99999], d1 in [0, 99999], "
    "d0 - d1 in [-64, 64]",
}
TESTS: Final = ("tests/maps/test_counts.py", "tests/simplifier/test_exact.py")


def counts() -> dict[str, tuple[str, float]]:
    """Return the answer of `simplifier.exact.count` for each map, and its seconds."""
    answers: dict[str, tuple[str, float]] = {}
    for name, text in MAPS.items():
        m = parse_map(text)
        start = time.perf_counter()
        count = exact.count(exact.Relation((), m.variables, m.results, m.constraints))
        reason = count.reason if isinstance(count, Unknown) else str(count)
        answers[name] = reason, time.perf_counter() - start
    return answers


def run(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the packages of a folder before the installed ones."""
    path = os.pathsep.join([folder, str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def main(wheels: str | None) -> int:
    """Print the table; return 0 if the counts agree and the tests pass."""
    with tempfile.TemporaryDirectory() as folder:
        source = ["--no-index", "--find-links", wheels] if wheels else []
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
        subprocess.run([*pip, *source, "islpy-barvinok"], check=True)
        process = run(folder, "-m", "benchmarks.barvinok", "--child")
        process.check_returncode()
        other = json.loads(process.stdout)
        differ = False
        print(f"{'set':16}{'isl':>40}{'s':>9}{'barvinok':>20}{'s':>9}")
        for name, (count, seconds) in counts().items():
            theirs, their_seconds = other[name]
            differ |= count.isdigit() and count != theirs
            print(f"{name:16}{count:>40.40}{seconds:>9.3f}{theirs:>20.20}{their_seconds:>9.3f}")
        tests = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)
        print(tests.stdout.strip().splitlines()[-1])
    return int(differ or tests.returncode != 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        assert HAS_BARVINOK, "islpy is not that of islpy-barvinok"
        print(json.dumps(counts()))
    else:
        sys.exit(main(sys.argv[1] if sys.argv[1:] else None))
