"""Shardings in all notations: read, compared, printed; XLA's own class is the oracle."""
# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlo
from hlo.modules.shardings import frontend_attribute, sharding_warnings
from hlo.shardings.hlo_notation import parse_sharding
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.printing import hlo_text, shardy_text
from hlo.shardings.sharding import Hints, Sharding, Version
from hlo.shardings.shardy_notation import parse_meshes
from hlo.shardings.short_notation import parse_spec
from hlo.shardings.tiles import iota_devices, iota_form
from hlo.text.source import HloError
from hlo.text.syntax import AttributeText

# As XLA prints them; most are from ``hlo_parser_test.cc``.
HLO = [
    r"",
    r"{}",
    r"{replicated}",
    r"{manual}",
    r"{unreduced}",
    r"{unknown}",
    r"{maximal device=42}",
    r'{replicated shard_as 1 metadata={op_name="a"}}',
    r"{manual shard_as 1}",
    r"{devices=[2,2]<=[4]}",
    r"{devices=[2,2]0,2,1,3}",
    r"{devices=[2,2]0,1,2,3 last_tile_dim_replicate}",
    r"{devices=[2,2]0,1,2,3}",
    r"{devices=[3]0,2,1}",
    r"{devices=[8,1,1]<=[8]}",
    r"{devices=[2,1,4]<=[8]}",
    r"{devices=[2,3]<=[2,3]T(1,0)}",
    r"{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
    r"{devices=[4,2]<=[4,2]T(1,0) last_tile_dim_replicate}",
    r"{devices=[2,2,2,2]<=[2,2,4]T(2,1,0) last_tile_dims={manual, replicated}}",
    r"{devices=[2,2,2,2]0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15 last_tile_dims={manual, replicated}}",
    r"{devices=[2,2,2,2]<=[16] last_tile_dims={manual, replicated} shard_like 1}",
    r"{devices=[1,2,2,2]<=[8] last_tile_dims={manual, unreduced, replicated}}",
    r'{devices=[2,2]<=[4] metadata={op_name="a, b}" source_line=3}}',
    r"{{replicated}, {maximal device=5}}",
    r"{{replicated}, {devices=[2,2]<=[4]}, {manual}, {manual}, {manual}, /*index=5*/{manual}, {unknown}}",
    r"{mesh[], replicated}",
    r"{maximal_mesh[device_id=5]}",
    r"{mesh['a'=2,'b'=4], replicated}",
    r"{mesh['a'=2,'b'=4], manual}",
    r"{mesh['a'=2,'b'=4], unreduced}",
    r"""{mesh['a'=2,'b'=4], replicated, metadata={{op_name="foo"}}}""",
    r"{mesh['a'=2,'b'=4,'c'=3,'d'=8], [{'a'}, {'c', 'b'}]}",
    r"{mesh['a'=2,'b'=4,'c'=3,'d'=8], [{'b', 'a'}, {'c', 'd', ?}]}",
    r"{mesh['a'=2,'b'=4,'c'=3,'d'=8], [{'b':(2)2}, {'d':(4)2, 'c', ?}]}",
    r"{mesh['a'=2,'b'=4,'c'=4,'d'=2], device_ids=([4,16]T(1,0)), [{'a'}]}",
    r"{mesh['x'=2,'y'=2], device_ids=(0,2,1,3), [{'x'}]}",
    r"{mesh['a'=2,'b'=4], [{'a'}], replicated={'b'}}",
    r"{mesh['a.b'=2,'<axis> def'=4,'z/w'=2], [{'a.b'}, {'<axis> def':(2)2, 'z/w'}]}",
    r"{mesh['a'=2,'b'=4,'c'=3,'d'=8], [{}, {'b'}], unreduced={'d':(4)2}}",
    r"{mesh['x'=2,'y'=2], [{}, {}]}",
    r"{mesh['x'=2,'y'=2], [{?}, {}]}",
    r"""{mesh['a'=2,'b'=4,'c'=8,'d'=8], [{'a'}], replicated={'c'}, unreduced={'d':(4)2}, manual={'b':(2)2}, metadata={{op_name="foo"}, {op_name="bar"}}}""",
    r"{{mesh['a'=2,'b'=2], [{'a'}, {}]}, {devices=[2,2]<=[4] last_tile_dim_replicate}}",
    r"",
][1:-1]

NOT_IN_THIS_XLA = ["{mesh['x'=2], [{}], unreduced=max{'x'}}"]

# XLA's canonical form of texts that it does not print itself.
CANONICAL = {
    "{ devices=[2, 2] <= [4] }": "{devices=[2,2]<=[4]}",
    "{last_tile_dim_replicate devices=[2,2]<=[4]}": "{devices=[2,2]<=[4] last_tile_dim_replicate}",
    "{devices=[2,2]1,0,3,2 last_tile_dim_replicate}": (
        "{devices=[2,2]0,1,2,3 last_tile_dim_replicate}"
    ),
    "{devices=[2,4]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}": (
        "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"
    ),
    "{devices=[2,4]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}": (
        "{devices=[2,4]<=[8] last_tile_dim_replicate}"
    ),
    "{devices=[1,2,2]<=[4] last_tile_dims={replicated, manual}}": (
        "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual, replicated}}"
    ),
    "{devices=[1,2,2]3,2,1,0 last_tile_dims={manual,replicated}}": (
        "{devices=[1,2,2]2,3,0,1 last_tile_dims={manual, replicated}}"
    ),
    "{devices=[1,2,2]<=[4] last_tile_dims={manual, manual}}": "{manual}",
    "{devices=[1,4]<=[4] last_tile_dim_replicate}": "{replicated}",
    "{devices=[4,1]<=[4] last_tile_dim_replicate}": "{devices=[4]<=[4]}",
    "{devices=[4,1]<=[1,4,1]T(2,1,0)}": "{devices=[4,1]<=[4]}",
    "{mesh['x'=2,'y'=2], []}": "{mesh['x'=2,'y'=2], replicated}",
    "{mesh['x'=2,'y'=2],[{ 'x','y' }]}": "{mesh['x'=2,'y'=2], [{'x', 'y'}]}",
}

# As Shardy prints them (``tensor_sharding_parse_print.mlir``).
SHARDY = [
    "",
    "#sdy.sharding_per_value<[]>",
    '#sdy.sharding_per_value<[<@foo, [], replicated={"b"}>]>',
    '#sdy.sharding_per_value<[<@foo, [{"a"}, {}]>, <@bar, [{}]>]>',
    '#sdy.sharding_per_value<[<mesh<["a"=2, "b"=4]>, [{"a"}, {}]>, <@foo, [{"a"}, {}]>]>',
    '#sdy.sharding<mesh<["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>, [{"x"}, {}]>',
    '#sdy.sharding<@foo, [{"a", "b", ?}, {?}]>',
    '#sdy.sharding<@foo, [{"a"}, {"b":(2)2}]>',
    '#sdy.sharding<@foo, [{"a"}, {}], replicated={"b":(2)2}>',
    '#sdy.sharding<@bar, [{"a":(1)2, "b", "a":(2)2}, {}]>',
    '#sdy.sharding<@bar, [{"a":(2)2, "a":(1)2}, {}]>',
    '#sdy.sharding<@foo, [{"a"}p0, {"b", ?}p12]>',
    '#sdy.sharding<@foo, [{}, {}], replicated={"a"}, unreduced={"b"}>',
    '#sdy.sharding<@foo, [{}], unreduced=max{"a"}>',
    "#sdy.sharding<@maximal, []>",
    "",
][1:-1]

MESHES = parse_meshes(
    '{foo = #sdy.mesh<["a"=2, "b"=4]>, bar = #sdy.mesh<["a"=4, "b"=2]>, '
    "maximal = #sdy.mesh<[], device_ids=[3]>}"
)


@pytest.mark.parametrize("text", [*HLO, *NOT_IN_THIS_XLA])
def test_hlo_texts_are_printed_as_they_were_read(text: str) -> None:
    assert hlo_text(parse_sharding(text)) == text


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_other_texts_are_printed_in_the_canonical_form_of_xla(text: str, canonical: str) -> None:
    sharding = parse_sharding(text)
    assert hlo_text(sharding) == canonical
    assert isinstance(sharding, Sharding)
    again = parse_sharding(canonical, devices=sharding.mesh.size)
    assert isinstance(again, Sharding)
    if sharding.dims and len(again.dims) == len(sharding.dims):
        assert sharding.same_distribution(again)


@pytest.mark.parametrize("text", SHARDY)
def test_texts_of_shardy_are_printed_as_they_were_read(text: str) -> None:
    assert shardy_text(parse_sharding(text, MESHES)) == text
    escaped = text.replace('"', '\\"')  # in a string of HLO
    assert shardy_text(parse_sharding(escaped, MESHES)) == text


def test_hlo_texts_are_those_of_xla() -> None:
    xla_client = pytest.importorskip("jax._src.lib").xla_client
    for text in [*HLO, *CANONICAL]:
        if "metadata" not in text:  # XLA's class does not print it
            assert hlo_text(parse_sharding(text)) == str(xla_client.HloSharding.from_string(text))


# ---------------------------------------------------------------- random shardings


@st.composite
def tile_texts(draw: st.DrawFn) -> str:
    """Permuted iotas and lists of devices, with sub-groups; not always in canonical form."""
    reshape = draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(reshape))))
    rest, tiles = prod(reshape), []
    for _ in range(draw(st.integers(0, 3))):
        tiles.append(draw(st.sampled_from([k for k in range(1, rest + 1) if rest % k == 0])))
        rest //= tiles[-1]
    kinds = draw(st.lists(st.sampled_from(["manual", "replicated", "unreduced"]), max_size=3))
    groups: list[int] = []
    for _ in kinds[1:]:
        groups.append(draw(st.sampled_from([k for k in range(1, rest + 1) if rest % k == 0])))
        rest //= groups[-1]
    tiles += [*groups, rest]
    if prod(reshape) == 1:  # XLA has no tiles of a single device
        return "{replicated}"
    listed = ",".join(map(str, tiles))
    last = f" last_tile_dims={{{', '.join(kinds)}}}" if kinds else ""
    if draw(st.booleans()):
        transpose = f"T({','.join(map(str, order))})" if len(order) > 1 else ""
        iota = f"[{','.join(map(str, reshape))}]{transpose}"
        return f"{{devices=[{listed}]<={iota}{last}}}"
    devices = draw(st.permutations(range(prod(reshape))))
    if draw(st.booleans()):
        devices = list(iota_devices(reshape, order))
    return f"{{devices=[{listed}]{','.join(map(str, devices))}{last}}}"


@given(tile_texts())
def test_random_tiles_are_those_of_xla(text: str) -> None:
    xla_client = pytest.importorskip("jax._src.lib").xla_client
    theirs = xla_client.HloSharding.from_string(text)
    sharding = parse_sharding(text)
    assert isinstance(sharding, Sharding)
    printed = hlo_text(sharding)
    if "<=" in str(theirs) or "<=" not in printed:  # XLA lists devices when it sorts some groups
        assert printed == str(theirs)
    assert hlo_text(parse_sharding(printed)) == printed
    if "devices" in text:
        check_tiles(sharding, text, theirs)


def check_tiles(sharding: Sharding, text: str, theirs: object) -> None:
    """Compare the number of the shard of each device with its place in the tiles."""
    from jax._src.lib import xla_client

    untyped = text.partition(" last_tile_dims")[0].rstrip("}") + "}"
    tiles = xla_client.HloSharding.from_string(untyped)
    devices = np.array(tiles.tile_assignment_devices()).reshape(tiles.tile_assignment_dimensions())
    for index in np.ndindex(devices.shape):
        numbers = [sharding.number(int(devices[index]), k) for k in range(len(sharding.dims))]
        assert numbers == list(index[: len(sharding.dims)]), text


@st.composite
def named_shardings(draw: st.DrawFn) -> Sharding:
    sizes = draw(st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=3))
    devices = list(range(prod(sizes)))
    if draw(st.booleans()):
        devices = draw(st.permutations(devices))
    mesh = Mesh.of({f"x{k}": size for k, size in enumerate(sizes)}, devices)
    cut = [Axis("x0", 1, 2), Axis("x0", 2, sizes[0] // 2)] if sizes[0] > 3 else [Axis("x0")]
    axes = draw(st.permutations([*cut, *[Axis(f"x{k}") for k in range(1, len(sizes))]]))
    places = [draw(st.integers(0, 5)) for _ in axes]
    dims = tuple([tuple([a for a, p in zip(axes, places, strict=True) if p == k]) for k in (0, 1)])
    order = mesh.parts(axes)
    rest = {
        p: tuple([a for a in order if a in axes and places[axes.index(a)] == p]) for p in (2, 3, 4)
    }
    hints = Hints(open_dims=draw(st.sampled_from([(), (1,), (0, 1)])), replicated=rest[2])
    return Sharding(mesh, dims, tuple((a, "sum") for a in rest[3]), rest[4], hints)


@given(named_shardings())
def test_random_shardings_keep_their_distribution_in_every_notation(sharding: Sharding) -> None:
    versions: tuple[Version, ...] = (1, 2, 3)
    for version in versions:
        text = hlo_text(sharding, version)
        again = parse_sharding(text, devices=sharding.mesh.size)
        assert isinstance(again, Sharding)
        assert hlo_text(again) == text
        if len(again.dims) == len(sharding.dims):
            assert sharding.same_distribution(again)
            assert brute_force(sharding) == brute_force(again)
    if not sharding.manual:
        text = shardy_text(sharding)
        assert shardy_text(parse_sharding(text)) == text


@given(named_shardings())
def test_random_shardings_are_printed_as_xla_prints_them(sharding: Sharding) -> None:
    xla_client = pytest.importorskip("jax._src.lib").xla_client
    text = hlo_text(sharding, 3)
    theirs = xla_client.HloSharding.from_string(text)
    assert str(theirs) == text
    tiles = str(theirs.v3_to_v2_sharding())
    if "<=" in tiles:
        assert hlo_text(sharding, 2) == tiles


def brute_force(sharding: Sharding) -> object:
    """Return what each device holds, one device at a time."""
    mesh, rank = sharding.mesh, len(sharding.dims)
    held = {d: [sharding.number(d, k) for k in range(rank)] for d in mesh.devices}
    labels = {
        "partial": {d: mesh.number(d, [axis for axis, _ in sharding.partial]) for d in held},
        "manual": {d: mesh.number(d, sharding.manual) for d in held},
    }
    pairs = [(a, b) for a, b in combinations(sorted(held), 2) if held[a] == held[b]]
    subsets = [["partial", "manual"], ["partial"], ["manual"], []]
    alike = [
        [(a, b) for a, b in pairs if all(labels[k][a] == labels[k][b] for k in s)] for s in subsets
    ]
    return held, *alike


@given(named_shardings(), named_shardings())
def test_distributions_are_equal_if_every_device_holds_the_same(a: Sharding, b: Sharding) -> None:
    assert a.same_distribution(a)
    shards = [[s.shards(k) for k in range(2)] for s in (a, b)]
    same = shards[0] == shards[1] and brute_force(a) == brute_force(b)
    assert a.same_distribution(b) == same


@given(st.permutations(range(8)))
def test_a_list_of_devices_is_an_iota_only_if_the_iota_gives_it(devices: list[int]) -> None:
    form = iota_form(devices)
    assert form is None or list(iota_devices(*form)) == devices


def test_the_notations_of_one_distribution_are_equal() -> None:
    texts = ["{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}"]
    texts += ["{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"]
    texts += ["{mesh['x'=2,'y'=2], [{'y'}, {}]}", "{mesh['x'=4], [{'x':(2)2}, {?}]}"]
    texts += ['#sdy.sharding<mesh<["x"=4]>, [{"x":(2)2}, {}], replicated={"x":(1)2}>']
    shardings = [parse_sharding(text) for text in texts]
    for each in shardings:
        assert isinstance(each, Sharding)
        assert isinstance(shardings[0], Sharding)
        assert each.same_distribution(shardings[0])
        assert each.to_hlo(2) == texts[1]


# ---------------------------------------------------------------- errors


# fmt: off
REFUSED = [
    # text                                              place                 label
    ("{mesh['x'=2], [{'y'}]}",                          "'y'",                "the mesh has no axis `y`: its axes are x=2"),
    ("{mesh['x'=2], [{'x'}, {'x'}]}",                   "'x'",                "axis x is used twice"),
    ("{mesh['x'=8], [{'x':(1)4}, {'x':(2)2}]}",         "'x':(2)2",           "the sub-axes x:(1)4 and x:(2)2 overlap"),
    ("{mesh['x'=8], [{'x'}], replicated={'x':(2)2}}",   "'x':(2)2",           "the sub-axes x and x:(2)2 overlap"),
    ("{mesh['x'=6], [{'x':(1)2}, {'x':(3)2}]}",         "'x':(3)2",           "the sub-axes x:(1)2 and x:(3)2 do not divide each other"),
    ("{mesh['x'=6], [{'x':(2)2}]}",                     "'x':(2)2",           "the sub-axis x:(2)2 does not divide x=6: 6 is not a multiple of 4"),
    ("{mesh['x'=2], [{'x':(1)2}]}",                     "'x':(1)2",           "x:(1)2 is the whole axis x=2"),
    ("{mesh['x'=2,'x'=2], [{'x'}]}",                    "'x'",                "axis `x` is named twice"),
    ("{mesh['x'=0], [{'x'}]}",                          "0",                  "the size of an axis must be positive, not 0"),
    ("{mesh['x'=2], device_ids=(0,1,2), [{'x'}]}",      "(0,1,2)", "3 devices for a mesh of 2: x=2"),
    ("{mesh['x'=2,'y'=2], device_ids=(0,1,2,4), [{}]}",  "(0,1,2,4)",          "expected a permutation of the device IDs 0 to 3"),
    ("{mesh['x'=4], device_ids=([1048576,1048576]), [{}]}", "([1048576,1048576])", "1099511627776 devices for a mesh of 4"),
    ("{mesh['x'=4], [{'x':(2)1}]}",                     "'x':(2)1",           "the size of the sub-axis x:(2)1 must be at least 2"),
    ("{mesh['x'=4], [{2}]}",                            "2",                  "the mesh has no axis `2`: its axes are x=4"),
    ("{mesh[x=2], [{x}]}",                              "x",                  "expected the name of an axis in quotes"),
    ("{devices=[2,2]0,1,2}",                            "devices=[2,2]0,1,2", "3 devices for 4 tiles"),
    ("{devices=[2,2]<=[8]}",                            "devices=[2,2]<=[8]", "8 devices for 4 tiles"),
    ("{devices=[2,2]0,1,2,2}",                          "devices=[2,2]0,1,2,2", "device 2 is named twice"),
    ("{devices=[2]<=[2,1]T(0,0)}",                      "(0,0)",              "expected a permutation of 2 dimensions"),
    ("{devices=[2]<=[2] last_tile_dims={manual, manual}}", "devices=[2]<=[2] last_tile_dims={manual, manual}", "2 kinds for 1 dimensions of tiles"),
    ("{replicate}",                                     "replicate",          "`replicate` is not a word of shardings"),
    ("{maximal}",                                       "maximal",            "expected `device=` and its number"),
    ("{replicated",                                     "d",                  "expected devices=[...] or one of replicated, manual, unreduced, unknown, maximal"),
    ("{replicated} x",                                  "x",                  "expected the end of the sharding"),
    ('#sdy.sharding<@fo, [{"a"}]>',                     "fo",                 "no mesh is named `fo`"),
    ('#sdy.sharding<@foo, [{"c"}]>',                    '"c"',                "the mesh has no axis `c`: its axes are a=2,b=4"),
    ('#sdy.sharding<@foo, [{?, "a"}]>',                 ",",                  "expected `}`"),
    ('#sdy.sharding<@foo, [{"a"}], manual={"b"}>',      "manual",             "expected `replicated=` or `unreduced=`"),
]
# fmt: on


@pytest.mark.parametrize(("text", "place", "label"), REFUSED)
def test_texts_that_are_no_shardings_are_refused_at_their_place(
    text: str, place: str, label: str
) -> None:
    with pytest.raises(HloError) as caught:
        parse_sharding(text, MESHES)
    assert caught.value.label == label
    assert caught.value.span.text.rstrip("}") == place.rstrip("}")


def module(parameter: str, attributes: str) -> hlo.Module:
    return hlo.parse(
        f"HloModule m, num_partitions=8, frontend_attributes={{xla.sdy.meshes={{mesh = "
        f'#sdy.mesh<["x"=4, "y"=2]>}}}}\nENTRY e {{\n  ROOT p = {parameter}, {attributes}\n}}'
    )


SDY = 'frontend_attributes={{xla.sdy.sharding="#sdy.sharding<{}>"}}'

# fmt: off
ASKED = [
    # shape            attributes                                               shardings
    ("f32[8,3]",       "sharding={devices=[4,2]<=[8]}",                         "[axis_0, axis_1]"),
    ("f32[8,3]",       "sharding={replicated}",                                 "[_, _]"),
    ("f32[8,3]",       "sharding={maximal device=3}",                           "[_, _]"),
    ("f32[8,3]",       SDY.format(r'@mesh, [{\"y\", \"x\"}, {}]'),              "[(y,x), _]"),
    ("f32[]",          "sharding={unreduced}",                                  "[] sum(axis_0)"),
    ("f32[8]",         'metadata={op_name="sharding={devices}"}',               "None"),
    ("(f32[8], s32[])", "sharding={{devices=[8]<=[8]}, {replicated}}",          "[axis_0] []"),
    ("(f32[8], f32[4,2])", "sharding={replicated}",                             "[_] [_, _]"),
    ("token[]",        "sharding={maximal device=0}",                           "[]"),
    ("()",             "sharding={{replicated}}",                               ""),
]
FAULTY = [
    ("f32[8,3]",       "sharding={devices=[8]<=[8]}",                           "1 dimension for an array of rank 2"),
    ("f32[8,3]",       SDY.format(r'@mesh, [{\"x\"}, {}, {}]'),                 "3 dimensions for an array of rank 2"),
    ("f32[8,3]",       "sharding={{devices=[8,1]<=[8]}}",                       "a list of shardings for an array"),
    ("(f32[8], s32[])", "sharding={{replicated}}",                              "1 shardings for 2 arrays"),
    ("(f32[8], s32[])", "sharding={{replicated}, {devices=[8]<=[8]}}",          "1 dimension for an array of rank 0"),
    ("(f32[8], s32[])", "sharding={devices=[8]<=[8]}",                          "1 dimension for an array of rank 0"),
    ("f32[8,3]",       "sharding={nonsense}",                                   "`nonsense` is not a word of shardings"),
    ("f32[8,3]",       SDY.format(r'@mash, [{\"x\"}, {}]'),                     "no mesh is named `mash`"),
]
# fmt: on


@pytest.mark.parametrize(("shape", "attributes", "shown"), ASKED)
def test_an_instruction_has_the_sharding_of_its_attributes(
    shape: str, attributes: str, shown: str
) -> None:
    sharding = module(f"{shape} parameter(0)", attributes).entry.root.sharding
    listed = sharding if isinstance(sharding, tuple) else (sharding,)
    assert " ".join(map(str, listed)) == shown


@pytest.mark.parametrize(("shape", "attributes", "label"), FAULTY)
def test_a_module_with_an_invalid_sharding_loads_and_its_sharding_has_an_error(
    shape: str, attributes: str, label: str
) -> None:
    root = module(f"{shape} parameter(0)", attributes).entry.root
    assert root.opcode == "parameter"
    with pytest.raises(HloError) as caught:
        _ = root.sharding
    assert caught.value.label == label
    assert caught.value.span.line == 3
    assert caught.value.span.text in str(root)
    is_free_text = attributes.startswith("frontend_attributes")
    warnings = sharding_warnings(root.module)
    faults = [each.error for each in warnings] if is_free_text else hlo.verify(root.module)
    owner = "invalid sharding of `p`"
    assert caught.value.message == owner
    ignored = f"{owner}, which is ignored" if is_free_text else owner
    assert [str(error).replace(ignored, owner) for error in faults] == [str(caught.value)]
    assert [error.message for error in faults] == [ignored]
    assert not is_free_text or hlo.verify(root.module) == []


def test_meshes_of_a_module_header() -> None:
    meshes = module("f32[] parameter(0)", "sharding={replicated}").meshes
    assert {name: str(mesh) for name, mesh in meshes.items()} == {"mesh": "x=4,y=2"}
    text = AttributeText.of('{a="1",xla.sdy.meshes={m = #sdy.mesh<[]>}}')
    span = frontend_attribute(text, "xla.sdy.meshes")
    assert span is not None
    assert parse_meshes(span) == {"m": Mesh((), ())}


# ---------------------------------------------------------------- short notation


MESH = Mesh.parse("x=4,batch=2")

# fmt: off
SPECS = [
    ("x,_",             "[x, _]"),
    ("_,(batch,x)",     "[_, (batch,x)]"),
    ("[x, _]",          "[x, _]"),
    (" x:(2)2 , _ ",    "[x:(2)2, _]"),
    ("(x:(1)2,batch)",  "[(x:(1)2,batch)]"),
    ("",                "[]"),
    (("x", None),       "[x, _]"),
    ((("x", "batch"), None), "[(x,batch), _]"),
    ((None, Axis("x", 1, 2)), "[_, x:(1)2]"),
    (("batch", "x:(1)2"), "[batch, x:(1)2]"),
]
REFUSED_SPECS = [
    ("bath,_",          "bath",     "the mesh has no axis `bath`: its axes are x=4,batch=2", "did you mean `batch`?"),
    ("x,x",             "x",        "axis x is used twice", ""),
    ("x:(3)2",          "x:(3)2",   "the sub-axis x:(3)2 does not divide x=4: 4 is not a multiple of 6", ""),
    ("(x,_",            "_",        "expected an axis of the mesh, or _", ""),
    ("x;_",             ";",        "expected `,` or the end", ""),
    ("_,_,x",           "x",        "the array has rank 2", ""),
]
# fmt: on


@pytest.mark.parametrize(("spec", "shown"), SPECS)
def test_short_notation(spec: object, shown: str) -> None:
    assert str(parse_spec(spec, MESH)) == shown  # type: ignore[arg-type]  # any row


@pytest.mark.parametrize(("spec", "place", "label", "repair"), REFUSED_SPECS)
def test_short_texts_are_refused_at_their_place(
    spec: str, place: str, label: str, repair: str
) -> None:
    with pytest.raises(HloError) as caught:
        parse_spec(spec, MESH, rank=2)
    error = caught.value
    assert (error.label, error.span.text, error.help) == (label, place, repair)


def test_specs_of_jax() -> None:
    spec = pytest.importorskip("jax.sharding").PartitionSpec
    assert str(parse_spec(spec("x", ("batch",)), MESH, rank=3)) == "[x, batch, _]"
    with pytest.raises(ValueError, match="no axis `z`"):
        parse_spec(spec("z"), MESH)
    with pytest.raises(ValueError, match="rank 1"):
        parse_spec(spec("x", None), MESH, rank=1)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("x", "expected `=`"),
        ("x=4,x=2", "axis `x` is named twice"),
        ("x=0", "the size of an axis must be positive, not 0"),
        ("x=4;y=2", "expected `,` or the end"),
        ("", "expected the name of an axis"),
        ("x=2000000", "2000000 devices, at most 1048576 are supported"),
    ],
)
def test_meshes_are_refused_at_their_place(text: str, label: str) -> None:
    with pytest.raises(HloError) as caught:
        Mesh.parse(text)
    assert caught.value.label == label


def test_values_that_are_no_shardings_are_refused() -> None:
    mesh = Mesh.of({"x": 4})
    with pytest.raises(ValueError, match="1 device for a mesh of 4"):
        Mesh.of({"x": 4}, [0])
    with pytest.raises(ValueError, match="no axis `y`"):
        Sharding(mesh, ((Axis("y"),),))
    with pytest.raises(ValueError, match="axis x is used twice"):
        Sharding(mesh, ((Axis("x"),), (Axis("x"),)))
    with pytest.raises(ValueError, match="'mean' is not one of"):
        Sharding(mesh, (), ((Axis("x"), "mean"),))


def test_what_a_notation_cannot_express_is_refused() -> None:
    mesh = Mesh.of({"x": 4})
    product = Sharding(mesh, (), ((Axis("x"), "prod"),))
    largest = Sharding(mesh, (), ((Axis("x"), "max"),))
    assert largest.to_hlo(3) == "{mesh['x'=4], [], unreduced=max{'x'}}"
    with pytest.raises(ValueError, match="no partial values other than sums"):
        largest.to_hlo(2)
    with pytest.raises(ValueError, match="prod"):
        product.to_hlo(3)
    with pytest.raises(ValueError, match="no manual axes"):
        Sharding(mesh, (), manual=(Axis("x"),)).to_shardy()


@pytest.mark.parametrize("number", [-1, 2**63, 10**30])
@pytest.mark.parametrize(
    "sharding",
    [
        "{{maximal device={}}}",
        "{{devices=[2]0,{}}}",
        "{{maximal_mesh[device_id={}]}}",
        "{{mesh['x'=2], device_ids=(0,{}), [{{'x'}}]}}",
    ],
)
def test_the_number_of_a_device_has_63_bits(sharding: str, number: int) -> None:
    text = f"ENTRY e {{ ROOT p = f32[8] parameter(0), sharding={sharding.format(number)} }}"
    (error,) = hlo.verify(hlo.parse(text))
    assert text.index("{", 9) < error.span.start < len(text)
