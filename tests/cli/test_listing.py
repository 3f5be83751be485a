"""`hlo-indexing ls`, and the roots that `maps` does not print unasked."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

import hlo
from indexing import cli
from indexing.cli.printing import MAX_OUTPUTS
from indexing.views.records import SCHEMAS

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "attention.opt.hlo")


def wide(outputs: int) -> str:
    names = ", ".join(["n"] * outputs)
    shapes = ", ".join(["f32[3]"] * outputs)
    return (
        "ENTRY e { p = f32[3] parameter(0)  n = f32[3] negate(p)\n"
        f"  ROOT t = ({shapes}) tuple({names}) }}"
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wide.hlo").write_text(wide(MAX_OUTPUTS + 1))
    Path("narrow.hlo").write_text(wide(MAX_OUTPUTS))


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.run(arguments)
    return status, *capsys.readouterr()


def entry_first(module: hlo.Module) -> list[hlo.Computation]:
    return sorted(module.computations.values(), key=lambda each: each is not module.entry)


def test_every_instruction_has_an_aligned_line(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = ran(capsys, "ls", EXAMPLE)
    assert (status, err) == (0, "")
    lines = iter(out.splitlines())
    module = hlo.load(EXAMPLE)
    for computation in entry_first(module):
        heading = next(lines)
        assert f"{computation.name}: {len(computation)} instruction" in heading
        assert ("ENTRY" in heading) == (computation.name == "main.5")
        starts = set()
        for instruction in computation.instructions:
            line = next(lines)
            assert line.removeprefix("ROOT").split()[:2] == [instruction.name, instruction.opcode]
            assert line.startswith("ROOT") == instruction.is_root
            starts.add(line.index(f"  {instruction.opcode} ", 5 + len(instruction.name)))
        assert len(starts) == 1
    assert next(lines, None) is None


def test_every_instruction_has_a_record_that_fits_the_schema(
    capsys: pytest.CaptureFixture[str],
) -> None:
    schema = json.loads(SCHEMAS["ls"].read_text())
    valid = jsonschema.Draft202012Validator(schema)
    _, out, _ = ran(capsys, "ls", EXAMPLE, "wide.hlo", "--format", "json", "--source")
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        valid.validate(row)
        assert row.keys() == schema["properties"].keys()
    modules = [hlo.load(file) for file in (EXAMPLE, "wide.hlo")]
    instructions = [
        instruction
        for module in modules
        for computation in entry_first(module)
        for instruction in computation.instructions
    ]
    assert [(row["instruction"], row["operands"]) for row in rows] == [
        (i.name, [operand.name for operand in i.operands]) for i in instructions
    ]
    assert sum(row["root"] and row["entry"] for row in rows) == 2
    assert not valid.is_valid(rows[0] | {"operands": None})


def test_only_selected_instructions_are_listed_under_the_headings_of_their_computations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, err = ran(capsys, "ls", EXAMPLE, "-i", "dot*", "-i", "main.5/p*")
    assert (status, err) == (0, "")
    lines = iter(out.splitlines())
    module = hlo.load(EXAMPLE)
    for computation in entry_first(module):
        names = [
            each.name
            for each in computation.instructions
            if each.name.startswith("dot") or (computation.name, each.name[0]) == ("main.5", "p")
        ]
        if names:
            assert f"{computation.name}: {len(names)} of {len(computation)} instr" in next(lines)
        for name in names:
            assert next(lines).removeprefix("ROOT").split()[0] == name
    assert next(lines, None) is None


def test_records_of_selected_instructions_are_those_without_a_selection(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, every, _ = ran(capsys, "ls", EXAMPLE, "--format", "json")
    _, out, _ = ran(capsys, "ls", EXAMPLE, "--format", "json", "-i", "/^(dot|add)/")
    rows = [json.loads(line)["instruction"] for line in every.splitlines()]
    chosen = [name.startswith(("dot", "add")) for name in rows]
    assert any(chosen)
    assert out.splitlines() == [
        line for line, is_chosen in zip(every.splitlines(), chosen, strict=True) if is_chosen
    ]
    status, out, err = ran(capsys, "ls", EXAMPLE, "wide.hlo", "-i", "n")  # in one of two files
    assert (status, err, len(out.splitlines())) == (0, "", 2)
    status, out, err = ran(capsys, "ls", EXAMPLE, "-i", "dotty")
    assert (status, out) == (1, "")
    assert "no instruction named `dotty`" in err


def test_sources_end_the_lines_of_instructions_that_record_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, plain, _ = ran(capsys, "ls", EXAMPLE)
    _, out, _ = ran(capsys, "ls", EXAMPLE, "--source")
    instructions = [
        each
        for computation in entry_first(hlo.load(EXAMPLE))
        for each in [None, *computation.instructions]  # a heading
    ]
    pairs = zip(out.splitlines(), plain.splitlines(), strict=True)
    for (line, short), instruction in zip(pairs, instructions, strict=True):
        source = str(instruction.source) if instruction else ""
        line = re.sub(r" and \d+ more lines?(?=: |$)", "", line)  # of the instructions inside
        assert line.endswith(f"  {source}" if source else "")
        assert line.removesuffix(source).rstrip() == short
    assert "  models.py:167:11: jit(mha)/dot_general" in out


def test_maps_print_the_source_below_each_heading(capsys: pytest.CaptureFixture[str]) -> None:
    source = "  source: models.py:167:11: jit(mha)/dot_general"
    for flags in ([], ["--at", "..."], ["--to", "parameters"]):
        _, out, _ = ran(capsys, "maps", EXAMPLE, "--source", *flags)
        assert out.splitlines()[1] == source
        assert source not in ran(capsys, "maps", EXAMPLE, *flags)[1]
    _, out, _ = ran(capsys, "maps", "wide.hlo", "-i", "n", "--source")
    assert out.splitlines()[1] == "  source: not recorded"
    several = ("maps", EXAMPLE, "--all", "--to", "parameters", "--source")
    assert source in ran(capsys, *several)[1]


def test_formats_of_maps_alone_have_no_source(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = ran(capsys, "maps", EXAMPLE, "--source", "--format", "isl")
    assert status == 2
    assert "--source cannot be used with --format isl" in err


def test_long_lists_are_elided_in_text_only(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ran(capsys, "ls", "wide.hlo")
    last = out.splitlines()[-1]
    assert last.count("n,") == last.count("f32[3],") == 6
    assert last.count("… 59 more") == 2


def test_a_root_with_many_outputs_names_the_options_that_select_fewer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, err = ran(capsys, "maps", "wide.hlo", "narrow.hlo")
    assert status == 1
    assert out.count("output-to-input, output") == MAX_OUTPUTS
    assert "wide.hlo" not in out
    assert err.splitlines() == [
        "error[outputs]: wide.hlo: e: the root `t` has 65 outputs, more than 64: its maps are not "
        "printed",
        "  = help: --output N selects one output, 0 to 64; --all-outputs prints all",
        "  = help: -i NAME selects an instruction: `hlo-indexing ls wide.hlo` lists them",
        "  = help: --opcode OPCODE selects instructions of the module: negate (1)",
    ]


# fmt: off
ASKED = [
    # options                       lines of the result
    (["--all-outputs"],             2 * 65),
    (["--output", "64"],            1 + 65),  # the other operands are not read
    (["-i", "t"],                   2 * 65),
    (["-i", "n"],                   2),
    (["--opcode", "negate"],        2),
    (["--format", "json"],          65),
    (["--format", "mlir"],          65),
]
# fmt: on


@pytest.mark.parametrize(("options", "count"), ASKED, ids=lambda o: str(o))
def test_what_is_selected_is_printed(
    options: list[str], count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = ran(capsys, "maps", "wide.hlo", *options)
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == count


def test_instructions_of_one_opcode_are_ranked_by_size(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--opcode", "fusion", "--sort", "bytes", "--limit", "3")
    status, out, err = ran(capsys, "ls", EXAMPLE, *options)
    assert (status, err) == (0, "")
    heading, *lines = out.splitlines()
    module = hlo.load(EXAMPLE)
    fusions = [each for each in module.instructions if each.opcode == "fusion"]
    shapes = {each: each.shape for each in fusions if isinstance(each.shape, hlo.Shape)}
    largest = sorted(shapes, key=lambda each: -shapes[each].bytes)[:3]
    assert heading.startswith(f"{EXAMPLE}: 3 of ")
    cells = [line.split()[:2] for line in lines]
    assert cells == [[f"{shapes[each].bytes:,}", f"main.5/{each.name}"] for each in largest]
    assert heading.endswith(", by bytes of their results")
    _, out, _ = ran(capsys, "ls", EXAMPLE, *options, "--format", "json")
    rows = [json.loads(line)["instruction"] for line in out.splitlines()]
    assert rows == [each.name for each in largest]


def test_instructions_of_one_computation(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ran(capsys, "ls", EXAMPLE, "--computation", "main*", "--opcode", "parameter")
    heading, *lines = out.splitlines()
    assert "ENTRY main.5" in heading
    assert all(line.split()[1] == "parameter" for line in lines)
    status, _, err = ran(capsys, "ls", EXAMPLE, "--computation", "mian.5")
    assert status == 1
    assert "error[name]: " in err
    assert "no computation named `mian.5`\n  = help: did you mean `main.5`?" in err
    _, _, err = ran(capsys, "ls", EXAMPLE, "--computation", "ENTRY")
    assert "no computation named `ENTRY`\n  = help: the ENTRY computation is `main.5`" in err
    _, out, _ = ran(capsys, "ls", EXAMPLE, "--reads", "p['k']")
    assert "1 of" in out


def test_kinds_select_instructions_as_in_maps(capsys: pytest.CaptureFixture[str]) -> None:
    def names(*words: str) -> set[str]:
        assert cli.run([*words, EXAMPLE, "--format", "json"]) == 0
        records = map(json.loads, capsys.readouterr().out.splitlines())
        return {f"{each['computation']}/{each['instruction']}" for each in records}

    for kind in ("reducing", "transposing", "broadcasting"):
        listed = names("ls", "--kind", kind)
        assert listed == names("maps", "--kind", kind)
        assert listed
    assert cli.run(["ls", EXAMPLE, "--kind", "unknown"]) == 1
    assert "no instruction matches --kind unknown" in capsys.readouterr().err
