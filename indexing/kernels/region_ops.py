"""The syntax of ops with regions, of the generic form, and of ops that are not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from hlo.text.source import Source
from indexing.kernels.attributes import (
    read_attribute,
    read_dictionary,
    take_map,
    take_result_types,
    take_type,
    take_types_in_brackets,
)
from indexing.kernels.ir import MlirRegion, MlirType, MlirValue
from indexing.kernels.op_reader import OpParts
from indexing.kernels.scopes import MlirScopes
from indexing.kernels.tokens import MlirTokens
from indexing.kernels.types import UNKNOWN_TYPE, read_type


class RegionReader(Protocol):
    """A reader of regions, as the syntax of an op with regions uses it."""

    tokens: MlirTokens
    aliases: dict[str, Any]
    scopes: MlirScopes

    def region(
        self,
        arguments: tuple[MlirValue, ...],
        groups: Mapping[str, tuple[MlirValue, ...]] | None = None,
    ) -> MlirRegion:
        """Read a region whose first block has these arguments."""


def generic_op(reader: RegionReader, parts: OpParts) -> list[MlirType]:
    """Read an op in generic form, after its name; return the types of its results."""
    tokens = reader.tokens
    parts.bracketed("(", "operands", ")")
    if tokens.text == "[":  # successors
        while tokens.take() != "]":
            pass
    if tokens.text == "<" and tokens.ahead()[1] == "{":
        tokens.take()
        parts.attributes |= read_dictionary(tokens, reader.aliases)
        tokens.expect(">", "after the properties of an op")
    if tokens.accept("("):
        parts.regions.append(reader.region(()))
        while tokens.accept(","):
            parts.regions.append(reader.region(()))
        tokens.expect(")", "after the regions of an op")
    parts.dictionary()
    tokens.expect(":", "before the type of an op")
    parts.types = take_types_in_brackets(tokens)
    tokens.expect("->", "before the types of the results")
    return take_result_types(tokens)


def unknown_op(reader: RegionReader, parts: OpParts, count: int) -> list[MlirType]:
    """Read an op that has no form up to the end of its line, or of its last region."""
    tokens = reader.tokens
    parts.is_known = False
    depth, colon = 0, None
    new: list[tuple[str, MlirType]] = []
    while tokens.kind != "end" and not (depth <= 0 and tokens.kind == "newline"):
        if tokens.text == "{" and tokens.ahead()[0] in ("newline", "block"):
            values = tuple([MlirValue(name, held) for name, held in new])
            parts.regions.append(reader.region(values))
            new, colon = [], None
            continue
        if depth <= 0 and tokens.text in ("}", ")"):
            break
        if tokens.kind == "value":
            name = tokens.text[1:]
            if tokens.ahead()[1] in ("=", ":") and not reader.scopes.knows(name):
                new.append((name, UNKNOWN_TYPE))
                tokens.take()
            else:
                parts.operand()
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(tokens.text, 0)
        if tokens.text == ":" and not depth:
            colon = tokens.start
        tokens.take()
    return _trailing_types(tokens, colon, count)


def _trailing_types(tokens: MlirTokens, colon: int | None, count: int) -> list[MlirType]:
    """Return the types of an unknown op, from the text after its last colon, if they fit."""
    if colon is None or not count:
        return []
    text = tokens.source.text[colon + 1 : tokens.last_end]
    inner = MlirTokens(Source(text))
    types: list[MlirType] = []
    while inner.kind in ("word", "angled", "alias") or inner.text in ("(", ",", "->"):
        if inner.text == ",":
            inner.take()
        elif inner.text in ("->", "to", "into"):
            inner.take()
            types = []
        elif inner.text == "(":
            types = take_types_in_brackets(inner)
        else:
            types.append(take_type(inner))
    return types if len(types) == count else []


def _define(reader: RegionReader, names: list[str], types: list[MlirType]) -> tuple[MlirValue, ...]:
    """Return values for the arguments of a region; there must be a type for each."""
    if len(names) != len(types):
        reader.tokens.fail(f"expected {len(names)} types, found {len(types)}")
    return tuple([MlirValue(name, held) for name, held in zip(names, types, strict=True)])


def _names(reader: RegionReader, opening: str, closing: str) -> list[str]:
    """Read names of new values in brackets."""
    tokens = reader.tokens
    tokens.expect(opening)
    return [tokens.expect_kind("value", "the name of a value")[1:] for _ in tokens.items(closing)]


def _read_initialised(reader: RegionReader, parts: OpParts) -> list[str]:
    """Read the initial values in ``(%name = %value, …)``; return the names."""
    tokens = reader.tokens
    tokens.expect("(", "before the initial values")
    parts.groups["inits"] = ()
    names: list[str] = []
    for _ in tokens.items(")", "an initial value"):
        names.append(tokens.expect_kind("value", "the name of a value")[1:])
        tokens.expect("=", "before the initial value")
        parts.operand("inits")
    return names


def _read_carried(reader: RegionReader, parts: OpParts, keyword: str) -> tuple[MlirValue, ...]:
    """Read ``keyword(%name = %value, …) -> (types)``, which may be left out."""
    parts.groups["inits"] = ()
    if not reader.tokens.accept(keyword):
        return ()
    names = _read_initialised(reader, parts)
    reader.tokens.expect("->", "before the types of the results")
    parts.types = take_result_types(reader.tokens)
    return _define(reader, names, parts.types)


def _loop(reader: RegionReader, parts: OpParts) -> list[MlirType]:
    tokens = reader.tokens
    index = [read_type("index")]
    parts.bracketed("(", "dims", ")")
    symbols = _names(reader, "[", "]")
    tokens.expect("->", "before the results of the map")
    results = _names(reader, "(", ")")
    tokens.expect("in", "before the map")
    parts.attributes.update(take_map(tokens, reader.aliases))
    carried = _read_carried(reader, parts, "iter_args")
    points = _define(reader, symbols, index * len(symbols))
    places = _define(reader, results, index * len(results))
    groups = {"symbols": points, "results": places, "carried": carried}
    parts.dictionary()
    parts.regions.append(reader.region((*points, *places, *carried), groups))
    parts.dictionary()
    return parts.types


def _for(reader: RegionReader, parts: OpParts) -> list[MlirType]:
    tokens = reader.tokens
    if tokens.accept("unsigned"):
        parts.attributes["unsigned"] = True
    name = tokens.expect_kind("value", "the induction variable")[1:]
    for role, after in (("lower", "="), ("upper", "to"), ("step", "step")):
        tokens.expect(after)
        parts.operand(role)
    carried = _read_carried(reader, parts, "iter_args")
    held = take_type(tokens) if tokens.accept(":") else read_type("index")
    induction = (MlirValue(name, held),)
    groups = {"induction": induction, "carried": carried}
    parts.regions.append(reader.region((*induction, *carried), groups))
    parts.dictionary()
    return parts.types


def _if(reader: RegionReader, parts: OpParts) -> list[MlirType]:
    tokens = reader.tokens
    parts.operand("condition")
    if tokens.accept("->"):
        parts.types = take_result_types(tokens)
    parts.regions.append(reader.region(()))
    if tokens.accept("else"):
        parts.regions.append(reader.region(()))
    parts.dictionary()
    return parts.types


def _forall(reader: RegionReader, parts: OpParts) -> list[MlirType]:
    tokens = reader.tokens
    names = _names(reader, "(", ")")
    tokens.expect("in", "before the sizes")
    tokens.expect("(", "before the sizes")
    sizes: list[Any] = []
    for _ in tokens.items(")"):
        sizes.append(parts.operand("sizes") if tokens.kind == "value" else tokens.integer())
    parts.attributes["sizes"] = tuple(sizes)
    carried = _read_carried(reader, parts, "shared_outs")
    index = read_type("index")
    induction = tuple([MlirValue(name, index) for name in names])
    groups = {"induction": induction, "carried": carried}
    parts.regions.append(reader.region((*induction, *carried), groups))
    parts.dictionary()
    return parts.types


def _in_parallel(reader: RegionReader, parts: OpParts) -> list[MlirType]:
    parts.regions.append(reader.region(()))
    return []


def _atomic(reader: RegionReader, parts: OpParts) -> list[MlirType]:
    parts.operand("target")
    parts.bracketed("[", "indices", "]")
    reader.tokens.expect(":", "before the type")
    parts.types = [take_type(reader.tokens)]
    parts.regions.append(reader.region(()))
    return parts.types


def _reduce(reader: RegionReader, parts: OpParts) -> list[MlirType]:
    """Read ``(%x init: %c) applies op across dimensions = [1]``."""
    tokens = reader.tokens
    parts.groups |= {"values": (), "inits": ()}
    while not parts.groups["values"] or tokens.accept(","):
        tokens.expect("(", "before an operand and its initial value")
        parts.operand("values")
        tokens.expect("init")
        tokens.expect(":")
        parts.operand("inits")
        tokens.expect(")")
    tokens.expect("applies")
    parts.attributes["applies"] = tokens.expect_kind("word", "the op that is applied")
    tokens.expect("across")
    tokens.expect("dimensions")
    tokens.expect("=")
    parts.attributes["dimensions"] = read_attribute(tokens, reader.aliases)
    parts.dictionary()
    tokens.expect(":", "before the type")
    parts.all_types()
    return parts.result_types or []


WITH_REGIONS: dict[str, Callable[[RegionReader, OpParts], list[MlirType]]] = {
    "xla.loop": _loop,
    "scf.for": _for,
    "scf.if": _if,
    "scf.forall": _forall,
    "scf.forall.in_parallel": _in_parallel,
    "xla.atomic_rmw": _atomic,
    "stablehlo.reduce": _reduce,
}
