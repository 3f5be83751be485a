"""Parser of HLO text to modules, independent of the registered ops.

A recursive descent without a separate lexer: each terminal is one pattern, matched at a position.
Names are resolved during parsing, since operands and computations are defined before their uses.

The grammar is that of XLA's parser (``xla/hlo/parser/hlo_parser.cc``) with two extensions: several
instructions without an enclosing computation, and attributes in any order and of any name.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from hlo.arguments import checked
from hlo.formats.module_reader import ModuleReader
from hlo.formats.outline import OutlineStore, WrongOutline, outline_of
from hlo.formats.pasted import blank_surroundings
from hlo.formats.recognition import other_format
from hlo.modules.infer import with_shapes
from hlo.modules.module import Module
from hlo.shapes.shape import AnyShape
from hlo.text.lexer import END, TRUNCATED
from hlo.text.source import HloError, Source


@checked
def parse(text: str, filename: str = "<string>", *, lazy: bool = False) -> Module:
    """Parse the text of one module.

    Args:
        text: HLO text: a module, computations, or instructions. Lines ``# ...`` before them, and
            the lines and prefixes of a log around a module, are skipped.
        filename: name of the file in errors.
        lazy: check the text of most computations, and make their instructions on first use.
    Raises:
        HloError: a syntax error, an undefined or duplicate name, or a text in another format.

    >>> module = parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
    >>> module.entry.root.opcode, [operand.name for operand in module.entry.root.operands]
    ('negate', ['p'])

    A single instruction is a valid text. Its undefined operands become parameters:

    >>> parse("f32[3,2] transpose(f32[2,3] p), dimensions={1,0}").entry.parameters
    (<parameter 'p' of 'entry'>,)

    Source: XLA ``xla/hlo/parser/hlo_parser.cc``.
    """
    return _parse_module(Source(blank_surroundings(text), filename), lazy, None)


def restored_module(source: Source, shapes: Sequence[AnyShape | None] | None) -> Module:
    """Return the module of a text that has been parsed before, as a pickle stores it.

    Args:
        source: the text.
        shapes: the declared shape of each instruction if they are not those of the text.
    """
    module = _parse_module(source, True, None)
    if shapes is None:
        return module
    return with_shapes(module, dict(zip(module.instructions, shapes, strict=True)))


def _outlined_module(source: Source, outlines: OutlineStore) -> Module | None:
    """Return a module whose outline is stored; None if there is none, or a wrong one."""
    outline = outlines.find(source.text)
    if outline is None:
        return None
    with suppress(WrongOutline, HloError), _pause_collector():
        return ModuleReader(source, True, outline).module()
    return None


def _parse_module(source: Source, lazy: bool, outlines: OutlineStore | None) -> Module:
    if outlines is not None and (module := _outlined_module(source, outlines)) is not None:
        return module
    reader = ModuleReader(source, lazy)
    try:
        with _pause_collector():
            module = reader.module()
    except HloError as error:
        if other := other_format(source):
            raise other from None
        if not error.help and _may_be_cut_off(source.text, error.span.start):
            error.help = TRUNCATED
        raise
    if outlines is not None:
        outlines.keep(source.text, outline_of(reader.places))
    return module


def _may_be_cut_off(text: str, position: int) -> bool:
    """Return True for an error in the last line of a module that does not end with a brace.

    >>> _may_be_cut_off("ENTRY e {\\n a = f32[2] bitc", 22), _may_be_cut_off("ENTRY e { a }", 10)
    (True, False)
    """
    end = text.rstrip()
    is_module = "ENTRY" in text or "HloModule" in text
    return is_module and "\n" not in end[position:] and not end.endswith("}")


@contextmanager
def _pause_collector() -> Iterator[None]:
    """Disable cyclic garbage collection, which would repeatedly traverse the growing module."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@checked
def parse_all(text: str, filename: str = "<string>", *, lazy: bool = False) -> list[Module]:
    """Parse the modules of a text that separates them by lines ``// -----``; see `parse`.

    Lines in errors and spans count from the beginning of the whole text.

    Raises:
        HloError: as `parse`, for the first invalid module.
    Source: MLIR ``mlir-opt``, option ``-split-input-file``, for the separator.

    >>> [module.name for module in parse_all("HloModule a ENTRY e { p = f32[] parameter(0) }"
    ...     "\\n// -----\\nHloModule b ENTRY e { p = f32[] parameter(0) }")]
    ['a', 'b']
    """
    return parse_outlined(text, filename, lazy, None)


def parse_outlined(
    text: str, filename: str, lazy: bool, outlines: OutlineStore | None
) -> list[Module]:
    """Parse the modules of a text as `parse_all` does, with a store of outlines.

    A module whose outline is stored is parsed lazily; the outlines of all others are stored.
    """
    if outlines is not None:  # a text with an outline has no separator, and nothing around it
        whole = _outlined_module(Source(text, filename), outlines)
        if whole is not None:
            return [whole]
    return [
        _parse_module(Source(blank_surroundings(part), filename), lazy, outlines)
        for part in _parts(text)
    ]


def _parts(text: str) -> Iterator[str]:
    """Yield each part between ``// -----`` lines, padded by line breaks to keep line numbers."""
    if "// -----" not in text:
        yield text
        return
    lines_before = 0
    for part in re.split(r"^[ \t]*// -----[^\n]*", text, flags=re.MULTILINE):
        if not END.match(part) or part == text:
            yield "\n" * lines_before + part
        lines_before += part.count("\n")
