"""Conversion of maps to and from JSON, without loss; reading checks every field.

Expressions are text in the notation of maps, bounds are inclusive, and instructions are written as
their names: a map read from JSON belongs to no module.

Source: RFC 8259 (JSON).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from hlo.arguments import checked
from indexing.maps.indexing_map import Grade, IndexingMap
from indexing.maps.runtime_variable import RuntimeVariable
from simplifier.atoms import Variable
from simplifier.constraints import Constraint
from simplifier.linear import Expr
from simplifier.reading import TextError, parse_expr
from simplifier.text import exact_text

JSON_VERSION: Final = 2
"""Version of the format; version 1 stored the text, and lost the dimensions of empty maps."""

_GRADES: Final[tuple[Grade, ...]] = ("exact", "may")


def to_json(indexing_map: IndexingMap) -> str:
    """Return the map as the text of a JSON object; sources are written as instruction names.

    Raises:
        ValueError: shared subexpressions make a text too long (`simplifier.text.MAX_TEXT`).

    >>> print(to_json(IndexingMap.over((4,), lambda d: [d[0] // 2])))
    {"version": 2, "dims": [["d0", 0, 3]], "ranges": [], "runtime": [],
    "results": ["d0 floordiv 2"], "constraints": [], "grade": "exact"}
    """
    record = {
        "version": JSON_VERSION,
        "dims": [_variable_json(v) for v in indexing_map.dims],
        "ranges": [_variable_json(v) for v in indexing_map.ranges],
        "runtime": list(map(_runtime_json, indexing_map.runtime)),
        "results": [exact_text(result) for result in indexing_map.results],
        "constraints": [[exact_text(c.expr), c.lower, c.upper] for c in indexing_map.constraints],
        "grade": indexing_map.grade,
    }
    return json.dumps(record)


def _runtime_json(rt: RuntimeVariable) -> dict[str, Any]:
    """Return a runtime variable as a value for JSON; only a source inside of loops has iterations.

    The keys of other runtime variables are those before there were maps of loops.
    """
    record = {
        "variable": _variable_json(rt.variable),
        "source": rt.source_name,
        "calls": rt.call_names,
        "iterations": [exact_text(expr) for expr in rt.iterations],
        "index": [exact_text(expr) for expr in rt.element],
        "clamp": rt.clamp,
    }
    if not rt.iterations:
        del record["iterations"]
    return record


def _variable_json(variable: Variable) -> tuple[str, int, int]:
    return variable.name, variable.lower, variable.upper


@checked
def from_json(text: str | bytes) -> IndexingMap:
    """Return the map that `to_json` wrote; the sources of its runtime variables are names.

    Raises:
        ValueError: `text` is not JSON, has another version, or is not a map; the message starts
            with the location, such as ``runtime[0].clamp``.

    >>> half = IndexingMap.over((4,), lambda d: [d[0] // 2])
    >>> from_json(to_json(half)) == half
    True
    >>> from_json('{"version": 2, "dims": [["d0", 0]]}')
    Traceback (most recent call last):
    ...
    ValueError: dims[0]: expected [name, lower, upper], found ["d0", 0]
    """
    root = _At(_load_object(text), "")
    version = root.field("version")
    if version.value != JSON_VERSION or version.value is True:
        version.fail(f"{JSON_VERSION} (the format version)")
    dims = [_variable(v) for v in root.field("dims").items()]
    fields = {"version", "dims", "ranges", "runtime", "results", "constraints", "grade"}
    root.has_only(fields)
    ranges = [_variable(v) for v in root.field("ranges").items()]
    entries = root.field("runtime").items()
    variables = [_variable(entry.field("variable")) for entry in entries]
    names = {v.name: v for v in (*dims, *ranges, *variables)}
    if len(names) < len(dims) + len(ranges) + len(variables):
        every = [*dims, *ranges, *variables]
        raise ValueError(f"the variables of a map need distinct names, got {every}")
    grade = root.field("grade")
    if grade.value not in _GRADES:
        grade.fail('"exact" or "may"')
    return IndexingMap.of(
        dims,
        [_expr(at, names) for at in root.field("results").items()],
        ranges=ranges,
        runtime=[_runtime(at, v, names) for at, v in zip(entries, variables, strict=True)],
        constraints=[_constraint(at, names) for at in root.field("constraints").items()],
        grade=grade.value,
    )


def _load_object(text: Any) -> Any:
    if not isinstance(text, str | bytes):
        raise ValueError(f"expected the text of a JSON object, found {type(text).__name__}")
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply for a map") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON: {error}") from None


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError(f"an object must not repeat a key: {[key for key, _ in pairs]}")
    return members


class _At(NamedTuple):
    """A value in the JSON, and its path."""

    value: Any
    path: str

    def fail(self, expected: str) -> NoReturn:
        text = json.dumps(self.value, default=str)
        text = text if len(text) <= 60 else f"{text[:60]}…"
        raise ValueError(f"{self.path or 'the JSON'}: expected {expected}, found {text}")

    def field(self, name: str) -> _At:
        if not isinstance(self.value, dict):
            self.fail("an object")
        if name not in self.value:
            self.fail(f'an object with "{name}"')
        return _At(self.value[name], f"{self.path}.{name}" if self.path else name)

    def has_only(self, names: Iterable[str]) -> None:
        unexpected = sorted(self.value.keys() - set(names))
        if unexpected:
            self.fail(f'an object without "{unexpected[0]}"')

    def items(self) -> list[_At]:
        if not isinstance(self.value, list):
            self.fail("a list")
        return [_At(item, f"{self.path}[{k}]") for k, item in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.fail("a string")
        return self.value

    def integer(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.fail("an integer")
        return self.value


def _triple(at: _At, first: str) -> tuple[_At, int, int]:
    items = at.items()
    if len(items) != 3:
        at.fail(f"[{first}, lower, upper]")
    return items[0], items[1].integer(), items[2].integer()


def _variable(at: _At) -> Variable:
    name, lower, upper = _triple(at, "name")
    return Variable(name.text(), lower, upper)


def _constraint(at: _At, names: Mapping[str, Variable]) -> Constraint:
    expr, lower, upper = _triple(at, "expression")
    return Constraint(_expr(expr, names), lower, upper)


def _expr(at: _At, names: Mapping[str, Variable]) -> Expr:
    text = at.text()
    try:
        return parse_expr(text, names)
    except TextError as error:
        place = f"{at.path}: in `{text}` at character {error.start + 1}"
        raise ValueError(f"{place}: {error.message}") from None


def _runtime(at: _At, variable: Variable, names: Mapping[str, Variable]) -> RuntimeVariable:
    at.has_only({"variable", "source", "calls", "iterations", "index", "clamp"})
    source, clamp = at.field("source"), at.field("clamp")
    if source.value is not None and not isinstance(source.value, str):
        if not isinstance(source.value, int) or isinstance(source.value, bool):
            source.fail("the name of an instruction, the index of an operand, or null")
    bounds = None
    if clamp.value is not None:
        items = clamp.items()
        if len(items) != 2:
            clamp.fail("[lower, upper] or null")
        bounds = items[0].integer(), items[1].integer()
    inside = "iterations" in at.value
    iterations = [_expr(e, names) for e in at.field("iterations").items()] if inside else []
    return RuntimeVariable(
        variable,
        source.value,
        (*iterations, *[_expr(expr, names) for expr in at.field("index").items()]),
        bounds,
        tuple([call.text() for call in at.field("calls").items()]),
        len(iterations),
    )
