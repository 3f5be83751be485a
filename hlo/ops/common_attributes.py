"""Attributes that instructions of many ops have."""

from __future__ import annotations

from typing import Final

CONFIG: Final = "backend_config"
SIDE_EFFECT: Final = "custom_call_has_side_effect"

COMMON_ATTRIBUTES: Final = frozenset(
    {
        CONFIG,
        "control-predecessors",
        "frontend_attributes",
        "metadata",
        "origin",
        "result_accuracy",
        "sharding",
        "statistics",
    }
)
"""Attributes that every instruction may have.

The value of an instruction does not depend on them, except that the code of a custom call may read
``backend_config``, and the border of a manual region ``sharding`` and ``frontend_attributes``.
"""

CUSTOM_CALL_ATTRIBUTES: Final = frozenset(
    {
        "api_version",
        "batch_group_count",
        "called_computations",
        SIDE_EFFECT,
        "custom_call_target",
        "dim_labels",
        "feature_group_count",
        "literal",
        "operand_layout_constraints",
        "operand_precision",
        "output_to_operand_aliasing",
        "padding_type",
        "schedule",
        "to_apply",
        "window",
    }
)
"""Additional attributes that a custom call of any target may have."""
