"""Graphs for Model Explorer and traces for Perfetto: their schemas, and what they say."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import hlo
import indexing
from indexing import cli
from indexing.memory.movement.roofline import peak_rates
from indexing.views.report_page.explorer_graphs import explorer_collection
from indexing.views.report_page.schedule_trace import schedule_trace

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMAS = Path(indexing.__file__).parent / "views" / "schemas"
MODULES = ["attention.opt.hlo", "gpt2_tiny.opt.hlo", "targets/attention.tpu_v5e.hlo"]


def valid(value: Any, schema: str) -> Any:
    """Return a value that its schema describes."""
    text = json.loads(json.dumps(value))
    jsonschema.validate(text, json.loads((SCHEMAS / f"{schema}.json").read_text()))
    return text


def write(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert cli.run(["report", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", MODULES)
def test_each_computation_is_a_graph(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = hlo.load(EXAMPLES / name)
    collection = write(capsys, str(EXAMPLES / name), "--format", "model-explorer")
    assert valid(collection, "model-explorer") == collection
    graphs = {graph["id"]: graph for graph in collection["graphs"]}
    assert set(graphs) == set(module.computations)
    assert collection["graphs"][0]["id"] == module.entry.name
    for computation in module.computations.values():
        nodes = {node["id"]: node for node in graphs[computation.name]["nodes"]}
        assert set(nodes) == {i.name for i in computation.instructions}
        for i in computation.instructions:
            edges = nodes[i.name]["incomingEdges"]
            assert [edge["sourceNodeId"] for edge in edges] == [o.name for o in i.operands]
            assert [edge["targetNodeInputId"] for edge in edges] == [
                str(k) for k in range(len(edges))
            ]
            called = [c.name for c in i.called_computations]
            assert nodes[i.name].get("subgraphIds", []) == called


@pytest.mark.parametrize("name", MODULES)
def test_nodes_have_the_maps_the_grades_and_the_bytes(name: str) -> None:
    module = hlo.load(EXAMPLES / name)
    (graph, *_) = explorer_collection(module)["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    counted = {each.instruction.name: each for each in indexing.traffic(module).instructions}
    grades = set()
    for i in module.entry.instructions:
        attributes = {each["key"]: each["value"] for each in nodes[i.name]["attrs"]}
        assert attributes["opcode"] == i.opcode
        if i.name in counted and not isinstance(counted[i.name].read, indexing.Unknown):
            assert attributes["read"] == str(counted[i.name].read)
        if len(nodes[i.name]["outputsMetadata"]) != 1 or not i.operands:
            continue
        answer = indexing.output_to_input(i)
        if any(answer.unknown):
            assert attributes["grade"] == "unknown"
            grades.add("unknown")
            continue
        maps = [m for own in answer.maps for m in own]
        expected = "may" if any(m.grade == "may" for m in maps) else "exact"
        assert attributes["grade"] == expected
        grades.add(expected)
        shown = [
            entry["value"].removeprefix("may: ")
            for operand in nodes[i.name]["inputsMetadata"]
            for entry in operand["attrs"]
            if entry["key"].startswith("map") and "note" not in entry["key"]
        ]
        if all(not m.runtime for m in maps) and len(set(map(str, answer.operands))) == len(
            i.operands
        ):
            assert [s for s in shown if s.startswith("(")] == [str(m) for m in maps]
    assert "exact" in grades


def test_the_graph_has_the_totals_and_groups_what_has_no_op_name() -> None:
    module = hlo.load(EXAMPLES / "targets" / "attention.tpu_v5e.hlo")
    (graph, *_) = explorer_collection(module)["graphs"]
    attributes = graph["groupNodeAttributes"][""]
    total = indexing.traffic(module).total
    assert attributes["read"] == str(total.read)
    assert attributes["requested"] == str(total.requested)
    assert attributes["HBM"].endswith(" padding")
    for node in graph["nodes"]:
        instruction = module.entry[node["id"]]
        is_interface = instruction.is_root or instruction.opcode == "parameter"
        if not instruction.source.op_name and not is_interface:
            assert node["namespace"] == "no op_name"


def test_inexact_accesses_are_an_overlay() -> None:
    text = """ENTRY e { p = f32[8] parameter(0)  i = s32[3,1] parameter(1)
      g = f32[3] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},
        index_vector_dim=1, slice_sizes={1}
      ROOT c = f32[3] custom-call(g), custom_call_target="f" }"""
    (graph,) = valid(explorer_collection(hlo.parse(text)), "model-explorer")["graphs"]
    (data,) = graph["tasksData"]["edgeOverlaysDataListLeftPane"]
    edges = {
        overlay["name"]: [(e["sourceNodeId"], e["targetNodeId"]) for e in overlay["edges"]]
        for overlay in data["overlays"]
    }
    assert edges == {"may maps": [("g", "c")]}


def test_two_modules_have_links_between_instructions_that_correspond(
    tmp_path: Path, capsys: Any
) -> None:
    text = "HloModule m ENTRY e { p = f32[4] parameter(0) n = f32[4] negate(p) %s }"
    files = []
    for side, rest in (("a", "ROOT r = f32[4] cosine(n)"), ("b", "ROOT r = f32[4] sine(neg.1)")):
        files.append(tmp_path / f"{side}.hlo")
        body = text % rest
        files[-1].write_text(body if side == "a" else body.replace(" n =", " neg.1 ="))
    collection = write(capsys, *map(str, files), "--format", "model-explorer")
    both, before, after = valid(collection, "model-explorer")["graphs"]
    assert (before["id"], after["id"]) == ("before: e", "after: e")
    identifiers = {node["id"] for node in both["nodes"]}
    assert identifiers == {f"{side}:{n}" for side in ("before", "after") for n in ("p", "r")} | {
        "before:n",
        "after:neg.1",
    }
    (data,) = both["tasksData"]["edgeOverlaysDataListLeftPane"]
    links = {
        overlay["name"]: {(e["sourceNodeId"], e["targetNodeId"]) for e in overlay["edges"]}
        for overlay in data["overlays"]
    }
    assert links == {
        "correspond by value": {("before:p", "after:p"), ("before:n", "after:neg.1")},
        "correspond by name": {("before:r", "after:r")},
    }
    verdict = indexing.equivalent(*map(hlo.load, files))
    assert both["groupNodeAttributes"][""]["verdict 0"] == str(verdict)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("peak", [(), ("--peak", "H100")])
def test_a_trace_has_the_schedule_and_the_live_bytes(
    name: str, peak: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    module = hlo.load(EXAMPLES / name)
    profile = indexing.memory_profile(module)
    trace = write(capsys, str(EXAMPLES / name), "--format", "perfetto", *peak)
    events = valid(trace, "perfetto")["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [each["name"] for each in slices] == [step.name for step in profile.steps]
    ends = [round(each["ts"] * 1000) + round(each["dur"] * 1000) for each in slices]
    starts = [round(each["ts"] * 1000) for each in slices]
    assert starts == [0, *ends[:-1]]  # no slice overlaps another: importers drop those
    if not peak:
        assert starts == [1000 * k for k in range(len(starts))]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    at = {start: k for k, start in enumerate([*starts, ends[-1]])}
    for pid, (space, own) in enumerate(profile.peaks.items(), 2):
        assert names[pid] == f"memory: {own.name}"
        counter = [e for e in events if e["ph"] == "C" and e["pid"] == pid]
        values = {at[round(e["ts"] * 1000)]: e["args"]["bytes"] for e in counter}
        last, seen = None, []
        for k in range(len(profile.steps)):
            last = values.get(k, last)
            seen.append(last)
        assert seen == [
            sum(b.stored_bytes for b in profile.alive(k, space)) for k in range(len(seen))
        ]
        assert values.get(len(profile.steps), last) == 0


def test_a_trace_has_the_lives_of_buffers() -> None:
    module = hlo.load(EXAMPLES / "targets" / "attention.tpu_v5e.hlo")
    profile = indexing.memory_profile(module)
    trace = schedule_trace(module)
    assert isinstance(trace, dict)
    lives: dict[str, list[int]] = defaultdict(list)
    for event in valid(trace, "perfetto")["traceEvents"]:
        if event["ph"] in "be":
            lives[event["id"]].append(event["ts"])
    expected = [[first, last + 1] for buffer in profile.buffers for first, last in buffer.life]
    assert sorted(lives.values()) == sorted(expected)


def test_roofline_bounds_are_the_durations() -> None:
    text = "ENTRY e { p = f32[1000] parameter(0)  ROOT r = f32[1000] negate(p) }"
    trace = schedule_trace(hlo.parse(text), peak_rates("1GB/s"))
    assert isinstance(trace, dict)
    durations = [e["dur"] for e in trace["traceEvents"] if e["ph"] == "X"]
    assert durations == [0.001, 8]  # 8,000 bytes at 1 byte a nanosecond


def test_what_has_no_trace_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.hlo"
    file.write_text("ENTRY e { p = f32[?] parameter(0)  ROOT n = f32[?] negate(p) }")
    assert cli.run(["report", str(file), "--format", "perfetto"]) == 1
    assert "no trace: `p`: f32[?]" in capsys.readouterr().err
    assert cli.run(["report", str(file), str(file), "--format", "perfetto"]) == 2
    assert cli.run(["report", str(tmp_path), "--format", "model-explorer"]) == 2
