"""Text of StableHLO, converted by jaxlib, and its errors."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlo
from indexing.execution import run

SCALED = """module @scaled {
  func.func @main(%x: tensor<2x3xf32> loc("x"), %s: tensor<f32>) -> tensor<3x2xf32> {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<3x2xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<3x2xf32>
    return %2 : tensor<3x2xf32>
  }
}
"""


def needs_jaxlib() -> None:
    pytest.importorskip("jaxlib", reason="needs jaxlib, to read StableHLO")


@pytest.mark.parametrize("name", ["m.mlir", "m.mlir.gz"])
def test_stablehlo_loads_as_a_module(tmp_path: Path, name: str) -> None:
    needs_jaxlib()
    path = tmp_path / name
    path.write_bytes(gzip.compress(SCALED.encode()) if name.endswith("gz") else SCALED.encode())
    module = hlo.load(path)
    assert (module.name, module.filename) == ("scaled", str(path))
    opcodes = {"parameter", "transpose", "broadcast", "multiply"}
    assert {i.opcode for i in module.entry.instructions} == opcodes
    assert hlo.load_all(path) == [module]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = run(module, [x, np.float32(3)])
    np.testing.assert_array_equal(result, x.T * 3)


def test_a_lowered_function_loads_as_the_module_that_jax_prints(tmp_path: Path) -> None:
    jax: Any = pytest.importorskip("jax", reason="needs jax, to lower a function")
    x = jax.ShapeDtypeStruct((5, 3), jax.numpy.float32)
    lowered = jax.jit(lambda x: jax.lax.cumsum(x, axis=1) @ x.T).lower(x)
    path = tmp_path / "m.mlir"
    path.write_text(lowered.as_text())
    printed = hlo.parse(lowered.as_text(dialect="hlo"))
    assert hlo.difference(hlo.load(path), printed, {"names", "metadata"}) is None


# fmt: off
NO_MAIN = "// größe\nmodule {\n  func.func @f() { return }\n}"
INVALID = [
    # text                                      line column message
    (SCALED.replace("transpose", "transposs"),  3, 10, "'stablehlo.transposs' is unknown"),
    (SCALED.replace("[1, 0]", "[1, 1]"),        3, 10, "must be a permutation of [0, 1]"),
    (SCALED.replace("%x, dims", "%y, dims"),    3, 30, "use of undeclared SSA value"),
    ("// größe\n/* é */ module {}",             2, 1,  "expected operation name"),
    (NO_MAIN,                                   2, 1,  "`main`"),
    ("module {",                                1, 7,  "expected"),
    ("",                                        1, 1,  "`main`"),
]
# fmt: on


@pytest.mark.parametrize("text, line, column, message", INVALID)
def test_invalid_stablehlo_is_an_error(
    tmp_path: Path, text: str, line: int, column: int, message: str
) -> None:
    needs_jaxlib()
    path = tmp_path / "m.mlir"
    path.write_text(text)
    with pytest.raises(hlo.HloError, match="not a module of StableHLO") as caught:
        hlo.load(path)
    assert message in caught.value.message
    assert caught.value.span.place() == f"{path}:{line}:{column}"
    assert str(caught.value)


def test_an_error_without_jaxlib_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jaxlib", None)
    path = tmp_path / "m.mlir"
    path.write_text(SCALED)
    with pytest.raises(hlo.HloError, match="jaxlib, which is not installed") as caught:
        hlo.load(path)
    assert "pip install 'hlo-indexing[xla]'" in caught.value.help
