"""Formulas of many alike subterms: each pair of programs computes the same in another order.

A product is one dot before, and the sum of two halves after.  The two are proved equal by their
sets of terms, and each formula around them is compared term by term.
"""

from __future__ import annotations

import pytest

import hlo
from hlo.modules.module import Module
from indexing import equivalent
from indexing.equivalence import Differs, Proved, Undecided

REDUCER = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }"
HALVES = ("[0:4]", "[4:8]")


def module_of(*lines: str) -> Module:
    return hlo.parse("\n".join(["HloModule m", REDUCER, "ENTRY e {", *lines, "}"]))


def assert_equal(before: Module, after: Module) -> None:
    """Assert that two programs are proved equal, and that their executions agree."""
    assert isinstance(equivalent(before, after), Proved)
    executed = equivalent(before, after, level="numbers")
    assert isinstance(executed, Undecided)
    assert "agree" in executed.reason


def whole_dot(name: str, rows: str, x: str, columns: str, w: str) -> list[str]:
    """Return ``x w`` as one dot."""
    return [
        f"{name} = f32[{rows},{columns}] dot({x}, {w}),"
        " lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    ]


def halved_dot(
    name: str, rows: str, x: str, columns: str, w: str, halves: tuple[str, str] = HALVES
) -> list[str]:
    """Return ``x w`` as a transposed sum of two dots with exchanged operands.

    Args:
        halves: the rows of `w` that the two dots multiply.
    """
    lines = []
    for k, half in enumerate(halves):
        lines += [
            f"{name}x{k} = f32[{rows},4] slice({x}), slice={{[0:{rows}], {HALVES[k]}}}",
            f"{name}w{k} = f32[4,{columns}] slice({w}), slice={{{half}, [0:{columns}]}}",
            f"{name}d{k} = f32[{columns},{rows}] dot({name}w{k}, {name}x{k}),"
            " lhs_contracting_dims={0}, rhs_contracting_dims={1}",
        ]
    return [
        *lines,
        f"{name}s = f32[{columns},{rows}] add({name}d0, {name}d1)",
        f"{name} = f32[{rows},{columns}] transpose({name}s), dimensions={{1,0}}",
    ]


# ---------------------------------------------------------------- residual blocks


def residual_blocks(count: int, *, halved: bool, wrong: int = -1) -> Module:
    """Return ``x + norm(x) w`` so many times; `wrong` is a block with shifted rows of `w`."""
    lines = [
        "x0 = f32[3,8] parameter(0)",
        "zero = f32[] constant(0)",
        "small = f32[] constant(0.01)",
        "each = f32[3] broadcast(small), dimensions={}",
    ]
    for k in range(count):
        lines += [
            f"w{k} = f32[8,8] parameter({k + 1})",
            f"q{k} = f32[3,8] multiply(x{k}, x{k})",
            f"s{k} = f32[3] reduce(q{k}, zero), dimensions={{1}}, to_apply=add",
            f"t{k} = f32[3] add(s{k}, each)",
            f"r{k} = f32[3] rsqrt(t{k})",
            f"b{k} = f32[3,8] broadcast(r{k}), dimensions={{0}}",
            f"n{k} = f32[3,8] multiply(x{k}, b{k})",
        ]
        halves = ("[0:4]", "[3:7]") if wrong == k else HALVES
        if halved:
            lines += halved_dot(f"d{k}", "3", f"n{k}", "8", f"w{k}", halves)
        else:
            lines += whole_dot(f"d{k}", "3", f"n{k}", "8", f"w{k}")
        lines.append(f"x{k + 1} = f32[3,8] add(x{k}, d{k})")
    return module_of(*lines, f"ROOT y = f32[3,8] copy(x{count})")


def test_sums_of_many_alike_products_are_equal() -> None:
    whole, halved = (residual_blocks(10, halved=halved) for halved in (False, True))
    assert_equal(whole, halved)


def test_one_wrong_product_of_many_has_a_witness() -> None:
    whole = residual_blocks(8, halved=False)
    verdict = equivalent(whole, residual_blocks(8, halved=True, wrong=5))
    assert isinstance(verdict, Differs)
    assert verdict.parameter == 6
    assert verdict.parameter_element == (7, 0)


# ---------------------------------------------------------------- places that are values


def scatter_sums(depth: int, *, halved: bool, updates: str = "4,2,0,3,1") -> Module:
    """Return the sums of numbers at places that are computed, of transposed arrays if halved.

    Args:
        depth: the columns of the first parameter, of which 8 are multiplied; the order of the
            operands of a product depends on it.
        updates: the permutation of the numbers.
    """
    product = halved_dot if halved else whole_dot
    cube, order = "[2,2,2,2,2]", "4,2,0,3,1"
    lines = [
        f"xs = f32[16,{depth}] parameter(0)",
        f"ws = f32[{depth},2] parameter(1)",
        "x = f32[16,8] slice(xs), slice={[0:16], [0:8]}",
        "w = f32[8,2] slice(ws), slice={[0:8], [0:2]}",
        f"v = f32{cube} parameter(2)",
        "zero = f32[] constant(0)",
        "start = f32[7] broadcast(zero), dimensions={}",
        *product("y", "16", "x", "2", "w"),
        f"c = f32{cube} reshape(y)",
        f"u = f32{cube} multiply(c, v)",
        f"i = s32{cube} convert(c)",
    ]
    if halved:
        lines += [
            f"ti = s32{cube} transpose(i), dimensions={{{order}}}",
            f"tu = f32{cube} transpose(u), dimensions={{{updates}}}",
        ]
    i, u = ("ti", "tu") if halved else ("i", "u")
    return module_of(
        *lines,
        f"ROOT r = f32[7] scatter(start, {i}, {u}), update_window_dims={{}},"
        " inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=5,"
        " to_apply=add",
    )


@pytest.mark.parametrize("depth", [8, 11])
def test_updates_at_computed_places_are_equal_in_another_order(depth: int) -> None:
    whole, halved = (scatter_sums(depth, halved=halved) for halved in (False, True))
    assert_equal(whole, halved)


def test_updates_at_the_places_of_others_have_a_witness() -> None:
    verdict = equivalent(
        scatter_sums(8, halved=False), scatter_sums(8, halved=True, updates="4,2,1,3,0")
    )
    assert isinstance(verdict, Differs)


# ---------------------------------------------------------------- dilated windows


def dilated_convolution(
    features: int, *, halved: bool, kernel: str = "k", reversal: str = " rhs_reversal=1"
) -> Module:
    """Return a transposed convolution of a product, its operands' dimensions in another order."""
    product = halved_dot if halved else whole_dot
    size = str(features)
    lines = [
        "x = f32[6,8] parameter(0)",
        f"w = f32[8,{size}] parameter(1)",
        f"k = f32[3,{size},4] parameter(2)",
        *product("y", "6", "x", size, "w"),
    ]
    window = f"window={{size=3 pad=1_2 lhs_dilate=2{reversal}}}"
    if not halved:
        return module_of(
            *lines,
            f"b = f32[1,6,{size}] reshape(y)",
            f"ROOT r = f32[1,12,4] convolution(b, k), {window}, dim_labels=b0f_0io->b0f",
        )
    return module_of(
        *lines,
        f"t = f32[{size},6] transpose(y), dimensions={{1,0}}",
        f"b = f32[{size},1,6] reshape(t)",
        f"tk = f32[4,{size},3] transpose({kernel}), dimensions={{2,1,0}}",
        f"c = f32[4,1,12] convolution(b, tk), {window}, dim_labels=fb0_oi0->fb0",
        "ROOT r = f32[1,12,4] transpose(c), dimensions={1,2,0}",
    )


@pytest.mark.parametrize("features", [3, 5])
def test_dilated_windows_of_products_are_equal(features: int) -> None:
    whole, halved = (dilated_convolution(features, halved=halved) for halved in (False, True))
    assert_equal(whole, halved)


def test_a_window_that_is_not_reversed_has_a_witness() -> None:
    other = dilated_convolution(3, halved=True, reversal="")
    assert isinstance(equivalent(dilated_convolution(3, halved=False), other), Differs)
