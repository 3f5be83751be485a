"""Nests of fusions, from the parameters to the root, against the interpreter."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo.modules.module import Computation, Instruction
from hlo.shapes.shape import Shape, leaves
from indexing import Unknown
from indexing.codegen.graph import Reduction
from indexing.codegen.nest import LoopNest
from indexing.codegen.stages import all_stages
from indexing.execution import evaluate, flattened, random_inputs
from indexing.maps.indexing_map import IndexingMap
from indexing.ops.transpose import Transpose
from tests.codegen.comparison import agree
from tests.dataflow.test_random_programs import Program, programs
from tests.ops.samples import Array
from tests.oracles import fuzz

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.hlo"))
SMALL = 3000  # elements: limit for Python loops

REGIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
larger { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
"""
SOFTMAX = (
    REGIONS
    + """
ENTRY softmax {
  p = f32[5,7] parameter(0)
  low = f32[] constant(-inf)
  top = f32[5] reduce(p, low), dimensions={1}, to_apply=larger
  spread = f32[5,7] broadcast(top), dimensions={0}
  shifted = f32[5,7] subtract(p, spread)
  e = f32[5,7] exponential(shifted)
  zero = f32[] constant(0)
  sum = f32[5] reduce(e, zero), dimensions={1}, to_apply=add
  sums = f32[5,7] broadcast(sum), dimensions={0}
  ROOT q = f32[5,7] divide(e, sums)
}
"""
)


def nest_of(target: Instruction | Computation, output: int = 0) -> LoopNest:
    nest = indexing.loop_nest(target, output)
    assert isinstance(nest, LoopNest), nest
    return nest


def check(computation: Computation, target: Instruction | Computation, tile: int) -> None:
    """Check that all forms of the nest of each output agree with the interpreter."""
    inputs = random_inputs(computation, 3)
    results = flattened(evaluate(computation, *inputs)[computation.root])
    sizes = [array.size for array in (*inputs, *results)]
    for number, expected in enumerate(results):
        nest = nest_of(target, number)
        program = nest.vectorized()
        agree(program.run(*inputs), expected, program.source)
        box = tuple([max(1, min(tile, n)) for n in expected.shape])
        if np.prod([-(-n // size) for n, size in zip(expected.shape, box, strict=True)]) < 500:
            agree(program.run(*inputs, tile=box), expected, program.tile_source)
        if max(sizes) < SMALL:
            agree(nest.run(*inputs), expected, nest.source)


def fusions() -> Iterator[tuple[str, Instruction]]:
    for path in EXAMPLES:
        for instruction in hlo.load(path).instructions:
            if instruction.opcode == "fusion":
                yield f"{path.name}:{instruction.name}", instruction


FUSIONS = dict(fusions())


@pytest.mark.parametrize("name", FUSIONS)
def test_fusions_of_examples_agree_with_the_interpreter(name: str) -> None:
    fusion = FUSIONS[name]
    sizes = [s.size for i in fusion.called_computations[0] for _, s in leaves(i.shape)
             if isinstance(s, Shape)]  # fmt: skip
    if max(sizes) > 1 << 21:
        pytest.skip("too large for a test: the benchmark runs it")
    check(fusion.called_computations[0], fusion, 37)


@fuzz(120)
@given(programs(), st.integers(1, 3))
def test_random_fusions_agree_with_the_interpreter(program: Program, tile: int) -> None:
    module = program.module()
    check(module.computations["fused"], module.entry.root, tile)


def test_softmax_has_a_stage_for_each_reduction_and_for_shared_arithmetic() -> None:
    module = hlo.parse(SOFTMAX)
    nest = nest_of(module.entry)
    stages = list(all_stages(nest.stages))
    assert [stage.name for stage in stages] == ["top", "e", "sum", "out"]
    assert [isinstance(stage.body, Reduction) for stage in stages] == [
        True,
        False,
        True,
        False,
    ]
    check(module.entry, module.entry, 2)


def test_the_same_element_is_computed_once() -> None:
    """A chain that doubles ten times has ten additions, not a thousand."""
    lines = ["x0 = f32[3] parameter(0)"]
    lines += [f"x{k + 1} = f32[3] add(x{k}, x{k})" for k in range(10)]
    module = hlo.parse(f"ENTRY e {{ {' '.join(lines)} }}")
    nest = nest_of(module.entry)
    assert nest.source.count("+") == 10
    assert nest.vectorized().source.count("+") == 10
    check(module.entry, module.entry, 2)


def test_an_array_that_is_read_at_many_indices_gets_a_buffer() -> None:
    """Each step reads its predecessor at two indices: inlining all would give 2^12 reads."""
    lines, size = ["x0 = f32[64] parameter(0)"], 64
    for k in range(12):
        size -= 1
        lines.append(f"a{k} = f32[{size}] slice(x{k}), slice={{[0:{size}]}}")
        lines.append(f"b{k} = f32[{size}] slice(x{k}), slice={{[1:{size + 1}]}}")
        lines.append(f"x{k + 1} = f32[{size}] add(a{k}, b{k})")
    module = hlo.parse(f"ENTRY e {{ {' '.join(lines)} }}")
    nest = nest_of(module.entry)
    assert 1 < len(nest.stages) <= 12
    assert len(nest.source) < 6000
    check(module.entry, module.entry, 9)


BOTH = """
both {
  a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  x = f32[] add(a, c) y = f32[] maximum(b, d) ROOT t = (f32[], f32[]) tuple(x, y)
}
ENTRY e {
  p = f32[128,256] parameter(0)
  e = f32[128,256] exponential(p)
  n = f32[128,256] negate(e)
  z = f32[] constant(0)
  r = (f32[128], f32[128]) reduce(e, n, z, z), dimensions={1}, to_apply=both
  s = f32[128] get-tuple-element(r), index=0
  m = f32[128] get-tuple-element(r), index=1
"""


@pytest.mark.parametrize(
    "rest",
    [
        "ROOT q = f32[128] add(s, m)",
        "w = f32[128,256] broadcast(m), dimensions={0} f = f32[128,256] multiply(e, w) "
        "g = f32[128,256] add(f, e) h = f32[128,256] tanh(g) ROOT k = f32[128,256] add(h, g)",
        "w = f32[128,256] broadcast(s), dimensions={0} f = f32[128,256] add(n, w) "
        "g = f32[128,256] tanh(f) ROOT h = f32[128,256] negate(g)",
    ],
)
def test_live_arrays_are_not_overwritten(rest: str) -> None:
    """Memory of large arrays is reused, but not while they are live."""
    module = hlo.parse(f"{BOTH} {rest} }}")
    given = random_inputs(module.entry, 1)
    kept = [array.copy() for array in given]
    program = nest_of(module.entry).vectorized()
    (expected,) = flattened(evaluate(module.entry, *given)[module.entry.root])
    for _ in range(2):
        agree(program.run(*given), expected, program.source)
    assert all(np.array_equal(a, b) for a, b in zip(given, kept, strict=True))


@pytest.mark.parametrize(
    "names",
    ["d0 s0 rt0 out total", "window contract put clamped clamp", "np numerics range min lambda",
     "i_d0 d0_ to_f32 reduced x-y", "e add total0 total_2 lambda_"],
)  # fmt: skip
def test_names_of_instructions_do_not_clash_with_generated_names(names: str) -> None:
    a, b, c, d, e = names.split()
    text = f"""{REGIONS}
    ENTRY {e} {{
      {a} = f32[6,5] parameter(0) {b} = s32[] parameter(1) zero = f32[] constant(0)
      {c} = f32[4,5] dynamic-slice({a}, {b}, {b}), dynamic_slice_sizes={{4,5}}
      {d} = f32[4] reduce({c}, zero), dimensions={{1}}, to_apply=add
      f = f32[4,4] dot({c}, {c}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
      g = f32[4,4] broadcast({d}), dimensions={{0}} h = s32[4,4] convert(g)
      i = f32[4,4] convert(h) j = f32[4,4] add(f, i)
      ROOT {e} = f32[3,4] reduce-window(j, zero), window={{size=2x2 pad=0_0x1_0}}, to_apply=add
    }}"""
    module = hlo.parse(text)
    check(module.entry, module.entry, 2)


@pytest.mark.parametrize("output", [0, 1])
def test_each_total_of_a_large_reduction_is_a_result(output: int) -> None:
    """Totals that are not read are not stored."""
    text = """
    first {
      a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
      c = pred[] compare(a, b), direction=GE x = f32[] select(c, a, b) k = s32[] select(c, i, j)
      ROOT t = (f32[], s32[]) tuple(x, k)
    }
    ENTRY e {
      p = f32[130,258] parameter(0) i = s32[130,258] iota(), iota_dimension=1
      l = f32[] constant(-inf) z = s32[] constant(0)
      ROOT r = (f32[129,256], s32[129,256]) reduce-window(p, i, l, z), window={size=2x3},
        to_apply=first
    }"""
    module = hlo.parse(text)
    given = random_inputs(module.entry, 1)
    expected = flattened(evaluate(module.entry, *given)[module.entry.root])[output]
    program = nest_of(module.entry, output).vectorized()
    agree(program.run(*given), expected, program.source)
    assert program.source.count(" = total") == 1


def test_large_arrays_are_deleted_after_their_last_use() -> None:
    """A chain of twenty operations on 1 MB, each of which reads the two arrays before it."""
    size, lines = "f32[512,512]", ["x0 = f32[512,512] parameter(0)", "x1 = f32[512,512] tanh(x0)"]
    lines += [f"x{k + 1} = {size} multiply(x{k}, x{k - 1})" for k in range(1, 20)]
    module = hlo.parse(f"ENTRY e {{ {' '.join(lines)} }}")
    program = nest_of(module.entry).vectorized()
    (given,) = random_inputs(module.entry, 1)
    program.run(given)  # generates the program
    tracemalloc.start()
    program.run(given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "del x5" in program.source
    assert peak < 3.1 * given.nbytes


def test_a_nest_with_an_elided_constant_is_unknown() -> None:
    text = (
        "ENTRY e { p = f32[9] parameter(0) c = f32[9] constant({...}) ROOT r = f32[9] add(p, c) }"
    )
    module = hlo.parse(text)
    nest = indexing.loop_nest(module.entry)
    assert isinstance(nest, Unknown)
    assert nest.reason == "the values of constant `c` are elided"
    assert nest.instruction is module.entry["c"]


def test_an_update_that_is_always_in_bounds_agrees_with_the_interpreter() -> None:
    text = (
        "ENTRY e { p = f32[2] parameter(0) u = f32[2] parameter(1) i = s32[] parameter(2)"
        " d = f32[2] dynamic-update-slice(p, u, i) z = f32[] constant(0)"
        " ROOT r = f32[5] pad(d, z), padding=1_2 }"
    )
    module = hlo.parse(text)
    check(module.entry, module.entry, 2)


def test_a_wrong_map_computes_a_wrong_number(
    monkeypatch: pytest.MonkeyPatch, forget_maps: Callable[[], None]
) -> None:
    text = "ENTRY e { p = s32[3,3] parameter(0) ROOT t = s32[3,3] transpose(p), dimensions={1,0} }"
    given = np.arange(9, dtype=np.int32).reshape(3, 3)
    assert np.array_equal(nest_of(hlo.parse(text).entry).run(given), given.T)

    def wrong(self: Transpose, out: Shape, operand: Shape) -> IndexingMap:
        return IndexingMap.over(out, lambda i: [i[0], i[1]])

    monkeypatch.setattr(Transpose, "output_to_input", wrong)
    forget_maps()
    nest = nest_of(hlo.parse(text).entry)
    assert not np.array_equal(nest.run(given), given.T)
    assert not np.array_equal(nest.vectorized().run(given), given.T)


def test_tiles_bound_the_memory() -> None:
    """A result of 8 MiB in tiles of 16 KiB: no array of the result's size is allocated."""
    text = (
        "ENTRY e { p = f32[1024] parameter(0) q = f32[2048] parameter(1)"
        " a = f32[1024,2048] broadcast(p), dimensions={0}"
        " b = f32[1024,2048] broadcast(q), dimensions={1}"
        " m = f32[1024,2048] multiply(a, b) ROOT r = f32[1024,2048] tanh(m) }"
    )
    program = nest_of(hlo.parse(text).entry).vectorized()
    p, q = np.ones(1024, np.float32), np.ones(2048, np.float32)
    total = 0.0
    next(program.tiles((64, 64), p, q))  # generates the program
    tracemalloc.start()
    for box, block in program.tiles((64, 64), p, q):
        assert block.shape == tuple([s.stop - s.start for s in box])
        total += float(block.sum())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 18
    assert total == pytest.approx(1024 * 2048 * np.tanh(1.0), rel=1e-3)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], r"`e`: expected 2 arrays \(p, q\), got 0"),
        (
            [np.zeros((3, 2), np.float32), np.zeros(3, np.float32)],
            r"`e`: input `p`: expected float32\[2,3\], got float32\[3,2\]",
        ),
        (
            [np.zeros((2, 3), np.float32), np.zeros(3)],
            r"`e`: input `q`: expected float32\[3\], got float64\[3\]",
        ),
    ],
)
def test_wrong_inputs_are_errors(arrays: list[Array], message: str) -> None:
    text = (
        "ENTRY e { p = f32[2,3] parameter(0) q = f32[3] parameter(1)"
        " b = f32[2,3] broadcast(q), dimensions={1} ROOT r = f32[2,3] add(p, b) }"
    )
    nest = nest_of(hlo.parse(text).entry)
    for run in (nest.run, nest.vectorized().run):
        with pytest.raises(ValueError, match=message):
            run(*arrays)


def test_an_index_into_equal_values_does_not_stop_tiles() -> None:
    """The stage of the index is read by no other: the table has one value."""
    text = """
    add { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT c = s32[] add(a, b) }
    ENTRY e { p = f32[] parameter(0)  u = f32[1,2] parameter(1)  i = s64[] parameter(2)
      numbers = s32[1,2] iota(), iota_dimension=1  zero = s32[] constant(0)
      k = s32[1] reduce(numbers, zero), dimensions={1}, to_apply=add
      t = f32[6,2] broadcast(p), dimensions={}
      g = f32[4,2] gather(t, k), offset_dims={0,1}, collapsed_slice_dims={},
        start_index_map={0}, index_vector_dim=0, slice_sizes={4,2}
      ROOT r = f32[4,2] dynamic-update-slice(g, u, i, i) }"""
    program = nest_of(hlo.parse(text).entry).vectorized()
    given = np.array(7, np.float32), np.array([[1, 4]], np.float32), np.array(2)
    rows = [[7, 7], [7, 7], [1, 4], [7, 7]]
    assert program.run(*given, tile=(3, 2)).tolist() == rows


def test_a_tile_of_another_rank_is_an_error() -> None:
    nest = nest_of(
        hlo.parse("ENTRY e { p = f32[2,3] parameter(0) ROOT r = f32[2,3] tanh(p) }").entry
    )
    message = r"a tile of `e` needs one size for each of the 2 dimensions of \[2, 3\], got 1: \[2\]"
    with pytest.raises(ValueError, match=message):
        nest.run(np.zeros((2, 3), np.float32), tile=(2,))


def test_an_output_out_of_range_is_an_error() -> None:
    module = hlo.parse("ENTRY e { p = f32[2] parameter(0) ROOT t = (f32[2], f32[2]) tuple(p, p) }")
    with pytest.raises(IndexError, match=r"`t` has no output 2 \(number of outputs: 2\)"):
        indexing.loop_nest(module.entry, 2)
