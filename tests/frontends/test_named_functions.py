"""Functions and arguments that are named in text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexing.frontends.named_functions import (
    arguments,
    load_function,
    shape_trees,
    source_digests,
)


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "written_program.py"
    file.write_text(
        "class Layer:\n    @staticmethod\n    def call(x): return 2 * x\ndef f(x): return x\n"
    )
    yield file
    for name in ("written_program", "written_helper"):
        sys.modules.pop(name, None)


def print_leaves(tree: Any) -> Any:
    if isinstance(tree, list):
        return [print_leaves(each) for each in tree]
    if isinstance(tree, dict):
        return {key: print_leaves(each) for key, each in tree.items()}
    return tree if tree is None or isinstance(tree, bool | int | float) else str(tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("bf16[8,128],s32[]", ["bf16[8,128]", "s32[]"]),
        (" f32[2] , pred[3,4] ", ["f32[2]", "pred[3,4]"]),
        ('["f32[2]", 3, true, null]', ["f32[2]", 3, True, None]),
        ('[{"w": ["f8e4m3fn[2]"], "b": {}}]', [{"w": ["f8e4m3fn[2]"], "b": {}}]),
    ],
)
def test_shapes_are_read_as_hlo_or_json(text: str, expected: Any) -> None:
    assert print_leaves(shape_trees(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f32[2", r"'f32\[2' is not a shape"),
        ("f32[2],,f32[3]", "'' is not a shape"),
        ("[f32[2]]", r"is not JSON.*such as '\[\{"),
        ('["f33[2]"]', r"'f33\[2\]' is not a shape"),
        ("(f32[2], f32[3])", "is not a shape of an array: expected one such as"),
        ("f32[<=2]", "is not a shape of an array"),
    ],
)
def test_an_error_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shape_trees(text)


def test_arguments_have_the_types_of_jax() -> None:
    jax = pytest.importorskip("jax", reason="needs jax, for its types of arguments")
    (tree, number) = arguments('[{"w": "bf16[8,128]"}, 3]')
    assert tree == {"w": jax.ShapeDtypeStruct((8, 128), jax.numpy.bfloat16)}
    assert number == 3


@pytest.mark.parametrize("place", ["written_program.py", "written_program", "./written_program.py"])
def test_a_function_is_that_of_a_file_or_of_a_module(place: str) -> None:
    assert load_function(f"jax:{place}:f")(3) == 3
    assert load_function(f"jax:{place}:Layer.call")(3) == 6


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "jax:written_program.py",
            ValueError,
            "names no function: write jax:FILE.py:FUNCTION or jax:MODULE:FUNCTION, such as",
        ),
        ("jax:written_program.py:", ValueError, "names no function"),
        ("jax:written_program.py:g", ValueError, "has no 'g': it has Layer, f"),
        ("jax:no_such_file.py:f", FileNotFoundError, "no_such_file.py"),
        ("jax:no_such_module:f", ModuleNotFoundError, "no_such_module"),
    ],
)
def test_a_name_without_a_function_is_an_error(
    name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        load_function(name)


def test_sources_are_the_files_of_the_program_alone(program: Path) -> None:
    (program.parent / "written_helper.py").write_text("X = 1\n")
    program.write_text("import json, pathlib, written_helper\ndef f(x): return x\n")
    load_function("jax:written_program.py:f")
    digests = source_digests()
    assert {"written_program.py", "written_helper.py"} <= {Path(file).name for file in digests}
    for module in ("json", "pathlib", "pytest", "indexing.frontends.named_functions"):
        assert sys.modules[module].__file__ not in digests
