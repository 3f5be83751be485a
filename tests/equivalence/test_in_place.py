"""Updates in place, decided from maps, compared with executions that share the memory.

The oracle computes each program element by element, in a loop that writes over the operand:
forwards, backwards and in random orders.  A program is safe if all of them have the right result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

import hlo
import indexing
from hlo import Module
from indexing import Differs, Hazard, Proved, Undecided
from indexing.equivalence.shared_memory import check_in_place

Index = tuple[int, ...]
Reads = Callable[[Index], list[Index]]

SIZES = (4, 6)

READS: dict[str, tuple[str, Reads]] = {
    "own": ("s = f32[4,6] negate(p)", lambda i: [i]),
    "row before": (
        "s = f32[4,6] pad(p, z), padding=1_-1x0_0",
        lambda i: [(i[0] - 1, i[1])] if i[0] else [],
    ),
    "row after": (
        "s = f32[4,6] pad(p, z), padding=-1_1x0_0",
        lambda i: [(i[0] + 1, i[1])] if i[0] < 3 else [],
    ),
    "reverse": ("s = f32[4,6] reverse(p), dimensions={1}", lambda i: [(i[0], 5 - i[1])]),
    "twice reversed": (
        "q = f32[4,6] reverse(p), dimensions={1}  s = f32[4,6] reverse(q), dimensions={1}",
        lambda i: [i],
    ),
    "column 0": (
        "c = f32[4,1] slice(p), slice={[0:4], [0:1]}  y = f32[4] reshape(c)  "
        "s = f32[4,6] broadcast(y), dimensions={0}",
        lambda i: [(i[0], 0)],
    ),
    "sums of rows": (
        "y = f32[4] reduce(p, z), dimensions={1}, to_apply=add  "
        "s = f32[4,6] broadcast(y), dimensions={0}",
        lambda i: [(i[0], k) for k in range(6)],
    ),
    "reshaped": ("q = f32[24] reshape(p)  s = f32[4,6] reshape(q)", lambda i: [i]),
    "reshaped reversed": (
        "q = f32[24] reshape(p)  v = f32[24] reverse(q), dimensions={0}  s = f32[4,6] reshape(v)",
        lambda i: [(3 - i[0], 5 - i[1])],
    ),
    "under a mask": (
        "j = s32[4,6] iota(), iota_dimension=0  o = s32[] constant(0)  "
        "k = s32[4,6] broadcast(o), dimensions={}  m = pred[4,6] compare(j, k), direction=LT  "
        "v = f32[4,6] reverse(p), dimensions={1}  s = f32[4,6] select(m, v, p)",
        lambda i: [i],
    ),
    "nothing": ("s = f32[4,6] broadcast(z), dimensions={}", lambda i: []),
}
"""HLO that computes `s` from an array `p`, and the elements of `p` that an element reads."""


def program(text: str) -> Module:
    return hlo.parse(f"""
        add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
        f {{ p = f32[4,6] parameter(0)  z = f32[] constant(0)
          {text}
          ROOT r = f32[4,6] negate(s) }}
        ENTRY e {{ x = f32[4,6] parameter(0)  p = f32[4,6] copy(x)
          ROOT r = f32[4,6] fusion(p), kind=kLoop, calls=f }}""")


def compute(order: Iterable[Index], reads: Reads, shared: bool) -> np.ndarray:
    """Return the sums of what elements read, computed in an order, if shared over the operand."""
    operand = np.arange(24.0).reshape(SIZES) ** 2 + 1
    result = operand if shared else np.zeros(SIZES)
    for index in order:
        result[index] = -sum(operand[each] for each in reads(index))
    return result


def is_safe(reads: Reads) -> bool:
    """Return True if a loop over the memory of its operand has the right result in each order."""
    points = list(np.ndindex(*SIZES))
    right = compute(points, reads, shared=False)
    random = np.random.default_rng(0)
    orders = [points, points[::-1], *[list(random.permutation(points)) for _ in range(8)]]
    return all(
        np.array_equal(compute([tuple(i) for i in order], reads, shared=True), right)
        for order in orders
    )


@pytest.mark.parametrize("name", READS)
def test_loops(name: str) -> None:
    text, reads = READS[name]
    verdict = indexing.in_place(program(text).entry.root)
    assert isinstance(verdict, Proved if is_safe(reads) else Hazard), str(verdict)
    if isinstance(verdict, Hazard):
        assert isinstance(verdict.reader, tuple)
        assert verdict.writer == verdict.operand_element != verdict.reader
        assert verdict.operand_element in reads(verdict.reader)


def test_both_verdicts_occur() -> None:
    safe = [name for name, (_, reads) in READS.items() if is_safe(reads)]
    assert 3 <= len(safe) < len(READS) - 3


UPDATE = """
f {{ p = f32[9] parameter(0)  i = s32[] parameter(1)
  one = s32[] constant(1)  j = s32[] add(i, one)
  d = f32[3] dynamic-slice(p, {start}), dynamic_slice_sizes={{3}}
  n = f32[3] {op}
  ROOT u = f32[9] dynamic-update-slice(p, n, i) }}
ENTRY e {{ x = f32[9] parameter(0)  i = s32[] parameter(1)  p = f32[9] copy(x)
  ROOT r = f32[9] fusion(p, i), kind=kLoop, calls=f }}"""


@pytest.mark.parametrize(
    ("start", "op", "expected"),
    [
        ("i", "negate(d)", Proved),
        ("i", "reverse(d), dimensions={0}", Hazard),
        ("j", "negate(d)", Undecided),  # at i = 6 both starts are clamped to 6
        ("i", "broadcast(q), dimensions={}", Proved),
    ],
)
def test_updates_of_a_slice(start: str, op: str, expected: type) -> None:
    text = UPDATE.format(start=start, op=op).replace("  n =", "  q = f32[] constant(2)\n  n =")
    verdict = indexing.in_place(hlo.parse(text).entry.root)
    assert isinstance(verdict, expected), str(verdict)


STEPS = """HloModule m, is_scheduled=true
ENTRY e {{ x = f32[3,3]{{1,0}} parameter(0)  i = s32[] parameter(1)
  p = f32[3,3]{{1,0}} {base}
  {steps}
  ROOT u = f32[3,3]{{1,0}} dynamic-update-slice(p, {update}, i, i) }}"""


@pytest.mark.parametrize("base", ["copy(x)", "negate(x)"])
@pytest.mark.parametrize(
    ("steps", "update", "expected"),
    [
        ("s = f32[2,3]{1,0} slice(p), slice={[1:3], [0:3]}", "s", Proved),
        ("s = f32[3,3]{1,0} reverse(p), dimensions={0}", "s", Proved),
        ("", "p", Proved),
        ("s = f32[3,3]{1,0} bitcast(p)", "s", Proved),
        ("s = f32[3,3]{0,1} bitcast(p)", "s", Undecided),  # the transposed array
    ],
)
def test_what_was_computed_before_an_update_is_an_array_of_its_own(
    base: str, steps: str, update: str, expected: type
) -> None:
    """Each instruction is executed before the update: its result is not in the base's memory."""
    module = hlo.parse(STEPS.format(base=base, steps=steps, update=update))
    verdict = indexing.in_place(module.entry.root)
    assert isinstance(verdict, expected), str(verdict)
    assert not check_in_place(module).errors


def test_a_gather_may_read_its_own_places_only() -> None:
    """With the indices 0, 1, 2, .. it would be safe."""
    module = hlo.parse("""
        f { p = f32[9] parameter(0)  i = s32[9,1] parameter(1)
          ROOT g = f32[9] gather(p, i), offset_dims={}, collapsed_slice_dims={0},
            start_index_map={0}, index_vector_dim=1, slice_sizes={1} }
        ENTRY e { x = f32[9] parameter(0)  i = s32[9,1] parameter(1)  p = f32[9] copy(x)
          ROOT r = f32[9] fusion(p, i), kind=kLoop, calls=f }""")
    verdict = indexing.in_place(module.entry.root, "p")
    assert isinstance(verdict, Undecided)
    assert "depends on values" in verdict.reason


def test_row_that_reads_the_row_before() -> None:
    """The kind of openxla/xla#49176."""
    module = hlo.parse("""
        f { p = f32[8,4] parameter(0)  z = f32[] constant(0)
          before = f32[8,4] pad(p, z), padding=1_-1x0_0  ROOT r = f32[8,4] add(p, before) }
        ENTRY e { x = f32[8,4] parameter(0)  p = f32[8,4] copy(x)
          ROOT r = f32[8,4] fusion(p), kind=kLoop, calls=f }""")
    verdict = indexing.in_place(module.entry.root, "p")
    assert isinstance(verdict, Hazard)
    assert isinstance(verdict, Differs)
    assert not verdict
    row, column = verdict.reader
    assert verdict.operand_element == verdict.writer == (row - 1, column)


def test_other_layouts_have_other_places() -> None:
    text = """
        f {{ p = f32[4,4]{{1,0}} parameter(0)  t = f32[4,4]{layout} transpose(p), dimensions={{1,0}}
          ROOT r = f32[4,4]{layout} negate(t) }}
        ENTRY e {{ x = f32[4,4]{{1,0}} parameter(0)  p = f32[4,4]{{1,0}} copy(x)
          ROOT r = f32[4,4]{layout} fusion(p), kind=kLoop, calls=f }}"""
    same_place = indexing.in_place(hlo.parse(text.format(layout="{0,1}")).entry.root)
    moved = indexing.in_place(hlo.parse(text.format(layout="{1,0}")).entry.root)
    assert isinstance(same_place, Proved)
    assert isinstance(moved, Hazard)


def test_a_later_reader_needs_the_old_value() -> None:
    module = hlo.parse("""
        f { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }
        ENTRY e { x = f32[8] parameter(0)  p = f32[8] copy(x)
          r = f32[8] fusion(p), kind=kLoop, calls=f
          b = f32[8] bitcast(p)
          ROOT s = f32[8] add(r, b) }""")
    verdict = indexing.in_place(module.entry["r"])
    assert isinstance(verdict, Hazard)
    assert verdict.reader is module.entry["s"]


def test_a_later_instruction_that_needs_no_element_reads_nothing() -> None:
    module = hlo.parse("""
        f { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }
        g { p = f32[8] parameter(0)  q = f32[8] parameter(1)  ROOT n = f32[8] sine(p) }
        ENTRY e { x = f32[8] parameter(0)  p = f32[8] copy(x)
          r = f32[8] fusion(p), kind=kLoop, calls=f
          ROOT s = f32[8] fusion(r, p), kind=kLoop, calls=g }""")
    assert isinstance(indexing.in_place(module.entry["r"]), Proved)


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("a = f16[8] convert(p)  ROOT r = f16[16] pad(a, z), padding=0_8", Hazard),
        ("ROOT r = s16[8,2] bitcast-convert(p)", Hazard),
        ("a = s16[8,2] bitcast-convert(p)  ROOT r = s16[8,2] negate(a)", Hazard),
        ("ROOT r = f16[16] broadcast(z), dimensions={}", Proved),
    ],
)
def test_elements_of_other_sizes_are_at_other_places(kept: str, expected: type) -> None:
    """Element 4 of the result is in the memory of element 2 of the operand."""
    shape = kept[kept.index("ROOT r = ") + 9 :].split()[0]
    module = hlo.parse(f"""
        f {{ p = f32[8] parameter(0)  z = f16[] constant(0)  {kept} }}
        ENTRY e {{ x = f32[8] parameter(0)  p = f32[8] copy(x)
          ROOT r = {shape} fusion(p), kind=kLoop, calls=f }}""")
    verdict = indexing.in_place(module.entry.root)
    assert isinstance(verdict, expected), str(verdict)


@pytest.mark.parametrize("later", [False, True])
def test_a_call_may_write_where_it_declares_it(later: bool) -> None:
    """The code of a library is not read; whether the operand is needed later is."""
    module = hlo.parse(f"""ENTRY e {{ x = f32[4,4] parameter(0)  p = f32[4,4] copy(x)
      r = (f32[4,4], s32[4]) custom-call(p), custom_call_target="factor",
        output_to_operand_aliasing={{{{0}}: (0, {{}})}}
      q = f32[4,4] get-tuple-element(r), index=0
      ROOT s = f32[4,4] add(q, {"p" if later else "q"}) }}""")
    verdict = indexing.in_place(module.entry["r"], "p", (0,))
    assert isinstance(verdict, Hazard if later else Proved), str(verdict)
    if not later:
        assert isinstance(verdict, Proved)
        assert "is trusted" in verdict.note
    undeclared = str(module).replace(", output_to_operand_aliasing={{0}: (0, {})}", "")
    plain = hlo.parse(undeclared).entry["r"]
    assert type(indexing.in_place(plain, "p", (0,))) is Undecided


ROWS = """HloModule m, is_scheduled={scheduled}{header}
f {{ p = f32[4,6] parameter(0)  ROOT r = f32[4,6] {op} }}
ENTRY e {{ a = f32[4,6] parameter(0)
  r = f32[4,6] fusion(a), kind=kLoop, calls=f
  ROOT n = f32[4,6] {root} }}"""


@pytest.mark.parametrize(
    ("op", "root", "safe", "errors"),
    [
        ("negate(p)", "copy(r)", 0, 0),  # the copy is the result
        ("negate(p)", "bitcast(r)", 1, 0),
        ("reverse(p), dimensions={0}", "bitcast(r)", 0, 1),
    ],
)
def test_donated_parameters_are_checked(op: str, root: str, safe: int, errors: int) -> None:
    header = ", input_output_alias={ {}: (0, {}, must-alias) }"
    module = hlo.parse(ROWS.format(scheduled="true", header=header, op=op, root=root))
    shared = check_in_place(module)
    assert (shared.count("safe"), len(shared.errors)) == (safe, errors)
    assert shared.count("undecided") == 0
    for scheduled, own in (("false", header), ("true", "")):
        other = hlo.parse(ROWS.format(scheduled=scheduled, header=own, op=op, root=root))
        assert not check_in_place(other).errors  # XLA may add copies; or nothing is donated


@pytest.mark.parametrize("scheduled", [True, False])
@pytest.mark.parametrize("later", ["c", "d"])
@pytest.mark.parametrize(
    "update",
    [
        "dynamic-update-slice(c, u, i, i)",
        "scatter(c, k, u), update_window_dims={0,1}, inserted_window_dims={}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=second",
    ],
)
def test_updates_of_a_scheduled_module_are_in_place(
    update: str, later: str, scheduled: bool
) -> None:
    """XLA copies the base of an update before it schedules, if the base is read later."""
    module = hlo.parse(f"""HloModule m, is_scheduled={str(scheduled).lower()}
      second {{ a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }}
      ENTRY e {{ p = f32[4,6] parameter(0)  u = f32[1,6] parameter(1)  i = s32[] parameter(2)
        k = s32[1] parameter(3)
        c = f32[4,6] negate(p)  d = f32[4,6] {update}
        n = f32[4,6] negate({later})  ROOT s = f32[4,6] add(n, d) }}""")
    assert module == hlo.parse(str(module))
    errors = check_in_place(module).errors
    assert [error.message for error in errors] == (
        ["`n` reads `c` after `d` wrote to its memory"] if scheduled and later == "c" else []
    )


def test_results_of_a_scatter_of_several_arrays_are_not_in_the_first_one() -> None:
    module = hlo.parse("""HloModule m, is_scheduled=true
      second { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)
        d = f32[] parameter(3)  ROOT t = (f32[], f32[]) tuple(c, d) }
      f { p = f32[4,6] parameter(0)  q = f32[4,6] parameter(1)  k = s32[1] parameter(2)
        u = f32[1,6] parameter(3)
        ROOT s = (f32[4,6], f32[4,6]) scatter(p, q, k, u, u), update_window_dims={0,1},
          inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=0,
          to_apply=second }
      ENTRY e { a = f32[4,6] parameter(0)  b = f32[4,6] parameter(1)  k = s32[1] parameter(2)
        u = f32[1,6] parameter(3)  p = f32[4,6] negate(a)  q = f32[4,6] negate(b)
        ROOT r = (f32[4,6], f32[4,6]) fusion(p, q, k, u), kind=kInput, calls=f }""")
    assert check_in_place(module).results == ()


def test_what_is_no_loop_is_undecided() -> None:
    module = hlo.parse("""
        less { a = f32[] parameter(0)  b = f32[] parameter(1)
          ROOT c = pred[] compare(a, b), direction=LT }
        ENTRY e { x = f32[8] parameter(0)  p = f32[8] copy(x)
          ROOT r = f32[8] sort(p), dimensions={0}, to_apply=less }""")
    assert isinstance(indexing.in_place(module.entry.root), Undecided)


def test_wrong_arguments() -> None:
    module = hlo.parse(
        "ENTRY e { p = f32[8] parameter(0)  ROOT s = f32[2] slice(p), slice={[0:2]} }"
    )
    with pytest.raises(ValueError, match="has the size of"):
        indexing.in_place(module.entry.root)
    with pytest.raises(ValueError, match="no operand `q`"):
        indexing.in_place(module.entry.root, "q")
    with pytest.raises(IndexError, match="1 operands"):
        indexing.in_place(module.entry.root, 1)
