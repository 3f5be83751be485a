"""The process that compiles a module for a target; `compilation` starts it.

XLA reads its flags once, and XLA:TPU may abort the process: so each compilation has its own.

Invariants: the only output is in the folder of the request.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from math import prod
from typing import Any, Final

from hlo.formats.proto import module_text
from indexing.frontends.lowering import LoweredFunction, load_jax, lower, main_function
from indexing.frontends.named_functions import (
    arguments,
    load_function,
    source_digests,
)
from indexing.frontends.request import CompilationRequest, CompilationResult, RequestedLayout
from indexing.frontends.targets import Target
from indexing.frontends.worker import error_text

_AXIS: Final = re.compile(r"=\s*(\d+)")
_MOST_PARAMETERS: Final = 2000  # of XLA:TPU; JAX passes more of them as one tuple


def main(folder: str) -> None:
    """Answer the request in a folder: write the module and the result into it."""
    request = CompilationRequest.load(folder)
    target = Target.parse(request.target) if request.target else None
    try:
        if target is not None and target.platform == "cpu":
            load_jax().config.update("jax_num_cpu_devices", target.count or 1)
        lowering, sources = _lowering(request, target)
        if request.stage == "lowered":
            module = lowering.module()
        else:
            assert target is not None
            module = lowering.named(optimized_text(lowering, target, request.layouts))
        result = CompilationResult(lowering.name, str(module), sources)
    except Exception as error:  # of the user's program, of JAX or of XLA: the parent reports it
        result = CompilationResult("", "", {}, error_text(error))
    result.save(folder)


def _lowering(
    request: CompilationRequest, target: Target | None
) -> tuple[LoweredFunction, dict[str, str]]:
    """Return the module that the request has or names, and the digests of its source files."""
    if request.lowering is not None:
        return request.lowering, {}
    platform = None if target is None else target.platform
    function = load_function(request.function)
    return lower(function, arguments(request.shapes), {}, platform), source_digests()


def optimized_text(
    lowering: LoweredFunction, target: Target, layouts: Sequence[RequestedLayout] = ()
) -> str:
    """Compile a module of StableHLO for a target; return the optimized module.

    Args:
        layouts: of arguments and results, in place of those of the module.
    """
    jax = load_jax()
    with import_module("jax.interpreters.mlir").make_ir_context():
        module = import_module("jaxlib.mlir.ir").Module.parse(lowering.bytecode)
        _set_layouts(main_function(module), layouts)
        replicas, partitions = lowering.devices
        needed = replicas * partitions
        _check_meshes(module, needed)
        devices = _devices(jax, target, needed)
        if len(devices) < needed:
            raise ValueError(
                f"the program needs {needed} devices, and {target} has {len(devices)}: choose a "
                "target with more"
            )
        chosen = tuple(devices[:needed])
        xla = import_module("jaxlib.xla_client")
        options = _options(jax, xla, module, target)
        ids = import_module("numpy").array([each.id for each in chosen])
        options.device_assignment = xla.DeviceAssignment.create(ids.reshape(replicas, partitions))
        options.num_replicas, options.num_partitions = replicas, partitions
        client = chosen[0].client
        compile_ = client.compile_and_load if target.platform == "cpu" else client.compile
        (optimized,) = compile_(module, xla.DeviceList(chosen), options).hlo_modules()
    return module_text(optimized)


def _set_layouts(main: Any, layouts: Sequence[RequestedLayout]) -> None:
    """Set the layouts of arguments and results of the function ``main``, as JAX's `Format` does.

    Source: JAX ``jax/_src/interpreters/mlir.py``, ``mhlo.layout_mode``.
    """
    ir = import_module("jaxlib.mlir.ir")
    counts = {"arg_attrs": len(main.arguments), "res_attrs": len(main.type.results)}
    for name, count in counts.items():
        given = main.attributes[name] if name in main.attributes else [{}] * count
        attributes = [{each.name: each.attr for each in attribute} for attribute in given]
        for is_result, number, layout in layouts:
            if is_result == (name == "res_attrs"):
                attributes[number]["mhlo.layout_mode"] = ir.StringAttr.get(layout)
        if layouts:
            main.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])


def _check_meshes(module: Any, needed: int) -> None:
    """Refuse a program with a mesh that JAX did not lower for: no argument is sharded over it."""
    for each in module.body.operations:
        if "mesh" in each.attributes:
            sizes = map(int, _AXIS.findall(str(each.attributes["mesh"])))
            if (count := prod(sizes)) > needed:
                raise ValueError(
                    f"the program has a mesh of {count} devices, but JAX lowers it for {needed}, "
                    "because no argument is sharded over the mesh: give an argument a sharding, "
                    "with jax.ShapeDtypeStruct(..., sharding=NamedSharding(mesh, spec)) or "
                    "in_shardings of jax.jit"
                )


def _devices(jax: Any, target: Target, needed: int) -> list[Any]:
    """Return the devices of a target: `needed` GPUs where the target has no number of them."""
    count = needed if target.count is None else target.count
    if target.platform == "cpu":
        return list(jax.devices("cpu"))
    topologies = import_module("jax.experimental.topologies")
    if target.platform == "tpu":
        name = f"{target.model}:{target.topology}"
        return list(topologies.get_topology_desc(name, "tpu").devices)
    description = topologies.get_topology_desc(
        target.model.lower(),
        target.platform,
        target_config=target.configuration,
        topology=f"1x1x{count}",
    )
    return list(description.devices)


def _options(jax: Any, xla: Any, module: Any, target: Target) -> Any:
    """Return the options by which JAX compiles a module, but for the devices.

    XLA may choose the shardings of arguments and results that have none.
    """
    main = main_function(module)
    options = xla.CompileOptions()
    options.parameter_is_tupled_arguments = (
        target.platform == "tpu" and len(main.arguments) > _MOST_PARAMETERS
    )
    build = options.executable_build_options
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = jax.config.jax_use_shardy_partitioner
    build.allow_spmd_sharding_propagation_to_parameters = _lacks_sharding(main, "arg_attrs")
    build.allow_spmd_sharding_propagation_to_output = _lacks_sharding(main, "res_attrs")
    return options


def _lacks_sharding(main: Any, name: str) -> list[bool]:
    """Return for each argument or result if it has no sharding."""
    if name not in main.attributes:
        count = len(main.arguments if name == "arg_attrs" else main.type.results)
        return [True] * count
    names = ("sdy.sharding", "mhlo.sharding")
    return [not any(each in attributes for each in names) for attributes in main.attributes[name]]


if __name__ == "__main__":
    main(sys.argv[1])
