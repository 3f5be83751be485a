"""Functions and arguments that are named in text, as at the shell.

>>> for shape in shape_trees("bf16[8,128], s32[]"):
...     print(shape)
bf16[8,128]
s32[]
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import hlo
from hlo.shapes.array_shape import Shape
from hlo.shapes.element_type import ELEMENT_TYPES, dtype
from hlo.text.names import did_you_mean, similar
from indexing.frontends.function_names import split_name

_MAX_LISTED: Final = 8
_SYMBOLIC: Final = re.compile(r"\s*(\w+)\[(.+)\]\s*")


def load_function(name: str) -> Any:
    """Return the function that ``jax:FILE.py:FUNCTION`` or ``jax:MODULE:FUNCTION`` names.

    Raises:
        ValueError: the text is no such name, or the module has no such function.
        OSError: the file cannot be read.
        Exception: whatever importing the module raises.
    """
    # bytecode of a file that is changed within a second, and keeps its size, is stale
    sys.dont_write_bytecode = True
    place, function = split_name(name)
    module = _load_file(place) if place.endswith(".py") else _import(place)
    value: Any = module
    for part in function.split("."):
        if not hasattr(value, part):
            raise ValueError(f"{place} has no {function!r}: {_functions_of(module, function)}")
        value = getattr(value, part)
    return value


def _functions_of(module: ModuleType, wanted: str) -> str:
    """Return which functions of a module have a similar name, or else its own functions."""
    known = {name: value for name, value in vars(module).items() if callable(value)}
    if question := did_you_mean(similar(wanted, known)):
        return question
    own = [n for n, value in known.items() if getattr(value, "__module__", "") == module.__name__]
    shown = own or list(known)
    listed = ", ".join([*shown[:_MAX_LISTED], *["..."][: len(shown) > _MAX_LISTED]])
    return f"it has {listed or 'no function'}"


def _import(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())  # as `python -m`
    return import_module(name)


def _load_file(path: str) -> ModuleType:
    file = Path(path).resolve(strict=True)
    sys.path.insert(0, str(file.parent))  # as `python FILE.py`
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class SymbolicShape:
    """A shape with symbolic sizes, as text: ``f32[8*n,128]``."""

    element_type: str
    sizes: tuple[str, ...]


def arguments(text: str, is_symbolic: bool = False, constraints: Sequence[str] = ()) -> list[Any]:
    """Return the arguments of a function, given as shapes of HLO.

    Args:
        is_symbolic: sizes may be symbols and formulas of them.
        constraints: conditions on symbols, as ``jax.export.SymbolicScope`` takes them.
        text: shapes with commas between them, such as ``bf16[8,128], s32[]``, or a list of JSON
            with one item for each argument.  In JSON, a text is a shape, lists and objects are
            pytrees, and numbers, booleans and null stand for themselves, for static arguments.
    Raises:
        ValueError: the text is no such list; the message says what was expected.

    >>> parsed = shape_trees('[{"w": "f32[5,7]"}, 3]')
    >>> parsed[0]["w"].dims, parsed[1]
    ((5, 7), 3)
    """
    trees = shape_trees(text, is_symbolic)
    scope = import_module("jax.export").SymbolicScope(constraints) if is_symbolic else None
    return [_argument(each, scope) for each in trees]


def shape_trees(text: str, is_symbolic: bool = False) -> list[Any]:
    """Return the arguments of `arguments`, with shapes of `hlo` as leaves.

    >>> shape_trees("f32[n,128]", is_symbolic=True)
    [SymbolicShape(element_type='f32', sizes=('n', '128'))]
    """
    if not text.strip():
        return []
    if text.lstrip().startswith("["):
        try:
            trees = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{text!r} is not JSON: {error}: expected a list with an item for each argument, "
                """such as '[{"w": "f32[5,7]"}, "bf16[8,128]"]'"""
            ) from None
        return [_tree(each, is_symbolic) for each in trees]
    return [_shape(each, is_symbolic) for each in _split(text)]


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a text between commas outside of brackets."""
    depth = start = 0
    for place, character in enumerate(text):
        depth += (character in "[({") - (character in "])}")
        if character == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    yield text[start:]


def _tree(value: Any, is_symbolic: bool) -> Any:
    if isinstance(value, str):
        return _shape(value, is_symbolic)
    if isinstance(value, list):
        return [_tree(each, is_symbolic) for each in value]
    if isinstance(value, dict):
        return {key: _tree(each, is_symbolic) for key, each in value.items()}
    return value


def _shape(text: str, is_symbolic: bool) -> Shape | SymbolicShape:
    match = _SYMBOLIC.fullmatch(text) if is_symbolic else None
    if match is not None and match[1] in ELEMENT_TYPES and not match[2].isdecimal():
        sizes = tuple([size.strip() for size in _split(match[2])])
        if not all(size.isdecimal() for size in sizes):
            return SymbolicShape(match[1], sizes)
    try:
        shape = hlo.parse_shape(text.strip())
    except hlo.HloError as error:
        raise ValueError(f"{text.strip()!r} is not a shape: {error.message}") from None
    if not isinstance(shape, Shape) or shape.is_dynamic:
        raise ValueError(
            f"{text.strip()!r} is not a shape of an array: expected one such as bf16[8,128]"
        )
    return shape


def _argument(tree: Any, scope: Any) -> Any:
    if isinstance(tree, Shape):
        return import_module("jax").ShapeDtypeStruct(tree.dims, dtype(tree.element_type))
    if isinstance(tree, SymbolicShape):
        sizes = import_module("jax.export").symbolic_shape(",".join(tree.sizes), scope=scope)
        return import_module("jax").ShapeDtypeStruct(sizes, dtype(tree.element_type))
    if isinstance(tree, list):
        return [_argument(each, scope) for each in tree]
    if isinstance(tree, dict):
        return {key: _argument(each, scope) for key, each in tree.items()}
    return tree


def source_digests() -> dict[str, str]:
    """Return the files of loaded modules that are no installed packages, with their digests."""
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    return {file: digest_of(file) for file in sorted(filter(is_of_program, files))}


def is_of_program(file: str) -> bool:
    """Return True for a source file that is neither installed nor of this package."""
    is_source = file.endswith(".py") and not file.startswith(_installed_folders())
    return is_source and os.path.exists(file)


@cache
def _installed_folders() -> tuple[str, ...]:
    """Return the folders of the standard library, of installed packages and of this package."""
    installed = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    own = [str(Path(__file__).parents[2] / name) for name in ("hlo", "indexing", "simplifier")]
    return (*installed, *own)


def digest_of(file: str) -> str:
    """Return the digest of a file; "" if it cannot be read."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""
