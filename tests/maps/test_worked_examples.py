"""Worked examples of maps, op by op, also as documentation.

Each row is an instruction or a fusion with its operands, and its maps in one direction.  `READS`:
from elements of the result to elements of each operand.  `FEEDS`: from elements of an operand to
elements of the result.  The examples follow the order of XLA's ``docs/indexing.md``, with other
sizes and modules.
"""

# ruff: noqa: E501 - a row of a table is one line

import re
from itertools import permutations

import pytest

import hlo
import indexing
from indexing import IndexingMap, parse_map
from tests.oracles import divisions, relation

REDUCERS = """
largest { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
total { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
best {
  value = f32[] parameter(0)  place = s32[] parameter(1)
  other = f32[] parameter(2)  its_place = s32[] parameter(3)
  better = pred[] compare(value, other), direction=GT
  equal = pred[] compare(value, other), direction=EQ
  earlier = pred[] compare(place, its_place), direction=LT
  tie = pred[] and(equal, earlier)  kept = pred[] or(better, tie)
  v = f32[] select(kept, value, other)  p = s32[] select(kept, place, its_place)
  ROOT both = (f32[], s32[]) tuple(v, p)
}
each {
  a = f32[] parameter(0)  b = s32[] parameter(1)  x = f32[] parameter(2)  y = s32[] parameter(3)
  sum = f32[] add(a, x)  product = s32[] multiply(b, y)
  ROOT both = (f32[], s32[]) tuple(sum, product)
}
left { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT n = f32[] negate(a) }
"""


def box(text: str, *sizes: int) -> str:
    """Append the domain of a box: sizes 3, 5 are d0 in [0, 2], d1 in [0, 4]."""
    domain = ", ".join(f"d{k} in [0, {size - 1}]" for k, size in enumerate(sizes))
    return f"{text}, domain: {domain}"


# One instruction in an ENTRY whose parameters are declared inline; `reads` has a list for each operand.
# fmt: off
READS = [
    # Elementwise: the element at the same index of each operand.
    ("f32[6,11] subtract(f32[6,11] a, f32[6,11] b)", [
        [box("(d0, d1) -> (d0, d1)", 6, 11)],
        [box("(d0, d1) -> (d0, d1)", 6, 11)]]),
    ("f32[6,11] select(pred[6,11] which, f32[6,11] a, f32[6,11] b)", [
        [box("(d0, d1) -> (d0, d1)", 6, 11)]] * 3),
    # Broadcast: new dimensions do not appear in the results.
    ("f32[7,3,5] broadcast(f32[3] a), dimensions={1}", [
        [box("(d0, d1, d2) -> (d1)", 7, 3, 5)]]),
    # Dynamic-slice: a window at a clamped runtime start.
    ("s8[2,1,9] dynamic-slice(s8[5,1,40] a, s32[] i, s32[] j, s32[] k), dynamic_slice_sizes={2,1,9}", [
        [box("(d0, d1, d2){rt0, rt1, rt2} -> (d0 + rt0, d1 + rt1, d2 + rt2)", 2, 1, 9)
         + ", rt0 in [0, 3], rt1 in [0, 0], rt2 in [0, 31]"],
        *[[box("(d0, d1, d2) -> ()", 2, 1, 9)]] * 3]),
    # Dynamic-update-slice: the domain of the update is the window; the base is over-approximated.
    ("f32[20,30] dynamic-update-slice(f32[20,30] a, f32[5,10] u, s32[] i, s32[] j)", [
        [box("(d0, d1) -> (d0, d1)", 20, 30)],
        [box("(d0, d1){rt0, rt1} -> (d0 - rt0, d1 - rt1)", 20, 30)
         + ", rt0 in [0, 15], rt1 in [0, 20], d0 - rt0 in [0, 4], d1 - rt1 in [0, 9]"],
        *[[box("(d0, d1) -> ()", 20, 30)]] * 2]),
    # Gather: a window at each index vector.
    ("f32[90,3,4] gather(f32[17,23,4] a, s32[90,2] at), offset_dims={1,2}, collapsed_slice_dims={0}, "
     "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,3,4}", [
        [box("(d0, d1, d2){rt0, rt1} -> (rt0, d1 + rt1, d2)", 90, 3, 4)
         + ", rt0 in [0, 16], rt1 in [0, 20]"],
        [box("(d0, d1, d2)[s0] -> (d0, s0)", 90, 3, 4) + ", s0 in [0, 1]"]]),
    # Transpose, reverse.
    ("f32[3,6,8,13] transpose(f32[3,13,6,8] a), dimensions={0,2,3,1}", [
        [box("(d0, d1, d2, d3) -> (d0, d3, d1, d2)", 3, 6, 8, 13)]]),
    ("f32[2,19,7] reverse(f32[2,19,7] a), dimensions={1,2}", [
        [box("(d0, d1, d2) -> (d0, -d1 + 18, -d2 + 6)", 2, 19, 7)]]),
    # Reduce: a range variable iterates over the reduced dimension; the init value is a scalar.
    ("f32[11] reduce(f32[11,130] a, f32[] zero), dimensions={1}, to_apply=total", [
        [box("(d0)[s0] -> (d0, s0)", 11) + ", s0 in [0, 129]"],
        [box("(d0) -> ()", 11)]]),
    ("(f32[12], s32[12]) reduce(f32[200,12] a, s32[200,12] b, f32[] x, s32[] y), dimensions={0}, to_apply=best", [
        *[[box("(d0)[s0] -> (s0, d0)", 12) + ", s0 in [0, 199]"]] * 2,
        *[[box("(d0) -> ()", 12)]] * 2]),
    # An operand is not read if the computation ignores its elements: `left` returns -a.
    ("f32[6,11] map(f32[6,11] a, f32[6,11] b), dimensions={0,1}, to_apply=left", [
        [box("(d0, d1) -> (d0, d1)", 6, 11)], []]),
    # Slice: start and stride.
    ("f32[4,3,20] slice(f32[9,22,40] a), slice={[5:9], [3:22:7], [0:40:2]}", [
        [box("(d0, d1, d2) -> (d0 + 5, d1 * 7 + 3, d2 * 2)", 4, 3, 20)]]),
    # Reshape: collapse, expand, and both; other dimensions are unchanged.
    ("f32[35] reshape(f32[5,7] a)", [[box("(d0) -> (d0 floordiv 7, d0 mod 7)", 35)]]),
    ("f32[5,7] reshape(f32[35] a)", [[box("(d0, d1) -> (d0 * 7 + d1)", 5, 7)]]),
    ("f32[3,4,6] reshape(f32[6,12] a)", [
        [box("(d0, d1, d2) -> (d0 * 2 + d1 floordiv 2, (d1 mod 2) * 6 + d2)", 3, 4, 6)]]),
    ("f32[15,2,9] reshape(f32[3,5,18] a)", [
        [box("(d0, d1, d2) -> (d0 floordiv 5, d0 mod 5, d1 * 9 + d2)", 15, 2, 9)]]),
    # Bitcast: a transpose or a reshape, or both, by the layouts.
    ("f32[5,7]{0,1} bitcast(f32[7,5]{1,0} a)", [[box("(d0, d1) -> (d1, d0)", 5, 7)]]),
    # Concatenate: each operand is read in its part of the domain.
    ("f32[3,26] concatenate(f32[3,4] a, f32[3,9] b, f32[3,13] c), dimensions={1}", [
        ["(d0, d1) -> (d0, d1), domain: d0 in [0, 2], d1 in [0, 3]"],
        ["(d0, d1) -> (d0, d1 - 4), domain: d0 in [0, 2], d1 in [4, 12]"],
        ["(d0, d1) -> (d0, d1 - 13), domain: d0 in [0, 2], d1 in [13, 25]"]]),
    # Dot: batch, free and contracting dimensions.
    ("f32[3,10,14] dot(f32[3,10,21] a, f32[3,21,14] b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
     "lhs_contracting_dims={2}, rhs_contracting_dims={1}", [
        [box("(d0, d1, d2)[s0] -> (d0, d1, s0)", 3, 10, 14) + ", s0 in [0, 20]"],
        [box("(d0, d1, d2)[s0] -> (d0, s0, d2)", 3, 10, 14) + ", s0 in [0, 20]"]]),
    # Pad: low, high and interior padding; padding reads no element of the operand.
    ("f32[15,11] pad(f32[5,6] a, f32[] b), padding=2_4_1x3_2", [
        ["(d0, d1) -> ((d0 - 2) floordiv 2, d1 - 3), domain: d0 in [2, 10], d1 in [3, 8], (d0 - 2) mod 2 in [0, 0]"],
        [box("(d0, d1) -> ()", 15, 11)]]),
    ("f32[3,5] pad(f32[5,6] a, f32[] b), padding=-1_-1x0_-1", [
        [box("(d0, d1) -> (d0 + 1, d1)", 3, 5)],
        None]),                                                      # no element is padding
    # Reduce-window: a range variable iterates over the window.
    ("f32[40,5] reduce-window(f32[40,64] a, f32[] b), window={size=1x60}, to_apply=largest", [
        [box("(d0, d1)[s0] -> (d0, d1 + s0)", 40, 5) + ", s0 in [0, 59]"],
        [box("(d0, d1) -> ()", 40, 5)]]),
    ("f32[6] reduce-window(f32[10] a, f32[] b), window={size=3 stride=2 pad=1_2}, to_apply=largest", [
        ["(d0)[s0] -> (d0 * 2 + s0 - 1), domain: d0 in [0, 5], s0 in [0, 2], d0 * 2 + s0 in [1, 10]"],
        [box("(d0) -> ()", 6)]]),
]

FEEDS = [
    # instruction                                                    operand  maps, one for each output
    ("f32[6,11] subtract(f32[6,11] a, f32[6,11] b)",                 1, [box("(d0, d1) -> (d0, d1)", 6, 11)]),
    # Broadcast: range variables iterate over the new dimensions.
    ("f32[7,3,5] broadcast(f32[3] a), dimensions={1}",               0, [
        box("(d0)[s0, s1] -> (s0, d0, s1)", 3) + ", s0 in [0, 6], s1 in [0, 4]"]),
    ("f32[3,6,8,13] transpose(f32[3,13,6,8] a), dimensions={0,2,3,1}", 0, [
        box("(d0, d1, d2, d3) -> (d0, d2, d3, d1)", 3, 13, 6, 8)]),
    ("f32[2,19,7] reverse(f32[2,19,7] a), dimensions={1,2}",         0, [
        box("(d0, d1, d2) -> (d0, -d1 + 18, -d2 + 6)", 2, 19, 7)]),
    # Reduce: each element contributes to one result, the init value to all.
    ("f32[11] reduce(f32[11,130] a, f32[] zero), dimensions={1}, to_apply=total", 0, [
        box("(d0, d1) -> (d0)", 11, 130)]),
    ("f32[11] reduce(f32[11,130] a, f32[] zero), dimensions={1}, to_apply=total", 1, [
        "()[s0] -> (s0), domain: s0 in [0, 10]"]),
    ("(f32[12], s32[12]) reduce(f32[200,12] a, s32[200,12] b, f32[] x, s32[] y), dimensions={0}, to_apply=best", 1,
        [box("(d0, d1) -> (d1)", 200, 12)] * 2),
    # `each` reduces two arrays independently.
    ("(f32[12], s32[12]) reduce(f32[200,12] a, s32[200,12] b, f32[] x, s32[] y), dimensions={0}, to_apply=each", 1,
        [None, box("(d0, d1) -> (d1)", 200, 12)]),
    # Slice: constraints select the elements of the window at the stride.
    ("f32[4,3,20] slice(f32[9,22,40] a), slice={[5:9], [3:22:7], [0:40:2]}", 0, [
        "(d0, d1, d2) -> (d0 - 5, (d1 - 3) floordiv 7, d2 floordiv 2), domain: d0 in [5, 8], "
        "d1 in [3, 17], d2 in [0, 38], (d1 - 3) mod 7 in [0, 0], d2 mod 2 in [0, 0]"]),
    ("f32[35] reshape(f32[5,7] a)",                                  0, [box("(d0, d1) -> (d0 * 7 + d1)", 5, 7)]),
    ("f32[3,4,6] reshape(f32[6,12] a)",                              0, [
        box("(d0, d1) -> (d0 floordiv 2, (d0 mod 2) * 2 + d1 floordiv 6, d1 mod 6)", 6, 12)]),
    ("f32[15,2,9] reshape(f32[3,5,18] a)",                           0, [
        box("(d0, d1, d2) -> (d0 * 5 + d1, d2 floordiv 9, d2 mod 9)", 3, 5, 18)]),
    ("f32[3,26] concatenate(f32[3,4] a, f32[3,9] b, f32[3,13] c), dimensions={1}", 1, [
        box("(d0, d1) -> (d0, d1 + 4)", 3, 9)]),
    ("f32[3,10,14] dot(f32[3,10,21] a, f32[3,21,14] b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
     "lhs_contracting_dims={2}, rhs_contracting_dims={1}",           1, [
        box("(d0, d1, d2)[s0] -> (d0, s0, d2)", 3, 21, 14) + ", s0 in [0, 9]"]),
    ("f32[15,11] pad(f32[5,6] a, f32[] b), padding=2_4_1x3_2",       0, [
        box("(d0, d1) -> (d0 * 2 + 2, d1 + 3)", 5, 6)]),
    ("f32[40,5] reduce-window(f32[40,64] a, f32[] b), window={size=1x60}, to_apply=largest", 0, [
        "(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 39], d1 in [0, 63], s0 in [0, 4], d1 - s0 in [0, 59]"]),
]

# Fusions: maps are composed through all fused instructions.
FUSIONS = [
    ("two accesses to one operand are two maps", """
        p = f32[9,9] parameter(0)
        flipped = f32[9,9] transpose(p), dimensions={1,0}
        ROOT sum = f32[9,9] add(p, flipped)""", "f32[9,9]", [
        box("(d0, d1) -> (d0, d1)", 9, 9), box("(d0, d1) -> (d1, d0)", 9, 9)]),
    ("two paths with equal maps are one map", """
        p = f32[4,3,5] parameter(0)
        left = f32[3,4,5] transpose(p), dimensions={1,0,2}
        left_there = f32[3,5,4] transpose(left), dimensions={0,2,1}
        right = f32[5,3,4] transpose(p), dimensions={2,1,0}
        right_there = f32[3,5,4] transpose(right), dimensions={1,0,2}
        ROOT sum = f32[3,5,4] add(left_there, right_there)""", "f32[4,3,5]", [
        box("(d0, d1, d2) -> (d2, d0, d1)", 3, 5, 4)]),
    ("softmax reads its element and the entire row", """
        p = f32[2,6,35] parameter(0)
        low = f32[] constant(-inf)
        top = f32[2,6] reduce(p, low), dimensions={2}, to_apply=largest
        tops = f32[2,6,35] broadcast(top), dimensions={0,1}
        shifted = f32[2,6,35] subtract(p, tops)
        e = f32[2,6,35] exponential(shifted)
        zero = f32[] constant(0)
        sum = f32[2,6] reduce(e, zero), dimensions={2}, to_apply=total
        sums = f32[2,6,35] broadcast(sum), dimensions={0,1}
        ROOT share = f32[2,6,35] divide(e, sums)""", "f32[2,6,35]", [
        box("(d0, d1, d2) -> (d0, d1, d2)", 2, 6, 35),
        box("(d0, d1, d2)[s0] -> (d0, d1, s0)", 2, 6, 35) + ", s0 in [0, 34]"]),
    ("a reshape and its inverse cancel", """
        p = f32[6,10,7] parameter(0)
        there = f32[35,12] reshape(p)
        ROOT back = f32[6,10,7] reshape(there)""", "f32[6,10,7]", [
        box("(d0, d1, d2) -> (d0, d1, d2)", 6, 10, 7)]),
    ("a slice of a padded tensor", """
        p = f32[11] parameter(0)
        zero = f32[] constant(0)
        padded = f32[20] pad(p, zero), padding=4_5
        ROOT cut = f32[6] slice(padded), slice={[2:14:2]}""", "f32[11]", [
        "(d0) -> (d0 * 2 - 2), domain: d0 in [1, 5]"]),
]

SIMPLIFIED = [
    # One example for each rule of the document's section on simplification.
    ("(d0, d1) -> (d0 + d1 floordiv 9, d1 mod 9), domain: d0 in [0, 3], d1 in [0, 8]",
     "(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 8]"),
    ("(d0, d1, d2) -> ((d0 * 30 + d1 * 6 + d2) floordiv 30, ((d0 * 30 + d1 * 6 + d2) mod 30) floordiv 6, d2 mod 6), "
     "domain: d0 in [0, 3], d1 in [0, 4], d2 in [0, 5]",
     "(d0, d1, d2) -> (d0, d1, d2), domain: d0 in [0, 3], d1 in [0, 4], d2 in [0, 5]"),
    ("(d0, d1) -> ((d0 * 12 + d1) floordiv 6, (d0 * 12 + d1) mod 6), domain: d0 in [0, 4], d1 in [0, 11]",
     "(d0, d1) -> (d0 * 2 + d1 floordiv 6, d1 mod 6), domain: d0 in [0, 4], d1 in [0, 11]"),
    ("(d0, d1) -> (-((d0 * -7 - d1 + 34) floordiv 7) + 4), domain: d0 in [0, 4], d1 in [0, 6]",
     "(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [0, 6]"),
    ("(d0)[s0] -> (d0, s0), domain: d0 in [0, 4], s0 in [2, 3], d0 + s0 in [0, 9]",
     "(d0)[s0] -> (d0, s0), domain: d0 in [0, 4], s0 in [2, 3]"),
    ("(d0)[s0] -> (d0, s0), domain: d0 in [0, 4], s0 in [2, 3], d0 + s0 + 5 in [8, 11]",
     "(d0)[s0] -> (d0, s0), domain: d0 in [0, 4], s0 in [2, 3], d0 + s0 in [3, 6]"),
]
# fmt: on


def module_of(instruction: str) -> hlo.Module:
    """Parse an ENTRY with this root; an operand ``f32[2] a`` declares parameter a."""
    tuple_ends = instruction.index(")") if instruction.startswith("(") else 0
    shape_ends = instruction.index(" ", tuple_ends)
    shape, rest = instruction[:shape_ends], instruction[shape_ends + 1 :]
    opcode, _, rest = rest.partition("(")
    inside, _, attributes = rest.partition(")")
    declared = [one.strip().split(" ") for one in inside.replace(", ", ";").split(";")]
    parameters = [f"{name} = {of} parameter({k})" for k, (of, name) in enumerate(declared)]
    names = ", ".join(name for _, name in declared)
    root = f"ROOT result = {shape} {opcode}({names}){attributes}"
    body = "\n  ".join([*parameters, root])
    return hlo.parse(f"{REDUCERS}\nENTRY main {{\n  {body}\n}}\n")


def agrees(maps: tuple[IndexingMap, ...], texts: list[str]) -> bool:
    """Return True if the maps equal the texts in some order, without more divisions."""
    goals = [parse_map(text) for text in texts]
    simple = [m.simplify(certify=True) for m in maps]
    parsed = [parse_map(str(m)) for m in simple]  # without the sources of runtime variables
    matches = [[k for k, goal in enumerate(goals) if _equal(m, goal)] for m in parsed]
    cheap = sum(divisions(str(m)) for m in simple) <= sum(map(divisions, texts))
    return sorted(k for ks in matches for k in ks) == list(range(len(goals))) and cheap


def _equal(a: IndexingMap, b: IndexingMap) -> bool:
    """Return True for equal relations up to renaming runtime variables."""
    if len(a.results) != len(b.results) or len(a.runtime) != len(b.runtime):
        return False
    names = [rt.name for rt in b.runtime]
    for permuted in permutations(names):
        other = dict(zip(names, permuted, strict=True))
        text = re.sub(r"\brt\d+", lambda match, other=other: other[match[0]], str(b))  # type: ignore[misc]
        if a.is_equal(parse_map(text)):
            return True
    return False


@pytest.mark.parametrize("text, maps", READS, ids=[row[0][:48] for row in READS])
def test_maps_from_the_result_to_operands(text: str, maps: list[list[str] | None]) -> None:
    root = module_of(text).entry.root
    assert not hlo.verify(root.computation.module)
    for output in range(2 if text.startswith("(") else 1):
        answer = indexing.output_to_input(root, output_id=output)
        assert answer.unknown == (None,) * len(maps)
        for actual, expected in zip(answer.maps, maps, strict=True):
            if expected is None:
                assert all(m.grade == "may" or m.is_empty() for m in actual)
            else:
                assert agrees(actual, expected), [str(m) for m in actual]


@pytest.mark.parametrize("text, operand, maps", FEEDS, ids=[f"{r[1]}-{r[0][:45]}" for r in FEEDS])
def test_maps_from_an_operand_to_the_result(
    text: str, operand: int, maps: list[str | None]
) -> None:
    answer = indexing.input_to_output(module_of(text).entry.root, input_id=operand)
    assert len(answer.maps) == len(maps)
    for actual, expected in zip(answer.maps, maps, strict=True):
        assert agrees(actual, [expected] if expected else []), [str(m) for m in actual]


@pytest.mark.parametrize(
    "body, operand, maps", [r[1:] for r in FUSIONS], ids=[r[0] for r in FUSIONS]
)
def test_maps_of_a_fusion(body: str, operand: str, maps: list[str]) -> None:
    result = body.rpartition("ROOT ")[2].split(" ")[2]
    root = hlo.parse(
        f"{REDUCERS}\nfused {{{body}\n}}\nENTRY main {{\n  a = {operand} parameter(0)\n"
        f"  ROOT f = {result} fusion(a), kind=kLoop, calls=fused\n}}\n"
    ).entry.root
    for answer in (indexing.output_to_input(root), indexing.to_parameters(root)):
        assert agrees(answer.maps[0], maps), [str(m) for m in answer.maps[0]]


@pytest.mark.parametrize("before, after", SIMPLIFIED)
def test_maps_are_simplified(before: str, after: str) -> None:
    simple = parse_map(before).simplify(certify=True)
    assert str(simple) == after
    assert relation(simple) == relation(parse_map(before))
