"""Lines of code of the packages, without docstrings, comments, blank lines and imports.

    python -m benchmarks.lines_of_code [FOLDER...]

prints the number for each folder, by default `hlo`, `simplifier` and `indexing` with its rooms, and
the functions with the most parameters.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PACKAGES: Final = ("hlo", "simplifier", "indexing")
SHOWN: Final = 5
"""Number of functions that are printed."""
_NO_CODE: Final = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


def code_lines(path: Path) -> int:
    """Return the number of lines of a file that have code."""
    tree = ast.parse(path.read_text())
    other: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr) and not _is_code(node):
            other.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    with open(path, "rb") as file:
        tokens = [t for t in tokenize.tokenize(file.readline) if t.type not in _NO_CODE]
    lines = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    return len(lines - other)


def _is_code(node: ast.Import | ast.ImportFrom | ast.Expr) -> bool:
    """Return False for an import, a docstring, or a text below a constant or field."""
    if not isinstance(node, ast.Expr):
        return False
    return not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str))


def parameters(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of parameters and the place of each function of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            a = node.args
            count = len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs)
            yield count, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def rooms() -> list[Path]:
    """Return the folders that are counted: `indexing` is divided into its rooms."""
    inner = [p for p in sorted((ROOT / "indexing").iterdir()) if (p / "__init__.py").exists()]
    return [ROOT / "hlo", ROOT / "simplifier", *inner]


def main() -> None:
    """Print the table."""
    folders = [Path(f).resolve() for f in sys.argv[1:]] or rooms()
    for folder in folders:
        files = sorted(folder.rglob("*.py"))
        name, count = folder.relative_to(ROOT), sum(map(code_lines, files))
        print(f"{name!s:28}{len(files):6} files {count:8,} lines of code")
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    print(f"{'all packages':28}{len(files):6} files {sum(map(code_lines, files)):8,} lines of code")
    counts = sorted((p for path in files for p in parameters(path)), reverse=True)
    for count, place in counts[:SHOWN]:
        print(f"{count:4} parameters: {place}")


if __name__ == "__main__":
    main()
