"""Regular bodies, parsed by lines, at once or on first use, are those of the whole grammar."""
# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hlo
from hlo.formats.scan import BodyScanner
from hlo.modules.checks import parameter_errors
from hlo.modules.instruction_checks import check_instruction
from hlo.modules.module import Instruction
from hlo.text.syntax import AttributeText
from indexing.cli.build import build
from tests.compiled import interpreted_only
from tests.growth.work import calls_of
from tests.hlo.fuzz import mutate, texts
from tests.hlo.test_bad_input import BAD
from tests.hlo.test_fuzz_parser import SMALL
from tests.threads import in_threads

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.hlo"))


def lazy(text: str) -> hlo.Module:
    return hlo.parse(text, lazy=True)


def by_grammar(text: str) -> hlo.Module:
    """The module, parsed by `BodyReader` alone; by all readers if modules are compiled."""
    with pytest.MonkeyPatch.context() as patch:
        if build() == "interpreted":
            patch.setattr(BodyScanner, "regular", lambda *_: None)
        return hlo.parse(text)


def list_deferred(module: hlo.Module) -> list[str]:
    """The computations whose instructions are not made yet."""
    return [each.name for each in module.computations.values() if each.body is not None]


def structure(module: hlo.Module) -> list[object]:
    """All that is known of the instructions before they are made, and their places."""
    return [
        (c.name, c.names, c.opcodes, len(c), c.start, c.end, c.attributes, repr(c))
        for c in module.computations.values()
    ]


def places(module: hlo.Module) -> list[object]:
    """The places of instructions, of their values and of what they call."""
    return [
        (
            *(i.index, i.start, i.end, list(i.attributes), [c.name for c in i.called_computations]),
            [(v.text, v.start, v.end) for v in (*i.attributes.values(), i.literal) if v],
        )
        for i in module.instructions
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_lazily_parsed_module_is_the_parsed_module(path: Path) -> None:
    text = path.read_text()
    module, expected = lazy(text), by_grammar(text)
    regular = len(module.computations) - 1
    assert len(list_deferred(module)) == regular  # the entry is parsed at once
    assert structure(module) == structure(expected)
    assert repr(module) == repr(expected)
    assert len(list_deferred(module)) == regular
    assert module == expected
    assert (str(module), places(module)) == (str(expected), places(expected))
    assert structure(module) == structure(expected)
    assert not list_deferred(module)
    at_once = hlo.parse(text)
    assert structure(at_once) == structure(expected)
    assert (str(at_once), places(at_once)) == (str(expected), places(expected))


@interpreted_only
def test_an_instruction_needs_only_its_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    text = EXAMPLES[0].read_text()
    made = calls_of(monkeypatch, Instruction, "__init__")
    module = lazy(text)
    first, second, *_ = (each for each in module.computations.values() if each.body)
    assert len(made) == len(module.entry)
    assert module.find(f"{first.name}/{first.names[0]}") == (first.instructions[0],)
    assert len(made) == len(module.entry) + len(first)
    assert second.root in second.instructions
    assert len(made) == len(module.entry) + len(first) + len(second)


HEAD = "f { p = f32[2] parameter(0)  ROOT n = f32[2] negate(p) }\n"

# fmt: off
BODIES = [
    # a body                                                                           regular
    ("%p = f32[2]{0} parameter(0)",                                                    True),
    ("p = f32[2] parameter(0)\n  ROOT a = f32[2] add(p, %p), metadata={op_name=\"}/*\"}", True),
    ("c = pred[] constant(true)  d = f32[2] constant({-inf, 1e3})  e = f32[] constant(nan)", True),
    ("p = f32[2] parameter(0)  r = f32[2] fusion(p), kind=kLoop, calls=%f",            True),
    ("p = (f32[2], token[]) parameter(0), backend_config={\"a\":{\"b\":[\"1\"]}}",     True),
    ("p = f32[2] parameter(0)  a = (f32[2], /*index=5*/f32[2]) tuple(p, /*index=5*/%p)", True),
    ("p = f32[2] parameter(0)  a = f32[2] negate(p), x={{0}: (1, {2})}",               True),
    ("p = f32[2] parameter(0)  a = f32[2] add(p, true)",                               False),
    ("p = f32[2] parameter(0)  a = f32[2] negate(%true)",                              False),
    ("p = f32[2] parameter(0)  a = f32[2] add(p, q)",                                  False),  # q is undefined
    ("p = f32[2] parameter(0)  p = f32[2] negate(p)",                                  False),  # p twice
    ("ROOT p = f32[2] parameter(0)  ROOT a = f32[2] negate(p)",                        False),  # two roots
    ("p = f32[2] parameter(0)  r = f32[2] fusion(p), kind=kLoop, calls=%g",            False),  # g is undefined
    ("p = f32[2] parameter(0)  a = f32[2] negate(p), x=1, x=2",                        False),  # x twice
    ("p = f32[2] parameter(0)  a = f32[2] negate(p), metadata={}, metadata={}",        False),
    ("c = u64[] constant(99999999999999999999)",                                       False),  # above 64 bits
    ("p = f99[2] parameter(0)",                                                        False),
    ("p = f32[2]{0,0} parameter(0)",                                                   False),
    ("",                                                                               False),
    ("p = f32[2] parameter(0)  a = negate(p)",                                         False),  # valid from here on
    ("p = f32[2] parameter(0)  a = f32[2] negate(f32[2] p)",                           False),
    ("p = f32[2] /* c */ parameter(0)",                                                False),
    ("p = f32[2] parameter(0)  f32[2] negate(p)",                                      False),  # no name
    ("p = f32[2] parameter(0)  a = f32[2] negate(p), control-predecessors={p}",        False),
    ("p = f32[2] parameter(0)  r = f32[2] fusion(p), calls={ ROOT q = f32[2] parameter(0) }", False),
    ("p = f32[2] parameter(0)  s = ((f32[2]), f32[2], u32[]) negate-start(p)",         False),
    ("p = f32[2] parameter(0), sharding={replicated}  inf = f32[2] negate(p)",         False),
]
# fmt: on


def outcome(text: str, parse: Callable[[str], hlo.Module]) -> str:
    """The error, or the text of a module and its places."""
    try:
        module = parse(text)
        return f"{module}{places(module)}"
    except hlo.HloError as error:
        return str(error)


@pytest.mark.parametrize("body, is_regular", BODIES)
def test_only_regular_bodies_are_deferred(body: str, is_regular: bool) -> None:
    text = f"{HEAD}main {{ {body} }}\nENTRY e {{ x = f32[2] parameter(0) }}"
    expected = outcome(text, by_grammar)
    assert outcome(text, lazy) == outcome(text, hlo.parse) == expected
    if expected.startswith("error"):
        assert not is_regular
    else:
        assert ("main" in list_deferred(lazy(text))) == is_regular
        assert (hlo.parse(text).computations["main"].root.form is not None) == is_regular


def test_a_result_that_contradicts_the_root_is_an_error_at_once() -> None:
    text = "main () -> f32[3] { p = f32[2] parameter(0) }\nENTRY e { x = f32[2] parameter(0) }"
    with pytest.raises(
        hlo.HloError, match=r"declared to return f32\[3\], but its root is f32\[2\]"
    ):
        lazy(text)


@pytest.mark.parametrize("text", [row[0] for row in BAD])
def test_errors_are_those_of_the_parser(text: str) -> None:
    for each in (text, text.replace("ENTRY ", "")):
        assert outcome(each, lazy) == outcome(each, hlo.parse) == outcome(each, by_grammar)


@pytest.mark.parametrize("seed", range(0, 400, 40))
def test_mutated_texts_have_the_outcome_of_the_parser(seed: int) -> None:
    pieces = [text.replace("ENTRY ", "") for text in (SMALL, *texts(EXAMPLES)[:40])]
    for number in range(seed, seed + 40):
        text = mutate(pieces[number % len(pieces)], number)
        expected = outcome(text, by_grammar)
        assert outcome(text, lazy) == outcome(text, hlo.parse) == expected, f"seed {number}"


@interpreted_only
def test_attributes_are_made_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ops, checks and parameter numbers do not need the locations of attributes."""
    text = EXAMPLES[0].read_text()
    module, expected = lazy(text), by_grammar(text)
    regular = [module.computations[name] for name in list_deferred(module)]
    same = [i for computation in regular for i in expected.computations[computation.name]]
    expected_ops = [i.op for i in same]  # a new op is read from the attributes
    made = calls_of(monkeypatch, AttributeText, "__init__")
    instructions = [i for computation in regular for i in computation]
    assert [i.op for i in instructions] == expected_ops
    wrong = [check_instruction(i) for i in instructions if not i.called_computations]
    numbers = [list(parameter_errors(each)) or each.parameters for each in regular]
    assert any(wrong) is False
    assert sum(map(len, numbers)) == sum(i.opcode == "parameter" for i in instructions)
    assert not made
    for one, other in zip(instructions, same, strict=True):
        assert one.attributes == other.attributes
        assert one.attributes is one.attributes
        assert one.literal is one.literal
        assert one.literal_text == other.literal_text
        assert [one.text_of(name) for name in (*other.attributes, "none")] == [
            *[value.text for value in other.attributes.values()],
            None,
        ]
    assert 0 < len(made) == sum(len(i.attributes) + (i.literal is not None) for i in same)


def test_equal_instructions_share_a_form() -> None:
    """The layout of the result, and that of the operand, are parts of a form."""
    lines = [
        "p = f32[2] parameter(0)",
        "a = f32[2] negate(p)",
        "b = f32[2] negate(a), metadata={}",
        "c = f32[2]{0} negate(a)",
        "d = f32[2] negate(c)",
        "e = f32[2] negate(d)",
    ]
    body = "\n".join(lines)
    module = lazy(f"f {{ {body} }} g {{ {body} }} ENTRY e {{ x = /**/ f32[2] parameter(0) }}")
    one, other = (tuple(module.computations[name]) for name in "fg")
    numbers: dict[object, int] = {}
    assert [numbers.setdefault(i.form, len(numbers)) for i in one] == [0, 1, 1, 2, 3, 1]
    assert [i.form for i in other] == [i.form for i in one]
    assert one[1].op is one[2].op
    assert all(i.form and i.form.operand_shapes == tuple(o.shape for o in i.operands) for i in one)
    assert module.entry.root.form is None


def test_threads_get_equal_attributes() -> None:
    text = EXAMPLES[0].read_text()
    expected = places(by_grammar(text))
    module = lazy(text)
    assert all(each == [expected] for each in in_threads(lambda _: places(module), 1))


def test_threads_get_the_same_instructions() -> None:
    module = lazy(EXAMPLES[0].read_text())
    names, threads = list_deferred(module), 8
    ready = threading.Barrier(threads)

    def read(number: int) -> list[tuple[Instruction, ...]]:
        ready.wait()
        roots = {name: module.computations[name].root for name in names[number:] + names[:number]}
        return [(*module.computations[name].instructions, roots[name]) for name in names]

    with ThreadPoolExecutor(threads) as pool:
        first, *others = pool.map(read, range(threads))
    assert all(other == first for other in others)  # instructions are compared by identity
