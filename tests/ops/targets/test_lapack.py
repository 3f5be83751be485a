"""Calls of LAPACK on CPU: XLA executes them, and elements that change must be read by the maps."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

import indexing
from hlo.modules.module import Instruction
from hlo.shapes.shape import Shape, dtype, leaves
from indexing.execution import xla
from indexing.ops.targets.lapack_call import TYPES
from tests.ops.samples import Array, Pair, parse_sample, related_pairs

needs_xla = pytest.mark.skipif(not xla.is_available(), reason="needs jax, the extra [xla]")
ORDERS = {0: "", 1: "{0}", 2: "{0,1}", 3: "{1,2,0}"}


def write_shape(shape: str) -> str:
    """Return a shape with the layout of LAPACK; ``v`` before it marks vectors of a batch."""
    name = shape.removeprefix("v")
    rank = len(name.partition("[")[2].rstrip("]").split(",")) if "[]" not in name else 0
    return name + ("{1,0}" if name != shape else ORDERS[rank])


def call(target: str, results: str, operands: str, config: str = "") -> str:
    """Return a call; ``T`` is the type of the letter, ``R`` its real type."""
    letter = target[0]

    def shapes(text: str) -> list[str]:
        real = "f32" if letter in "sc" else "f64"
        each = (
            text.replace("T", TYPES[letter])
            .replace("R", real)
            .replace("C", "c64" if real == "f32" else "c128")
        )
        return [write_shape(shape) for shape in each.split()]

    given, made = shapes(operands), shapes(results)
    result = made[0] if len(made) == 1 else f"({', '.join(made)})"
    named = ", ".join([f"{shape} p{k}" for k, shape in enumerate(given)])
    entries = [
        f"{key} = {ord(value) if value.isalpha() else value} : {'ui8' if value.isalpha() else 'i32'}"
        for key, value in (e.split("=") for e in config.split())
    ]
    return (
        f"{result} custom-call({named}), operand_layout_constraints={{{', '.join(given)}}}, "
        f'custom_call_target="lapack_{target}_ffi", api_version=API_VERSION_TYPED_FFI, '
        f"backend_config={{{', '.join(entries)}}}"
    )


def generic(shape: Shape, seed: int) -> Array:
    random = np.random.default_rng(seed)
    values = random.normal(size=shape.dims)
    if shape.element_type[0] == "c":
        values = values + 1j * random.normal(size=shape.dims)
    return np.asarray(values, dtype(shape.element_type))


def positive(shape: Shape, seed: int) -> Array:
    b = generic(shape, seed)
    a = b @ b.swapaxes(-1, -2).conj() + shape.dims[-1] * np.eye(shape.dims[-1])
    return np.asarray(a, b.dtype)


def diagonal(shape: Shape, seed: int) -> Array:
    """Return identities: a large change makes a minor negative."""
    ones: Array = np.eye(shape.dims[-1], dtype=dtype(shape.element_type))
    return np.broadcast_to(ones, shape.dims)


def singular(shape: Shape, seed: int) -> Array:
    """Return matrices whose column `seed` is zero, and whose columns before it are units."""
    a = np.zeros(shape.dims, dtype(shape.element_type))
    rows, columns = shape.dims[-2:]
    for k in range(min(seed % columns, rows)):
        a[..., (seed // columns + k) % rows, k] = 1
    return a


STARTS: dict[str, list[tuple[Any, int]]] = {
    "": [(generic, seed) for seed in range(3)],
    "positive": [(positive, 1), (positive, 2), (diagonal, 0)],
    "singular": [*[(generic, seed) for seed in range(12)], *[(singular, k) for k in range(16)]],
}
CHANGES = [0.25, -0.5, 3.0, -3.0]


def changes(instruction: Instruction, starts: str) -> Iterator[tuple[int, int, Pair, bool]]:
    """Yield operand, output, and the pair of an output element and the input element it follows.

    The last member is False where the call fails in one of both executions.
    """
    module = instruction.module
    shapes = [cast("Shape", each.shape) for each in instruction.operands]
    for start, seed in STARTS[starts]:
        inputs = [
            start(shape, seed + 100 * k) if shape.rank > 1 else generic(shape, seed)
            for k, shape in enumerate(shapes)
        ]
        before = xla.run(module, inputs)
        for number, given in enumerate(inputs):
            if given.dtype.kind not in "fc":
                continue
            for place in np.ndindex(*given.shape):
                for step in CHANGES + [2j] * (given.dtype.kind == "c"):
                    changed = given.copy()
                    changed[place] += step
                    after = xla.run(module, [*inputs[:number], changed, *inputs[number + 1 :]])
                    for output, (old, new) in enumerate(zip(before, after, strict=True)):
                        moved = np.argwhere(
                            old.view(f"V{old.itemsize}") != new.view(f"V{new.itemsize}")
                        )
                        for index in moved.tolist():
                            yield (
                                number,
                                output,
                                (tuple(index), place),
                                _succeeds(before) and _succeeds(after),
                            )


def _succeeds(results: Any) -> bool:
    return results[-1].dtype != np.int32 or not results[-1].any()


# fmt: off
CALLS = [
    # target    results                               operands            configuration                     starts
    ("spotrf",  "T[2,3,3] s32[2]",                    "T[2,3,3]",         "uplo=L",                         "positive"),
    ("zpotrf",  "T[3,3] s32[]",                       "T[3,3]",           "uplo=U",                         "positive"),
    ("dpotrf",  "T[4,4] s32[]",                       "T[4,4]",           "uplo=U",                         "positive"),
    ("cpotrf",  "T[1,1] s32[]",                       "T[1,1]",           "uplo=L",                         "positive"),
    *[("dtrsm", "T[2,3,2]",                           "T[2,3,3] T[2,3,2]", f"diag={d} side=L trans_x={t} uplo={u}", "")
      for d in "NU" for t in "NTC" for u in "LU"],
    *[("ctrsm", "T[2,3]",                             "T[3,3] T[2,3]",    f"diag={d} side=R trans_x={t} uplo={u}", "")
      for d in "NU" for t in "NTC" for u in "LU"],
    ("strsm",   "T[1,2]",                             "T[1,1] T[1,2]",    "diag=U side=L trans_x=N uplo=U", ""),
    *[(f"{letter}getrf", f"T[{m},{n}] s32[{min(m, n)}] s32[]", f"T[{m},{n}]", "", "singular")
      for letter, m, n in [("d", 4, 3), ("s", 3, 3), ("z", 2, 4), ("d", 1, 3), ("c", 3, 1), ("d", 1, 1), ("d", 3, 4)]],
    ("dgetrf",  "T[2,3,2] vs32[2,2] s32[2]",          "T[2,3,2]",         "",                               "singular"),
    *[(f"{letter}geqrf", f"T[{m},{n}] T[{min(m, n)}]", f"T[{m},{n}]",     "",                               "")
      for letter in "dz" for m, n in [(4, 3), (3, 3), (2, 4), (1, 1), (1, 3), (5, 1)]],
    ("sgeqrf",  "T[2,3,2] vT[2,2]",                   "T[2,3,2]",         "",                               ""),
    ("dorgqr",  "T[2,4,3]",                           "T[2,4,3] vT[2,2]", "",                               ""),
    ("dorgqr",  "T[3,3]",                             "T[3,3] T[3]",      "",                               ""),
    ("zungqr",  "T[3,2]",                             "T[3,2] T[2]",      "",                               ""),
    ("cungqr",  "T[1,1]",                             "T[1,1] T[1]",      "",                               ""),
]
# fmt: on


def check_calls(text: str, starts: str, *, may: bool = False) -> None:
    instruction = parse_sample(text).instruction
    reads: dict[tuple[int, int], dict[str, set[Pair]]] = {}
    for output in range(len(leaves(instruction.shape))):
        answer = indexing.output_to_input(instruction, output)
        for operand in range(len(instruction.operands)):
            by_grade: dict[str, set[Pair]] = {"exact": set(), "may": set()}
            reads[operand, output] = by_grade
        for array, maps in zip(answer.operands, answer.maps, strict=True):
            number = instruction.operands.index(array)
            for m in maps:
                reads[number, output][m.grade] |= related_pairs(m, [])
    seen: dict[tuple[int, int], set[Pair]] = {key: set() for key in reads}
    for operand, output, pair, succeeds in changes(instruction, starts):
        is_number = leaves(instruction.shape)[output][1].element_type == "s32"  # type: ignore[union-attr]
        if succeeds or is_number or "getrf" in text:
            seen[operand, output].add(pair)
    undefined = {2} if "compute_left = 78" in text else set()  # memory that the routine leaves
    for key, by_grade in reads.items():
        if key[1] in undefined:
            continue
        assert by_grade["may"] == set() or may
        assert seen[key] <= by_grade["exact"] | by_grade["may"], key
        assert by_grade["exact"] <= seen[key], key


@needs_xla
@pytest.mark.parametrize(("target", "results", "operands", "config", "starts"), CALLS)
def test_a_call_reads_what_changes_its_results(
    target: str, results: str, operands: str, config: str, starts: str
) -> None:
    check_calls(call(target, results, operands, config), starts)


# fmt: off
SPECTRA = [
    # target    results                               operands            configuration                     starts
    ("dsyevd",  "T[3,3] T[3] s32[]",                  "T[3,3]",           "mode=V uplo=L",                  ""),
    ("ssyevd",  "T[2,3,3] vT[2,3] s32[2]",            "T[2,3,3]",         "mode=V uplo=U",                  ""),
    ("zheevd",  "T[3,3] R[3] s32[]",                  "T[3,3]",           "mode=V uplo=L",                  ""),
    ("zheevd",  "T[3,3] R[3] s32[]",                  "T[3,3]",           "mode=N uplo=U",                  ""),
    ("dsyevd",  "T[1,1] T[1] s32[]",                  "T[1,1]",           "mode=V uplo=L",                  ""),
    ("dsyevd",  "T[2,3,3] vT[2,3] s32[2]",            "T[2,3,3]",         "mode=N uplo=L",                  ""),
    ("dsytrd",  "T[4,4] T[4] T[3] T[3] s32[]",        "T[4,4]",           "uplo=L",                         ""),
    ("dsytrd",  "T[2,4,4] vT[2,4] vT[2,3] vT[2,3] s32[2]", "T[2,4,4]",    "uplo=U",                         ""),
    ("zhetrd",  "T[3,3] R[3] R[2] T[2] s32[]",        "T[3,3]",           "uplo=U",                         ""),
    ("dgesdd",  "T[2,3,2] vT[2,2] T[2,3,3] T[2,2,2] s32[2]", "T[2,3,2]",  "mode=A",                         ""),
    ("zgesdd",  "T[2,3] R[2] T[2,2] T[2,3] s32[]",    "T[2,3]",           "mode=S",                         ""),
    ("dgeev",   "T[3] T[3] C[3,3] C[3,3] s32[]",      "T[3,3]",           "compute_left=V compute_right=V", ""),
    ("dgeev",   "vT[2,3] vT[2,3] C[2,3,3] C[2,3,3] s32[2]", "T[2,3,3]",   "compute_left=N compute_right=V", ""),
    ("zgeev",   "vT[2,2] T[2,2,2] T[2,2,2] s32[2]",   "T[2,2,2]",         "compute_left=V compute_right=V", ""),
    ("dgees",   "T[2,3,3] T[2,3,3] vT[2,3] vT[2,3] s32[2] s32[2]", "T[2,3,3]", "mode=V sort=N",             ""),
    ("zgees",   "T[3,3] T[3,3] T[3] s32[] s32[]",     "T[3,3]",           "mode=V sort=N",                  ""),
    ("dgehrd",  "T[2,4,4] vT[2,3] s32[2]",            "T[2,4,4]",         "low=1 high=4",                   ""),
    ("dgtsv",   "vT[2,4] vT[2,4] vT[2,4] T[2,4,2] s32[2]", "vT[2,4] vT[2,4] vT[2,4] T[2,4,2]", "",         ""),
    ("dgeqp3",  "T[2,3,4] vs32[2,4] vT[2,3]",         "T[2,3,4] vs32[2,4]", "",                             ""),
]
# fmt: on


@needs_xla
@pytest.mark.parametrize(("target", "results", "operands", "config", "starts"), SPECTRA)
def test_a_spectrum_reads_what_changes_its_results(
    target: str, results: str, operands: str, config: str, starts: str
) -> None:
    text = call(target, results, operands, config)
    check_calls(text, starts, may=True)
    instruction = parse_sample(text).instruction
    for output in range(len(leaves(instruction.shape))):
        answer = indexing.output_to_input(instruction, output)
        texts = [str(each) for rows in answer.reasons for row in rows for each in row]
        assert not any("that is understood" in each for each in texts)


# fmt: off
UNKNOWN = [
    # before              after                                   the reason
    ("{0,1}",             "{1,0}",                                "matrices are column-major"),
    ("_constraints={f32[3,3]{0,1}}", "_constraints={f32[3,3]{1,0}}", "matrices are column-major"),
    ("operand_layout_constraints={f32[3,3]{0,1}}, ", "",          "no operand_layout_constraints"),
    ("uplo = 76",         "uplo = 75",                            "uplo is 'K', expected one of L, U"),
    ("uplo = 76 : ui8",   "",                                     "uplo is '', expected one of L, U"),
    (", s32[])",          ", s32[2])",                            "the result ("),
    (", s32[])",          ", s32[], s32[])",                      "it has 1 operands and 3 results"),
    ("f32[3,3]",          "f32[3,2]",                             "the operands are f32[3,2]"),
]
# fmt: on


@pytest.mark.parametrize(("before", "after", "reason"), UNKNOWN)
def test_a_call_that_is_not_understood_may_read_everything(
    before: str, after: str, reason: str
) -> None:
    text = call("spotrf", "T[3,3] s32[]", "T[3,3]", "uplo=L").replace(before, after)
    answer = indexing.output_to_input(parse_sample(text).instruction, 0)
    ((m,),) = answer.maps
    assert m.grade == "may"
    assert not m.constraints
    assert reason in str(answer.reasons[0][0][0])


def test_batches_in_another_order_are_not_understood() -> None:
    shape = "f32[2,3,4,4]"
    text = (
        f"({shape}{{2,3,1,0}}, s32[2,3]{{1,0}}) custom-call({shape} p), backend_config={{uplo = 76 : ui8}}, "
        f'operand_layout_constraints={{{shape}{{2,3,1,0}}}}, custom_call_target="lapack_spotrf_ffi"'
    )
    for given, is_known in [(text, True), (text.replace("2,3,1,0", "2,3,0,1"), False)]:
        (maps,) = indexing.output_to_input(parse_sample(given).instruction, 0).maps
        assert all(m.grade == "exact" for m in maps) is is_known
