"""`maps --source` lists all lines behind an instruction; the oracle is the text itself."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import hlo
from indexing.views.source_lines import lines_behind

EXAMPLE = Path(__file__).parents[2] / "examples" / "attention.opt.hlo"


def recorded(text: str, computation: str) -> dict[str, set[int]]:
    """Return the lines in the metadata of a computation, by a scan of its text."""
    body = text[text.index(f"%{computation} ") :]
    body = body[: body.index("\n}")]
    frames = dict(re.findall(r"^(\d+) \{file_location_id=(\d+)", text, re.MULTILINE))
    places = {
        n: (f, int(line))
        for n, f, line in re.findall(
            r"^(\d+) \{file_name_id=(\d+) function_name_id=\d+ line=(\d+)", text, re.MULTILINE
        )
    }
    section = text[text.index("FileNames") : text.index("FunctionNames")]
    names = dict(re.findall(r'^(\d+) "(.*)"', section, re.MULTILINE))
    numbers: dict[str, set[int]] = defaultdict(set)
    for line in body.splitlines():
        frame = re.search(r"stack_frame_id=(\d+)", line)
        if frame and " parameter(" not in line:
            file, number = places[frames[frame[1]]]
            numbers[names[file]].add(number)
    return numbers


def test_a_fusion_has_the_lines_of_all_instructions_inside_of_it() -> None:
    text = EXAMPLE.read_text()
    module = hlo.parse(text)
    count = 0
    for each in module.entry:
        if each.opcode == "fusion" and not any(
            inner.called_computations and inner.opcode == "fusion"
            for inner in each.called_computations[0]
        ):
            count += 1
            lines = {file: set(numbers) for file, numbers in lines_behind(each).items()}
            assert lines == recorded(text, each.called_computations[0].name)
    assert count > 5


def test_a_result_depends_on_the_lines_of_its_operands() -> None:
    module = hlo.parse(EXAMPLE.read_text())
    root = module.entry.root
    behind = lines_behind(root, to_parameters=True)
    every: dict[str, set[int]] = {}
    for each in module.instructions:  # the module has no dead code
        frame = each.source.frame
        if frame is not None and frame.line is not None:
            every.setdefault(frame.file, set()).add(frame.line)
    assert {file: set(numbers) for file, numbers in behind.items()} == every
    first = module.entry.instructions[len(module.entry.parameters)]
    assert lines_behind(first, to_parameters=True) != behind


def test_of_a_tuple_only_the_output_counts() -> None:
    root = hlo.parse("""ENTRY e {
      p = f32[2] parameter(0)
      a = f32[2] negate(p), metadata={source_file="m.py" source_line=3}
      b = f32[2] abs(p), metadata={source_file="m.py" source_line=5}
      ROOT t = (f32[2], f32[2]) tuple(a, b) }""").entry.root
    assert lines_behind(root, 0, to_parameters=True) == {"m.py": (3,)}
    assert lines_behind(root, 1, to_parameters=True) == {"m.py": (5,)}
