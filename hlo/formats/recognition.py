r"""Formats that are often given in place of HLO text, recognised by their beginning.

Recognition follows an error of the parser: it changes the message, never the language.

>>> from hlo.text.source import Source
>>> print(other_format(Source("digraph G {\n", "m.dot")))
error[format]: the text is a graph in DOT notation, not HLO
 --> m.dot:1:1
  |
1 | digraph G {
  | ^^^^^^^ expected HloModule, a computation or an instruction
  = help: pass the .txt file that --xla_dump_hlo_as_text writes beside it
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hlo.text.lexer import token
from hlo.text.source import HloError, Source

_JAX: Final = 'jax.jit(f).lower(x).as_text(dialect="hlo")'
_OF_DUMP: Final = "pass the HLO module: *_optimizations.txt of the same dump"
_RENDERED: Final = "pass the .txt file that --xla_dump_hlo_as_text writes beside it"
_LOCATIONS: Final = r"(?>#\w+ = [^\n]*\s*)*+"
_MLIR: Final = (
    r'module(?=\s*[@{]|\s+attributes\b)|func\.func\b|%[\w#:]+(?=(?:, ?%[\w#:]+)* = "?\w+\.\w)'
)


class TextFormat(NamedTuple):
    """A format of text.

    Attributes:
        name: the noun for the text, with its article.
        word: the pattern of the word to mark.
        repair: the help of the error.
        before, after: patterns of the text around the word.
    """

    name: str
    word: str
    repair: str
    before: str = ""
    after: str = ""

    def place(self, text: str) -> tuple[int, int] | None:
        """Return the start and the end of the word, or None for a text in another format."""
        match = token(f"{self.before}({self.word}){self.after}").match(text)
        return match.span(1) if match else None


class BinaryFormat(NamedTuple):
    """A format of bytes.

    Attributes:
        name: the predicate of the file.
        starts: the first bytes, one of them.
        repair: the help of the error.
        offset: the number of bytes before them.
    """

    name: str
    starts: tuple[bytes, ...]
    repair: str
    offset: int = 0


STABLEHLO: Final = TextFormat(
    "StableHLO",
    _MLIR,
    f"hlo.load and hlo-indexing read it from files; JAX prints HLO: {_JAX}",
    before=_LOCATIONS,
    after=r"(?=[\s\S]*?\b(?:stablehlo|mhlo|chlo|vhlo)\.)",
)
TEXT_FORMATS: Final = (
    STABLEHLO,
    TextFormat(
        "MLIR in another dialect than StableHLO",
        _MLIR,
        "pass the HLO module from which it was compiled, or StableHLO",
        before=_LOCATIONS,
    ),
    TextFormat("a jaxpr", r"\{ ?lambda\b", f"convert the function: {_JAX}"),
    TextFormat(
        "LLVM IR", r"; ModuleID\b|source_filename\b(?= = )|target (?:datalayout|triple)", _OF_DUMP
    ),
    TextFormat("PTX", r"\.version(?= \d)", _OF_DUMP),
    TextFormat("a graph in DOT notation", r"digraph\b", _RENDERED),
    TextFormat("HTML", r"(?i:<!DOCTYPE|<html\b)", _RENDERED),
    TextFormat(
        "a report of XLA's buffer assignment",
        r"BufferAssignment(?=:)|Total bytes used(?=:)|HloLiveRange\b|Memory Space(?=: )",
        _OF_DUMP,
    ),
    TextFormat("a list of XLA's debug options", r"xla_\w+(?=: )", _OF_DUMP),
    TextFormat(
        "a log",
        r"[IWEF]\d{4} \d\d:\d\d:\d\d",
        "dump the modules into files: XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'",
    ),
    TextFormat(
        "an indexing map",
        r"affine_map\b|KNOWN EMPTY\b"
        r"|\([\w\s,]*\)(?:\[[\w\s,]*\])?(?:\{[\w\s,]*\})?(?=\s*->\s*\()",
        "hlo-indexing simplify and indexing.parse_map read maps",
    ),
    TextFormat(
        "a string literal of Python",
        r"b?(?:'|\")",
        "write the string itself, without repr",
        after=r"\s*(?:HloModule|ENTRY)\b",
    ),
    TextFormat("JSON", r"[\[{]", "pass the HLO text itself", after=r"\s*[{\"]"),
)
"""Formats of text, in order: the first that matches is that of the text."""

BINARY_FORMATS: Final = (
    BinaryFormat("an object file", (b"\x7fELF",), "pass the HLO module of the same dump"),
    BinaryFormat("a ZIP archive", (b"PK\x03\x04",), "pass a file of the archive"),
    BinaryFormat("a tar archive", (b"ustar",), "pass a file of the archive", offset=257),
    BinaryFormat("an image", (b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), "pass the HLO module itself"),
    BinaryFormat("a PDF document", (b"%PDF-",), "pass the HLO module itself"),
    BinaryFormat("an array of NumPy", (b"\x93NUMPY",), "`run --inputs` reads arrays"),
)
"""Formats of files that are not text, and are not read."""
BYTECODE: Final = b"ML\xefR"
"""The first bytes of bytecode of MLIR."""


def other_format(source: Source) -> HloError | None:
    """Return the error for a text in a format of `TEXT_FORMATS`, or None."""
    for each in TEXT_FORMATS:
        if place := each.place(source.text):
            label = "expected HloModule, a computation or an instruction"
            message = f"the text is {each.name}, not HLO"
            return HloError(message, source.span(*place), "format", label, help=each.repair)
    return None


def binary_format(data: bytes | bytearray) -> BinaryFormat | None:
    """Return the format of bytes that are not text, if it is one of `BINARY_FORMATS`.

    >>> binary_format(b"PK\\x03\\x04").name
    'a ZIP archive'
    """
    start = bytes(data[:512])
    return next((f for f in BINARY_FORMATS if start.startswith(f.starts, f.offset)), None)
