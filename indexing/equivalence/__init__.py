"""Equivalence: whether two programs compute the same, with a proof or a witness.

In come two programs; out comes `Proved`, `Differs` or `Undecided`.  Read `compare` first.

Imports `maps`, `ops`, `dataflow`, `execution` and `codegen`.  Nothing is `Proved` by sampling, and
every `Differs` names an element at which executions of both programs differ.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
