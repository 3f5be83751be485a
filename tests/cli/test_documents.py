"""Pages and pictures have the same bytes of UTF-8 on every stream, in every locale."""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import click
import pytest

from indexing import cli
from indexing.cli import group
from indexing.cli.reporter import Reporter

ROOT = Path(__file__).parents[2]
NAME = "é → \u2028 \x1b ü.hlo"
MODULE = """HloModule m
ENTRY e { p = f32[3,5] parameter(0)
  ROOT t = f32[5,3] transpose(p), dimensions={1,0}, metadata={op_name="ü/→/\U0001f600"} }"""
DOCUMENTS = {
    "maps": "--at 1,1 --format svg",
    "bytes": "--format svg",
    "memory": "--format svg",
    "access": "--format svg",
    "tile": "--sizes 2,2 --at 0,0 --format svg",
    "shard": "--mesh x=2 --format svg",
    "kernels": "--format svg",
    "report": "",
}


def test_every_command_with_documents_is_tested() -> None:
    context = group.cli.make_context("hlo-indexing", ["ops"], obj=Reporter())
    drawing = set()
    for name in group.COMMANDS:
        command = group.cli.get_command(context, name)
        assert command is not None
        types = [each.type for each in command.params]
        choices = [set(map(str, t.choices)) for t in types if isinstance(t, click.Choice)]
        if any({"svg", "html"} & each for each in choices):
            drawing.add(name)
    assert drawing | {"report"} == set(DOCUMENTS)


def check(document: bytes) -> None:
    """Check a document by parsers of this test: XML, and the hashes of a page's scripts."""
    text = document.decode("utf-8")
    if text.startswith("<svg"):
        ET.fromstring(text)
        return
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert scripts
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"&#x27;sha256-{digest}&#x27;" in policy[1]


@pytest.mark.parametrize("command", DOCUMENTS)
def test_a_document_has_the_same_bytes_everywhere(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if command == "kernels":
        shutil.copytree(ROOT / "examples" / "kernels" / "transpose_2d", NAME)
    else:
        Path(NAME).write_text(MODULE, "utf-8")
    words = [command, NAME, *shlex.split(DOCUMENTS[command])]
    assert cli.run([*words, "-o", "document"]) == 0
    document = Path("document").read_bytes()
    check(document)
    for encoding in ("ascii", "latin-1", "utf-16", "cp1252", "utf-8"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding, newline="\r\n")
        monkeypatch.setattr(sys, "stdout", stream)
        assert cli.run(words) == 0
        stream.flush()
        assert stream.buffer.getvalue() == document, encoding


def test_a_locale_without_unicode_changes_no_byte(tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(MODULE, "utf-8")
    documents = []
    for locale in (
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONUTF8": "1"},
    ):
        done = subprocess.run(
            [sys.executable, "-m", "indexing.cli", "report", "m.hlo"],
            capture_output=True,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], **locale},
        )
        assert (done.returncode, done.stderr) == (0, b"")
        documents.append(done.stdout)
    check(documents[0])
    assert len(set(documents)) == 1


def test_files_of_text_have_an_encoding() -> None:
    """Without one, the locale decides."""
    places = []
    for package in ("hlo", "indexing", "simplifier"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
                given = {each.arg for each in node.keywords}
                modes = [a.value for a in node.args[1:2] if isinstance(a, ast.Constant)]
                is_method = isinstance(node.func, ast.Attribute)
                is_text = (name == "open" and not is_method and "b" not in str(*modes)) or (
                    name in ("read_text", "write_text") and is_method
                )
                has_encoding = "encoding" in given or (
                    name == "read_text" and (node.args or path.name == "loading.py")
                )
                if is_text and not has_encoding:
                    places.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not places
