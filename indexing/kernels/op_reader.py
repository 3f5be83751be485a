"""The reader of one op by its form, of ops in generic form, and of ops that are not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hlo.text.source import Source
from indexing.kernels.attributes import (
    constant_array,
    read_attribute,
    read_dictionary,
    take_map,
    take_result_types,
    take_type,
    take_types_in_brackets,
)
from indexing.kernels.forms import OpForm, forms
from indexing.kernels.ir import MlirOp, MlirRegion, MlirType, MlirValue
from indexing.kernels.scopes import MlirScopes
from indexing.kernels.tokens import MlirTokens
from indexing.kernels.types import UNKNOWN_TYPE, read_type

_CONNECTORS = ("to", "into", "from", "->")
_INDEX, _BOOL = read_type("index"), read_type("i1")


class OpParts:
    """The parts of an op while it is read."""

    def __init__(self, tokens: MlirTokens, scopes: MlirScopes, aliases: Mapping[str, Any]) -> None:
        self.tokens, self.scopes, self.aliases = tokens, scopes, aliases
        self.groups: dict[str, tuple[MlirValue, ...]] = {}
        self.operands: list[MlirValue] = []
        self.attributes: dict[str, Any] = {}
        self.types: list[MlirType] = []
        self.result_types: list[MlirType] | None = None
        self.regions: list[MlirRegion] = []
        self.is_known = True

    def operand(self, role: str = "") -> MlirValue:
        """Return the value that is used at the current token."""
        span = self.tokens.span()
        name = self.tokens.expect_kind("value", "a value such as `%0`")[1:]
        value = self.scopes.use(name, span)
        self.operands.append(value)
        if role:
            self.groups[role] = (*self.groups.get(role, ()), value)
        return value

    def operand_list(self, role: str) -> None:
        """Read values with commas between, maybe none."""
        self.groups[role] = ()
        if self.tokens.kind == "value":
            self.operand(role)
            while self.tokens.accept(","):
                self.operand(role)

    def bracketed(self, opening: str, role: str, closing: str) -> None:
        """Read values with commas between, in brackets."""
        self.tokens.expect(opening)
        self.operand_list(role)
        self.tokens.expect(closing, "or `,` after a value")

    def dictionary(self) -> None:
        """Read attributes in braces, if there are any; a brace that ends a line opens a region."""
        if self.tokens.text == "{" and self.tokens.ahead()[0] != "newline":
            self.attributes |= read_dictionary(self.tokens, self.aliases)

    def all_types(self) -> None:
        """Read the types after a colon, and those after ``to``, ``into``, ``from`` or ``->``."""
        tokens = self.tokens
        if tokens.text == "(":
            self.types = take_types_in_brackets(tokens)
        else:
            self.types = [take_type(tokens)]
            while tokens.accept(","):
                self.types.append(take_type(tokens))
        if tokens.text in _CONNECTORS:
            tokens.take()
            self.result_types = take_result_types(tokens)

    def integers(self, role: str) -> tuple[int | MlirValue, ...]:
        """Read integers and values in square brackets; values join the operands of the role."""
        tokens = self.tokens
        tokens.expect("[")
        items: list[int | MlirValue] = []
        for _ in tokens.items("]"):
            if tokens.kind == "value":
                items.append(self.operand(role))
            else:
                items.append(tokens.integer("an integer or a value"))
        return tuple(items)


def read_by_form(parts: OpParts, form: OpForm) -> list[MlirType]:
    """Read what follows the name of an op; return the types of its results."""
    for step in form.steps:
        _read_step(parts, step)
    return _result_types(parts, form.result)


def _read_step(parts: OpParts, step: str) -> None:
    name, _, kind = step.partition("=")
    if name and kind:
        _read_named(parts, name, kind)
    elif step.startswith("%"):
        role = step[1:].rstrip("*")
        (parts.operand_list if step.endswith("*") else parts.operand)(role)
    elif step in _STEPS:
        _STEPS[step](parts)
    else:
        parts.tokens.expect(step)


def _read_named(parts: OpParts, name: str, kind: str) -> None:
    tokens = parts.tokens
    value: Any
    match kind:
        case "word":
            value = tokens.expect_kind("word", f"the {name}")
        case "int":
            value = tokens.integer()
        case "ints" | "%ints":
            value = parts.integers(name)
        case "symbol":
            value = tokens.expect_kind("symbol", "a function such as `@f`")[1:].strip('"')
        case "map":
            parts.attributes.update(take_map(tokens, parts.aliases))
            return
        case _:
            value = _constant(parts)
    parts.attributes[name] = value


def _constant(parts: OpParts) -> Any:
    """Return the array of a constant, whose type follows it."""
    tokens = parts.tokens
    is_dense = tokens.kind == "angled"
    value, held = _value_and_type(parts)
    if held is None:
        held = _BOOL if isinstance(value, bool) else read_type("i64")
        held = (
            read_type(f"tensor<{'x'.join(map(str, [*value.shape, '']))}i64>") if is_dense else held
        )
    parts.types = [held]
    return constant_array(value, held)


def _value_and_type(parts: OpParts) -> tuple[Any, MlirType | None]:
    """Return the attribute at the current token, and the type after its colon."""
    tokens = parts.tokens
    before = tokens.start
    value = read_attribute(tokens, parts.aliases)
    text = tokens.source.text[before : tokens.last_end]
    if tokens.text == ":":  # of a list
        tokens.take()
        return value, take_type(tokens)
    _, colon, written = text.rpartition(" : ")
    return value, read_type(_outside(text)) if colon and written else None


def _outside(text: str) -> str:
    """Return the type after the last colon that is outside of angle brackets."""
    depth, at = 0, 0
    for position, character in enumerate(text):
        if character == ">" and text[position - 1] == "-":
            continue
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == ":" and not depth:
            at = position + 1
    return text[at:].strip()


def _flags(parts: OpParts) -> None:
    tokens = parts.tokens
    while tokens.kind in ("angled", "word") and tokens.text not in _CONNECTORS:
        head, _, body = tokens.take().partition("<")
        parts.attributes[head] = body.rstrip(">") if body else True


def _optional_types(parts: OpParts) -> None:
    if parts.tokens.accept(":"):
        parts.all_types()


def _types(parts: OpParts) -> None:
    parts.tokens.expect(":", "before the type")
    parts.all_types()


def _dims(parts: OpParts) -> None:
    parts.groups.setdefault("dims", ())
    if parts.tokens.text == "(":
        parts.bracketed("(", "dims", ")")


def _symbols(parts: OpParts) -> None:
    parts.groups.setdefault("symbols", ())
    if parts.tokens.text == "[":
        parts.bracketed("[", "symbols", "]")


def _mask(parts: OpParts) -> None:
    if parts.tokens.accept(","):
        parts.operand("mask")


def _upper_bound(parts: OpParts) -> None:
    if parts.tokens.accept("upper_bound"):
        parts.attributes["upper_bound"] = parts.tokens.integer()


def _compare_type(parts: OpParts) -> None:
    if parts.tokens.accept(","):
        parts.attributes["compare_type"] = parts.tokens.expect_kind("word", "a type of comparison")


def _dot(parts: OpParts) -> None:
    """Read ``, name = value`` and ``, name = value x value``."""
    tokens = parts.tokens
    while tokens.accept(","):
        name = tokens.expect_kind("word", "the name of an attribute")
        tokens.expect("=", "after the name of an attribute")
        value: Any
        if tokens.text == "<":
            start = tokens.start
            while tokens.take() != ">":
                pass
            value = tokens.source.text[start : tokens.last_end]
        else:
            value = read_attribute(tokens, parts.aliases)
            if tokens.accept("x"):
                value = value, read_attribute(tokens, parts.aliases)
        parts.attributes[name] = value


_STEPS: dict[str, Callable[[OpParts], None]] = {
    "{}": OpParts.dictionary,
    "flags": _flags,
    ":types": _types,
    "types?": _optional_types,
    "dims?": _dims,
    "symbols?": _symbols,
    "mask?": _mask,
    "upper?": _upper_bound,
    "compare_type?": _compare_type,
    "dot": _dot,
}


def _result_types(parts: OpParts, rule: str) -> list[MlirType]:
    types = parts.types
    last = parts.result_types or types
    match rule:
        case "none" | "to_none":
            return []
        case "index":
            return [_INDEX]
        case "indexing":
            return [_INDEX] * len(parts.attributes["map"].results)
        case "element":
            return [_element(types[0])]
        case "bool":
            return [_as_booleans(types[0])]
        case "first":
            return types[:1]
        case "all":
            return types
        case "shuffle":
            return [types[0], _BOOL]
        case "transfer":
            return types[-1:] if types[-1].kind == "tensor" else []
        case "function" | "to":
            return last
    return last[-1:]


def _element(held: MlirType) -> MlirType:
    if held.kind == "scalar":  # of a complex number
        return read_type(held.element.removeprefix("complex<").rstrip(">"))
    if held.element.startswith("complex<") and held.kind == "other":
        return UNKNOWN_TYPE
    return held.scalar()


def _as_booleans(held: MlirType) -> MlirType:
    if not held.is_shaped:
        return read_type("i1")
    sizes = "".join(f"{'?' if size < 0 else size}x" for size in held.dims)
    return read_type(f"{held.kind}<{sizes}i1>")


def make_op(
    parts: OpParts, name: str, source: Source, start: int, end: int, results: Sequence[MlirValue]
) -> MlirOp:
    """Return the op of these parts."""
    return MlirOp(
        name, source.span(start, end), tuple(results), tuple(parts.operands), parts.groups,
        parts.attributes, tuple(parts.regions), parts.is_known,
    )  # fmt: skip


def known_form(name: str) -> OpForm | None:
    """Return the form of an op; None if the reader knows none."""
    return forms().get(name)
