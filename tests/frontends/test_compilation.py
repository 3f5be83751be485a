"""Compilation for targets, in a process of its own, and the cache of the answers."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import hlo
import indexing
from hlo.formats.proto import module_text
from indexing.execution import run
from indexing.frontends import compilation
from indexing.frontends.compilation import CompilationError, Compiled, compile_for
from indexing.frontends.naming import named_module
from indexing.frontends.request import CompilationRequest

jax: Any = pytest.importorskip("jax", reason="needs jax, to lower functions")
jnp: Any = jax.numpy
SHAPE: Final = jax.ShapeDtypeStruct((4, 4), np.float32)


def layer(params: Any, x: Any, unused: Any) -> Any:
    return jnp.maximum(x @ params["w"], 0) + params["b"]


ARGUMENTS: Final = (
    {
        "w": jax.ShapeDtypeStruct((5, 7), np.float32),
        "b": jax.ShapeDtypeStruct((7,), np.float32),
    },
    jax.ShapeDtypeStruct((3, 5), np.float32),
    jax.ShapeDtypeStruct((), np.int32),
)
NAMES: Final = ["params.b", "params.w", "x", "unused"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(compilation, "cache_folder", lambda _: tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def parameter_names(module: Any) -> list[str]:
    return [parameter.name for parameter in module.entry.parameters]


def as_jaxpr() -> Any:
    return jax.make_jaxpr(layer)(*ARGUMENTS)


def as_traced() -> Any:
    return jax.jit(layer, keep_unused=True).trace(*ARGUMENTS)


def as_lowered() -> Any:
    return as_traced().lower()


def as_exported() -> Any:
    return jax.export.export(jax.jit(layer, keep_unused=True))(*ARGUMENTS)


def as_compiled() -> Any:
    return as_lowered().compile()


@pytest.mark.parametrize("make", [as_jaxpr, as_traced, as_lowered, as_exported])
def test_what_jax_makes_of_a_function_is_taken_as_it_is(make: Callable[[], Any]) -> None:
    module = indexing.from_jax(make())
    assert parameter_names(module) == NAMES
    params = {"w": np.ones((5, 7), np.float32), "b": np.arange(7, dtype=np.float32)}
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    (result,) = run(module, [params["b"], params["w"], x, np.int32(0)])
    np.testing.assert_allclose(result, layer(params, x, 0))
    with pytest.raises(TypeError, match="has its arguments already"):
        indexing.from_jax(make(), x)


def test_a_compiled_function_has_one_module() -> None:
    assert parameter_names(indexing.from_jax(as_compiled(), stage="optimized")) == NAMES
    assert parameter_names(indexing.from_jax(as_compiled())) == NAMES
    with pytest.raises(ValueError, match=r"only the module of stage 'optimized'.*'lowered'"):
        indexing.from_jax(as_compiled(), stage="lowered")
    with pytest.raises(ValueError, match="target 'cpu'"):
        indexing.from_jax(as_compiled(), stage="optimized", target="cpu")


def test_another_object_is_no_function() -> None:
    with pytest.raises(TypeError, match="must be a function or what JAX made of one, not 3"):
        indexing.from_jax(3)


def test_an_exported_function_keeps_to_its_platforms() -> None:
    with pytest.raises(ValueError, match="was exported for cpu, not for tpu"):
        indexing.from_jax(as_exported(), target="tpu:v5e")
    with pytest.raises(ValueError, match="to compile an exported function, pass a target"):
        indexing.from_jax(as_exported(), stage="optimized")


@pytest.mark.parametrize("target", ["tpu:v5e:2x2", "gpu:H100", "gpu:MI300", "cpu"])
def test_lowering_needs_no_compiler_of_the_target(target: str) -> None:
    assert (
        parameter_names(indexing.from_jax(layer, *ARGUMENTS, target=target, stage="lowered"))
        == NAMES
    )


@pytest.mark.parametrize(
    ("target", "package", "extra"),
    [("tpu:v4", "libtpu", r"hlo-indexing\[tpu\]"), ("gpu:A100", "cuda12", r"hlo-indexing\[cuda\]")],
)
def test_an_error_names_the_extra_with_the_compiler(
    monkeypatch: pytest.MonkeyPatch, target: str, package: str, extra: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=rf"{package}.*pip install '{extra}' \(\d+ MB"):
        indexing.from_jax(layer, *ARGUMENTS, target=target, stage="optimized")


@pytest.mark.slow
def test_the_cpu_compiles_what_jax_compiles() -> None:
    lowered = as_lowered()
    (own,) = lowered.compile().runtime_executable().hlo_modules()
    expected = named_module(module_text(own), (), "<jax layer>")
    module = indexing.from_jax(lowered, target="cpu", stage="optimized")
    assert hlo.difference(expected, module, {"metadata"}) is None


def test_shardings_of_an_abstract_mesh_are_kept() -> None:
    mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
    spec = jax.sharding.PartitionSpec("x", "y")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    x = jax.ShapeDtypeStruct((8, 8), np.float32, sharding=sharding)
    lowered = indexing.from_jax(lambda a: a @ a, x)
    assert lowered.header("num_partitions") == 4
    assert "sharding" in lowered.entry.parameters[0].attributes
    compiled = indexing.from_jax(lambda a: a @ a, x, target="cpu", stage="optimized")
    assert compiled.header("num_partitions") == 4
    assert compiled.entry.parameters[0].shape.dims == (4, 4)
    assert any(i.opcode.startswith("all-gather") for i in compiled.instructions)


@pytest.mark.slow
def test_a_stage_is_a_folder_of_dumps_or_the_module_after_a_pass() -> None:
    folder = indexing.from_jax(layer, *ARGUMENTS, stage="passes")
    assert isinstance(folder, Path)
    dumps = sorted(folder.glob("*.after_*.before_*.txt"))
    assert dumps
    after = indexing.from_jax(layer, *ARGUMENTS, stage="layout-assignment", target="cpu")
    written = [each for each in dumps if ".after_layout-assignment." in each.name]
    assert str(after) == str(hlo.load(written[-1]))
    with pytest.raises(ValueError, match=r"is not a stage.*did you mean `layout-assignment`"):
        indexing.from_jax(layer, *ARGUMENTS, stage="layout-asignment")


@pytest.mark.slow
def test_the_kernels_are_a_folder() -> None:
    folder = indexing.from_jax(layer, *ARGUMENTS, stage="kernels")
    assert any(each.suffix == ".mlir" for each in folder.iterdir())


def request(stage: str = "optimized", target: str = "cpu") -> CompilationRequest:
    return CompilationRequest("jax:program.py:double", "f32[3]", None, target, stage)


def write(text: str) -> None:
    Path("program.py").write_text(f"import helper\ndef double(x):\n    {text}\n")


def test_the_second_question_is_answered_from_the_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("helper.py").write_text("FACTOR = 2\n")
    write("return helper.FACTOR * x")
    first = compile_for(request())
    assert first.path.is_relative_to(cache)
    assert "constant(2)" in first.path.read_text()
    started: list[object] = []
    start = compilation._run

    def count(*arguments: Any) -> Any:
        started.append(arguments)
        return start(*arguments)

    monkeypatch.setattr(compilation, "_run", count)
    assert compile_for(request()) == first
    assert not started
    Path("helper.py").write_text("FACTOR = 3\n")  # a module that the program imports
    second = compile_for(request())
    assert len(started) == 1
    assert "constant(3)" in second.path.read_text()
    assert first.folder == second.folder  # the old answer is of no use
    assert compile_for(request(stage="lowered")) != second
    assert len(started) == 2
    fresh = compile_for(request(), uses_cache=False)
    assert len(started) == 3
    assert fresh.path.read_text() == second.path.read_text()
    assert not fresh.path.is_relative_to(cache)
    shutil.rmtree(fresh.folder)


@pytest.mark.slow
def test_flags_of_xla_are_part_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("helper.py").write_text("")
    write("return x + x")
    first = compile_for(request())
    flags = os.environ.get("XLA_FLAGS", "")
    monkeypatch.setenv("XLA_FLAGS", f"{flags} --xla_cpu_enable_fast_math=true")
    assert compile_for(request()).folder != first.folder


@pytest.mark.slow
def test_the_cache_keeps_the_answers_that_were_used_last(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("helper.py").write_text("")
    for number in range(3):
        write(f"return x * {number}")
        folder = compile_for(request("lowered", f"cpu:{number + 1}")).folder
        os.utime(folder, (number, number))
    monkeypatch.setattr(compilation, "CACHE_BYTES", 1 << 12)
    write("return x * 3")
    last = compile_for(request("lowered", "cpu:4"))
    kept = {each.name for each in cache.iterdir()}
    assert last.folder.name in kept
    assert len(kept) < 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise KeyError('w')", "KeyError: 'w'"),
        ("import os; os.abort()", "ended by signal 6"),
        ("import sys; print('bad'); sys.stdout.flush(); import os; os._exit(7)", "status 7.*\nbad"),
        ("return undefined", "NameError: name 'undefined' is not defined"),
    ],
)
def test_a_failure_of_the_program_is_an_error(text: str, message: str, cache: Path) -> None:
    Path("helper.py").write_text("")
    write(text)
    with pytest.raises(CompilationError, match=message):
        compile_for(request())
    assert not list(cache.iterdir())


def test_a_limit_on_the_time_ends_the_process() -> None:
    Path("helper.py").write_text("")
    write("import time; time.sleep(1000)")
    with pytest.raises(CompilationError, match="was stopped after 1 s"):
        compile_for(request(), timeout=1)


@pytest.mark.slow
def test_a_program_has_not_more_devices_than_its_target() -> None:
    Path("helper.py").write_text(
        "import jax, jax.numpy as jnp\n"
        "mesh = jax.sharding.AbstractMesh((4,), ('x',))\n"
        "spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('x'))\n"
    )
    write("return helper.jnp.sum(x)")
    with open("program.py", "a") as file:
        file.write("double = helper.jax.jit(double, in_shardings=helper.spec)\n")
    shapes = CompilationRequest("jax:program.py:double", "f32[8]", None, "cpu", "optimized")
    with pytest.raises(CompilationError, match="needs 4 devices, and cpu has 1: choose a target"):
        compile_for(shapes)


@pytest.mark.slow
def test_a_mesh_over_which_no_argument_is_sharded_is_an_error() -> None:
    mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
    spec = jax.sharding.PartitionSpec("x", "y")

    def constrain(x: Any) -> Any:
        sharding = jax.sharding.NamedSharding(mesh, spec)
        return jax.lax.with_sharding_constraint(2 * x, sharding)

    def map_shards(x: Any) -> Any:
        return jax.shard_map(lambda y: 2 * y, mesh=mesh, in_specs=spec, out_specs=spec)(x)

    for function in (constrain, map_shards):
        with pytest.raises(CompilationError, match=r"a mesh of 4 devices.*lowers it for 1.*in_sha"):
            indexing.from_jax(function, SHAPE, target="cpu")
        sharded = jax.ShapeDtypeStruct(
            (4, 4), np.float32, sharding=jax.sharding.NamedSharding(mesh, spec)
        )
        assert indexing.from_jax(function, sharded, target="cpu").header("num_partitions") == 4


@pytest.mark.slow
def test_variables_of_jax_are_part_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("helper.py").write_text("")
    write("import jax.numpy; return x + jax.numpy.arange(3)")
    wide = CompilationRequest("jax:program.py:double", "f64[3]", None, "", "lowered")
    narrow = compile_for(wide).path.read_text()
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    assert "f64[3]" not in narrow
    assert "f64[3]" in compile_for(wide).path.read_text()


# ---- other targets, whose compilers are large extras

TPU: Final = ["tpu:v4:2x2x1", "tpu:v5e:2x2", "tpu:v5p:2x2x1", "tpu:v6e:2x2"]
GPU: Final = ["gpu:V100", "gpu:A100", "gpu:H100", "gpu:B200"]


def require_target(target: str) -> None:
    if target.startswith("tpu"):
        pytest.importorskip("libtpu", reason="needs libtpu, to compile for TPUs")
    else:
        pytest.importorskip("jax_cuda12_plugin", reason="needs its plugin, to compile for GPUs")


@pytest.mark.slow
@pytest.mark.parametrize("target", [*TPU, *GPU])
def test_modules_of_each_target_have_the_maps_of_the_program(target: str) -> None:
    require_target(target)
    module = indexing.from_jax(layer, *ARGUMENTS, target=target, stage="optimized")
    assert parameter_names(module) == NAMES
    assert hlo.verify(module) == []
    expected = indexing.to_parameters(indexing.from_jax(layer, *ARGUMENTS).entry.root)
    answer = indexing.to_parameters(module.entry.root)
    by_name = {p.name: maps for p, maps in zip(expected.operands, expected.maps, strict=True)}
    assert {p.name: maps for p, maps in zip(answer.operands, answer.maps, strict=True)} == by_name


@pytest.mark.slow
@pytest.mark.parametrize("target", ["tpu:v5e:2x2", "gpu:H100:4"])
def test_devices_of_a_mesh_become_those_of_the_target(target: str) -> None:
    require_target(target)
    mesh = jax.sharding.AbstractMesh((2, 2), ("x", "y"))
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", "y"))
    x = jax.ShapeDtypeStruct((512, 512), jnp.bfloat16, sharding=spec)
    module = indexing.from_jax(lambda a, b: a @ b, x, x, target=target, stage="optimized")
    assert module.header("num_partitions") == 4
    assert module.entry.parameters[0].shape.dims == (256, 256)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["tpu:v5e:2x2", "gpu:H100"])
def test_every_pass_of_a_target_leaves_a_dump(target: str) -> None:
    require_target(target)
    folder = indexing.from_jax(layer, *ARGUMENTS, target=target, stage="passes")
    assert len(list(folder.glob("module_*.after_*.before_*.txt"))) > 10


@pytest.mark.slow
@pytest.mark.parametrize("target", ["tpu:v5e:2x2", "gpu:H100"])
def test_memory_that_the_target_lacks_is_an_error_of_xla(target: str) -> None:
    require_target(target)

    def large(x: Any) -> Any:
        return jnp.sort(jnp.cumsum(jnp.broadcast_to(x, (1 << 18, 1 << 18)), 0), 1)

    x = jax.ShapeDtypeStruct((1 << 18,), np.float32)
    if target.startswith("gpu"):
        folder = indexing.from_jax(layer, *ARGUMENTS, target=target, stage="kernels")
        assert any(re.search(r"\.mlir|\.ll$|\.ptx$", each.name) for each in folder.iterdir())
        return
    with pytest.raises(CompilationError, match=r"RESOURCE_EXHAUSTED|exceed"):
        indexing.from_jax(large, x, target=target, stage="optimized")


def test_the_file_of_a_module_has_a_valid_name(tmp_path: Path) -> None:
    assert Compiled(tmp_path, "<lambda>").path.name == "_lambda_.hlo"
