"""Traffic between memory and the instructions of a program: bytes, operations, recomputation.

In come instructions, out go the figures of `traffic_values`.  `analysis`, to be read first, counts
the instructions of a module one by one, `fusing` what changes if two of them are fused.
`loop_evaluations` holds the maps to all arrays that an instruction evaluates, `point_counts` counts
their points, `needed_reads` those that masks do not hide, `writes` decides what is written.
"""
