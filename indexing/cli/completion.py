"""Completion at the shell: opcodes, files, and names in the files that the command line has.

Names are read by a text scan, which neither parses the file nor imports ops.  A file that cannot be
read, or that is no text, has no names: nothing else is printed while a line is being typed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

MAX_BYTES: Final = 64 << 20
"""Limit on the size of a file whose names are completed."""

_COMPUTATION: Final = re.compile(
    r"^(?:ENTRY[ \t]+)?%?([A-Za-z_][\w.\-]*)[ \t]*(?:\([^\n]*)?\{", re.ASCII | re.MULTILINE
)
_NAME: Final = re.compile(
    r"(?:(?<=[ \t{])|^)%?([A-Za-z_][\w.\-]*)[ \t]+=[ \t]+(?=[(a-z])", re.ASCII | re.MULTILINE
)


class FilePath(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """The path of a file, or ``-``."""

    name = "file"

    def check_path(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        """Return the path; reject text that names no file."""
        path = str(value)
        if not path:  # such as an unset variable of the shell
            self.fail("expected the path of a file, got an empty text", param, context)
        if "\0" in path:
            self.fail(f"expected the path of a file, got {path!r} with a NUL", param, context)
        return path

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[Any]]:
        return [CompletionItem(incomplete, type="file")]


def complete_names(
    names: Iterable[str], incomplete: str, prefix: str = ""
) -> list[CompletionItem[Any]]:
    """Return the names that begin with `incomplete`, each once; `prefix` precedes them."""
    unique = dict.fromkeys(name for name in names if name.startswith(incomplete))
    return [CompletionItem(prefix + name) for name in unique]


def complete_opcodes(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Return the opcodes of HLO that begin with `incomplete`."""
    from hlo.ops.opcodes import OPCODES

    return complete_names(sorted(OPCODES), incomplete)


def complete_codes(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Return the error codes and the terms of the glossary that begin with `incomplete`."""
    from indexing.cli.error_pages import codes
    from indexing.cli.glossary_terms import terms

    words = dict.fromkeys([*codes(), *(term.replace(" ", "-") for term in terms())])
    return complete_names(words, incomplete)


def complete_instructions(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Return the NAME or COMPUTATION/NAME of instructions in the files of the command line."""
    names = full_names if "/" in incomplete else instruction_names
    percent = "%" if incomplete.startswith("%") else ""
    return complete_names(_in_files(context, names), incomplete.removeprefix("%"), percent)


def complete_operands(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[Any]]:
    """Return the operands of the selected instructions, by default of the ROOT of ENTRY.

    With ``--to parameters``, they are the parameters of their computations.  If none begins so,
    all instructions are offered.
    """
    selected = tuple(context.params.get("names") or ())
    names = _parameter_names if context.params.get("target") == "parameters" else operand_names
    percent = "%" if incomplete.startswith("%") else ""
    names_in_files = _in_files(context, lambda text: names(text, selected))
    items = complete_names(names_in_files, incomplete.removeprefix("%"), percent)
    return items or complete_instructions(context, parameter, incomplete)


def operand_names(text: str, selected: Sequence[str] = ()) -> Iterator[str]:
    """Yield the names of the operands of instructions.

    Args:
        selected: NAME, COMPUTATION/NAME or globs of them; by default, the root of ENTRY.

    >>> body = "p = f32[2] parameter(0)\\n  ROOT r = (f32[2], f32[2]) tuple(%p, f32[2] %q)"
    >>> list(operand_names(f"ENTRY e {{\\n  {body}\\n}}"))
    ['p', 'q']
    """
    for match in _instructions(text, selected):
        yield from _split_operands(text, match.end())


def _parameter_names(text: str, selected: Sequence[str]) -> Iterator[str]:
    """Yield the names of the parameters of the computations of instructions."""
    heads = list(_COMPUTATION.finditer(text))
    ends = [*[head.start() for head in heads[1:]], len(text)]
    for match in _instructions(text, selected):
        for head, end in zip(heads, ends, strict=True):
            if head.start() <= match.start() < end:
                yield from (each[1] for each in _PARAMETER.finditer(text, head.end() - 1, end))


def _instructions(text: str, selected: Sequence[str]) -> Iterator[re.Match[str]]:
    """Yield the matches of the selected instructions, up to the parenthesis of the operands."""
    entry = next((h.start() for h in _COMPUTATION.finditer(text) if h[0].startswith("ENTRY")), 0)
    patterns = [name.removeprefix("%").rpartition("/")[2] for name in selected]
    for match in _INSTRUCTION.finditer(text):
        if patterns:
            if any(fnmatchcase(match["name"], pattern) for pattern in patterns):
                yield match
        elif match["root"] and match.start() > entry:
            yield match


def _split_operands(text: str, start: int) -> Iterator[str]:
    """Yield the last word of each operand in the parentheses that open before `start`."""
    depth, word = 1, ""
    for character in text[start : start + MAX_OPERANDS]:
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 or (depth == 1 and character == ","):
            name = _COMMENT.sub("", word).split()
            if name and re.fullmatch(r"%?[A-Za-z_][\w.\-]*", name[-1], re.ASCII):
                yield name[-1].removeprefix("%")
            word = ""
            if depth == 0:
                return
        else:
            word += character


MAX_OPERANDS: Final = 1 << 16
"""Limit on the characters of the operands of an instruction."""

_COMMENT: Final = re.compile(r"/\*.*?\*/")
_INSTRUCTION: Final = re.compile(
    r"^[ \t]*(?P<root>ROOT[ \t]+)?%?(?P<name>[A-Za-z_][\w.\-]*)[ \t]+=[ \t]+"
    r"(?:\([^\n]*?\)|[^ \n]+)[ \t]+[a-z][\w\-]*\(",
    re.ASCII | re.MULTILINE,
)
_PARAMETER: Final = re.compile(
    r"^[ \t]*(?:ROOT[ \t]+)?%?([A-Za-z_][\w.\-]*)[ \t]+=[^\n]*?[ \t]parameter\(\d+\)",
    re.ASCII | re.MULTILINE,
)


def instruction_names(text: str) -> Iterator[str]:
    """Yield the names of the instructions of a text.

    >>> list(instruction_names("e {\\n  %p = (s32[], f32[2]) parameter(0)\\n  ROOT n = f32[] f(x)"))
    ['p', 'n']
    """
    return (match[1] for match in _NAME.finditer(text))


def full_names(text: str) -> Iterator[str]:
    """Yield COMPUTATION/NAME of the instructions of a text.

    >>> list(full_names("%f (p: f32[2]) -> f32[2] {\\n  p = f32[2] parameter(0)\\n}\\n"))
    ['f/p']
    """
    heads = list(_COMPUTATION.finditer(text))
    ends = [*[head.start() for head in heads[1:]], len(text)]
    for head, end in zip(heads, ends, strict=True):
        for match in _NAME.finditer(text, head.end() - 1, end):
            yield f"{head[1]}/{match[1]}"


def _in_files(context: click.Context, names: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yield the names of the files of the command line before the cursor, or else after it."""
    given = [*_paths(context.params), *context.args]
    for path in filter(os.path.isfile, given or _words()):
        yield from names(_file_text(path))


def _paths(params: dict[str, Any]) -> Iterator[str]:
    yield from params.get("files") or ()
    if file := params.get("file"):
        yield file


def _words() -> list[str]:
    """Return the words of the command line."""
    from click.shell_completion import split_arg_string

    return split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]


def _file_text(path: str) -> str:
    """Return the text of a file; empty if it is none."""
    from hlo.formats.reading import read_bytes
    from hlo.text.source import HloError

    try:
        data = read_bytes(path, path, MAX_BYTES)
    except (OSError, HloError):
        return ""
    return "" if b"\0" in data[:4096] else data.decode(errors="replace")
