"""Random pairs of equal and of different programs: verdicts compared with executions.

``python -m tests.equivalence.verdict_hunt --seed 1 --count 6000`` prints the number of
verdicts, and each false one with both programs.  A verdict is false if programs are proved equal
whose executions differ, if they differ though they are equal by construction, or if the inputs of a
difference do not show it.  Executions are those of the interpreter, and of XLA for some proofs.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import hlo
from benchmarks.hunt_programs import programs
from hlo.modules.module import Module
from hlo.shapes.shape import Shape
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.execution import run, xla
from indexing.execution.inputs import random_inputs
from indexing.ops.unspecified import record_unspecified
from tests.equivalence.mutants import mutants
from tests.equivalence.test_values import EQUAL, program

REWRITES: Final = Path(__file__).parent / "rewrites"
MAX_INSTRUCTIONS: Final = 60
SEEDS: Final = 4
EVERY: Final = 40
"""XLA executes one of so many pairs."""

CALLS: Final = (
    """ENTRY e { a = f32[3,3] parameter(0)  b = f32[3,2] parameter(1)
      m = f32[3,3] multiply(a, a)  i = s32[3,3] iota(), iota_dimension=0
      j = s32[3,3] iota(), iota_dimension=1  d = pred[3,3] compare(i, j), direction=EQ
      c = f32[] constant(4.0)  f = f32[3,3] broadcast(c), dimensions={}
      z = f32[3,3] select(d, f, m)
      s = f32[3,2] custom-call(z, b), custom_call_target="lapack_strsm_ffi",
        api_version=API_VERSION_TYPED_FFI, backend_config={diag = 78 : ui8, side = 76 : ui8,
        trans_x = 78 : ui8, uplo = 76 : ui8}
      ROOT r = f32[3,2] subtract(s, b) }""",
    """ENTRY e { a = f32[3,3] parameter(0)  t = f32[3,3] transpose(a), dimensions={1,0}
      p = f32[3,3] dot(a, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      q = f32[3,3] add(p, a)
      s = (f32[3,3], f32[3], s32[]) custom-call(q), custom_call_target="lapack_ssyevd_ffi",
        api_version=API_VERSION_TYPED_FFI, backend_config={mode = 86 : ui8, uplo = 76 : ui8}
      ROOT v = f32[3] get-tuple-element(s), index=1 }""",
    """ENTRY e { a = f32[3,7] parameter(0)  b = f32[3,7] parameter(1)  m = f32[3,7] subtract(a, b)
      s = (f32[3,2], s32[3,2]) custom-call(m), custom_call_target="TopK"
      v = f32[3,2] get-tuple-element(s), index=0  i = s32[3,2] get-tuple-element(s), index=1
      f = f32[3,2] convert(i)  ROOT r = f32[3,2] multiply(v, f) }""",
    """ENTRY e { a = f32[4,6] parameter(0)
      s = f32[4,6] custom-call(a), custom_call_target="Sharding", sharding={replicated}
      ROOT r = f32[4,5] slice(s), slice={[0:4], [1:6]} }""",
)


# ---------------------------------------------------------------- equal programs


def add_hints(module: Module) -> str:
    """Return the text with metadata at each instruction, and other configurations."""
    text = str(module)
    for number, instruction in enumerate(module.instructions):
        line = str(instruction)
        hint = f', metadata={{op_name="hint{number}"}}'
        if instruction.opcode != "custom-call" and "backend_config" not in instruction.attributes:
            hint += f', backend_config={{"hint":"{number}"}}'
        text = text.replace(f"{line}\n", f"{line}{hint}\n", 1)
    return text


def with_root(module: Module, more: Callable[[str, Shape], str]) -> str:
    """Return the text with another root, computed from the result."""
    root, text = module.entry.root, str(module)
    assert isinstance(root.shape, Shape)
    head, mark, line = text.rpartition(f"ROOT %{root.name} = ")
    end = line.index("\n")
    added = more(f"%{root.name}", root.shape)
    return f"{head}{mark.removeprefix('ROOT ')}{line[:end]}\n  {added}{line[end:]}"


def copy_line(name: str, shape: Shape) -> str:
    return f"ROOT %hunt.copy = {shape} copy({name})"


def reversed_twice(name: str, shape: Shape) -> str:
    every = ",".join(map(str, range(shape.rank)))
    return (
        f"%hunt.once = {shape} reverse({name}), dimensions={{{every}}}\n"
        f"  ROOT %hunt.twice = {shape} reverse(%hunt.once), dimensions={{{every}}}"
    )


def equal_to(module: Module, chance: random.Random) -> Module:
    """Return a program that computes the same."""
    kinds = ["hints", "copy", "reverse"] if isinstance(module.entry.root.shape, Shape) else [""]
    match chance.choice(kinds):
        case "copy":
            return hlo.parse(with_root(module, copy_line))
        case "reverse":
            return hlo.parse(with_root(module, reversed_twice))
        case _:
            return hlo.parse(add_hints(module))


# ---------------------------------------------------------------- executions


def outputs(module: Module, inputs: Sequence[Any], use_xla: bool = False) -> list[Any] | None:
    """Return the results; None if HLO leaves them open, or the module is not executed."""
    try:
        with np.errstate(all="ignore"), record_unspecified() as unspecified:
            results = run(module, inputs)
            if use_xla:
                results = xla.run(module, inputs)
            return None if unspecified else list(results)
    except (hlo.HloError, np.linalg.LinAlgError, RuntimeError):
        return None


def are_far(one: Any, other: Any) -> bool:
    """Return True if two results differ beyond rounding; infinite values are not compared."""
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype.kind in "biu":
        return not np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    a, b = a.astype(wide), b.astype(wide)
    known = np.isfinite(a) & np.isfinite(b)
    scale = max([1.0, *np.abs(a[known]), *np.abs(b[known])])
    return bool(np.any(np.abs(a - b)[known] > 1e-2 * scale))


def execution_differs(before: Module, after: Module, use_xla: bool = False) -> bool:
    for seed in range(SEEDS):
        inputs = random_inputs(before.entry, seed)
        ours, theirs = outputs(before, inputs, use_xla), outputs(after, inputs, use_xla)
        if ours is not None and theirs is not None and any(map(are_far, ours, theirs)):
            return True
    return False


# ---------------------------------------------------------------- the hunt


def sources(seed: int) -> list[tuple[Module, Module]]:
    """Return pairs of equal programs, without loops, of which mutants may not end."""
    pairs = [tuple(map(program, each)) for each in EQUAL.values()]
    pairs += [tuple(hlo.load_all(path)[:2]) for path in sorted(REWRITES.iterdir())]
    alone = [hlo.parse(text) for _, text in programs(seed, 40)]
    alone += [hlo.parse(text) for text in CALLS] * 10
    pairs += [(module, module) for module in alone]
    return [
        (one, other)
        for one, other in pairs
        if max(len(one.entry), len(other.entry)) <= MAX_INSTRUCTIONS
        and not any(i.opcode == "while" for m in (one, other) for i in m.instructions)
    ]


def draw_pairs(seed: int, count: int) -> Iterator[tuple[str, Module, Module]]:
    """Yield ``equal`` or the mutation, and two programs."""
    chance = random.Random(seed)
    made = 0
    pairs = sources(seed)
    while made < count:
        before, after = chance.choice(pairs)
        if chance.random() < 0.3:
            yield "equal", before, equal_to(after, chance)
            made += 1
            continue
        for name, _, mutant in mutants(after, chance.randrange(1 << 30), 2):
            yield name, before, mutant
            made += 1


def fault_of(name: str, before: Module, after: Module, verdict: Any, use_xla: bool) -> str:
    """Return why a verdict is false; empty if no execution contradicts it."""
    if isinstance(verdict, Proved):
        if execution_differs(before, after, use_xla):
            return "proved, but executions differ"
    elif isinstance(verdict, Differs):
        if name == "equal":
            return "differs, but the programs are equal"
        if not verdict.inputs:
            return ""
        inputs = list(verdict.inputs[0])
        ours, theirs = outputs(before, inputs), outputs(after, inputs)
        if ours is None or theirs is None:
            return "differs, but the inputs are not comparable"
        if all(np.array_equal(a, b, equal_nan=True) for a, b in zip(ours, theirs, strict=True)):
            return "differs, but the results on its inputs are equal"
    return ""


def merges_starts(module: Module) -> bool:
    """Return True if XLA adds the starts of nested dynamic slices, without clamping the outer one.

    `examples/found/nested_dynamic_slices.hlo` shows it.
    """
    return sum(i.opcode in ("dynamic-slice", "dynamic-update-slice") for i in module.entry) > 1


def hunt(seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Return the number of pairs by kind and verdict, and the false verdicts."""
    counts, false = Counter[str](), list[str]()
    counts["XLA executed"] = 0
    for number, (name, before, after) in enumerate(draw_pairs(seed, count)):
        verdict = equivalent(before, after)
        kind = "equal" if name == "equal" else "mutant"
        counts[f"{kind}: {type(verdict).__name__}"] += 1
        use_xla = isinstance(verdict, Proved) and number % EVERY == 0 and xla.is_available()
        use_xla = use_xla and not merges_starts(before)
        counts["XLA executed"] += use_xla
        if fault := fault_of(name, before, after, verdict, use_xla):
            false.append(f"{name}: {fault}: {verdict}\n{before}\n{after}")
        if (number + 1) % 250 == 0:
            print(number + 1, dict(counts), len(false), flush=True)
    return counts, false


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=6000)
    options = parser.parse_args()
    counts, false = hunt(options.seed, options.count)
    print("\n\n".join(false))
    for kind, count in sorted(counts.items()):
        print(f"{count:6,} {kind}")
    pairs = sum(counts.values()) - counts["XLA executed"]
    print(f"{pairs:6,} pairs, {len(false)} false verdicts")


if __name__ == "__main__":
    main()
