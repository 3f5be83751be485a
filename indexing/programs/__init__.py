"""Programs as arrays: calls inlined, tuples routed, equal computations made once.

Imports `maps`, `ops` and `dataflow`.  Invariant: a computation that is applied twice to the same
arrays has one result, unless it draws random numbers or has another effect.
"""
