"""The source of an instruction: the program that it was made from, recorded in its metadata.

XLA prints the location beside each instruction, or once in tables at the head of the module:

>>> from hlo.formats.parser import parse
>>> module = parse('''HloModule m
... FileNames
... 1 "train.py"
... FunctionNames
... 1 "<module>"
... 2 "loss"
... FileLocations
... 1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=0 end_column=12}
... 2 {file_name_id=1 function_name_id=2 line=3 end_line=3 column=8 end_column=29}
... StackFrames
... 1 {file_location_id=1 parent_frame_id=1}
... 2 {file_location_id=2 parent_frame_id=2}
... ENTRY e {
...   p = f32[2] parameter(0), metadata={op_name="x" source_file="model.py" source_line=5}
...   ROOT n = f32[2] negate(p), metadata={op_name="jit(loss)/neg" stack_frame_id=2}
... }''')
>>> source = module.entry.root.source
>>> source.file, source.line, source.column, source.function, source.op_name
('train.py', 3, 8, 'loss', 'jit(loss)/neg')
>>> print(*source.frames, module.entry["p"].source, sep=chr(10))
train.py:3:8
train.py:7:0
model.py:5: x

Source: XLA ``xla/xla_data.proto``, ``OpMetadata``; ``xla/hlo/ir/hlo_module.cc``,
``PrintStackFrameIndex``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final, TypeAlias

from hlo.text.lexer import STRING, unescape
from hlo.text.syntax import AttributeText

Tables: TypeAlias = Mapping[str, Mapping[int, AttributeText]]

_FIELD: Final = re.compile(rf"(\w++)=({STRING}|[^\s{{}}\"',]++)|{STRING}", re.DOTALL)
FRAME_FIELDS: Final = ("file_location_id", "parent_frame_id")
LOCATION_FIELDS: Final = ("file_name_id", "function_name_id")
_NUMBER: Final = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A place in a program.

    Attributes:
        file: path of the file, as recorded.
        line, end_line: counted from 1; None if they are not recorded.
        column, end_column: as recorded: JAX counts from 0, and the end is exclusive.
        function: qualified name of the function; None if it is not recorded.

    >>> import hlo
    >>> frame = hlo.StackFrame("model.py", 12, 4, function="layer")
    >>> frame.file, frame.line, frame.function, frame.end_line
    ('model.py', 12, 'layer', None)
    """

    file: str
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    function: str | None = None

    def __str__(self) -> str:
        numbers = [self.line] if self.column is None else [self.line, self.column]
        return ":".join([self.file, *(str(n) for n in numbers if self.line is not None)])


@dataclass(frozen=True, slots=True)
class OpSource:
    """The operation and the place in a program from which an instruction was made.

    It is falsy if the metadata of the instruction has neither.

    Attributes:
        op_name: path of the operation, such as ``jit(f)/while/body/add``; empty if not recorded.
        frame: the innermost place; None if it is not recorded.

    >>> import hlo
    >>> p, n = hlo.parse('''ENTRY e {
    ...   p = f32[3] parameter(0)
    ...   ROOT n = f32[3] negate(p), metadata={op_name="f/neg" source_file="m.py" source_line=7}
    ... }''').entry.instructions
    >>> n.source.op_name, n.source.file, n.source.line
    ('f/neg', 'm.py', 7)
    >>> bool(p.source)
    False
    >>> n.source.column, n.source.function, n.source.stack_frame  # not recorded
    (None, None, None)
    """

    op_name: str = ""
    frame: StackFrame | None = None
    _number: int | None = field(default=None, repr=False, compare=False)
    _tables: Tables = field(default_factory=dict, repr=False, compare=False)

    @property
    def file(self) -> str | None:
        """Path of the file, as recorded; None if it is not."""
        return self.frame.file if self.frame else None

    @property
    def line(self) -> int | None:
        """Number of the line, from 1; None if it is not recorded."""
        return self.frame.line if self.frame else None

    @property
    def column(self) -> int | None:
        """Column of the first character, as recorded: JAX counts from 0."""
        return self.frame.column if self.frame else None

    @property
    def function(self) -> str | None:
        """Qualified name of the function; None if it is not recorded."""
        return self.frame.function if self.frame else None

    @property
    def stack_frame(self) -> int | None:
        """Number of the innermost place in the tables of the module; None if it is not there."""
        return self._number

    @property
    def frames(self) -> tuple[StackFrame, ...]:
        """The innermost place and its callers, as far as they are recorded.

        >>> import hlo
        >>> root = hlo.parse('''HloModule m
        ... FileNames
        ... 1 "train.py"
        ... FunctionNames
        ... 1 "step"
        ... 2 "dense"
        ... FileLocations
        ... 1 {file_name_id=1 function_name_id=1 line=30}
        ... 2 {file_name_id=1 function_name_id=2 line=7}
        ... StackFrames
        ... 1 {file_location_id=1 parent_frame_id=1}
        ... 2 {file_location_id=2 parent_frame_id=2}
        ... ENTRY e { ROOT p = f32[3] parameter(0), metadata={stack_frame_id=2} }''').entry.root
        >>> [(frame.function, str(frame)) for frame in root.source.frames], root.source.stack_frame
        ([('dense', 'train.py:7'), ('step', 'train.py:30')], 2)
        """
        callers = list(_callers(self._number, self._tables))
        return tuple(callers) or ((self.frame,) if self.frame else ())

    def __bool__(self) -> bool:
        return bool(self.op_name or self.frame)

    def __str__(self) -> str:
        return ": ".join([str(part) for part in (self.frame, self.op_name) if part])


def op_source(metadata: AttributeText | None, tables: Tables) -> OpSource:
    """Return the source that metadata record, beside them or in the tables of their module."""
    if metadata is None:
        return OpSource()
    fields = _fields(metadata.text)
    number = _number(fields, "stack_frame_id")
    recorded = {key.removeprefix("source_"): value for key, value in fields.items()}
    frame = _frame(fields.get("source_file", ""), recorded)
    if frame is None:
        frame = next(_callers(number, tables), None)
    else:
        number = None  # its callers are not those of the frame in the tables
    return OpSource(fields.get("op_name", ""), frame, number, tables)


def op_name_in(metadata: AttributeText | None) -> str:
    """Return the ``op_name`` of metadata; empty if there is none.

    >>> op_name_in(AttributeText.of(r'''{op_type="op_name=" op_name="p[\\'k\\']"}'''))
    "p['k']"
    """
    return "" if metadata is None else _fields(metadata.text).get("op_name", "")


def _callers(number: int | None, tables: Tables) -> Iterator[StackFrame]:
    """Yield the stack frame with this number and its callers, without repetitions."""
    seen: set[int] = set()
    while number and number not in seen:
        seen.add(number)
        line, parent = _numbers_in(_entry_text(tables, "StackFrames", number), FRAME_FIELDS)
        location = _entry_text(tables, "FileLocations", line)
        file, function = _numbers_in(location, LOCATION_FIELDS)
        names = (
            _entry_text(tables, "FileNames", file),
            _entry_text(tables, "FunctionNames", function),
        )
        place = _place(location, *names)
        if place is None:
            return
        yield place
        number = (parent or 1) - 1  # XLA prints 1 for no parent


def _frame(file: str, fields: Mapping[str, str], function: str | None = None) -> StackFrame | None:
    """Return the place in a file; None if the name of the file is empty.

    Zeros are numbers that are not recorded, but a column with an end may be 0.
    """
    if not file:
        return None
    column, end = _number(fields, "column"), _number(fields, "end_column")
    return StackFrame(
        file,
        _number(fields, "line") or None,
        column if column or end else None,
        _number(fields, "end_line") or None,
        end or None,
        function,
    )


def _entry_text(tables: Tables, table: str, number: int | None) -> str:
    """Return the text of a line of a table; empty if the table lacks it."""
    line = None if number is None else tables.get(table, {}).get(number)
    return "" if line is None else line.text


# Many frames have the same callers, and many instructions the same frames.
@lru_cache(1 << 12)
def _numbers_in(text: str, keys: tuple[str, str]) -> tuple[int | None, int | None]:
    """Return the numbers of two fields of a line of a table."""
    fields = _fields(text)
    return _number(fields, keys[0]), _number(fields, keys[1])


@lru_cache(1 << 12)
def _place(location: str, file: str, function: str) -> StackFrame | None:
    """Return the place that lines of the tables describe; None if the name of the file is empty."""
    return _frame(_string(file) or "", _fields(location), _string(function))


def _string(text: str) -> str | None:
    """Return the string in a line of a table; None if the table lacks it."""
    return unescape(text.strip()[1:-1]) if text else None


@lru_cache(1 << 12)
def _fields(text: str) -> Mapping[str, str]:
    """Return the values of ``{key=value ..}``, without quotes; of equal keys the first."""
    fields: dict[str, str] = {}
    for key, value in _FIELD.findall(text):
        if key:
            is_string = value[0] in "\"'"
            fields.setdefault(key, unescape(value[1:-1]) if is_string else value)
    return MappingProxyType(fields)


def _number(fields: Mapping[str, str], key: str) -> int | None:
    text = fields.get(key, "")
    return int(text) if _NUMBER.fullmatch(text) else None
