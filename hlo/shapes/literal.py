"""Parser of literals, the values of constants, to NumPy arrays.

>>> from hlo.shapes.shape import parse_shape
>>> array("{ { 1, 2.5 }, { -inf, /*i1=1*/ 1e-3 } }", parse_shape("f32[2,2]"))
array([[1.0e+00, 2.5e+00],
       [   -inf, 1.0e-03]], dtype=float32)
>>> array("(7, {1, 0})", parse_shape("(s32[], pred[2])"))
(array(7, dtype=int32), array([ True, False]))

The syntax is that of XLA's parser (``xla/hlo/parser/hlo_parser.cc``, ``ParseLiteral``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from hlo.shapes.shape import (
    ELEMENT_TYPES,
    UNBOUNDED,
    AnyShape,
    ElementType,
    Shape,
    TupleShape,
    dtype,
)
from hlo.text.lexer import MAX_DIGITS, SPACE
from hlo.text.source import HloError, Source, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

Literal: TypeAlias = "NDArray[Any] | tuple[Literal, ...]"

_NUMBER = r"-?(?:\d++(?>\.\d*+)?+|\.\d++)(?>[eE][+-]?\d++)?+"
_PIECE = re.compile(
    rf"{SPACE}(?:({_NUMBER}|-?inf\b|-?nan\b(?>\(0x[0-9a-fA-F]+\))?+|true\b|false\b)"
    r"|([{}(),])|(\.\.\.))",
    re.ASCII,
)
_INTEGER = re.compile(r"-?\d+")
_NAN = re.compile(r"(-?)nan\(0x([0-9a-fA-F]+)\)")
_REAL = re.compile(_NUMBER)
_MANTISSA_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}  # of the types with payloads


def array(text: str, shape: AnyShape) -> Literal:
    """Parse a literal to an array or a tuple of arrays.

    Raises:
        HloError: `text` is not a literal of this shape; with code ``elided`` for ``{...}``.
    """
    return read_literal(Source(text, "<literal>").span(0, len(text)), shape)


def read_literal(span: Span, shape: AnyShape) -> Literal:
    """Parse a literal in a source, as `array`; errors point into the source."""
    pieces = _Pieces(span)
    value = _read_tree(pieces, shape)
    pieces.expect("", "the end of the literal")
    return value


class _Pieces:
    """The tokens of a literal, one at a time; `word` is empty at the end."""

    def __init__(self, span: Span) -> None:
        self.source = span.source
        self.end = span.end
        self.words = self._split_pieces(span)
        self.step()

    def _split_pieces(self, span: Span) -> Iterator[tuple[str, int]]:
        text, position = self.source.text, span.start
        while piece := _PIECE.match(text, position, span.end):
            position = piece.end()
            yield piece[piece.lastindex or 0], piece.start(piece.lastindex or 0)
        rest = re.compile(rf"{SPACE}", re.ASCII).match(text, position, span.end)
        assert rest is not None  # SPACE matches the empty text
        if rest.end() < span.end:
            wrong = self.source.span(rest.end())
            raise HloError("expected a number in a literal", wrong, "literal", "not a number")
        yield "", span.end

    def step(self) -> None:
        self.word, self.start = next(self.words)

    def span(self) -> Span:
        return self.source.span(self.start, self.start + max(1, len(self.word)))

    def expect(self, word: str, wanted: str) -> None:
        """Step over `word`, or raise the error "expected `wanted` in a literal"."""
        if self.word != word:
            label = "" if self.word else "the literal ends here"
            raise HloError(f"expected {wanted} in a literal", self.span(), "literal", label)
        if word:
            self.step()


def _read_tree(pieces: _Pieces, shape: AnyShape) -> Literal:
    """Read a value of `shape`; the recursion is as deep as the shape."""
    match shape:
        case TupleShape(elements):
            pieces.expect("(", "`(` of a tuple")
            values = []
            for number, element in enumerate(elements):
                if number:
                    pieces.expect(",", f"`,` before element {number} of {shape}")
                values.append(_read_tree(pieces, element))
            pieces.expect(")", f"`)` after element {len(elements) - 1} of {shape}")
            return tuple(values)
        case Shape():
            return _read_array(pieces, shape)
        case _:
            message = f"a literal must be an array or a tuple, not {shape}"
            raise HloError(message, pieces.span(), "literal")


def _read_array(pieces: _Pieces, shape: Shape) -> NDArray[Any]:
    element = ELEMENT_TYPES[shape.element_type]
    values: list[Any] = []
    spans: list[Span] = []
    counts = [0]  # numbers of values or rows in each open brace, the outermost first
    depth = _depth(shape) if pieces.word == "{" else 0  # one value without braces
    while True:
        word = pieces.word
        if word == "...":
            raise _elided_error(pieces)
        if word == "{" and len(counts) <= depth:
            pieces.step()
            counts.append(0)
            continue
        if word == "}" and len(counts) > 1:
            _check_count(pieces, shape, counts)
            pieces.step()
            counts.pop()
        elif len(counts) == depth + 1 and word not in ("}", "{", ",", ")", ""):
            if UNBOUNDED in shape.dims or 0 in shape.dims:
                raise _without_size(pieces, shape)
            spans.append(pieces.span())
            values.append(_read_value(pieces, element))
        else:
            raise _misplaced_error(pieces, shape, depth, len(counts) - 1)
        counts[-1] += 1
        if len(counts) == 1:
            return _filled_array(values, spans or [pieces.span()], shape)
        if pieces.word == ",":
            pieces.step()


def _without_size(pieces: _Pieces, shape: Shape) -> HloError:
    """Return the error for a value of a shape that has no elements or no known number of them."""
    if UNBOUNDED in shape.dims:
        message = f"a literal must have known sizes, but its shape is {shape}"
        help = "write the number of elements instead of `?`"  # noqa: A001 - the word of `HloError`
        return HloError(message, pieces.span(), "literal", help=help)
    message = f"{shape} has no elements, but the literal has a value"
    return HloError(message, pieces.span(), "literal", help="write {} for each empty row")


def _misplaced_error(pieces: _Pieces, shape: Shape, depth: int, opened: int) -> HloError:
    """Return the error for a token inside `opened` braces, if values are inside `depth` braces."""
    is_brace = pieces.word == "{"
    label = ""
    if is_brace or opened < depth:
        label = f"{shape} has {depth} level{'s' * (depth != 1)} of braces"
        if not shape.rank:
            label = f"{shape} is a scalar: expected one value without braces"
    wanted = "`{`" if opened < depth and not is_brace else "a value"
    return HloError(f"expected {wanted} in a literal", pieces.span(), "literal", label)


def _elided_error(pieces: _Pieces) -> HloError:
    message = "the values of the constant are elided"
    help = "print the module with large constants"  # noqa: A001 - the word of `HloError`
    return HloError(message, pieces.span(), "elided", "elided", help=help)


def _depth(shape: Shape) -> int:
    """Return the number of braces around a value; empty rows have no braces inside."""
    return shape.dims.index(0) + 1 if 0 in shape.dims else shape.rank


def _check_count(pieces: _Pieces, shape: Shape, counts: list[int]) -> None:
    level = len(counts) - 2
    wanted = shape.dims[level]
    if wanted == UNBOUNDED:
        raise _without_size(pieces, shape)
    if counts[-1] != wanted:
        count = f"{counts[-1]} element{'s' * (counts[-1] != 1)}"
        array = shape.with_layout(None)
        message = f"dimension {level} of {array} has size {wanted}, but the literal has {count}"
        raise HloError(message, pieces.span(), "literal", "ends here")


def _filled_array(values: list[Any], spans: list[Span], shape: Shape) -> NDArray[Any]:
    """Return the array of `values`.

    As in XLA's parser, a value without braces is the first element and all others are 0.
    """
    import numpy

    kind = dtype(shape.element_type)
    with numpy.errstate(over="ignore", invalid="ignore"):
        flat = numpy.array([v.number if isinstance(v, _Nan) else v for v in values], dtype=kind)
    for index, value in enumerate(values):
        if isinstance(value, _Nan):
            flat.view(f"uint{8 * kind.itemsize}")[index] = value.bits
    if ELEMENT_TYPES[shape.element_type].kind in ("floating", "complex"):
        wide = numpy.complex128 if kind.kind == "c" else numpy.float64
        with numpy.errstate(invalid="ignore"):
            is_finite = numpy.isfinite(flat.astype(wide))
        overflows = numpy.isfinite(numpy.array(values, dtype=wide)) & ~is_finite
        if overflows.any():
            span = spans[int(overflows.argmax())]
            message = f"the value overflows {shape.element_type}"
            raise HloError(message, span, "literal", "too large")
    try:
        if len(values) != 1 or shape.size <= 1:
            return flat.reshape(shape.dims)
        filled = numpy.zeros(shape.dims, kind)
    except (MemoryError, ValueError):  # NumPy's error for more elements than it can count
        message = f"not enough memory for a constant {shape}"
        raise HloError(message, spans[0], "literal") from None
    filled.flat[0] = flat[0]
    return filled


# ---------------------------------------------------------------- one value


@dataclass(frozen=True, slots=True)
class _Nan:
    """A NaN with a payload."""

    bits: int
    number: float = math.nan

    def __float__(self) -> float:
        return self.number


def _read_value(pieces: _Pieces, element: ElementType) -> Any:
    if pieces.word != "(":
        value = _number(pieces, element)
        pieces.step()
        return value
    if element.kind != "complex":
        message = f"a pair of numbers is a complex value, but the element type is {element.name}"
        raise HloError(message, pieces.span(), "literal")
    pieces.step()
    real = _number(pieces, element)
    pieces.step()
    pieces.expect(",", "`,` between real and imaginary part")
    imaginary = _number(pieces, element)
    pieces.step()
    pieces.expect(")", "`)` after the imaginary part")
    return complex(real, imaginary)


def _number(pieces: _Pieces, element: ElementType) -> Any:
    """Return the value of the current token; raise an error if the element type lacks it."""
    word = pieces.word
    if word in ("true", "false"):
        if element.kind != "pred":
            raise _unfit(pieces, element)
        return word == "true"
    if element.kind in ("floating", "complex"):
        return _real(pieces, element)
    if not _INTEGER.fullmatch(word) or len(word) > MAX_DIGITS + 2:
        raise _unfit(pieces, element)
    minimum, maximum = _bounds(element)
    value = int(word)
    if element.name == "u64" and -(2**63) <= value < 0:
        value += 2**64  # as in XLA's parser
    if not minimum <= value <= maximum:
        raise _unfit(pieces, element, f"not in [{minimum}, {maximum}]")
    return value


def _bounds(element: ElementType) -> tuple[int, int]:
    if element.kind == "pred":
        return 0, 1
    if element.kind == "unsigned":
        return 0, 2**element.bits - 1
    return -(2 ** (element.bits - 1)), 2 ** (element.bits - 1) - 1


def _real(pieces: _Pieces, element: ElementType) -> float | _Nan:
    word = pieces.word
    if nan := _NAN.fullmatch(word):
        return _nan(pieces, element, nan[1] == "-", nan[2])
    if not (_REAL.fullmatch(word) or word.endswith(("inf", "nan"))):
        raise _unfit(pieces, element)
    value = float(word)
    if math.isinf(value) and not word.endswith("inf"):
        raise _unfit(pieces, element, "too large")
    return value


def _nan(pieces: _Pieces, element: ElementType, is_negative: bool, payload: str) -> _Nan:
    """Return the NaN with a payload in hexadecimal."""
    mantissa = _MANTISSA_BITS.get(element.name, 0)
    if not mantissa or not 0 < int(payload, 16) < 1 << mantissa:
        limit = f"at most 0x{(1 << mantissa) - 1:x}" if mantissa else "no payload is supported"
        raise _unfit(pieces, element, limit)
    exponent = element.bits - 1 - mantissa
    infinity = ((1 << exponent) - 1) << mantissa
    return _Nan(is_negative << (element.bits - 1) | infinity | int(payload, 16))


def _unfit(pieces: _Pieces, element: ElementType, label: str = "") -> HloError:
    word = pieces.word if len(pieces.word) < 40 else f"{pieces.word[:37]}..."
    message = f"`{word}` is not a value of {element.name}"
    return HloError(message, pieces.span(), "literal", label or f"not {element.name}")
