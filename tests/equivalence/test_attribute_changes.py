"""Each attribute of an instruction is changed: the verdict agrees with executions of both programs.

An attribute on which a value depends never leaves a proof if the executions differ; an attribute on
which no value depends, such as metadata, always leaves a proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo.modules.effects import value_attributes
from hlo.modules.module import Instruction, Module
from hlo.ops.op import OPS, OPS_BY_TARGET, Field, Op
from hlo.text.syntax import CALLEE_ATTRIBUTES
from indexing import equivalent
from indexing.equivalence import Differs, Proved
from indexing.execution import run
from indexing.execution.inputs import random_inputs
from indexing.ops.samples import instruction_of
from indexing.ops.targets.regions import DISTRIBUTION, Border
from tests.checks import checks
from tests.oracles import sampled

HINTS: Final = (
    *('metadata={op_name="f" source_line=3}', 'frontend_attributes={a="b"}'),
    *("sharding={replicated}", "statistics={visualizing_index=0,stat-1=5}", 'origin={{"a"}}'),
    "result_accuracy={mode=highest}",
)
CONFIG: Final = 'backend_config={"a": 1}'

# fmt: off
LAPACK = [
    # result                               operands               target   configuration
    ("f32[3,2]",                           "f32[3,3] a, f32[3,2] b", "strsm",
     "diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8"),
    ("(f32[3,3], s32[])",                  "f32[3,3] a",          "spotrf", "uplo = 76 : ui8"),
    ("(f32[3,3], f32[3], s32[])",          "f32[3,3] a",          "ssyevd",
     "mode = 86 : ui8, uplo = 76 : ui8"),
    ("(f32[4,4], f32[3], s32[])",          "f32[4,4] a",          "sgehrd", "low = 1, high = 4"),
    ("(f32[4,4], f32[4], f32[3], f32[3], s32[])", "f32[4,4] a",   "ssytrd", "uplo = 76 : ui8"),
]
# fmt: on
LETTERS: Final = {"76": "85", "78": "85", "86": "78"}  # of a setting: L to U, N to U, V to N


def calls() -> list[str]:
    return [
        f'{result} custom-call({operands}), custom_call_target="lapack_{target}_ffi", '
        f"api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}}"
        for result, operands, target, config in LAPACK
    ]


# ---------------------------------------------------------------- changes


def other_values(field: Field, text: str | None) -> Iterator[str]:
    """Yield other texts of an attribute; many are invalid for the instruction."""
    assert field.kind is not None
    words = dict(field.kind.limits).get("one of", ())
    given = field.kind.example if text is None else text
    yield from (word for word in words if word != text)
    if given in ("true", "false"):
        yield "false" if given == "true" else "true"
    for match in re.finditer(r"\d+", given):
        for number in {int(match[0]) + 1, max(int(match[0]) - 1, 0)}:
            yield f"{given[: match.start()]}{number}{given[match.end() :]}"
    numbers = re.findall(r"\d+", given)
    if len(set(numbers)) > 1:
        turned = iter([*numbers[1:], numbers[0]])
        yield re.sub(r"\d+", lambda match: next(turned), given)
    if given.startswith('"'):
        yield f'{given[:-1]}x"'
    if text is None:
        yield given


def change(module: Module, root: Instruction, name: str, text: str) -> Module | None:
    """Return the module with another attribute of the root; None if it is invalid."""
    own = root.attributes.get(name)
    line = str(root)
    if own is None:
        after = f"{line}, {name}={text}"
    else:
        after = line.replace(f", {name}={own.printed}", f", {name}={text}")
    try:
        made = hlo.parse(str(module).replace(line, after))
        return None if list(hlo.verify(made)) else made
    except hlo.HloError:
        return None


def changes(module: Module, cls: type[Op]) -> Iterator[tuple[str, str, Module]]:
    """Yield the attribute, its text, and the module with it, for each declared attribute."""
    root = module.entry.root
    for field in cls.fields.values():
        if field.role != "attribute" or field.name in CALLEE_ATTRIBUTES:
            continue
        own = root.attributes.get(field.name)
        for text in dict.fromkeys(other_values(field, own.printed if own else None)):
            if field.name == "slice_sizes" and re.search(r"\b0\b", text):
                continue  # an element of a slice without elements has no value
            made = change(module, root, field.name, text)
            if made is not None and made.entry.root.shape == root.shape:
                yield field.name, text, made


def results(module: Module) -> list[Any] | None:
    """Return the results on several inputs; None if the module cannot be executed."""
    every: list[Any] = []
    try:
        for seed in range(3):
            every += run(module, random_inputs(module.entry, seed))
    except (hlo.HloError, ValueError, TypeError, np.linalg.LinAlgError):
        return None
    return every


def differ(before: Module, after: Module) -> bool:
    ours, theirs = results(before), results(after)
    if ours is None or theirs is None:
        return False
    return any(
        not np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
        for one, other in zip(ours, theirs, strict=True)
    )


# ---------------------------------------------------------------- tests


@cache
def samples() -> dict[str, tuple[str, ...]]:
    ours = {
        name: cls.samples
        for name, cls in [*OPS.items(), *OPS_BY_TARGET.items()]
        if cls.__module__.startswith("indexing.ops")
    }
    return ours | {"lapack": tuple(calls())}


def class_of(name: str) -> type[Op]:
    return OPS_BY_TARGET.get(name) or OPS["custom-call" if name == "lapack" else name]


@pytest.mark.parametrize("name", samples())
@pytest.mark.sampled
def test_no_change_of_a_value_is_proved(name: str) -> None:
    with checks() as check:
        for text in sampled(samples()[name], name):
            module = instruction_of(text).module
            for attribute, value, after in changes(module, class_of(name)):
                with check(f"{attribute}={value} of {text}"):
                    verdict = equivalent(module, after)
                    if differ(module, after):
                        assert not isinstance(verdict, Proved)
                    attributes = [value_attributes(m.entry.root) for m in (module, after)]
                    if attributes[0] == attributes[1]:
                        assert isinstance(verdict, Proved) or "elided" in str(verdict)


@pytest.mark.parametrize("name", samples())
@pytest.mark.sampled
def test_hints_are_no_part_of_a_value(name: str) -> None:
    with checks() as check:
        for text in sampled(samples()[name], name):
            module = instruction_of(text).module
            root, head = module.entry.root, str(module.entry.root)
            is_open = issubclass(class_of(name), OPS["custom-call"])
            for hint in [*HINTS, *([] if root.attributes.get("backend_config") else [CONFIG])]:
                with check(f"{hint} of {text}"):
                    after = hlo.parse(str(module).replace(head, f"{head}, {hint}"))
                    is_value = (hint is CONFIG and is_open) or (
                        issubclass(class_of(name), Border) and hint.startswith(DISTRIBUTION)
                    )
                    assert isinstance(equivalent(module, after), Proved) is not is_value


@pytest.mark.parametrize("text", calls())
def test_each_setting_of_a_lapack_call_is_part_of_its_value(text: str) -> None:
    module = instruction_of(text).module
    is_seen = 0
    for match in re.finditer(r"= (\d+) : ui8", text):
        at, end = match.span(1)
        after = instruction_of(f"{text[:at]}{LETTERS[match[1]]}{text[end:]}").module
        verdict = equivalent(module, after)
        assert not isinstance(verdict, Proved)
        is_seen += isinstance(verdict, Differs)
    assert is_seen or " : ui8" not in text


CALL: Final = """ENTRY e { a = f32[3,2] parameter(0)
  ROOT r = f32[3,2]%s custom-call(a), custom_call_target="%s"%s }"""
CONSTRAINED: Final = ", operand_layout_constraints={f32[3,2]%s}"
FFI: Final = ", api_version=API_VERSION_TYPED_FFI"

# fmt: off
OPEN = [
    # before                              after                                  are equal
    (("", "f", ""),                       ("", "g", ""),                         False),
    (("", "f", ""),                       ("", "f", FFI),                        False),
    (("", "f", ', backend_config="a"'),   ("", "f", ', backend_config="b"'),     False),
    (("", "f", ', backend_config={a=1}'), ("", "f", ", backend_config={a = 1}"), True),
    (("", "f", ""),  ("", "f", ", custom_call_has_side_effect=true"),            False),
    (("", "f", ""),  ("", "f", ", custom_call_has_side_effect=false"),           True),
    (("", "f", ""),  ("", "f", ", output_to_operand_aliasing={{}: (0, {})}"),    False),
    (("", "f", ""),  ("", "f", ", new_attribute=1"),                             False),
    (("", "f", ""),  ("", "f", ", schedule=SCHEDULE_LATEST"),                    True),
    (("", "f", ""),                       ("{0,1}", "f", ""),                    True),
    (("", "f", CONSTRAINED % "{1,0}"),    ("", "f", CONSTRAINED % "{0,1}"),      False),
    (("", "f", CONSTRAINED % "{1,0}"),    ("{0,1}", "f", CONSTRAINED % "{1,0}"), False),
    (("", "f", CONSTRAINED % "{1,0}"),    ("", "f", CONSTRAINED % "{1,0:S(1)}"), True),
    (("", "f", CONSTRAINED % "{1,0}"),    ("{1,0}", "f", CONSTRAINED % "{1,0}"), True),
    (("", "f", CONSTRAINED % "{1,0}"),    ("{1,0:T(2,128)}", "f",
                                           CONSTRAINED % "{1,0:T(4,128)}"),      True),
    (("", "f", CONSTRAINED % "{1,0}"),    ("", "f", CONSTRAINED % "{0,1:T(2,128)}"), False),
    (("", "Sharding", ", sharding={replicated}"), ("", "Sharding", ""),          True),
]
# fmt: on


@pytest.mark.parametrize("before, after, are_equal", OPEN)
def test_the_code_of_a_custom_call_may_read_all_that_is_given_to_it(
    before: tuple[str, str, str], after: tuple[str, str, str], are_equal: bool
) -> None:
    one, other = hlo.parse(CALL % before), hlo.parse(CALL % after)
    for pair in ((one, other), (other, one)):
        assert isinstance(equivalent(*pair), Proved) is are_equal


def test_each_attribute_of_an_unknown_opcode_may_be_part_of_its_value() -> None:
    text = "ENTRY e { a = f32[3] parameter(0)  ROOT r = f32[3] new-op(a)%s }"
    plain = hlo.parse(text % ', metadata={op_name="f"}')
    for other in (", size=1", CONFIG and f", {CONFIG}"):
        assert not isinstance(equivalent(plain, hlo.parse(text % other)), Proved)


def test_layouts_are_part_of_the_value_of_a_bitcast() -> None:
    """With another element type, the elements are no view of the operand's."""
    text = "ENTRY e { p = f32[2,3]{%s} parameter(0)  ROOT b = s32[3,2]{%s} bitcast(p) }"
    one = hlo.parse(text % ("1,0", "1,0"))
    for layouts in (("1,0", "0,1"), ("0,1", "1,0")):
        assert isinstance(equivalent(one, hlo.parse(text % layouts)), Differs)
    turned = hlo.parse(text % ("0,1", "0,1"))
    assert differ(one, turned) is not isinstance(equivalent(one, turned), Proved)


def test_the_reason_names_the_attribute_and_both_values() -> None:
    one, other = (hlo.parse(CALL % ("", "f", f', backend_config="{x}"')) for x in "ab")
    reason = str(equivalent(one, other))
    assert '`custom-call` has backend_config "a" before, "b" after' in reason


def test_a_received_value_depends_on_its_channel() -> None:
    text = """ENTRY e { t = token[] after-all()
      r = (f32[3], u32[], token[]) recv(t), channel_id=%d
      q = (f32[3], u32[], token[]) recv(t), channel_id=%d
      s = (f32[3], token[]) recv-done(r)  u = (f32[3], token[]) recv-done(q)
      a = f32[3] get-tuple-element(s), index=0  b = f32[3] get-tuple-element(u), index=0
      ROOT d = f32[3] subtract(a, b) }"""
    one, other = hlo.parse(text % (1, 2)), hlo.parse(text % (2, 1))
    assert isinstance(equivalent(one, hlo.parse(text % (1, 2))), Proved)
    assert not isinstance(equivalent(one, other), Proved)
