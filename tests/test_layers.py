"""Dependencies between layers and restrictions of single modules, checked on the source."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from radon.complexity import cc_visit_ast

import hlo.methods
import indexing.methods

ROOT = Path(__file__).parent.parent
PACKAGES = ("hlo", "simplifier", "indexing")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))

# The rooms of each package, lowest first: a room imports only earlier rooms. Modules outside rooms
# (``__init__``, ``methods``, ``moved``) may be imported by all rooms and import none.
ROOMS = {
    "hlo": ("text", "shapes", "shardings", "ops", "modules", "formats"),
    "simplifier": (),
    "indexing": (
        *("maps", "devices", "ops", "dataflow", "programs"),
        *("tiling", "memory", "sharding"),
        *("execution", "codegen", "equivalence", "frontends", "pallas", "kernels"),
        *("drawing", "views", "cli"),
    ),
}
EVERY_ROOM = [(package, room) for package, rooms in ROOMS.items() for room in ("", *rooms)]

MAY_IMPORT = {
    "hlo": {"hlo"},
    "simplifier": {"simplifier"},
    "indexing": {"hlo", "simplifier", "indexing"},
}

MAX_LINES = 400  # also in CONTRIBUTING
MAX_COMPLEXITY = 15  # also the linter's `max-complexity`; measured by radon

# External libraries, and the only modules and packages that may import them.
ONLY_IN = {
    "islpy": ("simplifier/exact",),
    "click": ("indexing/cli/",),
    "rich": ("indexing/cli/", "indexing/views/wrapping.py"),
}


def name_of(module: Path) -> str:
    return module.relative_to(ROOT).as_posix()


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text())


def list_imports(tree: ast.AST, package: str) -> Iterator[tuple[str, int]]:
    """Yield the package and line of every import in `tree`; relative imports are of `package`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield alias.name.partition(".")[0], node.lineno
            case ast.ImportFrom(level=0, module=str(module)):
                yield module.partition(".")[0], node.lineno
            case ast.ImportFrom():
                yield package, node.lineno


@cache
def imports_of(module: Path) -> list[tuple[str, int]]:
    return list(list_imports(tree_of(module), module.relative_to(ROOT).parts[0]))


def dotted_name(module: Path) -> str:
    parts = module.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {dotted_name(module) for module in MODULES}


@cache
def modules_imported(module: Path) -> list[tuple[str, int]]:
    """Return the project's modules that a module imports, also inside functions, with lines."""
    imports: list[tuple[str, int]] = []
    for node in ast.walk(tree_of(module)):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(home)):
                inner = [f"{home}.{alias.name}" for alias in node.names]
                names = [name if name in NAMES else home for name in inner]
            case _:
                continue
        imports += [(name, node.lineno) for name in dict.fromkeys(names) if name in NAMES]
    return imports


def room_of(name: str) -> tuple[str, str]:
    """Return the package and room of a module; the room is empty for modules outside rooms."""
    package, _, rest = name.partition(".")
    room = rest.partition(".")[0]
    return package, room if room in ROOMS[package] else ""


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_packages_below(package: str) -> None:
    others = set(PACKAGES) - MAY_IMPORT[package]
    against = [
        f"{name_of(module)}:{line} imports {name}"
        for module in MODULES
        if module.is_relative_to(ROOT / package)
        for name, line in imports_of(module)
        if name in others
    ]
    assert not against


@pytest.mark.parametrize("package, room", EVERY_ROOM)
def test_rooms_import_only_rooms_below(package: str, room: str) -> None:
    """This includes imports inside functions and for type checking."""
    inside = [module for module in MODULES if room_of(dotted_name(module)) == (package, room)]
    against = [hit for module in inside for hit in imports_against_the_order(module)]
    assert not against


def imports_against_the_order(module: Path) -> Iterator[str]:
    package, room = room_of(dotted_name(module))
    order = ROOMS[package]
    for name, line in modules_imported(module):
        other_package, other = room_of(name)
        if other_package != package or not other or other == room:
            continue
        if not room or order.index(other) > order.index(room):
            yield f"{name_of(module)}:{line} imports {name}"


def test_every_folder_is_a_room() -> None:
    for package, rooms in ROOMS.items():
        inside = (ROOT / package).iterdir()
        folders = {path.name for path in inside if any(path.glob("*.py"))} - {"__pycache__"}
        assert folders == set(rooms) or not rooms, package


@pytest.mark.parametrize("room", [f"{p}/{room}" for p, rooms in ROOMS.items() for room in rooms])
def test_a_room_documents_its_purpose_and_imports(room: str) -> None:
    text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text())) or ""
    prose = text.partition(">>>")[0].strip()
    assert 3 <= len(prose.splitlines()) <= 10
    assert re.search(r"^In comes? .*; out comes? .*\bRead `[\w.]+`\s+first\.", prose, re.M | re.S)
    assert "Imports" in text


def test_imports_have_no_cycles() -> None:
    graph = {dotted_name(m): [name for name, _ in modules_imported(m)] for m in MODULES}
    cycles = [sorted(cycle) for cycle in strongly_connected(graph) if len(cycle) > 1]
    assert not cycles


def strongly_connected(graph: dict[str, list[str]]) -> Iterator[set[str]]:
    """Yield the strongly connected components of a graph (Tarjan 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> Iterator[set[str]]:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in graph[name]:
            if other not in number:
                yield from visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            start = stack.index(name)
            yield set(stack[start:])
            del stack[start:]

    for name in graph:
        if name not in number:
            yield from visit(name)


@pytest.mark.parametrize("table", [hlo.methods, indexing.methods], ids=lambda m: m.__name__)
def test_methods_have_implementations(table: ModuleType) -> None:
    for name, home in table.HOMES.items():
        assert getattr(table, name) is getattr(import_module(home), name)


@pytest.mark.parametrize("library", ONLY_IN)
def test_an_external_library_is_imported_only_where_allowed(library: str) -> None:
    users = {name_of(m) for m in MODULES if library in {name for name, _ in imports_of(m)}}
    assert not [user for user in users if not user.startswith(ONLY_IN[library])]


def draws_carets(tree: ast.AST) -> bool:
    """Return True if a string of carets is built by multiplication."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Mult(), left=ast.Constant(value="^")):
                return True
            case ast.BinOp(op=ast.Mult(), right=ast.Constant(value="^")):
                return True
    return False


def test_only_source_draws_carets() -> None:
    assert [name_of(m) for m in MODULES if draws_carets(tree_of(m))] == ["hlo/text/source.py"]


def test_help_imports_nothing_heavy() -> None:
    """`hlo-indexing --help` is fast: a command imports its dependencies inside its function."""
    script = (
        "import sys, indexing.cli\n"
        "heavy = {'numpy', 'sympy', 'islpy', 'rich', 'jax', 'hlo.formats.parser', 'simplifier'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


MAX_LOADED = 306
"""Modules of the project that a map loads, at the most."""


def test_a_map_loads_neither_isl_nor_the_loops() -> None:
    program = (
        "import sys, hlo, indexing\n"
        "text = 'ENTRY e { p = f32[3,4] parameter(0) ROOT n = f32[3,4] negate(p) }'\n"
        "print(indexing.output_to_input(hlo.parse(text).entry.root))\n"
        "print(sorted(sys.modules))\n"
        "print(sum(m.split('.')[0] in ('hlo', 'simplifier', 'indexing') for m in sys.modules))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    answer, loaded, count = run.stdout.rsplit("\n", 3)[:3]
    assert int(count) < MAX_LOADED
    assert "(d0, d1) -> (d0, d1)" in answer
    heavy = ("'islpy'", "'sympy'", "'scipy'", "'simplifier.exact'", "loops.loop_reads'")
    assert [name for name in heavy if name in loaded] == []


@pytest.mark.parametrize("package, room", EVERY_ROOM)
def test_modules_and_functions_stay_within_limits(package: str, room: str) -> None:
    violations = []
    for module in MODULES:
        if room_of(dotted_name(module)) == (package, room):
            lines = len(module.read_text().splitlines())
            if lines > MAX_LINES:
                violations.append(f"{name_of(module)} has {lines} lines")
            violations += [
                f"{name_of(module)}:{block.lineno} {block.name} has complexity {block.complexity}"
                for block in cc_visit_ast(tree_of(module))
                if block.complexity > MAX_COMPLEXITY
            ]
    assert not violations
