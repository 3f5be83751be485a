"""`--version` reports whether the imported modules are compiled."""

from __future__ import annotations

import os
import platform
import re
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from inspect import isfunction

import pytest

from indexing import cli
from indexing.cli import build as builds
from indexing.cli.build import COMPILED, build

WITHOUT_FUNCTIONS = {"simplifier.operations"}


def has_bytecode(name: str) -> bool:
    """Return True if Python has compiled a function or method of a module to bytecode."""
    members = list(vars(import_module(name)).values())
    methods = [
        each for owner in members if isinstance(owner, type) for each in vars(owner).values()
    ]
    file = f"{name.replace('.', os.sep)}.py"
    functions = [each for each in (*members, *methods) if isfunction(each)]
    return any(each.__code__.co_filename.endswith(file) for each in functions)


def test_compiled_modules_have_no_bytecode(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    line = capsys.readouterr().out
    printed = re.fullmatch(r"hlo-indexing [\d.]+ \((\w+); Python (\S+)\)\n", line)
    assert printed is not None
    assert printed[2] == platform.python_version()
    for name in set(COMPILED) - WITHOUT_FUNCTIONS:
        assert has_bytecode(name) == (printed[1] == "interpreted")


@pytest.mark.parametrize(
    "number, text",
    [
        (0, "interpreted"),
        (1, f"1 of {len(COMPILED)} modules compiled"),
        (len(COMPILED), "compiled"),
    ],
)
def test_some_compiled_modules_are_counted(
    monkeypatch: pytest.MonkeyPatch, number: int, text: str
) -> None:
    def spec_of(name: str) -> ModuleSpec:
        is_compiled = COMPILED.index(name) < number
        return ModuleSpec(name, ExtensionFileLoader(name, f"{name}.so") if is_compiled else None)

    monkeypatch.setattr(builds, "find_spec", spec_of)
    assert build() == text
