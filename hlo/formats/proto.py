"""Conversion of serialized HLO modules to text through jaxlib."""

from __future__ import annotations

from typing import Any, Final

from hlo.text.source import HloError, Source

_FIELD_1: Final = b"\x0a"  # length-delimited: the module of an HloProto, the name of a module


def proto_text(data: bytes, filename: str) -> str:
    """Return the text of a serialized HloModuleProto or HloProto.

    Raises:
        HloError: the bytes are not a module, or jaxlib is not installed.
    """
    place = Source("", filename).span(0)
    try:
        from jaxlib import _hlo
    except ImportError:
        message = "reading a protocol buffer requires jaxlib, which is not installed"
        hint = "pip install 'hlo-indexing[xla]', or print the module as text"
        raise HloError(message, place, "jaxlib", help=hint) from None
    inner = _field_1(data)
    serialized = inner if inner[:1] == _FIELD_1 else data
    try:
        _field_1(serialized).decode()  # jaxlib would log an invalid name
    except UnicodeDecodeError:
        message = "the file is not a serialized HLO module: the module's name is not UTF-8"
        raise HloError(message, place, "encoding") from None
    try:
        module = _hlo.HloModule.from_serialized_hlo_module_proto(serialized)
        return module_text(module)
    except Exception as error:  # the bindings' type for an XLA status is not specified
        reason = str(error).partition("\n")[0]
        message = f"the file is not a serialized HLO module: {reason}"
        hint = "the file may be cut off: compare its size with the original"
        raise HloError(message, place, "encoding", help=hint) from None


def module_text(module: Any) -> str:
    """Return the text of a module of jaxlib, with all elements of constants.

    Unlike a serialized module, it has the numbers of replicas and partitions.
    """
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    text: str = module.to_string(options)
    return text


def _field_1(data: bytes) -> bytes:
    """Return the content of field 1 if it is the first of a message, else empty bytes."""
    if data[:1] != _FIELD_1:
        return b""
    length = shift = 0
    for place, byte in enumerate(data[1:11], start=2):
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return data[place : place + length]
    return b""
