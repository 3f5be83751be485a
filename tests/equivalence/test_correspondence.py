"""Which instruction became which, and what that costs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlo
from indexing.equivalence.correspondence import correspondence
from indexing.equivalence.costs import compare_costs, first_change
from indexing.equivalence.dumps import modules_in
from indexing.equivalence.full_names import agree, full_names

BEFORE = """HloModule m
relu { x = f32[4,6] parameter(0)  z = f32[] constant(0), metadata={op_name="c"}
  b = f32[4,6] broadcast(z), dimensions={}, metadata={op_name="bc"}
  ROOT r = f32[4,6] maximum(x, b), metadata={op_name="max"} }
ENTRY e { p = f32[4,5] parameter(0), metadata={op_name="p"}
  w = f32[5,6] parameter(1), metadata={op_name="w"}
  d = f32[4,6] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/dot"}
  c = f32[4,6] call(d), to_apply=relu, metadata={op_name="jit(f)/jit(relu)"}
  t = f32[6,4] transpose(c), dimensions={1,0}, metadata={op_name="jit(f)/transpose"}
  dead = f32[4,6] negate(c), metadata={op_name="jit(f)/other"}
  ROOT n = f32[6,4] negate(t), metadata={op_name="jit(f)/neg"} }"""
AFTER = """HloModule m
fused { x = f32[4,6] parameter(0)  z1 = f32[] constant(0)
  b1 = f32[4,6] broadcast(z1), dimensions={}
  m1 = f32[4,6] maximum(x, b1), metadata={op_name="jit(f)/jit(relu)/max"}
  k1 = f32[4,6] negate(m1), metadata={op_name="jit(f)/neg"}
  ROOT t1 = f32[6,4] transpose(k1), dimensions={1,0}, metadata={op_name="jit(f)/transpose"} }
ENTRY e { p = f32[4,5] parameter(0), metadata={op_name="p"}
  w = f32[5,6] parameter(1), metadata={op_name="w"}  h = bf16[5,6] convert(w)
  g = f32[5,6] convert(h)  cs = (f32[5,6], f32[5,6], u32[]) copy-start(g)
  cd = f32[5,6] copy-done(cs)
  d1 = f32[4,6] dot(p, cd), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/dot"}
  ROOT f1 = f32[6,4] fusion(d1), kind=kLoop, calls=fused, metadata={op_name="jit(f)/neg"} }"""


def links() -> dict[str, tuple[str, str]]:
    """The link of each instruction after; those of instructions before follow them."""
    matched = correspondence(hlo.parse(BEFORE), hlo.parse(AFTER))
    return {link.after.name: (link.before.name, link.how) for link in reversed(matched.links)}


@pytest.mark.parametrize(
    "after, before",
    [("d1", "d"), ("m1", "r"), ("k1", "n"), ("t1", "t"), ("f1", "n"), ("p", "p"), ("w", "w")],
)
def test_instructions_have_their_counterparts(after: str, before: str) -> None:
    assert links()[after][0] == before


def test_inserted_instructions_follow_their_operands_and_users() -> None:
    matched = links()
    assert matched["cs"] == ("w", "movement")
    assert matched["cd"] == ("w", "value")  # up to a rounding
    assert matched["h"] == ("w", "user")
    assert matched["b1"] == ("b", "value")


def test_values_that_are_equal_are_linked_without_names() -> None:
    bare = [hlo.parse(re.sub(r", metadata=\{[^}]*\}", "", text)) for text in (BEFORE, BEFORE)]
    matched = correspondence(*bare)
    assert not matched.added
    names = [(link.before.name, link.after.name) for link in matched.links]
    assert all(one == other or "dead" in (one, other) for one, other in names)
    assert matched.linked_share == 1


def test_constants_are_linked_where_their_users_are() -> None:
    text = """ENTRY e { p = f32[3] parameter(0)  a = f32[] constant(2)  b = f32[] constant(2)
      x = f32[3] broadcast(a), dimensions={}  s = f32[3] add(p, x)  y = f32[] add(b, b)
      ROOT t = (f32[3], f32[]) tuple(s, y) }"""
    renamed = re.sub(r"\b([abxyst])\b(?=[ ,)])", r"\1.9", text)
    matched = correspondence(hlo.parse(text), hlo.parse(renamed))
    assert {link.before.name: (link.after.name, link.how) for link in matched.links} == {
        **{name: (f"{name}.9", "value") for name in ("a", "b", "x", "s", "y", "t")},
        "p": ("p", "value"),
    }


def test_names_link_where_values_differ_and_nothing_else_is_known() -> None:
    one, two = (
        hlo.parse(f"ENTRY e {{ p = f32[3] parameter(0)  ROOT n = {op}(p) }}")
        for op in ("f32[3] negate", "f32[3] sine")
    )
    links = [
        (link.before.name, link.after.name, link.how) for link in correspondence(one, two).links
    ]
    assert links == [("p", "p", "value"), ("n", "n", "name")]
    other = hlo.parse(
        "ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[2,3] broadcast(p), dimensions={1} }"
    )
    assert [link.how for link in correspondence(one, other).links][1:] != ["name"]


def test_unlike_programs_have_no_links() -> None:
    one = hlo.parse("ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }")
    two = hlo.parse("ENTRY e { c = f32[5] constant({1,2,3,4,5})  ROOT s = f32[5] sine(c) }")
    matched = correspondence(one, two)
    assert not matched.links
    assert matched.linked_share == 0
    assert [i.name for i in matched.removed] == ["p", "n"]


def test_names_have_the_calls_around_them() -> None:
    module = hlo.parse(BEFORE)
    names = full_names(module.instructions)
    assert names[module.computations["relu"].root] == ("jit(f)/jit(relu)/max",)
    assert agree(names[module.entry["d"]], ["dot"])
    assert not agree(["jit(f)/dot"], ["jit(f)/mydot", "t"])


def test_costs_add_up_over_groups() -> None:
    before, after = hlo.parse(BEFORE), hlo.parse(AFTER)
    costs = compare_costs(before, after)
    for k in (0, 1):
        assert sum(group.moved[k] for group in costs.groups) == costs.moved[k]
    (group,) = [g for g in costs.groups if "f1" in [i.name for i in g.after]]
    assert {"t", "n"} <= {i.name for i in group.before}
    assert not compare_costs(before, before).changed


def test_the_first_pass_that_differs(tmp_path: Path) -> None:
    texts = {"a": [BEFORE, BEFORE, AFTER], "b": [BEFORE, AFTER, AFTER], "c": [BEFORE, BEFORE]}
    for folder, dumps in texts.items():
        (tmp_path / folder).mkdir()
        for number, text in enumerate(dumps):
            name = f"module_0001.m.{number:04}.simplification.after_pass{number}.before_dce.txt"
            (tmp_path / folder / name).write_text(text)
    a, b, c = (modules_in(tmp_path / folder)[0] for folder in "abc")
    change = first_change(a, b, 1 << 20)
    assert change is not None
    assert change.equal == 1
    assert str(change).endswith("the first difference: pass1")
    assert first_change(a, a, 1 << 20) is None
    shorter = first_change(a, c, 1 << 20)
    assert shorter is not None
    assert shorter.after is None
