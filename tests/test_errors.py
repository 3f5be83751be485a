"""Each error code has a page, whose example raises just this error and whose repair is accepted."""

import ast
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops that `hlo.verify` checks
from indexing.cli import error_pages, run
from tests.test_docs import ROOT

BLOCK = re.compile(r"^```(hlo|python|console|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = re.compile(r"^## (Example|Repair)$", re.MULTILINE)
WITHOUT_EXAMPLE = {
    "budget": "a program of more than a million instructions",
    "jaxlib": "jaxlib is not installed",
    "internal": "a bug",
    "cluster": "a cluster is part of the example",
    "worker": "the system ends a worker process",
}
PAGES = error_pages.codes()


def raised_codes() -> set[str]:
    """The codes in the calls of `HloError` and `ExecutionError`, and in messages of the command."""
    codes = set()
    for package in ("hlo", "indexing", "simplifier"):
        for file in (ROOT / package).rglob("*.py"):
            text = file.read_text()
            if "Error(" in text:
                codes |= set(_codes_of_calls(ast.parse(text)))
            if "cli" in file.parts:
                codes |= set(re.findall(r'f"error\[([\w-]+)\]', text))
    (both,) = re.findall(r'code = "(\w+)" if .* else "(\w+)"', _read("indexing/cli/reporter.py"))
    return codes | set(both)


def _read(path: str) -> str:
    return (ROOT / path).read_text()


def _codes_of_calls(tree: ast.Module) -> list[str]:
    constants = {
        target.id: value.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for value in [node.value]
        if isinstance(target, ast.Name)
    }
    codes = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id not in ("HloError", "ExecutionError"):
            continue
        given = [word.value for word in node.keywords if word.arg == "code"] or node.args[2:3]
        match given:
            case []:
                codes.append("syntax")
            case [ast.Constant(str(code))]:
                codes.append(code)
            case [ast.Name(name)]:
                codes.append(str(constants[name]))
            case [ast.Attribute(attr="code")]:
                pass  # the code of another error
            case _:
                raise AssertionError(f"not a constant code: {ast.unparse(node)}")
    return codes


def test_each_code_has_a_page() -> None:
    """To repair: add `docs/errors/CODE.md`, with the sections of the other pages."""
    assert raised_codes() == set(PAGES)


@pytest.mark.parametrize("code", PAGES)
def test_the_example_of_a_page_raises_its_error(
    code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    page = PAGES[code].read_text()
    assert page.startswith(f"# Error `{code}`\n\n")
    _, *sections = SECTIONS.split(page)
    texts = dict(zip(sections[::2], sections[1::2], strict=True))
    if code in WITHOUT_EXAMPLE:
        assert texts.keys() == {"Repair"}
        return
    (kind, example), *printed = BLOCK.findall(texts["Example"])
    ((same, repaired),) = BLOCK.findall(texts["Repair"])
    assert same == kind
    if kind == "console":
        status, output, message = _command(example, monkeypatch, capsys)
        assert status != 0
        assert f"error[{code}]: " in message
        assert output + message == example.partition("\n")[2]
        status, output, message = _command(repaired, monkeypatch, capsys)
        assert (status, message) == (0, "")
        assert output == repaired.partition("\n")[2]
        return
    raised = _errors(kind, example)
    assert {error.code for error in raised} == {code}
    ((_, text),) = printed
    assert "\n".join(map(str, raised)) + "\n" == text
    assert _errors(kind, repaired) == []


def _errors(kind: str, text: str) -> list[hlo.HloError]:
    """The errors of a module, or the error that a snippet of Python raises."""
    try:
        if kind == "hlo":
            return list(hlo.verify(hlo.parse(text, "example.hlo")))
        names: dict[str, Any] = {}
        exec(text, names)
    except hlo.HloError as error:
        return [error]
    return []


def _command(
    block: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """The status, output and messages of a block's command, which may read from a pipe."""
    line = block.partition("\n")[0].removeprefix("$ ")
    writer, _, command = line.rpartition(" | ") if " | hlo-indexing " in line else ("", "", line)
    data = subprocess.check_output(writer, shell=True) if writer else b""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    program, *arguments = shlex.split(command)
    assert program == "hlo-indexing"
    return run(arguments), *capsys.readouterr()


def test_an_undocumented_code_is_found() -> None:
    source = "raise HloError('m', span, 'new')\n_CODE = 'own'\nHloError('m', span, _CODE)\n"
    assert _codes_of_calls(ast.parse(source + "HloError('m', span)")) == ["new", "own", "syntax"]


def test_links_of_the_pages_lead_to_pages() -> None:
    for page in PAGES.values():
        for path in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert (page.parent / Path(path)).exists()
