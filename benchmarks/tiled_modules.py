"""Modules whose fusions XLA:GPU tiles by its cost model, for `compiled_tilings`.

    python -m benchmarks.tiled_modules FOLDER [TARGET...]

compiles rows (softmax, normalizations and sums) and dots of the sizes of published models, each
for an A100 and an H100 without the device, and writes ``FOLDER/TARGET/NAME.opt.hlo``.

XLA takes tiles of rows from its cost model.  Those of dots it measures on the GPU; here, the flag
of `FLAGS` lets the cost model choose them, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.target_modules import compile_in_processes

TARGETS: Final = ("gpu:A100", "gpu:H100")
FLAGS: Final = (
    "--xla_gpu_autotune_level=0 --xla_gpu_cublas_fallback=false "
    "--xla_gpu_experimental_cost_model_gemm_tiling_options=top=1"
)

ROWS: Final = {
    "softmax": ("f32 512x1024", "f32 1000x1500", "bf16 8192x128", "bf16 32x12x384x384"),
    "log_softmax": ("f32 16x50257", "bf16 4096x4096", "f32 2048x512"),
    "rms_norm": ("bf16 4096x4096", "bf16 2048x768", "bf16 8x1024x1600", "f32 384x2048"),
    "layer_norm": ("f32 1024x1024", "bf16 64x197x768", "bf16 4096x2560", "f32 130x640"),
    "logsumexp": ("f32 4096x8192", "bf16 2048x1000"),
    "row_sum": ("f32 2048x2048", "f32 300x5000", "bf16 16384x256"),
    "row_max": ("bf16 8192x1024", "f32 640x333"),
    "unit_rows": ("f32 1024x256", "bf16 50000x128"),
}
DOTS: Final = (
    "bf16 1024x768x2304",  # GPT-2: batch x features in x features out
    "bf16 1024x768x3072",
    "bf16 1024x3072x768",
    "bf16 4096x768x768",
    "bf16 2048x4096x4096",  # Llama 2, 7B
    "bf16 512x4096x11008",
    "bf16 128x11008x4096",
    "bf16 16x4096x4096",
    "bf16 4096x4096x1024",
    "f16 512x512x512",
    "f16 1000x1000x1000",
    "f16 2048x2048x2048",
    "bf16 1536x1536x1536",
    "bf16 8192x8192x8192",
    "bf16 777x1234x555",
    "f32 1024x1024x1024",
    "f32 256x4096x256",
    "s8 1024x1024x1024",
    "bf16 192x384x64x384",  # scores and values of attention: heads first
    "bf16 16x1024x128x1024",
    "bf16 16x1024x1024x128",
)
"""Element type, then rows, contracted and columns, after the size of a batch."""


def row_functions() -> dict[str, Callable[[Any], Any]]:
    """Return the functions of `ROWS`, of the last dimension."""
    import jax
    import jax.numpy as jnp

    def wide(x: Any) -> Any:
        return x.astype(jnp.float32)

    def rms_norm(x: Any) -> Any:
        own = wide(x)
        return (own * jax.lax.rsqrt((own * own).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)

    def layer_norm(x: Any) -> Any:
        own = wide(x)
        apart = own - own.mean(-1, keepdims=True)
        return (apart * jax.lax.rsqrt((apart**2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype)

    def unit_rows(x: Any) -> Any:
        own = wide(x)
        return (own / jnp.sqrt((own * own).sum(-1, keepdims=True))).astype(x.dtype)

    return {
        "softmax": lambda x: jax.nn.softmax(wide(x), -1).astype(x.dtype),
        "log_softmax": lambda x: jax.nn.log_softmax(wide(x), -1).astype(x.dtype),
        "rms_norm": rms_norm,
        "layer_norm": layer_norm,
        "logsumexp": lambda x: jax.nn.logsumexp(wide(x), -1),
        "row_sum": lambda x: wide(x).sum(-1),
        "row_max": lambda x: x.max(-1),
        "unit_rows": unit_rows,
    }


def dot(x: Any, y: Any) -> Any:
    """Return the product of matrices, accumulated in 32 bits."""
    import jax.numpy as jnp

    if x.dtype == jnp.int8:
        return jnp.matmul(x, y, preferred_element_type=jnp.int32)
    return jnp.matmul(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


def programs() -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """Yield the name, the function and the arguments of each program."""
    import jax

    elements = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "s8": "int8"}

    def argument(element: str, *sizes: int) -> Any:
        return jax.ShapeDtypeStruct(sizes, elements[element])

    for name, function in row_functions().items():
        for text in ROWS[name]:
            element, sizes = text.split()
            shape = [int(size) for size in sizes.split("x")]
            yield f"{name}_{element}_{sizes}", function, [argument(element, *shape)]
    for text in DOTS:
        element, sizes = text.split()
        *batch, m, k, n = [int(size) for size in sizes.split("x")]
        pair = [argument(element, *batch, m, k), argument(element, *batch, k, n)]
        yield f"dot_{element}_{sizes}", dot, pair


def write_modules(folder: Path, text: str) -> None:
    """Write the modules of all programs for one target; print which do not compile."""
    from indexing.frontends.lowering import lower
    from indexing.frontends.targets import Target
    from indexing.frontends.xla_process import optimized_text

    target = Target.parse(text)
    folder.mkdir(parents=True, exist_ok=True)
    start, failed = time.perf_counter(), 0
    own = list(programs())
    for name, function, arguments in own:
        try:
            lowered = lower(function, arguments, {}, target.platform)
            (folder / f"{name}.opt.hlo").write_text(optimized_text(lowered, target))
        except Exception as error:  # of JAX or XLA: the other programs count
            failed += 1
            print(f"{text} {name}: {str(error).partition(chr(10))[0][:200]}", flush=True)
    seconds = time.perf_counter() - start
    print(f"{text}: {len(own) - failed} of {len(own)} programs, {seconds:.0f} s", flush=True)


def main() -> None:
    """Write the modules for the named targets, or for all."""
    compile_in_processes("benchmarks.tiled_modules", write_modules, TARGETS, FLAGS)


if __name__ == "__main__":
    main()
