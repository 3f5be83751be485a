"""Programs as arrays and their elements, for loop nests and formulas alike.

In come modules; out come arrays, with calls inlined and tuples routed, and the values of their
elements, over an algebra of values (`element`).  Read `arrays` first.

Imports `maps`, `ops` and `dataflow`.  Invariants: a computation that is applied twice to the same
arrays has one result, unless it draws random numbers or has another effect; each element rule is
read in one place; what a rule or an algebra does not give is an `Unknown`.
"""
