"""Check the installed wheel: ``python .ci/check_wheel.py compiled|interpreted``.

The wheel is of this kind, and its command answers as the sources of this repository do.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULE = ROOT / "examples" / "attention.opt.hlo"
COMMANDS = (
    ["maps", "--all", "--direction", "both", "--format", "json"],
    ["maps", "--all", "--to", "parameters", "--verify"],
    ["bytes", "--format", "json"],
    ["run", "--tile", "1,16,16"],
)


def output(command: list[str], sources: Path | None = None) -> str:
    """Return what the command prints, run from an empty folder, with these sources if given."""
    environment = os.environ | {"PYTHONPATH": str(sources or ""), "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            command, capture_output=True, cwd=folder, env=environment, encoding="utf-8"
        )
    if result.returncode:
        sys.exit(f"{' '.join(command)}: exit status {result.returncode}\n{result.stderr}")
    return result.stdout


def main(kind: str) -> None:
    """Check the wheel of this environment."""
    program = str(Path(sysconfig.get_path("scripts"), "hlo-indexing"))
    version = output([program, "--version"])
    if f"({kind}; Python " not in version:
        sys.exit(f"expected a wheel that is {kind}, got {version}")
    for command, *options in COMMANDS:
        words = [command, str(MODULE), *options]
        answer = output([program, *words])
        if answer != output([sys.executable, "-m", "indexing.cli", *words], sources=ROOT):
            sys.exit(f"{command} {' '.join(options)}: the wheel and the sources differ")
        if not answer:
            sys.exit(f"{command} {' '.join(options)}: no output")
    print(f"{version.strip()}: {len(COMMANDS)} commands answer as with the sources")


if __name__ == "__main__":
    main(*sys.argv[1:])
