"""Stages of a log of passes: the sections that ``IR Dump Before`` begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hlo.text.source import Source
from indexing.kernels.ir import MlirModule
from indexing.kernels.reader import read_module

_HEADER = re.compile(
    r"^// -----// IR Dump Before [\w:<>]+(?:: (?P<option>.*?))?"
    r" \('(?P<op>[\w.]+)' operation(?:: @(?P<symbol>[^)]*))?\) //----- //[ \t]*$",
    re.MULTILINE,
)


@dataclass(frozen=True, eq=False, slots=True)
class KernelStage:
    """The text of a kernel's module before a pass.

    Attributes:
        before: the option of the pass that runs next, such as ``xla-flatten-tensors``; empty for
            a file with one module.
        symbol: the function that the pass will change; empty if it is the module.
        start: the offset of the module's text in the source.
    """

    before: str
    symbol: str
    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The text of the module."""
        return self.source.text[self.start : self.end]

    def read(self) -> MlirModule:
        """Return the module.

        Raises:
            HloError: the text is no module, with the location in the file.
        """
        return read_module(self.source, self.start, self.end)


def stages(source: Source) -> list[KernelStage]:
    """Return the stages of a log, or the one of a file that has a module only.

    >>> text = '''any(canonicalize)
    ...
    ... // -----// IR Dump Before CSEPass: cse ('builtin.module' operation) //----- //
    ... module {
    ... }
    ... '''
    >>> [(stage.before, stage.read().functions) for stage in stages(Source(text))]
    [('cse', {})]
    """
    sections = list(_sections(source))
    return sections or [KernelStage("", "", source, 0, len(source.text))]


def _sections(source: Source) -> Iterator[KernelStage]:
    headers = list(_HEADER.finditer(source.text))
    for number, header in enumerate(headers):
        last = number + 1 == len(headers)
        end = len(source.text) if last else headers[number + 1].start()
        option = re.sub(r"\{.*", "", header["option"] or "", flags=re.DOTALL)
        yield KernelStage(option, header["symbol"] or "", source, header.end(), end)
