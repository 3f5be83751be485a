"""The command needs no function that Python lacks on Windows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULE = "ENTRY e { p = f32[2,3] parameter(0)  ROOT n = f32[3,2] transpose(p), dimensions={1,0} }"

WITHOUT = """
import builtins, os, signal, sys
import multiprocessing.connection, subprocess  # use these names on this system

for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "pthread_sigmask"):
    delattr(signal, name)
for name in ("O_NONBLOCK", "chown", "fchmod", "fchown", "fork", "geteuid", "getuid", "sysconf"):
    delattr(os, name)
opened = builtins.open
def no_proc(path, *arguments, **options):
    if str(path).startswith("/proc"):
        raise FileNotFoundError(path)
    return opened(path, *arguments, **options)
builtins.open = no_proc
from indexing.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("command", ["maps --all", "check", "tile -i n --sizes 2,2", "run -o OUT"])
def test_commands_run_without_names_of_posix(command: str, tmp_path: Path) -> None:
    path, output = tmp_path / "m.hlo", tmp_path / "out.npz"
    path.write_text(MODULE, "utf-8")
    output.touch()  # is replaced, with its permissions
    name, *options = [str(output) if word == "OUT" else word for word in command.split()]
    words = [sys.executable, "-c", WITHOUT, name, str(path), *options]
    result = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert (result.returncode, result.stderr) == (0, "")
    assert not output.stat().st_size or name == "run"
