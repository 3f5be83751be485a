"""Code blocks of the documentation are executed and must print the documented output.

* ```` ```python ```` with prompts is a doctest; without prompts, the block only has to run. All
  blocks of a page share their variables.
* ```` ```console ```` has commands after ``$ `` with their output; ``...`` matches any text. The
  shell gets the lines of a command as they are.  A process costs half a second, so plain commands
  run in this process, except the first one of each subcommand.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from indexing import cli
from simplifier import laws_page

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")])
FOLDERS = ("hlo", "indexing", "simplifier", "tests", "benchmarks")
FENCED = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)(?P<path>[^)#]+)")
SPECIAL = frozenset("|&;<>()[]{}$`\\\"'*?#~!\n")
"""Characters with a meaning to shells."""
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Command(NamedTuple):
    """One command of a console block with its output."""

    page: Path
    line: int
    text: str
    output: str

    @property
    def words(self) -> list[str] | None:
        """The words after `hlo-indexing`; None if the shell has more to do than split words."""
        words = shlex.split(self.text)
        unquoted = re.sub(r"'[^']*'|\"[^\"$`\\]*\"", "", self.text)
        is_simple = words[0] == "hlo-indexing" and not set(unquoted) & SPECIAL
        return words[1:] if is_simple else None


def blocks(page: Path, kind: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and text of each fenced block of one kind."""
    content = page.read_text()
    for match in FENCED.finditer(content):
        if match["kind"] == kind:
            yield content.count("\n", 0, match.start("text")) + 1, match["text"]


def is_complete(command: str) -> bool:
    """Return True if a shell runs `command` without reading another line."""
    try:
        shlex.split(command)
    except ValueError:  # an open quotation, or a backslash at the end
        return False
    return True


def commands(page: Path) -> Iterator[Command]:
    for line, text in blocks(page, "console"):
        at = line
        for piece in re.split(r"^(?=\$ )", text, flags=re.MULTILINE):
            if piece.startswith("$ "):
                command, _, output = piece[2:].partition("\n")
                while output and not is_complete(command):
                    more, _, output = output.partition("\n")
                    command += "\n" + more
                yield Command(page, at, command, output)
            at += piece.count("\n")


def prose(page: Path) -> str:
    """Return the text of a page without its fenced blocks."""
    return FENCED.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: headings as GitHub spells them, and HTML anchors."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
    return slugs | set(re.findall(r'<a id="([\w-]+)">', page.read_text()))


FRAGMENTS = sorted(ROOT.glob("changelog.d/*.md"))
COMMANDS = [command for page in PAGES for command in commands(page)]
FIRST_COMMANDS = {c.words[0]: c for c in reversed(COMMANDS) if c.words}.values()
"""The first command of each subcommand, which runs in a shell."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables for running the `hlo-indexing` of this tree."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "hlo-indexing"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m indexing.cli "$@"\n')
    script.chmod(0o755)
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}


def skip_without_compilers(text: str) -> None:
    """Skip a test of text that compiles for devices whose compilers are not installed."""
    if re.search(r"\btpu:v\d", text):
        pytest.importorskip("libtpu", reason="needs the extra [tpu]")
    if re.search(r"\bgpu:[A-Z]", text):
        pytest.importorskip("jax_cuda12_plugin", reason="needs the extra [cuda]")


def run_in_shell(command: str, environment: dict[str, str]) -> str:
    run = subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return run.stdout


def run_here(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        cli.run(words)
    return output.getvalue()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: f"{c.page.name}:{c.line}")
def test_commands_print_what_the_page_shows(
    command: Command, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_compilers(command.text)
    if "--scheduler" in command.text:
        pytest.importorskip("distributed", reason="needs the extra [dask]")
    if command.words is None or command in FIRST_COMMANDS:
        output = run_in_shell(command.text, environment)
    else:
        output = run_here(command.words, monkeypatch)
    assert doctest.OutputChecker().check_output(command.output, output, OPTIONS), (
        f"{command.page.name}:{command.line}: $ {command.text}\n{output}"
    )


@pytest.mark.filterwarnings("error::DeprecationWarning:__main__")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(blocks(page, "python"))], ids=lambda page: page.name
)
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "import jax" in page.read_text():
        pytest.importorskip("jax", reason="needs jax, to lower functions")
    skip_without_compilers("".join(text for _, text in blocks(page, "python")))
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "__main__"}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=OPTIONS)
    for line, text in blocks(page, "python"):
        if ">>>" in text:
            test = parser.get_doctest(text, names, f"{page.name}:{line}", str(page), line)
            report: list[str] = []
            failures = runner.run(test, out=report.append, clear_globs=False).failed
            assert not failures, "".join(report)
            names = test.globs
        else:
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)


def test_expressions_in_the_text_need_only_the_package() -> None:
    """`indexing.f(x)` or `indexing.a.TABLE["x"]` in a sentence works after `import indexing`.

    Names in the text without a call or an index, such as those of modules, only say where to look.
    """
    span = re.compile(r"`((?:hlo|indexing|simplifier)(?:\.[A-Za-z_]\w*)+)[(\[]")
    named = {name: page.name for page in PAGES for name in span.findall(prose(page))}
    pages = {name: page for name, page in named.items() if page != "CHANGELOG.md"}
    assert len(pages) > 20
    code = (
        "import sys, hlo, indexing, simplifier\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        eval(name)\n"
        "    except AttributeError:\n"
        "        print(name)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *pages],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {pages[name]: name for name in run.stdout.split()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    text = re.sub(r"`[^`\n]+`", "", page.read_text())  # a code span is no link
    paths = [match["path"] for match in LINK.finditer(text)]
    assert not [path for path in paths if not (page.parent / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    assert not [
        (path, anchor)
        for path, anchor in targets
        if anchor not in anchors(page.parent / path if path else page)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """Paths in backquotes start at the root of the tree; a bare name is a file somewhere in it."""
    paths = re.findall(r"`((?!xla/)[\w./-]+\.(?:py|pyi|toml|lock|yaml))`", prose(page))
    names = {path.name for folder in FOLDERS for path in (ROOT / folder).rglob("*.py*")}
    assert not [
        path for path in paths if not (ROOT / path).exists() and ("/" in path or path not in names)
    ]


def test_the_page_of_opcodes_is_up_to_date(environment: dict[str, str]) -> None:
    """To repair: `make docs`.  A page registers more ops in this process."""
    page = run_in_shell("hlo-indexing ops --format markdown", environment)
    assert (ROOT / "docs" / "coverage.md").read_text() == page


def test_limits_of_the_architecture_page_are_those_of_the_code() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Budgets\n")[2]
    rows = [line.split("|")[2:4] for line in table.splitlines() if line.startswith("|")][2:]
    files = [
        path for package in ("indexing", "simplifier") for path in ROOT.glob(f"{package}/**/*.py")
    ]
    modules = {
        ".".join(parts[-length:]): ".".join(parts)
        for length in (1, 2)
        for parts in (file.relative_to(ROOT).with_suffix("").parts for file in files)
    }
    for values, names in rows:
        numbers = re.findall(r"(\d[\d,]*)(?:\^(\d+))?", values)
        constants = re.findall(r"`([\w.]+)\.(\w+)`", names)
        assert constants
        for (module, constant), (base, power) in zip(constants, numbers, strict=False):
            limit = getattr(import_module(modules[module]), constant)
            assert limit == int(base.replace(",", "")) ** int(power or 1), constant


def test_the_page_of_laws_is_up_to_date() -> None:
    """To repair: `make docs`."""
    assert (ROOT / "docs" / "laws.md").read_text() == laws_page.page()


def make_commands(page: Path) -> Iterator[str]:
    for _, text in blocks(page, "sh"):
        yield from (line.split()[1] for line in text.splitlines() if line.startswith("make "))


def test_documented_make_targets_exist() -> None:
    """`make` reports unknown targets."""
    targets = sorted({target for page in PAGES for target in make_commands(page)})
    run = subprocess.run(
        ["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_the_demo_answers_for_every_fusion(environment: dict[str, str]) -> None:
    dry = subprocess.run(
        ["make", "--dry-run", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    command = re.search(r"hlo-indexing maps (\S+) .*", dry.stdout)
    assert command is not None
    run = subprocess.run(
        command[0],
        shell=True,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    headers = [line for line in run.stdout.splitlines() if not line.startswith(" ")]
    assert len(headers) == (ROOT / command[1]).read_text().count(" fusion(")
    assert "unknown" not in run.stdout


def test_fragments_of_the_changelog_are_short() -> None:
    """Each has at most four sentences, as `changelog.d/README.md` asks."""
    texts = {path.name: re.sub(r"`[^`]*`", "x", path.read_text()) for path in FRAGMENTS}
    assert not [name for name, text in texts.items() if len(re.findall(r"\.(?=\s)", text)) > 4]
