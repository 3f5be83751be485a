"""Indexing maps as values: text, composition, simplification, relations, counts, interchange.

In come shapes and expressions; out come maps and regions.  Read `indexing_map` first.

Imports `hlo` (shapes, instructions as names of values) and `simplifier`; no other room of
`indexing`.  Values are immutable, relations are exact, and a query beyond its budget is `Unknown`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
