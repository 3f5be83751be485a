"""Programs without calls, fusions, bitcasts and layouts compute the same values."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules.module import Module
from indexing.execution import run
from indexing.execution.inputs import random_inputs
from indexing.sharding.partition import flatten as flattening
from indexing.sharding.partition.flatten import flatten

TWICE = """
  inner { a = f32[3] parameter(0) ROOT b = f32[3] negate(a) }
  outer { a = f32[3] parameter(0) c = f32[3] call(a), to_apply=inner
    d = f32[3] call(c), to_apply=inner ROOT t = (f32[3], f32[3]) tuple(c, d) }
"""


def opcodes(module: Module) -> Counter[str]:
    return Counter(i.opcode for i in module.instructions)


def flatten_text(text: str) -> Module:
    """Return a flattened module; assert that it is valid and has no calls."""
    flat = flatten(hlo.parse(text).entry)
    assert not list(hlo.verify(flat))
    assert not {"call", "fusion", "bitcast", "async-start"} & opcodes(flat).keys()
    return flat


def same_results(before: Module, after: Module) -> None:
    inputs = random_inputs(before.entry, seed=5)
    for expected, actual in zip(run(before, inputs), run(after, inputs), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_nested_calls_are_inlined_with_new_names() -> None:
    text = f"""{TWICE} ENTRY e {{ p = f32[3] parameter(0)
      t = (f32[3], f32[3]) call(p), to_apply=outer
      ROOT r = f32[3] get-tuple-element(t), index=1 }}"""
    entry = flatten_text(text).entry
    assert [str(i) for i in entry] == [
        "%p = f32[3] parameter(0)",
        "%b = f32[3] negate(%p)",
        "%b.1 = f32[3] negate(%b)",
    ]
    assert entry.root.name == "b.1"


def test_equal_calls_and_effects_remain_as_often_as_they_are_executed() -> None:
    """Costs count them; loop nests, which need values only, have one array for the equal calls."""
    text = """noise { a = f32[3] parameter(0)  b = f32[3] exponential(a)
        c = f32[3] custom-call(b), custom_call_target="log", custom_call_has_side_effect=true
        ROOT d = f32[3] negate(b) }
      ENTRY e { p = f32[3] parameter(0)  x = f32[3] call(p), to_apply=noise
        y = f32[3] call(p), to_apply=noise  ROOT r = f32[3] add(x, y) }"""
    counts = opcodes(flatten_text(text))
    assert (counts["exponential"], counts["negate"], counts["custom-call"]) == (2, 2, 2)
    pure = hlo.parse(re.sub(r"c = .*true", "", text))
    nest = indexing.loop_nest(pure.entry)
    assert nest.source.count("exp(") == 1
    assert opcodes(flatten(pure.entry))["exponential"] == 2


def test_a_called_parameter_may_be_the_result() -> None:
    text = """id { a = f32[3] parameter(0) }
      ENTRY e { p = f32[3] parameter(0) ROOT r = f32[3] call(p), to_apply=id }"""
    assert flatten_text(text).entry.root.opcode == "parameter"


def test_asynchronous_computations_and_copies_become_synchronous() -> None:
    text = """neg { a = f32[3] parameter(0) ROOT b = f32[3] negate(a) }
      ENTRY e { p = f32[3] parameter(0)
      s = ((f32[3]), f32[3], s32[]) async-start(p), calls=neg
      u = ((f32[3]), f32[3], s32[]) async-update(s)
      d = f32[3] async-done(u)
      k = (f32[3], f32[3], u32[]) copy-start(d)
      ROOT r = f32[3] copy-done(k) }"""
    flat = flatten_text(text)
    assert [i.opcode for i in flat.entry] == ["parameter", "negate", "copy"]
    same_results(hlo.parse(text), flat)


BITCASTS = [
    "f32[3,2]{1,0} bitcast(f32[2,3]{0,1} p)",
    "f32[6]{0} bitcast(f32[2,3]{0,1} p)",
    "f32[3,2,2]{0,2,1} bitcast(f32[4,3]{1,0} p)",
    "s32[2,3]{0,1} bitcast(f32[3,2]{1,0} p)",
    "s16[4,2]{1,0} bitcast(f32[4]{0} p)",
]


@pytest.mark.parametrize("line", BITCASTS)
def test_a_bitcast_becomes_ops_on_logical_shapes(line: str) -> None:
    shape, _, operand = line.partition(" bitcast(")
    text = f"ENTRY e {{ p = {operand[:-3]} parameter(0) ROOT r = {shape} bitcast(p) }}"
    flat = flatten_text(text)
    assert all(i.shape.layout is None for i in flat.entry)  # type: ignore[union-attr]
    same_results(hlo.parse(text), flat)


def test_a_bitcast_between_tiles_goes_through_memory() -> None:
    text = """ENTRY e { p = f32[3,5]{1,0:T(2,2)} parameter(0)
      ROOT b = f32[24]{0} bitcast(p) }"""
    same_results(hlo.parse(text), flatten(hlo.parse(text).entry))


def test_a_bitcast_of_a_sparse_array_is_refused() -> None:
    text = """ENTRY e { p = f32[3]{0:D(C)} parameter(0)
      ROOT b = f32[3]{0} bitcast(p) }"""
    with pytest.raises(hlo.HloError, match="bitcast `b` cannot be written") as caught:
        flatten(hlo.parse(text).entry)
    assert caught.value.span.place() == "<string>:2:12"


LOOP = """
  less { s = (s32[], f32[3]) parameter(0) i = s32[] get-tuple-element(s), index=0
    n = s32[] constant(3) ROOT r = pred[] compare(i, n), direction=LT }
  neg { a = f32[3] parameter(0) ROOT b = f32[3] negate(a) }
  next { s = (s32[], f32[3]) parameter(0) i = s32[] get-tuple-element(s), index=0
    x = f32[3] get-tuple-element(s), index=1 one = s32[] constant(1) j = s32[] add(i, one)
    y = f32[3] fusion(x), kind=kLoop, calls=neg ROOT t = (s32[], f32[3]) tuple(j, y) }
  whole { s = (s32[], f32[3]) parameter(0)
    ROOT w = (s32[], f32[3]) while(s), condition=less, body=next }
  add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
  ENTRY e { p = (s32[], f32[3]) parameter(0) w = (s32[], f32[3]) call(p), to_apply=whole
    x = f32[3] get-tuple-element(w), index=1  zero = f32[] constant(0)
    ROOT r = f32[] reduce(x, zero), dimensions={0}, to_apply=add }
"""


def test_bodies_of_loops_are_flattened_and_functions_of_elements_remain() -> None:
    flat = flatten_text(LOOP)
    assert sorted(flat.computations) == ["add", "e", "less", "next"]
    assert [i.opcode for i in flat.computations["next"]].count("negate") == 1
    same_results(hlo.parse(LOOP), flat)


def test_annotations_are_forwarded() -> None:
    text = """ENTRY e { p = f32[3] parameter(0)
      s = f32[3] custom-call(p), custom_call_target="Sharding", sharding={replicated}
      ROOT r = f32[3] custom-call(s), custom_call_target="xla.sdy.FuncResultSharding",
        custom_call_has_side_effect=true }"""
    assert [i.opcode for i in flatten_text(text).entry] == ["parameter"]


def test_only_needed_instructions_and_effects_remain() -> None:
    text = """ENTRY e { p = f32[3] parameter(0) q = f32[2] parameter(1) n = f32[3] negate(p)
      k = token[] after-all() o = token[] outfeed(n, k) z = f32[3] exponential(p)
      ROOT r = f32[3] cosine(p) }"""
    assert [i.name for i in flatten_text(text).entry] == ["p", "q", "n", "k", "o", "r"]


def test_repeated_calls_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = "c0 { a = f32[] parameter(0) ROOT b = f32[] negate(a) }"
    for k in range(1, 8):
        chain += f"""\nc{k} {{ a = f32[] parameter(0) b = f32[] call(a), to_apply=c{k - 1}
          ROOT c = f32[] call(b), to_apply=c{k - 1} }}"""
    text = f"{chain}\nENTRY e {{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c7 }}"
    assert opcodes(flatten_text(text))["negate"] == 128
    monkeypatch.setattr(flattening, "MAX_FLATTENED", 127)
    with pytest.raises(hlo.HloError, match="more than 127 instructions") as caught:
        flatten(hlo.parse(text).entry)
    assert caught.value.code == "budget"


def test_examples_compute_the_same(example: Path) -> None:
    module = hlo.load(str(example))
    flat = flatten(module.entry)
    assert not list(hlo.verify(flat))
    assert not {"call", "fusion", "bitcast"} & {i.opcode for i in flat.entry}
    if sum(map(len, module.computations.values())) < 300:
        same_results(module, flat)
