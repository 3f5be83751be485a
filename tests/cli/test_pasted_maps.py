"""Maps as people paste them: over several lines, in XLA's logs, ``100d0``, half-open bounds."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import indexing
from hlo.text.source import HloError
from indexing import cli, parse_map
from simplifier.atoms import Variable
from simplifier.reading import TextError, parse_expr

TEXTS = [
    "(d0, d1)[s0]{rt0} -> (d0 * 100 + d1 * 10, rt0 + s0), domain: d0 in [0, 9], d1 in [0, 9], "
    "s0 in [0, 3], rt0 in [0, 5], d0 + s0 in [0, 10]",
    "() -> ()",
    "(d0) -> (d0), domain: d0 in [0, 3]",
    "KNOWN EMPTY",
    "(d0) -> (d0), domain: d0 in [0, 31], d0 mod 8 in [0, 2]",
]
# The form of `HloInstructionIndexing::ToString` in XLA's logs and tests.
LOG = """\
operand id = 0
                              (d0, d1, d2) -> (d1, d2, d0),
                              domain:
                              d0 in [0, 29],
                              d1 in [0, 9],
                              d2 in [0, 19]
operand id = 1 unknown indexing
operand id = 2 (d0){rt0} -> (d0 + rt0),
                domain:
                d0 in [0, 3],
                rt0 in [0, 1],
                  hlo: of1 = s32[] parameter(1)
                  (d0) -> ()
                (d0 + rt0) mod 2 in [0, 0]
"""

# The form of `OperandIndexing::ToString` since 2026.
LOG_2026 = """\
operand id = 0
(d0){rt0, rt1} -> (d0 / 2 + rt0, rt1), domain: d0 in [0, 3], rt0 in [0, 1], rt1 in [0, 4]
runtime variables:

rt0: parameter(1); (d0) -> (), domain: d0 in [0, 3]
rt1: constant(3); (d0) -> (), domain: d0 in [0, 3]
replica id:
(d0) -> (d0 / 2), domain: d0 in [0, 3]
operand id = 1 (d0) -> (d0), domain: d0 in [0, 3]
"""

Simplify = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def simplify(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Simplify:
    """Run ``simplify`` on a standard input; return status, lines of the output, errors."""

    def run(text: str, *options: str) -> tuple[int, list[str], str]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        status = cli.run(["simplify", *options])
        captured = capsys.readouterr()
        return status, captured.out.splitlines(), captured.err

    return run


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("between", ["\n", "\n\n"], ids=["adjacent", "blank line"])
def test_pretty_maps_are_read_one_after_the_other(
    between: str, ending: str, simplify: Simplify
) -> None:
    maps = [parse_map(text) for text in TEXTS]
    text = between.join(m.pretty() for m in maps).replace("\n", ending)
    assert simplify(text) == (0, [str(m.simplify()) for m in maps], "")


def test_maps_in_one_line_and_in_several_may_be_mixed(simplify: Simplify) -> None:
    maps = [parse_map(text) for text in TEXTS]
    text = "\n".join(str(m) if k % 2 else m.pretty() for k, m in enumerate(maps))
    assert simplify(text, "--verify")[:2] == (0, [str(m.simplify()) for m in maps])


def test_sources_and_replica_ids_of_2026_are_skipped(simplify: Simplify) -> None:
    expected = [
        "(d0){rt0, rt1} -> (rt0 + d0 floordiv 2, rt1), domain: d0 in [0, 3], rt0 in [0, 1], "
        "rt1 in [0, 4]",
        "(d0) -> (d0), domain: d0 in [0, 3]",
    ]
    assert simplify(LOG_2026) == (0, expected, "")
    status, lines, _ = simplify(LOG_2026, "--format", "xla")
    assert (status, lines[0]) == (0, expected[0].replace("floordiv", "/"))


def test_an_affine_map_is_read_with_the_bounds_of_options(simplify: Simplify) -> None:
    text = "#map = affine_map<(i, j)[s] -> ((i * 2) floordiv 2 + s, j)>"
    options = "--dims", "64,-1:15", "--symbols", "3"
    expected = "(i, j)[s0] -> (i + s0, j), domain: i in [0, 63], j in [-1, 15], s0 in [0, 2]"
    assert simplify(text, *options) == (0, [expected], "")
    assert simplify(expected, *options) == (0, [expected], "")  # it has a domain
    status, lines, error = simplify(text, "--dims", "64")
    assert (status, lines) == (1, [])
    assert "error[mlir-syntax]: expected bounds of 2 dimensions, got 1" in error
    assert "--symbols" in simplify(text, "--dims", "64,4")[2]
    assert simplify(text, "--dims", "64,")[0] == 2


PREFIXES = [
    "I0000 00:00:1700000000.1 1234 indexing_analysis.cc:99] ",
    "I1122 19:20:00.123456   77 xla/hlo/analysis/indexing_analysis.cc:1] ",
    "W20261122 19:20:00.123456 77 indexing_analysis.cc:99] ",
    "2026-11-22 19:20:00.123456: I xla/hlo/analysis/indexing_analysis.cc:99] ",
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("is_on_every_line", [True, False])
def test_prefixes_of_log_lines_are_skipped(
    prefix: str, is_on_every_line: bool, simplify: Simplify
) -> None:
    lines = LOG.splitlines(keepends=True)
    log = "".join(
        prefix + line if is_on_every_line or line.startswith("operand") else line for line in lines
    )
    assert simplify(log) == simplify(LOG)


def test_an_error_after_a_log_prefix_has_the_column_in_the_log(simplify: Simplify) -> None:
    status, lines, err = simplify(f"{PREFIXES[0]}(d0) -> (d1), domain: d0 in [0, 3]")
    assert (status, lines) == (1, [])
    assert f"<stdin>:1:{len(PREFIXES[0]) + len('(d0) -> (') + 1}" in err


def test_logs_of_xla_are_read(simplify: Simplify) -> None:
    status, lines, err = simplify(LOG)
    assert status == 0
    assert lines == [
        "(d0, d1, d2) -> (d1, d2, d0), domain: d0 in [0, 29], d1 in [0, 9], d2 in [0, 19]",
        "(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 3], rt0 in [0, 1], (d0 + rt0) mod 2 in [0, 0]",
    ]
    assert err == "note: <stdin>:7: unknown indexing has no map\n"


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ("d2 in 0, 19]", "<stdin>:6:37"),
        ("d1 in [0, 9", "<stdin>:6:31"),
        ("d0 on [0, 29],", ":4:34"),
    ],
)
def test_errors_have_their_place_in_the_input(wrong: str, place: str, simplify: Simplify) -> None:
    lines = [
        f"{line[:30]}{wrong}" if wrong[:2] in line[30:32] else line for line in LOG.split("\n")
    ]
    status, out, err = simplify("\n".join(lines))
    assert (status, len(out)) == (1, 1)
    assert place in err


def test_a_line_that_is_no_map_does_not_swallow_the_next(simplify: Simplify) -> None:
    status, out, err = simplify("oops\n(d0) -> (d0), domain: d0 in [0, 3]\nd1 in [0, 1]\n() -> ()")
    assert (status, out) == (1, ["() -> ()"])
    assert "<stdin>:1:1" in err
    assert "<stdin>:3:1" in err


def test_attributes_of_mlir_in_several_strings_are_one_map(simplify: Simplify) -> None:
    text = '#xla.indexing_map<"(d0) -> (d0),"\n  " domain: d0 in [0, 3]">\n() -> ()\n'
    assert simplify(text) == (0, ["(d0) -> (d0), domain: d0 in [0, 3]", "() -> ()"], "")


EXCLUSIVE = "bounds are inclusive: write `]`, and subtract 1 from the upper bound"
# fmt: off
PRODUCTS = [
    # text                          the same
    ("100d0 + 10d1",                "100 * d0 + 10 * d1"),
    ("-2d0",                        "-(2 * d0)"),
    ("d1 mod 3d0",                  "d1 mod (3 * d0)"),     # it binds tighter than an operator
    ("8d0 floordiv 4",              "d0 * 2"),
    ("d0 * 2d1",                    "d0 * (2 * d1)"),
    ("min(2d0, 3)",                 "min(d0 * 2, 3)"),
]
NOT_PRODUCTS = ["2 d0", "2(d0)", "2d7", "d0d1", "2d0d1"]
HALF_OPEN = [
    # domain                        column  hint
    ("d0 in [0, 4)",                33,     EXCLUSIVE),
    ("d0 in (-1, 3]", 28, "bounds are inclusive: write `[`, and add 1 to the lower bound"),
    ("d0 in [0, 3], d0 mod 2 in [0, 1)", 53, EXCLUSIVE),
]
# fmt: on


@pytest.mark.parametrize(("text", "same"), PRODUCTS)
def test_a_number_directly_before_a_variable_is_its_coefficient(text: str, same: str) -> None:
    names = {"d0": Variable("d0", 1, 9), "d1": Variable("d1", 0, 7)}
    assert parse_expr(text, names) == parse_expr(same, names)


@pytest.mark.parametrize("text", NOT_PRODUCTS)
def test_no_other_product_is_implicit(text: str) -> None:
    with pytest.raises(TextError):
        parse_expr(text, {"d0": Variable("d0", 0, 9), "d1": Variable("d1", 0, 7)})


def test_proofs_read_the_same_products(simplify: Simplify) -> None:
    status, out, err = simplify("(d0) -> (8d0 floordiv 4), domain: d0 in [0, 3]", "--verify")
    assert (status, out) == (0, ["(d0) -> (d0 * 2), domain: d0 in [0, 3]"])
    assert err == "verified 1 map: 1 simplified, 0 unchanged\n"


@pytest.mark.parametrize(("domain", "column", "hint"), HALF_OPEN)
def test_half_open_bounds_are_refused_with_a_hint(domain: str, column: int, hint: str) -> None:
    with pytest.raises(HloError) as caught:
        indexing.parse_map(f"(d0) -> (d0), domain: {domain}")
    assert (caught.value.span.column, caught.value.help) == (column + 1, hint)
