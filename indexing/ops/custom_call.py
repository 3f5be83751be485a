"""Custom calls: calls of code outside of HLO.

The semantics of a target are unknown unless the target is registered with ``@custom_call``
(`hlo.ops.op`), as those of `indexing.ops.targets` are.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar, Final

from hlo.modules.bind import registered_class
from hlo.modules.module import Instruction
from hlo.ops.attributes import (
    WindowDimension,
    boolean,
    computation,
    computation_list,
    enum,
    integer,
    list_of,
    raw,
    string,
    window,
    word,
    word_list,
)
from hlo.ops.attributes import shape as shape_kind
from hlo.ops.common_attributes import CONFIG
from hlo.ops.op import (
    HOLDS,
    Fault,
    attribute,
    constraint,
    count_fault,
    declared,
    op,
)
from hlo.ops.protocols import InstructionLike
from hlo.shapes.shape import (
    AnyShape,
    Shape,
    layouts_text,
    leaf_shape,
    leaves,
    unbounded_leaf,
)
from indexing.maps.answers import Path, Unknown
from indexing.maps.reasons import Reason
from indexing.ops.access_edge import AccessEdge
from indexing.ops.element import ElementRule, OpaqueRule
from indexing.ops.structured_ops import StructuredOp, Summaries

API_VERSIONS = (
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
)
TO_LOCAL: Final = "xla.sdy.GlobalToLocalShape"
TO_GLOBAL: Final = "xla.sdy.LocalToGlobalShape"
"""Targets of the custom calls at the borders of manual regions."""

FULL_TO_SHARD: Final = "SPMDFullToShardShape"
SHARD_TO_FULL: Final = "SPMDShardToFullShape"
"""Targets of the custom calls at the borders of manual regions, after Shardy."""
BORDERS: Final = (TO_LOCAL, TO_GLOBAL, FULL_TO_SHARD, SHARD_TO_FULL)

_LAYOUTS: Final = "operand_layout_constraints"
shape_list = list_of(shape_kind, "a list of shapes", "{f32[2]{0}, s32[]}", ", ")


@op(
    "custom-call",
    samples=[
        'f32[2,3] custom-call(f32[5] p), custom_call_target="opaque"',
        "(f32[2], token[], s32[0]) custom-call((f32[3], s32[]) p, f32[5] q), "
        'custom_call_target="opaque", api_version=API_VERSION_TYPED_FFI, '
        "custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (0, {0})}",
        'f32[2] custom-call(f32[3] p), custom_call_target="opaque", '
        "operand_layout_constraints={f32[3]{0}}",
        'f32[] custom-call(), custom_call_target="say \\"hello\\""',
    ],
)
class CustomCall(StructuredOp):
    """A call of the code registered as custom_call_target.

    Each element of the result may need every element of every operand: the maps are "may".

    Source: XLA ``docs/custom_call.md``.
    """

    accumulates: ClassVar[bool] = True
    rule: ClassVar[ElementRule] = OpaqueRule("its values are computed outside of the program")
    min_operands: ClassVar[int] = 0
    max_operands: ClassVar[int | None] = None
    shape: AnyShape = declared(any_shape=True)
    custom_call_target: str = attribute(string)
    api_version: str = attribute(enum(*API_VERSIONS), default="API_VERSION_ORIGINAL")
    operand_layout_constraints: tuple[AnyShape, ...] = attribute(shape_list, default=())
    output_to_operand_aliasing: str = attribute(raw, default="")
    custom_call_has_side_effect: bool = attribute(boolean, default=False)
    called_computations: tuple[str, ...] = attribute(computation_list, default=())
    to_apply: str = attribute(computation, default="")
    literal: str = attribute(raw, default="")
    schedule: str = attribute(word, default="SCHEDULE_NONE", in_value=False)
    window: tuple[WindowDimension, ...] = attribute(window, default=())
    dim_labels: str = attribute(raw, default="")
    feature_group_count: int = attribute(integer, default=1)
    batch_group_count: int = attribute(integer, default=1)
    padding_type: str = attribute(word, default="PADDING_INVALID")
    operand_precision: tuple[str, ...] = attribute(word_list, default=())

    def value_attributes(self, instruction: InstructionLike) -> dict[str, Hashable]:
        """Add what the called code may read: its configuration, and the layouts if constrained.

        XLA chooses the layouts of a call without `operand_layout_constraints`, so its code does not
        depend on them.  XLA:TPU assigns the tiles of constrained layouts, too.

        Source: XLA ``xla/hlo/ir/hlo_instructions.cc``, `HloCustomCallInstruction::Identical`.
        """
        values = StructuredOp.value_attributes(self, instruction)
        values[CONFIG] = attribute_text(instruction, CONFIG)
        constrained = values.pop(_LAYOUTS)
        if constrained:
            shapes = *self.operand_layout_constraints, self.shape
            *operands, result = [layouts_text(shape, has_tiles=False) for shape in shapes]
            values[_LAYOUTS] = f"({', '.join(operands)}) -> {result}"
        return values

    @constraint("C1", "operand_layout_constraints must have the shape of each operand")
    def constrains_operands(self, *operands: AnyShape) -> Fault:
        constrained, at = self.operand_layout_constraints, "operand_layout_constraints"
        if not constrained:
            return HOLDS
        if fault := count_fault(constrained, len(operands), "operand", at):
            return fault
        for number, (shape, operand) in enumerate(zip(constrained, operands, strict=True)):
            if not shape.compatible(operand):
                return Fault(f"operand {number} is {operand}, its constraint is {shape}", at)
        return HOLDS

    def infer_shape(self, *operands: AnyShape) -> AnyShape:
        return self.shape

    def edges(
        self, instruction: Instruction, output: Path, summaries: Summaries
    ) -> Iterator[AccessEdge]:
        shape = leaf_shape(instruction.shape, output)
        for number, operand in enumerate(instruction.operands):
            for path, leaf in leaves(operand.shape):
                if not isinstance(shape, Shape) or not isinstance(leaf, Shape):
                    continue
                if unbounded := unbounded_leaf(shape, leaf):
                    reason = f"{unbounded} has a dimension of unknown size"
                    unknown = Unknown(f"custom-call `{instruction.name}`: {reason}", instruction)
                    yield AccessEdge(number, path, output, (), unknown)
                elif shape.size and leaf.size:
                    maps = summaries.everything(shape, leaf)
                    obstacle = _why_any(instruction)
                    reasons = (Reason(obstacle, instruction),)
                    yield AccessEdge(number, path, output, maps, None, reasons)


def _why_any(instruction: Instruction) -> str:
    """Return why a call is treated as a call of any code."""
    cls = registered_class(instruction)
    if cls is not None and (reason := cls.why_unsupported(instruction)):
        return reason
    assert isinstance(instruction.op, CustomCall)
    return f"no rule is registered for the target {instruction.op.custom_call_target!r}"


def attribute_text(instruction: InstructionLike, name: str) -> str:
    """Return the text of an attribute as XLA prints it; "" without one."""
    text = instruction.attributes.get(name)
    return "" if text is None else text.normal


def target_of(instruction: InstructionLike) -> str:
    """Return the target of a custom call; "" for other instructions."""
    text = instruction.attributes.get("custom_call_target")
    return "" if text is None else text.printed.strip('"')


def setting(instruction: InstructionLike, name: str, default: Any = None) -> Any:
    """Return an entry of a custom call's ``backend_config``: an integer, a word or a bool.

    Characters are encoded as integers: ``uplo = 76 : ui8`` means ``L``.
    """
    text = instruction.attributes.get("backend_config")
    match = re.search(rf'"?\b{name}\b"?\s*[=:]\s*"?(-?\w+)', text.text if text else "")
    if match is None:
        return default
    word = match[1]
    if word in ("true", "false"):
        return word == "true"
    return int(word) if re.fullmatch(r"-?[0-9]{1,18}", word) else word


def letter_setting(instruction: InstructionLike, name: str, default: str = "") -> str:
    """Return an entry of ``backend_config`` that is a letter, also if it is a character code."""
    value = setting(instruction, name, default)
    return chr(value) if isinstance(value, int) and 0 <= value < 128 else str(value)
