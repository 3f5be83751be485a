"""Generated sources are in tracebacks as long as their functions exist, and no longer."""

from __future__ import annotations

import gc
import linecache
import traceback

import numpy as np
import pytest

import hlo
import indexing
from indexing.codegen.nest import LoopNest

MODULE = "ENTRY e {{ p = f32[{n}] parameter(0)  ROOT n = f32[{n}] {opcode}(p) }}"


def nest(n: int, opcode: str) -> LoopNest:
    made = indexing.loop_nest(hlo.parse(MODULE.format(n=n, opcode=opcode)).entry)
    assert isinstance(made, LoopNest)
    return made


def test_sources_are_discarded_with_their_functions() -> None:
    gc.collect()
    before = set(linecache.cache)
    for k in range(3):
        made = nest(k + 2, "negate")
        array = np.zeros(k + 2, np.float32)
        assert (made.run(array).shape, made.vectorized().run(array).shape) == ((k + 2,), (k + 2,))
    assert len(set(linecache.cache) - before) >= 2
    del made
    gc.collect()
    assert set(linecache.cache) <= before


def test_a_traceback_shows_the_lines_of_its_function() -> None:
    """Although another function of the same name is generated later."""
    first, second = nest(3, "negate"), nest(4, "cosine")
    functions = [each._loops._function for each in (first, second)]
    for function, line in zip(
        functions, ["out[d0] = -p[d0]", "out[d0] = np.cos(p[d0])"], strict=True
    ):
        with pytest.raises(IndexError) as caught:
            function(np.zeros(1, np.float32))
        assert line in "".join(traceback.format_exception(caught.value))
