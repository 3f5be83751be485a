"""Buffers along a schedule, compared with the live ranges and the buffer assignments of XLA.

`data/buffers` has what XLA:TPU (v5e) and XLA:GPU (H100) of jaxlib 0.10.2 dump of three programs:
the compiled modules, ``*-live-range.txt``, ``*-buffer-assignment.txt`` and
``*-memory-usage-report.txt``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import hlo
import indexing
from hlo import HloError
from hlo.shapes.shape import Shape, TupleShape, leaves
from indexing import BufferAssignment, HloBuffer, MemoryProfile, UsageReport

DATA = Path(__file__).parent / "data" / "buffers"
PROGRAMS = sorted(path.stem for path in DATA.glob("*.hlo"))
_RANGE = re.compile(r"^    (\S+?)\{([\d,]*)\}:(\d+)-(\d+)$", re.MULTILINE)
_STEP = re.compile(r"^    \d+:(\S+)$", re.MULTILINE)


def profile_of(program: str) -> MemoryProfile:
    """Return the buffers of a stored module."""
    profile = indexing.memory_profile(hlo.load(DATA / f"{program}.hlo"))
    assert isinstance(profile, MemoryProfile)
    return profile


def profile_text(text: str) -> MemoryProfile:
    """Return the buffers of a module."""
    profile = indexing.memory_profile(hlo.parse(text))
    assert isinstance(profile, MemoryProfile)
    return profile


def buffer_named(profile: MemoryProfile, name: str) -> HloBuffer:
    """Return the buffer that holds the array of an instruction."""
    (buffer,) = [b for b in profile.buffers if any(a.instruction.name == name for a in b.arrays)]
    return buffer


def by_array(profile: MemoryProfile) -> dict[tuple[str, tuple[int, ...]], HloBuffer]:
    """Return the buffer of each array."""
    return {(a.instruction.name, a.path): b for b in profile.buffers for a in b.arrays}


@pytest.mark.parametrize("program", PROGRAMS)
def test_steps_are_those_of_xla(program: str) -> None:
    ranges = (DATA / f"{program}.live-range.txt").read_text()
    steps = _STEP.findall(ranges.split("BufferLiveRange")[0])
    assert [step.name for step in profile_of(program).steps] == steps


@pytest.mark.parametrize("program", PROGRAMS)
def test_buffers_are_alive_where_xla_says(program: str) -> None:
    profile = profile_of(program)
    ranges, last = by_array(profile), len(profile.steps) - 1
    compared = 0
    for name, path, first, end in _RANGE.findall((DATA / f"{program}.live-range.txt").read_text()):
        leaf = tuple(int(number) for number in path.split(",") if number)
        instruction = next(each for each in profile.steps if each.name == name)
        if not isinstance(dict(leaves(instruction.shape)).get(leaf), Shape):
            continue  # a tuple, which holds pointers
        buffer = ranges[name, leaf]
        compared += 1
        assert all(buffer.is_alive(s) for s in range(int(first), min(int(end), last) + 1)), name
        if len(buffer.arrays) == 1:
            assert buffer.life == ((int(first), min(int(end), last)),), name
    assert compared >= 10


@pytest.mark.parametrize("program", PROGRAMS)
def test_sizes_are_those_of_the_assignment(program: str) -> None:
    profile = profile_of(program)
    assignment = BufferAssignment.load(DATA / f"{program}.buffer-assignment.txt")
    assert list(assignment.mismatches(profile.module)) == []
    assert sum(isinstance(value.shape, Shape) for value in assignment.values) >= 10
    tables = [value for value in assignment.values if isinstance(value.shape, TupleShape)]
    assert tables
    for value in tables:
        larger = replace(value, size=value.size + 1)
        kept = [larger if each is value else each for each in assignment.values]
        allocation = replace(assignment.allocations[0], is_thread_local=False, values=tuple(kept))
        (fault,) = BufferAssignment((allocation,)).mismatches(profile.module)
        assert fault.startswith(value.name)


# fmt: off
TABLES = [
    # layout      elements  bytes: what XLA:TPU (libtpu 0.0.42) and XLA:GPU assign
    ("{:T(128)}",   3,        512),  # v5e
    ("{:T(128)}",  65,        512),
    ("{:T(128)}", 129,       1024),
    ("{:T(128)}", 257,       1536),
    ("{:T(128)}",   2,         32),  # v6e
    ("{:T(128)}", 129,        544),
    ("{:T(128)}", 151,        608),
    ("",            9,         72),  # H100
    ("",            1,          8),
]
# fmt: on


@pytest.mark.parametrize(("layout", "elements", "size"), TABLES)
def test_tables_of_pointers_have_the_sizes_that_xla_assigns(
    layout: str, elements: int, size: int
) -> None:
    shape = f"({', '.join([f'f32[]{layout}'] * elements)})"
    module = hlo.parse(f"ENTRY e {{ ROOT p = {shape} parameter(0) }}")
    for given in (size, size + 4, 2 * size):
        text = f"BufferAssignment:\nallocation 0: size {given}:\n"
        text += f" value: <0 p{{}} @0> (size={given},offset=0): {shape}\n"
        faults = list(BufferAssignment.parse(text).mismatches(module))
        assert bool(faults) == (given != size)


def test_an_array_in_place_of_a_tuple_is_told() -> None:
    module = hlo.parse("ENTRY e { ROOT p = (f32[4]) parameter(0) }")
    for path, shape in (("{}", "f32[4]"), ("{0}", "(f32[4])"), ("{1}", "f32[4]")):
        text = f"BufferAssignment:\nallocation 0: size 16:\n value: <0 p{path} @0> "
        text += f"(size=16,offset=0): {shape}\n"
        (fault,) = BufferAssignment.parse(text).mismatches(module)
        assert "no array" in fault


@pytest.mark.parametrize(
    ("text", "label"),
    [
        (" value: <1 w @0> (size=16,offset=0): f32[4]{0}", None),  # `s{1}`, which is wrapped
        (" value: <1 w @0> (size=20,offset=0): f32[5]{0}", "has no such array"),
        (" value: <1 r @0> (size=20,offset=0): f32[5]{0}", "has f32[4]{0}, the assignment f32[5]"),
        (" value: <1 r{} @0> (size=8,offset=0): (f32[4]{0})", "has f32[4]{0}, the assignment (f3"),
    ],
)
def test_the_assignment_of_another_module_is_told(text: str, label: str | None) -> None:
    module = hlo.parse("""ENTRY e { p = f32[4]{0} parameter(0)
      s = ((f32[4]{0}), f32[4]{0}, u32[]) copy-start(p)  ROOT r = f32[4]{0} negate(p) }""")
    given = "allocation 0: size 16, parameter 0, shape |f32[4]| at ShapeIndex {}:\n"
    given += " value: <0 p @0> (size=16,offset=0): f32[4]{0}\nallocation 1: size 20:"
    assignment = BufferAssignment.parse(f"BufferAssignment:\n{given}\n{text}\n")
    error = assignment.of_another_module(module)
    if label is None:
        assert error is None
    else:
        assert error is not None
        assert label in error.label


def test_arrays_of_unknown_size_are_unknown() -> None:
    answer = indexing.memory_profile(
        hlo.parse("ENTRY e { p = f32[?,3] parameter(0)  ROOT n = f32[?,3] negate(p) }")
    )
    assert not isinstance(answer, MemoryProfile)
    assert "f32[?,3] has a dimension of unknown size" in str(answer)


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each.startswith("tpu")])
def test_the_peak_is_near_what_xla_allocates(program: str) -> None:
    profile = profile_of(program)
    assignment = BufferAssignment.load(DATA / f"{program}.buffer-assignment.txt")
    vmem = profile.peaks[1]
    assert vmem.name == "VMEM"
    assert 0.9 * assignment.bytes(1) <= vmem.stored_bytes <= assignment.bytes(1)
    assert vmem.dense_bytes <= vmem.stored_bytes


@pytest.mark.parametrize("program", PROGRAMS)
def test_reported_sizes_are_those_of_the_module(program: str) -> None:
    report = UsageReport.load(DATA / f"{program}.memory-usage-report.txt")
    assert list(report.mismatches(profile_of(program).module)) == []
    assert len(report.rows) >= 10
    assignment = BufferAssignment.load(DATA / f"{program}.buffer-assignment.txt")
    assert [each.space for each in report.spaces] == assignment.spaces
    for space in assignment.spaces:
        sizes = [each.size for each in assignment.allocations if each.space == space]
        assert report.bytes(space) == sum(sizes)


def test_another_shape_in_a_report_is_told() -> None:
    text = (DATA / "tpu_scan_rnn.memory-usage-report.txt").read_text()
    module = profile_of("tpu_scan_rnn").module
    larger = UsageReport.parse(text.replace("128.0KiB;            0;", "128.1KiB;            0;"))
    (fault,) = larger.mismatches(module)
    assert fault.startswith("128.1KiB for f32[64,8,32] in default: 128.0KiB")
    other = UsageReport.parse(text.replace("1; f32[64,8,32]", "1; f32[64,8,33]"))
    assert all("no such array" in fault for fault in other.mismatches(module))


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "u.txt:1:1", "no report of memory usage"),
        ("Memory Space: vmem (color=1)\nTotal bites: 4", "u.txt:2:1", "not part of"),
        (
            "Memory Space: vmem (color=1)\nTotal bytes: 4 (4B)\n 4B(100%); 4B; 0; 1; q32[]",
            "u.txt:3:1",
            "element type",
        ),
    ],
)
def test_errors_of_a_report(text: str, place: str, message: str) -> None:
    with pytest.raises(HloError, match=message) as caught:
        UsageReport.parse(text, "u.txt")
    assert caught.value.span.place() == place


@pytest.mark.parametrize("program", PROGRAMS)
def test_with_the_assignment_buffers_share_what_xla_shares(program: str) -> None:
    assignment = BufferAssignment.load(DATA / f"{program}.buffer-assignment.txt")
    profile = indexing.memory_profile(hlo.load(DATA / f"{program}.hlo"), assignment)
    assert isinstance(profile, MemoryProfile)
    places = {
        (value.name, value.path): (each.number, value.offset)
        for each in assignment.allocations
        for value in each.values
    }
    for buffer in profile.buffers:
        known = [places.get((array.instruction.name, array.path)) for array in buffer.arrays]
        assert len({*known} - {None}) <= 1, buffer.name
    for space in assignment.spaces:
        assert profile.peaks[space].stored_bytes <= assignment.bytes(space)


def test_xla_writes_results_over_more_operands_than_its_rules_demand() -> None:
    program = "tpu_kv_cache_decode"
    assignment = BufferAssignment.load(DATA / f"{program}.buffer-assignment.txt")
    module = hlo.load(DATA / f"{program}.hlo")
    shared = indexing.memory_profile(module, assignment)
    assert isinstance(shared, MemoryProfile)
    allocated = assignment.bytes(6)
    assert shared.peaks[6].stored_bytes <= allocated < profile_of(program).peaks[6].stored_bytes


def test_another_layout_is_told() -> None:
    text = (DATA / "tpu_kv_cache_decode.hlo").read_text()
    module = hlo.parse(text.replace("T(8,128)(2,1)", "T(8,512)(2,1)"))
    assignment = BufferAssignment.load(DATA / "tpu_kv_cache_decode.buffer-assignment.txt")
    assert any("as assigned" in fault for fault in assignment.mismatches(module))


def test_arrays_of_a_loop_share_a_buffer() -> None:
    profile = profile_text("""
        more { s = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          n = s32[] constant(3)  ROOT c = pred[] compare(i, n), direction=LT }
        next { s = (s32[], f32[8]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          x = f32[8] get-tuple-element(s), index=1  one = s32[] constant(1)
          j = s32[] add(i, one)  y = f32[8] negate(x)  ROOT t = (s32[], f32[8]) tuple(j, y) }
        ENTRY e { z = s32[] constant(0)  p = f32[8] parameter(0)  q = f32[8] copy(p)
          t = (s32[], f32[8]) tuple(z, q)
          w = (s32[], f32[8]) while(t), condition=more, body=next
          ROOT r = f32[8] get-tuple-element(w), index=1 }""")
    state = buffer_named(profile, "q")
    assert {each.instruction.name for each in state.arrays} == {"q", "s", "y", "w"}
    assert state.kind == "output"
    first = next(n for n, each in enumerate(profile.steps) if each.name == "q")
    assert state.life == ((first, len(profile.steps) - 1),)


def test_branches_and_calls() -> None:
    profile = profile_text("""
        f { x = f32[8] parameter(0)  ROOT n = f32[8] negate(x) }
        g { x = f32[8] parameter(0)  ROOT s = f32[8] sine(x) }
        ENTRY e { p = pred[] parameter(0)  q = f32[8] parameter(1)
          c = f32[8] call(q), to_apply=f
          ROOT r = f32[8] conditional(p, c, c), true_computation=f, false_computation=g }""")
    result = buffer_named(profile, "r")
    assert {each.instruction.name for each in result.arrays} == {"n", "s", "r"}
    assert result.kind == "output"


def test_donated_arguments_and_updates_in_place() -> None:
    profile = profile_text("""
        HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
        ENTRY e { p = f32[64] parameter(0)  x = f32[2] parameter(1)  i = s32[] parameter(2)
          ROOT u = f32[64] dynamic-update-slice(p, x, i) }""")
    buffer = buffer_named(profile, "u")
    assert buffer is buffer_named(profile, "p")
    assert buffer.kind == "donated"
    assert profile.peak == 4 * 64 + 4 * 2 + 4


def test_asynchronous_copies_hold_their_operand() -> None:
    profile = profile_text("""
        HloModule m, is_scheduled=true
        ENTRY e { p = f32[64] parameter(0)  n = f32[64] negate(p)
          s = (f32[64]{0:S(1)}, f32[64], u32[]) copy-start(n)
          m = f32[64] negate(p)
          d = f32[64]{0:S(1)} copy-done(s)
          ROOT a = f32[64] add(d, m) }""")
    names = [each.name for each in profile.steps]
    assert buffer_named(profile, "n").life == ((names.index("n"), names.index("d")),)
    copy = next(b for b in profile.buffers if b.name == "s{0}")
    assert (copy.space, copy.life) == (1, ((names.index("s"), names.index("a")),))


def test_exponentially_many_steps_are_unknown() -> None:
    levels = "".join(
        f"f{n} {{ x = f32[] parameter(0)  a = f32[] call(x), to_apply=f{n - 1}"
        f"  ROOT b = f32[] call(a), to_apply=f{n - 1} }}\n"
        for n in range(1, 40)
    )
    text = f"f0 {{ x = f32[] parameter(0)  ROOT n = f32[] negate(x) }}\n{levels}"
    text += "ENTRY e { p = f32[] parameter(0)  ROOT r = f32[] call(p), to_apply=f39 }"
    answer = indexing.memory_profile(hlo.parse(text))
    assert not isinstance(answer, MemoryProfile)
    assert "steps" in str(answer)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "b.txt:1:1", "no buffer assignment"),
        ("BufferAssignment:\nallocation x", "b.txt:2:1", "not part of"),
        (
            "BufferAssignment:\nallocation 0: size 4:\n value: <0 p @0> (size=4,offset=0): q32[]",
            "b.txt:3:37",
            "element type",
        ),
    ],
)
def test_errors_of_an_assignment(text: str, place: str, message: str) -> None:
    with pytest.raises(HloError, match=message) as caught:
        BufferAssignment.parse(text, "b.txt")
    assert caught.value.span.place() == place
