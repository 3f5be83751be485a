"""Arrays of HLO's types, as tests write them."""

from __future__ import annotations

from typing import Any

import numpy as np


def f32(values: Any) -> Any:
    """An array of f32."""
    return np.array(values, np.float32)


def s32(values: Any) -> Any:
    """An array of s32."""
    return np.array(values, np.int32)


def s8(values: Any) -> Any:
    """An array of s8."""
    return np.array(values, np.int8)
