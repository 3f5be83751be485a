"""HTML of answers in notebooks."""

import hlo
import indexing
from indexing.views.display import answer_html

TEXT = """\
ENTRY e {
  p = f32[3,5] parameter(0)
  q = f32[5] parameter(1)
  t = f32[5,3] transpose(p), dimensions={1,0}
  pair = (f32[5,3], f32[5]) tuple(t, q)
  ROOT r = f32[5] what-is-this(q)
}
"""


def test_an_answer_is_a_table_with_formulas() -> None:
    instruction = hlo.parse(TEXT).entry["t"]
    html = answer_html(indexing.output_to_input(instruction))
    assert html.startswith("<table>")
    assert "<code>p</code>" in html
    assert "f32[3,5]" in html
    assert r"\left(d_{1}, d_{0}\right)" in html


def test_forward_answers_have_a_row_for_each_output() -> None:
    instruction = hlo.parse(TEXT).entry["pair"]
    html = answer_html(indexing.input_to_output(instruction, input_id=1))
    assert html.count("<tr>") == 3
    assert "nothing is read" in html.partition("f32[5]")[0]


def test_unknown_reasons_are_text() -> None:
    unknown = hlo.parse(TEXT).entry.root
    html = answer_html(indexing.output_to_input(unknown))
    assert "what-is-this" in html
    assert "<code>r</code>" not in html
