"""The memory of a module for a page: the peak and the largest buffers of each memory space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hlo.modules.module import Instruction, Module
from indexing.memory.buffers.profile import memory_profile
from indexing.views.memory_tables import MemoryTable
from simplifier.unknown import Unknown

MAX_BUFFERS: Final = 100
"""Limit on the buffers of a memory space in the table."""
MAX_DRAWN: Final = 24
"""Limit on the buffers of a memory space in the picture."""


def memory_panel(module: Module, numbers: Mapping[Instruction, int]) -> dict[str, Any]:
    """Return the buffers of a module as a value for JSON.

    Args:
        numbers: the numbers of the instructions in the page.
    Returns:
        For each memory space the lines of ``hlo-indexing memory``, with the number of the
        instruction that writes a buffer first, and the picture of the lives; or why the buffers are
        unknown.
    Raises:
        HloError: an instruction is invalid.
    """
    profile = memory_profile(module)
    if isinstance(profile, Unknown):
        return {"unknown": str(profile)}
    spaces = [
        {
            "title": section.title,
            "shares": section.shares,
            "columns": section.columns,
            "rows": [
                [numbers[buffer.instruction], buffer.stored_bytes, *cells]
                for buffer, cells in zip(section.buffers, section.rows, strict=True)
            ],
            "rest": section.rest,
        }
        for section in MemoryTable(module.filename, profile).sections(MAX_BUFFERS)
    ]
    return {
        "scheduled": bool(module.header("is_scheduled", False)),
        "steps": len(profile.steps),
        "spaces": spaces,
        "picture": profile.plot(MAX_DRAWN).svg if spaces else None,
    }
