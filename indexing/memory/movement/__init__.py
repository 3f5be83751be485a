"""Traffic between memory and the instructions of a program: bytes, operations, recomputation.

`analysis` counts the instructions of a module one by one, `fusing` what changes if two of them are
fused.  `evaluations` holds the maps to all arrays that an instruction evaluates, `amounts` counts
their points, `writes` decides what is written.
"""
