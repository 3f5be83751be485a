"""Traffic of instructions: known numbers, enumeration of the reads, and random fusions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hlo
import indexing
from hlo.shapes.shape import Shape, leaves
from hlo.text.names import UnknownName
from indexing import IndexingMap
from indexing.dataflow.edges import LocalEdges
from indexing.dataflow.queries import walk_of
from indexing.maps.arrays import ArrayRef
from indexing.memory.movement.amounts import Amount, TotalBounds
from indexing.memory.movement.analysis import traffic
from indexing.memory.movement.loop_evaluations import is_whole
from indexing.memory.movement.starts import without_starts
from indexing.memory.movement.traffic_values import InstructionTraffic, TrafficRow
from indexing.memory.movement.writes import moves_bytes
from indexing.ops.element import Work
from indexing.ops.samples import instruction_of
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.unknown import Unknown, require_known
from tests.compiled import interpreted_only
from tests.dataflow.test_random_programs import Program, programs
from tests.growth.work import calls_of
from tests.maps.test_multiplicity import Element, enumerate_reads
from tests.ops.samples import MAPPED, Sample, SampleChecks
from tests.oracles import fuzz

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"


def traffic_of(text: str, name: str = "") -> InstructionTraffic:
    module = hlo.parse(text)
    return traffic(module)[name or module.entry.root.name]


def row_of(text: str) -> TrafficRow:
    (row,) = traffic_of(text).rows
    return row


# ---------------------------------------------------------------- known numbers

SOFTMAX = (
    ADD
    + """
softmax {
  p = f32[512,911] parameter(0)
  z = f32[] constant(0)
  e = f32[512,911] exponential(p)
  s = f32[512] reduce(e, z), dimensions={1}, to_apply=add
  b = f32[512,911] broadcast(s), dimensions={0}
  ROOT d = f32[512,911] divide(e, b)
}
ENTRY e {
  p = f32[512,911] parameter(0)
  ROOT f = f32[512,911] fusion(p), kind=kCustom, calls=softmax
}"""
)


def test_a_softmax_reads_and_writes_its_array_once() -> None:
    row = row_of(SOFTMAX)
    assert (row.operand, row.distinct, row.written) == (0, 512 * 911 * 4, 512 * 911 * 4)
    assert row.grade == "exact"
    # a loop over single elements evaluates a whole row for the sum of each element, and the element
    assert row.requested == 512 * 911 * (911 + 1) * 4
    factors = {i.name: factor for i, factor in row.recompute.items()}
    assert factors == {"e": 912, "s": 911, "b": 1, "d": 1}


WINDOWS = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
sums { p = f32[8,256] parameter(0)  z = f32[] constant(0)
  w = f32[8,256] reduce-window(p, z), window={size=1x511 pad=0_0x255_255}, to_apply=add
  ROOT t = f32[8,COUNT] slice(w), slice={[0:8],[0:COUNT]} }
ENTRY e { p = f32[8,256] parameter(0)  z = f32[] constant(0)
  w = f32[8,256] reduce-window(p, z), window={size=1x511 pad=0_0x255_255}, to_apply=add
  f = f32[8,COUNT] fusion(p), kind=kLoop, calls=sums
  ROOT t = (f32[8,256], f32[8,COUNT]) tuple(w, f) }"""


@pytest.mark.parametrize("columns", [1, 3, 256])
def test_equal_windows_are_one_value_which_a_loop_evaluates_for_each_element(columns: int) -> None:
    """Sums of whole rows: `flops` counts one for each row, the other figures one an element."""
    rows = {
        row.instruction.name: row
        for row in traffic(hlo.parse(WINDOWS.replace("COUNT", str(columns)))).instructions
    }
    for name, elements in (("w", 8 * 256), ("f", 8 * columns)):
        row = rows[name]
        assert row.flops == 8 * 255
        assert require_known(row.evaluated).flops == elements * 255
        assert require_known(row.operands[0].requested).number == elements * 256 * 4
    inner = {i.name: factor for i, factor in rows["f"].recompute.items()}
    assert inner["w"] == Fraction(columns, 256)


def test_a_tile_of_rows_of_a_softmax_moves_the_same_bytes() -> None:
    tiling = require_known(indexing.tile(hlo.parse(SOFTMAX).entry.root, [1, 911]))
    assert tiling.bytes == row_of(SOFTMAX).distinct == 512 * 911 * 4


def test_a_gemm_of_8388608_flops_writes_65536_bytes() -> None:
    gemm = traffic_of("""ENTRY e {
      p = f32[128,256] parameter(0)
      q = f32[256,128] parameter(1)
      ROOT d = f32[128,128] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }""")
    assert (gemm.flops, gemm.written) == (8_388_608, 65_536)
    assert [each.distinct for each in gemm.operands] == [Amount(131_072)] * 2
    assert [each.multiplicity for each in gemm.operands] == [128, 128]
    assert gemm.intensity == Fraction(8_388_608, 65_536 + 2 * 131_072)


# ---------------------------------------------------------------- figures


def test_sub_byte_elements_are_packed_only_if_the_layout_packs_them() -> None:
    text = "ENTRY e {{ p = s4[9]{0} parameter(0)  ROOT n = s4[9]{0} negate(p) }}"
    plain, packed = (row_of(text.format(layout)) for layout in ("{0}", "{0:E(4)}"))
    assert (plain.distinct, plain.written) == (9, 9)
    assert (packed.distinct, packed.written) == (5, 5)  # 36 bits


def test_a_slice_reads_its_part() -> None:
    (operand,) = traffic_of(
        "ENTRY e { p = f32[8,10] parameter(0)  "
        "ROOT s = f32[4,5] slice(p), slice={[0:8:2],[0:10:2]} }"
    ).operands
    assert operand.distinct == operand.requested == Amount(4 * 5 * 4)
    assert operand.utilisation == Fraction(1, 4)
    assert operand.multiplicity == Fraction(1)


def test_the_start_of_a_dynamic_slice_does_not_change_the_count() -> None:
    window, start = traffic_of("""ENTRY e { p = f32[100] parameter(0)  i = s32[] parameter(1)
      ROOT s = f32[7] dynamic-slice(p, i), dynamic_slice_sizes={7} }""").operands
    assert window.distinct == window.requested == Amount(28)
    assert (start.distinct, start.requested) == (Amount(4), Amount(28))


def test_a_gather_reads_at_most_its_result_from_the_table() -> None:
    table, indices = traffic_of("""ENTRY e { p = f32[50,8] parameter(0)  i = s32[3] parameter(1)
      ROOT g = f32[3,8] gather(p, i), offset_dims={1}, collapsed_slice_dims={0},
        start_index_map={0}, index_vector_dim=1, slice_sizes={1,8} }""").operands
    assert table.distinct == Amount(3 * 8 * 4, "may")  # fewer if indices are equal
    assert table.requested == Amount(3 * 8 * 4)
    assert indices.distinct == Amount(3 * 4)


SCATTER = (
    "scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"
)


def test_a_scatter_reads_each_update_and_index_once() -> None:
    base, indices, updates = traffic_of(f"""{ADD}
    ENTRY e {{ p = f32[10,8] parameter(0)  i = s32[3,1] parameter(1)  u = f32[3,8] parameter(2)
      ROOT s = f32[10,8] {SCATTER} }}""").operands
    assert base.distinct == base.requested == Amount(10 * 8 * 4, "may")
    assert indices.distinct == indices.requested == Amount(3 * 4)
    assert updates.distinct == updates.requested == Amount(3 * 8 * 4, "may")


def test_a_fused_scatter_evaluates_each_update_once() -> None:
    """Updates are rows of x and their reverse; both halves read every element of x once."""
    fusion = traffic_of(f"""{ADD}
    fused {{ p = f32[10,8] parameter(0)  i = s32[6,1] parameter(1)  x = f32[3,8] parameter(2)
      n = f32[3,8] negate(x)
      r = f32[3,8] reverse(n), dimensions={{1}}
      u = f32[6,8] concatenate(n, r), dimensions={{0}}
      ROOT s = f32[10,8] {SCATTER} }}
    ENTRY e {{ p = f32[10,8] parameter(0)  i = s32[6,1] parameter(1)  x = f32[3,8] parameter(2)
      ROOT f = f32[10,8] fusion(p, i, x), kind=kInput, calls=fused }}""")
    _, indices, updates = fusion.operands
    assert indices.requested == Amount(6 * 4)
    assert (updates.distinct, updates.requested) == (Amount(96, "may"), Amount(2 * 96, "may"))
    factors = {inner.name: factor for inner, factor in fusion.recompute.items()}
    assert factors == {"n": 2, "r": 1, "u": 1, "s": 1}
    assert fusion.evaluated == Work(2 * 24 + 6 * 8)


def test_a_padding_value_is_an_upper_bound_of_reads() -> None:
    _, value = traffic_of("""ENTRY e { p = f32[5] parameter(0)  z = f32[] parameter(1)
      ROOT r = f32[9] pad(p, z), padding=2_2 }""").operands
    assert value.distinct == Amount(4, "may")
    assert value.requested == Amount(9 * 4, "may")
    assert str(value.requested) == "<= 36"


def test_a_sort_reads_its_operand_as_a_whole() -> None:
    row = row_of(
        ADD.replace("add(", "compare(")
        .replace("f32[] compare(a, b)", "pred[] compare(a, b)")
        .replace("(a, b)", "(a, b), direction=LT")
        .replace("add {", "less {")
        + "ENTRY e { p = f32[6] parameter(0)  "
        "ROOT s = f32[6] sort(p), dimensions={0}, to_apply=less }"
    )
    assert row.distinct == row.requested == 24


def test_behind_an_op_without_element_rule_reads_are_unknown() -> None:
    fusion = traffic_of("""
    less { a = f32[] parameter(0)  b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=LT }
    fused { p = f32[6] parameter(0)  n = f32[6] negate(p)
      s = f32[6] sort(n), dimensions={0}, to_apply=less  ROOT r = f32[6] negate(s) }
    ENTRY e { p = f32[6] parameter(0)
      ROOT f = f32[6] fusion(p), kind=kLoop, calls=fused }""")
    (operand,) = fusion.operands
    assert operand.distinct == Amount(24)
    assert isinstance(operand.requested, Unknown)
    assert "sort `s` has no per-element rule" in operand.requested.reason
    unknown = {i.name for i, factor in fusion.recompute.items() if isinstance(factor, Unknown)}
    assert unknown == {"n"}
    assert isinstance(fusion.evaluated, Unknown)


def test_a_custom_call_may_read_everything_and_its_work_is_unknown() -> None:
    row = row_of("""ENTRY e { p = f32[6] parameter(0)
      ROOT c = f32[2] custom-call(p), custom_call_target="opaque" }""")
    assert (row.distinct, row.grade, row.written) == (24, "may", 8)
    assert isinstance(row.flops, Unknown)


def test_outputs_of_equal_dimensions_share_a_loop() -> None:
    fusion = traffic_of("""
    fused { p = f32[8] parameter(0)  n = f32[8] negate(p)  e = f32[8] exponential(n)
      ROOT t = (f32[8], f32[8]) tuple(n, e) }
    ENTRY e { p = f32[8] parameter(0)
      ROOT f = (f32[8], f32[8]) fusion(p), kind=kLoop, calls=fused }""")
    (row,) = fusion.rows
    assert row.distinct == row.requested == 32
    assert row.written == 64
    assert set(row.recompute.values()) == {1}


def test_a_large_constant_in_a_fusion_is_read_from_memory() -> None:
    values = ", ".join(map(str, range(9)))
    constant, p = sorted(
        traffic_of(f"""
    fused {{ p = f32[9] parameter(0)  c = f32[9] constant({{{values}}})
      ROOT s = f32[9] add(p, c) }}
    ENTRY e {{ p = f32[9] parameter(0)
      ROOT f = f32[9] fusion(p), kind=kLoop, calls=fused }}""").operands,
        key=lambda each: each.source.name,
    )
    assert (constant.operand, constant.distinct) == (None, Amount(36))
    assert p.operand == 0


def test_recomputed_work_counts_each_evaluation() -> None:
    fusion = traffic_of("""
    fused { p = f32[9] parameter(0)  n = f32[9] negate(p)
      a = f32[8] slice(n), slice={[0:8]}  b = f32[8] slice(n), slice={[1:9]}
      ROOT s = f32[8] add(a, b) }
    ENTRY e { x = f32[9] parameter(0)
      ROOT f = f32[8] fusion(x), kind=kLoop, calls=fused }""")
    assert {i.name: f for i, f in fusion.recompute.items()}["n"] == Fraction(16, 9)
    assert (fusion.flops, require_known(fusion.evaluated).flops) == (9 + 8, 16 + 8)


# ---------------------------------------------------------------- executions

LOOP = """
less { s = (s32[], f32[100]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)  ROOT r = pred[] compare(i, n), direction=LT }
next { s = (s32[], f32[100]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[100] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  u = f32[1] constant({7})
  d = f32[100] dynamic-update-slice(x, u, i)
  ROOT t = (s32[], f32[100]) tuple(j, d) }
ENTRY e { z = s32[] constant(0)  x = f32[100] parameter(0)  c = f32[100] copy(x)
  a = (s32[], f32[100]) tuple(z, c)
  ROOT w = (s32[], f32[100]) while(a), condition=less, body=next }"""


def test_totals_multiply_by_the_executions_of_loops() -> None:
    counted = traffic(hlo.parse(LOOP))
    assert [i.instruction.name for i in counted.instructions] == ["r", "j", "d", "c"]
    assert [i.executions.number for i in counted.instructions] == [11, 10, 10, 1]
    assert counted.total.written == TotalBounds(*[11 * 1 + 10 * 4 + 10 * 4 + 400] * 2)


def test_an_update_of_the_state_of_a_loop_stays_in_place() -> None:
    update = traffic(hlo.parse(LOOP))["d"]
    base, value, start = update.operands
    assert [i.name for i in update.updates] == ["d"]
    assert (update.written, base.distinct, value.distinct) == (4, Amount(0), Amount(4))
    assert start.distinct == Amount(4)


def test_a_loop_and_its_body_have_traffic_of_their_own() -> None:
    module = hlo.parse(LOOP)
    (loop,) = [i for i in module.entry.instructions if i.opcode == "while"]
    once, all_iterations = traffic(module.computations["next"]).total, traffic(loop).total
    assert once.written == TotalBounds(8, 8)
    assert all_iterations.written == TotalBounds(*[10 * 8 + 11 * 1] * 2)
    assert traffic(module.entry["a"]).rows == ()


# fmt: off
BASES = [
    # other lines of ENTRY, header                                    in place
    ("n = f32[9] negate(p)  ROOT d = f32[9] dynamic-update-slice(n, u, i)", "", True),
    # another reader of the base, or the same one twice; a parameter that is not donated
    ("n = f32[9] negate(p)  d = f32[9] dynamic-update-slice(n, u, i)  ROOT s = f32[9] add(d, n)",
     "", False),
    ("n = f32[9] negate(p)  t = (f32[9]) tuple(n)  g = f32[9] get-tuple-element(t), index=0  "
     "d = f32[9] dynamic-update-slice(g, u, i)  ROOT s = f32[9] add(d, n)", "", False),
    ("n = f32[9] negate(p)  b = f32[9] bitcast(n)  e = f32[2] slice(b), slice={[0:2]}  "
     "ROOT d = f32[9] dynamic-update-slice(n, e, i)", "", False),
    ("ROOT d = f32[9] dynamic-update-slice(p, u, i)", "", False),
    ("ROOT d = f32[9] dynamic-update-slice(p, u, i)",
     "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }", True),
    ("ROOT d = f32[9] dynamic-update-slice(p, u, i)",
     "HloModule m, input_output_alias={ {}: (1, {}, must-alias) }", False),
    ("n = f32[9] constant({1,2,3,4,5,6,7,8,9})  ROOT d = f32[9] dynamic-update-slice(n, u, i)",
     "", False),
]
# fmt: on


@pytest.mark.parametrize(("lines", "header", "is_in_place"), BASES)
def test_an_update_stays_in_place_if_nothing_else_reads_the_base(
    lines: str, header: str, is_in_place: bool
) -> None:
    update = traffic_of(
        f"{header}\nENTRY e {{ p = f32[9] parameter(0)  u = f32[2] parameter(1)  "
        f"i = s32[] parameter(2)  {lines} }}",
        "d",
    )
    assert bool(update.updates) == is_in_place
    assert update.written == (8 if is_in_place else 36)
    base, value, _ = update.operands
    assert base.distinct == Amount(0 if is_in_place else 28)  # all but the updated elements
    assert value.distinct == value.requested == Amount(8)


def test_a_fusion_updates_in_place_unless_it_also_reads_the_base() -> None:
    text = """
    fused {{ p = f32[9] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
      {} }}
    ENTRY e {{ p = f32[9] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
      n = f32[9] negate(p)  ROOT f = f32[9] fusion(n, u, i), kind=kLoop, calls=fused }}"""
    update = "d = f32[9] dynamic-update-slice(p, u, i)"
    assert traffic_of(text.format(f"ROOT {update}")).written == 8
    two = "p = f32[9] parameter(0)  q = f32[9] parameter(3)"
    twice = text.format(f"ROOT {update}").replace("p = f32[9] parameter(0)", two, 1)
    assert traffic_of(twice.replace("fusion(n, u, i)", "fusion(n, u, i, n)")).written == 36
    both = traffic_of(text.format(f"{update}  ROOT s = f32[9] add(d, p)"))
    assert (both.written, both.operands[0].distinct) == (36, Amount(36))


# ---------------------------------------------------------------- starts


def test_only_a_window_within_the_bounds_loses_its_start() -> None:
    text = """ENTRY e { p = f32[10] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
      ROOT d = f32[10] dynamic-update-slice(p, u, i) }"""
    (read,) = indexing.output_to_input(hlo.parse(text).entry.root).maps[1]
    assert str(without_starts(read)) == "(d0) -> (d0), domain: d0 in [0, 1]"
    (d0,), (rt,) = read.dims, read.runtime
    short = Variable("d0", 0, 8)
    inside = [Constraint(short - rt.variable, 0, 1)]
    shorter = IndexingMap.of([short], [short - rt.variable], runtime=[rt], constraints=inside)
    assert without_starts(shorter) == shorter  # starts at 8, and ends at 9
    negated = [Constraint(rt.variable - d0, -1, 0)]
    turned = IndexingMap.of(read.dims, read.results, runtime=[rt], constraints=negated)
    assert str(without_starts(turned)) == "(d0) -> (d0), domain: d0 in [0, 1]"


# ---------------------------------------------------------------- enumeration

CHECKS = SampleChecks()


@CHECKS.of(MAPPED)
def reads_are_counted_by_enumeration(sample: Sample) -> None:
    """Exact figures are those of the op's own maps for random values; others are not smaller."""
    instruction = sample.instruction
    if not moves_bytes(instruction):
        assert traffic(instruction).instructions == ()
        return
    counts = traffic(instruction).instructions[0]
    outputs = [path for path, _ in leaves(instruction.shape)]
    for seed in (1, 2):
        random = np.random.default_rng(seed)
        values = {
            o.name: random.integers(-1, 4, o.shape.dims)
            for o in instruction.operands
            if isinstance(o.shape, Shape)
        }
        maps: dict[int, dict[IndexingMap, None]] = {}
        for path in outputs:
            for edge in walk_of(simplify=False).backward_edges(ArrayRef(instruction, path)):
                maps.setdefault(edge.operand, {}).update(dict.fromkeys(edge.maps))
        for operand in counts.operands:
            is_base = instruction.opcode == "dynamic-update-slice" and operand.operand == 0
            if operand.unknown is not None or is_base:
                continue  # the map of a base is not exact, its count is
            assert operand.operand is not None
            points = enumerate_reads(list(maps.get(operand.operand, ())), values)
            check(operand.elements, len(points))
            if instruction.opcode == "scatter":  # a loop over each operand
                check(require_known(operand.reads), operand.shape.size)
            elif not is_whole(instruction):
                check(require_known(operand.reads), points.total())


def check(amount: Amount, expected: int) -> None:
    if amount.grade == "exact":
        assert amount.number == expected
    else:
        assert amount.number >= expected


@pytest.mark.parametrize("opcode", CHECKS.opcodes)
def test_reads_of_an_op_agree_with_enumeration(opcode: str) -> None:
    CHECKS.check(opcode)


Table = tuple[tuple[Element, tuple[Element, ...]], ...]


def tables(computation: hlo.Computation) -> dict[hlo.Instruction, list[Table]]:
    """For each path from the root to an instruction, the evaluated elements by root element."""
    root = computation.root
    assert isinstance(root.shape, Shape)
    own = tuple([(at, (at,)) for at in np.ndindex(*root.shape.dims)])
    paths: dict[hlo.Instruction, list[Table]] = {root: [own]}
    for instruction in reversed(computation.instructions):
        for edge in walk_of(simplify=False).backward_edges(ArrayRef(instruction)):
            operand = instruction.operands[edge.operand]
            for m in edge.maps:
                reads = elements_by_point(m)
                for table in paths.get(instruction, []):
                    composed = tuple(
                        [(at, tuple([e for x in xs for e in reads.get(x, ())])) for at, xs in table]
                    )
                    paths.setdefault(operand, []).append(composed)
    return paths


def elements_by_point(m: IndexingMap) -> dict[Element, list[Element]]:
    by_point: dict[Element, list[Element]] = {}
    for point in np.ndindex(*[v.upper + 1 for v in m.dims]):
        by_point[point] = []
        for inside in np.ndindex(*[v.upper + 1 for v in m.ranges]):
            element = m.evaluate(point, inside)
            if element is not None:
                by_point[point].append(element)
    return by_point


@interpreted_only
def test_fusions_of_equal_ops_find_their_edges_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of(monkeypatch, LocalEdges, "backward_edges")
    counts = []
    for count in (2, 4):
        fusions = [
            f"f{k} {{ p = f32[6,4] parameter(0)  "
            + "  ".join(
                f"x{n} = f32[6,4] negate({f'x{n - 1}' if n else 'p'})" for n in range(k + 1)
            )
            + f"  ROOT r = f32[4,6] transpose(x{k}), dimensions={{1,0}} }}"
            for k in range(count)
        ]
        calls_in_entry = [
            f"y{k} = f32[4,6] fusion(p), kind=kLoop, calls=f{k}" for k in range(count)
        ]
        module = hlo.parse(
            "\n".join([*fusions, "ENTRY e { p = f32[6,4] parameter(0)", *calls_in_entry, "}"])
        )
        evaluated = [each.recompute for each in traffic(module).instructions]
        assert [len(each) for each in evaluated] == [k + 2 for k in range(count)]
        assert all(factor == 1 for each in evaluated for factor in each.values())
        counts.append(len(calls))
        calls.clear()
    assert counts[0] == counts[1]


@given(programs())
@fuzz(100)
def test_evaluations_in_a_random_fusion_agree_with_enumeration(program: Program) -> None:
    module = program.module()
    fusion = traffic(module)[module.entry.root.name]
    called = module.computations["fused"]
    paths = tables(called)
    for operand, parameter in zip(fusion.operands, called.parameters, strict=False):
        every = paths.get(parameter, [])
        elements = {e for table in every for _, xs in table for e in xs}
        assert operand.elements == Amount(len(elements))
        assert operand.multiplicity is None or isinstance(operand.multiplicity, Fraction)
        assert_counted(require_known(operand.reads).number, every)
    for inner, factor in fusion.recompute.items():
        assert isinstance(inner.shape, Shape)
        assert_counted(require_known(factor) * inner.shape.size, paths.get(inner, []))


def assert_counted(evaluated: Any, paths: list[Table]) -> None:
    """Paths with equal maps count once: between the different tables and all paths."""
    different = {tuple([(at, tuple(sorted(xs))) for at, xs in table]) for table in paths}
    assert sizes(different) <= evaluated <= sizes(paths)


def sizes(paths: Any) -> int:
    return sum(Counter(len(xs) for table in paths for _, xs in table).elements())


def test_no_ratio_of_upper_bounds_is_a_figure() -> None:
    text = """ENTRY e { p = f32[9] parameter(0)  i = s32[4,1] parameter(1)
      ROOT g = f32[4,1] gather(p, i), offset_dims={1}, collapsed_slice_dims={},
        start_index_map={0}, index_vector_dim=1, slice_sizes={1} }"""
    rows = traffic_of(text).operands
    assert (rows[0].elements.grade, rows[1].elements.grade) == ("may", "exact")
    assert isinstance(rows[0].multiplicity, Unknown)  # 1 to 4 reads of an element
    assert rows[1].multiplicity == 1


def test_the_traffic_of_an_instruction_is_that_in_its_module() -> None:
    module = hlo.parse(SOFTMAX)
    (alone,) = traffic(module.entry.root).rows
    (inside,) = traffic(module).rows
    assert (alone.distinct, alone.requested) == (inside.distinct, inside.requested)
    assert alone.recompute == inside.recompute


def test_a_copy_of_a_tuple_with_a_token_moves_its_arrays() -> None:
    shape = "(f32[2], (token[], s8[3]))"
    module = hlo.parse(f"ENTRY e {{ p = {shape} parameter(0)  ROOT c = {shape} copy(p) }}")
    (copied,) = traffic(module).instructions
    assert (copied.written, copied.read) == (11, Amount(11, "exact"))


def test_samples_of_all_ops_have_traffic() -> None:
    for text in ("f32[2,3] copy(f32[2,3] p)", "s32[4] iota(), iota_dimension=0"):
        figures = traffic(instruction_of(text)).instructions[0]
        assert figures.written in (24, 16)


def test_a_name_without_traffic_is_reported() -> None:
    counted = traffic(hlo.parse(LOOP))
    with pytest.raises(UnknownName, match="no instruction that moves bytes is named `dd`"):
        counted["dd"]
