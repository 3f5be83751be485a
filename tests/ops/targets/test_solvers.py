"""Triangular systems and factorisations of matrices: what they read, and what they compute."""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import lapack

import hlo
import indexing
from indexing.codegen.validation import validate_instruction
from indexing.execution import run
from indexing.maps.answers import Answer
from tests.ops.samples import Array, Sample, parse_sample, related_pairs


def potrf(shape: str, lower: bool, layout: str = "{0,1}") -> str:
    return (
        f"({shape}{layout}, s32[]) custom-call({shape}{layout} p), backend_config={{lower = {str(lower).lower()}}}, "
        f'operand_layout_constraints={{{shape}{layout}}}, custom_call_target="cusolver_potrf_ffi"'
    )


def geqrf(rows: int, columns: int) -> str:
    shape, count = f"f32[{rows},{columns}]", min(rows, columns)
    return (
        f"({shape}{{0,1}}, f32[{count}]) custom-call({shape}{{0,1}} p), operand_layout_constraints={{{shape}{{0,1}}}}, "
        'custom_call_target="cusolver_geqrf_ffi", backend_config={}'
    )


def execute(text: str, *inputs: Array) -> list[Array]:
    module = parse_sample(text).instruction.module
    assert hlo.verify(module) == []
    results = run(module, list(inputs))
    return list(results) if isinstance(results, list | tuple) else [results]


def answers(text: str, output: int = 0) -> Answer:
    return indexing.output_to_input(parse_sample(text).instruction, output)


def matrix(rows: int, columns: int) -> Array:
    return np.random.default_rng(1).normal(size=(rows, columns)).astype(np.float32)


@pytest.mark.parametrize("lower", [True, False])
def test_potrf_returns_a_triangle_and_zero(lower: bool) -> None:
    a = matrix(4, 4)
    a = a @ a.T + 4 * np.eye(4, dtype=np.float32)
    factor, info = execute(potrf("f32[4,4]", lower), a)
    expected = np.linalg.cholesky(a) if lower else np.linalg.cholesky(a).T
    part = np.tril if lower else np.triu
    assert np.allclose(part(factor), expected, rtol=1e-4, atol=1e-5)
    assert info == 0


@pytest.mark.parametrize("entry", [0, 2, 3])
def test_potrf_counts_to_the_first_minor_that_is_not_positive(entry: int) -> None:
    a = np.eye(4, dtype=np.float32)
    a[entry, entry] = -1
    a[3, 3] = -2
    _, info = execute(potrf("f32[4,4]", True), a)
    assert info == lapack.spotrf(a, lower=True)[1] == entry + 1


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_potrf_reads_what_changes_its_triangle(size: int, lower: bool) -> None:
    """Poke LAPACK's routine; the number counts to the first minor that is not positive."""
    instruction = parse_sample(potrf(f"f32[{size},{size}]", lower)).instruction
    maps, of_info = [indexing.output_to_input(instruction, number).maps[0] for number in (0, 1)]
    exact = {pair for m in maps if m.grade == "exact" for pair in related_pairs(m, [])}
    others = {pair for m in maps if m.grade == "may" for pair in related_pairs(m, [])}
    assert [m.grade for m in of_info] == ["exact"]
    b = np.random.default_rng(size).normal(size=(size, size))
    seen: list[set[tuple[tuple[int, ...], tuple[int, ...]]]] = [set(), set()]
    for a, changes in ((b @ b.T + size * np.eye(size), (0.5,)), (np.eye(size), (2, -2))):
        before = lapack.dpotrf(a, lower=lower, clean=False)
        for place in np.ndindex(size, size):
            for change in changes:
                changed = a.copy()
                changed[place] += change
                factor, info = lapack.dpotrf(changed, lower=lower, clean=False)
                if info == before[1]:
                    moved = map(tuple, np.argwhere(factor != before[0]).tolist())
                    seen[0] |= {(i, place) for i in moved}
                else:
                    seen[1].add(((), place))
    is_kept = np.tri(size, dtype=bool) if lower else np.tri(size, dtype=bool).T
    assert {pair for pair in seen[0] if is_kept[pair[0]]} == exact
    assert {pair for pair in seen[0] if not is_kept[pair[0]]} <= others
    assert not any(is_kept[i] for i, _ in others)
    assert seen[1] == set(related_pairs(of_info[0], []))


def test_orgqr_multiplies_the_reflectors_of_a_factorisation() -> None:
    a = matrix(5, 3)
    packed, factors = np.linalg.qr(a, mode="raw")
    text = (
        "f32[5,3]{0,1} custom-call(f32[5,3]{0,1} p, f32[3] q), operand_layout_constraints={f32[5,3]{0,1}, f32[3]{0}}, "
        'custom_call_target="cusolver_orgqr_ffi", backend_config={}'
    )
    (q,) = execute(text, np.asarray(packed.T, np.float32), np.asarray(factors, np.float32))
    assert np.allclose(q, np.linalg.qr(a)[0], atol=1e-5)
    assert (
        validate_instruction(parse_sample(text).instruction, 0, 1 << 20).findings[-1].status == "ok"
    )
    of_matrix, of_factors = answers(text).maps
    assert {m.grade for m in (*of_matrix, *of_factors)} == {"exact"}
    pairs = {pair for m in of_matrix for pair in related_pairs(m, [])}
    assert {j for i, j in pairs if i == (2, 1)} == {(s, t) for t in (0, 1) for s in range(t + 1, 5)}
    assert {j for i, j in pairs if i == (2, 0)} == {(2, 0)}


@pytest.mark.parametrize(
    ("rows", "columns"), [(4, 3), (3, 3), (2, 4), (3, 5), (1, 1), (1, 3), (5, 1), (2, 2), (5, 2)]
)
def test_geqrf_reads_what_changes_its_results(rows: int, columns: int) -> None:
    """Poke LAPACK's routine: each read of an exact map changes the element, all others are read."""
    a = matrix(rows, columns).astype(np.float64)
    before = np.linalg.qr(a, mode="raw")
    maps = [answers(geqrf(rows, columns), output).maps[0] for output in (0, 1)]
    exact, reads = [
        [
            {pair for m in each if m.grade in grades for pair in related_pairs(m, [])}
            for each in maps
        ]
        for grades in (("exact",), ("exact", "may"))
    ]
    assert any(m.grade == "may" for each in maps for m in each) == (rows <= columns)
    seen: list[set[tuple[tuple[int, ...], tuple[int, ...]]]] = [set(), set()]
    for place in np.ndindex(rows, columns):
        for change in (0.5, -0.3):
            changed = a.copy()
            changed[place] += change
            after = np.linalg.qr(changed, mode="raw")
            for number, pair in enumerate(zip(before, after, strict=True)):
                old, new = (each.T if number == 0 else each for each in pair)
                moved = np.argwhere(~np.isclose(old, new, rtol=1e-9, atol=1e-12))
                seen[number] |= {(tuple(map(int, i)), place) for i in moved}
    for number in (0, 1):
        assert exact[number] <= seen[number] <= reads[number]


def test_the_maps_of_geqrf_have_inverses() -> None:
    instruction = parse_sample(geqrf(4, 3)).instruction
    forward = {
        p for m in indexing.output_to_input(instruction).maps[0] for p in related_pairs(m, [])
    }
    backward = {
        p for m in indexing.input_to_output(instruction, 0).maps[0] for p in related_pairs(m, [])
    }
    assert {(j, i) for i, j in forward} == backward


def test_the_factorisation_of_jax_for_tpus_reads_the_same_in_any_layout() -> None:
    text = '(f32[4,3]{1,0}, f32[3]) custom-call(f32[4,3]{1,0} p), custom_call_target="Qr"'
    for output in (0, 1):
        assert answers(text, output).maps == answers(geqrf(4, 3), output).maps
    a = matrix(5, 3)
    packed, factors = np.linalg.qr(a, mode="raw")
    product = 'f32[5,3] custom-call(f32[5,3] p, f32[3] q), custom_call_target="ProductOfElementaryHouseholderReflectors"'
    (q,) = execute(product, np.asarray(packed.T, np.float32), np.asarray(factors, np.float32))
    assert np.allclose(q, np.linalg.qr(a)[0], atol=1e-5)


def test_a_triangular_solve_of_cublas_is_that_of_hlo() -> None:
    a, b = np.tril(matrix(4, 4)) + 3 * np.eye(4, dtype=np.float32), matrix(4, 2)
    text = (
        '(f32[4,2]{0,1}, s8[0]{0}) custom-call(f32[4,4] p, f32[4,2] q), custom_call_target="__cublas$triangularSolve", '
        'backend_config={"left_side":true,"lower":true,"unit_diagonal":false,"transpose_a":"NO_TRANSPOSE"}'
    )
    x, _ = execute(text, a, b)
    assert np.allclose(x, np.linalg.solve(a, b), rtol=1e-4, atol=1e-5)
    plain = "f32[4,2] triangular-solve(f32[4,4] p, f32[4,2] q), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"
    assert answers(text).maps == answers(plain).maps


# fmt: off
UNKNOWN = [
    (potrf("f32[3,3]", True, "{1,0}"),                                   "the matrices are not column-major"),
    (potrf("f32[3,3]", True).replace("s32[]", "s64[]"),                  "expected one s32 for each matrix"),
    (potrf("f32[2,3]", True),                                            "cholesky C1"),
    (geqrf(3, 3).replace("{0,1}", "{1,0}"),                              "reads here is not known"),
    (geqrf(3, 3).replace("f32[3])", "f32[2])"),                          "reads here is not known"),
]
# fmt: on


@pytest.mark.parametrize(("text", "reason"), UNKNOWN)
def test_a_call_that_is_not_understood_may_read_everything(text: str, reason: str) -> None:
    sample: Sample = parse_sample(text)
    outputs = range(len(sample.outputs))
    given = [indexing.output_to_input(sample.instruction, number) for number in outputs]
    whole = [m for answer in given for maps in answer.maps for m in maps if m.grade == "may"]
    assert any(len(m.ranges) == 2 and not m.constraints for m in whole)
    texts = [str(each) for a in given for rows in a.reasons for row in rows for each in row]
    assert any(reason in each for each in texts)
