"""Programs of tilings with loops: executed step by step, printed as kernels of Pallas or Triton.

In comes a `LoopTiling`; `tile_values` has the values of a step, `lowering` makes them, and
`program` has the phases.  `stepwise` executes them on NumPy, `pallas_text` and `triton_text` print
them.
"""
