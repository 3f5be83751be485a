"""The kernels of ``jax.experimental.pallas.ops`` that trace without a device, at small sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]


def _array(*dims: int, dtype: str = "float32") -> Any:
    import jax

    return jax.ShapeDtypeStruct(dims, dtype)


def _gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    def total(*args: Any) -> Any:
        return function(*args).astype("float32").sum()

    gradient: Callable[..., Any] = jax.grad(total, argnums=(0, 1, 2))
    return gradient


def cases() -> Iterator[Case]:
    yield from tpu_cases()
    yield from gpu_cases()


def tpu_cases() -> Iterator[Case]:
    home = "jax.experimental.pallas.ops.tpu"
    flash = import_module(f"{home}.flash_attention")
    q = _array(1, 2, 512, 128)
    causal = partial(flash.flash_attention, causal=True)
    yield "flash_attention", flash.flash_attention, (q, q, q)
    yield "flash_attention causal", causal, (q, q, q)
    yield "flash_attention gradient", _gradient(causal), (q, q, q)
    segments = flash.SegmentIds(q=_array(1, 512, dtype="int32"), kv=_array(1, 512, dtype="int32"))
    bias = _array(1, 2, 512, 512)
    yield "flash_attention segments", flash.flash_attention, (q, q, q, bias, segments)
    matmul = import_module(f"{home}.matmul").matmul
    square = _array(512, 512, dtype="bfloat16")
    yield "matmul", partial(matmul, block_shape=(256, 256), block_k=256), (square, square)
    yield "double", import_module(f"{home}.example_kernel").double, (_array(256, 256),)
    gmm = import_module(f"{home}.megablox.gmm")
    groups = _array(4, dtype="int32")
    options = {"preferred_element_type": "float32", "tiling": (128, 128, 128)}
    left = _array(512, 256, dtype="bfloat16")
    yield "gmm", partial(gmm.gmm, **options), (left, _array(4, 256, 384, dtype="bfloat16"), groups)
    wide, tall = _array(256, 512, dtype="bfloat16"), _array(512, 384, dtype="bfloat16")
    yield "tgmm", partial(gmm.tgmm, **options), (wide, tall, groups)
    paged = import_module(f"{home}.paged_attention.paged_attention_kernel").paged_attention
    tables = _array(4, dtype="int32"), _array(4, 16, dtype="int32")
    for heads, kv in ((8, 8), (16, 2)):
        query = _array(4, heads, 128, dtype="bfloat16")
        pages = _array(kv, 64, 16, 128, dtype="bfloat16")
        args = (query, pages, pages, *tables)
        yield f"paged_attention {kv}", partial(paged, pages_per_compute_block=4), args
    ragged = import_module(f"{home}.ragged_paged_attention.kernel").ragged_paged_attention
    yield (
        "ragged_paged_attention",
        partial(ragged, num_kv_pages_per_block=8, num_queries_per_block=32),
        (
            _array(128, 8, 128, dtype="bfloat16"),
            _array(64, 16, 4, 128, dtype="bfloat16"),
            _array(8, dtype="int32"),
            _array(8, 16, dtype="int32"),
            _array(9, dtype="int32"),
            _array(1, dtype="int32"),
        ),
    )
    yield "splash_attention", splash, (q, q, q)
    yield "splash_attention gradient", _gradient(splash), (q, q, q)
    yield "all_gather", gather_rows, (_array(32, 128),)
    key = _array(2, dtype="uint32")
    threefry = import_module(f"{home}.random.threefry").plthreefry_random_bits
    philox = import_module(f"{home}.random.philox").philox_4x32_count
    yield "threefry", lambda k: threefry(k, 32, (512, 512)), (key,)
    yield "philox", lambda k: philox(k, (512, 512), 0), (key,)


def splash(q: Any, k: Any, v: Any) -> Any:
    """Apply splash attention with a causal mask to each element of a batch."""
    import jax

    home = "jax.experimental.pallas.ops.tpu.splash_attention"
    masks = import_module(f"{home}.splash_attention_mask")
    kernels = import_module(f"{home}.splash_attention_kernel")
    heads, length = q.shape[1:3]
    mask = masks.MultiHeadMask([masks.CausalMask((length, length)) for _ in range(heads)])
    return jax.vmap(kernels.make_splash_mha_single_device(mask))(q, k, v)


def gather_rows(x: Any) -> Any:
    """Gather the rows of four devices."""
    from jax.sharding import AbstractMesh

    all_gather = import_module("jax.experimental.pallas.ops.tpu.all_gather").all_gather
    return all_gather(x, mesh=AbstractMesh((4,), ("x",)), axis_name="x")


def gpu_cases() -> Iterator[Case]:
    home = "jax.experimental.pallas.ops.gpu"
    attention = import_module(f"{home}.attention")
    q = _array(1, 256, 2, 64, dtype="float16")

    def causal(q: Any, k: Any, v: Any) -> Any:
        return attention.mha(q, k, v, None, causal=True)

    yield "mha", causal, (q, q, q)
    yield "mha gradient", _gradient(causal), (q, q, q)
    for name, function in (
        ("layer_norm", import_module(f"{home}.layer_norm").layer_norm),
        ("rms_norm", import_module(f"{home}.rms_norm").rms_norm),
    ):
        x, w = _array(2, 32, 512), _array(512)
        yield name, function, (x, w, w)
        yield f"{name} gradient", _gradient(function), (x, w, w)
    yield "softmax", import_module(f"{home}.softmax").softmax, (_array(64, 512),)
    decode = import_module(f"{home}.decode_attention")
    short = _array(2, 16, 64, dtype="float16")
    keys = _array(2, 1024, 64, dtype="float16")
    yield "mqa decode", decode.mqa, (short, keys, keys)
    grouped = _array(2, 1024, 4, 64, dtype="float16")
    yield "gqa decode", decode.gqa, (_array(2, 32, 64, dtype="float16"), grouped, grouped)
    paged = import_module(f"{home}.paged_attention").paged_attention
    pages = _array(2, 64, 16, 64, dtype="float16")
    tables = _array(4, 16, dtype="int32"), _array(4, dtype="int32")
    yield "paged attention", paged, (_array(4, 8, 64, dtype="float16"), pages, pages, *tables)
