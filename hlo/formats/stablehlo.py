"""Conversion of StableHLO, as text or bytecode of MLIR, to HLO text through jaxlib."""

from __future__ import annotations

import re
from typing import Final

from hlo.formats.proto import proto_text
from hlo.text.source import HloError, Source

_DEVICES: Final = re.compile(r"\bmhlo\.num_(replicas|partitions) = (\d+)")
_ERROR: Final = re.compile(r"\B-:(\d+):(\d+): error: (.*)")


def stablehlo_text(text: str | bytes, filename: str) -> str:
    """Return the HLO text of a module of StableHLO; its function ``main`` is the entry.

    Parameters have the names in the locations of the arguments, ``Arg_0.1`` if there are none.

    Raises:
        HloError: the text is not StableHLO or has no ``main``, or jaxlib is not installed.
    """
    source = Source(text if isinstance(text, str) else "", filename)
    try:
        from jaxlib import _jax
    except ImportError:
        message = "reading StableHLO requires jaxlib, which is not installed"
        hint = "pip install 'hlo-indexing[xla]', or save the module as HLO text"
        raise HloError(message, source.span(0), "jaxlib", help=hint) from None
    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(
            text, use_tuple_args=False, return_tuple=False
        )
    except Exception as error:  # the bindings' type for an XLA status is not specified
        raise _located_error(str(error), source) from None
    converted = proto_text(computation.as_serialized_hlo_module_proto(), filename)
    if isinstance(text, bytes):
        return converted
    counts = {name: int(number) for name, number in _DEVICES.findall(text.partition(" {\n")[0])}
    return with_devices(converted, counts.get("replicas", 1), counts.get("partitions", 1))


def with_devices(text: str, replicas: int, partitions: int) -> str:
    """Return the text of a module of HLO with the numbers of replicas and partitions in its header.

    A conversion from StableHLO, whose attributes ``mhlo.num_replicas`` and ``mhlo.num_partitions``
    they are, does not keep them.

    >>> with_devices("HloModule m\\n\\nENTRY e {}", 1, 4)
    'HloModule m, num_partitions=4\\n\\nENTRY e {}'
    """
    header, newline, rest = text.partition("\n")
    counts = {"replica_count": replicas, "num_partitions": partitions}
    added = [f", {name}={count}" for name, count in counts.items() if count > 1]
    return "".join([header, *added, newline, rest])


def _located_error(report: str, source: Source) -> HloError:
    """Return the first error that MLIR reports, with its place."""
    error = _ERROR.search(report)
    reason = error[3] if error else report.partition("\n")[0]
    message = f"the file is not a module of StableHLO: {reason}"
    place = _offset(source.text, int(error[1]), int(error[2])) if error else 0
    return HloError(message, source.span(place), "encoding")


def _offset(text: str, line: int, column: int) -> int:
    r"""Return the position of a line and a column, both from 1; MLIR counts columns in bytes.

    >>> _offset("module {\n  \u00e9 x\n}", 2, 6), _offset("module", 9, 1)
    (13, 6)
    """
    lines = text.split("\n")
    if line > len(lines):
        return len(text)
    inside = lines[line - 1].encode()[: column - 1].decode(errors="ignore")
    return sum(len(each) + 1 for each in lines[: line - 1]) + len(inside)
