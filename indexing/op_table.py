"""The registry of ops as a table: what `hlo-indexing ops` prints.

>>> from hlo.op import OPS
>>> import indexing.ops
>>> faces(OPS["transpose"]), faces(OPS["fusion"])
('shape, partial shapes, maps, kernel', 'called shape, partial shapes, maps of its leaves')
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from hlo.op import OPS, TARGETS, Op
from hlo.signatures import describe
from indexing.leafwise import LeafwiseOp
from indexing.op import MappedOp, RoutingOp

_HEAD = """\
# Opcodes with maps

{count} opcodes and targets; a family is a module of `indexing/ops/`. Written by `make docs`.
Any other opcode parses, prints, and is answered with a reason.

What is known of an op: its *shape* (also of operands with dimensions of unknown size: *partial
shapes*); its *maps*, from output to input and back, or for ops on tuples the *routes* of their
leaves; a NumPy *kernel*, which the maps are proved with. What is *called* comes from the
computation that the op calls. An attribute in brackets has a default.

| opcode | family | attributes | what is known | what it computes |
|---|---|---|---|---|"""


def faces(cls: type[Op]) -> str:
    """What is known of an op: shape, maps, kernel."""
    found = ["called shape" if cls.runs_called else "shape"]
    found += ["partial shapes"] if cls.takes_partial else []
    if issubclass(cls, MappedOp):
        found += ["maps", "kernel"]
    elif issubclass(cls, RoutingOp):
        found += ["routes"]
    elif issubclass(cls, LeafwiseOp):
        found += ["maps of its leaves"]
    return ", ".join(found)


def named_ops() -> dict[str, type[Op]]:
    """Every op by its opcode, and after ``custom-call`` every target as ``custom-call TARGET``."""
    import_module("indexing.ops")
    targets = {f"custom-call {target}": cls for target, cls in TARGETS.items()}
    return dict(sorted({**OPS, **targets}.items()))


def op_lines(notation: str) -> Iterator[str]:
    """The registry: text, a page of Markdown, or JSON with an op a line."""
    ops = named_ops()
    match notation:
        case "json":
            for name, cls in ops.items():
                yield json.dumps({"opcode": name, **_summary(cls), **describe(cls)})
        case "markdown":
            yield from _HEAD.format(count=len(ops)).splitlines()
            yield from (_row(name, cls) for name, cls in ops.items())
        case _:
            for name, cls in ops.items():
                yield from _text(name, cls)


def _summary(cls: type[Op]) -> dict[str, str]:
    says = (cls.__doc__ or "").partition("\n")[0]
    return {"family": cls.__module__.rpartition(".")[2], "says": says, "known": faces(cls)}


def _row(name: str, cls: type[Op]) -> str:
    summary = {key: value.replace("|", "\\|") for key, value in _summary(cls).items()}
    attributes = describe(cls)["attributes"]
    texts = [f"[{key}]" if "default" in a else key for key, a in attributes.items()]
    inside = " ".join(texts)
    return f"| {name} | {summary['family']} | {inside} | {summary['known']} | {summary['says']} |"


def _text(name: str, cls: type[Op]) -> Iterator[str]:
    """A line for the op, and indented ones for what it demands."""
    summary, described = _summary(cls), describe(cls)
    yield f"{name:26}  {summary['family']:18}  {summary['says']}"
    least, most = described["operands"]
    count = least if least == most else f"{least} or more" if most is None else f"{least} to {most}"
    types = f" of types {', '.join(described['types'])}" if described["types"] else ""
    yield f"  operands: {count}{types}; known: {summary['known']}"
    for key, attribute in described["attributes"].items():
        yield f"  {key}: {_attribute(attribute)}"
    for label, sentence in described["constraints"].items():
        yield f"  {label}: {sentence}"


def _attribute(described: dict[str, Any]) -> str:
    limits = [
        f"{name} {', '.join(filter(None, value)) if isinstance(value, list) else value}"
        for name, value in described.get("limits", {}).items()
    ]
    kind = ", ".join([*([] if described["kind"] == "one of" else [described["kind"]]), *limits])
    return f"{kind}; default {described['default']}" if "default" in described else kind
