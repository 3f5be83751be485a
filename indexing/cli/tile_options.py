"""Tile sizes, tile indices and limits on tilings, on the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from indexing.cli.options import MAX_DIGITS, ByteSize

if TYPE_CHECKING:
    from indexing.tiling.search.limits import TilingLimits

WHOLE: Final = 0
"""The size `:` of a tile, the whole dimension."""


class SizesText(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """Sizes of a tile; `:` is a whole dimension, if that is accepted.

    >>> SizesText().convert("32, 64", None, None)
    (32, 64)
    >>> SizesText(has_whole=True).convert("1,:", None, None)
    (1, 0)
    """

    name = "sizes"

    def __init__(self, has_whole: bool = False) -> None:
        self.has_whole = has_whole

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        return tuple([self._size(word, value, param, context) for word in _words(str(value))])

    def _size(
        self, word: str, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> int:
        if self.has_whole and word == ":":
            return WHOLE
        if not re.fullmatch(rf"\d{{1,{MAX_DIGITS}}}", word, re.ASCII) or int(word) == 0:
            self.fail(f"{value!r} is not a list of positive sizes, such as 32,64", param, context)
        return int(word)


class TileIndexText(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """The index of a tile.

    >>> TileIndexText().convert("[1, 0]", None, None)
    (1, 0)
    """

    name = "index"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        words = _words(str(value))
        for word in words:
            if not re.fullmatch(rf"\d{{1,{MAX_DIGITS}}}", word, re.ASCII):
                self.fail(
                    f"{value!r} is not the index of a tile, such as 1,0; indices count from 0",
                    param,
                    context,
                )
        return tuple(map(int, words))


def _words(text: str) -> list[str]:
    inside = text.strip()
    if inside.startswith("[") and inside.endswith("]"):
        inside = inside[1:-1].strip()
    return [word.strip() for word in inside.split(",")] if inside else []


LIMIT_NAMES: Final = {
    "min-elements": "min_elements",
    "elements": "max_elements",
    "working-set": "max_working_set",
    "registers": "max_registers",
    "shared-memory": "max_shared_memory",
    "tiles": "max_tiles",
}
"""The names of limits on the command line, with the attributes of `TilingLimits`."""


class LimitsText(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.2
    """The limits of a GPU model, or single ones.

    >>> LimitsText().convert("working-set=48KiB,tiles=1024", None, None)
    TilingLimits(min_elements=None, max_elements=None, max_working_set=49152, max_registers=None, \
max_shared_memory=None, max_tiles=1024, padded=False)
    """

    name = "limits"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> TilingLimits:
        from indexing.tiling.search.limits import TilingLimits

        if isinstance(value, TilingLimits):
            return value
        limits = TilingLimits()
        for word in _words(str(value)):
            name, is_single, number = word.partition("=")
            try:
                if is_single:
                    limits = self._add_limit(limits, name, number, param, context)
                else:
                    preset, _, model = word.rpartition(":")
                    if preset not in ("", "xla"):
                        raise ValueError(f"{preset!r} is unknown")
                    limits = TilingLimits.xla(model) if preset else TilingLimits.of_gpu(model)
            except ValueError as error:
                names = ", ".join([f"{each}=N" for each in LIMIT_NAMES])
                message = f"{word!r}: {error}; expected a GPU such as H100, xla:H100, {names}"
                self.fail(message, param, context)
        return limits

    def _add_limit(
        self,
        limits: TilingLimits,
        name: str,
        number: str,
        param: click.Parameter | None,
        context: click.Context | None,
    ) -> TilingLimits:
        if name not in LIMIT_NAMES:
            raise ValueError(f"{name!r} is no limit")
        given: dict[str, Any] = {LIMIT_NAMES[name]: ByteSize().convert(number, param, context)}
        return replace(limits, **given)
