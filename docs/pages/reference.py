"""Pages of the reference: one for each room with its functions, one for each public class.

Functions share the page of their room, and classes have a folder, so that no two files differ in
case only (`Gather` and `gather`, `Devices` and `indexing.devices`).
autodoc reads the docstrings when Sphinx builds the pages.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

from docs.pages.related import related_pages

ROOMS: Final = {
    "indexing": "The main queries and their answers",
    "indexing.maps": "Maps, regions, properties, counts",
    "indexing.dataflow": "Queries about programs, loops and devices",
    "indexing.tiling": "Tilings, collapsed dimensions, gathers",
    "indexing.memory": "Bytes, coalescing, banks, layouts, caches",
    "indexing.devices": "Threads, blocks and devices",
    "indexing.sharding": "Arrays split over devices",
    "indexing.equivalence": "Programs compared, passes validated",
    "indexing.execution": "Modules executed on NumPy arrays",
    "indexing.codegen": "Loop nests",
    "indexing.frontends": "Functions of JAX",
    "indexing.pallas": "Blocks of Pallas calls",
    "indexing.kernels": "Kernels of emitters",
    "indexing.views": "Summaries",
    "indexing.drawing": "Pictures of answers",
    "hlo": "Modules, instructions, shapes, layouts, shardings, errors",
    "simplifier": "Expressions in normal form",
}
"""The packages with public names, in the order of the reference."""

WITH_OWN_NAMES: Final = ("indexing.execution", "indexing.pallas", "indexing.kernels")
"""The rooms whose names are not names of `indexing`."""

OWN_OPS: Final = {
    "hlo.ops.op": ("op", "custom_call", "configured", "attribute", "constraint", "Op"),
    "hlo.ops.rules": ("Fault", "HOLDS"),
    "hlo.ops.attributes": ("at_least", "integer"),
    "indexing.ops.base": (
        *("MappedOp", "NullaryOp", "UnaryOp", "BinaryOp", "TernaryOp", "VariadicOp"),
    ),
    "indexing.ops.needed_operands": ("NeededOperands",),
    "indexing.ops.element": (
        *("ConstantRule", "IotaRule", "ElementwiseRule", "CopyRule", "ReductionRule"),
        *("OpaqueRule", "DecidedRead", "Work"),
    ),
}
"""The names with which users declare ops of their own, by module: :doc:`/adding_an_op`."""


@cache
def public_names() -> dict[str, dict[str, Any]]:
    """Return the public names of each package with their values; each name in one package.

    >>> list(public_names()["indexing.codegen"])
    ['loop_nest']
    """
    result: dict[str, dict[str, Any]] = {}
    for room in ROOMS:
        module = import_module(room)
        names = sorted(module.__all__, key=str.casefold)
        main = result.get("indexing", {}) if room.startswith("indexing.") else {}
        result[room] = {name: getattr(module, name) for name in names if name not in main}
    return result


def documented_as(room: str, name: str) -> str:
    """Return the name by which users import it: names of rooms are names of `indexing`.

    >>> documented_as("indexing.maps", "Box"), documented_as("indexing.execution", "run")
    ('indexing.Box', 'indexing.execution.run')
    """
    is_short = room.startswith("indexing.") and room not in WITH_OWN_NAMES
    return f"indexing.{name}" if is_short else f"{room}.{name}"


@cache
def other_classes() -> dict[str, list[str]]:
    """Return the classes that annotations lead to, by room: values that users get, not make."""
    values = [value for names in public_names().values() for value in names.values()]
    result: dict[str, list[str]] = {room: [] for room in ROOMS}
    for cls in related_pages(values):
        rooms = [room for room in ROOMS if f"{cls.__module__}.".startswith(f"{room}.")]
        result[max(rooms, key=len)].append(f"{cls.__module__}.{cls.__qualname__}")
    return result


@cache
def link_targets() -> dict[Any, str]:
    """Return the documented name of each class and function."""
    targets = {
        value: documented_as(room, name)
        for room, names in public_names().items()
        for name, value in names.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
    for names in other_classes().values():
        for name in names:
            module, _, last = name.rpartition(".")
            targets[getattr(import_module(module), last)] = name
    return targets


@cache
def parameters() -> frozenset[str]:
    """Return the names of the parameters of all public functions and methods."""
    functions = [value for value in link_targets() if inspect.isroutine(value)]
    for cls in link_targets():
        if inspect.isclass(cls):
            members = [getattr(m, "__func__", m) for _, m in inspect.getmembers_static(cls)]
            functions += [member for member in members if inspect.isfunction(member)]
    return frozenset(name for each in functions for name in inspect.signature(each).parameters)


def pages() -> dict[str, str]:
    """Return the reStructuredText of each page by its file name."""
    result = {"index.rst": "\n".join(_index()), "own_ops.rst": "\n".join(_own_ops())}
    for room, names in public_names().items():
        result[f"{room}.rst"] = "\n".join(_room(room))
        for name, value in names.items():
            if inspect.isclass(value):
                result[f"{_place(room, name)}.rst"] = "\n".join(_class(room, name))
    return result


def _place(room: str, name: str) -> str:
    return documented_as(room, name).replace(".", "/")


def _title(text: str, line: str = "=") -> list[str]:
    return [text, line * len(text), ""]


def _index() -> Iterator[str]:
    yield from _title("Python interface")
    yield from (
        "Every public name, from its docstring. Names of the rooms of ``indexing`` are imported as",
        "``indexing.NAME``. :doc:`/python` is a tour with examples.",
        "",
        *(f"* :doc:`{room} <{room}>`: {text}" for room, text in ROOMS.items()),
        "* :doc:`Ops of your own <own_ops>`: declarations of ops and custom-call targets",
        "",
        ".. toctree::",
        "   :hidden:",
        "",
        *(f"   {room}" for room in ROOMS),
        "   own_ops",
        "",
    )


def _room(room: str) -> Iterator[str]:
    """Yield the page of a room: its docstring, its functions, links to its classes."""
    names = public_names()[room]
    classes = {name: value for name, value in names.items() if inspect.isclass(value)}
    yield from _title(f"``{room}``")
    yield from (f".. py:module:: {room}", "", inspect.getdoc(import_module(room)) or "", "")
    yield from _links("Functions", room, {n: v for n, v in names.items() if n not in classes})
    yield from _links("Classes", room, classes)
    if classes:
        yield from (".. toctree::", "   :hidden:", "")
        yield from (f"   {name} <{_place(room, name)}>" for name in classes)
        yield ""
    if len(names) > len(classes):
        yield from _title("Functions in detail", "-")
    for name, value in names.items():
        if name not in classes:
            directive = "autofunction" if inspect.isroutine(value) else "autodata"
            yield from (f".. {directive}:: {documented_as(room, name)}", "")
    if others := other_classes()[room]:
        yield from _title("Other classes", "-")
        yield from ("Of arguments, attributes and results; not names of the package itself.", "")
        for other in others:
            yield from (f".. autoclass:: {other}", "   :members:", "")


def _own_ops() -> Iterator[str]:
    """Yield the page of the names for ops of users; other pages may have their details."""
    yield from _title("Ops of your own")
    yield from (":doc:`/adding_an_op` is a guide with an example.", "")
    elsewhere = link_targets()
    for module, names in OWN_OPS.items():
        yield from _title(f"``{module}``", "-")
        for name in names:
            value = getattr(import_module(module), name)
            is_class, is_function = inspect.isclass(value), inspect.isroutine(value)
            if (is_class or is_function) and value in elsewhere:
                yield f"* :py:obj:`{name} <{elsewhere[value]}>`: {summary(value)}"
                yield ""
                continue
            kind = "autoclass" if is_class else "autofunction" if is_function else "autodata"
            yield f".. {kind}:: {module}.{name}"
            yield from (*(("   :members:",) if is_class else ()), "")


def _links(title: str, room: str, values: dict[str, Any]) -> Iterator[str]:
    if values:
        yield from _title(title, "-")
        for name, value in values.items():
            yield f"* :py:obj:`{name} <{documented_as(room, name)}>`: {summary(value)}"
        yield ""


def _class(room: str, name: str) -> Iterator[str]:
    yield from _title(f"``{name}``")
    yield from (f".. currentmodule:: {room}", "")
    yield from (f".. autoclass:: {documented_as(room, name)}", "   :members:", "")


def summary(value: Any) -> str:
    """Return the first sentence of a docstring, without a full stop.

    >>> summary(len)
    'Return the number of items in a container'
    """
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "a type alias"
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split()).removesuffix(".")
