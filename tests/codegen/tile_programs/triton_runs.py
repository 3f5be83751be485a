"""Kernels of Triton, run by its interpreter or compiled for a GPU: a process of its own.

Reads pickled runs from the file of the first argument, and writes their results to the second.
``TRITON_INTERPRET`` must be set before Triton is imported, and would change the other tests.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.codegen.tile_programs.triton_arrays import KINDS, TritonArray, TritonRun


def module_of(text: str, folder: str, number: int) -> ModuleType:
    """Import a text: Triton reads the source of its kernels from the file."""
    path = Path(folder) / f"printed_{number}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interpret_run(module: ModuleType, run: TritonRun) -> NDArray[Any]:
    """Return the result of a run by Triton's interpreter."""
    out = TritonArray(run.out)
    getattr(module, run.name)(*map(TritonArray, run.arguments), out)
    return out.array


def compile_run(module: ModuleType, run: TritonRun) -> NDArray[Any]:
    """Compile a kernel for an H100; return the number of characters of its PTX."""
    compiler = import_module("triton.compiler")
    target = import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)

    kernel = getattr(module, f"{run.name}_kernel")
    kinds = [f"*{KINDS[array.dtype.name]}" for array in (*run.arguments, run.out)]
    signature = dict(zip(kernel.arg_names, kinds, strict=True))
    source = compiler.ASTSource(kernel, signature=signature, constexprs={})
    result = compiler.compile(source, target=target)
    return np.asarray(len(result.asm["ptx"]))


def multiply_bfloat16_as_floats() -> None:
    """Repair products of Triton's interpreter, which multiplies the bits of bf16 as integers."""
    language = import_module("triton.language")
    interpreter = import_module("triton.runtime.interpreter")
    builder_type = interpreter.InterpreterBuilder
    own = builder_type.create_dot

    def widen(handle: Any) -> Any:
        if str(handle.dtype.scalar) != "bf16":
            return handle
        values = handle.data.view(ml_dtypes.bfloat16).astype(np.float32)
        return interpreter.TensorHandle(values, language.float32)

    def create_dot(builder: Any, a: Any, b: Any, *others: Any) -> Any:
        return own(builder, widen(a), widen(b), *others)

    builder_type.create_dot = create_dot


def main(given: str, results: str) -> None:
    """Execute all runs; a result is an array, or the text of an error."""
    runs: list[TritonRun] = pickle.loads(Path(given).read_bytes())
    execute = compile_run
    if os.environ.get("TRITON_INTERPRET") == "1":
        multiply_bfloat16_as_floats()
        execute = interpret_run
    listed: list[NDArray[Any] | str] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, run in enumerate(runs):
            try:
                listed.append(execute(module_of(run.text, folder, number), run))
            except Exception as error:
                listed.append(f"{type(error).__name__}: {error}")
    Path(results).write_bytes(pickle.dumps(listed))


if __name__ == "__main__":
    main(*sys.argv[1:])
