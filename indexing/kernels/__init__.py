"""Kernels of XLA's emitters: their MLIR read, their accesses as maps, proofs against their HLO.

In come logs of passes and dumps of modules; out come modules of MLIR (`ir`), kernels with the maps
of what they read and write, and verdicts.  Read `ir` first.

Imports `maps`, `ops`, `dataflow`, `programs`, `equivalence` and `frontends`.  An op that is not
known is kept with its name; a condition that is not handled makes a verdict undecided.
"""
