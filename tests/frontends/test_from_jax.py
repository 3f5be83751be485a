"""Modules of JAX functions: their results, parameters and names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

import hlo
import indexing
from indexing.execution import run
from indexing.frontends.naming import parameter_names, with_parameter_names

jax: Any = pytest.importorskip("jax", reason="needs jax, to lower functions")
jnp: Any = jax.numpy
lax: Any = jax.lax


def f32(*dims: int) -> np.ndarray[Any, Any]:
    """Return different numbers between -1 and 1."""
    return np.sin(np.arange(1, np.prod(dims, dtype=int) + 1)).reshape(dims).astype(np.float32)


def mlp(params: Any, x: Any) -> Any:
    for layer in params:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x


def attention(x: Any, w: Any) -> Any:
    q, k, v = (x @ w[name] for name in "qkv")
    return jax.nn.softmax(q @ k.T / 3) @ v


def layer_norm(x: Any, scale: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale


def scan(start: Any, xs: Any) -> Any:
    return lax.scan(lambda carry, x: (carry * 0.5 + x, carry), start, xs)


def convolution(image: Any, kernel: Any) -> Any:
    return lax.conv_general_dilated(image, kernel, (2, 1), "SAME")


def gather(table: Any, rows: Any) -> Any:
    return table[rows]


def scatter(table: Any, rows: Any, update: Any) -> Any:
    return table.at[rows].add(update)


def window(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (3, 2), (2, 1), "VALID")


def choice(p: Any, x: Any) -> Any:
    return lax.cond(p > 0, lambda y: y * 2, lambda y: -y, x)


def loop(x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, y: y + i * x, x)


def keywords(x: Any, *rest: Any, mask: Any, **other: Any) -> Any:
    return jnp.where(mask, x, rest[1]), {"out": other["z"] - x}


def ignores(unused: Any, x: Any, also_unused: Any) -> Any:
    return x[::-1]


def closes_over(x: Any) -> Any:
    return x + jnp.asarray(f32(101))


def sorts(x: Any) -> Any:
    return jnp.sort(x, axis=0), jnp.argmax(x, axis=1)


LAYERS = [{"w": f32(5, 7), "b": f32(7)}, {"w": f32(7, 3), "b": f32(3)}]
QKV = {name: f32(5, 3) * n for n, name in enumerate("qkv", 1)}
ROWS = np.array([6, 0, 6], np.int32)
MASK = {"mask": f32(4) > 0, "z": f32(4)}

# fmt: off
FUNCTIONS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], list[str]]] = [
    (mlp, (LAYERS, f32(2, 5)), {}, ["params.0.b", "params.0.w", "params.1.b", "params.1.w", "x"]),
    (attention, (f32(6, 5), QKV), {}, ["x", "w.k", "w.q", "w.v"]),
    (layer_norm, (f32(3, 5), f32(5)), {}, ["x", "scale"]),
    (scan, (f32(3), f32(5, 3)), {}, ["start", "xs"]),
    (convolution, (f32(1, 2, 7, 5), f32(3, 2, 3, 2)), {}, ["image", "kernel"]),
    (gather, (f32(7, 3), ROWS), {}, ["table", "rows"]),
    (scatter, (f32(7, 3), ROWS, f32(3, 3)), {}, ["table", "rows", "update"]),
    (window, (f32(7, 5),), {}, ["x"]),
    (choice, (np.int32(-1), f32(3)), {}, ["p", "x"]),
    (loop, (f32(3),), {}, ["x"]),
    (keywords, (f32(4), f32(2), f32(4)), MASK, ["x", "rest.0", "rest.1", "mask", "other.z"]),
    (ignores, (f32(2), f32(3), {"b": f32(1)}), {}, ["unused", "x", "also_unused.b"]),
    (closes_over, (f32(101),), {}, ["x"]),
    (sorts, (f32(5, 3),), {}, ["x"]),
]
# fmt: on


IDS = [function.__name__ for function, *_ in FUNCTIONS]


@pytest.mark.parametrize("stage", ["lowered", "optimized"])
@pytest.mark.parametrize("function, args, kwargs, names", FUNCTIONS, ids=IDS)
def test_the_module_computes_the_results_of_the_function(
    function: Callable[..., Any], args: Any, kwargs: Any, names: list[str], stage: Any
) -> None:
    module = indexing.from_jax(function, *args, stage=stage, **kwargs)
    assert [parameter.name for parameter in module.entry.parameters] == names
    assert hlo.parse(str(module)) == module
    assert not hlo.verify(module)
    results = run(module, jax.tree.leaves((args, kwargs)))
    expected = jax.tree.leaves(jax.jit(function)(*args, **kwargs))
    assert len(results) == len(expected)
    for ours, theirs in zip(results, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("stage", ["lowered", "optimized"])
def test_a_jitted_function_keeps_unused_arguments_and_drops_static_ones(stage: Any) -> None:
    @partial(jax.jit, static_argnames=("n",), donate_argnums=0)
    def scaled(x: Any, n: int, unused: Any, y: Any) -> Any:
        return x * n - y["a"]

    args = f32(6), 3, np.array([1, 2], np.int32), {"a": f32(6), "b": 1.5}
    module = indexing.from_jax(scaled, *args, stage=stage)
    names = ["x", "unused", "y.a", "y.b"]
    assert module.name == "jit_scaled"
    assert [parameter.name for parameter in module.entry.parameters] == names
    assert [i.name for i in module.find(op_name="y['b']", opcode="parameter")] == ["y.b"]
    (result,) = run(module, [args[0], args[2], f32(6), np.float32(1.5)])
    np.testing.assert_allclose(result, f32(6) * 2, rtol=1e-6)


def test_a_jitted_function_that_uses_its_arguments_is_lowered_as_it_is() -> None:
    jitted = jax.jit(lambda x: jnp.sin(x) * 2, donate_argnums=0)
    module = indexing.from_jax(jitted, f32(5))
    text = jitted.lower(f32(5)).as_text(dialect="hlo", debug_info=True)
    assert hlo.difference(module, hlo.parse(text), {"names", "order", "metadata"}) is None
    assert "input_output_alias" in module.attributes


def test_arguments_may_be_shapes() -> None:
    shape = jax.ShapeDtypeStruct((2, 5), jnp.float32)
    of_shapes = indexing.from_jax(jnp.multiply, shape, shape)
    assert of_shapes == indexing.from_jax(jnp.multiply, f32(2, 5), f32(2, 5))


def test_no_constant_is_elided() -> None:
    root = indexing.from_jax(closes_over, f32(101)).find(opcode="constant")[0]
    assert root.literal is not None
    assert root.literal.text.count(",") == 100


class State(NamedTuple):
    """A pytree with fields."""

    count: Any
    mean: Any


def test_fields_of_pytrees_are_part_of_the_names() -> None:
    state = State(f32(2), (f32(2), f32(2)))
    module = indexing.from_jax(lambda s: s.count + s.mean[1], state)
    assert [p.name for p in module.entry.parameters] == ["s.count", "s.mean.0", "s.mean.1"]


STAGES: Final = ("lowered", "optimized")


def test_an_optimized_module_may_have_the_names_of_arguments_elsewhere() -> None:
    def function(param_0: Any, add: Any, broadcast_add_fusion: Any, tuple: Any) -> Any:  # noqa: A002
        return param_0 + add[0] + add[1] * broadcast_add_fusion, tuple

    args = f32(5), (f32(1), f32(5)), f32(5), f32(2)
    for stage in STAGES:
        module = indexing.from_jax(function, *args, stage=stage)
        names = ["param_0", "add.0", "add.1", "broadcast_add_fusion", "tuple"]
        assert [p.name for p in module.entry.parameters] == names
        every = [i.name for i in module.instructions]
        assert all(every.count(name) == 1 for name in names)


# fmt: off
PATHS = [
    ("x",                      "x"),
    ("params['wq'][0]",        "params.wq.0"),
    ("params.layers[0].bias",  "params.layers.0.bias"),
    ("d[\"a'b\"]",             "d.a_b"),
    ("d['a/b'][<flat index 1>]", "d.a_b.1"),
    ("d[(1, 2)]",              "d._1__2_"),
    ("größe",                  "gr__e"),
    ("2x",                     "_2x"),
    ("",                       "_"),
]
# fmt: on


@pytest.mark.parametrize("path, name", PATHS)
def test_paths_become_names_of_hlo(path: str, name: str) -> None:
    assert parameter_names([path]) == [name]
    module = hlo.parse("ENTRY e { p = f32[] parameter(0) ROOT n = f32[] negate(p) }")
    named = with_parameter_names(module, [name])
    assert hlo.parse(str(named)) == named
    assert named.entry.root.operands[0].name == name


def test_equal_names_get_suffixes() -> None:
    module = hlo.parse("""
      called { x = f32[] parameter(0) }
      ENTRY e {
        a.1 = f32[] parameter(1)
        b = f32[] parameter(0)
        y = f32[] call(b), to_apply=called
        x.1 = f32[] add(a.1, y), control-predecessors={y, %a.1}
        ROOT z = f32[] negate(x.1)
      }""")
    named = with_parameter_names(module, ["x", "x"])
    assert [p.name for p in named.entry.parameters] == ["x", "x.1"]
    assert [str(i) for i in named.computations["called"]] == ["%x.2 = f32[] parameter(0)"]
    assert named.entry["z"].operands[0].name == "x.1.1"
    assert named.entry["x.1.1"].attributes["control-predecessors"].normal == "{y,x.1}"
    assert hlo.difference(module, named, {"names", "control-predecessors"}) is None
    assert module.entry.parameters[0].name == "b"  # unchanged


def test_names_must_match_the_parameters() -> None:
    module = hlo.parse("ENTRY e { p = f32[] parameter(0) }")
    with pytest.raises(ValueError, match="has 1 parameters, but 2 names"):
        with_parameter_names(module, ["x", "y"])


def test_a_wrong_stage_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"'optimised' is not a stage.*did you mean `optimized`"):
        indexing.from_jax(jnp.sin, f32(2), stage="optimised")


def test_without_jax_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"pip install 'hlo-indexing\[xla\]'.*as_text"):
        indexing.from_jax(jnp.sin, f32(2))


def scale_helper(x: Any, unused: Any) -> Any:
    return helper(x) * 2


def helper(x: Any) -> Any:
    return jnp.sin(x)


@pytest.mark.parametrize("stage", ["lowered", "optimized"])
@pytest.mark.parametrize("jitted", [False, True])
def test_sources_are_lines_of_the_program(stage: Any, jitted: bool) -> None:
    function = jax.jit(scale_helper) if jitted else scale_helper
    module = indexing.from_jax(function, f32(3), f32(2), stage=stage)
    (sine,) = module.find(opcode="sine")
    here = helper.__code__
    assert (sine.source.file, sine.source.line) == (__file__, here.co_firstlineno + 1)
    assert (sine.source.function, sine.source.op_name) == ("helper", "jit(scale_helper)/sin")
    functions = [frame.function for frame in sine.source.frames]
    assert functions[:3] == ["helper", "scale_helper", "test_sources_are_lines_of_the_program"]
    for instruction in module.instructions:
        assert instruction.source.file in (None, __file__), instruction


def test_a_function_of_a_library_has_the_line_of_the_call() -> None:
    module = indexing.from_jax(jnp.sin, f32(3))
    code = test_a_function_of_a_library_has_the_line_of_the_call.__code__
    assert module.entry.root.source.line == code.co_firstlineno + 1
    assert module.entry.root.source.function == code.co_name


def test_a_missing_argument_says_what_to_pass() -> None:
    with pytest.raises(TypeError, match=r"from_jax: missing a required .*'x'; pass its arguments"):
        indexing.from_jax(lambda x: x + 1)
    with pytest.raises(TypeError, match="from_jax: too many positional arguments"):
        indexing.from_jax(lambda x: x + 1, f32(2), f32(2))
