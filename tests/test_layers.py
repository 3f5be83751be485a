"""The arrows between layers, and what only one module may do, read from the source by `ast`."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("hlo", "simplifier", "indexing")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

MAY_IMPORT = {
    "hlo": {"hlo"},
    "simplifier": {"simplifier"},
    "indexing": {"hlo", "simplifier", "indexing"},
}

# What is drawn from outside, and the only modules and packages that may: others go through them.
ONLY_IN = {
    "islpy": ("simplifier/exact",),
    "click": ("indexing/cli/",),
    "rich": ("indexing/cli/", "indexing/views/report.py"),
}


def name_of(module: Path) -> str:
    return module.relative_to(ROOT).as_posix()


def imported(tree: ast.AST, package: str) -> Iterator[tuple[str, int]]:
    """Package and line of every import in `tree`; relative ones lead to `package`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield alias.name.partition(".")[0], node.lineno
            case ast.ImportFrom(level=0, module=str(module)):
                yield module.partition(".")[0], node.lineno
            case ast.ImportFrom():
                yield package, node.lineno


def imports_of(module: Path) -> list[tuple[str, int]]:
    return list(imported(ast.parse(module.read_text()), module.relative_to(ROOT).parts[0]))


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_imports_run_along_the_arrows(module: Path) -> None:
    layer = module.relative_to(ROOT).parts[0]
    against = [(name, line) for name, line in imports_of(module) if name in PACKAGES]
    assert not [hit for hit in against if hit[0] not in MAY_IMPORT[layer]]


@pytest.mark.parametrize("library", ONLY_IN)
def test_one_module_speaks_to_a_library(library: str) -> None:
    users = {name_of(m) for m in MODULES if library in {name for name, _ in imports_of(m)}}
    assert not [user for user in users if not user.startswith(ONLY_IN[library])]


def draws_carets(tree: ast.AST) -> bool:
    """Whether a run of `^` is made anywhere: a string of carets multiplied, or used as fill."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Mult(), left=ast.Constant(value="^")):
                return True
            case ast.BinOp(op=ast.Mult(), right=ast.Constant(value="^")):
                return True
    return False


def test_only_source_draws_carets() -> None:
    assert [name_of(m) for m in MODULES if draws_carets(ast.parse(m.read_text()))] == [
        "hlo/text/source.py"
    ]


def test_help_imports_nothing_heavy() -> None:
    """`hlo-indexing --help` answers at once: what a command needs is imported inside it."""
    script = (
        "import sys, indexing.cli\n"
        "heavy = {'numpy', 'sympy', 'islpy', 'rich', 'jax', 'hlo.formats.parser', 'simplifier'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_modules_stay_readable_in_one_sitting(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= 600
