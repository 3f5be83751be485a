"""Ops stay compatible: modules that were valid before remain valid.

`op_records.json` is a snapshot of the record of each op. A change must obey the rules of
`hlo.ops.op_records`, and the samples of the snapshot must remain valid. New ops may be missing.
After an intended change, ``python -m tests.ops.test_op_records`` updates the snapshot.
"""

# ruff: noqa: E501 - a row is a line
from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import hlo
import indexing.ops  # noqa: F401 - registers the ops
from hlo.ops.op import OPS, OPS_BY_TARGET
from hlo.ops.op_records import breaks, describe
from tests.checks import checks
from tests.ops.samples import parse_sample

SNAPSHOT = Path(__file__).parent / "op_records.json"
OWN = ("indexing.",)  # without the ops that other tests register


def describe_ops() -> dict[str, Any]:
    """Records of ops by opcode; ``custom-call TARGET`` for the targets of custom calls."""
    named = {**OPS, **{f"custom-call {target}": cls for target, cls in OPS_BY_TARGET.items()}}
    own = {name: cls for name, cls in named.items() if cls.__module__.startswith(OWN)}
    return {name: describe(cls) for name, cls in sorted(own.items())}


BEFORE: dict[str, Any] = json.loads(SNAPSHOT.read_text())
NOW = describe_ops()


def test_ops_are_compatible_with_the_snapshot() -> None:
    with checks() as check:
        for name, before in BEFORE.items():
            with check(name):
                assert name in NOW, f"an op must not be removed: {name}"
                assert breaks(before, NOW[name]) == []


def test_samples_of_the_snapshot_are_valid() -> None:
    with checks() as check:
        for text in [text for before in BEFORE.values() for text in before["samples"]]:
            with check(text):
                assert hlo.verify(parse_sample(text).instruction.module) == []


# fmt: off
OLD = {
    "operands": [1, 1],
    "types": ["T: integer"],
    "attributes": {
        "k": {"kind": "an integer", "limits": {"at least": 2}},
        "mode": {"kind": "one of", "limits": {"one of": ["A", "B"]}, "default": "'A'"},
    },
    "constraints": {"C1": "it fits"},
}
TIGHTER = "a constraint may be relaxed, not tightened: "
CHANGES = [
    # place                                   new value                             message
    ("operands",                              [1, 3],                               []),
    ("operands",                              [0, None],                            []),
    ("operands",                              [2, 2],                               [f"{TIGHTER}min_operands was 1, is 2"]),
    ("operands",                              [0, 0],                               [f"{TIGHTER}max_operands was 1, is 0"]),
    ("types",                                 ["T: numeric"],                       []),
    ("types",                                 [],                                   []),
    ("types",                                 ["T: signed"],                        [f"{TIGHTER}operand 0 was T: integer, is T: signed"]),
    ("constraints",                           {},                                   []),
    ("constraints",                           {"C1": "it fits well"},               []),
    ("constraints",                           {"C1": "it fits", "C2": "it is new"}, [f"{TIGHTER}C2 is new (it is new)"]),
    ("attributes.more",                       {"kind": "an identifier", "default": "\"\""},  []),
    ("attributes.more",                       {"kind": "an identifier"},                   ["a new attribute must have a default: `more` has none"]),
    ("attributes.k",                          None,                                 ["an attribute must not be removed: `k`"]),
    ("attributes.k.default",                  "3",                                  []),
    ("attributes.k.kind",                     "an identifier",                      ["an attribute must keep its kind: `k` was an integer, is an identifier"]),
    ("attributes.k.limits",                   {"at least": 1},                      []),
    ("attributes.k.limits",                   {},                                   []),
    ("attributes.k.limits",                   {"at least": 3},                      [f"{TIGHTER}`k` is now at least 3"]),
    ("attributes.k.limits",                   {"at least": 2, "at most": 9},        [f"{TIGHTER}`k` is now at most 9"]),
    ("attributes.mode.limits",                {"one of": ["A", "B", "C"]},          []),
    ("attributes.mode.limits",                {"one of": ["A"]},                    [f"{TIGHTER}`mode` may no longer be B"]),
    ("attributes.mode.default",               "'B'",                                ["an attribute must keep its default: `mode` was 'A', is 'B'"]),
    ("attributes.mode.default",               None,                                 ["an attribute must keep its default: `mode` was 'A', is missing"]),
]
# fmt: on


@pytest.mark.parametrize("place, value, message", CHANGES)
def test_an_incompatible_change_is_described(place: str, value: Any, message: list[str]) -> None:
    changed: dict[str, Any] = copy.deepcopy(OLD)
    *path, last = place.split(".")
    at = changed
    for step in path:
        at = at[step]
    if value is None:
        del at[last]
    else:
        at[last] = value
    assert breaks(OLD, changed) == message


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(describe_ops(), indent=1, ensure_ascii=False) + "\n")
