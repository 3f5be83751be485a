"""`equivalent` at level reads: pairs with equal reads, near misses, and their witnesses."""

import pytest

import hlo
from indexing import equivalent
from indexing.equivalence import Differs, Proved, Undecided
from indexing.equivalence.chains import MAX_READS
from indexing.views.verdict_tables import comparison_record, verdict_lines

ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }"


def body(text: str) -> hlo.Module:
    return hlo.parse(text if "ENTRY" in text else f"ENTRY e {{ {text} }}")


# fmt: off
EQUAL = {
    "two slices are one": (
        """p = f32[7,5] parameter(0)  a = f32[3,5] slice(p), slice={[0:3], [0:5]}
           b = f32[4,5] slice(p), slice={[3:7], [0:5]}
           ROOT c = f32[7,5] concatenate(a, b), dimensions={0}""",
        "p = f32[7,5] parameter(0)  ROOT c = f32[7,5] copy(p)",
    ),
    "a result in a tuple": (
        "p = f32[7] parameter(0)  n = f32[7] negate(p)  ROOT t = (f32[7]) tuple(n)",
        "q = f32[7] parameter(0)  ROOT m = f32[7] negate(q)",
    ),
    "a bitcast before an index": (
        """p = f32[9] parameter(0)  i = s32[1] parameter(1)  j = s32[] reshape(i)
           ROOT s = f32[5] dynamic-slice(p, j), dynamic_slice_sizes={5}""",
        """p = f32[9] parameter(0)  i = s32[1] parameter(1)  j = s32[] bitcast(i)
           ROOT s = f32[5] dynamic-slice(p, j), dynamic_slice_sizes={5}""",
    ),
    "an index by other arithmetic": (
        """p = f32[9] parameter(0)  i = s32[] parameter(1)  c = s32[] constant(2)
           j = s32[] subtract(i, c)
           ROOT s = f32[5] dynamic-slice(p, j), dynamic_slice_sizes={5}""",
        """p = f32[9] parameter(0)  i = s32[] parameter(1)  c = s32[] constant(-1)
           h = s32[] add(i, c)  j = s32[] add(c, h)
           ROOT s = f32[5] dynamic-slice(p, j), dynamic_slice_sizes={5}""",
    ),
    "equal instructions are one variable": (
        """p = f32[9] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
           a = s32[] add(i, i)  b = s32[] add(i, i)
           d = f32[9] dynamic-update-slice(p, u, a)
           ROOT s = f32[2] dynamic-slice(d, b), dynamic_slice_sizes={2}""",
        """p = f32[9] parameter(0)  u = f32[2] parameter(1)  i = s32[] parameter(2)
           a = s32[] add(i, i)  d = f32[9] dynamic-update-slice(p, u, a)
           ROOT s = f32[2] dynamic-slice(d, a), dynamic_slice_sizes={2}""",
    ),
}

DIFFERENT = {
    "a cropping pad after a window": (  # openxla/xla#48715: paddings must not be added
        ADD + """ ENTRY e { p = f32[8] parameter(0)  z = f32[] constant(0)
           w = f32[8] reduce-window(p, z), window={size=3 pad=1_1}, to_apply=add
           ROOT c = f32[6] slice(w), slice={[0:6]} }""",
        ADD + """ ENTRY e { p = f32[8] parameter(0)  z = f32[] constant(0)
           ROOT w = f32[6] reduce-window(p, z), window={size=3 pad=0_0}, to_apply=add }""",
    ),
    "nested starts without the inner clamp": (  # openxla/xla#49121
        """p = f32[10] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
           a = f32[6] dynamic-slice(p, i), dynamic_slice_sizes={6}
           ROOT b = f32[3] dynamic-slice(a, j), dynamic_slice_sizes={3}""",
        """p = f32[10] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
           k = s32[] add(i, j)  ROOT b = f32[3] dynamic-slice(p, k), dynamic_slice_sizes={3}""",
    ),
    "starts of nested slices exchanged": (  # openxla/xla#49119: starts of the wrong slice
        """p = f32[12] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
           a = f32[8] dynamic-slice(p, i), dynamic_slice_sizes={8}
           ROOT b = f32[2] dynamic-slice(a, j), dynamic_slice_sizes={2}""",
        """p = f32[12] parameter(0)  i = s32[] parameter(1)  j = s32[] parameter(2)
           a = f32[8] dynamic-slice(p, j), dynamic_slice_sizes={8}
           ROOT b = f32[2] dynamic-slice(a, i), dynamic_slice_sizes={2}""",
    ),
    "another parameter": (
        "p = f32[3] parameter(0)  q = f32[3] parameter(1)  ROOT n = f32[3] negate(p)",
        "p = f32[3] parameter(0)  q = f32[3] parameter(1)  ROOT n = f32[3] negate(q)",
    ),
    "a smaller sum": (
        ADD + """ ENTRY e { p = f32[4,3] parameter(0)  z = f32[] constant(0)
           ROOT r = f32[4] reduce(p, z), dimensions={1}, to_apply=add }""",
        ADD + """ ENTRY e { p = f32[4,3] parameter(0)  z = f32[] constant(0)
           s = f32[4,2] slice(p), slice={[0:4], [0:2]}
           ROOT r = f32[4] reduce(s, z), dimensions={1}, to_apply=add }""",
    ),
}
# fmt: on


@pytest.mark.parametrize("case", EQUAL)
def test_equal_reads_are_proved(case: str) -> None:
    verdict = equivalent(*map(body, EQUAL[case]), level="reads")
    assert isinstance(verdict, Proved)
    assert (verdict.level, verdict.fewer_reads) == ("reads", ())


@pytest.mark.parametrize("case", DIFFERENT)
@pytest.mark.parametrize("level", ["reads", "values"])
def test_different_reads_have_a_witness(case: str, level: str) -> None:
    before, after = map(body, DIFFERENT[case])
    verdict = equivalent(before, after, level=level)
    assert isinstance(verdict, Differs)
    assert verdict.before != verdict.after
    assert set(verdict.reads_before) != set(verdict.reads_after)


def test_a_chain_follows_a_start_that_a_fusion_computes() -> None:
    text = """
    fused {{ x = f32[7] parameter(0)  n = s32[] parameter(1)  twice = s32[] add(n, n)
      ROOT d = f32[2] dynamic-slice(x, twice), dynamic_slice_sizes={{2}} }}
    ENTRY e {{ x = f32[7] parameter(0)  n = s32[] parameter(1)
      f = f32[2] fusion(x, n), kind=kLoop, calls=fused
      ROOT r = f32[2] {opcode}(f) }}"""
    before, after = [hlo.parse(text.format(opcode=op)) for op in ("negate", "exponential")]
    verdict = equivalent(before, after)
    assert isinstance(verdict, Differs)
    ((_, n),) = verdict.inputs  # of one device
    start = min(max(2 * int(n), 0), 5)
    assert verdict.chain_before == ("r[0]", "f[0]", f"x[{start}]")


def test_a_witness_has_both_chains_of_reads() -> None:
    before, after = map(body, DIFFERENT["nested starts without the inner clamp"])
    verdict = equivalent(before, after, level="reads")
    assert isinstance(verdict, Differs)
    ends = verdict.chain_before[-1], verdict.chain_after[-1]
    assert ends == tuple(f"p[{k[0]}]" for k in (verdict.reads_before[0], verdict.reads_after[0]))
    assert [step.partition("[")[0] for step in verdict.chain_before] == ["b", "a", "p"]
    assert [step.partition("[")[0] for step in verdict.chain_after] == ["b", "p"]


@pytest.mark.parametrize(("size", "is_complete"), [(MAX_READS, True), (MAX_READS + 1, False)])
def test_a_witness_states_whether_all_its_reads_are_listed(size: int, is_complete: bool) -> None:
    """The program after does not read the first element, in either case."""
    text = """x = f32[{n}] parameter(0)  s = f32[{m}] slice(x), slice={{[{start}:{n}]}}
      z = f32[] constant(0)  ROOT r = f32[] reduce(s, z), dimensions={{0}}, to_apply=add"""
    before, after = (
        hlo.parse(f"HloModule m {ADD} ENTRY e {{ {text.format(n=size, m=size - k, start=k)} }}")
        for k in (0, 1)
    )
    verdict = equivalent(before, after)
    assert isinstance(verdict, Differs)
    assert verdict.reads_are_complete == is_complete
    lines = [line for line in verdict_lines(verdict) if "reads of parameter" in line]
    assert [", as far as they were followed:" in line for line in lines] == [not is_complete]
    record = comparison_record("a.hlo", "b.hlo", verdict, ())
    assert record["witness"]["reads_are_complete"] == is_complete


def test_reading_less_is_no_fault_by_itself() -> None:
    before = body(
        """p = f32[4] parameter(0)  q = f32[4] parameter(1)  z = f32[4] constant({0, 0, 0, 0})
           m = f32[4] multiply(q, z)  ROOT s = f32[4] add(p, m)"""
    )
    after = body("p = f32[4] parameter(0)  q = f32[4] parameter(1)  ROOT c = f32[4] copy(p)")
    verdict = equivalent(before, after, level="reads")
    assert isinstance(verdict, Proved)
    assert [(less.output, less.parameter) for less in verdict.fewer_reads] == [(0, 1)]
    reverse = equivalent(after, before, level="reads")
    assert isinstance(reverse, Undecided), "more reads without an influence"


def test_parameters_correspond_by_a_mapping() -> None:
    before = body(
        "p = f32[3] parameter(0)  q = f32[3] parameter(1)  ROOT n = f32[3] subtract(p, q)"
    )
    after = body("q = f32[3] parameter(0)  p = f32[3] parameter(1)  ROOT n = f32[3] subtract(p, q)")
    one_way = "reads"
    assert equivalent(before, after, level=one_way, parameters={0: 1, 1: 0})
    assert isinstance(equivalent(before, after, level="numbers"), Differs)


def test_shapes_must_correspond() -> None:
    before, after = body("ROOT p = f32[3] parameter(0)"), body("ROOT p = f32[4] parameter(0)")
    verdict = equivalent(before, after)
    assert isinstance(verdict, Differs)
    assert (verdict.output, verdict.element, verdict.word) == (0, (), "differs")
    assert verdict.reason == "output 0 is f32[3] before and f32[4] after"
    assert isinstance(equivalent(before.entry, after.entry), Differs)
    pair = body("p = f32[3] parameter(0)  ROOT t = (f32[3], f32[3]) tuple(p, p)")
    more = equivalent(before, pair)
    assert isinstance(more, Differs)
    assert (more.output, more.reason) == (
        1,
        "the programs do not correspond: 1 output arrays before, 2 after",
    )


def test_shapes_of_shards_are_no_difference() -> None:
    before = hlo.parse("HloModule m, num_partitions=2 ENTRY e { ROOT p = f32[4] parameter(0) }")
    after = hlo.parse("HloModule m, num_partitions=2 ENTRY e { ROOT p = f32[3] parameter(0) }")
    assert isinstance(equivalent(before, after), Undecided)


def test_instructions_and_computations_are_programs() -> None:
    module = body(
        "p = f32[3] parameter(0)  a = f32[3] negate(p)  ROOT b = f32[3] reverse(p), dimensions={0}"
    )
    verdict = equivalent(module.entry["a"], module.entry["b"], level="reads")
    assert isinstance(verdict, Differs)
    assert equivalent(module.entry, module.entry)
