"""Programs of tilings with loops, executed step by step.

In comes a `LoopTiling`; `tile_values` has the values of a step, `lowering` makes them, `program`
has the phases, and `stepwise` executes them on NumPy.
"""
