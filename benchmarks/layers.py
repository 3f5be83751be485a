"""Cost of maps by the number of layers of a model.

    python -m benchmarks.layers [LAYERS...]

All layers are equal: attention with its softmax as a fusion, and two products, each with its own
weights. Each time is that of a new module in a process that has already answered smaller modules,
so equal sub-problems are memoised.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import hlo
import indexing
from benchmarks.maps import all_maps, time_action
from hlo import Builder
from hlo.formats.builder import BuilderValue
from hlo.modules.module import Module

LAYERS = (1, 2, 4, 8, 16)
TOKENS, WIDTH, HEADS = 32, 64, 4


def model(layers: int) -> Module:
    """Build a model of `layers` layers, each with four weights."""
    main = Builder(f"layers_{layers}")
    add = main.computation("add")
    add.op("add", add.parameter("f32[]"), add.parameter("f32[]"))
    maximum = main.computation("maximum")
    maximum.op("maximum", maximum.parameter("f32[]"), maximum.parameter("f32[]"))
    x = main.parameter(f"f32[{TOKENS},{WIDTH}]")
    for _ in range(layers):
        x = layer(main, x, add, maximum)
    return main.build(x)


def layer(main: Builder, x: BuilderValue, add: Builder, maximum: Builder) -> BuilderValue:
    """Build attention and two products, with residual sums."""
    square, size = f"f32[{WIDTH},{WIDTH}]", WIDTH // HEADS
    query, key, up, down = (main.parameter(square) for _ in range(4))
    once: dict[str, Any] = {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
    heads = []
    for weight in (query, key):
        flat = main.op("dot", x, weight, **once)
        split = main.op("reshape", flat, shape=f"f32[{TOKENS},{HEADS},{size}]")
        heads.append(main.op("transpose", split, dimensions=(1, 0, 2)))
    batched: dict[str, Any] = {"lhs_batch_dims": (0,), "rhs_batch_dims": (0,)}
    last: dict[str, Any] = {"lhs_contracting_dims": (2,), "rhs_contracting_dims": (2,)}
    scores = main.op("dot", *heads, **batched, **last)
    weights = main.fusion(softmax(main, add, maximum), scores)
    inner: dict[str, Any] = {"lhs_contracting_dims": (2,), "rhs_contracting_dims": (1,)}
    mixed = main.op("dot", weights, heads[1], **batched, **inner)
    transposed = main.op("transpose", mixed, dimensions=(1, 0, 2))
    x = main.op("add", x, main.op("reshape", transposed, shape=f"f32[{TOKENS},{WIDTH}]"))
    hidden = main.op("tanh", main.op("dot", x, up, **once))
    return main.op("add", x, main.op("dot", hidden, down, **once))


def softmax(main: Builder, add: Builder, maximum: Builder) -> Builder:
    """Build the fused softmax along the last dimension."""
    fused = main.computation("softmax")
    shape = f"f32[{HEADS},{TOKENS},{TOKENS}]"
    x, zero = fused.parameter(shape), fused.constant("f32[]", 0)
    top = fused.op("reduce", x, zero, dimensions=(2,), to_apply=maximum)
    centred = fused.op("subtract", x, fused.op("broadcast", top, shape=shape, dimensions=(0, 1)))
    power = fused.op("exponential", centred)
    total = fused.op("reduce", power, zero, dimensions=(2,), to_apply=add)
    fused.op("divide", power, fused.op("broadcast", total, shape=shape, dimensions=(0, 1)))
    return fused


def to_parameters(module: Module) -> int:
    """Return the number of maps from all instructions of a module to the parameters."""
    return sum(
        len(maps)
        for computation in module.computations.values()
        for answer in indexing.all_to_parameters(computation)
        for maps in answer.maps
    )


def main(arguments: list[str]) -> None:
    """Print a line for each number of layers."""
    import_module("indexing.ops")
    all_maps(model(1))
    to_parameters(model(1))
    print("layers  instructions   parse      maps   a layer     all maps to parameters   a map")
    for layers in map(int, arguments) if arguments else LAYERS:
        text = str(model(layers))
        module, parsing = time_action(lambda text=text: hlo.parse(text))  # type: ignore[misc]
        _, mapping = time_action(lambda module=module: all_maps(module))  # type: ignore[misc]
        count, sweeping = time_action(lambda module=module: to_parameters(module))  # type: ignore[misc]
        size = sum(1 for _ in module.instructions)
        print(
            f"{layers:6} {size:13} {parsing:7.3f} s {mapping:7.3f} s"
            f" {mapping / layers * 1e3:6.2f} ms"
            f" {sweeping:10.3f} s {count:8} maps {sweeping / count * 1e6:6.1f} µs"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
