"""Maps as JSON and pickles: lossless; JSON has the names of instructions."""

# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
import indexing
from indexing import IndexingMap, parse_map
from simplifier import Variable
from tests.maps.any_maps import any_maps
from tests.oracles import fuzz

GATHER = """ENTRY e {
    p = f32[9] parameter(0)
    i = s32[5,1] parameter(1)
    ROOT g = f32[5,2] gather(p, i), offset_dims={1}, collapsed_slice_dims={},
      start_index_map={0}, index_vector_dim=1, slice_sizes={2}
}"""


def gather_map() -> IndexingMap:
    """A map with a runtime variable whose source is an instruction of a module."""
    (read,) = indexing.output_to_input(hlo.parse(GATHER).entry.root).maps[0]
    return read


@given(any_maps("exact") | any_maps("may"))
@fuzz(150)
def test_maps_round_trip_through_json_and_pickle(made: IndexingMap) -> None:
    assert IndexingMap.from_json(made.to_json()) == made
    assert pickle.loads(pickle.dumps(made)) == made
    assert copy.copy(made) == copy.deepcopy(made) == made


@given(any_maps())
@fuzz(100)
def test_maps_round_trip_through_text(made: IndexingMap) -> None:
    """Text omits the sources of runtime variables and the variables of empty maps."""
    if not made.is_known_empty:
        again = parse_map(str(made))
        assert (again.dims, again.ranges) == (made.dims, made.ranges)
        assert (again.results, again.constraints) == (made.results, made.constraints)
        assert [rt.variable for rt in again.runtime] == [rt.variable for rt in made.runtime]


def test_an_empty_map_keeps_its_spaces() -> None:
    empty = IndexingMap.empty([Variable("d0", 0, 3), Variable("d1", 0, 4)], rank=3)
    again = IndexingMap.from_json(empty.to_json())
    assert (len(again.dims), len(again.results), again.is_known_empty) == (2, 3, True)


def test_json_has_instructions_as_their_names() -> None:
    read = gather_map()
    restored = IndexingMap.from_json(read.to_json())
    assert str(restored) == str(read)
    (mine,), (theirs,) = restored.runtime, read.runtime
    assert (mine.source, mine.index, mine.clamp) == ("i", theirs.index, theirs.clamp)
    assert IndexingMap.from_json(restored.to_json()) == restored
    assert pickle.loads(pickle.dumps(restored)) == restored
    assert restored.to_json() == read.to_json()


def test_a_pickled_map_refers_to_the_pickled_module() -> None:
    read = gather_map()
    source = read.runtime[0].source
    assert isinstance(source, hlo.Instruction)
    module, restored = pickle.loads(pickle.dumps((source.module, read)))
    assert restored.runtime[0].source is module.entry["i"]
    assert str(restored) == str(read)
    assert restored.to_json() == read.to_json()


def test_a_copy_keeps_its_instructions() -> None:
    read = gather_map()
    assert copy.copy(read) == copy.deepcopy(read) == read
    assert copy.deepcopy(read.runtime[0]).source is copy.copy(read.runtime[0]).source
    assert copy.deepcopy(read).runtime[0].source is read.runtime[0].source


def record() -> dict[str, Any]:
    """The JSON of a map with every feature, to be corrupted."""
    text = "(d0)[s0]{rt0} -> (d0 + rt0), domain: d0 in [0, 9], s0 in [0, 1], rt0 in [0, 3], d0 + s0 in [1, 5]"
    loaded: dict[str, Any] = json.loads(parse_map(text).to_json())
    loaded["runtime"][0] |= {"source": "p", "clamp": [0, 3], "index": ["d0"], "calls": ["f"]}
    return loaded


# fmt: off
CORRUPTED = [
    # place                        value                   message
    (("version",),                 1,                      r'version: expected 2 \(the format version\), found 1'),
    (("version",),                 "2",                    'version: expected 2'),
    (("version",),                 True,                   'version: expected 2'),
    (("dims",),                    None,                   'dims: expected a list, found null'),
    (("dims",),                    {"d0": [0, 9]},         'dims: expected a list'),
    (("dims", 0),                  ["d0", 0],              r'dims\[0\]: expected \[name, lower, upper\], found \["d0", 0\]'),
    (("dims", 0),                  "d0",                   r'dims\[0\]: expected a list, found "d0"'),
    (("dims", 0, 0),               7,                      r'dims\[0\]\[0\]: expected a string, found 7'),
    (("dims", 0, 1),               0.0,                    r'dims\[0\]\[1\]: expected an integer, found 0\.0'),
    (("dims", 0, 2),               "9",                    r'dims\[0\]\[2\]: expected an integer, found "9"'),
    (("dims", 0, 2),               True,                   r'dims\[0\]\[2\]: expected an integer, found true'),
    (("ranges", 0, 0),             "d0",                   'distinct names'),
    (("runtime", 0),               ["rt0", 0, 3],          r'runtime\[0\]: expected an object'),
    (("runtime", 0),               {},                     r'runtime\[0\]: expected an object with "variable", found {}'),
    (("runtime", 0, "variable"),   None,                   r'runtime\[0\]\.variable: expected a list'),
    (("runtime", 0, "source"),     [],                     r'runtime\[0\]\.source: expected the name of an instruction'),
    (("runtime", 0, "source"),     1.5,                    r'runtime\[0\]\.source: expected the name'),
    (("runtime", 0, "calls"),      "f",                    r'runtime\[0\]\.calls: expected a list'),
    (("runtime", 0, "calls"),      [3],                    r'runtime\[0\]\.calls\[0\]: expected a string'),
    (("runtime", 0, "index"),      [0],                    r'runtime\[0\]\.index\[0\]: expected a string'),
    (("runtime", 0, "index"),      ["d9"],                 r"runtime\[0\]\.index\[0\]: in `d9` at character 1: `d9` is not a variable"),
    (("runtime", 0, "clamp"),      [0],                    r'runtime\[0\]\.clamp: expected \[lower, upper\] or null'),
    (("runtime", 0, "clamp"),      {"lower": 0},           r'runtime\[0\]\.clamp: expected a list'),
    (("runtime", 0, "clamp"),      [0, None],              r'runtime\[0\]\.clamp\[1\]: expected an integer'),
    (("runtime", 0, "bounds"),     [0, 1],                 r'runtime\[0\]: expected an object without "bounds"'),
    (("results",),                 "d0",                   'results: expected a list'),
    (("results", 0),               None,                   r'results\[0\]: expected a string'),
    (("results", 0),               "d0 +",                 r"results\[0\]: in `d0 \+` at character 5: expected a variable"),
    (("results", 0),               "d0 mod 0",             r"results\[0\]: in `d0 mod 0` at character 4"),
    (("constraints", 0),           ["d0", 1],              r'constraints\[0\]: expected \[expression, lower, upper\]'),
    (("constraints", 0, 0),        "d0 ; 1",               r"constraints\[0\]\[0\]: in `d0 ; 1` at character 4"),
    (("grade",),                   "sure",                 'grade: expected "exact" or "may", found "sure"'),
    (("grade",),                   None,                   'grade: expected "exact" or "may", found null'),
    (("range",),                   [],                     'the JSON: expected an object without "range"'),
]

NO_JSON = [
    ("",                                   "invalid JSON: Expecting value: line 1 column 1"),
    ("{",                                  "invalid JSON"),
    ("[]",                                 "the JSON: expected an object, found"),
    ('"map"',                              "the JSON: expected an object"),
    ("7",                                  "the JSON: expected an object"),
    ("{}",                                 'the JSON: expected an object with "version"'),
    ('{"version": 2, "version": 2}',       "must not repeat a key"),
    ('{"version": NaN}',                   "version: expected 2"),
    ('{"version": ' + "9" * 9999 + "}",    "Exceeds the limit"),
    ("[" * 100_000,                        "nested too deeply"),
    (b"\xff",                              "can't decode"),
    (None,                                 "`text` must be a string or bytes, not None"),
    ({"version": 2},                       "`text` must be a string or bytes, not {.version.: 2}"),
]
# fmt: on


@pytest.mark.parametrize(
    "place, value, message", CORRUPTED, ids=[f"{row[0]}-{row[1]}" for row in CORRUPTED]
)
def test_json_errors_have_a_location(place: tuple[Any, ...], value: Any, message: str) -> None:
    corrupted = record()
    inner: Any = corrupted
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match=message):
        IndexingMap.from_json(json.dumps(corrupted))


@pytest.mark.parametrize("key", sorted(record()))
def test_each_field_is_required(key: str) -> None:
    corrupted = record()
    del corrupted[key]
    with pytest.raises(ValueError, match=f'expected an object with "{key}"'):
        IndexingMap.from_json(json.dumps(corrupted))


@pytest.mark.parametrize("key", sorted(record()["runtime"][0]))
def test_each_field_of_a_runtime_variable_is_required(key: str) -> None:
    corrupted = record()
    del corrupted["runtime"][0][key]
    with pytest.raises(ValueError, match=rf'runtime\[0\]: expected an object with "{key}"'):
        IndexingMap.from_json(json.dumps(corrupted))


@pytest.mark.parametrize("text, message", NO_JSON, ids=[str(row[0])[:20] for row in NO_JSON])
def test_json_that_is_not_a_map_is_rejected(text: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        IndexingMap.from_json(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(["d0", "exact", "d0 +", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(record())), inner)
    ),
    max_leaves=4,
)


@given(st.sampled_from(sorted(record())), JSON_VALUES)
@fuzz(300)
def test_any_other_value_is_a_value_error_or_a_map(key: str, value: Any) -> None:
    corrupted = record() | {key: value}
    try:
        restored = IndexingMap.from_json(json.dumps(corrupted))
    except ValueError:
        return
    assert IndexingMap.from_json(restored.to_json()) == restored
