"""The packages need no module and no name that Python lacks on Windows or macOS.

The stubs of typeshed, which mypy has with it, tell what each system has.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import copytree

import pytest

from indexing.cli.group import COMMANDS

ROOT = Path(__file__).parent.parent.parent
SYSTEMS = ("linux", "win32", "darwin")


# ---------------------------------------------------------------- what a system has


@cache
def stub(module: str) -> ast.Module | None:
    """Return the stub of a module of the standard library; None if it has none."""
    spec = importlib.util.find_spec("mypy")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "typeshed" / "stdlib" / module.replace(".", "/")
    for file in (path.with_suffix(".pyi"), path / "__init__.pyi"):
        if file.is_file():
            return ast.parse(file.read_text("utf-8"))
    return None


def holds(test: ast.expr, system: str) -> bool:
    """Evaluate the condition of a stub; every version of Python is new enough."""
    match test:
        case ast.BoolOp(op=ast.And()):
            return all(holds(value, system) for value in test.values)
        case ast.BoolOp():
            return any(holds(value, system) for value in test.values)
        case ast.UnaryOp(op=ast.Not()):
            return not holds(test.operand, system)
        case ast.Compare(ops=[operator], comparators=[ast.Constant(value=str(name))]):
            return (name == system) == isinstance(operator, ast.Eq)
        case ast.Compare(ops=[operator]):
            return isinstance(operator, ast.GtE)
    return True


@cache
def names(module: str, system: str) -> frozenset[str]:
    """Return the names that a module has on a system."""
    tree = stub(module)
    public = definitions_in(tree.body, system) if tree else ()
    return frozenset([name for name in public if name == "_exit" or not name.startswith("_")])


def definitions_in(body: list[ast.stmt], system: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.If():
                yield from definitions_in(
                    node.body if holds(node.test, system) else node.orelse, system
                )
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) if name != "__all__":
                yield name
            case ast.ImportFrom():
                yield from [each.asname or each.name for each in node.names if each.asname]


def lacks(module: str, name: str | None) -> list[str]:
    """Return the systems without a module, or without a name of it that another system has."""
    having = [s for s in SYSTEMS if (name in names(module, s) if name else names(module, s))]
    return [system for system in SYSTEMS if system not in having] if having else []


@cache
def lacking(system: str) -> str:
    """Return the modules that a system lacks, and the names of others that it lacks, as JSON."""
    modules = [each for each in sorted(sys.stdlib_module_names) if system in lacks(each, None)]
    missing = {
        each: sorted((names(each, "linux") | names(each, "darwin")) - names(each, system))
        for each in ("os", "signal", "select", "time", "socket")
    }
    return json.dumps([system, modules, missing])


def test_the_stubs_tell_what_systems_have() -> None:
    for module, name, expected in (
        ("fcntl", None, ["win32"]),
        ("termios", None, ["win32"]),
        ("grp", None, ["win32"]),
        ("msvcrt", None, ["linux", "darwin"]),
        ("winreg", None, ["linux", "darwin"]),
        ("json", None, []),
        ("os", "sched_getaffinity", ["win32", "darwin"]),
        ("os", "fork", ["win32"]),
        ("os", "mkfifo", ["win32"]),
        ("os", "O_CLOEXEC", ["win32"]),
        ("os", "startfile", ["linux", "darwin"]),
        ("os", "replace", []),
        ("signal", "SIGHUP", ["win32"]),
        ("select", "poll", ["win32"]),
        ("select", "epoll", ["win32", "darwin"]),
    ):
        assert lacks(module, name) == expected, (module, name)


# ---------------------------------------------------------------- what the packages use


def uses(tree: ast.Module) -> Iterator[tuple[ast.AST, str, str | None]]:
    """Yield the modules of the standard library that a tree imports, and their attributes."""
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                imported.add(each.asname or each.name)
                yield node, each.name, None
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node, node.module, None
            for each in node.names:
                yield node, node.module, each.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in imported:
            yield node, ast.unparse(node.value), node.attr


def is_guarded(tree: ast.Module, node: ast.AST) -> bool:
    """Return True if the function, or the statement of the module, around a node asks.

    It asks by `hasattr`, `sys.platform` or `os.name`, or catches `ImportError`.
    """
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    around = [f for f in functions if any(each is node for each in ast.walk(f))]
    scope: list[ast.AST] = [around[-1]] if around else [s for s in tree.body if contains(s, node)]
    for each in scope:
        for inner in ast.walk(each):
            text = ast.unparse(inner) if isinstance(inner, ast.Call | ast.Compare) else ""
            if text.startswith(("hasattr(", "sys.platform", "os.name")):
                return True
            if isinstance(inner, ast.ExceptHandler) and inner.type is not None:
                if "ImportError" in ast.unparse(inner.type):
                    return True
    return False


def contains(statement: ast.stmt, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(statement))


@pytest.mark.parametrize("package", ["hlo", "indexing", "simplifier"])
def test_what_a_system_lacks_is_used_where_the_system_is_asked_for(package: str) -> None:
    unguarded = [  # with the systems that lack it
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {module}.{name or ''}: {systems}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for tree in [ast.parse(path.read_text("utf-8"))]
        for node, module, name in uses(tree)
        if (systems := lacks(module, name)) and not is_guarded(tree, node)
    ]
    assert not unguarded


# ---------------------------------------------------------------- the command on another system

ELSEWHERE = """
import builtins, json, shlex, sys, types
import multiprocessing.connection, subprocess  # use names of this system

system, absent, missing = json.loads(sys.argv[1])
hidden, imported, opened = {}, builtins.__import__, builtins.open

class Hidden(types.ModuleType):
    def __init__(self, module):
        super().__init__(module.__name__)
        self.__dict__["real"] = module
    def __getattr__(self, name):
        if name in missing[self.__name__]:
            raise AttributeError(f"{self.__name__} has no {name} on {system}")
        return getattr(self.real, name)

def locking(descriptor, mode, count):
    import fcntl
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, count, 0, 1)  # from this position
msvcrt = types.SimpleNamespace(locking=locking, LK_NBLCK=2)

def limited(name, globals=None, locals=None, fromlist=(), level=0):
    importer = str((globals or {}).get("__name__")).partition(".")[0]
    if importer not in ("hlo", "indexing", "simplifier") or level:
        return imported(name, globals, locals, fromlist, level)
    if name == "msvcrt" and system == "win32":
        return msvcrt
    if name in absent:
        raise ModuleNotFoundError(name)
    module = imported(name, globals, locals, fromlist, level)
    if name not in missing:
        return module
    if name not in hidden:
        hidden[name] = Hidden(module)
    return hidden[name]

def no_proc(path, *arguments, **options):
    if str(path).startswith("/proc"):
        raise FileNotFoundError(path)
    return opened(path, *arguments, **options)

builtins.__import__, builtins.open = limited, no_proc
from indexing import cli
for line in sys.stdin.read().splitlines():
    status = cli.run(shlex.split(line))
    print(f"status {status}: {line}", file=sys.stderr)
"""
MODULE = """ENTRY e { p = f32[2,3] parameter(0)
  ROOT n = f32[3,2] transpose(p), dimensions={1,0}, metadata={source_file="m.py" source_line=3} }"""
DUMP = "dumps/module_0001.m.000{}.pipeline.after_pass.before_next.txt"
LINES = [
    "maps m.hlo --all -o old",
    "maps m.hlo m.hlo --jobs 2",
    "maps dumps --resume journal -o results",
    "maps dumps --resume journal -o results",
    "summary m.hlo",
    "bytes m.hlo --format svg -o bytes.svg",
    "memory m.hlo",
    "ls m.hlo",
    "source m.py m.hlo",
    "simplify ()->(7)",
    "compose '() -> (7)' '(d0) -> (d0), domain: d0 in [0, 9]'",
    "check m.hlo dumps",
    "tile m.hlo -i n --sizes 2,2",
    "access m.hlo",
    "shard m.hlo --rule",
    "run m.hlo -o out.npz",
    "validate m.hlo --no-xla",
    "diff m.hlo m.hlo",
    "passes dumps",
    "triage dumps",
    "kernels emitted",
    "report m.hlo -o page.html",
    "ops dot",
    "explain syntax",
]


@pytest.mark.parametrize("system", SYSTEMS)
def test_commands_run_without_what_a_system_lacks(system: str, tmp_path: Path) -> None:
    """The packages, and no other importers, get the names that the system has."""
    (tmp_path / "dumps").mkdir()
    (tmp_path / "m.hlo").write_text(MODULE)
    copytree(ROOT / "examples" / "kernels" / "softmax", tmp_path / "emitted")
    (tmp_path / "old").touch()  # is replaced, with its permissions
    for number in (1, 2):
        (tmp_path / DUMP.format(number)).write_text(MODULE)
    needs_jax = {"dump", "pallas"}
    assert {line.split()[0] for line in LINES} == set(COMMANDS) - needs_jax
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, lacking(system)],
        input="\n".join(LINES),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
    )
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    statuses = [line for line in done.stderr.splitlines() if line.startswith("status ")]
    assert (done.returncode, errors) == (0, []), done.stderr
    assert statuses == [f"status 0: {line}" for line in LINES], done.stderr


LOCKED = """
import sys
from indexing.cli.journal import Journal, JournalError
try:
    journal = Journal("journal", {})
except JournalError as error:
    print(error)
"""


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_journal_is_locked_on_every_system(system: str, tmp_path: Path) -> None:
    first = LOCKED + "import subprocess; subprocess.run(sys.argv[2:])"
    head, _, _ = ELSEWHERE.partition("from indexing import cli")
    second = [sys.executable, "-c", head + LOCKED, lacking(system)]
    for attempt in range(2):  # the lock of an ended process is no lock
        done = subprocess.run(
            [sys.executable, "-c", head + first, lacking(system), *second],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
        )
        assert (done.stdout, done.stderr) == ("journal is in use by another run\n", ""), attempt
