"""Shardings in HLO's three notations.

* lists of devices in the order of tiles: ``{devices=[2,2]0,2,1,3}``;
* a permuted iota: ``{devices=[2,1,2]<=[4] last_tile_dim_replicate}``; the tiles of additional
  dimensions hold the same elements, partial values, or belong to a manual region;
* axes of a mesh: ``{mesh['x'=2,'y'=2], [{'x'}, {}]}``.

>>> print(parse_sharding("{devices=[2,1,2]<=[4] last_tile_dim_replicate}"))
[axis_0, _]
>>> shardings = parse_sharding("{{replicated}, {mesh['x'=2,'y'=2], [{}], unreduced={'y'}}}")
>>> print(*shardings)
[] [_] sum(y)

Source: XLA ``xla/hlo/parser/hlo_parser.cc``, ``ParseSingleSharding``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

from hlo.arguments import checked
from hlo.shardings import shardy_notation
from hlo.shardings.mesh import Axis, Mesh, mesh_fault, positive
from hlo.shardings.reading import (
    AxisReader,
    Context,
    check_rank,
    cursor_over,
    read_list,
    read_named_mesh,
    read_permutation,
)
from hlo.shardings.sharding import Hints, Sharding
from hlo.shardings.tiles import axes_of_devices, axes_of_tiles, iota_form
from hlo.text.cursor import Cursor
from hlo.text.names import nearest
from hlo.text.source import Span

_WORD: Final = re.compile(r"[A-Za-z_]\w*+", re.ASCII)
_NEXT: Final = re.compile(r",(?=\s*\d)", re.ASCII)
_REDUCTION: Final = re.compile(r"(?>max|min|sum)?+(?=\{)")
_WHOLE: Final = ("replicated", "manual", "unreduced", "unknown", "maximal")
_TYPES: Final = ("manual", "unreduced", "replicated")


@checked
def parse_sharding(
    text: str | Span, meshes: Mapping[str, Mesh] | None = None, devices: int = 1
) -> Sharding | tuple[Sharding, ...]:
    """Parse a sharding of HLO or Shardy, or a list of them.

    Args:
        text: such as ``{devices=[2,2]<=[4]}`` or ``#sdy.sharding<@mesh, [{"x"}, {}]>``.
        meshes: the meshes that texts of Shardy refer to, by name.
        devices: the number of devices, for texts that do not state it, such as ``{replicated}``.

    Raises:
        HloError: the text is not a sharding, or the mesh has no such axes.

    >>> mesh = Mesh.of({"x": 2, "y": 4})
    >>> print(parse_sharding('#sdy.sharding<@m, [{"y", "x"}, {?}]>', {"m": mesh}))
    [(y,x), _]
    """
    return read_sharding(cursor_over(text), Context(meshes or {}, devices))


def read_sharding(cursor: Cursor, context: Context) -> Sharding | tuple[Sharding, ...]:
    """Read the text at a cursor up to its end."""
    if cursor.accepts("#"):
        value = shardy_notation.read_sharding(cursor, context)
    else:
        value = _read_braces(cursor, context)
    if not cursor.at_end:
        raise cursor.fault("expected the end of the sharding")
    return value


def _read_braces(cursor: Cursor, context: Context) -> Sharding | tuple[Sharding, ...]:
    start = cursor.position
    cursor.expect("{")
    if cursor.accepts("}"):
        return ()
    if not cursor.accepts("{"):
        sharding = _read_single(cursor, context, 0)
        rank = context.ranks[0] if context.ranks and len(context.ranks) == 1 else None
        check_rank(cursor, cursor.source.span(start, cursor.position), sharding, rank)
        return sharding
    cursor.position -= 1
    shardings: list[Sharding] = []

    def read_element() -> None:
        first = cursor.position
        cursor.expect("{")
        ranks = context.ranks or ()
        number = len(shardings)
        sharding = _read_single(cursor, context, number)
        rank = ranks[number] if number < len(ranks) else None
        check_rank(cursor, cursor.source.span(first, cursor.position), sharding, rank)
        shardings.append(sharding)

    read_list(cursor, "}", read_element)
    return tuple(shardings)


def _device(cursor: Cursor) -> int:
    """Read the number of a device."""
    start = cursor.position
    number = cursor.integer()
    if fault := mesh_fault([], [number]):
        raise cursor.fault(fault, cursor.source.span(start, cursor.position))
    return number


def _read_single(cursor: Cursor, context: Context, number: int) -> Sharding:
    """Read one sharding after its opening brace."""
    rank = None
    if context.ranks is not None and number < len(context.ranks):
        rank = context.ranks[number]
    start = cursor.position
    if cursor.accepts("maximal_mesh["):
        cursor.expect("device_id")
        cursor.expect("=")
        mesh = Mesh.of({}, [_device(cursor)])
        cursor.expect("]")
        return _NamedReader(cursor, mesh, Hints(version=3, any_rank=True), rank).read()
    if cursor.accepts("mesh["):
        mesh, lists_devices = read_named_mesh(cursor)
        hints = Hints(version=3, lists_devices=lists_devices)
        return _NamedReader(cursor, mesh, hints, rank).read()
    return _TileReader(cursor, context, start).read(rank)


# ---------------------------------------------------------------- axes of a mesh


class _NamedReader:
    """Reads the rest of a sharding after its mesh."""

    def __init__(self, cursor: Cursor, mesh: Mesh, hints: Hints, rank: int | None) -> None:
        self.cursor, self.mesh, self.hints = cursor, mesh, hints
        self.axes = AxisReader(cursor, mesh)
        self.dims: tuple[tuple[Axis, ...], ...] = ((),) * (rank or 0)
        self.partial: tuple[tuple[Axis, str], ...] = ()
        self.manual: tuple[Axis, ...] = ()

    def read(self) -> Sharding:
        """Read up to the closing brace."""
        has_dims = self.mesh.is_maximal
        while not self.cursor.accepts("}"):
            self.cursor.expect(",")
            if self.cursor.accepts("["):
                has_dims = True
                self._dims()
            else:
                self._word()
        if not has_dims:
            self.hints = replace(self.hints, any_rank=True)
        return Sharding(self.mesh, self.dims, self.partial, self.manual, self.hints)

    def _dims(self) -> None:
        dims = read_list(self.cursor, "]", self.axes.dimension)
        self.dims = tuple([axes for axes, _ in dims])
        open_dims = tuple([k for k, (_, is_open) in enumerate(dims) if is_open])
        self.hints = replace(self.hints, open_dims=open_dims)

    def _word(self) -> None:
        word = self.cursor.need(_WORD, "the axes of dimensions in brackets, or a word")
        every = tuple([Axis(name) for name in self.mesh.sizes])
        has_value = self.cursor.accepts("=")
        match word[0]:
            case "replicated":
                replicated = self.axes.braces() if has_value else ()
                self.hints = replace(self.hints, replicated=replicated)
            case "manual":
                self.manual = self.axes.braces() if has_value else every
            case "unreduced":
                reduction = self.cursor.take(_REDUCTION) if has_value else None
                kind = (reduction[0] if reduction else "") or "sum"
                axes = self.axes.braces() if has_value else every
                self.partial = tuple([(axis, kind) for axis in axes])
            case "metadata" if has_value:
                self.hints = replace(self.hints, metadata=self.cursor.group())
            case _:
                words = ("replicated", "manual", "unreduced", "metadata")
                raise _unknown_word(self.cursor, word, words)


# ---------------------------------------------------------------- tiles


@dataclass(slots=True)
class _TileText:
    """``devices=[tiles]<=[reshape]T(transpose)``, or a list of devices."""

    tiles: list[int]
    devices: list[int] = field(default_factory=list)
    reshape: list[int] = field(default_factory=list)
    transpose: tuple[int, ...] = ()


class _TileReader:
    """Reads a sharding of words and tiles."""

    def __init__(self, cursor: Cursor, context: Context, start: int) -> None:
        self.cursor, self.context, self.start = cursor, context, start
        self.whole = ""
        self.device: int | None = None
        self.tiles: _TileText | None = None
        self.tiles_end = start
        self.types: list[str] = []
        self.hints = Hints(version=2)

    def read(self, rank: int | None) -> Sharding:
        """Read up to the closing brace."""
        while not self.cursor.accepts("}"):
            self._word()
            self.cursor.accepts(",")
        if (self.whole and self.tiles) or not (self.whole or self.tiles):
            raise self._fault("expected either tiles or one of " + ", ".join(_WHOLE))
        if self.tiles is not None:
            return self._tiled_sharding(self.tiles)
        return self._undivided_sharding(((),) * (rank or 0))

    def _word(self) -> None:
        word = self.cursor.need(_WORD, f"devices=[...] or one of {', '.join(_WHOLE)}")
        actions: dict[str, Callable[[], None]] = {
            "device": self._read_device,
            "devices": self._read_tiles,
            "last_tile_dims": self._read_types,
            "metadata": self._read_metadata,
        }
        if word[0] in _WHOLE:
            self.whole = word[0]
        elif word[0] == "last_tile_dim_replicate":
            self.types = ["replicated"]
        elif word[0] in ("shard_as", "shard_like"):
            self.hints = replace(self.hints, group=f"{word[0]} {self.cursor.integer()}")
        elif word[0] in actions:
            self.cursor.expect("=")
            actions[word[0]]()
        else:
            words = (*_WHOLE, *actions, "last_tile_dim_replicate", "shard_as", "shard_like")
            raise _unknown_word(self.cursor, word, words)

    def _read_device(self) -> None:
        self.device = _device(self.cursor)

    def _read_metadata(self) -> None:
        self.hints = replace(self.hints, metadata=self.cursor.group())

    def _read_types(self) -> None:
        self.cursor.expect("{")

        def read_type() -> str:
            word = self.cursor.need(_WORD, f"one of {', '.join(_TYPES)}")
            if word[0] not in _TYPES:
                raise _unknown_word(self.cursor, word, _TYPES)
            return word[0]

        self.types = read_list(self.cursor, "}", read_type)

    def _read_tiles(self) -> None:
        self.cursor.expect("[")
        tiles = _TileText(self._integers())
        if self.cursor.accepts("<="):
            self.cursor.expect("[")
            tiles.reshape = self._integers()
            tiles.transpose = read_permutation(self.cursor, len(tiles.reshape))
        else:
            self.hints = replace(self.hints, version=1)
            tiles.devices = [self.cursor.integer()]
            while self.cursor.take(_NEXT):
                tiles.devices.append(self.cursor.integer())
        self.tiles, self.tiles_end = tiles, self.cursor.position

    def _integers(self) -> list[int]:
        return read_list(self.cursor, "]", lambda: positive(self.cursor, "a number of tiles"))

    def _fault(self, label: str) -> Exception:
        return self.cursor.fault(label, self.cursor.source.span(self.start, self.cursor.position))

    def _undivided_sharding(self, dims: tuple[tuple[Axis, ...], ...]) -> Sharding:
        hints, mesh = replace(self.hints, any_rank=True), self.context.mesh
        every = (Axis("axis_0"),)
        match self.whole:
            case "maximal":
                if self.device is None:
                    raise self._fault("expected `device=` and its number")
                return Sharding(Mesh.of({}, [self.device]), dims, hints=hints)
            case "manual":
                return Sharding(mesh, dims, manual=every, hints=hints)
            case "unreduced":
                return Sharding(mesh, dims, partial=((every[0], "sum"),), hints=hints)
            case "unknown":
                open_dims = tuple(range(len(dims)))
                return Sharding(
                    mesh, dims, hints=replace(hints, is_unknown=True, open_dims=open_dims)
                )
            case _:
                return Sharding(mesh, dims, hints=hints)

    def _tiled_sharding(self, read: _TileText) -> Sharding:
        count = len(read.devices) or prod(read.reshape)
        fault = "" if count == prod(read.tiles) else f"{count} devices for {prod(read.tiles)} tiles"
        if fault := fault or mesh_fault([("tiles", count)], read.devices or None):
            raise self.cursor.fault(fault, self.cursor.source.span(self.start, self.tiles_end))
        form = iota_form(read.devices) if read.devices else (read.reshape, read.transpose)
        mesh, axes = (
            axes_of_tiles(read.tiles, *form) if form else axes_of_devices(read.tiles, read.devices)
        )
        rank = len(axes) - len(self.types)
        if rank < 0:
            raise self._fault(f"{len(self.types)} kinds for {len(axes)} dimensions of tiles")
        kinds = list(zip(self.types, axes[rank:], strict=True))
        partial = [(axis, "sum") for kind, each in kinds if kind == "unreduced" for axis in each]
        manual = [axis for kind, each in kinds if kind == "manual" for axis in each]
        return Sharding(mesh, axes[:rank], tuple(partial), tuple(manual), self.hints)


def _unknown_word(cursor: Cursor, word: re.Match[str], words: tuple[str, ...]) -> Exception:
    span = cursor.source.span(*word.span())
    return cursor.fault(
        f"`{word[0]}` is not a word of shardings", span, help=nearest(word[0], words)
    )
