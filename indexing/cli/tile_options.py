"""Tile sizes, tile indices and limits on tilings, on the command line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from indexing.cli.options import MAX_DIGITS, ByteSize
from indexing.cli.parsed_text import ParsedText

if TYPE_CHECKING:
    from indexing.tiling.search.limits import TilingLimits

WHOLE: Final = 0
"""The size `:` of a tile, the whole dimension."""


class SizesText(ParsedText):
    """Sizes of a tile; `:` is a whole dimension, if that is accepted.

    >>> SizesText().convert("32, 64", None, None)
    (32, 64)
    >>> SizesText(has_whole=True).convert("1,:", None, None)
    (1, 0)
    """

    name = "sizes"

    def __init__(self, has_whole: bool = False) -> None:
        self.has_whole = has_whole

    def parse(self, text: str) -> tuple[int, ...]:
        return tuple([self._size(word, text) for word in _words(text)])

    def _size(self, word: str, text: str) -> int:
        if self.has_whole and word == ":":
            return WHOLE
        if not re.fullmatch(rf"\d{{1,{MAX_DIGITS}}}", word, re.ASCII) or int(word) == 0:
            raise ValueError(f"{text!r} is not a list of positive sizes, such as 32,64")
        return int(word)


class LoopSizesText(ParsedText):
    """Steps of loops by name.

    >>> LoopSizesText().convert("k=64, w0=1", None, None)
    {'k': 64, 'w0': 1}
    """

    name = "loops"

    def parse(self, text: str) -> dict[str, int]:
        steps: dict[str, int] = {}
        for word in _words(text):
            name, _, number = word.partition("=")
            if not re.fullmatch(rf"\d{{1,{MAX_DIGITS}}}", number, re.ASCII) or int(number) == 0:
                raise ValueError(f"{text!r} is not a list of positive steps, such as k=64")
            steps[name] = int(number)
        return steps


class TileIndexText(ParsedText):
    """The index of a tile.

    >>> TileIndexText().convert("[1, 0]", None, None)
    (1, 0)
    """

    name = "index"

    def parse(self, text: str) -> tuple[int, ...]:
        words = _words(text)
        for word in words:
            if not re.fullmatch(rf"\d{{1,{MAX_DIGITS}}}", word, re.ASCII):
                raise ValueError(
                    f"{text!r} is not the index of a tile, such as 1,0; indices count from 0"
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


class LimitsText(ParsedText):
    """The limits of a GPU model, or single ones.

    >>> LimitsText().convert("working-set=48KiB,tiles=1024", None, None)
    TilingLimits(min_elements=None, max_elements=None, max_working_set=49152, max_registers=None, \
max_shared_memory=None, max_tiles=1024, padded=False)
    """

    name = "limits"

    def parse(self, text: str) -> TilingLimits:
        from indexing.tiling.search.limits import TilingLimits

        limits = TilingLimits()
        for word in _words(text):
            name, is_single, number = word.partition("=")
            try:
                if is_single:
                    limits = _with_limit(limits, name, number)
                else:
                    preset, _, model = word.rpartition(":")
                    if preset not in ("", "xla"):
                        raise ValueError(f"{preset!r} is unknown")
                    limits = TilingLimits.xla(model) if preset else TilingLimits.of_gpu(model)
            except ValueError as error:
                names = ", ".join([f"{each}=N" for each in LIMIT_NAMES])
                message = f"{word!r}: {error}; expected a GPU such as H100, xla:H100, {names}"
                raise ValueError(message) from None
        return limits


def _with_limit(limits: TilingLimits, name: str, number: str) -> TilingLimits:
    if name not in LIMIT_NAMES:
        raise ValueError(f"{name!r} is not a limit")
    given: dict[str, Any] = {LIMIT_NAMES[name]: ByteSize().convert(number, None, None)}
    return replace(limits, **given)
