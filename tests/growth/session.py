"""Memory over a session of distinct modules: ``python -m tests.growth.session COUNT``.

Each module is parsed, analysed, tiled, printed and executed in several ways, and discarded.  Prints
the bytes that remain after half of the modules, and after all.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from weakref import WeakSet

import hlo
import indexing
from hlo import Module
from indexing.codegen.running import nests_of
from indexing.execution import random_inputs, run

BRANCHES = 6
"""Chains of instructions in one module, with shapes that no other module has."""


def text_of(number: int) -> str:
    """Return the text of a module whose shapes and constants depend on its number."""
    lines = [f"p{number} = f32[7,6] parameter(0)"]
    for k in range(BRANCHES):
        size, name = 2 + number * BRANCHES + k, f"{number}_{k}"
        lines += [
            f"c{name} = f32[] constant({size}.5)",
            f"w{name} = f32[{size},6] broadcast(c{name}), dimensions={{}}",
            f"k{name} = f32[{size + 7},6] concatenate(w{name}, p{number}), dimensions={{0}}",
            f"r{name} = f32[{size * 6 + 42}] reshape(k{name})",
            f"s{name} = f32[{size}] slice(r{name}), slice={{[1:{3 * size - 1}:3]}}",
            f"d{name} = f32[7,6] slice(k{name}), slice={{[{size}:{size + 7}], [0:6]}}",
            f"t{name} = f32[6,7] transpose(d{name}), dimensions={{1,0}}",
        ]
    products = [f"f32[6,7] t{number}_{k}" for k in range(BRANCHES)]
    total = products[0].split()[1]
    for k in range(1, BRANCHES):
        lines.append(f"a{number}_{k} = f32[6,7] add({total}, t{number}_{k})")
        total = f"a{number}_{k}"
    root = f"ROOT n{number} = f32[6,7] negate({total})"
    return "\n".join([f"HloModule m{number}", "ENTRY e {", *lines, root, "}"])


def use(module: Module) -> None:
    """Ask questions of many kinds about a module, and execute it."""
    for instruction in module.instructions:
        if instruction.operands:
            str(indexing.output_to_input(instruction))
            str(indexing.input_to_output(instruction))
    str(indexing.to_parameters(module.entry.root))
    indexing.tile_analysis(module.entry)
    nest = indexing.loop_nest(module.entry)
    assert not isinstance(nest, indexing.Unknown)
    assert nest.source
    inputs = random_inputs(module.entry, 0)
    nests_of(module, (4, 4)).run(inputs)
    run(module, inputs)


def bytes_in_use() -> int:
    """Return the bytes of all objects in use."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def main(count: int) -> None:
    """Print the bytes in use after half of the modules and after all."""
    tracemalloc.start()
    modules = WeakSet[Module]()
    for number in range(count):
        module = hlo.parse(text_of(number))
        modules.add(module)
        use(module)
        del module
        if number + 1 in (count // 2, count):
            print(bytes_in_use())
    assert not modules, "a cache of the process keeps modules alive"


if __name__ == "__main__":
    main(int(sys.argv[1]))
