"""XLA on CPU as an oracle (extra ``[xla]``: jax).

Modules reach XLA through StableHLO, which has no layouts, fusions or bitcasts.  `plain_text`
rewrites a module without them, with the same values:

* a bitcast becomes a transpose to memory order, a reshape, and a transpose back;
* a fusion becomes a call; an asynchronous pair becomes one synchronous op;
* layouts, schedules and other implementation hints are dropped; custom calls keep their operand
  layouts, which the called code depends on;
* partitions of an SPMD program become replicas.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import Any, Final

import numpy as np

from hlo.modules.module import Computation, Instruction, Module
from hlo.ops.op import OPS
from hlo.shapes.shape import Shape
from indexing.devices.groups import replica_groups
from indexing.execution.values import Array, checked_inputs, flattened
from indexing.ops.logical import why_no_logical_bitcast, without_layouts, write_bitcast

_DROPPED: Final = frozenset(
    [
        *("async_execution_thread", "backend_config", "control-predecessors", "is_composite"),
        "cross_program_prefetch_index",
        *("frontend_attributes", "kind", "metadata", "origin", "output_to_operand_aliasing"),
        *("sharding", "statistics"),
    ]
)
_OF_CUSTOM_CALLS: Final = frozenset({"backend_config"})
_OF_CHANNELS: Final = frozenset({"channel_id", "use_global_device_ids"})
_DEVICES: Final = 8


def is_available() -> bool:
    """Return True if jax and jaxlib are installed."""
    return find_spec("jaxlib") is not None and find_spec("jax") is not None


# ---------------------------------------------------------------- text


def plain_text(module: Module) -> str:
    """Return the text of an equivalent module without layouts, fusions and bitcasts.

    >>> import hlo
    >>> text = '''ENTRY e { p = f32[2,3]{0,1} parameter(0)  ROOT b = f32[3,2]{1,0} bitcast(p) }'''
    >>> print(plain_text(hlo.parse(text)))
    HloModule module_e
    ENTRY %e {
    %p = f32[2,3] parameter(0)
    ROOT %b = f32[3,2] transpose(%p), dimensions={1,0}
    }
    """
    partitions = int(module.header("num_partitions", 1))
    replicas = max(partitions, int(module.header("replica_count", 1)))
    count = f", replica_count={replicas}" if replicas > 1 else ""
    lines = [f"HloModule {module.name}{count}"]
    for computation in module.computations.values():
        lines.append(f"{'ENTRY ' if computation.is_entry else ''}%{computation.name} {{")
        lines.extend(_body(computation, partitions))
        lines.append("}")
    return "\n".join(lines)


def _body(computation: Computation, partitions: int) -> Iterator[str]:
    for instruction in computation.instructions:
        opcode = instruction.opcode
        if opcode.endswith(("-start", "-update")) and opcode != "dynamic-update-slice":
            continue
        *before, last = _lines(instruction, partitions)
        yield from before
        yield f"{'ROOT ' if instruction.is_root else ''}{last}"


def _lines(instruction: Instruction, partitions: int) -> list[str]:
    name, opcode = f"%{instruction.name}", instruction.opcode
    if opcode == "bitcast":
        return _bitcast(instruction)
    source = instruction
    if opcode.endswith("-done") and f"{opcode.removesuffix('-done')}-start" in OPS:
        source = _start_of(instruction)
        opcode = source.opcode.removesuffix("-start")
    attributes = {
        k: v.line for k, v in source.attributes.items() if k not in _dropped_attributes(opcode)
    }
    if opcode in ("fusion", "async"):
        opcode, attributes["to_apply"] = "call", attributes.pop("calls")
    if partitions > 1:
        opcode = "replica-id" if opcode == "partition-id" else opcode
        attributes = _of_replicas(attributes)
    keeps_layout = opcode == "custom-call" and "operand_layout_constraints" in attributes
    shape = instruction.shape if keeps_layout else without_layouts(instruction.shape)
    inside = ", ".join(f"%{operand.name}" for operand in source.operands)
    if source.literal is not None:
        inside = source.literal.line
    rest = "".join(f", {key}={value}" for key, value in attributes.items())
    return [f"{name} = {shape} {opcode}({inside}){rest}"]


def _dropped_attributes(opcode: str) -> frozenset[str]:
    return _DROPPED - _OF_CUSTOM_CALLS if opcode == "custom-call" else _DROPPED


def _start_of(instruction: Instruction) -> Instruction:
    while not instruction.opcode.endswith("-start"):
        instruction = instruction.operands[0]
    return instruction


def _of_replicas(attributes: dict[str, str]) -> dict[str, str]:
    """Rewrite the attributes of a collective among partitions to one among replicas."""
    if "replica_groups" in attributes:
        lists = replica_groups.parse(attributes["replica_groups"]).lists()
        groups = ",".join(f"{{{','.join(map(str, group))}}}" for group in lists)
        attributes["replica_groups"] = f"{{{groups}}}"
    return {key: value for key, value in attributes.items() if key not in _OF_CHANNELS}


def _bitcast(instruction: Instruction) -> list[str]:
    source, target = instruction.operands[0].shape, instruction.shape
    assert isinstance(source, Shape)
    assert isinstance(target, Shape)
    if reason := why_no_logical_bitcast(source, target):
        raise RuntimeError(f"bitcast `{instruction.name}`: {reason}")
    lines = []

    def add(name: str, line: str, operands: Sequence[str]) -> str:
        lines.append(f"%{name} = {line}")
        return name

    write_bitcast(instruction.name, instruction.operands[0].name, source, target, add)
    return lines


# ---------------------------------------------------------------- execution


@lru_cache(maxsize=1)
def _client() -> Any:
    """Return the CPU devices; request several of them, which works if JAX is not yet started."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "host_platform_device_count" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={_DEVICES}"
    with _messages_of_failures():
        jax = import_module("jax")
        import_module("jax._src.lax.linalg")  # these register the custom calls of linear algebra
        import_module("jaxlib.lapack")._lapack.initialize()
        return jax.devices("cpu")


@contextmanager
def _messages_of_failures() -> Iterator[None]:
    """Hold back what is written to standard error, and write it only if an exception is raised.

    Plugins of JAX log in native code, past `sys.stderr`, that the machine has no accelerator.
    """
    try:
        original = os.dup(2)
    except OSError:  # standard error is closed
        yield
        return
    with tempfile.TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except BaseException:
            messages.seek(0)
            os.write(original, messages.read())
            raise
        finally:
            os.dup2(original, 2)
            os.close(original)


def dump_options(folder: str | PathLike[str]) -> dict[str, Any]:
    """Return the compiler options that write a module to `folder` after each pass."""
    return {
        "xla_dump_to": os.fspath(folder),
        "xla_dump_hlo_as_text": True,
        "xla_dump_hlo_pass_re": ".*",
        "xla_dump_large_constants": True,
    }


def run(
    module: Module, inputs: Sequence[Any], *, dump_to: str | PathLike[str] | None = None
) -> Any:
    """Execute a module with XLA on CPU and return its results, tuples flattened in order.

    Args:
        module: any module that XLA supports on CPU.
        inputs: as for `indexing.execution.run`: one array per parameter leaf; for a program for
            several devices, a list of such lists.
        dump_to: the folder to which XLA writes the module after each pass.
    Returns:
        A tuple of arrays; for several devices, a list of such tuples.
    Raises:
        ExecutionError: the inputs do not match the parameters.
        ImportError: jax is not installed.
        RuntimeError: XLA rejects the module.
    """
    devices = _client()
    text = plain_text(module)
    match = re.match(r"HloModule [^\n]*replica_count=(\d+)", text)
    count = int(match[1]) if match else 1
    per_device = [inputs] if count == 1 else inputs
    leaves = [flattened(tuple(checked_inputs(module.entry, each))) for each in per_device]
    with import_module("jax").enable_x64(True):
        executable = compile_text(text, count, None if dump_to is None else os.fspath(dump_to))
        columns = zip(*leaves, strict=True)
        arguments = [_place_column(column, devices[:count]) for column in columns]
        results = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    by_device = [tuple([np.asarray(out[k]) for out in results]) for k in range(count)]
    return by_device[0] if count == 1 else by_device


@lru_cache(maxsize=4)  # perturbation tests run one program for many inputs
def compile_text(text: str, count: int = 1, dump_to: str | None = None) -> Any:
    """Return the executable of a text made by `plain_text`, for `count` devices."""
    jaxlib, client = import_module("jaxlib.xla_client"), _client()[0].client
    proto = import_module("jaxlib._hlo").hlo_module_from_text(text)
    stable = import_module("jaxlib._jax").mlir.hlo_to_stablehlo(
        proto.as_serialized_hlo_module_proto()
    )
    options = jaxlib.CompileOptions()
    options.num_replicas = count
    options.executable_build_options.num_replicas = count
    options.device_assignment = jaxlib.DeviceAssignment.create(np.arange(count).reshape(count, 1))
    if dump_to is not None:
        options.env_option_overrides = list(dump_options(dump_to).items())
    devices = jaxlib.DeviceList(tuple(_client()[:count]))
    return client.compile_and_load(stable, devices, options)


def _place_column(column: Sequence[Array], devices: Sequence[Any]) -> Any:
    """Return one argument: the arrays of all devices as one JAX array."""
    jax = import_module("jax")
    arrays = [jax.device_put(array, device) for array, device in zip(column, devices, strict=True)]
    if len(arrays) == 1:
        return arrays[0]
    mesh = jax.sharding.Mesh(np.array(devices), ("device",))
    sizes = arrays[0].shape
    spec = jax.sharding.PartitionSpec(*["device"][: len(sizes)])
    shape = (sizes[0] * len(arrays), *sizes[1:]) if sizes else ()
    sharding = jax.sharding.NamedSharding(mesh, spec)
    return jax.make_array_from_single_device_arrays(shape, sharding, arrays)
