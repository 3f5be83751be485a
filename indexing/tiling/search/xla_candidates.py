"""Reader of the tilings that XLA's cost model for GPUs prefers, as XLA dumps them.

XLA appends the best tilings of each fusion to the file that is named by
``--xla_gpu_dump_cost_model_top_k_candidates_to``, in the order of their estimated run time.  At log
level 2 it also logs each candidate, after the root of the fusion in brackets.

>>> (dump,) = parse_candidates('''
... === Cost model top-1 candidates for: add.1 = f32[64]{0} add(p0, p1) ===
... Candidate #0: block_config: {output_tiles { sizes: 32 } num_warps: 2}, EstimateRunTimeData{
...  flops: 64
...  bytes_read: 512
...  bytes_written: 256
...  read_time: 1.5ns
...  write_time: 750ps
...  compute_time: 2ns
...  exec_time: 2.25us
... }
... ''')
>>> dump.root_name, dump.candidates[0].output_tiles, dump.candidates[0].exec_time
('add.1', ((32,),), 2.25e-06)

Source: XLA ``xla/service/gpu/model/gpu_indexing_performance_model.cc``,
``DumpAndLogTopKCandidates``; ``gpu_performance_model_base.h``, ``EstimateRunTimeData``;
``xla/codegen/xtile/xtile_config.proto``, ``BlockLevelFusionConfig``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hlo.arguments import checked
from hlo.text.lexer import skip, syntax_error, token
from hlo.text.source import HloError, Source, Span

_HEADER: Final = re.compile(r"^=== Cost model top-(\d+) candidates for: (.*) ===[ \t]*$", re.M)
_CANDIDATE: Final = re.compile(r"Candidate #(\d+):[ \t]*")
_ROOT_NAME: Final = re.compile(r"(?:ROOT\s+)?%?([^\s=]+)\s*=")
_DEBUG_PREFIX: Final = token(r"goo\.gle/\w+")  # protobuf marks text that is meant for people
_FIELD: Final = token(r"([A-Za-z_]\w*)\s*(?::|(?=\{))")
_VALUE: Final = token(r"([^\s{}\[\],;]+)[,;]?")
_MAX_DEPTH: Final = 8
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|us|ns|ps|m|s)")
# fmt: off
_SECONDS: Final = {
    "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12,
}
# fmt: on

_COUNTS: Final = ("flops", "bytes_read", "bytes_written")
_TIMES: Final = ("read_time", "write_time", "compute_time", "exec_time")


@dataclass(frozen=True, slots=True)
class XlaCandidate:
    """One tiling, with the estimates of XLA's cost model.

    Attributes:
        number: position in the order of the estimated run time, from 0.
        output_tiles: the tile sizes of each root of the fusion.
        config: the other parameters of the kernel by name, such as ``num_warps``.
        flops: number of floating-point operations.
        bytes_read, bytes_written: bytes that all blocks together read and write.
        read_time, write_time, compute_time, exec_time: estimates in seconds.

    >>> from indexing import XlaCandidate
    >>> tiling = XlaCandidate(0, ((2, 8),), (), 1024, 640, 256, 1e-6, 1e-6, 1e-6, 2e-6)
    >>> tiling.output_tiles, tiling.bytes_read, tiling.exec_time
    (((2, 8),), 640, 2e-06)
    """

    number: int
    output_tiles: tuple[tuple[int, ...], ...]
    config: tuple[tuple[str, str], ...]
    flops: int
    bytes_read: int
    bytes_written: int
    read_time: float
    write_time: float
    compute_time: float
    exec_time: float


@dataclass(frozen=True, slots=True)
class XlaCandidates:
    """The best tilings of one fusion, in the order of their estimated run time.

    Attributes:
        root: the first root of the fusion, as XLA printed it.
        candidates: the tilings, best first.

    >>> from indexing import XlaCandidates
    >>> XlaCandidates("ROOT %add.1 = f32[4]{0} add(p0, p1)", ()).root_name
    'add.1'
    """

    root: str
    candidates: tuple[XlaCandidate, ...]

    @property
    def root_name(self) -> str:
        """The name of the root; empty if the text has none.

        >>> XlaCandidates("ROOT %add.1 = f32[4]{0} add(p0, p1)", ()).root_name
        'add.1'
        """
        name = _ROOT_NAME.match(self.root)
        return name[1] if name else ""


@checked
def parse_candidates(text: str, filename: str = "<string>") -> tuple[XlaCandidates, ...]:
    """Return the candidates of each fusion in a dump or log of XLA's cost model.

    Other lines of a log are skipped.  Fields of the kernel's parameters that XLA leaves out have
    their default values.

    Args:
        text: the dump, or a log at level 2.
        filename: name of the file for error messages.
    Raises:
        HloError: no candidate, a candidate that is not printed in this form, or fewer candidates
            than the heading announces; with line and column.

    >>> parse_candidates("nothing")
    Traceback (most recent call last):
    ...
    hlo.text.source.HloError: error[candidates]: no candidates of XLA's cost model
     --> <string>:1:1
      |
    1 | nothing
      | ^^^^^^^ expected `=== Cost model top-K candidates for: ROOT ===`
      = help: dump them with --xla_gpu_dump_cost_model_top_k_candidates_to=FILE
    """
    source = Source(text, filename)
    dumps = [
        XlaCandidates(heading.root, tuple(_candidates(source, heading, marks)))
        for heading, marks in _sections(source)
    ]
    if not dumps:
        raise HloError(
            "no candidates of XLA's cost model",
            source.span(0, len(text.split("\n", 1)[0])),
            "candidates",
            "expected `=== Cost model top-K candidates for: ROOT ===`",
            help="dump them with --xla_gpu_dump_cost_model_top_k_candidates_to=FILE",
        )
    return tuple(dumps)


@dataclass(frozen=True, slots=True)
class _Heading:
    """The start of a section; a log has no announced count."""

    root: str
    span: Span
    count: int | None = None


def _sections(source: Source) -> Iterator[tuple[_Heading, list[re.Match[str]]]]:
    """Yield each heading with its candidates; in a log, each candidate repeats the root."""
    heading: _Heading | None = None
    own: list[re.Match[str]] = []
    marks = [*_HEADER.finditer(source.text), *_CANDIDATE.finditer(source.text)]
    for mark in sorted(marks, key=re.Match.start):
        if mark.re is _HEADER:
            start = _Heading(mark[2], source.span(*mark.span()), int(mark[1]))
        else:
            root = _root_before(source.text, mark.start())
            if root is None:
                continue  # other text
            if not root and heading is None:
                span = source.span(*mark.span())
                raise HloError("a candidate without the heading of its fusion", span, "candidates")
            if not root or (heading and heading.root == root and int(mark[1])):
                own.append(mark)
                continue
            start = _Heading(root, source.span(*mark.span()))
        if heading:
            yield heading, own
        heading, own = start, [] if mark.re is _HEADER else [mark]
    if heading:
        yield heading, own


def _root_before(text: str, position: int) -> str | None:
    """Return the root that a log prints in brackets before a candidate.

    It is empty if the candidate starts its line, and `None` if the line is other text.
    """
    before = text[text.rfind("\n", 0, position) + 1 : position]
    if not before.strip():
        return ""
    start = before.find("] [") + 3 if "] [" in before else 1
    closed = before.endswith("] ") and before[start - 1] == "["
    return before[start:-2] if closed else None


def _candidates(
    source: Source, heading: _Heading, marks: list[re.Match[str]]
) -> Iterator[XlaCandidate]:
    if heading.count is not None and heading.count != len(marks):
        message = f"{len(marks)} of {heading.count} announced candidates"
        raise HloError(message, heading.span, "candidates", "the dump is incomplete")
    for number, mark in enumerate(marks):
        if int(mark[1]) != number:
            span = source.span(mark.start(1) - 1, mark.end(1))
            raise HloError(f"expected candidate #{number}, found #{mark[1]}", span, "candidates")
        yield _candidate(_TextFormat(source, mark.end()), number)


def _candidate(reader: _TextFormat, number: int) -> XlaCandidate:
    reader.expect("block_config:")
    config = reader.message()
    reader.expect(",")
    reader.expect("EstimateRunTimeData")
    opening = reader.position
    estimate = {f.name: f for f in reader.message()}
    for name in (*_COUNTS, *_TIMES):
        if name not in estimate:
            span = reader.source.span(opening, opening + 1)
            raise HloError(f"no `{name}` in the estimate", span, "candidates")
    tiles = [f.fields for f in config if f.name == "output_tiles"]
    counts = [estimate[name].integer() for name in _COUNTS]
    times = [estimate[name].seconds() for name in _TIMES]
    return XlaCandidate(
        number,
        tuple([tuple([f.integer() for f in tile if f.name == "sizes"]) for tile in tiles]),
        tuple([(f.name, f.value) for f in config if f.value]),
        *counts,
        *times,
    )


@dataclass(frozen=True, slots=True)
class _FieldText:
    """A field of a message: a scalar with its place, or the fields of an inner message."""

    name: str
    span: Span
    fields: tuple[_FieldText, ...] = ()

    @property
    def value(self) -> str:
        """The scalar; empty for an inner message."""
        return "" if self.span.text == "{" else self.span.text

    def integer(self) -> int:
        if not re.fullmatch(r"-?\d+", self.value, re.ASCII):
            raise HloError(f"`{self.name}`: expected an integer", self.span, "candidates")
        return int(self.value)

    def seconds(self) -> float:
        """Return a duration in seconds, as ``absl::FormatDuration`` prints it."""
        digits = self.value.removeprefix("-")
        sign = -1.0 if digits != self.value else 1.0
        if digits in ("0", "inf"):
            return sign * float(digits)
        parts = _DURATION.findall(digits)
        if not parts or "".join(number + unit for number, unit in parts) != digits:
            help = "for example 1.5us"  # noqa: A001 - the word of `HloError`
            message = f"`{self.name}`: expected a duration"
            raise HloError(message, self.span, "candidates", help=help)
        return sign * sum(float(number) * _SECONDS[unit] for number, unit in parts)


class _TextFormat:
    """Text format of protocol buffers, from a position on."""

    __slots__ = ("position", "source")

    def __init__(self, source: Source, position: int) -> None:
        self.source, self.position = source, position

    def accept(self, text: str) -> bool:
        """Skip `text`, after white space, if it comes next."""
        start = skip(self.source.text, self.position)
        if self.source.text.startswith(text, start):
            self.position = start + len(text)
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise syntax_error(f"`{text}`", self.source, self.position)

    def message(self, depth: int = 0) -> tuple[_FieldText, ...]:
        """Return the fields of a message in braces."""
        self.expect("{")
        opened = self.source.span(self.position - 1, self.position)
        if depth > _MAX_DEPTH:
            raise HloError(f"messages nested deeper than {_MAX_DEPTH}", opened, "candidates")
        if prefix := _DEBUG_PREFIX.match(self.source.text, self.position):
            self.position = prefix.end()
        fields: list[_FieldText] = []
        while not self.accept("}"):
            name = _FIELD.match(self.source.text, self.position)
            if not name:
                raise syntax_error("a field or `}`", self.source, self.position)
            self.position = name.end()
            start = skip(self.source.text, self.position)
            if self.source.text.startswith("{", start):
                span = self.source.span(start, start + 1)
                fields.append(_FieldText(name[1], span, self.message(depth + 1)))
                _ = self.accept(",") or self.accept(";")
            elif self.accept("["):
                while not self.accept("]"):
                    fields.append(self.scalar(name[1]))
            else:
                fields.append(self.scalar(name[1]))
        return tuple(fields)

    def scalar(self, name: str) -> _FieldText:
        value = _VALUE.match(self.source.text, self.position)
        if not value:
            raise syntax_error(f"the value of `{name}`", self.source, self.position)
        self.position = value.end()
        return _FieldText(name, self.source.span(*value.span(1)))
