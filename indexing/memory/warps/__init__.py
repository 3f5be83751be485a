"""Warps: the sectors, lines and banks of memory that the lanes of a warp touch together.

`access` counts the loads and stores of an instruction: `thread_loads` are its address patterns,
`warp_classes` finds the warps with equal patterns by their `periods`, `transactions` has the
numbers, `starts` searches unknown start indices.  `coalescing` is XLA's verdict.  `bank_conflicts`
counts accesses to shared memory, and `swizzle_search` avoids conflicts.
"""
