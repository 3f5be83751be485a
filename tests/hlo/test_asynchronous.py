"""Asynchronous ops: short forms expand to computations, as in XLA; mismatched ops are rejected."""
# ruff: noqa: E501 - a row of a table is a line

from collections import Counter
from typing import Any

import pytest

import hlo

F = "f { p = f32[3] parameter(0) ROOT n = f32[3] negate(p) }\n"
G = "g { p = f32[3] parameter(0) ROOT n = f32[3] negate(p) }\n"
START = "((f32[3]), f32[3], u32[])"


def module(*lines: str, before: str = "") -> hlo.Module:
    inside = "\n".join(["p = f32[3] parameter(0)", *lines])
    return hlo.parse(f"{before}ENTRY e {{\n{inside}\n}}", "async.hlo")


# fmt: off
FORMS = [
    # computations before   lines of the entry                                              opcodes of the whole module, but for parameters
    ("", [f"s = {START} negate-start(p)", "d = f32[3] negate-done(s)"],                     "negate async-start async-done"),
    ("", [f"s = {START} negate-start(p)", f"u = {START} negate-update(s)", f"v = {START} negate-update(u)", "d = f32[3] negate-done(v)"],
                                                                                            "negate async-start async-update async-update async-done"),
    ("", [f"s = {START} negate-start(p)", "d = f32[3] async-done(s)"],                      "negate async-start async-done"),
    ("", ["s = ((f32[3], f32[3]), f32[3]) add-start(p, p)", "d = f32[3] add-done(s)"],      "add async-start async-done"),
    (F,  [f"s = {START} call-start(p), to_apply=f", "d = f32[3] call-done(s)"],             "negate call async-start async-done"),
    (F,  [f"s = {START} call-start(p), to_apply=f", f"t = {START} call-start(p), to_apply=f"], "negate call call async-start async-start"),
    (F,  [f"s = {START} fusion-start(p), kind=kLoop, calls=f", "d = f32[3] fusion-done(s)"], "negate fusion async-start async-done"),
    (F,  [f"s = {START} async-start(p), calls=f", "d = f32[3] async-done(s), calls=f"],     "negate async-start async-done"),
    ("", [f's = {START} custom-call-start(p), custom_call_target="x"', "d = f32[3] custom-call-done(s)"], "custom-call async-start async-done"),
    ("", ["s = (f32[3], f32[6]) all-gather-start(p), dimensions={0}", "d = f32[6] all-gather-done(s)"],  "all-gather-start all-gather-done"),
    ("", ["s = (f32[3], f32[3], u32[]) copy-start(p)", "d = f32[3] copy-done(s)"],          "copy-start copy-done"),
    ("", ["s = f32[3] my-own-start(p)", "d = f32[3] my-own-done(s)"],                       "my-own-start my-own-done"),
    ("", ["s = f32[3] start(p)"],                                                           "start"),
]
REJECTED = [
    # computations before   lines of the entry                                              line column message
    ("", ["s = (f32[3], f32[3], u32[]) negate-start(p)"],                                   3, 29, "negate-start must have a shape ((operands), results, state)"),
    ("", ["s = ((f32[3])) negate-start(p)"],                                                3, 16, "negate-start must have a shape ((operands), results, state)"),
    ("", ["s = negate-start(p)"],                                                           3, 5,  "negate-start must have a shape ((operands), results, state)"),
    ("", ["s = ((f32[3], f32[3]), f32[3]) negate-start(p)"],                                3, 32, "negate-start must have a shape ((operands), results, state)"),
    (F,  ["s = (f32[3], f32[3], u32[]) async-start(p), calls=f"],                           4, 29, "async-start must have a shape ((operands), results, state)"),
    ("", ["d = f32[3] negate-done(p)"],                                                     3, 12, "negate-done must have one operand, an async-start or async-update"),
    ("", ["d = f32[3] async-done()"],                                                       3, 12, "async-done must have one operand, an async-start or async-update"),
    ("", [f"t = {START} tuple(p, p, p)", f"u = {START} abs-update(t)"],                     4, 31, "abs-update must have one operand, an async-start or async-update"),
    ("", [f"s = {START} negate-start(p)", "d = f32[3] abs-done(s)"],                        4, 12, "abs-done requires a start of abs, but `s` starts negate"),
    ("", [f"s = {START} negate-start(p)", f"u = {START} abs-update(s)"],                    4, 31, "abs-update requires a start of abs, but `s` starts negate"),
    ("", [f"s = {START} negate-start(p)", "u = (f32[3], f32[3]) negate-update(s)"],         4, 22, "negate-update must have the shape of its operand, ((f32[3]), f32[3], u32[])"),
    (F,  [f"s = {START} async-start(p), calls=f", f"t = {START} async-start(p), calls=f"],  5, 31, "two starts call the computation `f`"),
    (F + G, [f"s = {START} async-start(p), calls=f", "d = f32[3] async-done(s), calls=g"],  6, 33, "async-done calls `g`, but `s` calls `f`"),
    ("", [f"s = {START} negate-start(p)", 'd = f32[3] negate-done(s), async_execution_thread="t"'], 4, 51, "negate-done specifies thread \"t\", but `s` runs on thread \"main\""),
]
# fmt: on


@pytest.mark.parametrize("before, lines, opcodes", FORMS)
def test_a_short_form_expands_to_a_start_of_a_computation(
    before: str, lines: list[str], opcodes: str
) -> None:
    parsed = module(*lines, before=before)
    counted = Counter(i.opcode for i in parsed.instructions if i.opcode != "parameter")
    assert counted == Counter(opcodes.split())
    assert hlo.parse(str(parsed)) == parsed
    for start in parsed.instructions:
        if start.opcode == "async-start":
            (called,) = start.called_computations
            assert [p.shape for p in called.parameters] == [o.shape for o in start.operands]
            assert called.root.shape == start.shape.elements[1]  # type: ignore[union-attr]  # a tuple


@pytest.mark.parametrize("before, lines, line, column, message", REJECTED)
def test_mismatched_asynchronous_ops_are_rejected(
    before: str, lines: list[str], line: int, column: int, message: str
) -> None:
    with pytest.raises(hlo.HloError) as caught:
        module(*lines, before=before)
    error = caught.value
    assert (error.message, error.code) == (message, "async")
    assert (error.span.line, error.span.column) == (line, column)


def test_attributes_of_a_short_form_are_split_as_in_xla() -> None:
    parsed = module(
        f's = {START} custom-call-start(p), custom_call_target="x", sharding={{replicated}}, '
        'metadata={op_name="m"}, backend_config={"a":1}, async_execution_thread="t"',
        f's.1 = {START} custom-call-start(p), custom_call_target="y"',
    )
    start, second = parsed.entry["s"], parsed.entry["s.1"]
    assert list(start.attributes) == [
        "calls",
        "sharding",
        "metadata",
        "backend_config",
        "async_execution_thread",
    ]
    called = start.called_computations[0]
    assert list(called.root.attributes) == ["custom_call_target", "backend_config"]
    assert called.attributes["execution_thread"].text == '"t"'
    assert [c.name for c in parsed.computations.values()] == [
        "async_wrapped",
        "async_wrapped.1",
        "e",
    ]
    assert second.called_computations[0].root.attributes["custom_call_target"].text == '"y"'


def test_generated_names_do_not_occur_in_the_text() -> None:
    text = (
        f"ENTRY e {{ p = f32[3] parameter(0) s = {START} negate-start(p) }}\n"
        "async_wrapped { p = f32[3] parameter(0) }"
    )
    assert list(hlo.parse(text).computations) == ["async_wrapped.1", "e", "async_wrapped"]


@pytest.mark.parametrize("before, lines, opcodes", FORMS[:11])
def test_xla_expands_short_forms_to_the_same_opcodes(
    before: str, lines: list[str], opcodes: str
) -> None:
    """Computations, instructions and opcodes are those of XLA's parser."""
    xla: Any = pytest.importorskip("jaxlib._hlo", reason="needs jaxlib, which this is compared to")
    text = "\n".join([f"{before}ENTRY e {{", "p = f32[3] parameter(0)", *lines, "}"])
    theirs = [c.instructions() for c in xla.hlo_module_from_text(text).computations()]
    ours = [c.instructions for c in module(*lines, before=before).computations.values()]
    assert sorted(map(len, theirs)) == sorted(map(len, ours))
    names = Counter(_opcode(i.opcode) for c in theirs for i in c)
    assert names == Counter(i.opcode.replace("-", "") for c in ours for i in c)


def _opcode(value: Any) -> str:
    """XLA's enumerator, such as ``kAsyncStart``, without its ``k``, in lower case."""
    return str(value).rpartition(".")[2].removeprefix("k").lower()
