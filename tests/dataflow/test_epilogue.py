"""Epilogues from a hero to the root, and unfused producers with their consumers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from hlo.shapes.shape import Shape
from indexing import IndexingMap, Unknown
from indexing.maps.multiplicity import Multiplicity
from indexing.ops.base import MappedOp
from indexing.tiling.collapsing import Collapse
from simplifier.unknown import require_known
from tests.dataflow.test_random_programs import Array, Program, find_needed, programs
from tests.oracles import Pair, fuzz, invert_pairs, relation, runtime_relations, union
from tests.tiling.test_collapse import check


def texts(maps: tuple[IndexingMap, ...]) -> list[str]:
    return [str(m.simplify(certify=True)) for m in maps]


# ---------------------------------------------------------------- the oracle


def dependencies(computation: hlo.Computation, hero: hlo.Instruction) -> set[Pair]:
    """Return the pairs of elements of hero and root that depend on each other, by the kernels.

    All ops add non-negative multiples.  If one element of the hero is 1 and all other values are 0,
    the non-zero elements of the root depend on it.
    """
    assert isinstance(hero.shape, Shape)
    unit = np.zeros(hero.shape.dims, np.int64)
    pairs: set[Pair] = set()
    for element in np.ndindex(*unit.shape):
        unit[element] = 1
        root = _run_from(computation, hero, unit)
        pairs |= {(element, tuple(map(int, at))) for at in np.argwhere(root)}
        unit[element] = 0
    return pairs


def _run_from(computation: hlo.Computation, hero: hlo.Instruction, value: Array) -> Array:
    values: dict[hlo.Instruction, Array] = {}
    for instruction in computation.instructions:
        assert isinstance(instruction.shape, Shape)
        if instruction is hero:
            values[instruction] = value
        elif instruction.opcode == "parameter":
            values[instruction] = np.zeros(instruction.shape.dims, np.int64)
        else:
            op = instruction.op
            assert isinstance(op, MappedOp)
            shapes = tuple([o.shape for o in instruction.operands])
            operands = [values[o] for o in instruction.operands]
            values[instruction] = op.compute(operands, shapes, np.add)
    return values[computation.root]


# ---------------------------------------------------------------- random fusions


@given(programs(), st.data())
@fuzz(100)
def test_an_epilogue_has_the_dependencies_of_the_kernels(
    program: Program, data: st.DataObject
) -> None:
    fused = program.module().computations["fused"]
    arrays = [i for i in fused.instructions if isinstance(i.shape, Shape) and i.shape.size]
    hero = data.draw(st.sampled_from(arrays))
    answer = indexing.epilogue(hero)
    assert answer.unknown == (None,)
    related, needed_pairs = union(answer.maps[0]), dependencies(fused, hero)
    if any(m.grade == "may" for m in answer.maps[0]):
        assert hero.opcode == "constant"  # a padding value
        assert related >= needed_pairs
    else:
        assert related == needed_pairs
    assert len(set(answer.maps[0])) == len(answer.maps[0])


@given(programs())
@fuzz(60)
def test_all_instructions_of_a_fusion_give_the_maps_of_the_fusion(program: Program) -> None:
    fused = program.module().computations["fused"]
    inner = [i for i in fused.instructions if i.opcode != "parameter"]
    if fused.root.opcode == "parameter":
        return
    through = indexing.grouped_through(fused.root, inner)
    fusion = indexing.grouped(fused.root)
    assert {i: union(maps) for i, maps in through.items()} == {
        i: union(maps) for i, maps in fusion.items()
    }


@given(programs())
@fuzz(60)
def test_random_fusions_collapse(program: Program) -> None:
    result = indexing.collapse(program.module().entry.root)
    assert isinstance(result, Collapse)
    check(result)


@given(programs())
@fuzz(60)
def test_counted_elements_are_those_that_are_read(program: Program) -> None:
    module = program.module()
    expected = find_needed(module.computations["fused"])
    for counted, pairs in zip(indexing.read_counts(module.entry.root), expected, strict=True):
        assert isinstance(counted, Multiplicity)
        elements = {at for _, at in pairs}
        assert counted.distinct == len(elements)
        assert require_known(counted.total) >= len(pairs)
        if not elements:
            continue
        minimum = {at: sum(at == other for _, other in pairs) for at in elements}
        assert all(require_known(counted.at(at)) >= count for at, count in minimum.items())


# ---------------------------------------------------------------- epilogues

FUSED = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
fused {
  p = f32[8,6,5] parameter(0)
  z = f32[] parameter(1)
  q = f32[8,6] parameter(2)
  hero = f32[8,6] reduce(p, z), dimensions={2}, to_apply=add
  n = f32[8,6] negate(hero)
  s = f32[8,6] add(n, q)
  x = f32[8,6] multiply(s, hero)
  t = f32[6,8] transpose(x), dimensions={1,0}
  r = f32[3,16] reshape(t)
  c = f32[48] bitcast(r)
  other = f32[8,6] exponential(q)
  ROOT both = (f32[48], f32[3,16], f32[8,6]) tuple(c, r, other)
}
ENTRY e {
  p = f32[8,6,5] parameter(0)
  z = f32[] parameter(1)
  q = f32[8,6] parameter(2)
  ROOT f = (f32[48], f32[3,16], f32[8,6]) fusion(p, z, q), kind=kInput, calls=fused
}
"""


def test_an_epilogue_has_maps_to_each_output() -> None:
    """Two paths with one map; the third output does not depend on the hero."""
    fused = hlo.parse(FUSED).computations["fused"]
    answer = indexing.epilogue(fused["hero"])
    assert answer.operands == (fused.root,) * 3
    assert [texts(maps) for maps in answer.maps] == [
        ["(d0, d1) -> (d0 + d1 * 8), domain: d0 in [0, 7], d1 in [0, 5]"],
        [
            "(d0, d1) -> (d1 floordiv 2, d0 + (d1 mod 2) * 8), "
            "domain: d0 in [0, 7], d1 in [0, 5]"
        ],
        [],
    ]  # fmt: skip


def test_an_epilogue_may_end_before_the_root() -> None:
    fused = hlo.parse(FUSED).computations["fused"]
    (maps,) = indexing.epilogue(fused["hero"], fused["t"]).maps
    assert texts(maps) == ["(d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 5]"]
    (itself,) = indexing.epilogue(fused["hero"], fused["hero"]).maps
    assert [m.is_identity for m in itself] == [True]
    assert indexing.epilogue(fused["t"], fused["hero"]).maps == ((),)


def test_two_paths_with_different_maps_give_two_maps() -> None:
    root = hlo.parse("""ENTRY e {
        p = f32[4,4] parameter(0)
        t = f32[4,4] transpose(p), dimensions={1,0}
        ROOT s = f32[4,4] add(p, t)
    }""").entry.root
    (maps,) = indexing.epilogue(root.computation["p"]).maps
    assert sorted(texts(maps)) == [
        "(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 3]",
        "(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 3]",
    ]


def test_an_epilogue_keeps_runtime_variables() -> None:
    entry = hlo.parse("""ENTRY e {
        p = f32[7] parameter(0)
        i = s32[] parameter(1)
        hero = f32[7] negate(p)
        s = f32[3] dynamic-slice(hero, i), dynamic_slice_sizes={3}
        ROOT r = f32[3] reverse(s), dimensions={0}
    }""").entry
    ((written,),) = indexing.epilogue(entry["hero"]).maps
    (read,) = indexing.grouped(entry.root)[entry["hero"]]
    assert {at: invert_pairs(pairs) for at, pairs in runtime_relations(written).items()} == (
        runtime_relations(read)
    )
    assert [rt.source_name for rt in written.runtime] == ["i"]


def test_an_unknown_instruction_in_the_epilogue_is_reported() -> None:
    entry = hlo.parse("""ENTRY e {
        p = f32[7] parameter(0)
        hero = f32[7] negate(p)
        u = f32[7] no-such-op(hero)
        ROOT r = f32[7] reverse(u), dimensions={0}
    }""").entry
    answer = indexing.epilogue(entry["hero"])
    (unknown,) = answer.unknown
    assert isinstance(unknown, Unknown)
    assert "no-such-op" in unknown.reason


def test_hero_and_root_must_belong_to_one_computation() -> None:
    module = hlo.parse(FUSED)
    with pytest.raises(ValueError, match="`hero` belongs to `fused`, `f` to `e`"):
        indexing.epilogue(module.computations["fused"]["hero"], module.entry.root)
    with pytest.raises(IndexError, match="`hero` has no output 1"):
        indexing.epilogue(module.computations["fused"]["hero"], output_id=1)


# ---------------------------------------------------------------- producer and consumer


def test_a_producer_and_its_consumer_are_treated_as_one_fusion() -> None:
    """The parameter is read directly and through the transpose."""
    entry = hlo.parse("""ENTRY e {
        p0 = f32[5,5] parameter(0)
        transposed = f32[5,5] transpose(p0), dimensions={1,0}
        ROOT a0 = f32[5,5] add(p0, transposed)
    }""").entry
    same = "(d0, d1) -> (d0, d1), domain: d0 in [0, 4], d1 in [0, 4]"
    transposed = "(d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 4]"

    def groups(*names: str) -> dict[str, list[str]]:
        grouped = indexing.grouped_through(entry.root, [entry[name] for name in names])
        return {i.name: sorted(texts(maps)) for i, maps in grouped.items()}

    assert groups("a0", "transposed") == {
        "a0": [same],
        "transposed": [same],
        "p0": [same, transposed],
    }
    assert groups("a0") == {"a0": [same], "transposed": [same], "p0": [same]}


FUSIONS = """
produce {
  p = f32[4,6] parameter(0)
  n = f32[4,6] negate(p)
  ROOT t = f32[6,4] transpose(n), dimensions={1,0}
}
consume {
  x = f32[6,4] parameter(0)
  i = s32[] parameter(1)
  k = s32[] negate(i)
  z = s32[] constant(0)
  ROOT s = f32[2,4] dynamic-slice(x, k, z), dynamic_slice_sizes={2,4}
}
ENTRY e {
  a = f32[4,6] parameter(0)
  i = s32[] parameter(1)
  first = f32[6,4] fusion(a), kind=kLoop, calls=produce
  ROOT second = f32[2,4] fusion(first, i), kind=kLoop, calls=consume
}
"""


def test_fusions_among_the_instructions_are_expanded() -> None:
    entry = hlo.parse(FUSIONS).entry
    grouped = indexing.grouped_through(entry.root, [entry.root, entry["first"]])
    assert [each.name for each in grouped] == ["s", "k", "z", "t", "n", "i", "a"]
    by_name = {each.name: maps for each, maps in grouped.items()}
    (to_a,) = by_name["a"]
    (composed,) = indexing.to_parameters(entry.root).maps[0]
    assert to_a.is_equal(composed) is True
    (inner,) = by_name["n"]
    assert inner.is_equal(to_a) is True
    assert [(rt.source_name, rt.call_names) for rt in inner.runtime] == [("k", ("second",))]
    assert relation(by_name["s"][0]) == relation(IndexingMap.identity((2, 4)))


def test_instructions_must_belong_to_one_computation() -> None:
    module = hlo.parse(FUSIONS)
    entry = module.entry
    with pytest.raises(ValueError, match="must contain the root `second`"):
        indexing.grouped_through(entry.root, [entry["first"]])
    with pytest.raises(ValueError, match="`n` of `produce`"):
        indexing.grouped_through(entry.root, [entry.root, module.computations["produce"]["n"]])
    with pytest.raises(IndexError, match="no output 3"):
        indexing.grouped_through(entry.root, [entry.root], 3)


# ---------------------------------------------------------------- answers


def test_points_and_texts_of_an_epilogue_are_those_of_the_hero_and_the_root() -> None:
    """The hero has other sizes than its operand, and is an output of a tuple."""
    entry = hlo.parse("""
    pair { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] parameter(2)
      d = f32[] parameter(3)  e = f32[] add(a, c)  f = f32[] add(b, d)
      ROOT r = (f32[], f32[]) tuple(e, f) }
    ENTRY e {
      p = f32[4,30] parameter(0)  q = f32[4,30] parameter(1)  z = f32[] parameter(2)
      hero = (f32[30], f32[30]) reduce(p, q, z, z), dimensions={0}, to_apply=pair
      g = f32[30] get-tuple-element(hero), index=1
      h = f32[15,2] reshape(g)
      ROOT t = (f32[15,2], f32[30], f32[4,30]) tuple(h, g, p)
    }""").entry
    answer = indexing.epilogue(entry["hero"], output_id=1)
    assert [str(region) for region in answer.at(20)] == ["[10, 0]", "[20]", "∅"]
    with pytest.raises(IndexError, match=r"d0 = 30 is outside \[0, 29\]"):
        answer.at(30)
    assert str(answer).splitlines() == [
        "<string>: e: hero = f32[30] reduce, output-to-root, output 1",
        "  root 0 t {0} f32[15,2]: (d0) -> (d0 floordiv 2, d0 mod 2), domain: d0 in [0, 29]",
        "  root 1 t {1} f32[30]: (d0) -> (d0), domain: d0 in [0, 29]",
        "  root 2 t {2} f32[4,30]: nothing is read",
    ]
    assert "what hero{1}[20] is needed by" in str(answer.plot(20)._repr_svg_())


def test_an_epilogue_starts_at_a_parameter() -> None:
    answer = indexing.epilogue(hlo.parse(FUSED).computations["fused"]["p"])
    flat, reshaped, other = answer.at(2, 5, 4)
    assert (str(flat), str(reshaped), str(other)) == ("[42]", "[2, 10]", "∅")
    assert str(answer).startswith("<string>: fused: p = f32[8,6,5] parameter, output-to-root\n")
