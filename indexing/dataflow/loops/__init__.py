"""Loops: induction variables, trip counts, and unrolling of ``while`` instructions."""
