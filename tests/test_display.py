"""Texts, HTML and data frames of answers and other values."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing
from hlo.html import MAX_LINES
from indexing import cli
from indexing.equivalence import Proved
from indexing.kernels.verdicts import KernelDiffers, KernelProved, KernelUndecided
from indexing.ops.samples import instruction_of
from indexing.views.display import html_of
from indexing.views.verdict_tables import verdict_lines

EXAMPLES = Path(__file__).parent.parent / "examples"

TEXT = """\
ENTRY e {
  p = f32[3,5] parameter(0)
  q = f32[5] parameter(1)
  t = f32[5,3] transpose(p), dimensions={1,0}
  pair = (f32[5,3], f32[5]) tuple(t, q)
  ROOT r = f32[5] what-is-this(q)
}
"""
MODULE = hlo.parse(TEXT)
T, PAIR, ROOT = MODULE.entry["t"], MODULE.entry["pair"], MODULE.entry.root
WINDOW = indexing.IndexingMap.over((8,), lambda d, s: [d[0] // 2 + s[0]], ranges=(3,))


def test_an_answer_is_a_table_of_texts() -> None:
    html = indexing.output_to_input(T)._repr_html_()
    assert html.count("<tr>") == 2
    assert "(d0, d1) -&gt; (d1, d0), domain: d0 in [0, 4], d1 in [0, 2]</td>" in html
    assert "f32[3,5]" in html
    assert "$" not in html, "a formula"


def test_accesses_are_a_table_of_loads_and_the_store() -> None:
    html = indexing.access(T)._repr_html_()
    assert html.count("<tr>") == 3
    assert "operand 0" in html.partition("output 0")[0]
    assert "f32[5,3]" in html.partition("output 0")[2]
    unknown = indexing.access(ROOT)._repr_html_()
    assert "unknown" in unknown
    assert "what-is-this" in unknown


def test_a_module_has_no_items() -> None:
    module: Any = MODULE
    with pytest.raises(TypeError, match=r"write module.entry\['t'\]"):
        module["t"]
    with pytest.raises(TypeError, match="no items"):
        list(module)


def test_forward_answers_have_a_table_for_each_output() -> None:
    html = html_of(indexing.input_to_output(PAIR, input_id=1))
    assert html.count("<table>") == 2
    assert "nothing is read" in html.partition("output 1")[0]


def test_the_reasons_of_may_maps_are_below_the_table() -> None:
    update = hlo.load(EXAMPLES / "dynamic_slice_update.opt.hlo").entry[
        "select_dynamic-update-slice_fusion"
    ]
    html = indexing.output_to_input(update)._repr_html_()
    assert html.count("may because dynamic-update-slice `dynamic_update_slice.0`: ") == 1
    assert html.index("</table>") < html.index("may because")
    assert "may because" not in indexing.output_to_input(update, exact=True)._repr_html_()


def test_the_outcome_of_a_kernel_is_first_and_coloured() -> None:
    for verdict, word, kind in (
        (KernelProved(premises=("sums are reordered",)), "proved", "good"),
        (KernelDiffers("read out of bounds"), "differs", "bad"),
        (KernelUndecided("no rule"), "undecided", "warn"),
    ):
        html = verdict._repr_html_()
        assert f'<div><span class="{kind}">{word}</span>: <b>' in html


def test_the_best_tilings_with_loops_are_a_table() -> None:
    dot = hlo.parse("""ENTRY e { a = bf16[64,64] parameter(0)  b = bf16[64,64] parameter(1)
        ROOT c = bf16[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }""")
    best = indexing.best_tilings(dot.entry.root, device="H100", loops=True, top=2)
    html = best._repr_html_()
    assert "<th>sizes</th><th>steps</th>" in html
    assert html.count("<tr>") == 3


def test_unknown_reasons_are_text() -> None:
    assert "what-is-this" in html_of(indexing.output_to_input(ROOT))


def test_names_are_escaped_and_tables_are_limited() -> None:
    unknown = "<script>alert(1)</script>"
    (region,) = indexing.output_to_input(T).at(0, 0)
    texts: list[Any] = [region, WINDOW, T]
    for value in texts:
        assert re.fullmatch(r"<pre [^<>]*>[^<>]*</pre>", value._repr_html_(), re.DOTALL)
    values: list[Any] = [MODULE, MODULE.entry, T.shape, WINDOW.is_injective()]
    for value in values:
        tags = set(re.findall(r"</?(\w+)", value._repr_html_()))
        assert tags <= {"div", "style", "details", "summary", "b", "span", "pre"}
    assert unknown not in html_of(unknown)
    many = hlo.parse(
        "ENTRY e { p0 = f32[] parameter(0)"
        + "".join(f" p{k} = f32[] negate(p{k - 1})" for k in range(1, 300))
        + "}"
    )
    html = many._repr_html_()
    assert len(html.splitlines()) == MAX_LINES + 1
    assert "more lines" in html
    hostile = hlo.parse(f'HloModule m, frontend_attributes={{a="{unknown}"}}\n{TEXT}')
    assert unknown not in hostile._repr_html_()
    assert indexing.grouped(many.entry.root)._repr_html_().count("<tr>") == MAX_LINES + 2


NEGATED = hlo.parse("ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }")
SHOWN: list[tuple[Any, str]] = [
    (indexing.output_to_input(T), "<output-to-input of 't', output 0: 1 map>"),
    (indexing.output_to_input(ROOT), "<output-to-input of 'r', output 0: 0 maps, 1 unknown>"),
    (indexing.input_to_output(PAIR, 1), "<input-to-output of 'pair', operand 1: 1 map>"),
    (WINDOW, "<map (d0)[s0] -> (s0 + d0 floordiv 2), domain: d0 in [0, 7], s0 in [0, 2]>"),
    (indexing.grouped(T), "<groups of 2 instructions: 2 maps>"),
    (WINDOW.multiplicity(), "<multiplicity of 1 map: 24 reads>"),
    (indexing.correspondence(NEGATED, NEGATED), "<correspondence: 2 links, 0 removed, 0 added>"),
    (indexing.collapse(T), "<collapse of 't': f32[3,5] -> f32[5,3]>"),
    (indexing.loop_nest(T), "<loop nest 't', 1 inputs, 1 stages>"),
    (WINDOW.loop_nest(), f"<loops of {WINDOW}>"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=lambda v: type(v).__name__)
def test_reprs_are_short_and_html_is_defined(value: Any, text: str) -> None:
    assert repr(value) == text
    assert value._repr_html_().startswith("<")


DOT = hlo.parse("""ENTRY e {
  p = f32[32,8]{1,0} parameter(0)
  q = f32[8,64]{1,0:T(8,128)} parameter(1)
  ROOT d = f32[32,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}""")
TILED: Any = DOT.entry["q"].shape
LOOPS: Any = indexing.tile(DOT.entry.root, (16, 16), loop_sizes={"k": 4})
PARTS: list[tuple[Any, str]] = [
    (TILED, "<shape f32[8,64]{1,0:T(8,128)}>"),
    (TILED.layout, "<layout {1,0:T(8,128)}>"),
    (
        next(iter(indexing.traffic(DOT).rows)),
        "<dot `d` reads `p` f32[32,8]{1,0}: 1,024 bytes distinct, 65,536 bytes requested>",
    ),
    (indexing.summary(DOT), "<summary of 'module_e': 3 instructions>"),
    (
        indexing.memory_profile(DOT).buffers[0],
        "<buffer of p: argument, 1,024 bytes, f32[32,8]{1,0}>",
    ),
    (indexing.tile(DOT.entry.root, (16, 16)).operands[0], "<tiles [16, 16] of 'p': 1 map>"),
    (LOOPS.phases[0], "<phase of 2 steps: 512 bytes resident>"),
    (LOOPS.phases[0].tiles[0], "<tile of 'p': changing, 256 bytes>"),
]


@pytest.mark.parametrize(("value", "text"), PARTS, ids=lambda v: type(v).__name__)
def test_a_part_of_an_answer_has_a_short_repr(value: Any, text: str) -> None:
    assert repr(value) == text


def test_completion_offers_the_names_of_all_rooms() -> None:
    names = dir(indexing)
    assert {"tile", "traffic", "best_tilings", "report", "tiling", "pallas"} <= set(names)
    assert [name for name in names if not hasattr(indexing, name)] == []


def test_a_column_of_maps_is_wrapped() -> None:
    html = indexing.output_to_input(T)._repr_html_()
    assert 'class="wrapped">(d0, d1)' in html
    assert "td.wrapped{white-space:pre-wrap" in html


def test_the_repr_of_a_long_map_is_one_short_line() -> None:
    extents = tuple(range(2, 40))
    text = repr(indexing.IndexingMap.identity(extents))
    assert len(text) < 200
    assert "…" in text
    assert "\n" not in text


@pytest.mark.parametrize("direction", ["output-to-input", "input-to-output"])
def test_the_text_of_an_answer_is_that_of_the_command(
    direction: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    module = hlo.load(path)
    for name in ("t", "r"):
        with pytest.raises(SystemExit):
            cli.main(["maps", str(path), "-i", name, "--direction", direction])
        query: Any = getattr(indexing, direction.replace("-", "_"))
        assert str(query(module.entry[name])) == capsys.readouterr().out.rstrip("\n")


def test_data_frames_have_a_row_for_each_map() -> None:
    pytest.importorskip("pandas", reason="needs the extra notebook")
    frame = indexing.output_to_input(T).to_dataframe()
    assert frame[["operand", "name", "shape", "grade"]].values.tolist() == [
        [0, "p", "f32[3,5]", "exact"]
    ]
    assert frame["map"][0] == str(indexing.output_to_input(T).maps[0][0])
    (reason,) = indexing.output_to_input(ROOT).to_dataframe()["unknown"]
    assert "what-is-this" in reason


def test_data_frames_have_the_reasons_of_may_maps() -> None:
    pytest.importorskip("pandas", reason="needs the extra notebook")
    update = instruction_of(
        "f32[5,5] dynamic-update-slice(f32[5,5] p, f32[2,2] u, s32[] i, s32[] j)"
    )
    reasons = indexing.output_to_input(update).to_dataframe()["reasons"]
    assert reasons[0].startswith("dynamic-update-slice `out`: replaced elements are included")
    assert reasons.isna().tolist() == [False, True, True, True]


def test_without_pandas_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        indexing.output_to_input(T).to_dataframe()


def test_a_module_is_shown_without_the_tables_of_its_header() -> None:
    text = (Path(__file__).parents[1] / "examples" / "attention.opt.hlo").read_text()
    html = hlo.parse(text)._repr_html_()
    assert "FileNames" in text
    assert "FileNames" not in html
    assert "StackFrames" not in html
    assert html.index("ENTRY main.5") < html.index("fused_computation.12")
    assert html.count("<details open>") == 2  # the module and ENTRY


def test_grades_and_verdicts_come_first() -> None:
    html = indexing.output_to_input(ROOT)._repr_html_()
    assert html.index("<th>grade</th>") < html.index("<th>operand</th>")
    assert '<td><span class="bad">unknown</span></td>' in html
    verdict: Any = WINDOW.is_injective()
    assert '<span class="bad">false</span>: <b>not injective' in verdict._repr_html_()
    before = hlo.parse("ENTRY e { p = f32[2] parameter(0)  ROOT r = f32[2] negate(p) }")
    other = hlo.parse("ENTRY e { p = f32[2] parameter(0)  ROOT r = f32[2] abs(p) }")
    assert '<span class="good">proved</span>' in indexing.equivalent(before, before)._repr_html_()
    assert '<span class="bad">differs</span>' in indexing.equivalent(before, other)._repr_html_()


def test_numbers_of_tables_are_flush_right() -> None:
    html = indexing.traffic(
        hlo.parse("ENTRY e { p = f32[999] parameter(0)  ROOT r = f32[999] negate(p) }")
    )._repr_html_()
    assert '<th class="right">bytes</th>' in html
    assert '<td class="right">7,992</td>' in html


@pytest.mark.parametrize(
    ("count", "text"), [(2, "law 1 (1):"), (3, "1 more law:"), (5, "3 more laws:")]
)
def test_the_first_line_of_a_proof_counts_the_other_laws(count: int, text: str) -> None:
    proved = Proved("values", {f"law {k}": 1 for k in range(count)})
    assert text in next(verdict_lines(proved))
