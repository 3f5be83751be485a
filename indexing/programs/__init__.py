"""Programs as arrays: calls inlined, tuples routed, equal computations made once.

Imports `maps`, `ops` and `dataflow`.  Invariants: the number of an array is larger than those of
its operands, and no two arrays of one `ProgramArrays` have the same number.
"""
