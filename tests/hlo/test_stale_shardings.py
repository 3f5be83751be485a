"""Shardings among frontend attributes that do not fit: warnings, and ignored by all questions.

XLA copies frontend attributes to bitcasts, transposes, fusions and scalars of other ranks.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import hlo
import indexing
from hlo.modules.shardings import sharding_warnings, stated_sharding
from indexing.cli.group import invoke
from indexing.views.command_records import check_json
from tests.cli.running import validator

STALE = "#sdy.sharding<@empty_mesh, [{}, {}]>"
VALUES = [
    f'xla.sdy.sharding="{STALE}"',
    'xla.sdy.sharding="#sdy.sharding<@unknown, [{}]>"',
    'xla.sdy.sharding="any text"',
    'xla.sdy.sharding="#sdy.sharding<@empty_mesh, [{"',
    'xla.sdy.sharding="#sdy.sharding_per_value<[<@empty_mesh, [{}]>, <@empty_mesh, [{}]>]>"',
    "xla.sdy.sharding={a=1}",
]
HEADER = (
    "HloModule m, frontend_attributes={xla.sdy.meshes={empty_mesh = #sdy.mesh<[]>, "
    'mesh = #sdy.mesh<["x"=2]>}}\n'
)


def text_with(attributes: str, header: str = HEADER) -> str:
    """A module whose root has frontend attributes, at line 4, column 3."""
    return f"""{header}ENTRY e {{
  p = f32[2,3] parameter(0)
  ROOT b = f32[6] bitcast(p), frontend_attributes={{{attributes}}}
}}
"""


@pytest.mark.parametrize("attributes", VALUES)
def test_a_stale_sharding_is_a_warning(
    attributes: str, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"{tmp_path}/m.hlo"
    with open(path, "w") as file:
        file.write(text_with(attributes))
    module = hlo.load(path)
    assert hlo.verify(module) == []
    ((warning, instruction),) = sharding_warnings(module)
    assert (warning.span.line, stated_sharding(module.entry.root)) == (4, None)
    assert instruction is module.entry.root
    with pytest.raises(hlo.HloError) as caught:
        _ = module.entry.root.sharding
    assert caught.value.message == "invalid sharding of `b`"
    assert str(warning) == str(caught.value).replace("of `b`", "of `b`, which is ignored", 1)

    assert invoke(["check", path]) == 0
    shown = capsys.readouterr()
    assert "ok, 2 instructions" in shown.out
    lines = shown.err.split("\n")
    assert lines[0] == "warning[attribute]: invalid sharding of `b`, which is ignored"
    assert lines[1] == f" --> {warning.span.place()}"
    assert lines[4].strip(" |").startswith("^")

    assert invoke(["check", path, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    (row,) = record["warnings"]
    assert (record["errors"], row["line"], row["column"]) == ([], 4, warning.span.column)
    assert (row["instruction"], row["computation"]) == ("b", "e")
    validator("check").validate(record)

    for command in (["run", path], ["diff", path, path], ["validate", path, "--no-xla"]):
        assert invoke([*command, "--quiet"]) == 0, command
    assert not isinstance(indexing.output_to_input(module.entry.root).maps[0], indexing.Unknown)


SPECS: list[tuple[dict[str, Any], str]] = [
    ({"specs": {"b": "x"}}, "`b` cannot be given a spec"),
    ({"out_specs": ["x"]}, "`b` cannot be given a spec"),
    ({"replicated": {"b": ["x"]}}, "`b` cannot be given a spec"),
    ({"specs": {"p": "x,_"}}, ""),
    ({"out_specs": [None]}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("specs", "message"), SPECS)
@pytest.mark.parametrize("attributes", VALUES)
def test_only_a_spec_of_the_array_with_a_stale_sharding_is_refused(
    attributes: str, specs: dict[str, Any], message: str
) -> None:
    module = hlo.parse(text_with(attributes))
    if not message:
        assert indexing.shard(module, {"x": 2}, **specs).specs.keys() == {"p", "b"}
        return
    with pytest.raises(hlo.HloError, match=message) as caught:
        indexing.shard(module, {"x": 2}, **specs)
    assert caught.value.span.line == 4
    if "replicated" not in specs:
        with pytest.raises(hlo.HloError, match=message):
            indexing.best_shardings(module, {"x": 2}, **specs)


def test_an_array_whose_sharding_fits_can_be_given_another_spec() -> None:
    module = hlo.parse(text_with('xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"x\\"}]>"'))
    assert str(indexing.shard(module, {"x": 2}, {"b": "_"}).specs["b"]) == "[_]"


@pytest.mark.parametrize("meshes", ['"any text"', "{mesh = 1}"])
def test_meshes_that_are_not_meshes_are_a_warning(meshes: str) -> None:
    header = f"HloModule m, frontend_attributes={{xla.sdy.meshes={meshes}}}\n"
    module = hlo.parse(text_with('a="b"', header))
    assert hlo.verify(module) == []
    ((warning, instruction),) = sharding_warnings(module)
    assert (warning.span.line, instruction) == (1, None)
    assert warning.message == "invalid meshes, which are ignored"
    record = json.loads(check_json("m.hlo", module, [], warnings=sharding_warnings(module)))
    validator("check").validate(record)
    (result,) = indexing.execution.run(module, indexing.execution.random_inputs(module.entry, 0))
    assert result.shape == (6,)


def test_the_attribute_of_a_sharding_is_checked() -> None:
    text = text_with("").replace("frontend_attributes={}", "sharding={devices=[2,1]<=[2]}")
    module = hlo.parse(text)
    (error,) = hlo.verify(module)
    assert (error.span.line, sharding_warnings(module)) == (4, [])
    with pytest.raises(hlo.HloError):
        stated_sharding(module.entry.root)


def test_a_sharding_that_fits_is_no_warning() -> None:
    module = hlo.parse(text_with('xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"x\\"}]>"'))
    assert (sharding_warnings(module), hlo.verify(module)) == ([], [])
    assert str(stated_sharding(module.entry.root)) == "[x]"
