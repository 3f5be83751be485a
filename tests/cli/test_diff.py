"""``hlo-indexing diff`` and ``passes``: statuses, witnesses, records, reproducers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hlo
from indexing import equivalent
from tests.cli.running import Run, runner, validator

TEXT = """\
HloModule jit_f

ENTRY e {{
  p = f32[10] parameter(0)
  i = s32[] parameter(1)
  j = s32[] parameter(2)
  {}
}}
"""
NESTED = """a = f32[6] dynamic-slice(p, i), dynamic_slice_sizes={6}
  b = f32[3] dynamic-slice(a, j), dynamic_slice_sizes={3}
  ROOT c = f32[3] negate(b)"""
ADDED = """k = s32[] add(i, j)
  b = f32[3] dynamic-slice(p, k), dynamic_slice_sizes={3}
  ROOT c = f32[3] negate(b)"""
PIPELINE = "module_0001.jit_f.{}.simplification.after_{}.before_dce.txt"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; return the exit status, the output and the errors."""
    monkeypatch.chdir(tmp_path)
    nested, added = TEXT.format(NESTED), TEXT.format(ADDED)
    Path("a.hlo").write_text(nested)
    Path("b.hlo").write_text(added)
    Path("twice.hlo").write_text(added.replace("add(i, j)", "add(j, i)"))
    Path("shape.hlo").write_text("ENTRY e { ROOT p = f32[4] parameter(0) }")
    Path("bad.hlo").write_text("ENTRY e {")
    Path("dumps").mkdir()
    for number, name, text in (
        ("0001", "dce", nested),
        ("0002", "cse", nested),
        ("0010", "algsimp", added),
    ):
        Path("dumps", PIPELINE.format(number, name)).write_text(text)
    return runner(capsys)


# ---------------------------------------------------------------- diff


def test_the_inputs_of_a_difference_reproduce_it(run: Run) -> None:
    status, output, _ = run("diff a.hlo b.hlo --save-inputs in.npz --format json")
    record = json.loads(output)
    assert status == 1
    values = []
    for file in ("a.hlo", "b.hlo"):
        assert run(f"run {file} --inputs in.npz --output out.npz")[0] == 0
        with np.load("out.npz") as results:
            values.append(results[f"out{record['output']}"][tuple(record["element"])])
    assert [str(value) for value in values] == record["witness"]["value"]


def test_equal_modules_have_no_inputs_to_save(run: Run) -> None:
    status, _, errors = run("diff a.hlo a.hlo --save-inputs in.npz")
    assert (status, Path("in.npz").exists()) == (0, False)
    assert errors == "in.npz is not written: no execution shows a difference\n"


def test_inputs_do_not_replace_a_module(run: Run) -> None:
    status, _, errors = run("diff a.hlo b.hlo --save-inputs a.hlo")
    assert status == 1
    assert "a.hlo" in errors
    assert Path("a.hlo").read_text() == TEXT.format(NESTED)


def test_a_file_with_two_modules_is_refused(run: Run) -> None:
    texts = [Path(name).read_text() for name in ("a.hlo", "b.hlo")]
    Path("both.hlo").write_text("// -----\n".join(texts))
    status, _, errors = run("diff a.hlo both.hlo")
    assert status == 1
    assert "expected one module, but the file contains 2" in errors


# fmt: off
STATUSES = [
    # arguments                               status  begins with
    ("diff a.hlo a.hlo",                      0,      "equal to the last bit: proved at level"),
    ("diff b.hlo twice.hlo --level reads",    0,      "equal reads: proved at level reads"),
    ("diff a.hlo b.hlo",                      1,      "output 0 differs at [0]"),
    ("diff a.hlo b.hlo --level numbers",      1,      "output 0 differs at [0]"),
    ("diff a.hlo shape.hlo",                  1,      "output 0 differs: output 0 is f32[3]"),
    ("diff b.hlo b.hlo --parameters 1=2,2=1", 0,      "equal to the last bit: proved at level"),
    ("diff a.hlo a.hlo --parameters 1=2",     3,      "undecided: the parameters do not "),
    ("diff a.hlo bad.hlo",                    1,      ""),
    ("diff a.hlo missing.hlo",                1,      ""),
]
# fmt: on


@pytest.mark.parametrize("line, status, start", STATUSES)
def test_the_exit_status_is_the_verdict(run: Run, line: str, status: int, start: str) -> None:
    actual, out, err = run(line)
    assert actual == status
    assert out.startswith(start)
    assert (out == "") == ("error" in err)


def test_a_difference_is_printed_with_both_chains_and_bytes(run: Run) -> None:
    _, out, _ = run("diff a.hlo b.hlo --level reads")
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        "value:",
        "reads",
        "before:",
        "after:",
        "bytes:",
    ]
    assert " <- ".join(["c[0]", "b[0]", "a["]) in lines[3]
    assert " <- ".join(["c[0]", "b[0]", "p["]) in lines[4]


@pytest.mark.parametrize("other", ["a.hlo", "b.hlo", "shape.hlo"])
def test_the_json_of_diff_is_described_by_its_schema(run: Run, other: str) -> None:
    status, out, _ = run(f"diff a.hlo {other} --format json")
    record = json.loads(out)
    validator("diff").validate(record)
    assert ["proved", "differs", None, "unknown"][status] == record["verdict"]
    assert ("witness" in record) == (status == 1)


# ---------------------------------------------------------------- passes


def test_the_table_of_passes_and_the_first_difference(run: Run) -> None:
    status, out, _ = run("passes dumps --level reads")
    assert status == 1
    assert "dce" not in out.split("\n\n")[0], "the dumps before algsimp are equal"
    assert "module_0001.jit_f: the module differs after algsimp" in out


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_json_of_passes_is_described_by_its_schema(run: Run, jobs: int) -> None:
    status, out, _ = run(f"passes dumps --level reads --format json --jobs {jobs}")
    (record,) = [json.loads(line) for line in out.splitlines()]
    validator("passes").validate(record)
    assert (status, record["pass"], record["verdict"]) == (1, "algsimp", "differs")


def test_a_folder_without_dumps_is_an_error(run: Run) -> None:
    Path("empty").mkdir()
    status, out, err = run("passes empty")
    assert (status, out) == (1, "")
    assert "--xla_dump_hlo_pass_re" in err


def test_a_proof_lists_its_laws(run: Run) -> None:
    text = """ENTRY e { p = f32[4] parameter(0)  c = f32[] constant(%s)
      b = f32[4] broadcast(c), dimensions={}  ROOT r = f32[4] %s(p, b) }"""
    Path("divided.hlo").write_text(text % ("3", "divide"))
    Path("scaled.hlo").write_text(text % ("0.333333343", "multiply"))
    _, exact, _ = run("diff b.hlo twice.hlo")
    assert exact.splitlines()[1] == "  no law was used that is inexact for floats"
    _, inexact, _ = run("diff divided.hlo scaled.hlo")
    assert inexact.splitlines()[2].split("  ")[-2:] == ["x / y = x * (1 / y)", "1 use"]


def test_an_undecided_pair_is_listed_with_its_terms(run: Run) -> None:
    call = """ENTRY e { p = f32[3] parameter(0)  n = f32[3] negate(p)
      f = f32[3] custom-call(p), custom_call_target="%s"  ROOT t = (f32[3], f32[3]) tuple(n, f) }"""
    Path("other").mkdir()
    Path("other", PIPELINE.format("0001", "dce")).write_text(call % "f")
    Path("other", PIPELINE.format("0003", "cse")).write_text(call % "g")
    status, out, err = run("passes other")
    assert status == 3
    assert "no dump 0002" in err
    _, title, reason, level, equal, terms, *texts = out[out.index("\n\n") + 1 :].splitlines()
    assert title == (
        "module_0001.jit_f: 0001 -> 0003, cse or an earlier pass: "
        "the pair spans several passes (dumps missing: 0002)"
    )
    assert "`custom-call` has custom_call_target f before, g after" in reason
    assert level == "    proved at level reads, not at values"
    assert equal == "    equal formulas: output 0"
    assert "output 1" in terms
    assert [line.split()[0] for line in texts] == ["before:", "after:"]


@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_an_invalid_dump_is_reported_and_the_others_are_compared(run: Run, jobs: int) -> None:
    Path("dumps", PIPELINE.format("0005", "broken")).write_text("garbage")
    status, out, err = run(f"passes dumps --level reads --format json --jobs {jobs}")
    assert status == 1
    assert "^^^^^^^" in err
    records = [json.loads(line) for line in out.splitlines()]
    assert [(r["pass"], r["verdict"]) for r in records] == [
        ("broken", "unknown"),
        ("algsimp", "differs"),
    ]
    assert ".0002." in records[1]["before"]
    broken = PIPELINE.format("0005", "broken")
    between = [(r["invalid_between"], r["missing_between"]) for r in records]
    assert between == [([], [[3, 4]]), ([broken], [[3, 4], [6, 9]])]
    _, text, _ = run(f"passes dumps --level reads --jobs {jobs}")
    assert (
        "the module differs after algsimp or an earlier pass: the pair spans several passes "
        "(dumps invalid: 0005 (broken); missing: 0003 to 0004, 0006 to 0009)\n"
    ) in text


def test_the_line_of_a_pair_of_one_pass_names_no_other_dump(run: Run) -> None:
    Path("dumps", PIPELINE.format("0002", "cse")).rename(
        Path("dumps", PIPELINE.format("0009", "cse"))
    )
    _, text, err = run("passes dumps --level reads")
    assert "no dump 0002 to 0008" in err  # in another pair, which is equal
    assert "the module differs after algsimp\n" in text


def test_a_folder_with_one_dump_is_an_error(run: Run) -> None:
    Path("one").mkdir()
    Path("one", PIPELINE.format("0001", "dce")).write_text("")
    for folder, reason in (("one", "no dump to compare"), ("missing", "no such folder")):
        status, out, err = run(f"passes {folder}")
        assert (status, out) == (1, "")
        assert reason in err


def test_bisect_without_a_difference_writes_nothing(run: Run) -> None:
    Path("dumps", PIPELINE.format("0010", "algsimp")).unlink()
    status, out, err = run("passes dumps --bisect part.hlo")
    assert (status, err) == (0, "part.hlo is not written: no pair differs\n")
    assert out == "no pass changed a module: 1 pairs of dumps are equal up to names\n"
    assert not Path("part.hlo").exists()


def test_bisect_writes_the_smallest_part_that_differs(run: Run) -> None:
    status, _, err = run("passes dumps --level reads --bisect part.hlo")
    assert status == 1
    assert err.splitlines()[-1] == "wrote part.hlo: 4 instructions before and after"
    before, after = hlo.load_all("part.hlo")
    assert [i.opcode for i in before.entry if i.opcode != "parameter"] == ["dynamic-slice"] * 2
    assert [i.opcode for i in after.entry if i.opcode != "parameter"] == ["add", "dynamic-slice"]
    assert not equivalent(before, after, level="reads")


def test_a_partition_is_compared_by_global_index(run: Run) -> None:
    whole = """HloModule m, num_partitions=2
      ENTRY e { p = f32[6] parameter(0), sharding={devices=[2]<=[2]}
        ROOT r = f32[6] reverse(p), dimensions={0}, sharding={devices=[2]<=[2]} }"""
    local = """HloModule m, num_partitions=2
      ENTRY e { p = f32[3] parameter(0)  r = f32[3] reverse(p), dimensions={0}
        ROOT c = f32[3] collective-permute(r), channel_id=1, source_target_pairs={{0,1}%s} }"""
    Path("whole.hlo").write_text(whole)
    for name, pairs in (("right", ",{1,0}"), ("wrong", "")):
        Path(f"{name}.hlo").write_text(local % pairs)
    note = "  note: compared by global index: 2 devices execute the program after"
    status, output, _ = run("diff whole.hlo right.hlo")
    assert (status, output.splitlines()[:2]) == (
        0,
        ["equal to the last bit: proved at level values", note],
    )
    status, output, _ = run("diff whole.hlo wrong.hlo")
    assert status == 1
    assert "at element [0] of device 0" in output.splitlines()[0]
    status, output, _ = run("diff whole.hlo wrong.hlo --format json")
    record = json.loads(output)
    assert (record["verdict"], record["element"], record["note"]) == ("differs", [0], note[8:])
    assert record["bytes_read"][0] == 24


TIMES = """HloModule m ENTRY e {{ p = f32[4] parameter(0)  c = f32[] constant(3)
  b = f32[4] broadcast(c), dimensions={{}}  {} }}"""
BY_REAL_LAW = (
    "ROOT d = f32[4] divide(p, b)",
    "k = f32[] constant(0.333333343)  i = f32[4] broadcast(k), dimensions={}  "
    "ROOT d = f32[4] multiply(p, i)",
)


@pytest.mark.parametrize(("options", "status"), [("", 0), ("--bitwise", 1)])
def test_laws_of_the_reals_are_named_in_the_headline(run: Run, options: str, status: int) -> None:
    for name, text in zip(("x.hlo", "y.hlo"), BY_REAL_LAW, strict=True):
        Path(name).write_text(TIMES.format(text))
    exit_status, output, _ = run(f"diff x.hlo y.hlo {options}")
    assert exit_status == status
    assert output.startswith("equal over the reals by ")
    assert "(1): proved at level values" in output.splitlines()[0]
    record = json.loads(run("diff x.hlo y.hlo --format json")[1])
    assert (record["word"], record["verdict"]) == ("equal over the reals", "proved")


def test_fewer_reads_have_their_own_word(run: Run) -> None:
    every = "z = f32[4] subtract(p, p)  ROOT s = f32[4] add(b, z)"
    for name, text in (("x.hlo", every), ("y.hlo", "ROOT s = f32[4] copy(b)")):
        Path(name).write_text(TIMES.format(text))
    status, output, _ = run("diff x.hlo y.hlo --level reads")
    if not output.startswith("fewer reads"):
        pytest.fail(output)
    assert status == 1
    assert run("diff x.hlo y.hlo --level reads --allow-fewer")[0] == 0


def test_a_limit_of_time_ends_in_undecided(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr("indexing.equivalence.compare.compare_programs", never)
    status, output, _ = run("diff a.hlo b.hlo --time-limit 200ms")
    assert status == 3
    assert output.startswith("undecided: time: the comparison took more than 0.2 s")
    status, _, error = run("diff a.hlo b.hlo --time-limit soon")
    assert (status, "'soon' is not a time such as 60s or 2min" in error) == (2, True)


# ---------------------------------------------------------------- what became of instructions


def test_the_map_and_the_costs_are_described_by_the_schema(run: Run) -> None:
    status, output, _ = run("diff a.hlo b.hlo --map --cost --dumps dumps dumps --format json")
    record = json.loads(output)
    validator("diff").validate(record)
    assert status == 1
    assert ["e/c", "e/c", "value"] not in record["map"]["links"]
    assert ["e/p", "e/p", "value"] in record["map"]["links"]
    assert record["cost"]["moved"][0] > record["cost"]["moved"][1]
    assert record["cost"]["first_pass"] == "the dumps of both compilations are equal"


def test_the_text_lists_what_costs_more(run: Run) -> None:
    _, output, _ = run("diff a.hlo twice.hlo --map --cost")
    lines = output.splitlines()
    assert any(line.startswith("moved: ") for line in lines)
    assert any("of the instructions of both modules have one" in line for line in lines)
