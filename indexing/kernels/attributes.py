"""Attributes of MLIR: numbers, constants, maps, lists and dictionaries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from hlo.shapes.element_type import ELEMENT_TYPES, dtype
from hlo.text.source import HloError
from indexing.kernels.ir import MlirType, RawAttribute
from indexing.kernels.tokens import MlirTokens
from indexing.kernels.types import read_type
from indexing.maps.indexing_map import IndexingMap
from indexing.maps.text import parse_map
from indexing.ops.integer_rules import wrap_integer

_MAP = re.compile(r'#xla\.indexing_map<\s*"(.*)"\s*>', re.DOTALL)
_FAR = 1 << 40
_ARRAY = re.compile(r"array<\w+(?::\s*(.*))?>", re.DOTALL)
_ITEM = re.compile(r"-?0x[0-9A-Fa-f]+|-?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?|true|false|[()]|\"[^\"]*\"")
_FLOAT_BITS = {16: np.uint16, 32: np.uint32, 64: np.uint64, 8: np.uint8}


def element_name(element: str) -> str | None:
    """Return HLO's name of an element type of MLIR, integers as signed; None if it has none.

    >>> element_name("i8"), element_name("i1"), element_name("index"), element_name("f8E4M3FN")
    ('s8', 'pred', 's64', 'f8e4m3fn')
    """
    names = {"index": "s64", "i1": "pred", "complex<f32>": "c64", "complex<f64>": "c128"}
    name = names.get(element, element.lower())
    if re.fullmatch(r"[su]?i\d+", name):
        name = ("u" if name[0] == "u" else "s") + name[name.index("i") + 1 :]
    return name if name in ELEMENT_TYPES else None


def read_attribute(tokens: MlirTokens, aliases: Mapping[str, Any]) -> Any:
    """Return the attribute at the current token, and go over it."""
    kind, text = tokens.kind, tokens.text
    match kind:
        case "string":
            return tokens.take()[1:-1]
        case "symbol":
            return _symbol(tokens)
        case "number":
            tokens.take()
            return number(text, accept_type(tokens))
        case "alias":
            tokens.take()
            return aliases.get(text, RawAttribute(text))
        case "angled":
            return _read_angled(tokens)
        case "word":
            return _word(tokens)
    if text == "[":
        tokens.take()
        return _list(tokens, aliases)
    if text == "{":
        return read_dictionary(tokens, aliases)
    if text != "(":
        tokens.fail(f"expected an attribute, found {tokens.found()}")
    return take_type(tokens)


def _symbol(tokens: MlirTokens) -> str:
    name = tokens.take()[1:].strip('"')
    while tokens.accept("::"):
        name += "::" + tokens.take()[1:].strip('"')
    return name


def _word(tokens: MlirTokens) -> Any:
    text = tokens.take()
    if text in ("true", "false"):
        accept_type(tokens)
        return text == "true"
    if text == "unit":
        return True
    held = read_type(text)
    return held if held.kind == "scalar" else RawAttribute(text)


def _list(tokens: MlirTokens, aliases: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple([read_attribute(tokens, aliases) for _ in tokens.items("]", "an item of a list")])


def read_dictionary(tokens: MlirTokens, aliases: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes ``{name = value, flag, …}``; one without a value is True."""
    tokens.expect("{", "before attributes")
    entries: dict[str, Any] = {}
    for _ in tokens.items("}", "an attribute"):
        if tokens.kind not in ("word", "string"):
            tokens.fail(f"expected the name of an attribute, found {tokens.found()}")
        name = tokens.take().strip('"')
        entries[name] = read_attribute(tokens, aliases) if tokens.accept("=") else True
    return entries


def _read_angled(tokens: MlirTokens) -> Any:
    span = tokens.span()
    text = tokens.take()
    if matched := _MAP.fullmatch(text):
        try:
            return read_map(matched[1])
        except HloError as error:
            raise error.moved(span.source, span.start + matched.start(1)) from None
    if text.startswith("dense<"):
        held = accept_type(tokens)
        return dense(text, held) if held is not None else RawAttribute(text)
    if matched := _ARRAY.fullmatch(text):
        return tuple([number(item, None) for item in _ITEM.findall(matched[1] or "")])
    if text.startswith(("tensor<", "memref<", "vector<", "complex<", "!")):
        return read_type(text)
    if tokens.text == ":":
        accept_type(tokens)
    return RawAttribute(text)


@dataclass(frozen=True, slots=True)
class MapAttribute:
    """The map of an ``#xla.indexing_map``.

    Attributes:
        written: the same map with variables of any value, so that its expressions are those of the
            text: its domain simplifies nothing, whether a kernel keeps to it or not.
    """

    map: IndexingMap
    written: IndexingMap


@lru_cache(4096)
def read_map(text: str) -> MapAttribute:
    """Return the map of an ``#xla.indexing_map``, from the text between its quotes."""
    held, free = parse_map(text), text
    for variable in (*held.dims, *held.ranges):
        bounds = rf"\b{re.escape(variable.name)} in \[[^\]]*\]"
        free = re.sub(bounds, f"{variable.name} in [{-_FAR}, {_FAR}]", free, count=1)
    return MapAttribute(held, parse_map(free))


def take_map(tokens: MlirTokens, aliases: Mapping[str, Any]) -> dict[str, IndexingMap]:
    """Return the attributes of an op with a map, which is the current token; go over it."""
    span = tokens.span()
    held = read_attribute(tokens, aliases)
    if not isinstance(held, MapAttribute):
        tokens.fail(f"`{span.text}` is not an `#xla.indexing_map`")
    return {"map": held.map, "written_map": held.written}


def accept_type(tokens: MlirTokens) -> MlirType | None:
    """Return the type after a colon, and go over both; None if no colon follows."""
    return take_type(tokens) if tokens.accept(":") else None


def take_type(tokens: MlirTokens) -> MlirType:
    """Return the type at the current token, and go over it; of functions as ``other``."""
    if tokens.kind in ("word", "angled", "alias"):
        return read_type(tokens.take())
    if tokens.text != "(":
        tokens.fail(f"expected a type, found {tokens.found()}")
    start = tokens.start
    take_types_in_brackets(tokens)
    if tokens.accept("->"):
        take_result_types(tokens)
    return read_type(tokens.source.text[start : tokens.last_end])


def take_types_in_brackets(tokens: MlirTokens) -> list[MlirType]:
    """Return the types ``(type, …)``, and go over them."""
    tokens.expect("(", "before types")
    return [take_type(tokens) for _ in tokens.items(")", "a type")]


def take_result_types(tokens: MlirTokens) -> list[MlirType]:
    """Return the types after an arrow: one, or several in brackets."""
    return take_types_in_brackets(tokens) if tokens.text == "(" else [take_type(tokens)]


def number(text: str, held: MlirType | None) -> Any:
    """Return a number: an integer, a float, or the element of NumPy that has the bits."""
    if text in ("true", "false"):
        return text == "true"
    is_hexadecimal = "0x" in text
    if is_hexadecimal and held is not None and element_kind(held.element) == "floating":
        return _from_bits(int(text, 16), held.element)
    if is_hexadecimal or "." not in text:
        return int(text, 0)
    return float(text)


def element_kind(element: str) -> str:
    """Return the kind of an element type, as `ElementType.kind`; empty for one that HLO lacks."""
    name = element_name(element)
    return ELEMENT_TYPES[name].kind if name is not None else ""


def _from_bits(bits: int, element: str) -> Any:
    name = element_name(element)
    assert name is not None
    width = _FLOAT_BITS[ELEMENT_TYPES[name].bits]
    return np.array([bits], width).view(dtype(name))[0]


def constant_array(value: Any, held: MlirType) -> Any:
    """Return the array of a constant of a type, of rank 0 for a scalar.

    >>> constant_array(-1, read_type("i8")), constant_array(True, read_type("i1")).dtype
    (array(-1, dtype=int8), dtype('bool'))
    """
    if isinstance(value, (np.ndarray, RawAttribute)):
        return value
    name = element_name(held.element)
    if name is None or held.kind == "other":
        return RawAttribute(str(value))
    return np.full(held.dims, _element(value, name), dtype(name))


def _element(value: Any, name: str) -> Any:
    kind = ELEMENT_TYPES[name]
    if kind.kind == "integral" and isinstance(value, int):  # as printed, or as its bits
        return wrap_integer(value, name)
    return value


def dense(text: str, held: MlirType) -> Any:
    """Return the array of ``dense<…>`` of a type; raw if HLO has no such element type."""
    name = element_name(held.element)
    body = text[len("dense<") : -1].strip()
    if name is None or -1 in held.dims:
        return RawAttribute(text)
    items = _ITEM.findall(body)
    if body.startswith('"'):
        return _from_bytes(body.strip('"'), held, name)
    if "(" in items:
        numbers = [complex(float(a), float(b)) for a, b in re.findall(r"\((\S+),\s*(\S+)\)", body)]
        values: list[Any] = list(numbers)
    else:
        scalar = held.scalar()
        values = [_element(number(item, scalar), name) for item in items]
    if len(values) == 1:
        return np.full(held.dims, values[0], dtype(name))
    return np.array(values, dtype(name)).reshape(held.dims)


def _from_bytes(text: str, held: MlirType, name: str) -> Any:
    kind = ELEMENT_TYPES[name]
    data = bytes.fromhex(text.removeprefix("0x"))
    count = int(np.prod(held.dims))
    if (
        kind.bits < 8
        or kind.kind == "pred"
        or len(data) not in (kind.bits // 8, count * kind.bits // 8)
    ):
        return RawAttribute(text)
    return np.broadcast_to(np.frombuffer(data, dtype(name)), count).reshape(held.dims)
