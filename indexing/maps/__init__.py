"""Indexing maps as values: text, composition, simplification, relations, counts, interchange.

Imports `hlo` (shapes, instructions as names of values) and `simplifier`; no other room of
`indexing`.  Values are immutable, relations are exact, and a query beyond its budget is `Unknown`.
"""

from typing import Final

import lazy_loader

from hlo.moved import with_old_names

_core, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

OLD_NAMES: Final = {"Claim": "Verdict"}
"""Deprecated names: each still works, with a warning."""

__getattr__ = with_old_names(__name__, OLD_NAMES, _core)
