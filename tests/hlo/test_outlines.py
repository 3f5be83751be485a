"""Outlines of modules: reading a text by its outline gives the module that the parser gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import hlo
from hlo.formats.files import load_outlined
from hlo.formats.outline import ModuleOutline, OutlinedBody
from hlo.formats.parser import parse_outlined
from hlo.modules.module import Module

MODULE: Final = """HloModule m

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b), metadata={op_name="sum"}
}, execution_thread="main"

%short {
  x = f32[] parameter(0) ROOT y = negate(x)
}

ENTRY %e (p: f32[7,3]) -> f32[7] {
  %p = f32[7,3]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %r = f32[7]{0} reduce(%p, %zero), dimensions={1}, to_apply=%sum
  %q = f32[7]{0} reduce(%p, %zero), dimensions={1}, to_apply=%sum, metadata={op_name="q"}
  ROOT %d = f32[7]{0} add(%r, %q), backend_config={"a":"b, c"}
}
"""


class Kept:
    """Outlines in memory, as the texts that a file would have."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.hits = 0

    def find(self, text: str) -> ModuleOutline | None:
        self.hits += text in self.texts
        return ModuleOutline.of_json(self.texts[text]) if text in self.texts else None

    def keep(self, text: str, outline: ModuleOutline) -> None:
        self.texts[text] = outline.json()


def facts(module: Module) -> Iterator[object]:
    """Yield all that the parser reads in a module, with the places in the text."""
    yield module.name, module.attributes, module.entry.name, list(module.computations)
    for computation in module.computations.values():
        yield computation.start, computation.end, computation.names, computation.opcodes
        yield len(computation), computation.root.name, computation.attributes
        for each in computation.instructions:
            yield each.name, each.opcode, each.declared_shape, each.index, each.span.place()
            yield [operand.name for operand in each.operands], each.literal_text, each.end
            yield [called.name for called in each.called_computations]
            yield [(name, text.text, text.span) for name, text in each.attributes.items()]
            yield [each.text_of(name) for name in each.attributes]


def spans_of(module: Module) -> list[object]:
    return list(map(str, facts(module)))


def read_twice(text: str, lazy: bool) -> tuple[list[Module], list[Module], Kept]:
    kept = Kept()
    first = parse_outlined(text, "m.hlo", lazy, kept)
    return first, parse_outlined(text, "m.hlo", lazy, kept), kept


@pytest.mark.parametrize("lazy", [False, True])
def test_an_outlined_module_equals_the_parsed_one(example: Path, lazy: bool) -> None:
    text = example.read_text()
    first, second, kept = read_twice(text, lazy)
    assert kept.hits == 1
    assert all(each.body is not None for each in second[0].computations.values())
    assert spans_of(second[0]) == spans_of(first[0]) == spans_of(hlo.parse(text, "m.hlo"))
    assert str(second[0]) == str(first[0])


def test_irregular_bodies_are_parsed_again() -> None:
    first, second, kept = read_twice(MODULE, True)
    outline = ModuleOutline.of_json(next(iter(kept.texts.values())))
    assert [bool(body.start) for body in outline.bodies] == [True, False, True]
    assert second[0].computations["sum"].attributes["execution_thread"].text == '"main"'
    assert spans_of(second[0]) == spans_of(first[0])


@pytest.mark.parametrize("before", ["", "# of step 3\n", "// a comment\n"])
def test_each_part_of_a_file_has_its_outline(tmp_path: Path, before: str) -> None:
    file = tmp_path / "parts.hlo"
    file.write_text(f"{before}{MODULE}\n// -----\n{MODULE}")
    kept = Kept()
    first = load_outlined(file, 1 << 30, True, kept)
    assert (len(first), len(kept.texts), kept.hits) == (2, 2, 0)
    second = load_outlined(file, 1 << 30, True, kept)
    assert kept.hits == 2
    assert list(map(spans_of, second)) == list(map(spans_of, first))


def test_reading_eagerly_and_lazily_gives_one_outline(example: Path) -> None:
    text = example.read_text()
    assert read_twice(text, False)[2].texts == read_twice(text, True)[2].texts


@pytest.mark.parametrize(
    "text",
    [
        MODULE.replace("add(%a, %b)", "add(%a, %c)"),
        MODULE.replace("ROOT %d", "ROOT %p"),
        MODULE.replace("HloModule m", "HloModule m, is_scheduled=perhaps"),
        MODULE + "}",
    ],
)
def test_no_outline_of_an_invalid_text_is_kept(text: str) -> None:
    kept = Kept()
    for _ in range(2):
        with pytest.raises(hlo.HloError):
            parse_outlined(text, "m.hlo", True, kept)
    assert kept.texts == {}


WRONG: Final = [
    ModuleOutline((), ()),
    ModuleOutline(("add",), (OutlinedBody(3, 9, "a", "#"),)),
    ModuleOutline(("add",), (OutlinedBody(10**6, 10**7, "a", "#"),)),
    ModuleOutline(("add",), (OutlinedBody(),) * 5),
    ModuleOutline(("add",), (OutlinedBody(),) * 2),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_the_outline_of_another_text_is_replaced(wrong: ModuleOutline) -> None:
    kept = Kept()
    kept.keep(MODULE, wrong)
    (module,) = parse_outlined(MODULE, "m.hlo", True, kept)
    assert spans_of(module) == spans_of(hlo.parse(MODULE, "m.hlo"))
    assert ModuleOutline.of_json(kept.texts[MODULE]) != wrong


def test_a_module_may_have_more_opcodes_than_codes() -> None:
    lines = "\n".join(f"  %i{n} = f32[] op{n}(%p)" for n in range(3000))
    text = f"HloModule m\n\nENTRY %e {{\n  %p = f32[] parameter(0)\n{lines}\n}}\n"
    first, second, kept = read_twice(text, True)
    assert kept.hits == 1
    assert spans_of(second[0]) == spans_of(first[0])


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", "[[],[[1]],3]", "[1,2]", '[[],[{"a":1}]]'])
def test_other_json_is_no_outline(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        ModuleOutline.of_json(text)
