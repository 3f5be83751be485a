"""Compile programs for XLA:CPU and leave a dump after each pass that changed the module.

    python -m benchmarks.pass_dumps FOLDER [NAME...]

writes a folder of dumps for each program of `pass_programs`, `pass_models`, `pass_numbers` and
`pass_sharded`, and of the modules in StableHLO below.  `benchmarks.equivalence` measures how many
pairs of dumps are decided.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"  # read on import of jax

import jax

from benchmarks import pass_models, pass_numbers
from benchmarks.pass_partitions import partitioned_programs
from benchmarks.pass_programs import PROGRAMS
from benchmarks.pass_sharded import sharded_programs
from indexing.execution.xla import dump_options

assert pass_models  # registers its programs
assert pass_numbers  # registers its programs

STABLEHLO = {
    "batch_norm_training": """
func.func @main(%x: tensor<4x5x3xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>)
    -> (tensor<4x5x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %y, %m, %v = "stablehlo.batch_norm_training"(%x, %s, %o)
    {epsilon = 1.0e-3 : f32, feature_index = 2 : i64}
    : (tensor<4x5x3xf32>, tensor<3xf32>, tensor<3xf32>)
    -> (tensor<4x5x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %y, %m, %v : tensor<4x5x3xf32>, tensor<3xf32>, tensor<3xf32>
}""",
    "batch_norm_inference": """
func.func @main(%x: tensor<4x3x5xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>, %m: tensor<3xf32>,
    %v: tensor<3xf32>) -> tensor<4x3x5xf32> {
  %y = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v)
    {epsilon = 1.0e-3 : f32, feature_index = 1 : i64}
    : (tensor<4x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    -> tensor<4x3x5xf32>
  return %y : tensor<4x3x5xf32>
}""",
    "cholesky_solve": """
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %l = stablehlo.cholesky %a, lower = true : tensor<4x4xf32>
  %x = "stablehlo.triangular_solve"(%l, %b) {left_side = true, lower = true,
    unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}
    : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %x : tensor<4x3xf32>
}""",
    "rng": """
func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> tensor<6xf32> {
  %n = stablehlo.constant dense<6> : tensor<1xi64>
  %x = stablehlo.rng %a, %b, %n, distribution = UNIFORM
    : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<6xf32>
  return %x : tensor<6xf32>
}""",
    "map": """
func.func @main(%a: tensor<5x3xf32>, %b: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %y = "stablehlo.map"(%a, %b) ({
    ^bb0(%x: tensor<f32>, %z: tensor<f32>):
      %p = stablehlo.multiply %x, %z : tensor<f32>
      %q = stablehlo.subtract %p, %x : tensor<f32>
      stablehlo.return %q : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}""",
}


def compile_stablehlo(text: str, folder: Path) -> None:
    """Compile a module in StableHLO and dump its passes."""
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(f"module @jit_f {{{text}\n}}")
        bytecode = mlir.module_to_bytecode(module)
    settings = xla_client.CompileOptions()
    settings.env_option_overrides = list(dump_options(folder).items())
    devices = xla_client.DeviceList(tuple(jax.devices()[:1]))
    jax.devices()[0].client.compile_and_load(bytecode, devices, settings)


def names() -> Iterator[str]:
    """Yield the names of all programs."""
    yield from PROGRAMS
    yield from sharded_programs()
    yield from partitioned_programs()
    yield from STABLEHLO


def dump(name: str, folder: Path) -> None:
    """Compile a program and dump its passes into `folder`."""
    if name in STABLEHLO:
        compile_stablehlo(STABLEHLO[name], folder)
        return
    function, arguments = {**PROGRAMS, **sharded_programs(), **partitioned_programs()}[name]

    def f(*args: Any) -> Any:
        return function(*args)

    jax.jit(f).lower(*arguments).compile(compiler_options=dump_options(folder))


def main() -> None:
    """Write the dumps of the named programs, or of all."""
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or list(names()):
        (folder / name).mkdir(parents=True, exist_ok=True)
        dump(name, folder / name)
        print(name, len(list((folder / name).iterdir())), flush=True)


if __name__ == "__main__":
    main()
