"""The laws of values, by the functions that they rewrite.

>>> [law.name for law in EXACT_LAWS["abs"]]
['|-x| = |x|', 'op(x, y) = convert(op(convert(x), convert(y)))']
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from indexing.equivalence.values.laws.conversions import CONVERSION_LAWS
from indexing.equivalence.values.laws.exact import FLOAT_LAWS
from indexing.equivalence.values.laws.integers import LAWS
from indexing.equivalence.values.laws.law import ValueLaw
from indexing.equivalence.values.laws.orders import ORDER_LAWS
from indexing.equivalence.values.laws.reals import DEFINITIONS, REAL_LAWS
from indexing.equivalence.values.laws.roundings import ROUNDING_LAWS

_EXACT: Final = (*LAWS, *ORDER_LAWS, *FLOAT_LAWS, *CONVERSION_LAWS, *ROUNDING_LAWS)
TABLE: Final = (*_EXACT, *DEFINITIONS, *REAL_LAWS)


def by_opcode(laws: Iterable[ValueLaw]) -> dict[str, list[ValueLaw]]:
    """Return the laws by the functions that they rewrite, in the same order."""
    table: dict[str, list[ValueLaw]] = {}
    for law in laws:
        for opcode in law.opcodes:
            table.setdefault(opcode, []).append(law)
    return table


EXACT_LAWS: Final = by_opcode(_EXACT)
