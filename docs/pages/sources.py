"""Pages, notebooks and examples as the site has them: other places, links that follow.

Pages of ``docs`` move to the top of the site.  A link to a page shows the title of the page if its
text is only a path; a link to a folder becomes its text; any other file is copied, for download.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
MOVED: Final = {
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples.md",
    "notebooks/README.md": "course.md",
}
"""Pages outside of ``docs``."""

_LINK: Final = re.compile(
    r"\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<path>(?!https?:)[^)\s]+)\)"
)
_FENCED: Final = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r'^\* <a id="[\w-]+"></a>\*\*([\w -]+)\*\*: (.)', re.MULTILINE)
_ROW: Final = re.compile(r'^\| <a id="([\w-]+)"></a>([\w -]+?) \|', re.MULTILINE)
_NAMED_PAGE: Final = re.compile(r"`(docs/\w+\.md)`")


def pages() -> dict[str, str]:
    """Return the place on the site of each file that becomes a page.

    >>> pages()["docs/tiling.md"], pages()["README.md"]
    ('tiling.md', 'overview.md')
    """
    texts = [
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/errors/*.md"),
        *ROOT.glob("notebooks/*.ipynb"),
    ]
    paths = [path.relative_to(ROOT).as_posix() for path in sorted(texts)]
    own = {path: path.removeprefix("docs/") for path in paths}
    return own | MOVED | {"docs/errors/index.md": "errors/index.md"}


def write(target: Path) -> None:
    """Write all pages, and the files that they link, below `target`."""
    for path, place in pages().items():
        if not (ROOT / path).exists():  # generated
            continue
        file = target / place
        file.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / path).read_text(encoding="utf-8")
        converted = notebook if path.endswith(".ipynb") else markdown
        file.write_text(converted(text, path, _copier(target)), encoding="utf-8")


def _copier(target: Path) -> Callable[[str], None]:
    def copy(path: str) -> None:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target / path)

    return copy


def notebook(text: str, path: str, copy: Callable[[str], None] = lambda _: None) -> str:
    """Return a notebook whose prose links the pages that it names."""
    content = json.loads(text)
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            prose = _NAMED_PAGE.sub(r"[](../\1)", "".join(cell["source"]))
            cell["source"] = markdown(prose, path, copy).splitlines(keepends=True)
    return json.dumps(content)


def markdown(text: str, path: str, copy: Callable[[str], None] = lambda _: None) -> str:
    """Return the text of a page on the site.

    Args:
        text: Markdown as GitHub shows it.
        path: the place of the file in the repository.
        copy: called with the path of each linked file that is not a page.

    >>> print(markdown("[docs/tiling.md](docs/tiling.md#sizes), [tests](tests)", "README.md"))
    [](tiling.md#sizes), tests
    >>> print(markdown("`sort[8](x)`", "docs/equivalence.md"))
    `sort[8](x)`
    """
    if path == "docs/glossary.md":  # entries are headings: links, search and contents find them
        text = _ENTRY.sub(lambda entry: f"\n## {entry[1]}\n\n{entry[2].upper()}", text)
        text = _ROW.sub(lambda row: f"| [{row[2]}]{{#{row[1]}}} |", text)
    places = pages()

    def replace_link(match: re.Match[str]) -> str:
        file, mark, anchor = match["path"].partition("#")
        label = match["text"]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        if not (file and (ROOT / target).exists()):  # an anchor, or code such as `a[i](x)`
            return match[0]
        if target == "docs/errors":  # its index is generated
            target = f"{target}/index.md"
        elif (ROOT / target).is_dir():
            return label
        if target in places:
            label = "" if label.endswith((".md", ".ipynb")) else label
        elif target.endswith(".md"):  # a page for readers of the repository
            return label
        else:
            copy(target)
        here = posixpath.dirname(places.get(path, path))
        place = posixpath.relpath(places.get(target, target), here or ".")
        return f"[{label}]({place}{mark}{anchor})"

    parts, end = [], 0
    for block in _FENCED.finditer(text):
        parts += [_LINK.sub(replace_link, text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, _LINK.sub(replace_link, text[end:])])
