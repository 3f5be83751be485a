"""`tile_analysis` against brute force: every tile has precisely the elements that are read."""

from itertools import product
from pathlib import Path

import pytest

import hlo
from indexing import Unknown
from indexing.tiling.computations.tile_analysis import TileAnalysis, tile_analysis
from tests.tiling.computations.analysis_oracle import check, entry

EXAMPLES = Path(__file__).parent.parent.parent.parent / "examples"

SOFTMAX = """
  p = f32[5,7] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  top = f32[5] reduce(p, low), dimensions={1}, to_apply=max
  tops = f32[5,7] broadcast(top), dimensions={0}
  shifted = f32[5,7] subtract(p, tops)
  exp = f32[5,7] exponential(shifted)
  sum = f32[5] reduce(exp, zero), dimensions={1}, to_apply=add
  sums = f32[5,7] broadcast(sum), dimensions={0}
  ROOT r = f32[5,7] divide(exp, sums)"""

MODULES = {
    "softmax": SOFTMAX,
    "dot of a transpose": """
  p = f32[6,5] parameter(0)
  q = f32[6,4] parameter(1)
  t = f32[5,6] transpose(p), dimensions={1,0}
  ROOT d = f32[5,4] dot(t, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "dot of one array with itself": """
  p = f32[6,6] parameter(0)
  ROOT d = f32[6,6] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "two loops, inner dimension first": """
  p = f32[3,4,5,2] parameter(0)
  z = f32[] constant(0)
  ROOT s = f32[3,5] reduce(p, z), dimensions={3,1}, to_apply=add""",
    "a reduction of a dot": """
  p = f32[4,6] parameter(0)
  q = f32[6,5] parameter(1)
  z = f32[] constant(0)
  d = f32[4,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[5] reduce(d, z), dimensions={0}, to_apply=add""",
    "scaled dot": """
  p = f32[4,6] parameter(0)
  q = f32[6,5] parameter(1)
  x = f32[2,3] parameter(2)
  y = f32[1,5] parameter(3)
  ROOT d = f32[4,5] scaled-dot(p, q, x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "window": """
  p = f32[9,4] parameter(0)
  z = f32[] constant(0)
  w = f32[7,4] reduce-window(p, z), window={size=3x1}, to_apply=add
  ROOT n = f32[7,4] negate(w)""",
    "reverse of a strided slice": """
  p = f32[5,9] parameter(0)
  s = f32[5,4] slice(p), slice={[0:5], [1:9:2]}
  ROOT r = f32[5,4] reverse(s), dimensions={1}""",
    "pad": """
  p = f32[5,3] parameter(0)
  z = f32[] constant(0)
  n = f32[5,3] negate(p)
  ROOT r = f32[8,4] pad(n, z), padding=2_1x1_0""",
    "concatenate": """
  p = f32[4,3] parameter(0)
  q = f32[4,2] parameter(1)
  n = f32[4,3] negate(p)
  ROOT c = f32[4,5] concatenate(n, q), dimensions={1}""",
    "concatenate of one column": """
  p = f32[4,5] parameter(0)
  q = f32[4,1] parameter(1)
  n = f32[4,1] negate(q)
  ROOT c = f32[4,7] concatenate(n, p, n), dimensions={1}""",
    "concatenate of rows of digits": """
  p = f32[12] parameter(0)
  q = f32[8] parameter(1)
  a = f32[12,1] reshape(p)
  b = f32[8,1] reshape(q)
  c = f32[20,1] concatenate(a, b), dimensions={0}
  ROOT r = f32[5,4] reshape(c)""",
    "reshape": """
  p = f32[12,2] parameter(0)
  a = f32[24] reshape(p)
  n = f32[24] negate(a)
  ROOT b = f32[4,6] reshape(n)""",
    "dynamic slice": """
  p = f32[9,4] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  n = f32[9,4] negate(p)
  ROOT s = f32[5,3] dynamic-slice(n, i, j), dynamic_slice_sizes={5,3}""",
    "two roots, one a reduction of the other": """
  p = f32[4,6] parameter(0)
  z = f32[] constant(0)
  n = f32[4,6] negate(p)
  s = f32[4] reduce(n, z), dimensions={1}, to_apply=add
  ROOT t = (f32[4], f32[4,6]) tuple(s, n)""",
    "two roots, one transposed": """
  p = f32[4,6] parameter(0)
  n = f32[4,6] negate(p)
  t = f32[6,4] transpose(p), dimensions={1,0}
  ROOT r = (f32[4,6], f32[6,4]) tuple(n, t)""",
}


@pytest.mark.parametrize("name", MODULES)
def test_tiles_are_the_elements_that_are_read(name: str) -> None:
    analysis = tile_analysis(entry(MODULES[name]))
    assert isinstance(analysis, TileAnalysis)
    assert not any(isinstance(root.tiled, Unknown) for root in analysis.roots)
    compared = 0
    choices = [sorted({1, 2, 3, each.size, each.size + 3}) for each in analysis.dimensions]
    combinations = list(product(*choices))
    for sizes in combinations[:: max(1, len(combinations) // 8)]:
        compared += check(analysis, sizes)
    assert compared > 0


@pytest.mark.parametrize("name", MODULES)
def test_constraints_are_enough(name: str) -> None:
    analysis = tile_analysis(entry(MODULES[name]))
    assert isinstance(analysis, TileAnalysis)
    for size in range(1, 7):
        sizes = (size,) * len(analysis.dimensions)
        if not analysis.unknown and analysis.loop_constraints.satisfied_by(sizes):
            assert analysis.tiled(sizes).unknown == ()


CALLS = """
inner {
  x = f32[4,6] parameter(0)
  t = f32[6,4] transpose(x), dimensions={1,0}
  ROOT r = f32[4,6] reshape(t)
}
outer {
  a = f32[4,6] parameter(0)
  b = f32[4,6] parameter(1)
  c = f32[4,6] fusion(a), kind=kLoop, calls=inner
  d = f32[4,6] call(b), to_apply=inner
  ROOT s = f32[4,6] add(c, d)
}
ENTRY e {
  p = f32[4,6] parameter(0)
  n = f32[4,6] negate(p)
  ROOT f = f32[4,6] fusion(n, p), kind=kLoop, calls=outer
}"""


def test_nested_fusions_and_calls_are_entered() -> None:
    root = hlo.parse(CALLS).entry.root
    analysis = tile_analysis(root)
    assert isinstance(analysis, TileAnalysis)
    names = [each.name for each in analysis.instructions]
    assert sorted(names) == sorted(
        ["n.tile_0", "t.tile_0", "r.tile_0", "p.tile_0", "t.tile_0", "r.tile_0", "s.tile_0"]
    )
    calls = [[c.name for c in each.array.calls] for each in analysis.instructions]
    assert ["f", "c"] in calls
    assert ["f", "d"] in calls
    assert check(analysis, (2, 6)) > 0


def _small(module: hlo.Module) -> list[hlo.Instruction]:
    """Return the fusions whose operands and results have few elements."""
    fusions = [
        each
        for computation in module.computations.values()
        for each in computation.instructions
        if each.opcode == "fusion"
    ]
    arrays = {each: [*each.operands, *each.called_computations[0].instructions] for each in fusions}
    return [
        each
        for each in fusions
        if all(isinstance(a.shape, hlo.Shape) and a.shape.size <= 1024 for a in arrays[each])
    ]


@pytest.mark.parametrize("file", ["gpt2_tiny.opt.hlo", "dynamic_slice_update.opt.hlo"])
def test_fusions_of_examples(file: str) -> None:
    compared = 0
    for fusion in _small(hlo.load(str(EXAMPLES / file))):
        analysis = tile_analysis(fusion)
        if isinstance(analysis, Unknown):
            continue
        for size in (2, 3):
            sizes = [min(size, each.size) for each in analysis.dimensions]
            compared += check(analysis, tuple(sizes), most=4)
    assert compared > 20
