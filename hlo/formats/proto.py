"""Serialized HLO modules to text, through jaxlib: XLA alone knows its protocol buffers."""

from __future__ import annotations

from typing import Final

from hlo.text.source import HloError, Source

_FIELD_1: Final = b"\x0a"  # with a length: the module in an HloProto, the name in a module


def proto_text(data: bytes, filename: str) -> str:
    """The text of a serialized HloModuleProto, or of the one in an HloProto.

    Raises:
        HloError: the bytes are no module, or jaxlib is not installed.
    """
    place = Source("", filename).span(0)
    try:
        from jaxlib import _hlo
    except ImportError:
        message = "protocol buffers are read through jaxlib, which is not installed"
        hint = "pip install 'hlo-indexing[xla]', or print the module as text"
        raise HloError(message, place, "jaxlib", help=hint) from None
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    inner = _field_1(data)
    try:
        module = _hlo.HloModule.from_serialized_hlo_module_proto(
            inner if inner[:1] == _FIELD_1 else data
        )
        text: str = module.to_string(options)
    except Exception as error:  # whatever the bindings make of a status of XLA
        reason = str(error).partition("\n")[0]
        message = f"the file is no serialized HLO module: {reason}"
        raise HloError(message, place, "encoding") from None
    return text


def _field_1(data: bytes) -> bytes:
    """What field 1 of a message holds, if that comes first and has a length; else nothing."""
    if data[:1] != _FIELD_1:
        return b""
    length = shift = 0
    for place, byte in enumerate(data[1:11], start=2):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return data[place : place + length]
    return b""
