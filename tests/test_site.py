"""The documentation site: complete, built without a warning, and readable offline."""

import doctest
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import click
import pytest

from docs.pages import commands, reference, related, sources
from indexing.cli import error_pages
from indexing.cli.group import COMMANDS, cli
from tests.test_docs import prose

ROOT = Path(__file__).parent.parent
STUBS = [ROOT / "hlo" / "__init__.pyi", *ROOT.glob("indexing/__init__.pyi")]
STUBS += sorted(ROOT.glob("indexing/*/__init__.pyi"))
EXPORT = re.compile(r"^from \S+ import \w+ as (\w+)$", re.MULTILINE)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_each_public_name_has_an_entry_in_the_reference(stub: Path) -> None:
    room = f"indexing.{stub.parent.name}"
    package = room if room in reference.WITH_OWN_NAMES else "indexing"
    package = "hlo" if stub.parent.name == "hlo" else package
    text = "\n".join(reference.pages().values())
    entries = set(re.findall(r"^\.\. auto(?:class|function|data):: (\S+)$", text, re.MULTILINE))
    names = EXPORT.findall(stub.read_text())
    assert names
    assert [name for name in names if f"{package}.{name}" not in entries] == []


def test_the_reference_has_the_names_of_the_guide_to_own_ops() -> None:
    guide = (ROOT / "docs" / "adding_an_op.md").read_text()
    imports = re.findall(r"^from ((?:hlo|indexing)\.ops\.\S+) import (.+)$", guide, re.MULTILINE)
    used = {
        getattr(import_module(module), name): name
        for module, names in imports
        for name in names.split(", ")
    }
    assert len(used) > 8
    own = [
        getattr(import_module(module), name)
        for module, names in reference.OWN_OPS.items()
        for name in names
    ]
    missing = [name for value, name in used.items() if value not in own]
    assert set(missing) <= {"Shape", "ElementRule"}  # a public name of hlo; an alias of the rules
    page = reference.pages()["own_ops.rst"]
    assert all(name in page for name in used.values() if name not in missing)


@pytest.mark.parametrize("module", [commands, reference, related, sources])
def test_examples_in_docstrings_run(module: ModuleType) -> None:
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(module, optionflags=options).failed == 0


def test_no_two_pages_differ_in_case_only() -> None:
    """Some file systems ignore it."""
    names = [*reference.pages(), *sources.pages().values()]
    assert len({name.casefold() for name in names}) == len(names)


def test_each_command_has_a_page_with_its_options() -> None:
    pages = commands.pages()
    assert pages.keys() == {"index.md", *(f"{name}.md" for name in COMMANDS)}
    context = click.Context(cli, info_name="hlo-indexing")
    for name in COMMANDS:
        options = re.findall(r"^`{4}\{option\} (.*)$", pages[f"{name}.md"], re.MULTILINE)
        spelled = {word for option in options for word in re.findall(r"--?[a-zA-Z][\w-]*", option)}
        command = cli.get_command(context, name)
        assert command is not None
        shown = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        assert [p.opts for p in shown if not spelled >= set(p.opts)] == []


def test_each_page_is_in_one_list_of_contents() -> None:
    """To repair: add the page to a `toctree` of `docs/index.md`."""
    text = (ROOT / "docs" / "index.md").read_text()
    lines = [line for block in TOCTREE.findall(text) for line in block.splitlines()]
    entries = [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and line[0] != ":"]
    places = [place.rpartition(".")[0] for place in sources.pages().values()]
    top = [place for place in places if "/" not in place and place != "index"]
    generated = {"reference/index", "commands/index", "errors/index", "notebooks/*"}
    assert sorted(entries) == sorted({*top, *generated})


def test_links_of_moved_pages_follow(tmp_path: Path) -> None:
    sources.write(tmp_path)
    pages = sorted(tmp_path.rglob("*.md"))
    assert len(pages) > 60
    missing = [
        (page.name, path)
        for page in pages
        for path in re.findall(r"\[[^\]]*\]\((?!https?:|#)([\w./-]+\.\w+)", prose(page))
        if not (page.parent / path).exists() and not path.endswith("errors/index.md")
    ]
    assert missing == []


class Links(HTMLParser):
    """Anchors of a page, and the addresses that it names: links, and files that it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {name for name in (values.get("id"), values.get("name")) if name}
        if tag == "a" and (target := values.get("href")):
            self.links.add(target)
        elif target := values.get("src") or (values.get("href") if tag == "link" else None):
            self.loaded.add(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Links]:
    """The pages of the site, built as `make site` builds them."""
    if find_spec("sphinx") is None or find_spec("furo") is None:
        pytest.skip("needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    texts, target = folder / "sources", folder / "html"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for command in (
        ["docs.pages", str(texts)],
        ["sphinx", "-q", "-W", "--keep-going", "-c", "docs", str(texts), str(target)],
    ):
        run = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, "")
    return {page: Links(page) for page in target.rglob("*.html")}


@pytest.mark.slow
def test_links_of_the_site_lead_to_anchors(site: dict[Path, Links]) -> None:
    missing = []
    for page, own in site.items():
        for link in own.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchors = site[target].anchors if target in site else None
            if not target.exists() or (
                parts.fragment and anchors is not None and unquote(parts.fragment) not in anchors
            ):
                missing.append((page.name, link))
    assert missing == []


@pytest.mark.slow
def test_the_site_loads_nothing_from_other_hosts(site: dict[Path, Links]) -> None:
    loaded = {link for own in site.values() for link in own.loaded}
    assert [link for link in loaded if urlsplit(link).scheme not in ("", "data")] == []
    (root,) = {page.parent for page in site if page.name == "search.html"}
    styles = "".join(style.read_text() for style in root.rglob("*.css"))
    assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]*", styles)


@pytest.mark.slow
def test_every_page_is_in_the_search_index(site: dict[Path, Links]) -> None:
    (root,) = {page.parent for page in site if page.name == "search.html"}
    index = (root / "searchindex.js").read_text()
    assert [code for code in error_pages.codes() if f'"errors/{code}"' not in index] == []
    for name in ("IndexingMap", "Undecided", "Box"):
        assert f'"reference/indexing/{name}"' in index
