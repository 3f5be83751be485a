"""Neutral elements of combiners, by all values of the small element types."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hlo.shapes.shape import ELEMENT_TYPES, dtype
from indexing.ops.combiners import COMBINERS

FLOATS = [t for t, each in ELEMENT_TYPES.items() if each.kind == "floating" and each.bits <= 16]


@pytest.mark.parametrize("element_type", FLOATS)
@pytest.mark.parametrize("opcode", ["add", "multiply", "maximum", "minimum"])
def test_a_neutral_element_changes_no_value(opcode: str, element_type: str) -> None:
    kind, bits = dtype(element_type), ELEMENT_TYPES[element_type].bits
    unsigned = np.uint16 if bits == 16 else np.uint8
    values = np.arange(2**bits).astype(unsigned).view(kind)
    combiner = COMBINERS[opcode]

    def keeps(candidates: NDArray[Any]) -> Any:
        with np.errstate(all="ignore"):
            combined = combiner.function(values[:, None], candidates[None, :])
        wide, own = combined.astype(np.float32), values.astype(np.float32)[:, None]
        return ((wide == own) | (np.isnan(wide) & np.isnan(own))).all(axis=0)

    neutral = combiner.neutral(element_type)
    if neutral is None:
        assert not keeps(values).any()
    else:
        assert keeps(np.array([neutral]).astype(kind)).all()
