"""Names of instructions, parameters and computations do not change what generated code computes."""

from __future__ import annotations

import builtins
import dis
import keyword
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import hlo
import indexing
from hlo.modules.module import Instruction
from indexing.codegen import sources
from indexing.codegen.nest import LoopNest
from indexing.codegen.text import RESERVED, identifier
from tests.ops.samples import MAPPED, Array, Sample, samples_of
from tests.oracles import sampled

VALUES: Final = ["constant", "iota"]
EXAMPLES: Final = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))

CHOSEN: Final = [
    *("_", "__", "self", "out0", "out_2", "x", "x_2", "x.2", "x-2", "a.b", "a_b", "a-b"),
    *(
        "d0",
        "_d0",
        "i_d0",
        "rt0",
        "s1",
        "total",
        "total1",
        "where",
        "updated",
        "complex_",
        "clamp_",
    ),
    *("numpy", "np.float32", "np_float32", "f", "array", "pi", "inf", "nan", "add", "to_f32"),
    *("to_s32", "to_c64", "to_c64_2", "real"),
    *("__name__", "__builtins__", "__debug__", "__class__", "__doc__", "__import__", "__init__"),
]
"""Names of HLO that generated code, or its sanitised names, could confuse with others."""


def loads(code: types.CodeType) -> Iterator[tuple[str, bool]]:
    """Yield the names that a code object uses, and whether each is global; inner code included."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval, True
    yield from [(name, False) for name in (*code.co_varnames, *code.co_cellvars)]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from loads(constant)


class Generated:
    """The names of generated sources: those that are free, the functions defined, and local names.

    A free name is neither defined by the source nor allocated by its builder.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free: set[str] = set()
        self.local: set[str] = set()
        self.count = 0
        made = sources.function_from

        def function_from(source: str, name: str, title: str, scope: dict[str, object]) -> object:
            self._note(compile(source, title, "exec"), scope)
            return made(source, name, title, scope)

        monkeypatch.setattr(sources, "function_from", function_from)

    def _note(self, code: types.CodeType, scope: Mapping[str, object]) -> None:
        self.count += 1
        functions = {c.co_name for c in code.co_consts if isinstance(c, types.CodeType)}
        used = list(loads(code))
        allocated = scope.keys() - RESERVED
        self.free |= {name for name, is_global in used if is_global} - functions - allocated
        self.local |= {name for name, is_global in used if not is_global} | functions


def nests(instruction: Instruction) -> list[LoopNest]:
    leaves = range(len(hlo.shapes.shape.leaves(instruction.shape)))
    made = [indexing.loop_nest(instruction, k) for k in leaves]
    return [nest for nest in made if isinstance(nest, LoopNest)]


def write(nest: LoopNest) -> None:
    """Write all forms of a nest."""
    program = nest.vectorized()
    assert nest.source
    assert program.source
    assert program.tile_source


@pytest.mark.sampled
def test_generated_code_uses_reserved_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    generated = Generated(monkeypatch)
    for opcode in [*MAPPED, *VALUES]:
        for sample in samples_of(opcode):
            for nest in nests(sample.instruction):
                write(nest)
    for path in EXAMPLES:
        entry = hlo.load(path).entry
        for nest in nests(entry.root):
            write(nest)
    assert generated.count > 1000
    assert {"np", "numerics", "range", "clamp"} <= generated.free
    assert generated.free <= RESERVED
    assert not generated.local & RESERVED - {"out", "_"}


# ---------------------------------------------------------------- names exchanged


def odd_names() -> list[str]:
    """Return the names to try: those with a meaning in Python, those of libraries, and others."""
    python = [*dir(builtins), *keyword.kwlist, *keyword.softkwlist]
    return list(dict.fromkeys([*CHOSEN, *sorted(RESERVED), *python]))


def rename(module: hlo.Module, names: Iterable[str]) -> str:
    """Return the text of a module whose instructions and computations have other names, in order.

    Equal names become equal names.
    """
    called = "|".join(map(re.escape, module.computations))
    text = re.sub(rf"=({called})(?![\w.\-])", r"=%\1", str(module))
    new: dict[str, str] = {}
    rest = iter(names)

    def replacement(match: re.Match[str]) -> str:
        if match[1] not in new:
            new[match[1]] = next(rest)
        return f"%{new[match[1]]}"

    return re.sub(r"%([\w.\-]+)", replacement, text)


def results(nest: LoopNest, inputs: list[Array]) -> list[Array]:
    program = nest.vectorized()
    tile = (2,) * len(nest.output.dims)
    return [nest.run(*inputs), program.run(*inputs), program.run(*inputs, tile=tile)]


ROTATIONS: Final = 4


def check_renamed(sample: Sample, names: list[str]) -> None:
    """Compare a sample with itself under other names."""
    instruction = sample.instruction
    inputs = sample.inputs(np.random.default_rng(0))
    module = hlo.parse(rename(instruction.module, names))
    twin = module.entry.instructions[instruction.index]
    for before, after in zip(nests(instruction), nests(twin), strict=True):
        for one, other in zip(results(before, inputs), results(after, inputs), strict=True):
            np.testing.assert_array_equal(other, one)


@pytest.mark.sampled
def test_samples_compute_the_same_under_any_names() -> None:
    names, starts = odd_names(), count()
    for opcode in [*MAPPED, *VALUES]:
        for sample in sampled(samples_of(opcode)):
            for _ in range(ROTATIONS):
                start = next(starts) * 5 % len(names)
                check_renamed(sample, names[start:] + names[:start])


REDUCTION: Final = """HloModule m
%f (%a: c64[], %b: c64[]) -> c64[] {
  %a = c64[] parameter(0)
  %b = c64[] parameter(1)
  %k = c64[] constant((1,2))
  %q = f32[] real(%b)
  %g = s32[] convert(%q)
  %h = c64[] convert(%g)
  %m = c64[] multiply(%b, %k)
  %n = c64[] add(%m, %h)
  ROOT %c = c64[] add(%a, %n)
}
ENTRY %e (%p: c64[6], %z: c64[]) -> c64[] {
  %p = c64[6] parameter(0)
  %z = c64[] parameter(1)
  ROOT %r = c64[] reduce(%p, %z), dimensions={0}, to_apply=%f
}"""


@pytest.mark.parametrize("role", [*"fabkmcepr"])
def test_each_name_in_each_role(role: str) -> None:
    """Of a reducer that is written as a function, and calls others."""
    inputs: list[Array] = [np.arange(6).astype(np.complex64), np.asarray(1, np.complex64)]
    (original,) = nests(hlo.parse(REDUCTION).entry.root)
    (expected,) = {complex(each) for each in results(original, inputs)}
    for name in odd_names():
        if re.search(rf"%{re.escape(name)}\b", REDUCTION):
            continue
        text = re.sub(rf"%{role}\b", f"%{name}", REDUCTION)
        (nest,) = nests(hlo.parse(text).entry.root)
        assert {complex(each) for each in results(nest, inputs)} == {expected}, name


def test_no_identifier_is_reserved() -> None:
    for name in odd_names():
        made = identifier(name)
        assert made.isidentifier(), name
        assert made not in RESERVED, name
        assert not keyword.iskeyword(made), name
