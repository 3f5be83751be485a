"""Folders of pass dumps: names, order, pairs, and the records of changed pairs."""

# ruff: noqa: E501 - a row is a line

from pathlib import Path

import pytest

import hlo
from indexing import passes
from indexing.equivalence import Differs, PassResult, Proved
from indexing.equivalence.dumps import Dump, modules_in
from indexing.equivalence.reduction import smallest_part
from indexing.views.verdict_tables import pass_record

EXAMPLES = Path(__file__).parents[2] / "examples" / "passes"
TEXT = "HloModule jit_f ENTRY e {{ p = f32[8] parameter(0)  ROOT r = f32[3] {} }}"
SLICE = TEXT.format("slice(p), slice={[0:3]}")
RENAMED = SLICE.replace("p = ", "q = ").replace("(p)", "(q)")
OTHER = TEXT.format("slice(p), slice={[1:4]}")
PIPELINE = "simplification.2"

# fmt: off
NAMES = [
    # file                                                           module             number  pass
    ("module_0001.jit_f.0010.pipe.after_dce.before_algsimp.txt",     "module_0001.jit_f",   10,  "dce"),
    ("module_0001.jit_f.g.0010.p.q.after_all-reduce.txt",            "module_0001.jit_f.g", 10,  "all-reduce"),
    ("module_0001.jit_f.0002.p.after_pipeline-start.before_a.b.txt", "module_0001.jit_f",   2,   "pipeline-start"),
    ("module_0001.jit_f.before_optimizations.txt",                   "module_0001.jit_f",   -1,  ""),
]
# fmt: on


@pytest.mark.parametrize("name, module, number, pass_name", NAMES)
def test_names_of_dumps(name: str, module: str, number: int, pass_name: str) -> None:
    dump = Dump.of(Path(name))
    assert dump is not None
    assert (dump.module, dump.number, dump.pass_name) == (module, number, pass_name)


@pytest.mark.parametrize(
    "name",
    [
        "module_0001.jit_f.cpu_after_optimizations.txt",
        "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt",
        "module_0001.jit_f.debug_options",
    ],
)
def test_other_files_are_no_dumps(name: str) -> None:
    assert Dump.of(Path(name)) is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {
        "before_optimizations": SLICE,
        f"0002.{PIPELINE}.after_dce.before_cse": RENAMED,
        f"0010.{PIPELINE}.after_algsimp.before_dce": OTHER,
        f"0009.{PIPELINE}.after_cse.before_algsimp": SLICE,
        "cpu_after_optimizations": "no HLO",
    }
    inner = tmp_path / "inner"
    inner.mkdir()
    for middle, text in texts.items():
        (inner / f"module_0003.jit_f.{middle}.txt").write_text(text)
    return tmp_path


def test_dumps_are_paired_in_the_order_of_passes(folder: Path) -> None:
    (module,) = modules_in(folder)
    assert module.name == "inner/module_0003.jit_f"
    assert [after.pass_name for _, after in module.pairs] == ["dce", "cse", "algsimp"]


def test_pairs_that_are_equal_up_to_names_have_no_verdict(folder: Path) -> None:
    results = passes(folder, level="reads")
    assert [result.verdict is None for result in results] == [True, True, False]
    verdict = results[-1].verdict
    assert isinstance(verdict, Differs)
    record = pass_record(results[-1])
    assert list(record) == [
        *("module", "pass", "kernel", "before", "after", "invalid_between", "missing_between"),
        *("verdict", "word", "level", "laws", "reason"),
        *("output", "element", "note", "schema_version"),
    ]
    assert (record["pass"], record["verdict"], record["output"]) == ("algsimp", "differs", 0)
    assert record["element"] == list(verdict.element)


def test_records_of_proofs_have_their_laws() -> None:
    dump = Dump.of(Path(NAMES[0][0]))
    assert dump is not None
    proved = Proved("values", {"x * 1 = x": 2})
    record = pass_record(PassResult("m", dump, dump, proved))
    assert (record["verdict"], record["laws"]) == ("proved", {"x * 1 = x": 2})


def test_the_smallest_part_of_a_faulty_pass_has_no_metadata() -> None:
    (fault,) = [r for r in passes(EXAMPLES / "rms_pad") if isinstance(r.verdict, Differs)]
    part = smallest_part(hlo.load(fault.before.path), hlo.load(fault.after.path))
    before, after = hlo.parse_all(part.text)
    opcodes = [[i.opcode for i in module.entry] for module in (before, after)]
    assert opcodes[0] == ["parameter", "constant", "pad", "reduce-window"]
    assert opcodes[1] == ["parameter", "constant", "reduce-window"]
    assert "metadata" in fault.before.path.read_text()
    assert "metadata" not in part.text


def test_a_folder_without_dumps_names_the_flags(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="--xla_dump_hlo_pass_re"):
        passes(tmp_path)
