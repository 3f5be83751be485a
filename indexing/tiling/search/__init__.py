"""Search for tile sizes: valid tilings, those that move the fewest bytes, and XLA's own choice.

In come an instruction and limits on memory; out come tilings in the order of their bytes.
Read `candidates.best_tilings` first.
"""
