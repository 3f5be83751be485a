"""Inputs of commands that are functions of JAX, and the command `dump`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from indexing.cli.jax_inputs import FunctionInput
from indexing.frontends import compilation
from tests.cli.running import Run, runner

pytest.importorskip("jax", reason="needs jax, to lower functions")

PROGRAM = """
import jax.numpy as jnp
print("printed by the program")
def product(x, w): return jnp.maximum(x @ w, 0)
def other(x, w): return x[::-1] @ w
def ordered(x): return jnp.sort(x)
def tree(p, x): return x @ p["w"] + p["b"]
def wrong(x): raise RuntimeError("first line\\nsecond line")
"""
SHAPES = "--shapes 'f32[3,5],f32[5,7]'"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compilation, "cache_folder", lambda _: tmp_path / "cache")
    Path("layers.py").write_text(PROGRAM)
    return runner(capsys)


def test_a_function_is_an_input_of_maps(run: Run) -> None:
    status, out, err = run(f"maps jax:layers.py:product {SHAPES} --to parameters")
    assert (status, err) == (0, "")
    assert "parameter 0 x f32[3,5]: (d0, d1)[s0] -> (d0, s0)" in out
    assert "parameter 1 w f32[5,7]: (d0, d1)[s0] -> (s0, d1)" in out
    assert "printed by the program" not in out


@pytest.mark.slow
def test_arguments_may_be_trees(run: Run) -> None:
    shapes = json.dumps([{"w": "f32[5,7]", "b": "f32[7]"}, "f32[3,5]"])
    status, out, _ = run(f"maps jax:layers.py:tree --shapes '{shapes}' --to parameters")
    assert status == 0
    assert "p.b f32[7]: (d0, d1) -> (d1)" in out


@pytest.mark.slow
def test_stages_of_one_function_are_compared(run: Run) -> None:
    name = "jax:layers.py:product"
    line = f"diff {name}@lowered {name}@optimized {SHAPES} --level reads"
    assert run(line)[0] == 0
    assert run(f"diff {name} jax:layers.py:other {SHAPES} --level reads")[0] == 1
    passed = run(f"passes {name} {SHAPES} --level reads")
    assert passed[0] == 0
    *_, last, gap, kernels = passed[1].splitlines()
    assert last.startswith("all")
    assert (gap, kernels) == ("", "kernels: 1 proved")


@pytest.mark.slow
def test_errors_about_kernels_name_the_function(run: Run) -> None:
    status, out, err = run("kernels jax:layers.py:ordered --shapes 's32[7]' --target cpu")
    assert (status, out) == (1, "")
    assert "jax:layers.py:ordered: no kernels: XLA emits no instruction as MLIR" in err
    assert "XLA_FLAGS" not in err
    _, _, err = run(f"kernels jax:layers.py:product {SHAPES} --target cpu -i none")
    assert "no kernel `none` in jax:layers.py:product" in err


@pytest.mark.parametrize(
    "command",
    [
        *("maps", "summary", "bytes", "memory", "ls", "check", "access", "validate --no-xla"),
        *("tile --sizes 1,7", "report -o report.html", "shard --rule"),
    ],
)
@pytest.mark.slow
def test_every_command_reads_a_function(run: Run, command: str) -> None:
    name, _, options = command.partition(" ")
    status, _, err = run(f"{name} jax:layers.py:product {SHAPES} --stage optimized {options}")
    assert status == 0, err


@pytest.mark.slow
def test_layouts_are_tried(run: Run) -> None:
    pytest.importorskip("libtpu", reason="needs libtpu, to compile for TPUs")
    Path("rows.py").write_text("def rows(table, tokens): return table[tokens]")
    shapes = "--shapes 'f32[1000,64],s32[256]' --target tpu:v5e:2x2"
    for more in ("", " --no-cache"):
        status, out, err = run(f"memory jax:rows.py:rows {shapes} --copies --try-layouts{more}")
        assert status == 0, err
        assert "  argument 0: Layout(major_to_minor=(0, 1))" in out
        assert out.count(": removed") == 2
        assert "bytes before, 0 after" in out


@pytest.mark.slow
def test_a_pass_is_a_stage(run: Run) -> None:
    line = f"ls jax:layers.py:product {SHAPES} --stage"
    assert run(f"{line} layout-assignment")[0] == 0
    status, _, err = run(f"{line} layout-asignment")
    assert (status, "did you mean `layout-assignment`" in err) == (2, True)
    assert run(f"{line} before_optimizations")[1] == run(f"{line} lowered")[1]


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("jax:layers.py:missing", 1, "error[jax]: jax:layers.py:missing: ValueError: layers.py"),
        (
            "jax:layers.py:wrong --shapes 'f32[]'",
            1,
            "layers.py:8: RuntimeError: first line\n  second line",
        ),
        ("jax:none.py:f", 1, "error[jax]: jax:none.py:f: FileNotFoundError"),
        ("jax:layers.py", 2, "names no function: write jax:FILE.py:FUNCTION"),
        ("jax:layers.py:tree --shapes 'f32[3'", 2, "is not a shape"),
        ("jax:layers.py:tree --target gpu:H101", 2, "did you mean `H100`"),
        ("m.hlo --target tpu:v4", 2, "--target is for inputs that are functions of JAX: jax:FILE"),
        ("m.hlo --no-cache", 1, "error[io]: m.hlo: No such file"),
        (
            "jax:layers.py:product --stage kernels",
            2,
            "'kernels' is a folder, and this command reads",
        ),
        ("jax:layers.py:product", 1, "= help: give the arguments with --shapes"),
        ("jax:layers.py:product --shapes 'f32[3]'", 1, "give the missing arguments with --shapes"),
    ],
)
def test_an_error_names_the_function(run: Run, line: str, status: int, message: str) -> None:
    result, out, err = run(f"ls {line}")
    assert (result, out) == (status, "")
    assert message in err


def test_a_stage_of_a_function_is_none_of_a_folder(run: Run) -> None:
    Path("folder").mkdir()
    Path("folder", "m.hlo").write_text("ENTRY e { p = f32[] parameter(0) }")
    status, _, err = run("maps folder --stage layout-assignment")
    assert status == 2
    assert "not a stage of XLA's dumps in a folder: expected before_optimizations, passes" in err


@pytest.mark.slow
def test_a_dump_has_the_module_and_each_pass(run: Run) -> None:
    status, out, _ = run(f"dump jax:layers.py:product {SHAPES} -o dumps")
    files = [each.name for each in Path("dumps").rglob("*") if each.is_file()]
    assert (status, out) == (0, f"{len(files)} files in dumps\n")
    assert "product.hlo" in files
    for part in (
        "before_optimizations.txt",
        "after_optimizations.txt",
        "layout-assignment",
        "mlir",
    ):
        assert any(part in name for name in files), part
    assert run("passes dumps --level reads")[0] == 0
    status, _, err = run("dump layers.py -o dumps")
    assert (status, "is not a function: write jax:FILE.py:FUNCTION" in err) == (2, True)


def test_the_stage_and_the_target_of_an_input_come_in_any_order() -> None:
    text = "jax:m.py:f"
    for name in (f"{text}@optimized@gpu:H100:4", f"{text}@gpu:H100:4@optimized"):
        both = FunctionInput(name, text, "optimized", "gpu:H100:4")
        assert FunctionInput.parse(name, {}) == both
        assert FunctionInput.parse(name, {"target": "cpu"}) == both
    assert FunctionInput.parse(text, {}) == FunctionInput(text, text, "", "")
    assert FunctionInput.parse(text, {"target": "cpu"}) == FunctionInput(text, text, "", "cpu")
