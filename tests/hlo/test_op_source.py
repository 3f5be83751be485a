"""The source of an instruction: the place in a program and the op name that its metadata record."""

from pathlib import Path

import pytest

import hlo
from hlo import OpSource, StackFrame

ROOT = Path(__file__).parent.parent.parent
TABLES = r"""HloModule m

FileNames
1 "a.py"
2 "gr\303\266\"\303\237e \\b.py"

FunctionNames
1 "<module>"
2 "f\303\266"
3 "f.<locals>.g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=0 end_column=4}
2 {file_name_id=2 function_name_id=2 line=4 end_line=5 column=8 end_column=29}
3 {file_name_id=1 function_name_id=3 line=7 end_line=7 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
4 {file_location_id=3 parent_frame_id=2}
5 {file_location_id=2 parent_frame_id=6}
6 {file_location_id=3}
7 {file_location_id=99 parent_frame_id=3}

ENTRY e { p = f32[2] parameter(0), metadata={%s} }
"""
MODULE = StackFrame("a.py", 9, 0, 9, 4, "<module>")
F = StackFrame('grö"ße \\b.py', 4, 8, 5, 29, "fö")
G = StackFrame("a.py", 7, None, 7, None, "f.<locals>.g")

RECORDED = [
    # metadata, op name, frames (innermost first)
    ('op_name="jit(f)/add" stack_frame_id=3', "jit(f)/add", (G, F, MODULE)),
    ("stack_frame_id=2", "", (F, MODULE)),
    ("stack_frame_id=1", "", (MODULE,)),
    ("stack_frame_id=4", "", (G, MODULE)),
    ("stack_frame_id=6", "", (G,)),  # no parent
    ("stack_frame_id=5", "", (F,)),  # its own parent
    ("stack_frame_id=7", "", ()),  # no such location
    ("stack_frame_id=8", "", ()),  # no such frame
    ("stack_frame_id=0", "", ()),
    ("stack_frame_id=" + "9" * 5000, "", ()),
    ('source_file="m.py"', "", (StackFrame("m.py"),)),
    ('source_file="m.py" source_line=5 op_name="x"', "x", (StackFrame("m.py", 5),)),
    ('source_file="m.py" source_line=0', "", (StackFrame("m.py"),)),
    (
        'source_file="m.py" source_line=5 source_end_line=6 source_column=1 source_end_column=3',
        "",
        (StackFrame("m.py", 5, 1, 6, 3),),
    ),
    ('source_file="m.py" source_line=5 stack_frame_id=3', "", (StackFrame("m.py", 5),)),
    ('source_file="" source_line=5', "", ()),
    (r'op_name="p[\'k\']" op_type="op_name=\"y\""', "p['k']", ()),
    (r'op_type="op_name=\"y\" source_file=\"z\""', "", ()),
    (r"op_name='f\303\266'", "fö", ()),
    (r'op_name="\377"', "\\xff", ()),
    ("", "", ()),
]


@pytest.mark.parametrize("metadata, op_name, frames", RECORDED, ids=lambda value: str(value)[:40])
def test_metadata_and_tables_record_a_source(
    metadata: str, op_name: str, frames: tuple[StackFrame, ...]
) -> None:
    source = hlo.parse(TABLES % metadata).entry.root.source
    assert (source.op_name, source.frames) == (op_name, frames)
    assert source.frame == (frames[0] if frames else None)
    assert bool(source) == bool(op_name or frames)


def test_a_source_has_the_innermost_place_and_prints_it_first() -> None:
    source = hlo.parse(TABLES % 'op_name="jit(f)/add" stack_frame_id=3').entry.root.source
    assert (source.file, source.line, source.column, source.function) == (
        "a.py",
        7,
        None,
        G.function,
    )
    assert str(source) == "a.py:7: jit(f)/add"
    assert list(map(str, (F, MODULE, StackFrame("m.py")))) == [f"{F.file}:4:8", "a.py:9:0", "m.py"]


def test_an_instruction_without_metadata_has_an_empty_source() -> None:
    source = hlo.parse("ENTRY e { p = f32[2] parameter(0) }").entry.root.source
    assert source == OpSource()
    assert (source.file, source.line, source.column, source.function) == (None,) * 4
    assert str(source) == ""


def test_every_stack_frame_of_the_examples_has_a_line() -> None:
    numbers = 0
    for path in sorted(ROOT.glob("examples/*.hlo")):
        for instruction in hlo.load(path).instructions:
            recorded = "stack_frame_id" in str(instruction)
            numbers += recorded
            assert (instruction.source.line is not None) == recorded, instruction
            assert ("op_name=" in str(instruction)) == bool(instruction.source.op_name)
    assert numbers > 100
