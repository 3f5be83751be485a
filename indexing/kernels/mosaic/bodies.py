"""The module of a Mosaic kernel, from the text in the configuration of its custom call.

The text is base64: of MLIR bytecode in a versioned dialect, or of MLIR text.  jaxlib parses both
and prints the generic form, which `indexing.kernels.reader` reads.

Source: JAX ``jax/_src/tpu_custom_call.py``; jaxlib ``mosaic/dialect/tpu/transforms/serde.cc``.
"""

from __future__ import annotations

import base64
import binascii
import tempfile
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from hlo.text.source import HloError
from indexing.frontends.worker import run_worker
from indexing.kernels.ir import MlirModule
from indexing.kernels.mosaic.generic_form import BODY, ERROR, TEXT
from indexing.kernels.reader import read_module
from simplifier.unknown import Unknown

MAX_BODY: Final = 1 << 22
"""Limit on the bytes of a kernel."""


@lru_cache(maxsize=256)
def read_body(body: str) -> MlirModule | Unknown:
    """Return the module of a kernel; `Unknown` if jaxlib is missing or cannot read it.

    Args:
        body: the entry ``custom_call_config.body`` of the call's configuration.

    >>> print(read_body("?"))
    the kernel cannot be read: its body is not base64
    """
    if not body:
        return Unknown("the configuration of the call has no kernel")
    try:
        module_bytes = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return _unreadable("its body is not base64")
    if len(module_bytes) > MAX_BODY:
        return Unknown(f"budget: the kernel has more than {MAX_BODY} bytes")
    if find_spec("jaxlib") is None:
        return Unknown("the kernel is bytecode: install the extra [xla] to read its blocks")
    text = _generic_form(module_bytes)
    if isinstance(text, Unknown):
        return text
    try:
        return read_module(text, filename="<kernel>")
    except HloError as error:
        return _unreadable(error.message)


def _generic_form(module_bytes: bytes) -> str | Unknown:
    """Return the generic form that another process prints."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / BODY).write_bytes(module_bytes)
        end = run_worker("indexing.kernels.mosaic.generic_form", folder)
        text, error = folder / TEXT, folder / ERROR
        if text.exists():
            return text.read_text("utf-8")
        return _unreadable(error.read_text("utf-8") if error.exists() else f"jaxlib ended {end}")


def _unreadable(reason: str) -> Unknown:
    first = reason.partition("\n")[0].removesuffix("; its last lines:")
    return Unknown(f"the kernel cannot be read: {first}")
