"""Constructors of arrays of HLO element types."""

from __future__ import annotations

from typing import Any

import numpy as np


def f32(values: Any) -> Any:
    """Return an f32 array."""
    return np.array(values, np.float32)


def s32(values: Any) -> Any:
    """Return an s32 array."""
    return np.array(values, np.int32)


def s8(values: Any) -> Any:
    """Return an s8 array."""
    return np.array(values, np.int8)
