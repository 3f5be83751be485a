"""Summaries that computations of one structure share, and what keeps them apart."""

import pytest

import hlo
import indexing
from indexing.dataflow.compositions import Compositions
from indexing.dataflow.summaries import structure_of
from indexing.dataflow.walk import Walk
from indexing.maps.arrays import ArrayRef
from indexing.maps.map_set import MapSet
from tests.compiled import interpreted_only

SCALED = """
%{name} {{
  p.{name} = f32[5,3] parameter(0)
  ROOT t.{name} = f32[3,5] transpose(p.{name}), dimensions={{1,0}}, metadata={{op_name="{name}"}}
}}"""
MASKED = """
%{name} {{
  p.{name} = f32[7] parameter(0)
  q.{name} = f32[7] parameter(1)
  i.{name} = s32[7] iota(), iota_dimension=0
  c.{name} = s32[] constant({limit})
  b.{name} = s32[7] broadcast(c.{name}), dimensions={{}}
  m.{name} = pred[7] compare(i.{name}, b.{name}), direction=LT
  ROOT r.{name} = f32[7] select(m.{name}, p.{name}, q.{name})
}}"""
SLICED = """
%{name} {{
  p.{name} = f32[7] parameter(0)
  s.{name} = s32[] parameter(1)
  ROOT r.{name} = f32[3] dynamic-slice(p.{name}, s.{name}), dynamic_slice_sizes={{3}}
}}"""
EQUAL = """
%{name} {{
  p.{name} = f32[7] parameter(0)
  a.{name} = s32[7] parameter(1)
  b.{name} = s32[7] parameter(2)
  m.{name} = pred[7] compare(a.{name}, b.{name}), direction=EQ
  z.{name} = f32[7] constant({{0, 0, 0, 0, 0, 0, 0}})
  ROOT r.{name} = f32[7] select(m.{name}, p.{name}, z.{name})
}}"""


def answers(module: hlo.Module) -> list[list[str]]:
    """Return the maps of the fusions of the entry, as text."""
    fusions = [each for each in module.entry if each.opcode == "fusion"]
    return [[str(m) for maps in indexing.output_to_input(f).maps for m in maps] for f in fusions]


def entry(parameters: str, *calls: str) -> str:
    """Return an entry with fusions."""
    lines = [f"  r{k} = {call}" for k, call in enumerate(calls)]
    return "\n".join(["ENTRY e {", parameters, *lines, "}"])


@interpreted_only
def test_a_structure_is_summarised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SCALED.format(name="f") + SCALED.format(name="g")
    calls = [f"f32[3,5] fusion(p), kind=kLoop, calls=%{name}" for name in "fg"]
    module = hlo.parse(text + entry("  p = f32[5,3] parameter(0)", *calls))
    started: list[str] = []
    to_parameters = Walk.to_parameters

    def trace(self: Walk, start: ArrayRef, *shared: Compositions) -> dict[ArrayRef, MapSet]:
        started.append(start.instruction.name)
        return to_parameters(self, start, *shared)

    monkeypatch.setattr(Walk, "to_parameters", trace)
    first, second = answers(module)
    assert first == second == ["(d0, d1) -> (d1, d0), domain: d0 in [0, 2], d1 in [0, 4]"]
    assert started == ["t.f"]


def test_constants_belong_to_the_structure() -> None:
    text = MASKED.format(name="f", limit=2) + MASKED.format(name="g", limit=5)
    calls = [f"f32[7] fusion(p, q), kind=kLoop, calls=%{name}" for name in "fg"]
    module = hlo.parse(text + entry("  p = f32[7] parameter(0)\n  q = f32[7] parameter(1)", *calls))
    assert answers(module) == [
        ["(d0) -> (d0), domain: d0 in [0, 1]", "(d0) -> (d0), domain: d0 in [2, 6]"],
        ["(d0) -> (d0), domain: d0 in [0, 4]", "(d0) -> (d0), domain: d0 in [5, 6]"],
    ]


def test_the_root_belongs_to_the_structure() -> None:
    body = (
        "{{ p{0} = f32[2] parameter(0) {1}n{0} = f32[2] negate(p{0}) {2}s{0} = f32[2] sine(n{0}) }}"
    )
    text = "f " + body.format(0, "ROOT ", "") + "\ng " + body.format(1, "", "ROOT ")
    module = hlo.parse(text + "\n" + entry("  p = f32[2] parameter(0)"))
    f, g = (structure_of(module.computations[name]) for name in "fg")
    assert f is not None
    assert f != g


def test_operands_belong_to_the_structure() -> None:
    parameters = "p{0} = f32[2] parameter(0) q{0} = f32[2] parameter(1)"
    body = f"{{{{ {parameters} ROOT n{{0}} = f32[2] negate({{1}}{{0}}) }}}}"
    text = "f " + body.format(0, "p") + "\ng " + body.format(1, "q")
    calls = [f"f32[2] fusion(p, q), kind=kLoop, calls={name}" for name in "fg"]
    module = hlo.parse(
        text + "\n" + entry("  p = f32[2] parameter(0)\n  q = f32[2] parameter(1)", *calls)
    )
    fusions = [each for each in module.entry if each.opcode == "fusion"]
    read = [[bool(maps) for maps in indexing.output_to_input(f).maps] for f in fusions]
    assert read == [[True, False], [False, True]]


def test_runtime_values_keep_their_own_source() -> None:
    text = SLICED.format(name="f") + SLICED.format(name="g")
    calls = [f"f32[3] fusion(p, {s}), kind=kLoop, calls=%{name}" for name, s in ("fs", "gt")]
    parameters = "\n".join(
        [
            "  p = f32[7] parameter(0)",
            *[f"  {name} = s32[] parameter({k})" for k, name in enumerate("st", 1)],
        ]
    )
    module = hlo.parse(text + entry(parameters, *calls))
    fusions = [each for each in module.entry if each.opcode == "fusion"]
    sources = [indexing.output_to_input(f).maps[0][0].runtime[0].source_name for f in fusions]
    assert sources == ["s", "t"]


def test_what_follows_from_a_call_is_not_shared() -> None:
    """Two arguments that are one array decide a mask; two different ones do not."""
    text = EQUAL.format(name="f") + EQUAL.format(name="g")
    calls = [
        f"f32[7] fusion(p, {x}, {y}), kind=kLoop, calls=%{name}" for name, x, y in ("faa", "gab")
    ]
    parameters = "\n".join(
        [
            "  p = f32[7] parameter(0)",
            *[f"  {name} = s32[7] parameter({k})" for k, name in enumerate("ab", 1)],
        ]
    )
    both = answers(hlo.parse(text + entry(parameters, *calls)))
    alone = [answers(hlo.parse(text + entry(parameters, call)))[0] for call in calls]
    assert both == alone
