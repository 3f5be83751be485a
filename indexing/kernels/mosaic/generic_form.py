"""The process that prints a kernel's module in generic form; `bodies` starts it.

jaxlib can abort on bytecode that is not valid, and starts threads: so each kernel has its own
process.  No device is used, and JAX is not imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

BODY: Final = "body.mlir"
TEXT: Final = "generic.mlir"
ERROR: Final = "error.txt"
"""Files in the folder of a request: the module, its generic form, or why there is none."""

_VERSION: Final = "stable_mosaic.version"
_UPGRADE: Final = "builtin.module(mosaic-serde{serialize=false})"


def main(folder: str) -> None:
    """Write the generic form of the module in a folder, or an error."""
    try:
        text = _generic_form(Path(folder, BODY).read_bytes())
    except Exception as error:  # of imports, of the parser or of the pass
        lines = str(error).splitlines()
        reason = lines[0].rstrip(":") if lines else type(error).__name__
        Path(folder, ERROR).write_text(reason, encoding="utf-8")
    else:
        Path(folder, TEXT).write_text(text, encoding="utf-8")


def _generic_form(module_bytes: bytes) -> str:
    """Return the generic form of a module in bytecode or in text."""
    ir = import_module("jaxlib.mlir.ir")
    passes = import_module("jaxlib.mlir.passmanager")
    extension = import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext")
    registry = ir.DialectRegistry()
    extension.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    import_module("jaxlib.mosaic.python.tpu").register_dialect(context)
    context.allow_unregistered_dialects = True
    context.load_all_available_dialects()
    with context, ir.Location.unknown():
        module: Any = ir.Module.parse(module_bytes)
        if _VERSION in module.operation.attributes:
            passes.PassManager.parse(_UPGRADE).run(module.operation)
        text: str = module.operation.get_asm(print_generic_op_form=True)
    return text


if __name__ == "__main__":
    main(sys.argv[1])
