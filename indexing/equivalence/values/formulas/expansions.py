"""Ops that are defined by other ops: the definition is HLO text, as XLA's expanders write it.

Definitions are used for programs that are not proved otherwise, so that an op which both programs
have is compared as it is.  Calls of libraries that compute an op of HLO are always that op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import hlo
from hlo.modules.module import Computation, Instruction, Module
from hlo.shapes.shape import Shape
from indexing.dataflow.needed import dependencies_of
from indexing.devices.devices import Devices
from indexing.equivalence.values.formulas.applications import Bodies, Frame
from indexing.equivalence.values.formulas.numbering import NumberedArray
from indexing.equivalence.values.formulas.single_updates import is_single_update
from indexing.equivalence.values.formulas.sorts import is_unstable_sort
from indexing.equivalence.values.laws.exact import NARROW
from indexing.equivalence.values.terms.terms import Formula
from indexing.ops.collectives import AllToAll
from indexing.ops.control import callees
from indexing.ops.custom_call import target_of
from indexing.ops.element import OpaqueRule, element_of
from indexing.ops.ragged_dot import RaggedDot
from indexing.ops.targets.known_values import KnownValues

PROMOTED: Final = "all-reduce(x) in bf16 = convert(all-reduce(convert(x)))"
RAGGED: Final = "ragged-dot = dot of the rows of each group"
LIBRARY: Final = "library call = activation(alpha * product + beta * matrix + bias)"
SELECT_AND_SCATTER: Final = "select-and-scatter = scatter(arg-select(windows))"


@dataclass(frozen=True, slots=True)
class Expansion:
    """The definition of an op.

    Attributes:
        text: returns an HLO module whose entry takes the operands; "" if it is not defined so.
        law: the name under which uses are counted; "" if the definition is exact.
    """

    text: Callable[[Instruction], str]
    law: str = ""


def expanded_element(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return an element of an op by its definition; None if it has none."""
    instruction = array.instruction
    assert instruction is not None
    expansion = EXPANSIONS.get(instruction.opcode) if bodies.expands else None
    text = "" if expansion is None else expansion.text(instruction)
    if expansion is None or not text:
        return None
    if expansion.law:
        bodies.trusted[expansion.law] += 1
    result = bodies.numbering.inline(_parse_once(text).entry, array.operands)
    return bodies.body(result[array.path], frame)


def called_element(bodies: Bodies, array: NumberedArray, frame: Frame) -> Formula | None:
    """Return an element of a call of a library by ops of HLO; None if it is not defined so.

    A call that both programs make of equal operands needs no definition that is not exact.
    """
    instruction = array.instruction
    assert instruction is not None
    op = instruction.op
    if not isinstance(op, KnownValues) or not op.is_value(instruction, array.path):
        return None
    if not isinstance(element_of(instruction, array.leaf), OpaqueRule):
        return None
    definition = op.definition(instruction)
    if definition is None:
        return None
    if not definition.is_exact:
        if bodies.is_in_both(array):
            return None
        bodies.trusted[LIBRARY] += 1
    entry = _parse_once(f"{_header(instruction)}{definition}").entry
    result = bodies.numbering.inline(entry, array.operands)
    return bodies.body(result[array.path or (0,)], frame)


@lru_cache(maxsize=64)
def _parse_once(text: str) -> Module:
    return hlo.parse(text)


def has_definitions(roots: Iterable[Instruction]) -> bool:
    """Return True if definitions may change the formulas of instructions."""
    seen: set[Computation] = set()
    pending = [dependencies_of(list(roots))]
    while pending:
        for instruction in pending.pop():
            if _has_definition(instruction):
                return True
            for called in instruction.called_computations:
                if called not in seen:
                    seen.add(called)
                    pending.append(list(called))
    return False


def _has_definition(instruction: Instruction) -> bool:
    """Return True if a definition may change the formula of an instruction itself."""
    is_defined = instruction.opcode in DEFINED or target_of(instruction) == "TopK"
    return is_defined or is_single_update(instruction) or is_unstable_sort(instruction)


def _plain(shape: object) -> Shape:
    assert isinstance(shape, Shape)
    return shape.with_layout(None)


def _with_callees(*computations: Computation) -> str:
    """Return the text of computations and of those that they call."""
    needed: dict[Computation, None] = {}
    pending = list(computations)
    while pending:
        computation = pending.pop()
        if computation not in needed:
            needed[computation] = None
            pending += [called for i in computation for called in i.called_computations]
    return "\n\n".join([str(computation) for computation in list(needed)[::-1]])


def _select_and_scatter(instruction: Instruction) -> str:
    """``scatter(init, arg-select(windows), source)``: the indices of selected elements are reduced.

    Source: XLA ``xla/service/select_and_scatter_expander.cc``.
    """
    operand, source, init = [_plain(each.shape) for each in instruction.operands]
    select, scatter = callees(instruction, "select", "scatter")
    window = instruction.attributes.get("window")
    kind, rank = operand.element_type, operand.rank
    if window is None or not rank:
        return ""
    index = operand.with_element_type("s32")
    positions = source.with_element_type("s32")
    numbers = range(rank)
    lines = [
        f"lhs = {kind}[] parameter(0)",
        f"rhs = {kind}[] parameter({rank + 1})",
        f"selects = pred[] call(lhs, rhs), to_apply=%{select.name}",
        "none = s32[] constant(-1)",
        *[f"i{k} = s32[] parameter({k + 1})" for k in numbers],
        *[f"j{k} = s32[] parameter({rank + k + 2})" for k in numbers],
        "is_valid = pred[] compare(i0, none), direction=NE",
        "is_missing = pred[] compare(j0, none), direction=EQ",
        "both = pred[] and(selects, is_valid)",
        "keeps = pred[] or(both, is_missing)",
        f"value = {kind}[] select(keeps, lhs, rhs)",
        *[f"k{k} = s32[] select(keeps, i{k}, j{k})" for k in numbers],
    ]
    results = ", ".join([f"{kind}[]", *["s32[]"] * rank])
    lines.append(f"ROOT t = ({results}) tuple(value, {', '.join([f'k{k}' for k in numbers])})")
    arrays = ", ".join([str(source), *[str(positions)] * rank])
    iotas, nones = (", ".join([f"{name}{k}" for k in numbers]) for name in ("iota", "none"))
    joined = _shape("s32", (*source.dims, rank))
    single = _shape("s32", (*source.dims, 1))
    every = ",".join(map(str, numbers))
    entry = [
        f"operand = {operand} parameter(0)",
        f"source = {source} parameter(1)",
        f"init = {init} parameter(2)",
        *[f"iota{k} = {index} iota(), iota_dimension={k}" for k in numbers],
        *[f"none{k} = s32[] constant(-1)" for k in numbers],
        f"selected = ({arrays}) reduce-window(operand, {iotas}, init, {nones}), "
        f"window={window.printed}, to_apply=expansion.select",
        *[f"g{k} = {positions} get-tuple-element(selected), index={k + 1}" for k in numbers],
        *[f"r{k} = {single} reshape(g{k})" for k in numbers],
        f"places = {joined} concatenate({', '.join([f'r{k}' for k in numbers])}), "
        f"dimensions={{{rank}}}",
        f"base = {operand} broadcast(init), dimensions={{}}",
        f"ROOT out = {operand} scatter(base, places, source), update_window_dims={{}}, "
        f"inserted_window_dims={{{every}}}, scatter_dims_to_operand_dims={{{every}}}, "
        f"index_vector_dim={rank}, to_apply=%{scatter.name}",
    ]
    called = _with_callees(select, scatter)
    return _module(called, "expansion.select", lines) + _computation("ENTRY expansion", entry)


def _all_to_all(instruction: Instruction) -> str:
    """One part for each device of a group, exchanged as a tuple, and concatenated.

    Source: XLA ``xla/service/all_to_all_decomposer.cc``.
    """
    op = instruction.op
    if not isinstance(op, AllToAll) or not op.dimensions or len(instruction.operands) > 1:
        return ""
    if "replica_groups" not in instruction.attributes:
        return ""
    operand, (along,) = _plain(instruction.operands[0].shape), op.dimensions
    size = operand.dims[along] // op.group_size
    part = operand.with_dims([size if k == along else n for k, n in enumerate(operand.dims)])
    names = [f"p{k}" for k in range(op.group_size)]
    lines = [f"operand = {operand} parameter(0)"]
    for k, name in enumerate(names):
        bounds = [f"[{k * size}:{(k + 1) * size}]" if n == along else f"[0:{length}]"
                  for n, length in enumerate(operand.dims)]  # fmt: skip
        lines.append(f"{name} = {part} slice(operand), slice={{{', '.join(bounds)}}}")
    parts = ", ".join([str(part)] * len(names))
    lines.append(f"exchanged = ({parts}) all-to-all({', '.join(names)}){_groups(instruction)}")
    lines += [f"g{k} = {part} get-tuple-element(exchanged), index={k}" for k in range(len(names))]
    got = ", ".join([f"g{k}" for k in range(len(names))])
    lines.append(f"ROOT out = {operand} concatenate({got}), dimensions={{{along}}}")
    return _header(instruction) + _computation("ENTRY expansion", lines)


def _promoted_text(instruction: Instruction) -> str:
    """A reduction among devices of narrow floats, in f32.

    Source: XLA ``xla/service/all_reduce_promotion.cc``.
    """
    (combine,) = instruction.called_computations
    shapes = [each.shape for each in (*instruction.operands, instruction)]
    if len(shapes) != 2 or any(not isinstance(each, Shape) for each in shapes):
        return ""
    operand, out = map(_plain, shapes)
    is_narrow = operand.element_type in NARROW and len(combine.parameters) == 2
    if not is_narrow or combine.root.opcode not in ("add", "multiply", "maximum", "minimum"):
        return ""
    if set(combine.root.operands) != set(combine.parameters):
        return ""
    wide, sent = operand.with_element_type("f32"), out.with_element_type("f32")
    called = _computation(
        "combine",
        ["a = f32[] parameter(0)", "b = f32[] parameter(1)",
         f"ROOT c = f32[] {combine.root.opcode}(a, b)"],
    )  # fmt: skip
    entry = [
        f"operand = {operand} parameter(0)",
        f"wide = {wide} convert(operand)",
        f"sum = {sent} {instruction.opcode}(wide), to_apply=combine{_groups(instruction)}",
        f"ROOT out = {out} convert(sum)",
    ]
    return _header(instruction) + called + _computation("ENTRY expansion", entry)


def _ragged_text(instruction: Instruction) -> str:
    """One dot over the groups and the contracted dimension; rows of other groups are 0.

    Source: XLA ``xla/hlo/transforms/expanders/ragged_dot_rewriter.cc``.
    """
    op, out = instruction.op, instruction.shape
    left, right, sizes = [_plain(each.shape) for each in instruction.operands]
    is_plain = isinstance(op, RaggedDot) and op.rhs_group_dims and not op.lhs_batch_dims
    if not isinstance(op, RaggedDot) or not is_plain or sizes.rank != 1:
        return ""
    (group,), (ragged,), count = op.rhs_group_dims, op.lhs_ragged_dims, sizes.dims[0]
    grouped = left.with_dims((count, *left.dims))
    places, masks = grouped.with_element_type(sizes.element_type), grouped.with_element_type("pred")
    integer, single = sizes.with_dims(()), sizes.with_dims((1,))
    rest = sizes.with_dims((count - 1,))
    lines = [
        f"left = {left} parameter(0)",
        f"right = {right} parameter(1)",
        f"sizes = {sizes} parameter(2)",
        f"none = {integer} constant(0)",
        f"ends = {sizes} reduce-window(sizes, none), window={{size={count} pad={count - 1}_0}}, "
        "to_apply=expansion.add",
        f"zero_start = {single} broadcast(none), dimensions={{}}",
        f"next_starts = {rest} slice(ends), slice={{[0:{count - 1}]}}",
        f"starts = {sizes} concatenate(zero_start, next_starts), dimensions={{0}}",
        f"rows = {places} iota(), iota_dimension={ragged + 1}",
        f"first = {places} broadcast(starts), dimensions={{0}}",
        f"last = {places} broadcast(ends), dimensions={{0}}",
        f"after = {masks} compare(first, rows), direction=LE",
        f"before = {masks} compare(rows, last), direction=LT",
        f"inside = {masks} and(after, before)",
        f"copies = {grouped} broadcast(left), dimensions={{{_numbers(range(1, grouped.rank))}}}",
        f"zero = {left.with_dims(())} constant(0)",
        f"zeros = {grouped} broadcast(zero), dimensions={{}}",
        f"own = {grouped} select(inside, copies, zeros)",
        f"ROOT out = {_plain(out)} dot(own, right), "
        f"lhs_contracting_dims={{{_numbers([0, *[k + 1 for k in op.lhs_contracting_dims]])}}}, "
        f"rhs_contracting_dims={{{_numbers([group, *op.rhs_contracting_dims])}}}",
    ]
    add = [f"{name} = {integer} parameter({k})" for k, name in enumerate("ab")]
    called = _computation("expansion.add", [*add, f"ROOT c = {integer} add(a, b)"])
    return _header(instruction) + called + _computation("ENTRY expansion", lines)


def _numbers(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _groups(instruction: Instruction) -> str:
    """Return the attributes of a collective that denote its groups and dimensions, as text.

    The dimensions of an all-to-all are left out: its expansion exchanges a tuple.
    """
    names = ["channel_id", "replica_groups", "use_global_device_ids", "mode"]
    names += ["dimensions"] if instruction.opcode == "reduce-scatter" else []
    given = {name: instruction.attributes[name] for name in names if name in instruction.attributes}
    return "".join([f", {name}={text.printed}" for name, text in given.items()])


def _header(instruction: Instruction) -> str:
    """Return the header of a module that runs on the same devices."""
    devices = Devices.of(instruction.module)
    counts = f"replica_count={devices.num_replicas}, num_partitions={devices.num_partitions}"
    return f"HloModule expansion, {counts}\n\n"


def _shape(element_type: str, sizes: tuple[int, ...]) -> Shape:
    return Shape(element_type, sizes)


def _module(called: str, name: str, lines: list[str]) -> str:
    return f"HloModule expansion\n\n{called}\n\n{_computation(name, lines)}"


def _computation(head: str, lines: list[str]) -> str:
    body = "\n".join([f"  {line}" for line in lines])
    return f"{head} {{\n{body}\n}}\n\n"


EXPANSIONS: Final[Mapping[str, Expansion]] = MappingProxyType(
    {
        "select-and-scatter": Expansion(_select_and_scatter, SELECT_AND_SCATTER),
        "ragged-dot": Expansion(_ragged_text, RAGGED),
        "all-to-all": Expansion(_all_to_all),
        "all-reduce": Expansion(_promoted_text, PROMOTED),
        "reduce-scatter": Expansion(_promoted_text, PROMOTED),
    }
)
DEFINED: Final = frozenset(
    [*EXPANSIONS, "while", "topk", "batch-norm-training", "batch-norm-inference"]
)
"""Opcodes whose formulas may be others with definitions, whatever their attributes."""
