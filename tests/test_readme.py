"""The README: its numbers follow from what they count, and its comparison names sources.

XLA's opcodes are transcribed from `ComputeOutputToInputIndexing` and `ComputeInputToOutputIndexing`
in `xla/hlo/analysis/indexing_analysis.cc`, commit 07af39ffd0bfab40c3deb72c34737958c830c736. The
elementwise opcodes are those of `HloInstruction::IsOpElementwise` in
`xla/hlo/ir/hlo_instruction.cc`, commit 393469053ad7d0dcbd7dd4456e191e567d749497, and `atan` and
`mulhi`, which were added after that commit.
"""

import re
from pathlib import Path

import indexing.ops  # noqa: F401 registers the ops
from hlo.ops.op import OPS

README = (Path(__file__).parent.parent / "README.md").read_text()


def opcodes(text: str) -> set[str]:
    return set(re.findall(r"[\w-]+", text))


ELEMENTWISE = opcodes("""
    abs acos acosh asin asinh atan atanh bitcast-convert cbrt ceil convert copy cosine cosh
    count-leading-zeros erf exponential exponential-minus-one floor imag is-finite log log-plus-one
    logistic negate not popcnt real reduce-precision round-nearest-afz round-nearest-even rsqrt
    sign sine sinh sqrt tan tanh
    add and atan2 compare complex divide maximum minimum mulhi multiply or power remainder
    shift-left shift-right-arithmetic shift-right-logical stochastic-convert subtract xor
    clamp select
""")
XLA_BOTH_DIRECTIONS = opcodes("""
    map all-reduce-start all-reduce-done bitcast broadcast concatenate reduce reshape reverse slice
    transpose
""")
XLA_OUTPUT_TO_INPUT = XLA_BOTH_DIRECTIONS | opcodes("""
    all-gather all-gather-start constant convolution dot dynamic-update-slice dynamic-slice fusion
    gather get-tuple-element iota pad parameter reduce-window scaled-dot scan
""")
XLA_INPUT_TO_OUTPUT = XLA_BOTH_DIRECTIONS | {"tuple"}
ALIASES = {"optimization-barrier"}
"""Other names of an opcode, here of opt-barrier."""


def test_numbers_of_opcodes_follow_from_the_registry_and_xla() -> None:
    builtin = {name for name, cls in OPS.items() if cls.__module__.startswith("indexing.ops.")}
    declared = builtin - ALIASES  # other tests declare ops of their own
    assert declared >= ELEMENTWISE | XLA_OUTPUT_TO_INPUT | XLA_INPUT_TO_OUTPUT
    numbers = {
        "HLO has {} opcodes": len(declared),
        "analysis ([`indexing_analysis.cc`][xla-cc], commit 07af39f) covers {} of": len(
            ELEMENTWISE | XLA_OUTPUT_TO_INPUT
        ),
        "From input to output it covers {}:": len(ELEMENTWISE | XLA_INPUT_TO_OUTPUT),
        "the {} elementwise opcodes": len(ELEMENTWISE),
        "opcodes and {} others": len(XLA_OUTPUT_TO_INPUT),
        "the same {} and": len(ELEMENTWISE),
        "and {} others. The table": len(XLA_INPUT_TO_OUTPUT),
        "| elementwise ({}) |": len(ELEMENTWISE),
        "| input to output | [{} opcodes]": len(declared - {"shuffle"}),
    }
    assert not [text.format(n) for text, n in numbers.items() if text.format(n) not in README]


def test_the_table_names_every_opcode_that_xla_covers() -> None:
    table = README.partition("## What is answered")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")][2:]
    for column, covered in ((2, XLA_OUTPUT_TO_INPUT), (3, XLA_INPUT_TO_OUTPUT)):
        named = [row[0] + row[column] for row in rows if row[column].strip() != "no"]
        assert covered <= opcodes(" ".join(named))


def test_each_cell_about_another_system_names_its_source() -> None:
    table = README.partition("## Comparison")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    cells = [cell.strip() for row in rows[2:] for cell in row[2:]]
    unsourced = [cell for cell in cells if cell != "not found" and "][" not in cell]
    unsourced += [row[1] for row in rows[2:] if "](docs/" not in row[1]]
    assert len(cells) == 4 * len(rows[2:])
    assert not unsourced


def test_each_source_is_a_version_or_an_official_page() -> None:
    targets = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", README, re.MULTILINE))
    assert set(re.findall(r"\]\[([\w-]+)\]", README)) == set(targets)
    version = r"github\.com/\S+/blob/[0-9a-f]{40}/"
    official = rf"https://({version}|mlir\.llvm\.org/|tvm\.apache\.org/|documen\.tician\.de/)"
    assert not [url for url in targets.values() if not re.match(official, url)]
