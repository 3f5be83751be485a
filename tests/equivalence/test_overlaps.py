"""Arrays over each other in a buffer assignment: verdicts compared with executions, and with XLA.

The first oracle executes random programs in shared memory (`arenas`), the second are the live
ranges that XLA dumps with its assignments.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hlo
from hlo import Module
from hlo.shapes.shape import Shape, leaves
from indexing import BufferAssignment
from indexing.equivalence.shared_memory import SharedMemory, check_in_place
from indexing.maps.arrays import ArrayRef, array_name
from indexing.memory.buffers.assignment import AssignedValue
from tests.equivalence.arenas import Place, is_right, shape_of

DATA = Path(__file__).parents[1] / "memory" / "data" / "buffers"
PROGRAM_NAMES = sorted(path.stem for path in DATA.glob("*.hlo"))
RANGE = re.compile(r"^    (\S+?)\{([\d,]*)\}:(\d+)-(\d+)$", re.MULTILINE)

OPS = [
    # the result and the computation of `s` from parameters `p` and `q`, with a scalar `z`
    ("f32[6]", "s = f32[6] negate(p)"),
    ("f32[6]", "s = f32[6] reverse(p), dimensions={0}"),
    ("f32[6]", "s = f32[6] add(p, q)"),
    ("f32[6]", "s = f32[6] pad(p, z), padding=2_-2"),
    ("f32[6]", "a = f32[2] slice(p), slice={[1:5:2]}  s = f32[6] pad(a, z), padding=3_1"),
    ("f32[2,3]", "s = f32[2,3] reshape(p)"),
    ("f32[2,3]{0,1}", "s = f32[2,3]{0,1} reshape(p)"),
    ("f32[4]", "s = f32[4] slice(q), slice={[2:6]}"),
    ("f32[9]", "s = f32[9] pad(q, z), padding=0_3"),
    ("f16[6]", "s = f16[6] convert(p)"),
    ("f16[10]", "a = f16[6] convert(p)  y = f16[] convert(z)  s = f16[10] pad(a, y), padding=0_4"),
]
BACK = {
    "f32[6]": "bitcast(v)",
    "f32[2,3]": "reshape(v)",
    "f32[2,3]{0,1}": "reshape(v)",
    "f32[4]": "pad(v, z), padding=1_1",
    "f32[9]": "slice(v), slice={[3:9]}",
    "f16[6]": "convert(v)",
    "f16[10]": "convert(t)",
}


def random_program(draw: random.Random, count: int) -> Module:
    """Return a chain of fusions; each computes from two arrays before, scaled by its own factor."""
    functions, lines = [], ["x = f32[6] parameter(0)", "y = f32[6] parameter(1)"]
    known = [("x", "f32[6]"), ("y", "f32[6]")]
    for number in range(count):
        shape, text = draw.choice(OPS)
        chosen = [draw.choice(known[-3:]), draw.choice(known)]
        given = []
        for letter, (_, own) in zip("pq", chosen, strict=True):
            given.append(f"{letter}0 = {own} parameter({'pq'.index(letter)})")
            slice_of = f"t = f16[6] slice({letter}0), slice={{[2:8]}}  ".replace(
                "t =", f"{letter}1 ="
            )
            back = BACK[own].replace("(v", f"({letter}0").replace("(t", f"({letter}1")
            given.append(f"{slice_of if own == 'f16[10]' else ''}{letter} = f32[6] {back}")
        kind = shape.split("[")[0]
        functions.append(
            f"f{number} {{ z = f32[] constant({number + 50})  {'  '.join(given)}  {text}\n"
            f"  k = {kind}[] constant({number + 2})  b = {shape} broadcast(k), dimensions={{}}\n"
            f"  ROOT r = {shape} multiply(s, b) }}"
        )
        name = f"v{number}"
        root = "ROOT " if number == count - 1 else ""
        lines.append(
            f"{root}{name} = {shape} fusion({chosen[0][0]}, {chosen[1][0]}), kind=kLoop, "
            f"calls=f{number}"
        )
        known.append((name, shape))
    head = "HloModule m, is_scheduled=true\n" + "\n".join(functions)
    return hlo.parse(head + "\nENTRY e {\n  " + "\n  ".join(lines) + "\n}")


def random_array(draw: random.Random) -> NDArray[np.float32]:
    """Return different small integers."""
    return np.array(draw.sample(range(1, 40), 6), np.float32)


def assignment_of(module: Module, places: dict[str, Place]) -> BufferAssignment:
    """Return the assignment of a module with these places."""
    lines = ["BufferAssignment:"]
    for number in sorted({place.allocation for place in places.values()}):
        lines.append(f"allocation {number}: size 999:")
        for n, each in enumerate(module.entry.instructions):
            if places[each.name].allocation == number:
                shape, first = shape_of(each), places[each.name].first
                lines.append(
                    f" value: <{n} {each.name} @0> (size={shape.bytes},offset={first}): {shape}"
                )
    return BufferAssignment.parse("\n".join(lines) + "\n")


def outcome(shared: SharedMemory) -> str:
    """Return the verdict on a whole module."""
    assert shared.overlaps is not None
    if shared.errors:
        return "not safe"
    return "undecided" if shared.overlaps.undecided or shared.count("undecided") else "safe"


def test_verdicts_are_those_of_executions_in_shared_memory() -> None:
    draw, outcomes, in_part = random.Random(53), Counter[str](), 0
    for trial in range(150):
        module = random_program(draw, draw.choice([2, 3, 4]))
        arrays = [each for each in module.entry.instructions if each.opcode != "parameter"]
        places = {"x": Place(0, 0), "y": Place(1, 0)}
        for each in arrays:
            step = 2 if shape_of(each).element_type == "f16" else 4
            places[each.name] = Place(2, step * draw.randrange(72 // step))
        shared = check_in_place(module, assignment_of(module, places))
        right = all(
            is_right(module, places, [random_array(draw), random_array(draw)], reverse)
            for reverse in (False, True, False, True)  # by chance, what is overwritten is equal
        )
        verdict = outcome(shared)
        outcomes[verdict] += 1
        in_part += shared.overlaps.in_part if shared.overlaps else 0
        where = f"trial {trial}: {verdict}\n{module}\n{places}\n" + "\n".join(
            map(str, shared.errors)
        )
        if verdict != "undecided":
            assert right == (verdict == "safe"), where
    assert min(outcomes["safe"], outcomes["not safe"]) >= 20, outcomes
    assert outcomes["undecided"] <= 10, outcomes
    assert in_part >= 100


def is_safe(module: Module, values: str) -> str:
    """Return the outcome with values at places in one allocation, as `name{path}@first`."""
    lines = ["BufferAssignment:", "allocation 0: size 999:"]
    shapes = {}
    for each in module.instructions:
        for path, shape in leaves(each.shape):
            shapes[array_name(ArrayRef(each, path))] = shape
    for number, text in enumerate(values.split()):
        name, first = text.split("@")
        shape = shapes[name]
        assert isinstance(shape, Shape)
        size = f"(size={shape.physical_bytes},offset={first})"
        lines.append(f" value: <{number} {name} @0> {size}: {shape}")
    return outcome(check_in_place(module, BufferAssignment.parse("\n".join(lines) + "\n")))


PROGRAMS = {
    "chain": """ENTRY e { x = f32[4] parameter(0)  a = f32[4] negate(x)  b = f32[4] sine(x)
        c = f32[4] add(a, b)  ROOT r = f32[4] negate(c) }""",
    "call": """ENTRY e { x = f32[4] parameter(0)  a = f32[4] negate(x)  b = f32[4] sine(x)
        c = f32[4] custom-call(a), custom_call_target="t"  ROOT r = f32[4] add(b, c) }""",
    "pair": """f { p = f32[4] parameter(0)  n = f32[4] negate(p)  s = f32[4] sine(p)
          ROOT t = (f32[4], f32[4]) tuple(n, s) }
        ENTRY e { x = f32[4] parameter(0)
        a = (f32[4], f32[4]) fusion(x), kind=kLoop, calls=f
        b = f32[4] get-tuple-element(a), index=0  c = f32[4] get-tuple-element(a), index=1
        ROOT r = f32[4] add(b, c) }""",
    "start": """ENTRY e { x = f32[4] parameter(0)  a = f32[4] negate(x)
        s = (f32[4], f32[4], u32[]) copy-start(a)  b = f32[4] sine(x)  c = f32[4] cosine(b)
        d = f32[4] copy-done(s)  ROOT r = f32[4] add(c, d) }""",
    "constant": """ENTRY e { x = f32[4] parameter(0)  k = f32[4] constant({1,2,3,4})
        a = f32[4] add(x, k)  b = f32[4] negate(a)  ROOT r = f32[4] negate(b) }""",
    "update": """ENTRY e { x = f32[4] parameter(0)  i = s32[] parameter(1)
        a = f32[4] negate(x)  o = f32[4] sine(x)
        u = f32[1] slice(x), slice={[0:1]}  b = f32[4] dynamic-update-slice(a, u, i)
        ROOT r = f32[4] add(b, o) }""",
    "loop": """
        more { s = (s32[], f32[4], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          n = s32[] constant(3)  ROOT t = pred[] compare(i, n), direction=LT }
        next { s = (s32[], f32[4], f32[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0
          x = f32[4] get-tuple-element(s), index=1  k = f32[4] get-tuple-element(s), index=2
          one = s32[] constant(1)  j = s32[] add(i, one)  a = f32[4] sine(x)  b = f32[4] add(a, k)
          ROOT t = (s32[], f32[4], f32[4]) tuple(j, b, k) }
        ENTRY e { z = s32[] constant(0)  p = f32[4] parameter(0)  q = f32[4] negate(p)
          h = f32[4] cosine(p)  t = (s32[], f32[4], f32[4]) tuple(z, q, h)
          w = (s32[], f32[4], f32[4]) while(t), condition=more, body=next
          l = f32[4] get-tuple-element(w), index=1  ROOT r = f32[4] negate(l) }""",
    "slices": """
        f { p = f32[4,3] parameter(0)  ROOT s = f32[2,3] slice(p), slice={[0:2], [0:3]} }
        g { p = f32[4,3] parameter(0)  ROOT s = f32[2,3] slice(p), slice={[2:4], [0:3]} }
        ENTRY e { x = f32[4,3] parameter(0)
          s = ((f32[4,3]), f32[2,3], s32[]) async-start(x), calls=f
          t = ((f32[4,3]), f32[2,3], s32[]) async-start(x), calls=g
          d = f32[2,3] async-done(s)  e = f32[2,3] async-done(t)
          a = f32[4,3] custom-call(e, d), custom_call_target="ConcatBitcast"
          ROOT r = f32[4,3] negate(a) }""",
    "branches": """
        f { x = f32[4] parameter(0)  a = f32[4] negate(x)  ROOT b = f32[4] sine(a) }
        g { y = f32[4] parameter(0)  c = f32[4] negate(y)  ROOT d = f32[4] cosine(c) }
        ENTRY e { p = pred[] parameter(0)  q = f32[4] parameter(1)  m = f32[4] negate(q)
          n = f32[4] sine(q)  o = pred[] not(p)
          w = f32[4] conditional(o, m, n), true_computation=f, false_computation=g
          ROOT r = f32[4] negate(w) }""",
}

# fmt: off
PLACES = [
    ("chain",    "a@0 b@16 c@0",           "safe"),      # in place
    ("chain",    "a@0 b@16 c@4",           "not safe"),  # `c` overwrites elements of `a` first
    ("chain",    "a@0 b@12",               "not safe"),  # `c` reads the last element of `a`
    ("chain",    "x@0 a@4",                "not safe"),  # the argument is not given away
    ("chain",    "a@0 b@16 r@4",           "safe"),      # `a` and `b` are not read any more
    ("chain",    "r@0 a@0 c@16",           "safe"),
    ("call",     "a@0 b@16 c@0",           "undecided"),
    ("call",     "a@0 b@12",               "undecided"),  # does the call read it?
    ("call",     "a@0 b@0",                "not safe"),  # all elements
    ("pair",     "a{0}@0 a{1}@16",         "safe"),
    ("pair",     "a{0}@0 a{1}@12",         "not safe"),  # both are written at once
    ("start",    "a@0 b@16",               "safe"),
    ("start",    "a@0 b@4",                "not safe"),  # the copy may still read `a`
    ("start",    "a@0 c@4",                "not safe"),
    ("start",    "a@0 r@4",                "safe"),
    ("start",    "s{0}@0 b@4 c@32",        "not safe"),  # the copy may write before `b` or after it
    ("constant", "k@0 a@16 b@32",          "safe"),
    ("constant", "k@0 b@4",                "not safe"),  # the next run reads the constant again
    ("update",   "a@0 b@0 u@16",           "safe"),
    ("update",   "a@0 u@12 b@16",          "undecided"), # the update copies `a`, or writes into it
    ("update",   "a@0 b@0 o@12",           "undecided"), # is `o` overwritten, or was `a` before?
    ("update",   "a@0 b@0 r@0 o@16",       "safe"),
    ("loop",     "q@0 h@16 s{1}@0 a@32 b@0 w{1}@0", "safe"),
    ("loop",     "q@0 h@16 a@24 b@0",      "not safe"),  # the next iteration reads `h` as `k`
    ("loop",     "q@0 h@16 a@0 b@32",      "not safe"),  # and what is not at the place of its state
    ("loop",     "q@0 h@16 s{1}@0 a@8 b@0 w{1}@0", "not safe"),
    ("loop",     "q@0 h@16 b@0 r@20",      "safe"),      # after the loop
    ("loop",     "q@0 h@16 b@0 r@4",       "not safe"),
    ("slices",   "s{1}@0 t{1}@24 a@0",     "safe"),      # the order is not that of the operands
    ("slices",   "s{1}@24 t{1}@0 a@0",     "not safe"),  # exchanged
    ("slices",   "s{1}@0 t{1}@24 a@12",    "not safe"),
    ("slices",   "s{1}@0 t{1}@24 a@48",    "not safe"),  # nothing copies them
    ("slices",   "s{1}@0 t{1}@20 a@0",     "not safe"),
    ("branches", "m@0 n@16 a@32 c@36 b@52 d@52 w@52", "safe"),  # only one branch is executed
    ("branches", "m@0 n@16 a@20",          "safe"),      # `n` is read in the other branch only
    ("branches", "m@0 n@32 c@4",           "safe"),
    ("branches", "m@0 n@16 b@48 d@52",     "not safe"),  # the results have one place
    ("branches", "o@0 m@16 n@32 a@0",      "safe"),      # `o` is tested before
    ("branches", "o@17 m@16 n@32",         "not safe"),
]
# fmt: on


@pytest.mark.parametrize(("program", "values", "expected"), PLACES)
def test_places(program: str, values: str, expected: str) -> None:
    module = hlo.parse(f"HloModule m, is_scheduled=true\n{PROGRAMS[program]}")
    assert is_safe(module, values) == expected


def live_ranges(program: str) -> dict[tuple[str, tuple[int, ...]], list[tuple[int, int]]]:
    """Return XLA's live ranges of the values of a stored program."""
    ranges: dict[tuple[str, tuple[int, ...]], list[tuple[int, int]]] = {}
    text = (DATA / f"{program}.live-range.txt").read_text()
    for name, path, first, last in RANGE.findall(text):
        leaf = tuple(int(number) for number in path.split(",") if number)
        ranges.setdefault((name, leaf), []).append((int(first), int(last)))
    return ranges


def meet(own: list[tuple[int, int]], other: list[tuple[int, int]], by: int) -> bool:
    """Return True if two values are alive in more than `by` common steps."""
    return any(min(b, d) - max(a, c) >= by for a, b in own for c, d in other)


def move_arrays(
    program: str,
) -> Iterator[tuple[AssignedValue, list[AssignedValue], BufferAssignment]]:
    """Yield assignments in which one array is moved over the middle of another one.

    Yields:
        The array, what has some of the same bytes then, and the assignment.
    """
    assignment = BufferAssignment.load(DATA / f"{program}.buffer-assignment.txt")
    for number, allocation in enumerate(assignment.allocations):
        arrays = [value for value in allocation.values if isinstance(value.shape, Shape)]
        if allocation.is_thread_local:
            continue
        for value, other in permutations(arrays, 2):
            first = other.offset + other.size // 8 * 4
            if first == value.offset:
                continue
            new = replace(value, offset=first)
            values = [new if each is value else each for each in allocation.values]
            overlapping = [
                each
                for each in arrays
                if each is not value
                and each.offset < first + value.size
                and first < each.offset + each.size
            ]
            changed = list(assignment.allocations)
            changed[number] = replace(allocation, values=tuple(values))
            yield new, overlapping, BufferAssignment(tuple(changed))


PADDING = {("tpu_kv_cache_decode", "lt.2"), ("tpu_kv_cache_decode", "add.2")}
"""Scalars, in tiles of 512 bytes, that are moved over the padding of others."""


@pytest.mark.parametrize("program", ["gpu_scan_rnn", "tpu_kv_cache_decode", "tpu_scan_rnn"])
def test_arrays_that_xla_keeps_alive_must_not_be_overwritten(program: str) -> None:
    module, ranges = hlo.load(DATA / f"{program}.hlo"), live_ranges(program)
    outcomes = Counter[tuple[bool, str]]()
    for value, others, assignment in islice(move_arrays(program), 0, None, 2):
        shared = check_in_place(module, assignment)
        own = ranges[value.name, value.path]
        theirs = [ranges[other.name, other.path] for other in others]
        is_taken = any(" takes " in error.message for error in shared.errors)
        if any(meet(own, each, 1) for each in theirs) and (program, value.name) not in PADDING:
            outcomes[True, outcome(shared)] += 1
        elif not any(meet(own, each, 0) for each in theirs) and not is_taken:
            outcomes[False, outcome(shared)] += 1
    assert outcomes[True, "safe"] == outcomes[False, "not safe"] == 0
    assert outcomes[False, "undecided"] == 0 < outcomes[False, "safe"]
    assert outcomes[True, "not safe"] > 9 * outcomes[True, "undecided"]


@pytest.mark.parametrize("program", PROGRAM_NAMES)
def test_assignments_of_xla_are_safe(program: str) -> None:
    assignment = BufferAssignment.load(DATA / f"{program}.buffer-assignment.txt")
    shared = check_in_place(hlo.load(DATA / f"{program}.hlo"), assignment)
    assert outcome(shared) == "safe"
    assert shared.overlaps is not None
    assert shared.overlaps.in_part >= 2 or program == "gpu_kv_cache_decode"
