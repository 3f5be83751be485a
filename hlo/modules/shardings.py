"""The shardings of instructions and the meshes of modules, as attributes state them.

XLA has shardings in ``sharding={...}``, and those of Shardy in ``frontend_attributes``:

>>> from hlo.formats.parser import parse
>>> module = parse('''HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=8]>}}
... ENTRY e {
...   p = f32[8,3] parameter(0), sharding={devices=[8,1]<=[8]}
...   ROOT n = f32[8,3] negate(p),
...     frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\\\"x\\\\"}, {}]>"}
... }''')
>>> print(module.entry["p"].sharding, module.entry.root.sharding, module.meshes["mesh"])
[axis_0, _] [x, _] x=8

Source: XLA ``xla/service/spmd/shardy/constants.h`` for the keys; ``xla/hlo/ir/hlo_sharding.cc``,
``Validate``, for the constraints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hlo.arguments import checked
from hlo.modules.module import Instruction, Module
from hlo.shapes.shape import Shape, TupleShape, leaves
from hlo.shardings.hlo_notation import read_sharding
from hlo.shardings.mesh import Axis, Mesh
from hlo.shardings.reading import OWNER, Context, check_rank, cursor_over
from hlo.shardings.sharding import Sharding
from hlo.shardings.shardy_notation import parse_meshes, read_manual_axes
from hlo.text.lexer import STRING, skip
from hlo.text.source import HloError, Span
from hlo.text.syntax import AttributeText, read_value

_KEY: Final = re.compile(r'"?([\w.\-]++)"?', re.ASCII)
_MANUAL: Final = "xla.sdy.manual_axes"
_STRING: Final = re.compile(STRING, re.DOTALL)


def meshes_of(module: Module) -> Mapping[str, Mesh]:
    """Return the meshes that the module header declares, by name.

    Raises:
        HloError: the header declares no valid meshes.
    """
    return module.memoised("meshes", lambda: _meshes(module))


def _meshes(module: Module) -> dict[str, Mesh]:
    attributes = module.attributes.get("frontend_attributes")
    span = frontend_attribute(attributes, "xla.sdy.meshes") if attributes else None
    return {} if span is None else parse_meshes(span)


def declared_partitions(module: Module) -> int:
    """Return the number of partitions that run a module whose header states none.

    A module with manual regions of Shardy runs on the devices of its mesh, as JAX lowers a
    ``shard_map``; another one on one device.

    >>> from hlo.formats.parser import parse
    >>> text = '''HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=4]>}}
    ... ENTRY e { p = f32[8] parameter(0)  ROOT c = f32[2] custom-call(p),
    ...   custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={
    ...     xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"x\\"}]>]>",
    ...     xla.sdy.manual_axes="#sdy<manual_axes{\\"x\\"}>"} }'''
    >>> [declared_partitions(parse(each)) for each in (text, text.replace("manual_axes", "m"))]
    [4, 1]
    """
    return module.memoised("declared_partitions", lambda: _declared_partitions(module))


def _declared_partitions(module: Module) -> int:
    sizes = {len(mesh.devices) for mesh in declared_meshes(module).values()}
    if len(sizes) != 1:
        return 1
    attributes = [i.attributes.get("frontend_attributes") for i in module.instructions]
    is_manual = any(_MANUAL in each.text for each in attributes if each is not None)
    return max(sizes) if is_manual else 1


def sharding_of(instruction: Instruction) -> Sharding | tuple[Sharding, ...] | None:
    """Return the sharding of an array, or those of a tuple's arrays, that attributes state.

    Raises:
        HloError: the text is not a sharding, or does not fit the mesh or the shape.
    """
    attribute = instruction.attributes.get("sharding")
    span = _span(attribute) if attribute else _shardy_span(instruction, "xla.sdy.sharding")
    return None if span is None else _read_sharding(instruction, span, bool(attribute))


def shardy_sharding(instruction: Instruction) -> Sharding | tuple[Sharding, ...] | None:
    """Return the sharding of an array, or those of a tuple's arrays, that Shardy's attribute has.

    Its axes have the names of a declared mesh.  None if there is none, or if it does not fit: XLA
    copies frontend attributes to instructions of other shapes.
    """
    span = _shardy_span(instruction, "xla.sdy.sharding")
    try:
        return None if span is None else _read_sharding(instruction, span, False)
    except HloError:
        return None


def _read_sharding(
    instruction: Instruction, span: Span, attribute: bool
) -> Sharding | tuple[Sharding, ...]:
    """Return the sharding in a text.

    Args:
        attribute: True for the attribute ``sharding``.
    """
    ranks = _ranks(instruction)
    is_tuple = isinstance(instruction.shape, TupleShape)
    cursor = cursor_over(span)
    cursor.owner = f"{OWNER} of `{instruction.name}`"
    context = _context(instruction.module, ranks)
    value = read_sharding(cursor, context)
    if isinstance(value, Sharding):
        shardings: Sequence[Sharding] = [value] * len(ranks)
        for rank in ranks:
            if not value.hints.any_rank:
                check_rank(cursor, span, value, rank)
    else:
        shardings = value
        if not is_tuple and attribute and ranks != [None]:
            raise cursor.fault("a list of shardings for an array", span)
        if len(shardings) != len(ranks) and not (len(shardings) == 1 and not ranks):
            label = f"{len(shardings)} shardings for {len(ranks)} arrays"
            raise cursor.fault(label, span)
    fitted = tuple([_fit_rank(s, r) for s, r in zip(shardings, ranks, strict=False)])
    return fitted if is_tuple else fitted[0]


def stated_sharding(instruction: Instruction) -> Sharding | tuple[Sharding, ...] | None:
    """Return `sharding_of`; None if the sharding is of frontend attributes that do not fit.

    Frontend attributes are free text: XLA copies them to instructions of other shapes.

    Raises:
        HloError: the value of ``sharding`` is not a sharding, or does not fit.
    """
    try:
        return sharding_of(instruction)
    except HloError:
        if "sharding" in instruction.attributes:
            raise
        return None


class IgnoredSharding(NamedTuple):
    """A sharding in frontend attributes that does not fit.

    Attributes:
        error: the fault; its message states that the sharding is ignored.
        instruction: the instruction; None for the meshes of the module.
    """

    error: HloError
    instruction: Instruction | None


@checked
def sharding_warnings(module: Module) -> list[IgnoredSharding]:
    """Return each sharding in frontend attributes that does not fit, in text order.

    The module is valid nevertheless: only `Instruction.sharding`, and a spec of `indexing.shard`
    for that very array, raise the error.

    >>> from hlo.formats.parser import parse
    >>> module = parse('''ENTRY e {
    ...   ROOT p = f32[] parameter(0), frontend_attributes={xla.sdy.sharding="any text"}
    ... }''')
    >>> [ignored.error.message for ignored in sharding_warnings(module)]
    ['invalid sharding of `p`, which is ignored']
    """
    faults: list[IgnoredSharding] = []
    try:
        meshes_of(module)
    except HloError as error:
        faults.append(_ignored_sharding(error, None))
    for instruction in module.instructions:
        text_of = instruction.text_of
        if text_of("frontend_attributes") is not None and text_of("sharding") is None:
            try:
                sharding_of(instruction)
            except HloError as error:
                faults.append(_ignored_sharding(error, instruction))
    return faults


def _ignored_sharding(error: HloError, instruction: Instruction | None) -> IgnoredSharding:
    verb = "are" if instruction is None else "is"
    message = f"{error.message}, which {verb} ignored"
    warning = HloError(message, error.span, error.code, error.label, error.notes, error.help)
    return IgnoredSharding(warning, instruction)


def declared_meshes(module: Module) -> Mapping[str, Mesh]:
    """Return `meshes_of`; nothing if their text, a frontend attribute, is invalid."""
    try:
        return meshes_of(module)
    except HloError:
        return {}


def region_shardings(instruction: Instruction, key: str) -> tuple[Sharding, ...]:
    """Return the shardings of the arrays that enter or leave a manual region.

    Args:
        instruction: a custom call at the border of the region.
        key: ``xla.sdy.in_shardings`` or ``xla.sdy.out_shardings``.

    Raises:
        HloError: there is no such attribute, or it does not fit the mesh.
    """
    span = _shardy_span(instruction, key)
    if span is None:
        cursor = cursor_over(instruction.span)
        raise cursor.fault(f"the call of a manual region has no `{key}`", instruction.span)
    value = read_sharding(cursor_over(span), _context(instruction.module, None))
    return (value,) if isinstance(value, Sharding) else value


def border_shardings(instruction: Instruction, key: str) -> list[Sharding]:
    """Return `region_shardings` by the manual axes only: those that divide arrays in the region.

    Raises:
        HloError: there is no such attribute, or it does not fit the mesh.
    """
    names = {axis.name for axis in manual_axes(instruction)}
    shardings = region_shardings(instruction, key)
    return [
        replace(s, dims=tuple([tuple([a for a in axes if a.name in names]) for axes in s.dims]))
        for s in shardings
    ]


def manual_axes(instruction: Instruction) -> tuple[Axis, ...]:
    """Return the axes of the manual region that a custom call enters or leaves."""
    span = _shardy_span(instruction, _MANUAL)
    return () if span is None else read_manual_axes(cursor_over(span))


def frontend_attribute(attributes: AttributeText, key: str) -> Span | None:
    """Return the value of a key of ``frontend_attributes``, without the quotes of a string.

    >>> text = AttributeText.of('{a="b,c=1",c={x="y"}}')
    >>> frontend_attribute(text, "a").text, frontend_attribute(text, "c").text
    ('b,c=1', '{x="y"}')
    """
    cursor = cursor_over(_span(attributes))
    cursor.owner = "invalid frontend attributes"
    cursor.expect("{")
    while not cursor.accepts("}"):
        name = cursor.need(_KEY, "the name of an attribute")
        cursor.expect("=")
        start = skip(cursor.source.text, cursor.position)
        cursor.position = read_value(cursor.source, start)
        if name[1] == key:
            text = cursor.source.text[start : cursor.position]
            quotes = 1 if _STRING.fullmatch(text) else 0
            return cursor.source.span(start + quotes, cursor.position - quotes)
        cursor.accepts(",")
    return None


def _shardy_span(instruction: Instruction, key: str) -> Span | None:
    attributes = instruction.attributes.get("frontend_attributes")
    return frontend_attribute(attributes, key) if attributes else None


def _span(attribute: AttributeText) -> Span:
    """Return the location of a value; of one that is not part of its file, its text."""
    span = attribute.span
    return span if span.text == attribute.text else AttributeText.of(attribute.text).span


def _context(module: Module, ranks: Sequence[int | None] | None) -> Context:
    return Context(declared_meshes(module), int(module.header("num_partitions", 1)), ranks)


def _ranks(instruction: Instruction) -> list[int | None]:
    shapes = [leaf for _, leaf in leaves(instruction.shape)]
    return [len(shape.dims) if isinstance(shape, Shape) else None for shape in shapes]


def _fit_rank(sharding: Sharding, rank: int | None) -> Sharding:
    """Return a sharding without dimensions as that of an array of this rank."""
    if rank is None or len(sharding.dims) == rank:
        return sharding
    open_dims = tuple(range(rank)) if sharding.hints.is_unknown else ()
    hints = replace(sharding.hints, open_dims=open_dims)
    return replace(sharding, dims=((),) * rank, hints=hints)
