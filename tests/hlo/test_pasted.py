"""Modules as people paste them: out of XLA's log, below comments."""

# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import pytest

import hlo

MODULE = """HloModule m

ENTRY e {
  p = f32[2] parameter(0), metadata={op_name="# no comment"}
  ROOT r = f32[2] negate(p)
}
"""
PREFIXES = [
    "I0000 00:00:1700000000.1 1234 hlo_pass_fix.cc:99] ",
    "2026-11-22 19:20:00.123456: I xla/service/hlo_pass_pipeline.cc:301] ",
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("before", [[], ["HloPass: x", "before:"]])
def test_a_module_is_read_out_of_a_log(prefix: str, before: list[str]) -> None:
    lines = [prefix + line for line in [*before, *MODULE.splitlines()]]
    module = hlo.parse("\n".join(lines))
    assert module == hlo.parse(MODULE)
    assert module.entry.root.span.place() == f"<string>:{len(before) + 5}:{len(prefix) + 8}"


@pytest.mark.parametrize("comments", ["# one", "  # one\n\n// two\n#three", "//\n#"])
def test_comments_before_a_module_are_skipped(comments: str) -> None:
    module = hlo.parse(f"{comments}\n{MODULE}")
    assert module == hlo.parse(MODULE)
    assert module.entry.root.span.line == comments.count("\n") + 6


def test_an_error_in_a_log_has_its_place_in_the_log() -> None:
    lines = [PREFIXES[0] + line for line in MODULE.replace("negate(p)", "negate(q)").splitlines()]
    with pytest.raises(hlo.HloError, match="operand `q` is not defined") as caught:
        hlo.parse("\n".join(lines))
    assert (caught.value.span.line, caught.value.span.text) == (5, "q")


def test_a_log_without_a_module_is_named() -> None:
    with pytest.raises(hlo.HloError, match="the text is a log, not HLO"):
        hlo.parse(f"{PREFIXES[0]}compiled in 3 s\n")


# fmt: off
NEAR_MODULES = [
    # text                                                       help
    (f"step 3\nloss 0.1\n{MODULE}",                              "the module starts at line 3: remove the lines before it"),
    (f"```\n{MODULE}```\n",                                      "the module starts at line 2: remove the lines before it"),
    ("".join(f"> {line}\n" for line in MODULE.splitlines()),     "`HloModule` is preceded by `>`: remove this from each line"),
    ("".join(f" | {line}\n" for line in MODULE.splitlines()),    "`HloModule` is preceded by `|`: remove this from each line"),
    ("step 3\nthe HloModule was compiled\n",                     ""),
    ("step 3\nHloModule m is compiled\n",                        ""),
]
# fmt: on


@pytest.mark.parametrize(("text", "repair"), NEAR_MODULES)
def test_an_error_before_a_module_names_its_place(text: str, repair: str) -> None:
    with pytest.raises(hlo.HloError, match="expected `HloModule NAME`") as caught:
        hlo.parse(text)
    assert caught.value.help == repair
