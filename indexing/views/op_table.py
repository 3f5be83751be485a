"""The registry of ops as a table: what `hlo-indexing ops` prints.

Grades and kinds of maps are not written down anywhere: they are those of the answers for the
samples of the ops (`indexing.views.op_coverage`).

>>> from hlo.ops.op import OPS
>>> import indexing.ops
>>> faces(OPS["transpose"]), faces(OPS["fusion"])
('shape, partial shapes, maps, kernel', 'called shape, partial shapes, maps of its leaves')
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from hlo.ops.op import OPS, TARGETS, Op
from hlo.ops.signatures import describe
from indexing.maps.answers import Direction
from indexing.ops.base import MappedOp, RoutingOp
from indexing.ops.structured_ops import StructuredOp
from indexing.views.op_coverage import KINDS, Coverage, coverage

DIRECTIONS: Final[tuple[Direction, ...]] = ("output-to-input", "input-to-output")
_HEAD = """\
# Coverage of opcodes

{count} opcodes and targets of custom-call. Written by `make docs`, from the registry and from the
answers for the samples of each op. Any other opcode parses, prints, and is answered with a reason.

## Maps

`exact`: precisely the elements needed; `may`: no fewer than those needed. An op whose operands
differ, or whose maps depend on its attributes, has several grades and kinds. Kinds of maps:

{kinds}

| opcode | output to input | input to output |
|---|---|---|
{maps}

## What is known beside maps

Of each op: its *shape* (also of operands with dimensions of unknown size: *partial
shapes*); its *maps*, from output to input and back, or for ops on tuples the *routes* of their
leaves; a NumPy *kernel*, which the maps are proved with. What is *called* comes from the
computation that the op calls. An attribute in brackets has a default; a family is a module of
`indexing/ops/`.

| opcode | family | attributes | what is known | what it computes |
|---|---|---|---|---|
{ops}"""


def faces(cls: type[Op]) -> str:
    """What is known of an op: shape, maps, kernel."""
    found = ["called shape" if cls.runs_called else "shape"]
    found += ["partial shapes"] if cls.takes_partial else []
    if issubclass(cls, MappedOp):
        found += ["maps", "kernel"]
    elif issubclass(cls, RoutingOp):
        found += ["routes"]
    elif issubclass(cls, StructuredOp):
        found += ["maps of its leaves"]
    return ", ".join(found)


def named_ops() -> dict[str, type[Op]]:
    """Every op by its opcode, and after ``custom-call`` every target as ``custom-call TARGET``."""
    import_module("indexing.ops")
    targets = {f"custom-call {target}": cls for target, cls in TARGETS.items()}
    return dict(sorted({**OPS, **targets}.items()))


def op_lines(notation: str, wanted: Sequence[str] = ()) -> Iterator[str]:
    """The registry: a table as text, a page of Markdown, or JSON with an op a line.

    Args:
        notation: "text", "markdown" or "json".
        wanted: opcodes; text tells all that is known of these.
    """
    ops = {name: cls for name, cls in named_ops().items() if not wanted or name in wanted}
    match notation:
        case "json":
            for name, cls in ops.items():
                yield json.dumps({"opcode": name, **_summary(cls), **_maps(cls), **describe(cls)})
        case "markdown":
            yield _page(ops)
        case _:
            for name, line in zip(["", *ops], _table(ops), strict=True):
                yield line
                if wanted and name:
                    yield from _text(ops[name])


def _page(ops: Mapping[str, type[Op]]) -> str:
    kinds = "\n".join(f"* *{kind}*: {meaning};" for kind, meaning in KINDS.items())
    return _HEAD.format(
        count=len(ops),
        kinds=kinds.removesuffix(";") + ".",
        maps="\n".join(_markdown_row(name, *_both(cls)) for name, cls in ops.items()),
        ops="\n".join(_row(name, cls) for name, cls in ops.items()),
    )


def _table(ops: Mapping[str, type[Op]]) -> Iterator[str]:
    """A line with the titles of the columns, and one for each op."""
    rows = [("OPCODE", *DIRECTIONS)] + [(n, *map(str, _both(c))) for n, c in ops.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *cells, last in rows:
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
        yield "  ".join([*padded, last])


def _both(cls: type[Op]) -> tuple[Coverage, ...]:
    return tuple([coverage(cls, direction) for direction in DIRECTIONS])


def _maps(cls: type[Op]) -> dict[str, Any]:
    """What is answered in each direction, for JSON."""
    return {
        direction: {"grades": found.grades, "kinds": found.kinds, "reasons": found.reasons}
        for direction, found in zip(DIRECTIONS, _both(cls), strict=True)
    }


def _markdown_row(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _summary(cls: type[Op]) -> dict[str, str]:
    says = (cls.__doc__ or "").partition("\n")[0]
    return {"family": cls.__module__.rpartition(".")[2], "says": says, "known": faces(cls)}


def _row(name: str, cls: type[Op]) -> str:
    summary, attributes = _summary(cls), describe(cls)["attributes"]
    texts = [f"[{key}]" if "default" in a else key for key, a in attributes.items()]
    inside = " ".join(texts)
    return _markdown_row(name, summary["family"], inside, summary["known"], summary["says"])


def _text(cls: type[Op]) -> Iterator[str]:
    """Indented lines: what an op computes, what it demands, and why an answer is unknown."""
    summary, described = _summary(cls), describe(cls)
    yield f"  {summary['says']}"
    least, most = described["operands"]
    count = least if least == most else f"{least} or more" if most is None else f"{least} to {most}"
    types = f" of types {', '.join(described['types'])}" if described["types"] else ""
    yield f"  operands: {count}{types}; known: {summary['known']}; family: {summary['family']}"
    for key, attribute in described["attributes"].items():
        yield f"  {key}: {_attribute(attribute)}"
    for label, sentence in described["constraints"].items():
        yield f"  {label}: {sentence}"
    for reason in dict.fromkeys(reason for found in _both(cls) for reason in found.reasons):
        yield f"  unknown: {reason}"


def _attribute(described: dict[str, Any]) -> str:
    limits = [
        f"{name} {', '.join(filter(None, value)) if isinstance(value, list) else value}"
        for name, value in described.get("limits", {}).items()
    ]
    kind = ", ".join([*([] if described["kind"] == "one of" else [described["kind"]]), *limits])
    return f"{kind}; default {described['default']}" if "default" in described else kind
