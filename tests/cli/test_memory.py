"""``hlo-indexing memory``, and ``check --in-place``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copyfile

import pytest
from jsonschema import Draft202012Validator

from indexing import cli
from indexing.cli.commands import memory
from indexing.frontends import layout_trials
from indexing.frontends.compilation import CompilationError, Compiled
from indexing.frontends.request import CompilationRequest
from indexing.views.records import SCHEMAS

DATA = Path(__file__).parents[1] / "memory" / "data" / "buffers"
FILE = str(DATA / "tpu_kv_cache_decode.hlo")
ASSIGNMENT = str(DATA / "tpu_kv_cache_decode.buffer-assignment.txt")
USAGE = str(DATA / "tpu_kv_cache_decode.memory-usage-report.txt")
ROW_BEFORE = str(Path(__file__).parents[2] / "examples" / "memory" / "row_before.hlo")


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert cli.run(list(arguments)) == status
    return capsys.readouterr().out


def test_each_space_has_a_peak(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run_command(capsys, "memory", FILE).splitlines()
    heads = [line.partition(":")[0] for line in lines if " bytes at step " in line]
    assert heads[:3] == ["HBM", "VMEM", "semaphores"]
    assert any("donated" in line for line in lines)


def test_json_has_the_layouts(capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads(run_command(capsys, "memory", FILE, "--format", "json"))
    layouts = {buffer["array"]: buffer["layout"] for buffer in record["buffers"]}
    assert layouts["copy.7"] == "{2,3,1,0:T(8,128)(2,1)S(1)}"


def test_a_module_without_copies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.hlo"
    file.write_text("HloModule m ENTRY e { p = f32[3] parameter(0)  ROOT n = f32[3] negate(p) }")
    assert run_command(capsys, "memory", str(file), "--copies").endswith(
        "HloModule m\n  no copies\n"
    )


def test_the_assignment_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    text = run_command(capsys, "memory", FILE, "--assignment", ASSIGNMENT)
    assert "allocated by XLA" in text
    assert "note: " not in text


@pytest.mark.parametrize("command", [["memory"], ["check", "--in-place"]])
@pytest.mark.parametrize("program", ["tpu_scan_rnn", "gpu_kv_cache_decode"])
def test_the_assignment_of_another_module_is_an_error(
    command: list[str], program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*command, str(DATA / f"{program}.hlo"), "--assignment", ASSIGNMENT]
    assert cli.run(arguments) == 1
    message = capsys.readouterr().err
    assert "error[dump]: this buffer assignment is that of another module than `jit_" in message
    assert "= help: take both from the dumps of one compilation" in message


def test_an_assignment_without_a_parameter_is_that_of_another_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, dump = tmp_path / "m.hlo", tmp_path / "m.txt"
    file.write_text(
        "ENTRY e { p = f32[8] parameter(0)  q = f32[8] parameter(1)\n  ROOT r = f32[8] add(p, q) }"
    )
    value = " value: <0 p @0> (size=32,offset=0): f32[8]{0}\n"
    parameter = "allocation {0}: size 32, parameter {0}, shape |f32[8]| at ShapeIndex {{}}:\n"
    text = f"BufferAssignment:\n{parameter.format(0)}{value}"
    dump.write_text(text)
    assert cli.run(["memory", str(file), "--assignment", str(dump)]) == 1
    assert "nothing is allocated for parameter 1 `q`" in capsys.readouterr().err
    dump.write_text(f"{text}{parameter.format(1)}{value.replace('p', 'q')}")
    run_command(capsys, "memory", str(file), "--assignment", str(dump))


@pytest.mark.parametrize(
    "options",
    [(), ("--at-peak",), ("--limit", "1"), ("--assignment", ASSIGNMENT), ("--usage", USAGE)],
)
def test_records_fit_the_schema(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads(run_command(capsys, "memory", FILE, *options, "--format", "json"))
    Draft202012Validator(json.loads(SCHEMAS["memory"].read_text())).validate(record)
    by_space = {peak["space"]: peak for peak in record["peaks"]}
    for peak in record["peaks"]:
        assert sum(peak["kinds"].values()) == peak["stored_bytes"]
        assert peak["padding"] == peak["stored_bytes"] - peak["dense_bytes"]
    if options == ("--at-peak",):
        for space, peak in by_space.items():
            alive = [b["stored_bytes"] for b in record["buffers"] if b["space"] == space]
            assert sum(alive) == peak["stored_bytes"]
            assert alive == sorted(alive, reverse=True)


def test_peaks_are_compared_with_the_memories_of_a_device(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = [
        line for line in run_command(capsys, "memory", FILE).splitlines() if " at step " in line
    ]
    lines = run_command(capsys, "memory", FILE, "--device", "v5e").splitlines()
    hbm, vmem, *others = [line for line in lines if " at step " in line]
    assert hbm.startswith(f"{heads[0]}; v5e has 17,179,869,184 (")
    assert vmem.startswith(f"{heads[1]}; v5e has 134,217,728 (")
    assert others == heads[2:]
    request = CompilationRequest("jax:f.py:f", "f32[9,7]", None, "tpu:v5e:2x2", "optimized")
    monkeypatch.setattr(memory, "compiled_files", lambda _: {FILE: request})
    assert run_command(capsys, "memory", FILE).splitlines() == lines
    record = json.loads(run_command(capsys, "memory", FILE, "--format", "json"))
    Draft202012Validator(json.loads(SCHEMAS["memory"].read_text())).validate(record)
    assert record["device"] == "v5e"
    assert [peak["memory_bytes"] for peak in record["peaks"]][:3] == [16 << 30, 128 << 20, None]
    gpu = run_command(capsys, "memory", FILE, "--device", "H100").splitlines()
    assert gpu[1] == "  not compared with H100: the module has the tiled layouts of TPUs"
    assert [line for line in gpu if " at step " in line] == heads
    assert cli.run(["memory", FILE, "--device", "v5"]) == 2
    assert "unknown device 'v5'" in capsys.readouterr().err


def test_a_peak_beyond_the_memory_asks_for_the_assignment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both results may be one buffer; XLA's buffer assignment decides."""
    file = tmp_path / "m.hlo"
    array = "f32[40000,40000]{1,0:T(8,128)}"
    file.write_text(f"""HloModule m, is_scheduled=true
ENTRY e {{
  p = {array} parameter(0)
  n = {array} negate(p)
  ROOT r = {array} exponential(n)
}}
""")
    title, _, excess, *_ = run_command(capsys, "memory", str(file), "--device", "v5e").splitlines()[
        1:
    ]
    size = 3 * 40_000 * 40_064 * 4  # 313 tiles of 128 columns
    assert title == f"HBM: {size:,} bytes at step 2, `r`; v5e has 17,179,869,184 (112 %)"
    assert "unless XLA writes results over operands" in excess
    file.write_text(file.read_text().replace("40000", "20000"))
    assert "unless XLA" not in run_command(capsys, "memory", str(file), "--device", "v5e")


def test_what_threads_hold_is_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    """The report counts it, too: scalars of reductions."""
    lines = run_command(capsys, "memory", FILE, "--assignment", ASSIGNMENT, "--usage", USAGE)
    table = lines.partition("allocated by XLA\n")[2].splitlines()
    head, hbm = table[0].split("  "), table[1].split()
    assert "in threads" in [name.strip() for name in head]
    allocated, _, threads, reported, _ = [int(cell.replace(",", "")) for cell in hbm[1:]]
    assert allocated + threads == reported
    assert threads > 0


def test_dumps_beside_a_module_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stem = "module_0001.jit_f.cl_1.after_optimizations"
    copyfile(FILE, tmp_path / f"{stem}.txt")
    for name in ("buffer-assignment", "memory-usage-report"):
        copyfile(DATA / f"tpu_kv_cache_decode.{name}.txt", tmp_path / f"{stem}-{name}.txt")
    lines = run_command(capsys, "memory", str(tmp_path / f"{stem}.txt")).splitlines()
    counts = [line.split() for line in lines if "sizes are those computed here" in line]
    assert [words[3] for words in counts] == ["assigned", "reported"]
    assert all(words[0] == words[2] != "0" for words in counts)
    assert "reported" in lines[lines.index("allocated by XLA") + 1]
    (tmp_path / f"{stem}-memory-usage-report.txt").unlink()
    text = run_command(capsys, "memory", str(tmp_path / f"{stem}.txt"), "--usage", USAGE)
    assert text.splitlines() == lines


def test_the_report_of_another_module_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    other = str(DATA / "tpu_scan_rnn.memory-usage-report.txt")
    assert cli.run(["memory", FILE, "--assignment", ASSIGNMENT, "--usage", other]) == 1
    message = capsys.readouterr().err
    assert "error[dump]: this report of memory usage is that of another module" in message
    assert "`jit_kv_cache_decode` has no array f32[64,8,128] in default" in message
    assert cli.run(["memory", FILE, "--usage", ASSIGNMENT]) == 1
    assert "this is no report of memory usage" in capsys.readouterr().err


def test_other_totals_of_a_report_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "usage.txt"
    other.write_text(re.sub(r"Total bytes: \d+", "Total bytes: 7", Path(USAGE).read_text()))
    arguments = ("memory", FILE, "--assignment", ASSIGNMENT, "--usage", str(other))
    record = json.loads(run_command(capsys, *arguments, "--format", "json"))
    Draft202012Validator(json.loads(SCHEMAS["memory"].read_text())).validate(record)
    assert record["assignment"]["mismatches"] == []
    assert any("7 bytes reported" in fault for fault in record["usage"]["mismatches"])


def test_copies(capsys: pytest.CaptureFixture[str]) -> None:
    text = run_command(capsys, "memory", FILE, "--copies")
    assert "copies move" in text
    assert "XLA places it in VMEM" in text
    record = json.loads(run_command(capsys, "memory", FILE, "--copies", "--format", "json"))
    Draft202012Validator(json.loads(SCHEMAS["memory"].read_text())).validate(record)
    moved = [copy["bytes"] * copy["executions"] for copy in record["copies"]]
    assert moved == sorted(moved, reverse=True)
    assert cli.run(["memory", FILE, "--copies", "--at-peak"]) == 2


def test_copies_in_loops_count_for_each_execution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "m.hlo"
    file.write_text("""HloModule m, is_scheduled=true
      b { t = (s32[], f32[8,16]{1,0}) parameter(0)
        i = s32[] get-tuple-element(t), index=0  x = f32[8,16]{1,0} get-tuple-element(t), index=1
        o = s32[] constant(1)  j = s32[] add(i, o)  y = f32[8,16]{0,1} copy(x)
        w = f32[8,16]{1,0} custom-call(y), custom_call_target="k"
        ROOT r = (s32[], f32[8,16]{1,0}) tuple(j, w) }
      c { t = (s32[], f32[8,16]{1,0}) parameter(0)  i = s32[] get-tuple-element(t), index=0
        n = s32[] constant(100)  ROOT l = pred[] compare(i, n), direction=LT }
      ENTRY e { z = s32[] constant(0)  a = f32[8,16]{1,0} parameter(0)
        k = f32[8,16]{1,0} custom-call(a), custom_call_target="k"
        s = (s32[], f32[8,16]{1,0}) tuple(z, k)
        w = (s32[], f32[8,16]{1,0}) while(s), condition=c, body=b
        g = f32[8,16]{1,0} get-tuple-element(w), index=1
        ROOT q = f32[8,16]{0,1} copy(g) }""")
    text = run_command(capsys, "memory", str(file), "--copies")
    once = 2 * 8 * 16 * 4
    assert f"2 copies move {101 * once:,} bytes" in text
    assert f"copy y: {once:,} bytes, 100 times" in text
    assert text.index("copy y") < text.index("copy q")


BEFORE = """HloModule m, is_scheduled=true
ENTRY e { x = f32[9,7]{1,0} parameter(0)  c = f32[9,7]{0,1} copy(x)
  ROOT r = f32[] custom-call(c), custom_call_target="opaque" }"""


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a file that was compiled, and is again without its copy."""
    file = tmp_path / "m.hlo"
    file.write_text(BEFORE)
    request = CompilationRequest("jax:f.py:f", "f32[9,7]", None, "tpu:v5e:2x2", "optimized")
    monkeypatch.setattr(memory, "compiled_files", lambda _: {str(file): request})
    after = Compiled(tmp_path / "again", "m")
    after.folder.mkdir()
    after.path.write_text(BEFORE.replace("{1,0}", "{0,1}").replace("copy", "bitcast"))
    monkeypatch.setattr(layout_trials, "compile_for", lambda *_, **__: after)
    return str(file)


def test_layouts_are_tried(compiled: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = run_command(capsys, "memory", compiled, "--copies", "--try-layouts")
    assert "  proposal: argument 0, `x`: {0,1} in place of {1,0}" in text
    assert text.partition("compiled again for ")[2].splitlines()[:4] == [
        "tpu:v5e:2x2 with 1 layout, in JAX",
        "  argument 0: Layout(major_to_minor=(1, 0))",
        "  copy c: removed",
        "  copies within memories: 504 bytes before, 0 after",
    ]
    options = ("--copies", "--try-layouts", "--format", "json")
    record = json.loads(run_command(capsys, "memory", compiled, *options))
    Draft202012Validator(json.loads(SCHEMAS["memory"].read_text())).validate(record)
    (copy,) = record["copies"]
    assert [change["major_to_minor"] for change in copy["proposal"]] == [[1, 0]]
    trial = record["trial"]
    assert trial["tried"] == [{"instruction": "c", "removed": True}]
    assert (trial["moved_before"], trial["moved_after"]) == (2 * 4 * 9 * 7, 0)
    assert trial["layouts"] == [{"place": "argument", "number": 0, "layout": "{0,1}"}]


def test_a_failed_trial_is_an_error(
    compiled: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Compiled:
        raise CompilationError("XLA failed\nfor a reason")

    monkeypatch.setattr(layout_trials, "compile_for", fail)
    assert cli.run(["memory", compiled, "--copies", "--try-layouts"]) == 1
    assert f"error[jax]: {compiled}: XLA failed\nfor a reason" in capsys.readouterr().err


def test_only_functions_are_compiled_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["memory", FILE, "--copies", "--try-layouts"]) == 2
    message = capsys.readouterr().err
    assert "compiles a function of JAX again: expected jax:FILE.py:FUNCTION" in message
    assert f"got {FILE}" in message
    assert cli.run(["memory", FILE, "--try-layouts"]) == 2
    assert "--try-layouts requires --copies" in capsys.readouterr().err


def test_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    picture = run_command(capsys, "memory", FILE, "--format", "svg")
    assert picture.startswith("<svg")
    assert "VMEM: steps in which buffers are alive" in picture
    other = run_command(capsys, "memory", str(DATA / "tpu_scan_rnn.hlo"), "--format", "svg")
    assert "custom-call, 256 KiB, from md.py:143" in other
    peak = run_command(capsys, "memory", FILE, "--at-peak", "--format", "svg")
    assert "VMEM: steps in which buffers of the peak are alive" in peak


def test_what_is_no_assignment_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["memory", FILE, "--assignment", FILE]) == 1
    message = capsys.readouterr().err
    assert "this is no buffer assignment" in message
    assert f"{FILE}:1:1" in message
    assert cli.run(["check", FILE, "--assignment", ASSIGNMENT]) == 2
    assert "--in-place" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--assignment", "--usage"])
def test_a_missing_dump_is_named(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["memory", FILE, option, "missing.txt"]) == 2
    assert "missing.txt: there is no such file" in capsys.readouterr().err


def test_results_in_the_memory_of_operands(capsys: pytest.CaptureFixture[str]) -> None:
    text = run_command(capsys, "check", FILE, "--in-place", "--assignment", ASSIGNMENT)
    safe = int(text.split("in place: ")[1].split()[0])
    assert safe >= 2
    assert "0 not safe" in text
    assert cli.run(["check", ROW_BEFORE, "--in-place"]) == 1
    captured = capsys.readouterr()
    assert "0 safe, 1 not safe" in captured.out
    assert "error[in-place]: element [1, 0] of `r` reads [0, 0] of `p`" in captured.err
    assert cli.run(["check", ROW_BEFORE]) == 0


def test_the_dump_beside_a_module_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one array moved by a page, over its neighbour."""
    stem = "module_0001.jit_f.tpu_after_optimizations"
    file, dump = tmp_path / f"{stem}.txt", tmp_path / f"{stem}-buffer-assignment.txt"
    copyfile(FILE, file)
    text = run_command(capsys, "check", str(file), "--in-place")
    assert "in place, without a buffer assignment: 2 safe, 0 not safe" in text
    copyfile(ASSIGNMENT, dump)
    text = run_command(capsys, "check", str(file), "--in-place")
    assert "in place: 3 safe, 0 not safe" in text
    assert "safe: `select_n.4` in the memory of `add.2`: each element reads only" in text
    assert "overlapping arrays: 12 pairs, 9 in part: 12 safe, 0 not safe" in text
    limited = run_command(capsys, "check", str(file), "--in-place", "--limit", "1")
    assert "    … 2 more" in limited.splitlines()
    value = "copy.8 @1> (size=524288,offset="
    dump.write_text(dump.read_text().replace(f"{value}2097152", f"{value}2093056"))
    assert cli.run(["check", str(file), "--in-place"]) == 1
    captured = capsys.readouterr()
    assert "error[in-place]" in captured.err
    assert "= note: `" in captured.err
    assert "of allocation 22" in captured.err
    assert cli.run(["check", str(file), "--limit", "1"]) == 2
    assert "--limit requires --in-place" in capsys.readouterr().err


def test_records_of_results_in_place(capsys: pytest.CaptureFixture[str]) -> None:
    schema = Draft202012Validator(json.loads(SCHEMAS["check"].read_text()))
    record = json.loads(
        run_command(capsys, "check", ROW_BEFORE, "--in-place", "--format", "json", status=1)
    )
    schema.validate(record)
    assert [error["code"] for error in record["errors"]] == ["in-place"]
    assert record["in_place"]["safe"] == 0
    assert record["in_place"]["overlaps"] is None
    (result,) = record["in_place"]["results"]
    assert (result["instruction"], result["operand_name"], result["path"]) == ("r", "p", [])
    assert (result["verdict"], result["shared_by"]) == ("not safe", "output_to_operand_aliasing")
    assert result["reason"] == record["errors"][0]["message"]
    arguments = ("check", FILE, "--in-place", "--assignment", ASSIGNMENT, "--format", "json")
    record = json.loads(run_command(capsys, *arguments))
    schema.validate(record)
    verdicts = [result["verdict"] for result in record["in_place"]["results"]]
    assert verdicts == ["safe"] * record["in_place"]["safe"] == ["safe"] * 3
    overlaps = record["in_place"]["overlaps"]
    assert overlaps["safe"] == overlaps["pairs"] > overlaps["in_part"] > 0
    assert overlaps["undecided"] == overlaps["not_safe"] == []
    record = json.loads(run_command(capsys, "check", ROW_BEFORE, "--format", "json"))
    schema.validate(record)
    assert record["in_place"] is None
