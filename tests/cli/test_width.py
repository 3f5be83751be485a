"""On a terminal of 80 columns every command prints lines that fit, and a bar after two seconds.

The oracle is a terminal: the command runs on one, and the width of what is visible of each line is
measured.  A line may be wider only if it is one word, such as a path.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from itertools import product
from pathlib import Path

import pytest
from rich.cells import cell_len

import hlo
from indexing.views.tables import fit_rows

ROOT = Path(__file__).parents[2]
COLUMNS = 80
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

COMMANDS = """
summary examples/targets/attention.tpu_v5e.hlo examples/gpt2_tiny.opt.hlo
ls examples/gpt2_tiny.opt.hlo
ls examples/targets/attention.tpu_v5e.hlo --sort bytes --limit 9 --source
maps examples/gpt2_tiny.opt.hlo --to parameters --source --explain
bytes examples/targets/attention.tpu_v5e.hlo
memory examples/targets/attention.tpu_v5e.hlo
source models.py examples/attention.opt.hlo
check examples/targets/attention.h100.hlo examples/targets/attention.tpu_v5e.hlo
check {faulty}
access examples/gpt2_tiny.opt.hlo
access examples/attention.opt.hlo -i broadcast_multiply_fusion
access examples/dynamic_slice_update.opt.hlo -i select_dynamic-update-slice_fusion
shard examples/attention.pre.hlo --rule
shard examples/attention.pre.hlo --mesh x=2 --spec p0=x,_
shard examples/attention.pre.hlo --mesh x=2 --search --max-plans 5
shard examples/attention.pre.hlo --sbp
tile examples/attention.opt.hlo -i ynn_fusion.7 --sizes 32,64
tile examples/attention.opt.hlo -i transpose_copy_fusion.2
tile examples/targets/attention.h100.hlo -i gemm_fusion_dot.1 --search --device H100 --limit 3
diff examples/attention.pre.hlo examples/attention.opt.hlo
diff examples/attention.pre.hlo examples/layernorm.opt.hlo
passes examples/passes/rms_pad
kernels examples/kernels/softmax
run examples/rnn.pre.hlo
ops
ops dot
explain
explain op-constraint literal name
maps --help
maps examples/attention.opt.hlo -i no_such_instruction_of_the_module
maps examples/attention.opt.hlo --kind unheard-of
nonsense
"""

FAULTY = """\
ENTRY e {
  p = f32[4,2,3] parameter(0), metadata={op_name="jit(a_function_with_a_long_name)/transpose"}
  ROOT t = f32[3,2,4] transpose(p), dimensions={2,1,1}, metadata={op_name="a long name of an op"}
}
"""


def on_terminal(words: list[str], columns: int = COLUMNS) -> str:
    """Return what a command writes on a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "indexing.cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 1 << 16):
                written += part
        except OSError:  # Linux reports the end of the child so
            pass
        os.close(ours)
        process.wait()
    return written.decode()


def too_wide(text: str) -> list[str]:
    """Return the lines that a terminal breaks, unless each is one word."""
    visible = [ESCAPE.sub("", part) for part in re.split(r"[\r\n]+", text)]
    return [line for line in visible if cell_len(line) > COLUMNS and len(line.split()) > 1]


@pytest.mark.parametrize("line", COMMANDS.strip().splitlines())
def test_every_line_fits(line: str, tmp_path: Path) -> None:
    faulty = tmp_path / "faulty.hlo"
    faulty.write_text(FAULTY)
    text = on_terminal(shlex.split(line.format(faulty=faulty)))
    assert text.strip()
    assert "Traceback" not in text
    assert "error[internal]" not in text
    assert too_wide(text) == []


@pytest.mark.parametrize(
    "line, first, spare",
    [
        ("bytes examples/targets/attention.tpu_v5e.hlo", "bytes", 2),
        ("access examples/attention.opt.hlo -i broadcast_multiply_fusion", "array", 4),
    ],
)
def test_a_narrow_terminal_omits_columns_and_names_them(line: str, first: str, spare: int) -> None:
    narrow, wide = on_terminal(line.split()), on_terminal(line.split(), 250)
    kept, every = headings(narrow, first), headings(wide, first)
    unwrapped = re.sub(r"\r?\n {5,}", " ", narrow)
    noted = re.findall(r"omitted to fit the terminal: ([^\r\n]*)", unwrapped)
    assert len(every - kept) >= spare
    assert every - kept <= set(", ".join(noted).split(", "))
    assert "omitted" not in wide


def headings(text: str, first: str) -> set[str]:
    """Return the headings of the table whose first column is `first`."""
    lines = [ESCAPE.sub("", each) for each in re.split(r"[\r\n]+", text)]
    head = next(each for each in lines if each.split()[:1] == [first])
    return {re.sub(r" of .*", "", name) for name in re.split(r"  +", head.strip())}


ROWS = [
    "",
    "p",
    "a name with words",
    "n" * 30,
    "n" * 50,
    "n" * 90,
    "(" + ", ".join(["f32"] * 9) + ")",
]


@pytest.mark.parametrize("right", [(), (0,), (2,)])
def test_no_cell_is_lost_on_a_narrow_terminal(right: tuple[int, ...]) -> None:
    for row in product(ROWS, repeat=3):
        table = [["one", "two", "three"], [*row], ["x", "y", "z"], ["x", "", ""]]
        lines = [line for part in fit_rows(table, right, width=COLUMNS)[0] for line in part]
        assert " ".join(lines).split() == " ".join(map(" ".join, table)).split()
        assert too_wide("\n".join(lines)) == []


def test_rows_of_a_narrow_table_are_lines() -> None:
    text = ESCAPE.sub("", on_terminal(["bytes", "examples/targets/attention.tpu_v5e.hlo"]))
    rows = [
        line for line in text.splitlines() if re.match(r" *(<= )?[\d,]+  +(<= )?[\d,]+  ", line)
    ]
    module = hlo.load(str(ROOT / "examples/targets/attention.tpu_v5e.hlo"))
    assert rows
    assert all(any(each.name == row.split()[-1] for each in module.entry) for row in rows)


@pytest.mark.parametrize(
    "line",
    [
        "tile examples/attention.opt.hlo -i transpose_copy_fusion.2",
        "tile examples/attention.opt.hlo -i transpose_copy_fusion.2 --sizes 1,4,16,8",
        "tile examples/attention.opt.hlo -i ynn_fusion.3 --sizes 1,4,16,16 --loops k=8",
        "tile examples/attention.opt.hlo -i transpose_copy_fusion.1",
    ],
)
def test_vectors_of_boxes_are_those_of_a_pipe(line: str) -> None:
    text = on_terminal(line.split())
    piped = subprocess.run(
        [sys.executable, "-m", "indexing.cli", *line.split()],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert vectors(text) == vectors(piped) != []
    rows = [each for each in text.splitlines() if each.lstrip().startswith("offsets")]
    assert len(rows) == piped.count("offsets [")  # each on a line of its own


def vectors(text: str) -> list[tuple[str, str]]:
    """Return the name and the elements of each vector, without spaces."""
    pairs = re.findall(r"(offsets|sizes|strides|upper bounds) +\[([^\]]*)\]", ESCAPE.sub("", text))
    return [(name, re.sub(r"\s", "", elements)) for name, elements in pairs]


def test_the_oracle_sees_wide_lines() -> None:
    assert too_wide("\x1b[1m" + "word " * 16 + "\x1b[0m\r\nshort") == []
    assert too_wide("word " * 16 + "w") == ["word " * 16 + "w"]


def test_a_format_for_programs_is_not_wrapped() -> None:
    text = on_terminal(["ls", "examples/rnn.pre.hlo", "--format", "json", "--quiet"])
    assert max(map(len, text.splitlines())) > COLUMNS
